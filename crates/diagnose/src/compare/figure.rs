//! A number that is compared, in the unit in which it prints.

use std::fmt;

use units::{Bytes, BytesPerSecond, Count, PerSecond, Quantity, Ratio};

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
    /// What one of it is called where types end.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Size => Bytes::NAME,
            Self::Throughput => BytesPerSecond::NAME,
            Self::Events => PerSecond::<Count>::NAME,
            Self::Share => Ratio::NAME,
        }
    }

    /// The number as people read it.
    pub const fn of(self, value: f64) -> Figure {
        Figure {
            measure: self,
            value,
        }
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

/// How an amount changed: `+198 MiB`, `−12 MiB`.
pub(super) fn difference(measure: Measure, before: f64, after: f64) -> String {
    let sign = if after < before { '−' } else { '+' };
    format!("{sign}{}", measure.of((after - before).abs()))
}

/// How a rate changed, always as a factor: `× 1.3`, `÷ 40`; `from 0`, `to 0` where there is none.
pub(super) fn ratio(before: f64, after: f64) -> String {
    /// Beyond it the smaller of the two is noise, and so is the factor.
    const MOST: f64 = 1000.0;
    match (before > 0.0, after > 0.0) {
        (false, false) => return "none".to_owned(),
        (false, true) => return "from 0".to_owned(),
        (true, false) => return "to 0".to_owned(),
        (true, true) => {}
    }
    let (sign, times) = match after >= before {
        true => ('×', after / before),
        false => ('÷', before / after),
    };
    match times < MOST {
        true => format!("{sign} {}", Factor(times)),
        false => format!("{sign} {}+", Factor(MOST)),
    }
}

/// A number without a unit: one decimal below ten, as units print.
struct Factor(f64);

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 < 9.95 {
            true => write!(f, "{:.1}", self.0),
            false => Count::from_f64(self.0).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reads_as_people_say_it() {
        for (before, after, text) in [
            (0.0, 5.0, "from 0"),
            (5.0, 0.0, "to 0"),
            (100.0, 134.0, "× 1.3"),
            (100.0, 40.0, "÷ 2.5"),
            (2.0, 24.0, "× 12"),
            (24.0, 2.0, "÷ 12"),
            (0.001, 24.0, "× 1,000+"),
        ] {
            assert_eq!(ratio(before, after), text);
        }
        let mib = |n: f64| n * 1_048_576.0;
        assert_eq!(difference(Measure::Size, mib(2.0), mib(200.0)), "+198 MiB");
        assert_eq!(difference(Measure::Size, mib(20.0), mib(8.0)), "−12 MiB");
    }
}
