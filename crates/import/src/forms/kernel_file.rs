//! Pasted text of kernel files: complete, truncated, a few lines of `grep`, one or several files. The parsers of live
//! files read it; this module finds out which file it is.
//!
//! The path is before each line (`/proc/meminfo:MemFree: …`), in a heading (`==> /proc/vmstat <==`), or in the command
//! (`cat /proc/vmstat`); else the content decides. If that is ambiguous (pressure of memory or of io? `pgfault` of the
//! host or of a cgroup?), the text is skipped and a problem reports it.

use std::collections::{BTreeMap, HashSet};

use timeline::{Entity, signals};
use units::{Bytes, PageSize, Pages};

use super::Form;
use super::ram_unit::{self, TotalUnit};
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::plausible::drop_impossible;
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use crate::text::times::{PrintedTime, SampleTimes};
use field_file::FieldFile;
use pairs::FieldValue;
use shape::FileShape;

mod field_file;
mod file_path;
pub(super) use file_path::UNNAMED_CGROUP;
mod pairs;
mod run;
mod shape;

pub(super) const FORM: Form = Form {
    name: "kernel file",
    begins: BlockStart {
        // A heading, the first line.
        lines: 2,
        or: Some(may_be_fields),
        commands: &["/proc", "/sys", "memory.", "pressure", "uname"],
        ..BlockStart::with(&[
            "/proc",
            "/sys/",
            ".max",
            ".current",
            ".stat",
            ".events",
            ".low",
            ".min",
            ".high",
            ".peak",
            ".pressure",
            "memory.swap",
            "_in_bytes",
            ".failcnt",
            "memory.oom",
            "memory.numa",
            "memory.zswap",
            "io.",
            "cgroup.",
            "cpu.",
            "avg10=",
            ", zone ",
            "Page block order",
            "Free pages count",
            "slabinfo",
            "# name ",
            " : slabdata ",
            "cpu ",
            "sockets: used",
            "Node ",
            "Linux ",
            "BOOT_IMAGE=",
            "Name:",
            "Rss:",
            "00:00 ",
        ])
    },
    read,
};

/// Whether a line may be a field, or a row of figures. This runs for each line of a text.
fn may_be_fields(lines: &[&str]) -> bool {
    let line = lines.first().map_or("", |line| line.trim_start());
    let start = pairs::without_list_mark(line);
    match start.as_bytes().first() {
        Some(b'0'..=b'9') => shape::is_row(start),
        // Of several fields on a line, any may be known.
        Some(b'{' | b'|' | b'"' | b'`' | b'*') => pairs::parse(start).is_some(),
        Some(_) => {
            let is_end = |b: &u8| matches!(b, b' ' | b':' | b'=' | b'|' | b',' | b'"');
            let end = start.bytes().take(64).position(|b| is_end(&b));
            let name = start.get(..end.unwrap_or(start.len().min(64)));
            name.is_some_and(|name| field_file::files_with(name) != 0)
                || shape::is_mapping(start)
                || (memchr::memchr2(b',', b'|', start.as_bytes()).is_some()
                    && pairs::parse(start).is_some())
        }
        None => false,
    }
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    run::before_each_line(input)
        .or_else(|| run::with_headings(input))
        .or_else(|| run::in_command(input))
        .or_else(|| run::by_shape(input))
        .or_else(|| run::by_fields(input))
        .or_else(|| uname(input))
}

/// `Linux db1 5.15.0-91-generic #101-Ubuntu SMP …`, and `uname -r`. The host name is dropped.
fn uname(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let line = *input.lines.first()?;
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    let is_release = |word: &str| {
        timeline::facts::KernelVersion::parse(word).is_some()
            && word.starts_with(|c: char| c.is_ascii_digit())
    };
    let text = match words.as_slice() {
        ["Linux", _, release, build] if is_release(release) && build.starts_with('#') => {
            let rest = line.split_once(release).map_or("", |(_, rest)| rest);
            format!("Linux version {release}{rest}")
        }
        [release] if is_release(release) && input.command.is_some_and(|c| c.contains("uname")) => {
            format!("Linux version {release}")
        }
        _ => return None,
    };
    let mut reader = KernelFileReader::new(input);
    reader.raw("/proc/version", &[(0, &text)]);
    Some(reader.finish("the kernel's version", 1))
}

