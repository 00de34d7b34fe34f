//! What RAM, NUMA nodes and swap contained at the worst moment: a bar each, and a legend of its characters.

use units::{Bytes, in_one_unit};

use super::Screen;
use super::ansi::Style;
use super::bar::{self, BarFill};
use super::page::{NARROW, StyledText, TextPage, piece};
use super::wrap::{cut, pad, width};
use crate::clock::ReportClock;
use crate::model::{Accounting, Report, Severity};

/// Column of bars.
const BAR_INDENT: usize = 15;
/// Column of a legend that does not fit in one line below its bar.
const LEGEND_INDENT: usize = 4;
/// At most 60 cells: a longer bar shows no more.
const CELLS_MAX: usize = 60;

/// At most 16 NUMA nodes are drawn; the rest is counted.
const NODES_MAX: usize = 16;

/// A bar with the text before and after it.
struct BarRow {
    head: String,
    parts: Vec<(BarFill, Bytes)>,
    tail: String,
}

pub(super) fn draw(
    page: &mut TextPage,
    accounting: &Accounting,
    report: &Report,
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    let rows = rows(accounting, moment(accounting, report, clock));
    let tails = rows.iter().map(|row| width(&row.tail) + 2);
    let tail = if screen.width() < NARROW { 0 } else { tails.max().unwrap_or(0) };
    let cells = (screen.width() - BAR_INDENT).saturating_sub(tail);
    for (i, row) in rows.iter().enumerate() {
        draw_row(page, row, cells.min(CELLS_MAX), screen);
        if i == 0 {
            draw_legend(page, &row.parts, BAR_INDENT, screen);
        }
    }
    let more = accounting.nodes.len().checked_sub(NODES_MAX);
    if let Some(more) = more.filter(|more| *more > 0) {
        page.hanging(&[], 3, Style::Faint, &format!("and {more} more nodes"));
    }
}

/// Returns the rows: RAM, its nodes, swap.
fn rows(accounting: &Accounting, moment: String) -> Vec<BarRow> {
    let ram = BarRow {
        head: format!("RAM {:>9}", accounting.total_bytes.to_string()),
        parts: bar::parts(accounting),
        tail: moment,
    };
    let nodes = accounting.nodes.iter().take(NODES_MAX).map(|node| BarRow {
        head: format!("   node {}", cut(&node.node, 5)),
        parts: bar::used_and_free(
            node.total_bytes.saturating_sub(node.free_bytes),
            node.total_bytes,
        ),
        tail: format!("{} free", in_one_unit(node.free_bytes, "of", node.total_bytes)),
    });
    let swap = accounting.swap.iter().map(|swap| BarRow {
        head: format!("Swap {:>8}", swap.total_bytes.to_string()),
        parts: bar::used_and_free(swap.used_bytes, swap.total_bytes),
        tail: match swap.used_bytes {
            Bytes::ZERO => "empty".to_owned(),
            used => format!("{used} used"),
        },
    });
    std::iter::once(ram).chain(nodes).chain(swap).collect()
}

fn draw_row(page: &mut TextPage, row: &BarRow, cells: usize, screen: &Screen) {
    let mut pieces = vec![piece(Style::Plain, pad(&row.head, BAR_INDENT))];
    pieces.extend(bar::bar(&row.parts, cells));
    if screen.width() >= NARROW {
        pieces.push(piece(Style::Plain, format!("  {}", row.tail)));
        page.line(&pieces);
        return;
    }
    page.line(&pieces);
    if !row.tail.is_empty() {
        page.hanging(&[], BAR_INDENT, Style::Plain, &row.tail);
    }
}

/// Returns why this time is shown: it was the worst of a finding; otherwise how much was available.
fn moment(accounting: &Accounting, report: &Report, clock: &ReportClock<'_>) -> String {
    let at = clock.moment(accounting.at_s, accounting.at);
    let is_wrong = report.findings.iter().any(|f| f.severity > Severity::Info);
    let is_last = accounting.at_s >= report.source.watched_s.as_secs_f64();
    match (accounting.available_bytes, at) {
        (_, Some(at)) if is_wrong && report.source.samples > 1 => format!("worst at {at}"),
        (Some(available), Some(at)) if !is_last => format!("{available} available at {at}"),
        (Some(available), _) => format!("{available} available"),
        (None, _) => String::new(),
    }
}

/// Returns the names and sizes of a bar's parts, with one unit if all have the same.
fn legend(parts: &[(BarFill, Bytes)]) -> Vec<(BarFill, String)> {
    let sizes: Vec<String> = parts.iter().map(|(_, bytes)| bytes.to_string()).collect();
    let unit = |size: &str| size.split_once(' ').map(|(_, unit)| unit.to_owned());
    let same_unit = sizes.windows(2).all(|pair| unit(&pair[0]) == unit(&pair[1]));
    let entry = |(i, ((fill, _), size)): (usize, (&(BarFill, Bytes), &String))| {
        let number = size
            .split_once(' ')
            .map(|(number, _)| number)
            .filter(|_| same_unit && i + 1 < sizes.len());
        (*fill, format!("{} {}", fill.name, number.unwrap_or(size)))
    };
    parts.iter().zip(&sizes).enumerate().map(entry).collect()
}

/// Draws what the bar's characters mean, with sizes, from the column of the bar on where it fits into one line.
pub(super) fn draw_legend(
    page: &mut TextPage,
    parts: &[(BarFill, Bytes)],
    below: usize,
    screen: &Screen,
) {
    let entries = legend(parts);
    let whole: usize = entries.iter().map(|(_, text)| width(text) + 4).sum();
    let indent = if below + whole <= screen.width() + 2 { below } else { LEGEND_INDENT };
    let mut line: Vec<StyledText> = Vec::new();
    let mut used = 0;
    for (fill, text) in entries {
        let cells = width(&text) + 2;
        if used > 0 && indent + used + 2 + cells > screen.width() {
            page.line(&std::mem::take(&mut line));
            used = 0;
        }
        let blanks = if used == 0 { indent } else { 2 };
        used += cells + if used == 0 { 0 } else { 2 };
        line.push(piece(Style::Plain, " ".repeat(blanks)));
        line.push(piece(fill.style, fill.glyph.to_string()));
        line.push(piece(Style::Faint, format!(" {text}")));
    }
    if !line.is_empty() {
        page.line(&line);
    }
}
