//! The screen of `explain`: the verdict, the process's memory as a tree, and with every detail its heap and its files.

mod heap;
mod memory;

use units::{Bytes, Count, Span};

use super::page::{NARROW, Style, TextPage, piece};
use super::wrap::pad;
use super::{Detail, Screen, bar};
use crate::model::explain::{ExplainReport, FoundAllocator, LimitEntry, MappedFileEntry};
use crate::model::growth::GrowthEntry;
use crate::phrases::explain::ExplainStanding;
use crate::phrases::{self, ABSENT};

/// Column of the text of a labelled line.
const INDENT: usize = 13;
/// Column of a file's name, behind its size.
const FILE_INDENT: usize = 12;
/// Files of a brief answer.
const FILES: usize = 3;

pub(super) fn draw(report: &ExplainReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    page.hanging(&[], 0, Style::Strong, &title(report));
    page.gap();
    verdict(&mut page, report, screen);
    page.gap();
    memory::draw(&mut page, report, screen);
    page.gap();
    let is_full = screen.detail == Detail::All;
    for (label, text) in labelled(report, is_full) {
        page.labelled(label, INDENT, &text);
    }
    if is_full {
        if let Some(heap) = &report.heap {
            heap::draw(&mut page, heap, screen);
        }
        files(&mut page, &report.files);
    }
    if let Some(runtime) = &report.runtime_stats {
        page.gap();
        super::runtime_stats::section(&mut page, runtime, screen);
    }
    if let Some(growth) = report.growth.as_ref().filter(|_| report.is_watched) {
        page.gap();
        super::growth::one(&mut page, growth, screen);
    } else if !is_full && report.heap.is_some() {
        let more = "--full shows each arena, the sizes of chunks and all files";
        page.labelled("More", INDENT, more);
    }
    page.finish()
}

/// Returns what stands below the tree.
fn labelled(report: &ExplainReport, is_full: bool) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("Sizes", sizes(report)),
        ("Allocators", allocators(report, is_full)),
    ];
    if !is_full && !report.files.is_empty() {
        let files = report.files.iter().take(FILES).map(file_in_brief);
        lines.push(("Files", files.collect::<Vec<_>>().join("; ")));
    }
    lines.push(("Settings", settings(report)));
    if let Some(growth) = report.growth.as_ref().filter(|_| !report.is_watched) {
        lines.push(("Recorded", recorded(growth)));
    }
    let problems = report
        .problems
        .iter()
        .map(|text| ("Not read", text.clone()));
    lines.extend(problems);
    lines.push(("Cost", cost(report)));
    lines
}

fn title(report: &ExplainReport) -> String {
    let process = &report.process;
    let mut parts = vec![process.name.clone(), format!("PID {}", process.pid)];
    if let Some(inner) = process.namespace_pid {
        parts.push(format!("{inner} in its container"));
    }
    let program = process.program.as_deref();
    if let Some(program) = program.filter(|path| !path.ends_with(&process.name)) {
        parts.push(program.to_owned());
    }
    if process.is_program_deleted {
        parts.push("its program was replaced since it started".to_owned());
    }
    parts.extend(process.service.clone());
    if let Some(age) = process.age_s {
        parts.push(format!("up {}", Span::from_secs_f64(age)));
    }
    if let Some(threads) = process.threads {
        parts.push(Count::new(threads).named("thread", "threads"));
    }
    parts.join(" · ")
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
    let (head, indent) = if is_narrow {
        page.line(&[piece(style, word)]);
        (Vec::new(), 0)
    } else {
        (vec![piece(style, pad(&word, INDENT))], INDENT)
    };
    let text = report.headline.join(" ");
    page.hanging(&head, indent, Style::Plain, &text);
}

/// Leads from address space to what the end of the process would free.
fn sizes(report: &ExplainReport) -> String {
    let sizes = &report.sizes;
    let size = |bytes: u64| Bytes::new(bytes).to_string();
    let of = |parts: &[(u64, &str)]| {
        let some = parts.iter().filter(|(bytes, _)| *bytes > 0);
        let some: Vec<_> = some
            .map(|(bytes, what)| format!("{} {what}", size(*bytes)))
            .collect();
        if some.is_empty() {
            String::new()
        } else {
            format!(" ({})", some.join(", "))
        }
    };
    let unused = of(&[
        (sizes.without_access_bytes, "PROT_NONE"),
        (sizes.never_touched_bytes, "never touched"),
        (sizes.swap_bytes, "in swap"),
    ]);
    let resident = of(&[
        (sizes.shared_bytes, "shared with others"),
        (sizes.huge_bytes, "in transparent huge pages"),
    ]);
    let hugetlb = match sizes.hugetlb_bytes {
        0 => String::new(),
        bytes => format!("; hugetlbfs {}, which no RSS counts", size(bytes)),
    };
    format!(
        "VSS {}{unused}; RSS {}{resident}; PSS {}; USS {}, freed when it exits{hugetlb}",
        size(sizes.vss_bytes),
        size(sizes.rss_bytes),
        size(sizes.pss_bytes),
        size(sizes.uss_bytes),
    )
}

