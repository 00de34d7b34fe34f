//! What holds for any lists of numbers.

use proptest::collection::vec;
use proptest::prelude::*;
use stats::{
    PairSlopes, autocorrelation, cliffs_delta, mann_kendall, mann_kendall_variance, mann_whitney,
    median, median_absolute_deviation, middle, of_sorted, quantile, rank_at, squares_sum,
    step_noise, theil_sen, weighted_quantile,
};

/// Small whole numbers, so that there are ties and sums are exact.
fn whole() -> impl Strategy<Value = f64> {
    (-50..50_i32).prop_map(f64::from)
}

/// Any bits: NaN, infinities, denormals.
fn any() -> impl Strategy<Value = f64> {
    any_bits().prop_map(f64::from_bits)
}

fn any_bits() -> impl Strategy<Value = u64> {
    proptest::num::u64::ANY
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

proptest! {
    #[test]
    fn a_quantile_is_a_value_by_selection_as_by_sorting(values in vec(whole(), 1..60), share in 0.0..=1.0) {
        let found = quantile(&values, share).unwrap();
        prop_assert!(values.contains(&found));
        prop_assert_eq!(of_sorted(&sorted(&values), share), Some(found));
    }

    #[test]
    fn a_larger_share_is_no_smaller_value(values in vec(whole(), 1..60), a in 0.0..=1.0, b in 0.0..=1.0) {
        let (less, more) = if a <= b { (a, b) } else { (b, a) };
        prop_assert!(quantile(&values, less) <= quantile(&values, more));
        let ends = (quantile(&values, 0.0), quantile(&values, 1.0));
        let (least, largest) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
        prop_assert_eq!(ends, (least, largest));
    }

    #[test]
    fn at_most_half_lie_on_either_side_of_the_median(values in vec(whole(), 1..60)) {
        let centre = median(&values).unwrap();
        let count = |is: &dyn Fn(f64) -> bool| values.iter().filter(|value| is(**value)).count();
        prop_assert!(count(&|value| value < centre) <= values.len() / 2);
        prop_assert!(count(&|value| value > centre) <= values.len() / 2);
    }

    #[test]
    fn the_middle_of_numbers_is_their_median(numbers in vec(-50..50_i32, 1..60)) {
        let values: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
        let mut items = numbers;
        prop_assert_eq!(middle(&mut items).map(f64::from), median(&values));
    }

    #[test]
    fn equal_weights_weigh_nothing(values in vec(whole(), 1..40), share in 0.01..=1.0) {
        let mut weighted: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        let found = weighted_quantile(&mut weighted, share).unwrap();
        let count = |is: &dyn Fn(f64) -> bool| values.iter().filter(|value| is(**value)).count() as f64;
        let reached = share * values.len() as f64;
        prop_assert!(count(&|value| value <= found) >= reached - 1e-9);
        prop_assert!(count(&|value| value < found) <= reached + 1e-9);
    }

    #[test]
    fn deviations_do_not_move_with_the_values_and_grow_with_them(values in vec(whole(), 2..40), by in -9..9_i32, times in 1..9_i32) {
        let (by, times) = (f64::from(by), f64::from(times));
        let other: Vec<f64> = values.iter().map(|value| value * times + by).collect();
        let mad = |values: &[f64]| median_absolute_deviation(values).unwrap();
        prop_assert_eq!(mad(&other), mad(&values) * times);
        prop_assert!(near(step_noise(&other).unwrap(), step_noise(&values).unwrap() * times));
        prop_assert!(near(squares_sum(&other), squares_sum(&values) * times * times));
        let (one, two) = (autocorrelation(&values), autocorrelation(&other));
        prop_assert!(one.is_none() && two.is_none() || near(one.unwrap(), two.unwrap()));
        prop_assert!(one.is_none_or(|alike| (-1.0..=1.0).contains(&alike)));
    }

    #[test]
    fn ranks_are_counted_as_pair_by_pair(before in vec(whole(), 0..30), after in vec(whole(), 0..30)) {
        let test = mann_whitney(&before, &after);
        let pairs = before.iter().flat_map(|b| after.iter().map(move |a| (*b, *a)));
        let wins: f64 = pairs.map(|(b, a)| if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 }).sum();
        prop_assert_eq!(test.u, wins);
        prop_assert!((-1.0..=1.0).contains(&test.delta) && test.deviations >= 0.0);
        // The other way round, and by ranks alone.
        let back = mann_whitney(&after, &before);
        prop_assert!(near(back.delta, -test.delta) && near(back.deviations, test.deviations));
        let cubed = |values: &[f64]| values.iter().map(|value| value.powi(3)).collect::<Vec<_>>();
        prop_assert_eq!(mann_whitney(&cubed(&before), &cubed(&after)), test);
        prop_assert_eq!(cliffs_delta(&before, &after), test.delta);
    }

    #[test]
    fn a_slope_turns_with_the_line(values in vec(whole(), 2..25), slope in -20..20_i32, scale in 1..5_i32) {
        let at: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
        let own = theil_sen(&at, &values).unwrap();
        let (slope, scale) = (f64::from(slope), f64::from(scale));
        let turned: Vec<f64> = at.iter().zip(&values).map(|(t, value)| value * scale + slope * t).collect();
        prop_assert!(near(theil_sen(&at, &turned).unwrap(), own * scale + slope));
    }

    #[test]
    fn a_trend_read_from_the_end_falls(values in vec(whole(), 0..25)) {
        let mut back = values.clone();
        back.reverse();
        let at: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
        prop_assert_eq!(PairSlopes::of(&at, &back).rising(), -PairSlopes::of(&at, &values).rising());
        let pairs = values.len() * values.len().saturating_sub(1) / 2;
        prop_assert!(PairSlopes::of(&at, &values).rising().abs() <= pairs as f64);
    }

    #[test]
    fn any_bits_give_an_answer(values in vec(any(), 0..20), others in vec(any(), 0..20), share in any()) {
        let _ = (quantile(&values, share), median_absolute_deviation(&values), step_noise(&values));
        let _ = (autocorrelation(&values), squares_sum(&values), theil_sen(&values, &others));
        let mut weighted: Vec<(f64, f64)> = values.iter().copied().zip(others.iter().copied()).collect();
        let _ = weighted_quantile(&mut weighted, share);
        let test = mann_whitney(&values, &others);
        prop_assert!((-1.0..=1.0).contains(&test.delta) && test.deviations.is_finite());
        prop_assert!(mann_kendall(&values).is_finite());
        let slopes = PairSlopes::of(&values, &others);
        let _ = slopes.interval(share, mann_kendall_variance(values.len(), share));
        prop_assert!(slopes.median().is_none_or(|slope| !slope.is_nan()));
        prop_assert!(rank_at(share, values.len()) <= values.len().saturating_sub(1));
    }
}
