//! Files with their path as a heading, one after the other.

use super::reader::{KernelFileReader, what_of};
use super::shape::FileShape;
use super::{extent, file_path, pressure};
use crate::block::{BlockReader, TextBlock};

pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let mut at = 0;
    let mut files = Vec::new();
    while let Some((path, shape, from, to)) = headed(lines, at) {
        files.push((path, shape, from, to));
        at = to;
    }
    let (first, ..) = files.first()?;
    let what = what_of(first, files.len());
    let mut reader = KernelFileReader::new(input);
    for (path, shape, from, to) in &files {
        reader.lines(path, *shape, *from, *to);
    }
    Some(reader.finish(&what, at))
}

/// The file with its heading at a line, or after one blank line: path, shape, first line and end of its text.
fn headed(lines: &[&str], at: usize) -> Option<(String, FileShape, usize, usize)> {
    let is_blank = |at: usize| lines.get(at).is_some_and(|line| line.is_empty());
    let at = at + usize::from(at > 0 && is_blank(at));
    let line = *lines.get(at)?;
    let path = file_path::in_heading(line).or_else(|| pressure::in_heading(line))?;
    let shape = FileShape::at(&path)?;
    let from = at + 1;
    let to = extent::end(lines, from, shape, &path);
    (to > from).then_some((path, shape, from, to))
}
