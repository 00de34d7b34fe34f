//! Files in the page cache: those that processes have open or mapped, and those below directories that were named.
//!
//! A file is one, however many processes have it and by whatever name. It is looked up without opening it (`O_PATH`), and
//! opened only if it is a regular file on a file system that answers by itself: one over a network or of a program may never
//! answer. Files in a tmpfs are shared memory and do not count here; those of an overlay have their pages in the layer below,
//! which a mapping leads to and an open file does not. Cost: 2 µs for each open file and mapping, 10 µs and what
//! [`file_cache`] says for each file, all of it within a time limit.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags};
use rustix::io::Errno;
use timeline::{CachedFile, CachedFiles};
use units::{Bytes, PageSize};

use super::file_systems::DeviceNumbers;
use super::open_files;
use super::searched::{SearchTime, SearchedProcess};
use crate::file_cache::{self, FileCacheUse};
use crate::kernel_file::Root;
use crate::mounts;
use crate::process::maps::{self, Mapping};
use crate::text;

/// A person who asks for files waits this long.
pub const FILES_TIME_MAX: Duration = Duration::from_secs(2);
/// The same for each directory that is named.
const DIRECTORY_TIME_MAX: Duration = Duration::from_secs(10);
/// At most this many files are named; others are counted.
const NAMED_MAX: usize = 1_000;
/// At most this many files are looked at.
const FILES_MAX: usize = 1_000_000;
/// At most this many directories wait to be searched.
const WAITING_MAX: usize = 100_000;

/// Searches processes in their order, then the directories.
pub fn read(
    root: &Root,
    processes: &[SearchedProcess],
    directories: &[PathBuf],
    page: PageSize,
) -> CachedFiles {
    let mut search = CacheSearch {
        root,
        page,
        time: SearchTime::starts(FILES_TIME_MAX),
        mounts: MountKinds::default(),
        seen: HashMap::new(),
        used: Vec::new(),
        unused: Vec::new(),
        found: CachedFiles::default(),
    };
    search.mounts.add(root, "self");
    for process in processes {
        if search.time.is_over() {
            search.found.is_cut = true;
            break;
        }
        search.process(process);
    }
    for directory in directories {
        search.time = SearchTime::starts(DIRECTORY_TIME_MAX);
        search.directory(directory.clone());
    }
    search.finish()
}

/// A file, by the device that `stat` shows and its inode.
type FileNumbers = (DeviceNumbers, u64);

/// What kind of file system a mount or device has.
#[derive(Debug, Default)]
struct MountKinds {
    by_id: HashMap<u64, FilePlace>,
    by_device: HashMap<DeviceNumbers, FilePlace>,
    /// Mount points of this namespace that are not entered.
    closed: HashSet<Vec<u8>>,
}

/// Where a file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilePlace {
    Disk,
    /// Its pages are shared memory, or huge pages.
    Memory,
    /// It may never answer.
    Remote,
}

impl MountKinds {
    /// Adds the mounts that a process sees.
    fn add(&mut self, root: &Root, pid: &str) {
        let text = root.read(&format!("/proc/{pid}/mountinfo"));
        for mount in mounts::mountinfo(&text.unwrap_or_default()) {
            let place = match mount.kind {
                b"tmpfs" | b"devtmpfs" | b"hugetlbfs" => FilePlace::Memory,
                kind if mounts::may_not_answer(kind) => FilePlace::Remote,
                _ => FilePlace::Disk,
            };
            self.by_id.extend(mount.id.map(|id| (id, place)));
            self.by_device
                .extend(mount.device.map(|device| (device, place)));
            if place != FilePlace::Disk && pid == "self" {
                self.closed.insert(mount.point.into_owned());
            }
        }
    }
}

struct CacheSearch<'a> {
    root: &'a Root,
    page: PageSize,
    time: SearchTime,
    mounts: MountKinds,
    /// The index of each file in `used`, if it is there.
    seen: HashMap<FileNumbers, Option<usize>>,
    /// Files of processes, with the last one that was counted as a user.
    used: Vec<(CachedFile, u32)>,
    /// The largest of the other files.
    unused: Vec<CachedFile>,
    found: CachedFiles,
}

/// A file that was looked up.
struct LookedUp {
    file: OwnedFd,
    numbers: FileNumbers,
}

