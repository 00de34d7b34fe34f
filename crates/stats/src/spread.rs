//! How far values lie from their middle, and how much they resemble their neighbours.

use crate::quantile::{median, quantile};

/// The factor that makes a median absolute deviation a standard deviation of normal noise: 1 / Φ⁻¹(3/4).
pub const MAD_TO_SIGMA: f64 = 1.4826;

/// Returns the mean. It is not robust: one outlier moves it.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the sum of squared deviations from the mean; 0 without values.
pub fn squares_sum(values: &[f64]) -> f64 {
    let centre = mean(values).unwrap_or(0.0);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// Returns the median of the distances from the median (MAD; Gauss 1816, Hampel 1974): half the values may be anything.
/// [`MAD_TO_SIGMA`] makes it a standard deviation.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let around: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&around)
}

/// Returns the distance from the quantile at `from` to that at `to`.
pub fn quantile_range(values: &[f64], from: f64, to: f64) -> Option<f64> {
    Some(quantile(values, to)? - quantile(values, from)?)
}

/// Returns the standard deviation of the noise between neighbours, which a trend or a slow cycle does not raise: that of
/// the steps by their MAD, over √2, as a step has the noise of two values (the differences of von Neumann 1941). Fewer
/// than two values have no steps.
pub fn step_noise(values: &[f64]) -> Option<f64> {
    let steps: Vec<f64> = values.windows(2).map(|two| two[1] - two[0]).collect();
    Some(MAD_TO_SIGMA * median_absolute_deviation(&steps)? / std::f64::consts::SQRT_2)
}

/// Returns the correlation of neighbours (of lag 1): Σ (xᵢ − x̄)(xᵢ₊₁ − x̄) / Σ (xᵢ − x̄)². `None` where all values are
/// the same, or there are none.
pub fn autocorrelation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let all = squares_sum(values);
    let neighbours = values.windows(2).map(|two| (two[0] - centre) * (two[1] - centre));
    (all > 0.0).then(|| neighbours.sum::<f64>() / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_moves_the_mean_and_not_the_mad() {
        let (calm, burst) = ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 500.0]);
        assert_eq!((mean(&calm), mean(&burst)), (Some(3.0), Some(102.0)));
        assert_eq!(median_absolute_deviation(&calm), Some(1.0));
        assert_eq!(median_absolute_deviation(&burst), Some(1.0));
        assert_eq!(quantile_range(&burst, 0.25, 0.75), Some(2.0));
    }

    #[test]
    fn a_line_has_no_noise_and_what_lies_on_it_is_found() {
        let line: Vec<f64> = (0..50).map(|i| f64::from(i) * 3.0).collect();
        assert_eq!(step_noise(&line), Some(0.0));
        let noisy: Vec<f64> =
            (0..200).map(f64::from).map(|i| i * 3.0 + 5.0 * (i * i).sin()).collect();
        let noise = step_noise(&noisy).unwrap();
        // The standard deviation of a sine of height 5 is 3.5.
        assert!((3.0..4.5).contains(&noise), "{noise}");
        assert_eq!(step_noise(&[1.0]), None);
    }

    #[test]
    fn neighbours_resemble_each_other_in_a_line_and_differ_in_an_alternation() {
        let line: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(autocorrelation(&line).unwrap() > 0.9);
        let alternating: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert!(autocorrelation(&alternating).unwrap() < -0.9);
        assert_eq!(autocorrelation(&[2.0; 9]), None);
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(
            (mean(&[]), median_absolute_deviation(&[]), autocorrelation(&[])),
            (None, None, None)
        );
        assert_eq!((squares_sum(&[]), squares_sum(&[1.0, 3.0])), (0.0, 2.0));
    }
}
