//! Retention: drops parts that are too old or exceed the size limit, oldest first, whole segments only.
//!
//! Only a recording's own files are counted and dropped; other files in its directory are ignored.
//!
//! A part is too old only if two clocks agree: the wall clock, which may have been wrong then or be wrong now, and the
//! part's position in the sequence. By position, a part's age is the sum of all steps from part to part since then;
//! steps of more than a day and a half do not count, as the host may have been off or its clock set. So a clock that
//! jumps makes nothing old, and a host that was off for a long time keeps its history longer, as far as the size
//! allows.

use std::fs;
use std::path::{Path, PathBuf};

use units::{Bytes, Span, WallClock};

use super::{identity, lock};
use crate::recording::damaged;
use crate::segment::{self, DROPPED, SEGMENTS, UNFINISHED};
use crate::{StoreError, facts, files, head};

/// The result of enforcing retention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How many segments and head files were dropped.
    pub parts: usize,
    /// How much space they used.
    pub bytes: Bytes,
    /// How much space the recording uses now.
    pub left: Bytes,
}

/// A part of a recording: a segment or a head file.
struct RecordingPart {
    sequence: u64,
    path: PathBuf,
    bytes: u64,
    /// The time of its last sample.
    until: Option<WallClock>,
}

/// Drops parts older than `keep`, and further parts until so much is left that the recording stays within `keep_size` of
/// disk space until the next call: the next file of the head becomes full, and one is sealed. The last head file stays.
///
/// # Errors
/// [`StoreError::Io`]
pub fn enforce(
    directory: &Path,
    keep: Span,
    keep_size: Bytes,
    now: WallClock,
) -> Result<Dropped, StoreError> {
    let parts = parts(directory)?;
    let is_old = too_old(&parts, keep, now);
    let mut left = size(directory, &parts);
    let until_next = head::full_bytes(keep_size).saturating_mul(2);
    let most = keep_size.get().saturating_sub(until_next);
    let mut dropped = Dropped::default();
    for (part, is_old) in parts.iter().zip(is_old) {
        if !is_old && left <= most {
            // Only the oldest parts are dropped, so that the recording has no holes.
            break;
        }
        part.remove()?;
        left = left.saturating_sub(part.bytes);
        dropped.parts += 1;
        dropped.bytes += Bytes::new(part.bytes);
    }
    dropped.left = Bytes::new(left);
    Ok(dropped)
}

/// Returns which parts are too old by both clocks.
fn too_old(parts: &[RecordingPart], keep: Span, now: WallClock) -> Vec<bool> {
    let keep = i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX);
    let now = now.unix_nanos();
    // A later number is a later time: a part is at least as old as the parts after it, and a part without a time is as
    // old as the next one.
    let (mut earliest, mut last, mut by_sequence) = (now, now, 0i64);
    let mut is_old: Vec<bool> = Vec::with_capacity(parts.len());
    for part in parts.iter().rev() {
        if let Some(until) = part.until.map(WallClock::unix_nanos) {
            let step = last.saturating_sub(until);
            if (0..=STEP_MAX).contains(&step) {
                by_sequence = by_sequence.saturating_add(step);
            }
            earliest = earliest.min(until);
            last = until;
        }
        is_old.push(now.saturating_sub(earliest) > keep && by_sequence > keep);
    }
    is_old.reverse();
    is_old
}

/// A day and a half, in nanoseconds: a host that is on once a day ages by the day.
const STEP_MAX: i64 = 36 * 3_600_000_000_000;

/// Drops the oldest part, for a full disk; returns `false` if only the head that is being written is left.
///
/// # Errors
/// [`StoreError::Io`]
pub fn drop_oldest(directory: &Path) -> Result<bool, StoreError> {
    match parts(directory)?.first() {
        Some(part) => part.remove().map(|()| true),
        None => Ok(false),
    }
}

/// Returns all parts except the last head file, oldest first.
fn parts(directory: &Path) -> Result<Vec<RecordingPart>, StoreError> {
    let fail = |error: std::io::Error| StoreError::io("read", directory, &error);
    let (segments, _) = segment::list(directory).map_err(fail)?;
    let mut heads = head::files(directory).map_err(fail)?;
    heads.pop();
    let sealed = segments.into_iter().map(|segment| RecordingPart {
        sequence: segment.sequence,
        bytes: segment.disk_bytes(),
        until: segment.span().map(|(_, until)| until),
        path: segment.path,
    });
    let heads = heads.into_iter().map(|head| RecordingPart {
        sequence: head.sequence,
        bytes: files::disk_bytes(&head.path),
        until: None,
        path: head.path,
    });
    let damaged = damaged::files(directory).map_err(fail)?;
    // Damaged head files cannot be read; the file system has their times.
    let damaged = damaged.into_iter().map(|head| RecordingPart {
        sequence: head.sequence,
        bytes: files::disk_bytes(&head.path),
        until: written(&head.path),
        path: head.path,
    });
    let mut parts: Vec<RecordingPart> = sealed.chain(heads).chain(damaged).collect();
    parts.sort_by_key(|part| part.sequence);
    Ok(parts)
}

