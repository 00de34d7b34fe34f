//! The open files of a process, as `/proc/PID/fd` has them: 2 µs each.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::searched::SearchTime;
use crate::kernel_file::Root;

/// At most this many files of one process are looked up.
pub(super) const FILES_MAX: usize = 65_536;

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile<'a> {
    /// The directory of links, `/proc/PID/fd`.
    pub(super) directory: BorrowedFd<'a>,
    /// The name of the link in it: the file descriptor's number.
    pub(super) name: &'a CStr,
    /// What it leads to: a path, `socket:[1234]`, `anon_inode:bpf-map`.
    pub(super) target: &'a [u8],
}

impl OpenFile<'_> {
    /// The file descriptor.
    pub(super) fn number(&self) -> Option<u32> {
        self.name.to_str().ok()?.parse().ok()
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

/// A field of `/proc/PID/fdinfo/FD`, which has one in each line: `map_id:\t31`.
pub(super) fn field<'a>(fdinfo: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    Some(value.trim())
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
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = root.path(&format!("/proc/{pid}/fd"));
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(&directory, &mut buffer);
    let mut link = Vec::new();
    let mut files = 0;
    while let Some(entry) = entries.next() {
        files += 1;
        if files > FILES_MAX || (files % 1024 == 0 && time.is_over()) {
            return Ok(false);
        }
        let entry = entry?;
        link = match rustix::fs::readlinkat(&directory, entry.file_name(), link) {
            Ok(target) => target.into_bytes(),
            // Some users may list the files of a process, but not follow the links.
            Err(errno @ (Errno::ACCESS | Errno::PERM)) => return Err(errno),
            Err(_) => Vec::new(), // `.`, `..`, or it was closed
        };
        each(&OpenFile {
            directory: directory.as_fd(),
            name: entry.file_name(),
            target: &link,
        });
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_read_from_the_target() {
        let directory = rustix::fs::open("/", OFlags::DIRECTORY, Mode::empty()).unwrap();
        let inode = |target: &str| {
            let file = OpenFile {
                directory: directory.as_fd(),
                name: c"7",
                target: target.as_bytes(),
            };
            assert_eq!(file.number(), Some(7));
            file.inode("socket")
        };
        assert_eq!(inode("socket:[1234]"), Some(1234));
        for target in [
            "socket:[]",
            "socket:[12",
            "pipe:[12]",
            "/tmp/socket:[1]",
            "",
        ] {
            assert_eq!(inode(target), None, "{target}");
        }
    }
}
