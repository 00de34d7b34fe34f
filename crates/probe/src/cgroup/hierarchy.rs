//! Locates the cgroup hierarchy that manages memory: its version, its mount, and our own cgroup.

use std::path::PathBuf;

use timeline::facts::CgroupMode;

use crate::cgroup::service;
use crate::kernel_file::Root;
use crate::mounts::{self, Mount};
use crate::text;

/// The hierarchy that manages memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) mode: CgroupMode,
    /// Where it is mounted, below the root.
    pub(crate) point: String,
    /// The cgroup that is mounted there: `/`, or a container's own.
    inside: Vec<u8>,
}

/// Finds the cgroup hierarchy that manages memory: its version and where it is mounted; `None` where none is.
pub fn memory_cgroup_mount(root: &Root) -> Option<(CgroupMode, PathBuf)> {
    let found = Hierarchy::find(root)?;
    Some((found.mode, root.path(&found.point)))
}

/// The cgroups that processes are charged to.
#[derive(Debug)]
pub struct MemoryGroups {
    root: Root,
    hierarchy: Hierarchy,
}

impl MemoryGroups {
    /// Finds the hierarchy that manages memory; `None` where none is mounted.
    pub fn find(root: &Root) -> Option<Self> {
        Some(Self { root: root.clone(), hierarchy: Hierarchy::find(root)? })
    }

    /// The path below the mount of the cgroup that a process (or `self`) is in; `None` if it ended or is outside of what is mounted.
    pub fn of(&self, process: impl std::fmt::Display) -> Option<String> {
        self.hierarchy.key(&self.root.read(&format!("/proc/{process}/cgroup")).ok()?)
    }

    /// The processes of a cgroup and of those below it, as far as they can be listed.
    pub fn processes(&self, group: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let mut waiting = vec![group.trim_end_matches('/').to_owned()];
        while let Some(group) = waiting.pop() {
            let directory = format!("{}{group}", self.hierarchy.point);
            let list = self.root.read(&format!("{directory}/cgroup.procs")).unwrap_or_default();
            let pids = text::lines(&list).filter_map(|(_, line)| text::number(text::trim(line)));
            found.extend(pids.filter_map(|pid| u32::try_from(pid).ok()));
            let below =
                std::fs::read_dir(self.root.path(&directory)).into_iter().flatten().flatten();
            let directories =
                below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            waiting.extend(
                directories
                    .filter_map(|entry| Some(format!("{group}/{}", entry.file_name().to_str()?))),
            );
        }
        found
    }
}

impl Hierarchy {
    /// Finds the hierarchy below `root`; `None` where none is mounted.
    pub(crate) fn find(root: &Root) -> Option<Self> {
        let mountinfo = root.read("/proc/self/mountinfo").unwrap_or_default();
        let mounted = |mode, has: &dyn Fn(&str) -> bool| {
            // Of several mounts at one point, the last is visible.
            let all = mounts::mountinfo(&mountinfo).filter(|mount| mounts::is_cgroup(mount, mode));
            let found = all.filter_map(|mount| Self::at_mount(mode, &mount));
            found.filter(|hierarchy| has(&hierarchy.point)).last()
        };
        let has_stat = |point: &str| root.has(&format!("{point}/memory.stat"));
        let has_memory = |point: &str| {
            let controllers = root.read(&format!("{point}/cgroup.controllers"));
            controllers.is_ok_and(|list| text::words(text::trim(&list)).any(|c| c == b"memory"))
        };
        // Without a mount table, as in a directory of saved files, the usual places are tried.
        let usual = |mode, point: &str, has: &dyn Fn(&str) -> bool| {
            has(point).then(|| Self { mode, point: point.to_owned(), inside: b"/".to_vec() })
        };
        mounted(CgroupMode::V1, &has_stat)
            .or_else(|| mounted(CgroupMode::V2, &has_memory))
            .or_else(|| {
                usual(CgroupMode::V1, "/sys/fs/cgroup/memory", &|point| {
                    root.has(&format!("{point}/memory.usage_in_bytes"))
                })
            })
            .or_else(|| usual(CgroupMode::V2, "/sys/fs/cgroup", &has_memory))
    }

