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

    /// That of a stamp; the timeline's beginning where it has no samples.
    pub(super) fn of(timeline: &Timeline, stamp: Stamp) -> Self {
        Self(timeline.nanos_at(stamp).unwrap_or_default())
    }
}

impl From<Span> for Moment {
    fn from(at: Span) -> Self {
        Self(i128::from(at.as_nanos()))
    }
}
