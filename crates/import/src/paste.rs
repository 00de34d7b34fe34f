//! Reads any mix of text: blocks are recognised by content, one after the other; lines between them are skipped.

mod line_tests;
mod stream;

use std::collections::BTreeSet;

use probe::ParseError;
use probe::saved::Parsers;
use timeline::{Facts, Input, Inventory, Origin, Problems, Sample, Source, SourceKind};

use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, TimelineBuilder};
use crate::forms;
use crate::sar::SarDocument;
use crate::text::times::PrintedTime;
use crate::text::{PlainText, figure, prompt};
use line_tests::{LineKinds, LineTests};

/// At most 1,000 blocks are listed; a text may have a million.
const INPUTS_MAX: usize = 1_000;

/// Reads one or several texts into one timeline.
#[derive(Debug, Default)]
pub(crate) struct Paste {
    parsers: Parsers,
    /// The name of a file that is read alone.
    name: String,
    facts: Facts,
    inventory: Inventory,
    builder: TimelineBuilder,
    problems: Problems,
    inputs: Vec<Input>,
    inputs_cut: usize,
    skipped: usize,
    quoted: QuotedBlocks,
    windows: stream::WindowsRead,
}

/// Where readings stand: behind the quotation marks of mail, or not. What is quoted is often another person's host, or an
/// example.
#[derive(Debug, Default)]
struct QuotedBlocks {
    /// The lines of the first block that is quoted: first and last.
    quoted: Option<(usize, usize)>,
    /// The same of the first block that is not.
    plain: Option<(usize, usize)>,
}

impl QuotedBlocks {
    fn note(&mut self, is_quoted: bool, lines: (usize, usize)) {
        let known = if is_quoted { &mut self.quoted } else { &mut self.plain };
        known.get_or_insert(lines);
    }

    /// The problem of a text with both.
    fn problem(&self) -> Option<String> {
        let (quoted, plain) = (self.quoted?, self.plain?);
        let lines = |(first, last)| {
            if first == last {
                format!("line {first} is")
            } else {
                format!("lines {first} to {last} are")
            }
        };
        Some(format!(
            "{} quoted (behind >) and {} not: they may be of different hosts; give memtide those \
             of one",
            lines(quoted),
            lines(plain)
        ))
    }
}

impl Paste {
    /// Reads one file with this name.
    pub(crate) fn of_file(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Reads a text; `file` is its name if there are several. Line numbers start at `first_line`.
    pub(crate) fn read(&mut self, text: &PlainText, file: &str, first_line: usize) {
        if text.truncated() > 0 {
            self.problem(format!(
                "{} lines are longer than any tool prints and were truncated",
                text.truncated()
            ));
        }
        let lines = text.lines();
        if self.facts.page_size.is_none() {
            self.facts.page_size = figure::page_size_in(&lines);
        }
        LineTests::run(text.as_str(), &lines, |tests| {
            self.blocks(text, file, first_line, &lines, tests);
        });
    }

    /// Reads the blocks of a text, one after the other.
    fn blocks(
        &mut self,
        text: &PlainText,
        file: &str,
        first_line: usize,
        lines: &[&str],
        mut tests: LineTests<'_>,
    ) {
        let mut at = 0;
        let mut command: Option<&str> = None;
        let mut time: Option<PrintedTime> = None;
        // Nothing that follows would be added.
        while at < lines.len() && !self.builder.is_past_counting() {
            let kinds = tests.at(at);
            if kinds.is_prompt() {
                let (host, found) = prompt::host_and_command(lines[at]);
                if let Some(host) = host {
                    self.builder.at_host(host);
                }
                command = found.or(command);
            }
            match self.block(file, lines, at, kinds, command, time) {
                Some((form, signals, block)) => {
                    let taken = block.lines.max(1);
                    let number = |line: usize| first_line + text.source_line(at + line);
                    if !signals.is_empty() {
                        let last = number(taken - 1);
                        self.quoted.note(text.is_quoted(at), (number(0), last));
                    }
                    self.note(file, &number, form, signals, block);
                    at += taken;
                    (command, time) = (None, None);
                }
                None => {
                    let whole = || PrintedTime::whole(lines[at]);
                    let found = kinds.is_time().then(whole).flatten();
                    // A time of day is worth less than a date.
                    let is_better = |new: &PrintedTime| {
                        new.wall().is_some() || time.is_none_or(|old| old.wall().is_none())
                    };
                    time = found.filter(is_better).or(time);
                    self.skipped += usize::from(!lines[at].is_empty());
                    at += 1;
                }
            }
        }
    }

    /// Reads the kernel report in a text.
    pub(crate) fn report(text: &str) -> Option<Snapshot> {
        let mut paste = Self::default();
        paste.read(&PlainText::from_bytes(text.as_bytes()), "", 1);
        paste.builder.into_pending().filter(|snapshot| snapshot.report.is_some())
    }

    /// Reads the text of the kernel file at `path` into a sample, the facts or the inventory. `Ok(false)`: no parser for
    /// it.
    pub(crate) fn kernel_text(
        &mut self,
        path: &str,
        text: &[u8],
        sample: &mut Sample,
    ) -> Result<bool, ParseError> {
        if probe::inventory::from_saved(path, text, &mut self.inventory) {
            return Ok(true);
        }
        self.parsers.read(path, text, sample, &mut self.facts)
    }

    /// Adds the kernel files of a bundle as one sample. Its other texts complete it.
    pub(crate) fn add_bundle(&mut self, sample: Sample) {
        self.builder.add_bundle(sample);
    }

    /// Notes a problem of the source.
    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problems.note(text);
    }

