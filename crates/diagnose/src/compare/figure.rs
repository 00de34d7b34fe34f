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

/// How an amount changed: `+198 MiB`, `-12 MiB`.
pub(super) fn difference(measure: Measure, before: f64, after: f64) -> String {
    let sign = if after < before { '-' } else { '+' };
    format!("{sign}{}", measure.of((after - before).abs()))
}

/// How a rate changed: `+34 %`, `× 12`, `÷ 40`, `from 0`, `to 0`.
pub(super) fn ratio(before: f64, after: f64) -> String {
    /// From here on a factor reads better than a share.
    const FACTOR: f64 = 10.0;
    /// Beyond it the smaller of the two is noise, and so is the factor.
    const MOST: f64 = 1000.0;
    if before <= 0.0 && after <= 0.0 {
        return "none".to_owned();
    }
    if before <= 0.0 {
        return "from 0".to_owned();
    }
    if after <= 0.0 {
        return "to 0".to_owned();
    }
    let times = after / before;
    if !(1.0 / MOST..MOST).contains(&times) {
        let sign = if times < 1.0 { '÷' } else { '×' };
        return format!("{sign} {}+", Count::from_f64(MOST));
    }
    if times >= FACTOR {
        format!("× {}", Count::from_f64(times))
    } else if times <= 1.0 / FACTOR {
        format!("÷ {}", Count::from_f64(1.0 / times))
    } else {
        let sign = if times < 1.0 { '-' } else { '+' };
        format!("{sign}{}", Ratio::new((times - 1.0).abs()))
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
            (100.0, 134.0, "+34 %"),
            (100.0, 40.0, "-60 %"),
            (2.0, 24.0, "× 12"),
            (24.0, 2.0, "÷ 12"),
            (0.001, 24.0, "× 1,000+"),
        ] {
            assert_eq!(ratio(before, after), text);
        }
        let mib = |n: f64| n * 1_048_576.0;
        assert_eq!(difference(Measure::Size, mib(2.0), mib(200.0)), "+198 MiB");
        assert_eq!(difference(Measure::Size, mib(20.0), mib(8.0)), "-12 MiB");
    }
}
