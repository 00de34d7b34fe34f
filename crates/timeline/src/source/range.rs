//! Selects a part of a source: from when to when, on the wall clock or relative to the source.

use units::{Span, WallClock};

use crate::source::Origin;
use crate::{BreakKind, Inventory, Source, Stamp, Timeline};

/// A moment of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    /// On the wall clock.
    At(WallClock),
    /// This long after the source's first sample.
    AfterStart(Span),
    /// This long before the source's last sample.
    BeforeEnd(Span),
}

/// A range of time; both ends are included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The start; `None` is the source's beginning.
    pub since: Option<TimePoint>,
    /// The end; `None` is the source's end.
    pub until: Option<TimePoint>,
}

/// Why a source has nothing in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutOfRange {
    /// The source has no samples in the range; these are its first and last.
    Outside(WallClock, WallClock),
    /// The source ends before the range, which is relative to its start; it lasts this long.
    TooShort(Span),
    /// The source has no wall clock, so its times can be given relative to its start only. It lasts this long.
    NoClock(Span),
    /// The order of its samples is unknown.
    NoTime,
}

impl TimeRange {
    /// Whether it covers the whole source.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it ends before it begins, as far as that is known without a source.
    pub fn is_backwards(&self) -> bool {
        match (self.since, self.until) {
            (Some(TimePoint::At(since)), Some(TimePoint::At(until))) => since > until,
            (Some(TimePoint::AfterStart(since)), Some(TimePoint::AfterStart(until))) => {
                since > until
            }
            (Some(TimePoint::BeforeEnd(since)), Some(TimePoint::BeforeEnd(until))) => since < until,
            _ => false,
        }
    }

    /// The range that ends at `at` and lasts for `lasts`.
    pub fn before(at: TimePoint, lasts: Span) -> Self {
        Self { since: Some(at.earlier(lasts)), until: Some(at) }
    }

    /// The range from `each` before a moment to `each` after it.
    pub fn around(at: TimePoint, each: Span) -> Self {
        Self { until: Some(at.later(each)), ..Self::before(at, each) }
    }

    /// The range on the wall clock, for a source that extends from `start` to `end`.
    pub fn on_clock(
        &self,
        (start, end): (WallClock, WallClock),
    ) -> (Option<WallClock>, Option<WallClock>) {
        let on_clock = |moment: TimePoint| match moment {
            TimePoint::At(wall) => wall,
            TimePoint::AfterStart(span) => start.plus(span),
            TimePoint::BeforeEnd(span) => end.minus(span),
        };
        (self.since.map(on_clock), self.until.map(on_clock))
    }

    fn names_clock(&self) -> bool {
        let is_at = |moment: Option<TimePoint>| matches!(moment, Some(TimePoint::At(_)));
        is_at(self.since) || is_at(self.until)
    }

    /// Whether a sample is within the range; `time` is on the timeline's clock, `left` is the time until the last
    /// sample.
    fn holds(&self, stamp: Stamp, time: Span, left: Span) -> bool {
        let compare = |moment: TimePoint| match moment {
            TimePoint::At(wall) => stamp.wall.map(|is| is.cmp(&wall)),
            TimePoint::AfterStart(span) => Some(time.cmp(&span)),
            TimePoint::BeforeEnd(span) => Some(span.cmp(&left)),
        };
        let from = self.since.map(compare);
        let to = self.until.map(compare);
        from.is_none_or(|order| order.is_some_and(std::cmp::Ordering::is_ge))
            && to.is_none_or(|order| order.is_some_and(std::cmp::Ordering::is_le))
    }
}

impl TimePoint {
    /// The last moment that is written as this one: a time of the clock in whole seconds names a second, as reports write
    /// it.
    #[must_use]
    pub fn as_written(self) -> Self {
        const SECOND: i64 = 1_000_000_000;
        match self {
            Self::At(wall) if wall.unix_nanos() % SECOND == 0 => {
                Self::At(wall.plus(Span::from_millis(999)))
            }
            other => other,
        }
    }

    /// The moment so long before.
    pub fn earlier(self, by: Span) -> Self {
        match self {
            Self::At(wall) => Self::At(wall.minus(by)),
            Self::AfterStart(span) => Self::AfterStart(span.saturating_sub(by)),
            Self::BeforeEnd(span) => Self::BeforeEnd(span.plus(by)),
        }
    }

    /// The moment so long after.
    pub fn later(self, by: Span) -> Self {
        match self {
            Self::At(wall) => Self::At(wall.plus(by)),
            Self::AfterStart(span) => Self::AfterStart(span.plus(by)),
            Self::BeforeEnd(span) => Self::BeforeEnd(span.saturating_sub(by)),
        }
    }
}

