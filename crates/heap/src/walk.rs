//! The walk over one part of a heap: chunk after chunk, in order of address, by their headers.
//!
//! A process that runs changes its heap meanwhile. A header that cannot be is read again up to three times with the
//! chunk before it; then the walk goes on at the next eight headers that agree with each other, and what lies between
//! is unknown. The number of retries is bounded, and but for them position only grows, so the walk ends on any memory.

use std::ops::Range;

use crate::chunk::{ALIGNMENT, FENCEPOST_BYTES, SizeWord, decode_link};
use crate::fast::{ArenaSpan, FAST_BYTES_MAX, FastCandidates};
use crate::layout::TcacheLayout;
use crate::memory::{BoundedMemory, HEADER_NS, TargetMemory};
use crate::pages::{PageFold, StretchKind};
use crate::totals::{ChunkCounts, ChunkKind, ChunkTotals};
use crate::window::{PageWindow, WINDOW_BYTES};

/// What the walk needs to know about the arena.
#[derive(Debug)]
pub(crate) struct ArenaContext<'a> {
    /// Where the arena's top is stored.
    pub(crate) top_field: u64,
    pub(crate) top: u64,
    pub(crate) span: &'a ArenaSpan,
    /// The word in cached chunks.
    pub(crate) key: Option<u64>,
    /// The largest chunk that may be cached.
    pub(crate) cached_bytes_max: u64,
    pub(crate) has_fast_bins: bool,
    pub(crate) is_safe: bool,
    /// Whether the part may hold what is not the heap's: blocks of a main arena that could not grow by `brk`, or
    /// memory that something else took by `sbrk`.
    pub(crate) may_be_foreign: bool,
}

/// A chunk that was read; the next header decides whether it is in use.
#[derive(Debug, Clone, Copy)]
struct Pending {
    start: u64,
    size: u64,
    link: u64,
    key: u64,
}

/// Times that a header is read again before the walk goes on behind it.
const RETRIES: u32 = 3;
/// Headers in a row that must agree where the walk goes on.
const AGREEING: usize = 8;

/// Walks one part of a heap.
#[derive(Debug)]
pub(crate) struct HeapWalk<'a, M> {
    pub(crate) memory: &'a BoundedMemory<'a, M>,
    pub(crate) window: &'a mut PageWindow,
    pub(crate) arena: &'a mut ArenaContext<'a>,
    pub(crate) fast: &'a mut FastCandidates,
    pub(crate) pages: PageFold<'a, BoundedMemory<'a, M>>,
    pub(crate) totals: ChunkTotals,
    pub(crate) counts: ChunkCounts,
    /// Chunks as large as a thread cache, to be checked afterwards; bounded.
    pub(crate) caches: &'a mut Vec<u64>,
    pub(crate) end: u64,
}

/// Chunks that may hold a thread cache: one for each thread.
const CACHES_MAX: usize = 65_536;

enum WalkStep {
    Next,
    Torn,
    Done,
}

impl<'a, M: TargetMemory> HeapWalk<'a, M> {
    /// Walks from the first chunk to the end. What lies before `first` is malloc's own.
    pub(crate) fn run(
        mut self,
        part: &Range<u64>,
        first: u64,
    ) -> (ChunkTotals, PageFold<'a, BoundedMemory<'a, M>>) {
        let mut at = first.clamp(part.start, part.end);
        self.stretch(StretchKind::Overhead, part.start, at);
        let mut pending = None;
        let mut torn_at = None;
        let mut retries = 0;
        while at < self.end {
            self.cover(at);
            match self.step(&mut at, &mut pending) {
                WalkStep::Next => {}
                WalkStep::Done => break,
                WalkStep::Torn => {
                    retries = if torn_at == Some(at) { retries + 1 } else { 1 };
                    torn_at = Some(at);
                    if retries <= RETRIES {
                        at = pending.take().map_or(at, |chunk: Pending| chunk.start);
                        // A page: a damaged heap may have such a header every few hundred bytes.
                        self.window.load(self.memory, at, self.end, 1);
                        self.reread_top();
                    } else {
                        at = self.behind_tear(at, pending.take());
                        retries = 0;
                    }
                }
            }
        }
        if let Some(chunk) = pending {
            self.in_use(chunk);
        }
        self.counts.add_to(&mut self.totals);
        (self.totals, self.pages)
    }

