//! The memory this process may still take before the OOM killer acts: the minimum of what its cgroup, the ancestors of
//! the cgroup and the host have left.
//!
//! A cgroup's page cache counts as free because it is reclaimed first. Free swap does not count: memory that is
//! available only by swapping others out is not left. Cgroups outside the process's view (above a container's own) are
//! not read. Cost: three small files and `memory.stat` for each cgroup; for the start, not for samples.

use timeline::cgroup::parent;
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_HIGH, CGROUP_INACTIVE_FILE, CGROUP_MAX,
    MEM_AVAILABLE, MEMINFO,
};
use timeline::{Row, Sample};
use units::{Bytes, Limit};

use crate::cgroup::files::CgroupFiles;
use crate::cgroup::hierarchy::{Hierarchy, MemoryGroups};
use crate::host::meminfo::Meminfo;
use crate::kernel_file::Root;

/// Memory left in a cgroup or on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLeft {
    /// How much of it.
    pub left: Bytes,
    /// The place in words: `cgroup /a of 24 MiB`, `this host`.
    pub place: String,
}

/// Returns the place with the least memory left; `None` if neither the host nor a cgroup reports any.
pub fn least(root: &Root) -> Option<MemoryLeft> {
    let own = MemoryGroups::find(root).and_then(|groups| groups.of("self"));
    least_in(root, own.as_deref())
}

/// The same for a process in this cgroup, by its path below the mount.
pub fn least_in(root: &Root, group: Option<&str>) -> Option<MemoryLeft> {
    let groups = group.and_then(|group| in_groups(root, group)).unwrap_or_default();
    groups.into_iter().chain(on_host(root)).min_by_key(|place| place.left)
}

fn on_host(root: &Root) -> Option<MemoryLeft> {
    let mut sample = Sample::default();
    let text = root.read(MEMINFO).ok()?;
    // A malformed line leaves its reading absent.
    let _ = Meminfo::default().parse(&text, &mut sample);
    Some(MemoryLeft { left: sample.host.get(MEM_AVAILABLE)?, place: "this host".to_owned() })
}

/// Returns what is left in each cgroup with a limit, from this one up to the mount.
fn in_groups(root: &Root, group: &str) -> Option<Vec<MemoryLeft>> {
    let hierarchy = Hierarchy::find(root)?;
    let mut files = CgroupFiles::default();
    let groups = std::iter::successors(Some(group), |group| parent(group));
    Some(groups.filter_map(|group| in_group(root, &hierarchy, group, &mut files)).collect())
}

fn in_group(
    root: &Root,
    hierarchy: &Hierarchy,
    group: &str,
    files: &mut CgroupFiles,
) -> Option<MemoryLeft> {
    let names: &[&str] = match hierarchy.mode {
        CgroupMode::V1 => &["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"],
        CgroupMode::V2 => &["memory.max", "memory.high", "memory.current", "memory.stat"],
    };
    let directory = format!("{}/{}", hierarchy.point, group.trim_matches('/'));
    let mut row = Row::default();
    for name in names {
        if let Ok(text) = root.read(&format!("{directory}/{name}")) {
            // A malformed line leaves its reading absent.
            let _ = files.parse(hierarchy.mode, name, &text, &mut row);
        }
    }
    let limit = [CGROUP_MAX, CGROUP_HIGH].map(|limit| row.get(limit).and_then(Limit::limited));
    let limit = limit.into_iter().flatten().min()?;
    let in_files = [CGROUP_INACTIVE_FILE, CGROUP_ACTIVE_FILE];
    let in_files = in_files.into_iter().filter_map(|list| row.get(list));
    let used = in_files.fold(row.get(CGROUP_CURRENT)?, Bytes::saturating_sub);
    Some(MemoryLeft {
        left: limit.saturating_sub(used),
        place: format!("cgroup {group} of {limit}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MIB: u64 = 1 << 20;

    /// A root with these files, sizes in MiB where the text is a number.
    fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = match text.parse::<u64>() {
                Ok(size) => format!("{}\n", size * MIB),
                Err(_) => (*text).to_owned(),
            };
            fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    fn left(files: &[(&str, &str)]) -> Option<(u64, String)> {
        let (_directory, root) = root(files);
        least(&root).map(|memory| (memory.left.get() / MIB, memory.place))
    }

    const HOST: (&str, &str) = ("proc/meminfo", "MemAvailable: 102400 kB\n");

    #[test]
    fn without_a_limit_it_is_the_hosts() {
        assert_eq!(left(&[]), None);
        let host = Some((100, "this host".to_owned()));
        assert_eq!(left(&[HOST]), host);
        let unlimited = [
            HOST,
            ("proc/self/cgroup", "0::/a\n"),
            ("sys/fs/cgroup/cgroup.controllers", "memory\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.high", "max\n"),
            ("sys/fs/cgroup/a/memory.current", "50"),
        ];
        assert_eq!(left(&unlimited), host);
    }

    #[test]
    fn the_tightest_group_from_ours_up_decides_and_its_page_cache_counts_as_left() {
        let v2 = [
            HOST,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
            ("sys/fs/cgroup/a/memory.max", "64"),
            ("sys/fs/cgroup/a/memory.high", "48"),
            ("sys/fs/cgroup/a/memory.current", "40"),
            ("sys/fs/cgroup/a/b/memory.max", "32"),
            ("sys/fs/cgroup/a/b/memory.current", "12"),
            (
                "sys/fs/cgroup/a/b/memory.stat",
                "anon 1\ninactive_file 4194304\nactive_file 2097152\n",
            ),
        ];
        assert_eq!(left(&v2[..6]), Some((8, "cgroup /a of 48 MiB".to_owned())));
        let own = [&v2[..3], &v2[6..]].concat();
        assert_eq!(left(&own), Some((26, "cgroup /a/b of 32 MiB".to_owned())));
        assert_eq!(left(&v2), left(&v2[..6]));
    }

    #[test]
    fn groups_of_v1_and_a_containers_own_mount_count_as_well() {
        let v1 = |cgroup| {
            [
                ("proc/self/cgroup", cgroup),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "24"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "30"),
                ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712 "),
            ]
        };
        let full = Some((0, "cgroup / of 24 MiB".to_owned()));
        assert_eq!(left(&v1("4:memory:/x\n")), full);
        assert_eq!(left(&v1("4:memory:/\n")), full);
        assert_eq!(left(&v1("4:cpu:/\n")), None, "the group is not known");
    }

    #[test]
    fn this_machine_has_memory_left() {
        assert!(least(&Root::default()).unwrap().left > Bytes::ZERO);
    }
}
