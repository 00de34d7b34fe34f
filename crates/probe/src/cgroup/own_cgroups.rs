//! Our own cgroup in each hierarchy that a new cgroup is made in: memory, and on v1 those of CPU time and of freezing.

use std::path::PathBuf;

use timeline::facts::CgroupMode;

use crate::cgroup::hierarchy::Hierarchy;
use crate::kernel_file::Root;

/// The cgroups that this process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCgroups {
    /// The version that manages memory.
    pub mode: CgroupMode,
    /// Where that hierarchy is mounted.
    pub mount: PathBuf,
    /// The directory of our cgroup in it.
    pub memory: PathBuf,
    /// Its directory in the v1 hierarchy that counts CPU time; v2 counts it in the same directory.
    pub cpuacct: Option<PathBuf>,
    /// Its directory in the v1 hierarchy that can freeze processes; v2 can in the same directory.
    pub freezer: Option<PathBuf>,
}

impl OwnCgroups {
    /// Finds them. `None`: no hierarchy that manages memory is mounted, or only a part of it that we are not in.
    pub fn find(root: &Root) -> Option<Self> {
        let hierarchy = Hierarchy::find(root)?;
        let cgroup = root.read("/proc/self/cgroup").ok()?;
        let key = hierarchy.key(&cgroup)?;
        let mountinfo = root.read("/proc/self/mountinfo").unwrap_or_default();
        let of = |controller: &[u8]| {
            let own = Hierarchy::own_of_controller(controller, &mountinfo, &cgroup);
            own.filter(|_| hierarchy.mode == CgroupMode::V1).map(|own| root.path(&own))
        };
        Some(Self {
            mode: hierarchy.mode,
            mount: root.path(&hierarchy.point),
            memory: root.path(&format!("{}{}", hierarchy.point, key.trim_end_matches('/'))),
            cpuacct: of(b"cpuacct"),
            freezer: of(b"freezer"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found(files: &[(&str, &str)]) -> Option<(OwnCgroups, PathBuf)> {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let own = OwnCgroups::find(&Root::at(directory.path()))?;
        Some((own, directory.path().to_owned()))
    }

    #[test]
    fn each_v1_hierarchy_has_a_path_of_its_own() {
        let mounts = "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
            36 31 0:33 /docker/ab /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let own = "4:memory:/a/b\n3:cpu,cpuacct:/docker/ab/c\n2:freezer:/\n0::/x\n";
        let files = [
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", own),
            ("cg/memory/memory.stat", "cache 0\n"),
        ];
        let (own, at) = found(&files).unwrap();
        assert_eq!((own.mode, &own.memory), (CgroupMode::V1, &at.join("cg/memory/a/b")));
        assert_eq!(own.cpuacct, Some(at.join("cg/cpu,cpuacct/c")));
        assert_eq!(own.freezer, None, "it is not mounted");
    }

    #[test]
    fn v2_has_one_directory_for_all() {
        let files = [
            ("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
        ];
        let (own, at) = found(&files).unwrap();
        assert_eq!((own.mode, &own.memory), (CgroupMode::V2, &own.mount));
        assert_eq!((own.memory, own.cpuacct), (at.join("sys/fs/cgroup"), None));
        assert_eq!(found(&[("proc/self/cgroup", "0::/\n")]), None);
    }
}
