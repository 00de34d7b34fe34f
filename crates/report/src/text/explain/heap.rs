//! A malloc heap in every detail: a line for each arena, the sizes of chunks, and pages by what is live on them.

use units::{Bytes, Count};

use crate::model::explain::{ChunkSizes, HeapReport};
use crate::phrases::arena_columns::{ARENA_COLUMNS, arena_name};
use crate::phrases::explain::{doubts, large_chunks};
use crate::phrases::heap_cells::LIVE_CLASS_WORDS;
use crate::text::ansi::Style;
use crate::text::page::{NARROW, TextPage, piece};
use crate::text::wrap::pad;
use crate::text::{Screen, bar};

/// Cells of a column of sizes.
const CELLS: usize = 9;
/// Columns of the table of arenas: as many as 80 cells hold.
const SHOWN: usize = 8;
/// Cells of an arena's name; the table fits 80 columns.
const NAME_CELLS: usize = 4;

pub(super) fn draw(page: &mut TextPage, heap: &HeapReport, screen: &Screen) {
    arenas(page, heap, screen);
    sizes(page, &heap.sizes, screen);
    shares(page, &heap.resident_by_live_share_bytes, screen);
}

fn arenas(page: &mut TextPage, heap: &HeapReport, screen: &Screen) {
    page.heading("Arenas");
    let shown = if screen.width() < NARROW { 3 } else { SHOWN };
    let cells: Vec<usize> =
        ARENA_COLUMNS.iter().map(|(name, ..)| name.len().max(CELLS - 1)).collect();
    let mut head = pad("", NAME_CELLS);
    for ((name, ..), cells) in ARENA_COLUMNS.iter().zip(&cells).take(shown) {
        head += &format!(" {name:>cells$}");
    }
    page.line(&[piece(Style::Faint, head)]);
    let all = heap.arenas.iter().chain([&heap.total]);
    for arena in all {
        let mut line = pad(&arena_name(arena.number), NAME_CELLS);
        for ((.., of), cells) in ARENA_COLUMNS.iter().zip(&cells).take(shown) {
            line += &format!(" {:>cells$}", of(arena).to_string());
        }
        page.line(&[piece(Style::Plain, line)]);
    }
    if let Some(text) = large_chunks(heap) {
        page.hanging(&[], 0, Style::Plain, &text);
    }
    for text in doubts(heap) {
        page.hanging(&[], 0, Style::Warning, &text);
    }
}

fn sizes(page: &mut TextPage, sizes: &[ChunkSizes], screen: &Screen) {
    page.heading("Chunks by size, headers included");
    let largest = sizes.iter().map(|one| one.live_bytes.max(one.free_bytes)).max();
    let is_narrow = screen.width() < NARROW;
    let cells = screen.width().saturating_sub(69) / 2;
    let column = |chunks: u64, bytes: Bytes| {
        let chunks = Count::new(chunks).to_string();
        let chunks = if is_narrow { String::new() } else { format!(" {chunks:>9}") };
        format!("{chunks} {:>9}", bytes.to_string())
    };
    for one in sizes {
        let from = one.from_bytes.to_string();
        let live = column(one.live_chunks, one.live_bytes);
        let free = column(one.free_chunks, one.free_bytes);
        if is_narrow {
            let line = format!("{from:>9} live{live} free{free}");
            page.line(&[piece(Style::Plain, line)]);
            continue;
        }
        let line = format!("from {from:>9}  live{live}  free{free}  ");
        page.line(&[
            piece(Style::Plain, line),
            piece(Style::Data(32), bar::of(one.live_bytes, largest, cells)),
            piece(Style::Data(166), bar::of(one.free_bytes, largest, cells)),
        ]);
    }
}

fn shares(page: &mut TextPage, bytes: &[Bytes; 6], screen: &Screen) {
    page.heading("Resident pages by how much of them is live");
    let largest = bytes.iter().max().copied();
    let cells = screen.width().saturating_sub(26);
    for (name, bytes) in LIVE_CLASS_WORDS.iter().zip(bytes) {
        page.line(&[
            piece(Style::Plain, format!("{name:<12} {:>9}  ", bytes.to_string())),
            piece(Style::Data(32), bar::of(*bytes, largest, cells)),
        ]);
    }
}
