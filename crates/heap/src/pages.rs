//! What the walk shows about pages: how much of a heap is resident, free but resident, and returnable.
//!
//! The walk reports stretches of one kind in order of address. Each page is folded into totals and into a picture's
//! cell as soon as the walk has passed it, so a heap of any size costs the same memory.

use std::ops::Range;

use probe::PageRun;

use crate::memory::TargetMemory;
use crate::window::STEP_BYTES_MAX;

/// What a stretch of a heap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StretchKind {
    /// Allocated by the program.
    Live,
    /// Freed, and kept by a thread's cache for its next allocation.
    Cached,
    /// Free: in a bin or a fast bin.
    Free,
    /// Free: behind the last chunk of an arena.
    Top,
    /// malloc's own: arena, heap headers, fenceposts.
    Overhead,
    /// Not understood: torn by writes during the walk, corrupt, or in swap.
    Unknown,
    /// Something else's, between blocks of the main arena.
    Foreign,
}

const KINDS: usize = 7;

/// Who may return the top of an arena to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopOwner {
    /// The main arena: malloc_trim returns its top.
    Main,
    /// A thread arena: malloc_trim skips its top.
    Thread,
}

/// Sums over the resident pages of heaps, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageTotals {
    /// Pages in RAM.
    pub resident: u64,
    /// Pages in swap; they were not read.
    pub swapped: u64,
    /// Free bytes (in bins, fast bins and tops) on resident pages.
    pub free_resident: u64,
    /// Bytes that the program allocated on resident pages. Less than what it allocated where it never touched it.
    pub live_resident: u64,
    /// Resident pages that malloc_trim returns.
    pub returnable: u64,
    /// Resident free pages in tops of thread arenas, which malloc_trim does not return.
    pub thread_tops: u64,
    /// Resident free pages in the top of the main arena.
    pub main_top: u64,
    /// Resident pages by the share of live and cached bytes: none, below a quarter, a half, three quarters, all, and
    /// full pages.
    pub by_live_share: [u64; 6],
}

impl PageTotals {
    /// Adds the totals of another part.
    pub(crate) fn add(&mut self, other: &Self) {
        self.resident += other.resident;
        self.swapped += other.swapped;
        self.free_resident += other.free_resident;
        self.live_resident += other.live_resident;
        self.returnable += other.returnable;
        self.thread_tops += other.thread_tops;
        self.main_top += other.main_top;
        for (to, from) in self.by_live_share.iter_mut().zip(other.by_live_share) {
            *to += from;
        }
    }
}

/// A group of neighbouring pages in a heap's picture; all fields in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell {
    /// On resident pages: allocated by the program.
    pub live: u64,
    /// On resident pages: in thread caches.
    pub cached: u64,
    /// On resident pages: free.
    pub free: u64,
    /// Resident pages.
    pub resident: u64,
    /// Resident pages that malloc_trim returns.
    pub returnable: u64,
    /// Resident pages of a thread arena's top.
    pub thread_top: u64,
    /// Pages in swap.
    pub swapped: u64,
    /// On resident pages: not understood.
    pub unknown: u64,
}

/// One part of a heap as a row of cells, in order of address.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CellRow {
    /// Where the first cell begins.
    pub start: u64,
    pub cells: Vec<Cell>,
}

/// The smallest free stretch behind which trimming begins: a chunk's header with the links of large bins stays.
const KEPT_OF_FREE: u64 = 48;
/// What trimming keeps of the main arena's top.
const KEPT_OF_TOP: u64 = 33;

/// Folds stretches of one part of a heap into pages.
#[derive(Debug)]
pub(crate) struct PageFold<'a, M> {
    memory: &'a M,
    page_bytes: u64,
    /// Pages in RAM or in swap up to an address; those before `run_index` are passed.
    runs: &'a mut Vec<PageRun>,
    run_index: usize,
    runs_until: u64,
    end: u64,
    page: u64,
    page_end: u64,
    amounts: [u64; KINDS],
    /// The kind of the last stretches, and where they begin.
    run: StretchKind,
    run_from: u64,
    top: TopOwner,
    top_from: u64,
    cell_bytes: u64,
    pub(crate) totals: PageTotals,
    pub(crate) row: CellRow,
    foreign: Vec<Range<u64>>,
}

impl<'a, M: TargetMemory> PageFold<'a, M> {
    pub(crate) fn new(
        memory: &'a M,
        runs: &'a mut Vec<PageRun>,
        range: &Range<u64>,
        page_bytes: u64,
        cell_bytes: u64,
        top: TopOwner,
    ) -> Self {
        runs.clear();
        let page = range.start / page_bytes * page_bytes;
        Self {
            memory,
            page_bytes,
            runs,
            run_index: 0,
            runs_until: page,
            end: range.end.div_ceil(page_bytes).saturating_mul(page_bytes),
            page,
            page_end: page + page_bytes,
            amounts: [0; KINDS],
            run: StretchKind::Overhead,
            run_from: page,
            top,
            top_from: 0,
            cell_bytes,
            totals: PageTotals::default(),
            row: CellRow { start: page, cells: Vec::new() },
            foreign: Vec::new(),
        }
    }

