//! Times as people and tools print them: `date`, ISO 8601, a log's stamps, seconds since 1970; whole or without their date.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use units::{Span, WallClock};

use crate::looks::When;

/// A printed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Printed {
    /// Since 1970, or since the beginning of an unknown day or year.
    nanos: i64,
    known: Known,
}

/// How much of a time was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    All,
    AllButYear,
    TimeOfDay,
}

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

impl Printed {
    /// The time at the beginning of a line, and what stands behind it.
    pub(crate) fn leading(line: &str) -> Option<(Self, &str)> {
        let mut parts = Parts::default();
        let mut rest = line.trim_start();
        let mut taken = None;
        // A time has at most seven words: `Sat 21 Nov 2026 11:58:47 PM UTC`.
        for _ in 0..7 {
            let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            if !parts.take(word.trim_matches(|c| "[](),:|*=".contains(c))) {
                break;
            }
            rest = behind.trim_start();
            if parts.time.is_some() {
                taken = Some(rest);
            }
        }
        let behind = taken?;
        Some((
            parts.printed()?,
            behind.trim_start_matches([':', '|', ',', ']', ' ']),
        ))
    }

    /// The time that a line is, if it is nothing but a time with marks and a word before it at most: `=== 23:58:47 ===`,
    /// `Time: …`, `zzz ***Sat Nov 21 23:58:47 UTC 2026`.
    pub(crate) fn whole(line: &str) -> Option<Self> {
        if line.len() > 80 || !line.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let line = line.trim_matches(is_mark);
        let behind_a_word = || {
            let (word, rest) = line.split_once(' ')?;
            let is_word = word.len() <= 10 && word.starts_with(char::is_alphabetic);
            Self::alone(rest.trim_start_matches(is_mark)).filter(|_| is_word)
        };
        Self::alone(line).or_else(behind_a_word)
    }

    /// The time that this text is, but for marks behind it.
    fn alone(text: &str) -> Option<Self> {
        let (time, rest) = Self::leading(text)?;
        rest.trim_matches(is_mark).is_empty().then_some(time)
    }

    /// The time on a wall clock, where date and year are known.
    pub(crate) fn wall(self) -> Option<WallClock> {
        (self.known == Known::All).then(|| WallClock::from_unix_nanos(self.nanos))
    }

    /// How far it lies behind a beginning that all times share which were printed without their year; `None` for others.
    pub(crate) fn of_year(self) -> Option<Span> {
        let nanos = u64::try_from(self.nanos).ok()?;
        (self.known == Known::AllButYear).then(|| Span::from_nanos(nanos))
    }

    /// How it lies to a time that was printed alike; times of day are taken as of one day.
    pub(crate) fn compare(self, other: Self) -> Option<std::cmp::Ordering> {
        (self.known == other.known).then(|| self.nanos.cmp(&other.nanos))
    }

    /// How far it lies behind an earlier time that was printed alike. Times of day go on over midnight.
    pub(crate) fn since(self, earlier: Self) -> Option<Span> {
        let nanos = self.nanos.checked_sub(earlier.nanos)?;
        let nanos = match self.known {
            Known::TimeOfDay => nanos.rem_euclid(DAY),
            Known::All | Known::AllButYear => nanos,
        };
        let forward = u64::try_from(nanos).ok().filter(|n| *n > 0)?;
        (self.known == earlier.known).then(|| Span::from_nanos(forward))
    }
}

/// What may stand around a time: `=== … ===`, `[…]`.
fn is_mark(c: char) -> bool {
    c.is_ascii_punctuation() || c == ' '
}

/// When the looks of one block were taken: by the times printed beside them, else by the block's interval.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// The interval, where a command tells.
    pub(crate) every: Option<Span>,
    last: Option<Option<Printed>>,
}

impl Series {
    /// A series of that interval.
    pub(crate) fn of(every: Option<Span>) -> Self {
        Self { every, last: None }
    }

    /// When the next look was taken, and how long after the one before it. `None` where nothing tells: it does not
    /// belong to the series.
    pub(crate) fn next(&mut self, printed: Option<Printed>) -> Option<(When, Span)> {
        let wall = printed.and_then(Printed::wall);
        let Some(last) = self.last.replace(printed) else {
            return Some((wall.map_or(When::Unknown, When::At), Span::ZERO));
        };
        match (last, printed) {
            (Some(last), Some(now)) => {
                let after = now.since(last)?;
                Some((wall.map_or(When::After(after), When::At), after))
            }
            _ => self.every.map(|every| (When::After(every), every)),
        }
    }
}

/// What the words of a time say.
#[derive(Debug, Default)]
struct Parts {
    whole: Option<i64>,
    time: Option<Time>,
    date: Option<Date>,
    month: Option<i8>,
    day: Option<i8>,
    year: Option<i16>,
    is_pm: Option<bool>,
    has_zone: bool,
    offset: i64,
}

impl Parts {
    /// Takes a word that is part of a time.
    fn take(&mut self, word: &str) -> bool {
        if word.is_empty() || word.len() > 40 || self.whole.is_some() {
            return false;
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return self.take_number(word);
        }
        if let Some(month) = name_in(word, &MONTHS) {
            return set(&mut self.month, month);
        }
        if name_in(word, &WEEKDAYS).is_some() {
            return self.time.is_none();
        }
        let is_after_time = self.time.is_some();
        match word {
            "AM" | "am" => is_after_time && set(&mut self.is_pm, false),
            "PM" | "pm" => is_after_time && set(&mut self.is_pm, true),
            _ => {
                is_after_time
                    && !std::mem::replace(&mut self.has_zone, true)
                    && self.take_zone(word)
            }
        }
    }

