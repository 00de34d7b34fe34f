//! Printed times: `date`, ISO 8601, stamps of logs, seconds since 1970; with or without a date.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use units::{Span, WallClock};

use crate::builder::SnapshotTime;

/// A printed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrintedTime {
    /// Since 1970, or since the start of an unknown day or year.
    nanos: i64,
    precision: Precision,
}

/// Which parts of a time were printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    All,
    AllButYear,
    TimeOfDay,
}

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

impl PrintedTime {
    /// The time at the start of a line, and the rest of the line.
    pub(crate) fn leading(line: &str) -> Option<(Self, &str)> {
        let mut parts = TimeWords::default();
        let mut rest = line.trim_start();
        let mut taken = None;
        // `Sat 21 Nov 2026 11:58:47 PM UTC` has seven words.
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
        Some((parts.printed()?, behind.trim_start_matches([':', '|', ',', ']', ' '])))
    }

    /// The time in a line that has nothing else but punctuation and at most a word before it: `=== 23:58:47 ===`,
    /// `Time: …`, `zzz ***Sat Nov 21 23:58:47 UTC 2026`.
    pub(crate) fn whole(line: &str) -> Option<Self> {
        // Seconds since 1970 have ten digits, other times a colon.
        let count = |is_it: fn(&u8) -> bool| line.bytes().filter(is_it).count();
        let may_be_time = || line.contains(':') || count(u8::is_ascii_digit) >= 10;
        // A long word, `Wednesday`, `September`, `UTC`.
        const LETTERS_MAX: usize = 40;
        if line.len() > 80 || !may_be_time() || count(u8::is_ascii_alphabetic) > LETTERS_MAX {
            return None;
        }
        let line = line.trim_matches(is_punctuation);
        if !may_end_time(line) {
            return None;
        }
        let behind_a_word = || {
            let (word, rest) = line.split_once(' ')?;
            let is_word = word.len() <= 10 && word.starts_with(char::is_alphabetic);
            Self::alone(rest.trim_start_matches(is_punctuation)).filter(|_| is_word)
        };
        Self::alone(line).or_else(behind_a_word)
    }

    /// The time in a text that has nothing else but punctuation after it.
    fn alone(text: &str) -> Option<Self> {
        let (time, rest) = Self::leading(text)?;
        let rest = rest.trim_matches(is_punctuation);
        // `1795305100.002 2026-11-21 23:58:47` of pt-stalk.
        let is_again = || {
            text.starts_with(|c: char| c.is_ascii_digit())
                && Self::leading(rest).is_some_and(|(_, rest)| rest.is_empty())
        };
        (rest.is_empty() || is_again()).then_some(time)
    }

    /// The wall-clock time, if date and year are known.
    pub(crate) fn wall(self) -> Option<WallClock> {
        (self.precision == Precision::All).then(|| WallClock::from_unix_nanos(self.nanos))
    }

    /// The time since the start of the year, if only the year is unknown.
    pub(crate) fn since_new_year(self) -> Option<Span> {
        let nanos = u64::try_from(self.nanos).ok()?;
        (self.precision == Precision::AllButYear).then(|| Span::from_nanos(nanos))
    }

    /// Compares two times of the same precision; times of day as of one day.
    pub(crate) fn compare(self, other: Self) -> Option<std::cmp::Ordering> {
        (self.precision == other.precision).then(|| self.nanos.cmp(&other.nanos))
    }

    /// The time since an earlier time of the same precision. Times of day continue over midnight.
    pub(crate) fn since(self, earlier: Self) -> Option<Span> {
        let nanos = self.nanos.checked_sub(earlier.nanos)?;
        let nanos = match self.precision {
            Precision::TimeOfDay => nanos.rem_euclid(DAY),
            Precision::All | Precision::AllButYear => nanos,
        };
        let forward = u64::try_from(nanos).ok().filter(|n| *n > 0)?;
        (self.precision == earlier.precision).then(|| Span::from_nanos(forward))
    }
}

/// A unit of time in seconds.
pub(crate) fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "msec" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// The time since some start, in seconds: `10h`, `2 hours`, `1h 30m`, `after 3 days`, `Day 3`, `at start`.
pub(crate) fn elapsed(text: &str) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = ["after ", "at ", "t+", "+", "~"]
        .iter()
        .fold(lower.as_str(), |text, word| text.strip_prefix(word).unwrap_or(text));
    if matches!(lower, "start" | "startup" | "boot" | "begin" | "beginning" | "baseline") {
        return Some(0.0);
    }
    if let Some((unit, number)) = lower.split_once(' ')
        && let (Some(seconds), Ok(number)) = (seconds_in(unit), number.parse::<u16>())
    {
        return Some(seconds * f64::from(number));
    }
    let mut sum = 0.0;
    let mut rest = lower;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, behind) = rest.split_at(digits);
        let behind = behind.trim_start();
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(letters.unwrap_or(behind.len()));
        let number: f64 = number.parse().ok()?;
        sum += number * seconds_in(unit)?;
        rest = behind.trim_start_matches([' ', ',']);
    }
    (!lower.is_empty() && sum < 1e9).then_some(sum)
}

