//! The answer on a terminal.

use report::Screen;
use report::text::{Detail, Style, TextPage, piece, width};
use units::{Bytes, Count, Ratio};

use crate::harm::{harmed, reader};
use crate::model::{JobReport, JobVariant};
use crate::observe::{OtherGroup, SeenStep};
use crate::picture::picture;
use crate::words;

/// Cells between two columns.
const GAP: usize = 2;

/// Rows of a table, unless all are wanted.
const ROWS_MAX: usize = 6;

/// A file of which this share was read twice, or was not read, was read once.
const ONCE: f64 = 0.02;

/// A program or a file with less than this share of all bytes has no row, unless all are wanted.
const WORTH_A_ROW: Ratio = Ratio::new(0.01);

/// The longest name in a table.
const NAME_MAX: usize = 30;

/// Returns the screen of a job. With every detail, all steps and files are shown.
pub fn job_screen(report: &JobReport, screen: &Screen) -> String {
    let rows_max = if screen.detail == Detail::All { usize::MAX } else { ROWS_MAX };
    let mut page = TextPage::new(screen);
    let job = report.job();
    page.hanging(&[], 0, Style::Strong, &crate::harm::harm(report));
    page.gap();
    page.hanging(&[], 0, Style::Strong, &words::headline(report));
    let doubt = words::doubt(report);
    if let Some(doubt) = &doubt {
        page.hanging(&[], 0, Style::Warning, doubt);
    }
    for other in report.variants.iter().skip(1) {
        if let Some(says) = words::other_way(report, other) {
            page.hanging(&[], 0, Style::Fine, &says);
        }
    }
    page.gap();
    let now = report.seen.as_ref().and_then(|seen| seen.cache_bytes);
    for line in picture(&job.curve, now, screen.width()) {
        page.line(&line);
    }
    page.gap();
    table(&mut page, &sizes(report));
    page.gap();
    for says in words::cliffs(job).iter().chain(&words::why_written(job)) {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Plain, says);
    }
    if report.seen.is_some() {
        steps(&mut page, job, rows_max);
    }
    files(&mut page, job, rows_max);
    if let Some(seen) = &report.seen {
        others(&mut page, &seen.others, rows_max);
    }
    if let Some(seen) = report.seen.as_ref().filter(|_| doubt.is_none()) {
        page.gap();
        let mut lines = words::limit(seen).into_iter();
        if let Some(says) = lines.next() {
            page.hanging(&[], 0, Style::Plain, &says);
        }
        for command in lines {
            page.line(&[piece(Style::Command, format!("  {command}"))]);
        }
    }
    let trust = words::trust(report);
    if !trust.is_empty() {
        page.gap();
    }
    for says in trust {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Faint, &says);
    }
    page.finish()
}

/// The table of sizes: each with I/O and time, other ways beside.
fn sizes(report: &JobReport) -> Vec<Vec<String>> {
    let job = report.job();
    let has_time = job.rows.iter().any(|row| row.seconds.is_some());
    let mut head: Vec<String> = ["cache", "read", "written", "I/O"].map(str::to_owned).to_vec();
    if has_time {
        head.push("time".to_owned());
    }
    head.extend(report.variants.iter().skip(1).map(|one| one.name.clone()));
    let mut rows = vec![head];
    let now = report.seen.as_ref().and_then(|seen| seen.cache_bytes);
    for (at, row) in job.rows.iter().enumerate() {
        let point = row.point;
        // Two sizes that print as one: the larger one is where the cliff ends.
        let next = job.rows.get(at + 1).map(|next| next.point.cache_bytes);
        if next.is_some_and(|next| next.to_string() == point.cache_bytes.to_string()) {
            continue;
        }
        let mark = if Some(point.cache_bytes) == now { " (now)" } else { "" };
        let range = |least: Bytes, most: Bytes| {
            if least.to_string() == most.to_string() {
                least.to_string()
            } else {
                units::in_one_unit(least, "to", most)
            }
        };
        let mut cells = vec![
            format!("{}{mark}", point.cache_bytes),
            range(point.read_bytes_least, point.read_bytes_most),
            range(point.written_bytes_least, point.written_bytes),
            range(point.net_least(), point.net()),
        ];
        if has_time {
            cells.push(row.seconds.map_or_else(String::new, |time| time.as_clock()));
        }
        for other in report.variants.iter().skip(1) {
            let its = other.rows.get(at);
            cells.push(its.map_or_else(String::new, |row| {
                let time = row.seconds.map(|time| format!(", {}", time.as_clock()));
                format!("{}{}", row.point.net(), time.unwrap_or_default())
            }));
        }
        rows.push(cells);
    }
    rows
}

