//! When something happened, on the timeline's clock and also before its first sample.

use units::Span;

use crate::sample::Stamp;
use crate::timeline::Timeline;

/// A time on the timeline's clock in nanoseconds, which is negative before the clock's beginning: a kernel's log holds
/// what happened hours before anybody sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(i128);

impl Moment {
    /// This much later.
    pub(super) fn plus(self, span: Span) -> Self {
        Self(self.0 + i128::from(span.as_nanos()))
    }

    /// This much earlier.
    pub(super) fn minus(self, span: Span) -> Self {
        Self(self.0 - i128::from(span.as_nanos()))
    }

    /// How far two are apart, in nanoseconds.
    pub(super) const fn apart(self, other: Self) -> u128 {
        self.0.abs_diff(other.0)
    }

    /// That of a stamp before a sample: as much earlier as the clocks say; the sample's own without such a sample.
    pub(super) fn before(timeline: &Timeline, index: usize, stamp: Stamp) -> Self {
        let at = timeline.times().get(index).copied().unwrap_or_default();
        let by = timeline.stamp(index).map_or(0, |own| later_by(own, stamp));
        Self(i128::from(at.as_nanos()) - by)
    }
}

impl From<Span> for Moment {
    fn from(at: Span) -> Self {
        Self(i128::from(at.as_nanos()))
    }
}

/// How much later the first is, in nanoseconds. Within a boot the boot clock knows, which nobody moves; else the wall
/// clock.
pub(super) fn later_by(one: Stamp, other: Stamp) -> i128 {
    const MOVED: i64 = 5_000_000_000;
    let started = |stamp: Stamp| {
        let boot = i64::try_from(stamp.boot.as_nanos()).ok()?;
        stamp.wall?.unix_nanos().checked_sub(boot)
    };
    match (one.wall.zip(other.wall), started(one).zip(started(other))) {
        (Some((a, b)), Some((x, y))) if x.abs_diff(y) > MOVED.unsigned_abs() => {
            i128::from(a.unix_nanos()) - i128::from(b.unix_nanos())
        }
        _ => i128::from(one.boot.as_nanos()) - i128::from(other.boot.as_nanos()),
    }
}