/// Whether a line ends as a time does: with a number of a year or a day, a time, a date, a zone, AM or PM. Most lines that
/// begin with a time do not.
fn may_end_time(line: &str) -> bool {
    const ZONE_LEN_MAX: usize = 5;
    let last = line.rsplit(' ').next().unwrap_or_default();
    let digits = last.bytes().filter(u8::is_ascii_digit).count();
    if digits == last.len() {
        return digits != 3;
    }
    digits > 0 || (last.len() <= ZONE_LEN_MAX && last.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Allowed around a time: `=== … ===`, `[…]`.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c == ' '
}

/// The times of the snapshots in a block: those printed, else by the interval.
#[derive(Debug, Default)]
pub(crate) struct SampleTimes {
    /// The interval, if known from the command.
    pub(crate) every: Option<Span>,
    last: Option<Option<PrintedTime>>,
}

impl SampleTimes {
    /// Starts a series.
    pub(crate) fn new(every: Option<Span>) -> Self {
        Self { every, last: None }
    }

    /// The time of the next snapshot, and the time since the one before. `None` if unknown: it is of another series.
    pub(crate) fn next(&mut self, printed: Option<PrintedTime>) -> Option<(SnapshotTime, Span)> {
        let wall = printed.and_then(PrintedTime::wall);
        let Some(last) = self.last.replace(printed) else {
            return Some((wall.map_or(SnapshotTime::Unknown, SnapshotTime::At), Span::ZERO));
        };
        match (last, printed) {
            (Some(last), Some(now)) => {
                let after = now.since(last)?;
                Some((wall.map_or(SnapshotTime::After(after), SnapshotTime::At), after))
            }
            _ => self.every.map(|every| (SnapshotTime::After(every), every)),
        }
    }
}

/// The words of a time.
#[derive(Debug, Default)]
struct TimeWords {
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

impl TimeWords {
    /// Adds a word. Returns whether it is part of a time.
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
        // With AM and PM the hour may have one digit.
        let padded = if word.find(':') == Some(1) { format!("0{word}") } else { word };
        self.time = padded.parse().ok().filter(|_| padded.matches(':').count() == 2);
        self.time.is_some()
    }

    /// `+0900`, `UTC`. Names of zones are ignored: differences are right.
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

    fn printed(&self) -> Option<PrintedTime> {
        if let Some(nanos) = self.whole {
            return Some(PrintedTime { nanos, precision: Precision::All });
        }
        let mut time = self.time?;
        if let Some(is_pm) = self.is_pm {
            let hour = time.hour() % 12 + if is_pm { 12 } else { 0 };
            time = time.with().hour(hour).build().ok()?;
        }
        let (date, precision) = match (self.date, self.month, self.day) {
            (Some(date), ..) => (date, Precision::All),
            (None, Some(month), Some(day)) => {
                // A leap year.
                let date = Date::new(self.year.unwrap_or(2000), month, day).ok()?;
                let precision = match self.year {
                    Some(_) => Precision::All,
                    None => Precision::AllButYear,
                };
                (date, precision)
            }
            (None, None, None) => (Date::new(1970, 1, 1).ok()?, Precision::TimeOfDay),
            _ => return None,
        };
        let zoned = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
        let nanos = i64::try_from(zoned.timestamp().as_nanosecond()).ok()?;
        Some(PrintedTime { nanos: nanos.checked_sub(self.offset)?, precision })
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The number, from 1, of a name or its abbreviation.
fn name_in(word: &str, names: &[&str]) -> Option<i8> {
    let short = word.get(..3)?;
    let is_name = word.len() <= 9 && word.bytes().all(|b| b.is_ascii_alphabetic());
    let at = names.iter().position(|name| *name == short)?;
    is_name.then(|| i8::try_from(at + 1).ok())?
}

/// Sets an empty slot. Returns whether it was empty.
fn set<T>(slot: &mut Option<T>, value: T) -> bool {
    let is_first = slot.is_none();
    slot.get_or_insert(value);
    is_first
}

/// `2026-11-21`, `2026/11/21`, `11/21/2026`, `21/11/2026`. Month first if both orders are possible.
fn date(word: &str) -> Option<Date> {
    let mut numbers = word.split(['-', '/']).map(str::parse::<i16>);
    let (a, b, c) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    let from_ymd = |year: i16, month: i16, day: i16| {
        let year = if year < 100 { year + 2000 } else { year };
        let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        Date::new(year, month, day).ok().filter(|_| (1990..2200).contains(&year))
    };
    let date =
        if a > 31 { from_ymd(a, b, c) } else { from_ymd(c, a, b).or_else(|| from_ymd(c, b, a)) };
    date.filter(|_| numbers.next().is_none())
}

/// Seconds since 1970 with ten digits (2001 to 2096), with or without a fraction. In nanoseconds.
fn epoch(word: &str) -> Option<i64> {
    let (seconds, fraction) = word.split_once('.').unwrap_or((word, ""));
    let seconds: i64 = seconds.parse().ok().filter(|_| seconds.len() == 10)?;
    let is_number = fraction.bytes().all(|b| b.is_ascii_digit()) && fraction.len() <= 9;
    let nanos: i64 = format!("{fraction:0<9}").parse().ok().filter(|_| is_number)?;
    (1_000_000_000..4_000_000_000).contains(&seconds).then(|| seconds * SECOND + nanos)
}

#[cfg(test)]
mod tests;
