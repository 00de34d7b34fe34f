//! A process's malloc heap as read: its arenas, its large chunks, and how far the figures can be trusted.

use std::collections::BTreeMap;
use std::ops::Range;

use probe::{Mappings, PageRun};

use crate::arena::{ArenaFields, ArenaPart, ArenaState, ThreadHeaps, program_break};
use crate::chunk::SizeWord;
use crate::fast::{ArenaSpan, FastCandidates};
use crate::layout::{ArenaLayout, TcacheLayout};
use crate::main_arena::{FoundArenas, arenas};
use crate::memory::{BoundedMemory, TargetMemory};
use crate::mmapped::{self, MmappedChunk};
use crate::pages::{CellRow, PageFold, PageTotals, TopOwner};
use crate::parameters::{self, Parameters};
use crate::tcache::{self, TcacheForm};
use crate::totals::{Amount, ChunkCounts, ChunkTotals, size_class};
use crate::walk::{ArenaContext, HeapWalk};
use crate::window::PageWindow;

/// Why a heap was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// No data has the form of an arena.
    #[error("no data of glibc's malloc was found")]
    NoArena,
    /// An arena is there, but malloc has not used it.
    #[error("glibc's malloc is there, but nothing was allocated with it")]
    Unused,
    /// The process has a form of malloc that is not known.
    #[error("this layout of glibc's malloc is not known: {0}")]
    UnknownLayout(&'static str),
    /// Its arenas name more memory than it can have.
    #[error("its lists of arenas never end, or name far more memory than it has in RAM")]
    Endless,
}

/// An arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arena {
    /// Whether it is the main arena, which grows by `brk`.
    pub is_main: bool,
    /// Memory that it took from the kernel, as malloc counts it.
    pub system_bytes: u64,
    /// Its parts: one for the main arena in most cases, heaps of up to 64 MiB for a thread arena.
    pub parts: Vec<HeapPart>,
    /// Sums over its chunks.
    pub chunks: ChunkTotals,
    /// Sums over its pages.
    pub pages: PageTotals,
    /// How much its size and its top changed during the walk.
    pub drift_bytes: u64,
    /// Whether its lists of free chunks changed during the walk.
    pub has_changed: bool,
    /// Bytes that may or may not be in its fast bins: lists changed during the walk, or were too long to be verified.
    pub fast_doubt_bytes: u64,
    /// Whether all its parts were found.
    pub is_whole: bool,
}

/// A part of an arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapPart {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its pages in RAM, in bytes.
    pub resident: u64,
    /// Its pages in swap, in bytes.
    pub swapped: u64,
    /// Its picture.
    pub row: CellRow,
    /// Pages in it that are something else's, which took them by `sbrk` or between blocks of the main arena.
    pub foreign: Vec<Range<u64>>,
}

/// A heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heap {
    /// How the arenas are laid out.
    pub layout: ArenaLayout,
    /// Whether links are stored XORed with their own address: since 2.32. `None` if no thread cache shows it.
    pub is_safe_linking: Option<bool>,
    /// The thread cache's layout; `None` before 2.26, or if no thread cached a chunk.
    pub tcache: Option<TcacheLayout>,
    /// malloc's own counters; `None` if they were not found.
    pub parameters: Option<Parameters>,
    /// Its arenas, the main one first.
    pub arenas: Vec<Arena>,
    /// Chunks with a mapping of their own.
    pub mmapped: Vec<MmappedChunk>,
    /// Bytes in thread caches by their lists, for comparison with what the walk recognised.
    pub cached_by_lists: Amount,
    /// Whether the ring of arenas is closed.
    pub is_ring_whole: bool,
    /// Whether reading ended early, as it cost more than the memory that the process has in RAM explains: a forged heap.
    pub is_cut: bool,
    /// Size of a picture's cell in bytes.
    pub cell_bytes: u64,
    /// The difference between the largest and the smallest amount of live bytes that repeated walks showed.
    pub spread_bytes: u64,
    /// What the changes of each MiB from walk to walk add up to if they are independent of each other.
    pub scatter_bytes: u64,
}

