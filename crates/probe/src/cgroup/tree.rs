//! The cgroups that are known, each with its open files and its last figures, from one pass to the next.
//!
//! A directory is listed again where its number of links changed, which counts the directories in it (`kernfs_refresh_inode`
//! in `fs/kernfs/inode.c`), or where one in it was found to be removed: one that came while another went leaves the
//! number as it was. File systems that do not count, as of saved files, are listed each time.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::os::fd::OwnedFd;

use timeline::SignalId;
use units::Span;

use crate::cgroup::kept_files::{KEPT_EACH, KeptFiles};
use crate::directory::{Directory, Walk};
use crate::text;

/// What decides whether a cgroup is busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CgroupActivity {
    /// Bytes.
    pub(super) usage: u64,
    /// Hits of a limit and kills.
    pub(super) hits: u64,
}

/// A known cgroup.
#[derive(Debug, Default)]
pub(super) struct CgroupNode {
    is_used: bool,
    /// Its path below the mount, without a slash at either end.
    pub(super) path: Vec<u8>,
    /// The key of its row.
    pub(super) key: String,
    parent: Option<usize>,
    pub(super) depth: usize,
    /// Links of its directory when that was last listed.
    links: u64,
    /// Whether its directory must be listed, whatever its links.
    must_list: bool,
    /// Directories in it that are not known, because there are too many or they are too deep.
    left_out: usize,
    /// The listing that found it last.
    found: u64,
    pub(super) files: [Option<OwnedFd>; KEPT_EACH],
    /// The pass that read its usage last.
    pub(super) pass: u64,
    /// Its usage in that pass; `None` if it has none.
    pub(super) usage: Option<u64>,
    pub(super) now: CgroupActivity,
    /// The figures at the last pass over all cgroups.
    pub(super) before: CgroupActivity,
    /// When it was read last, on the boot clock.
    pub(super) read_at: Span,
    /// The round of questions in which a cgroup in it met a limit.
    pub(super) hit_below: u64,
    /// Whether the kernel reports its limit hits and kills.
    pub(super) is_watched: bool,
    /// Hits of limits at the last question for them.
    pub(super) probed: Option<u64>,
    /// Readings of the files that are read rarely.
    pub(super) levels: Vec<(SignalId, u64)>,
    /// When these are read again, on the boot clock.
    pub(super) levels_due: Span,
}

/// The known cgroups below a mount.
#[derive(Debug, Default)]
pub(super) struct CgroupTree {
    nodes: Vec<CgroupNode>,
    free: Vec<usize>,
    by_path: BTreeMap<Vec<u8>, usize>,
    listings: u64,
    /// Nodes with directories that may have changed.
    queue: Vec<usize>,
    /// The path of the directory that is listed, and of one in it.
    parent: Vec<u8>,
    child: Vec<u8>,
}

impl CgroupTree {
    /// Cgroups that are known at most.
    const KNOWN_MAX: usize = 16_384;
    /// Levels below the mount. A container in Kubernetes is at level 4, an application of a desktop at 5.
    pub(super) const DEPTH_MAX: usize = 8;

    pub(super) fn node(&self, index: usize) -> &CgroupNode {
        &self.nodes[index]
    }

    pub(super) fn node_mut(&mut self, index: usize) -> &mut CgroupNode {
        &mut self.nodes[index]
    }

