//! The contract's times: RFC 3339 in UTC.

use jiff::Timestamp;
use timeline::Timeline;
use units::{Span, WallClock};

/// A time of the wall clock, to the millisecond.
pub fn timestamp(wall: WallClock) -> Option<Timestamp> {
    Timestamp::from_millisecond(wall.unix_nanos().div_euclid(1_000_000)).ok()
}

/// The wall clock at a time of the timeline, to the millisecond.
pub(super) fn wall(timeline: &Timeline, time: Span) -> Option<Timestamp> {
    timestamp(timeline.wall_at(time)?)
}

/// The wall clock at a time of the timeline, to the second before it.
pub(super) fn wall_second(timeline: &Timeline, time: Span) -> Option<Timestamp> {
    Timestamp::from_second(wall(timeline, time)?.as_second()).ok()
}
