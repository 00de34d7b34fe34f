//! A file that a process maps, opened from outside: `/proc/PID/map_files/START-END`, or by its path.
//!
//! `map_files` opens the very file, also one that was removed or lies in a container; it needs CAP_CHECKPOINT_RESTORE
//! (5.9) or CAP_SYS_ADMIN. Without these the path is tried as this process sees it and below `/proc/PID/root`, and
//! counts only if the inode is the mapping's. A container's links cannot lead out of it (`RESOLVE_IN_ROOT`, 5.6). Only
//! regular files are opened: a device or a pipe is looked up without opening it (`O_PATH`).
//!
//! How much of the file is in the page cache: `cachestat(2)`, 6.5; the kernel may restrict it to files that the caller
//! may write. `mincore(2)` needs a mapping, and has had the same restriction since 5.2. Cost: 20 µs to open, 1 µs for
//! `cachestat` of a small file, 3 ms for a GiB of cached pages.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, pread};
use units::{Bytes, PageSize, Pages};

use crate::error::ReadError;
use crate::kernel_file::{Root, retrying};
use crate::process::maps::Mapping;

/// An open file that a process maps.
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    size: Bytes,
}

/// How much of a file is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedFile {
    /// Pages in the cache.
    pub cached: Bytes,
    /// Of these, changed and not yet written.
    pub dirty: Bytes,
    /// Pages evicted from the cache that it remembers.
    pub evicted: Bytes,
}

impl MappedFile {
    /// Opens the file behind a mapping of a process.
    ///
    /// # Errors
    /// [`ReadError`] if no way to it is permitted, or if it is no regular file.
    pub fn open(root: &Root, pid: u32, mapping: &Mapping) -> Result<Self, ReadError> {
        let range = &mapping.range;
        let link = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
        let fail = |errno: Errno| ReadError {
            path: String::from_utf8_lossy(&mapping.name).into_owned(),
            source: errno.into(),
        };
        let by_link = Self::regular(lookup(&root.path(&link)), None);
        let refused = match by_link {
            Ok(file) => return Ok(file),
            Err(errno) => errno,
        };
        let Some(path) = mapping.path().filter(|_| !mapping.is_deleted()) else {
            return Err(fail(refused));
        };
        let inode = Some(mapping.inode);
        let own = root.path(&String::from_utf8_lossy(path));
        Self::regular(lookup(&own), inode)
            .or_else(|_| Self::regular(lookup_in(root, pid, path), inode))
            .map_err(fail)
    }

    /// Opens a looked-up file for reading if it is a regular one with this inode.
    fn regular(found: Result<OwnedFd, Errno>, inode: Option<u64>) -> Result<Self, Errno> {
        let found = found?;
        let stat = rustix::fs::fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        if inode.is_some_and(|inode| inode != stat.st_ino) {
            return Err(Errno::STALE);
        }
        let again = format!("/proc/self/fd/{}", found.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::open(again, flags, Mode::empty())?;
        Ok(Self {
            file: File::from(opened),
            size: Bytes::new(u64::try_from(stat.st_size).unwrap_or(0)),
        })
    }

    /// Its size.
    pub const fn size(&self) -> Bytes {
        self.size
    }

    /// Reads from an offset until `buffer` is full or the file ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            match retrying(|| pread(&self.file, &mut buffer[filled..], at))? {
                0 => break,
                got => filled += got,
            }
        }
        Ok(filled)
    }

    /// How much of the whole file is in the page cache.
    ///
    /// # Errors
    /// `ENOSYS` before Linux 6.5, `EPERM` if the kernel does not permit it, `EOPNOTSUPP` for hugetlbfs.
    pub fn cached(&self, page: PageSize) -> Result<CachedFile, Errno> {
        let stat = cachestat(self.file.as_fd())?;
        let bytes = |pages| Pages::new(pages).to_bytes(page);
        Ok(CachedFile {
            cached: bytes(stat.cached),
            dirty: bytes(stat.dirty),
            evicted: bytes(stat.evicted),
        })
    }
}

/// Finds a file without opening it: opening a pipe or a device may wait, or do something.
fn lookup(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Finds a path below a process's root directory; links stay below it.
fn lookup_in(root: &Root, pid: u32, path: &[u8]) -> Result<OwnedFd, Errno> {
    let top = lookup(&root.path(&format!("/proc/{pid}/root")))?;
    rustix::fs::openat2(
        top,
        OsStr::from_bytes(path),
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
    )
}

/// `struct cachestat` of `include/uapi/linux/mman.h`, in pages.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The number of `cachestat` on every architecture but alpha.
const CACHESTAT: libc::c_long = 451;

#[allow(unsafe_code)] // the one call of cachestat
fn cachestat(file: BorrowedFd<'_>) -> Result<CacheStat, Errno> {
    // `struct cachestat_range`: offset 0 and length 0 are the whole file.
    let range = [0_u64; 2];
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to live values of the sizes and layouts that the kernel reads and writes: two and five
    // 64-bit words; the descriptor is open during the call. A kernel without the call returns ENOSYS.
    let got = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            &raw mut stat,
            0_u32,
        )
    };
    if got == 0 {
        return Ok(stat);
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::maps::Mappings;
    use std::os::unix::fs::MetadataExt as _;

    fn of_path(path: &Path) -> Mapping {
        Mapping {
            range: 4096..8192,
            inode: std::fs::metadata(path).unwrap().ino(),
            name: path.as_os_str().as_bytes().to_vec(),
            ..Mapping::default()
        }
    }

    fn open(mapping: &Mapping) -> Result<MappedFile, ReadError> {
        MappedFile::open(&Root::default(), std::process::id(), mapping)
    }

    #[test]
    fn the_own_program_is_opened_and_is_in_the_page_cache() {
        let own = Mappings::read(&Root::default(), std::process::id()).unwrap();
        let program = own.all.iter().find(|one| one.path().is_some()).unwrap();
        let file = open(program).unwrap();
        let mut start = [0; 4];
        assert_eq!(file.read_at(0, &mut start), Ok(4));
        assert_eq!(&start, b"\x7fELF");
        match file.cached(PageSize::USUAL) {
            Ok(cache) => {
                assert!(cache.cached > Bytes::ZERO);
                assert!(cache.cached.get() <= file.size().get().next_multiple_of(1 << 21));
            }
            Err(errno) => assert!([Errno::NOSYS, Errno::PERM].contains(&errno), "{errno}"),
        }
    }

    #[test]
    fn a_path_counts_only_with_the_mappings_inode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, "12345").unwrap();
        let mut mapping = of_path(&path);
        let file = open(&mapping).unwrap();
        let mut buffer = [0; 9];
        assert_eq!(
            (file.size(), file.read_at(3, &mut buffer)),
            (Bytes::new(5), Ok(2))
        );
        mapping.inode += 1;
        assert!(open(&mapping).is_err());
    }

    #[test]
    fn what_is_no_regular_file_is_never_opened() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for path in [pipe.as_path(), Path::new("/dev/null"), directory.path()] {
            assert!(open(&of_path(path)).is_err(), "{path:?}");
        }
    }
}
