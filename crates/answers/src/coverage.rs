//! Which part of a time range a source covers, in words and in the local time zone.

use jiff::{Timestamp, Zoned};
use timeline::{OutOfRange, TimePoint, TimeRange, Timeline};
use units::{Span, WallClock};

/// Says what a source covers that has no sample in a range.
pub fn instead(why: &OutOfRange) -> String {
    match why {
        OutOfRange::Outside(first, last) => {
            format!("it covers {}", span(*first, *last, &Zoned::now()))
        }
        OutOfRange::TooShort(lasts) => format!("it lasts {lasts}"),
        OutOfRange::NoClock(lasts) => {
            format!(
                "it has no wall clock and lasts {lasts}; count from its start or its end: +1m30s, -30s"
            )
        }
        OutOfRange::NoTime => "it has no times; read all of it".to_owned(),
    }
}

/// Returns the range as understood, if it is on the wall clock: `from 2026-11-21 15:00:00 to 16:00:00 +09:00`.
pub fn understood(range: &TimeRange) -> Option<String> {
    let now = Zoned::now();
    let wall = |moment| match moment {
        Some(TimePoint::At(wall)) => Some(wall),
        _ => None,
    };
    match (wall(range.since), wall(range.until)) {
        (Some(since), Some(until)) => Some(format!("from {}", span(since, until, &now))),
        (Some(since), None) => Some(format!("from {}", zoned(since, &now))),
        (None, Some(until)) => Some(format!("until {}", zoned(until, &now))),
        (None, None) => None,
    }
}

/// `2026-11-21 15:00:00 +09:00`.
fn zoned(at: WallClock, now: &Zoned) -> String {
    match Timestamp::from_nanosecond(i128::from(at.unix_nanos())) {
        Ok(at) => {
            let at = at.to_zoned(now.time_zone().clone());
            at.strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
        }
        Err(_) => "a time out of range".to_owned(),
    }
}

/// `2026-11-21 09:00:00 to 13:42:10 +09:00`.
fn span(first: WallClock, last: WallClock, now: &Zoned) -> String {
    let local = |wall: WallClock| {
        let at = Timestamp::from_nanosecond(i128::from(wall.unix_nanos())).ok()?;
        Some(at.to_zoned(now.time_zone().clone()))
    };
    let (Some(first), Some(last)) = (local(first), local(last)) else {
        return "times out of range".to_owned();
    };
    let end = if first.date() == last.date() { "%H:%M:%S %:z" } else { "%Y-%m-%d %H:%M:%S %:z" };
    format!("{} to {}", first.strftime("%Y-%m-%d %H:%M:%S"), last.strftime(end))
}

/// Says from when to when two samples are: `from 2026-11-21 09:00:00 to 13:42:10 +09:00`, or `from +10 s to +1.5 min` where
/// the source has no wall clock.
pub(crate) fn between(timeline: &Timeline, (first, last): (usize, usize)) -> String {
    let wall = |index| timeline.stamp(index)?.wall;
    match (wall(first), wall(last)) {
        (Some(first), Some(last)) => format!("from {}", span(first, last, &Zoned::now())),
        _ => format!("from +{} to +{}", after_start(timeline, first), after_start(timeline, last)),
    }
}

