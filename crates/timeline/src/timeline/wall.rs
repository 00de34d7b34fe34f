//! The wall clock of a timeline: where it was set, and the time of a stamp on the timeline's clock.

use units::{Span, WallClock};

use super::step::CLOCK_TOLERANCE;
use super::{BreakKind, Timeline};
use crate::sample::Stamp;

/// A change of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// The time of the first sample after it, on the timeline's clock.
    pub at: Span,
    /// How many nanoseconds it is ahead of where it would have been; negative where it was set back.
    pub by_nanos: i64,
}

impl Timeline {
    /// The wall clock at a time of the timeline, where the source has one.
    pub fn wall_at(&self, time: Span) -> Option<WallClock> {
        let index = self.clock.times.partition_point(|t| *t <= time).checked_sub(1)?;
        Some(self.clock.stamps[index].wall?.plus(time - self.clock.times[index]))
    }

    /// The steps by which the wall clock was set. From each step's sample on, the wall clock is ahead of the first
    /// sample's plus the time since by the sum of the steps, to within two seconds.
    pub fn clock_steps(&self) -> Vec<ClockStep> {
        let mut known: Option<i128> = None;
        let mut steps = Vec::new();
        for (stamp, time) in self.clock.stamps.iter().zip(&self.clock.times) {
            let Some(wall) = stamp.wall else { continue };
            let ahead = i128::from(wall.unix_nanos()) - nanos(*time);
            let by = ahead - *known.get_or_insert(ahead);
            if by.unsigned_abs() > u128::from(CLOCK_TOLERANCE.as_nanos()) {
                let by_nanos =
                    i64::try_from(by).unwrap_or(if by < 0 { i64::MIN } else { i64::MAX });
                let at = *time;
                steps.push(ClockStep { at, by_nanos });
                known = Some(ahead);
            }
        }
        steps
    }

    /// The time of a stamp, in nanoseconds on the timeline's clock; negative before its first sample, `None` without
    /// samples. It is computed from the boot clock, which cannot be set; where the boot is not known by its number, the
    /// wall clock shows which one it is.
    pub fn nanos_at(&self, stamp: Stamp) -> Option<i128> {
        let placed = self.boots().filter_map(|(first, end)| {
            if self.clock.stamps[first].is_of_boot_of(&stamp) == Some(false) {
                return None;
            }
            let within = &self.clock.stamps[first..end];
            let after = within.partition_point(|sample| sample.boot <= stamp.boot);
            [after.saturating_sub(1), after.min(within.len() - 1)]
                .map(|index| self.placed_by(first + index, stamp))
                .into_iter()
                .min_by_key(|(off, _)| *off)
        });
        let Some((off, at)) = placed.min_by_key(|(off, _)| *off) else {
            return self.by_wall(stamp);
        };
        if off > u128::from(CLOCK_TOLERANCE.as_nanos()) {
            // The stamp is of a boot without samples: only the wall clock relates to it.
            self.by_wall(stamp).or(Some(at))
        } else {
            Some(at)
        }
    }

    /// The first sample of a stamp's boot that is not earlier than the stamp; where there is none, the sample after the
    /// boot's last. `None` where the timeline has no sample of that boot.
    pub fn first_of_boot_from(&self, stamp: Stamp) -> Option<usize> {
        let is_its = |first: usize| self.clock.stamps[first].is_of_boot_of(&stamp) == Some(true);
        let mut its = self.boots().filter(|(first, _)| is_its(*first)).peekable();
        its.peek()?;
        let from = |(first, end): (usize, usize)| {
            let within = &self.clock.stamps[first..end];
            let at = first + within.partition_point(|sample| sample.boot < stamp.boot);
            (at, at < end)
        };
        its.map(from).reduce(|before, next| if before.1 { before } else { next }).map(|(at, _)| at)
    }

    /// The first sample of each boot, and the sample after its last.
    pub(crate) fn boots(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let is_boot = |kind| matches!(kind, BreakKind::Reboot | BreakKind::NewSegment);
        let mut starts = vec![0];
        let breaks = self.clock.breaks.iter().filter(|gap| is_boot(gap.kind));
        starts.extend(breaks.map(|gap| gap.before));
        starts.push(self.len());
        let ends = starts
            .into_iter()
            .scan(None, |before, at| Some(before.replace(at).map(|start| (start, at))));
        ends.flatten().filter(|(first, end)| first < end)
    }

