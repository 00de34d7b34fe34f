//! A number that is compared, in the unit in which it is printed.

use std::fmt;

use units::{Bytes, BytesPerSecond, Count, Factor, PerSecond, Quantity, Ratio};

/// What a compared number measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Bytes.
    Size,
    /// Bytes a second.
    Throughput,
    /// Events a second.
    Events,
    /// A share of time or of CPUs.
    Share,
}

impl Measure {
    /// The name of its unit in untyped formats.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Size => Bytes::NAME,
            Self::Throughput => BytesPerSecond::NAME,
            Self::Events => PerSecond::<Count>::NAME,
            Self::Share => Ratio::NAME,
        }
    }

    /// The number as it is printed.
    pub const fn figure(self, value: f64) -> Figure {
        Figure { measure: self, value }
    }
}

/// A compared number; prints in its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// What it measures.
    pub measure: Measure,
    /// The number in the measure's unit.
    pub value: f64,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.measure {
            Measure::Size => Bytes::from_f64(self.value).fmt(f),
            Measure::Throughput => BytesPerSecond::from_f64(self.value).fmt(f),
            Measure::Events => PerSecond::<Count>::from_f64(self.value).fmt(f),
            Measure::Share => Ratio::from_f64(self.value).fmt(f),
        }
    }
}

/// How a rate changed, always as a factor: `× 1.3`, `÷ 40`; `from 0`, `to 0` where there is none.
pub(super) fn ratio(before: f64, after: f64) -> String {
    match Factor::between(before, after) {
        Some(factor) => factor.to_string(),
        None if after > 0.0 => "from 0".to_owned(),
        None if before > 0.0 => "to 0".to_owned(),
        None => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_or_ends_has_no_factor() {
        for (before, after, text) in
            [(0.0, 5.0, "from 0"), (5.0, 0.0, "to 0"), (0.0, 0.0, "none"), (2.0, 24.0, "× 12")]
        {
            assert_eq!(ratio(before, after), text);
        }
    }
}