    fn take_number(&mut self, word: &str) -> bool {
        if word.contains(':') {
            return self.take_time(word);
        }
        if word.contains(['-', '/']) {
            return date(word).is_some_and(|date| set(&mut self.date, date));
        }
        if let Some(nanos) = epoch(word) {
            self.time = Some(Time::midnight());
            return self.date.is_none() && set(&mut self.whole, nanos);
        }
        match (word.len(), word.parse::<i16>()) {
            (1 | 2, Ok(day @ 1..=31)) => {
                self.time.is_none() && set(&mut self.day, i8::try_from(day).unwrap_or(1))
            }
            (4, Ok(year @ 1990..=2199)) => self.month.is_some() && set(&mut self.year, year),
            _ => false,
        }
    }

    /// `23:58:47.5`, `2026-11-21T23:58:47Z`.
    fn take_time(&mut self, word: &str) -> bool {
        if self.time.is_some() {
            return false;
        }
        if let Ok(instant) = word.parse::<jiff::Timestamp>() {
            self.whole = i64::try_from(instant.as_nanosecond()).ok();
            self.time = Some(Time::midnight());
            return self.whole.is_some();
        }
        if let Ok(civil) = word.parse::<DateTime>() {
            self.time = Some(civil.time());
            return set(&mut self.date, civil.date());
        }
        let word = word.replace(',', ".");
        // The hour of a clock with AM and PM may have one digit.
        let padded = if word.find(':') == Some(1) {
            format!("0{word}")
        } else {
            word
        };
        self.time = padded
            .parse()
            .ok()
            .filter(|_| padded.matches(':').count() == 2);
        self.time.is_some()
    }

    /// `+0900`, `UTC`. Zones by name are left out: differences stay right.
    fn take_zone(&mut self, word: &str) -> bool {
        if let Some(digits) = word.strip_prefix(['+', '-']) {
            let digits = digits.replace(':', "");
            let hours = digits.get(..2).and_then(|d| d.parse::<i64>().ok());
            let minutes = digits.get(2..4).map_or(Some(0), |d| d.parse::<i64>().ok());
            let (Some(hours @ 0..=14), Some(minutes @ 0..=59)) = (hours, minutes) else {
                return false;
            };
            let ahead = (hours * 3600 + minutes * 60) * SECOND;
            self.offset = if word.starts_with('-') { -ahead } else { ahead };
            return true;
        }
        (2..=5).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_uppercase())
    }

    fn printed(&self) -> Option<Printed> {
        if let Some(nanos) = self.whole {
            return Some(Printed {
                nanos,
                known: Known::All,
            });
        }
        let mut time = self.time?;
        if let Some(is_pm) = self.is_pm {
            let hour = time.hour() % 12 + if is_pm { 12 } else { 0 };
            time = time.with().hour(hour).build().ok()?;
        }
        let (date, known) = match (self.date, self.month, self.day) {
            (Some(date), ..) => (date, Known::All),
            (None, Some(month), Some(day)) => {
                // 2000 has all days that a year can have.
                let date = Date::new(self.year.unwrap_or(2000), month, day).ok()?;
                (
                    date,
                    if self.year.is_some() {
                        Known::All
                    } else {
                        Known::AllButYear
                    },
                )
            }
            (None, None, None) => (Date::new(1970, 1, 1).ok()?, Known::TimeOfDay),
            _ => return None,
        };
        let zoned = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
        let nanos = i64::try_from(zoned.timestamp().as_nanosecond()).ok()?;
        Some(Printed {
            nanos: nanos.checked_sub(self.offset)?,
            known,
        })
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The number from 1 of a name, short or written out.
fn name_in(word: &str, names: &[&str]) -> Option<i8> {
    let short = word.get(..3)?;
    let is_name = word.len() <= 9 && word.bytes().all(|b| b.is_ascii_alphabetic());
    let at = names.iter().position(|name| *name == short)?;
    is_name.then(|| i8::try_from(at + 1).ok())?
}

/// Sets what was not set.
fn set<T>(slot: &mut Option<T>, value: T) -> bool {
    let is_first = slot.is_none();
    slot.get_or_insert(value);
    is_first
}

/// `2026-11-21`, `2026/11/21`, `11/21/2026`, `21/11/2026`: of the last two, the one that is a date.
fn date(word: &str) -> Option<Date> {
    let mut numbers = word.split(['-', '/']).map(str::parse::<i16>);
    let (a, b, c) = (
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
    );
    let of = |year: i16, month: i16, day: i16| {
        let year = if year < 100 { year + 2000 } else { year };
        let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        Date::new(year, month, day)
            .ok()
            .filter(|_| (1990..2200).contains(&year))
    };
    let date = if a > 31 {
        of(a, b, c)
    } else {
        of(c, a, b).or_else(|| of(c, b, a))
    };
    date.filter(|_| numbers.next().is_none())
}

/// Seconds since 1970 with ten digits: 2001 to 2096; with a fraction or not.
fn epoch(word: &str) -> Option<i64> {
    let (seconds, fraction) = word.split_once('.').unwrap_or((word, ""));
    let seconds: i64 = seconds.parse().ok().filter(|_| seconds.len() == 10)?;
    let is_number = fraction.bytes().all(|b| b.is_ascii_digit()) && fraction.len() <= 9;
    let nanos: i64 = format!("{fraction:0<9}")
        .parse()
        .ok()
        .filter(|_| is_number)?;
    (1_000_000_000..4_000_000_000)
        .contains(&seconds)
        .then_some(seconds * SECOND + nanos)
}

#[cfg(test)]
mod tests;
