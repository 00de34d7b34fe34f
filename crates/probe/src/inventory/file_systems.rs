//! How full each tmpfs is: `statfs` of every mounted one, also of those that only other mount namespaces have.
//!
//! A file system is one by its device number, however often it is mounted. Its blocks in use are those in RAM and in swap
//! together. One that another mount hides, or that lies in a place that this user may not enter, has an unknown use, as
//! has one without a limit (`size=0`), which does not count its blocks. Other namespaces are entered by
//! `/proc/PID/root` and nothing there is opened (`O_PATH`). No network or FUSE file system on the way is asked: it might never
//! answer. Cost: 2 µs for each process, 50 µs for each namespace, 5 µs for each file system.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use checked_open::LastLink;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use timeline::{SharedKind, SharedMeasure, SharedObject, UserProcess};
use units::Bytes;

use crate::file_places::MountPlaces;
use crate::file_stat;
use crate::inventory::searched::SearchedProcess;
use crate::kernel_file::Root;
use crate::mounts::{self, DeviceNumbers};
use crate::path_walk::look_up_below;
use crate::process::links;
use crate::search_time::SearchTime;
use crate::text;

/// `TMPFS_MAGIC` of `include/uapi/linux/magic.h`, also of a devtmpfs and a rootfs that are a tmpfs. Files in a ramfs are no
/// shared memory.
const TMPFS_MAGIC: i128 = 0x0102_1994;

/// The file systems that were found.
#[derive(Debug, Default)]
pub(super) struct FileSystems {
    pub(super) objects: Vec<SharedObject>,
    /// Whether namespaces were left out because the time was over.
    pub(super) is_cut: bool,
    measured: HashSet<DeviceNumbers>,
    mounts: MountPlaces,
    /// Where those of unknown use are mounted.
    unknown: BTreeMap<DeviceNumbers, String>,
}

impl FileSystems {
    /// Measures the file systems of this process's mount namespace, then of others.
    pub(super) fn read(root: &Root, processes: &[SearchedProcess], time: SearchTime) -> Self {
        let mut found = Self { mounts: MountPlaces::own(root), ..Self::default() };
        found.namespace(root, "self", None);
        let own = std::fs::read_link(root.path("/proc/self/ns/mnt"));
        let mut seen: HashSet<PathBuf> = own.into_iter().collect();
        for process in processes {
            if time.is_over() {
                found.is_cut = true;
                break;
            }
            let namespace = links::read(root, process.pid, "ns/mnt");
            if namespace.is_some_and(|namespace| seen.insert(namespace)) {
                found.mounts.add_those_of(root, process.pid);
                found.namespace(root, &process.pid.to_string(), Some(process));
            }
        }
        found
    }

    /// Returns where file systems of unknown use are mounted.
    pub(super) fn unknown(&self) -> Vec<String> {
        self.unknown.values().cloned().collect()
    }

    /// Measures the file systems in the mount namespace of a process.
    fn namespace(&mut self, root: &Root, pid: &str, seen_by: Option<&SearchedProcess>) {
        let Ok(text) = root.read(&format!("/proc/{pid}/mountinfo")) else {
            return;
        };
        let top = match seen_by {
            None => checked_open::look_up(CWD, root.path("/"), LastLink::Followed).ok(),
            Some(process) => links::look_up(root, process.pid, "root"),
        };
        let in_memory =
            || mounts::mountinfo(&text).filter(|m| m.kind != b"ramfs" && m.is_in_memory());
        // A mount of a whole file system names it better than one of a directory in it.
        let (whole, parts): (Vec<_>, Vec<_>) = in_memory().partition(|m| &*m.inside == b"/");
        for mount in whole.into_iter().chain(parts) {
            let Some(device) = mount.device.filter(|device| !self.measured.contains(device)) else {
                continue;
            };
            let point = text::lossy(&mount.point).into_owned();
            let find = |top| look_up(top, &mount.point, &self.mounts);
            match top.as_ref().and_then(find).and_then(|found| measure(&found, device)) {
                Some((bytes, limit)) => {
                    self.measured.insert(device);
                    self.unknown.remove(&device);
                    let kind = text::lossy(mount.kind).into_owned();
                    let user = seen_by.map(SearchedProcess::user);
                    self.objects.push(object(point, kind, bytes, limit, user));
                }
                None => {
                    self.unknown.entry(device).or_insert(point);
                }
            }
        }
    }
}

