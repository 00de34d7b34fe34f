//! What lies between two samples: how far the clock goes, and what broke in between. A timeline and a recorder must not
//! differ about that.

use units::Span;

use super::{BreakKind, OutOfOrder};
use crate::sample::Stamp;

/// An interval this long, and ten times the usual one, is a gap and not a late sample (late ones of 4 s are genuine).
const SHORTEST_GAP: Span = Span::from_secs(30);
/// Clocks that drift apart by more than this between two samples were moved; NTP slews far slower.
pub const CLOCK_TOLERANCE: Span = Span::from_secs(2);
/// A machine that was awake for this much less than it was up has slept; the clocks are not read at one moment.
const SHORTEST_SLEEP: Span = Span::from_secs(1);

/// From one sample to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How far the timeline's clock goes.
    pub elapsed: Span,
    breaks: [Option<BreakKind>; 3],
}

impl Step {
    /// What broke in between.
    pub fn breaks(self) -> impl Iterator<Item = BreakKind> {
        self.breaks.into_iter().flatten()
    }
}

impl BreakKind {
    /// Whether it is told where these broke at the same place: a machine that sleeps takes no samples, which goes without
    /// saying.
    pub fn is_worth_telling(self, mut beside: impl Iterator<Item = Self>) -> bool {
        !matches!(self, Self::Gap(_)) || !beside.any(|kind| matches!(kind, Self::Suspend(_)))
    }
}

/// What lies between two samples. `usual` gives the usual distance of samples, where it is known; it is asked only where
/// it can matter.
///
/// # Errors
/// [`OutOfOrder`] where the second is not later than the first and the machine was not restarted in between.
pub fn step(
    last: Stamp,
    next: Stamp,
    usual: impl FnOnce() -> Option<Span>,
) -> Result<Step, OutOfOrder> {
    let wall_moved = last
        .wall
        .zip(next.wall)
        .map(|(a, b)| b.unix_nanos().saturating_sub(a.unix_nanos()));
    if next.boot <= last.boot {
        // Time never stands still between samples of one boot; a smaller boot clock with a later wall clock is another
        // boot.
        let moved = wall_moved.filter(|moved| *moved > 0).ok_or(OutOfOrder)?;
        return Ok(Step {
            elapsed: Span::from_nanos(moved.unsigned_abs()),
            breaks: [Some(BreakKind::Reboot), None, None],
        });
    }
    let elapsed = next.boot - last.boot;
    let awake = last.awake.zip(next.awake);
    let slept = awake.map(|(a, b)| elapsed - b.saturating_sub(a));
    let is_gap = elapsed > SHORTEST_GAP && usual().is_some_and(|usual| elapsed > usual.times(10.0));
    Ok(Step {
        elapsed,
        breaks: [
            slept
                .filter(|slept| *slept > SHORTEST_SLEEP)
                .map(BreakKind::Suspend),
            wall_moved.and_then(|moved| clock_step(moved, elapsed)),
            is_gap.then_some(BreakKind::Gap(elapsed)),
        ],
    })
}

/// How the wall clock was moved, where it went on by `moved` nanoseconds while `elapsed` passed.
fn clock_step(moved: i64, elapsed: Span) -> Option<BreakKind> {
    let drift = i128::from(moved) - i128::from(elapsed.as_nanos());
    let size = Span::from_nanos(u64::try_from(drift.unsigned_abs()).unwrap_or(u64::MAX));
    let kind = if drift > 0 {
        BreakKind::ClockForward(size)
    } else {
        BreakKind::ClockBack(size)
    };
    (size > CLOCK_TOLERANCE).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::WallClock;

    /// Boot, awake and wall clock in seconds.
    fn stamp(boot: u64, awake: u64, wall: i64) -> Stamp {
        Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(awake)),
            wall: Some(WallClock::from_unix_nanos(wall * 1_000_000_000)),
        }
    }

    #[test]
    fn each_way_in_which_clocks_part_has_its_name() {
        let second = Span::from_secs;
        for (next, elapsed, breaks) in [
            (stamp(101, 91, 1001), 1, vec![]),
            (stamp(102, 92, 1003), 2, vec![]),
            (
                stamp(200, 91, 1100),
                100,
                vec![BreakKind::Suspend(second(99)), BreakKind::Gap(second(100))],
            ),
            (
                stamp(101, 91, 5001),
                1,
                vec![BreakKind::ClockForward(second(4000))],
            ),
            (
                stamp(101, 91, 901),
                1,
                vec![BreakKind::ClockBack(second(100))],
            ),
            (stamp(5, 5, 1060), 60, vec![BreakKind::Reboot]),
        ] {
            let step = step(stamp(100, 90, 1000), next, || Some(second(1))).unwrap();
            assert_eq!(step.elapsed, second(elapsed), "{next:?}");
            assert_eq!(step.breaks().collect::<Vec<_>>(), breaks, "{next:?}");
        }
        let earlier = step(stamp(100, 90, 1000), stamp(5, 5, 900), || None);
        assert_eq!(earlier, Err(OutOfOrder));
    }
}
