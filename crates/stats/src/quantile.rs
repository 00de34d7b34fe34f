//! Quantiles by the nearest rank: type 3 of Hyndman and Fan (1996) with its ends at the least and the largest value.
//!
//! Of `n` sorted values x₀ … xₙ₋₁ the quantile at share `p` is x at `round(p · (n − 1))`, halves away from zero. It is
//! always one of the values: a median of 0 and 100 is 100, not 50, which nobody measured. So of an even number of values
//! the median is the larger of the middle two.

/// Returns the index at `share` (0 to 1; beyond, its nearer end) of a sorted list of `len` items; 0 for an empty list.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and `len - 1`
pub fn rank_at(share: f64, len: usize) -> usize {
    let last = len.saturating_sub(1);
    ((share.clamp(0.0, 1.0) * last as f64).round() as usize).min(last)
}

/// Returns the quantile at `share` of sorted values. In constant time.
pub fn of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    sorted.get(rank_at(share, sorted.len())).copied()
}

/// Returns the quantile at `share` of values in any order, which it reorders. In linear time, without an allocation.
pub fn quantile_in_place(values: &mut [f64], share: f64) -> Option<f64> {
    let rank = rank_at(share, values.len());
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// Returns the quantile at `share` of values in any order.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    quantile_in_place(&mut values.to_vec(), share)
}

/// Returns the median; of an even number of values the larger of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the median of items that are no floats, such as times; of an even number the larger of the middle two.
/// Reorders them.
pub fn middle<T: Ord + Copy>(items: &mut [T]) -> Option<T> {
    let rank = items.len() / 2;
    (!items.is_empty()).then(|| *items.select_nth_unstable(rank).1)
}

/// Returns the quantile at `share` of values with weights, such as the seconds for which each was so: the first value, in
/// order, at which the sum of weights reaches `share` of all. Sorts the pairs.
///
/// A value without a weight is passed over while others have one. Weights must not be negative.
pub fn weighted_quantile(weighted: &mut [(f64, f64)], share: f64) -> Option<f64> {
    weighted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let all: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let mut left = all * share;
    let reached = weighted.iter().find(|(_, weight)| {
        left -= weight;
        left <= 0.0 && (*weight > 0.0 || all <= 0.0)
    });
    reached.or(weighted.last()).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(median(&values), Some(30.0));
        let at = [0.0, 0.16, 0.17, 0.5, 0.84, 1.0].map(|share| quantile(&values, share).unwrap());
        assert_eq!(at, [10.0, 10.0, 20.0, 30.0, 40.0, 40.0]);
    }

    #[test]
    fn of_nothing_there_is_none_and_of_one_value_it_is_all() {
        assert_eq!((median(&[]), of_sorted(&[], 0.5)), (None, None));
        assert_eq!((middle::<u8>(&mut []), weighted_quantile(&mut [], 0.5)), (None, None));
        assert_eq!((quantile(&[7.0], 0.0), quantile(&[7.0], 1.0)), (Some(7.0), Some(7.0)));
    }

    #[test]
    fn a_share_beyond_its_range_is_its_end_and_no_share_is_the_least_value() {
        let sorted = [1.0, 2.0, 3.0];
        let at = [-1.0, 2.0, f64::NAN].map(|share| of_sorted(&sorted, share).unwrap());
        assert_eq!(at, [1.0, 3.0, 1.0]);
    }

    #[test]
    fn nan_is_the_largest_value_and_one_more() {
        assert_eq!(median(&[f64::NAN, 1.0, f64::INFINITY]), Some(f64::INFINITY));
        assert!(quantile(&[f64::NAN, 1.0], 1.0).unwrap().is_nan());
    }

    #[test]
    fn the_middle_is_the_median_of_what_is_ordered() {
        assert_eq!(middle(&mut [3, 1, 2]), Some(2));
        assert_eq!(middle(&mut [4, 1, 3, 2]), Some(3));
    }

    #[test]
    fn what_was_so_for_long_weighs_more() {
        let mut minutes = [(9.0, 1.0), (1.0, 8.0), (5.0, 1.0)];
        assert_eq!(weighted_quantile(&mut minutes, 0.5), Some(1.0));
        assert_eq!(weighted_quantile(&mut minutes, 0.85), Some(5.0));
        assert_eq!(weighted_quantile(&mut minutes, 1.0), Some(9.0));
        // The least value was so for no time.
        assert_eq!(weighted_quantile(&mut [(0.0, 0.0), (2.0, 1.0)], 0.0), Some(2.0));
        assert_eq!(weighted_quantile(&mut [(2.0, 0.0), (0.0, 0.0)], 0.5), Some(0.0));
    }
}
