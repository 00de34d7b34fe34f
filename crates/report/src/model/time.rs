//! The contract's times: RFC 3339 in UTC.

use jiff::Timestamp;
use timeline::Timeline;
use units::Span;

/// The wall clock at a time of the timeline, to the millisecond.
pub(super) fn wall(timeline: &Timeline, time: Span) -> Option<Timestamp> {
    let nanos = timeline.wall_at(time)?.unix_nanos();
    Timestamp::from_millisecond(nanos.div_euclid(1_000_000)).ok()
}

/// The wall clock at a time of the timeline, to the second before it.
pub(super) fn wall_second(timeline: &Timeline, time: Span) -> Option<Timestamp> {
    Timestamp::from_second(wall(timeline, time)?.as_second()).ok()
}
