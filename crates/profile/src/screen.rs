//! The answer on a terminal.

use report::Screen;
use report::text::{Style, TextPage, piece, width};
use units::{Bytes, Count, Span};

use crate::callers::CallerBranch;
use crate::cgroup_stalls::CgroupStalls;
use crate::model::{ProfileReport, ReasonDifference, ReasonRow};
use crate::reason::ReasonGroup;
use crate::words;

/// Shares below this are not shown unless asked for.
pub const MIN_SHARE: f64 = 0.01;
/// How many rows of a group are shown.
const ROWS_MAX: usize = 8;
/// How many reasons are shown with their callers.
const DETAILS_MAX: usize = 3;
/// How many lines of callers are shown.
const CALLER_LINES_MAX: usize = 10;
/// Of callers below this share of the branch above the screen does not speak.
const CALLER_MIN: f64 = 0.05;
/// Cells of the columns of the table, behind the name.
const SHARE_CELLS: usize = 13;
const WAIT_CELLS: usize = 9;

/// Which columns the table has.
#[derive(Clone, Copy)]
struct TableColumns {
    name: usize,
    share: bool,
    /// Backtraces are counted; they have no shares.
    is_counted: bool,
    waits: bool,
    episodes: bool,
}

/// Returns the screen of a profile; rows below `least` of the busy CPU are left out.
pub fn profile_screen(report: &ProfileReport, screen: &Screen, least: f64) -> String {
    let mut page = TextPage::new(screen);
    let style = match (report.hot.is_empty(), words::is_idle(report)) {
        (false, _) => Style::Critical,
        (true, true) => Style::Unknown,
        (true, false) => Style::Strong,
    };
    page.hanging(&[], 0, style, &report.headline);
    page.hanging(&[], 0, Style::Faint, &words::origin(report));
    if report.difference.is_some() {
        draw_difference(&mut page, report, screen.width());
    }
    if report.origin.scope.is_none() && !words::is_idle(report) {
        draw_cgroups(&mut page, report, screen);
    }
    if !words::is_idle(report) {
        draw_table(&mut page, report, screen, least);
    }
    let is_counted = words::are_backtraces(report);
    let traced =
        report.reasons.iter().filter(|row| is_counted && row.group != ReasonGroup::NotMemory);
    for row in report.hot.iter().chain(traced).take(DETAILS_MAX) {
        draw_details(&mut page, report, row, screen.width());
    }
    page.gap();
    for remark in &report.remarks {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Plain, remark);
    }
    for (whats, missing) in words::not_measured(report) {
        let text = format!("{whats} not measured: {}", missing.why);
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Plain, &text);
        if let Some(help) = &missing.help {
            page.hanging(&[piece(Style::Plain, "  ")], 2, Style::Command, help);
        }
    }
    let remedies = words::remedies(report);
    if !remedies.is_empty() {
        page.gap();
    }
    for (command, rule) in remedies {
        page.hanging(&[piece(Style::Strong, "TRY ")], 4, Style::Command, &command);
        if let Some(rule) = rule {
            let text = format!("memtide rules {rule} explains it");
            page.hanging(&[piece(Style::Plain, "    ")], 4, Style::Faint, &text);
        }
    }
    page.finish()
}

/// A column of the table of cgroups.
struct CgroupColumn {
    title: &'static str,
    cells: usize,
    /// What stands in it; `None`: nothing.
    shown: fn(&CgroupStalls) -> Option<String>,
}

fn seconds_of(seconds: f64) -> Option<String> {
    (seconds > 0.0).then(|| Span::from_secs_f64(seconds).to_string())
}

const CGROUP_COLUMNS: [CgroupColumn; 6] = [
    CgroupColumn {
        title: "own limit",
        cells: 11,
        shown: |row| {
            let about = if row.is_divided { "~" } else { "" };
            seconds_of(row.own_limit_s).map(|time| format!("{about}{time}"))
        },
    },
    CgroupColumn {
        title: "one above",
        cells: 11,
        shown: |row| {
            let about = if row.is_divided { "~" } else { "" };
            seconds_of(row.outer_limit_s).map(|time| format!("{about}{time}"))
        },
    },
    CgroupColumn { title: "the host", cells: 10, shown: |row| seconds_of(row.host_s) },
    CgroupColumn { title: "read again", cells: 12, shown: |row| seconds_of(row.reads_back_s) },
    CgroupColumn {
        title: "CPU",
        cells: 8,
        shown: |row| {
            let share = row.limit_share? + row.host_share?;
            (share > 0.0).then(|| words::percent(share))
        },
    },
    CgroupColumn {
        title: "grew",
        cells: 10,
        shown: |row| {
            let grew = row.grew_bytes.filter(|grew| *grew != 0)?;
            let sign = if grew < 0 { "-" } else { "+" };
            Some(format!("{sign}{}", Bytes::new(grew.unsigned_abs())))
        },
    },
];