    /// Moves the window on if the header at `at` is not in it.
    fn cover(&mut self, at: u64) {
        let range = self.window.range();
        if at < range.start || range.end < at.saturating_add(32).min(self.end) {
            self.window.load(self.memory, at, self.end, WINDOW_BYTES);
        }
    }

    fn reread_top(&mut self) {
        if let Some(top) = self.memory.word(self.arena.top_field) {
            self.arena.top = top;
        }
    }

    /// Reads the header at `at`, finishes the chunk before it, and moves on. A header that cannot be is no evidence of
    /// whether the chunk before it is in use.
    #[inline]
    fn step(&mut self, at: &mut u64, pending: &mut Option<Pending>) -> WalkStep {
        let start = *at;
        let [before, word, link, key] = self.window.words(start);
        let header = SizeWord(word);
        let is_top = start == self.arena.top;
        let is_chunk = header.is_plausible(self.end - start);
        if !is_top && !is_chunk && !self.is_post(start, header) {
            if self.window.is_swapped(start + 8) {
                *at = self.behind_swapped(start, pending.take());
                return WalkStep::Next;
            }
            return WalkStep::Torn;
        }
        if let Some(chunk) = *pending {
            if header.is_previous_in_use() {
                self.in_use(chunk);
            } else if before == chunk.size {
                self.counts.add(ChunkKind::Binned, chunk.size);
                self.pages.add(StretchKind::Free, chunk.start, start);
            } else {
                return WalkStep::Torn;
            }
            *pending = None;
        }
        if is_top {
            return self.top(at, header);
        }
        if !is_chunk {
            return self.post(at);
        }
        let size = header.size();
        *pending = Some(Pending { start, size, link, key });
        *at = start + size;
        WalkStep::Next
    }

    #[inline]
    fn in_use(&mut self, chunk: Pending) {
        let Pending { start, size, link, key } = chunk;
        let end = start + size;
        let may_be_fast = size <= FAST_BYTES_MAX && self.arena.has_fast_bins;
        let link = decode_link(link, start + 16, self.arena.is_safe);
        if self.arena.key == Some(key) && size <= self.arena.cached_bytes_max {
            self.counts.add(ChunkKind::Cached, size);
            self.pages.add(StretchKind::Cached, start, end);
            if may_be_fast {
                self.fast.offer_keyed(self.arena.span, start, size, link);
            }
            return;
        }
        if may_be_fast && self.fast.offer(self.arena.span, start, size, link) {
            self.counts.add(ChunkKind::Fast, size);
            // Without safe-linking a zero word is common in live chunks: they count as live until proven free.
            let kind = if self.arena.is_safe { StretchKind::Free } else { StretchKind::Live };
            self.pages.add(kind, start, end);
            return;
        }
        if TcacheLayout::ALL.iter().any(|one| one.chunk_bytes == size)
            && self.caches.len() < CACHES_MAX
        {
            self.caches.push(start);
        }
        self.counts.add(ChunkKind::Live, size);
        self.pages.add(StretchKind::Live, start, end);
    }

    /// Takes the arena's top, and goes on behind it where further blocks may follow.
    fn top(&mut self, at: &mut u64, header: SizeWord) -> WalkStep {
        let start = *at;
        let room = self.end - start;
        let size = header.size();
        let is_sound = size <= room && size > 0 && !header.is_mmapped();
        let size = if is_sound && self.arena.may_be_foreign { size } else { room };
        self.totals.top_bytes += size;
        self.pages.add(StretchKind::Top, start, start + size);
        *at = start + size;
        if *at < self.end {
            *at = self.behind_foreign(*at);
            return WalkStep::Next;
        }
        WalkStep::Done
    }

    /// Whether a header is a fencepost: at the end of a part, or of a block behind which another one may follow.
    fn is_post(&self, start: u64, header: SizeWord) -> bool {
        let is_post = header.size() == FENCEPOST_BYTES && !header.is_mmapped();
        let is_end = self.end - start <= 3 * FENCEPOST_BYTES;
        is_end && (is_post || header.size() == 0) || is_post && self.arena.may_be_foreign
    }

