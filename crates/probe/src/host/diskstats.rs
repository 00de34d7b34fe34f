//! I/O of block devices: `/proc/diskstats`.
//!
//! A sector is always 512 bytes here, whatever the device uses. Times are milliseconds and wrap at 2^32; times of
//! parallel requests add up. 11 numbers follow the name, 15 since 4.18 (discards), 17 since 5.5 (flushes).
//!
//! Rows are whole disks, and device-mapper and MD devices; their I/O is counted again in the disks below them.
//! Partitions are left out, as are RAM disks, loop devices and zram, which are not disks of their own. The kernel lists
//! a disk right before its partitions and names these after it with a number, separated by `p` if the disk's own name
//! ends in a digit (`block/partitions/core.c`), so the text alone distinguishes partitions from disks. Cost: one
//! `pread` of 100 bytes per device, 6 µs for ten.

use timeline::{
    Entity, Row, Sample, SignalId,
    signals::{
        DISK_FLUSHES, DISK_IN_FLIGHT, DISK_IO_TIME, DISK_QUEUE_TIME, DISK_READ_BYTES,
        DISK_READ_TIME, DISK_READS, DISK_WRITE_BYTES, DISK_WRITE_TIME, DISK_WRITES, DISKSTATS,
    },
};

use crate::error::{First, ParseError};
use crate::text;

/// A sector of `/proc/diskstats`.
const SECTOR: u64 = 512;

/// The numbers after a device's name, in order, with their scale; `None` for merged requests and discards, which are
/// not in the catalogue.
const NUMBERS: [Option<(SignalId, u64)>; 16] = [
    Some((DISK_READS.id(), 1)),
    None,
    Some((DISK_READ_BYTES.id(), SECTOR)),
    Some((DISK_READ_TIME.id(), 1)),
    Some((DISK_WRITES.id(), 1)),
    None,
    Some((DISK_WRITE_BYTES.id(), SECTOR)),
    Some((DISK_WRITE_TIME.id(), 1)),
    Some((DISK_IN_FLIGHT.id(), 1)),
    Some((DISK_IO_TIME.id(), 1)),
    Some((DISK_QUEUE_TIME.id(), 1)),
    None,
    None,
    None,
    None,
    Some((DISK_FLUSHES.id(), 1)),
];

/// Reads the text into the disks' rows, which are keyed by the kernel's name.
///
/// # Errors
/// The first malformed line; the other lines are read.
pub(crate) fn parse(text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
    let mut first = First::default();
    let mut disk: &[u8] = b"";
    for (count, line) in text::lines(text) {
        let mut words = text::words(line);
        let (Some(_major), Some(_minor), Some(name)) = (words.next(), words.next(), words.next())
        else {
            if !text::trim(line).is_empty() {
                first.note(|| ParseError::new(DISKSTATS, count, "numbers and a name", line));
            }
            continue;
        };
        if is_partition(name, disk) {
            continue;
        }
        disk = name;
        if [&b"ram"[..], b"loop", b"zram"].iter().any(|kind| is_numbered(name, kind)) {
            continue;
        }
        let row = sample.table_mut(Entity::Disk).add();
        text::push_lossy(&mut row.key, name);
        for (signal, word) in NUMBERS.iter().zip(words) {
            let Some((signal, scale)) = signal else {
                continue;
            };
            if let Err(expected) = record(*signal, *scale, word, &mut row.row) {
                first.note(|| ParseError::new(DISKSTATS, count, expected, word));
            }
        }
    }
    first.into_result()
}

/// Stores a number in the row; the error says what was expected.
fn record(signal: SignalId, scale: u64, word: &[u8], row: &mut Row) -> Result<(), &'static str> {
    let value = text::number(word).ok_or("a number")?;
    if signal == DISK_IN_FLIGHT.id() && value > i32::MAX.unsigned_abs().into() {
        // Some 4.x kernels let this one fall below zero, and print almost 2^32.
        return Err("a number of requests below 2^31");
    }
    let scaled = value.checked_mul(scale);
    row.set_raw(signal, scaled.ok_or("a size below 2^64 bytes")?);
    Ok(())
}

/// Whether `name` is a partition of the disk that was listed last.
fn is_partition(name: &[u8], disk: &[u8]) -> bool {
    if disk.last().is_some_and(u8::is_ascii_digit) {
        name.strip_prefix(disk).is_some_and(|rest| is_numbered(rest, b"p"))
    } else {
        !disk.is_empty() && is_numbered(name, disk)
    }
}