impl Source {
    /// Returns what is within a range: samples, kernel reports, and facts as they were then.
    ///
    /// # Errors
    /// [`OutOfRange`] where the source has no sample in it.
    pub fn within(self, range: TimeRange) -> Result<Self, OutOfRange> {
        if range.is_all() {
            return Ok(self);
        }
        let timeline = &self.timeline;
        let times = timeline.times();
        let end = times.last().copied().unwrap_or_default();
        let inside = |index: &usize| {
            let stamp = timeline.stamp(*index);
            stamp.is_some_and(|stamp| range.holds(stamp, times[*index], end - times[*index]))
        };
        let passes = passes(timeline, inside);
        let Some(&(first, last)) = passes.last() else {
            return Err(not_there(timeline, range));
        };
        let mut problems = self.problems;
        if let [(earlier, _), _, ..] = passes[..] {
            problems.push(format!(
                "the wall clock shows this time in {} boots of the machine: the last is taken; the \
                 first begins at --since +{}s",
                passes.len(),
                times[earlier].as_nanos() / 1_000_000_000,
            ));
        }
        let is_to_the_end = last + 1 == timeline.len();
        let is_cut = first > 0 || !is_to_the_end;
        let cut_before = self.origin.cut_at;
        let cut_here = is_cut.then(|| cut_before.unwrap_or_default().plus(times[first]));
        Ok(Self {
            facts: self.facts.within(times[first], times[last]),
            timeline: timeline.part(first, last + 1).alone(),
            origin: Origin {
                cut_at: cut_here.or(cut_before),
                is_cut_short: self.origin.is_cut_short && is_to_the_end,
                ..self.origin
            },
            // It was found after the last sample.
            inventory: if is_to_the_end { self.inventory } else { Inventory::default() },
            problems,
        })
    }
}

/// Returns the first and the last sample of each time that the clock passed through a range. Where the wall clock was set
/// back within a boot, all samples between the two ends are included. A boot that begins within the range is another
/// pass only where the one before went beyond it: without an RTC battery all boots begin at one time.
fn passes(timeline: &Timeline, inside: impl Fn(&usize) -> bool) -> Vec<(usize, usize)> {
    let mut passes: Vec<(usize, usize)> = Vec::new();
    let mut goes_on = false;
    for (from, end) in timeline.boots() {
        let before = from.checked_sub(1).and_then(|at| timeline.stamp(at));
        let is_other = before
            .zip(timeline.stamp(from))
            .is_some_and(|(before, stamp)| before.is_of_boot_of(&stamp) == Some(false));
        let found = (from..end).find(&inside).zip((from..end).rev().find(&inside));
        let Some((first, last)) = found else { continue };
        match passes.last_mut() {
            Some(pass) if goes_on || !is_other => pass.1 = last,
            _ => passes.push((first, last)),
        }
        goes_on = last + 1 == end;
    }
    passes
}

fn not_there(timeline: &Timeline, range: TimeRange) -> OutOfRange {
    let is_timeless = |i: usize| timeline.stamp(i).is_some_and(|s| s.wall.is_none());
    let lasts = timeline.duration();
    let walls = (0..timeline.len()).filter_map(|i| timeline.stamp(i)?.wall);
    match (walls.clone().min(), walls.max()) {
        (Some(first), Some(last)) if range.names_clock() => OutOfRange::Outside(first, last),
        (None, _) if range.names_clock() && lasts > Span::ZERO => OutOfRange::NoClock(lasts),
        (None, _) if lasts == Span::ZERO && is_unrelated(timeline) && is_timeless(0) => {
            OutOfRange::NoTime
        }
        _ => OutOfRange::TooShort(lasts),
    }
}

