//! What sysstat keeps: `sar` tables, `sadf` in its forms, and the binary files behind them.
//!
//! Whatever the form, figures are collected by time ([`Recording`]) under the columns of [`columns`], the one list of what
//! sar's names are in the catalogue, and become looks in one place. sar keeps no refaults and no allocation stalls, and
//! pressure only since 12.3: those signals are absent, and rules say what they could not decide.

mod binary;
mod bounded;
pub(crate) mod columns;
mod element;
pub(crate) mod host;
mod json;
mod lines;
pub(crate) mod recording;
pub(crate) mod stamp;
mod total;
mod xml;

use std::collections::BTreeSet;
use std::io::BufRead;

use timeline::{Entity, Facts};

use crate::looks::{Look, Looks};
use crate::problems::Problems;
use crate::{Input, Opened, SourceKind};
use bounded::Bounded;
use host::Host;
use recording::Recording;

pub(crate) use binary::SadfError;
pub(crate) use lines::{Line, Lines};

/// What was read so far: of a file that breaks off, too.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) recording: Recording,
    pub(crate) host: Host,
}

/// A form in which sar's data are kept as a file of their own; sar's tables are read as text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// `sadf -j`.
    Json,
    /// `sadf -x`.
    Xml,
    /// `sadf -d` or `sadf -p`.
    Lines,
    /// What sadc writes.
    Binary,
}

impl Stored {
    /// Tells it from the first bytes.
    pub(crate) fn of(first: &[u8]) -> Option<Self> {
        let start = &first[..first.len().min(1024)];
        let contains = |part: &[u8]| memchr::memmem::find(start, part).is_some();
        let mark = start.trim_ascii_start().first();
        let line = start.split(|b| *b == b'\n').next().unwrap_or_default();
        if binary::is_binary(first) {
            Some(Self::Binary)
        } else if mark == Some(&b'{') && contains(b"\"sysstat\"") {
            Some(Self::Json)
        } else if mark == Some(&b'<') && contains(b"<sysstat") {
            Some(Self::Xml)
        } else if std::str::from_utf8(line).is_ok_and(|line| Lines::default().begins(line)) {
            Some(Self::Lines)
        } else {
            None
        }
    }

    /// Reads it.
    pub(crate) fn read(self, input: &mut dyn BufRead) -> Result<Opened, SadfError> {
        Ok(match self {
            Self::Json => read_json(input),
            Self::Xml => read_xml(input),
            Self::Lines => read_lines(input),
            Self::Binary => return binary::read(input),
        })
    }
}

fn read_json(input: &mut dyn BufRead) -> Opened {
    let mut input = Bounded::new(input, b'"');
    let mut read = Read::default();
    let ended = json::read(&mut input, &mut read).map_err(|e| e.to_string());
    read.opened("sadf -j", input.lines, ended)
}

fn read_xml(input: &mut dyn BufRead) -> Opened {
    let mut input = Bounded::new(input, b'>');
    let mut read = Read::default();
    let ended = xml::read(&mut input, &mut read);
    read.opened("sadf -x", input.lines, ended)
}

fn read_lines(input: &mut dyn BufRead) -> Opened {
    let mut input = Bounded::new(input, b'\n');
    let mut lines = Lines::default();
    let mut text = Vec::new();
    let ended = loop {
        text.clear();
        match input.read_until(b'\n', &mut text) {
            Ok(0) => break Ok(()),
            Ok(_) => {
                let line = String::from_utf8_lossy(&text);
                lines.take(line.trim_end());
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    let form = lines.form();
    lines.read.opened(form, input.lines, ended)
}

impl Read {
    /// What came of it.
    fn opened(mut self, form: &'static str, lines: usize, ended: Result<(), String>) -> Opened {
        let mut problems = Problems::default();
        if let Err(why) = ended {
            problems.note(format!(
                "it breaks off: {why}; what was read until then is used"
            ));
        }
        for problem in self.recording.problems() {
            problems.note(problem);
        }
        let mut facts = Facts::default();
        self.host.tell(&mut facts);
        self.recording.cpus = self.recording.cpus.or(self.host.cpus);
        let mut looks = Looks::default();
        let mut signals = BTreeSet::new();
        let mut is_first = true;
        self.recording.looks(&mut |look| {
            signals.extend(signals_of(&look));
            looks.add("sar", is_first, look);
            is_first = false;
        });
        let input = Input {
            form,
            what: self.recording.what(),
            file: String::new(),
            first_line: 1,
            last_line: lines.max(1),
            unit: "KiB",
            signals: signals.into_iter().collect(),
            not_understood: 0,
        };
        Opened {
            kind: SourceKind::Text,
            name: String::new(),
            inputs: vec![input],
            timeline: looks.finish().0,
            facts,
            problems: problems.into_texts(),
            lines_skipped: 0,
            reports: Vec::new(),
        }
    }
}

fn signals_of(look: &Look) -> impl Iterator<Item = &'static str> {
    let host = look.sample.host.iter();
    let disks = look.sample.table(Entity::Disk).rows().iter();
    let disks = disks.flat_map(|row| row.row.iter());
    host.chain(disks).map(|(id, _)| id.def().name)
}

#[cfg(test)]
mod tests;
