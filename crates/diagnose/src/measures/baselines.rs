//! Levels up to which a signal is quiet: a healthy idle host shows as much. Rules and notes define calm by the same
//! numbers.

use units::{Bytes, BytesPerSecond, Millis, Pages, PerSecond, Ratio};

use super::quiet::Quiet;
use crate::measures::pressure::PressureWindow;
use crate::measures::rise::Rise;

/// Pages swapped out or in: an occasional cold page. An engineering choice: a labelled capture of cold swap shows 0,
/// one of thrash 2,500.
pub const SWAP_TRAFFIC: PerSecond<Pages> = PerSecond::new(10.0);
/// Used swap; less is noise.
pub const SWAP_USED: Bytes = Bytes::from_mib(1);
/// Refaulted file pages.
pub const REFAULTS: PerSecond<Pages> = Quiet::REFAULTS;
/// Pages scanned by reclaim: 52 in the worst second of a labelled stream that kswapd keeps up with.
pub const SCANNED: PerSecond<Pages> = PerSecond::new(100.0);
/// Growth of anything.
pub const GROWTH: Bytes = Rise::NOISE;
/// Share of time in which tasks wait for memory.
pub const WAITING_FOR_MEMORY: Ratio = PressureWindow::CALM;
/// Share of time in which tasks wait for disks. An engineering choice: a busy healthy host waits more for them than for
/// memory.
pub const WAITING_FOR_DISKS: Ratio = Ratio::from_percent(5.0);
/// Data waiting to be written: log files, metadata. An engineering choice.
pub const UNWRITTEN: Bytes = Bytes::from_mib(16);
/// Disk reads or writes. An engineering choice: an idle host's logs and journals.
pub const DISK_TRAFFIC: BytesPerSecond = BytesPerSecond::new(1_048_576.0);
/// Share of time in which a disk is busy. An engineering choice: below it requests hardly ever overlap.
pub const DISK_BUSY: Ratio = Ratio::from_percent(10.0);
/// Delay of a sample. An engineering choice: a tenth of the shortest usual interval.
pub const LATE: Millis = Millis::new(100);
