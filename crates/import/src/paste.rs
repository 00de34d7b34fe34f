//! Any mix of text: blocks are found by content, one after the other, and what lies between them is passed over.

use std::collections::BTreeSet;

use probe::saved::Parsers;
use timeline::Facts;
use units::WallClock;

use crate::forms::{self, Block, Reading};
use crate::looks::Looks;
use crate::problems::Problems;
use crate::prompt;
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
        let lines = text.lines();
        let mut at = 0;
        let mut command: Option<&str> = None;
        let mut wall: Option<WallClock> = None;
        while at < lines.len() {
            if let Some(found) = prompt::command(lines[at]) {
                command = Some(found);
                wall = None;
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
            let mut reading = Reading {
                lines,
                command,
                wall,
                parsers: &mut self.parsers,
                facts: &mut self.facts,
                form: form.name,
                looks: &mut self.looks,
                taken: 0,
                signals: &mut signals,
            };
            if let Some(block) = (form.read)(&mut reading) {
                return Some((form.name, signals, block));
            }
        }
        None
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
        if self.inputs.len() >= MOST_INPUTS {
            self.inputs_cut += 1;
            return;
        }
        self.inputs.push(Input {
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
        }
    }
}
