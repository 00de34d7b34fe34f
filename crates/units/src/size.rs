//! Sizes and counts: bytes, pages, and numbers of things.

use std::fmt;
use std::iter::Sum;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign};

use crate::{Quantity, Unit, format};

/// Declares a whole-number unit: its arithmetic, its names, and how a fractional amount of it prints.
macro_rules! whole_unit {
    ($(#[$doc:meta])* $name:ident, $text:literal, $fmt:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);

            /// `n` of this unit.
            pub const fn new(n: u64) -> Self {
                Self(n)
            }

            /// The plain number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The difference, or zero where `other` is larger.
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
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
                $fmt(per_second, f)?;
                f.write_str("/s")
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $fmt(self.0 as f64, f)
            }
        }

        /// Saturates: hostile input must not make memtide panic.
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, Add::add)
            }
        }
    };
}

whole_unit!(
    /// A size in bytes.
    Bytes,
    "bytes",
    format::bytes
);
whole_unit!(
    /// A number of base pages; the size of a page depends on the machine ([`PageSize`]).
    Pages,
    "pages",
    |value, f: &mut fmt::Formatter<'_>| {
        format::number(value, f)?;
        f.write_str(" pages")
    }
);
whole_unit!(
    /// A number of things or events.
    Count,
    "count",
    format::number
);

impl Count {
    /// The number with the noun for one or many: `1 line`, `12 lines`.
    pub fn named(self, one: &str, many: &str) -> String {
        format!("{self} {}", if self.0 == 1 { one } else { many })
    }
}

impl Bytes {
    /// `n` KiB; what `/proc` writes as "kB".
    pub const fn from_kib(n: u64) -> Self {
        Self(n.saturating_mul(1024))
    }

    /// `n` MiB.
    pub const fn from_mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// `n` GiB.
    pub const fn from_gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// The size, rounded up to one that prints exactly: a requirement must not lose its last digits when it is printed
    /// with three.
    pub fn rounded_up(self) -> Self {
        let prefix =
            (1..=5_u32).map(|power| 1_u64 << (10 * power)).take_while(|size| *size <= self.0);
        let prefix = prefix.last().unwrap_or(1);
        // Below ten there is one decimal place.
        let step =
            if self.0 / prefix < 10 && prefix > 1 { prefix as f64 / 10.0 } else { prefix as f64 };
        Self::from_f64(((self.as_f64() / step).ceil() * step).ceil())
    }

    /// This size `n` times.
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// This share of the size.
    pub fn share(self, ratio: crate::Ratio) -> Self {
        Self::from_f64(self.as_f64() * ratio.get())
    }

    /// This size as a share of `whole`; `None` where `whole` is zero.
    pub fn ratio_of(self, whole: Self) -> Option<crate::Ratio> {
        (whole.0 > 0).then(|| crate::Ratio::new(self.as_f64() / whole.as_f64()))
    }
}

impl Pages {
    /// The size of this many pages.
    pub const fn to_bytes(self, page: PageSize) -> Bytes {
        Bytes(self.0.saturating_mul(page.0.get()))
    }
}

/// The size of a base page: 4 KiB on x86-64; 4, 16 or 64 KiB on arm64 and ppc64le.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize(NonZeroU64);

impl PageSize {
    /// The page size of all common machines, for use where it is unknown.
    pub const USUAL: Self = Self(NonZeroU64::MIN.saturating_add(4095));

    /// Returns `None` unless `bytes` is a power of two from 1 KiB to 1 MiB.
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= 1 << 10 && bytes <= 1 << 20 {
            match NonZeroU64::new(bytes) {
                Some(size) => Some(Self(size)),
                None => None,
            }
        } else {
            None
        }
    }

    /// The size of one page.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.get())
    }
}

/// A size limit set by an administrator, or "no limit".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Limited to this size.
    Bytes(Bytes),
    /// `max`, `infinity` or, on cgroup v1, the largest page-aligned number.
    Unlimited,
}

impl Limit {
    /// The size, where there is a limit.
    pub const fn limited(self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unlimited => None,
        }
    }
}

impl PartialOrd for Limit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.as_f64().partial_cmp(&other.as_f64())
    }
}

impl Quantity for Limit {
    const NAME: &'static str = "bytes";
    fn from_f64(value: f64) -> Self {
        if value.is_infinite() { Self::Unlimited } else { Self::Bytes(Bytes::from_f64(value)) }
    }
    fn as_f64(self) -> f64 {
        self.limited().map_or(f64::INFINITY, Bytes::as_f64)
    }
}

impl Unit for Limit {
    const NAME_PER_SECOND: &'static str = "bytes/s";
    fn raw(self) -> u64 {
        self.limited().map_or(u64::MAX, Bytes::get)
    }
    fn from_raw(raw: u64) -> Self {
        if raw == u64::MAX { Self::Unlimited } else { Self::Bytes(Bytes(raw)) }
    }
    fn fmt_rate(per_second: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes::fmt_rate(per_second, f)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format::bytes(self.as_f64(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_rounded_up_reads_as_no_less_than_it_is() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_098_764_288, "1.1 GiB"), // 1,047.9 MiB
            (1 << 30, "1 GiB"),
            ((1 << 30) + 1, "1.1 GiB"),
            ((12 << 30) + 1, "13 GiB"),
            ((470 << 20) - 4096, "470 MiB"),
            ((1023 << 20) + 800_000, "1 GiB"),
        ] {
            let up = Bytes::new(bytes).rounded_up();
            assert!(up >= Bytes::new(bytes));
            assert_eq!(up.to_string(), text, "{bytes}");
        }
    }

    #[test]
    fn sizes_print_with_at_most_three_digits_and_a_binary_prefix() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1,023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1 MiB"),
            (10 << 20, "10 MiB"),
            (25_252_855_808, "24 GiB"),
            (1_610_612_736, "1.5 GiB"),
        ] {
            assert_eq!(Bytes::new(bytes).to_string(), text, "{bytes}");
        }
    }

    #[test]
    fn counts_are_grouped_and_pages_say_so() {
        assert_eq!(Count::new(11_900).to_string(), "11,900");
        assert_eq!(Count::new(1_234_567).to_string(), "1,234,567");
        assert_eq!(Pages::new(63_000).to_string(), "63,000 pages");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(Count::new(1).named("line", "lines"), "1 line");
        assert_eq!(Count::new(0).named("line", "lines"), "0 lines");
    }

    #[test]
    fn an_unlimited_limit_is_larger_than_any_size() {
        assert!(Limit::Unlimited > Limit::Bytes(Bytes::new(u64::MAX - 1)));
        assert_eq!(Limit::from_raw(u64::MAX), Limit::Unlimited);
        assert_eq!(Limit::Unlimited.to_string(), "unlimited");
    }

    #[test]
    fn page_sizes_are_powers_of_two() {
        assert!(PageSize::from_bytes(65_536).is_some());
        assert!(PageSize::from_bytes(0).is_none());
        assert!(PageSize::from_bytes(4095).is_none());
    }

    #[test]
    fn arithmetic_saturates_on_hostile_numbers() {
        assert_eq!(Bytes::from_kib(u64::MAX), Bytes::new(u64::MAX));
        assert_eq!(Bytes::new(u64::MAX) + Bytes::new(1), Bytes::new(u64::MAX));
        assert_eq!(Bytes::from_f64(-1.0), Bytes::ZERO);
    }
}