    /// Adds a stretch that begins where the previous one ended.
    #[inline]
    pub(crate) fn add(&mut self, kind: StretchKind, from: u64, to: u64) {
        // A page that ended before is folded with the run that filled it still known.
        if from >= self.page_end {
            self.finish_page();
        }
        if kind != self.run {
            if kind == StretchKind::Top {
                let is_free = self.run == StretchKind::Free;
                self.top_from = if is_free { self.run_from } else { from };
            }
            (self.run, self.run_from) = (kind, from);
        }
        if kind == StretchKind::Foreign {
            let pages =
                from.next_multiple_of(self.page_bytes)..to / self.page_bytes * self.page_bytes;
            self.foreign.extend((pages.start < pages.end).then_some(pages));
        }
        let mut from = from;
        while to > self.page_end {
            self.amounts[kind as usize] += self.page_end.saturating_sub(from);
            self.finish_page();
            self.pass_absent(to);
            from = self.page;
        }
        self.amounts[kind as usize] += to.saturating_sub(from);
    }

    /// Folds the last page. A part ends at a page's end in all but damaged heaps. Returns the sums, the picture and the pages
    /// that are something else's.
    pub(crate) fn finish(mut self) -> (PageTotals, CellRow, Vec<Range<u64>>) {
        if self.amounts.iter().any(|bytes| *bytes > 0) {
            self.finish_page();
        }
        (self.totals, self.row, self.foreign)
    }

    /// Returns the first run that does not end before the current page, as far as it is known.
    fn pages_ahead(&mut self) -> Option<&PageRun> {
        loop {
            let rest = self.runs.get(self.run_index..).unwrap_or_default();
            let passed = rest.iter().take_while(|run| run.range.end <= self.page);
            self.run_index += passed.count();
            if self.run_index < self.runs.len()
                || self.page < self.runs_until
                || self.page >= self.end
            {
                return self.runs.get(self.run_index);
            }
            self.runs.clear();
            self.run_index = 0;
            let ahead = self.page..self.end.min(self.page.saturating_add(STEP_BYTES_MAX));
            self.runs_until = self.memory.populated(&ahead, self.runs).until;
        }
    }

    /// Passes over whole pages before `to` that are neither in RAM nor in swap: nothing on them counts.
    fn pass_absent(&mut self, to: u64) {
        let page_bytes = self.page_bytes;
        let to = to.min(self.end) / page_bytes * page_bytes;
        while self.page < to {
            let page = self.page;
            let found = self.pages_ahead().map(|run| run.range.start.max(page));
            let next = found.unwrap_or(self.runs_until).min(to);
            if next <= page {
                break;
            }
            // The picture has their cells all the same.
            self.page = next - page_bytes;
            self.cell();
            self.page = next;
        }
        self.page_end = self.page + page_bytes;
    }

    fn finish_page(&mut self) {
        let page = self.page;
        let is_foreign = self.amounts[StretchKind::Foreign as usize] == self.page_bytes;
        let has_page = |run: &&PageRun| run.range.start <= page && !is_foreign;
        match self.pages_ahead().filter(has_page).map(|run| run.is_swapped) {
            Some(false) => self.fold_present(),
            Some(true) => {
                let page_bytes = self.page_bytes;
                self.totals.swapped += page_bytes;
                if let Some(cell) = self.cell() {
                    cell.swapped += page_bytes;
                }
            }
            None => {
                self.cell();
            }
        }
        self.amounts = [0; KINDS];
        self.page = self.page_end;
        self.page_end += self.page_bytes;
    }

    fn fold_present(&mut self) {
        let bytes = self.page_bytes;
        let of = |kind: StretchKind| self.amounts[kind as usize];
        let (live, cached) = (of(StretchKind::Live), of(StretchKind::Cached));
        let (free, top) = (of(StretchKind::Free), of(StretchKind::Top));
        let unknown = of(StretchKind::Unknown);
        let used = bytes - (free + top).min(bytes);
        let is_whole_top = top > 0 && used == 0;
        let begins_after = |from: u64, kept: u64| self.page >= from.saturating_add(kept);
        let is_returnable = if is_whole_top {
            self.top == TopOwner::Main && begins_after(self.top_from, KEPT_OF_TOP)
        } else {
            free == bytes && begins_after(self.run_from, KEPT_OF_FREE)
        };
        let is_thread_top = is_whole_top && self.top == TopOwner::Thread;
        let returnable = if is_returnable { bytes } else { 0 };
        let thread_top = if is_thread_top { bytes } else { 0 };
        let totals = &mut self.totals;
        totals.resident += bytes;
        totals.free_resident += free + top;
        totals.live_resident += live;
        totals.returnable += returnable;
        totals.thread_tops += thread_top;
        totals.main_top += if is_whole_top { bytes - thread_top } else { 0 };
        totals.by_live_share[share_class(live + cached, bytes)] += bytes;
        if let Some(cell) = self.cell() {
            cell.live += live;
            cell.cached += cached;
            cell.free += free + top;
            cell.resident += bytes;
            cell.returnable += returnable;
            cell.thread_top += thread_top;
            cell.unknown += unknown;
        }
    }

    /// The cell of the current page.
    fn cell(&mut self) -> Option<&mut Cell> {
        let index = (self.page - self.row.start) / self.cell_bytes;
        let index = usize::try_from(index).ok().filter(|index| *index < CELLS_MAX)?;
        if index >= self.row.cells.len() {
            self.row.cells.resize(index + 1, Cell::default());
        }
        self.row.cells.get_mut(index)
    }
}

/// No row has more cells.
const CELLS_MAX: usize = 1 << 16;

/// Returns the class of [`PageTotals::by_live_share`].
fn share_class(used: u64, page: u64) -> usize {
    let bounds = [1, page / 4, page / 2, page / 4 * 3, page];
    bounds.iter().filter(|bound| used >= **bound).count()
}
