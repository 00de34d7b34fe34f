//! When something happened, on the timeline's clock and also before its first sample.

use std::cmp::Ordering;

use units::{Span, WallClock};

use crate::sample::Stamp;
use crate::timeline::Timeline;

/// A moment, also one before a timeline's first sample: a kernel's log holds what happened hours before anybody sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventTime {
    /// On the timeline's clock, in nanoseconds; below zero before the clock's beginning.
    pub nanos: i128,
    /// On the wall clock; `None` where the source has none.
    pub wall: Option<WallClock>,
}

impl EventTime {
    /// A time of the timeline.
    pub(super) fn new(at: Span, wall: Option<WallClock>) -> Self {
        Self {
            nanos: i128::from(at.as_nanos()),
            wall,
        }
    }

    /// That of a stamp; the timeline's beginning where it has no samples.
    pub(super) fn of(timeline: &Timeline, stamp: Stamp) -> Self {
        Self {
            nanos: timeline.nanos_at(stamp).unwrap_or_default(),
            wall: stamp.wall,
        }
    }

    /// That of a sample.
    pub(super) fn of_sample(timeline: &Timeline, index: usize) -> Option<Self> {
        let time = timeline.times().get(index)?;
        Some(Self::new(*time, timeline.stamp(index)?.wall))
    }

    /// This much later on the timeline's clock; the wall clock is not asked.
    pub(super) fn plus(self, span: Span) -> Self {
        Self {
            nanos: self.nanos + i128::from(span.as_nanos()),
            ..self
        }
    }

    /// This much earlier on the timeline's clock; the wall clock is not asked.
    pub(super) fn minus(self, span: Span) -> Self {
        Self {
            nanos: self.nanos - i128::from(span.as_nanos()),
            ..self
        }
    }

    /// How far two are apart, in nanoseconds.
    pub(super) const fn apart(self, other: Self) -> u128 {
        self.nanos.abs_diff(other.nanos)
    }
}

/// By the timeline's clock, and where that does not tell by the wall clock.
impl Ord for EventTime {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.nanos, self.wall).cmp(&(other.nanos, other.wall))
    }
}

impl PartialOrd for EventTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
