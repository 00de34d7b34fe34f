//! The step from one sample to the next: how far the clock advances, and which breaks are in between. Timelines and
//! the recorder share it, because they must agree.

use units::{Span, WallClock};

use super::{BreakKind, OutOfOrder};
use crate::sample::Stamp;

/// An interval of at least this, and ten times the median, is a gap and not a late sample (late samples of 4 s occur).
const GAP_MIN: Span = Span::from_secs(30);
/// Clocks that drift apart by more than this between two samples were set; NTP slews far slower.
pub const CLOCK_TOLERANCE: Span = Span::from_secs(2);
/// A machine without an RTC battery begins each boot in 1970, so a time before 1971 is one of a clock that is not set.
const SET_FROM: WallClock = WallClock::from_unix_nanos(365 * 86_400 * 1_000_000_000);
/// A machine with an awake time shorter than its boot time by this much was suspended; the two clocks are not read at
/// the same instant.
const SLEEP_MIN: Span = Span::from_secs(1);

/// The step from one sample to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How far the timeline's clock advances.
    pub elapsed: Span,
    breaks: [Option<BreakKind>; 3],
}

impl Step {
    /// The breaks in between.
    pub fn breaks(self) -> impl Iterator<Item = BreakKind> {
        self.breaks.into_iter().flatten()
    }
}

impl BreakKind {
    /// Whether to report it in addition to other breaks at the same sample: a suspend implies a gap.
    pub fn is_worth_reporting(self, mut others: impl Iterator<Item = Self>) -> bool {
        !matches!(self, Self::Gap(_)) || !others.any(|kind| matches!(kind, Self::Suspend(_)))
    }
}

/// The step between two samples. `median_interval` returns the median interval of samples, where known; it is called
/// only where it matters.
///
/// # Errors
/// [`OutOfOrder`] where the second is not later than the first and the machine did not reboot in between.
pub fn step(
    last: Stamp,
    next: Stamp,
    median_interval: impl FnOnce() -> Option<Span>,
) -> Result<Step, OutOfOrder> {
    let wall_moved =
        last.wall.zip(next.wall).map(|(a, b)| b.unix_nanos().saturating_sub(a.unix_nanos()));
    let same_boot = last.is_of_boot_of(&next);
    if same_boot == Some(false) || next.boot <= last.boot {
        let elapsed = match same_boot {
            Some(true) => None,
            Some(false) => Some(up_or_off(last, next, wall_moved)),
            None => after_reboot(last, next, wall_moved),
        };
        let elapsed = elapsed.ok_or(OutOfOrder)?;
        return Ok(Step { elapsed, breaks: [Some(BreakKind::Reboot), None, None] });
    }
    let elapsed = next.boot - last.boot;
    let awake = last.awake.zip(next.awake);
    let slept = awake.map(|(a, b)| elapsed - b.saturating_sub(a));
    let is_gap =
        elapsed > GAP_MIN && median_interval().is_some_and(|usual| elapsed > usual.times(10.0));
    Ok(Step {
        elapsed,
        breaks: [
            slept.filter(|slept| *slept > SLEEP_MIN).map(BreakKind::Suspend),
            wall_moved.and_then(|moved| clock_step(moved, elapsed)),
            is_gap.then_some(BreakKind::Gap(elapsed)),
        ],
    })
}

/// The time that passed until a sample of a later boot: by the wall clock, where that was set at both, but at least as
/// long as the machine has been up.
fn up_or_off(last: Stamp, next: Stamp, wall_moved: Option<i64>) -> Span {
    let was_set = last.wall.is_some_and(|wall| wall >= SET_FROM);
    let moved = wall_moved.filter(|moved| *moved > 0 && was_set);
    let moved = moved.map_or(Span::ZERO, |moved| Span::from_nanos(moved.unsigned_abs()));
    moved.max(next.boot)
}

/// The least time that passed, where a boot clock that goes back means a reboot; `None` where it means an earlier time
/// of the same boot. Only for sources that do not name the boot.
fn after_reboot(last: Stamp, next: Stamp, wall_moved: Option<i64>) -> Option<Span> {
    let moved = wall_moved?;
    if moved > 0 {
        return Some(Span::from_nanos(moved.unsigned_abs()));
    }
    // In the same boot both clocks go back by the same time. A host without an RTC battery starts each boot in 1970.
    let back = Span::from_nanos(moved.unsigned_abs());
    let earlier = last.boot - next.boot;
    let apart = earlier.max(back) - earlier.min(back);
    (apart > CLOCK_TOLERANCE).then_some(next.boot)
}

