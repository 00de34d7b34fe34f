//! Makes space on a full disk by dropping the oldest part, so that recording continues. But a disk that another program
//! fills for hours must not cost the whole history.

use std::path::Path;
use std::time::{Duration, Instant};

use units::Bytes;

use crate::directory::retention;
use crate::{head, segment};

/// At most one part is dropped per minute: a program that fills the disk faster would use up all of them. Samples wait
/// in memory meanwhile.
const PAUSE: Duration = Duration::from_secs(60);
/// This share (1/10) of the retention size, or of the disk if that is smaller, is never dropped.
const STAYS: u64 = 10;

/// When a part was last dropped.
#[derive(Debug, Default)]
pub(super) struct DiskSpace {
    made: Option<Instant>,
}

impl DiskSpace {
    /// Drops the oldest part if it is time and enough is left. Returns whether it did.
    pub(super) fn make(&mut self, recording: &Path, keep_size: Bytes) -> bool {
        let is_due = self.made.is_none_or(|made| made.elapsed() >= PAUSE);
        if !is_due || size(recording) <= least(recording, keep_size) {
            return false;
        }
        let is_made = retention::drop_oldest(recording).unwrap_or(false);
        if is_made {
            self.made = Some(Instant::now());
        }
        is_made
    }
}

/// Returns the size that is never dropped.
fn least(recording: &Path, keep_size: Bytes) -> u64 {
    let disk = rustix::fs::statvfs(recording);
    let disk = disk.map_or(u64::MAX, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    keep_size.get().min(disk) / STAYS
}

/// Returns the size of all parts.
fn size(recording: &Path) -> u64 {
    let segments = segment::list(recording).unwrap_or_default().0;
    let heads = head::files(recording).unwrap_or_default();
    let heads = heads.iter().filter_map(|head| head.path.metadata().ok());
    let sealed: u64 = segments.iter().map(segment::Segment::bytes).sum();
    sealed + heads.map(|head| head.len()).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn one_part_a_minute_goes_and_a_tenth_of_what_may_be_kept_stays() {
        let recording = tempfile::tempdir().unwrap();
        let heads = head::directory_of(recording.path());
        fs::create_dir(&heads).unwrap();
        for number in 1..=4 {
            fs::write(head::path_of(recording.path(), number), vec![0; 1000]).unwrap();
        }
        let count = || fs::read_dir(&heads).unwrap().count();
        let mut room = DiskSpace::default();
        let keep = Bytes::new(25_000);
        assert!(room.make(recording.path(), keep));
        assert!(!room.make(recording.path(), keep), "so soon");
        assert_eq!(count(), 3);
        // 3,000 and 2,000 bytes: nothing is dropped below 2,500.
        assert!(DiskSpace::default().make(recording.path(), keep));
        assert!(!DiskSpace::default().make(recording.path(), keep));
        assert_eq!(count(), 2);
    }
}
