//! Which anonymous mappings have a runtime's own headers in them? Some of their pages are read, the present ones only.

use std::ops::Range;

use probe::{ProcessMemory, SmapsBlock, SmapsField};
use units::Bytes;

use crate::malloc_ranges::MallocRanges;

/// Pages of a mapping that are read, where there are few mappings.
const PAGES_MAX: u64 = 256;
/// The fewest that show what a mapping is.
const PAGES_MIN: u64 = 16;
/// Pages of all mappings together that are read: 0.2 s.
const ALL_PAGES_MAX: u64 = 1 << 17;
/// Mappings beyond this number are not read.
const MAPPINGS_MAX: usize = 4096;

/// The resident, unnamed mappings of a process, and which of their pages are in RAM.
pub(crate) struct SampledPages<'a> {
    memory: &'a ProcessMemory,
    mappings: Vec<&'a SmapsBlock>,
    pages_max: u64,
    /// Addresses that malloc owns, in order: it may share a mapping with a runtime.
    mallocs: Vec<Range<u64>>,
}

impl<'a> SampledPages<'a> {
    /// Samples the mappings of at least `size_min` bytes.
    pub(crate) fn new(memory: &'a ProcessMemory, blocks: &'a [SmapsBlock], size_min: u64) -> Self {
        let is_candidate = |block: &&SmapsBlock| {
            let mapping = &block.mapping;
            mapping.is_anonymous()
                && mapping.name.is_empty()
                && mapping.is_private_writable()
                && mapping.size_bytes() >= size_min
                && block.get(SmapsField::Rss) > Some(Bytes::ZERO)
        };
        let candidates = blocks.iter().filter(is_candidate);
        let mappings: Vec<_> = candidates.take(MAPPINGS_MAX).collect();
        let share = ALL_PAGES_MAX / mappings.len().max(1) as u64;
        let pages_max = share.clamp(PAGES_MIN, PAGES_MAX);
        Self { memory, mappings, pages_max, mallocs: Vec::new() }
    }

    /// Leaves out what malloc owns.
    pub(crate) fn without(mut self, malloc: Option<&MallocRanges>) -> Self {
        let ranges = malloc.into_iter().flat_map(|all| [&all.main, &all.thread, &all.mmapped]);
        self.mallocs = ranges.flatten().map(|one| one.range.clone()).collect();
        self.mallocs.sort_by_key(|range| range.start);
        self
    }

    /// The parts of a mapping that malloc does not own.
    fn gaps(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let first = self.mallocs.partition_point(|one| one.end <= range.start);
        let mut from = range.start;
        let mut gaps = Vec::new();
        for one in self.mallocs[first..].iter().take_while(|one| one.start < range.end) {
            gaps.push(from..one.start.max(from));
            from = one.end.max(from);
        }
        gaps.push(from..range.end.max(from));
        gaps
    }

    /// Returns the first addresses of the mappings that satisfy `is_wanted`.
    pub(crate) fn first_addresses(&self, is_wanted: impl Fn(&SmapsBlock) -> bool) -> Vec<u64> {
        let found = self.mappings.iter().filter(|block| is_wanted(block));
        found.map(|block| block.mapping.range.start).collect()
    }

    /// Calls `each` for present pages of this size, spread over what malloc does not own of a mapping.
    pub(crate) fn each(&self, block: &SmapsBlock, page_bytes: u64, each: &mut dyn FnMut(u64)) {
        let gaps = self.gaps(&block.mapping.range);
        let pages_of = |gap: &Range<u64>| {
            let first = gap.start.next_multiple_of(page_bytes);
            (first, gap.end.saturating_sub(first) / page_bytes)
        };
        let pages: u64 = gaps.iter().map(|gap| pages_of(gap).1).sum();
        let step = pages.div_ceil(self.pages_max).max(1);
        for (first, pages) in gaps.iter().map(pages_of) {
            for page in (0..pages).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
                let at = first + page * page_bytes;
                // A page in swap would be read back.
                if self.memory.is_present(at) {
                    each(at);
                }
            }
        }
    }
}
