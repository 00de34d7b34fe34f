//! Chunks with a mapping of their own: large allocations.
//!
//! Such a chunk begins at a page, its size is whole pages, and its flag 2 is set. Each page of other anonymous memory
//! may begin one: 16 bytes of each resident page are read, in batches. The search ends when the counters of `mp_` are
//! reached. What was never touched is passed over: runtimes reserve TiB.

use std::ops::Range;

use probe::{Mapping, Mappings, PageRun};

use crate::chunk::SizeWord;
use crate::memory::TargetMemory;
use crate::parameters::Parameters;
use crate::window::STEP_BYTES_MAX;

/// A chunk with a mapping of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MmappedChunk {
    /// Its addresses, whole pages.
    pub range: Range<u64>,
    /// Its resident pages, in bytes.
    pub resident: u64,
    /// Its pages in swap, in bytes.
    pub swapped: u64,
}

/// Pages that are searched: 16 GiB of resident memory that is not malloc's.
const PAGES_MAX: u64 = 4 << 20;
/// Words of the page map that are read on kernels that cannot scan it: 64 GiB of address space. Chunks behind them are not
/// found, and the counters of `mp_` show that.
const WORDS_MAX: u64 = 16 << 20;
/// Headers that are read with one call.
const BATCH: usize = 512;

/// Returns the chunks in anonymous memory outside of `parts`, disjoint ranges in order of address.
pub(crate) fn find(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    parts: &[Range<u64>],
    known: Option<Parameters>,
    page: u64,
) -> Vec<MmappedChunk> {
    let mut search = MmappedSearch {
        memory,
        page,
        known,
        found: Vec::new(),
        bytes: 0,
        left: PAGES_MAX,
        words_left: WORDS_MAX,
    };
    let mut ranges = neighbours_joined(mappings.all.iter().filter(|one| may_hold(one)));
    // A chunk has a mapping of its own in most cases; the largest ones are what runtimes reserve.
    ranges.sort_by_key(|one| one.end - one.start);
    for range in ranges {
        // The kernel merges a chunk's mapping with a heap beside it: what is no heap's is searched.
        let mut from = range.start;
        let first = parts.partition_point(|part| part.end <= from);
        let rest = parts[first..].iter();
        for part in rest.take_while(|part| part.start < range.end) {
            search.range(&(from..part.start.max(from)));
            from = part.end;
        }
        search.range(&(from..range.end));
    }
    search.found.sort_by_key(|chunk| chunk.range.start);
    search.found
}

/// Joins mappings that touch: advice for a part of a chunk, such as that of numpy for huge pages, splits its mapping.
fn neighbours_joined<'a>(mappings: impl Iterator<Item = &'a Mapping>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for mapping in mappings {
        match joined.last_mut() {
            Some(last) if last.end == mapping.range.start => last.end = mapping.range.end,
            _ => joined.push(mapping.range.clone()),
        }
    }
    joined
}

fn may_hold(mapping: &Mapping) -> bool {
    mapping.is_anonymous()
        && mapping.is_private_writable()
        && mapping.access.read
        && (mapping.name.is_empty() || mapping.name.starts_with(b"[anon:"))
}

struct MmappedSearch<'a, M> {
    memory: &'a M,
    page: u64,
    known: Option<Parameters>,
    found: Vec<MmappedChunk>,
    bytes: u64,
    left: u64,
    words_left: u64,
}

