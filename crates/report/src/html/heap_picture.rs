//! A malloc heap page by page, within the page of a process.
//!
//! A row for each part of an arena, address from left to right, all on one scale; blue is live, amber is free, and the
//! lightness follows, so that it reads in grey, too. Figures beside the rows.

mod cells;
mod rows;

pub(super) use cells::class;
pub(super) use rows::draw as rows;

use crate::html::escape::{Html, Tag, tag};
use crate::phrases::heap_cells::{CACHED_WORDS, CellFill, LEGEND};
use crate::phrases::heap_lines::PictureBounds;

/// Bounds of the drawing: a line has 768 units, so 256 columns of 3.
const BOUNDS: PictureBounds = PictureBounds { columns_min: 32, columns_max: 256, lines_max: 48 };

/// Draws a sample of a fill, 18 by 12, at `(0, 0)`.
fn swatch(html: &mut Html, fill: CellFill) {
    let edge = tag("rect").with("class", "ground");
    html.open(&sized(edge)).raw("</rect>");
    if fill != CellFill::Absent {
        html.open(&sized(Tag::of("rect", cells::class(fill)))).raw("</rect>");
    }
}

fn sized(tag: Tag) -> Tag {
    tag.with("width", "18").with("height", "12")
}

/// The items of the legend behind the live shares: what draws the sample, and its words.
fn legend() -> impl Iterator<Item = (Option<CellFill>, &'static str)> {
    let fills = LEGEND.into_iter().map(|(fill, words)| (Some(fill), words));
    fills.chain([(None, CACHED_WORDS)])
}

/// Draws the sample of an item of the legend; `None` is the mark of cached cells.
fn sample(html: &mut Html, fill: Option<CellFill>) {
    match fill {
        Some(fill) => swatch(html, fill),
        None => {
            swatch(html, CellFill::Live(3));
            html.raw("<rect class=\"cell-cached\" y=\"9\" width=\"18\" height=\"3\"></rect>");
        }
    }
}
