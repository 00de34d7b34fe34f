//! Files with their paths in the command, in that order.

use super::reader::{KernelFileReader, what_of};
use super::shape::FileShape;
use super::{extent, file_path};
use crate::block::{BlockReader, TextBlock};

/// This file has only the line `full`, and no signal.
const IRQ: &str = "/proc/pressure/irq";

pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let mut paths = file_path::in_command(input.command?);
    with_irq(&mut paths, lines);
    let mut at = 0;
    let mut files = Vec::new();
    for (i, path) in paths.iter().enumerate() {
        let Some(shape) = FileShape::at(path) else {
            continue;
        };
        let mut to = extent::end(lines, at, shape, path);
        if i + 1 < paths.len() {
            to = to.min(first_repeated(lines, at, to, shape));
        }
        if path == IRQ {
            to = to.min(at + 1);
        }
        if to > at {
            files.push((path.clone(), shape, at, to));
            at = to;
        }
    }
    let (first, ..) = files.first()?;
    let what = what_of(first, files.len());
    let one = files.len() == 1;
    let mut reader = KernelFileReader::new(input);
    for (path, shape, from, to) in &files {
        if one {
            reader.repeated(path, *shape, *from, *to);
        } else {
            reader.lines(path, *shape, *from, *to);
        }
    }
    Some(reader.finish(&what, at))
}

/// Newer kernels have `irq` between the other files of `/proc/pressure/*`: seven lines, not six.
fn with_irq(paths: &mut Vec<String>, lines: &[&str]) {
    let is_pressure = |line: &&&str| FileShape::Pressure.continues(line);
    let names = ["/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"];
    if *paths == names && lines.iter().take(8).take_while(is_pressure).count() == 7 {
        paths.insert(2, IRQ.to_owned());
    }
}

/// The first line that the file already had: there the next file begins.
fn first_repeated(lines: &[&str], from: usize, to: usize, shape: FileShape) -> usize {
    let mut seen = std::collections::HashSet::new();
    let is_new = |line: &&&str| seen.insert(shape.identity(line));
    from + lines[from..to].iter().take_while(is_new).count()
}