impl CacheSearch<'_> {
    fn process(&mut self, process: &SearchedProcess) {
        let (root, time) = (self.root, self.time);
        let opened = open_files::each(root, process.pid, time, &mut |file| {
            if file.target.first() == Some(&b'/') {
                let found = lookup(file.directory, file.name);
                self.file(found, file.target, Some(process));
            }
        });
        if matches!(opened, Err(Errno::ACCESS | Errno::PERM)) {
            self.found.processes_denied += 1;
            return;
        }
        let mut mapped: HashMap<(DeviceNumbers, u64), Mapping> = HashMap::new();
        // A process that ended has no mappings.
        let _ = maps::each_line(root, process.pid, "maps", &mut |_, line| {
            let mapping = maps::parse_line(line).filter(|mapping| mapping.path().is_some());
            if let Some(mapping) = mapping.filter(|_| mapped.len() < open_files::FILES_MAX) {
                mapped
                    .entry((mapping.device, mapping.inode))
                    .or_insert(mapping);
            }
        });
        for mapping in mapped.into_values() {
            if self.time.is_over() {
                self.found.is_cut = true;
                return;
            }
            self.mapping(process, &mapping);
        }
    }

    fn mapping(&mut self, process: &SearchedProcess, mapping: &Mapping) {
        // What is not on a disk needs no look.
        match self.mounts.by_device.get(&mapping.device) {
            Some(FilePlace::Memory) => return,
            Some(FilePlace::Remote) => {
                self.found.files_remote += 1;
                return;
            }
            Some(FilePlace::Disk) | None => {}
        }
        let (pid, range) = (process.pid, &mapping.range);
        let link = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
        let found = lookup(CWD, self.root.path(&link).as_path()).or_else(|refused| {
            // Without the privilege for that link the path leads there, if it is of the same inode.
            let path = mapping.path().filter(|_| !mapping.is_deleted());
            let path = self.root.path(&text::lossy(path.ok_or(refused)?));
            let found = lookup(CWD, path.as_path())?;
            let is_same = stat(&found).is_ok_and(|stat| stat.inode == mapping.inode);
            is_same.then_some(found).ok_or(Errno::STALE)
        });
        self.file(found, &mapping.name, Some(process));
    }

    /// Measures a file that is new, and counts the process as a user of it.
    fn file(
        &mut self,
        found: Result<OwnedFd, Errno>,
        path: &[u8],
        process: Option<&SearchedProcess>,
    ) {
        let looked_up = match found.and_then(|found| self.on_disk(found, process)) {
            Ok(Some(file)) => file,
            Ok(None) => return,
            Err(Errno::ACCESS | Errno::PERM) => {
                self.found.files_denied += 1;
                return;
            }
            Err(_) => return, // closed or unmapped meanwhile
        };
        let index = match self.seen.get(&looked_up.numbers) {
            Some(index) => *index,
            None => self.measured(&looked_up, path, process),
        };
        let (Some(index), Some(process)) = (index, process) else {
            return;
        };
        let (file, last_user) = &mut self.used[index];
        if *last_user != process.pid {
            *last_user = process.pid;
            file.users += 1;
            file.first_user.get_or_insert_with(|| process.user());
        }
    }

    /// Returns a file if it is a regular one on a disk. A mount that is not known yet is of the process's own namespace.
    fn on_disk(
        &mut self,
        found: OwnedFd,
        process: Option<&SearchedProcess>,
    ) -> Result<Option<LookedUp>, Errno> {
        let stat = stat(&found)?;
        if stat.kind != FileType::RegularFile {
            return Ok(None);
        }
        let mut place = self.place(&stat);
        if place.is_none()
            && let Some(process) = process
        {
            self.mounts.add(self.root, &process.pid.to_string());
            place = self.place(&stat);
        }
        if place == Some(FilePlace::Remote) {
            self.found.files_remote += 1;
        }
        // The kernel's own file systems, such as that of memfd, are mounted nowhere.
        Ok((place == Some(FilePlace::Disk)).then_some(LookedUp {
            file: found,
            numbers: (stat.device, stat.inode),
        }))
    }

    fn place(&self, stat: &LookedUpStat) -> Option<FilePlace> {
        let of_mount = stat.mount.and_then(|id| self.mounts.by_id.get(&id));
        let found = of_mount.or_else(|| self.mounts.by_device.get(&stat.device));
        found.copied()
    }

    /// Counts the pages of a file. Returns its index if it has any and is used.
    fn measured(
        &mut self,
        looked_up: &LookedUp,
        path: &[u8],
        process: Option<&SearchedProcess>,
    ) -> Option<usize> {
        if self.seen.len() >= FILES_MAX {
            self.found.is_cut = true;
            return None;
        }
        let counted = match self.count(looked_up) {
            Err(Errno::ACCESS | Errno::PERM) => {
                self.found.files_denied += 1;
                None
            }
            Err(Errno::TIMEDOUT) => {
                self.found.is_cut = true;
                None
            }
            counted => counted.ok().filter(|counted| counted.cached > Bytes::ZERO),
        };
        let file = counted.map(|counted| CachedFile {
            path: text::lossy(path).into_owned(),
            cached: counted.cached,
            dirty: counted.dirty,
            ..CachedFile::default()
        });
        let mut index = None;
        if process.is_some() {
            index = file.as_ref().map(|_| self.used.len());
            self.used.extend(file.map(|file| (file, 0)));
        } else {
            self.unused.extend(file);
            if self.unused.len() > 2 * NAMED_MAX {
                keep_largest(&mut self.unused, &mut self.found);
            }
        }
        self.seen.insert(looked_up.numbers, index);
        index
    }

    fn count(&self, looked_up: &LookedUp) -> Result<FileCacheUse, Errno> {
        let again = format!("/proc/self/fd/{}", looked_up.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(again, flags, Mode::empty())?;
        file_cache::of(file.as_fd(), self.page, self.time)
    }

    /// Measures the files below a directory, on all disks that are mounted there.
    fn directory(&mut self, top: PathBuf) {
        let mut waiting = vec![top];
        while let Some(directory) = waiting.pop() {
            if self.time.is_over() {
                self.found.is_cut = true;
                return;
            }
            if self
                .mounts
                .closed
                .contains(directory.as_os_str().as_bytes())
            {
                continue;
            }
            // Another error: it was removed meanwhile.
            if let Err(Errno::ACCESS | Errno::PERM) = self.entries(&directory, &mut waiting) {
                self.found.files_denied += 1;
            }
        }
    }

    fn entries(&mut self, directory: &Path, waiting: &mut Vec<PathBuf>) -> Result<(), Errno> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty())?;
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut entries = RawDir::new(&opened, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if self.time.is_over() {
                self.found.is_cut = true;
                return Ok(());
            }
            let path = || directory.join(OsStr::from_bytes(name.to_bytes()));
            match entry.file_type() {
                FileType::Directory if !matches!(name.to_bytes(), b"." | b"..") => {
                    if waiting.len() < WAITING_MAX {
                        waiting.push(path());
                    } else {
                        self.found.is_cut = true;
                    }
                }
                FileType::RegularFile | FileType::Unknown => {
                    let found = lookup_here(&opened, name);
                    self.file(found, path().as_os_str().as_bytes(), None);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(mut self) -> CachedFiles {
        let used = self.used.into_iter().map(|(file, _)| file);
        self.unused.extend(used);
        keep_largest(&mut self.unused, &mut self.found);
        self.found.files = self.unused;
        self.found
    }
}

/// Sorts files by size. Only the largest are kept; the others are counted.
fn keep_largest(files: &mut Vec<CachedFile>, found: &mut CachedFiles) {
    files.sort_by(|a, b| {
        let size = b.cached.cmp(&a.cached);
        size.then_with(|| a.path.cmp(&b.path))
    });
    let others = files.split_off(files.len().min(NAMED_MAX));
    found.others += others.len() as u64;
    found.others_bytes += others.iter().map(|file| file.cached).sum();
}

/// Finds a file without opening it: opening a pipe or a device may wait, or do something.
fn lookup(directory: impl AsFd, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        directory,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The same, of an entry that may be a link by now.
fn lookup_here(directory: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// What the kernel knows of a file without asking its file system.
struct LookedUpStat {
    device: DeviceNumbers,
    inode: u64,
    kind: FileType,
    /// Since 5.8.
    mount: Option<u64>,
}

fn stat(file: &OwnedFd) -> Result<LookedUpStat, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let fields = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(file, c"", flags, fields)?;
    let has_mount = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Ok(LookedUpStat {
        device: (stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        kind: FileType::from_raw_mode(stat.stx_mode.into()),
        mount: has_mount.then_some(stat.stx_mnt_id),
    })
}
