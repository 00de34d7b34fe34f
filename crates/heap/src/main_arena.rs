//! Finding malloc's data without symbols: an empty bin of an arena points at itself.
//!
//! `main_arena` is static data of the C library, or of a statically linked program. Its array of 127 list heads is
//! recognised by its form: each pair of words points at itself (16 bytes before) or at chunks. The ring of arenas
//! then shows which layout it is.

use std::ops::Range;

use probe::{Mapping, Mappings};

use crate::layout::{
    ATTACHED_BEHIND_BINS, ArenaLayout, BIN_PAIRS, BINS_OFFSETS, NEXT_BEHIND_BINS, TOP_BEFORE_BINS,
};
use crate::memory::TargetMemory;
use crate::window::{self, PageWindow};

/// The arenas of a process, and how they are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundArenas {
    pub(crate) layout: ArenaLayout,
    /// Addresses of `bins[0]`, the main arena's first.
    pub(crate) bins: Vec<u64>,
    /// The data that holds `main_arena`, and most likely `mp_`.
    pub(crate) data: Range<u64>,
    /// Whether the ring of arenas is closed.
    pub(crate) is_ring_whole: bool,
}

/// More arenas than this are a forged ring: malloc makes 8 for each CPU at most, unless a setting says otherwise.
pub(crate) const ARENAS_MAX: usize = 16_384;
/// Bins that are being emptied or filled, one link after the other: the arena's lock permits one at a time, and a
/// process may be stopped right then.
const HALF_LINKED_MAX: u64 = 2;
/// No more data is searched: programs have few MiB, and what is initialised comes first.
const SEARCHED_BYTES_MAX: u64 = 256 << 20;
/// Pointers of candidates that are looked up among the mappings: 4096 arenas. A program has one main arena; more are forged.
const LOOKUPS_MAX: u64 = 1 << 20;

/// Returns the arenas of a process; `None` if no data has their form.
pub(crate) fn arenas(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    page: u64,
) -> Option<FoundArenas> {
    let mut search = ArenaSearch { memory, mappings, page, left: LOOKUPS_MAX };
    ranges(mappings).into_iter().find_map(|data| search.in_data(&data))
}

/// Returns ranges of static data in the order in which they are searched: the C library's, then others'. A file's
/// zero-initialised data is anonymous memory directly behind it.
fn ranges(mappings: &Mappings) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    for (index, mapping) in mappings.all.iter().enumerate() {
        if mapping.path().is_none() || !mapping.is_private_writable() {
            continue;
        }
        let mut end = mapping.range.end;
        for next in &mappings.all[index + 1..] {
            let follows = next.range.start == end
                && next.is_anonymous()
                && next.is_private_writable()
                && next.name != b"[heap]";
            if !follows {
                break;
            }
            end = next.range.end;
        }
        found.push((!is_c_library(mapping), mapping.range.start..end));
    }
    found.sort_by_key(|(is_other, _)| *is_other);
    let mut left = SEARCHED_BYTES_MAX;
    let ranges = found.into_iter().map_while(|(_, range)| {
        let bytes = (range.end - range.start).min(left);
        left -= bytes;
        (bytes > 0).then_some(range.start..range.start + bytes)
    });
    ranges.collect()
}

fn is_c_library(mapping: &Mapping) -> bool {
    let path = mapping.path().unwrap_or_default();
    let name = path.rsplit(|c| *c == b'/').next().unwrap_or_default();
    name == b"libc.so.6" || name.starts_with(b"libc-2.")
}

/// A search for the main arena.
struct ArenaSearch<'a, M> {
    memory: &'a M,
    mappings: &'a Mappings,
    page: u64,
    /// Pointers that may still be looked up.
    left: u64,
}

impl<M: TargetMemory> ArenaSearch<'_, M> {
    /// Searches one range of data for an arena's bins. Each arena lies within one of the overlapping windows.
    fn in_data(&mut self, data: &Range<u64>) -> Option<FoundArenas> {
        window::search(self.memory, data, ARENA_BYTES, self.page, |window| {
            let range = window.range();
            (range.start..)
                .step_by(8)
                .take_while(|at| at + 16 <= range.end)
                .filter(|at| is_empty_bin(window, *at))
                .find_map(|at| self.bins_around(window, data, at))
        })
    }

    /// Returns the arenas if `at` is one of the bins of the main arena, and the first empty one.
    fn bins_around(
        &mut self,
        window: &PageWindow,
        data: &Range<u64>,
        at: u64,
    ) -> Option<FoundArenas> {
        let first = data.start.max(window.range().start);
        for index in 0..BIN_PAIRS {
            let bins = at.checked_sub(index * 16)?;
            // What begins before another empty bin was checked with that one.
            let is_checked = index > 0 && is_empty_bin(window, bins);
            if is_checked || bins.checked_sub(TOP_BEFORE_BINS)? < first {
                return None;
            }
            if let Some(area) = self.candidate(window, bins) {
                return Some(self.found(&area, data));
            }
        }
        None
    }

    /// Returns the words of an arena if one has its bins here.
    fn candidate(&mut self, window: &PageWindow, bins: u64) -> Option<ArenaWords> {
        let top_field = bins - TOP_BEFORE_BINS;
        let end = top_field + ARENA_BYTES;
        if end > window.range().end {
            return None;
        }
        if window.is_present(top_field) {
            self.left = self.left.checked_sub(1)?;
            let top = window.word(top_field)?;
            if top != top_field && !is_chunk(self.mappings, top) {
                return None;
            }
        }
        self.left = self.left.checked_sub(BIN_PAIRS * 2)?;
        let area = if window.is_present(top_field) && window.is_present(end - 8) {
            ArenaWords { bins, words: window.words(top_field) }
        } else {
            ArenaWords::read(self.memory, bins)?
        };
        area.is_arena(self.mappings).then_some(area)
    }

    /// The main arena and those in its ring.
    fn found(&self, area: &ArenaWords, data: &Range<u64>) -> FoundArenas {
        let ring = BINS_OFFSETS.into_iter().find_map(|offset| {
            Some((offset, ring(self.memory, self.mappings, area.bins, offset)?))
        });
        let is_ring_whole = ring.is_some();
        // A damaged ring leaves the main arena: its own fields do not depend on the layout.
        let (offset, ring) = ring.unwrap_or((BINS_OFFSETS[0], vec![area.bins]));
        FoundArenas {
            layout: ArenaLayout { bins_offset: offset, system_behind_bins: system_offset(area) },
            bins: ring,
            data: data.clone(),
            is_ring_whole,
        }
    }
}

