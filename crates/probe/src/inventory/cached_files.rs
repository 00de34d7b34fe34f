//! Files in the page cache: those that processes have open or mapped, and those below directories that were named.
//!
//! A file is one, however many processes have it and by whatever name. It is looked up without opening it (`O_PATH`), and
//! opened only if it is a regular file on a disk: a file system over a network or of a program may never answer, and opening
//! a file of the kernel's own (`/proc`, debugfs) may do something. Opening ends a lease that another process has on a file.
//! Files in a tmpfs are shared memory and do not count here; those of an overlay have their pages in the layers below, and
//! are only counted as not seen. Cost: 2 µs for each open file and mapping, 50 µs for each mapped file that is new, 10 µs and what
//! [`file_cache`] says for each file. When the time is over no further file is opened.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use checked_open::{LastLink, look_up, reopen};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use timeline::{CachedDirectory, CachedEntry, CachedFile, CachedFiles};
use units::{Bytes, PageSize};

use super::open_files;
use super::searched::SearchedProcess;
use crate::file_cache;
pub use crate::file_places::refused;
use crate::file_places::{FilePlace, MountPlaces};
use crate::file_stat::{self, FileStat};
use crate::kernel_file::Root;
use crate::mounts::DeviceNumbers;
use crate::path_walk::look_up_below;
use crate::process::SILENT_AFTER;
use crate::process::mapped_file;
use crate::process::maps::{self, Mapping};
use crate::process::timed_read::read_within;
use crate::search_time::SearchTime;
use crate::text;

/// A person who asks for files waits this long.
const FILES_TIME_MAX: Duration = Duration::from_secs(2);
/// The same for each directory that is named; what one leaves of it the next ones have.
const DIRECTORY_TIME_MAX: Duration = Duration::from_secs(10);
/// The same for all of them together.
const DIRECTORIES_TIME_MAX: Duration = Duration::from_secs(40);
/// The longest time that one file is counted.
const FILE_TIME_MAX: Duration = Duration::from_millis(300);
/// At most this many entries of a directory have a name; files below the others count for one without.
const ENTRIES_MAX: usize = 10_000;
/// At most this many files of processes are named, and so many bytes of their paths are kept.
const USED_MAX: usize = 100_000;
const PATH_BYTES_MAX: usize = 16 << 20;
/// At most this many files are counted.
const FILES_MAX: usize = 1_000_000;
/// At most so many bytes are in the paths of directories that wait to be searched.
const WAITING_BYTES_MAX: usize = 32 << 20;

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
        mounts: MountPlaces::own(root),
        seen: HashMap::new(),
        remote: HashSet::new(),
        used: Vec::new(),
        path_bytes: 0,
        entries: HashMap::new(),
        entry: OsString::new(),
        found: CachedFiles::default(),
    };
    for process in processes {
        if search.time.is_over() {
            search.found.is_cut = true;
            break;
        }
        search.process(process);
    }
    let count = u32::try_from(directories.len()).unwrap_or(u32::MAX);
    let all = DIRECTORY_TIME_MAX.saturating_mul(count).min(DIRECTORIES_TIME_MAX);
    let all = SearchTime::starts(all);
    for (directory, left) in directories.iter().zip((1..=count).rev()) {
        search.time = SearchTime::starts(all.left() / left);
        search.directory(directory);
    }
    search.used.sort_by(|(a, _), (b, _)| {
        let size = b.cached.cmp(&a.cached);
        size.then_with(|| a.path.cmp(&b.path))
    });
    let used = search.used.into_iter().map(|(file, _)| file);
    search.found.used = used.collect();
    search.found.files_remote = search.remote.len() as u64;
    search.found
}

/// A file, by the device that `stat` shows and its inode.
type FileNumbers = (DeviceNumbers, u64);