/// What the program counts before and after three walks differs from their median by at most this many times what
/// walks scatter by, 95 times of 100; in halves. Measured with 1,000 to 90,000 calls during a walk.
const HALF_SCATTERS: u64 = 3;
/// A heap that changes during a walk is not known better than to one part in this many.
const DOUBT: u64 = 1000;
/// A picture has at most about this many cells.
const CELLS: u64 = 16_384;
const CELL_BYTES_MIN: u64 = 64 << 10;

/// What the walks over one heap share.
struct HeapReader<'a, M> {
    memory: &'a BoundedMemory<'a, M>,
    mappings: &'a Mappings,
    page: u64,
    found: FoundArenas,
    parameters: Option<Parameters>,
    form: Option<TcacheForm>,
    caches: Vec<u64>,
    window: PageWindow,
    runs: Vec<PageRun>,
    fast: FastCandidates,
    cell_bytes: u64,
}

/// Reads the heap of a process once.
///
/// # Errors
/// [`HeapError`] if it has none that can be read.
pub fn read(memory: &impl TargetMemory, mappings: &Mappings, page: u64) -> Result<Heap, HeapError> {
    read_within(&BoundedMemory::new(memory), mappings, page)
}

/// The same within a bound that several readings may share.
pub(crate) fn read_within<M: TargetMemory>(
    memory: &BoundedMemory<'_, M>,
    mappings: &Mappings,
    page: u64,
) -> Result<Heap, HeapError> {
    let found = arenas(memory, mappings, page).ok_or(HeapError::NoArena)?;
    let heap = program_break(mappings);
    let parameters = parameters::find(memory, &found.data, heap.as_ref(), page);
    let mut reader = HeapReader {
        memory,
        mappings,
        page,
        found,
        parameters,
        form: None,
        caches: Vec::new(),
        window: PageWindow::new(page),
        runs: Vec::new(),
        fast: FastCandidates::default(),
        cell_bytes: CELL_BYTES_MIN,
    };
    let states = reader.states();
    if memory.is_used_up() {
        return Err(HeapError::Endless);
    }
    if states.is_empty() {
        return Err(HeapError::Unused);
    }
    if states.iter().all(|arena| arena.parts.is_empty()) {
        return Err(HeapError::UnknownLayout("no arena has a part that begins as it should"));
    }
    // What an arena claims to have may be forged; its parts are address space of the process.
    let parts = states.iter().flat_map(|arena| &arena.parts);
    let addresses: u64 = parts.map(|part| part.range.end - part.range.start).sum();
    let cell = (addresses / CELLS).clamp(CELL_BYTES_MIN, 1 << 40);
    reader.cell_bytes = cell.next_power_of_two().max(page);
    reader.form = reader.tcache_form(&states);
    let mut heap = reader.walk(states);
    if reader.form.is_none_or(|form| form.key.is_none()) {
        // No cache was where the first of each heap is; the walk has seen where others may be.
        let known = reader.form;
        let caches = reader.caches.iter();
        reader.form = caches.copied().find_map(|chunk| tcache::form(memory, chunk));
        if reader.form.is_some_and(|form| form.key.is_some()) && reader.form != known {
            heap = reader.walk(reader.states());
        }
    }
    reader.count_lists(&mut heap);
    heap.is_cut = memory.is_used_up();
    Ok(heap)
}

