//! Bars of block characters: what RAM holds, and one size beside others.
//!
//! Each term has its own fill character, so that a bar is readable without colour, and one colour throughout memtide.
//! Memory that cannot be reclaimed is on the left.

use diagnose::accounting::TermKind;
use units::Bytes;

use super::ansi::Style;
use super::page::{StyledText, piece};
use crate::model::Accounting;

/// The appearance of a term in a bar: fill character, colour (256-colour palette), name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BarFill {
    pub(super) name: &'static str,
    pub(super) glyph: char,
    pub(super) style: Style,
}

/// Fills in the order of the terms in [`TermKind::ALL`], left to right in a bar.
const FILLS: [BarFill; 10] = [
    KERNEL,
    BALLOON,
    UNACCOUNTED,
    HUGE_PAGES,
    COMPRESSED,
    SHARED,
    ANON,
    SWAP_CACHE,
    PAGE_CACHE,
    FREE,
];

const KERNEL: BarFill = fill("kernel", '#', 166);
const BALLOON: BarFill = fill("balloon", 'b', 245);
const UNACCOUNTED: BarFill = fill(TermKind::Unaccounted.label(), '?', 245);
const HUGE_PAGES: BarFill = fill("huge pages", 'H', 147);
const COMPRESSED: BarFill = fill(TermKind::CompressedPool.label(), 'z', 28);
const SHARED: BarFill = fill(TermKind::Shmem.label(), '▒', 99);
const ANON: BarFill = fill(TermKind::Anon.label(), '█', 32);
const SWAP_CACHE: BarFill = fill(TermKind::SwapCache.label(), '▓', 110);
const PAGE_CACHE: BarFill = fill("page cache", '░', 36);
const FREE: BarFill = fill(TermKind::Free.label(), '·', 245);

/// The name of used memory where the source does not give its terms.
const NOT_BROKEN_DOWN: &str = "not broken down";

/// Used memory without its terms.
const USED: BarFill = fill("used", '█', 32);

const fn fill(name: &'static str, glyph: char, colour: u8) -> BarFill {
    BarFill { name, glyph, style: Style::Data(colour) }
}

/// The fill of a term.
const fn fill_of(term: TermKind) -> BarFill {
    match term {
        TermKind::KernelStack | TermKind::PageTables | TermKind::Percpu => KERNEL,
        TermKind::Vmalloc | TermKind::Bounce | TermKind::HwCorrupted => KERNEL,
        TermKind::Slab | TermKind::SlabUnreclaimable => KERNEL,
        TermKind::SlabReclaimable | TermKind::KernelReclaimable => KERNEL,
        TermKind::Balloon => BALLOON,
        TermKind::Unaccounted => UNACCOUNTED,
        TermKind::HugetlbUsed | TermKind::HugetlbUnused => HUGE_PAGES,
        TermKind::CompressedPool => COMPRESSED,
        TermKind::Shmem => SHARED,
        TermKind::Anon => ANON,
        TermKind::SwapCache => SWAP_CACHE,
        TermKind::Buffers | TermKind::FileCache => PAGE_CACHE,
        TermKind::Pcp | TermKind::Free => FREE,
    }
}

/// Returns the contents of RAM as (fill, bytes) in the order of a bar, without empty parts.
pub(super) fn parts(accounting: &Accounting) -> Vec<(BarFill, Bytes)> {
    let part = |fill: &BarFill| {
        if *fill == UNACCOUNTED {
            let name = if accounting.broken_down { fill.name } else { NOT_BROKEN_DOWN };
            let rest = accounting.unaccounted_bytes.at_least_zero();
            return (BarFill { name, ..*fill }, rest);
        }
        let terms = accounting.terms.iter();
        let alike = terms.filter(|term| fill_of(term.kind) == *fill);
        (*fill, alike.map(|term| term.bytes).sum())
    };
    let parts = FILLS.iter().map(part);
    parts.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect()
}

/// Returns a used part and the free rest.
pub(super) fn used_and_free(used: Bytes, total: Bytes) -> Vec<(BarFill, Bytes)> {
    vec![(USED, used), (FREE, total.saturating_sub(used))]
}

/// Returns a bar of exactly `cells` cells.
pub(super) fn bar(parts: &[(BarFill, Bytes)], cells: usize) -> Vec<StyledText> {
    let sizes: Vec<u64> = parts.iter().map(|(_, bytes)| bytes.get()).collect();
    share_out(&sizes, cells)
        .into_iter()
        .zip(parts)
        .filter(|(n, _)| *n > 0)
        .map(|(n, (fill, _))| piece(fill.style, fill.glyph.to_string().repeat(n)))
        .collect()
}

/// Divides `cells` in proportion (largest remainder) so that they add up; all zero if all sizes are zero.
fn share_out(sizes: &[u64], cells: usize) -> Vec<usize> {
    let total: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
    if total == 0 {
        return vec![0; sizes.len()];
    }
    let exact = |size: &u64| u128::from(*size) * cells as u128;
    let mut shares: Vec<usize> =
        sizes.iter().map(|size| usize::try_from(exact(size) / total).unwrap_or(cells)).collect();
    let mut by_remainder: Vec<usize> = (0..sizes.len()).collect();
    by_remainder.sort_by_key(|i| std::cmp::Reverse(exact(&sizes[*i]) % total));
    let missing = cells.saturating_sub(shares.iter().sum());
    for i in by_remainder.into_iter().take(missing) {
        shares[i] += 1;
    }
    shares
}

/// Returns a bar as long as `value` is of the largest; what is not nothing is at least visible.
pub(super) fn of(value: Bytes, largest: Option<Bytes>, cells: usize) -> String {
    let share = value.ratio_of(largest.unwrap_or_default()).unwrap_or_default().get();
    // At most `cells`: the minimum makes the cast exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = ((share * cells as f64).round() as usize).min(cells);
    match (value, length) {
        (Bytes::ZERO, _) => String::new(),
        (_, 0) => "▏".to_owned(),
        _ => "█".repeat(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_and_follow_the_sizes() {
        for (sizes, cells, shares) in [
            (&[1, 1, 1][..], 10, &[4, 3, 3][..]),
            (&[376, 57, 29, 8], 50, &[40, 6, 3, 1]),
            (&[0, 5], 7, &[0, 7]),
            (&[0, 0], 7, &[0, 0]),
            (&[u64::MAX, u64::MAX], 9, &[5, 4]),
        ] {
            assert_eq!(share_out(sizes, cells), shares);
        }
    }

    #[test]
    fn a_bar_has_its_terms_in_the_order_of_the_stack() {
        let last = |fill: &BarFill| {
            let terms = TermKind::ALL.iter();
            terms.filter(|term| fill_of(**term) == *fill).max()
        };
        // Kernel memory has terms at both ends of the stack.
        assert!(FILLS[1..].iter().map(last).is_sorted());
    }

    #[test]
    fn every_fill_is_told_apart_without_colour() {
        let mut glyphs: Vec<char> = FILLS.iter().map(|fill| fill.glyph).collect();
        glyphs.sort_unstable();
        glyphs.dedup();
        assert_eq!(glyphs.len(), FILLS.len());
    }
}
