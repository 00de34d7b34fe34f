//! The screen of `growth`: a line for each process and service, the most urgent first; one alone in detail, with a
//! picture of its memory.

use units::{Bytes, BytesPerSecond, Count, Quantity, Ratio, Span};

use super::page::{NARROW, Style, TextPage, piece};
use super::wrap::{cut, pad};
use super::{Detail, Screen, bar};
use crate::model::growth::{GrowthEntry, GrowthReport};

/// At most this many lines are shown; the rest is counted.
const ROWS_MAX: usize = 20;
/// Cells of columns.
const NAME: usize = 20;
const CLASS: usize = 21;
const SIZE: usize = 9;
/// Rows of the picture.
const PICTURE: usize = 6;
/// Column of the text of a labelled line.
const INDENT: usize = 12;

pub(super) fn draw(report: &GrowthReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    match report.growths.as_slice() {
        [] => page.hanging(
            &[],
            0,
            Style::Plain,
            "No process and no service was read: nothing to judge.",
        ),
        [only] => one(&mut page, only, screen),
        all => list(&mut page, all, screen),
    }
    page.finish()
}

/// Draws a line for each owner.
fn list(page: &mut TextPage, all: &[GrowthEntry], screen: &Screen) {
    let is_narrow = screen.width() < NARROW;
    if !is_narrow {
        let head = [
            pad("NAME", NAME),
            pad("CLASS", CLASS),
            pad("NOW", SIZE),
            pad("A DAY", SIZE),
            pad("LIMIT IN", SIZE),
            "SURE".to_owned(),
        ];
        page.line(&[piece(Style::Faint, head.join(" "))]);
    }
    let shown = if screen.detail == Detail::All {
        all.len()
    } else {
        ROWS_MAX
    };
    for entry in all.iter().take(shown) {
        let name = match entry.pid {
            Some(pid) => format!("{} ({pid})", entry.name),
            None => entry.name.clone(),
        };
        let now = Bytes::new(entry.now_bytes).to_string();
        if is_narrow {
            let text = format!(
                "{name}: {now}{}",
                limit(entry).map_or_else(String::new, |at| format!(", limit in {at}"))
            );
            page.hanging(
                &[piece(style(entry), format!("{}  ", entry.class_text))],
                2,
                Style::Plain,
                &text,
            );
            continue;
        }
        let cells = screen
            .width()
            .saturating_sub(NAME + CLASS + 3 * SIZE + 12 + 5);
        let day = entry.rate_bytes_per_s.map_or_else(String::new, |rate| {
            format!("+{}", Bytes::from_f64(rate * 86_400.0))
        });
        page.line(&[
            piece(Style::Plain, pad(&cut(&name, NAME), NAME + 1)),
            piece(style(entry), pad(&entry.class_text, CLASS + 1)),
            piece(Style::Plain, pad(&now, SIZE + 1)),
            piece(Style::Plain, pad(&day, SIZE + 1)),
            piece(
                Style::Plain,
                pad(&limit(entry).unwrap_or_default(), SIZE + 1),
            ),
            piece(Style::Faint, pad(entry.confidence_text, 11)),
            piece(Style::Faint, bar::spark(&entry.course_bytes, cells)),
        ]);
    }
    if all.len() > shown {
        let more = Count::new((all.len() - shown) as u64);
        page.hanging(
            &[],
            0,
            Style::Faint,
            &format!("{more} more; --format json lists all."),
        );
    }
}

/// Draws one owner in detail.
pub(super) fn one(page: &mut TextPage, entry: &GrowthEntry, screen: &Screen) {
    let sure = format!(
        "{}, {}",
        entry.confidence_text,
        Ratio::new(entry.confidence)
    );
    let head = [
        piece(style(entry), entry.class_text.to_uppercase()),
        piece(Style::Plain, format!("  {} ({sure})", entry.name)),
    ];
    page.line(&head);
    page.hanging(&[], 0, Style::Plain, entry.meaning);
    page.gap();
    picture(page, entry, screen);
    page.gap();
    let mut label = |label: &str, text: &str| page.labelled(label, INDENT, text);
    label("Now", &Bytes::new(entry.now_bytes).to_string());
    if !entry.live_course_bytes.is_empty() {
        let cells = screen.width().saturating_sub(INDENT);
        label("Live data", &bar::spark(&entry.live_course_bytes, cells));
    }
    if let (Some(rate), Some(from), Some(to)) = (
        entry.rate_bytes_per_s,
        entry.rate_from_bytes_per_s,
        entry.rate_to_bytes_per_s,
    ) {
        let day = |rate: f64| Bytes::from_f64(rate * 86_400.0);
        label(
            "Rate",
            &format!(
                "{} ({} a day; 95 % interval {} to {} a day)",
                BytesPerSecond::new(rate),
                day(rate),
                day(from),
                day(to)
            ),
        );
    }
    if let Some(end) = entry.levels_off_at_bytes {
        label("Levels off", &format!("at about {}", Bytes::new(end)));
    }
    if let Some(limit) = limit(entry) {
        label("Limit in", &format!("{limit}, at this rate"));
    }
    if let Some(needs) = entry.needs_s {
        label(
            "Needs",
            &format!("about {} more", Span::from_secs_f64(needs)),
        );
    }
    label(
        "Judged",
        &format!(
            "{} readings over {}",
            entry.readings,
            Span::from_secs_f64(entry.judged_s)
        ),
    );
    label("Method", &entry.method);
    for line in &entry.evidence {
        label("Evidence", line);
    }
    label("To do", entry.advice);
}

/// Draws the memory over time as columns of blocks, from the lowest value or zero.
fn picture(page: &mut TextPage, entry: &GrowthEntry, screen: &Screen) {
    let values = &entry.course_bytes;
    let known = || values.iter().flatten().copied();
    let (low, high) = (
        known().fold(f64::INFINITY, f64::min),
        known().fold(0.0, f64::max),
    );
    if !low.is_finite() || high <= 0.0 {
        return;
    }
    // A range that is small beside the size would be a flat block from zero.
    let floor = if low > high * 0.5 {
        low - (high - low).max(high * 0.02) * 0.2
    } else {
        0.0
    };
    let levels: Vec<Option<f64>> =
        bar::largest_of_cells(values, screen.width().saturating_sub(SIZE + 2)).collect();
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
            .map(|value| value.map_or(' ', |value| bar::block(height(value) - (row * 8) as f64)))
            .collect();
        page.line(&[
            piece(Style::Faint, format!("{axis:>SIZE$} ")),
            piece(Style::Data(74), blocks),
        ]);
    }
}

/// Returns when the limit is reached, in words.
fn limit(entry: &GrowthEntry) -> Option<String> {
    entry
        .limit_in_s
        .map(|seconds| Span::from_secs_f64(seconds).to_string())
}

fn style(entry: &GrowthEntry) -> Style {
    match entry.class {
        _ if entry.is_urgent() => Style::Critical,
        "fragmentation" | "pinned" => Style::Warning,
        "unknown" | "saturating" => Style::Unknown,
        _ => Style::Fine,
    }
}