impl<M: TargetMemory> HeapReader<'_, M> {
    fn states(&self) -> Vec<ArenaState> {
        let mut heaps = ThreadHeaps::new(self.mappings);
        let arenas = self.found.bins.iter().enumerate();
        arenas
            .filter_map(|(index, bins)| {
                ArenaState::read(
                    self.memory,
                    self.mappings,
                    self.found.layout,
                    *bins,
                    index == 0,
                    self.parameters,
                    &mut heaps,
                )
            })
            .collect()
    }

    /// Returns the form of thread caches, from the first chunk of each part: where most threads' caches are.
    fn tcache_form(&self, states: &[ArenaState]) -> Option<TcacheForm> {
        let mut without_key = None;
        for part in states.iter().flat_map(|arena| &arena.parts) {
            let form = tcache::form(self.memory, part.first_chunk);
            if form.is_some_and(|form| form.key.is_some()) {
                return form;
            }
            without_key = without_key.or(form);
        }
        without_key
    }

    /// Walks all arenas.
    fn walk(&mut self, states: Vec<ArenaState>) -> Heap {
        self.caches.clear();
        let mut parts: Vec<Range<u64>> = states
            .iter()
            .flat_map(|arena| arena.parts.iter().map(|part| part.range.clone()))
            .collect();
        parts.sort_by_key(|part| part.start);
        parts.dedup_by(|part, before| {
            let overlaps = part.start <= before.end;
            before.end = if overlaps { before.end.max(part.end) } else { before.end };
            overlaps
        });
        let arenas = states.into_iter().map(|arena| self.arena(arena)).collect();
        let mmapped = mmapped::find(self.memory, self.mappings, &parts, self.parameters, self.page);
        Heap {
            layout: self.found.layout,
            is_safe_linking: self.form.map(|form| form.is_safe),
            tcache: self.form.map(|form| form.layout),
            parameters: self.parameters,
            arenas,
            mmapped,
            cached_by_lists: Amount::default(),
            is_ring_whole: self.found.is_ring_whole,
            is_cut: false,
            cell_bytes: self.cell_bytes,
            spread_bytes: 0,
            scatter_bytes: 0,
        }
    }

    fn arena(&mut self, state: ArenaState) -> Arena {
        let span = ArenaSpan::new(state.parts.iter().map(|part| part.range.clone()).collect());
        let mut arena = Arena {
            is_main: state.is_main,
            system_bytes: state.fields.system_bytes,
            parts: Vec::new(),
            chunks: ChunkTotals::default(),
            pages: PageTotals::default(),
            drift_bytes: 0,
            has_changed: false,
            fast_doubt_bytes: 0,
            is_whole: state.is_whole,
        };
        self.fast.clear();
        for part in &state.parts {
            if self.memory.is_used_up() {
                break;
            }
            let (chunks, (pages, row, foreign)) = self.part(&state, &span, part);
            arena.chunks.add(&chunks);
            arena.pages.add(&pages);
            arena.parts.push(HeapPart {
                range: part.range.clone(),
                resident: pages.resident,
                swapped: pages.swapped,
                row,
                foreign,
            });
        }
        if self.memory.is_used_up() {
            arena.is_whole = false;
            return arena;
        }
        let now = ArenaFields::read(self.memory, self.found.layout, state.bins);
        // The lists' heads behind the walk are the closest in time to the chunks that were freed last.
        let heads = now.as_ref().and_then(|now| now.fast_heads);
        self.settle_fast(&mut arena, &heads.unwrap_or_default(), &span);
        let before = &state.fields;
        arena.has_changed = now
            .as_ref()
            .is_none_or(|now| now.lists != before.lists || now.fast_heads != before.fast_heads);
        arena.drift_bytes = now.map_or(before.system_bytes, |now| now.drift_bytes(before));
        arena
    }

    fn part(
        &mut self,
        state: &ArenaState,
        span: &ArenaSpan,
        part: &ArenaPart,
    ) -> (ChunkTotals, (PageTotals, CellRow, Vec<Range<u64>>)) {
        let owner = if state.is_main { TopOwner::Main } else { TopOwner::Thread };
        let layout = self.form.map(|form| form.layout);
        let mut context = ArenaContext {
            top_field: state.top_field(),
            top: state.fields.top,
            span,
            key: self.form.and_then(|form| form.key),
            cached_bytes_max: match layout {
                Some(layout) if layout.counts_room => u64::MAX,
                _ => TcacheLayout::SMALL_BYTES_MAX,
            },
            has_fast_bins: self.found.layout.has_fast_bins(),
            // 2.26 to 2.31 have thread caches without safe-linking; before them there is none.
            is_safe: self.form.is_some_and(|form| form.is_safe),
            may_be_foreign: part.may_be_foreign,
        };
        self.fast.enter(span, &part.range);
        let walk = HeapWalk {
            memory: self.memory,
            window: &mut self.window,
            arena: &mut context,
            fast: &mut self.fast,
            pages: PageFold::new(
                self.memory,
                &mut self.runs,
                &part.range,
                self.page,
                self.cell_bytes,
                owner,
            ),
            totals: ChunkTotals::default(),
            counts: ChunkCounts::new(),
            caches: &mut self.caches,
            end: part.range.end,
        };
        let (chunks, pages) = walk.run(&part.range, part.first_chunk);
        (chunks, pages.finish())
    }

    /// Moves candidates that are in no fast bin back to the live chunks.
    fn settle_fast(&mut self, arena: &mut Arena, heads: &[u64], span: &ArenaSpan) {
        let is_safe = self.form.is_some_and(|form| form.is_safe);
        let settled = self.fast.settle(span, heads, is_safe);
        let chunks = &mut arena.chunks;
        for units in 0..settled.live.len() {
            let bytes = units as u64 * 16;
            let amount = |chunks: u64| Amount { chunks, bytes: chunks * bytes };
            let (live, fast) = (amount(settled.live[units]), amount(settled.fast[units]));
            arena.fast_doubt_bytes += settled.doubtful[units] * bytes;
            chunks.fast.take(live);
            chunks.live.join(live);
            chunks.free_sizes[size_class(bytes)].take(live);
            chunks.live_sizes[size_class(bytes)].join(live);
            chunks.cached.take(fast);
            chunks.fast.join(fast);
        }
    }

    /// Sums the caches' own lists; before 2.34 they are the only way to recognise cached chunks.
    fn count_lists(&mut self, heap: &mut Heap) {
        let Some(form) = self.form else { return };
        let parts = heap.arenas.iter().zip(0..).flat_map(|(arena, owner)| {
            let parts = arena.parts.iter();
            parts.map(move |part| (part.range.start, (part.range.end, owner)))
        });
        let parts: BTreeMap<u64, (u64, usize)> = parts.collect();
        for chunk in self.cache_chunks(heap) {
            let cached = tcache::entries(self.memory, chunk, form.layout, form.is_safe);
            for (address, size) in cached.unwrap_or_default().chunks {
                let one = Amount { chunks: 1, bytes: size };
                heap.cached_by_lists.join(one);
                let part = parts.range(..=address).next_back();
                let owner = part.filter(|(_, (end, _))| address < *end);
                if let Some((_, (_, owner))) = owner.filter(|_| form.key.is_none())
                    && let Some(arena) = heap.arenas.get_mut(*owner)
                {
                    let class = size_class(size);
                    arena.chunks.live.take(one);
                    arena.chunks.live_sizes[class].take(one);
                    arena.chunks.cached.join(one);
                    let live_resident = &mut arena.pages.live_resident;
                    *live_resident = live_resident.saturating_sub(size);
                    arena.chunks.free_sizes[class].join(one);
                }
            }
        }
    }

    /// Chunks that may hold a cache: those of its size that the walk saw.
    fn cache_chunks(&self, heap: &Heap) -> Vec<u64> {
        let Some(layout) = heap.tcache else {
            return Vec::new();
        };
        let is_size = |chunk: &u64| {
            let word = self.memory.word(chunk + 8).unwrap_or(0);
            SizeWord(word).size() == layout.chunk_bytes
        };
        self.caches.iter().copied().filter(is_size).collect()
    }
}

