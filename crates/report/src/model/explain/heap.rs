//! A malloc heap in the answer of `explain`: arenas, forecasts, sizes of chunks, and rows of cells for a picture.

use schemars::JsonSchema;
use serde::Serialize;
use units::Bytes;

/// A malloc heap (glibc).
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HeapReport {
    /// Sums over all arenas.
    pub total: ArenaEntry,
    /// Arenas, the main one first.
    pub arenas: Vec<ArenaEntry>,
    /// Large chunks with a mapping of their own.
    pub mmapped_chunks: u64,
    pub mmapped_bytes: Bytes,
    /// Of that, in RAM.
    pub mmapped_resident_bytes: Bytes,
    /// Whether malloc's own counters of large chunks agree; null if they were not found.
    pub mmapped_is_verified: Option<bool>,
    /// What the program does not use, but is in RAM: free chunks and thread caches.
    pub unused_resident_bytes: Bytes,
    /// By how much the figures may be wrong.
    pub uncertain_bytes: Bytes,
    /// By how much those of memory in RAM may be wrong: of chunks in swap nothing is.
    pub uncertain_resident_bytes: Bytes,
    /// What could be given back.
    pub forecast: HeapForecast,
    /// Chunks by size.
    pub sizes: Vec<ChunkSizes>,
    /// Whether all arenas were found, their lists closed, and read to their end.
    pub is_whole: bool,
    /// Whether reading ended early: arenas and lists name far more memory than is in RAM.
    pub is_cut: bool,
    /// Whether it changed while it was read.
    pub has_changed: bool,
    /// Resident bytes by how much of their page is live or cached: none, less than a quarter, a half, three quarters,
    /// all, and full pages.
    pub resident_by_live_share_bytes: [Bytes; 6],
    /// Size of a cell of the rows.
    pub cell_bytes: Bytes,
    /// The heap as rows of cells, for a picture: a row for each part of an arena. Absent unless they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<HeapRow>,
}

impl HeapReport {
    /// Returns what is in RAM of it, large chunks included.
    pub fn resident_bytes(&self) -> Bytes {
        self.total.resident_bytes + self.mmapped_resident_bytes
    }

    /// Returns the live bytes, large chunks included.
    pub fn live_bytes(&self) -> Bytes {
        self.total.live_bytes + self.mmapped_bytes
    }

    /// Returns the live bytes that are in RAM, large chunks included: those are live as a whole.
    pub fn live_resident_bytes(&self) -> Bytes {
        self.total.live_resident_bytes + self.mmapped_resident_bytes
    }

    /// Returns what of the thread caches is in RAM, at most.
    pub fn cached_resident_bytes(&self) -> Bytes {
        self.unused_resident_bytes.saturating_sub(self.total.free_resident_bytes)
    }
}

/// An arena, or all together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ArenaEntry {
    /// Its number; 0 is the main arena. Null for the sum.
    pub number: Option<u64>,
    /// Number of its heaps.
    pub heaps: u64,
    /// Memory that it took from the kernel.
    pub system_bytes: Bytes,
    /// Allocated by the program.
    pub live_bytes: Bytes,
    /// Number of chunks that are allocated.
    pub live_chunks: u64,
    /// In thread caches.
    pub cached_bytes: Bytes,
    /// In fast bins.
    pub fast_bytes: Bytes,
    /// In other bins.
    pub binned_bytes: Bytes,
    /// Behind the last chunk.
    pub top_bytes: Bytes,
    /// Not understood: changed while it was read, damaged, or in swap.
    pub unknown_bytes: Bytes,
    /// malloc's own: headers of heaps, fenceposts.
    pub overhead_bytes: Bytes,
    /// In RAM.
    pub resident_bytes: Bytes,
    /// Of the live bytes, in RAM: less, where the program never touched what it allocated.
    pub live_resident_bytes: Bytes,
    /// In swap; not read.
    pub swapped_bytes: Bytes,
    /// Free, but in RAM.
    pub free_resident_bytes: Bytes,
    /// Free pages that malloc_trim returns now.
    pub returnable_bytes: Bytes,
    /// Free pages in tops of thread arenas, which malloc_trim does not return.
    pub thread_top_bytes: Bytes,
    /// Free, on pages that live chunks keep in RAM.
    pub pinned_bytes: Bytes,
}

/// What a heap could give back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HeapForecast {
    /// What `malloc_trim(0)` returns now.
    pub trim_bytes: Bytes,
    /// What it cannot return: the tops of thread arenas.
    pub thread_tops_bytes: Bytes,
    /// What it cannot return: free chunks on pages with live neighbours.
    pub pinned_bytes: Bytes,
    /// What a restart with two arenas would save, from a model; null with two arenas or fewer.
    pub fewer_arenas: Option<FewerArenas>,
}

/// What fewer arenas would save.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FewerArenas {
    /// Arenas that have more than 1 % of the resident heap.
    pub arenas: u64,
    /// `MALLOC_ARENA_MAX` that the figures are for.
    pub arenas_max: u64,
    /// At least about this much.
    pub low_bytes: Bytes,
    /// At most about this much.
    pub high_bytes: Bytes,
}

/// Chunks of one class of size.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChunkSizes {
    /// From this size on.
    pub from_bytes: Bytes,
    /// Number of live chunks.
    pub live_chunks: u64,
    pub live_bytes: Bytes,
    /// Number of free chunks, those in thread caches included.
    pub free_chunks: u64,
    pub free_bytes: Bytes,
}

/// A part of an arena as a row of cells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HeapRow {
    /// Number of its arena.
    pub arena: u64,
    /// In RAM.
    pub resident_bytes: Bytes,
    /// Cells in order of address, from the part's start on.
    pub cells: Vec<HeapCell>,
}

/// A group of neighbouring pages; all sizes but `swapped_bytes` are of resident pages.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct HeapCell {
    /// In RAM.
    pub resident_bytes: Bytes,
    /// Allocated by the program.
    pub live_bytes: Bytes,
    /// In thread caches.
    pub cached_bytes: Bytes,
    pub free_bytes: Bytes,
    /// Whole pages that malloc_trim returns.
    pub returnable_bytes: Bytes,
    /// Whole pages of a thread arena's top.
    pub thread_top_bytes: Bytes,
    /// In swap.
    pub swapped_bytes: Bytes,
}
