//! What a file is of which only device and inode are known: its name and its size, while it is there.
//!
//! By open_by_handle_at(2), with the form of handle that ext2, ext3 and ext4 have (inode and generation, of which zero is any:
//! `ext4_nfs_get_inode`); other file systems refuse it, and then the name is one that was seen in an open file, or none. Needs
//! `CAP_DAC_READ_SEARCH`. Nothing is opened for reading: the descriptor is one of `O_PATH`.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Mode, OFlags, open};

use crate::touches::FileNumber;

/// `FILEID_INO32_GEN` of `include/linux/exportfs.h`.
const INODE_AND_GENERATION: c_int = 1;

/// struct file_handle with its eight bytes.
#[repr(C)]
struct InodeHandle {
    handle_bytes: u32,
    handle_type: c_int,
    inode: u32,
    generation: u32,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InodeFile {
    pub(super) name: Option<String>,
    pub(super) size: u64,
    pub(super) is_regular: bool,
}

/// Open directories, one for each file system.
#[derive(Debug, Default)]
pub(super) struct FileLookup {
    file_systems: HashMap<u64, OwnedFd>,
}

/// The number of a device as trace points print it.
pub(super) const fn device(major: u64, minor: u64) -> u64 {
    major << 20 | minor
}

/// The number of the device of a file.
pub(super) fn device_of(st_dev: u64) -> u64 {
    device(u64::from(rustix::fs::major(st_dev)), u64::from(rustix::fs::minor(st_dev)))
}

impl FileLookup {
    /// Knows the file systems of the usual directories.
    pub(super) fn new() -> Self {
        let mut lookup = Self::default();
        let here = std::env::current_dir().unwrap_or_default();
        let home = std::env::var_os("HOME").unwrap_or_default();
        for path in ["/", "/usr", "/var", "/tmp", "/home", "/srv", "/opt", "/data"] {
            lookup.learn(path.as_ref());
        }
        lookup.learn(&here);
        lookup.learn(home.as_ref());
        lookup
    }

    /// Knows the file system of this directory from now on.
    pub(super) fn learn(&mut self, directory: &std::path::Path) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let Ok(opened) = open(directory, flags, Mode::empty()) else { return };
        if let Ok(stat) = rustix::fs::fstat(&opened) {
            self.file_systems.entry(device_of(stat.st_dev)).or_insert(opened);
        }
    }

    /// Finds a file. `None` where its file system is not known, or refuses.
    pub(super) fn find(&self, (device, inode): FileNumber) -> Option<InodeFile> {
        let file_system = self.file_systems.get(&device)?;
        let mut handle = InodeHandle {
            handle_bytes: 8,
            handle_type: INODE_AND_GENERATION,
            inode: u32::try_from(inode).ok()?,
            generation: 0,
        };
        // SAFETY: the structure is laid out as struct file_handle followed by as many bytes as it names; the kernel only reads
        // it and keeps no pointer.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                file_system.as_fd().as_raw_fd(),
                &raw mut handle,
                libc::O_PATH | libc::O_CLOEXEC,
            )
        };
        let opened = c_int::try_from(opened).ok().filter(|opened| *opened >= 0)?;
        // SAFETY: the call returned a new descriptor, which nothing else owns.
        let opened = unsafe { OwnedFd::from_raw_fd(opened) };
        let path = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let about = File::from(opened).metadata().ok()?;
        // An alias without a name is shown as the root of its file system.
        let name = path.ok().map(|path| path.to_string_lossy().into_owned());
        Some(InodeFile {
            name: name.filter(|name| name.len() > 1 && !name.ends_with(" (deleted)")),
            size: about.size(),
            is_regular: about.is_file(),
        })
    }
}