impl Arena {
    /// Returns by how much the arena's own count of its size differs from what the walk found in its parts: 0 unless
    /// the heap is damaged or parts of it were not found. What something else took by `sbrk` is in that count, what lies
    /// between blocks of a main arena that could not grow by `brk` is not.
    pub fn unexplained_bytes(&self) -> u64 {
        let found = self.chunks.arena_bytes();
        let most = found.saturating_add(self.chunks.foreign_bytes);
        self.system_bytes.abs_diff(self.system_bytes.clamp(found, most))
    }
}

impl Heap {
    /// Returns the sums over all arenas' chunks.
    pub fn chunks(&self) -> ChunkTotals {
        let mut total = ChunkTotals::default();
        for arena in &self.arenas {
            total.add(&arena.chunks);
        }
        total
    }

    /// Returns the sums over all arenas' pages.
    pub fn pages(&self) -> PageTotals {
        let mut total = PageTotals::default();
        for arena in &self.arenas {
            total.add(&arena.pages);
        }
        total
    }

    /// Returns the size of all chunks with a mapping of their own.
    pub fn mmapped_bytes(&self) -> u64 {
        let sizes = self.mmapped.iter().map(|chunk| chunk.range.end - chunk.range.start);
        sizes.sum()
    }

    /// Returns by how much the figures may be wrong: what was not understood or not found, what changed meanwhile, and by
    /// how much repeated walks differed. [`crate::read_settled`] repeats them.
    pub fn uncertain_bytes(&self) -> u64 {
        self.uncertain_resident_bytes() + self.chunks().swapped_bytes
    }

