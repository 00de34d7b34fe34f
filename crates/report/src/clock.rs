//! How times are written for readers: by the clock for a live host, a recording and a long capture; as printed for a
//! text; as offsets from the first sample for a short capture. A single sample at an unknown time has no time.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use units::Span;

use crate::Screen;
use crate::model::{Changed, EventEntry, Source, SourceKind};

/// How a source's times are written.
pub(crate) struct ReportClock<'a> {
    kind: SourceKind,
    zone: &'a TimeZone,
    begin: Option<Timestamp>,
    end: Option<Timestamp>,
    /// Offset of the first diagnosed sample from the source's first sample, which readers count from.
    before_s: f64,
    lasts_s: f64,
    /// When the wall clock was set, and by how many seconds.
    steps: Vec<(f64, f64)>,
}

/// Logs rarely name the zone of their times. Printed unchanged, a time can be found again in the log.
const AS_WRITTEN: &TimeZone = &TimeZone::UTC;

/// At most 200 changes of the zone are listed: a century of two a year. Only a broken clock makes a longer picture.
const CHANGES_MAX: usize = 200;

const DAY_S: f64 = 86_400.0;

/// Two readings at most this far apart count as one time: samples come each second, some a little late.
const ONE_TIME_S: f64 = 1.5;

/// A capture up to this length shows one load, so its times are offsets; a longer one is written by the clock.
const OFFSETS_UP_TO_S: f64 = 3_600.0;

/// Above this number of clock steps the count says nothing, and consecutive steps may be merged.
const COUNTED_STEPS: usize = 100;

fn later(at: Timestamp, seconds: f64) -> Option<Timestamp> {
    let by = SignedDuration::try_from_secs_f64(seconds).ok()?;
    at.checked_add(by).ok()
}

/// `back by 1 h`.
fn by_how_much(set_by_s: f64) -> String {
    let way = if set_by_s < 0.0 { "back" } else { "forward" };
    format!("{way} by {}", Span::from_secs_f64(set_by_s.abs()))
}

/// Rounds seconds to milliseconds, which is all a page needs.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