/// How the wall clock was set, where it advanced by `moved` nanoseconds while `elapsed` passed.
fn clock_step(moved: i64, elapsed: Span) -> Option<BreakKind> {
    let drift = i128::from(moved) - i128::from(elapsed.as_nanos());
    let size = Span::from_nanos(u64::try_from(drift.unsigned_abs()).unwrap_or(u64::MAX));
    let kind = if drift > 0 { BreakKind::ClockForward(size) } else { BreakKind::ClockBack(size) };
    (size > CLOCK_TOLERANCE).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BootId;

    /// Boot, awake and wall clock in seconds.
    fn stamp(boot: u64, awake: u64, wall: i64) -> Stamp {
        Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(awake)),
            wall: Some(WallClock::from_unix_nanos(wall * 1_000_000_000)),
            ..Stamp::default()
        }
    }

    #[test]
    fn each_difference_between_clocks_is_its_own_kind_of_break() {
        let second = Span::from_secs;
        for (next, elapsed, breaks) in [
            (stamp(101, 91, 1001), 1, vec![]),
            (stamp(102, 92, 1003), 2, vec![]),
            (
                stamp(200, 91, 1100),
                100,
                vec![BreakKind::Suspend(second(99)), BreakKind::Gap(second(100))],
            ),
            (stamp(101, 91, 5001), 1, vec![BreakKind::ClockForward(second(4000))]),
            (stamp(101, 91, 901), 1, vec![BreakKind::ClockBack(second(100))]),
            (stamp(5, 5, 1060), 60, vec![BreakKind::Reboot]),
        ] {
            let step = step(stamp(100, 90, 1000), next, || Some(second(1))).unwrap();
            assert_eq!(step.elapsed, second(elapsed), "{next:?}");
            assert_eq!(step.breaks().collect::<Vec<_>>(), breaks, "{next:?}");
        }
    }

    #[test]
    fn a_boot_clock_that_goes_back_is_another_boot_unless_both_clocks_go_back_alike() {
        let (reboot, second) = (vec![BreakKind::Reboot], Span::from_secs);
        for (next, expected) in [
            (stamp(5, 5, 1060), Ok(second(60))),
            // In 1970, and a day behind: all that is known is that the machine has been up for this long.
            (stamp(5, 5, 5), Ok(second(5))),
            (stamp(40, 40, -85_400), Ok(second(40))),
            // Samples out of order.
            (stamp(95, 85, 995), Err(OutOfOrder)),
            (stamp(100, 90, 1000), Err(OutOfOrder)),
            (stamp(10, 5, 911), Err(OutOfOrder)),
        ] {
            let step = step(stamp(100, 90, 1000), next, || Some(second(1)));
            assert_eq!(step.map(|step| step.elapsed), expected, "{next:?}");
            if let Ok(step) = step {
                assert_eq!(step.breaks().collect::<Vec<_>>(), reboot, "{next:?}");
            }
        }
        let undated = Stamp { wall: None, ..stamp(5, 5, 0) };
        let step = step(stamp(100, 90, 1000), undated, || None);
        assert_eq!(step, Err(OutOfOrder));
    }

    #[test]
    fn the_number_of_the_boot_decides_whatever_the_clocks_show() {
        let of =
            |boot: u8, stamp: Stamp| Stamp { boot_id: BootId::from_bytes([boot; 16]), ..stamp };
        let last = of(1, stamp(100, 90, 1000));
        let reboot = |seconds| Ok((Span::from_secs(seconds), vec![BreakKind::Reboot]));
        for (next, expected) in [
            // Both boots began at the same wall clock, the second sample is of a later or an earlier time of its boot.
            (of(2, stamp(160, 150, 1060)), reboot(160)),
            (of(2, stamp(101, 101, 1001)), reboot(101)),
            (of(2, stamp(40, 40, 940)), reboot(40)),
            (of(2, stamp(40, 40, 5)), reboot(40)),
            // Off for an hour.
            (of(2, stamp(40, 40, 4600)), reboot(3600)),
            (of(1, stamp(95, 85, 995)), Err(OutOfOrder)),
            // Of the same boot, however the wall clock was set in between.
            (of(1, stamp(95, 85, 5000)), Err(OutOfOrder)),
            (of(1, stamp(101, 91, 1001)), Ok((Span::from_secs(1), vec![]))),
        ] {
            let next =
                Stamp { wall: next.wall.map(|wall| wall.plus(Span::from_hours(24 * 400))), ..next };
            let last =
                Stamp { wall: last.wall.map(|wall| wall.plus(Span::from_hours(24 * 400))), ..last };
            let step = step(last, next, || Some(Span::from_secs(1)));
            let found = step.map(|step| (step.elapsed, step.breaks().collect::<Vec<_>>()));
            assert_eq!(found, expected, "{next:?}");
        }
        // The clock of the first boot was never set, that of the second was.
        let step = step(of(1, stamp(100, 90, 100)), of(2, stamp(9, 9, 1_795_000_000)), || None);
        assert_eq!(step.unwrap().elapsed, Span::from_secs(9));
    }
}
