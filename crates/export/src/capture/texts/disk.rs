//! Disks: `/proc/diskstats`.

use timeline::signals::{
    DISK_FLUSHES, DISK_IN_FLIGHT, DISK_IO_TIME, DISK_QUEUE_TIME, DISK_READ_BYTES, DISK_READ_TIME,
    DISK_READS, DISK_WRITE_BYTES, DISK_WRITE_TIME, DISK_WRITES, DISKSTATS,
};
use timeline::{EntityRow, SignalId};

use super::{Texts, leading, push, raw};

/// The numbers after a disk's name; unused ones (merged requests, discards) are 0.
const NUMBERS: [Option<SignalId>; 16] = [
    Some(DISK_READS.id()),
    None,
    Some(DISK_READ_BYTES.id()),
    Some(DISK_READ_TIME.id()),
    Some(DISK_WRITES.id()),
    None,
    Some(DISK_WRITE_BYTES.id()),
    Some(DISK_WRITE_TIME.id()),
    Some(DISK_IN_FLIGHT.id()),
    Some(DISK_IO_TIME.id()),
    Some(DISK_QUEUE_TIME.id()),
    None,
    None,
    None,
    None,
    Some(DISK_FLUSHES.id()),
];

/// Writes a disk's line.
pub(super) fn write(disk: &EntityRow, texts: &mut Texts) {
    let number = |signal: &Option<SignalId>| match signal {
        None => Some(0),
        Some(signal) => raw(&disk.row, *signal).map(|raw| raw / signal.def().scale),
    };
    let numbers = leading(NUMBERS.iter().map(number));
    push(texts, DISKSTATS, format_args!("   0       0 {} {numbers}\n", disk.key));
}
