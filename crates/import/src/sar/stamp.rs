//! Times of sadf: `2026-11-21` and `13:20:19`, or seconds since 1970.

use jiff::civil::{Date, Time};

/// Seconds since 1970 of a date and a time of day, taken as UTC: only differences matter.
pub(crate) fn seconds(date: &str, time: &str) -> Option<i64> {
    let date: Date = date.get(..10)?.parse().ok()?;
    let time: Time = time.get(..8)?.parse().ok()?;
    Some(date_seconds(date)? + time_seconds(time))
}

/// Seconds since 1970 as `sadf -U` prints them.
pub(crate) fn epoch(text: &str) -> Option<i64> {
    let seconds: i64 = text.parse().ok()?;
    (0..1 << 40).contains(&seconds).then_some(seconds)
}

/// Seconds from 1970 to a midnight.
pub(crate) fn date_seconds(date: Date) -> Option<i64> {
    let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(midnight.timestamp().as_second())
}

/// Seconds since midnight.
pub(crate) fn time_seconds(time: Time) -> i64 {
    i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_seconds() {
        assert_eq!(seconds("2026-11-21", "23:58:47"), Some(1_795_305_527));
        assert_eq!(seconds("21/11/2026", "23:58:47"), None);
        assert_eq!(seconds("2026-11-21", "25:00:00"), None);
        assert_eq!(seconds("é026-11-21", "2"), None);
        assert_eq!(epoch("1795305527"), Some(1_795_305_527));
        assert_eq!(epoch("-1"), None);
    }
}
