//! A process's memory as shares: `/proc/PID/smaps_rollup`, the sum over its mappings.
//!
//! Since 4.14; the `Pss_*` split 5.4. "kB" there are KiB. Needs the right to trace the process (its owner, or root). A
//! page shared by *n* processes counts 1/*n* in `Pss*`, so sums over processes are the memory they use together.
//!
//! Cost: 9 µs and 2.3 to 3.5 µs for each resident MiB with 4 KiB pages (0.2 s for 64 GiB), **under the process's mmap
//! lock**: its page faults and mappings wait that long. Read few processes, and never the same one in a tight loop.

use timeline::Row;

use crate::error::ParseError;
use crate::fields::Fields;

/// Reads the text into the process's row. The first line has the address range and is not a field.
///
/// # Errors
/// The first line without a number; the other lines are read.
pub(crate) fn parse(fields: &mut Fields, text: &[u8], row: &mut Row) -> Result<(), ParseError> {
    let head = memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1);
    let (skipped, rest) = if text[..head].first().is_some_and(u8::is_ascii_uppercase) {
        (0, text)
    } else {
        (1, &text[head..])
    };
    fields
        .parse(rest, row, |_, _| {})
        .map_err(|error| ParseError { line: error.line + skipped, ..error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timeline::signals::{
        PROC_ANON_HUGE, PROC_LAZY_FREE, PROC_PRIVATE_CLEAN, PROC_PRIVATE_DIRTY, PROC_PSS,
        PROC_PSS_ANON, PROC_PSS_FILE, PROC_PSS_SHMEM, PROC_SHARED_DIRTY, PROC_SWAP_PSS,
        SMAPS_ROLLUP,
    };
    use units::Bytes;

    fn read(text: &[u8]) -> (Row, Result<(), ParseError>) {
        let mut row = Row::default();
        let result = parse(&mut Fields::for_file(SMAPS_ROLLUP), text, &mut row);
        (row, result)
    }

    /// From a 6.1 guest.
    const MISC: &[u8] =
        b"00400000-7ffd395f7000 ---p 00000000 00:00 0                              [rollup]\n\
        Rss:               16324 kB\nPss:               16317 kB\nPss_Dirty:         16316 kB\n\
        Pss_Anon:          15616 kB\nPss_File:              1 kB\nPss_Shmem:           700 kB\n\
        Shared_Clean:          4 kB\nShared_Dirty:          8 kB\nPrivate_Clean:         0 kB\n\
        Private_Dirty:     16312 kB\nReferenced:        16324 kB\nAnonymous:         15616 kB\n\
        LazyFree:              0 kB\nAnonHugePages:     14336 kB\nShmemPmdMapped:        0 kB\n\
        FilePmdMapped:         0 kB\nShared_Hugetlb:        0 kB\nPrivate_Hugetlb:       0 kB\n\
        Swap:                  0 kB\nSwapPss:               2 kB\nLocked:                0 kB\n";

    #[test]
    fn kb_are_kib_and_the_first_line_is_no_field() {
        let (row, result) = read(MISC);
        result.unwrap();
        for (signal, kib) in [
            (PROC_PSS, 16317),
            (PROC_PSS_ANON, 15616),
            (PROC_PSS_FILE, 1),
            (PROC_PSS_SHMEM, 700),
            (PROC_PRIVATE_DIRTY, 16312),
            (PROC_PRIVATE_CLEAN, 0),
            (PROC_SHARED_DIRTY, 8),
            (PROC_SWAP_PSS, 2),
            (PROC_ANON_HUGE, 14336),
            (PROC_LAZY_FREE, 0),
        ] {
            assert_eq!(row.get(signal), Some(Bytes::from_kib(kib)));
        }
    }

    #[test]
    fn a_bad_number_costs_its_line_only() {
        let (row, result) =
            read(b"0-1 ---p 0 00:00 0 [rollup]\nRss: 1 kB\nPss: -1 kB\nSwapPss: 2 kB\n");
        assert_eq!(
            result.unwrap_err().to_string(),
            "/proc/PID/smaps_rollup, line 3: expected a number, found `-1 kB`"
        );
        assert_eq!(row.get(PROC_SWAP_PSS), Some(Bytes::from_kib(2)));
        assert!(read(b"Pss: 1180591620717411303424 kB\n").1.is_err());
        assert!(read(b"").1.is_ok(), "a kernel thread's is empty");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            let _ = read(&text);
        }
    }
}
