//! Which cgroups are busy: those that met a limit or had a kill, then those with the largest change of usage.

use std::cmp::Reverse;
use std::ops::Range;

use crate::cgroup::tree::{CgroupNode, CgroupTree};

/// The busiest cgroups, the busiest first.
#[derive(Debug, Default)]
pub(super) struct BusiestCgroups {
    /// Each with how busy it is.
    ranked: Vec<(u64, usize)>,
    /// The index from which others are asked next.
    next: usize,
}

impl BusiestCgroups {
    /// At most this many are busy.
    const BUSIEST_MAX: usize = 64;
    /// A cgroup that met a limit is busier than any change of usage.
    const HIT: u64 = 1 << 62;

    /// Ranks all cgroups after a pass, by what changed since the one before; after the first pass none has changed.
    pub(super) fn rank(&mut self, tree: &mut CgroupTree, is_first: bool) {
        self.ranked.clear();
        self.ranked.reserve(Self::BUSIEST_MAX);
        for index in 0..tree.end() {
            if !tree.has(index) {
                continue;
            }
            let node = tree.node_mut(index);
            // The mount's own figures are the host's.
            let activity = if node.depth == 0 { 0 } else { activity(node) };
            node.before = node.now;
            if activity > 0 && !is_first {
                self.ranked.push((activity, index));
            }
        }
        if self.ranked.len() > Self::BUSIEST_MAX {
            self.ranked.select_nth_unstable_by_key(Self::BUSIEST_MAX, |one| Reverse(*one));
            self.ranked.truncate(Self::BUSIEST_MAX);
        }
        self.ranked.sort_unstable_by_key(|one| Reverse(*one));
    }

    /// Whether a cgroup is one of them.
    pub(super) fn has(&self, index: usize) -> bool {
        self.ranked.iter().any(|(_, busy)| *busy == index)
    }

    /// Adds one that met a limit, first of all, in place of the least busy if there are too many.
    pub(super) fn add_hit(&mut self, index: usize) {
        self.remove(index);
        self.ranked.truncate(Self::BUSIEST_MAX - 1);
        self.ranked.insert(0, (Self::HIT, index));
    }

    /// Removes one that is gone.
    pub(super) fn remove(&mut self, index: usize) {
        self.ranked.retain(|(_, busy)| *busy != index);
    }

    /// All, the busiest first.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranked.iter().map(|(_, index)| *index)
    }

    /// Returns the indexes of the next `count` of `end` to be asked, from the one after the last.
    pub(super) fn in_turn(
        &mut self,
        end: usize,
        count: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        let count = count.min(end);
        let first = if self.next < end { self.next } else { 0 };
        self.next = first + count;
        let wrap = move |at: usize| if at < end { at } else { at - end };
        if self.next >= end {
            self.next = self.next.saturating_sub(end);
        }
        let all: Range<usize> = first..first + count;
        all.map(wrap)
    }
}

/// Returns how busy a cgroup was since the last pass.
fn activity(node: &CgroupNode) -> u64 {
    let hits = node.now.hits.saturating_sub(node.before.hits);
    let change = node.now.usage.abs_diff(node.before.usage);
    if hits > 0 {
        BusiestCgroups::HIT.saturating_add(hits)
    } else {
        change.min(BusiestCgroups::HIT - 1)
    }
}
