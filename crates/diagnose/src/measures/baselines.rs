//! Levels up to which a signal is no news: a healthy idle host shows as much. What a rule or a
//! note measures calm by is the same number.

use units::{Bytes, BytesPerSecond, Millis, Pages, PerSecond, Ratio};

use super::quiet::Quiet;
use crate::measures::pressure::PressureWindow;
use crate::measures::rise::Rise;

/// Pages swapped out or in: the odd cold one. An engineering choice: a labelled capture of cold swap shows 0, of
/// thrash 2,500.
pub const SWAP_TRAFFIC: PerSecond<Pages> = PerSecond::new(10.0);
/// Swap that is used; less is noise.
pub const SWAP_USED: Bytes = Bytes::from_mib(1);
/// File pages that refault.
pub const REFAULTS: PerSecond<Pages> = Quiet::REFAULTS;
/// Pages that reclaim scans: 52 in the worst second of a labelled stream that kswapd keeps up with.
pub const SCANNED: PerSecond<Pages> = PerSecond::new(100.0);
/// How much anything grows.
pub const GROWTH: Bytes = Rise::NOISE;
/// Time for which tasks wait for memory.
pub const WAITING_FOR_MEMORY: Ratio = PressureWindow::CALM;
/// Time for which tasks wait for disks. An engineering choice: a busy healthy host waits more for them than for memory.
pub const WAITING_FOR_DISKS: Ratio = Ratio::from_percent(5.0);
/// Data that waits to be written: log files, metadata. An engineering choice.
pub const UNWRITTEN: Bytes = Bytes::from_mib(16);
/// What is written or read. An engineering choice: an idle host's logs and journals.
pub const DISK_TRAFFIC: BytesPerSecond = BytesPerSecond::new(1_048_576.0);
/// Time for which a disk is busy. An engineering choice: below it requests hardly ever meet.
pub const DISK_BUSY: Ratio = Ratio::from_percent(10.0);
/// How late a sample is. An engineering choice: a tenth of the shortest usual interval.
pub const LATE: Millis = Millis::new(100);
