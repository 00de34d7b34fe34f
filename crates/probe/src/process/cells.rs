//! Reads files of one process below `/proc/PID` into cells instead of a row: no strings, no allocation.
//!
//! The parsers are those of [`files`](super::files) and [`stat`](super::stat).

use std::fmt::Write as _;

use rustix::io::Errno;
use timeline::{EntityRow, ProcessCells};

use crate::directory::{Directory, Sink};
use crate::error::ParseError;
use crate::process::files::ProcessFiles;
use crate::process::reader_thread::TextRead;
use crate::process::stat::{self, StatIdentity};

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
}

/// The beginning of a process's paths in the catalogue and in captures.
const PROC: &str = "/proc/";

impl CellReader {
    /// Takes over `stat`, which was read elsewhere. Its name and its start, in ticks since boot, are in the identity.
    pub(crate) fn stat<'a>(
        &mut self,
        pid: u32,
        read: TextRead<'a>,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> (Option<StatIdentity<'a>>, Result<(), Failure>) {
        match self.shown(pid, "stat", read, sink) {
            Ok(text) => parse_stat(text, cells),
            Err(failure) => (None, Err(failure)),
        }
    }

    /// Reads `stat` in the process's own directory, and returns its start in ticks since boot.
    pub(crate) fn start_in(&mut self, process: &Directory) -> Option<u64> {
        process.read_record(b"stat", &mut self.text).ok()?;
        let (identity, _) = parse_stat(&self.text, &mut ProcessCells::default());
        identity.and_then(|identity| identity.start)
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
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{PROC}{pid}/{name}");
        let read = proc.read_record(&self.path.as_bytes()[PROC.len()..], &mut self.text);
        read.map_err(Failure::Unread)?;
        sink(&self.path, &self.text);
        self.parse_own(pid, name, cells)
    }

    /// Takes over another file that was read elsewhere.
    pub(crate) fn other(
        &mut self,
        pid: u32,
        name: &str,
        read: TextRead<'_>,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> Result<(), Failure> {
        let text = self.shown(pid, name, read, sink)?;
        parse(&mut self.files, &mut self.row, (pid, name), text, cells)
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
        self.parse_own(pid, name, cells)
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

    fn parse_own(&mut self, pid: u32, name: &str, cells: &mut ProcessCells) -> Result<(), Failure> {
        parse(
            &mut self.files,
            &mut self.row,
            (pid, name),
            &self.text,
            cells,
        )
    }

    /// Passes a text to the sink.
    fn shown<'a>(
        &mut self,
        pid: u32,
        name: &str,
        read: TextRead<'a>,
        sink: Sink<'_>,
    ) -> Result<&'a [u8], Failure> {
        let text = read.map_err(Failure::Unread)?;
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{PROC}{pid}/{name}");
        sink(&self.path, text);
        Ok(text)
    }
}

fn parse_stat<'a>(
    text: &'a [u8],
    cells: &mut ProcessCells,
) -> (Option<StatIdentity<'a>>, Result<(), Failure>) {
    let (identity, result) = stat::read(text, |signal, value| cells.set_raw(signal, value));
    (identity, result.map_err(Failure::Malformed))
}

fn parse(
    files: &mut ProcessFiles,
    row: &mut EntityRow,
    (pid, name): (u32, &str),
    text: &[u8],
    cells: &mut ProcessCells,
) -> Result<(), Failure> {
    row.row.clear();
    let result = files.parse(pid, name, text, row);
    for (signal, value) in row.row.iter() {
        cells.set_raw(signal, value);
    }
    result.map(|_| ()).map_err(Failure::Malformed)
}
