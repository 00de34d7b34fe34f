//! Times that people type after `--since`, `--until` and `--at`: `yesterday 01:30`, `2h ago`, `02:00`, `mon 14:00`,
//! `2026-11-21 14:00`, RFC 3339.
//!
//! A time without a zone is local. If the clock shows it twice, as summer time ends, it is the first; if the clock
//! skips it, as summer time begins, it is moved on by the skipped time. A time of day without a date is its latest
//! occurrence in the past, or the next one if that is at most five minutes ahead. `+30s` is after the start of the source,
//! `-30s` before its end.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{SignedDuration, Span, Timestamp, ToSpan, Zoned};
use timeline::TimePoint;
use units::WallClock;

/// The accepted forms, for errors.
const FORMS: &str = "write `2h ago`, `02:00`, `yesterday 01:30` or `2026-11-21 14:00`";

/// A time of day up to this far ahead is the one to come: people write the end of what they watch, and clocks differ. An
/// engineering choice, the same time as `--at` covers on either side.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(5);

/// Parses a time expression, relative to now.
///
/// # Errors
/// A sentence that quotes the text and names the forms that are understood.
pub fn parse(text: &str) -> Result<TimePoint, String> {
    at(text, &Zoned::now())
}

fn at(text: &str, now: &Zoned) -> Result<TimePoint, String> {
    let typed = text.trim();
    if typed.is_empty() {
        return Err(format!("no time is given; {FORMS}"));
    }
    let lower = typed.to_lowercase();
    let lower = lower.as_str();
    if let Some(after) = lower.strip_prefix('+') {
        let after =
            length(after).ok_or_else(|| format!("`{text}` is no time after a start; {FORMS}"))?;
        return Ok(TimePoint::AfterStart(after));
    }
    if let Some(before) = lower.strip_prefix('-').filter(|before| !before.ends_with("ago")) {
        let before =
            length(before).ok_or_else(|| format!("`{text}` is no time before an end; {FORMS}"))?;
        return Ok(TimePoint::BeforeEnd(before));
    }
    // The case of units matters: `5M` might be months.
    let found = relative(typed, now)
        .or_else(|| day_and_time(lower, now))
        .or_else(|| unix(lower))
        // `T` and `Z` are read in either case, but zones in brackets are not.
        .or_else(|| absolute(typed, now));
    let found = found.ok_or_else(|| format!("`{text}` is no time; {FORMS}"))?;
    let nanos = i64::try_from(found.as_nanosecond());
    let nanos = nanos.map_err(|_| format!("`{text}` is out of range"))?;
    Ok(TimePoint::At(WallClock::from_unix_nanos(nanos)))
}

/// `1m30s`, `90`, or `1:30`, as a report writes times from the start.
fn length(text: &str) -> Option<units::Span> {
    let seconds = match (text.parse::<f64>(), clock_parts(text)) {
        (Ok(seconds), _) => seconds,
        (_, Some(seconds)) => seconds,
        _ => text.parse::<SignedDuration>().ok()?.as_secs_f64(),
    };
    let is_sane = seconds.is_finite() && (0.0..1e10).contains(&seconds);
    is_sane.then(|| units::Span::from_secs_f64(seconds))
}

/// `m:ss` or `h:mm:ss`, in seconds.
fn clock_parts(text: &str) -> Option<f64> {
    let parts: Vec<u32> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let is_clock = (2..=3).contains(&parts.len()) && parts[1..].iter().all(|part| *part < 60);
    is_clock.then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + f64::from(*part)))
}

/// `now`, `2h`, `2h ago`, `1 day 3h ago`: a time before now.
fn relative(text: &str, now: &Zoned) -> Option<Timestamp> {
    if text.eq_ignore_ascii_case("now") {
        return Some(now.timestamp());
    }
    // As in other tools, `2h` means 2 h ago. A number alone is rejected: it might be an hour, or a year.
    let is_length = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_alphabetic());
    if !(text.starts_with('-') || is_length) {
        return None;
    }
    let span: Span =
        text.trim_start_matches('-').trim_end_matches("ago").trim_end().parse().ok()?;
    Some(now.checked_sub(span.abs()).ok()?.timestamp())
}