/// Which cgroups wait, and whether it is for a limit or for the host.
fn draw_cgroups(page: &mut TextPage, report: &ProfileReport, screen: &Screen) {
    let all = words::stalled_cgroups(report);
    let top = screen.top.unwrap_or(ROWS_MAX);
    let rows: Vec<&CgroupStalls> = all.iter().copied().take(top).collect();
    let columns: Vec<&CgroupColumn> = CGROUP_COLUMNS
        .iter()
        .filter(|column| rows.iter().any(|row| (column.shown)(row).is_some()))
        .collect();
    if rows.is_empty() || columns.is_empty() {
        return;
    }
    let taken: usize = columns.iter().map(|column| column.cells).sum();
    let longest = rows.iter().map(|row| width(&words::cgroup_name(row)) + 2).max().unwrap_or(0);
    let name = longest.max(24).min(screen.width().saturating_sub(taken)).max(16);
    page.gap();
    let mut head = vec![piece(Style::Strong, padded("who waits for memory", name))];
    head.extend(columns.iter().map(|one| piece(Style::Faint, right(one.title, one.cells))));
    page.line(&head);
    for row in &rows {
        let full = words::cgroup_name(row);
        let style = if row.limit_s() + row.host_s > 0.0 { Style::Warning } else { Style::Plain };
        let mut pieces =
            vec![piece(style, padded(&format!("  {}", end_of(&full, name - 2)), name))];
        for column in &columns {
            let text = (column.shown)(row).unwrap_or_default();
            pieces.push(piece(style, right(&text, column.cells)));
        }
        page.line(&pieces);
        let at_limit = row.limit_s() > 0.0 || row.limit_share.is_some_and(|share| share > 0.0);
        for limit in row.limits.iter().filter(|_| at_limit).take(2) {
            let text = words::met_limit(row, limit);
            page.hanging(&[piece(Style::Plain, "    ")], 4, Style::Faint, &text);
        }
    }
    if all.len() > top {
        let text = format!("  {} more: --top {}", all.len() - top, all.len());
        page.line(&[piece(Style::Faint, text)]);
    }
}

/// The end of a name in so many cells: of a path it says most.
fn end_of(name: &str, cells: usize) -> String {
    if width(name) <= cells {
        return name.to_owned();
    }
    let mut kept: Vec<char> = Vec::new();
    for letter in name.chars().rev() {
        if width(&kept.iter().collect::<String>()) + 2 >= cells {
            break;
        }
        kept.push(letter);
    }
    format!("…{}", kept.into_iter().rev().collect::<String>())
}

fn draw_table(page: &mut TextPage, report: &ProfileReport, screen: &Screen, least: f64) {
    let top = screen.top.unwrap_or(ROWS_MAX);
    let shown: Vec<&ReasonRow> =
        report.reasons.iter().filter(|row| words::is_shown(row, least)).collect();
    if shown.is_empty() {
        return;
    }
    let columns = TableColumns {
        name: shown.iter().map(|row| width(&row.label) + 4).max().unwrap_or(0).clamp(24, 44),
        share: report.cpu.is_some(),
        is_counted: words::are_backtraces(report),
        waits: report.blocked.is_some(),
        episodes: shown.iter().any(|row| row.episodes.is_some()),
    };
    page.gap();
    let mut head = vec![piece(Style::Faint, " ".repeat(columns.name))];
    if columns.share {
        let title = if columns.is_counted { "backtraces" } else { "of busy CPU" };
        head.push(piece(Style::Faint, right(title, SHARE_CELLS)));
    }
    if columns.waits {
        head.push(piece(Style::Faint, right("waiting", WAIT_CELLS)));
    }
    if columns.episodes {
        head.push(piece(Style::Faint, "  episodes, longest"));
    }
    page.line(&head);
    for group in ReasonGroup::ALL {
        let rows: Vec<&&ReasonRow> = shown.iter().filter(|row| row.group == group).collect();
        if rows.is_empty() {
            continue;
        }
        page.line(&[piece(Style::Strong, group.label())]);
        for row in rows.iter().take(top) {
            draw_row(page, row, columns);
        }
        if rows.len() > top {
            let text = format!("  {} more: --top {}", rows.len() - top, rows.len());
            page.line(&[piece(Style::Faint, text)]);
        }
    }
    let unprinted = report.cpu.as_ref().and_then(|cpu| cpu.unprinted_share);
    if let Some(share) = unprinted.filter(|share| *share >= least) {
        let name = padded("  not in the text", columns.name);
        let text = format!("{name}{}", right(&words::percent(share), SHARE_CELLS - 5));
        page.line(&[piece(Style::Faint, text)]);
    }
}

