//! Data in pipes by process: pages that no counter of the host has. No file says how full a pipe is, so the descriptor is duplicated
//! (`pidfd_getfd(2)`, 5.6; as `ptrace(2)` may, without stopping anything) and asked (`FIONREAD`). The kernel takes locks for both
//! that a user may hold for ever: a process during exec(2), and a writer into the pipe with data on a file system that does
//! not answer. So each pipe is asked in a thread, with a deadline.
//!
//! Cost: 50 µs for each pipe, within a time limit.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use units::Bytes;

use super::first_owners::FirstOwners;
use super::open_files::OpenFile;
use crate::process::SILENT_AFTER;
use crate::process::timed_read::read_within;

/// What was found so far, by the inode of the pipe.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    found: FirstOwners<u64>,
    /// The process of the last pipe; `None` if it cannot be opened.
    last: Option<(u32, Option<Arc<OwnedFd>>)>,
}

impl Pipes {
    /// Takes an open file of a process if it is a pipe.
    pub(super) fn take(&mut self, pid: u32, file: &OpenFile<'_>) {
        let Some(inode) = file.inode("pipe") else {
            return;
        };
        if self.found.has(&inode) || !self.found.has_room() {
            return;
        }
        let descriptor = file.number().and_then(|number| i32::try_from(number).ok());
        let unread = descriptor.and_then(|descriptor| self.unread(pid, descriptor));
        if let Some(unread) = unread {
            self.found.add(pid, inode, unread);
        }
    }

    /// What a process has open.
    pub(super) fn of(&self, pid: u32) -> Bytes {
        self.found.of(pid)
    }

    fn unread(&mut self, pid: u32, descriptor: i32) -> Option<Bytes> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != pid) {
            let process = Pid::from_raw(i32::try_from(pid).ok()?)?;
            self.last = Some((pid, pidfd_open(process, PidfdFlags::empty()).ok().map(Arc::new)));
        }
        let process = Arc::clone(self.last.as_ref()?.1.as_ref()?);
        let asked = read_within(SILENT_AFTER, move || {
            let pipe = pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).ok()?;
            rustix::io::ioctl_fionread(&pipe).ok().map(Bytes::new)
        });
        asked.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::open_files;
    use crate::kernel_file::Root;
    use crate::search_time::SearchTime;
    use std::io::Write as _;
    use std::time::Duration;

    #[test]
    fn data_that_nobody_reads_counts_once() {
        let pid = std::process::id();
        let found = || {
            let mut pipes = Pipes::default();
            let time = SearchTime::starts(Duration::from_secs(9));
            let take = &mut |file: &OpenFile<'_>| pipes.take(pid, file);
            open_files::each(&Root::default(), pid, time, take).unwrap();
            pipes.of(pid)
        };
        let (_reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[7; 50_000]).unwrap();
        let size = found();
        // Kernels before 5.6 refuse, and so may a filter of system calls. Pipes of other tests have less.
        if size > Bytes::ZERO {
            assert!((50_000..100_000).contains(&size.get()), "{size}");
        }
    }
}
