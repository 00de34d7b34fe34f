//! Details of single processes; reading them may wait for the process's own locks.
//!
//! `smaps_rollup` walks all page tables of its process under the mmap lock, and waits while another task has that lock:
//! a recorder reads it on a thread that may wait, for few processes, and within a budget that it keeps by the
//! [`PssCost`] of each read. This module does not decide which process to read, and never reads another process than
//! the requested one.

use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use timeline::ProcessCells;

use crate::directory::Directory;
use crate::error::ParseError;
use crate::kernel_file::Root;
use crate::process::cells::{CellReader, Failure};

/// The cost of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PssCost {
    /// CPU time of this thread, nearly all of it in the kernel.
    pub cpu: Duration,
    /// Elapsed time, including waits for locks.
    pub wall: Duration,
}

/// Why there are no details of a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetailsError {
    /// It has ended, or another process has its PID now.
    #[error("process {0} has ended")]
    Ended(u32),
    /// This user may not read them.
    #[error("the details of process {0} are for its owner and root")]
    Denied(u32),
    /// The file could not be read.
    #[error("cannot read the details of process {0}: {1}")]
    Failed(u32, Errno),
    /// A file was malformed; its other lines are read.
    #[error(transparent)]
    Malformed(#[from] ParseError),
}

/// Reads details of one process at a time; reuses its buffers.
#[derive(Debug)]
pub struct Details {
    proc: PathBuf,
    files: CellReader,
}

impl Details {
    /// Creates a reader for processes below `root`.
    pub fn new(root: &Root) -> Self {
        Self { proc: root.path("/proc"), files: CellReader::default() }
    }

    /// Reads `smaps_rollup` and `status` of the process with this PID and start (clock ticks since boot) into `cells`,
    /// which keep their other readings. A kernel thread has neither file: its cells are unchanged.
    ///
    /// # Errors
    /// [`DetailsError`]; `cells` are then unchanged, except that a malformed file's good lines are set.
    pub fn read(
        &mut self,
        pid: u32,
        start_ticks: u64,
        cells: &mut ProcessCells,
    ) -> Result<PssCost, DetailsError> {
        let before = PssCost::until_now();
        let proc =
            Directory::open(&self.proc).map_err(|errno| DetailsError::from_errno(pid, errno))?;
        // Files below the process's own directory belong to that process or to none: another process may get the PID,
        // but not the open directory.
        let process = proc.below(pid).map_err(|errno| DetailsError::from_errno(pid, errno))?;
        let mut found = *cells;
        if self.files.start_in(&process) != Some(start_ticks) {
            return Err(DetailsError::Ended(pid));
        }
        let mut malformed = None;
        for name in ["smaps_rollup", "status"] {
            match self.files.file_in(&process, pid, name, &mut found) {
                Ok(()) => {}
                Err(Failure::Unread(errno)) => return Err(DetailsError::from_errno(pid, errno)),
                Err(Failure::Malformed(error)) => malformed = Some(error),
            }
        }
        *cells = found;
        match malformed {
            Some(error) => Err(error.into()),
            None => Ok(PssCost::until_now().since(before)),
        }
    }
}

impl DetailsError {
    fn from_errno(pid: u32, errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::SRCH => Self::Ended(pid),
            Errno::ACCESS | Errno::PERM => Self::Denied(pid),
            errno => Self::Failed(pid, errno),
        }
    }
}

impl PssCost {
    /// Returns the time used so far by this thread and on the clock.
    fn until_now() -> Self {
        let now = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
        Self { cpu: now(ClockId::ThreadCPUTime), wall: now(ClockId::Monotonic) }
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            wall: self.wall.saturating_sub(before.wall),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{PROC_PSS, PROC_RSS_ANON, PROC_THREADS};
    use units::{Bytes, Count};

    fn saved(start: u64, rollup: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("proc/7");
        std::fs::create_dir_all(&at).unwrap();
        let stat = format!("7 (a b) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 4096 1 0");
        std::fs::write(at.join("stat"), stat).unwrap();
        std::fs::write(at.join("status"), "Name:\ta b\nRssAnon:\t 9 kB\n").unwrap();
        std::fs::write(at.join("smaps_rollup"), rollup).unwrap();
        root
    }

    #[test]
    fn details_are_added_to_what_the_cells_hold() {
        let root = saved(70, "0-1 ---p 0 0:0 0 [rollup]\nPss: 7 kB\n");
        let mut cells = ProcessCells::default();
        cells.set(PROC_THREADS, Count::new(3));
        Details::new(&Root::at(root.path())).read(7, 70, &mut cells).unwrap();
        assert_eq!(cells.get(PROC_PSS), Some(Bytes::from_kib(7)));
        assert_eq!(cells.get(PROC_RSS_ANON), Some(Bytes::from_kib(9)));
        assert_eq!(cells.get(PROC_THREADS), Some(Count::new(3)));
    }

    #[test]
    fn another_process_of_the_same_number_is_left_alone() {
        let root = saved(71, "0-1 ---p 0 0:0 0 [rollup]\nPss: 7 kB\n");
        let mut details = Details::new(&Root::at(root.path()));
        let mut cells = ProcessCells::default();
        for pid in [7, 8] {
            let error = details.read(pid, 70, &mut cells).unwrap_err();
            assert_eq!(error, DetailsError::Ended(pid));
        }
        assert_eq!(cells, ProcessCells::default());
    }

    #[test]
    fn a_malformed_line_costs_itself_only() {
        let root = saved(70, "0-1 ---p 0 0:0 0 [rollup]\nPss: x\nSwapPss: 1 kB\n");
        let mut cells = ProcessCells::default();
        let error = Details::new(&Root::at(root.path())).read(7, 70, &mut cells);
        assert!(matches!(error, Err(DetailsError::Malformed(_))));
        assert_eq!(cells.get(PROC_PSS), None);
        assert_eq!(cells.get(PROC_RSS_ANON), Some(Bytes::from_kib(9)));
    }

    #[test]
    fn this_process_has_a_share_and_it_costs_time() {
        let own = std::process::id();
        let stat = std::fs::read(format!("/proc/{own}/stat")).unwrap();
        let (identity, _) = crate::process::stat::read(&stat, |_, _| ());
        let start = identity.unwrap().start.unwrap();
        let mut cells = ProcessCells::default();
        let cost = Details::new(&Root::default()).read(own, start, &mut cells).unwrap();
        assert!(cells.get(PROC_PSS).unwrap() > Bytes::ZERO);
        assert!(cost.wall > Duration::ZERO && cost.cpu > Duration::ZERO);
    }
}