fn is_empty_bin(window: &PageWindow, at: u64) -> bool {
    let own = at.wrapping_sub(16);
    window.word(at) == Some(own) && window.word(at + 8) == Some(own)
}

/// Whether a chunk may be at an address.
fn is_chunk(mappings: &Mappings, address: u64) -> bool {
    address.is_multiple_of(16)
        && mappings.at(address).is_some_and(|one| one.is_anonymous() && one.is_private_writable())
}

/// The words of an arena from `top` on, copied at once.
#[derive(Debug)]
pub(crate) struct ArenaWords {
    bins: u64,
    words: [u64; ARENA_WORDS],
}

/// `top`, `last_remainder`, the bins, their map, and eight words from `next` on.
const ARENA_WORDS: usize = 266;
const ARENA_BYTES: u64 = ARENA_WORDS as u64 * 8;

impl ArenaWords {
    pub(crate) fn read(memory: &impl TargetMemory, bins: u64) -> Option<Self> {
        let words = memory.words(bins.checked_sub(TOP_BEFORE_BINS)?)?;
        Some(Self { bins, words })
    }

    /// The word at an offset from `bins[0]`; only the fields behind `top` are there.
    pub(crate) fn word(&self, offset: u64) -> u64 {
        let index = usize::try_from((offset + TOP_BEFORE_BINS) / 8).unwrap_or(usize::MAX);
        self.words.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn top(&self) -> u64 {
        self.words[0]
    }

    /// A sum over the bins that differs where they do.
    pub(crate) fn sum_of_bins(&self) -> u64 {
        let bins = (0..BIN_PAIRS * 2).map(|index| self.word(index * 8));
        bins.fold(0, |sum: u64, word| sum.rotate_left(5) ^ word)
    }

    /// Whether malloc has never used the arena: its top is its own first bin.
    pub(crate) fn is_unused(&self) -> bool {
        self.top() == self.bins - TOP_BEFORE_BINS
    }

    /// Whether all bins are empty or point at chunks, and top is a chunk.
    fn is_arena(&self, mappings: &Mappings) -> bool {
        let is_chunk = |address: u64| is_chunk(mappings, address);
        let mut half_linked = 0;
        let pairs = (0..BIN_PAIRS).all(|index| {
            let own = self.bins + index * 16 - 16;
            let (forward, back) = (self.word(index * 16), self.word(index * 16 + 8));
            half_linked += u64::from((forward == own) != (back == own));
            (forward == own || is_chunk(forward)) && (back == own || is_chunk(back))
        });
        pairs && half_linked <= HALF_LINKED_MAX && (self.is_unused() || is_chunk(self.top()))
    }
}

/// Follows the ring of arenas from the main one; `None` if it does not come back.
fn ring(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    bins: u64,
    offset: u64,
) -> Option<Vec<u64>> {
    let main = bins.checked_sub(offset)?;
    let mut all = vec![bins];
    let mut state = memory.word(bins + NEXT_BEHIND_BINS)?;
    while state != main {
        let is_arena =
            state.is_multiple_of(8) && mappings.at(state).is_some_and(Mapping::is_private_writable);
        if !is_arena || all.len() >= ARENAS_MAX {
            return None;
        }
        let next = state.checked_add(offset)?;
        all.push(next);
        state = memory.word(next.checked_add(NEXT_BEHIND_BINS)?)?;
    }
    Some(all)
}

/// Returns where `system_mem` is: behind `attached_threads`, which 2.23 added and which counts threads, not bytes.
fn system_offset(main: &ArenaWords) -> u64 {
    let third = main.word(ATTACHED_BEHIND_BINS);
    if third >= 4096 && third.is_multiple_of(4096) {
        ATTACHED_BEHIND_BINS
    } else {
        ATTACHED_BEHIND_BINS + 8
    }
}
