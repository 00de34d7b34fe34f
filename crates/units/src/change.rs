//! Changes: a size that may be below zero, and a growth factor.

use std::fmt;

use crate::{Bytes, format};

/// A size that may be below zero: `1.2 GiB`, `−300 MiB`; with `{:+}` a change, which always has a sign: `+198 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SignedBytes(i64);

impl SignedBytes {
    /// From a number of bytes.
    pub const fn new(bytes: i64) -> Self {
        Self(bytes)
    }

    /// The plain number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The size; zero where it is below zero.
    pub const fn at_least_zero(self) -> Bytes {
        Bytes::new(if self.0 < 0 { 0 } else { self.0.unsigned_abs() })
    }

    /// The change from `before` to `after`.
    pub const fn between(before: i64, after: i64) -> Self {
        Self(after.saturating_sub(before))
    }
}

impl fmt::Display for SignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 {
            "−"
        } else if f.sign_plus() {
            "+"
        } else {
            ""
        };
        write!(f, "{sign}{}", Bytes::new(self.0.unsigned_abs()))
    }
}

/// A growth factor, always printed as a number above one: `× 1.3`, `÷ 40`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    is_more: bool,
    times: f64,
}

impl Factor {
    /// The factor from `before` to `after`; `None` unless both are above zero.
    pub fn between(before: f64, after: f64) -> Option<Self> {
        let is_more = after >= before;
        let times = if is_more { after / before } else { before / after };
        (before > 0.0 && after > 0.0).then_some(Self { is_more, times })
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The largest factor that is printed: beyond it the smaller value is noise, and so is the factor.
        const FACTOR_MAX: f64 = 1000.0;
        let times = self.times.min(FACTOR_MAX);
        f.write_str(if self.is_more { "× " } else { "÷ " })?;
        // A factor close to one must not read as "no change".
        match times - 1.0 {
            small if small < 0.0095 => write!(f, "{times:.3}"),
            small if small < 0.095 => write!(f, "{times:.2}"),
            _ => format::number(times, f),
        }?;
        f.write_str(if self.times < FACTOR_MAX { "" } else { "+" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_below_zero_has_its_sign_and_a_change_always() {
        let mib = |n: i64| SignedBytes::new(n << 20);
        assert_eq!(mib(198).to_string(), "198 MiB");
        assert_eq!(mib(-300).to_string(), "−300 MiB");
        assert_eq!(format!("{:+}", mib(198)), "+198 MiB");
        assert_eq!(format!("{:+}", mib(-12)), "−12 MiB");
        let least = SignedBytes::between(i64::MAX, i64::MIN);
        assert_eq!(least.to_string(), "−8,192 PiB");
    }

    #[test]
    fn a_factor_reads_as_people_say_it() {
        for (before, after, text) in [
            (100.0, 134.0, "× 1.3"),
            (100.0, 40.0, "÷ 2.5"),
            (100.0, 104.0, "× 1.04"),
            (104.0, 100.0, "÷ 1.04"),
            (1000.0, 1003.0, "× 1.003"),
            (2.0, 24.0, "× 12"),
            (24.0, 2.0, "÷ 12"),
            (0.001, 24.0, "× 1,000+"),
        ] {
            let factor = Factor::between(before, after).map(|factor| factor.to_string());
            assert_eq!(factor.as_deref(), Some(text));
        }
        assert_eq!(Factor::between(0.0, 5.0), None);
        assert_eq!(Factor::between(5.0, 0.0), None);
    }
}
