//! The open files of a process, as `/proc/PID/fd` has them: 2 µs each. The links wait while the process is in execve(2), so a thread
//! reads those of one process, which is left behind where it does: 50 µs.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::kernel_file::Root;
use crate::process::timed_read::read_within;
use crate::process::{SILENT_AFTER, links};
use crate::search_time::SearchTime;

/// At most this many files of one process are looked up.
pub(super) const FILES_MAX: usize = 65_536;

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile<'a> {
    /// The directory of links, `/proc/PID/fd`.
    directory: &'a Arc<OwnedFd>,
    /// The name of the link in it: the file descriptor's number.
    name: &'a CStr,
    /// What it leads to: a path, `socket:[1234]`, `anon_inode:bpf-map`.
    pub(super) target: &'a [u8],
}

impl OpenFile<'_> {
    /// The file descriptor.
    pub(super) fn number(&self) -> Option<u32> {
        self.name.to_str().ok()?.parse().ok()
    }

    /// Follows the link, which may wait as reading it may; `None` if it does.
    pub(super) fn followed<T: Send + 'static>(
        &self,
        follow: impl FnOnce(BorrowedFd<'_>, &CStr) -> T + Send + 'static,
    ) -> Option<T> {
        let (directory, name) = (Arc::clone(self.directory), self.name.to_owned());
        read_within(SILENT_AFTER, move || follow(directory.as_fd(), &name)).ok()
    }

    /// The text of `/proc/PID/fdinfo/FD`; `None` if it was closed, or this user may not read it.
    pub(super) fn info(&self, root: &Root, pid: u32) -> Option<Vec<u8>> {
        let descriptor = self.number()?;
        root.read(&format!("/proc/{pid}/fdinfo/{descriptor}")).ok()
    }

    /// The inode of a target such as `socket:[1234]`, of this kind.
    pub(super) fn inode(&self, kind: &str) -> Option<u64> {
        let rest = self.target.strip_prefix(kind.as_bytes())?;
        let number = rest.strip_prefix(b":[")?.strip_suffix(b"]")?;
        std::str::from_utf8(number).ok()?.parse().ok()
    }
}

/// Passes on the open files of a process. Returns whether these were all.
///
/// # Errors
/// If this user may not list them, or not follow them.
pub(super) fn each(
    root: &Root,
    pid: u32,
    time: SearchTime,
    each: &mut dyn FnMut(&OpenFile<'_>),
) -> Result<bool, Errno> {
    if links::is_in_exec(root, pid) {
        return Ok(false);
    }
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = root.path(&format!("/proc/{pid}/fd"));
    let directory = Arc::new(rustix::fs::open(path, flags, Mode::empty())?);
    let own = Arc::clone(&directory);
    let Ok(read) = read_within(SILENT_AFTER, move || targets(&own, time)) else {
        return Ok(false);
    };
    let (targets, are_all) = read?;
    for (name, target) in &targets {
        each(&OpenFile { directory: &directory, name, target });
    }
    Ok(are_all)
}

/// A link by its name, and what it leads to.
type Target = (CString, Vec<u8>);

/// Reads the links of a directory. Returns also whether these are all.
fn targets(directory: &OwnedFd, time: SearchTime) -> Result<(Vec<Target>, bool), Errno> {
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        if found.len() >= FILES_MAX || (found.len() % 1024 == 1023 && time.is_over()) {
            return Ok((found, false));
        }
        let entry = entry?;
        match rustix::fs::readlinkat(directory, entry.file_name(), Vec::new()) {
            Ok(target) => found.push((entry.file_name().to_owned(), target.into_bytes())),
            // Some users may list the files of a process, but not follow the links.
            Err(errno @ (Errno::ACCESS | Errno::PERM)) => return Err(errno),
            Err(_) => {} // `.`, `..`, or it was closed
        }
    }
    Ok((found, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_read_from_the_target() {
        let directory = rustix::fs::open("/", OFlags::DIRECTORY, Mode::empty());
        let directory = Arc::new(directory.unwrap());
        let inode = |target: &str| {
            let file = OpenFile { directory: &directory, name: c"7", target: target.as_bytes() };
            assert_eq!(file.number(), Some(7));
            file.inode("socket")
        };
        assert_eq!(inode("socket:[1234]"), Some(1234));
        for target in ["socket:[]", "socket:[12", "pipe:[12]", "/tmp/socket:[1]", ""] {
            assert_eq!(inode(target), None, "{target}");
        }
    }
}
