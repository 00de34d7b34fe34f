//! Facts that rarely change: tunables, nodes, disks, mounts.

use probe::octal;
use timeline::Facts;
use timeline::facts::{self, CgroupMode, Change};

use super::Texts;

/// Returns the texts of the facts at the start.
pub(in crate::capture) fn known(known: &Facts) -> Texts {
    let first = |fact: &facts::Fact| {
        let mut changes = known.changes().iter();
        let changed = changes.find(|change| change.fact.file == fact.file);
        changed.map(|change| change.from.clone()).or_else(|| known.text(*fact).map(str::to_owned))
    };
    let tunables = facts::ALL.iter().filter_map(|fact| Some((fact.file.to_owned(), first(fact)?)));
    let nodes = known.nodes.iter().map(|node| {
        let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
        let path = format!("/sys/devices/system/node/node{}/distance", node.id);
        (path, distances.join(" "))
    });
    let disks = known.disks.iter().filter_map(|disk| {
        let rotational = u8::from(disk.rotational?);
        Some((format!("/sys/block/{}/queue/rotational", disk.name), rotational.to_string()))
    });
    let mut texts: Texts = tunables.chain(nodes).chain(disks).collect();
    let mounts = mounts(known);
    if !mounts.is_empty() {
        texts.insert("/proc/self/mounts".to_owned(), mounts);
    }
    texts
}

/// Returns the texts of new values.
pub(in crate::capture) fn changed<'a>(changes: impl Iterator<Item = &'a Change>) -> Texts {
    changes.map(|change| (change.fact.file.to_owned(), change.to.clone())).collect()
}

/// Returns the texts of values that were read before a change.
pub(in crate::capture) fn unchanged<'a>(changes: impl Iterator<Item = &'a Change>) -> Texts {
    changes.map(|change| (change.fact.file.to_owned(), change.from.clone())).collect()
}

/// Returns the mounts that show memory file systems and the cgroup version.
fn mounts(known: &Facts) -> String {
    let in_memory = known.memory_mounts.iter().map(|mount| {
        let size = mount.size.map_or_else(String::new, |size| format!(",size={}", size.get()));
        format!("{kind} {} {kind} rw{size} 0 0\n", octal::escaped(&mount.point), kind = mount.kind)
    });
    let groups = known.cgroup_mode.map(|mode| match mode {
        CgroupMode::V1 => "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
        CgroupMode::V2 => "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    });
    in_memory.chain(groups.map(str::to_owned)).collect()
}
