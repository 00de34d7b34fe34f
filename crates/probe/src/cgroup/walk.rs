//! All cgroups and their memory: a walk over the hierarchy, largest first.
//!
//! A cgroup's usage includes its children, so the walk always visits the cgroup with the most memory next and lists its
//! children only then: that gives the largest cgroups of the whole tree without reading the rest. Bounds: 1,000 cgroups
//! become rows, 16,384 are visited, eight levels deep; cgroups beyond these are counted. Cgroups that vanish meanwhile
//! are skipped.
//!
//! Cost, measured on 6.18 with v1: 30 µs per cgroup, 8 of them for `memory.stat`. A v2 cgroup has twelve files instead
//! of seven, and its `memory.stat` costs more in deep trees and with many CPUs: there, walk less often than once a
//! second.

use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use timeline::{Entity, Sample, facts::CgroupMode};

use crate::cgroup::files::CgroupFiles;
use crate::cgroup::hierarchy::Hierarchy;
use crate::directory::{Directory, Sink, Walk};
use crate::kernel_file::Root;
use crate::text;

/// The hierarchy that manages memory, ready for repeated walks.
#[derive(Debug)]
pub struct Cgroups {
    root: Root,
    /// Where it is mounted; searched again now and then until found, as cgroups may be mounted late.
    mounted: Option<(CgroupMode, PathBuf)>,
    /// Walks until the next search, as a search allocates.
    search_in: u32,
    files: CgroupFiles,
    queue: BinaryHeap<Candidate>,
    paths: Paths,
    /// The directory that is being listed.
    listed: Vec<u8>,
    /// The text of the current file.
    text: Vec<u8>,
    /// The path under which the text is passed to the sink.
    shown: String,
}

/// A cgroup waiting for its visit. The first field decides the order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    usage: u64,
    depth: usize,
    start: usize,
    end: usize,
}

/// The paths of the candidates below the mount, one after the other, and room for one more.
#[derive(Debug, Default)]
struct Paths {
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

impl Paths {
    /// Adds `parent/name`.
    fn add(&mut self, parent: Range<usize>, name: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        if !parent.is_empty() {
            self.bytes.extend_from_within(parent);
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(name);
        start..self.bytes.len()
    }

    /// Returns the path of a file of the cgroup.
    fn file(&mut self, group: &Range<usize>, name: &str) -> &[u8] {
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.bytes[group.clone()]);
        if !group.is_empty() {
            self.scratch.push(b'/');
        }
        self.scratch.extend_from_slice(name.as_bytes());
        &self.scratch
    }
}

impl Cgroups {
    /// Cgroups that become rows: a large Kubernetes node has 110 pods of a few containers each.
    const REQUESTED_MAX: usize = 1_000;
    /// Cgroups that were asked for their usage, to find the largest.
    const VISITED_MAX: usize = 16_384;
    /// Walks between two searches for a mount.
    const SEARCH_EVERY: u32 = 60;
    /// Capacity for a cgroup's path. Cgroups change places from walk to walk as their sizes do, and a longer path in a
    /// row that had a shorter one must not be allocated; a pod's container takes 190 bytes.
    const KEY_ROOM: usize = 256;
    /// Levels below the mount. A container in Kubernetes is at level 4, an application of a desktop at 5.
    const DEEPEST: usize = 8;

