//! What a cell of a heap's picture shows: the kind of memory that it mostly is, and the words for it.
//!
//! A cell is a group of pages, and may have several kinds; the picture shows the one that half of its resident bytes
//! have, else how much of them is live. Sums saturate: a damaged heap must not end the drawing.

use units::Bytes;

use crate::model::explain::HeapCell;

/// Classes of the live share: none, below a quarter, a half, three quarters, all, and full.
pub(crate) const LIVE_CLASSES: usize = 6;

/// The classes in words.
pub(crate) const LIVE_CLASS_WORDS: [&str; LIVE_CLASSES] =
    ["none", "< 25 %", "< 50 %", "< 75 %", "< 100 %", "full"];

/// What a cell mostly is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CellFill {
    /// Neither in RAM nor in swap.
    Absent,
    /// In swap.
    Swapped,
    /// Whole free pages that malloc_trim returns.
    Returnable,
    /// Whole free pages of a thread arena's top.
    ThreadTop,
    /// malloc's own, or not understood.
    Unknown,
    /// Resident, with this class of live share.
    Live(usize),
}

/// What a picture shows, in the order of its legend, with what it means. Live shares come first and have their own.
pub(crate) const LEGEND: [(CellFill, &str); 5] = [
    (CellFill::Returnable, "free pages that malloc_trim returns"),
    (CellFill::ThreadTop, "free pages in the top of a thread arena, which malloc_trim keeps"),
    (CellFill::Swapped, "in swap"),
    (CellFill::Unknown, "malloc's own, or not understood"),
    (CellFill::Absent, "not in RAM"),
];

/// What the mark of cached cells means.
pub(crate) const CACHED_WORDS: &str = "a quarter or more in thread caches";

impl CellFill {
    /// Returns what a cell mostly is.
    pub(crate) fn of(cell: &HeapCell) -> Self {
        let resident = cell.resident_bytes;
        let is_most =
            |bytes: Bytes| bytes > Bytes::ZERO && bytes.get() >= resident.get().div_ceil(2);
        if resident + cell.swapped_bytes == Bytes::ZERO {
            return Self::Absent;
        }
        if cell.swapped_bytes > resident {
            return Self::Swapped;
        }
        if is_most(cell.returnable_bytes) {
            return Self::Returnable;
        }
        if is_most(cell.thread_top_bytes) {
            return Self::ThreadTop;
        }
        if is_most(unknown(cell)) {
            return Self::Unknown;
        }
        Self::Live(live_class(cell.live_bytes, resident))
    }
}

/// Returns the class of [`LIVE_CLASS_WORDS`].
fn live_class(live: Bytes, resident: Bytes) -> usize {
    let quarters = u128::from(live.get()) * 4 / u128::from(resident.get().max(1));
    match quarters {
        _ if live == Bytes::ZERO => 0,
        _ if live >= resident => LIVE_CLASSES - 1,
        quarters => usize::try_from(quarters.min(3)).unwrap_or(3) + 1,
    }
}

/// Returns the resident bytes of a cell that are neither allocated nor free.
fn unknown(cell: &HeapCell) -> Bytes {
    cell.resident_bytes.saturating_sub(cell.live_bytes + cell.cached_bytes + cell.free_bytes)
}

/// Whether thread caches have a noticeable part of a cell.
pub(crate) fn is_cached(cell: &HeapCell) -> bool {
    cell.cached_bytes > Bytes::ZERO && cell.cached_bytes.get() >= cell.resident_bytes.get() / 4
}

/// Adds a cell to a sum.
pub(crate) fn add(sum: &mut HeapCell, cell: &HeapCell) {
    sum.resident_bytes += cell.resident_bytes;
    sum.live_bytes += cell.live_bytes;
    sum.cached_bytes += cell.cached_bytes;
    sum.free_bytes += cell.free_bytes;
    sum.returnable_bytes += cell.returnable_bytes;
    sum.thread_top_bytes += cell.thread_top_bytes;
    sum.swapped_bytes += cell.swapped_bytes;
}

/// Returns the figures of a piece of a heap that begins at an offset, in a line; what is zero is left out.
pub(crate) fn figures(offset: Bytes, bytes: Bytes, cell: &HeapCell) -> String {
    let place = format!("{bytes} at +{offset}");
    let all = [
        (cell.resident_bytes, "resident"),
        (cell.live_bytes, "live"),
        (cell.cached_bytes, "cached"),
        (cell.free_bytes, "free"),
        (cell.returnable_bytes, "returnable"),
        (cell.thread_top_bytes, "thread top"),
        (cell.swapped_bytes, "in swap"),
        (unknown(cell), "other"),
    ];
    let shown = all.into_iter().filter(|(bytes, _)| *bytes > Bytes::ZERO);
    let shown: Vec<String> = shown.map(|(bytes, what)| format!("{bytes} {what}")).collect();
    if shown.is_empty() {
        return format!("{place}: not in RAM");
    }
    format!("{place}: {}", shown.join(", "))
}

/// Formats a part of a whole; nothing where the whole is zero.
pub(crate) fn share(part: Bytes, whole: Bytes) -> String {
    part.ratio_of(whole).map_or_else(String::new, |ratio| ratio.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Bytes = Bytes::from_kib(4);

    #[test]
    fn a_cell_shows_what_half_of_it_is() {
        let cell = HeapCell { resident_bytes: PAGE.times(4), ..HeapCell::default() };
        let shown = |cell: HeapCell| CellFill::of(&cell);
        assert_eq!(shown(HeapCell::default()), CellFill::Absent);
        assert_eq!(
            shown(HeapCell { swapped_bytes: PAGE, ..HeapCell::default() }),
            CellFill::Swapped
        );
        assert_eq!(shown(cell), CellFill::Unknown);
        let free = HeapCell { free_bytes: PAGE.times(4), ..cell };
        assert_eq!(shown(free), CellFill::Live(0));
        let returnable = HeapCell { returnable_bytes: PAGE.times(2), ..free };
        assert_eq!(shown(returnable), CellFill::Returnable);
        let top =
            HeapCell { thread_top_bytes: PAGE.times(3), returnable_bytes: Bytes::ZERO, ..free };
        assert_eq!(shown(top), CellFill::ThreadTop);
    }

    #[test]
    fn a_live_share_is_in_the_class_that_is_named_after_its_end() {
        let class = |live: u64| live_class(Bytes::new(live), Bytes::new(400));
        for (live, expected) in
            [(0, 0), (1, 1), (99, 1), (100, 2), (200, 3), (399, 4), (400, 5), (u64::MAX, 5)]
        {
            assert_eq!(class(live), expected, "{live}");
        }
    }

    #[test]
    fn figures_leave_out_what_is_zero() {
        let cell = HeapCell {
            resident_bytes: Bytes::new(65_536),
            live_bytes: Bytes::new(16_384),
            free_bytes: Bytes::new(49_152),
            ..HeapCell::default()
        };
        assert_eq!(
            figures(Bytes::from_mib(1), Bytes::from_kib(64), &cell),
            "64 KiB at +1 MiB: 64 KiB resident, 16 KiB live, 48 KiB free"
        );
        assert_eq!(
            figures(Bytes::ZERO, Bytes::from_kib(64), &HeapCell::default()),
            "64 KiB at +0 B: not in RAM"
        );
    }
}
