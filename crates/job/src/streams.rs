//! How many files a job reads at once: the kernel reads ahead in each of them.
//!
//! With less cache than all of that together, what was read ahead is evicted before it is used, and read again. Measured: sort(1)
//! that merges 16 files, with read-ahead of 8 MiB, read 686 MiB instead of 215 in 24 MiB.

use std::collections::HashMap;

use units::Bytes;

use crate::touches::{TouchKind, Touches};

/// Touches that are looked at together.
const WINDOW: Bytes = Bytes::from_mib(64);

/// A file is read beside others if it is returned to more often than this within a window.
const RETURNS_MAX_OF_ONE: u32 = 2;

/// And if so much of it is read there: ahead of a small file nothing much is read.
const READ_MIN: Bytes = Bytes::from_mib(1);

/// Files that were read in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streams {
    /// The most at once; one at least.
    pub(crate) files: usize,
    /// What was read of such files, each time counted.
    pub(crate) read: Bytes,
}

/// Returns the files that were read in turns.
pub(crate) fn streams(touches: &Touches) -> Streams {
    let window = WINDOW.get() / touches.unit().get().max(1);
    let (mut most, mut read) = (1, 0);
    let (mut pages, mut last) = (0, None);
    // Of each file how often it was returned to, and pages.
    let mut returns: HashMap<u32, (u32, u64)> = HashMap::new();
    let mut take = |returns: &mut HashMap<u32, (u32, u64)>| {
        let is_one = |(times, pages): &&(u32, u64)| {
            *times > RETURNS_MAX_OF_ONE && touches.unit().times(*pages) >= READ_MIN
        };
        let files = returns.values().filter(is_one).count();
        most = most.max(files);
        if files > 1 {
            read += returns.values().filter(is_one).map(|(_, pages)| pages).sum::<u64>();
        }
        returns.clear();
    };
    for run in touches.runs().iter().filter(|run| run.kind == TouchKind::Read) {
        let of_file = returns.entry(run.file).or_default();
        of_file.0 += u32::from(last.replace(run.file) != Some(run.file));
        of_file.1 += u64::from(run.pages);
        pages += u64::from(run.pages);
        if pages >= window {
            take(&mut returns);
            pages = 0;
        }
    }
    take(&mut returns);
    Streams { files: most, read: touches.unit().times(read) }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;

    #[test]
    fn files_in_turns_are_counted_and_files_one_after_another_are_one() {
        let read = |order: &mut dyn Iterator<Item = (u32, u32)>| {
            let mut touches = Touches::of_unit(Bytes::from_kib(4));
            for (file, page) in order {
                touches.touch(TouchKind::Read, (file, 0), (page * 64, 64), Span::ZERO);
            }
            let Streams { files, read } = streams(&touches);
            (files, read)
        };
        let all = Bytes::from_kib(4 * 64 * 160);
        let in_turns = read(&mut (0..10).flat_map(|page| (0..16).map(move |file| (file, page))));
        assert_eq!(in_turns, (16, all));
        let each = read(&mut (0..16).flat_map(|file| (0..10).map(move |page| (file, page))));
        assert_eq!(each, (1, Bytes::ZERO));
        assert_eq!(read(&mut std::iter::empty()), (1, Bytes::ZERO));
    }
}