/// Returns the time of a sample as `--at` takes it.
pub(crate) fn as_typed(timeline: &Timeline, index: usize) -> String {
    let now = Zoned::now();
    let wall = timeline.stamp(index).and_then(|stamp| stamp.wall);
    let at = wall.and_then(|at| Timestamp::from_nanosecond(i128::from(at.unix_nanos())).ok());
    match at {
        Some(at) => at.to_zoned(now.time_zone().clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => format!("+{}s", after_start(timeline, index).as_secs_f64().round()),
    }
}

fn after_start(timeline: &Timeline, index: usize) -> Span {
    let times = timeline.times();
    let start = times.first().copied().unwrap_or_default();
    times.get(index).map_or(Span::ZERO, |at| at.saturating_sub(start))
}

/// Says what a source lacks of the requested range: its start, its end, or stretches in between.
pub(crate) fn uncovered(range: &TimeRange, timeline: &Timeline) -> Vec<String> {
    if range.is_all() {
        return Vec::new();
    }
    uncovered_at(range, timeline, &Zoned::now())
}

fn uncovered_at(range: &TimeRange, timeline: &Timeline, now: &Zoned) -> Vec<String> {
    /// A gap is longer than this many usual intervals; at an end of the range than `AT_END`.
    const GAP: f64 = 10.0;
    const AT_END: f64 = 2.0;
    /// At most 3 gaps are named.
    const NAMES_MAX: usize = 3;
    let wall = |index: usize| timeline.stamp(index)?.wall;
    let last = timeline.len().saturating_sub(1);
    let (Some(begins), Some(ends)) = (wall(0), wall(last)) else {
        return Vec::new();
    };
    let usual = timeline.interval().unwrap_or(units::Span::from_secs(1));
    let usual = usual.max(units::Span::from_secs(1));
    let local = |at: WallClock| clock(at, now);
    let mut missing = Vec::new();
    if let Some(TimePoint::At(since)) = range.since
        && since.plus(usual.times(AT_END)) < begins
    {
        let (since, begins) = (local(since), local(begins));
        missing.push(format!("requested from {since}; the source begins at {begins}"));
    }
    let is_past = |at: WallClock| i128::from(at.unix_nanos()) <= now.timestamp().as_nanosecond();
    if let Some(TimePoint::At(until)) = range.until
        && is_past(until)
        && ends.plus(usual.times(AT_END)) < until
    {
        let (until, ends) = (local(until), local(ends));
        missing.push(format!("requested until {until}; the source ends at {ends}"));
    }
    let times = timeline.times();
    let is_gap = |at: &usize| times[*at] - times[*at - 1] > usual.times(GAP);
    let gaps: Vec<usize> = (1..timeline.len()).filter(is_gap).collect();
    for at in gaps.iter().take(NAMES_MAX) {
        let lasts = times[*at] - times[*at - 1];
        if let Some((from, to)) = wall(*at - 1).zip(wall(*at)) {
            let (from, to) = (local(from), local(to));
            missing.push(format!("no samples for {lasts}, from {from} to {to}"));
        }
    }
    if let Some(more @ 1..) = gaps.len().checked_sub(NAMES_MAX) {
        missing.push(format!("and {more} more gaps: memtide events"));
    }
    missing
}

/// `04:43:01` of today, else with its date: as `--at` takes it.
pub(crate) fn moment(at: WallClock) -> String {
    clock(at, &Zoned::now())
}

/// `04:43:01` of today, else with its date.
fn clock(at: WallClock, now: &Zoned) -> String {
    let Ok(at) = Timestamp::from_nanosecond(i128::from(at.unix_nanos())) else {
        return "a time out of range".to_owned();
    };
    let at = at.to_zoned(now.time_zone().clone());
    let form = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday noon in Tokyo, unless a test names another zone.
    const NOW: &str = "2026-11-22T12:00:00+09:00[Asia/Tokyo]";

    #[test]
    fn a_span_names_its_day_once_and_its_zone() {
        let now: Zoned = NOW.parse().unwrap();
        let wall = |seconds: i64| WallClock::from_unix_nanos(seconds * 1_000_000_000);
        assert_eq!(
            span(wall(1_795_240_800), wall(1_795_244_400), &now),
            "2026-11-21 15:00:00 to 16:00:00 +09:00"
        );
        assert_eq!(
            span(wall(1_795_240_800), wall(1_795_327_200), &now),
            "2026-11-21 15:00:00 to 2026-11-22 15:00:00 +09:00"
        );
    }

    /// Samples at these seconds after noon in Tokyo.
    fn sampled(seconds: impl Iterator<Item = u64>) -> Timeline {
        let mut timeline = Timeline::default();
        for second in seconds {
            let mut sample = timeline::Sample::at(units::Span::from_secs(second));
            sample.stamp.wall = Some(noon(second));
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    fn noon(second: u64) -> WallClock {
        WallClock::from_unix_nanos(1_795_316_400_000_000_000).plus(units::Span::from_secs(second))
    }

    #[test]
    fn what_a_source_lacks_of_a_range_is_said() {
        let later: Zoned = "2026-11-22T13:00:00+09:00[Asia/Tokyo]".parse().unwrap();
        let says = |from, to, seconds: Vec<u64>| {
            let range = TimeRange {
                since: Some(TimePoint::At(noon(from))),
                until: Some(TimePoint::At(noon(to))),
            };
            uncovered_at(&range, &sampled(seconds.into_iter()), &later)
        };
        assert_eq!(says(0, 60, (0..=60).collect()), [""; 0]);
        let late = "requested from 12:00:00; the source begins at 12:00:30";
        let early = "requested until 12:01:00; the source ends at 12:00:50";
        assert_eq!(says(0, 60, (30..=50).collect()), [late, early]);
        let hole = "no samples for 40 s, from 12:00:10 to 12:00:50";
        assert_eq!(says(0, 60, (0..=10).chain(50..=60).collect()), [hole]);
        assert_eq!(says(0, 7200, (0..=3600).collect()), [""; 0], "the end is yet to come");
    }
}
