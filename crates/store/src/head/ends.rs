//! Finds the first and the last time of a head file without reading all of it: an hour may be a hundred MiB.

use std::fs::File;
use std::io;
use std::path::Path;

use timeline::Timeline;
use units::{Span, WallClock};

use super::decode::Decoder;
use super::{FILE_BYTES_MAX, HeadRead, feed, length};
use crate::files;

/// How much of the beginning is read: the dictionary and the first samples.
const BEGINNING: u64 = 256 << 10;

/// Returns the wall clock of a head file's first and last sample; `None` if it has none.
pub(crate) fn first_and_last(path: &Path) -> Option<(WallClock, WallClock)> {
    let read = ends(path).ok()?;
    read.first.zip(read.last)
}

/// Returns the time from a head file's first sample to its last by the boot clock; `None` where they are not of one boot.
pub(crate) fn duration(path: &Path) -> Option<Span> {
    let read = ends(path).ok()?;
    let (begin, end) = read.begin.zip(read.end)?;
    let is_one_boot = begin.is_of_boot_of(&end) != Some(false);
    (is_one_boot && begin.boot <= end.boot).then(|| end.boot - begin.boot)
}

/// Reads the times of a head file's first and last sample, and whether its writer ended it.
pub(crate) fn ends(path: &Path) -> io::Result<HeadRead> {
    let file = files::open_regular(path)?;
    let length = length(&file)?.min(FILE_BYTES_MAX);
    let mut tail = BEGINNING;
    // Blocks of samples are self-contained: a complete one in the tail gives the end.
    while BEGINNING + tail < length {
        let read = read(&file, length, tail)?;
        if read.last.is_some() {
            return Ok(read);
        }
        tail *= 4;
    }
    read(&file, length, length)
}

/// Reads the beginning of a file, and as much of its end.
fn read(file: &File, length: u64, tail: u64) -> io::Result<HeadRead> {
    let mut unused = Timeline::default();
    let mut decoder = Decoder::of_clocks(&mut unused);
    let from = length - tail;
    if from > 0 {
        feed(&mut decoder, file, 0..BEGINNING.min(from))?;
        // The last sample of the beginning is not the last of the file.
        decoder.read.last = None;
        decoder.read.end = None;
    }
    feed(&mut decoder, file, from..length)?;
    Ok(decoder.end())
}
