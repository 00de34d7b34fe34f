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

use std::io::BufRead;

use crate::forms::{Block, Reading};
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
    pub(crate) fn read(self, input: &mut dyn BufRead) -> Result<Document, SadfError> {
        Ok(match self {
            Self::Json => read_json(input),
            Self::Xml => read_xml(input),
            Self::Lines => read_lines(input),
            Self::Binary => return binary::read(input),
        })
    }
}

fn read_json(input: &mut dyn BufRead) -> Document {
    let mut input = Bounded::new(input, b'"');
    let mut read = Read::default();
    let ended = json::read(&mut input, &mut read).map_err(|e| e.to_string());
    Document::new("sadf -j", read, input.lines, ended)
}

fn read_xml(input: &mut dyn BufRead) -> Document {
    let mut input = Bounded::new(input, b'>');
    let mut read = Read::default();
    let ended = xml::read(&mut input, &mut read);
    Document::new("sadf -x", read, input.lines, ended)
}

fn read_lines(input: &mut dyn BufRead) -> Document {
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
    Document::new(form, lines.read, input.lines, ended)
}

/// What a file of sar's data held; [`crate::paste::Paste`] puts it among whatever else the source has.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its form: `sadf -j`.
    pub(crate) form: &'static str,
    /// How many lines it has.
    pub(crate) lines: usize,
    /// What was wrong with it as a whole.
    pub(crate) problems: Vec<String>,
    read: Read,
}

impl Document {
    fn new(form: &'static str, read: Read, lines: usize, ended: Result<(), String>) -> Self {
        let broken = |why| format!("it breaks off: {why}; what was read until then is used");
        Self {
            form,
            lines,
            problems: ended.err().map(broken).into_iter().collect(),
            read,
        }
    }

    /// Whether it says nothing.
    fn is_empty(&self) -> bool {
        self.read.recording.is_empty()
    }

    /// Hands its looks over.
    pub(crate) fn emit(self, reading: &mut Reading<'_>) -> Block {
        Block {
            lines: self.lines,
            ..self.read.emit(reading)
        }
    }
}

impl Read {
    /// Hands the looks over.
    pub(crate) fn emit(self, reading: &mut Reading<'_>) -> Block {
        let Self {
            mut recording,
            host,
        } = self;
        recording.cpus = recording.cpus.or(host.cpus);
        host.tell(reading.facts);
        recording.looks(&mut |look| reading.look(look));
        let mut problems: Vec<(usize, String)> =
            recording.problems().into_iter().map(|p| (0, p)).collect();
        let what = match recording.is_empty() {
            true => {
                problems.push((0, "no table of sar here says anything of memory".to_owned()));
                "no table that says anything of memory".to_owned()
            }
            false => recording.what(),
        };
        Block {
            what,
            unit: "KiB",
            problems,
            ..Block::default()
        }
    }
}

#[cfg(test)]
mod tests;
