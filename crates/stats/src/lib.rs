//! Robust statistics of short lists: what a few outliers, bursts or a skew cannot move; and of trials in blocks.
//!
//! Five nouns: a **quantile** is a value that was measured, never one between two; a **spread** is how far values lie
//! from their middle; a **rank test** ([`mann_whitney`]) says whether one list is larger than another by more than
//! chance; a **trend** ([`PairSlopes`]) whether a list rises, and how fast; a **block design** ([`BlockDesign`]) whether treatments
//! differ that were tried side by side.
//!
//! ```
//! let (before, after) = ([3.0, 1.0, 2.0], [5.0, 4.0, 6.0, 90.0]);
//! assert_eq!(stats::median(&after), Some(6.0));
//! assert_eq!(stats::mann_whitney(&before, &after).delta, 1.0);
//! ```
//!
//! All functions are pure and total. Without values there is no quantile and no slope (`None`), and chance explains all
//! (0 deviations). NaN: order statistics sort it as [`f64::total_cmp`] does, beyond the infinities, as one more value;
//! rank tests and trends leave it out, as it is neither larger nor smaller than anything.

#![warn(clippy::disallowed_methods)]
// Numbers of samples: all are far below 2^52.
#![allow(clippy::cast_precision_loss)]

mod blocks;
mod gauss_legendre;
mod max_t;
mod quantile;
mod rank_test;
mod split_mix;
mod spread;
mod trend;

pub use blocks::{BlockComparison, BlockDesign, BlockLimits, MeanDifference};
pub use max_t::MaxT;
pub use quantile::{
    median, middle, of_sorted, quantile, quantile_in_place, rank_at, weighted_quantile,
};
pub use rank_test::{RankTest, cliffs_delta, mann_whitney, mann_whitney_sorted};
pub use split_mix::SplitMix64;
pub use spread::{
    MAD_TO_SIGMA, autocorrelation, mean, median_absolute_deviation, quantile_range, squares_sum,
    step_noise,
};
pub use trend::{PairSlopes, mann_kendall, mann_kendall_variance, theil_sen};
