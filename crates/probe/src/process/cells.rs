//! Reads files of one process below `/proc/PID` into cells instead of a row: no strings, no allocation.
//!
//! The parsers are those of [`files`](super::files) and [`stat`](super::stat).

use std::fmt::Write as _;
use std::path::PathBuf;

use rustix::io::Errno;
use timeline::{EntityRow, ProcessCells};
use units::Span;

use crate::directory::{Directory, Sink};
use crate::error::ParseError;
use crate::process::files::ProcessFiles;
use crate::process::stat;
use crate::process::status::StatusFacts;
use crate::process::timed_read::{NoAnswer, read_within};

/// Why some readings of a file are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The file could not be read: nothing was set.
    Unread(Errno),
    /// A part of it was malformed: the rest is set.
    Malformed(ParseError),
}

/// Reads files of processes into buffers that it reuses.
#[derive(Debug, Default)]
pub(crate) struct CellReader {
    files: ProcessFiles,
    /// The row into which files with named fields are parsed.
    row: EntityRow,
    path: String,
    text: Vec<u8>,
    /// Where in `text` the name of the last `stat` is.
    name: (usize, usize),
}

/// The beginning of a process's paths in the catalogue and in captures.
const PROC: &str = "/proc/";

impl CellReader {
    /// Reads `stat` and returns the process's start in ticks since boot, which with the PID is its identity. Its name
    /// is then in [`name`](Self::name).
    pub(crate) fn stat(
        &mut self,
        proc: &Directory,
        pid: u32,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> (Option<u64>, Result<(), Failure>) {
        self.name = (0, 0);
        if let Err(errno) = self.read(proc, pid, "stat", sink) {
            return (None, Err(Failure::Unread(errno)));
        }
        self.parse_stat(cells)
    }

    /// Like [`stat`](Self::stat), in the process's own directory.
    pub(crate) fn stat_in(
        &mut self,
        process: &Directory,
        cells: &mut ProcessCells,
    ) -> (Option<u64>, Result<(), Failure>) {
        self.name = (0, 0);
        if let Err(errno) = process.read_record(b"stat", &mut self.text) {
            return (None, Err(Failure::Unread(errno)));
        }
        self.parse_stat(cells)
    }

    fn parse_stat(&mut self, cells: &mut ProcessCells) -> (Option<u64>, Result<(), Failure>) {
        let (identity, result) =
            stat::read(&self.text, |signal, value| cells.set_raw(signal, value));
        let result = result.map_err(Failure::Malformed);
        let Some(identity) = identity else {
            return (None, result);
        };
        let before = identity.name.as_ptr().addr() - self.text.as_ptr().addr();
        self.name = (before, before + identity.name.len());
        (identity.start, result)
    }

    /// Returns the name in the last [`stat`](Self::stat).
    pub(crate) fn name(&self) -> &[u8] {
        self.text.get(self.name.0..self.name.1).unwrap_or_default()
    }

    /// Reads another file of a process that has a parser.
    pub(crate) fn file(
        &mut self,
        proc: &Directory,
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> Result<(), Failure> {
        self.read(proc, pid, name, sink).map_err(Failure::Unread)?;
        self.parse(pid, name, cells)
    }

    /// Whether the process of the last `status` is root's.
    pub(crate) fn is_of_root(&self) -> bool {
        StatusFacts::parse(&self.text).uid == Some(0)
    }

    /// Like [`file`](Self::file), for a file for which the reader may wait for the process's locks: at most this long.
    pub(crate) fn file_within(
        &mut self,
        (process, most): (PathBuf, Span),
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> Result<Result<(), Failure>, NoAnswer> {
        let (file, mut text) = (name.to_owned(), std::mem::take(&mut self.text));
        let (read, text) = read_within(most, move || {
            let process = Directory::open(&process);
            let read = process.and_then(|process| process.read_record(file.as_bytes(), &mut text));
            (read, text)
        })?;
        self.text = text;
        if let Err(errno) = read {
            return Ok(Err(Failure::Unread(errno)));
        }
        sink(&format!("{PROC}{pid}/{name}"), &self.text);
        Ok(self.parse(pid, name, cells))
    }

    /// Like [`file`](Self::file), in the process's own directory.
    pub(crate) fn file_in(
        &mut self,
        process: &Directory,
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
    ) -> Result<(), Failure> {
        let read = process.read_record(name.as_bytes(), &mut self.text);
        read.map_err(Failure::Unread)?;
        self.parse(pid, name, cells)
    }

    fn parse(&mut self, pid: u32, name: &str, cells: &mut ProcessCells) -> Result<(), Failure> {
        self.row.row.clear();
        let result = self.files.parse(pid, name, &self.text, &mut self.row);
        for (signal, value) in self.row.row.iter() {
            cells.set_raw(signal, value);
        }
        result.map(|_| ()).map_err(Failure::Malformed)
    }

    /// Reads the service of a process from its `cgroup`; leaves it unchanged if that cannot be read.
    pub(crate) fn service(
        &mut self,
        proc: &Directory,
        pid: u32,
        service: &mut String,
        sink: Sink<'_>,
    ) -> Result<(), Failure> {
        self.file(proc, pid, "cgroup", &mut ProcessCells::default(), sink)?;
        service.clone_from(&self.row.group);
        Ok(())
    }

    fn read(
        &mut self,
        proc: &Directory,
        pid: u32,
        name: &str,
        sink: Sink<'_>,
    ) -> Result<(), Errno> {
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{PROC}{pid}/{name}");
        proc.read_record(&self.path.as_bytes()[PROC.len()..], &mut self.text)?;
        sink(&self.path, &self.text);
        Ok(())
    }
}
