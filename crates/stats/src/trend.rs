//! Does a list rise, and how fast? The slope of Theil (1950) and Sen (1968), and the test of Mann (1945) and Kendall
//! (1975), both of all pairs of points: n(n − 1)/2 of them, so for some dozens of points.
//!
//! The slope stays while up to 29 % of the points are anything.

/// The slopes between all pairs of points at different times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PairSlopes {
    sorted: Vec<f64>,
    rising: f64,
}

impl PairSlopes {
    /// Computes the slopes of points at ascending times. A pair at one time, or with a NaN, has none. Of lists of unlike
    /// lengths the longer one's rest is left out.
    pub fn of(at: &[f64], values: &[f64]) -> Self {
        let points = || at.iter().zip(values);
        let count = at.len().min(values.len());
        let mut sorted = Vec::with_capacity(count * count / 2);
        let mut rising = 0.0;
        for (i, (at, value)) in points().enumerate() {
            for (later, higher) in points().skip(i + 1) {
                let slope = (higher - value) / (later - at);
                if later > at && !slope.is_nan() {
                    sorted.push(slope);
                    rising += f64::from(i8::from(higher > value) - i8::from(higher < value));
                }
            }
        }
        sorted.sort_by(f64::total_cmp);
        Self { sorted, rising }
    }

    /// Returns the Theil–Sen slope: the median.
    pub fn median(&self) -> Option<f64> {
        crate::of_sorted(&self.sorted, 0.5)
    }

    /// Returns the interval of the slope (Sen 1968): the slopes that lie `deviations` of S from the median, to both
    /// sides. 1.96 deviations are the 95 % interval. `variance` is that of S.
    pub fn interval(&self, deviations: f64, variance: f64) -> Option<(f64, f64)> {
        let reach = deviations * variance.sqrt() / self.sorted.len().max(1) as f64 / 2.0;
        let at = |share| crate::of_sorted(&self.sorted, share);
        at(0.5 - reach).zip(at(0.5 + reach))
    }

    /// Returns Kendall's S: the pairs that rise, less those that fall.
    pub fn rising(&self) -> f64 {
        self.rising
    }

    /// Returns the Mann–Kendall statistic: S in standard deviations, corrected for continuity by one step towards 0, from 0
    /// downhill. Above 3, chance makes such a rise once in 700 times. 0 where S has no variance.
    pub fn z(&self, variance: f64) -> f64 {
        if variance <= 0.0 {
            return 0.0;
        }
        (self.rising - self.rising.signum()) / variance.sqrt()
    }
}

/// Returns the variance of S for `count` independent values without ties: n(n − 1)(2n + 5)/18 (Kendall 1975). Neighbours
/// with a correlation `alike` (0 for none, below 1) are fewer independent values: times (1 + r)/(1 − r) (Bayley and
/// Hammersley 1946).
pub fn mann_kendall_variance(count: usize, alike: f64) -> f64 {
    let n = count as f64;
    n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * (1.0 + alike) / (1.0 - alike)
}

/// Returns the Theil–Sen slope of points at ascending times; `None` without two at different times.
pub fn theil_sen(at: &[f64], values: &[f64]) -> Option<f64> {
    PairSlopes::of(at, values).median()
}

/// Returns the Mann–Kendall statistic of independent values in the order of time: see [`PairSlopes::z`].
pub fn mann_kendall(values: &[f64]) -> f64 {
    let at: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
    let known = values.iter().filter(|value| !value.is_nan()).count();
    PairSlopes::of(&at, values).z(mann_kendall_variance(known, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_whatever_a_quarter_of_the_points_is() {
        let at: Vec<f64> = (0..16).map(f64::from).collect();
        let mut values: Vec<f64> = at.iter().map(|t| 3.0 * t + 1.0).collect();
        for wild in [3, 7, 8, 12] {
            values[wild] = 1e9;
        }
        assert_eq!(theil_sen(&at, &values), Some(3.0));
    }

    #[test]
    fn the_statistic_agrees_with_a_computation_by_hand() {
        // 3 1 4 2 5: rising pairs 3-4, 3-5, 1-4, 1-2, 1-5, 4-5, 2-5; falling 3-1, 3-2, 4-2; S = 4, variance 50/3.
        let z = mann_kendall(&[3.0, 1.0, 4.0, 2.0, 5.0]);
        assert!((z - 3.0 / (50.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{z}");
    }

    #[test]
    fn what_neither_rises_nor_falls_has_no_trend() {
        assert_eq!(PairSlopes::of(&[0.0, 1.0, 2.0], &[2.0; 3]).rising(), 0.0);
        assert!(mann_kendall(&[2.0; 20]).abs() < 0.05);
        assert_eq!((mann_kendall(&[]), mann_kendall(&[1.0])), (0.0, 0.0));
    }

    #[test]
    fn points_at_one_time_have_no_slope_and_nan_is_in_no_pair() {
        assert_eq!(theil_sen(&[1.0, 1.0], &[0.0, 9.0]), None);
        assert_eq!((theil_sen(&[], &[]), theil_sen(&[1.0], &[1.0])), (None, None));
        let slope = theil_sen(&[0.0, 1.0, 2.0, f64::NAN], &[0.0, f64::NAN, 4.0, 5.0]);
        assert_eq!(slope, Some(2.0));
    }

    #[test]
    fn the_interval_is_around_the_slope_and_wider_where_neighbours_are_alike() {
        let at: Vec<f64> = (0..20).map(f64::from).collect();
        let values: Vec<f64> = at.iter().map(|t| t + (t * 7.3).sin() * 4.0).collect();
        let slopes = PairSlopes::of(&at, &values);
        let of = |alike| slopes.interval(1.96, mann_kendall_variance(20, alike)).unwrap();
        let ((low, high), (lower, higher)) = (of(0.0), of(0.5));
        let slope = slopes.median().unwrap();
        assert!(lower < low && low < slope && slope < high && high < higher);
    }
}