    /// Creates a walk over the cgroups below `root`.
    pub fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            mounted: None,
            search_in: 0,
            files: CgroupFiles::default(),
            queue: BinaryHeap::new(),
            paths: Paths::default(),
            listed: Vec::new(),
            text: Vec::new(),
            shown: String::new(),
        }
    }

    /// Reads the cgroups into rows of `sample`: first the mount itself, then by falling usage.
    pub fn sample(&mut self, sample: &mut Sample) -> Walk {
        self.sample_showing(sample, &mut |_, _| ())
    }

    /// Like [`sample`](Self::sample), and passes each text that is read to `sink`. Wherever the hierarchy is mounted,
    /// files have the path that the catalogue uses: below `/sys/fs/cgroup`, those of v1 below `/sys/fs/cgroup/memory`.
    pub fn sample_showing(&mut self, sample: &mut Sample, sink: Sink<'_>) -> Walk {
        let Some((mode, point)) = self.mounted() else {
            return Walk::absent(Errno::NOENT);
        };
        let mount = match Directory::open(point) {
            Ok(mount) => mount,
            Err(errno) => return Walk::absent(errno),
        };
        let mut walk = Walk::default();
        let mut visited = 0;
        self.queue.clear();
        self.paths.bytes.clear();
        self.queue.push(Candidate {
            usage: u64::MAX,
            depth: 0,
            start: 0,
            end: 0,
        });
        while let Some(group) = self.queue.pop() {
            if walk.read == Self::REQUESTED_MAX {
                walk.left_out += 1 + self.queue.len();
                break;
            }
            self.read_group(&mount, mode, &group, sample, sink, &mut walk);
            self.queue_children(&mount, mode, &group, &mut visited, &mut walk);
        }
        walk
    }

    fn mounted(&mut self) -> Option<(CgroupMode, &Path)> {
        if self.mounted.is_none() {
            if self.search_in > 0 {
                self.search_in -= 1;
                return None;
            }
            self.search_in = Self::SEARCH_EVERY;
            let found = Hierarchy::find(&self.root)?;
            self.mounted = Some((found.mode, self.root.path(&found.point)));
        }
        let (mode, point) = self.mounted.as_ref()?;
        Some((*mode, point))
    }

    fn read_group(
        &mut self,
        mount: &Directory,
        mode: CgroupMode,
        group: &Candidate,
        sample: &mut Sample,
        sink: Sink<'_>,
        walk: &mut Walk,
    ) {
        let table = sample.table_mut(Entity::Cgroup);
        let entity = table.add();
        entity.key.reserve(Self::KEY_ROOM);
        entity.key.push('/');
        let path = group.start..group.end;
        text::push_lossy(&mut entity.key, &self.paths.bytes[path.clone()]);
        for name in CgroupFiles::names(mode) {
            match mount.read_record(self.paths.file(&path, name), &mut self.text) {
                Ok(()) => {
                    self.shown.clear();
                    self.shown.push_str(mode_path(mode));
                    self.shown.push_str(entity.key.trim_end_matches('/'));
                    self.shown.push('/');
                    self.shown.push_str(name);
                    sink(&self.shown, &self.text);
                    let files = &mut self.files;
                    walk.note_parse(files.parse(mode, name, &self.text, &mut entity.row));
                }
                Err(errno) => walk.note_errno_of(Entity::Cgroup, name, errno),
            }
        }
        if entity.row.is_empty() {
            table.drop_last();
        } else {
            walk.read += 1;
        }
    }

    /// Queues the children of this cgroup that have memory of their own.
    fn queue_children(
        &mut self,
        mount: &Directory,
        mode: CgroupMode,
        group: &Candidate,
        visited: &mut usize,
        walk: &mut Walk,
    ) {
        let Self {
            queue,
            paths,
            listed,
            text,
            ..
        } = self;
        let usage_file = match mode {
            CgroupMode::V1 => "memory.usage_in_bytes",
            CgroupMode::V2 => "memory.current",
        };
        let parent = group.start..group.end;
        listed.clear();
        listed.extend_from_slice(paths.file(&parent, "."));
        let result = mount.each_directory(listed, |name| {
            if group.depth == Self::DEEPEST || *visited == Self::VISITED_MAX {
                walk.left_out += 1;
                return ControlFlow::Continue(());
            }
            *visited += 1;
            let path = paths.add(parent.clone(), name);
            match mount.read_record(paths.file(&path, usage_file), text) {
                Ok(()) => queue.push(Candidate {
                    // A text that is not a number sorts last; the visit reports it.
                    usage: text::number(text::trim(text)).unwrap_or(0),
                    depth: group.depth + 1,
                    start: path.start,
                    end: path.end,
                }),
                // On v2 a cgroup without the controller has no memory file, and neither have its descendants.
                Err(errno) => walk.note_errno(errno),
            }
            ControlFlow::Continue(())
        });
        if let Err(errno) = result {
            walk.note_errno(errno);
        }
    }
}

