//! The screen of a runtime's own report: its class and headline, a small table, and what the class rests on.

use units::Count;

use super::ansi::Style;
use super::page::{NARROW, TextPage, piece};
use super::wrap::{cut, pad, width, wrap_items};
use super::{Detail, Screen};
use crate::model::runtime_stats::RuntimeStatsReport;
use crate::phrases::runtime_stats::{self as phrases, StatsTable};

/// At most this many rows are shown; the rest is counted.
const ROWS_MAX: usize = 10;
/// Cells of the first column of a table.
const FIRST_COLUMN_MAX: usize = 28;
/// Cells between columns.
const COLUMN_GAP: usize = 2;
/// Cells of the text of a row on a narrow screen.
const NAMED_WIDTH: usize = 38;
/// Column of the text of a labelled line.
const INDENT: usize = 13;

pub(super) fn draw(report: &RuntimeStatsReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    section(&mut page, report, screen);
    page.finish()
}

/// Draws the screen as a part of another.
pub(super) fn section(page: &mut TextPage, report: &RuntimeStatsReport, screen: &Screen) {
    head(page, report, screen);
    page.gap();
    for table in phrases::tables(report) {
        draw_table(&table, page, screen);
        page.gap();
    }
    let is_narrow = screen.width() < NARROW;
    let mut last = "";
    for line in phrases::sentences(report) {
        if !is_narrow {
            page.labelled(line.label, INDENT, &line.text);
            continue;
        }
        if line.label != last {
            page.line(&[piece(Style::Faint, format!("{}:", line.label))]);
        }
        last = line.label;
        page.hanging(&[piece(Style::Plain, "- ")], 2, Style::Plain, &line.text);
    }
}

/// Draws the class, the runtime and its process, and below it the headline.
fn head(page: &mut TextPage, report: &RuntimeStatsReport, screen: &Screen) {
    let style = if report.is_concern { Style::Warning } else { Style::Fine };
    let class = report.class.to_uppercase();
    let rest = screen.width().saturating_sub(class.len() + 2);
    page.line(&[
        piece(style, format!("{class}  ")),
        piece(Style::Plain, cut(&phrases::title(report), rest)),
    ]);
    page.hanging(&[], 0, Style::Plain, &report.headline);
}

/// Draws the rows; those beyond the bound are counted.
fn draw_table(table: &StatsTable, page: &mut TextPage, screen: &Screen) {
    let shown = match screen.detail {
        Detail::All => table.rows.len(),
        Detail::Brief => ROWS_MAX.min(table.rows.len()),
    };
    let (rows, others) = table.rows.split_at(shown);
    let widths = widths(table, rows);
    let gaps = COLUMN_GAP * widths.len().saturating_sub(1);
    if screen.width() < NARROW || widths.iter().sum::<usize>() + gaps > screen.width() {
        draw_named(table, page, rows);
    } else if !rows.is_empty() {
        draw_aligned(table, page, rows, &widths);
    }
    if !others.is_empty() {
        let more = Count::new(others.len() as u64);
        page.hanging(&[], 0, Style::Faint, &format!("{more} more; --format json lists all."));
    }
}

/// Draws a paragraph for each row, with the columns' names in it.
fn draw_named(table: &StatsTable, page: &mut TextPage, rows: &[Vec<String>]) {
    for (first, values) in rows.iter().filter_map(|row| row.split_first()) {
        let named = table.names.iter().skip(1).zip(values);
        let values: Vec<String> = named
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let first = cut(first.trim_start(), FIRST_COLUMN_MAX);
        let head = [piece(Style::Strong, format!("{first}: "))];
        let lines = wrap_items(&values, ", ", NAMED_WIDTH);
        page.line(&head);
        for line in lines {
            page.line(&[piece(Style::Plain, format!("  {line}"))]);
        }
    }
}

/// Returns the cells of each column; the first has a bound.
fn widths(table: &StatsTable, rows: &[Vec<String>]) -> Vec<usize> {
    let cells = |(column, name): (usize, &&str)| {
        let of_row = |row: &Vec<String>| row.get(column).map_or(0, |cell| width(cell));
        let widest = rows.iter().map(of_row).max().unwrap_or(0).max(width(name));
        if column == 0 { widest.min(FIRST_COLUMN_MAX) } else { widest }
    };
    table.names.iter().enumerate().map(cells).collect()
}

/// Draws aligned columns: words to the left, numbers to the right.
fn draw_aligned(table: &StatsTable, page: &mut TextPage, rows: &[Vec<String>], widths: &[usize]) {
    let line = |row: &[String]| {
        let mut text = String::new();
        for (column, (cell, cells)) in row.iter().zip(widths).enumerate() {
            if column == 0 {
                text = pad(&cut(cell, FIRST_COLUMN_MAX), *cells);
            } else {
                let blanks = cells.saturating_sub(width(cell)) + COLUMN_GAP;
                text.push_str(&" ".repeat(blanks));
                text.push_str(cell);
            }
        }
        text
    };
    let names: Vec<String> = table.names.iter().map(|name| name.to_uppercase()).collect();
    page.line(&[piece(Style::Faint, line(&names))]);
    for row in rows {
        page.line(&[piece(Style::Plain, line(row))]);
    }
}
