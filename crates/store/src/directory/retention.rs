//! Retention: drops parts that are too old or exceed the size limit, oldest first, whole segments only.
//!
//! Only a recording's own files are counted and dropped; other files in its directory are ignored.
//!
//! A part is too old only if two clocks agree: the wall clock, which may have been wrong then or be wrong now, and the
//! part's position in the sequence. By position, a part's age is the sum of all steps from part to part since then. A
//! step within one boot is measured by the boot clock, which cannot be set. One across a boot is measured by the wall
//! clock, and does not count if it is longer than a day and a half, as the host may have been off or its clock set. So a
//! clock that jumps makes nothing old, and a host that was off for a long time keeps its history longer, as far as the
//! size allows.

use std::fs;
use std::path::{Path, PathBuf};

use timeline::{BootId, Stamp};
use units::{Bytes, Span, WallClock};

use super::{identity, lock};
use crate::recording::damaged;
use crate::segment::{self, DROPPED, SEGMENTS, UNFINISHED};
use crate::{StoreError, facts, files, head, kept_names};

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
    /// The boot of its last sample, and the boot clock then.
    end: Option<(BootId, Span)>,
}

/// Drops parts older than `keep`, and further parts until so much is left that the recording stays within `keep_size` of
/// disk space until the next call: the next file of the head becomes full, and one is sealed. The last head file stays.
/// `now`: the clocks of a sample of now; without a wall clock nothing is too old.
///
/// # Errors
/// [`StoreError::Io`]
pub fn enforce(
    directory: &Path,
    keep: Span,
    keep_size: Bytes,
    now: Stamp,
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
fn too_old(parts: &[RecordingPart], keep: Span, now: Stamp) -> Vec<bool> {
    let keep = i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX);
    let mut last_end = now.boot_id.map(|id| (id, now.boot));
    let Some(now) = now.wall.map(WallClock::unix_nanos) else {
        return vec![false; parts.len()];
    };
    // A later number is a later time: a part is at least as old as the parts after it, and a part without a time is as
    // old as the next one.
    let (mut earliest, mut last, mut by_sequence) = (now, now, 0i64);
    let mut is_old: Vec<bool> = Vec::with_capacity(parts.len());
    for part in parts.iter().rev() {
        if let Some(until) = part.until.map(WallClock::unix_nanos) {
            let by_wall = last.saturating_sub(until);
            let by_wall = Some(by_wall).filter(|step| (0..=STEP_MAX).contains(step));
            let step = within_boot(part.end, last_end).or(by_wall);
            by_sequence = by_sequence.saturating_add(step.unwrap_or_default());
            last_end = part.end;
            earliest = earliest.min(until);
            last = until;
        }
        is_old.push(now.saturating_sub(earliest) > keep && by_sequence > keep);
    }
    is_old.reverse();
    is_old
}

/// The time from the end of a part to that of a later one, in nanoseconds; `None` where they are not of one boot.
fn within_boot(earlier: Option<(BootId, Span)>, later: Option<(BootId, Span)>) -> Option<i64> {
    let ((boot, from), (other, to)) = earlier.zip(later)?;
    let nanos = to.saturating_sub(from).as_nanos();
    (boot == other).then(|| i64::try_from(nanos).unwrap_or(i64::MAX))
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
    let fail = |error: std::io::Error| StoreError::io("read", directory, error);
    let (segments, _) = segment::list(directory).map_err(fail)?;
    let mut heads = head::files(directory).map_err(fail)?;
    heads.pop();
    let sealed = segments.into_iter().map(|segment| RecordingPart {
        sequence: segment.sequence,
        bytes: segment.disk_bytes(),
        until: segment.span().map(|(_, until)| until),
        end: segment.end(),
        path: segment.path,
    });
    let heads = heads.into_iter().map(|head| RecordingPart {
        sequence: head.sequence,
        bytes: files::disk_bytes(&head.path),
        until: None,
        end: None,
        path: head.path,
    });
    let damaged = damaged::files(directory).map_err(fail)?;
    // Damaged head files cannot be read; the file system has their times.
    let damaged = damaged.into_iter().map(|head| RecordingPart {
        sequence: head.sequence,
        bytes: files::disk_bytes(&head.path),
        until: written(&head.path),
        end: None,
        path: head.path,
    });
    let mut parts: Vec<RecordingPart> = sealed.chain(heads).chain(damaged).collect();
    parts.sort_by_key(|part| part.sequence);
    Ok(parts)
}

fn written(path: &Path) -> Option<WallClock> {
    let age = path.metadata().ok()?.modified().ok()?;
    let age = age.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(WallClock::from_unix_nanos(i64::try_from(age.as_nanos()).ok()?))
}

impl RecordingPart {
    fn remove(&self) -> Result<(), StoreError> {
        let remove = || {
            if !fs::symlink_metadata(&self.path)?.is_dir() {
                return fs::remove_file(&self.path);
            }
            // Renamed first: a kill during removal must not leave half a segment in its place.
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let gone = self.path.with_file_name(format!("{UNFINISHED}{name}{DROPPED}"));
            fs::rename(&self.path, &gone)?;
            fs::remove_dir_all(&gone)
        };
        match remove() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|e| StoreError::io("remove", &self.path, e)),
        }
    }
}

