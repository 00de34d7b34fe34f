//! Facts that change rarely: tunables, page size, CPUs, NUMA nodes, disks, file systems in RAM, cgroups, containers.
//!
//! Most facts are one small file each. A missing file leaves its fact absent, as kernels without the feature and users
//! without the right are common. Page size and USER_HZ come from the C library's start-up data, and so describe only
//! the running machine, not a directory of another machine's files. Cost: 60 small reads, 0.3 ms; meant for the start
//! and then once a minute, to notice a changed tunable.

use std::borrow::Cow;

use timeline::{
    Facts,
    facts::{self, Disk, Node},
    signals,
};
use units::{PageSize, Span};

use crate::cgroup::hierarchy::Hierarchy;
use crate::error::ReadError;
use crate::host::container;
use crate::kernel_file::Root;
use crate::mounts;
use crate::text;

const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";
const NODES: &str = "/sys/devices/system/node/";
const BLOCK: &str = "/sys/block/";
/// One is a link to the other; a directory of saved files may have only one of them.
const MOUNTS: [&str; 2] = ["/proc/self/mounts", "/proc/mounts"];
/// The host's mount table. This process may have one of its own: a service in which systemd hides directories, each with a
/// mount that lies on a tmpfs.
const MOUNTS_OF_HOST: &str = "/proc/1/mounts";

/// Returns the paths below `root` of files that contain a fact each, which a capture keeps: tunables, CPUs, nodes,
/// disks, mounts. The other facts come from several files, or from none.
pub fn files(root: &Root) -> Vec<String> {
    let mut paths: Vec<String> = facts::ALL.iter().map(|f| f.file.to_owned()).collect();
    paths.push(CPUS_ONLINE.to_owned());
    let nodes = root.names(NODES).into_iter();
    paths.extend(nodes.map(|node| format!("{NODES}{node}/distance")));
    let disks = root.names(BLOCK).into_iter();
    paths.extend(disks.map(|disk| format!("{BLOCK}{disk}/queue/rotational")));
    let mounts = MOUNTS.into_iter().find(|path| root.has(path));
    paths.extend(mounts.map(str::to_owned));
    paths
}

/// Reads one of these files. The mount table is the host's, where that may be read.
///
/// # Errors
/// [`ReadError`] if the file cannot be read.
pub fn file_text(root: &Root, path: &str) -> Result<Vec<u8>, ReadError> {
    if MOUNTS.contains(&path)
        && let Ok(text) = root.read(MOUNTS_OF_HOST)
    {
        return Ok(text);
    }
    root.read(path)
}

/// Returns the part of one of these files that may be stored: only the lines about memory of a mount table, all of
/// other files.
pub fn without_private<'a>(path: &str, text: &'a [u8]) -> Cow<'a, [u8]> {
    if MOUNTS.contains(&path) { mounts::about_memory(text).into() } else { text.into() }
}

/// Returns the host's name, read only on request.
pub fn hostname(root: &Root) -> Option<String> {
    let text = root.read("/proc/sys/kernel/hostname").ok()?;
    let name = text::lossy(text::trim(&text)).into_owned();
    (!name.is_empty()).then_some(name)
}

/// Whether this user is root, to whom the kernel refuses next to nothing.
pub fn user_is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the page size of the running kernel; `None` if it is none that Linux has.
pub fn page_size() -> Option<PageSize> {
    let bytes = u64::try_from(rustix::param::page_size());
    bytes.ok().and_then(PageSize::from_bytes)
}

/// Reads all facts of the host below `root`; `at` is the time on the boot clock, for facts that changed.
pub fn read(root: &Root, at: Span, facts: &mut Facts) {
    for path in files(root) {
        if let Ok(text) = file_text(root, &path) {
            match facts::ALL.iter().find(|fact| fact.file == path) {
                Some(fact) => facts.record(at, *fact, &text::lossy(&text)),
                None => {
                    from_saved(&path, &text, facts);
                }
            }
        }
    }
    if root.path("/") == std::path::Path::new("/") {
        facts.page_size = page_size();
        facts.ticks_per_second = Some(rustix::param::clock_ticks_per_second());
    }
    if facts.cpus.is_none()
        && let Ok(stat) = root.read(signals::STAT)
    {
        facts.cpus = cpus_in_stat(&stat);
    }
    if let Some(hierarchy) = Hierarchy::find(root) {
        facts.cgroup_mode = Some(hierarchy.mode);
        let own = root.read("/proc/self/cgroup").ok();
        facts.own_cgroup = own.and_then(|text| hierarchy.key(&text));
    }
    facts.container = container::detect(root);
}

