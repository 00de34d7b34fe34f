//! Where files lie, by the mount tables (`/proc/PID/mountinfo`): what may be opened without waiting for another machine or
//! program, and has its pages in the page cache.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::ReadError;
use crate::file_stat;
use crate::kernel_file::Root;
use crate::mounts::{self, DeviceNumbers, Mount};
use crate::process::links;

/// Where a file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilePlace {
    Disk,
    /// Its pages are shared memory, or huge pages.
    Memory,
    /// Its files have their pages in the layers below.
    Overlay,
    /// It may never answer.
    Remote,
    /// The kernel makes its contents: proc, sysfs, debugfs.
    Kernel,
}

impl FilePlace {
    /// Whether its files are read without waiting for another machine or program.
    pub(crate) const fn is_local(self) -> bool {
        matches!(self, Self::Disk | Self::Memory | Self::Overlay)
    }

    fn of(mount: &Mount<'_>) -> Self {
        /// Those without a device of their own that have pages in the cache.
        const NODEV: [&[u8]; 5] = [b"btrfs", b"zfs", b"bcachefs", b"ubifs", b"ramfs"];
        match mount.kind {
            b"tmpfs" | b"devtmpfs" | b"hugetlbfs" => Self::Memory,
            b"overlay" | b"aufs" => Self::Overlay,
            kind if mounts::may_not_answer(kind) => Self::Remote,
            kind if NODEV.contains(&kind) => Self::Disk,
            _ if mount.device.is_some_and(|(major, _)| major != 0) => Self::Disk,
            _ => Self::Kernel,
        }
    }
}

/// Where the files of mounts and devices lie.
#[derive(Debug, Default)]
pub(crate) struct MountPlaces {
    pub(crate) by_id: HashMap<u64, FilePlace>,
    pub(crate) by_device: HashMap<DeviceNumbers, FilePlace>,
    /// By mount point, of this process's namespace.
    by_point: HashMap<PathBuf, FilePlace>,
    /// Other mount namespaces that were added.
    namespaces: HashSet<PathBuf>,
    /// Whether this is a directory of saved files without a mount table, where nothing is mounted.
    is_saved: bool,
}

impl MountPlaces {
    /// The mounts that this process sees.
    pub(crate) fn own(root: &Root) -> Self {
        let table = root.read("/proc/self/mountinfo");
        let is_missing = |why: &ReadError| why.source.kind() == ErrorKind::NotFound;
        let mut own = Self { is_saved: table.as_ref().is_err_and(is_missing), ..Self::default() };
        for mount in mounts::mountinfo(&table.unwrap_or_default()) {
            let point = PathBuf::from(OsStr::from_bytes(&mount.point));
            let place = FilePlace::of(&mount);
            own.by_point.insert(point, place);
            own.add(&mount, place);
        }
        own
    }

    fn add(&mut self, mount: &Mount<'_>, place: FilePlace) {
        self.by_id.extend(mount.id.map(|id| (id, place)));
        self.by_device.extend(mount.device.map(|device| (device, place)));
    }

    /// Adds the mounts that another process sees, once for each namespace.
    pub(crate) fn add_those_of(&mut self, root: &Root, pid: u32) {
        let namespace = links::read(root, pid, "ns/mnt");
        if namespace.is_some_and(|namespace| self.namespaces.insert(namespace)) {
            let text = root.read(&format!("/proc/{pid}/mountinfo"));
            for mount in mounts::mountinfo(&text.unwrap_or_default()) {
                let mut place = FilePlace::of(&mount);
                let is_known = |device| self.by_device.contains_key(&device);
                // A user may have made it over a file system of a program.
                if place == FilePlace::Overlay && !mount.device.is_some_and(is_known) {
                    place = FilePlace::Remote;
                }
                self.add(&mount, place);
            }
        }
    }

    /// Where a file lies that was looked up: by its mount, which no file system is asked for. `None` if that is in none of the
    /// mount tables, as the kernel's own file systems are.
    fn of_file(&self, found: &OwnedFd) -> Option<FilePlace> {
        let mount = file_stat::mount_of(found)?;
        self.by_id.get(&mount).copied()
    }

    /// Whether what was looked up lies where no other machine or program is waited for.
    pub(crate) fn is_local(&self, found: &OwnedFd) -> bool {
        let place = || self.of_file(found);
        self.is_saved || place().is_some_and(|place| place.is_local())
    }

    /// Where a directory lies, by its path.
    pub(crate) fn of_path(&self, path: &Path) -> FilePlace {
        let mut points = path.ancestors().filter_map(|point| self.by_point.get(point));
        points.next().copied().unwrap_or(FilePlace::Disk)
    }
}

/// Why the files below a directory are not searched for, in words; `None` if they are. The path is absolute.
pub fn refused(root: &Root, directory: &Path) -> Option<&'static str> {
    match MountPlaces::own(root).of_path(directory) {
        FilePlace::Disk => None,
        FilePlace::Memory => {
            Some("its files are shared memory, which `memtide where` shows as such")
        }
        FilePlace::Overlay => Some("its pages are those of the layers below the overlay"),
        FilePlace::Remote => Some("its file system may never answer (NFS, FUSE)"),
        FilePlace::Kernel => Some("it has no files on a disk"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with these mounts.
    fn host(mountinfo: &str) -> (tempfile::TempDir, MountPlaces) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/self")).unwrap();
        std::fs::write(directory.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        let places = MountPlaces::own(&Root::at(directory.path()));
        (directory, places)
    }

    #[test]
    fn only_files_on_disks_are_opened() {
        let (_host, places) = host(
            "22 1 259:1 / / rw - ext4 /dev/root rw\n\
             23 22 0:20 / /proc rw - proc proc rw\n\
             24 22 0:6 / /sys/kernel/debug rw - debugfs debugfs rw\n\
             25 22 0:21 / /run rw - tmpfs tmpfs rw\n\
             26 25 0:30 / /run/nfs rw - nfs4 server:/ rw\n\
             27 22 0:31 /@home /home rw - btrfs /dev/sdb rw\n\
             28 22 0:32 / /merged rw - overlay overlay rw\n\
             29 25 8:17 / /run/disk rw - xfs /dev/sdb1 rw\n",
        );
        for (path, place) in [
            ("/", FilePlace::Disk),
            ("/var/lib/mysql", FilePlace::Disk),
            ("/proc/1", FilePlace::Kernel),
            ("/sys/kernel/debug/tracing", FilePlace::Kernel),
            ("/run/user/0", FilePlace::Memory),
            ("/run/nfs/data", FilePlace::Remote),
            ("/run/disk/data", FilePlace::Disk),
            ("/home/ann", FilePlace::Disk),
            ("/merged", FilePlace::Overlay),
        ] {
            assert_eq!(places.of_path(Path::new(path)), place, "{path}");
        }
        assert_eq!(places.by_id.get(&26), Some(&FilePlace::Remote));
        assert_eq!(places.by_device.get(&(0, 31)), Some(&FilePlace::Disk));
    }
}
