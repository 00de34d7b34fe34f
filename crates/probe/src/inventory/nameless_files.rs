//! Files of shared memory without a place in a mounted file system: those of `memfd_create`, shared anonymous mappings,
//! and System V segments of other IPC namespaces.
//!
//! They all lie in one tmpfs that the kernel mounts for itself. Processes have them open (`/proc/PID/fd`) or mapped
//! (`/proc/PID/maps`), with names that end with ` (deleted)`; an inode is one file, however many processes have it. Its
//! blocks are its pages in RAM and in swap. `/proc/PID/map_files` leads from a mapping to the file, but only with
//! CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; without these the largest Rss in a process's `smaps` stands for it.
//!
//! Cost: 1 µs for each mapping beside that of the open files ([`open_files`]); mappings are read only of processes that have shared memory. All
//! that within a time limit, the process with most shared memory first. No file system is asked for fresh attributes: some
//! might never answer.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, MemfdFlags};
use rustix::io::Errno;
use timeline::{SharedKind, SharedMeasure, SharedObject, SystemVSegment, UserProcess};
use units::Bytes;

use crate::file_stat::stat;
use crate::inventory::open_files::{self, FILES_MAX, OpenFile};
use crate::inventory::searched::SearchedProcess;
use crate::kernel_file::Root;
use crate::mounts::{DeviceNumbers, device_numbers};
use crate::process::maps::{self, DELETED, Mapping};
use crate::process::smaps::{SmapsField, each_smaps_block};
use crate::process::timed_read::read_within;
use crate::process::{SILENT_AFTER, links};
use crate::search_time::SearchTime;
use crate::text;

/// What the search found.
#[derive(Debug, Default)]
pub(super) struct NamelessFiles {
    files: HashMap<FileIdentity, FoundFile>,
    /// Ids of System V segments that are of hugetlbfs.
    pub(super) huge_segments: HashSet<u64>,
    pub(super) processes_denied: u64,
    pub(super) largest_denied: Option<UserProcess>,
    pub(super) processes_left_out: u64,
}

/// Segments of two IPC namespaces may have the same inode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileIdentity {
    inode: u64,
    ipc_namespace: Option<PathBuf>,
}

#[derive(Debug)]
struct FoundFile {
    object: SharedObject,
    last_user: u32,
}

/// What is the same for all processes.
struct NamelessSearch<'a> {
    root: &'a Root,
    /// The kernel's own tmpfs; `None` if it is unknown, as before `memfd_create` (3.17).
    kernel_tmpfs: Option<DeviceNumbers>,
    ipc_namespace: Option<PathBuf>,
}

/// A file as a process has it.
struct ProcessFile {
    device: DeviceNumbers,
    identity: FileIdentity,
    kind: SharedKind,
    size: FileSize,
}

/// Where a file's size comes from.
enum FileSize {
    Known(Bytes),
    /// The file behind these addresses.
    Mapped(Range<u64>),
}

impl ProcessFile {
    fn is_segment(&self) -> bool {
        is_segment(&self.kind)
    }
}

fn is_segment(kind: &SharedKind) -> bool {
    matches!(kind, SharedKind::SystemV(_))
}

