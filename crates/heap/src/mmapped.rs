//! Chunks with a mapping of their own: large allocations.
//!
//! Such a chunk begins at a page, its size is whole pages, and its flag 2 is set. Each page of other anonymous memory
//! may begin one: 16 bytes of each resident page are read, in batches. The search ends when the counters of `mp_` are
//! reached. What was never touched is passed over: runtimes reserve TiB.

use std::ops::Range;

use probe::{Mapping, Mappings, PageState};

use crate::chunk::SizeWord;
use crate::memory::TargetMemory;
use crate::parameters::Parameters;

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
/// Addresses of which page states are read: a process may reserve more than can be passed over page by page. Chunks
/// behind them are not found, and the counters of `mp_` show that.
const ADDRESSES_MAX: u64 = 1 << 40;
/// Headers that are read with one call.
const BATCH: usize = 512;
/// States that are read at once.
const STATES: u64 = 16_384;

/// Returns the chunks in anonymous memory outside of `parts`, the arenas' heaps in order of address.
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
        states_left: ADDRESSES_MAX,
        states: Vec::new(),
    };
    for mapping in mappings.all.iter().filter(|one| may_hold(one)) {
        // The kernel merges a chunk's mapping with a heap beside it: what is no heap's is searched.
        let mut from = mapping.range.start;
        for part in parts.iter().filter(|part| overlaps(part, &mapping.range)) {
            search.mapping(&(from..part.start.max(from)));
            from = from.max(part.end);
        }
        search.mapping(&(from..mapping.range.end));
    }
    search.found
}

fn may_hold(mapping: &Mapping) -> bool {
    mapping.is_anonymous()
        && mapping.is_private_writable()
        && mapping.access.read
        && (mapping.name.is_empty() || mapping.name.starts_with(b"[anon:"))
}

fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

struct MmappedSearch<'a, M> {
    memory: &'a M,
    page: u64,
    known: Option<Parameters>,
    found: Vec<MmappedChunk>,
    bytes: u64,
    left: u64,
    /// Bytes of address space of which states may still be read.
    states_left: u64,
    states: Vec<PageState>,
}

impl<M: TargetMemory> MmappedSearch<'_, M> {
    fn is_done(&self) -> bool {
        let is_complete = self.known.is_some_and(|known| {
            self.found.len() as u64 >= known.mmapped_chunks && self.bytes >= known.mmapped_bytes
        });
        is_complete || self.left == 0 || self.states_left == 0
    }

    /// Searches one mapping, which may hold several chunks and what is not malloc's.
    fn mapping(&mut self, range: &Range<u64>) {
        let mut at = range.start;
        while at < range.end && !self.is_done() {
            let mut states = std::mem::take(&mut self.states);
            let until = self.page_states(&(at..range.end), &mut states);
            at = self.part(at, until, range.end, &states);
            let is_absent = !self.states_are_present(states);
            if is_absent && at < range.end {
                at = self.memory.populated_from(&(at..range.end)).unwrap_or(at);
            }
        }
    }

    /// Keeps the buffer of states. Returns whether one of them is a page in RAM.
    fn states_are_present(&mut self, states: Vec<PageState>) -> bool {
        let is_present = states.iter().any(|state| state.is_present());
        self.states = states;
        is_present
    }

    /// Reads the states of the first pages of a range, within the bound. Returns where they end.
    fn page_states(&mut self, range: &Range<u64>, states: &mut Vec<PageState>) -> u64 {
        let bytes = (range.end - range.start).min(STATES * self.page);
        self.states_left = self.states_left.saturating_sub(bytes);
        let until = range.start + bytes;
        self.memory.page_states(&(range.start..until), states);
        until
    }

    /// Searches pages of known states. Returns where the search goes on: behind the last chunk.
    fn part(&mut self, from: u64, until: u64, end: u64, states: &[PageState]) -> u64 {
        let present: Vec<u64> = (from..)
            .step_by(usize::try_from(self.page).unwrap_or(4096))
            .zip(states)
            .filter_map(|(at, state)| state.is_present().then_some(at))
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
        let size = word
            .size()
            .checked_add(previous)?
            .checked_next_multiple_of(self.page)?;
        let rest = size - word.size() - previous;
        let fits =
            word.0 & 7 == 2 && (rest == 0 || rest == 16) && (self.page..=room).contains(&size);
        fits.then_some(size)
    }

    fn add(&mut self, range: Range<u64>) {
        self.bytes += range.end - range.start;
        let (resident, swapped) = self.residency(&range);
        self.found.push(MmappedChunk {
            range,
            resident,
            swapped,
        });
    }

    /// Returns the bytes of a range that are in RAM and in swap.
    fn residency(&mut self, range: &Range<u64>) -> (u64, u64) {
        let (mut resident, mut swapped) = (0, 0);
        let mut states = Vec::new();
        let mut at = range.start;
        while at < range.end && self.states_left > 0 {
            at = self.page_states(&(at..range.end), &mut states);
            let (before, page) = (resident + swapped, self.page);
            for state in &states {
                resident += if state.is_present() { page } else { 0 };
                swapped += if state.is_swapped() { page } else { 0 };
            }
            if before == resident + swapped && at < range.end {
                at = self.memory.populated_from(&(at..range.end)).unwrap_or(at);
            }
        }
        (resident, swapped)
    }
}
