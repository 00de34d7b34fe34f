//! Whether two sets of samples differ by more than the samples within each set do.
//!
//! Values of a rate are bursty and skewed, so means and standard deviations decide nothing. Each interval of one side
//! is compared with each of the other: the **lead** is the share of pairs in which `after` is larger, less the share
//! in which `before` is (Cliff's delta, from -1 to 1). It counts as a difference where it is at least [`LEAD_MIN`]
//! and chance would produce it less often than once in a hundred times by the Mann-Whitney test, corrected for ties.
//! With fewer than [`FEWEST`] intervals on a side the test cannot decide, and the answer is "too few", not "the same".
//!
//! Neighbouring intervals are alike, since bursts last, so the test is more certain than it should be. The least lead,
//! and the caller's threshold for what is too small to matter, compensate for that.

use schemars::JsonSchema;
use serde::Serialize;
use stats::{RankTest, mann_whitney_sorted};
use units::Ratio;

/// With fewer values the chance cannot get below one in a hundred: with five on each side the least is 1.2 %.
pub(super) const FEWEST: usize = 6;
/// A smaller lead is called negligible (Romano et al. 2006, for Cliff's delta).
const LEAD_MIN: f64 = 0.147;
/// Standard deviations that chance exceeds once in a hundred times, both tails (normal distribution).
const ONE_IN_100: f64 = 2.576;

/// Values of one side, sorted, and their mean over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    sorted: Vec<f64>,
    /// The mean, weighted by time for a rate.
    pub mean: f64,
}

impl Spread {
    /// Sorts measured values; `None` where there are none.
    pub(super) fn from_values(
        values: impl IntoIterator<Item = f64>,
        mean: Option<f64>,
    ) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        if sorted.is_empty() {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        Some(Self { mean: mean.or(stats::mean(&sorted))?, sorted })
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The value below which this share of the values lies (nearest rank).
    pub fn quantile(&self, share: Ratio) -> f64 {
        // A spread has at least one value.
        stats::of_sorted(&self.sorted, share.get()).unwrap_or(self.mean)
    }

    /// The same in another unit.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        Self {
            sorted: self.sorted.iter().map(|value| value * factor).collect(),
            mean: self.mean * factor,
        }
    }

    /// The value in the middle.
    pub fn median(&self) -> f64 {
        self.quantile(Ratio::new(0.5))
    }
}

/// Whether a number changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Significance {
    /// More than noise, and enough to matter.
    Clear,
    /// Each side differs as much within itself, or the difference is too small to matter.
    Noise,
    /// There are too few samples to say.
    TooFew,
}

/// The comparison of two sides' values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// From -1 (every value before is larger) to 1 (every value after is).
    pub lead: f64,
    /// Whether the lead is more than chance.
    pub significance: Significance,
}

/// Compares each value of one side with each of the other.
pub(super) fn contrast(before: &Spread, after: &Spread) -> Contrast {
    let RankTest { delta: lead, deviations, .. } =
        mann_whitney_sorted(&before.sorted, &after.sorted);
    let significance = if before.count().min(after.count()) < FEWEST {
        Significance::TooFew
    } else if lead.abs() >= LEAD_MIN && deviations >= ONE_IN_100 {
        Significance::Clear
    } else {
        Significance::Noise
    };
    Contrast { lead, significance }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against(before: &[f64], after: &[f64]) -> Contrast {
        let spread = |values: &[f64]| Spread::from_values(values.iter().copied(), None).unwrap();
        contrast(&spread(before), &spread(after))
    }

    #[test]
    fn what_lies_wholly_above_is_clear() {
        let it = against(&[1.0, 2.0, 3.0, 1.5, 2.5, 3.5], &[4.0, 5.0, 6.0, 4.5, 5.5, 6.5]);
        assert_eq!((it.lead, it.significance), (1.0, Significance::Clear));
    }

    #[test]
    fn the_same_values_in_another_order_are_noise() {
        let it = against(&[1.0, 9.0, 2.0, 8.0, 3.0, 7.0], &[7.0, 3.0, 8.0, 2.0, 9.0, 1.0]);
        assert_eq!((it.lead, it.significance), (0.0, Significance::Noise));
    }

    #[test]
    fn one_burst_among_quiet_intervals_is_noise_and_a_phase_of_them_is_not() {
        let quiet = [0.0; 30];
        let with = |n: usize| {
            let mut values = [0.0; 30];
            values[..n].fill(100.0);
            against(&quiet, &values).significance
        };
        assert_eq!(with(1), Significance::Noise);
        assert_eq!(with(3), Significance::Noise);
        assert_eq!(with(9), Significance::Clear);
    }

    #[test]
    fn five_samples_are_too_few_whatever_they_say() {
        let few = [1.0, 2.0, 3.0, 4.0, 5.0];
        let it = against(&few, &[10.0; 40]);
        assert_eq!((it.lead, it.significance), (1.0, Significance::TooFew));
    }

    #[test]
    fn a_spread_knows_its_middle_and_ends() {
        let spread = Spread::from_values([3.0, 1.0, f64::NAN, 2.0], Some(9.0)).unwrap();
        assert_eq!((spread.count(), spread.median(), spread.mean), (3, 2.0, 9.0));
        assert_eq!(spread.quantile(Ratio::new(1.0)), 3.0);
        assert_eq!(Spread::from_values([f64::NAN], None), None);
    }
}
