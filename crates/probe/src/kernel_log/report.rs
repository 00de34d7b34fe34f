//! The kernel's reports of OOM kills and failed allocations, as the kernel log has them without its prefixes.
//!
//! A report is some 20 to 20,000 lines: a **head** (who requested what, and its call trace), the **memory** of the host or
//! of the cgroup at its limit, the **zones**, the **tasks** that could be killed, and the **kill**. Kernels from 2.6
//! to 7 print the same things under slowly changing names, each kind of line telling by itself what it is; so every part
//! has a file here that knows its lines in all their eras, and a report is what its lines fill in.
//!
//! Logs are cut at both ends, printed newest first, and other lines stand in between: a report begins at the first line
//! that only a report has, and ends with the kill, where another report begins, or where nothing of it came for long.

use timeline::KernelReport;

use draft::Draft;
use taken::Taken;

mod draft;
mod group;
mod head;
mod kills;
mod lists;
pub mod marks;
mod memory;
mod rows;
mod scan;
mod taken;
mod tasks;
mod zones;

pub use rows::fill;

/// At most so many unknown lines are stored.
const MOST_UNKNOWN: usize = 50;
/// The characters of an unknown line that are stored.
const MOST_CHARS: usize = 200;
/// The longest report: a table of all tasks of a large machine.
const MOST_LINES: usize = 100_000;

/// Reads the report that begins at the first of the lines, which are without the log's prefixes: how many lines belong to
/// it, and what it says. `None` where none begins there. No more lines are requested than it takes to find the end.
pub fn read<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> Option<(usize, KernelReport)> {
    let mut lines = lines.into_iter();
    let first = lines.next()?;
    if !begins(first.as_ref()) {
        return None;
    }
    let mut seen = vec![first];
    let (reading, is_backwards) = ReportReader::run(&mut seen, &mut lines);
    if is_backwards && let Some(count) = end_of_reversed(&mut seen, &mut lines) {
        return Some((count, reversed(&seen[..count])));
    }
    Some(reading.finish())
}

/// Whether a line is one that a report has, and as a whole. Lines that other events of the kernel have too (call traces,
/// registers) are not.
pub fn is_line(line: &str) -> bool {
    Draft::default().take(line, 0) == Taken::Yes
}

/// Whether a report may begin with a line: it names a reason, or heads a part. Lines in the middle of a part could be of
/// anything.
fn begins(line: &str) -> bool {
    let line = line.trim();
    let is_inner = line.starts_with('[') && !line.contains("total_vm")
        || line.starts_with(|c: char| c.is_ascii_digit())
        || [
            "oom_reaper: ",
            "Free swap",
            "Total swap",
            "CPU ",
            "cpu ",
            "Swap cache",
            "lowmem_reserve",
            "protections",
            "No memory",
        ]
        .iter()
        .any(|start| line.starts_with(start))
        || line.contains("per-cpu:")
        || line.contains("hugepages_total=")
        || line.contains("allocations:")
        || line.contains("slab info:");
    !is_inner && is_line(line)
}

/// A report in the reading.
#[derive(Default)]
struct ReportReader {
    draft: Draft,
    /// Lines up to the last one that was understood.
    lines: usize,
    unknown: Vec<(usize, String)>,
    unknown_in_all: usize,
}

impl ReportReader {
    /// Reads on as far as the report goes. `seen` has its first line, and gets those that were read. Whether they
    /// stand in reverse order is the second half of the answer.
    fn run<S: AsRef<str>>(seen: &mut Vec<S>, lines: &mut impl Iterator<Item = S>) -> (Self, bool) {
        let mut reading = Self::default();
        let mut at = 0;
        let mut foreign: Vec<usize> = Vec::new();
        while at < MOST_LINES {
            if at == seen.len() {
                let Some(line) = lines.next() else { break };
                seen.push(line);
            }
            let line = seen[at].as_ref();
            at += 1;
            match reading.draft.take(line, foreign.len()) {
                Taken::Yes => {
                    for unknown in foreign.drain(..) {
                        reading.note(unknown, seen[unknown - 1].as_ref());
                    }
                    reading.lines = at;
                }
                Taken::Again => break,
                Taken::Backwards => return (reading, true),
                Taken::No if line.trim().is_empty() => {}
                Taken::No => foreign.push(at),
            }
            if foreign.len() > reading.draft.patience() {
                break;
            }
        }
        (reading, false)
    }

    fn note(&mut self, number: usize, line: &str) {
        self.unknown_in_all += 1;
        if self.unknown.len() < MOST_UNKNOWN {
            self.unknown
                .push((number, scan::cut(line.trim(), MOST_CHARS)));
        }
    }

    fn finish(self) -> (usize, KernelReport) {
        let mut report = self.draft.finish();
        report.lines = self.lines;
        report.not_understood = self.unknown;
        report.not_understood_in_all = self.unknown_in_all;
        (self.lines, report)
    }
}

/// How many lines a report has when its end came first: up to the line that names its reason. `None` where that is missing,
/// as then the order may be another than it seems.
fn end_of_reversed<S: AsRef<str>>(
    seen: &mut Vec<S>,
    lines: &mut impl Iterator<Item = S>,
) -> Option<usize> {
    let mut foreign = 0;
    for at in 0..MOST_LINES {
        if at == seen.len() {
            seen.push(lines.next()?);
        }
        let line = seen[at].as_ref().trim();
        if head::is_start(line) {
            return Some(at + 1);
        }
        foreign = if is_line(line) {
            0
        } else {
            foreign + usize::from(!line.is_empty())
        };
        if foreign > Draft::PATIENCE {
            return None;
        }
    }
    None
}

/// The report of lines that stand in reverse order.
fn reversed<S: AsRef<str>>(lines: &[S]) -> KernelReport {
    let mut turned: Vec<&str> = lines.iter().rev().map(AsRef::as_ref).collect();
    let (reading, _) = ReportReader::run(&mut turned, &mut std::iter::empty());
    let (_, mut report) = reading.finish();
    report.lines = lines.len();
    for (number, _) in &mut report.not_understood {
        *number = lines.len() + 1 - *number;
    }
    report
}
