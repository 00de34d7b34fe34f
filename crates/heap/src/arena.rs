//! An arena: its fields, and the parts of memory that its chunks lie in.

use std::collections::BTreeMap;
use std::ops::Range;

use probe::{Mapping, Mappings};

use crate::layout::{ArenaLayout, FAST_BEFORE_BINS, FAST_BINS, HEAP_ALIGNMENTS, TOP_BEFORE_BINS};
use crate::main_arena::ArenaWords;
use crate::memory::TargetMemory;
use crate::parameters::Parameters;

/// A part of an arena, and where its first chunk begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArenaPart {
    pub(crate) range: Range<u64>,
    pub(crate) first_chunk: u64,
    /// Whether it may hold what is not the heap's.
    pub(crate) may_be_foreign: bool,
}

/// The fields of an arena that change while the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArenaFields {
    pub(crate) top: u64,
    pub(crate) system_bytes: u64,
    /// Heads of its fast bins; none since 2.43.
    pub(crate) fast_heads: Option<[u64; FAST_BINS]>,
    /// A sum over its lists' heads, which change whenever a chunk enters or leaves one.
    pub(crate) lists: u64,
}

impl ArenaFields {
    /// Reads the fields of the arena with these bins; `None` if they cannot be read.
    pub(crate) fn read(memory: &impl TargetMemory, layout: ArenaLayout, bins: u64) -> Option<Self> {
        Some(Self::of(memory, layout, bins, &ArenaWords::read(memory, bins)?))
    }

    /// How much the arena's size changed since, or, if it did not, where its top begins.
    pub(crate) fn drift_bytes(&self, before: &Self) -> u64 {
        match self.system_bytes.abs_diff(before.system_bytes) {
            0 => self.top.abs_diff(before.top).min(before.system_bytes),
            drift => drift,
        }
    }

    fn of(memory: &impl TargetMemory, layout: ArenaLayout, bins: u64, words: &ArenaWords) -> Self {
        Self {
            top: words.top(),
            system_bytes: words.word(layout.system_behind_bins).min(ADDRESSES),
            fast_heads: layout
                .has_fast_bins()
                .then(|| memory.words(bins - FAST_BEFORE_BINS))
                .flatten(),
            lists: words.sum_of_bins(),
        }
    }
}

/// An arena as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArenaState {
    pub(crate) bins: u64,
    pub(crate) is_main: bool,
    pub(crate) fields: ArenaFields,
    pub(crate) parts: Vec<ArenaPart>,
    /// Whether its chain of heaps ended as it should.
    pub(crate) is_whole: bool,
}

/// Returns the memory behind the program's data that `brk` moves the end of. A program that locks or protects a page of it
/// divides the mapping.
pub(crate) fn program_break(mappings: &Mappings) -> Option<Range<u64>> {
    let mut all = mappings.all.iter().filter(|one| one.name == b"[heap]");
    let first = &all.next()?.range;
    let end = all.next_back().map_or(first.end, |last| last.range.end);
    Some(first.start..end)
}

/// Heaps of thread arenas by their starts, with their ends.
#[derive(Debug)]
pub(crate) struct ThreadHeaps<'a> {
    mappings: &'a Mappings,
    ends: BTreeMap<u64, u64>,
}

impl<'a> ThreadHeaps<'a> {
    pub(crate) const fn new(mappings: &'a Mappings) -> Self {
        Self { mappings, ends: BTreeMap::new() }
    }

    /// Adds a heap. One that overlaps another is forged, or a chain's loop, and so is one with memory that it may share:
    /// a process can map the same pages many times.
    fn add(&mut self, heap: &Range<u64>) -> bool {
        let before = self.ends.range(..heap.end).next_back();
        let is_apart = before.is_none_or(|(_, end)| *end <= heap.start);
        let is_own = |mapping: &Mapping| {
            let is_anonymous = mapping.is_anonymous() || mapping.name.starts_with(HUGE_PAGES);
            is_anonymous && !mapping.access.shared
        };
        let is_heap = is_apart && self.mappings.within(heap).all(is_own);
        if is_heap {
            self.ends.insert(heap.start, heap.end);
        }
        is_heap
    }
}

/// What the kernel calls private huge pages, in which malloc has its heaps with `glibc.malloc.hugetlb`.
const HUGE_PAGES: &[u8] = b"/anon_hugepage";
/// Addresses of a process. A damaged arena may claim any size; with this one as the most, no sum overflows.
const ADDRESSES: u64 = 1 << 47;
/// `NONCONTIGUOUS_BIT` of an arena's flags.
const NONCONTIGUOUS: u64 = 2;