    /// The indexes of the known cgroups.
    pub(super) fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|index| self.has(*index))
    }

    /// Whether there is a cgroup with this index.
    pub(super) fn has(&self, index: usize) -> bool {
        self.nodes.get(index).is_some_and(|node| node.is_used)
    }

    /// The number of known cgroups.
    pub(super) fn len(&self) -> usize {
        self.by_path.len()
    }

    /// The indexes of those around a cgroup below the mount, from the outermost, and its own.
    pub(super) fn outwards(&self, path: &[u8]) -> impl Iterator<Item = usize> {
        let ends = (0..=path.len()).filter(|end| matches!(path.get(*end), None | Some(b'/')));
        ends.filter_map(|end| self.by_path.get(&path[..end]).copied())
    }

    /// The indexes of those in a cgroup, by their paths.
    pub(super) fn inwards(&self, path: &[u8]) -> impl Iterator<Item = usize> {
        let after = (Bound::Excluded(path), Bound::Unbounded);
        let alike = self.by_path.range::<[u8], _>(after);
        alike
            .take_while(|(other, _)| other.starts_with(path))
            .filter(|(other, _)| other.get(path.len()) == Some(&b'/'))
            .map(|(_, index)| *index)
    }

    /// Has a cgroup that was removed, or removed and made again, opened anew.
    pub(super) fn reopen(&mut self, index: usize, kept: &mut KeptFiles) {
        let node = &mut self.nodes[index];
        kept.close(&mut node.files);
        node.is_watched = false;
        node.levels_due = Span::ZERO;
    }

    /// Notes that a cgroup met a limit, which those around it report, too.
    pub(super) fn note_hit(&mut self, index: usize, round: u64) {
        let mut above = self.nodes[index].parent;
        while let Some(index) = above {
            self.nodes[index].hit_below = round;
            above = self.nodes[index].parent;
        }
    }

    /// One more than the largest index.
    pub(super) fn end(&self) -> usize {
        self.nodes.len()
    }

    /// Cgroups that were found but are not known.
    pub(super) fn left_out(&self) -> usize {
        self.nodes.iter().map(|node| node.left_out).sum()
    }

    /// Finds cgroups that came, and forgets those that went, wherever a directory changed.
    pub(super) fn refresh(&mut self, mount: &Directory, kept: &mut KeptFiles, walk: &mut Walk) {
        if self.by_path.is_empty() {
            self.add(None, b"");
        }
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.extend(self.indexes());
        while let Some(index) = queue.pop() {
            if self.has(index) && self.has_changed(mount, index) {
                self.list(mount, index, kept, walk, &mut queue);
            }
        }
        queue.reserve(self.nodes.len());
        self.queue = queue;
    }

    fn has_changed(&mut self, mount: &Directory, index: usize) -> bool {
        let node = &mut self.nodes[index];
        let Ok(links) = mount.links(path_of(&node.path)) else {
            return node.must_list;
        };
        let before = std::mem::replace(&mut node.links, links);
        node.must_list || links < 2 || links != before
    }

    fn list(
        &mut self,
        mount: &Directory,
        index: usize,
        kept: &mut KeptFiles,
        walk: &mut Walk,
        queue: &mut Vec<usize>,
    ) {
        self.listings += 1;
        let listing = self.listings;
        let mut parent = std::mem::take(&mut self.parent);
        parent.clone_from(&self.nodes[index].path);
        let depth = self.nodes[index].depth;
        let mut left_out = 0;
        let result = mount.each_directory(path_of(&parent), |name| {
            let child = (depth < Self::DEPTH_MAX)
                .then(|| self.child_of(index, &parent, name, queue))
                .flatten();
            match child {
                Some(child) => self.nodes[child].found = listing,
                None => left_out += 1,
            }
            ControlFlow::Continue(())
        });
        self.parent = parent;
        self.nodes[index].left_out = left_out;
        match result {
            Ok(()) => self.forget_children(index, listing, kept),
            Err(errno) => walk.note_errno(errno),
        }
        self.nodes[index].must_list = result.is_err();
    }

    /// Returns the cgroup of this name in another, added if it is new and has room.
    fn child_of(
        &mut self,
        index: usize,
        parent: &[u8],
        name: &[u8],
        queue: &mut Vec<usize>,
    ) -> Option<usize> {
        let mut path = std::mem::take(&mut self.child);
        path.clear();
        path.extend_from_slice(parent);
        if !parent.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        let mut child = self.by_path.get(&path).copied();
        if child.is_none() && self.len() < Self::KNOWN_MAX {
            child = Some(self.add(Some(index), &path));
            queue.extend(child);
        }
        self.child = path;
        child
    }

    fn add(&mut self, parent: Option<usize>, path: &[u8]) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(CgroupNode::default());
            self.nodes.len() - 1
        });
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        let node = &mut self.nodes[index];
        node.is_used = true;
        node.parent = parent;
        node.depth = depth;
        // A directory with none in it has two, and need not be listed.
        node.links = 2;
        node.path.extend_from_slice(path);
        node.key.push('/');
        text::push_lossy(&mut node.key, path);
        self.by_path.insert(path.to_owned(), index);
        index
    }

    /// Forgets the cgroups in another that its listing did not find.
    fn forget_children(&mut self, parent: usize, listing: u64, kept: &mut KeptFiles) {
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.is_used && node.parent == Some(parent) && node.found != listing {
                self.forget(index, kept);
            }
        }
    }

    /// Forgets a cgroup that was removed, with those in it; the one that it was in will be listed again.
    pub(super) fn forget(&mut self, index: usize, kept: &mut KeptFiles) {
        let mut gone = vec![index];
        if let Some(parent) = self.nodes[index].parent {
            self.nodes[parent].must_list = true;
        }
        while let Some(index) = gone.pop() {
            let children = self.indexes().filter(|at| self.nodes[*at].parent == Some(index));
            gone.extend(children);
            let mut node = std::mem::take(&mut self.nodes[index]);
            self.by_path.remove(&node.path);
            kept.close(&mut node.files);
            self.free.push(index);
        }
    }
}

fn path_of(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}