impl NamelessFiles {
    /// Searches processes in their order; `others` gets each open file too.
    pub(super) fn search(
        root: &Root,
        processes: &[SearchedProcess],
        time: SearchTime,
        others: &mut dyn FnMut(&SearchedProcess, &OpenFile<'_>),
    ) -> Self {
        let search = NamelessSearch {
            root,
            kernel_tmpfs: kernel_tmpfs(),
            ipc_namespace: std::fs::read_link(root.path("/proc/self/ns/ipc")).ok(),
        };
        let mut found = Self::default();
        for (done, process) in processes.iter().enumerate() {
            if time.is_over() {
                found.processes_left_out = (processes.len() - done) as u64;
                break;
            }
            found.process(&search, process, time, others);
        }
        found
    }

    /// Returns the files as objects.
    pub(super) fn into_objects(self) -> impl Iterator<Item = SharedObject> {
        self.files.into_values().map(|file| file.object)
    }

    fn process(
        &mut self,
        search: &NamelessSearch<'_>,
        process: &SearchedProcess,
        time: SearchTime,
        others: &mut dyn FnMut(&SearchedProcess, &OpenFile<'_>),
    ) {
        let opened = open_files::each(search.root, process.pid, time, &mut |file| {
            others(process, file);
            if let Some(file) = search.open_file(file) {
                self.add(process, file);
            }
        });
        if matches!(opened, Err(Errno::ACCESS | Errno::PERM)) {
            self.processes_denied += 1;
            self.largest_denied.get_or_insert_with(|| process.user());
            return;
        }
        if !process.may_map_shared() {
            return;
        }
        let mut unmeasured = HashMap::new();
        for mut file in search.mapped_files(process.pid) {
            if time.is_over() {
                break;
            }
            let is_here = search.kernel_tmpfs.is_none_or(|device| device == file.device);
            // `/proc/sysvipc/shm` has the segments of this namespace.
            let is_listed = file.is_segment() && file.identity.ipc_namespace.is_none();
            if is_listed && !is_here {
                self.huge_segments.insert(file.identity.inode);
            }
            if is_listed || !is_here {
                continue;
            }
            let is_measured = |known: &FoundFile| known.object.measure != SharedMeasure::Mapped;
            let FileSize::Mapped(range) = &file.size else {
                continue;
            };
            if !self.files.get(&file.identity).is_some_and(is_measured) {
                match search.size_behind(process.pid, range) {
                    Ok(size) => file.size = FileSize::Known(size),
                    Err(Errno::PERM | Errno::ACCESS) => {
                        unmeasured.insert(file.identity.inode, file);
                        continue;
                    }
                    Err(Errno::TIMEDOUT) => break, // it does not answer
                    Err(_) => continue,            // it was unmapped
                }
            }
            self.add(process, file);
        }
        self.add_mapped(search, process, unmeasured);
    }

    /// Adds mapped files with the sizes in the process's `smaps`.
    fn add_mapped(
        &mut self,
        search: &NamelessSearch<'_>,
        process: &SearchedProcess,
        files: HashMap<u64, ProcessFile>,
    ) {
        if files.is_empty() {
            return;
        }
        let (root, pid) = (search.root.clone(), process.pid);
        let devices: HashMap<_, _> =
            files.iter().map(|(inode, file)| (*inode, file.device)).collect();
        let sizes = read_within(SILENT_AFTER, move || {
            let mut sizes: HashMap<u64, Bytes> = HashMap::new();
            // A process that ended or does not answer has no sizes; a malformed line is an absent one.
            let _ = each_smaps_block(&root, pid, &mut |block| {
                let mapping = &block.mapping;
                let is_same = devices.get(&mapping.inode) == Some(&mapping.device);
                if let Some(size) = block.get(SmapsField::Rss).filter(|_| is_same) {
                    *sizes.entry(mapping.inode).or_default() += size;
                }
            });
            sizes
        })
        .unwrap_or_default();
        for (inode, mut file) in files {
            let size = sizes.get(&inode).copied().unwrap_or_default();
            let known = self.files.get_mut(&file.identity);
            if let Some(known) = known {
                known.object.bytes = known.object.bytes.max(size);
            }
            file.size = FileSize::Known(size);
            let identity = file.identity.clone();
            if self.add(process, file)
                && let Some(new) = self.files.get_mut(&identity)
            {
                new.object.measure = SharedMeasure::Mapped;
            }
        }
    }

    /// Counts the process as a user of a file. Returns whether the file is new.
    fn add(&mut self, process: &SearchedProcess, file: ProcessFile) -> bool {
        if let Some(known) = self.files.get_mut(&file.identity) {
            if known.last_user != process.pid {
                known.last_user = process.pid;
                known.object.users += 1;
            }
            return false;
        }
        let FileSize::Known(bytes) = file.size else {
            return false;
        };
        if self.files.len() >= FILES_MAX {
            return false;
        }
        let object = SharedObject {
            kind: file.kind,
            bytes,
            measure: SharedMeasure::InRamOrSwap,
            users: 1,
            first_user: Some(process.user()),
        };
        let found = FoundFile { object, last_user: process.pid };
        self.files.insert(file.identity, found);
        true
    }
}

impl NamelessSearch<'_> {
    /// Returns an open file if it lies in the kernel's own tmpfs.
    fn open_file(&self, file: &OpenFile<'_>) -> Option<ProcessFile> {
        let kind = kind_of(file.target)?;
        let stat = file.followed(|fd, name| stat(fd, name, AtFlags::empty()))?.ok()?;
        (Some(stat.device) == self.kernel_tmpfs).then_some(ProcessFile {
            device: stat.device,
            identity: FileIdentity { inode: stat.inode, ipc_namespace: None },
            kind,
            size: FileSize::Known(stat.bytes),
        })
    }

    /// Returns the files that a process has mapped, each once, by their names.
    fn mapped_files(&self, pid: u32) -> Vec<ProcessFile> {
        let mut found: Vec<(Mapping, SharedKind)> = Vec::new();
        let mut seen = HashSet::new();
        // A process that ended, is closed to this user or does not answer has no mappings.
        let _ = maps::each_line_within(SILENT_AFTER, self.root, pid, "maps", &mut |_, line| {
            if !line.ends_with(DELETED) || found.len() >= FILES_MAX {
                return;
            }
            let mapping = maps::parse_line(line);
            let named = mapping.and_then(|mapping| {
                let kind = kind_of(&mapping.name)?;
                Some((mapping, kind))
            });
            if let Some((mapping, kind)) = named
                && seen.insert((mapping.device, mapping.inode))
            {
                found.push((mapping, kind));
            }
        });
        let namespace = || links::read(self.root, pid, "ns/ipc");
        let other_namespace = if found.iter().any(|(_, kind)| is_segment(kind)) {
            namespace().filter(|namespace| Some(namespace) != self.ipc_namespace.as_ref())
        } else {
            None
        };
        let file = |(mapping, kind): (Mapping, SharedKind)| ProcessFile {
            device: mapping.device,
            identity: FileIdentity {
                inode: mapping.inode,
                ipc_namespace: other_namespace.clone().filter(|_| is_segment(&kind)),
            },
            kind: with_id(kind, mapping.inode),
            size: FileSize::Mapped(mapping.range),
        };
        found.into_iter().map(file).collect()
    }

    /// Returns the size of the file behind a mapping.
    fn size_behind(&self, pid: u32, range: &Range<u64>) -> Result<Bytes, Errno> {
        let link = format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end);
        let path = self.root.path(&link);
        let size = read_within(SILENT_AFTER, move || stat(CWD, path.as_path(), AtFlags::empty()));
        size.map_err(|_| Errno::TIMEDOUT)?.map(|stat| stat.bytes)
    }
}