fn is_unrelated(timeline: &Timeline) -> bool {
    let mut breaks = timeline.breaks().iter();
    timeline.len() < 2 || breaks.any(|gap| gap.kind == BreakKind::NewSegment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, Sample, SourceKind};

    fn wall(second: i64) -> WallClock {
        WallClock::from_unix_nanos(second * 1_000_000_000)
    }

    /// Ten samples, ten seconds apart; with a wall clock, they start at 1000 s.
    fn source(clock: bool) -> Source {
        let mut timeline = Timeline::default();
        for i in 0..10 {
            let mut sample = Sample::at(Span::from_secs(i * 10));
            let at = i64::try_from(i * 10).unwrap();
            sample.stamp.wall = clock.then(|| wall(1000 + at));
            timeline.push(&sample).unwrap();
        }
        Source::new(SourceKind::Capture, "", timeline, Facts::default())
    }

    fn cut(
        clock: bool,
        since: Option<TimePoint>,
        until: Option<TimePoint>,
    ) -> Result<(usize, Span), OutOfRange> {
        let within = source(clock).within(TimeRange { since, until })?;
        Ok((within.timeline.len(), within.timeline.duration()))
    }

    fn at(second: i64) -> Option<TimePoint> {
        Some(TimePoint::At(wall(second)))
    }

    fn after(second: u64) -> Option<TimePoint> {
        Some(TimePoint::AfterStart(Span::from_secs(second)))
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        assert_eq!(cut(true, at(1020), at(1050)), Ok((4, Span::from_secs(30))));
        assert_eq!(cut(true, at(1021), None), Ok((7, Span::from_secs(60))));
        assert_eq!(cut(false, after(20), after(50)), Ok((4, Span::from_secs(30))));
        let end = |second| Some(TimePoint::BeforeEnd(Span::from_secs(second)));
        assert_eq!(cut(false, end(30), end(0)), Ok((4, Span::from_secs(30))));
        assert_eq!(cut(true, None, None), Ok((10, Span::from_secs(90))));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let outside = OutOfRange::Outside(wall(1000), wall(1090));
        assert_eq!(cut(true, at(2000), None), Err(outside.clone()));
        assert_eq!(cut(true, None, at(7)), Err(outside.clone()));
        assert_eq!(cut(true, at(1021), at(1022)), Err(outside));
        let lasts = Span::from_secs(90);
        assert_eq!(cut(false, at(1020), None), Err(OutOfRange::NoClock(lasts)));
        assert_eq!(cut(false, after(91), None), Err(OutOfRange::TooShort(lasts)));
    }

    #[test]
    fn a_wall_clock_that_went_back_costs_nothing() {
        let mut source = source(true);
        let mut sample = Sample::at(Span::from_secs(100));
        sample.stamp.wall = Some(wall(1050));
        source.timeline.push(&sample).unwrap();
        let range = TimeRange { since: at(1040), until: at(1060) };
        assert_eq!(source.within(range).unwrap().timeline.len(), 7);
    }

    #[test]
    fn of_two_boots_that_begin_at_one_time_the_last_is_taken_and_the_other_is_named() {
        let source = |boots: &[(u8, i64)]| {
            let mut timeline = Timeline::default();
            for (boot, begins) in boots {
                for second in 0..100 {
                    let mut sample = Sample::at(Span::from_secs(10 + second));
                    sample.stamp.wall = Some(wall(begins + second.cast_signed()));
                    sample.stamp.boot_id = crate::BootId::from_bytes([*boot; 16]);
                    timeline.push(&sample).unwrap();
                }
            }
            Source::new(SourceKind::Recording, "", timeline, Facts::default())
        };
        let range = TimeRange { since: at(1_700_000_020), until: at(1_700_000_039) };
        let again = source(&[(1, 1_700_000_000), (2, 1_700_000_000)]);
        let cut = again.within(range).unwrap();
        assert_eq!(cut.timeline.len(), 20);
        assert_eq!(cut.timeline.breaks(), []);
        assert_eq!(cut.timeline.stamp(0).unwrap().boot_id, crate::BootId::from_bytes([2; 16]));
        assert!(cut.problems[0].contains("in 2 boots"), "{:?}", cut.problems);
        assert!(cut.problems[0].ends_with("--since +20s"), "{:?}", cut.problems);
        // A machine that went down within the range, with a clock that goes on, or that is set some time after boot.
        for (second, len) in [(1_700_000_010, 110), (1_699_999_970, 50)] {
            let source = source(&[(1, 1_699_999_940), (2, second)]);
            let range = TimeRange { since: at(1_700_000_000), until: None };
            let cut = source.within(range).unwrap();
            assert!(cut.timeline.len() >= len, "{second}: {}", cut.timeline.len());
            assert_eq!(cut.problems, Vec::<String>::new());
        }
    }

    #[test]
    fn a_range_is_backwards_only_where_both_ends_tell() {
        let is_backwards = |since, until| TimeRange { since, until }.is_backwards();
        assert!(is_backwards(at(2), at(1)) && !is_backwards(at(1), at(1)));
        assert!(is_backwards(after(2), after(1)) && !is_backwards(after(1), after(2)));
        let end = |second| Some(TimePoint::BeforeEnd(Span::from_secs(second)));
        assert!(is_backwards(end(1), end(2)) && !is_backwards(end(2), end(1)));
        assert!(!is_backwards(at(2), after(1)) && !is_backwards(at(2), None));
    }

    #[test]
    fn around_a_moment_are_the_minutes_before_and_after() {
        let minutes = Span::from_mins(5);
        let TimeRange { since, until } = TimeRange::around(TimePoint::At(wall(1000)), minutes);
        assert_eq!((since, until), (at(700), at(1300)));
        assert_eq!(TimeRange::before(TimePoint::AfterStart(Span::ZERO), minutes).since, after(0));
    }
}
