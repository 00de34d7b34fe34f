//! A malloc heap as a picture of characters: at most 27 lines at 80 columns.
//!
//! A line for each part of an arena, address from left to right. With colour each cell is two columns of the heap, the
//! halves of `▌`; without colour it is one: a ramp of blocks for the live share, and letters for what is wholly free.

use units::Count;

use super::Screen;
use super::ansi::Style;
use super::page::{NARROW, StyledText, TextPage, piece};
use super::wrap::{cut, pad, width};
use crate::model::explain::{ExplainReport, HeapCell, HeapReport};
use crate::phrases::arena_columns::arena_name;
use crate::phrases::explain::{self as phrases};
use crate::phrases::heap_cells::{CellFill, LIVE_CLASSES};
use crate::phrases::heap_lines::{HeapLines, PartColumns, PictureBounds};
use crate::screen::ColourMode;

/// At most this many lines of cells.
const LINES_MAX: usize = 20;
/// Cells of a part's name and of a figure beside it.
const NAME: usize = 9;
const SIZE: usize = 10;

/// The looks in the order of the legend: letter, colour (256-colour palette), short words.
const LOOKS: [(CellFill, char, u8, &str); 4] = [
    (CellFill::Returnable, 'r', 214, "malloc_trim returns"),
    (CellFill::ThreadTop, 't', 130, "thread top, stays"),
    (CellFill::Swapped, 's', 204, "in swap"),
    (CellFill::Unknown, '?', 245, "other"),
];

/// The live share from none to all: letter and colour.
const RAMP: [(char, u8); LIVE_CLASSES] =
    [('·', 179), ('░', 144), ('▒', 102), ('▒', 67), ('▓', 32), ('█', 25)];

pub(super) fn draw(report: &ExplainReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let head = [phrases::process(report), phrases::rss(report)];
    page.hanging(&[], 0, Style::Strong, &head.join(" · "));
    let style = super::explain::style(report);
    let word = report.verdict_text.to_uppercase();
    let text = report.headline.first().map_or("", String::as_str);
    let indent = width(&word) + 2;
    page.hanging(&[piece(style, word)], indent, Style::Plain, text);
    match (&report.heap, phrases::no_picture(report)) {
        (Some(heap), None) => {
            page.gap();
            picture(&mut page, heap, screen);
        }
        (_, why) => page.hanging(&[], 0, Style::Plain, &why.unwrap_or_default()),
    }
    page.finish()
}

fn picture(page: &mut TextPage, heap: &HeapReport, screen: &Screen) {
    let is_narrow = screen.width() < NARROW;
    let figures = if is_narrow { 0 } else { 3 * SIZE };
    let cells = screen.width().saturating_sub(NAME + 1 + figures).max(1);
    let columns = match screen.colour {
        ColourMode::Plain => cells,
        ColourMode::Ansi => cells * 2,
    };
    let lines = HeapLines::new(
        heap,
        PictureBounds { columns_min: columns, columns_max: columns, lines_max: LINES_MAX },
    );
    let scale = format!("address →  a line: {}", lines.line_bytes());
    let mut head = pad(&cut(&scale, cells), cells);
    if !is_narrow {
        for name in ["live", "free", "trim"] {
            head.push_str(&format!("{name:>SIZE$}"));
        }
    }
    let head = format!("{}{head}", pad("arena", NAME + 1));
    page.line(&[piece(Style::Faint, head)]);
    for part in &lines.parts {
        draw_part(page, &lines, part, cells, is_narrow);
    }
    if lines.left_out > 0 {
        let more = Count::new(lines.left_out as u64).named("smaller part", "smaller parts");
        let mut line =
            vec![piece(Style::Faint, pad(&format!("{more} not drawn"), NAME + 1 + cells))];
        if !is_narrow {
            line.push(piece(Style::Plain, figures_of(&lines.left_out_sum)));
        }
        page.line(&line);
    }
    legend(page, screen);
}

