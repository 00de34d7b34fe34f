//! Rates and ratios: what is computed from readings, never stored.

use std::fmt;
use std::marker::PhantomData;

use crate::{Bytes, Micros, PageSize, Pages, Quantity, Span, Ticks, Unit, format};

/// An amount of `U` per second of elapsed time.
#[derive(Debug, Clone, Copy)]
pub struct PerSecond<U> {
    per_second: f64,
    unit: PhantomData<U>,
}

/// The time in which a growth is written: the longest usual one in which it was seen, so that no rate is stretched to a time
/// that nobody watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatePeriod {
    /// It was seen for less than a minute.
    Second,
    /// For less than an hour.
    Minute,
    /// For less than a day.
    Hour,
    /// For longer.
    Day,
}

impl RatePeriod {
    /// The period for a growth that was seen for so long.
    pub fn of_growth_seen_for(seen: Span) -> Self {
        let longest = [Self::Day, Self::Hour, Self::Minute];
        longest.into_iter().find(|period| seen >= period.length()).unwrap_or(Self::Second)
    }

    const fn length(self) -> Span {
        match self {
            Self::Second => Span::from_secs(1),
            Self::Minute => Span::from_mins(1),
            Self::Hour => Span::from_hours(1),
            Self::Day => Span::from_hours(24),
        }
    }

    /// After an amount, in a sentence: `66 MiB a minute`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Second => "a second",
            Self::Minute => "a minute",
            Self::Hour => "an hour",
            Self::Day => "a day",
        }
    }

    /// After an amount, in a table: `66 MiB/min`.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Second => "/s",
            Self::Minute => "/min",
            Self::Hour => "/h",
            Self::Day => "/day",
        }
    }
}

/// Throughput.
pub type BytesPerSecond = PerSecond<Bytes>;

impl<U: Unit> PerSecond<U> {
    /// `per_second` of the unit each second.
    pub const fn new(per_second: f64) -> Self {
        Self { per_second, unit: PhantomData }
    }

    /// `increase` spread over `elapsed`; `None` where no time passed.
    pub fn over(increase: f64, elapsed: Span) -> Option<Self> {
        let seconds = elapsed.as_secs_f64();
        (seconds > 0.0).then(|| Self::new(increase / seconds))
    }

    /// The plain number of units each second.
    pub const fn get(self) -> f64 {
        self.per_second
    }
}

impl PerSecond<Bytes> {
    /// `n` KiB each second.
    pub const fn from_kib(n: f64) -> Self {
        Self::new(n * 1_024.0)
    }

    /// `n` MiB each second.
    pub const fn from_mib(n: f64) -> Self {
        Self::new(n * 1_048_576.0)
    }

    /// What that is in a period; nothing where it falls.
    pub fn within(self, period: RatePeriod) -> Bytes {
        Bytes::from_f64((self.per_second * period.length().as_secs_f64()).max(0.0))
    }
}

impl PerSecond<Pages> {
    /// The throughput of this many pages a second.
    pub fn to_bytes(self, page: PageSize) -> PerSecond<Bytes> {
        PerSecond::new(self.per_second * page.bytes().as_f64())
    }
}

impl PerSecond<Micros> {
    /// Microseconds of stall a second as the share of time stalled.
    pub fn to_share(self) -> Ratio {
        Ratio::new(self.per_second / 1e6)
    }
}

impl PerSecond<Ticks> {
    /// Clock ticks a second as a number of busy CPUs; `ticks_per_second` is USER_HZ, 100 on all common machines.
    pub fn to_cpus(self, ticks_per_second: u64) -> Ratio {
        Ratio::new(self.per_second / ticks_per_second.max(1) as f64)
    }
}

impl<U> PartialEq for PerSecond<U> {
    fn eq(&self, other: &Self) -> bool {
        self.per_second == other.per_second
    }
}

impl<U> PartialOrd for PerSecond<U> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.per_second.partial_cmp(&other.per_second)
    }
}

impl<U: Unit> Quantity for PerSecond<U> {
    const NAME: &'static str = U::NAME_PER_SECOND;
    fn from_f64(value: f64) -> Self {
        Self::new(value)
    }
    fn as_f64(self) -> f64 {
        self.per_second
    }
}

impl<U: Unit> fmt::Display for PerSecond<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        U::fmt_rate(self.per_second, f)
    }
}

/// A share of a whole: 0.61 prints as `61 %`. May exceed one where the whole is not an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

impl Ratio {
    /// A plain ratio: 0.5 is one half.
    pub const fn new(ratio: f64) -> Self {
        Self(ratio)
    }

    /// `percent` of a whole.
    pub const fn from_percent(percent: f64) -> Self {
        Self(percent / 100.0)
    }

    /// The plain ratio.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Quantity for Ratio {
    const NAME: &'static str = "ratio";
    fn from_f64(value: f64) -> Self {
        Self(value)
    }
    fn as_f64(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format::number(self.0 * 100.0, f)?;
        f.write_str(" %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_print_in_their_unit_per_second() {
        assert_eq!(BytesPerSecond::from_mib(9.9).to_string(), "9.9 MiB/s");
        assert_eq!(PerSecond::<Pages>::new(11_900.0).to_string(), "11,900 pages/s");
    }

    #[test]
    fn stall_time_is_a_share() {
        assert_eq!(PerSecond::<Micros>::new(610_000.0).to_share().to_string(), "61 %");
        assert_eq!(Ratio::from_percent(0.05).to_string(), "0.05 %");
        assert_eq!(Ratio::from_percent(7.14).to_string(), "7.1 %");
    }

    #[test]
    fn no_rate_without_elapsed_time() {
        assert!(PerSecond::<Pages>::over(5.0, Span::ZERO).is_none());
    }
}
