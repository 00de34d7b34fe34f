//! Times for people: those of a live host and of a recording by the clock, a text's as they stand there, a capture's as offsets from its first
//! sample. What is of one moment that nobody knows has no time at all.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use units::Span;

use super::Screen;
use crate::model::{Source, SourceKind};

/// How a source's times are written.
pub(super) struct Clock<'a> {
    kind: SourceKind,
    zone: &'a TimeZone,
    end: Option<Timestamp>,
    lasts: bool,
}

/// Logs rarely name the zone of their times; written as they stand there, they can be found again.
const AS_WRITTEN: &TimeZone = &TimeZone::UTC;

impl<'a> Clock<'a> {
    pub(super) fn new(source: &Source, screen: &'a Screen) -> Self {
        Self {
            kind: source.kind,
            zone: match source.kind {
                SourceKind::Live | SourceKind::Capture | SourceKind::Recording => &screen.zone,
                SourceKind::Text | SourceKind::Bundle => AS_WRITTEN,
            },
            end: source.to,
            lasts: source.watched_s > 0.0,
        }
    }

    /// A moment: `0:18`, or `13:42:18` live; with the day where that is not the last sample's. `None` where the source is
    /// of one moment that nobody knows.
    pub(super) fn moment(&self, offset_s: f64, at: Option<Timestamp>) -> Option<String> {
        let Some(at) = at.filter(|_| self.kind != SourceKind::Capture) else {
            return self.lasts.then(|| Span::from_secs_f64(offset_s).as_clock());
        };
        let at = at.to_zoned(self.zone.clone());
        let same_day = self
            .end
            .is_none_or(|end| end.to_zoned(self.zone.clone()).date() == at.date());
        let is_of_a_day = matches!(self.kind, SourceKind::Live | SourceKind::Recording);
        let form = if same_day && is_of_a_day {
            "%H:%M:%S"
        } else {
            "%b %-d %H:%M:%S"
        };
        Some(at.strftime(form).to_string())
    }

    /// A moment of a list that may reach over days, always with its day: `Nov 21 13:42:18`, of another year than the
    /// source's end with that. Without a wall clock, from the start: `0:18`.
    pub(super) fn listed(&self, offset_s: Option<f64>, at: Option<Timestamp>) -> Option<String> {
        let Some(at) = at else {
            return Some(Span::from_secs_f64(offset_s?).as_clock());
        };
        let at = at.to_zoned(self.zone.clone());
        let end = self.end.map(|end| end.to_zoned(self.zone.clone()));
        let form = match end {
            Some(end) if end.year() != at.year() => "%Y-%m-%d %H:%M:%S",
            _ => "%b %-d %H:%M:%S",
        };
        Some(at.strftime(form).to_string())
    }

    /// From one moment to another: `0:11–0:34`.
    pub(super) fn range(
        &self,
        from: (f64, Option<Timestamp>),
        to: (f64, Option<Timestamp>),
    ) -> Option<String> {
        let (from, to) = (self.moment(from.0, from.1)?, self.moment(to.0, to.1)?);
        Some(if from == to {
            from
        } else {
            format!("{from}–{to}")
        })
    }

    /// When the look ended, with the zone's offset: `13:42:18 +09:00`; of a capture with its date.
    pub(super) fn until(&self) -> Option<String> {
        let end = self.end?.to_zoned(self.zone.clone());
        // A live look is now; a capture may be from any day.
        let form = match self.kind {
            SourceKind::Live => "%H:%M:%S %:z",
            _ => "%Y-%m-%d %H:%M:%S %:z",
        };
        Some(end.strftime(form).to_string())
    }
}
