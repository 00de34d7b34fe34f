//! A file that a process maps, opened from outside: `/proc/PID/map_files/START-END`, or by its path.
//!
//! `map_files` opens the very file, also one that was removed or lies in a container; it needs CAP_CHECKPOINT_RESTORE
//! (5.9) or CAP_SYS_ADMIN. Only without these the path is tried as this process sees it and below `/proc/PID/root`, and
//! counts only if the inode is the mapping's; links are not followed. Only regular files are
//! opened, and none on a file system that may wait for a program or another machine.
//! Cost: 20 µs a file, and the mount tables of this and of the other process once.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use checked_open::{LastLink, look_up, reopen};
use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::{Errno, pread};
use units::{Bytes, PageSize};

use crate::error::ReadError;
use crate::file_cache::{self, FileCacheUse};
use crate::file_places::MountPlaces;
use crate::file_stat;
use crate::kernel_file::{Root, retrying};
use crate::path_walk::look_up_below;
use crate::process::links;
use crate::process::maps::Mapping;
use crate::search_time::SearchTime;

/// The longest time that the page cache of one file is counted.
const CACHE_TIME_MAX: Duration = Duration::from_millis(100);

/// Opens the files that a process maps.
#[derive(Debug)]
pub struct MapFiles<'a> {
    root: &'a Root,
    pid: u32,
    mounts: MountPlaces,
}

/// An open file that a process maps.
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    size: Bytes,
}

impl<'a> MapFiles<'a> {
    /// The files of a process.
    pub fn of(root: &'a Root, pid: u32) -> Self {
        let mut mounts = MountPlaces::own(root);
        mounts.add_those_of(root, pid);
        Self { root, pid, mounts }
    }

    /// Opens the file behind a mapping.
    ///
    /// # Errors
    /// [`ReadError`] if no way to it is permitted, if it is no regular file, or if its file system may not answer.
    pub fn open(&self, mapping: &Mapping) -> Result<MappedFile, ReadError> {
        let found = self.find(mapping).and_then(|found| MappedFile::regular(&found));
        found.map_err(|errno| ReadError {
            path: String::from_utf8_lossy(&mapping.name).into_owned(),
            source: errno.into(),
        })
    }

    /// Finds the file behind a mapping without opening it.
    fn find(&self, mapping: &Mapping) -> Result<OwnedFd, Errno> {
        match find_by_link(self.root, self.pid, mapping).and_then(|found| self.local(found)) {
            Err(Errno::PERM | Errno::ACCESS) if !mapping.is_deleted() => {
                let may_pass = |found: &OwnedFd| self.mounts.is_local(found);
                let found = find_by_path(self.root, self.pid, mapping, &may_pass);
                found.map_err(|_| Errno::PERM)
            }
            found => found,
        }
    }

    /// The file, if its file system answers: asking one for attributes may wait for ever.
    fn local(&self, found: OwnedFd) -> Result<OwnedFd, Errno> {
        let is_local = self.mounts.is_local(&found);
        is_local.then_some(found).ok_or(Errno::REMOTE)
    }
}

impl MappedFile {
    /// Opens a looked-up file for reading if it is a regular one.
    fn regular(found: &OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        Ok(Self {
            file: File::from(reopen(found)?),
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

    /// How much of it is in the page cache.
    ///
    /// # Errors
    /// `EPERM` if the kernel does not permit it, `EOPNOTSUPP` for hugetlbfs, `ETIMEDOUT` if it takes too long.
    pub fn cached(&self, page: PageSize) -> Result<FileCacheUse, Errno> {
        let found = file_cache::of(self.file.as_fd(), page, SearchTime::starts(CACHE_TIME_MAX))?;
        (!found.is_cut).then_some(found).ok_or(Errno::TIMEDOUT)
    }
}

/// Finds it by its link in `map_files`.
pub(crate) fn find_by_link(root: &Root, pid: u32, mapping: &Mapping) -> Result<OwnedFd, Errno> {
    let range = &mapping.range;
    let link = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
    look_up(CWD, root.path(&link), LastLink::Followed)
}

/// Finds it by its path, as this process sees it and below the other's root; `may_pass` says of each directory on the way and of
/// the file whether its file system may be asked.
pub(crate) fn find_by_path(
    root: &Root,
    pid: u32,
    mapping: &Mapping,
    may_pass: &dyn Fn(&OwnedFd) -> bool,
) -> Result<OwnedFd, Errno> {
    let path = mapping.path().filter(|_| !mapping.is_deleted());
    let path = path.ok_or(Errno::PERM)?;
    let find = |top| look_up_in(top, path, may_pass).and_then(|found| same(found, mapping));
    let own = look_up(CWD, root.path("/"), LastLink::Followed);
    own.and_then(find).or_else(|_| {
        let its = links::look_up(root, pid, "root").ok_or(Errno::PERM)?;
        find(its)
    })
}

/// The file, if it is that of a mapping. Subvolumes of btrfs have devices that mappings do not show.
fn same(found: OwnedFd, mapping: &Mapping) -> Result<OwnedFd, Errno> {
    let stat = file_stat::stat(&found, c"", AtFlags::EMPTY_PATH)?;
    let is_device = stat.device == mapping.device || (stat.device.0 == 0 && mapping.device.0 == 0);
    let is_same = is_device && stat.inode == mapping.inode;
    is_same.then_some(found).ok_or(Errno::STALE)
}

/// Looks a path up below a root directory. The kernel shows paths of mappings without links: one that is there by now leads to
/// another file.
fn look_up_in(
    top: OwnedFd,
    path: &[u8],
    may_pass: &dyn Fn(&OwnedFd) -> bool,
) -> Result<OwnedFd, Errno> {
    if !may_pass(&top) {
        return Err(Errno::XDEV);
    }
    look_up_below(top, Path::new(OsStr::from_bytes(path)), may_pass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::device_numbers;
    use crate::process::maps::Mappings;
    use rustix::fs::Mode;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    fn of_path(path: &Path) -> Mapping {
        Mapping {
            range: 4096..8192,
            inode: std::fs::metadata(path).unwrap().ino(),
            device: device_numbers(std::fs::metadata(path).unwrap().dev()),
            name: path.as_os_str().as_bytes().to_vec(),
            ..Mapping::default()
        }
    }

    fn open(mapping: &Mapping) -> Result<MappedFile, ReadError> {
        MapFiles::of(&Root::default(), std::process::id()).open(mapping)
    }

    /// As where the link in `map_files` is refused.
    fn open_by_path(mapping: &Mapping) -> Result<MappedFile, Errno> {
        let (root, own) = (Root::default(), std::process::id());
        let files = MapFiles::of(&root, own);
        let found = find_by_path(&root, own, mapping, &|found| files.mounts.is_local(found))?;
        MappedFile::regular(&found)
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
        let file = open_by_path(&mapping).unwrap();
        let mut buffer = [0; 9];
        assert_eq!((file.size(), file.read_at(3, &mut buffer)), (Bytes::new(5), Ok(2)));
        mapping.inode += 1;
        assert!(open_by_path(&mapping).is_err());
    }

    #[test]
    fn what_is_no_regular_file_is_never_opened() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        for path in [pipe.as_path(), Path::new("/dev/null"), directory.path()] {
            assert!(open_by_path(&of_path(path)).is_err(), "{path:?}");
        }
    }
}
