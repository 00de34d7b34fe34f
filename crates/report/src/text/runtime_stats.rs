//! The screen of a runtime's own report: its class and headline, a small table, and what the class rests on.

use units::{Bytes, Count, Ratio, SignedBytes};

use super::page::{NARROW, Style, TextPage, piece};
use super::wrap::{cut, pad, width, wrap_items};
use super::{Detail, Screen};
use crate::model::runtime_stats::{
    JemallocEntry, NativeMemoryEntry, ObjectSpaceEntry, RuntimeStatsReport,
};

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
    let table = match (&report.ruby, &report.jvm, &report.jemalloc) {
        (Some(ruby), _, _) => object_space(ruby),
        (_, Some(jvm), _) => native_memory(jvm),
        (_, _, Some(jemalloc)) => {
            sizes(jemalloc).draw(page, screen);
            page.gap();
            slabs(jemalloc)
        }
        _ => Table::default(),
    };
    table.draw(page, screen);
    page.gap();
    let parts = [
        ("Remark", &report.remarks),
        ("Evidence", &report.evidence),
        ("Not counted", &report.not_counted),
        ("To do", &report.advice),
    ];
    for (label, texts) in parts {
        labelled(page, screen, label, texts);
    }
}

/// Draws sentences beside their label; on a narrow screen, below it.
fn labelled(page: &mut TextPage, screen: &Screen, label: &str, texts: &[String]) {
    let head = [piece(Style::Faint, format!("{label}: "))];
    let is_narrow = screen.width() < NARROW;
    if is_narrow && !texts.is_empty() {
        page.line(&head);
    }
    for text in texts {
        if is_narrow {
            page.hanging(&[piece(Style::Plain, "- ")], 2, Style::Plain, text);
        } else {
            page.hanging(&head, INDENT, Style::Plain, text);
        }
    }
}

/// Draws the class, the runtime and its process, and below it the headline.
fn head(page: &mut TextPage, report: &RuntimeStatsReport, screen: &Screen) {
    let style = if report.is_concern {
        Style::Warning
    } else {
        Style::Fine
    };
    let name = match report.runtime {
        "ruby" => "Ruby",
        "jvm" => "JVM",
        other => other,
    };
    let mut title = name.to_owned();
    if let Some(version) = &report.version {
        // The commit of a build is of no interest.
        let short = version.split('-').next().unwrap_or_default();
        title.push_str(&format!(" {}", cut(short, 20)));
    }
    if let Some(pid) = report.pid {
        title.push_str(&format!(", PID {pid}"));
    }
    let class = report.class.to_uppercase();
    let rest = screen.width().saturating_sub(class.len() + 2);
    page.line(&[
        piece(style, format!("{class}  ")),
        piece(Style::Plain, cut(&title, rest)),
    ]);
    page.hanging(&[], 0, Style::Plain, &report.headline);
}

/// Rows under names of columns. The first column is words, the others are numbers.
#[derive(Default)]
struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Draws the rows; those beyond the bound are counted.
    fn draw(&self, page: &mut TextPage, screen: &Screen) {
        let shown = match screen.detail {
            Detail::All => self.rows.len(),
            Detail::Brief => ROWS_MAX.min(self.rows.len()),
        };
        let (rows, others) = self.rows.split_at(shown);
        let widths = self.widths(rows);
        let gaps = COLUMN_GAP * widths.len().saturating_sub(1);
        if screen.width() < NARROW || widths.iter().sum::<usize>() + gaps > screen.width() {
            self.draw_named(page, rows);
        } else if !rows.is_empty() {
            self.draw_aligned(page, rows, &widths);
        }
        if !others.is_empty() {
            let more = Count::new(others.len() as u64);
            page.hanging(
                &[],
                0,
                Style::Faint,
                &format!("{more} more; --format json lists all."),
            );
        }
    }

    /// Draws a paragraph for each row, with the columns' names in it.
    fn draw_named(&self, page: &mut TextPage, rows: &[Vec<String>]) {
        for (first, values) in rows.iter().filter_map(|row| row.split_first()) {
            let named = self.names.iter().skip(1).zip(values);
            let values: Vec<String> = named
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| format!("{} {value}", name.to_lowercase()))
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
    fn widths(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let cells = |(column, name): (usize, &&str)| {
            let of_row = |row: &Vec<String>| row.get(column).map_or(0, |cell| width(cell));
            let widest = rows.iter().map(of_row).max().unwrap_or(0).max(width(name));
            if column == 0 {
                widest.min(FIRST_COLUMN_MAX)
            } else {
                widest
            }
        };
        self.names.iter().enumerate().map(cells).collect()
    }

    /// Draws aligned columns: words to the left, numbers to the right.
    fn draw_aligned(&self, page: &mut TextPage, rows: &[Vec<String>], widths: &[usize]) {
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
        let names: Vec<String> = self.names.iter().map(|name| (*name).to_owned()).collect();
        page.line(&[piece(Style::Faint, line(&names))]);
        for row in rows {
            page.line(&[piece(Style::Plain, line(row))]);
        }
    }
}

