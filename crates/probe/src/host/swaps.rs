//! Swap areas: `/proc/swaps`.
//!
//! Sizes are KiB. Priorities are -32768 to 32767, negative unless set by hand; the catalogue's rank is the priority
//! plus 32768, so that it is never negative. The row's key is the area's path. The kernel writes blanks, tabs, line
//! ends and backslashes of a path as octal escapes (`\040`); the printable ones are undone here. The path of a removed
//! swap file ends in ` (deleted)`. Without CONFIG_SWAP there is no file, and without swap only a heading. Cost: one
//! `pread` of 100 bytes, 0.5 µs; it takes the lock that swapon and swapoff take.

use timeline::{
    Entity, Sample,
    signals::{SWAP_AREA_RANK, SWAP_AREA_SIZE, SWAP_AREA_USED, SWAPS},
};
use units::{Bytes, Count};

use crate::error::{First, ParseError};
use crate::octal::{self, Piece};
use crate::text;

/// Reads the text into the swap areas' rows.
///
/// # Errors
/// The first malformed line; the other lines are read.
pub(crate) fn parse(text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
    let mut first = First::default();
    for (count, line) in text::lines(text) {
        if line.starts_with(b"Filename") {
            continue;
        }
        let mut words = text::words(line);
        let area = (words.next(), words.next(), words.next(), words.next(), words.next());
        let (Some(path), Some(_kind), Some(size), Some(used), Some(priority)) = area else {
            first.note(|| ParseError::new(SWAPS, count, "a path, a type and three numbers", line));
            continue;
        };
        let mut bad = |expected, word| first.note(|| ParseError::new(SWAPS, count, expected, word));
        let row = sample.table_mut(Entity::SwapArea).add();
        push_unescaped(&mut row.key, path);
        for (signal, word) in [(SWAP_AREA_SIZE, size), (SWAP_AREA_USED, used)] {
            match text::number(word).and_then(|kib| kib.checked_mul(1024)) {
                Some(bytes) => row.row.set(signal, Bytes::new(bytes)),
                None => bad("a size in KiB", word),
            }
        }
        match rank(priority) {
            Some(rank) => row.row.set(SWAP_AREA_RANK, rank),
            None => bad("a priority from -32768 to 32767", priority),
        }
    }
    first.into_result()
}

/// Returns the priority plus 32768.
fn rank(priority: &[u8]) -> Option<Count> {
    const MIDDLE: u64 = 32_768;
    match priority.strip_prefix(b"-") {
        Some(below) => MIDDLE.checked_sub(text::number(below)?),
        None => text::number(priority).filter(|p| *p < MIDDLE).map(|p| MIDDLE + p),
    }
    .map(Count::new)
}

/// Appends a path with its printable characters unescaped. A control character stays escaped, as `\012`.
fn push_unescaped(key: &mut String, path: &[u8]) {
    for piece in octal::pieces(path) {
        match piece {
            Piece::Escape(byte, _) if is_printable(byte) => key.push(char::from(byte)),
            Piece::Escape(_, raw) | Piece::Plain(raw) => text::push_lossy(key, raw),
        }
    }
}

const fn is_printable(character: u8) -> bool {
    character == b' ' || character.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/swaps");
    const V6_12: &[u8] = include_bytes!("../../tests/kernel/6.12/swaps");
    const HEADING: &str = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n";

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = parse(text, &mut sample);
        (sample, result)
    }

    /// Path, size, used, rank.
    type Area = (String, Option<Bytes>, Option<Bytes>, Option<Count>);

    fn areas(text: &str) -> Vec<Area> {
        let (sample, _) = read(text.as_bytes());
        let rows = sample.table(Entity::SwapArea).rows().iter();
        rows.map(|area| {
            let row = &area.row;
            let (size, used) = (row.get(SWAP_AREA_SIZE), row.get(SWAP_AREA_USED));
            (area.key.clone(), size, used, row.get(SWAP_AREA_RANK))
        })
        .collect()
    }

    #[test]
    fn sizes_are_kib_and_ranks_are_above_zero() {
        read(V6_1).1.unwrap();
        read(V6_12).1.unwrap();
        let kib = |n| Some(Bytes::from_kib(n));
        let expected = ("/dev/vda".to_owned(), kib(524_284), kib(6_196), Some(Count::new(32_766)));
        assert_eq!(areas(std::str::from_utf8(V6_1).unwrap()), [expected]);
        let old = format!(
            "{HEADING}/dev/dm-2                               partition\t131068\t176\t-2\n\
             /swap.img                               file\t\t2097148\t0\t32767\n"
        );
        assert_eq!(
            areas(&old),
            [
                ("/dev/dm-2".to_owned(), kib(131_068), kib(176), Some(Count::new(32_766))),
                ("/swap.img".to_owned(), kib(2_097_148), kib(0), Some(Count::new(65_535))),
            ]
        );
        assert!(areas(HEADING).is_empty());
    }

    #[test]
    fn escaped_paths_are_readable_and_stay_on_one_line() {
        for (written, read) in [
            ("/my\\040swap", "/my swap"),
            ("/swap\\040(deleted)", "/swap (deleted)"),
            ("/back\\134slash", "/back\\slash"),
            ("/line\\012end", "/line\\012end"),
            ("/escape\\033[31m", "/escape\\033[31m"),
            ("/cut\\04", "/cut\\04"),
            ("/high\\377", "/high\\377"),
            ("/\\\\040", "/\\ "),
        ] {
            let text = format!("{HEADING}{written} file 1 2 3\n");
            assert_eq!(areas(&text)[0].0, read);
        }
        let (sample, _) = read(b"/\xff\xfe file 1 2 3\n");
        assert_eq!(sample.table(Entity::SwapArea).rows()[0].key, "/\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let text = format!(
            "{HEADING}/a file -1 2 3\n/b file 1 18446744073709551615 3\n/c file 1 2 40000\n/d file 1\n"
        );
        let (_, result) = read(text.as_bytes());
        assert_eq!(
            result.unwrap_err().to_string(),
            "/proc/swaps, line 2: expected a size in KiB, found `-1`"
        );
        let kib = |n| Some(Bytes::from_kib(n));
        let rank = Some(Count::new(32_771));
        assert_eq!(
            areas(&text),
            [
                ("/a".to_owned(), None, kib(2), rank),
                ("/b".to_owned(), kib(1), None, rank),
                ("/c".to_owned(), kib(1), kib(2), None),
            ]
        );
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_1, |text| drop(read(text)));
    }
}
