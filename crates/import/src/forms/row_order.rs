//! Sorts rows by time: reverses a table with the newest row first, and drops rows with a repeated time.

use std::cmp::Ordering;

/// Sorts rows; `compare` orders the times of two rows, if it can. Returns problems.
pub(super) fn sort<R>(
    rows: &mut Vec<R>,
    compare: impl Fn(&R, &R) -> Option<Ordering>,
) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if descends(rows, &compare) {
        rows.reverse();
        problems.push("the newest row comes first: the order is reversed");
    }
    let before = rows.len();
    rows.dedup_by(|row, last| compare(last, row) == Some(Ordering::Equal));
    if rows.len() < before {
        problems.push("rows repeat the time of the row before: the first one is used");
    }
    problems
}

/// Whether all rows go back in time. With two rows it may also be a reboot.
fn descends<R>(rows: &[R], compare: &impl Fn(&R, &R) -> Option<Ordering>) -> bool {
    let mut steps = 0;
    for pair in rows.windows(2) {
        match compare(&pair[0], &pair[1]) {
            Some(Ordering::Greater) => steps += 1,
            Some(Ordering::Equal) => {}
            _ => return false,
        }
    }
    steps > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_reversed_and_repeated_times_dropped() {
        for (rows, sorted, problems) in [
            (&[3, 2, 1][..], &[1, 2, 3][..], 1),
            (&[3, 3, 2, 2, 1], &[1, 2, 3], 2),
            (&[1, 1, 2], &[1, 2], 1),
            (&[2, 1], &[2, 1], 0),
            (&[3, 2, 5], &[3, 2, 5], 0),
            (&[], &[], 0),
        ] {
            let mut found: Vec<i32> = rows.to_vec();
            let noted = sort(&mut found, |a, b| Some(a.cmp(b)));
            assert_eq!(found, sorted);
            assert_eq!(noted.len(), problems, "{rows:?}");
        }
        let mut unknown = vec![3, 2, 2, 1];
        assert!(sort(&mut unknown, |_, _| None).is_empty());
    }
}
