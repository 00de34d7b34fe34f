//! A malloc heap in every detail: a line for each arena, the sizes of chunks, and pages by what is live on them.

use units::{Bytes, Count};

use crate::model::explain::{ArenaEntry, ChunkSizes, HeapReport};
use crate::text::page::{NARROW, Style, TextPage, piece};
use crate::text::wrap::pad;
use crate::text::{Screen, bar};

/// Cells of a column of sizes.
const CELLS: usize = 9;

/// Cells of an arena's name; the table fits 80 columns.
const NAME_CELLS: usize = 4;

/// A column of the table of arenas.
type Column = (&'static str, fn(&ArenaEntry) -> u64);

/// From the left; a narrow screen has only the first ones.
const COLUMNS: [Column; 8] = [
    ("system", |arena| arena.system_bytes),
    ("resident", |arena| arena.resident_bytes),
    ("live", |arena| arena.live_bytes),
    ("free in RAM", |arena| arena.free_resident_bytes),
    ("trimmable", |arena| arena.returnable_bytes),
    ("top", |arena| arena.thread_top_bytes),
    ("pinned", |arena| arena.pinned_bytes),
    ("cached", |arena| arena.cached_bytes),
];

pub(super) fn draw(page: &mut TextPage, heap: &HeapReport, screen: &Screen) {
    arenas(page, heap, screen);
    sizes(page, &heap.sizes, screen);
    shares(page, &heap.resident_by_live_share_bytes, screen);
}

fn arenas(page: &mut TextPage, heap: &HeapReport, screen: &Screen) {
    page.heading("Arenas");
    let shown = if screen.width() < NARROW {
        3
    } else {
        COLUMNS.len()
    };
    let cells: Vec<usize> = COLUMNS
        .iter()
        .map(|(name, _)| name.len().max(CELLS - 1))
        .collect();
    let mut head = pad("", NAME_CELLS);
    for ((name, _), cells) in COLUMNS.iter().zip(&cells).take(shown) {
        head += &format!(" {name:>cells$}");
    }
    page.line(&[piece(Style::Faint, head)]);
    let all = heap.arenas.iter().chain([&heap.total]);
    for arena in all {
        let name = match arena.number {
            Some(0) => "main".to_owned(),
            Some(number) => number.to_string(),
            None => "all".to_owned(),
        };
        let mut line = pad(&name, NAME_CELLS);
        for ((_, of), cells) in COLUMNS.iter().zip(&cells).take(shown) {
            line += &format!(" {:>cells$}", Bytes::new(of(arena)).to_string());
        }
        page.line(&[piece(Style::Plain, line)]);
    }
    let large = Count::new(heap.mmapped_chunks).named("large chunk", "large chunks");
    let verified = match heap.mmapped_is_verified {
        Some(true) => ", as many as malloc counts",
        Some(false) => ", which is not what malloc counts",
        None => "",
    };
    let text = format!(
        "Besides them {large} with a mapping each: {}, {} in RAM{verified}.",
        Bytes::new(heap.mmapped_bytes),
        Bytes::new(heap.mmapped_resident_bytes)
    );
    page.hanging(&[], 0, Style::Plain, &text);
    if !heap.is_whole {
        let text = "Not all arenas were found: the figures are too low.";
        page.hanging(&[], 0, Style::Warning, text);
    }
}

fn sizes(page: &mut TextPage, sizes: &[ChunkSizes], screen: &Screen) {
    page.heading("Chunks by size, headers included");
    let largest = sizes
        .iter()
        .map(|one| one.live_bytes.max(one.free_bytes))
        .max();
    let is_narrow = screen.width() < NARROW;
    let cells = screen.width().saturating_sub(69) / 2;
    let column = |chunks: u64, bytes: u64| {
        let chunks = Count::new(chunks).to_string();
        let chunks = if is_narrow {
            String::new()
        } else {
            format!(" {chunks:>9}")
        };
        format!("{chunks} {:>9}", Bytes::new(bytes).to_string())
    };
    for one in sizes {
        let from = Bytes::new(one.from_bytes).to_string();
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

/// Names of the classes of pages.
const SHARES: [&str; 6] = [
    "none",
    "below 25 %",
    "below 50 %",
    "below 75 %",
    "below 100 %",
    "all",
];

fn shares(page: &mut TextPage, bytes: &[u64; 6], screen: &Screen) {
    page.heading("Resident pages by how much of them is live");
    let largest = bytes.iter().max().copied();
    let cells = screen.width().saturating_sub(26);
    for (name, bytes) in SHARES.iter().zip(bytes) {
        page.line(&[
            piece(
                Style::Plain,
                format!("{name:<12} {:>9}  ", Bytes::new(*bytes).to_string()),
            ),
            piece(Style::Data(32), bar::of(*bytes, largest, cells)),
        ]);
    }
}