/// Takes the facts from a kernel file's text that was saved under its path. `false`: the path contains none of them.
/// Tunables are not read here: [`facts::ALL`] lists their files.
pub(crate) fn from_saved(path: &str, text: &[u8], facts: &mut Facts) -> bool {
    match SavedFact::at(path) {
        Some(SavedFact::Cpus) => facts.cpus = listed(text).or(facts.cpus),
        Some(SavedFact::Mounts) => {
            facts.memory_mounts = mounts::in_memory(mounts::mounts(text));
            let mode = mounts::cgroup_mode(mounts::mounts(text));
            facts.cgroup_mode = facts.cgroup_mode.or(mode);
        }
        Some(SavedFact::Node(id)) => note_node(id, text, &mut facts.nodes),
        Some(SavedFact::Disk(name)) => note_disk(name, text, &mut facts.disks),
        None => return false,
    }
    true
}

/// A saved file with a fact that is more than a short text.
pub(crate) enum SavedFact<'a> {
    Cpus,
    Mounts,
    Node(u32),
    Disk(&'a str),
}

impl<'a> SavedFact<'a> {
    /// Returns the fact in the file at a path.
    pub(crate) fn at(path: &'a str) -> Option<Self> {
        if path == CPUS_ONLINE {
            Some(Self::Cpus)
        } else if MOUNTS.contains(&path) {
            Some(Self::Mounts)
        } else if let Some(id) = between(path, NODES, "/distance") {
            let id = id.strip_prefix("node").and_then(small_number);
            id.map(Self::Node)
        } else {
            between(path, BLOCK, "/queue/rotational").map(Self::Disk)
        }
    }
}

/// Takes the number of CPUs from a saved `/proc/stat` if there is no better source. Its readings have their own parser.
pub(crate) fn note_cpus(path: &str, text: &[u8], facts: &mut Facts) {
    if path == signals::STAT && facts.cpus.is_none() {
        facts.cpus = cpus_in_stat(text);
    }
}

fn between<'a>(path: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let name = path.strip_prefix(before)?.strip_suffix(after)?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

fn small_number(word: &str) -> Option<u32> {
    u32::try_from(text::number(word.as_bytes())?).ok()
}

/// Stores the node's distances; nodes stay in the order of their numbers.
fn note_node(id: u32, text: &[u8], nodes: &mut Vec<Node>) {
    let distances = text::words(text::trim(text))
        .map_while(|word| u32::try_from(text::number(word)?).ok())
        .collect();
    let node = Node { id, distances };
    match nodes.binary_search_by_key(&id, |node| node.id) {
        Ok(known) => nodes[known] = node,
        Err(place) => nodes.insert(place, node),
    }
}

/// Stores whether the disk spins; disks stay in the order of their names.
fn note_disk(name: &str, text: &[u8], disks: &mut Vec<Disk>) {
    let disk = Disk {
        name: name.to_owned(),
        rotational: match text::trim(text) {
            b"0" => Some(false),
            b"1" => Some(true),
            _ => None,
        },
    };
    match disks.binary_search_by(|disk| disk.name.as_str().cmp(name)) {
        Ok(known) => disks[known] = disk,
        Err(place) => disks.insert(place, disk),
    }
}

/// Returns how many numbers a list such as `0-3,8` has; `None` if it is malformed.
fn listed(text: &[u8]) -> Option<u32> {
    let mut count: u32 = 0;
    for range in text::trim(text).split(|b| *b == b',') {
        let mut ends = range.splitn(2, |b| *b == b'-').map(text::number);
        let first = ends.next()??;
        let last = ends.next().unwrap_or(Some(first))?;
        let size = last.checked_sub(first)?.checked_add(1)?;
        count = count.checked_add(u32::try_from(size).ok()?)?;
    }
    Some(count)
}

