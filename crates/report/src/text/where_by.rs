//! The screen of `where --by`: a table that adds up to MemTotal, with what no row has below the rows.

use units::{Bytes, Count, Ratio};

use super::ansi::Style;
use super::check::host_line;
use super::page::{NARROW, TextPage, piece};
use super::wrap::{cut, cut_name, width};
use super::{Detail, Screen, where_tree};
use crate::clock::ReportClock;
use crate::model::{OwnerRow, WhereByReport};

/// At most 20 owners are shown; the others are one row.
const ROWS_MAX: usize = 20;
/// Cells of the right-aligned columns.
const SIZE: usize = 11;
const SHARE: usize = 8;
const LIMIT: usize = 10;
const GROWTH: usize = 11;

/// A row as it is drawn.
#[derive(Default)]
struct OwnerLine {
    size: String,
    share: String,
    limit: String,
    growth: String,
    name: String,
    note: String,
}

pub(super) fn draw(report: &WhereByReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    host_line(&mut page, &report.host, &report.source, &clock, screen);
    page.gap();
    let total = report.total_bytes;
    let moment = clock.moment(report.at_s, report.at);
    let at = moment
        .filter(|_| report.source.samples > 1)
        .map_or_else(String::new, |at| format!(" at {at}"));
    let head = format!("{total} MemTotal{at}, by {}", report.by);
    page.hanging(&[], 0, Style::Strong, &head);
    let rows = rows(report, screen);
    let has_limit = rows.iter().any(|row| !row.limit.is_empty());
    let has_growth = rows.iter().any(|row| !row.growth.is_empty());
    let columns = OwnerColumns {
        limit: has_limit && screen.width() >= NARROW,
        growth: has_growth && screen.width() >= NARROW,
    };
    columns.heading(&mut page, report);
    for row in &rows {
        columns.row(&mut page, row, screen);
    }
    remarks(&mut page, report);
    page.finish()
}

fn remarks(page: &mut TextPage, report: &WhereByReport) {
    page.gap();
    let mut sizes = format!("Sizes: {}.", report.measured);
    if let Some(span) = report.grown_for_s {
        sizes.push_str(&format!(" Growth: in {span}."));
    }
    page.hanging(&[], 0, Style::Faint, &sizes);
    if report.exceeds_bytes > Bytes::ZERO {
        let more = report.exceeds_bytes;
        let text = format!(
            "The rows have {more} more than RAM that is in use: shared memory counts for each."
        );
        page.hanging(&[], 0, Style::Faint, &text);
    }
    for text in &report.unknown {
        page.hanging(&[], 0, Style::Faint, text);
    }
}

/// The columns that have something.
struct OwnerColumns {
    limit: bool,
    growth: bool,
}

impl OwnerColumns {
    fn heading(&self, page: &mut TextPage, report: &WhereByReport) {
        let titles = OwnerLine {
            size: "MEMORY".to_owned(),
            share: "OF RAM".to_owned(),
            limit: "OF LIMIT".to_owned(),
            growth: "GROWTH".to_owned(),
            name: report.by.to_uppercase(),
            note: String::new(),
        };
        page.line(&[piece(Style::Faint, self.cells(&titles) + &titles.name)]);
    }

    fn cells(&self, row: &OwnerLine) -> String {
        let mut cells = format!("{:>SIZE$}{:>SHARE$}", row.size, row.share);
        if self.limit {
            cells.push_str(&format!("{:>LIMIT$}", row.limit));
        }
        if self.growth {
            cells.push_str(&format!("{:>GROWTH$}", row.growth));
        }
        cells + "  "
    }

    fn row(&self, page: &mut TextPage, row: &OwnerLine, screen: &Screen) {
        let cells = self.cells(row);
        let indent = width(&cells);
        let room = screen.width().saturating_sub(indent);
        if row.name.is_empty() {
            page.hanging(&[piece(Style::Plain, cells)], indent, Style::Faint, &row.note);
            return;
        }
        let name = cut_name(&row.name, room);
        let left = room.saturating_sub(width(&name) + 2);
        let mut line = vec![piece(Style::Plain, cells), piece(Style::Strong, name)];
        if left >= 8 && !row.note.is_empty() {
            line.push(piece(Style::Faint, format!("  {}", cut(&row.note, left))));
        }
        page.line(&line);
    }
}

/// Returns the rows: the largest owners, the others in one, then what no owner has.
fn rows(report: &WhereByReport, screen: &Screen) -> Vec<OwnerLine> {
    let total = report.total_bytes;
    let shown = screen.top.unwrap_or(ROWS_MAX);
    let most = match screen.detail {
        // Saying \"1 other\" takes as much room as the row itself.
        Detail::Brief if report.rows.len() > shown + 1 => shown,
        _ => report.rows.len(),
    };
    let (shown, others) = report.rows.split_at(most);
    let mut rows: Vec<OwnerLine> = shown.iter().map(|row| owner(row, report)).collect();
    let noted = |bytes: Bytes, note: String| OwnerLine {
        size: size(bytes, report.is_estimate),
        share: share(bytes.ratio_of(total)),
        note,
        ..OwnerLine::default()
    };
    if !others.is_empty() {
        let sum = others.iter().map(|row| row.bytes).sum();
        let count = Count::new(others.len() as u64);
        rows.push(noted(sum, format!("{count} others")));
    }
    rows.extend(report.rest.iter().map(|rest| OwnerLine {
        size: rest.bytes.to_string(),
        ..noted(rest.bytes, rest.label.to_owned())
    }));
    rows
}

fn owner(row: &OwnerRow, report: &WhereByReport) -> OwnerLine {
    let growth = match (row.is_new, row.growth) {
        (true, _) => "new".to_owned(),
        (_, Some(bytes)) => format!("{bytes:+}"),
        (_, None) => String::new(),
    };
    OwnerLine {
        size: size(row.bytes, report.is_estimate),
        share: share(row.share),
        limit: share(row.of_limit),
        growth,
        name: row.name.clone(),
        note: row.note.clone(),
    }
}

fn size(bytes: Bytes, is_estimate: bool) -> String {
    if is_estimate { format!("≈{bytes}") } else { bytes.to_string() }
}

fn share(of_whole: Option<Ratio>) -> String {
    of_whole.map_or_else(String::new, where_tree::share)
}