    /// Lists a block that was recognised.
    pub(crate) fn input(&mut self, input: Input) {
        if self.inputs.len() < INPUTS_MAX {
            self.inputs.push(input);
        } else {
            self.inputs_cut += 1;
        }
    }

    /// Facts about the host.
    pub(crate) fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// Whether anything was recognised.
    pub(crate) fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Adds a file of sysstat data.
    pub(crate) fn document(&mut self, document: SarDocument, file: &str) {
        for problem in &document.problems {
            self.problem(format!("{}{problem}", stream::prefix(file)));
        }
        let form = document.form;
        let mut signals = BTreeSet::new();
        let block =
            document.emit(&mut self.block_reader(form, file, (&[], 0), None, None, &mut signals));
        self.note(file, &|line| 1 + line, form, signals, block);
    }

    /// The block that begins at a line.
    fn block(
        &mut self,
        file: &str,
        lines: &[&str],
        at: usize,
        kinds: LineKinds,
        command: Option<&str>,
        time: Option<PrintedTime>,
    ) -> Option<(&'static str, BTreeSet<&'static str>, TextBlock)> {
        if lines[at].is_empty() {
            return None;
        }
        let mut signals = BTreeSet::new();
        for (index, form) in forms::ALL.iter().enumerate() {
            let may_begin = kinds.may_begin(index, command);
            // Tests ask each form, to show that none is missed.
            if !may_begin && !cfg!(test) {
                continue;
            }
            let mut reader =
                self.block_reader(form.name, file, (lines, at), command, time, &mut signals);
            if let Some(block) = (form.read)(&mut reader) {
                debug_assert!(may_begin, "{} begins at `{}`", form.name, lines[at]);
                return Some((form.name, signals, block));
            }
        }
        None
    }

    /// `lines` are all lines of the text, and where the block begins.
    fn block_reader<'a>(
        &'a mut self,
        form: &'static str,
        file: &'a str,
        (lines, at): (&'a [&'a str], usize),
        command: Option<&'a str>,
        time: Option<PrintedTime>,
        signals: &'a mut BTreeSet<&'static str>,
    ) -> BlockReader<'a> {
        let (before, lines) = lines.split_at(at.min(lines.len()));
        BlockReader {
            lines,
            before,
            file: if file.is_empty() { &self.name } else { file },
            command,
            time,
            parsers: &mut self.parsers,
            facts: &mut self.facts,
            form,
            builder: &mut self.builder,
            signals,
            added: 0,
        }
    }

    /// Lists a block; `number` gives the number of a line of it in the file.
    fn note(
        &mut self,
        file: &str,
        number: &dyn Fn(usize) -> usize,
        form: &'static str,
        signals: BTreeSet<&'static str>,
        block: TextBlock,
    ) {
        for (offset, problem) in &block.problems {
            let comma = if file.is_empty() { "" } else { ", " };
            self.problems.note(format!("{file}{comma}line {}: {problem}", number(*offset)));
        }
        self.input(Input {
            form,
            what: block.what,
            file: file.to_owned(),
            first_line: number(0),
            last_line: number(block.lines.max(1) - 1),
            unit: block.unit,
            signals: signals.into_iter().collect(),
            not_understood: block.not_understood,
            other_system: block.other_system,
        });
    }

    /// The source as read.
    pub(crate) fn finish(mut self, kind: SourceKind) -> Source {
        if self.builder.contradicting > 0 {
            self.problem(format!(
                "{} samples contradict the kernel files and are not used",
                self.builder.contradicting
            ));
        }
        if self.builder.without_ram > 0 {
            self.problem(format!(
                "samples with 0 B of RAM: {}; what printed them could not read the counters, and \
                 they are not used",
                self.builder.without_ram
            ));
        }
        let quoted = self.quoted.problem();
        let is_partly_quoted = quoted.is_some();
        quoted.into_iter().for_each(|problem| self.problem(problem));
        self.builder.flush();
        for impossible in std::mem::take(&mut self.builder.impossible) {
            self.problem(impossible.problem());
        }
        let is_count_whole = !self.builder.is_past_counting();
        self.facts.hosts = self.builder.take_hosts();
        let (timeline, dropped) = self.builder.finish();
        if dropped > 0 {
            let at_least = if is_count_whole { "" } else { "at least " };
            self.problems.note(format!(
                "only the first {} samples are used{}; {at_least}{dropped} more are left out",
                timeline.len(),
                timeline.why_full()
            ));
        }
        self.problems.note_left_out(&timeline, &self.facts);
        if self.inputs_cut > 0 {
            self.problems.note(format!(
                "only the first {INPUTS_MAX} blocks are listed; {} more were read",
                self.inputs_cut
            ));
        }
        Source {
            timeline,
            facts: self.facts,
            inventory: self.inventory,
            origin: Origin {
                kind,
                inputs: self.inputs,
                is_partly_quoted,
                lines_skipped: self.skipped,
                ..Origin::default()
            },
            problems: self.problems.into_texts(),
        }
    }
}
