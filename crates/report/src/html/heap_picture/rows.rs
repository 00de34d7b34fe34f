//! The picture within a page: names and figures are the page's text, so that they stay readable on a phone.

use units::Count;

use super::{BOUNDS, cells, legend, sample, swatch};
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::{HeapCell, HeapReport};
use crate::phrases::heap_cells::{CellFill, LIVE_CLASSES};
use crate::phrases::heap_lines::{self, HeapLines, PartColumns};

/// Draws legend and rows; nothing if the report has no cells.
pub(crate) fn draw(html: &mut Html, heap: &HeapReport) {
    let lines = HeapLines::new(heap, BOUNDS);
    if lines.parts.is_empty() {
        return;
    }
    html.within(Tag::of("figure", "heap-picture"), |html| {
        let patterns = Tag::of("svg", "patterns").with("aria-hidden", "true");
        html.within(patterns, cells::patterns);
        draw_legend(html);
        html.within(Tag::of("div", "heap-rows"), |html| {
            head(html, &lines);
            for part in &lines.parts {
                row(html, &lines, part);
            }
            if lines.left_out > 0 {
                let name = Count::new(lines.left_out as u64).named("smaller part", "smaller parts");
                html.within(Tag::of("div", "heap-row"), |html| {
                    html.tagged(Tag::of("span", "name"), &name);
                    html.tagged(Tag::of("span", "map"), "not drawn");
                    figures(html, &lines.left_out_sum);
                });
            }
        });
    });
}

/// Draws the words for the colours.
fn draw_legend(html: &mut Html) {
    html.within(Tag::of("ul", "heap-legend"), |html| {
        html.within(tag("li"), |html| {
            html.raw("<span>none</span>");
            for class in 0..LIVE_CLASSES {
                key(html, |html| swatch(html, CellFill::Live(class)));
            }
            html.raw("<span>all of the resident memory is live</span>");
        });
        for (fill, words) in legend() {
            html.within(tag("li"), |html| {
                key(html, |html| sample(html, fill));
                html.tagged(tag("span"), words);
            });
        }
    });
}

fn key(html: &mut Html, inside: impl FnOnce(&mut Html)) {
    let svg = Tag::of("svg", "heap-key").with("viewBox", "0 0 18 12");
    html.within(svg.with("aria-hidden", "true"), inside);
}

/// Draws the headings of the columns.
fn head(html: &mut Html, lines: &HeapLines) {
    html.within(Tag::of("div", "heap-row head"), |html| {
        html.raw("<span class=\"name\">part</span>");
        let scale =
            format!("address →  a line is {}; higher is more of it in RAM", lines.line_bytes());
        html.tagged(Tag::of("span", "map"), &scale);
        html.raw("<span>live</span><span>free, in RAM</span><span>returnable</span>");
    });
}

fn row(html: &mut Html, lines: &HeapLines, part: &PartColumns) {
    html.within(Tag::of("div", "heap-row"), |html| {
        let name = heap_lines::name(part);
        html.tagged(Tag::of("span", "name"), &name);
        let count = lines.lines_of(part).count();
        let height =
            (count * cells::LINE_STEP).saturating_sub(cells::LINE_STEP - cells::CELL_HEIGHT);
        let says = format!("{name}: {} live, {} free", part.sum.live_bytes, part.sum.free_bytes);
        let svg = Tag::of("svg", "map")
            .showing("viewBox", format!("0 0 {} {height}", cells::LINE_WIDTH))
            .showing("height", height)
            .with("preserveAspectRatio", "none")
            .with("role", "img")
            .with("aria-label", &says);
        html.within(svg, |html| cells::part(html, lines, part));
        figures(html, &part.sum);
    });
}

fn figures(html: &mut Html, sum: &HeapCell) {
    let sizes =
        [("live", sum.live_bytes), ("free", sum.free_bytes), ("returnable", sum.returnable_bytes)];
    for (what, bytes) in sizes {
        let figure = Tag::of("span", "size").with("data-what", what);
        html.tagged(figure, &bytes.to_string());
    }
}