/// Returns what a file is by its name in `fd` or `maps`; `None` if it is not one of those that are searched.
fn kind_of(name: &[u8]) -> Option<SharedKind> {
    let name = name.strip_suffix(DELETED)?;
    if let Some(name) = name.strip_prefix(b"/memfd:") {
        return Some(SharedKind::Memfd(text::lossy(name).into_owned()));
    }
    if name == b"/dev/zero" {
        return Some(SharedKind::Mapping);
    }
    let key = name.strip_prefix(b"/SYSV")?;
    let is_key = key.len() == 8 && key.iter().all(u8::is_ascii_hexdigit);
    is_key.then(|| SharedKind::SystemV(SystemVSegment::default()))
}

/// Gives a segment its id: that is its inode.
fn with_id(kind: SharedKind, inode: u64) -> SharedKind {
    match kind {
        SharedKind::SystemV(segment) => {
            SharedKind::SystemV(SystemVSegment { id: inode, ..segment })
        }
        other => other,
    }
}

/// Returns the device of the tmpfs that the kernel mounts for itself, from an empty file in it.
fn kernel_tmpfs() -> Option<DeviceNumbers> {
    let file = rustix::fs::memfd_create("memtide", MemfdFlags::CLOEXEC).ok()?;
    let device = rustix::fs::fstat(&file).ok()?.st_dev;
    Some(device_numbers(device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::time::Duration;

    fn own() -> SearchedProcess {
        SearchedProcess {
            pid: std::process::id(),
            name: "test".to_owned(),
            ..SearchedProcess::default()
        }
    }

    fn search() -> Vec<SharedObject> {
        let time = SearchTime::starts(Duration::from_secs(9));
        let found = NamelessFiles::search(&Root::default(), &[own(), own()], time, &mut |_, _| ());
        assert_eq!((found.processes_denied, found.processes_left_out), (0, 0));
        found.into_objects().collect()
    }

    #[test]
    fn a_memfd_of_this_process_is_found_once_with_its_pages() {
        let name = format!("memtide-{}", std::process::id());
        let file = rustix::fs::memfd_create(name.as_str(), MemfdFlags::CLOEXEC).unwrap();
        let mut file = std::fs::File::from(file);
        file.write_all(&[7; 300_000]).unwrap();
        let again = file.try_clone().unwrap();
        let objects = search();
        let wanted = SharedKind::Memfd(name);
        let mut same = objects.iter().filter(|object| object.kind == wanted);
        let object = same.next().unwrap();
        assert!(same.next().is_none());
        let pages = 300_000_u64.next_multiple_of(4096);
        assert!(object.bytes >= Bytes::new(pages), "{object:?}");
        assert!(object.bytes <= Bytes::from_mib(2), "{object:?}");
        assert_eq!((object.users, object.measure), (1, SharedMeasure::InRamOrSwap));
        assert_eq!(object.first_user.as_ref().unwrap().name, "test");
        drop(again);
    }

    #[test]
    fn a_shared_mapping_is_found_with_the_pages_that_were_written() {
        let length = 64 << 20;
        let pages = 5 << 20;
        // SAFETY: a new mapping at an address that the kernel chooses; unmapped below, with no reference left.
        #[allow(unsafe_code)]
        let start = unsafe {
            use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let start =
                mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::SHARED).unwrap();
            start.cast::<u8>().write_bytes(7, pages);
            start
        };
        let objects = search();
        // SAFETY: the mapping of above.
        #[allow(unsafe_code)]
        unsafe {
            rustix::mm::munmap(start, length).unwrap();
        }
        let sizes = objects.iter().filter(|object| object.kind == SharedKind::Mapping);
        let sizes: Vec<Bytes> = sizes.map(|object| object.bytes).collect();
        let expected = Bytes::from_mib(5)..=Bytes::from_mib(7);
        assert!(sizes.iter().any(|size| expected.contains(size)), "{sizes:?}");
    }

    #[test]
    fn the_search_ends_with_its_time() {
        let time = SearchTime::starts(Duration::ZERO);
        let found = NamelessFiles::search(&Root::default(), &[own(), own()], time, &mut |_, _| ());
        assert_eq!(found.processes_left_out, 2);
    }

    #[test]
    fn names_of_other_files_are_left_alone() {
        for name in [
            "/memfd:x",
            "/memfdx (deleted)",
            "/dev/zero",
            "/SYSV0000000g (deleted)",
            "/SYSV000 (deleted)",
            "/tmp/x (deleted)",
            "socket:[12]",
            "",
        ] {
            assert_eq!(kind_of(name.as_bytes()), None, "{name}");
        }
        let named = kind_of(b"/memfd:a b (deleted) (deleted)");
        assert_eq!(named, Some(SharedKind::Memfd("a b (deleted)".to_owned())));
    }
}
