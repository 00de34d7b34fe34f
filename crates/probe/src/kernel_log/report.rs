//! The kernel's reports of OOM kills and failed allocations: lines of the kernel log without its prefixes.
//!
//! A report has some 20 to 20,000 lines: a **head** (who requested what, and its call trace), the **memory** of the
//! host or of the cgroup at its limit, the **zones**, the **tasks** that could be killed, and the **kill**. Kernels
//! from 2.6 to 7 print the same content under slowly changing names, and each kind of line can be recognised by itself;
//! so every part has a module that knows its lines in all kernel versions, and each line fills in its part of the
//! report.
//!
//! Logs are cut at both ends, printed newest first, and mixed with other lines: a report begins at the first line that
//! only reports have. It ends with the kill, where another report begins, or after too many lines that are not part of
//! it.

use timeline::KernelReport;

use draft::Draft;
use kills::KillLines;
use taken::Taken;

mod draft;
mod group;
mod head;
mod kills;
mod lists;
mod memory;
mod rows;
mod scan;
pub mod signatures;
mod taken;
mod tasks;
mod zones;

pub use rows::fill;

/// A report that begins in the middle has at least so many lines that are understood.
const INNER_LINES_MIN: usize = 2;
/// The number of unknown lines that are stored.
const UNKNOWN_MAX: usize = 50;
/// The number of characters stored of an unknown line.
const CHARS_MAX: usize = 200;
/// The longest report: a table of all tasks of a large machine.
const LINES_MAX: usize = 100_000;

/// A line of a log without its prefix.
pub trait ReportLine: AsRef<str> {
    /// How much of a line of a report it is, as [`extent`] returns it. Who removed the prefix knows it already.
    fn extent(&self) -> Option<LineExtent> {
        extent(self.as_ref())
    }
}

impl ReportLine for str {}
impl ReportLine for String {}

impl<L: ReportLine + ?Sized> ReportLine for &L {
    fn extent(&self) -> Option<LineExtent> {
        (**self).extent()
    }
}

/// Reads the report that begins at the first line; the lines have no log prefixes. Returns the number of its lines, and
/// its content. `None` if no report begins there. It requests no more lines than it needs to find the end.
pub fn read<S: ReportLine>(lines: impl IntoIterator<Item = S>) -> Option<(usize, KernelReport)> {
    let mut lines = lines.into_iter();
    let first = lines.next()?;
    debug_assert_eq!(first.extent(), extent(first.as_ref()));
    first.extent()?;
    let lines_min = lines_min(first.as_ref().trim());
    let mut seen = vec![first];
    let (reading, is_backwards) = ReportReader::default().run(&mut seen, &mut lines);
    if is_backwards && let Some(count) = end_of_reversed(&mut seen, &mut lines) {
        return Some((count, reversed(&seen[..count])));
    }
    if reading.understood < lines_min || reading.draft.is_trace_alone() {
        return None;
    }
    Some(reading.finish())
}

/// Reads the report that begins at the first message, as [`read`] does, from messages that are whole and nothing but the
/// kernel's: names in them are exact, and a message that only quotes a report, in the name of a process or a file, is no
/// line of it.
pub fn read_messages<'a>(
    messages: impl IntoIterator<Item = &'a str>,
) -> Option<(usize, KernelReport)> {
    let mut messages = messages.into_iter();
    let first = messages.next().filter(|first| is_message(first))?;
    let lines_min = lines_min(first.trim());
    let reading = ReportReader { draft: Draft::of_messages(), ..ReportReader::default() };
    let (reading, _) = reading.run(&mut vec![first], &mut messages);
    let is_report = reading.understood >= lines_min && !reading.draft.is_trace_alone();
    is_report.then(|| reading.finish())
}

/// Whether a message of the kernel is one of a report.
pub fn is_message(message: &str) -> bool {
    Draft::of_messages().take(message, 0).is_taken()
}

/// How much of a line of a report a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineExtent {
    /// All that the kernel prints in it.
    Whole,
    /// The beginning: its end is missing, or is not the kernel's.
    Beginning,
}

