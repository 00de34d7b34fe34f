//! Times for people: a live host's in its own clock, a capture's as offsets from its first sample.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use units::Span;

use super::Screen;
use crate::model::{Source, SourceKind};

/// How a source's times are written.
pub(super) struct Clock<'a> {
    live: bool,
    zone: &'a TimeZone,
    end: Option<Timestamp>,
}

impl<'a> Clock<'a> {
    pub(super) fn new(source: &Source, screen: &'a Screen) -> Self {
        Self {
            live: source.kind == SourceKind::Live,
            zone: &screen.zone,
            end: source.to,
        }
    }

    /// A moment: `0:18`, or `13:42:18` live; with the day where that is not the last sample's.
    pub(super) fn moment(&self, offset_s: f64, at: Option<Timestamp>) -> String {
        match at.filter(|_| self.live) {
            Some(at) => {
                let at = at.to_zoned(self.zone.clone());
                let same_day = self
                    .end
                    .is_none_or(|end| end.to_zoned(self.zone.clone()).date() == at.date());
                let form = if same_day {
                    "%H:%M:%S"
                } else {
                    "%b %-d %H:%M:%S"
                };
                at.strftime(form).to_string()
            }
            None => Span::from_secs_f64(offset_s).as_clock(),
        }
    }

    /// From one moment to another: `0:11–0:34`.
    pub(super) fn range(
        &self,
        from: (f64, Option<Timestamp>),
        to: (f64, Option<Timestamp>),
    ) -> String {
        let (from, to) = (self.moment(from.0, from.1), self.moment(to.0, to.1));
        if from == to {
            from
        } else {
            format!("{from}–{to}")
        }
    }

    /// When the look ended, with the zone's offset: `13:42:18 +09:00`; of a capture with its date.
    pub(super) fn until(&self) -> Option<String> {
        let end = self.end?.to_zoned(self.zone.clone());
        // A live look is now; a capture may be from any day.
        let form = match self.live {
            true => "%H:%M:%S %:z",
            false => "%Y-%m-%d %H:%M:%S %:z",
        };
        Some(end.strftime(form).to_string())
    }
}