    /// Takes the fenceposts, and goes on behind them where further blocks may follow.
    fn post(&mut self, at: &mut u64) -> WalkStep {
        let start = *at;
        if self.end - start <= 3 * FENCEPOST_BYTES {
            self.stretch(StretchKind::Overhead, start, self.end);
            return WalkStep::Done;
        }
        let mut end = start + FENCEPOST_BYTES;
        for _ in 0..2 {
            if SizeWord(self.near_word(end + 8).unwrap_or(0)).size() == FENCEPOST_BYTES {
                end += FENCEPOST_BYTES;
            }
        }
        let end = end.min(self.end);
        self.stretch(StretchKind::Overhead, start, end);
        *at = self.behind_foreign(end);
        WalkStep::Next
    }

    fn stretch(&mut self, kind: StretchKind, from: u64, to: u64) {
        if from < to {
            match kind {
                StretchKind::Overhead => self.totals.overhead_bytes += to - from,
                StretchKind::Unknown => self.totals.unknown_bytes += to - from,
                _ => {}
            }
            self.pages.add(kind, from, to);
        }
    }

    /// Skips what lies between blocks of a main arena: to the next agreeing headers.
    fn behind_foreign(&mut self, from: u64) -> u64 {
        let to = self.agreeing_from(from);
        self.totals.foreign_bytes += to - from;
        self.pages.add(StretchKind::Foreign, from, to);
        to
    }

    /// Skips pages in swap, and goes on at the next agreeing headers behind them. Whether the chunk before them is in
    /// use stands there too.
    fn behind_swapped(&mut self, start: u64, pending: Option<Pending>) -> u64 {
        let from = pending.map_or(start, |chunk| chunk.start);
        let to = self.agreeing_from((start + ALIGNMENT).min(self.end));
        self.totals.swapped_bytes += to - from;
        self.pages.add(StretchKind::Unknown, from, to);
        to
    }

    /// Gives up the torn chunk and what follows it up to the next agreeing headers.
    fn behind_tear(&mut self, at: u64, pending: Option<Pending>) -> u64 {
        let from = pending.map_or(at, |chunk| chunk.start);
        let to = self.agreeing_from((from + ALIGNMENT).min(self.end));
        self.totals.resyncs += 1;
        self.stretch(StretchKind::Unknown, from, to);
        to
    }

    /// Returns the first address from `from` on where eight headers in a row agree, or the end.
    fn agreeing_from(&mut self, from: u64) -> u64 {
        let mut at = from.next_multiple_of(ALIGNMENT);
        while at < self.end && !self.memory.is_used_up() {
            self.cover(at);
            match self.window.present_from(at + 8) {
                Some(present) if present == at + 8 => {
                    if self.agrees(at) {
                        return at;
                    }
                    at += ALIGNMENT;
                }
                // No header is where nothing is.
                Some(present) => at = present,
                None => at = self.window.range().end.max(at + ALIGNMENT),
            }
        }
        self.end
    }

    fn agrees(&mut self, from: u64) -> bool {
        let mut at = from;
        for index in 0..AGREEING {
            if at == self.arena.top {
                return true;
            }
            if at >= self.end {
                return index > 1;
            }
            let Some(header) = self.near_word(at + 8) else {
                return false;
            };
            let header = SizeWord(header);
            if !header.is_plausible(self.end - at) {
                // A part that ends soon behind: its fenceposts.
                return index > 1 && self.end - at <= 3 * FENCEPOST_BYTES;
            }
            let next = at + header.size();
            if next < self.end {
                let Some(behind) = self.near_word(next + 8) else {
                    return false;
                };
                let is_free = !SizeWord(behind).is_previous_in_use();
                if is_free && self.near_word(next) != Some(header.size()) {
                    return false;
                }
            }
            at = next;
        }
        true
    }

    /// A word in the window, or read from the process; `None` if it is not in RAM: reading it would map a page.
    fn near_word(&mut self, at: u64) -> Option<u64> {
        self.memory.charge(HEADER_NS);
        self.window.word(at).or_else(|| {
            let mut runs = Vec::new();
            self.memory.populated(&self.window.page(at), &mut runs);
            let is_present = runs.first().is_some_and(|run| !run.is_swapped);
            is_present.then(|| self.memory.word(at))?
        })
    }
}