/// Whether a text is a line of a report, or begins as one. Lines that other kernel events also have (call traces,
/// registers) do not count.
pub fn extent(line: &str) -> Option<LineExtent> {
    match Draft::default().take(line, 0) {
        Taken::Yes => Some(LineExtent::Whole),
        Taken::Part => Some(LineExtent::Beginning),
        Taken::No | Taken::Again | Taken::Backwards => None,
    }
}

/// Whether a text is a whole line of a report.
pub fn is_line(line: &str) -> bool {
    extent(line) == Some(LineExtent::Whole)
}

/// At least so many lines must be understood in a report that begins with a line. One that names a reason or is the
/// heading of a part is a report by itself; one from the middle of a part could belong to anything.
fn lines_min(first: &str) -> usize {
    // Somebody quotes both sizes in one line.
    let has_swap = first.contains("Free swap") && first.contains("Total swap");
    let is_victim = first.starts_with("oom_reaper: reaped process ");
    if has_swap || is_victim || !is_inner(first) { 1 } else { INNER_LINES_MIN }
}

/// Whether a line is from the middle of a part.
fn is_inner(line: &str) -> bool {
    line.starts_with('[') && !line.contains("total_vm")
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
        || line.contains("+0x")
        || line.contains("per-cpu:")
        || line.contains("hugepages_total=")
        || line.contains("allocations:")
        || line.contains("slab info:")
}

/// A report while it is read.
#[derive(Default)]
struct ReportReader {
    draft: Draft,
    /// Lines up to the last one that was understood.
    lines: usize,
    understood: usize,
    unknown: Vec<(usize, String)>,
    unknown_in_all: usize,
}

impl ReportReader {
    /// Reads to the end of the report. `seen` has its first line, and receives those that are read. Also returns
    /// whether the lines are in reverse order.
    fn run<S: AsRef<str>>(
        self,
        seen: &mut Vec<S>,
        lines: &mut impl Iterator<Item = S>,
    ) -> (Self, bool) {
        let mut reading = self;
        let mut at = 0;
        let mut foreign: Vec<usize> = Vec::new();
        while at < LINES_MAX {
            if at == seen.len() {
                let Some(line) = lines.next() else { break };
                seen.push(line);
            }
            let line = seen[at].as_ref();
            at += 1;
            match reading.draft.take(line, foreign.len()) {
                Taken::Yes | Taken::Part => {
                    for unknown in foreign.drain(..) {
                        reading.note(unknown, seen[unknown - 1].as_ref());
                    }
                    reading.lines = at;
                    reading.understood += 1;
                }
                Taken::Again => break,
                Taken::Backwards => return (reading, true),
                // Empty, or brackets of what the line stands in.
                Taken::No if !line.contains(char::is_alphanumeric) => {}
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
        if self.unknown.len() < UNKNOWN_MAX {
            self.unknown.push((number, scan::cut(line.trim(), CHARS_MAX)));
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

/// Returns the number of lines of a report in reverse order: up to the line that names its reason. `None` if that is
/// missing, or another kill comes first, as the order is then uncertain.
fn end_of_reversed<S: AsRef<str>>(
    seen: &mut Vec<S>,
    lines: &mut impl Iterator<Item = S>,
) -> Option<usize> {
    let mut foreign = 0;
    let mut has_body = false;
    for at in 0..LINES_MAX {
        if at == seen.len() {
            seen.push(lines.next()?);
        }
        let line = seen[at].as_ref().trim();
        if head::is_start(line) {
            return Some(at + 1);
        }
        let is_kill = KillLines::default().take(line).is_taken();
        if is_kill && has_body {
            return None;
        }
        let is_of_report = is_line(line);
        has_body |= is_of_report && !is_kill;
        foreign = if is_of_report { 0 } else { foreign + usize::from(!line.is_empty()) };
        if foreign > Draft::PATIENCE {
            return None;
        }
    }
    None
}

/// Reads a report with its lines in reverse order.
fn reversed<S: AsRef<str>>(lines: &[S]) -> KernelReport {
    let mut turned: Vec<&str> = lines.iter().rev().map(AsRef::as_ref).collect();
    let (reading, _) = ReportReader::default().run(&mut turned, &mut std::iter::empty());
    let (_, mut report) = reading.finish();
    report.lines = lines.len();
    for (number, _) in &mut report.not_understood {
        *number = lines.len() + 1 - *number;
    }
    report
}
