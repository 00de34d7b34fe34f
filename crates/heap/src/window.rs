//! A window onto a process's memory: the resident pages of a short range, copied at once and read as words.
//!
//! Pages that are not in RAM read as zeros: asking the kernel for them would map the zero page, or swap them in.

use std::ops::Range;

use probe::PageRun;

use crate::memory::TargetMemory;

/// A window of at most [`WINDOW_BYTES`], or a gap.
#[derive(Debug)]
pub(crate) struct PageWindow {
    range: Range<u64>,
    /// Empty if no page is in RAM.
    bytes: Vec<u8>,
    /// Its pages in RAM and in swap.
    runs: Vec<PageRun>,
    page_bytes: u64,
}

/// The largest window: the copy stays in the second-level cache until it is parsed, and a tear is as old as one copy.
/// 256 KiB to 1 MiB were equally fast; copying 64 MiB first was 1.7 times slower.
pub(crate) const WINDOW_BYTES: u64 = 512 << 10;
/// Absent pages in a row that a window clears rather than ends with.
const GAP_BYTES_MAX: u64 = 64 << 10;
/// Addresses of which the page states are asked for at once: the kernel holds the process's lock so long.
pub(crate) const STEP_BYTES_MAX: u64 = 64 << 20;

impl PageWindow {
    pub(crate) fn new(page_bytes: u64) -> Self {
        Self { range: 0..0, bytes: Vec::new(), runs: Vec::new(), page_bytes }
    }

    /// Loads at most `bytes_max`, in whole pages, from the page on that contains `from`, up to `end`, and no further than to
    /// a gap: many pages that are neither in RAM nor in swap. A window that begins with a gap is the gap.
    pub(crate) fn load(&mut self, memory: &impl TargetMemory, from: u64, end: u64, bytes_max: u64) {
        let page = self.page_bytes;
        let start = from / page * page;
        let end = end.max(start).div_ceil(page).saturating_mul(page);
        let near = end.min(start.saturating_add(bytes_max.max(page)));
        self.bytes.clear();
        self.runs.clear();
        let mut until = start;
        while until < near {
            until = memory.populated(&(until..near), &mut self.runs).until;
        }
        let is_gap = self.runs.is_empty();
        let mut step = WINDOW_BYTES;
        while self.runs.is_empty() && until < end {
            step = (step * 16).min(STEP_BYTES_MAX);
            let next = until..end.min(until.saturating_add(step));
            until = memory.populated(&next, &mut self.runs).until;
        }
        let mut behind = start;
        let before_gap = self.runs.iter().take_while(|run| {
            let is_near = !is_gap && run.range.start - behind <= GAP_BYTES_MAX;
            behind = if is_near { run.range.end } else { behind };
            is_near
        });
        let count = before_gap.count();
        if count == 0 {
            behind = self.runs.first().map_or(until, |run| run.range.start);
        }
        self.runs.truncate(count);
        self.range = start..behind;
        if self.runs.iter().any(|run| !run.is_swapped) {
            self.copy(memory);
        }
    }

    /// Copies the runs in RAM into their places, and clears the others.
    fn copy(&mut self, memory: &impl TargetMemory) {
        let start = self.range.start;
        let at = |address: u64| usize::try_from(address - start).unwrap_or(usize::MAX);
        // What is read is not cleared first: that would pass over it twice.
        self.bytes.resize(at(self.range.end), 0);
        let mut behind = 0;
        for run in self.runs.iter().filter(|run| !run.is_swapped) {
            let (from, to) = (at(run.range.start), at(run.range.end));
            self.bytes[behind..from].fill(0);
            // What was unmapped meanwhile reads as absent.
            let got = memory.read_at(run.range.start, &mut self.bytes[from..to]);
            self.bytes[from + got..to].fill(0);
            behind = to;
        }
        self.bytes[behind..].fill(0);
    }

    /// The addresses that it covers.
    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// The word at an address; `None` outside of the window.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.range.start) & !7;
        let word = self.bytes.get(usize::try_from(offset).ok()?..);
        match word.and_then(<[u8]>::first_chunk) {
            Some(word) => Some(u64::from_le_bytes(*word)),
            None => (self.bytes.is_empty() && self.range.contains(&address)).then_some(0),
        }
    }

    /// Neighbouring words at an aligned address; zeros outside of the window.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, address: u64) -> [u64; N] {
        let index = address.wrapping_sub(self.range.start) / 8;
        let all = self.bytes.as_chunks::<8>().0;
        let found =
            usize::try_from(index).ok().and_then(|index| all.get(index..)?.first_chunk::<N>());
        found.map_or_else(
            || std::array::from_fn(|index| self.word(address + index as u64 * 8).unwrap_or(0)),
            |words| words.map(u64::from_le_bytes),
        )
    }

    /// The page that contains an address.
    pub(crate) const fn page(&self, address: u64) -> Range<u64> {
        let start = address / self.page_bytes * self.page_bytes;
        start..start.saturating_add(self.page_bytes)
    }

    /// The pages in RAM or in swap that contain an address.
    fn run_at(&self, address: u64) -> Option<&PageRun> {
        let index = self.runs.partition_point(|run| run.range.end <= address);
        let run = self.runs.get(index);
        run.filter(|run| run.range.start <= address)
    }

    pub(crate) fn is_present(&self, address: u64) -> bool {
        self.run_at(address).is_some_and(|run| !run.is_swapped)
    }

    pub(crate) fn is_swapped(&self, address: u64) -> bool {
        self.run_at(address).is_some_and(|run| run.is_swapped)
    }

    /// The first address from this one on that is in RAM; `None` if none is in the window.
    pub(crate) fn present_from(&self, address: u64) -> Option<u64> {
        let index = self.runs.partition_point(|run| run.range.end <= address);
        let run = self.runs.get(index..)?.iter().find(|run| !run.is_swapped)?;
        Some(run.range.start.max(address))
    }
}

/// Slides a window over a range, each overlapping the one before it, until `find` returns something.
pub(crate) fn search<T>(
    memory: &impl TargetMemory,
    range: &Range<u64>,
    overlap: u64,
    page_bytes: u64,
    mut find: impl FnMut(&PageWindow) -> Option<T>,
) -> Option<T> {
    let mut window = PageWindow::new(page_bytes);
    let mut from = range.start;
    while from < range.end {
        window.load(memory, from, range.end, WINDOW_BYTES);
        // Zeros have no form that is searched for.
        if !window.bytes.is_empty()
            && let Some(found) = find(&window)
        {
            return Some(found);
        }
        let end = window.range().end;
        from = if end < range.end { end.saturating_sub(overlap).max(from + 1) } else { end };
    }
    None
}