    /// The time of a stamp by the boot clock of a sample, and how many nanoseconds the wall clock differs.
    fn placed_by(&self, index: usize, stamp: Stamp) -> (u128, i128) {
        let sample = self.clock.stamps[index];
        let later = nanos(stamp.boot) - nanos(sample.boot);
        // Of one boot, a wall clock that differs was set.
        let is_known = sample.is_of_boot_of(&stamp) == Some(true);
        let walls = sample.wall.zip(stamp.wall).filter(|_| !is_known);
        let off = walls.map_or(0, |(of_sample, of_stamp)| {
            let expected = i128::from(of_sample.unix_nanos()) + later;
            expected.abs_diff(i128::from(of_stamp.unix_nanos()))
        });
        (off, nanos(self.clock.times[index]) + later)
    }

    fn by_wall(&self, stamp: Stamp) -> Option<i128> {
        let first = self.clock.stamps.first()?.wall?.unix_nanos();
        let start = nanos(*self.clock.times.first()?);
        Some(start + i128::from(stamp.wall?.unix_nanos()) - i128::from(first))
    }
}

fn nanos(span: Span) -> i128 {
    i128::from(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    const SECOND: i64 = 1_000_000_000;

    fn stamp((boot, wall): (u64, i64)) -> Stamp {
        Stamp {
            boot: Span::from_secs(boot),
            awake: None,
            wall: Some(WallClock::from_unix_nanos(wall * SECOND)),
            ..Stamp::default()
        }
    }

    fn watched(stamps: &[(u64, i64)]) -> Timeline {
        let mut timeline = Timeline::default();
        for clocks in stamps {
            let mut sample = Sample::default();
            sample.stamp = stamp(*clocks);
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    #[test]
    fn the_first_wall_clock_and_its_steps_tell_what_it_showed() {
        let timeline = watched(&[(10, 50), (11, 51), (12, 3652), (13, 3653), (14, 54), (15, 54)]);
        let steps = timeline.clock_steps();
        let found: Vec<_> = steps.iter().map(|step| (step.at, step.by_nanos / SECOND)).collect();
        assert_eq!(found, [(Span::from_secs(2), 3600), (Span::from_secs(4), -3600)]);
        assert_eq!(watched(&[(1, 5), (2, 6), (4, 9)]).clock_steps(), []);
        // A reboot is not a clock step.
        assert_eq!(watched(&[(100, 1000), (5, 1060), (6, 1061)]).clock_steps(), []);
    }

    #[test]
    fn the_boot_clock_places_what_the_wall_clock_would_misplace() {
        let set = watched(&[(10, 50), (11, 51), (12, 3652), (13, 53)]);
        let booted = watched(&[(100, 1000), (101, 1001), (5, 1060), (6, 1061)]);
        for (timeline, at, second) in [
            (&set, (11, 51), 1),
            (&set, (12, 3652), 2),
            (&set, (13, 53), 3),
            (&set, (14, 54), 4),
            (&set, (9, 49), -1),
            // A stamp of an earlier boot.
            (&set, (500, 20), -30),
            (&booted, (6, 1061), 61),
            (&booted, (102, 1002), 2),
            (&booted, (4, 1059), 59),
        ] {
            let nanos = timeline.nanos_at(stamp(at));
            assert_eq!(nanos, Some(i128::from(second * SECOND)), "{at:?}");
        }
        assert_eq!(Timeline::default().nanos_at(stamp((1, 1))), None);
    }

    #[test]
    fn two_boots_that_begin_at_one_time_are_told_apart_by_their_numbers() {
        let of = |boot: u8, at: u64| Stamp {
            boot_id: crate::BootId::from_bytes([boot; 16]),
            ..stamp((at, 1_600_000_000 + at.cast_signed()))
        };
        let mut timeline = Timeline::default();
        for (boot, at) in [(1, 10), (1, 11), (1, 30), (2, 10), (2, 11), (2, 12)] {
            let mut sample = Sample::default();
            sample.stamp = of(boot, at);
            timeline.push(&sample).unwrap();
        }
        for (boot, at, second, first) in [
            (1, 11, 1, Some(1)),
            (1, 20, 10, Some(2)),
            (1, 99, 89, Some(3)),
            (2, 10, 30, Some(3)),
            (2, 12, 32, Some(5)),
            (2, 13, 33, Some(6)),
            // Of a boot without samples only the wall clock is known.
            (3, 12, 2, None),
        ] {
            let nanos = timeline.nanos_at(of(boot, at));
            assert_eq!(nanos, Some(i128::from(second * SECOND)), "{boot} {at}");
            assert_eq!(timeline.first_of_boot_from(of(boot, at)), first, "{boot} {at}");
        }
        assert_eq!(timeline.first_of_boot_from(stamp((11, 11))), None);
    }
}