/// Reads files into snapshots and notes problems.
struct KernelFileReader<'r, 'a> {
    input: &'r mut BlockReader<'a>,
    snapshot: Snapshot,
    block: TextBlock,
    /// Files in the snapshot.
    paths: HashSet<String>,
    /// The unit of sizes without a unit, in bytes, if the heading has one.
    unit: Option<f64>,
    times: SampleTimes,
    /// The time on a line since the fields of the snapshot began.
    printed: Option<PrintedTime>,
}

/// Lines with their numbers in the block.
type NumberedLines<'l> = [(usize, &'l str)];

impl<'r, 'a> KernelFileReader<'r, 'a> {
    fn new(input: &'r mut BlockReader<'a>) -> Self {
        let unit = input.command.and_then(super::size_unit::SizeUnit::in_heading);
        let every = input.command.and_then(prompt::loop_interval);
        let mut times = SampleTimes::new(every);
        times.next(input.time);
        Self {
            times,
            printed: None,
            input,
            snapshot: Snapshot::default(),
            block: TextBlock::default(),
            paths: HashSet::new(),
            unit: unit.map(|unit| unit.bytes),
        }
    }

    /// Adds the snapshot and begins the next.
    fn end_snapshot(&mut self) {
        let mut snapshot = std::mem::take(&mut self.snapshot);
        for impossible in drop_impossible(&mut snapshot) {
            self.problem(0, impossible.problem());
        }
        if snapshot.has_readings() {
            let mut paths = self.paths.iter();
            if let (Some(path), None) = (paths.next(), paths.next()) {
                // For the builder each file is a form of its own.
                self.input.form = file_path::form(path);
            }
            self.input.add(snapshot);
        }
        self.paths.clear();
    }

    fn finish(mut self, what: &str, lines: usize) -> TextBlock {
        self.end_snapshot();
        self.block.what = what.to_owned();
        self.block.lines = lines;
        self.block
    }

    fn problem(&mut self, line: usize, text: impl Into<String>) {
        self.block.problems.push((line, text.into()));
    }

    /// Reads the lines of the file at `path`. The same file again begins another snapshot.
    fn file(&mut self, path: &str, shape: FileShape, lines: &NumberedLines<'_>) {
        if !self.paths.insert(path.to_owned()) {
            self.end_snapshot();
            self.paths.insert(path.to_owned());
        }
        if path == signals::MEMINFO || shape == FileShape::NodeMeminfo {
            self.block.unit = "KiB";
        }
        match shape {
            FileShape::Fields => self.fields(path, lines),
            FileShape::NodeMeminfo => self.nodes(lines),
            FileShape::Status => self.status(path, lines),
            FileShape::Smaps => self.smaps(path, lines),
            FileShape::Pagetypeinfo => {}
            _ => self.raw(path, lines),
        }
        let is_in_pages =
            matches!(shape, FileShape::Zoneinfo | FileShape::Slabinfo | FileShape::Status)
                || path == signals::VMSTAT;
        if is_in_pages {
            self.page_size();
        }
    }

    fn page_size(&mut self) -> PageSize {
        let known = &mut self.input.facts.page_size;
        *known.get_or_insert(PageSize::USUAL)
    }

    /// Reads unchanged lines.
    fn raw(&mut self, path: &str, lines: &NumberedLines<'_>) {
        let text = lines.iter().map(|(_, line)| *line);
        let text = text.collect::<Vec<_>>().join("\n");
        let numbers: Vec<usize> = lines.iter().map(|(at, _)| *at).collect();
        self.parse(path, &text, &numbers);
    }