impl ArenaState {
    pub(crate) const fn top_field(&self) -> u64 {
        self.bins - TOP_BEFORE_BINS
    }

    /// Reads an arena; `None` if malloc never used it, or it cannot be read.
    pub(crate) fn read(
        memory: &impl TargetMemory,
        mappings: &Mappings,
        layout: ArenaLayout,
        bins: u64,
        is_main: bool,
        known: Option<Parameters>,
        heaps: &mut ThreadHeaps<'_>,
    ) -> Option<Self> {
        let words = ArenaWords::read(memory, bins)?;
        if words.is_unused() {
            return None;
        }
        let mut arena = Self {
            bins,
            is_main,
            fields: ArenaFields::of(memory, layout, bins, &words),
            parts: Vec::new(),
            is_whole: true,
        };
        if is_main {
            let flags = memory.word(bins - layout.bins_offset).unwrap_or(0) >> 32;
            arena.main_parts(memory, mappings, &words, flags & NONCONTIGUOUS != 0, known);
        } else {
            arena.thread_parts(memory, bins - layout.bins_offset, layout, heaps);
        }
        Some(arena)
    }

    /// A thread arena: heaps of 64 MiB of address space, each with a header that links to the one before it.
    fn thread_parts(
        &mut self,
        memory: &impl TargetMemory,
        state: u64,
        layout: ArenaLayout,
        heaps: &mut ThreadHeaps<'_>,
    ) {
        let Some(alignment) = HEAP_ALIGNMENTS.into_iter().find(|alignment| {
            let heap = self.fields.top & !(alignment - 1);
            memory.word(heap) == Some(state) && state & (alignment - 1) < 4096
        }) else {
            self.is_whole = false;
            return;
        };
        let header_bytes = state & (alignment - 1);
        let mut heap = self.fields.top & !(alignment - 1);
        loop {
            let [owner, previous, size] = memory.words(heap).unwrap_or_default();
            let is_heap = owner == state && (4096..=alignment).contains(&size);
            if !is_heap || !heaps.add(&(heap..heap + size)) {
                self.is_whole = false;
                return;
            }
            let is_first = state & !(alignment - 1) == heap;
            let first = if is_first { state + layout.state_bytes() } else { heap + header_bytes };
            self.parts.push(ArenaPart {
                range: heap..heap + size,
                first_chunk: first.next_multiple_of(16),
                may_be_foreign: false,
            });
            if previous == 0 {
                return;
            }
            heap = previous;
            if !heap.is_multiple_of(alignment) {
                self.is_whole = false;
                return;
            }
        }
    }

    /// The main arena: `[heap]`, and other anonymous memory where it could not grow by `brk`.
    fn main_parts(
        &mut self,
        memory: &impl TargetMemory,
        mappings: &Mappings,
        words: &ArenaWords,
        is_noncontiguous: bool,
        known: Option<Parameters>,
    ) {
        let heap = program_break(mappings);
        let start = known.map_or(0, |known| known.heap_start);
        if let Some(heap) = heap {
            let first = if start == 0 { heap.start } else { start };
            let in_heap = heap.contains(&self.fields.top);
            let end = if in_heap && !is_noncontiguous {
                let size = memory.word(self.fields.top + 8).unwrap_or(0) & !7;
                self.fields.top.saturating_add(size).min(heap.end)
            } else {
                heap.end
            };
            if first < end && (start != 0 || in_heap) {
                self.parts.push(ArenaPart {
                    range: first..end,
                    first_chunk: first.next_multiple_of(16),
                    may_be_foreign: true,
                });
            }
        }
        let bins = (0..crate::layout::BIN_PAIRS * 2).map(|index| words.word(index * 8));
        for address in std::iter::once(self.fields.top).chain(bins) {
            let Some(mapping) = mappings.at(address) else {
                continue;
            };
            let is_data = !mapping.is_anonymous() || mapping.range.contains(&self.bins);
            let is_known = self.parts.iter().any(|part| part.range.contains(&address));
            if is_data || is_known || mapping.name == b"[heap]" || !mapping.is_private_writable() {
                continue;
            }
            self.parts.push(ArenaPart {
                range: mapping.range.clone(),
                first_chunk: mapping.range.start.next_multiple_of(16),
                may_be_foreign: true,
            });
        }
    }
}