fn draw_part(
    page: &mut TextPage,
    lines: &HeapLines,
    part: &PartColumns,
    cells: usize,
    is_narrow: bool,
) {
    for (line, (_, columns)) in lines.lines_of(part).enumerate() {
        let name = match line {
            0 => name(part),
            _ => String::new(),
        };
        let mut pieces = vec![piece(Style::Faint, pad(&name, NAME + 1))];
        let per_cell = lines.columns.div_ceil(cells).max(1);
        let drawn = columns.chunks(per_cell).map(|pair| cell(pair, per_cell));
        let mut used = 0;
        for (style, c) in drawn {
            used += 1;
            push(&mut pieces, style, c);
        }
        if line == 0 && !is_narrow {
            pieces.push(piece(Style::Plain, " ".repeat(cells.saturating_sub(used))));
            pieces.push(piece(Style::Plain, figures_of(&part.sum)));
        }
        page.line(&pieces);
    }
}

/// `main`, `12`, `12 2/3`: an arena's number, and which of its parts.
fn name(part: &PartColumns) -> String {
    let arena = arena_name(Some(part.arena));
    let name = match part.place {
        (_, 0 | 1) => arena,
        (place, of) => format!("{arena} {place}/{of}"),
    };
    cut(&name, NAME)
}

fn figures_of(sum: &HeapCell) -> String {
    let sizes = [sum.live_bytes, sum.free_bytes, sum.returnable_bytes];
    let all = sizes.map(|bytes| format!("{:>SIZE$}", bytes.to_string()));
    all.concat()
}

/// Draws one column without colour, two as the halves of a cell.
fn cell(columns: &[HeapCell], per_cell: usize) -> (Style, char) {
    let mut fills = columns.iter().map(CellFill::of);
    if per_cell == 1 {
        let fill = fills.next().unwrap_or(CellFill::Absent);
        return (Style::Plain, glyph(fill));
    }
    let mut colours = fills.map(colour);
    let (left, right) = (colours.next().flatten(), colours.next().flatten());
    match (left, right) {
        (None, None) => (Style::Plain, ' '),
        (Some(left), None) => (Style::Data(left), '▌'),
        (None, Some(right)) => (Style::Data(right), '▐'),
        (Some(left), Some(right)) if left == right => (Style::Data(left), '█'),
        (Some(left), Some(right)) => (Style::Halves(left, right), '▌'),
    }
}

fn glyph(fill: CellFill) -> char {
    if let CellFill::Live(class) = fill {
        return RAMP[class.min(LIVE_CLASSES - 1)].0;
    }
    let look = LOOKS.iter().find(|(other, ..)| *other == fill);
    look.map_or(' ', |(_, glyph, ..)| *glyph)
}

fn colour(fill: CellFill) -> Option<u8> {
    if let CellFill::Live(class) = fill {
        return Some(RAMP[class.min(LIVE_CLASSES - 1)].1);
    }
    let look = LOOKS.iter().find(|(other, ..)| *other == fill);
    look.map(|(_, _, colour, _)| *colour)
}

/// Adds a character to the last piece, or begins another.
fn push(pieces: &mut Vec<StyledText>, style: Style, c: char) {
    match pieces.last_mut() {
        Some((last, text)) if *last == style => text.push(c),
        _ => pieces.push(piece(style, c.to_string())),
    }
}

/// Writes what the cells mean, wrapped between its items.
fn legend(page: &mut TextPage, screen: &Screen) {
    let is_plain = screen.colour == ColourMode::Plain;
    let mut ramp = vec![piece(Style::Faint, "live: none ")];
    for (glyph, colour) in RAMP {
        let glyph = if is_plain { glyph } else { '█' };
        ramp.push(piece(Style::Data(colour), glyph.to_string()));
    }
    ramp.push(piece(Style::Faint, " all"));
    let mut items = vec![ramp];
    for (_, glyph, colour, words) in LOOKS {
        let glyph = if is_plain { glyph } else { '█' };
        items.push(vec![
            piece(Style::Data(colour), glyph.to_string()),
            piece(Style::Faint, format!(" {words}")),
        ]);
    }
    items.push(vec![piece(Style::Faint, "blank: not in RAM")]);
    let mut line: Vec<StyledText> = Vec::new();
    let cells = |line: &[StyledText]| line.iter().map(|(_, text)| width(text)).sum::<usize>();
    for item in items {
        if !line.is_empty() && cells(&line) + 2 + cells(&item) > screen.width() {
            page.line(&std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(piece(Style::Plain, "  "));
        }
        line.extend(item);
    }
    page.line(&line);
}
