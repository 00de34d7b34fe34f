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
/// No more of a file's data is searched: programs have few MiB.
const DATA_BYTES_MAX: u64 = 256 << 20;

/// Returns the arenas of a process; `None` if no data has their form.
pub(crate) fn arenas(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    page: u64,
) -> Option<FoundArenas> {
    candidates(mappings)
        .into_iter()
        .find_map(|data| in_data(memory, mappings, &data, page))
}

/// Returns ranges of static data in the order in which they are searched: the C library's, then others'. A file's
/// zero-initialised data is anonymous memory directly behind it.
fn candidates(mappings: &Mappings) -> Vec<Range<u64>> {
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
        let end = end.min(mapping.range.start.saturating_add(DATA_BYTES_MAX));
        found.push((!is_c_library(mapping), mapping.range.start..end));
    }
    found.sort_by_key(|(is_other, _)| *is_other);
    found.into_iter().map(|(_, range)| range).collect()
}

fn is_c_library(mapping: &Mapping) -> bool {
    let path = mapping.path().unwrap_or_default();
    let name = path.rsplit(|c| *c == b'/').next().unwrap_or_default();
    name == b"libc.so.6" || name.starts_with(b"libc-2.")
}

/// Searches one range of data for an arena's bins.
fn in_data(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    data: &Range<u64>,
    page: u64,
) -> Option<FoundArenas> {
    let overlap = BIN_PAIRS * 16;
    window::search(memory, data, overlap, page, |window| {
        let range = window.range();
        (range.start..)
            .step_by(8)
            .take_while(|at| at + 16 <= range.end)
            .filter(|at| is_empty_bin(window, *at))
            .find_map(|at| bins_around(memory, mappings, data, at))
    })
}

fn is_empty_bin(window: &PageWindow, at: u64) -> bool {
    let own = at.wrapping_sub(16);
    window.word(at) == Some(own) && window.word(at + 8) == Some(own)
}

/// Returns the arenas if `at` is one of the bins of the main arena.
fn bins_around(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    data: &Range<u64>,
    at: u64,
) -> Option<FoundArenas> {
    (0..BIN_PAIRS)
        .filter_map(|index| at.checked_sub(index * 16))
        .filter(|bins| {
            bins.checked_sub(TOP_BEFORE_BINS)
                .is_some_and(|top| top >= data.start)
        })
        .find_map(|bins| {
            let area = ArenaWords::read(memory, bins)?;
            area.is_arena(mappings).then_some(())?;
            let ring = BINS_OFFSETS
                .into_iter()
                .find_map(|offset| Some((offset, ring(memory, mappings, bins, offset)?)));
            let is_ring_whole = ring.is_some();
            // A damaged ring leaves the main arena: its own fields do not depend on the layout.
            let (offset, ring) = ring.unwrap_or((BINS_OFFSETS[0], vec![bins]));
            Some(FoundArenas {
                layout: ArenaLayout {
                    bins_offset: offset,
                    system_behind_bins: system_offset(&area),
                },
                bins: ring,
                data: data.clone(),
                is_ring_whole,
            })
        })
}

/// The words of an arena from `top` on, copied at once.
#[derive(Debug)]
pub(crate) struct ArenaWords {
    bins: u64,
    words: [u64; ARENA_WORDS],
}

/// `top`, `last_remainder`, the bins, their map, and eight words from `next` on.
const ARENA_WORDS: usize = (2048 + 64 + 16) / 8;

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
        let is_chunk = |address: u64| {
            address.is_multiple_of(16)
                && mappings
                    .at(address)
                    .is_some_and(|one| one.is_anonymous() && one.is_private_writable())
        };
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