    /// Returns by how much the figures of memory in RAM may be wrong: of chunks in swap nothing is.
    pub fn uncertain_resident_bytes(&self) -> u64 {
        let of = |arena: &Arena| {
            let not_read = arena.chunks.unknown_bytes + arena.unexplained_bytes();
            not_read + arena.drift_bytes + arena.fast_doubt_bytes
        };
        let changed = if self.has_changed() { self.system_bytes() / DOUBT } else { 0 };
        let scattered = self.scatter_bytes / 2 * HALF_SCATTERS;
        let arenas = self.arenas.iter().map(of).sum::<u64>();
        arenas + self.spread_bytes.max(scattered) + changed
    }

    /// Returns whether all arenas and all their parts were found. If not, what is missing is not in the figures, and an
    /// arena that is missing not in [`Self::uncertain_bytes`] either.
    pub fn is_whole(&self) -> bool {
        self.is_ring_whole && !self.is_cut && self.arenas.iter().all(|arena| arena.is_whole)
    }

    /// Returns whether free chunks came or went, or arenas grew, during the walk.
    pub fn has_changed(&self) -> bool {
        let mut arenas = self.arenas.iter();
        arenas.any(|arena| arena.has_changed || arena.drift_bytes > 0)
    }

    /// Returns the bytes of live chunks, those with a mapping of their own included.
    pub fn live_bytes(&self) -> u64 {
        self.chunks().live.bytes + self.mmapped_bytes()
    }

    /// Returns the bytes of free chunks, resident or not: in bins, fast bins and tops. Those in thread caches are not among
    /// them.
    pub fn free_bytes(&self) -> u64 {
        let chunks = self.chunks();
        chunks.binned.bytes + chunks.fast.bytes + chunks.top_bytes
    }

    /// Returns what the program does not use, but is in RAM: free chunks, and those in thread caches. Of a page's bytes that
    /// are neither live nor free it is unknown which are a cache's, so of caches it is the most that may be in RAM.
    pub fn unused_resident_bytes(&self) -> u64 {
        let pages = self.pages();
        let other = pages.resident.saturating_sub(pages.live_resident + pages.free_resident);
        pages.free_resident + self.chunks().cached.bytes.min(other)
    }

    /// Returns the memory that the arenas took from the kernel, and that of chunks with a mapping of their own.
    pub fn system_bytes(&self) -> u64 {
        let arenas = self.arenas.iter().map(|arena| arena.system_bytes);
        arenas.sum::<u64>() + self.mmapped_bytes()
    }
}
