//! Rows in the order of their times: newest first is turned round, a time that stands twice counts once.

use std::cmp::Ordering;

/// Puts rows in order, where `compare` tells how the times of two rows lie. Returns what to tell people.
pub(super) fn put<R>(
    rows: &mut Vec<R>,
    compare: impl Fn(&R, &R) -> Option<Ordering>,
) -> Vec<&'static str> {
    let mut told = Vec::new();
    if descends(rows, &compare) {
        rows.reverse();
        told.push("the newest row stands first: turned round");
    }
    let before = rows.len();
    rows.dedup_by(|row, last| compare(last, row) == Some(Ordering::Equal));
    if rows.len() < before {
        told.push("rows repeat the time of the row before: the first of each is used");
    }
    told
}

/// Whether all rows go back in time. Two do also when the host was started anew between them.
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
    fn rows_are_turned_round_and_counted_once() {
        for (rows, ordered, told) in [
            (&[3, 2, 1][..], &[1, 2, 3][..], 1),
            (&[3, 3, 2, 2, 1], &[1, 2, 3], 2),
            (&[1, 1, 2], &[1, 2], 1),
            (&[2, 1], &[2, 1], 0),
            (&[3, 2, 5], &[3, 2, 5], 0),
            (&[], &[], 0),
        ] {
            let mut put_in_order: Vec<i32> = rows.to_vec();
            let problems = put(&mut put_in_order, |a, b| Some(a.cmp(b)));
            assert_eq!(put_in_order, ordered);
            assert_eq!(problems.len(), told, "{rows:?}");
        }
        let mut unknown = vec![3, 2, 2, 1];
        assert!(put(&mut unknown, |_, _| None).is_empty());
    }
}
