//! Lines with their path before them, as `grep` prints several files.

use super::file_path;
use super::reader::{KernelFileReader, what_of};
use super::shape::FileShape;
use crate::block::{BlockReader, TextBlock};

pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (path, _) = file_path::before(input.lines.first()?)?;
    FileShape::at(&path)?;
    let lines = input.lines;
    let mut files: Vec<(String, Vec<(usize, &str)>)> = Vec::new();
    let mut taken = 0;
    let mut foreign = 0;
    while let Some((path, rest)) = lines.get(taken).and_then(|line| file_path::before_next(line)) {
        match files.last_mut() {
            Some((last, lines)) if *last == path => lines.push((taken, rest)),
            _ => files.push((path, vec![(taken, rest)])),
        }
        taken += 1;
    }
    let mut reader = KernelFileReader::new(input);
    let what = what_of(&files[0].0, files.len());
    for (path, lines) in &files {
        match FileShape::at(path) {
            Some(shape) => reader.file(path, shape, lines),
            None => foreign += lines.len(),
        }
    }
    reader.block.not_understood += foreign;
    Some(reader.finish(&what, taken))
}
