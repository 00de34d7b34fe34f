//! Reads the lines of kernel files into snapshots, with the parsers of live files.

use std::collections::{BTreeMap, HashSet};

use timeline::{Entity, signals};
use units::{Bytes, PageSize, Pages};

use super::field_file::FieldFile;
use super::pairs::FieldValue;
use super::shape::FileShape;
use super::{file_path, pairs, shape};
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::forms::ram_unit::{self, TotalUnit};
use crate::forms::size_unit::SizeUnit;
use crate::plausible::drop_impossible;
use crate::text::prompt;
use crate::text::times::{PrintedTime, SampleTimes};

/// Reads files into snapshots and notes problems.
pub(super) struct KernelFileReader<'r, 'a> {
    input: &'r mut BlockReader<'a>,
    snapshot: Snapshot,
    pub(super) block: TextBlock,
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
    pub(super) fn new(input: &'r mut BlockReader<'a>) -> Self {
        let unit = input.command.and_then(SizeUnit::in_heading);
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

    pub(super) fn finish(mut self, what: &str, lines: usize) -> TextBlock {
        self.end_snapshot();
        self.block.what = what.to_owned();
        self.block.lines = lines;
        self.block
    }

    pub(super) fn problem(&mut self, line: usize, text: impl Into<String>) {
        self.block.problems.push((line, text.into()));
    }

    /// Reads the lines of the file at `path`. The same file again begins another snapshot.
    pub(super) fn file(&mut self, path: &str, shape: FileShape, lines: &NumberedLines<'_>) {
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

    /// Reads the lines of a file in a part of the block.
    pub(super) fn lines(&mut self, path: &str, shape: FileShape, from: usize, to: usize) {
        let lines = self.input.lines[from..to].iter().enumerate();
        let numbered: Vec<(usize, &str)> =
            lines.map(|(i, line)| (from + i, shape.line_of_file(line))).collect();
        self.file(path, shape, &numbered);
    }

    /// Reads a file that may have been printed several times.
    pub(super) fn repeated(&mut self, path: &str, shape: FileShape, from: usize, to: usize) {
        let all = self.input.lines;
        // Lines of these files may repeat the key of the first.
        if matches!(shape, FileShape::Smaps | FileShape::Fields | FileShape::Pagetypeinfo)
            || shape.is_one_line()
        {
            return self.lines(path, shape, from, to);
        }
        let identity = |at: usize| shape.identity(shape.line_of_file(all[at]));
        let first = identity(from);
        let again = (from + 1..to).filter(|at| identity(*at) == first);
        let mut start = from;
        for end in again.chain([to]) {
            self.lines(path, shape, start, end);
            start = end;
        }
    }

    fn page_size(&mut self) -> PageSize {
        let known = &mut self.input.facts.page_size;
        *known.get_or_insert(PageSize::USUAL)
    }

    /// Reads unchanged lines.
    pub(super) fn raw(&mut self, path: &str, lines: &NumberedLines<'_>) {
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

    pub(super) fn name_process(&mut self) {
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

/// What a block of files is, by the first and their number.
pub(super) fn what_of(first: &str, n: usize) -> String {
    match n {
        1 => first.to_owned(),
        n => format!("{n} kernel files, from {first} on"),
    }
}
