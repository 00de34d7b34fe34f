//! The screen of `growth`: a line for each process and service, the most urgent first; one alone in detail, with a
//! picture of its memory.

use diagnose::growth::GrowthClass;
use units::{Bytes, Count, Quantity};

use super::ansi::Style;
use super::page::{NARROW, TextPage, piece};
use super::wrap::{cut, pad};
use super::{Detail, Screen, spark};
use crate::clock::ReportClock;
use crate::model::growth::{GrowthEntry, GrowthReport};
use crate::phrases::LabelledText;
use crate::phrases::growth as phrases;

/// At most this many lines are shown; the rest is counted.
const ROWS_MAX: usize = 20;
/// Cells of columns.
const NAME: usize = 20;
const CLASS: usize = 21;
const SIZE: usize = 9;
const RATE: usize = 13;
const SURE: usize = 11;
/// Rows of the picture.
const PICTURE: usize = 6;
/// Column of the text of a labelled line.
const INDENT: usize = 12;

pub(super) fn draw(report: &GrowthReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    match report.growths.as_slice() {
        [] => page.hanging(
            &[],
            0,
            Style::Plain,
            "No process and no service was read: nothing to judge.",
        ),
        [only] => one(&mut page, only, Some(&clock), screen),
        all => list(&mut page, all, &clock, screen),
    }
    page.finish()
}

/// Draws a line for each owner.
fn list(page: &mut TextPage, all: &[GrowthEntry], clock: &ReportClock<'_>, screen: &Screen) {
    let is_narrow = screen.width() < NARROW;
    if !is_narrow {
        let head = [
            pad("NAME", NAME),
            pad("CLASS", CLASS),
            pad("NOW", SIZE),
            pad("GROWTH", RATE),
            pad("LIMIT IN", SIZE),
            "SURE".to_owned(),
        ];
        page.line(&[piece(Style::Faint, head.join(" "))]);
    }
    let shown = if screen.detail == Detail::All { all.len() } else { ROWS_MAX };
    for entry in all.iter().take(shown) {
        let name = match entry.pid {
            Some(pid) => format!("{} ({pid})", entry.name),
            None => entry.name.clone(),
        };
        let now = entry.now_bytes.to_string();
        if is_narrow {
            let limit = || phrases::limit(entry).map(|at| format!("limit in {at}"));
            let kills = || phrases::kills(entry);
            let ends = phrases::ended(entry, Some(clock)).or_else(limit).or_else(kills);
            let ends = ends.map_or_else(String::new, |ends| format!(", {ends}"));
            let text = format!("{name}: {now}{ends}");
            page.hanging(
                &[piece(style(entry), format!("{}  ", entry.class_text))],
                2,
                Style::Plain,
                &text,
            );
            continue;
        }
        // When it ended takes the place of when it meets its limit, and how sure that is.
        let ends = match phrases::ended(entry, Some(clock)).or_else(|| phrases::kills(entry)) {
            Some(ended) => (ended, SIZE + 1 + SURE, ""),
            None => {
                let limit = phrases::limit(entry).unwrap_or_default();
                (limit, SIZE + 1, entry.confidence_text.word())
            }
        };
        let cells = screen.width().saturating_sub(NAME + CLASS + 2 * SIZE + RATE + 12 + 5);
        let rate = phrases::rate(entry).unwrap_or_default();
        page.line(&[
            piece(Style::Plain, pad(&cut(&name, NAME), NAME + 1)),
            piece(style(entry), pad(entry.class_text, CLASS + 1)),
            piece(Style::Plain, pad(&now, SIZE + 1)),
            piece(Style::Plain, pad(&rate, RATE + 1)),
            piece(Style::Plain, pad(&ends.0, ends.1)),
            piece(Style::Faint, pad(ends.2, SURE + SIZE + 1 - ends.1)),
            piece(Style::Faint, spark::graph(&entry.course_bytes, cells)),
        ]);
    }
    if all.len() > shown {
        let more = Count::new((all.len() - shown) as u64);
        page.hanging(&[], 0, Style::Faint, &format!("{more} more; --format json lists all."));
    }
}

/// Draws one owner in detail.
pub(super) fn one(
    page: &mut TextPage,
    entry: &GrowthEntry,
    clock: Option<&ReportClock<'_>>,
    screen: &Screen,
) {
    let owner = format!("  {} ({})", entry.name, phrases::sure(entry));
    let head = [piece(style(entry), entry.class_text.to_uppercase()), piece(Style::Plain, owner)];
    page.line(&head);
    page.hanging(&[], 0, Style::Plain, entry.meaning);
    page.gap();
    picture(page, entry, screen);
    page.gap();
    let mut lines = phrases::facts(entry, clock);
    if !entry.live_course_bytes.is_empty() {
        let cells = screen.width().saturating_sub(INDENT);
        let live = spark::graph(&entry.live_course_bytes, cells);
        lines.insert(1, LabelledText::new("Live data", live));
    }
    for line in lines {
        page.labelled(line.label, INDENT, &line.text);
    }
}

/// Draws the memory over time as columns of blocks.
fn picture(page: &mut TextPage, entry: &GrowthEntry, screen: &Screen) {
    let values = &entry.course_bytes;
    let Some((floor, high)) = phrases::axis(&[values]) else {
        return;
    };
    let levels: Vec<Option<f64>> =
        spark::largest_of_cells(values, screen.width().saturating_sub(SIZE + 2)).collect();
    // Of a column, in eighths of a cell.
    let height =
        |value: f64| (value - floor) / (high - floor).max(f64::MIN_POSITIVE) * (PICTURE * 8) as f64;
    for row in (0..PICTURE).rev() {
        let axis = match row {
            0 => Bytes::from_f64(floor).to_string(),
            r if r + 1 == PICTURE => Bytes::from_f64(high).to_string(),
            _ => String::new(),
        };
        let blocks: String = levels
            .iter()
            .map(|value| value.map_or(' ', |value| spark::block(height(value) - (row * 8) as f64)))
            .collect();
        page.line(&[
            piece(Style::Faint, format!("{axis:>SIZE$} ")),
            piece(Style::Data(74), blocks),
        ]);
    }
}

fn style(entry: &GrowthEntry) -> Style {
    match entry.class {
        class if class.leaks() => Style::Critical,
        GrowthClass::Fragmentation | GrowthClass::Pinned => Style::Warning,
        GrowthClass::Unknown | GrowthClass::Saturating => Style::Unknown,
        _ => Style::Fine,
    }
}
