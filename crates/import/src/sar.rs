//! Data of sysstat: `sar` tables, the output of `sadf`, and the binary files behind them.
//!
//! Figures of any form are collected by time in a [`SarSeries`], under the columns of [`columns`], which maps the
//! names of sar to signals, and become snapshots in one place. sar has no refaults and no allocation stalls, and
//! pressure only since 12.3: without those signals, rules report what they could not evaluate.

mod binary;
mod bounded;
pub(crate) mod columns;
mod element;
pub(crate) mod host;
mod json;
mod ram_total;
mod sadf_lines;
pub(crate) mod series;
pub(crate) mod stamp;
mod xml;

use std::io::BufRead;

use crate::block::{BlockReader, TextBlock};
use bounded::Bounded;
use host::SarHost;
use series::SarSeries;

pub use binary::SadfError;
pub(crate) use sadf_lines::SadfLines;

/// What was read so far, also of a file that ends early.
#[derive(Debug, Default)]
pub(crate) struct SarData {
    pub(crate) series: SarSeries,
    pub(crate) host: SarHost,
}

/// The format of a file of sysstat data. Tables of sar are read as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SarFormat {
    /// `sadf -j`.
    Json,
    /// `sadf -x`.
    Xml,
    /// `sadf -d` or `sadf -p`.
    Lines,
    /// Written by sadc.
    Binary,
}

impl SarFormat {
    /// Recognises it by the first bytes.
    pub(crate) fn recognise(start: &[u8]) -> Option<Self> {
        let head = &start[..start.len().min(1024)];
        let contains = |part: &[u8]| memchr::memmem::find(head, part).is_some();
        let first = head.trim_ascii_start().first();
        let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
        if binary::is_binary(start) {
            Some(Self::Binary)
        } else if first == Some(&b'{') && contains(b"\"sysstat\"") {
            Some(Self::Json)
        } else if first == Some(&b'<') && contains(b"<sysstat") {
            Some(Self::Xml)
        } else if std::str::from_utf8(line).is_ok_and(SadfLines::begins) {
            Some(Self::Lines)
        } else {
            None
        }
    }

    /// Reads the file.
    pub(crate) fn read(self, input: &mut dyn BufRead) -> Result<SarDocument, SadfError> {
        match self {
            Self::Json => Ok(read_json(input)),
            Self::Xml => Ok(read_xml(input)),
            Self::Lines => Ok(read_lines(input)),
            Self::Binary => binary::read(input),
        }
    }
}

fn read_json(input: &mut dyn BufRead) -> SarDocument {
    let mut input = Bounded::new(input, b'"');
    let mut data = SarData::default();
    let ended = json::read(&mut input, &mut data).map_err(|e| e.to_string());
    SarDocument::new("sadf -j", data, input.lines, ended)
}

fn read_xml(input: &mut dyn BufRead) -> SarDocument {
    let mut input = Bounded::new(input, b'>');
    let mut data = SarData::default();
    let ended = xml::read(&mut input, &mut data);
    SarDocument::new("sadf -x", data, input.lines, ended)
}

fn read_lines(input: &mut dyn BufRead) -> SarDocument {
    let mut input = Bounded::new(input, b'\n');
    let mut lines = SadfLines::default();
    let mut text = Vec::new();
    let ended = loop {
        text.clear();
        match input.read_until(b'\n', &mut text) {
            Ok(0) => break Ok(()),
            Ok(_) => {
                lines.take(String::from_utf8_lossy(&text).trim_end());
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    let form = lines.form();
    SarDocument::new(form, lines.data, input.lines, ended)
}

/// The contents of a file of sysstat data.
#[derive(Debug)]
pub(crate) struct SarDocument {
    /// Its form: `sadf -j`.
    pub(crate) form: &'static str,
    /// How many lines it has.
    pub(crate) lines: usize,
    /// What was wrong with the file.
    pub(crate) problems: Vec<String>,
    data: SarData,
}

impl SarDocument {
    fn new(form: &'static str, data: SarData, lines: usize, ended: Result<(), String>) -> Self {
        let early = |why| format!("ends early: {why}; what was read before that is used");
        Self { form, lines, problems: ended.err().map(early).into_iter().collect(), data }
    }

    fn is_empty(&self) -> bool {
        self.data.series.is_empty()
    }

    /// Adds its snapshots.
    pub(crate) fn emit(self, input: &mut BlockReader<'_>) -> TextBlock {
        TextBlock { lines: self.lines, ..self.data.emit(input) }
    }
}

impl SarData {
    /// Adds the snapshots.
    pub(crate) fn emit(mut self, input: &mut BlockReader<'_>) -> TextBlock {
        self.series.cpus = self.series.cpus.or(self.host.cpus);
        self.host.note_facts(input.facts);
        self.series.emit(&mut |snapshot| input.add(snapshot));
        let mut block = TextBlock { what: self.series.what(), unit: "KiB", ..TextBlock::default() };
        for problem in self.series.problems() {
            block.problem(problem);
        }
        if self.series.is_empty() {
            "no table with memory figures".clone_into(&mut block.what);
            block.problem("none of these sar tables has memory figures");
        }
        block
    }
}

#[cfg(test)]
mod tests;