fn steps(page: &mut TextPage, job: &JobVariant, rows_max: usize) {
    let bytes = |step: &SeenStep| step.asked_bytes + step.read_bytes + step.written_bytes;
    let all: Bytes = job.steps.iter().map(bytes).sum();
    let least = if rows_max == usize::MAX { Bytes::new(1) } else { all.share(WORTH_A_ROW) };
    let mut steps: Vec<_> = job.steps.iter().filter(|step| bytes(step) >= least).collect();
    steps.sort_by_key(|step| std::cmp::Reverse(bytes(step)));
    if steps.is_empty() {
        return;
    }
    let mut rows = vec![
        ["program", "processes", "asked to read", "from disk", "made dirty"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for step in steps.iter().take(rows_max) {
        rows.push(vec![
            step.name.clone(),
            step.processes.to_string(),
            step.asked_bytes.to_string(),
            step.read_bytes.to_string(),
            step.written_bytes.to_string(),
        ]);
    }
    page.gap();
    table(page, &rows);
    more(page, steps.len(), rows_max, "program", "programs");
}

fn files(page: &mut TextPage, job: &JobVariant, rows_max: usize) {
    let all = job.curve.net_bytes_most;
    let least = if rows_max == usize::MAX { Bytes::ZERO } else { all.share(WORTH_A_ROW) };
    let mut files = words::read_again(job);
    files.retain(|file| file.read_bytes + file.written_bytes >= least);
    if files.is_empty() {
        return;
    }
    let mut rows = vec![
        ["handed on or read again", "size", "read", "by", "written by"].map(str::to_owned).to_vec(),
    ];
    for file in files.iter().take(rows_max) {
        let again = units::Factor::between(1.0, file.times_read());
        let is_once = (file.times_read() - 1.0).abs() < ONCE;
        rows.push(vec![
            words::short(&file.name).to_owned(),
            file.size_bytes.to_string(),
            match again {
                Some(_) if is_once => "once".to_owned(),
                Some(times) => times.to_string(),
                None => "never".to_owned(),
            },
            some(&file.readers),
            some(&file.writers),
        ]);
    }
    page.gap();
    table(page, &rows);
    more(page, files.len(), rows_max, "file", "files");
}

/// Who lost what, where more than one did.
pub(crate) fn others(page: &mut TextPage, others: &[OtherGroup], rows_max: usize) {
    let lost = harmed(others);
    if lost.len() < 2 && rows_max != usize::MAX {
        return;
    }
    let head = ["others", "read again", "less in the cache"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for group in lost.iter().take(rows_max) {
        let cells = [reader(group), group.reread_bytes.to_string(), group.shrunk_bytes.to_string()];
        rows.push(cells.to_vec());
    }
    if rows.len() > 1 {
        page.gap();
        table(page, &rows);
        more(page, lost.len(), rows_max, "cgroup", "cgroups");
    }
}

/// The first names, and how many there are besides.
fn some(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one}, {two}"),
        [one, rest @ ..] => format!("{one} and {} others", rest.len()),
    }
}

pub(crate) fn more(page: &mut TextPage, all: usize, shown: usize, one: &str, many: &str) {
    if let Some(left) = all.checked_sub(shown).filter(|left| *left > 0) {
        let left = Count::new(left as u64).named(one, many);
        page.line(&[piece(Style::Faint, format!("and {left} more (--all)"))]);
    }
}

/// Rows below a heading; sizes and numbers end at the right of their column.
pub(crate) fn table(page: &mut TextPage, rows: &[Vec<String>]) {
    let Some(head) = rows.first() else { return };
    let cells =
        |row: &Vec<String>, at: usize| row.get(at).map_or(0, |cell| width(cell).min(NAME_MAX));
    let widths: Vec<usize> = (0..head.len())
        .map(|at| rows.iter().map(|row| cells(row, at)).max().unwrap_or(0))
        .collect();
    for (number, row) in rows.iter().enumerate() {
        let style = if number == 0 { Style::Faint } else { Style::Plain };
        let line = row.iter().enumerate().map(|(at, cell)| {
            let cell = shortened(cell);
            let room = " ".repeat(widths[at].saturating_sub(width(&cell)));
            let is_text = at == 0 || rows.iter().skip(1).any(|row| !is_number(row, at));
            let padded = if is_text { format!("{cell}{room}") } else { format!("{room}{cell}") };
            piece(style, format!("{padded}{}", " ".repeat(GAP)))
        });
        page.line(&line.collect::<Vec<_>>());
    }
}

/// Whether a cell is a number with or without a unit.
fn is_number(row: &[String], at: usize) -> bool {
    row.get(at).is_none_or(|cell| {
        cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || c == '×' || c == '÷')
    })
}

/// A long name without its middle.
fn shortened(name: &str) -> String {
    if width(name) <= NAME_MAX {
        return name.to_owned();
    }
    let letters: Vec<char> = name.chars().collect();
    let (begin, end) = letters.split_at(letters.len() / 2);
    let head: String = begin.iter().take(NAME_MAX / 2 - 1).collect();
    let tail: String = end.iter().skip(end.len().saturating_sub(NAME_MAX / 2 - 1)).collect();
    format!("{head}…{tail}")
}