    /// Finds the directory of our own cgroup in the v1 hierarchy of a controller, from our `mountinfo` and `cgroup`.
    pub(crate) fn own_of_controller(
        controller: &[u8],
        mountinfo: &[u8],
        cgroup: &[u8],
    ) -> Option<String> {
        let all = mounts::mountinfo(mountinfo);
        let mounted = all.filter(|mount| mounts::has_controller(mount, controller)).last()?;
        let hierarchy = Self::at_mount(CgroupMode::V1, &mounted)?;
        let own = hierarchy.below(service::path_of_controller(cgroup, controller)?)?;
        Some(format!("{}{}", hierarchy.point, own.trim_end_matches('/')))
    }

    fn at_mount(mode: CgroupMode, mount: &Mount<'_>) -> Option<Self> {
        Some(Self {
            mode,
            point: String::from_utf8(mount.point.to_vec()).ok()?,
            inside: mount.inside.to_vec(),
        })
    }

    /// Returns the cgroup in this `/proc/PID/cgroup` as it is keyed in the timeline: its path below the mount. `None`
    /// if it is outside of the mounted part.
    pub(crate) fn key(&self, cgroup: &[u8]) -> Option<String> {
        self.below(service::memory_path(cgroup, self.mode)?)
    }

    /// Returns a path in the hierarchy as it lies below the mount; `None` outside of the mounted part.
    fn below(&self, path: &[u8]) -> Option<String> {
        let below = match &self.inside[..] {
            b"/" => path,
            inside => path.strip_prefix(inside)?,
        };
        match below {
            b"" | b"/" => Some("/".to_owned()),
            // A cgroup outside of the cgroup namespace.
            [b'/', b'.', b'.', ..] => None,
            [b'/', ..] => Some(text::lossy(below).into_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn hierarchy(mode: CgroupMode, inside: &str) -> Hierarchy {
        Hierarchy { mode, point: "/sys/fs/cgroup".to_owned(), inside: inside.as_bytes().to_vec() }
    }

    #[test]
    fn the_own_group_is_its_path_below_the_mount() {
        use CgroupMode::{V1, V2};
        for (mode, inside, cgroup, expected) in [
            (V2, "/", "0::/\n", Some("/")),
            (V2, "/", "0::/a/b.service\n", Some("/a/b.service")),
            (V2, "/", "0::/../other\n", None),
            (V1, "/docker/ab", "4:memory:/docker/ab\n", Some("/")),
            (V1, "/docker/ab", "4:memory:/docker/ab/in\n", Some("/in")),
            (V1, "/docker/ab", "4:memory:/docker/abc\n", None),
            (V1, "/", "4:cpu:/x\n0::/y\n", None),
        ] {
            let key = hierarchy(mode, inside).key(cgroup.as_bytes());
            assert_eq!(key.as_deref(), expected, "{inside} {cgroup}");
        }
    }

    #[test]
    fn the_version_with_the_memory_controller_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        assert_eq!(Hierarchy::find(&root), None);
        let group = directory.path().join("sys/fs/cgroup");
        fs::create_dir_all(group.join("unified")).unwrap();
        fs::create_dir_all(directory.path().join("proc/self")).unwrap();
        fs::write(group.join("cgroup.controllers"), "cpu io memory pids\n").unwrap();
        let found = Hierarchy::find(&root).unwrap();
        assert_eq!((found.mode, &*found.point), (CgroupMode::V2, "/sys/fs/cgroup"));

        // A hybrid host: memory is on v1, the unified hierarchy has none.
        fs::write(group.join("cgroup.controllers"), "hugetlb\n").unwrap();
        fs::create_dir_all(directory.path().join("cg/mem,cpu")).unwrap();
        fs::write(directory.path().join("cg/mem,cpu/memory.stat"), "cache 0\n").unwrap();
        let mounts = "31 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
            35 31 0:32 / /cg/mem,cpu rw,relatime - cgroup cgroup rw,cpu,memory\n";
        fs::write(directory.path().join("proc/self/mountinfo"), mounts).unwrap();
        let found = Hierarchy::find(&root).unwrap();
        assert_eq!((found.mode, &*found.point), (CgroupMode::V1, "/cg/mem,cpu"));
    }
}
