//! The malloc heap: its picture, what could be given back, its arenas, and its chunks by size.

use units::Count;

use super::{arenas, panel};
use crate::html::escape::{Html, Tag, tag};
use crate::html::heap_picture;
use crate::model::explain::{ChunkSizes, ExplainReport, HeapReport};
use crate::phrases::explain as phrases;
use crate::phrases::heap_cells::{CellFill, LIVE_CLASS_WORDS, LIVE_CLASSES, share};

/// Draws the picture, and what could be given back.
pub(super) fn picture(html: &mut Html, report: &ExplainReport) {
    let heading = "The malloc heap, page by page";
    let Some(heap) = &report.heap else {
        let why = phrases::no_picture(report).unwrap_or_default();
        return panel(html, "explain-heap", heading, &why, |_| {});
    };
    let summary = format!("{}.", phrases::heap_summary(heap));
    panel(html, "explain-heap", heading, &summary, |html| {
        if let Some(why) = phrases::no_picture(report) {
            html.tagged(Tag::of("p", "help"), &why);
        }
        heap_picture::rows(html, heap);
        live_shares(html, heap);
        for doubt in phrases::doubts(heap) {
            html.tagged(Tag::of("p", "help"), &doubt);
        }
    });
    let help = "The program can call malloc_trim(0) itself; so can a debugger, which stops the \
                program meanwhile.";
    let heading = "Memory that could be returned";
    panel(html, "explain-forecast", heading, help, |html| {
        forecast(html, heap);
    });
}

/// Draws resident memory by how much of its page is live: what has no live byte is the waste.
fn live_shares(html: &mut Html, heap: &HeapReport) {
    let all = heap.resident_by_live_share_bytes;
    let whole = all.into_iter().sum();
    let most = all.iter().copied().max().unwrap_or_default();
    html.within(Tag::of("table", "live-shares"), |html| {
        html.raw("<caption>Resident pages by how much of each is live or cached</caption><tbody>");
        for (class, bytes) in all.into_iter().enumerate() {
            let name = match class {
                0 => "no live byte".to_owned(),
                class if class + 1 == LIVE_CLASSES => "fully live".to_owned(),
                class => format!("{} live", LIVE_CLASS_WORDS[class]),
            };
            html.within(tag("tr"), |html| {
                html.tagged(tag("th").with("scope", "row"), &name);
                html.within(Tag::of("td", "of-bar"), |html| {
                    let fill = heap_picture::class(CellFill::Live(class));
                    super::bar(html, &[(fill, 0, super::thousandths(bytes, most))]);
                });
                html.tagged(Tag::of("td", "size"), &bytes.to_string());
                html.tagged(Tag::of("td", "size"), &share(bytes, whole));
            });
        }
        html.raw("</tbody>");
    });
}

/// Draws the arenas, and the chunks by size.
pub(super) fn details(html: &mut Html, report: &ExplainReport) {
    let Some(heap) = &report.heap else {
        return;
    };
    panel(html, "explain-arenas", "Arenas", "", |html| {
        arenas::draw(html, heap);
        if let Some(text) = phrases::large_chunks(heap) {
            html.tagged(Tag::of("p", "help"), &text);
        }
    });
    if !heap.sizes.is_empty() {
        let help = "Chunks by size, headers included; each bar's length is a share of the largest \
                    class. Chunks in thread caches count as free.";
        panel(html, "explain-chunks", "Chunks by size", help, |html| {
            chunks(html, &heap.sizes);
        });
    }
}

fn forecast(html: &mut Html, heap: &HeapReport) {
    html.within(Tag::of("table", "forecast"), |html| {
        html.raw("<tbody>");
        for (name, size, meaning) in phrases::forecasts(heap) {
            html.within(tag("tr"), |html| {
                html.tagged(tag("th").with("scope", "row"), &name);
                html.tagged(Tag::of("td", "size"), &size);
                html.tagged(Tag::of("td", "meaning"), &meaning);
            });
        }
        html.raw("</tbody>");
    });
}

/// Draws live chunks to the left, free ones to the right, a line for each class of size.
fn chunks(html: &mut Html, sizes: &[ChunkSizes]) {
    let each = sizes.iter().flat_map(|one| [one.live_bytes, one.free_bytes]);
    let most = each.max().unwrap_or_default();
    html.within(Tag::of("table", "chunks"), |html| {
        html.raw(
            "<thead><tr><th scope=\"col\">chunks</th><th scope=\"col\">live</th><th \
             scope=\"col\"></th><th scope=\"col\">from size</th><th scope=\"col\"></th><th \
             scope=\"col\">free</th><th scope=\"col\">chunks</th></tr></thead>",
        );
        html.within(tag("tbody"), |html| {
            for one in sizes {
                let live = super::thousandths(one.live_bytes, most);
                let free = super::thousandths(one.free_bytes, most);
                html.within(tag("tr"), |html| {
                    html.tagged(Tag::of("td", "count"), &Count::new(one.live_chunks).to_string());
                    html.tagged(Tag::of("td", "size"), &one.live_bytes.to_string());
                    html.within(Tag::of("td", "of-bar"), |html| {
                        super::bar(html, &[("live-5", 1000 - live, live)]);
                    });
                    html.tagged(tag("th").with("scope", "row"), &one.from_bytes.to_string());
                    html.within(Tag::of("td", "of-bar"), |html| {
                        super::bar(html, &[("live-0", 0, free)]);
                    });
                    html.tagged(Tag::of("td", "size"), &one.free_bytes.to_string());
                    html.tagged(Tag::of("td", "count"), &Count::new(one.free_chunks).to_string());
                });
            }
        });
    });
}
