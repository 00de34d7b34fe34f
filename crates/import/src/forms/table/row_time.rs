//! The times of the rows of a table: in its first columns, or by an interval in the heading.

use std::cmp::Ordering;

use units::{Span, WallClock};

use crate::builder::SnapshotTime;
use crate::text::{prompt, times};

/// The meaning of a column of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TimeColumn {
    /// Date and time, seconds since 1970, or a time of day.
    Time,
    /// Time since some start, in units of this many seconds.
    Elapsed(f64),
}

/// The time in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowTime {
    Wall(WallClock),
    /// Seconds since midnight.
    OfDay(f64),
    /// Seconds since an unknown start.
    Since(f64),
}

const DAY: f64 = 86_400.0;

impl TimeColumn {
    /// The meaning of a column with this head.
    pub(super) fn from_head(head: &str) -> Option<Self> {
        let lower = head.to_ascii_lowercase();
        let (base, unit) =
            match lower.trim_end_matches([')', ']']).rsplit_once(['_', '(', '[', ' ', '-']) {
                Some((base, unit)) => {
                    (base.trim_matches(['_', '(', '[', ' ']), times::seconds_in(unit))
                }
                None => (lower.as_str(), None),
            };
        let is_since = |name: &str| {
            matches!(
                name,
                "uptime"
                    | "elapsed"
                    | "t"
                    | "time"
                    | "since"
                    | "offset"
                    | "at"
                    | "after"
                    | "up"
                    | "runtime"
                    | "duration"
            )
        };
        match (lower.as_str(), unit) {
            (_, Some(unit)) if is_since(base) => Some(Self::Elapsed(unit)),
            ("time" | "date" | "timestamp" | "ts" | "datetime" | "epoch" | "when" | "clock", _) => {
                Some(Self::Time)
            }
            (
                "unixtime" | "unix_time" | "epoch_s" | "local_time" | "time_utc" | "utc"
                | "date_time" | "date time",
                _,
            ) => Some(Self::Time),
            ("uptime" | "elapsed" | "t" | "runtime" | "duration", _) => Some(Self::Elapsed(1.0)),
            // Of minutes and weeks a letter alone is something else.
            ("m" | "w", _) => None,
            (name, _) => times::seconds_in(name).map(Self::Elapsed),
        }
    }

    /// Reads a cell.
    pub(super) fn read(self, cell: &str) -> Option<RowTime> {
        let number =
            || cell.replace(',', ".").parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        match self {
            Self::Elapsed(unit) => match number() {
                Some(n) if n < 1e12 => Some(RowTime::Since(n * unit)),
                _ => of_day(cell).or_else(|| times::elapsed(cell)).map(RowTime::Since),
            },
            Self::Time => match number() {
                // Seconds, or milliseconds, since 1970; else since some start.
                Some(n) if (1e9..4e9).contains(&n) => wall(n),
                Some(n) if (1e12..4e12).contains(&n) => wall(n / 1000.0),
                Some(n) if n < 1e9 => Some(RowTime::Since(n)),
                Some(_) => None,
                None => of_day(cell)
                    .map(RowTime::OfDay)
                    .or_else(|| prompt::time(cell).map(RowTime::Wall))
                    .or_else(|| times::elapsed(cell).map(RowTime::Since)),
            },
        }
    }
}

fn wall(seconds: f64) -> Option<RowTime> {
    // A float has microseconds of this century.
    #[allow(clippy::cast_possible_truncation)] // below 4e9 s
    let nanos = (seconds * 1e6).round() as i64;
    Some(RowTime::Wall(WallClock::from_unix_nanos(nanos.checked_mul(1000)?)))
}

/// `23:58:47`, `23:58`, `23:58:47.5`.
fn of_day(cell: &str) -> Option<f64> {
    let mut parts = cell.split(':');
    let hours: f64 = parts.next()?.parse().ok()?;
    let minutes: f64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next().map_or(Some(0.0), |part| part.parse().ok())?;
    let is_time = parts.next().is_none()
        && (0.0..1e6).contains(&hours)
        && (0.0..60.0).contains(&minutes)
        && (0.0..61.0).contains(&seconds);
    is_time.then_some(hours * 3600.0 + minutes * 60.0 + seconds)
}