/// Returns the path that the catalogue uses for a version's files.
const fn mode_path(mode: CgroupMode) -> &'static str {
    match mode {
        CgroupMode::V1 => "/sys/fs/cgroup/memory",
        CgroupMode::V2 => "/sys/fs/cgroup",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use timeline::signals::{CGROUP_ANON, CGROUP_CURRENT, CGROUP_MAX};
    use units::{Bytes, Limit};

    fn group(at: &Path, current: u64) {
        fs::create_dir_all(at).unwrap();
        fs::write(at.join("memory.current"), format!("{current}\n")).unwrap();
        fs::write(at.join("memory.max"), "max\n").unwrap();
        fs::write(at.join("memory.stat"), format!("anon {current}\nfile 0\n")).unwrap();
    }

    /// A v2 machine: its root cgroup has no usage of its own.
    fn machine() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("sys/fs/cgroup");
        fs::create_dir_all(&mount).unwrap();
        fs::write(mount.join("cgroup.controllers"), "memory\n").unwrap();
        fs::write(mount.join("memory.stat"), "anon 5\n").unwrap();
        (directory, mount)
    }

    fn read(directory: &Path) -> (Sample, Walk) {
        let mut sample = Sample::default();
        let mut cgroups = Cgroups::new(&Root::at(directory));
        let first = cgroups.sample(&mut sample);
        sample.clear();
        let walk = cgroups.sample(&mut sample);
        assert_eq!(first, walk, "a second walk sees the same");
        (sample, walk)
    }

    fn keys(sample: &Sample) -> Vec<&str> {
        let rows = sample.table(Entity::Cgroup).rows();
        rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn groups_come_largest_first_with_their_path_as_key() {
        let (directory, mount) = machine();
        group(&mount.join("small"), 10);
        group(&mount.join("system.slice"), 100);
        group(&mount.join("system.slice/a.service"), 60);
        group(&mount.join("system.slice/b.service"), 5);
        fs::create_dir(mount.join("no-controller")).unwrap();
        let (sample, walk) = read(directory.path());
        assert_eq!(
            keys(&sample),
            [
                "/",
                "/system.slice",
                "/system.slice/a.service",
                "/small",
                "/system.slice/b.service"
            ]
        );
        assert_eq!((walk.read, walk.left_out, walk.denied), (5, 0, 0));
        let rows = sample.table(Entity::Cgroup).rows();
        assert_eq!(rows[0].row.get(CGROUP_CURRENT), None);
        assert_eq!(rows[2].row.get(CGROUP_ANON), Some(Bytes::new(60)));
        assert_eq!(rows[2].row.get(CGROUP_MAX), Some(Limit::Unlimited));
    }

    #[test]
    fn v1_groups_fill_the_same_signals() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("sys/fs/cgroup/memory");
        for (path, usage) in [("", 100), ("docker", 40)] {
            let at = mount.join(path);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("memory.usage_in_bytes"), format!("{usage}\n")).unwrap();
            fs::write(at.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
            fs::write(
                at.join("memory.stat"),
                "cache 1\nrss 2\ntotal_cache 3\ntotal_rss 4\n",
            )
            .unwrap();
        }
        let (sample, _) = read(directory.path());
        assert_eq!(keys(&sample), ["/", "/docker"]);
        let row = &sample.table(Entity::Cgroup).rows()[1].row;
        assert_eq!(row.get(CGROUP_CURRENT), Some(Bytes::new(40)));
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(4)));
        assert_eq!(row.get(CGROUP_MAX), Some(Limit::Unlimited));
    }

    #[test]
    fn deep_trees_are_cut_and_counted() {
        let (directory, mount) = machine();
        let mut at = mount;
        for depth in 0..12 {
            at = at.join("d");
            group(&at, 100 - depth);
        }
        let (sample, walk) = read(directory.path());
        assert_eq!(
            sample.table(Entity::Cgroup).rows().len(),
            1 + Cgroups::DEEPEST
        );
        assert_eq!(walk.left_out, 1);
    }

    #[test]
    fn wide_trees_are_cut_to_the_largest_and_counted() {
        let (directory, mount) = machine();
        let groups = Cgroups::REQUESTED_MAX as u64 + 20;
        for i in 0..groups {
            group(&mount.join(format!("g{i:04}")), 1_000 + i);
        }
        let (sample, walk) = read(directory.path());
        assert_eq!((walk.read, walk.left_out), (Cgroups::REQUESTED_MAX, 21));
        assert_eq!(keys(&sample)[1], format!("/g{:04}", groups - 1));
        assert!(!keys(&sample).contains(&"/g0000"));
    }

    #[test]
    fn a_group_that_vanishes_is_skipped() {
        let (directory, mount) = machine();
        group(&mount.join("ok"), 10);
        // To a walk that still lists it, a removed cgroup is a directory without files.
        fs::create_dir(mount.join("gone")).unwrap();
        let (sample, walk) = read(directory.path());
        assert_eq!(keys(&sample), ["/", "/ok"]);
        assert_eq!((walk.denied, walk.malformed), (0, None));
    }

    #[test]
    fn malformed_text_is_reported_once_and_the_rest_is_read() {
        let (directory, mount) = machine();
        group(&mount.join("web"), 10);
        fs::write(mount.join("web/memory.current"), "-5\n").unwrap();
        let (sample, walk) = read(directory.path());
        let error = walk.malformed.unwrap().to_string();
        assert!(error.contains("memory.current"), "{error}");
        let row = &sample.table(Entity::Cgroup).rows()[1].row;
        assert_eq!(row.get(CGROUP_CURRENT), None);
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(10)));
    }

    #[test]
    fn without_a_hierarchy_the_walk_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let mut sample = Sample::default();
        let walk = Cgroups::new(&Root::at(directory.path())).sample(&mut sample);
        assert_eq!(walk.absent, Some(timeline::Absence::NotFound));
    }

    #[test]
    fn this_machine_can_be_walked() {
        let mut sample = Sample::default();
        let walk = Cgroups::new(&Root::default()).sample(&mut sample);
        if walk.absent.is_some() {
            return; // A machine without cgroups.
        }
        assert_eq!(walk.read, sample.table(Entity::Cgroup).rows().len());
        assert!(walk.malformed.is_none(), "{:?}", walk.malformed);
        assert_eq!(keys(&sample)[0], "/");
    }
}
