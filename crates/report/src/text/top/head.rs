//! The upper part of a frame: host and moment, verdict, RAM, swap, waits.

use units::{Bytes, Ratio, in_one_unit};

use super::{TopMoment, TopView};
use crate::clock::ReportClock;
use crate::model::top::TopReport;
use crate::model::{Accounting, GroupSection, SourceKind};
use crate::phrases::{group as group_phrases, source, verdict};
use crate::text::Screen;
use crate::text::ansi::Style;
use crate::text::bar::{self, BarFill};
use crate::text::memory;
use crate::text::page::{StyledText, TextPage, piece};
use crate::text::spark;
use crate::text::wrap::{cut, width, wrap};

/// Column of bars and of the verdict's sentence.
const INDENT: usize = 10;
/// At most 3 lines of the headline, 5 where there is room.
const HEADLINE_LINES: (usize, usize) = (3, 5);
/// With so many lines there is room for what a small terminal leaves out.
const TALL: usize = 36;
/// The cells of a wait's graph.
const GRAPH_CELLS: usize = 8;
/// How many of the last values a wait's graph shows.
const GRAPH_VALUES: usize = 60;

pub(super) fn draw(
    page: &mut TextPage,
    report: &TopReport,
    view: &TopView,
    clock: &ReportClock<'_>,
    (screen, lines): (&Screen, usize),
) {
    host(page, report, view, clock, screen);
    headline(page, report, clock, (screen, lines));
    match &report.check.group {
        Some(group) => limits(page, group, clock, (screen, lines)),
        None => ram(page, report, (screen, lines)),
    }
    waits(page, report, screen);
}

/// The host on the left, the moment on the right.
fn host(
    page: &mut TextPage,
    report: &TopReport,
    view: &TopView,
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    let check = &report.check;
    let mut items: Vec<String> = check.host.hostname.iter().map(|name| cut(name, 30)).collect();
    if let Some(group) = &check.group {
        items.push(group.name.clone().unwrap_or_else(|| group.path.clone()));
    }
    items.extend(source::hardware_items(&check.host));
    items.extend(check.source.file_name().map(|name| cut(name, 40)));
    // The first sample of a capture is a moment like the others, also where a frame has nothing before it.
    let offset = || clock.listed(Some(report.at_s), None);
    let moment = clock.moment(report.at_s, report.at);
    let moment = match check.source.kind {
        SourceKind::Capture => moment.or_else(offset).unwrap_or_default(),
        _ => moment.unwrap_or_default(),
    };
    let offset = match (view.moment, check.source.kind) {
        (TopMoment::Replay, _) | (_, SourceKind::Capture) => String::new(),
        _ => report.at.map_or_else(String::new, |at| {
            at.to_zoned(screen.zone.clone()).strftime(" %:z").to_string()
        }),
    };
    let moment = format!("{moment}{offset}");
    let room = screen.width().saturating_sub(width(&moment) + 2);
    let text = cut(&items.join(" · "), room);
    let blanks = screen.width().saturating_sub(width(&text) + width(&moment));
    page.line(&[
        piece(Style::Faint, text),
        piece(Style::Plain, " ".repeat(blanks)),
        piece(Style::Strong, moment),
    ]);
}

fn headline(
    page: &mut TextPage,
    report: &TopReport,
    clock: &ReportClock<'_>,
    (screen, lines): (&Screen, usize),
) {
    let check = &report.check;
    let text = verdict::headline(check, clock);
    let most = if lines >= TALL { HEADLINE_LINES.1 } else { HEADLINE_LINES.0 };
    let mut rows = wrap(&text, screen.width().saturating_sub(INDENT));
    if rows.len() > most {
        let rest = rows.split_off(most - 1).join(" ");
        rows.push(cut(&rest, screen.width().saturating_sub(INDENT)));
    }
    let mut head = piece(check.verdict.into(), verdict::word(check.verdict));
    for row in rows {
        let blanks = " ".repeat(INDENT.saturating_sub(width(&head.1)));
        page.line(&[head, piece(Style::Plain, blanks), piece(Style::Strong, row)]);
        head = piece(Style::Plain, "");
    }
}