    fn parse(&mut self, path: &str, text: &str, lines: &[usize]) {
        let BlockReader { parsers, facts, .. } = &mut *self.input;
        match parsers.read(path, text.as_bytes(), &mut self.snapshot.sample, facts) {
            Ok(_) => {}
            Err(error) => {
                let place = error.line.saturating_sub(1);
                let line = lines.get(place).or(lines.last()).copied().unwrap_or(0);
                let text = format!("expected {}, found `{}`", error.expected, error.found);
                self.problem(line, text);
            }
        }
    }

    /// Reads names and values. The same name again begins another snapshot, of the time that was printed between them.
    fn fields(&mut self, path: &str, lines: &NumberedLines<'_>) {
        let Some(file) = FieldFile::at(path) else {
            return self.raw(path, lines);
        };
        let total_unit = self.total_unit(file, lines);
        let default = match total_unit {
            TotalUnit::BySize(unit) => Some(unit.bytes),
            TotalUnit::Kib | TotalUnit::Unknown => self.unit,
        };
        let mut text = FieldLines::default();
        let mut seen = HashSet::new();
        for (at, line) in lines {
            let Some(pairs) = pairs::parse(line) else {
                let time = PrintedTime::whole(line);
                self.printed = time.or(self.printed);
                if time.is_none() {
                    self.unread(*at, line, file);
                }
                continue;
            };
            for pair in pairs {
                if !seen.insert(pair.name.to_owned()) {
                    self.parse_lines(path, &mut text);
                    self.end_snapshot();
                    let when = self.times.next(self.printed.take());
                    self.snapshot.when = when.map_or(SnapshotTime::Unknown, |(when, _)| when);
                    self.paths.insert(path.to_owned());
                    seen = HashSet::from([pair.name.to_owned()]);
                }
                if total_unit == TotalUnit::Unknown && file.is_size_without_unit(&pair) {
                    continue;
                }
                match file.line(&pair, default) {
                    Some((line, error)) => {
                        text.push(*at, line);
                        self.set_error(path, pair.name, error);
                    }
                    None => self.problem(*at, format!("`{}` has no size", pair.name)),
                }
            }
        }
        self.parse_lines(path, &mut text);
    }

    /// The unit of sizes without a unit, if `MemTotal` cannot be KiB.
    fn total_unit(&mut self, file: FieldFile, lines: &NumberedLines<'_>) -> TotalUnit {
        if file != FieldFile::Meminfo {
            return TotalUnit::Kib;
        }
        let named = lines.iter().filter(|(_, line)| line.contains("MemTotal"));
        let mut pairs = named.flat_map(|(at, line)| {
            let pairs = pairs::parse(line).unwrap_or_default().into_iter();
            pairs.map(|pair| (*at, pair))
        });
        let total = pairs.find(|(_, pair)| pair.name == "MemTotal");
        let Some((at, FieldValue::Plain(digits))) = total.map(|(at, pair)| (at, pair.value)) else {
            return TotalUnit::Kib;
        };
        let total = digits.parse().unwrap_or(0.0);
        if self.unit.is_some_and(|unit| ram_unit::is_of_host(total * unit)) {
            return TotalUnit::Kib;
        }
        // The heading is of something else.
        self.unit = None;
        let unit = ram_unit::unit_of_total(total);
        if let Some(problem) = ram_unit::unit_problem(unit) {
            self.problem(at, problem);
        }
        match unit {
            TotalUnit::Kib => {}
            TotalUnit::BySize(unit) => self.block.unit = unit.name,
            TotalUnit::Unknown => self.block.unit = "",
        }
        unit
    }

    fn unread(&mut self, at: usize, line: &str, file: FieldFile) {
        self.block.not_understood += 1;
        let name = line.split([':', ' ']).next().unwrap_or_default();
        if file.knows(name) {
            let shown: String = line.chars().take(40).collect();
            self.problem(at, format!("`{shown}` has no usable number"));
        }
    }

    fn set_error(&mut self, path: &str, name: &str, error: f64) {
        let mut fields = signals::field_of(path);
        if error > 0.0
            && let Some((_, signal, _)) = fields.find(|(field, ..)| *field == name)
        {
            self.snapshot.set_error(signal, error);
        }
    }