struct CacheSearch<'a> {
    root: &'a Root,
    page: PageSize,
    time: SearchTime,
    mounts: MountPlaces,
    /// The index of each file in `used`, if it is there.
    seen: HashMap<FileNumbers, Option<usize>>,
    /// Files that were left alone.
    remote: HashSet<FileNumbers>,
    /// Files of processes, with the last one that was counted as a user.
    used: Vec<(CachedFile, u32)>,
    /// In the paths of these.
    path_bytes: usize,
    /// What is in the directory that is searched, by name.
    entries: HashMap<OsString, CachedEntry>,
    /// The one of these in which the search is; empty in the directory itself.
    entry: OsString,
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
            if file.target.first() == Some(&b'/') && !self.is_over() {
                let found = file.followed(|fd, name| look_up(fd, name, LastLink::Followed));
                self.file(found.unwrap_or(Err(Errno::TIMEDOUT)), file.target, Some(process));
            }
        });
        match opened {
            Ok(is_whole) => self.found.is_cut |= !is_whole,
            Err(Errno::ACCESS | Errno::PERM) => {
                self.found.processes_denied += 1;
                return;
            }
            Err(_) => return, // it ended
        }
        let mut mapped = HashSet::new();
        let mut is_silent = false;
        // A process that ended or does not answer has no mappings.
        let _ = maps::each_line_within(SILENT_AFTER, root, process.pid, "maps", &mut |_, line| {
            if self.is_over() {
                return;
            }
            let mapping = maps::parse_line(line).filter(|mapping| mapping.path().is_some());
            if let Some(mapping) = mapping
                && !is_silent
                && mapped.insert((mapping.device, mapping.inode))
            {
                is_silent = self.mapping(process, &mapping) == Err(Errno::TIMEDOUT);
                self.found.is_cut |= is_silent;
            }
        });
    }

    /// Whether the time is over: nothing more is opened, and the answer says so.
    fn is_over(&mut self) -> bool {
        self.found.is_cut |= self.time.is_over();
        self.time.is_over()
    }

    /// # Errors
    /// `ETIMEDOUT` if the process does not answer.
    fn mapping(&mut self, process: &SearchedProcess, mapping: &Mapping) -> Result<(), Errno> {
        match self.mounts.by_device.get(&mapping.device) {
            Some(FilePlace::Disk) | None => {}
            Some(FilePlace::Memory | FilePlace::Kernel) => return Ok(()),
            Some(FilePlace::Overlay | FilePlace::Remote) => {
                self.remote.insert((mapping.device, mapping.inode));
                return Ok(());
            }
        }
        // A link that leads to a file that is known need not be followed.
        if let Some(index) = self.seen.get(&(mapping.device, mapping.inode)).copied() {
            self.used_by(index, process);
            return Ok(());
        }
        let (own_root, one) = (self.root.clone(), mapping.clone());
        let pid = process.pid;
        let by_link =
            read_within(SILENT_AFTER, move || mapped_file::find_by_link(&own_root, pid, &one));
        let by_link = by_link.map_err(|_| Errno::TIMEDOUT)?;
        let found = by_link.or_else(|refused| {
            if !matches!(refused, Errno::PERM | Errno::ACCESS) {
                return Err(refused); // it was unmapped
            }
            // A removed file has no path. That of the kernel's own tmpfs, which is mounted nowhere, does not count here.
            if mapping.is_deleted() {
                let is_mounted = self.mounts.by_device.contains_key(&mapping.device);
                return Err(if is_mounted { refused } else { Errno::NOENT });
            }
            // The path may lead elsewhere in this mount namespace.
            let path = mapping.path().map(OsStr::from_bytes).ok_or(refused)?;
            if self.mounts.of_path(Path::new(path)) != FilePlace::Disk {
                return Err(refused);
            }
            self.mounts.add_those_of(self.root, process.pid);
            let may_pass = |found: &OwnedFd| self.mounts.is_local(found);
            mapped_file::find_by_path(self.root, process.pid, mapping, &may_pass)
        });
        self.file(found, &mapping.name, Some(process));
        Ok(())
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
            Err(Errno::ACCESS | Errno::PERM | Errno::STALE) => {
                self.found.files_denied += 1;
                return;
            }
            Err(_) => return, // closed or unmapped meanwhile
        };
        let index = match self.seen.get(&looked_up.numbers) {
            Some(index) => *index,
            None => {
                let counted = self.measured(&looked_up, path);
                let index = counted.and_then(|file| self.add(file, process));
                if self.seen.len() < FILES_MAX {
                    self.seen.insert(looked_up.numbers, index);
                }
                index
            }
        };
        if let Some(process) = process {
            self.used_by(index, process);
        }
    }

    /// Counts a process as a user of a file that is named.
    fn used_by(&mut self, index: Option<usize>, process: &SearchedProcess) {
        let Some((file, last_user)) = index.and_then(|index| self.used.get_mut(index)) else {
            return;
        };
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
            self.mounts.add_those_of(self.root, process.pid);
            place = self.place(&stat);
        }
        if matches!(place, Some(FilePlace::Overlay | FilePlace::Remote)) {
            self.remote.insert((stat.device, stat.inode));
        }
        // The kernel's own file systems, such as that of memfd, are mounted nowhere.
        Ok((place == Some(FilePlace::Disk))
            .then_some(LookedUp { file: found, numbers: (stat.device, stat.inode) }))
    }

    fn place(&self, stat: &FileStat) -> Option<FilePlace> {
        let of_mount = stat.mount.and_then(|id| self.mounts.by_id.get(&id));
        let found = of_mount.or_else(|| self.mounts.by_device.get(&stat.device));
        found.copied()
    }

    /// Adds a file. Returns its index if a process has it.
    fn add(&mut self, file: CachedFile, process: Option<&SearchedProcess>) -> Option<usize> {
        if process.is_some() {
            self.path_bytes += file.path.len();
            if self.used.len() >= USED_MAX || self.path_bytes > PATH_BYTES_MAX {
                self.found.is_cut = true;
                return None;
            }
            self.used.push((file, 0));
            return Some(self.used.len() - 1);
        }
        let is_full = self.entries.len() >= ENTRIES_MAX;
        let name = if is_full && !self.entries.contains_key(&self.entry) {
            OsString::new()
        } else {
            self.entry.clone()
        };
        let entry = self.entries.entry(name).or_default();
        entry.cached += file.cached;
        entry.files += 1;
        if file.cached > entry.largest.cached {
            entry.largest = file;
        }
        None
    }

    /// Counts the pages of a file; `None` if it has none.
    fn measured(&mut self, looked_up: &LookedUp, path: &[u8]) -> Option<CachedFile> {
        if self.seen.len() >= FILES_MAX {
            self.found.is_cut = true;
            return None;
        }
        let file = match reopen(&looked_up.file) {
            Ok(file) => file,
            // `EAGAIN`: another process has a lease on it.
            Err(Errno::ACCESS | Errno::PERM | Errno::AGAIN) => {
                self.found.files_denied += 1;
                return None;
            }
            Err(_) => return None, // removed meanwhile
        };
        let time = SearchTime::starts(FILE_TIME_MAX);
        let counted = match file_cache::of(file.as_fd(), self.page, time) {
            Err(Errno::ACCESS | Errno::PERM) => {
                self.found.files_hidden += 1;
                None
            }
            counted => counted.ok().filter(|counted| counted.cached > Bytes::ZERO),
        };
        counted.map(|counted| CachedFile {
            path: text::lossy(path).into_owned(),
            cached: counted.cached,
            dirty: counted.dirty,
            is_cut: counted.is_cut,
            ..CachedFile::default()
        })
    }

    /// Measures the files below a directory, on all disks that are mounted there.
    fn directory(&mut self, top: &Path) {
        let mut waiting = WaitingDirectories::default();
        if let Ok(found) = look_up(CWD, top, LastLink::Kept) {
            waiting.push(BelowMount::top(found, top));
        }
        while let Some(directory) = waiting.next() {
            if self.is_over() {
                break;
            }
            let path = directory.path();
            let below = path.strip_prefix(top).ok();
            self.entry = below.and_then(|below| below.iter().next()).unwrap_or_default().to_owned();
            match self.entries(directory, &mut waiting) {
                Err(Errno::ACCESS | Errno::PERM) => self.found.files_denied += 1,
                Err(Errno::NAMETOOLONG) => self.found.is_cut = true,
                Ok(()) | Err(_) => {} // removed meanwhile
            }
        }
        self.found.is_cut |= waiting.is_cut;
        let mut entries: Vec<CachedEntry> = self.entries.drain().map(named).collect();
        entries.sort_by(|a, b| b.cached.cmp(&a.cached).then_with(|| a.name.cmp(&b.name)));
        self.found.unused.push(CachedDirectory { path: top.display().to_string(), entries });
    }

    /// Measures the files in a directory. One that is mounted meanwhile is not entered: it may never answer.
    fn entries(
        &mut self,
        directory: BelowMount,
        waiting: &mut WaitingDirectories,
    ) -> Result<(), Errno> {
        let (found, directory) = directory.look_up()?;
        match self.place(&stat(&found)?) {
            // Disks may be mounted below.
            Some(FilePlace::Disk | FilePlace::Memory) => {}
            Some(FilePlace::Overlay | FilePlace::Remote | FilePlace::Kernel) => return Ok(()),
            None => {
                self.found.is_cut = true;
                return Ok(());
            }
        }
        let opened = reopen(&found)?;
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut entries = RawDir::new(&opened, &mut buffer);
        let is_top = self.entry.is_empty();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if self.is_over() {
                return Ok(());
            }
            let below = || directory.entry(OsStr::from_bytes(name.to_bytes()));
            let mut kind = entry.file_type();
            let found = match kind {
                FileType::RegularFile | FileType::Unknown => look_up(&opened, name, LastLink::Kept),
                _ => Err(Errno::INVAL),
            };
            // Some file systems do not say it in the directory.
            if let (FileType::Unknown, Ok(found)) = (kind, &found) {
                kind = stat(found).map_or(kind, |stat| stat.kind);
            }
            match kind {
                FileType::Directory if !matches!(name.to_bytes(), b"." | b"..") => {
                    waiting.push(below());
                }
                FileType::RegularFile => {
                    if is_top {
                        self.entry = OsStr::from_bytes(name.to_bytes()).to_owned();
                    }
                    self.file(found, below().path().as_os_str().as_bytes(), None);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A directory on a mount, by the way to it from where the search entered that mount: a link or a mount that somebody puts
/// on the way meanwhile is not followed.
#[derive(Debug)]
struct BelowMount {
    mount: Rc<EnteredMount>,
    /// Relative; empty at the mount itself.
    below: PathBuf,
}

#[derive(Debug)]
struct EnteredMount {
    directory: OwnedFd,
    path: PathBuf,
}

impl BelowMount {
    fn top(directory: OwnedFd, path: &Path) -> Self {
        let path = path.to_owned();
        Self { mount: Rc::new(EnteredMount { directory, path }), below: PathBuf::new() }
    }

    fn path(&self) -> PathBuf {
        self.mount.path.join(&self.below)
    }

    fn entry(&self, name: &OsStr) -> Self {
        Self { mount: Rc::clone(&self.mount), below: self.below.join(name) }
    }

    /// Looks the directory up. Another mount that begins there is entered: that asks no file system.
    fn look_up(self) -> Result<(OwnedFd, Self), Errno> {
        match self.on_mount(&self.below) {
            Err(Errno::XDEV) => {
                let above = self.on_mount(self.below.parent().ok_or(Errno::XDEV)?)?;
                let name = self.below.file_name().ok_or(Errno::XDEV)?;
                let found = look_up(&above, name, LastLink::Kept)?;
                let same = found.try_clone().map_err(|_| Errno::MFILE)?;
                Ok((found, Self::top(same, &self.path())))
            }
            found => Ok((found?, self)),
        }
    }

    fn on_mount(&self, below: &Path) -> Result<OwnedFd, Errno> {
        let here = below.as_os_str().is_empty();
        let top = &self.mount.directory;
        let at_once = rustix::fs::openat2(
            top,
            if here { Path::new(".") } else { below },
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
        );
        match at_once {
            // Name by name it takes ten times as long.
            Err(Errno::NOSYS) => {
                let mount = file_stat::mount_of(top).ok_or(Errno::NOSYS)?;
                let is_here = |found: &OwnedFd| file_stat::mount_of(found) == Some(mount);
                let top = top.try_clone().map_err(|_| Errno::MFILE)?;
                look_up_below(top, below, is_here)
            }
            found => found,
        }
    }
}

/// Directories that wait to be searched, the last found first.
#[derive(Debug, Default)]
struct WaitingDirectories {
    directories: Vec<BelowMount>,
    bytes: usize,
    /// Whether some had no room.
    is_cut: bool,
}

impl WaitingDirectories {
    fn push(&mut self, directory: BelowMount) {
        let bytes = self.bytes + directory.below.as_os_str().len();
        if bytes > WAITING_BYTES_MAX {
            self.is_cut = true;
        } else {
            self.bytes = bytes;
            self.directories.push(directory);
        }
    }

    fn next(&mut self) -> Option<BelowMount> {
        let directory = self.directories.pop()?;
        self.bytes -= directory.below.as_os_str().len();
        Some(directory)
    }
}

fn named((name, entry): (OsString, CachedEntry)) -> CachedEntry {
    CachedEntry { name: name.to_string_lossy().into_owned(), ..entry }
}

/// What the kernel knows of a file that was found.
fn stat(found: &OwnedFd) -> Result<FileStat, Errno> {
    file_stat::stat(found, c"", AtFlags::EMPTY_PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_two_names_and_two_users_is_one() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        std::fs::hard_link(&path, directory.path().join("same")).unwrap();
        let read = |processes: &[SearchedProcess]| {
            let directories = [directory.path().to_owned()];
            read(&Root::default(), processes, &directories, PageSize::USUAL)
        };
        let found = read(&[]);
        let [below] = found.unused.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(below.entries.len(), 1, "{below:?}");
        assert_eq!(below.entries[0].cached, Bytes::from_mib(3));

        let open = [std::fs::File::open(&path), std::fs::File::open(&path)];
        let own = SearchedProcess {
            pid: std::process::id(),
            name: "test".to_owned(),
            ..SearchedProcess::default()
        };
        let found = read(&[own.clone(), own]);
        drop(open);
        let files: Vec<_> = found.used.iter().filter(|file| file.path.ends_with("/data")).collect();
        let [file] = files.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((file.cached, file.users), (Bytes::from_mib(3), 1));
        assert_eq!(found.unused[0].entries, []);
        assert!(!found.is_cut && found.files_denied == 0);
    }
}