/// A day, a time of day, or both: `today`, `02:00`, `yesterday 01:30`, `mon 14:00`, `nov 21 14:00`.
fn day_and_time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let (day, time) = match text.rsplit_once(' ') {
        Some((day, last)) if last.contains(':') => (day.trim(), Some(time_of_day(last)?)),
        None if text.contains(':') => ("", Some(time_of_day(text)?)),
        _ => (text, None),
    };
    let local = |date: Date| in_zone(date.to_datetime(time.unwrap_or(Time::midnight())), now);
    let today = now.date();
    let soon = now.checked_add(AHEAD_MAX).ok()?.timestamp();
    let past = |date: Date, step: Span| {
        let at = local(date)?;
        if at > soon { local(date.checked_sub(step).ok()?) } else { Some(at) }
    };
    match day {
        "" => past(today, 1.day()),
        "today" => local(today),
        "yesterday" => local(today.yesterday().ok()?),
        _ => match (weekday(day), month_and_day(day, now)) {
            (Some(weekday), _) => {
                let since = today.weekday().since(weekday);
                past(today.checked_sub(i32::from(since).days()).ok()?, 7.days())
            }
            (None, Some(date)) => past(date, 1.year()),
            (None, None) => None,
        },
    }
}

/// `02:00`, `2:00:15`.
fn time_of_day(text: &str) -> Option<Time> {
    ["%H:%M:%S", "%H:%M"].iter().find_map(|form| Time::strptime(form, text).ok())
}

fn weekday(text: &str) -> Option<Weekday> {
    const NAMES: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let found = NAMES.iter().find(|(name, _)| text.len() >= 3 && name.starts_with(text));
    found.map(|(_, weekday)| *weekday)
}

/// `nov 21`, as reports write days of this year.
fn month_and_day(text: &str, now: &Zoned) -> Option<Date> {
    let dated = format!("{text} {}", now.year());
    Date::strptime("%b %d %Y", dated).ok()
}

/// `@1795240800`, with a fraction or without.
fn unix(text: &str) -> Option<Timestamp> {
    let seconds = text.strip_prefix('@')?;
    Timestamp::strptime("%s%.f", seconds).ok()
}

/// A time with a zone or an offset, or a local date with or without a time.
fn absolute(text: &str, now: &Zoned) -> Option<Timestamp> {
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| text.parse::<Zoned>().ok().map(|zoned| zoned.timestamp()))
        .or_else(|| in_zone(text.parse::<DateTime>().ok()?, now))
}

