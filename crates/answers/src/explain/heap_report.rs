//! A heap as read, in the terms of the report.

use heap::{Arena, Cell, ChunkTotals, Heap, PageTotals};
use report::model::explain::{
    ArenaEntry, ChunkSizes, FewerArenas, HeapCell, HeapForecast, HeapReport, HeapRow,
};

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
                low_bytes: fewer.low_bytes,
                high_bytes: fewer.high_bytes,
            }),
        },
        total,
        arenas,
        mmapped_chunks: heap.mmapped.len() as u64,
        mmapped_bytes: heap.mmapped_bytes(),
        mmapped_resident_bytes: mmapped.map(|chunk| chunk.resident).sum(),
        mmapped_is_verified: heap.parameters.as_ref().map(counted),
        unused_resident_bytes: heap.unused_resident_bytes(),
        uncertain_bytes: heap.uncertain_bytes(),
        uncertain_resident_bytes: heap.uncertain_resident_bytes(),
        sizes: sizes(&chunks),
        is_whole: heap.is_whole(),
        is_cut: heap.is_cut,
        has_changed: heap.has_changed(),
        resident_by_live_share_bytes: pages.by_live_share,
        cell_bytes: heap.cell_bytes,
        rows: if with_rows { rows(heap) } else { Vec::new() },
    }
}

fn of_arena(arena: &Arena, number: u64) -> ArenaEntry {
    ArenaEntry {
        number: Some(number),
        heaps: arena.parts.len() as u64,
        system_bytes: arena.system_bytes,
        ..entry(&arena.chunks, &arena.pages)
    }
}

fn entry(chunks: &ChunkTotals, pages: &PageTotals) -> ArenaEntry {
    ArenaEntry {
        live_bytes: chunks.live.bytes,
        live_chunks: chunks.live.chunks,
        cached_bytes: chunks.cached.bytes,
        fast_bytes: chunks.fast.bytes,
        binned_bytes: chunks.binned.bytes,
        top_bytes: chunks.top_bytes,
        overhead_bytes: chunks.overhead_bytes,
        unknown_bytes: chunks.unknown_bytes + chunks.swapped_bytes,
        resident_bytes: pages.resident,
        live_resident_bytes: pages.live_resident,
        swapped_bytes: pages.swapped,
        free_resident_bytes: pages.free_resident,
        returnable_bytes: pages.returnable,
        thread_top_bytes: pages.thread_tops,
        pinned_bytes: pages.free_resident.saturating_sub(pages.returnable + pages.thread_tops),
        ..ArenaEntry::default()
    }
}

fn sizes(chunks: &ChunkTotals) -> Vec<ChunkSizes> {
    let classes = chunks.live_sizes.iter().zip(&chunks.free_sizes).zip(0..);
    let entries = classes.map(|((live, free), class)| ChunkSizes {
        from_bytes: 1 << class,
        live_chunks: live.chunks,
        live_bytes: live.bytes,
        free_chunks: free.chunks,
        free_bytes: free.bytes,
    });
    entries.filter(|one| one.live_chunks + one.free_chunks > 0).collect()
}

fn rows(heap: &Heap) -> Vec<HeapRow> {
    let of = |(arena, number): (&Arena, u64)| -> Vec<HeapRow> {
        let parts = arena.parts.iter().map(|part| HeapRow {
            arena: number,
            resident_bytes: part.resident,
            cells: part.row.cells.iter().map(cell).collect(),
        });
        parts.collect()
    };
    heap.arenas.iter().zip(0..).flat_map(of).collect()
}

fn cell(cell: &Cell) -> HeapCell {
    HeapCell {
        resident_bytes: cell.resident,
        live_bytes: cell.live,
        cached_bytes: cell.cached,
        free_bytes: cell.free,
        returnable_bytes: cell.returnable,
        thread_top_bytes: cell.thread_top,
        swapped_bytes: cell.swapped,
    }
}
