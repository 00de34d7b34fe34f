//! Where the cgroup of a run is made.
//!
//! On v1 below our own cgroup, in the hierarchies of memory, CPU time and freezing. On v2 a cgroup other than the root has either
//! processes or controllers for cgroups below it ("no internal processes", cgroup-v2.rst), and ours has this process: so
//! the new one stands beside ours, where all limits but our own apply, and not at all where ours has one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use probe::{CgroupFiles, OwnCgroups, Root};
use timeline::Row;
use timeline::facts::CgroupMode;
use timeline::signals::{CGROUP_HIGH, CGROUP_MAX, CGROUP_SWAP_MAX};
use units::Limit;

use crate::run_in_cgroup::error::CgroupRunError;

/// Runs of this process so far.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// The directories of a run's cgroup, none of which exists yet. Two may be the same, as controllers may share a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupPlace {
    pub(super) mode: CgroupMode,
    pub(super) memory: PathBuf,
    pub(super) cpuacct: Option<PathBuf>,
    pub(super) freezer: Option<PathBuf>,
}

impl GroupPlace {
    /// Chooses one for the next run, and removes what ended processes left there.
    pub(super) fn choose(name: &str) -> Result<Self, CgroupRunError> {
        let own = OwnCgroups::find(&Root::default()).ok_or(CgroupRunError::NotMounted)?;
        let parent = match own.mode {
            CgroupMode::V1 => own.memory.clone(),
            CgroupMode::V2 => parent_on_v2(&own.mount, &own.memory)?,
        };
        let parents = [Some(&parent), own.cpuacct.as_ref(), own.freezer.as_ref()];
        parents.into_iter().flatten().for_each(|parent| remove_abandoned(parent, name));
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{run}", std::process::id());
        Ok(Self {
            mode: own.mode,
            memory: parent.join(&name),
            cpuacct: own.cpuacct.map(|parent| parent.join(&name)),
            freezer: own.freezer.map(|parent| parent.join(&name)),
        })
    }

    /// The directories, each once, that of memory first.
    pub(super) fn directories(&self) -> Vec<&Path> {
        let all = [Some(&self.memory), self.cpuacct.as_ref(), self.freezer.as_ref()];
        let mut each: Vec<&Path> = Vec::new();
        for directory in all.into_iter().flatten() {
            if !each.contains(&directory.as_path()) {
                each.push(directory);
            }
        }
        each
    }
}

/// Chooses what is around a new cgroup on v2: ours if cgroups below it can have the memory controller, else its parent.
fn parent_on_v2(mount: &Path, own: &Path) -> Result<PathBuf, CgroupRunError> {
    if has_memory_below(own) {
        return Ok(own.to_owned());
    }
    if !own.join("cgroup.type").exists() {
        // Only the root of all cgroups has no type. It may enable a controller while it has processes.
        let _ = std::fs::write(own.join("cgroup.subtree_control"), "+memory");
    }
    let beside = own.parent().filter(|parent| own != mount && has_memory_below(parent));
    match beside {
        _ if has_memory_below(own) => Ok(own.to_owned()),
        Some(_) if has_limit(own) => Err(CgroupRunError::OwnLimit { own: own.to_owned() }),
        Some(parent) => Ok(parent.to_owned()),
        None => Err(CgroupRunError::NotEnabled { parent: own.to_owned() }),
    }
}

fn has_memory_below(group: &Path) -> bool {
    let enabled = std::fs::read_to_string(group.join("cgroup.subtree_control"));
    enabled.is_ok_and(|list| list.split_whitespace().any(|controller| controller == "memory"))
}

/// Whether a v2 cgroup has a limit of its own.
fn has_limit(group: &Path) -> bool {
    let mut row = Row::default();
    for name in ["memory.max", "memory.high", "memory.swap.max"] {
        if let Ok(text) = std::fs::read(group.join(name)) {
            // A file that cannot be parsed leaves its limit absent.
            let _ = CgroupFiles::default().parse(CgroupMode::V2, name, &text, &mut row);
        }
    }
    let limits = [CGROUP_MAX, CGROUP_HIGH, CGROUP_SWAP_MAX].map(|limit| row.get(limit));
    limits.into_iter().flatten().any(|limit| limit != Limit::Unlimited)
}

/// Removes cgroups of earlier runs, of processes that are gone. The kernel refuses it for one in use.
fn remove_abandoned(parent: &Path, name: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let entry_name = entry.file_name();
        let run = entry_name.to_str().and_then(|entry| entry.strip_prefix(name)?.strip_prefix('-'));
        let pid = run.and_then(|run| run.split_once('-')).map(|(pid, _)| pid);
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Directories like cgroups, with these texts; real v2 cgroups are tried in `scripts/systemd-vm.sh`.
    fn groups(files: &[(&str, &str)]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        mount
    }

    #[test]
    fn on_v2_a_group_stands_beside_ours_unless_that_escapes_a_limit() {
        let session = [
            ("user.slice/cgroup.subtree_control", "cpu memory pids\n"),
            ("user.slice/session.scope/cgroup.type", "domain\n"),
            ("user.slice/session.scope/cgroup.subtree_control", "\n"),
            ("user.slice/session.scope/memory.max", "max\n"),
        ];
        let mount = groups(&session);
        let own = mount.path().join("user.slice/session.scope");
        let parent = parent_on_v2(mount.path(), &own).unwrap();
        assert_eq!(parent, mount.path().join("user.slice"));

        fs::write(own.join("memory.max"), "536870912\n").unwrap();
        let error = parent_on_v2(mount.path(), &own).unwrap_err();
        assert!(error.to_string().ends_with("has a limit, which a cgroup beside it would escape"));

        fs::write(mount.path().join("user.slice/cgroup.subtree_control"), "cpu\n").unwrap();
        let error = parent_on_v2(mount.path(), &own).unwrap_err();
        assert!(error.to_string().contains("not enabled in"), "{error}");
        // A container has no parent that it could see.
        fs::write(mount.path().join("cgroup.subtree_control"), "memory\n").unwrap();
        fs::write(mount.path().join("cgroup.type"), "domain\n").unwrap();
        assert_eq!(parent_on_v2(mount.path(), mount.path()).unwrap(), mount.path());
    }

    #[test]
    fn only_groups_of_ended_processes_are_removed() {
        let own = std::process::id();
        let names = ["a-run-4294967295-0", &format!("a-run-{own}-0"), "a-run-x", "b-4294967295-0"];
        let parent = tempfile::tempdir().unwrap();
        for name in names {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_abandoned(parent.path(), "a-run");
        let left = names.map(|name| parent.path().join(name).exists());
        assert_eq!(left, [false, true, true, true]);
    }
}