impl<'a> ReportClock<'a> {
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
            lasts_s: source.watched_s.as_secs_f64(),
            steps: source.clock_steps.iter().map(|step| (step.at_s, step.by_s)).collect(),
        }
    }

    /// Whether times are written by the wall clock instead of as offsets.
    pub(crate) fn is_of_the_wall(&self) -> bool {
        let is_short = self.before_s + self.lasts_s <= OFFSETS_UP_TO_S;
        self.begin.is_some() && !(self.kind == SourceKind::Capture && is_short)
    }

    /// Whether the day may be left out if all times are of one day.
    fn is_of_a_day(&self) -> bool {
        !self.is_of_any_day() && self.lasts_s <= DAY_S
    }

    /// Returns the wall-clock time at an offset from the first diagnosed sample; `None` where the source has none.
    pub(crate) fn wall(&self, offset_s: f64) -> Option<Timestamp> {
        later(self.begin?, offset_s + self.set_by(offset_s))
    }

    /// Returns by how many seconds the wall clock had been set up to this offset.
    fn set_by(&self, offset_s: f64) -> f64 {
        let until = self.steps.iter().filter(|(at, _)| *at <= offset_s);
        until.map(|(_, by)| by).sum()
    }

    /// Returns a time: `0:18`, or `13:42:18` by the clock; with its day if that is not the last sample's. `None` where
    /// the source is a single sample at an unknown time.
    pub(crate) fn moment(&self, offset_s: f64, at: Option<Timestamp>) -> Option<String> {
        self.moment_of(offset_s, at, !self.is_last_day(at))
    }

    fn moment_of(&self, offset_s: f64, at: Option<Timestamp>, names_day: bool) -> Option<String> {
        let Some(at) = at.filter(|_| self.is_of_the_wall()) else {
            return (self.lasts_s > 0.0).then(|| self.offset(offset_s));
        };
        let at = at.to_zoned(self.zone.clone());
        let form = if names_day { self.day_form(&at) } else { "%H:%M:%S" };
        Some(at.strftime(form).to_string())
    }

    /// Returns a time for a list that may span days, always with its day: `Nov 21 13:42:18`. Without a wall clock, the
    /// offset from the start: `0:18`.
    pub(crate) fn listed(&self, offset_s: Option<f64>, at: Option<Timestamp>) -> Option<String> {
        let Some(at) = at else {
            return Some(self.offset(offset_s?));
        };
        let at = at.to_zoned(self.zone.clone());
        Some(at.strftime(self.day_form(&at)).to_string())
    }

    /// How a time is written with its day.
    fn day_form(&self, at: &Zoned) -> &'static str {
        if self.last_year() == Some(at.year()) { "%b %-d %H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" }
    }

    /// Returns the last sample's year, which is left out of days. `None` if every day is written with its year.
    pub(crate) fn last_year(&self) -> Option<i16> {
        let end = self.end.filter(|_| !self.is_of_any_day())?;
        Some(end.to_zoned(self.zone.clone()).year())
    }

    /// Whether its times may be of any day: logs of another host are.
    fn is_of_any_day(&self) -> bool {
        matches!(self.kind, SourceKind::Text | SourceKind::Bundle)
    }

    /// Returns an event as a sentence. If the readings before and after it are apart, both times are given:
    /// `vm.swappiness changed from 60 to 1 between 23:46:41 and 23:46:51`. A list has the later time.
    pub(crate) fn sentence(&self, event: &EventEntry) -> String {
        let when = match event.dated {
            "between" => event
                .since_offset_s
                .zip(event.offset_s)
                .and_then(|(since, at)| self.between((since, event.since), (at, event.at))),
            "before" => Some("at that time or before".to_owned()),
            _ => None,
        };
        let first = match event.until_offset_s.or(event.until.map(|_| 0.0)) {
            Some(_) => ", first",
            None => "",
        };
        match when {
            Some(when) => format!("{}{first} {when}", event.text),
            None => event.text.clone(),
        }
    }

    /// Returns a changed setting as a sentence with its times: `23:46:51: vm.swappiness changed from 60 to 1`.
    pub(crate) fn changed(&self, change: &Changed) -> String {
        let since = change.since_s.map(|since_s| (since_s, change.since));
        let between = since.and_then(|since| self.between(since, (change.at_s, change.at)));
        if let Some(between) = between {
            return format!("{} {between}", change.text);
        }
        match (self.moment(change.at_s, change.at), since) {
            (Some(at), Some(_)) => format!("{at}: {}", change.text),
            (Some(at), None) => format!("{at} or before: {}", change.text),
            (None, _) => change.text.clone(),
        }
    }

    /// `between 23:46:41 and 23:46:51`; `None` where both are one time.
    fn between(
        &self,
        since: (f64, Option<Timestamp>),
        at: (f64, Option<Timestamp>),
    ) -> Option<String> {
        if at.0 - since.0 <= ONE_TIME_S {
            return None;
        }
        let days = [since.1, at.1].map(|at| at.map(|at| self.day(at)));
        let names_day = days[0] != days[1] || !self.is_last_day(at.1);
        let moment = |(offset_s, at)| self.moment_of(offset_s, at, names_day);
        Some(format!("between {} and {}", moment(since)?, moment(at)?))
    }

    /// Whether a time is of the last sample's day, so that the day can be left out.
    fn is_last_day(&self, at: Option<Timestamp>) -> bool {
        at.is_none_or(|at| self.last_day() == Some(self.day(at)))
    }

    /// Returns the local day, in days since 1970.
    fn day(&self, at: Timestamp) -> i64 {
        let local = at.as_second() + i64::from(self.zone.to_offset(at).seconds());
        local.div_euclid(86_400)
    }

    fn offset(&self, offset_s: f64) -> String {
        Span::from_secs_f64(offset_s + self.before_s).as_clock()
    }

    /// Returns the range from the first to the last sample: `2026-11-21 13:42:18 to 13:52:18 +09:00`; without a wall
    /// clock, or for a short capture, as offsets from the source's start: `0:11 to 0:34`.
    pub(crate) fn whole(&self) -> String {
        let ends = self.begin.zip(self.end);
        let Some((begin, end)) = ends.filter(|_| self.is_of_the_wall()) else {
            return if self.lasts_s > 0.0 {
                format!("{} to {}", self.offset(0.0), self.offset(self.lasts_s))
            } else {
                self.offset(0.0)
            };
        };
        if begin == end {
            return self.until().unwrap_or_default();
        }
        let local = |at: Timestamp| at.to_zoned(self.zone.clone());
        let (begin, end) = (local(begin), local(end));
        let form =
            if begin.date() == end.date() { "%H:%M:%S %:z" } else { "%Y-%m-%d %H:%M:%S %:z" };
        let (unset, set) = self.steps_sentence(begin.year());
        let begin = begin.strftime("%Y-%m-%d %H:%M:%S");
        format!("{begin}{unset} to {}{set}", end.strftime(form))
    }

    /// Returns what the two ends do not show about the clock: that it was not yet set at the first (a clock without a
    /// battery begins in 1970), or that it was set in between.
    fn steps_sentence(&self, begins: i16) -> (&'static str, String) {
        match self.steps[..] {
            [] => ("", String::new()),
            [(_, by)] if begins == 1970 && by > 0.0 => (" (clock not yet set)", String::new()),
            [(_, by)] => ("", format!(", the clock set {} in between", by_how_much(by))),
            _ => {
                let often = match self.steps.len() {
                    few @ ..=COUNTED_STEPS => format!("{few} times"),
                    _ => "again and again".to_owned(),
                };
                ("", format!(", the clock set {often} in between"))
            }
        }
    }

    /// As [`range`](Self::range), noting a set clock: `11:06:53–10:07:15 (clock set back by 1 h)`.
    pub(crate) fn stretch(
        &self,
        from: (f64, Option<Timestamp>),
        to: (f64, Option<Timestamp>),
    ) -> Option<String> {
        let range = self.range(from, to)?;
        let set_by = self.set_by(to.0) - self.set_by(from.0);
        Some(if self.is_of_the_wall() && set_by != 0.0 {
            format!("{range} (clock set {})", by_how_much(set_by))
        } else {
            range
        })
    }

    /// Returns the range between two times: `0:11–0:34`.
    pub(crate) fn range(
        &self,
        from: (f64, Option<Timestamp>),
        to: (f64, Option<Timestamp>),
    ) -> Option<String> {
        let names_day = !self.is_last_day(from.1) || !self.is_last_day(to.1);
        let moment = |(offset_s, at)| self.moment_of(offset_s, at, names_day);
        let (from, to) = (moment(from)?, moment(to)?);
        Some(if from == to { from } else { format!("{from}–{to}") })
    }

    /// Returns by how many seconds the readers' clock is ahead of UTC plus the time since the picture's start, as
    /// (second of the picture, seconds ahead). It changes with daylight saving time and when the clock is set.
    pub(crate) fn ahead(&self, begin_s: f64, span_s: f64) -> Vec<(f64, f64)> {
        let end_s = begin_s + span_s;
        let steps = self.steps.iter().map(|(at, _)| *at);
        let mut starts = vec![begin_s];
        starts.extend(steps.filter(|at| begin_s < *at && *at <= end_s));
        let ends = starts.iter().skip(1).copied().chain([end_s]);
        let mut ahead = Vec::new();
        for (start, end) in starts.iter().copied().zip(ends) {
            let set_by = self.set_by(start) - self.set_by(begin_s);
            let from = self.wall(start);
            let ends = from.zip(from.and_then(|from| later(from, end - start)));
            ahead.extend(ends.into_iter().flat_map(|(from, to)| {
                let zone = self.zone_ahead(from, to).into_iter();
                zone.map(move |(after, seconds)| (start - begin_s + after, seconds + set_by))
            }));
        }
        ahead.iter().map(|(at, by)| (to_millis(*at), to_millis(*by))).collect()
    }

    /// Returns by how many seconds the zone is ahead of UTC at `from` and after each change up to `to`.
    fn zone_ahead(&self, from: Timestamp, to: Timestamp) -> Vec<(f64, f64)> {
        let changes = self.zone.following(from).map(|change| change.timestamp());
        let within = changes.take_while(|at| *at <= to).take(CHANGES_MAX);
        let all = std::iter::once(from).chain(within);
        all.map(|at| {
            (from.duration_until(at).as_secs_f64(), f64::from(self.zone.to_offset(at).seconds()))
        })
        .collect()
    }

    /// Returns the last sample's day, which is left out of times. `None` if every time is written with its day.
    pub(crate) fn last_day(&self) -> Option<i64> {
        let end = self.end.filter(|_| self.is_of_a_day())?;
        Some(self.day(end))
    }

    /// Returns when the source ended, with the zone's offset: `13:42:18 +09:00`; with the date unless it is live.
    pub(crate) fn until(&self) -> Option<String> {
        let end = self.end?.to_zoned(self.zone.clone());
        // A live source ends now; a capture may be from any day.
        let form = match self.kind {
            SourceKind::Live => "%H:%M:%S %:z",
            _ => "%Y-%m-%d %H:%M:%S %:z",
        };
        Some(end.strftime(form).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(kind: SourceKind, lasts_s: f64, steps: Vec<(f64, f64)>) -> ReportClock<'static> {
        let begin: Timestamp = "2026-11-18T11:00:00Z".parse().unwrap();
        ReportClock {
            kind,
            zone: AS_WRITTEN,
            begin: Some(begin),
            end: later(begin, lasts_s),
            before_s: 0.0,
            lasts_s,
            steps,
        }
    }

    #[test]
    fn of_a_long_capture_the_hour_tells_and_of_a_short_one_the_time_since_its_start() {
        for (kind, lasts_s, expected) in [
            (SourceKind::Capture, 40.0, "0:30"),
            (SourceKind::Capture, 3_600.0, "0:30"),
            (SourceKind::Capture, 3_601.0, "11:00:30"),
            (SourceKind::Capture, 604_800.0, "Nov 18 11:00:30"),
            (SourceKind::Recording, 40.0, "11:00:30"),
        ] {
            let clock = clock(kind, lasts_s, Vec::new());
            let moment = clock.moment(30.0, clock.wall(30.0));
            assert_eq!(moment.as_deref(), Some(expected), "{kind:?} {lasts_s}");
        }
    }

    #[test]
    fn a_stretch_in_which_the_clock_was_set_says_so() {
        let clock = clock(SourceKind::Recording, 60.0, vec![(20.0, -3_600.0)]);
        let stretch = |from, to| clock.stretch((from, clock.wall(from)), (to, clock.wall(to)));
        assert_eq!(
            stretch(10.0, 30.0).as_deref(),
            Some("11:00:10–10:00:30 (clock set back by 60 min)")
        );
        assert_eq!(stretch(30.0, 40.0).as_deref(), Some("10:00:30–10:00:40"));
    }

    #[test]
    fn what_happened_between_two_readings_is_shown_with_both_unless_they_are_one_time() {
        let clock = clock(SourceKind::Recording, 600.0, Vec::new());
        let change = |since_s: Option<f64>| Changed {
            since: since_s.and_then(|since| clock.wall(since)),
            since_s,
            at: clock.wall(31.0),
            at_s: 31.0,
            setting: "vm.swappiness".to_owned(),
            from: "60".to_owned(),
            to: "1".to_owned(),
            text: "vm.swappiness changed from 60 to 1".to_owned(),
        };
        for (since, expected) in [
            (Some(21.0), "vm.swappiness changed from 60 to 1 between 11:00:21 and 11:00:31"),
            (Some(29.99), "11:00:31: vm.swappiness changed from 60 to 1"),
            (None, "11:00:31 or before: vm.swappiness changed from 60 to 1"),
        ] {
            assert_eq!(clock.changed(&change(since)), expected);
        }
    }

    #[test]
    fn how_often_the_clock_was_set_is_counted_while_that_tells_something() {
        for (often, expected) in [(3, "set 3 times"), (150, "set again and again")] {
            let steps = (0..often).map(|at| (f64::from(at), 5.0)).collect();
            let whole = clock(SourceKind::Recording, 600.0, steps).whole();
            assert!(whole.contains(expected), "{whole}");
        }
    }
}
