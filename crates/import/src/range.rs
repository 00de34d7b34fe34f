//! Which part of a source is meant: from when to when, on the wall clock or counted from the source's start.

use timeline::{BreakKind, Stamp, Timeline};
use units::{Span, WallClock};

use crate::Opened;

/// A moment of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// On the wall clock.
    At(WallClock),
    /// So long after the source's first sample.
    AfterStart(Span),
    /// So long before the source's last sample.
    BeforeEnd(Span),
}

/// From when to when; both ends belong to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// From when on; the beginning where not given.
    pub since: Option<Moment>,
    /// Until when; the end where not given.
    pub until: Option<Moment>,
}

/// Why a source has nothing in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotThere {
    /// It has no samples between the two; these are its first and last.
    Outside(WallClock, WallClock),
    /// It has none so long after its start: it lasts this long.
    TooShort(Span),
    /// It has no wall clock; times can be counted from its start only. It lasts this long.
    NoClock(Span),
    /// Nothing tells how its looks lie in time.
    NoTime,
}

impl Range {
    /// Whether it is all of a source.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it ends before it begins, as far as that can be told without a source.
    pub fn is_backwards(&self) -> bool {
        match (self.since, self.until) {
            (Some(Moment::At(since)), Some(Moment::At(until))) => since > until,
            (Some(Moment::AfterStart(since)), Some(Moment::AfterStart(until))) => since > until,
            (Some(Moment::BeforeEnd(since)), Some(Moment::BeforeEnd(until))) => since < until,
            _ => false,
        }
    }

    /// Until a moment, and so long before it.
    pub fn before(at: Moment, lasts: Span) -> Self {
        Self {
            since: Some(at.earlier(lasts)),
            until: Some(at),
        }
    }

    /// Around a moment: so long before and after it.
    pub fn around(at: Moment, each: Span) -> Self {
        Self {
            until: Some(at.later(each)),
            ..Self::before(at, each)
        }
    }

    /// On the wall clock, for a source that reaches from `start` to `end`.
    pub(crate) fn on_clock(
        &self,
        (start, end): (WallClock, WallClock),
    ) -> (Option<WallClock>, Option<WallClock>) {
        let on_clock = |moment: Moment| match moment {
            Moment::At(wall) => wall,
            Moment::AfterStart(span) => start.plus(span),
            Moment::BeforeEnd(span) => end.minus(span),
        };
        (self.since.map(on_clock), self.until.map(on_clock))
    }

    fn names_clock(&self) -> bool {
        let is_at = |moment: Option<Moment>| matches!(moment, Some(Moment::At(_)));
        is_at(self.since) || is_at(self.until)
    }

    /// Whether a sample at a time of the timeline lies in it; `left` is how long before the last.
    fn holds(&self, stamp: Stamp, time: Span, left: Span) -> bool {
        let compare = |moment: Moment| match moment {
            Moment::At(wall) => stamp.wall.map(|is| is.cmp(&wall)),
            Moment::AfterStart(span) => Some(time.cmp(&span)),
            Moment::BeforeEnd(span) => Some(span.cmp(&left)),
        };
        let from = self.since.map(compare);
        let to = self.until.map(compare);
        from.is_none_or(|order| order.is_some_and(std::cmp::Ordering::is_ge))
            && to.is_none_or(|order| order.is_some_and(std::cmp::Ordering::is_le))
    }
}

impl Moment {
    fn earlier(self, by: Span) -> Self {
        match self {
            Self::At(wall) => Self::At(wall.minus(by)),
            Self::AfterStart(span) => Self::AfterStart(span.saturating_sub(by)),
            Self::BeforeEnd(span) => Self::BeforeEnd(span.plus(by)),
        }
    }

    fn later(self, by: Span) -> Self {
        match self {
            Self::At(wall) => Self::At(wall.plus(by)),
            Self::AfterStart(span) => Self::AfterStart(span.plus(by)),
            Self::BeforeEnd(span) => Self::BeforeEnd(span.saturating_sub(by)),
        }
    }
}

impl Opened {
    /// Only what lies in a range: samples, kernel reports, facts as they were then.
    ///
    /// # Errors
    /// [`NotThere`] where the source has no sample in it.
    pub fn within(self, range: Range) -> Result<Self, NotThere> {
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
        // Where the wall clock was moved back, what lies between the ends belongs to them.
        let first = (0..timeline.len()).find(inside);
        let last = (0..timeline.len()).rev().find(inside);
        let (Some(first), Some(last)) = (first, last) else {
            return Err(not_there(timeline, range));
        };
        let is_to_the_end = last + 1 == timeline.len();
        let is_cut = first > 0 || !is_to_the_end;
        let before = self.cut_at.unwrap_or_default();
        Ok(Self {
            cut_at: is_cut.then(|| before.plus(times[first])).or(self.cut_at),
            facts: self.facts.within(times[first], times[last]),
            timeline: timeline.part(first, last + 1).alone(),
            is_cut_short: self.is_cut_short && is_to_the_end,
            ..self
        })
    }
}

