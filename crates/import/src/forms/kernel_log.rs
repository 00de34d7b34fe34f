//! Kernel logs: reports of OOM kills and failed allocations, prefixed by `dmesg`, the journal, syslog or containers.
//!
//! Prefixes and what else stands around a message are removed ([`prefix`], [`embedded`]), and lines broken by a terminal or mail are joined ([`messages`]); `probe` parses
//! the messages. A report is a snapshot of its own time, wherever it was pasted.

mod embedded;
mod example;
mod messages;
pub(super) mod prefix;

use probe::kernel_report::{self, signatures};
use timeline::KernelReport;
use timeline::kernel_report::ReportKind;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::text::line_scan::BlockStart;
use messages::LogMessages;

pub(super) const FORM: Form = Form {
    name: "kernel log",
    begins: BlockStart { or: Some(may_be_task), ..BlockStart::with(&signatures::BEGINS) },
    read,
};

/// At most 200 reports keep all zones and tasks; further ones keep the largest tasks only.
const WHOLE_MAX: usize = 200;
/// At most 20 tasks of each further report.
const TASKS_MAX: usize = 20;

/// Whether a line may be a row of the table of tasks.
fn may_be_task(lines: &[&str]) -> bool {
    let line = lines.first().map_or(&b""[..], |line| line.as_bytes());
    memchr::memchr(b']', line).is_some() && signatures::has_task(line)
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    // Where no report is added any more, those with a name are counted.
    let is_named = |line: &str| signatures::SIGNATURES.iter().any(|word| line.contains(word));
    let is_late = input.builder.is_full() && !is_named(input.lines[0]);
    if is_late || is_trace_without_memory(input.lines) {
        return None;
    }
    let is_sysrq = is_sysrq_m(input.lines[0]);
    let skipped = usize::from(is_sysrq);
    let mut messages = LogMessages::new(&input.lines[skipped..]);
    let (count, mut report) = kernel_report::read(&mut messages)?;
    let lines = skipped + messages.lines_of(count);
    if lines == 1 && example::is_example(input.lines[0], input.before) {
        return Some(TextBlock {
            what: "a message of the kernel, quoted as an example: nothing shows that it happened"
                .to_owned(),
            lines,
            ..TextBlock::default()
        });
    }
    report.is_without_prefix = report.lines == 1 && !prefix::is_logged(input.lines[0]);
    let is_dump = is_sysrq || report.is_memory_dump();
    if input.builder.reports() >= WHOLE_MAX {
        shorten(&mut report);
    }
    let block = TextBlock {
        what: what(&report, is_dump),
        lines,
        not_understood: report.not_understood_in_all,
        ..TextBlock::default()
    };
    report.stamp = messages.stamp();
    note_facts(&report, input);
    let mut snapshot = Snapshot::default();
    kernel_report::fill(&report, &mut snapshot.sample);
    snapshot.when = messages.wall().map_or(SnapshotTime::Unknown, SnapshotTime::At);
    // A memory dump of SysRq is no fault, so it is not kept as a report.
    if !is_dump {
        snapshot.report = Some(report);
        snapshot.text = Some(input.lines[..lines].join("\n").into());
    }
    input.add(snapshot);
    Some(block)
}

/// Whether a call trace begins here and no memory follows: a task that hangs has such a trace, and a text of traces has
/// one in each line. A trace that prints a report is one of a kill all the same.
fn is_trace_without_memory(lines: &[&str]) -> bool {
    /// A trace has at most 64 functions, with registers between and modules below them.
    const LINES: usize = 100;
    /// The function that kills calls the one that prints.
    const CALLERS: usize = 4;
    let Some((first, callers)) = lines.split_first() else {
        return false;
    };
    if first.contains("dump_header+0x") {
        let mut callers = callers.iter().take(CALLERS);
        return !callers
            .any(|line| line.contains("oom_kill_process") && !line.contains("dump_header"));
    }
    let has_memory = |line: &&str| line.contains("Mem-") || line.contains("emory: usage");
    first.contains("+0x") && !lines.iter().take(LINES).any(has_memory)
}

/// SysRq m: `sysrq: Show Memory`.
fn is_sysrq_m(line: &str) -> bool {
    if !(line.contains("how Memory") || line.contains("how memory")) {
        return false;
    }
    let message = prefix::message(line);
    let text = message.text.to_ascii_lowercase();
    text.starts_with("sysrq") && text.ends_with("show memory")
}

/// `kernel OOM report, 151 lines, 148 understood`.
fn what(report: &KernelReport, is_dump: bool) -> String {
    let kind = match report.kind {
        _ if is_dump => "kernel memory dump",
        ReportKind::OomKill => "kernel OOM report",
        ReportKind::AllocationFailure => "kernel report of a failed allocation",
    };
    let understood = report.lines.saturating_sub(report.not_understood_in_all);
    format!("{kind}, {} lines, {understood} understood", report.lines)
}

fn note_facts(report: &KernelReport, input: &mut BlockReader<'_>) {
    if let Some(page) = report.page_size {
        input.facts.page_size.get_or_insert(page);
    }
    if let Some(kernel) = &report.kernel {
        input.facts.note_release(kernel);
    }
}

/// Bounds the memory of a log with thousands of reports.
fn shorten(report: &mut KernelReport) {
    let size = |task: &timeline::kernel_report::ReportTask| task.rss + task.swap;
    report.tasks.sort_by_key(|task| std::cmp::Reverse(size(task)));
    report.tasks_left_out += report.tasks.len().saturating_sub(TASKS_MAX);
    report.tasks.truncate(TASKS_MAX);
    report.zones.clear();
    report.not_understood.clear();
}

#[cfg(test)]
mod tests;