fn allocators(report: &ExplainReport, is_full: bool) -> String {
    let one = |found: &FoundAllocator| {
        let version = found.version.as_deref().map(|text| format!(" {text}"));
        let by = if is_full {
            found.evidence.join(", ")
        } else {
            found.evidence.first().cloned().unwrap_or_default()
        };
        let file = found.file.rsplit('/').next().unwrap_or_default();
        format!(
            "{}{} ({by}: {file})",
            found.name,
            version.unwrap_or_default()
        )
    };
    if report.allocators.is_empty() {
        return "none was recognised".to_owned();
    }
    let all: Vec<String> = report.allocators.iter().map(one).collect();
    all.join("; ")
}

fn file_in_brief(file: &MappedFileEntry) -> String {
    let name = file.name.rsplit('/').next().unwrap_or_default();
    format!("{name} {}{}", Bytes::new(file.rss_bytes), sharing(file))
}

/// Says who else maps a file.
fn sharing(file: &MappedFileEntry) -> String {
    let Some(others) = file.other_users.filter(|others| *others > 0) else {
        return String::new();
    };
    let is_all = file.other_names.len() as u64 == others;
    let others = Count::new(others).named("other process", "other processes");
    let such = if is_all { ": " } else { " such as " };
    let names = match file.other_names.as_slice() {
        [] => String::new(),
        names => format!("{such}{}", names.join(", ")),
    };
    format!(" (with {others}{names})")
}

/// What the process was started with, and where its limits are.
fn settings(report: &ExplainReport) -> String {
    let process = &report.process;
    let mut parts = vec![match &process.memory_variables {
        None => "its environment may not be read".to_owned(),
        Some(names) if names.is_empty() => "no variable for an allocator".to_owned(),
        Some(names) => format!("{} set", names.join(", ")),
    }];
    // The other limits are about stacks and locked memory: they hardly ever bind.
    let is_of_memory = |limit: &&LimitEntry| matches!(limit.name, "address-space" | "data");
    if let Some(limits) = &process.limits {
        let of_memory: Vec<String> = (limits.iter().filter(is_of_memory))
            .map(|limit| format!("limit on {} {}", limit.name, Bytes::new(limit.bytes)))
            .collect();
        if of_memory.is_empty() {
            parts.push("no limit on address space or data".to_owned());
        }
        parts.extend(of_memory);
    }
    if let Some(cgroup) = &process.cgroup {
        parts.push(format!("cgroup {cgroup}"));
    }
    if let Some(score) = process.oom_score {
        let adjustment = process.oom_score_adj.filter(|adj| *adj != 0);
        let adjusted = adjustment.map_or_else(String::new, |adj| format!(" (adjusted by {adj})"));
        parts.push(format!("oom_score {score}{adjusted}"));
    }
    if process.thp_enabled == Some(false) {
        parts.push("transparent huge pages switched off".to_owned());
    }
    parts.join("; ")
}

/// How the recording has the process.
fn recorded(growth: &GrowthEntry) -> String {
    const CELLS: usize = 24;
    format!(
        "{} over {}: {} ({})",
        bar::spark(&growth.course_bytes, CELLS),
        Span::from_secs_f64(growth.judged_s),
        growth.class_text,
        growth.confidence_text,
    )
}

fn cost(report: &ExplainReport) -> String {
    let mut cost = phrases::explain::cost(report);
    if report.heap.is_some() {
        cost += " Pages that were read count as accessed from now on.";
    }
    cost
}

/// Lists the mapped files.
fn files(page: &mut TextPage, files: &[MappedFileEntry]) {
    if files.is_empty() {
        return;
    }
    page.heading("Mapped files, by what is resident here");
    for file in files {
        let cached = match (file.cached_bytes, file.length_bytes) {
            (Some(cached), Some(length)) => {
                format!("{} of {} cached", Bytes::new(cached), Bytes::new(length))
            }
            (None, Some(length)) => format!("{} long", Bytes::new(length)),
            _ => ABSENT.to_owned(),
        };
        let deleted = if file.is_deleted { ", deleted" } else { "" };
        let head = [piece(
            Style::Plain,
            format!("{:>10}  ", Bytes::new(file.rss_bytes).to_string()),
        )];
        let text = format!("{}: {cached}{deleted}{}", file.name, sharing(file));
        page.hanging(&head, FILE_INDENT, Style::Plain, &text);
    }
}