fn not_there(timeline: &Timeline, range: Range) -> NotThere {
    let is_timeless = |i: usize| timeline.stamp(i).is_some_and(|s| s.wall.is_none());
    let lasts = timeline.duration();
    let walls = (0..timeline.len()).filter_map(|i| timeline.stamp(i)?.wall);
    match (walls.clone().min(), walls.max()) {
        (Some(first), Some(last)) if range.names_clock() => NotThere::Outside(first, last),
        (None, _) if range.names_clock() && lasts > Span::ZERO => NotThere::NoClock(lasts),
        (None, _) if lasts == Span::ZERO && is_unrelated(timeline) && is_timeless(0) => {
            NotThere::NoTime
        }
        _ => NotThere::TooShort(lasts),
    }
}

fn is_unrelated(timeline: &Timeline) -> bool {
    let mut breaks = timeline.breaks().iter();
    timeline.len() < 2 || breaks.any(|gap| gap.kind == BreakKind::NewSegment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceKind;
    use timeline::{Facts, Sample};

    fn wall(second: i64) -> WallClock {
        WallClock::from_unix_nanos(second * 1_000_000_000)
    }

    /// Ten samples, ten seconds apart, from 1000 s on where there is a wall clock.
    fn source(clock: bool) -> Opened {
        let mut timeline = Timeline::default();
        for i in 0..10 {
            let mut sample = Sample::at(Span::from_secs(i * 10));
            let at = i64::try_from(i * 10).unwrap();
            sample.stamp.wall = clock.then(|| wall(1000 + at));
            timeline.push(&sample).unwrap();
        }
        Opened {
            kind: SourceKind::Capture,
            name: String::new(),
            timeline,
            facts: Facts::default(),
            problems: Vec::new(),
            inputs: Vec::new(),
            lines_skipped: 0,
            thinned_to: None,
            screened: None,
            cut_at: None,
            is_cut_short: false,
        }
    }

    fn cut(
        clock: bool,
        since: Option<Moment>,
        until: Option<Moment>,
    ) -> Result<(usize, Span), NotThere> {
        let within = source(clock).within(Range { since, until })?;
        Ok((within.timeline.len(), within.timeline.duration()))
    }

    fn at(second: i64) -> Option<Moment> {
        Some(Moment::At(wall(second)))
    }

    fn after(second: u64) -> Option<Moment> {
        Some(Moment::AfterStart(Span::from_secs(second)))
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        assert_eq!(cut(true, at(1020), at(1050)), Ok((4, Span::from_secs(30))));
        assert_eq!(cut(true, at(1021), None), Ok((7, Span::from_secs(60))));
        assert_eq!(
            cut(false, after(20), after(50)),
            Ok((4, Span::from_secs(30)))
        );
        let end = |second| Some(Moment::BeforeEnd(Span::from_secs(second)));
        assert_eq!(cut(false, end(30), end(0)), Ok((4, Span::from_secs(30))));
        assert_eq!(cut(true, None, None), Ok((10, Span::from_secs(90))));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let outside = NotThere::Outside(wall(1000), wall(1090));
        assert_eq!(cut(true, at(2000), None), Err(outside.clone()));
        assert_eq!(cut(true, None, at(7)), Err(outside.clone()));
        assert_eq!(cut(true, at(1021), at(1022)), Err(outside));
        let lasts = Span::from_secs(90);
        assert_eq!(cut(false, at(1020), None), Err(NotThere::NoClock(lasts)));
        assert_eq!(cut(false, after(91), None), Err(NotThere::TooShort(lasts)));
    }

    #[test]
    fn a_wall_clock_that_went_back_costs_nothing() {
        let mut source = source(true);
        let mut sample = Sample::at(Span::from_secs(100));
        sample.stamp.wall = Some(wall(1050));
        source.timeline.push(&sample).unwrap();
        let range = Range {
            since: at(1040),
            until: at(1060),
        };
        assert_eq!(source.within(range).unwrap().timeline.len(), 7);
    }

    #[test]
    fn a_range_is_backwards_only_where_both_ends_tell() {
        let is_backwards = |since, until| Range { since, until }.is_backwards();
        assert!(is_backwards(at(2), at(1)) && !is_backwards(at(1), at(1)));
        assert!(is_backwards(after(2), after(1)) && !is_backwards(after(1), after(2)));
        let end = |second| Some(Moment::BeforeEnd(Span::from_secs(second)));
        assert!(is_backwards(end(1), end(2)) && !is_backwards(end(2), end(1)));
        assert!(!is_backwards(at(2), after(1)) && !is_backwards(at(2), None));
    }

    #[test]
    fn around_a_moment_are_the_minutes_before_and_after() {
        let minutes = Span::from_mins(5);
        let Range { since, until } = Range::around(Moment::At(wall(1000)), minutes);
        assert_eq!((since, until), (at(700), at(1300)));
        assert_eq!(
            Range::before(Moment::AfterStart(Span::ZERO), minutes).since,
            after(0)
        );
    }
}
