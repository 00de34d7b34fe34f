//! Any mix of text: blocks are found by content, one after the other, and what lies between them is passed over.

use std::collections::BTreeSet;

use probe::ParseError;
use probe::saved::Parsers;
use timeline::{Facts, Sample};
use units::WallClock;

use crate::forms::{self, Block, Reading};
use crate::looks::{Look, Looks};
use crate::problems::Problems;
use crate::prompt;
use crate::sar::Document;
use crate::text::Text;
use crate::{Input, Opened, SourceKind};

/// Blocks that are listed; a text may have a million.
const MOST_INPUTS: usize = 1_000;

/// A text in the reading; several may be read into one timeline.
#[derive(Debug, Default)]
pub(crate) struct Paste {
    parsers: Parsers,
    facts: Facts,
    looks: Looks,
    problems: Problems,
    inputs: Vec<Input>,
    inputs_cut: usize,
    skipped: usize,
}

impl Paste {
    /// Reads a text; `file` names it where there are several. Line numbers count from `first_line`.
    pub(crate) fn read(&mut self, text: &Text, file: &str, first_line: usize) {
        if text.cut() > 0 {
            self.problems.note(format!(
                "{} lines are longer than any tool prints and lost their end",
                text.cut()
            ));
        }
        let lines = text.lines();
        let told = || crate::figure::told_page_size(&lines);
        self.facts.page_size = self.facts.page_size.or_else(told);
        let mut at = 0;
        let mut command: Option<&str> = None;
        let mut wall: Option<WallClock> = None;
        while at < lines.len() {
            if let Some(host) = prompt::host(lines[at]) {
                self.looks.at_host(host);
            }
            if let Some(found) = prompt::command(lines[at]) {
                command = Some(found);
            }
            match self.block(&lines[at..], command, wall) {
                Some((form, signals, block)) => {
                    let taken = block.lines.max(1);
                    self.note(file, first_line + at, form, signals, block);
                    at += taken;
                    (command, wall) = (None, None);
                }
                None => {
                    wall = prompt::time(lines[at]).or(wall);
                    self.skipped += usize::from(!lines[at].is_empty());
                    at += 1;
                }
            }
        }
    }

    /// Reads the one kernel report that a text holds.
    pub(crate) fn report(text: &str) -> Option<Look> {
        let mut paste = Self::default();
        paste.read(&Text::of(text.as_bytes()), "", 1);
        paste
            .looks
            .into_pending()
            .filter(|look| look.report.is_some())
    }

    /// Reads the saved text of the kernel file `path` into a sample, or into the facts. `Ok(false)`: no parser knows it.
    pub(crate) fn kernel_text(
        &mut self,
        path: &str,
        text: &[u8],
        sample: &mut Sample,
    ) -> Result<bool, ParseError> {
        self.parsers.read(path, text, sample, &mut self.facts)
    }

    /// Adds the one moment that a bundle's kernel files are of. What its other texts say of the same moment completes it.
    pub(crate) fn bundle(&mut self, sample: Sample) {
        self.looks.bundle(Look::of(sample));
    }

    /// Notes what was wrong with the source.
    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problems.note(text);
    }

    /// Notes what was recognised, unless there is too much of it.
    pub(crate) fn input(&mut self, input: Input) {
        if self.inputs.len() < MOST_INPUTS {
            self.inputs.push(input);
        } else {
            self.inputs_cut += 1;
        }
    }

    /// What the texts say of the host apart from samples.
    pub(crate) fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// Whether anything was recognised.
    pub(crate) fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Reads sar's data that were kept as a file of their own.
    pub(crate) fn document(&mut self, document: Document, file: &str) {
        for problem in &document.problems {
            let place = if file.is_empty() { "" } else { ": " };
            self.problem(format!("{file}{place}{problem}"));
        }
        let form = document.form;
        let mut signals = BTreeSet::new();
        let block = document.emit(&mut self.reading(form, &[], None, None, &mut signals));
        self.note(file, 1, form, signals, block);
    }

    /// The block that begins at the first of the lines.
    fn block(
        &mut self,
        lines: &[&str],
        command: Option<&str>,
        wall: Option<WallClock>,
    ) -> Option<(&'static str, BTreeSet<&'static str>, Block)> {
        if lines[0].is_empty() {
            return None;
        }
        let mut signals = BTreeSet::new();
        for form in forms::ALL {
            let mut reading = self.reading(form.name, lines, command, wall, &mut signals);
            if let Some(block) = (form.read)(&mut reading) {
                return Some((form.name, signals, block));
            }
        }
        None
    }

    fn reading<'a>(
        &'a mut self,
        form: &'static str,
        lines: &'a [&'a str],
        command: Option<&'a str>,
        wall: Option<WallClock>,
        signals: &'a mut BTreeSet<&'static str>,
    ) -> Reading<'a> {
        Reading {
            lines,
            command,
            wall,
            parsers: &mut self.parsers,
            facts: &mut self.facts,
            form,
            looks: &mut self.looks,
            taken: 0,
            signals,
        }
    }

    fn note(
        &mut self,
        file: &str,
        line: usize,
        form: &'static str,
        signals: BTreeSet<&'static str>,
        block: Block,
    ) {
        for (offset, problem) in &block.problems {
            let place = if file.is_empty() {
                format!("line {}", line + offset)
            } else {
                format!("{file}, line {}", line + offset)
            };
            self.problems.note(format!("{place}: {problem}"));
        }
        self.input(Input {
            form,
            what: block.what,
            file: file.to_owned(),
            first_line: line,
            last_line: line + block.lines.max(1) - 1,
            unit: block.unit,
            signals: signals.into_iter().collect(),
            not_understood: block.not_understood,
        });
    }

    /// What came of it.
    pub(crate) fn finish(mut self, kind: SourceKind) -> Opened {
        if self.looks.contradicting > 0 {
            let looks = self.looks.contradicting;
            self.problems.note(format!(
                "{looks} looks of other moments than the kernel files' are not used"
            ));
        }
        let (timeline, dropped) = self.looks.finish();
        if dropped > 0 {
            self.problems.note(format!(
                "only the first {} looks are used; {dropped} more were passed over",
                timeline.len()
            ));
        }
        if self.inputs_cut > 0 {
            self.problems.note(format!(
                "only the first {MOST_INPUTS} blocks are listed; {} more were read",
                self.inputs_cut
            ));
        }
        Opened {
            kind,
            name: String::new(),
            timeline,
            facts: self.facts,
            problems: self.problems.into_texts(),
            inputs: self.inputs,
            lines_skipped: self.skipped,
            thinned_to: None,
            screened: None,
            cut_at: None,
            is_cut_short: false,
        }
    }
}