impl<M: TargetMemory> MmappedSearch<'_, M> {
    fn is_done(&self) -> bool {
        let is_complete = self.known.is_some_and(|known| {
            self.found.len() as u64 >= known.mmapped_chunks && self.bytes >= known.mmapped_bytes
        });
        is_complete || self.left == 0 || self.words_left == 0
    }

    /// Searches a range, which may hold several chunks and what is not malloc's.
    fn range(&mut self, range: &Range<u64>) {
        let mut runs = Vec::new();
        let mut at = range.start;
        while at < range.end && !self.is_done() {
            let until = self.populated(at, range.end, &mut runs);
            at = self.part(at, until, range.end, &runs);
        }
    }

    /// Replaces `runs` by those from `at` on. Returns up to where they are known.
    fn populated(&mut self, at: u64, end: u64, runs: &mut Vec<PageRun>) -> u64 {
        runs.clear();
        let range = at..end.min(at.saturating_add(STEP_BYTES_MAX));
        let known = self.memory.populated(&range, runs);
        self.words_left = self.words_left.saturating_sub(known.words);
        known.until
    }

    /// Searches the pages of a range. Returns where the search goes on: behind the last chunk.
    fn part(&mut self, from: u64, until: u64, end: u64, runs: &[PageRun]) -> u64 {
        let page = usize::try_from(self.page).unwrap_or(4096);
        let present: Vec<u64> = runs
            .iter()
            .filter(|run| !run.is_swapped)
            .flat_map(|run| run.range.clone().step_by(page))
            .collect();
        let mut behind = from;
        for batch in present.chunks(BATCH) {
            if batch.last().is_some_and(|last| *last < behind) {
                continue;
            }
            let (mut parts, mut buffer) = (Vec::new(), vec![0; batch.len() * 16]);
            parts.extend(batch.iter().map(|at| *at..*at + 16));
            let got = self.memory.read_parts(&parts, &mut buffer);
            self.left = self.left.saturating_sub(batch.len() as u64);
            for (at, header) in batch.iter().zip(buffer[..got].chunks_exact(16)) {
                if *at >= behind
                    && let Some(size) = self.chunk_size(header, end - at)
                {
                    behind = at + size;
                    self.add(*at..behind);
                }
            }
            if self.is_done() {
                return end;
            }
        }
        behind.max(until)
    }

    /// Returns the size of the chunk with this header; `None` if it is none.
    fn chunk_size(&self, header: &[u8], room: u64) -> Option<u64> {
        let previous = u64::from_le_bytes(*header.first_chunk()?);
        let word = SizeWord(u64::from_le_bytes(*header.get(8..)?.first_chunk()?));
        // An aligned chunk begins behind its mapping's start; `prev_size` is the distance. Since 2.43 the size leaves
        // out the 16 bytes of the header.
        let size = word.size().checked_add(previous)?.checked_next_multiple_of(self.page)?;
        let rest = size - word.size() - previous;
        let fits =
            word.0 & 7 == 2 && (rest == 0 || rest == 16) && (self.page..=room).contains(&size);
        fits.then_some(size)
    }

    fn add(&mut self, range: Range<u64>) {
        self.bytes += range.end - range.start;
        let (resident, swapped) = self.residency(&range);
        self.found.push(MmappedChunk { range, resident, swapped });
    }

    /// Returns the bytes of a range that are in RAM and in swap.
    fn residency(&mut self, range: &Range<u64>) -> (u64, u64) {
        let (mut resident, mut swapped) = (0, 0);
        let mut runs = Vec::new();
        let mut at = range.start;
        while at < range.end && self.words_left > 0 {
            at = self.populated(at, range.end, &mut runs);
            for run in &runs {
                let sum = if run.is_swapped { &mut swapped } else { &mut resident };
                *sum += run.range.end - run.range.start;
            }
        }
        (resident, swapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_advice_split_is_searched_as_one_range() {
        let text = b"7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n\
            7f0000200000-7f0000a00000 rw-p 00000000 00:00 0 \n\
            7f0000b00000-7f0000c00000 rw-p 00000000 00:00 0 \n";
        let mappings = Mappings::parse(text).all;
        let expected = [0x7f00_0000_0000..0x7f00_00a0_0000, 0x7f00_00b0_0000..0x7f00_00c0_0000];
        assert_eq!(neighbours_joined(mappings.iter()), expected);
    }
}
