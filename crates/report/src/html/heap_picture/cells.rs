//! The cells of a heap's picture as paths, one for each kind of memory, and areas that show their figures on hover.
//!
//! Neighbours that look alike are one rectangle, so the drawing's size follows the heap's variety, not its size. A
//! cell is as high as the share of its address space that is in RAM, in quarters.

use std::fmt::Write as _;

use units::Bytes;

use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::HeapCell;
use crate::phrases::heap_cells::{self, CellFill};
use crate::phrases::heap_lines::{HeapLines, PartColumns, sum};

/// Width of a full line, in the drawing's units.
pub(super) const LINE_WIDTH: usize = 768;
/// Height of a line's cells, and from a line to the next.
pub(super) const CELL_HEIGHT: usize = 16;
pub(super) const LINE_STEP: usize = 19;
/// At most this many areas with figures: 500 KB of text.
const AREAS_MAX: usize = 2048;
/// An area is at least this wide: a pointer has to meet it.
const AREA_WIDTH_MIN: usize = 24;

/// How a cell is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellLook {
    fill: CellFill,
    /// Quarters of its height; 0 for a cell that is not in RAM.
    quarters: usize,
    is_cached: bool,
}

impl CellLook {
    fn of(cell: &HeapCell, bytes: Bytes) -> Self {
        let fill = CellFill::of(cell);
        let shown = cell.resident_bytes.max(cell.swapped_bytes);
        let quarters = (u128::from(shown.get()) * 4).div_ceil(u128::from(bytes.get().max(1)));
        Self {
            fill,
            quarters: usize::try_from(quarters.min(4)).unwrap_or(4),
            is_cached: fill != CellFill::Absent && heap_cells::is_cached(cell),
        }
    }
}

/// The patterns that fill cells; once in each document, before the cells.
pub(super) fn patterns(html: &mut Html) {
    html.raw(
        "<defs><pattern id=\"heap-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"hatch-ground\" width=\"6\" \
         height=\"6\"></rect><rect class=\"hatch-line\" width=\"2\" \
         height=\"6\"></rect></pattern><pattern id=\"heap-dots\" width=\"4\" height=\"4\" \
         patternUnits=\"userSpaceOnUse\"><rect class=\"dots-ground\" width=\"4\" \
         height=\"4\"></rect><rect class=\"dots-dot\" x=\"1\" y=\"1\" width=\"2\" \
         height=\"2\"></rect></pattern></defs>",
    );
}

/// The class of a fill.
pub(crate) const fn class(fill: CellFill) -> &'static str {
    match fill {
        CellFill::Absent => "cell-absent",
        CellFill::Swapped => "cell-swapped",
        CellFill::Returnable => "cell-returnable",
        CellFill::ThreadTop => "cell-top",
        CellFill::Unknown => "cell-unknown",
        CellFill::Live(0) => "live-0",
        CellFill::Live(1) => "live-1",
        CellFill::Live(2) => "live-2",
        CellFill::Live(3) => "live-3",
        CellFill::Live(4) => "live-4",
        CellFill::Live(_) => "live-5",
    }
}

/// Draws a part's lines below each other, from `(0, 0)` on.
pub(super) fn part(html: &mut Html, lines: &HeapLines, part: &PartColumns) {
    let width = LINE_WIDTH / lines.columns.max(1);
    let mut paths = CellPaths::default();
    let mut ground = String::new();
    for (line, (_, cells)) in lines.lines_of(part).enumerate() {
        let top = line * LINE_STEP;
        rectangle(&mut ground, (0, top), (cells.len() * width, CELL_HEIGHT));
        let looks: Vec<CellLook> =
            cells.iter().map(|cell| CellLook::of(cell, lines.column_bytes)).collect();
        paths.line(&looks, top, width);
    }
    html.open(&Tag::of("path", "ground").with_own("d", &ground)).raw("</path>");
    for (fill, path) in &paths.of_fills {
        html.open(&Tag::of("path", class(*fill)).with_own("d", path)).raw("</path>");
    }
    if !paths.cached.is_empty() {
        html.open(&Tag::of("path", "cell-cached").with_own("d", &paths.cached)).raw("</path>");
    }
    areas(html, lines, part, width);
}

/// Paths by what they show.
#[derive(Debug, Default)]
struct CellPaths {
    of_fills: Vec<(CellFill, String)>,
    cached: String,
}

impl CellPaths {
    /// Adds a line of cells; neighbours that look alike are one rectangle.
    fn line(&mut self, looks: &[CellLook], top: usize, width: usize) {
        let mut left = 0;
        for alike in looks.chunk_by(|one, next| one == next) {
            let wide = alike.len() * width;
            if let Some(look) = alike.first().filter(|look| look.fill != CellFill::Absent) {
                let height = CELL_HEIGHT * look.quarters.max(1) / 4;
                let at = (left, top + CELL_HEIGHT - height);
                rectangle(self.path(look.fill), at, (wide, height));
                if look.is_cached {
                    rectangle(&mut self.cached, (left, top + CELL_HEIGHT - 2), (wide, 2));
                }
            }
            left += wide;
        }
    }

    fn path(&mut self, fill: CellFill) -> &mut String {
        let known = self.of_fills.iter().position(|(other, _)| *other == fill);
        let at = known.unwrap_or_else(|| {
            self.of_fills.push((fill, String::new()));
            self.of_fills.len() - 1
        });
        &mut self.of_fills[at].1
    }
}

fn rectangle(path: &mut String, (x, y): (usize, usize), (width, height): (usize, usize)) {
    // Writing to a String cannot fail.
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
}

/// Draws invisible areas with the figures of what is below them.
fn areas(html: &mut Html, lines: &HeapLines, part: &PartColumns, width: usize) {
    let all = (lines.len() * lines.columns).div_ceil(AREAS_MAX);
    let group = all.max(AREA_WIDTH_MIN.div_ceil(width.max(1))).max(1);
    html.within(Tag::of("g", "areas"), |html| {
        for (line, (first, cells)) in lines.lines_of(part).enumerate() {
            let look = |cell: &HeapCell| CellLook::of(cell, lines.column_bytes);
            let mut groups: Vec<(usize, &[HeapCell])> = Vec::new();
            for (index, cells) in cells.chunks(group).enumerate() {
                groups.push((index * group, cells));
            }
            // What is absent throughout is one area.
            let is_absent =
                |cells: &[HeapCell]| cells.iter().all(|cell| look(cell).fill == CellFill::Absent);
            let alike = groups.chunk_by(|(_, one), (_, next)| is_absent(one) && is_absent(next));
            for groups in alike {
                let Some((from, _)) = groups.first() else {
                    continue;
                };
                let len: usize = groups.iter().map(|(_, cells)| cells.len()).sum();
                let whole = sum(cells.get(*from..from + len).unwrap_or_default());
                let mut path = String::new();
                let place = (from * width, line * LINE_STEP);
                rectangle(&mut path, place, (len * width, CELL_HEIGHT));
                html.within(tag("path").with_own("d", &path), |html| {
                    let figures =
                        heap_cells::figures(lines.offset(first + from), lines.offset(len), &whole);
                    html.tagged(tag("title"), &figures);
                });
            }
        }
    });
}
