//! Compressed swap in RAM: `/sys/block/zram*/{mm_stat,io_stat,disksize}`.
//!
//! mm_stat (4.2) is in bytes, except for its counts of pages: 7 numbers until 4.18, 8 with incompressible pages, 9
//! since 5.16. A limit of 0 means none. Failed writes in io_stat are mostly limit hits. disksize is the capacity that
//! swap sees, not RAM. All are 0 on a device that is not set up. Before 4.2 there was a file for each number; those are
//! not read. Cost: three `pread`s, 1 µs each; mm_stat takes the device's lock.

use timeline::signals::{ZRAM_LIMIT, ZRAM_MM_STAT};

use crate::columns::NumberColumns;

/// Requests that failed.
pub(crate) const IO_STAT: &str = "/sys/block/zram*/io_stat";
/// The device's size.
pub(crate) const DISK_SIZE: &str = "/sys/block/zram*/disksize";

/// Returns the parser of `mm_stat`.
pub(crate) fn mm_stat() -> NumberColumns {
    NumberColumns::for_file(ZRAM_MM_STAT).unlimited_if_zero(ZRAM_LIMIT)
}

/// Returns the parser of `io_stat`.
pub(crate) fn io_stat() -> NumberColumns {
    NumberColumns::for_file(IO_STAT)
}

/// Returns the parser of `disksize`.
pub(crate) fn disk_size() -> NumberColumns {
    NumberColumns::for_file(DISK_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::Row;
    use timeline::signals::{
        ZRAM_COMPRESSED, ZRAM_DISK_SIZE, ZRAM_FAILED_WRITES, ZRAM_HUGE, ZRAM_ORIG, ZRAM_SAME,
        ZRAM_USED, ZRAM_USED_MAX,
    };
    use units::{Bytes, Count, Limit, Pages};

    const V6_18: &[u8] =
        b"90701824  1030144  1871872        0 95023104       12        3        4        5\n";

    #[test]
    fn the_three_files_of_a_device_fill_one_row() {
        let mut row = Row::default();
        mm_stat().parse(V6_18, &mut row).unwrap();
        io_stat().parse(b"       1        2        0        3\n", &mut row).unwrap();
        disk_size().parse(b"419430400\n", &mut row).unwrap();
        for (signal, bytes) in [
            (ZRAM_ORIG, 90_701_824),
            (ZRAM_COMPRESSED, 1_030_144),
            (ZRAM_USED, 1_871_872),
            (ZRAM_USED_MAX, 95_023_104),
            (ZRAM_DISK_SIZE, 419_430_400),
        ] {
            assert_eq!(row.get(signal), Some(Bytes::new(bytes)), "{}", signal.def().name);
        }
        assert_eq!(row.get(ZRAM_LIMIT), Some(Limit::Unlimited), "0 is no limit");
        assert_eq!(row.get(ZRAM_SAME), Some(Pages::new(12)));
        assert_eq!(row.get(ZRAM_HUGE), Some(Pages::new(4)));
        assert_eq!(row.get(ZRAM_FAILED_WRITES), Some(Count::new(2)));
    }

    #[test]
    fn old_kernels_do_not_count_incompressible_pages() {
        let mut row = Row::default();
        let text = b"  397312     1217   249856        0   249856       14        0\n";
        mm_stat().parse(text, &mut row).unwrap();
        assert_eq!(row.get(ZRAM_SAME), Some(Pages::new(14)));
        assert_eq!(row.get(ZRAM_HUGE), None, "missing is not zero");
    }

    #[test]
    fn any_bytes_are_survived() {
        for columns in [mm_stat(), io_stat(), disk_size()] {
            hostile::feed(V6_18, |text| {
                let _ = columns.parse(text, &mut Row::default());
            });
        }
    }
}
