//! Times and lengths of time as kernel files write them.

use std::fmt;
use std::ops::Sub;

use crate::{Quantity, Unit, format};

/// Declares a unit of accumulated time with its size in nanoseconds.
macro_rules! time_unit {
    ($(#[$doc:meta])* $name:ident, $text:literal, $nanos:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
        pub struct $name(u64);

        impl $name {
            /// `n` of this unit.
            pub const fn new(n: u64) -> Self {
                Self(n)
            }

            /// The plain number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The same length of time.
            pub fn to_span(self) -> Span {
                Span::from_secs_f64(self.0 as f64 * $nanos / 1e9)
            }
        }

        impl Quantity for $name {
            const NAME: &'static str = $text;
            fn from_f64(value: f64) -> Self {
                Self(value.round() as u64)
            }
            fn as_f64(self) -> f64 {
                self.0 as f64
            }
        }

        impl Unit for $name {
            const NAME_PER_SECOND: &'static str = concat!($text, "/s");
            fn raw(self) -> u64 {
                self.0
            }
            fn from_raw(raw: u64) -> Self {
                Self(raw)
            }
            fn fmt_rate(per_second: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Time per time is a share.
                write!(f, "{}", crate::Ratio::new(per_second * $nanos / 1e9))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                format::seconds(self.0 as f64 * $nanos / 1e9, f)
            }
        }
    };
}

time_unit!(
    /// Nanoseconds.
    Nanos,
    "ns",
    1.0
);
time_unit!(
    /// Microseconds: the unit of `/proc/pressure/*` totals.
    Micros,
    "us",
    1e3
);
time_unit!(
    /// Milliseconds: the unit of `/proc/diskstats` times.
    Millis,
    "ms",
    1e6
);
time_unit!(
    /// USER_HZ clock ticks: the unit of `/proc/stat` and `/proc/PID/stat`; printed as if USER_HZ were 100.
    Ticks,
    "ticks",
    1e7
);

/// A length of time, and also a point in a timeline: the time since its first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Span(u64);

impl Span {
    /// No time at all; in a timeline, its first sample.
    pub const ZERO: Self = Self(0);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// `n` minutes.
    pub const fn from_mins(n: u64) -> Self {
        Self::from_secs(n.saturating_mul(60))
    }

    /// `n` hours.
    pub const fn from_hours(n: u64) -> Self {
        Self::from_mins(n.saturating_mul(60))
    }

    /// `seconds`, rounded to nanoseconds; negative or not a number becomes zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The standard library's form, for clocks and sleeps.
    pub const fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }

    /// The difference, or zero where `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// A multiple or part of this length.
    pub fn times(self, factor: f64) -> Self {
        Self::from_secs_f64(self.as_secs_f64() * factor)
    }

    /// Formats it as a point in a timeline, `m:ss` (or `h:mm:ss`): `0:11`.
    pub fn as_clock(self) -> String {
        let seconds = (self.as_secs_f64()).round() as u64;
        let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Quantity for Span {
    const NAME: &'static str = "seconds";
    fn from_f64(value: f64) -> Self {
        Self::from_secs_f64(value)
    }
    fn as_f64(self) -> f64 {
        self.as_secs_f64()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format::seconds(self.as_secs_f64(), f)
    }
}

/// A point on the wall clock: nanoseconds since 1970-01-01 UTC. May jump; never used for rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallClock(i64);

impl WallClock {
    /// Nanoseconds since the Unix epoch.
    pub const fn from_unix_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn unix_nanos(self) -> i64 {
        self.0
    }

    /// How long this is after `earlier`; zero where it is before.
    pub fn saturating_since(self, earlier: Self) -> Span {
        Span(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or_default())
    }

    /// The time that is `earlier` before this one.
    pub fn minus(self, earlier: Span) -> Self {
        Self(self.0.saturating_sub(i64::try_from(earlier.0).unwrap_or(i64::MAX)))
    }

    /// The time that is `later` after this one.
    pub fn plus(self, later: Span) -> Self {
        Self(self.0.saturating_add(i64::try_from(later.0).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_print_in_the_unit_a_person_would_pick() {
        for (span, text) in [
            (Span::from_secs(0), "0 s"),
            (Span::from_nanos(400_000), "400 µs"),
            (Span::from_nanos(1_500_000), "1.5 ms"),
            (Span::from_secs(39), "39 s"),
            (Span::from_mins(5), "5 min"),
            (Span::from_hours(36), "36 h"),
            (Span::from_hours(24 * 7), "7 d"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn points_in_a_timeline_print_as_a_clock() {
        assert_eq!(Span::from_secs(11).as_clock(), "0:11");
        assert_eq!(Span::from_secs(3_671).as_clock(), "1:01:11");
    }

    #[test]
    fn odd_floats_do_not_panic() {
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
    }
}