fn object(
    point: String,
    kind: String,
    bytes: Bytes,
    limit: Bytes,
    seen_by: Option<UserProcess>,
) -> SharedObject {
    SharedObject {
        kind: SharedKind::FileSystem { point, kind, limit, seen_by },
        bytes,
        measure: SharedMeasure::InRamOrSwap,
        users: 0,
        first_user: None,
    }
}

/// Looks up where a file system is mounted. The kernel knows the way to a mount point by heart, and no file system on it is
/// asked (`RESOLVE_CACHED`, 5.12). Where that fails it is walked name by name, on file systems that answer.
fn look_up(top: &OwnedFd, point: &[u8], mounts: &MountPlaces) -> Option<OwnedFd> {
    /// A rename anywhere makes the kernel give up.
    const TRIES: usize = 8;
    let below = Path::new(OsStr::from_bytes(point.strip_prefix(b"/").unwrap_or(point)));
    let here = below.as_os_str().is_empty();
    let place = if here { Path::new(".") } else { below };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let cached = || openat2(top, place, flags, Mode::empty(), ResolveFlags::CACHED);
    let mut tries = (0..TRIES).map(|_| cached());
    match tries.find(|found| !matches!(found, Err(Errno::AGAIN))) {
        Some(Ok(found)) => Some(found),
        _ => {
            let may_pass = |found: &OwnedFd| mounts.is_local(found);
            may_pass(top).then_some(())?;
            look_up_below(top.try_clone().ok()?, below, may_pass).ok()
        }
    }
}

/// Returns used bytes and the limit of a tmpfs that was looked up; `None` if it is another file system.
fn measure(found: &OwnedFd, device: DeviceNumbers) -> Option<(Bytes, Bytes)> {
    let number = file_stat::stat(found, c"", AtFlags::EMPTY_PATH).ok()?.device;
    if number != device {
        return None;
    }
    let stat = rustix::fs::fstatfs(found).ok()?;
    let block = u64::try_from(stat.f_bsize).ok()?;
    let is_counted = i128::from(stat.f_type) == TMPFS_MAGIC && stat.f_blocks > 0;
    is_counted.then(|| {
        let used = stat.f_blocks.saturating_sub(stat.f_bfree);
        let bytes = |blocks: u64| Bytes::new(blocks.saturating_mul(block));
        (bytes(used), bytes(stat.f_blocks))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_a_tmpfs_with_the_device_of_the_mount_counts() {
        let directory = tempfile::tempdir().unwrap();
        let process = directory.path().join("proc/self");
        std::fs::create_dir_all(&process).unwrap();
        let forged = "1 0 0:999999 / /proc rw - tmpfs t rw\n\
            2 0 0:999998 / /run/user rw - ramfs t rw\n\
            3 0 0:999997 / /srv rw - nfs4 s rw\n4 0 0:999996 /x /srv/x rw - tmpfs t rw\n\
            5 0 0:999996 / /proc/self rw - tmpfs t rw\n";
        std::fs::write(process.join("mountinfo"), forged).unwrap();
        let root = Root::at(directory.path());
        let found = FileSystems::read(&root, &[], SearchTime::starts(Duration::from_secs(9)));
        assert!(found.objects.is_empty());
        assert_eq!(found.unknown(), ["/proc/self", "/proc"]);
    }

    #[test]
    fn the_search_of_namespaces_ends_with_its_time() {
        let time = SearchTime::starts(Duration::ZERO);
        let found = FileSystems::read(&Root::default(), &[SearchedProcess::default()], time);
        assert!(found.is_cut);
    }

    #[test]
    fn this_hosts_file_systems_are_measured_once() {
        let time = SearchTime::starts(Duration::from_secs(9));
        let processes = [SearchedProcess { pid: std::process::id(), ..SearchedProcess::default() }];
        let found = FileSystems::read(&Root::default(), &processes, time);
        let mut points = HashSet::new();
        for object in &found.objects {
            let SharedKind::FileSystem { point, limit, .. } = &object.kind else {
                panic!("{object:?}");
            };
            assert!(object.bytes <= *limit, "{object:?}");
            assert!(points.insert(point), "{point}");
        }
        assert_eq!(found.measured.len(), found.objects.len());
    }
}
