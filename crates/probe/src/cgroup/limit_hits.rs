//! Which cgroups met a limit: those that the kernel reports on v2, and those that are asked.

use std::cmp::Reverse;

use timeline::facts::CgroupMode;
use timeline::{
    Row,
    signals::{CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL},
};
use units::Count;

use crate::cgroup::event_watch::EventWatch;
use crate::cgroup::kept_files::FileTiers;
use crate::cgroup::reader::{CgroupPass, CgroupReader};
use crate::cgroup::tree::CgroupTree;

/// The reports of the kernel on limits and kills.
#[derive(Debug, Default)]
pub(super) struct LimitReports {
    events: EventWatch,
    /// Questions which cgroups met a limit, so far.
    rounds: u64,
}

impl LimitReports {
    /// Fills the order with the cgroups that met a limit since the last question, the first of them last. A limit hit is one
    /// of those around the cgroup, too, which are read after it; and with few readings each has its turn.
    pub(super) fn order(&mut self, tree: &mut CgroupTree, order: &mut Vec<usize>) {
        self.rounds += 1;
        let round = self.rounds;
        order.clear();
        self.events.each(|index| {
            if tree.has(index) {
                order.push(index);
            }
        });
        for index in order.iter() {
            tree.note_hit(*index, round);
        }
        order.sort_unstable_by_key(|index| {
            let node = tree.node(*index);
            (node.hit_below != round, Reverse(node.read_at))
        });
    }

    /// Has the kernel report limit hits and kills of a cgroup, where it can: the file is opened before those that are only
    /// read, as not all may stay open.
    pub(super) fn watch(
        &mut self,
        tree: &mut CgroupTree,
        index: usize,
        reader: &mut CgroupReader,
        pass: &CgroupPass<'_>,
    ) {
        let node = tree.node(index);
        if pass.mode == CgroupMode::V1
            || node.is_watched
            || node.depth == 0
            || !reader.kept.has_room()
        {
            return;
        }
        let hits = FileTiers::of(pass.mode).hits;
        let is_read = reader.read_often(tree, index, hits, pass).is_ok();
        let node = tree.node_mut(index);
        if let Some(file) = node.files[hits].as_ref().filter(|_| is_read) {
            node.is_watched = self.events.add(file, index);
        }
    }
}

impl CgroupReader {
    /// Whether a cgroup met a limit since its last row.
    pub(super) fn met_limit(
        &mut self,
        tree: &mut CgroupTree,
        index: usize,
        file: usize,
        pass: &CgroupPass<'_>,
    ) -> bool {
        if tree.node(index).usage.is_none() || self.read_often(tree, index, file, pass).is_err() {
            return false;
        }
        self.row.clear();
        let name = FileTiers::of(pass.mode).often[file];
        let parsed = self.files.parse(pass.mode, name, &self.text, &mut self.row);
        let node = tree.node_mut(index);
        let hits = limit_hits(&self.row);
        let before = node.probed.replace(hits);
        parsed.is_ok() && before.is_some_and(|before| before < hits)
    }
}

/// Returns how often a cgroup met a limit, on v2 with its descendants.
pub(super) fn limit_hits(row: &Row) -> u64 {
    let hits = [CGROUP_EVENTS_MAX, CGROUP_EVENTS_HIGH].map(|signal| row.get(signal));
    let counts = hits.into_iter().flatten().map(Count::get);
    counts.fold(0, u64::saturating_add)
}

pub(super) fn kills(row: &Row) -> u64 {
    row.get(CGROUP_EVENTS_OOM_KILL).map_or(0, Count::get)
}
