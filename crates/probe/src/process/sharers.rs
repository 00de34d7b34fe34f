//! Which other processes map the same files: `/proc/*/maps`, searched for device and inode.
//!
//! A mapped file is one object for all processes that map it, whatever its path. Cost: 1 µs for each line of each
//! process and 50 µs for a thread, so the search is bounded in processes and in time. Processes of other users are skipped
//! without the right to trace them, and so are those that do not answer.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use timeline::Absence;

use crate::error::ReadError;
use crate::kernel_file::Root;
use crate::process::{SILENT_AFTER, maps};

/// A file by its device and inode, as `maps` shows them.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// Major and minor number.
    pub device: (u32, u32),
    pub inode: u64,
}

/// How far the search for other processes goes.
#[derive(Debug, Clone, Copy)]
pub struct SharerBudget {
    /// Processes that are read at most.
    pub processes_max: usize,
    /// Time after which no further process is read.
    pub time_max: Duration,
}

impl Default for SharerBudget {
    fn default() -> Self {
        Self { processes_max: 2_000, time_max: Duration::from_millis(500) }
    }
}

/// The processes that map one of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileUsers {
    /// How many other processes map it.
    pub count: usize,
    /// The first of them.
    pub first: Vec<u32>,
}

/// What the search found.
#[derive(Debug, Clone, Default)]
pub struct Sharers {
    /// For each file of the request, in its order.
    pub files: Vec<FileUsers>,
    /// Processes that were read.
    pub searched: usize,
    /// Processes that may not be read, did not answer or are beyond the budget: counts are lower bounds if there are any.
    pub unread: usize,
}

/// The first users of a file are kept up to this number.
const USERS_MAX: usize = 3;

impl Sharers {
    /// Searches other processes than `pid` for mappings of the files.
    pub fn search(root: &Root, pid: u32, files: &[FileKey], budget: SharerBudget) -> Self {
        let mut found = Self { files: vec![FileUsers::default(); files.len()], ..Self::default() };
        let needles: Vec<Vec<u8>> = files.iter().map(needle).collect();
        let Ok(pids) = root.numbers("/proc") else {
            return found;
        };
        // The lint that forbids this call points the pure crates to this crate.
        #[allow(clippy::disallowed_methods)]
        let start = Instant::now();
        for other in pids.filter(|other| *other != pid) {
            if found.searched >= budget.processes_max || start.elapsed() > budget.time_max {
                found.unread += 1;
                continue;
            }
            let mut has = vec![false; files.len()];
            let read = maps::each_line_within(SILENT_AFTER, root, other, "maps", &mut |_, line| {
                note(line, files, &needles, &mut has);
            });
            match read {
                Ok(()) => found.searched += 1,
                Err(error) if is_gone(&error) => {}
                Err(_) => found.unread += 1,
            }
            for (users, _) in found.files.iter_mut().zip(has).filter(|(_, has)| *has) {
                users.count += 1;
                if users.first.len() < USERS_MAX {
                    users.first.push(other);
                }
            }
        }
        found
    }
}

/// Whether the process ended before it was read.
fn is_gone(error: &ReadError) -> bool {
    const ESRCH: i32 = Errno::SRCH.raw_os_error();
    error.absence() == Absence::NotFound || error.source.raw_os_error() == Some(ESRCH)
}

/// How `maps` writes a file. A line with it in its name only is refused by the parser.
fn needle(file: &FileKey) -> Vec<u8> {
    let (major, minor) = file.device;
    format!(" {major:02x}:{minor:02x} {} ", file.inode).into_bytes()
}

/// Notes the files that a line maps.
fn note(line: &[u8], files: &[FileKey], needles: &[Vec<u8>], has: &mut [bool]) {
    for ((file, needle), has) in files.iter().zip(needles).zip(has) {
        if *has || memchr::memmem::find(line, needle).is_none() {
            continue;
        }
        let mapping = maps::parse_line(line);
        *has = mapping.is_some_and(|one| one.device == file.device && one.inode == file.inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: FileKey = FileKey { device: (0xfe, 0), inode: 18 };
    const LINE: &str = "7f00-7f10 r-xp 00000000 fe:00 18    /usr/lib/libc.so.6\n";
    const FORGED: &str = "7f00-7f10 r-xp 00000000 fe:00 19    /tmp/ fe:00 18 /x\n";

    fn processes(texts: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (pid, text) in texts {
            let process = directory.path().join("proc").join(pid);
            std::fs::create_dir_all(&process).unwrap();
            std::fs::write(process.join("maps"), text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    #[test]
    fn others_that_map_the_file_are_counted_once() {
        let twice = LINE.repeat(2);
        let (_directory, root) = processes(&[
            ("1", LINE),
            ("2", &twice),
            ("3", FORGED),
            ("4", ""),
            ("5", LINE),
            ("6", LINE),
            ("7", LINE),
            ("self", LINE),
        ]);
        let found = Sharers::search(&root, 1, &[SHARED], SharerBudget::default());
        assert_eq!((found.searched, found.unread), (6, 0));
        assert_eq!(found.files[0].count, 4);
        assert_eq!(found.files[0].first.len(), 3);
        assert!(!found.files[0].first.contains(&1) && !found.files[0].first.contains(&3));
    }

    #[test]
    fn a_process_that_does_not_answer_is_left_out_alone() {
        let (directory, root) = processes(&[("1", LINE), ("2", LINE), ("4", LINE), ("5", LINE)]);
        let silent = directory.path().join("proc/3");
        std::fs::create_dir_all(&silent).unwrap();
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, silent.join("maps"), fifo, mode, 0).unwrap();
        let budget = SharerBudget { time_max: Duration::from_secs(60), ..SharerBudget::default() };
        let found = Sharers::search(&root, 1, &[SHARED], budget);
        assert_eq!((found.searched, found.unread), (3, 1));
        assert_eq!(found.files[0].count, 3);
    }

    #[test]
    fn the_search_ends_with_its_budget() {
        let (_directory, root) = processes(&[("1", LINE), ("2", LINE), ("3", LINE), ("4", LINE)]);
        let budget = SharerBudget { processes_max: 2, ..SharerBudget::default() };
        let found = Sharers::search(&root, 1, &[SHARED], budget);
        assert_eq!((found.searched, found.unread), (2, 1));
        assert_eq!(found.files[0].count, 2);
    }
}
