//! The time of an event on the timeline's clock, also before its first sample.

use std::cmp::Ordering;

use units::{Span, WallClock};

use crate::sample::Stamp;
use crate::timeline::Timeline;

/// The time of an event. It may be before the first sample: a kernel log covers the hours before sampling began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventTime {
    /// On the timeline's clock, in nanoseconds; negative before its first sample.
    pub nanos: i128,
    /// On the wall clock; `None` where the source has none.
    pub wall: Option<WallClock>,
}

impl EventTime {
    /// The event time of a time on the timeline's clock.
    pub(super) fn new(at: Span, wall: Option<WallClock>) -> Self {
        Self { nanos: i128::from(at.as_nanos()), wall }
    }

    /// The event time of a stamp; zero where the timeline has no samples.
    pub(super) fn at_stamp(timeline: &Timeline, stamp: Stamp) -> Self {
        Self { nanos: timeline.nanos_at(stamp).unwrap_or_default(), wall: stamp.wall }
    }

    /// The event time of a sample.
    pub(super) fn at_sample(timeline: &Timeline, index: usize) -> Option<Self> {
        let time = timeline.times().get(index)?;
        Some(Self::new(*time, timeline.stamp(index)?.wall))
    }

    /// The time that is `span` later on the timeline's clock; the wall clock stays.
    pub(super) fn plus(self, span: Span) -> Self {
        Self { nanos: self.nanos + i128::from(span.as_nanos()), ..self }
    }

    /// The time that is `span` earlier on the timeline's clock; the wall clock stays.
    pub(super) fn minus(self, span: Span) -> Self {
        Self { nanos: self.nanos - i128::from(span.as_nanos()), ..self }
    }

    /// The distance between two times, in nanoseconds.
    pub(super) const fn apart(self, other: Self) -> u128 {
        self.nanos.abs_diff(other.nanos)
    }
}

/// Orders by the timeline's clock, then by the wall clock.
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