fn draw_row(page: &mut TextPage, row: &ReasonRow, columns: TableColumns) {
    let style = match (row.hot_by.is_empty(), row.group) {
        (false, _) => Style::Critical,
        (true, ReasonGroup::NotMemory) => Style::Faint,
        (true, _) => Style::Plain,
    };
    let mut pieces = vec![piece(style, padded(&format!("  {}", row.label), columns.name))];
    if columns.share {
        let share = row.share.filter(|share| *share > 0.0);
        let share = match row.samples.filter(|_| columns.is_counted) {
            Some(count) => format!("{count:.0}"),
            None => share.map(words::percent).unwrap_or_default(),
        };
        // Shares of few samples are shown with their interval.
        let has_interval = !share.is_empty() && !columns.is_counted;
        let margin = row.share_margin.filter(|margin| *margin >= 0.001 && has_interval);
        let interval = margin.map(|margin| format!(" ±{:.1}", margin * 100.0)).unwrap_or_default();
        let interval_cells = if columns.is_counted { 0 } else { 5 };
        pieces.push(piece(style, right(&share, SHARE_CELLS - interval_cells)));
        pieces.push(piece(Style::Faint, padded(&interval, interval_cells)));
    }
    if columns.waits {
        let waits = match (row.stalled_tasks, row.blocked_share) {
            (Some(tasks), _) if tasks >= 0.005 => words::tasks(tasks),
            (None, Some(share)) if share > 0.0 => words::percent(share),
            _ => String::new(),
        };
        pieces.push(piece(style, right(&waits, WAIT_CELLS)));
    }
    if let Some(times) = row.episodes.as_ref().filter(|_| columns.episodes) {
        let text = format!("  {}, {}", Count::new(times.count), Span::from_secs_f64(times.max_s));
        pieces.push(piece(style, text));
    }
    page.line(&pieces);
}

/// What a hot reason does, for what, in which threads, and who calls it.
fn draw_details(page: &mut TextPage, report: &ProfileReport, row: &ReasonRow, cells: usize) {
    page.heading(&row.label);
    let labelled = |page: &mut TextPage, label: &str, text: &str| {
        page.hanging(&[piece(Style::Faint, padded(label, 11))], 11, Style::Plain, text);
    };
    let settings = words::settings_of(report, row.reason);
    if !settings.is_empty() {
        labelled(page, "  setting", &settings.join(", "));
    }
    let base: f64 = row.works.iter().map(|work| work.share).sum();
    let works: Vec<String> = row
        .works
        .iter()
        .filter(|work| work.share >= 0.05 * base)
        .take(4)
        .map(|work| format!("{} {}", work.work.means(), words::percent(work.share / base)))
        .collect();
    if !works.is_empty() {
        labelled(page, "  doing", &works.join(", "));
    }
    let names = |all: &[crate::NameShare]| {
        let some = all.iter().filter(|one| one.of_reason >= 0.02).take(4);
        some.map(|one| format!("{} {}", one.name, words::percent(one.of_reason)))
            .collect::<Vec<_>>()
    };
    let who = names(&row.comms);
    if !who.is_empty() {
        labelled(page, "  in", &who.join(", "));
    }
    let cgroups = names(&row.cgroups);
    if row.cgroups.iter().any(|one| one.name != "/") {
        labelled(page, "  cgroup", &cgroups.join(", "));
    }
    let waiting = names(&row.waiting_comms);
    if !waiting.is_empty() && waiting != who {
        labelled(page, "  waiting", &waiting.join(", "));
    }
    if let Some(times) = &row.episodes {
        let rate = times.per_second.map(|rate| format!(", {rate:.0} a second")).unwrap_or_default();
        let text = format!(
            "{}{rate}: {} together; half below {}, 99 % below {}, longest {}; most in {}",
            words::counted(times.count, "episode"),
            Span::from_secs_f64(times.total_s),
            Span::from_secs_f64(times.p50_s),
            Span::from_secs_f64(times.p99_s),
            Span::from_secs_f64(times.max_s),
            times.comm,
        );
        labelled(page, "  episodes", &text);
    }
    let purposes: Vec<_> = row.purposes.iter().filter(|one| one.of_reason >= 0.01).collect();
    if !purposes.is_empty() {
        let of = if words::are_backtraces(report) { "all backtraces" } else { "busy CPU" };
        let text = format!("  wanted memory for (share of {of}, of this reason)");
        page.line(&[piece(Style::Faint, text)]);
    }
    for one in purposes {
        let shares = format!(
            "{}{}  ",
            right(&words::percent(one.share), 9),
            right(&words::percent(one.of_reason), 7)
        );
        page.hanging(&[piece(Style::Plain, shares)], 18, Style::Plain, &words::purpose(one));
    }
    let mut lines = Vec::new();
    caller_lines(&row.callers, 0, &mut lines);
    if !lines.is_empty() {
        let text = "  called by (share of the line above)";
        page.line(&[piece(Style::Faint, text)]);
    }
    for (depth, text, functions) in lines.into_iter().take(CALLER_LINES_MAX) {
        let indent = 3 + 2 * depth;
        let head = piece(Style::Plain, format!("{}{text} ", " ".repeat(indent)));
        let room = cells.saturating_sub(indent + width(&text) + 1);
        page.line(&[head, piece(Style::Faint, arrows(&functions, room))]);
    }
}

