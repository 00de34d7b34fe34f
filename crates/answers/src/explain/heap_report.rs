//! A heap as read, in the terms of the report.

use heap::{Arena, Cell, ChunkTotals, Heap, PageTotals};
use report::model::explain::{
    ArenaEntry, ChunkSizes, FewerArenas, HeapCell, HeapForecast, HeapReport, HeapRow,
};
use units::Bytes;

/// The number of arenas that the forecast is about, and that is advised: the smallest that keeps two threads apart.
pub(crate) const ARENAS_MAX: u64 = 2;

/// Returns the report of a heap; its rows only if `with_rows`.
pub(super) fn heap_report(heap: &Heap, with_rows: bool) -> HeapReport {
    let (chunks, pages) = (heap.chunks(), heap.pages());
    let arenas = heap.arenas.iter().zip(0..);
    let arenas: Vec<ArenaEntry> = arenas.map(|(arena, number)| of_arena(arena, number)).collect();
    let mut total = entry(&chunks, &pages);
    total.heaps = arenas.iter().map(|arena| arena.heaps).sum();
    total.system_bytes = arenas.iter().map(|arena| arena.system_bytes).sum();
    let mmapped = heap.mmapped.iter();
    let counted = |known: &heap::Parameters| {
        known.mmapped_chunks == heap.mmapped.len() as u64
            && known.mmapped_bytes == heap.mmapped_bytes()
    };
    HeapReport {
        forecast: HeapForecast {
            trim_bytes: total.returnable_bytes,
            thread_tops_bytes: total.thread_top_bytes,
            pinned_bytes: total.pinned_bytes,
            fewer_arenas: heap.with_arenas(ARENAS_MAX).map(|fewer| FewerArenas {
                arenas: fewer.arenas,
                arenas_max: fewer.arenas_max,
                low_bytes: Bytes::new(fewer.low_bytes),
                high_bytes: Bytes::new(fewer.high_bytes),
            }),
        },
        total,
        arenas,
        mmapped_chunks: heap.mmapped.len() as u64,
        mmapped_bytes: Bytes::new(heap.mmapped_bytes()),
        mmapped_resident_bytes: mmapped.map(|chunk| Bytes::new(chunk.resident)).sum(),
        mmapped_is_verified: heap.parameters.as_ref().map(counted),
        unused_resident_bytes: Bytes::new(heap.unused_resident_bytes()),
        uncertain_bytes: Bytes::new(heap.uncertain_bytes()),
        uncertain_resident_bytes: Bytes::new(heap.uncertain_resident_bytes()),
        sizes: sizes(&chunks),
        is_whole: heap.is_whole(),
        is_cut: heap.is_cut,
        has_changed: heap.has_changed(),
        resident_by_live_share_bytes: pages.by_live_share.map(Bytes::new),
        cell_bytes: Bytes::new(heap.cell_bytes),
        rows: if with_rows { rows(heap) } else { Vec::new() },
    }
}

fn of_arena(arena: &Arena, number: u64) -> ArenaEntry {
    ArenaEntry {
        number: Some(number),
        heaps: arena.parts.len() as u64,
        system_bytes: Bytes::new(arena.system_bytes),
        ..entry(&arena.chunks, &arena.pages)
    }
}

fn entry(chunks: &ChunkTotals, pages: &PageTotals) -> ArenaEntry {
    ArenaEntry {
        live_bytes: Bytes::new(chunks.live.bytes),
        live_chunks: chunks.live.chunks,
        cached_bytes: Bytes::new(chunks.cached.bytes),
        fast_bytes: Bytes::new(chunks.fast.bytes),
        binned_bytes: Bytes::new(chunks.binned.bytes),
        top_bytes: Bytes::new(chunks.top_bytes),
        overhead_bytes: Bytes::new(chunks.overhead_bytes),
        unknown_bytes: Bytes::new(chunks.unknown_bytes + chunks.swapped_bytes),
        resident_bytes: Bytes::new(pages.resident),
        live_resident_bytes: Bytes::new(pages.live_resident),
        swapped_bytes: Bytes::new(pages.swapped),
        free_resident_bytes: Bytes::new(pages.free_resident),
        returnable_bytes: Bytes::new(pages.returnable),
        thread_top_bytes: Bytes::new(pages.thread_tops),
        pinned_bytes: Bytes::new(
            pages.free_resident.saturating_sub(pages.returnable + pages.thread_tops),
        ),
        ..ArenaEntry::default()
    }
}

fn sizes(chunks: &ChunkTotals) -> Vec<ChunkSizes> {
    let classes = chunks.live_sizes.iter().zip(&chunks.free_sizes).zip(0..);
    let entries = classes.map(|((live, free), class)| ChunkSizes {
        from_bytes: Bytes::new(1 << class),
        live_chunks: live.chunks,
        live_bytes: Bytes::new(live.bytes),
        free_chunks: free.chunks,
        free_bytes: Bytes::new(free.bytes),
    });
    entries.filter(|one| one.live_chunks + one.free_chunks > 0).collect()
}

fn rows(heap: &Heap) -> Vec<HeapRow> {
    let of = |(arena, number): (&Arena, u64)| -> Vec<HeapRow> {
        let parts = arena.parts.iter().map(|part| HeapRow {
            arena: number,
            resident_bytes: Bytes::new(part.resident),
            cells: part.row.cells.iter().map(cell).collect(),
        });
        parts.collect()
    };
    heap.arenas.iter().zip(0..).flat_map(of).collect()
}

fn cell(cell: &Cell) -> HeapCell {
    HeapCell {
        resident_bytes: Bytes::new(cell.resident),
        live_bytes: Bytes::new(cell.live),
        cached_bytes: Bytes::new(cell.cached),
        free_bytes: Bytes::new(cell.free),
        returnable_bytes: Bytes::new(cell.returnable),
        thread_top_bytes: Bytes::new(cell.thread_top),
        swapped_bytes: Bytes::new(cell.swapped),
    }
}
