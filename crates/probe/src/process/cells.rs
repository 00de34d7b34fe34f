//! Files of one process below `/proc/PID`, read into cells instead of a row: no strings, no allocation.
//!
//! The parsers are those of [`files`](super::files) and [`stat`](super::stat).

use std::io::Write as _;

use rustix::io::Errno;
use timeline::{EntityRow, ProcessCells};

use crate::directory::Directory;
use crate::error::ParseError;
use crate::process::files::ProcessFiles;
use crate::process::stat;

/// Why a file gave not all its readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It could not be read: nothing was set.
    Unread(Errno),
    /// A part of it was wrong: the rest is set.
    Malformed(ParseError),
}

/// Reads files of processes; keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct CellReader {
    files: ProcessFiles,
    /// Where the parsers of files with names put their readings.
    row: EntityRow,
    path: Vec<u8>,
    text: Vec<u8>,
    /// Where in `text` the name of the last `stat` stands.
    name: (usize, usize),
}

impl CellReader {
    /// Reads `stat`, which has the process's identity: its start, in ticks since boot. Its name is then in
    /// [`name`](Self::name).
    pub(crate) fn stat(
        &mut self,
        proc: &Directory,
        pid: u32,
        cells: &mut ProcessCells,
    ) -> (Option<u64>, Result<(), Failure>) {
        self.name_path(pid, "stat");
        self.stat_at(proc, cells)
    }

    /// The same in the process's own directory.
    pub(crate) fn stat_in(
        &mut self,
        process: &Directory,
        cells: &mut ProcessCells,
    ) -> (Option<u64>, Result<(), Failure>) {
        self.path.clear();
        self.path.extend_from_slice(b"stat");
        self.stat_at(process, cells)
    }

    fn stat_at(
        &mut self,
        directory: &Directory,
        cells: &mut ProcessCells,
    ) -> (Option<u64>, Result<(), Failure>) {
        self.name = (0, 0);
        if let Err(errno) = directory.read_record(&self.path, &mut self.text) {
            return (None, Err(Failure::Unread(errno)));
        }
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

    /// The name that the last [`stat`](Self::stat) had.
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
    ) -> Result<(), Failure> {
        self.name_path(pid, name);
        self.file_at(proc, pid, name, cells)
    }

    /// The same in the process's own directory.
    pub(crate) fn file_in(
        &mut self,
        process: &Directory,
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
    ) -> Result<(), Failure> {
        self.path.clear();
        self.path.extend_from_slice(name.as_bytes());
        self.file_at(process, pid, name, cells)
    }

    fn file_at(
        &mut self,
        directory: &Directory,
        pid: u32,
        name: &str,
        cells: &mut ProcessCells,
    ) -> Result<(), Failure> {
        let read = directory.read_record(&self.path, &mut self.text);
        read.map_err(Failure::Unread)?;
        self.row.row.clear();
        let result = self.files.parse(pid, name, &self.text, &mut self.row);
        for (signal, value) in self.row.row.iter() {
            cells.set_raw(signal, value);
        }
        result.map(|_| ()).map_err(Failure::Malformed)
    }

    fn name_path(&mut self, pid: u32, name: &str) {
        self.path.clear();
        // Writing to a vector cannot fail.
        let _ = write!(self.path, "{pid}/{name}");
    }
}
