//! Finds the first and last time of a head file without reading all of it: an hour may be a hundred MiB.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use timeline::Timeline;
use units::WallClock;

use crate::files::open_regular;
use crate::head;

/// How much of the beginning is read: the dictionary and the first samples.
const BEGINNING: u64 = 256 << 10;

/// Returns the wall clock of a head file's first and last sample; `None` if it has none.
pub(super) fn first_and_last(path: &Path) -> Option<(WallClock, WallClock)> {
    let mut file = open_regular(path).ok()?;
    let length = file.metadata().ok()?.len();
    let beginning = part(&mut file, 0, BEGINNING).ok()?;
    let (first, known) = ends(&beginning);
    let mut tail = BEGINNING;
    // Blocks of samples are self-contained: a complete one in the tail gives the end.
    while BEGINNING + tail < length {
        let mut bytes = beginning.clone();
        bytes.extend(part(&mut file, length - tail, tail).ok()?);
        let (begins, last) = ends(&bytes);
        if last != known {
            return first.or(begins).zip(last);
        }
        tail *= 4;
    }
    let (first, last) = ends(&part(&mut file, 0, length).ok()?);
    first.zip(last)
}

fn part(file: &mut File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn ends(bytes: &[u8]) -> (Option<WallClock>, Option<WallClock>) {
    // An empty window skips the readings.
    let nothing = (Some(WallClock::from_unix_nanos(i64::MAX)), None);
    let read = head::load_bytes(bytes, &mut Timeline::default(), Some(nothing));
    (read.first, read.last)
}
