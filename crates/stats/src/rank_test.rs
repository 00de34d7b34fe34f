//! Is one list larger than another by more than chance? The test of Mann and Whitney (1947), and Cliff's delta (1993) as
//! its size.
//!
//! Each value of one list is compared with each of the other; only which is larger counts, not by how much. Neighbours in
//! time resemble each other, so that they are fewer independent values than they seem, and the test is more certain than
//! it should be: a caller wants a least delta, too.

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankTest {
    /// Mann and Whitney's U: the pairs in which the second list is larger, ties as one half.
    pub u: f64,
    /// Cliff's delta: the share of pairs in which the second list is larger, less the share in which the first is. From
    /// -1 to 1; 0 without pairs.
    pub delta: f64,
    /// How far U lies from the mean of chance, in standard deviations, whichever list is larger: by the normal
    /// approximation with corrections for ties and continuity, usable from about six values on a side. Chance exceeds
    /// 2.576 once in a hundred times. 0 where all values are the same or there are none.
    pub deviations: f64,
}

/// Compares two lists in any order.
pub fn mann_whitney(before: &[f64], after: &[f64]) -> RankTest {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    mann_whitney_sorted(&sorted(before), &sorted(after))
}

/// Returns Cliff's delta of two lists in any order. Romano and others (2006) call it negligible below 0.147, small below
/// 0.33, medium below 0.474, and large from there.
pub fn cliffs_delta(before: &[f64], after: &[f64]) -> f64 {
    mann_whitney(before, after).delta
}

/// Compares two lists sorted by [`f64::total_cmp`], in one pass over both.
pub fn mann_whitney_sorted(before: &[f64], after: &[f64]) -> RankTest {
    let (before, after) = (without_nan(before), without_nan(after));
    let (m, n) = (before.len() as f64, after.len() as f64);
    let (mut i, mut j, mut wins, mut ties) = (0, 0, 0.0, 0.0);
    while i < before.len() || j < after.len() {
        let value = match (before.get(i), after.get(j)) {
            (Some(b), Some(a)) => b.min(*a),
            (Some(value), None) | (None, Some(value)) => *value,
            (None, None) => break,
        };
        let same = |list: &[f64]| list.iter().take_while(|v| **v <= value).count();
        let (b, a) = (same(&before[i..]), same(&after[j..]));
        wins += a as f64 * (i as f64 + b as f64 / 2.0);
        let t = (a + b) as f64;
        ties += t * t * t - t;
        i += b;
        j += a;
    }
    let pairs = m * n;
    if pairs <= 0.0 {
        return RankTest::default();
    }
    let all = m + n;
    let variance = pairs / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)).max(1.0));
    let away = (wins - pairs / 2.0).abs() - 0.5;
    let deviations = if variance > 0.0 { away / variance.sqrt() } else { 0.0 };
    RankTest { u: wins, delta: 2.0 * wins / pairs - 1.0, deviations: deviations.max(0.0) }
}

/// Returns the part of a sorted list without NaN, which stands at its ends.
fn without_nan(sorted: &[f64]) -> &[f64] {
    let start = sorted.iter().take_while(|value| value.is_nan()).count();
    let rest = sorted.get(start..).unwrap_or_default();
    let end = rest.iter().rev().take_while(|value| value.is_nan()).count();
    rest.get(..rest.len() - end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_agrees_with_published_tables() {
        // Two-sided critical value of U for 6 and 6 at 1 %: 2; so U = 2 is significant and U = 3 is not by the exact
        // table.
        let test = mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.5], &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert!((test.delta - (1.0 - 2.0 * 2.0 / 36.0)).abs() < 1e-9, "{test:?}");
        assert!((2.3..2.6).contains(&test.deviations), "{test:?}");
    }

    #[test]
    fn the_same_values_are_chance_and_values_wholly_above_are_not() {
        let same = mann_whitney(&[5.0; 8], &[5.0; 9]);
        assert_eq!((same.u, same.delta, same.deviations), (36.0, 0.0, 0.0));
        let above =
            mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!((above.u, above.delta), (36.0, 1.0));
        assert!(above.deviations > 2.576, "{above:?}");
    }

    #[test]
    fn without_pairs_chance_explains_all_and_nan_is_in_no_pair() {
        assert_eq!(mann_whitney(&[], &[1.0]), RankTest::default());
        assert_eq!(mann_whitney(&[f64::NAN], &[-f64::NAN]), RankTest::default());
        let (with, without) = ([2.0, f64::NAN, 1.0, -f64::NAN], [2.0, 1.0]);
        assert_eq!(mann_whitney(&with, &[3.0, 0.0]), mann_whitney(&without, &[3.0, 0.0]));
    }
}
