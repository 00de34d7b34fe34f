//! Parts of memory as a stack that adds up to the total, despite drift between counters of one sample.

use units::{Bytes, Quantity};

use super::{Accounting, TermKind};

impl Accounting {
    /// Returns the measured size of a term or of the remainder; `None` if unknown, and for a remainder below zero.
    pub fn size(&self, kind: TermKind) -> Option<Bytes> {
        if kind == TermKind::Unaccounted {
            u64::try_from(self.unaccounted_bytes).ok().map(Bytes::new)
        } else {
            self.term(kind)
        }
    }

    /// Returns the sizes of these terms in bytes. If the remainder is among them, they add up to MemTotal: terms that
    /// are not listed are part of it.
    pub fn stacked(&self, kinds: &[TermKind]) -> Vec<Option<f64>> {
        let size = |kind: &TermKind| self.size(*kind).map(Quantity::as_f64);
        let mut sizes: Vec<Option<f64>> = kinds.iter().map(size).collect();
        let remainder = kinds.iter().position(|kind| *kind == TermKind::Unaccounted);
        if let Some(remainder) = remainder {
            fill_up(&mut sizes, remainder, self.total.as_f64());
        }
        sizes
    }
}

/// Makes a stack add up to `total` (whole numbers of bytes). Memory that no part explains becomes the part at `rest`.
/// If the parts exceed the total, within the counters' drift, the excess is taken off the largest parts above `rest`,
/// where it shows least; taken off the topmost part, it would falsify free memory, which is smallest when it matters
/// most.
pub(super) fn fill_up(sizes: &mut [Option<f64>], rest: usize, total: f64) {
    sizes[rest] = None;
    let known: f64 = sizes.iter().flatten().sum();
    sizes[rest] = Some((total - known).max(0.0));
    let mut excess = (known - total).max(0.0);
    while excess > 0.0 {
        let above = sizes[rest + 1..].iter_mut().flatten();
        let largest = above.max_by(|a, b| a.total_cmp(b));
        let Some(largest) = largest.filter(|size| **size > 0.0) else {
            return;
        };
        let off = excess.min(*largest);
        *largest -= off;
        excess -= off;
    }
}

#[cfg(test)]
mod tests {
    use super::fill_up;

    #[test]
    fn a_stack_adds_up_and_drift_is_taken_off_the_largest_parts_above_the_rest() {
        for (sizes, filled) in [
            ([None, Some(30.0), Some(60.0)], [10.0, 30.0, 60.0]),
            ([Some(9.0), Some(40.0), Some(65.0)], [0.0, 40.0, 60.0]),
            ([None, Some(100.0), Some(5.0)], [0.0, 95.0, 5.0]),
        ] {
            let mut stack = sizes;
            fill_up(&mut stack, 0, 100.0);
            assert_eq!(stack, filled.map(Some), "{sizes:?}");
        }
    }
}