fn written(path: &Path) -> Option<WallClock> {
    let age = path.metadata().ok()?.modified().ok()?;
    let age = age.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(WallClock::from_unix_nanos(
        i64::try_from(age.as_nanos()).ok()?,
    ))
}

impl RecordingPart {
    fn remove(&self) -> Result<(), StoreError> {
        let remove = || {
            if !fs::symlink_metadata(&self.path)?.is_dir() {
                return fs::remove_file(&self.path);
            }
            // Renamed first: a kill during removal must not leave half a segment in its place.
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let gone = self
                .path
                .with_file_name(format!("{UNFINISHED}{name}{DROPPED}"));
            fs::rename(&self.path, &gone)?;
            fs::remove_dir_all(&gone)
        };
        match remove() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|e| StoreError::io("remove", &self.path, &e)),
        }
    }
}

/// Returns the size of a recording: its parts, the head file that is written, and its other files.
fn size(directory: &Path, parts: &[RecordingPart]) -> u64 {
    // Larger ones are not history, and dropping history would not make them smaller.
    const EACH_MAX: u64 = 1 << 20;
    let others = [facts::FILE, identity::FILE, lock::FILE, "status.json"]
        .map(|name| files::disk_bytes(&directory.join(name)).min(EACH_MAX));
    let heads = head::files(directory).unwrap_or_default();
    let written = heads.last().map_or(0, |head| files::disk_bytes(&head.path));
    let parts: u64 = parts.iter().map(|part| part.bytes).sum();
    let own = [
        directory.to_owned(),
        head::directory_of(directory),
        directory.join(SEGMENTS),
    ];
    let own: u64 = own.iter().map(|path| files::disk_bytes(path)).sum();
    parts + written + own + others.into_iter().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    /// Returns how many of the parts that end at these hours are older than `keep` hours.
    fn old(until: &[Option<i64>], keep: u64, now: i64) -> usize {
        let parts = until
            .iter()
            .zip(0..)
            .map(|(until, sequence)| RecordingPart {
                sequence,
                path: PathBuf::new(),
                bytes: 1,
                until: until.map(|hour| WallClock::from_unix_nanos(hour * HOUR)),
            });
        let parts: Vec<RecordingPart> = parts.collect();
        let now = WallClock::from_unix_nanos(now * HOUR);
        let is_old = too_old(&parts, Span::from_hours(keep), now);
        assert!(is_old.is_sorted_by(|a, b| a >= b), "the oldest first");
        is_old.into_iter().filter(|is_old| *is_old).count()
    }

    fn hours(from: i64, to: i64) -> Vec<Option<i64>> {
        (from..to).map(Some).collect()
    }

    #[test]
    fn a_part_is_too_old_if_two_clocks_say_so() {
        // Now: hour 500,000 (in 2027), and 48 hours are retained.
        let now = 500_000;
        let steady = hours(now - 100, now + 1);
        assert_eq!(old(&steady, 48, now), 52, "ends more than 48 hours ago");
        let no_clock_yet = [hours(0, 10), hours(now - 3, now + 1)].concat();
        assert_eq!(
            old(&no_clock_yet, 48, now),
            0,
            "the clock showed 1970 at boot"
        );
        let wrong_now = hours(now - 40, now + 1);
        assert_eq!(old(&wrong_now, 48, 1_000_000), 0, "the clock says 2084 now");
        let mut wrong_once = steady.clone();
        wrong_once[90] = Some(1_000_000);
        assert!(
            (40..=52).contains(&old(&wrong_once, 48, now)),
            "one is of 2084"
        );
        let mut undated = steady.clone();
        undated[..5].fill(None);
        assert_eq!(
            old(&undated, 48, now),
            52,
            "a part without a time has its neighbour's"
        );
        assert_eq!(old(&[None; 9], 48, now), 0, "their age is unknown");
        let off_at_night: Vec<_> = (0..20).rev().map(|day| Some(now - 24 * day)).collect();
        assert_eq!(old(&off_at_night, 24 * 14, now), 5, "once a day");
        let off_for_a_year = [hours(now - 9_000, now - 8_990), hours(now - 1, now + 1)].concat();
        assert_eq!(old(&off_for_a_year, 48, now), 0, "as long as there is room");
    }
}