    fn parse_lines(&mut self, path: &str, text: &mut FieldLines) {
        let text = std::mem::take(text);
        let lines: Vec<(usize, &str)> =
            text.lines.iter().map(|(at, l)| (*at, l.as_str())).collect();
        if !lines.is_empty() {
            self.raw(path, &lines);
        }
    }

    /// Reads the meminfo of nodes, with the number of the node on each line.
    fn nodes(&mut self, lines: &NumberedLines<'_>) {
        let mut nodes: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
        for (at, line) in lines {
            if let Some((node, _)) = shape::node_field(line) {
                nodes.entry(node).or_default().push((*at, line));
            }
        }
        for (node, lines) in nodes {
            self.raw(&format!("/sys/devices/system/node/node{node}/meminfo"), &lines);
        }
    }

    /// Reads `status` of a process.
    fn status(&mut self, path: &str, lines: &NumberedLines<'_>) {
        let text: Vec<(usize, String)> = lines
            .iter()
            .map(|(at, line)| match line.strip_prefix("Name:") {
                // Plain text has no tabs.
                Some(name) => (*at, format!("Name:\t{}", name.trim())),
                None => (*at, (*line).to_owned()),
            })
            .collect();
        let text: Vec<(usize, &str)> = text.iter().map(|(at, line)| (*at, line.as_str())).collect();
        self.raw(path, &text);
        let resident = lines.iter().find_map(|(_, line)| {
            let pair = pairs::parse(line)?.into_iter().find(|p| p.name == "VmRSS")?;
            match pair.value {
                FieldValue::Size(size) => crate::text::figure::raw(size.value),
                FieldValue::Plain(_) => None,
            }
        });
        let page = self.page_size();
        if let Some(bytes) = resident {
            let pages = Pages::new(bytes / page.bytes().get());
            if let Some(row) = self.process() {
                row.row.set(signals::PROC_RSS, pages);
            }
        }
        self.name_process();
    }

    /// Adds up the mappings of a process.
    fn smaps(&mut self, path: &str, lines: &NumberedLines<'_>) {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for pair in lines.iter().filter_map(|(_, line)| pairs::parse(line)).flatten() {
            if let FieldValue::Size(size) = pair.value {
                let bytes = crate::text::figure::raw(size.value).unwrap_or(0);
                let sum = sums.entry(pair.name).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        let line = lines.first().map_or(0, |(at, _)| *at);
        let pid = path.split('/').nth(2).unwrap_or("0");
        let rollup = format!("/proc/{pid}/smaps_rollup");
        let text: Vec<String> =
            sums.iter().map(|(name, bytes)| format!("{name}: {} kB", bytes / 1024)).collect();
        self.parse(&rollup, &text.join("\n"), &[line]);
        let page = self.page_size();
        if let Some(bytes) = sums.get("Rss").copied()
            && let Some(row) = self.process()
        {
            row.row.set(signals::PROC_RSS, Pages::new(bytes / page.bytes().get()));
        }
        if let (Some(bytes), Some(row)) = (sums.get("Swap").copied(), self.process()) {
            row.row.set(signals::PROC_SWAP, Bytes::new(bytes));
        }
        self.name_process();
    }

    /// The last process read.
    fn process(&mut self) -> Option<&mut timeline::EntityRow> {
        let table = self.snapshot.sample.table_mut(Entity::Process);
        table.rows_mut().last_mut()
    }

    fn name_process(&mut self) {
        if let Some(row) = self.process()
            && row.label.is_empty()
        {
            row.label.push_str("(pasted process)");
        }
    }
}

/// Lines in the notation of the kernel, with their numbers.
#[derive(Debug, Default)]
struct FieldLines {
    lines: Vec<(usize, String)>,
}

impl FieldLines {
    fn push(&mut self, at: usize, line: String) {
        self.lines.push((at, line));
    }
}

/// Whether a line is a prompt with a command, and so not part of a file.
fn is_prompt(line: &str) -> bool {
    prompt::command(line).is_some()
}

#[cfg(test)]
mod tests;
