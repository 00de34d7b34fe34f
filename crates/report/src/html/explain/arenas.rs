//! The table of arenas.

use units::{Bytes, Count};

use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::{ArenaEntry, HeapReport};
use crate::phrases::arena_columns::{ARENA_COLUMNS, arena_name};

/// At most this many arenas; the rest is counted.
const ARENAS_MAX: usize = 64;

pub(super) fn draw(html: &mut Html, heap: &HeapReport) {
    html.within(Tag::of("div", "wide"), |html| {
        html.within(Tag::of("table", "arenas"), |html| {
            html.within(tag("thead"), |html| {
                html.raw("<tr><th scope=\"col\">arena</th><th scope=\"col\">heaps</th>");
                for (name, meaning, _) in ARENA_COLUMNS {
                    let head = tag("th").with("scope", "col").with("title", meaning);
                    html.tagged(head, name);
                }
                html.raw("<th scope=\"col\">live chunks</th></tr>");
            });
            html.within(tag("tbody"), |html| {
                for arena in heap.arenas.iter().take(ARENAS_MAX) {
                    row(html, arena);
                }
            });
            html.within(tag("tfoot"), |html| {
                row(html, &heap.total);
            });
        });
    });
    if let Some(more) = heap.arenas.len().checked_sub(ARENAS_MAX).filter(|n| *n > 0) {
        let more = Count::new(more as u64).named("more arena", "more arenas");
        html.tagged(Tag::of("p", "help"), &format!("And {more}; the JSON lists all."));
    }
}

fn row(html: &mut Html, arena: &ArenaEntry) {
    html.within(tag("tr"), |html| {
        html.tagged(tag("th").with("scope", "row"), &arena_name(arena.number));
        html.tagged(tag("td"), &Count::new(arena.heaps).to_string());
        for (_, _, bytes) in ARENA_COLUMNS {
            match bytes(arena) {
                Bytes::ZERO => html.tagged(Tag::of("td", "none"), "0"),
                bytes => html.tagged(tag("td"), &bytes.to_string()),
            };
        }
        html.tagged(tag("td"), &Count::new(arena.live_chunks).to_string());
    });
}