/// Returns the size of a recording: its parts, the head file that is written, and its other files.
fn size(directory: &Path, parts: &[RecordingPart]) -> u64 {
    // Larger ones are not history, and dropping history would not make them smaller.
    const EACH_MAX: u64 = 1 << 20;
    let others = [facts::FILE, kept_names::FILE, identity::FILE, lock::FILE, "status.json"];
    let others: u64 =
        others.iter().map(|name| files::disk_bytes(&directory.join(name)).min(EACH_MAX)).sum();
    let heads = head::files(directory).unwrap_or_default();
    let written = heads.last().map_or(0, |head| files::disk_bytes(&head.path));
    let parts: u64 = parts.iter().map(|part| part.bytes).sum();
    let own = [directory.to_owned(), head::directory_of(directory), directory.join(SEGMENTS)];
    let own: u64 = own.iter().map(|path| files::disk_bytes(path)).sum();
    parts + written + own + others
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000_000_000;

    /// Returns how many of the parts that end at these hours are older than `keep` hours.
    fn old(until: &[Option<i64>], keep: u64, now: i64) -> usize {
        let parts: Vec<_> = until.iter().map(|until| (*until, None)).collect();
        old_of_boots(&parts, keep, (now, None))
    }

    /// A time by the wall clock, and by the boot clock of a boot, in hours.
    type Hours = (Option<i64>, Option<(u8, u64)>);

    fn old_of_boots(parts: &[Hours], keep: u64, now: (i64, Option<(u8, u64)>)) -> usize {
        let wall = |hour: i64| WallClock::from_unix_nanos(hour * HOUR);
        let end = |(boot, hour): (u8, u64)| {
            Some((BootId::from_bytes([boot; 16])?, Span::from_hours(hour)))
        };
        let parts = parts.iter().zip(0..).map(|((until, its_end), sequence)| RecordingPart {
            sequence,
            path: PathBuf::new(),
            bytes: 1,
            until: until.map(wall),
            end: its_end.and_then(end),
        });
        let parts: Vec<RecordingPart> = parts.collect();
        let (now, its_end) = now;
        let its_end = its_end.and_then(end);
        let now = Stamp {
            wall: Some(wall(now)),
            boot_id: its_end.map(|(id, _)| id),
            boot: its_end.map(|(_, boot)| boot).unwrap_or_default(),
            awake: None,
        };
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
        assert_eq!(old(&no_clock_yet, 48, now), 0, "the clock showed 1970 at boot");
        let wrong_now = hours(now - 40, now + 1);
        assert_eq!(old(&wrong_now, 48, 1_000_000), 0, "the clock says 2084 now");
        let mut wrong_once = steady.clone();
        wrong_once[90] = Some(1_000_000);
        assert!((40..=52).contains(&old(&wrong_once, 48, now)), "one is of 2084");
        let mut undated = steady.clone();
        undated[..5].fill(None);
        assert_eq!(old(&undated, 48, now), 52, "a part without a time has its neighbour's");
        assert_eq!(old(&[None; 9], 48, now), 0, "their age is unknown");
        let off_at_night: Vec<_> = (0..20).rev().map(|day| Some(now - 24 * day)).collect();
        assert_eq!(old(&off_at_night, 24 * 14, now), 5, "once a day");
        let off_for_a_year = [hours(now - 9_000, now - 8_990), hours(now - 1, now + 1)].concat();
        assert_eq!(old(&off_for_a_year, 48, now), 0, "as long as there is room");
    }

    #[test]
    fn a_clock_that_is_set_forward_by_a_day_makes_nothing_of_this_boot_old() {
        // A segment an hour, for ten hours; 24 hours are retained.
        let now = 500_000;
        let part = |hour: i64, by| (Some(now - 10 + hour + by), Some((1, hour.unsigned_abs())));
        let steady: Vec<Hours> = (0..10).map(|hour| part(hour, 0)).collect();
        let set_before_now = (now + 25, Some((1, 10)));
        assert_eq!(old_of_boots(&steady, 24, set_before_now), 0);
        let undated_boots: Vec<Hours> = steady.iter().map(|(wall, _)| (*wall, None)).collect();
        assert_eq!(old_of_boots(&undated_boots, 24, (now + 25, None)), 10);
        let set_earlier: Vec<Hours> =
            (0..10).map(|hour| part(hour, if hour < 5 { 0 } else { 25 })).collect();
        assert_eq!(old_of_boots(&set_earlier, 24, set_before_now), 0);
    }

    proptest! {
        #[test]
        fn nothing_is_dropped_before_its_time_however_the_wall_clock_is_set(
            sets in prop::collection::vec((0..30_usize, -100_000..100_000_i64), 0..12),
            keep in 1..40_u64,
        ) {
            let wall = |hour: usize| {
                let by: i64 = sets.iter().filter(|(at, _)| *at <= hour).map(|(_, by)| by).sum();
                500_000 + i64::try_from(hour).unwrap() + by
            };
            let boot = |hour: usize| Some((1, u64::try_from(hour).unwrap()));
            let parts: Vec<Hours> = (0..30).map(|hour| (Some(wall(hour)), boot(hour))).collect();
            let old = old_of_boots(&parts, keep, (wall(30), boot(30)));
            // The part of the hour `30 - keep` has just reached that age.
            prop_assert!(old <= 30_usize.saturating_sub(usize::try_from(keep).unwrap()));
        }
    }
}
