//! Times for people: those of a live host and of a recording by the clock, a text's as they stand there, a capture's as offsets from its first
//! sample. What is of one moment that nobody knows has no time at all.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use units::Span;

use super::Screen;
use crate::model::{Source, SourceKind};

/// How a source's times are written.
pub(crate) struct Clock<'a> {
    kind: SourceKind,
    zone: &'a TimeZone,
    begin: Option<Timestamp>,
    end: Option<Timestamp>,
    /// Offsets count from the first sample of what was judged; people count from that of the source.
    before_s: f64,
    lasts_s: f64,
}

/// Logs rarely name the zone of their times; written as they stand there, they can be found again.
const AS_WRITTEN: &TimeZone = &TimeZone::UTC;

/// Clocks change twice a year: so many are a century, longer than any picture that is not of a clock gone wrong.
const MOST_CHANGES: usize = 200;

impl<'a> Clock<'a> {
    pub(crate) fn new(source: &Source, screen: &'a Screen) -> Self {
        Self {
            kind: source.kind,
            zone: match source.kind {
                SourceKind::Live | SourceKind::Capture | SourceKind::Recording => &screen.zone,
                SourceKind::Text | SourceKind::Bundle => AS_WRITTEN,
            },
            begin: source.from,
            end: source.to,
            before_s: source.cut_at_s.unwrap_or_default(),
            lasts_s: source.watched_s,
        }
    }

    /// A moment: `0:18`, or `13:42:18` live; with the day where that is not the last sample's. `None` where the source is
    /// of one moment that nobody knows.
    pub(crate) fn moment(&self, offset_s: f64, at: Option<Timestamp>) -> Option<String> {
        self.moment_of(offset_s, at, !self.is_last_day(at))
    }

    fn moment_of(&self, offset_s: f64, at: Option<Timestamp>, names_day: bool) -> Option<String> {
        let Some(at) = at.filter(|_| self.kind != SourceKind::Capture) else {
            return (self.lasts_s > 0.0).then(|| self.offset(offset_s));
        };
        let at = at.to_zoned(self.zone.clone());
        let is_of_a_day = matches!(self.kind, SourceKind::Live | SourceKind::Recording);
        let form = if !names_day && is_of_a_day {
            "%H:%M:%S"
        } else {
            "%b %-d %H:%M:%S"
        };
        Some(at.strftime(form).to_string())
    }

    /// A moment of a list that may reach over days, always with its day: `Nov 21 13:42:18`, of another year than the
    /// source's end with that. Without a wall clock, from the start: `0:18`.
    pub(crate) fn listed(&self, offset_s: Option<f64>, at: Option<Timestamp>) -> Option<String> {
        let Some(at) = at else {
            return Some(self.offset(offset_s?));
        };
        let at = at.to_zoned(self.zone.clone());
        let end = self.end.map(|end| end.to_zoned(self.zone.clone()));
        let form = match end {
            Some(end) if end.year() != at.year() => "%Y-%m-%d %H:%M:%S",
            _ => "%b %-d %H:%M:%S",
        };
        Some(at.strftime(form).to_string())
    }

    /// Whether a moment is of the day of the last sample, which need not be named.
    fn is_last_day(&self, at: Option<Timestamp>) -> bool {
        let date = |at: Timestamp| at.to_zoned(self.zone.clone()).date();
        let dates = self.end.zip(at).map(|(end, at)| (date(end), date(at)));
        dates.is_none_or(|(end, at)| end == at)
    }

    fn offset(&self, offset_s: f64) -> String {
        Span::from_secs_f64(offset_s + self.before_s).as_clock()
    }

    /// From the first sample to the last: `2026-11-21 13:42:18 to 13:52:18 +09:00`; without a wall clock and of a capture
    /// from the source's start: `0:11 to 0:34`.
    pub(crate) fn whole(&self) -> String {
        let ends = self.begin.zip(self.end);
        let Some((begin, end)) = ends.filter(|_| self.kind != SourceKind::Capture) else {
            return match self.lasts_s > 0.0 {
                true => format!("{} to {}", self.offset(0.0), self.offset(self.lasts_s)),
                false => self.offset(0.0),
            };
        };
        if begin == end {
            return self.until().unwrap_or_default();
        }
        let local = |at: Timestamp| at.to_zoned(self.zone.clone());
        let (begin, end) = (local(begin), local(end));
        let form = match begin.date() == end.date() {
            true => "%H:%M:%S %:z",
            false => "%Y-%m-%d %H:%M:%S %:z",
        };
        let begin = begin.strftime("%Y-%m-%d %H:%M:%S");
        format!("{begin} to {}", end.strftime(form))
    }

    /// From one moment to another: `0:11–0:34`.
    pub(crate) fn range(
        &self,
        from: (f64, Option<Timestamp>),
        to: (f64, Option<Timestamp>),
    ) -> Option<String> {
        let names_day = !self.is_last_day(from.1) || !self.is_last_day(to.1);
        let moment = |(offset_s, at)| self.moment_of(offset_s, at, names_day);
        let (from, to) = (moment(from)?, moment(to)?);
        Some(if from == to {
            from
        } else {
            format!("{from}–{to}")
        })
    }

    /// By how many minutes its readers' clocks are ahead of UTC at a moment, and from each change on until another moment.
    pub(crate) fn minutes_ahead(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, i32)> {
        let minutes = |at| (at, self.zone.to_offset(at).seconds() / 60);
        let changes = self.zone.following(from).map(|change| change.timestamp());
        let within = changes.take_while(|at| *at <= to).take(MOST_CHANGES);
        std::iter::once(from).chain(within).map(minutes).collect()
    }

    /// From when to when moments are of the last sample's day, which need not be named; `None` where every moment has its
    /// day.
    pub(crate) fn last_day(&self) -> Option<(Timestamp, Timestamp)> {
        if !matches!(self.kind, SourceKind::Live | SourceKind::Recording) {
            return None;
        }
        let begin = self.end?.to_zoned(self.zone.clone()).start_of_day().ok()?;
        let next = begin.tomorrow().and_then(|next| next.start_of_day()).ok()?;
        Some((begin.timestamp(), next.timestamp()))
    }

    /// When the look ended, with the zone's offset: `13:42:18 +09:00`; of a capture with its date.
    pub(crate) fn until(&self) -> Option<String> {
        let end = self.end?.to_zoned(self.zone.clone());
        // A live look is now; a capture may be from any day.
        let form = match self.kind {
            SourceKind::Live => "%H:%M:%S %:z",
            _ => "%Y-%m-%d %H:%M:%S %:z",
        };
        Some(end.strftime(form).to_string())
    }
}
