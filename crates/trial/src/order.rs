//! In which order the variants of a block run: balanced, so that each comes after each other as often as any.
//!
//! A plain shuffle had put one of two first in 7 of 8 blocks. The squares of Williams (1949) have every variant once in
//! each place, and every variant directly after each other once (for an odd number: twice, in two squares).

use stats::SplitMix64;

/// The orders of a trial's blocks, one after another, without end.
#[derive(Debug, Clone)]
pub struct Orders {
    square: Vec<Vec<usize>>,
}

impl Orders {
    /// Orders of this many variants; the seed decides which variant is which, and which row of the square is first.
    pub fn new(variants: usize, seed: u64) -> Self {
        let names = shuffled(variants, seed);
        let mut square: Vec<Vec<usize>> = williams(variants)
            .into_iter()
            .map(|row| row.into_iter().map(|at| names[at]).collect())
            .collect();
        let rows = square.len().max(1);
        square.rotate_left(usize::try_from(seed).unwrap_or(0) % rows);
        Self { square }
    }

    /// The variants of a block in the order in which they run.
    pub fn of_block(&self, block: usize) -> &[usize] {
        self.square.get(block % self.square.len().max(1)).map_or(&[], Vec::as_slice)
    }
}

/// The rows of one square, or of two for an odd number.
fn williams(variants: usize) -> Vec<Vec<usize>> {
    // 0, 1, n-1, 2, n-2, …: neighbours differ by each number once.
    let zigzag = |place: usize| match place % 2 {
        1 => place.div_ceil(2),
        _ => (variants - place / 2) % variants,
    };
    let row = |shift: usize| -> Vec<usize> {
        (0..variants).map(|place| (zigzag(place) + shift) % variants).collect()
    };
    let mut rows: Vec<Vec<usize>> = (0..variants).map(row).collect();
    if variants % 2 == 1 && variants > 1 {
        let reversed: Vec<Vec<usize>> =
            rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(reversed);
    }
    rows
}

/// The numbers below `len` in an order that the seed decides (Fisher and Yates).
fn shuffled(len: usize, seed: u64) -> Vec<usize> {
    let mut chance = SplitMix64::new(seed);
    let mut all: Vec<usize> = (0..len).collect();
    for left in (2..=len).rev() {
        let chosen = usize::try_from(chance.next_u64() % left as u64).unwrap_or(0);
        all.swap(left - 1, chosen);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_variant_is_in_each_place_and_after_each_other_equally_often() {
        for variants in 2..=9 {
            let orders = Orders::new(variants, 7);
            let rows = orders.square.len();
            let (mut places, mut pairs) = (HashMap::new(), HashMap::new());
            for block in 0..rows {
                let order = orders.of_block(block);
                let mut sorted = order.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..variants).collect::<Vec<_>>());
                for (place, one) in order.iter().enumerate() {
                    *places.entry((place, *one)).or_insert(0_usize) += 1;
                }
                for pair in order.windows(2) {
                    *pairs.entry((pair[0], pair[1])).or_insert(0_usize) += 1;
                }
            }
            let each = rows / variants;
            assert!(places.values().all(|times| *times == each), "{variants}: {places:?}");
            assert_eq!(places.len(), variants * variants);
            assert!(pairs.values().all(|times| *times == each), "{variants}: {pairs:?}");
            assert_eq!(pairs.len(), variants * (variants - 1));
        }
    }

    #[test]
    fn the_seed_decides_the_order_and_nothing_else_does() {
        let first = |seed| Orders::new(6, seed).of_block(0).to_vec();
        assert_eq!(first(3), first(3));
        assert!((0..20).any(|seed| first(seed) != first(3)));
        assert_eq!(Orders::new(1, 9).of_block(5), [0]);
    }
}