fn size(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Prints a number, or nothing if it is unknown.
fn known<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(String::new, print)
}

fn count(n: u64) -> String {
    Count::new(n).to_string()
}

fn ratio(value: f64) -> String {
    Ratio::new(value).to_string()
}

/// A change with its sign; nothing if there is none.
fn change(bytes: Option<i64>) -> String {
    let changed = bytes.filter(|bytes| *bytes != 0);
    known(changed, |bytes| format!("{:+}", SignedBytes::new(bytes)))
}

fn object_space(entry: &ObjectSpaceEntry) -> Table {
    let row = |pool: &crate::model::runtime_stats::ObjectPoolEntry| {
        vec![
            pool.slot_size_bytes.map_or_else(|| "all".to_owned(), size),
            count(pool.eden_pages),
            count(pool.eden_slots),
            known(pool.live_slots, count),
            known(pool.slot_occupancy_ratio, ratio),
            known(pool.free_bytes, size),
        ]
    };
    Table {
        names: vec!["SLOT", "PAGES", "SLOTS", "LIVE", "OCCUPIED", "FREE"],
        rows: entry.pools.iter().map(row).collect(),
    }
}

fn native_memory(entry: &NativeMemoryEntry) -> Table {
    let has_change = entry.committed_change_bytes.is_some();
    let mut names = vec!["CATEGORY", "RESERVED", "COMMITTED", "SHARE"];
    names.extend(has_change.then_some("CHANGE"));
    let row = |first: String, sizes: [u64; 2], share: Option<f64>, changed: Option<i64>| {
        let mut cells = vec![first, size(sizes[0]), size(sizes[1]), known(share, ratio)];
        cells.extend(has_change.then(|| change(changed)));
        cells
    };
    let total = row(
        "Total".to_owned(),
        [entry.reserved_bytes, entry.committed_bytes],
        None,
        entry.committed_change_bytes,
    );
    let categories = entry.categories.iter().map(|one| {
        let sizes = [one.reserved_bytes, one.committed_bytes];
        row(
            one.name.clone(),
            sizes,
            one.committed_ratio,
            one.committed_change_bytes,
        )
    });
    Table {
        names,
        rows: std::iter::once(total).chain(categories).collect(),
    }
}

/// What resident memory is made of.
fn sizes(entry: &JemallocEntry) -> Table {
    let whole = entry.resident_bytes;
    let row = |name: &str, bytes: u64| {
        let share = (whole > 0).then(|| ratio(bytes as f64 / whole as f64));
        vec![name.to_owned(), size(bytes), share.unwrap_or_default()]
    };
    let mut rows = vec![
        row("resident", whole),
        row("  allocated", entry.allocated_bytes),
        row("  free in active pages", entry.active_unused_bytes),
        row("  free pages, not purged", entry.unpurged_bytes),
        row("  metadata", entry.metadata_bytes),
    ];
    rows.extend(
        entry
            .retained_bytes
            .map(|bytes| vec!["retained: no memory".to_owned(), size(bytes), String::new()]),
    );
    Table {
        names: vec!["PART", "SIZE", "SHARE"],
        rows,
    }
}

/// The sizes with the most free memory in their slabs.
fn slabs(entry: &JemallocEntry) -> Table {
    let row = |bin: &crate::model::runtime_stats::JemallocBinEntry| {
        vec![
            size(bin.region_size_bytes),
            count(bin.slabs),
            count(bin.regions),
            count(bin.used_regions),
            known(bin.occupancy_ratio, ratio),
            size(bin.unused_bytes),
        ]
    };
    Table {
        names: vec!["REGION", "SLABS", "REGIONS", "USED", "OCCUPIED", "FREE"],
        rows: entry.bins.iter().map(row).collect(),
    }
}
