//! Files of one process below `/proc/PID`, read here or elsewhere, into cells instead of a row: no strings, no allocation.
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
    /// Takes over the text of `stat`. Its name and its start, in ticks since boot, are in the identity.
    pub(crate) fn take_stat<'a>(
        &mut self,
        pid: u32,
        read: TextRead<'a>,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> (Option<StatIdentity<'a>>, Result<(), Failure>) {
        let text = match read {
            Ok(text) => text,
            Err(errno) => return (None, Err(Failure::Unread(errno))),
        };
        self.set_path(pid, "stat");
        sink(&self.path, text);
        let (identity, result) = stat::read(text, |signal, value| cells.set_raw(signal, value));
        (identity, result.map_err(Failure::Malformed))
    }

    /// Takes over the text of another file that has a parser.
    pub(crate) fn take(
        &mut self,
        pid: u32,
        name: &str,
        read: TextRead<'_>,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> Result<(), Failure> {
        let text = read.map_err(Failure::Unread)?;
        self.set_path(pid, name);
        sink(&self.path, text);
        self.row.row.clear();
        let result = self.files.parse(pid, name, text, &mut self.row);
        for (signal, value) in self.row.row.iter() {
            cells.set_raw(signal, value);
        }
        result.map(|_| ()).map_err(Failure::Malformed)
    }

    /// Reads such a file, and takes its text over.
    pub(crate) fn file(
        &mut self,
        proc: &Directory,
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
        sink: Sink<'_>,
    ) -> Result<(), Failure> {
        self.set_path(pid, name);
        let mut text = std::mem::take(&mut self.text);
        let read = proc.read_record(&self.path.as_bytes()[PROC.len()..], &mut text);
        let result = self.take(pid, name, read.map(|()| text.as_slice()), cells, sink);
        self.text = text;
        result
    }

    /// Like [`file`](Self::file), in the process's own directory.
    pub(crate) fn file_in(
        &mut self,
        process: &Directory,
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
    ) -> Result<(), Failure> {
        let mut text = std::mem::take(&mut self.text);
        let read = process.read_record(name.as_bytes(), &mut text);
        let text_read = read.map(|()| text.as_slice());
        let result = self.take(pid, name, text_read, cells, &mut |_, _| ());
        self.text = text;
        result
    }

    /// Reads `stat` in the process's own directory, and returns its start in ticks since boot.
    pub(crate) fn start_in(&mut self, process: &Directory) -> Option<u64> {
        process.read_record(b"stat", &mut self.text).ok()?;
        stat::read(&self.text, |_, _| ()).0?.start
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

    fn set_path(&mut self, pid: u32, name: &str) {
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{PROC}{pid}/{name}");
    }
}
