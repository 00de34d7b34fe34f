//! The screen of `explain`: the verdict, the process's memory as a tree, and with every detail its heap and its files.

mod heap;
mod memory;

use super::ansi::Style;
use super::page::{NARROW, TextPage, piece};
use super::wrap::pad;
use super::{Detail, Screen, spark};
use crate::model::explain::{ExplainReport, MappedFileEntry};
use crate::model::growth::GrowthEntry;
use crate::phrases::explain::{self as phrases, ExplainStanding};
use crate::phrases::{ABSENT, LabelledText};

/// Column of the text of a labelled line.
const INDENT: usize = 13;
/// Column of a file's name, behind its size.
const FILE_INDENT: usize = 12;
/// Files of a brief answer.
const FILES: usize = 3;

pub(super) fn draw(report: &ExplainReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let mut title = vec![phrases::process(report)];
    title.extend(phrases::identity(report));
    title.extend(phrases::process_items(report));
    page.hanging(&[], 0, Style::Strong, &title.join(" · "));
    if let Some(program) = &report.program {
        page.hanging(&[], 0, Style::Plain, &phrases::program(program, report.process.pid));
    }
    page.gap();
    verdict(&mut page, report, screen);
    page.gap();
    memory::draw(&mut page, report, screen);
    page.gap();
    let is_full = screen.detail == Detail::All;
    for line in lines(report, is_full) {
        page.labelled(line.label, INDENT, &line.text);
    }
    if is_full {
        if let Some(heap) = &report.heap {
            heap::draw(&mut page, heap, screen);
        }
        files(&mut page, report);
    }
    if let Some(runtime) = &report.runtime_stats {
        page.gap();
        super::runtime_stats::section(&mut page, runtime, screen);
    }
    if let Some(growth) = report.growth.as_ref().filter(|_| report.is_watched) {
        page.gap();
        super::growth::one(&mut page, growth, None, screen);
    } else if !is_full && report.heap.is_some() {
        let more = "--full shows each arena, the sizes of chunks and all files";
        page.labelled("More", INDENT, more);
    }
    page.finish()
}

/// Returns what stands below the tree.
fn lines(report: &ExplainReport, is_full: bool) -> Vec<LabelledText> {
    let mut lines = phrases::details(report, is_full);
    lines.insert(0, LabelledText::new("Sizes", sizes(report)));
    if !is_full && !report.files.is_empty() {
        let files = report.files.iter().take(FILES);
        let files: Vec<String> = files.map(|file| file_in_brief(file, report)).collect();
        lines.insert(2, LabelledText::new("Files", files.join("; ")));
    }
    if let Some(growth) = report.growth.as_ref().filter(|_| !report.is_watched) {
        lines.insert(1, LabelledText::new("Recorded", recorded(growth)));
    }
    lines
}

/// How a verdict stands out, here and above the picture.
pub(super) fn style(report: &ExplainReport) -> Style {
    match ExplainStanding::of(report) {
        ExplainStanding::Wasted => Style::Warning,
        ExplainStanding::Unknown => Style::Unknown,
        ExplainStanding::Used | ExplainStanding::Fine => Style::Fine,
    }
}

fn verdict(page: &mut TextPage, report: &ExplainReport, screen: &Screen) {
    let style = style(report);
    let word = report.verdict_text.to_uppercase();
    let is_narrow = screen.width() < NARROW;
    // The name of an owner may be long.
    let (head, indent) = if is_narrow || word.chars().count() >= INDENT {
        page.line(&[piece(style, word)]);
        (Vec::new(), if is_narrow { 0 } else { INDENT })
    } else {
        (vec![piece(style, pad(&word, INDENT))], INDENT)
    };
    let text = report.headline.join(" ");
    page.hanging(&head, indent, Style::Plain, &text);
}

/// Leads from address space to what the end of the process would free.
fn sizes(report: &ExplainReport) -> String {
    let lines = phrases::size_lines(&report.sizes);
    let each = lines.iter().map(|line| {
        let of_it = match line.of_it.as_str() {
            "" => String::new(),
            of_it => format!(" ({of_it})"),
        };
        format!("{} {}{of_it}", line.name, line.bytes)
    });
    each.collect::<Vec<_>>().join("; ")
}

fn file_in_brief(file: &MappedFileEntry, report: &ExplainReport) -> String {
    let name = phrases::file_name(&file.name);
    format!("{name} {}{}", file.rss_bytes, users(file, report))
}

/// Says who else maps a file.
fn users(file: &MappedFileEntry, report: &ExplainReport) -> String {
    let users = phrases::file_users(file, report);
    users.map_or_else(String::new, |users| format!(" (with {users})"))
}

/// How the recording has the process.
fn recorded(growth: &GrowthEntry) -> String {
    const CELLS: usize = 24;
    format!(
        "{} over {}: {} ({})",
        spark::graph(&growth.course_bytes, CELLS),
        growth.judged_s,
        growth.class_text,
        growth.confidence_text.word(),
    )
}

/// Lists the mapped files.
fn files(page: &mut TextPage, report: &ExplainReport) {
    if report.files.is_empty() {
        return;
    }
    page.heading("Mapped files, by what is resident here");
    for file in &report.files {
        let cached = match (file.cached_bytes, file.length_bytes) {
            (Some(cached), Some(length)) => format!("{cached} of {length} cached"),
            (None, Some(length)) => format!("{length} long"),
            _ => ABSENT.to_owned(),
        };
        let deleted = if file.is_deleted { ", deleted" } else { "" };
        let head = [piece(Style::Plain, format!("{:>10}  ", file.rss_bytes.to_string()))];
        let text = format!("{}: {cached}{deleted}{}", file.name, users(file, report));
        page.hanging(&head, FILE_INDENT, Style::Plain, &text);
    }
}
