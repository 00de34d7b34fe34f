//! A window onto a process's memory: the resident pages of a short range, copied at once and read as words.
//!
//! Pages that are not in RAM read as zeros: asking the kernel for them would map the zero page, or swap them in.

use std::ops::Range;

use probe::PageState;

use crate::memory::TargetMemory;

/// A window of at most [`WINDOW_BYTES`].
#[derive(Debug)]
pub(crate) struct PageWindow {
    range: Range<u64>,
    bytes: Vec<u8>,
    states: Vec<PageState>,
    /// Stretches of pages, and whether they are in RAM.
    parts: Vec<(Range<u64>, bool)>,
    /// Whether no page is in RAM: then nothing is copied or cleared.
    is_absent: bool,
    page_bytes: u64,
}

/// The largest window: the copy stays in the second-level cache until it is parsed, and a tear is as old as one copy.
/// 256 KiB to 1 MiB were equally fast; copying 64 MiB first was 1.7 times slower.
const WINDOW_BYTES: u64 = 512 << 10;

impl PageWindow {
    pub(crate) fn new(page_bytes: u64) -> Self {
        Self {
            range: 0..0,
            bytes: Vec::new(),
            states: Vec::new(),
            parts: Vec::new(),
            is_absent: true,
            page_bytes,
        }
    }

    /// Loads the pages from the one that contains `from` on, up to `end`.
    pub(crate) fn load(&mut self, memory: &impl TargetMemory, from: u64, end: u64) {
        let page = self.page_bytes;
        let start = from / page * page;
        let end = end
            .min(start.saturating_add(WINDOW_BYTES.max(page)))
            .max(start);
        let aligned_end = end.div_ceil(page).saturating_mul(page).max(start);
        self.range = start..aligned_end;
        memory.page_states(&self.range, &mut self.states);
        self.is_absent = !self.states.iter().any(|state| state.is_present());
        if self.is_absent {
            self.bytes.clear();
            return;
        }
        let length = usize::try_from(aligned_end - start).unwrap_or(0);
        // What is read is not cleared first: that would pass over it twice.
        self.bytes.resize(length, 0);
        self.parts.clear();
        let mut address = start;
        let mut states = self.states.iter();
        while address < aligned_end {
            let is_present = states.next().is_some_and(|state| state.is_present());
            match self.parts.last_mut() {
                Some((last, kind)) if *kind == is_present => last.end += page,
                _ => self.parts.push((address..address + page, is_present)),
            }
            address += page;
        }
        self.read_present(memory);
    }

    /// Copies the present parts into their places, and clears the others.
    fn read_present(&mut self, memory: &impl TargetMemory) {
        let at = |address: u64| usize::try_from(address - self.range.start).unwrap_or(usize::MAX);
        for (part, is_present) in &self.parts {
            if let Some(buffer) = self.bytes.get_mut(at(part.start)..at(part.end)) {
                let got = if *is_present {
                    memory.read_at(part.start, buffer)
                } else {
                    0
                };
                // What was unmapped meanwhile reads as absent.
                buffer[got..].fill(0);
            }
        }
    }

    /// The addresses that it covers.
    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// The states of its pages.
    pub(crate) fn states(&self) -> &[PageState] {
        &self.states
    }

    /// The word at an address; `None` outside of the window.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.range.start) & !7;
        let word = self.bytes.get(usize::try_from(offset).ok()?..);
        match word.and_then(<[u8]>::first_chunk) {
            Some(word) => Some(u64::from_le_bytes(*word)),
            None => (self.is_absent && self.range.contains(&address)).then_some(0),
        }
    }

    /// Neighbouring words at an aligned address; zeros outside of the window.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, address: u64) -> [u64; N] {
        let index = address.wrapping_sub(self.range.start) / 8;
        let all = self.bytes.as_chunks::<8>().0;
        let found = usize::try_from(index)
            .ok()
            .and_then(|index| all.get(index..)?.first_chunk::<N>());
        found.map_or_else(
            || std::array::from_fn(|index| self.word(address + index as u64 * 8).unwrap_or(0)),
            |words| words.map(u64::from_le_bytes),
        )
    }

    /// Where the page ends that contains an address.
    pub(crate) const fn page_end(&self, address: u64) -> u64 {
        (address / self.page_bytes + 1).saturating_mul(self.page_bytes)
    }

    /// The state of the page that contains an address.
    pub(crate) fn state_at(&self, address: u64) -> PageState {
        let index = address.wrapping_sub(self.range.start) / self.page_bytes;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.states.get(index).copied().unwrap_or_default()
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
        window.load(memory, from, range.end);
        // Zeros have no form that is searched for.
        if !window.is_absent
            && let Some(found) = find(&window)
        {
            return Some(found);
        }
        let end = window.range().end;
        from = if end < range.end {
            end.saturating_sub(overlap).max(from + 1)
        } else {
            end
        };
    }
    None
}