fn in_zone(civil: DateTime, now: &Zoned) -> Option<Timestamp> {
    // jiff's "compatible" rule: a skipped time is moved on, of two the first is taken.
    Some(civil.to_zoned(now.time_zone().clone()).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday noon in Tokyo, unless a test names another zone.
    const NOW: &str = "2026-11-22T12:00:00+09:00[Asia/Tokyo]";

    fn read(text: &str, now: &str) -> Result<String, String> {
        let now: Zoned = now.parse().unwrap();
        match at(text, &now)? {
            TimePoint::At(wall) => {
                let at = Timestamp::from_nanosecond(i128::from(wall.unix_nanos())).unwrap();
                let local = at.to_zoned(now.time_zone().clone());
                Ok(local.strftime("%Y-%m-%d %H:%M:%S%.f %:z").to_string())
            }
            TimePoint::AfterStart(span) => Ok(format!("+{span}")),
            TimePoint::BeforeEnd(span) => Ok(format!("{span} before the end")),
        }
    }

    #[test]
    fn moments_are_written_as_people_write_them() {
        for (text, expected) in [
            ("now", "2026-11-22 12:00:00"),
            ("today", "2026-11-22 00:00:00"),
            ("yesterday", "2026-11-21 00:00:00"),
            ("Yesterday 01:30", "2026-11-21 01:30:00"),
            ("today 14:00", "2026-11-22 14:00:00"),
            ("02:00", "2026-11-22 02:00:00"),
            ("2:00:15", "2026-11-22 02:00:15"),
            ("12:00", "2026-11-22 12:00:00"),
            ("12:05", "2026-11-22 12:05:00"),
            ("12:06", "2026-11-21 12:06:00"),
            ("sun 12:01", "2026-11-22 12:01:00"),
            ("sun", "2026-11-22 00:00:00"),
            ("sunday 13:00", "2026-11-15 13:00:00"),
            ("mon 14:00", "2026-11-16 14:00:00"),
            ("Nov 21 14:00:05", "2026-11-21 14:00:05"),
            ("dec 3", "2025-12-03 00:00:00"),
            ("2h ago", "2026-11-22 10:00:00"),
            ("1 day 3h ago", "2026-11-21 09:00:00"),
            ("90m ago", "2026-11-22 10:30:00"),
            ("-2h ago", "2026-11-22 10:00:00"),
            ("2h", "2026-11-22 10:00:00"),
            ("1h30m", "2026-11-22 10:30:00"),
            ("90s ago", "2026-11-22 11:58:30"),
            ("2026-11-21", "2026-11-21 00:00:00"),
            ("2026-11-21 14:00", "2026-11-21 14:00:00"),
            ("2026-11-21T14:00:00", "2026-11-21 14:00:00"),
            ("2026-11-21T05:00:00Z", "2026-11-21 14:00:00"),
            ("2026-11-21T05:00:00.5Z", "2026-11-21 14:00:00.5"),
            ("2026-11-21 00:00:00-05:00", "2026-11-21 14:00:00"),
            ("@1795240800", "2026-11-21 15:00:00"),
        ] {
            assert_eq!(read(text, NOW), Ok(format!("{expected} +09:00")), "{text}");
        }
    }

    #[test]
    fn times_from_the_ends_need_no_clock() {
        for (text, expected) in [
            ("+11s", "+11 s"),
            ("+0:11", "+11 s"),
            ("+1h", "+60 min"),
            ("+1:00:00", "+60 min"),
            ("+90", "+90 s"),
            ("-10s", "10 s before the end"),
            ("-1:30", "90 s before the end"),
        ] {
            assert_eq!(read(text, NOW).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_error_quotes_the_text_and_names_the_forms() {
        for text in [
            "soon",
            "25:00",
            "5M",
            "5M ago",
            "30",
            "tomorrow",
            "2026-13-01",
            "+",
            "+-3s",
            "--3s",
            "-",
            "@x",
            "mo",
            "ago",
            "9999999h ago",
        ] {
            let error = read(text, NOW).unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is ")), "{text}: {error}");
        }
        assert!(read("soon", NOW).unwrap_err().contains("yesterday 01:30"));
        // An empty variable of a script asks for no time.
        assert!(read(" ", NOW).unwrap_err().starts_with("no time is given"));
    }

    #[test]
    fn a_time_that_summer_time_leaves_out_is_moved_on() {
        let spring = "2026-03-29T12:00:00+02:00[Europe/Berlin]";
        assert_eq!(read("02:30", spring).as_deref(), Ok("2026-03-29 03:30:00 +02:00"));
    }

    #[test]
    fn of_a_time_that_the_clock_shows_twice_the_first_is_meant() {
        let autumn = "2026-10-25T12:00:00+01:00[Europe/Berlin]";
        assert_eq!(read("02:30", autumn).as_deref(), Ok("2026-10-25 02:30:00 +02:00"));
        assert_eq!(read("12h ago", autumn).as_deref(), Ok("2026-10-25 01:00:00 +02:00"));
        assert_eq!(read("1 day ago", autumn).as_deref(), Ok("2026-10-24 12:00:00 +02:00"));
    }
}