/// Counts the `cpu0`, `cpu1`, … lines of `/proc/stat`: CPUs that are online.
fn cpus_in_stat(stat: &[u8]) -> Option<u32> {
    let cpus = text::lines(stat)
        .filter(|(_, line)| {
            line.strip_prefix(b"cpu")
                .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
        })
        .count();
    u32::try_from(cpus).ok().filter(|cpus| *cpus > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timeline::facts::{CgroupMode, SWAPPINESS};
    use units::Bytes;

    fn from(path: &str, text: &str) -> (Facts, bool) {
        let mut facts = Facts::default();
        let known = from_saved(path, text.as_bytes(), &mut facts);
        (facts, known)
    }

    #[test]
    fn nodes_have_distances_and_stay_in_order() {
        let mut facts = Facts::default();
        for (node, text) in [(1, "21 10\n"), (0, "10 21\n"), (1, "20 10\n")] {
            let path = format!("/sys/devices/system/node/node{node}/distance");
            assert!(from_saved(&path, text.as_bytes(), &mut facts));
        }
        let node = |id, distances: [u32; 2]| Node { id, distances: distances.to_vec() };
        assert_eq!(facts.nodes, [node(0, [10, 21]), node(1, [20, 10])]);
        for path in
            ["/sys/devices/system/node/possible/distance", "/sys/devices/system/node/node0/cpumap"]
        {
            assert!(!from(path, "10").1, "{path}");
        }
    }

    #[test]
    fn disks_spin_or_not_or_it_is_not_known() {
        for (text, expected) in [("1\n", Some(true)), ("0\n", Some(false)), ("", None)] {
            let (facts, known) = from("/sys/block/vda/queue/rotational", text);
            assert!(known);
            assert_eq!(facts.disks[0].name, "vda");
            assert_eq!(facts.disks[0].rotational, expected);
        }
        assert!(!from("/sys/block/vda/x/queue/rotational", "1").1);
    }

    #[test]
    fn mounts_tell_memory_file_systems_and_the_cgroup_version() {
        let text = "rootfs / rootfs rw,size=363216k,nr_inodes=90804,inode64 0 0\n\
            p /proc proc rw,relatime 0 0\nd /dev devtmpfs rw,relatime,size=363216k,mode=755,inode64 0 0\n\
            c /sys/fs/cgroup cgroup2 rw,relatime 0 0\n";
        let (facts, known) = from("/proc/mounts", text);
        assert!(known);
        assert_eq!(facts.cgroup_mode, Some(CgroupMode::V2));
        assert_eq!(facts.memory_mounts.len(), 2);
        assert_eq!(facts.memory_mounts[1].size, Some(Bytes::from_kib(363_216)));
    }

    #[test]
    fn cpus_are_counted_from_a_list_or_from_stat() {
        for (list, expected) in [
            ("0\n", Some(1)),
            ("0-1\n", Some(2)),
            ("0-3,8,10-11\n", Some(7)),
            ("", None),
            ("3-1", None),
            ("0-99999999999", None),
            ("a", None),
        ] {
            assert_eq!(from(CPUS_ONLINE, list).0.cpus, expected, "{list}");
        }
        assert_eq!(cpus_in_stat(b"cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n"), Some(2));
        assert_eq!(cpus_in_stat(b"intr 5\n"), None);
    }

    #[test]
    fn a_directory_of_saved_files_has_no_page_size_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let vm = directory.path().join("proc/sys/vm");
        std::fs::create_dir_all(&vm).unwrap();
        std::fs::write(vm.join("swappiness"), "60\n").unwrap();
        std::fs::write(directory.path().join("proc/mounts"), "t /t tmpfs rw,size=4k 0 0\n")
            .unwrap();
        std::fs::write(directory.path().join("proc/stat"), "cpu 1\ncpu0 1\n").unwrap();
        let mut facts = Facts::default();
        read(&Root::at(directory.path()), Span::ZERO, &mut facts);
        assert_eq!(facts.number(SWAPPINESS), Some(60));
        assert_eq!((facts.page_size, facts.ticks_per_second), (None, None));
        assert_eq!(facts.cpus, Some(1));
        assert_eq!(facts.memory_mounts.len(), 1);
        assert!(facts.cgroup_mode.is_none() && facts.container.is_none());

        std::fs::write(vm.join("swappiness"), "1\n").unwrap();
        read(&Root::at(directory.path()), Span::from_secs(60), &mut facts);
        assert_eq!(facts.changes().len(), 1, "a changed tunable is noticed");
    }

    #[test]
    fn mounts_are_the_hosts_where_this_process_has_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let root = Root::at(directory.path());
        let points = || {
            let mut facts = Facts::default();
            read(&root, Span::ZERO, &mut facts);
            let points = facts.memory_mounts.into_iter().map(|mount| mount.point);
            points.collect::<Vec<_>>()
        };
        write(
            "proc/self/mounts",
            "t /run tmpfs rw,size=4k 0 0\nt /usr/lib/modules tmpfs ro,size=4k 0 0\n",
        );
        assert_eq!(points(), ["/run", "/usr/lib/modules"]);
        write("proc/1/mounts", "t /run tmpfs rw,size=4k 0 0\n");
        assert_eq!(points(), ["/run"]);
    }

    #[test]
    fn this_machine_has_facts() {
        let mut facts = Facts::default();
        read(&Root::default(), Span::ZERO, &mut facts);
        assert!(facts.page_size.is_some() && facts.user_hz() > 0);
        assert!(facts.cpus.unwrap() > 0);
        assert!(facts.kernel().is_some());
        if let Some(own) = &facts.own_cgroup {
            assert!(own.starts_with('/'));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, list in "[-0-9, ]{0,12}") {
            let mut facts = Facts::default();
            for path in [
                CPUS_ONLINE,
                "/proc/mounts",
                "/sys/devices/system/node/node7/distance",
                "/sys/block/sda/queue/rotational",
                "/proc/version",
            ] {
                from_saved(path, &text, &mut facts);
                from_saved(path, list.as_bytes(), &mut facts);
            }
            cpus_in_stat(&text);
        }
    }
}