/// The time of a row, and the seconds since the row before it, if known.
pub(super) fn when(before: Option<RowTime>, now: Option<RowTime>) -> (SnapshotTime, Option<f64>) {
    let between = match (before, now) {
        (Some(RowTime::Wall(a)), Some(RowTime::Wall(b))) => {
            let nanos = b.unix_nanos().saturating_sub(a.unix_nanos());
            #[allow(clippy::cast_precision_loss)] // an interval
            Some(nanos as f64 / 1e9)
        }
        (Some(RowTime::Since(a)), Some(RowTime::Since(b))) => Some(b - a),
        // Past midnight. More than half a day means that the rows are not in order.
        (Some(RowTime::OfDay(a)), Some(RowTime::OfDay(b))) => {
            Some((b - a).rem_euclid(DAY)).filter(|s| *s <= DAY / 2.0)
        }
        _ => None,
    };
    // If the clock goes back, it is another boot or another series.
    let between = between.filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
    let when = match (now, between) {
        (Some(RowTime::Wall(wall)), Some(_)) => SnapshotTime::At(wall),
        (Some(RowTime::Wall(wall)), None) if before.is_none() => SnapshotTime::At(wall),
        (_, Some(seconds)) => SnapshotTime::After(Span::from_secs_f64(seconds)),
        _ => SnapshotTime::Unknown,
    };
    (when, between)
}

/// Compares the times of two rows, if they are of the same kind.
pub(super) fn compare(a: Option<RowTime>, b: Option<RowTime>) -> Option<Ordering> {
    match (a?, b?) {
        (RowTime::Wall(a), RowTime::Wall(b)) => Some(a.unix_nanos().cmp(&b.unix_nanos())),
        (RowTime::OfDay(a), RowTime::OfDay(b)) | (RowTime::Since(a), RowTime::Since(b)) => {
            a.partial_cmp(&b)
        }
        _ => None,
    }
}

/// The interval in a heading: `every 10 s`, `interval 60s`, `each 5 minutes`.
pub(super) fn interval_in(heading: &str) -> Option<f64> {
    let words: Vec<&str> =
        heading.split([' ', '(', ')', ',', '=']).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|word| matches!(*word, "every" | "interval" | "each"))?;
    let number = words.get(at + 1)?;
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = number.strip_suffix(unit)?.parse().ok()?;
    let unit = if unit.is_empty() { words.get(at + 2)? } else { unit };
    Some(value * times::seconds_in(unit)?).filter(|s| *s > 0.0 && *s < 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_times_are_recognised() {
        for (head, clock) in [
            ("time", Some(TimeColumn::Time)),
            ("Timestamp", Some(TimeColumn::Time)),
            ("uptime_min", Some(TimeColumn::Elapsed(60.0))),
            ("uptime_s", Some(TimeColumn::Elapsed(1.0))),
            ("t_s", Some(TimeColumn::Elapsed(1.0))),
            ("time (min)", Some(TimeColumn::Elapsed(60.0))),
            ("hours", Some(TimeColumn::Elapsed(3600.0))),
            ("sec", Some(TimeColumn::Elapsed(1.0))),
            ("MemFree", None),
            ("min_free", None),
        ] {
            assert_eq!(TimeColumn::from_head(head), clock, "{head}");
        }
    }

    #[test]
    fn times_in_cells_are_read() {
        let wall = Some(RowTime::Wall(WallClock::from_unix_nanos(1_795_305_527_000_000_000)));
        for cell in ["1795305527", "1795305527000", "2026-11-21T23:58:47Z", "2026-11-21 23:58:47"] {
            assert_eq!(TimeColumn::Time.read(cell), wall, "{cell}");
        }
        assert_eq!(TimeColumn::Time.read("23:58:47"), Some(RowTime::OfDay(86_327.0)));
        assert_eq!(TimeColumn::Elapsed(60.0).read("57"), Some(RowTime::Since(3420.0)));
        for cell in ["", "-1", "x", "NaN", "inf", "1e300", "99999999999999999999"] {
            assert_eq!(TimeColumn::Time.read(cell), None, "{cell}");
        }
    }

    #[test]
    fn time_continues_past_midnight_and_does_not_go_back() {
        let day = |s| Some(RowTime::OfDay(s));
        assert_eq!(when(day(86_390.0), day(5.0)).1, Some(15.0));
        assert_eq!(when(day(500.0), day(400.0)), (SnapshotTime::Unknown, None));
        let since = |s| Some(RowTime::Since(s));
        assert_eq!(when(since(57.0), since(1.0)), (SnapshotTime::Unknown, None));
        assert_eq!(when(None, since(1.0)), (SnapshotTime::Unknown, None));
    }

    #[test]
    fn intervals_are_found_in_headings() {
        for (heading, seconds) in [
            ("series (MiB, every 10 s)", Some(10.0)),
            ("memory, interval=60s", Some(60.0)),
            ("every 5 minutes", Some(300.0)),
            ("atop (10 s)", None),
            ("every host", None),
        ] {
            assert_eq!(interval_in(heading), seconds, "{heading}");
        }
    }
}