/// Whether `name` is `stem` followed by a number.
fn is_numbered(name: &[u8], stem: &[u8]) -> bool {
    name.strip_prefix(stem)
        .is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use units::{Bytes, Count, Millis};

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/diskstats");
    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/diskstats");

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = parse(text, &mut sample);
        (sample, result)
    }

    fn keys(text: &str) -> Vec<String> {
        let (sample, _) = read(text.as_bytes());
        let rows = sample.table(Entity::Disk).rows();
        rows.iter().map(|row| row.key.clone()).collect()
    }

    #[test]
    fn sectors_are_512_bytes_and_times_are_milliseconds() {
        let (sample, result) = read(V6_1);
        result.unwrap();
        let row = &sample.table(Entity::Disk).rows()[0].row;
        assert_eq!(row.get(DISK_READS), Some(Count::new(9_544)));
        assert_eq!(row.get(DISK_READ_BYTES), Some(Bytes::new(557_048 * 512)));
        assert_eq!(row.get(DISK_READ_TIME), Some(Millis::new(66_479)));
        assert_eq!(row.get(DISK_WRITES), Some(Count::new(2_365)));
        assert_eq!(row.get(DISK_WRITE_BYTES), Some(Bytes::new(1_361_928 * 512)));
        assert_eq!(row.get(DISK_WRITE_TIME), Some(Millis::new(1_406_699)));
        assert_eq!(row.get(DISK_IN_FLIGHT), Some(Count::ZERO));
        assert_eq!(row.get(DISK_IO_TIME), Some(Millis::new(23_552)));
        assert_eq!(row.get(DISK_QUEUE_TIME), Some(Millis::new(1_473_178)));
        assert_eq!(row.get(DISK_FLUSHES), Some(Count::ZERO));
    }

    #[test]
    fn loop_devices_and_zram_are_no_disks() {
        assert_eq!(keys(std::str::from_utf8(V6_18).unwrap()), ["vda"]);
    }

    #[test]
    fn partitions_are_told_from_disks_by_the_kernels_own_naming() {
        let text: String = [
            "sda",
            "sda1",
            "sda10",
            "sdb",
            "md0",
            "md1",
            "md1p1",
            "dm-1",
            "dm-10",
            "nvme0n1",
            "nvme0n1p1",
            "nvme0n1p12",
            "nvme0n2",
            "mmcblk0",
            "mmcblk0p1",
            "mmcblk0boot0",
            "rbd0",
            "rbd0p1",
            "cciss/c0d0",
            "cciss/c0d0p1",
            "cciss/c0d1",
            "sr0",
            "nbd0",
            "xvda1",
            "xvda2",
            "ram0",
            "ram15",
            "loop0",
            "loop0p1",
            "zram1",
            "sda2x",
            "ramdisk",
        ]
        .iter()
        .map(|name| format!(" 8 0 {name} 1 2 3 4 5 6 7 8 9 10 11\n"))
        .collect();
        assert_eq!(
            keys(&text),
            [
                "sda",
                "sdb",
                "md0",
                "md1",
                "dm-1",
                "dm-10",
                "nvme0n1",
                "nvme0n2",
                "mmcblk0",
                "mmcblk0boot0",
                "rbd0",
                "cciss/c0d0",
                "cciss/c0d1",
                "sr0",
                "nbd0",
                "xvda1",
                "xvda2",
                "sda2x",
                "ramdisk"
            ]
        );
    }

    #[test]
    fn old_kernels_have_no_flushes() {
        for numbers in ["1 2 3 4 5 6 7 8 9 10 11", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"] {
            let (sample, result) = read(format!("   8  0 sda {numbers}\n").as_bytes());
            result.unwrap();
            let row = &sample.table(Entity::Disk).rows()[0].row;
            assert_eq!(row.get(DISK_QUEUE_TIME), Some(Millis::new(11)));
            assert_eq!(row.get(DISK_FLUSHES), None, "missing is not zero");
        }
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let (sample, result) = read(
            b"8 0 sda -1 2 36893488147419103232 4 5 6 36028797018963968 8 4294967295 10\n8 0\n",
        );
        let message = "/proc/diskstats, line 1: expected a number, found `-1`";
        assert_eq!(result.unwrap_err().to_string(), message);
        let row = &sample.table(Entity::Disk).rows()[0].row;
        let read: Vec<_> = row.iter().map(|(signal, value)| (signal.def().name, value)).collect();
        let expected = [
            ("disk.read_time", 4),
            ("disk.writes", 5),
            ("disk.write_time", 8),
            ("disk.io_time", 10),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_host_without_disks_has_an_empty_file() {
        for text in ["", "\n"] {
            read(text.as_bytes()).1.unwrap();
            assert!(keys(text).is_empty());
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(read(text)));
    }
}
