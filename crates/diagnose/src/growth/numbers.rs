//! Statistics of a curve's values, which are finite; 0 where there are none.

pub(super) use stats::{rank_at as index_at, squares_sum as scatter};

/// Returns the quantile `share` of `values`. Reorders the list.
pub(super) fn quantile_in(values: &mut [f64], share: f64) -> f64 {
    stats::quantile_in_place(values, share).unwrap_or(0.0)
}

/// Returns the median.
pub(super) fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(0.0)
}

/// Returns the mean.
pub(super) fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(0.0)
}

/// Returns the spread of most values: between the 5th and the 95th percentile.
pub(super) fn spread(values: &[f64]) -> f64 {
    stats::quantile_range(values, 0.05, 0.95).unwrap_or(0.0)
}

/// Returns the standard deviation of the noise between neighbours.
pub(super) fn noise(values: &[f64]) -> f64 {
    stats::step_noise(values).unwrap_or(0.0)
}