/// Lines of a tree of callers: how deep, the share of the branch above, the functions.
fn caller_lines(
    branches: &[CallerBranch],
    depth: usize,
    lines: &mut Vec<(usize, String, Vec<String>)>,
) {
    for branch in branches.iter().filter(|branch| branch.of_branch >= CALLER_MIN) {
        let share = right(&words::percent(branch.of_branch), 7);
        lines.push((depth, share, branch.functions.clone()));
        caller_lines(&branch.callers, depth + 1, lines);
    }
}

/// `a ← b ← … ← z` in so many cells: the first ones, and the last, which is how the kernel was entered.
fn arrows(functions: &[String], cells: usize) -> String {
    let all = functions.join(" ← ");
    if width(&all) <= cells || functions.len() < 3 {
        return all;
    }
    let last = functions.last().cloned().unwrap_or_default();
    for kept in (1..functions.len() - 1).rev() {
        let some = functions.get(..kept).unwrap_or_default().join(" ← ");
        let text = format!("{some} ← … ← {last}");
        if width(&text) <= cells {
            return text;
        }
    }
    functions.first().cloned().unwrap_or_default()
}

fn draw_difference(page: &mut TextPage, report: &ProfileReport, cells: usize) {
    let Some(difference) = &report.difference else {
        return;
    };
    page.gap();
    type Cells = fn(&ReasonDifference) -> Option<(f64, f64)>;
    type Shown = fn(f64) -> String;
    let columns: [(&str, Cells, Shown); 3] = [
        ("of busy CPU", |one| one.base_share.zip(one.share), words::percent),
        ("CPUs", |one| one.base_cpus.zip(one.cpus), |cpus| format!("{cpus:.2}")),
        ("waiting", |one| one.base_stalled_tasks.zip(one.stalled_tasks), words::tasks),
    ];
    let columns: Vec<_> = columns
        .into_iter()
        .filter(|(_, of, _)| difference.reasons.iter().any(|one| of(one).is_some()))
        .collect();
    const COLUMN: usize = 17;
    let name = cells.saturating_sub(COLUMN * columns.len()).clamp(20, 44);
    let mut head = vec![piece(Style::Faint, padded("base → this", name))];
    head.extend(columns.iter().map(|(title, ..)| piece(Style::Faint, right(title, COLUMN))));
    page.line(&head);
    for one in &difference.reasons {
        let style = match one.group {
            ReasonGroup::Trouble => Style::Warning,
            ReasonGroup::PriceOfASetting | ReasonGroup::Ordinary => Style::Plain,
            ReasonGroup::NotMemory => Style::Faint,
        };
        let mut pieces = vec![piece(style, padded(&format!("  {}", one.label), name))];
        for (_, of, shown) in &columns {
            let pair = of(one);
            let text = pair.map(|(before, after)| format!("{} → {}", shown(before), shown(after)));
            pieces.push(piece(style, right(&text.unwrap_or_default(), COLUMN)));
        }
        page.line(&pieces);
    }
    if difference.reasons.is_empty() {
        page.line(&[piece(Style::Plain, "  nothing, by more than chance")]);
    }
}

fn padded(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(text))))
}

fn right(text: &str, cells: usize) -> String {
    format!("{}{text}", " ".repeat(cells.saturating_sub(width(text))))
}
