//! The kernel's file objects: `/proc/sys/fs/{dentry-state,inode-nr,file-nr}`.
//!
//! Counts of cached directory entries (all, unused, negative), of cached inodes (all, unused) and of open files. They
//! show, without root, which of the caches fills a large reclaimable slab. Negative entries are counted since 5.0, in a
//! field that was 0 before: a 0 is taken for an older kernel, as a running system always has some. Cost: three
//! `pread`s, 0.4 µs each, which sum per-CPU counters.

use timeline::signals::{DENTRIES_NEGATIVE, DENTRY_STATE, FILE_NR, INODE_NR};

use crate::columns::NumberColumns;

/// Returns the parser of `dentry-state`.
pub(crate) fn dentry_state() -> NumberColumns {
    NumberColumns::for_file(DENTRY_STATE).uncounted_if_zero(DENTRIES_NEGATIVE.id())
}

/// Returns the parser of `inode-nr`.
pub(crate) fn inode_nr() -> NumberColumns {
    NumberColumns::for_file(INODE_NR)
}

/// Returns the parser of `file-nr`.
pub(crate) fn file_nr() -> NumberColumns {
    NumberColumns::for_file(FILE_NR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ParseError;
    use crate::hostile;
    use timeline::Row;
    use timeline::signals::{DENTRIES, DENTRIES_UNUSED, FILES_OPEN, INODES, INODES_FREE};
    use units::Count;

    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/dentry-state");

    fn dentries(text: &[u8]) -> (Row, Result<(), ParseError>) {
        let mut row = Row::default();
        let result = dentry_state().parse(text, &mut row);
        (row, result)
    }

    #[test]
    fn columns_are_what_the_kernel_says_they_are() {
        let (mut row, result) = dentries(V6_18);
        result.unwrap();
        let inodes = include_bytes!("../../tests/kernel/6.18/inode-nr");
        inode_nr().parse(inodes, &mut row).unwrap();
        let files = include_bytes!("../../tests/kernel/6.18/file-nr");
        file_nr().parse(files, &mut row).unwrap();
        for (signal, count) in [
            (DENTRIES, 128_033),
            (DENTRIES_UNUSED, 126_747),
            (DENTRIES_NEGATIVE, 25_341),
            (INODES, 101_813),
            (INODES_FREE, 0),
            (FILES_OPEN, 317),
        ] {
            assert_eq!(row.get(signal), Some(Count::new(count)), "{}", signal.def().name);
        }
    }

    #[test]
    fn a_kernel_before_5_0_does_not_count_negative_entries() {
        let (row, result) = dentries(b"95214\t82166\t45\t0\t0\t0\n");
        result.unwrap();
        assert_eq!(row.get(DENTRIES), Some(Count::new(95_214)));
        assert_eq!(row.get(DENTRIES_NEGATIVE), None, "missing is not zero");
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let (row, result) = dentries(b"-1\t5\t45");
        let message = "/proc/sys/fs/dentry-state, line 1: expected a number, found `-1`";
        assert_eq!(result.unwrap_err().to_string(), message);
        assert_eq!(row.get(DENTRIES_UNUSED), Some(Count::new(5)));
        for empty in ["", "\n", " \t"] {
            assert!(dentries(empty.as_bytes()).1.is_err(), "{empty:?}");
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(dentries(text)));
    }
}