/// A bar with a text before and after it.
fn bar_line(
    page: &mut TextPage,
    head: &str,
    parts: &[(BarFill, Bytes)],
    tail: &str,
    screen: &Screen,
) {
    let cells = screen.width().saturating_sub(INDENT + width(tail) + 2);
    let mut line = vec![piece(Style::Plain, format!("{head:<INDENT$}"))];
    line.extend(bar::bar(parts, cells));
    line.push(piece(Style::Plain, format!("  {tail}")));
    page.line(&line);
}

fn ram(page: &mut TextPage, report: &TopReport, (screen, lines): (&Screen, usize)) {
    let accounting = report.place.as_ref().and_then(|place| place.accounting.as_ref());
    if let Some(accounting) = accounting {
        let parts = bar::parts(accounting);
        bar_line(page, "RAM", &parts, &of_ram(accounting), screen);
        if lines >= TALL {
            memory::draw_legend(page, &parts, INDENT, screen);
        }
    }
    let now = &report.now;
    if let (Some(total), Some(used)) = (now.swap_total, now.swap_used)
        && total > Bytes::ZERO
    {
        let mut tail = in_one_unit(used, "of", total);
        let moves = [("in", now.swap_in), ("out", now.swap_out)];
        for (way, rate) in moves {
            let moving = rate.filter(|rate| rate.get() > 0.0);
            tail.extend(moving.map(|rate| format!(", {rate} {way}")));
        }
        bar_line(page, "Swap", &bar::used_and_free(used, total), &tail, screen);
    }
}

fn of_ram(accounting: &Accounting) -> String {
    let total = accounting.total_bytes;
    match accounting.available_bytes {
        Some(available) => format!("{} available", in_one_unit(available, "of", total)),
        None => total.to_string(),
    }
}

/// The limits around a cgroup in the place of RAM: a bar each, the innermost first.
fn limits(
    page: &mut TextPage,
    group: &GroupSection,
    clock: &ReportClock<'_>,
    (screen, lines): (&Screen, usize),
) {
    let most = if lines >= TALL { 8 } else { 2 };
    for limit in group.limits.iter().take(most) {
        let Some(used) = limit.used_bytes else {
            let text = format!("limit     {} of {}, use unknown", limit.limit_bytes, limit.place);
            page.line(&[piece(Style::Plain, cut(&text, screen.width()))]);
            continue;
        };
        let parts = bar::used_and_free(used, limit.limit_bytes);
        let tail = format!("{} of {}", in_one_unit(used, "of", limit.limit_bytes), limit.place);
        bar_line(page, "limit", &parts, &cut(&tail, screen.width() / 2), screen);
    }
    if group.limits.is_empty() {
        let first = group_phrases::lines(group, clock).into_iter().next();
        let text = first.map_or_else(|| "no limit below RAM".to_owned(), |line| line.text);
        page.line(&[piece(Style::Plain, cut(&text, screen.width()))]);
    }
}

/// Waits for memory and I/O, and reclaim: a small graph of the last values with the value of now.
fn waits(page: &mut TextPage, report: &TopReport, screen: &Screen) {
    let (now, course) = (&report.now, &report.course);
    let share = |share: Ratio| share.to_string();
    let all = [
        ("memory", &course.memory_wait, now.memory_wait.map(share)),
        ("io", &course.io_wait, now.io_wait.map(share)),
        (
            "reclaim",
            &course.reclaimed_bytes_per_second,
            now.reclaimed.map(|bytes| bytes.to_string()),
        ),
    ];
    let mut line: Vec<StyledText> = vec![piece(Style::Plain, format!("{:<INDENT$}", "waits"))];
    let mut used = INDENT;
    for (name, values, value) in all {
        let Some(value) = value else { continue };
        let last = values.get(values.len().saturating_sub(GRAPH_VALUES)..).unwrap_or_default();
        let graph = spark::graph(last, GRAPH_CELLS);
        let cells = width(name) + 1 + width(&graph) + 1 + width(&value) + 2;
        if used + cells > screen.width() + 2 {
            break;
        }
        used += cells;
        line.push(piece(Style::Faint, format!("{name} ")));
        line.push(piece(Style::Data(32), graph));
        line.push(piece(Style::Plain, format!(" {value}  ")));
    }
    if used == INDENT {
        line.push(piece(
            Style::Faint,
            "not known: no pressure (PSI) in this source, or one sample",
        ));
    }
    page.line(&line);
}
