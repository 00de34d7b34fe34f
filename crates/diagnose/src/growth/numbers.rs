//! Robust statistics of short lists: quantiles, noise, Theil–Sen slopes. Lists hold finite numbers only.

/// The factor that makes a median absolute deviation a standard deviation of normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Returns the index at `share` (0 to 1) of a list of `len` items.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and `len - 1`
pub(super) fn index_at(share: f64, len: usize) -> usize {
    let last = len.saturating_sub(1);
    ((share.clamp(0.0, 1.0) * last as f64).round() as usize).min(last)
}

/// Returns the quantile `share` of `values`, 0 for an empty list. Reorders the list.
pub(super) fn quantile_in(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let index = index_at(share, values.len());
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// Returns the quantile `share` of `values`, 0 for an empty list.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    quantile_in(&mut values.to_vec(), share)
}

/// Returns the median, 0 for an empty list.
pub(super) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the mean, 0 for an empty list.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the spread of most values: between the 5th and the 95th percentile.
pub(super) fn spread(values: &[f64]) -> f64 {
    quantile(values, 0.95) - quantile(values, 0.05)
}

/// Returns the standard deviation of the noise between neighbours, which a trend or a slow cycle does not raise.
pub(super) fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|two| two[1] - two[0]).collect();
    let centre = median(&steps);
    let around: Vec<f64> = steps.iter().map(|step| (step - centre).abs()).collect();
    MAD_TO_SIGMA * median(&around) / std::f64::consts::SQRT_2
}

/// Returns the sum of squared deviations from the mean.
pub(super) fn scatter(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// Returns the correlation of neighbours in `values`, from 0 to 0.7: a negative one counts as none, and a short list
/// cannot show a larger one.
pub(super) fn autocorrelation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let all = scatter(values);
    if all <= 0.0 {
        return 0.0;
    }
    let neighbours = values.windows(2).map(|two| (two[0] - centre) * (two[1] - centre));
    (neighbours.sum::<f64>() / all).clamp(0.0, 0.7)
}
