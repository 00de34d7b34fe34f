//! What others lost while a job ran: file pages that their cgroups read again after an eviction, and who read them.
//!
//! The kernel counts a page that is read again after its eviction (a refault) in the cgroup that it is charged to now, so a cgroup
//! without a process of the job has only refaults of others. In the cgroups of the job both are in one sum: of it, no more is of
//! others than their processes read from disks meanwhile. A cgroup that met a limit which is not around the job reads again
//! what it pushed out itself, and is left out. The kernel forgets evicted pages beyond about as many as there are in memory; those
//! are not counted. Cost: one pass over all cgroups and one over `/proc/PID/io` at each end, some 10 µs each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use probe::{Cgroups, MemoryGroups, Root, memory_cgroup_mount};
use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::{GroupNames, ancestors, parent};
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_FILE, CGROUP_REFAULT_FILE, CGROUP_SHMEM,
};
use timeline::{Entity, Row, Sample};
use units::{Bytes, Count, PageSize};

use crate::observe::account::read_io;
use crate::observe::process_tree::name_of;

/// Cgroups and processes that are named.
const GROUPS_MAX: usize = 100;
const READERS_MAX: usize = 3;

/// Processes of the job of which the cgroup is asked for.
const JOB_PIDS_MAX: usize = 1 << 16;

/// A cgroup and what its processes lost while the job ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherGroup {
    /// What people call it: its unit or container, or its path.
    pub name: String,
    /// Its path below the mount of the hierarchy.
    pub cgroup: String,
    /// File pages that it read again after they had been evicted; those of cgroups below are in their own rows.
    pub reread_bytes: Bytes,
    /// How much less of its files was in the cache afterwards.
    pub shrunk_bytes: Bytes,
    /// Whether the job ran in this cgroup as well: what others read again is then no more than this.
    pub has_job: bool,
    /// Whether it met a limit that is not around the job: what it reads again is its own doing, and counts for nothing.
    pub is_at_own_limit: bool,
    /// Its processes that read the most from disks meanwhile, as far as they lived at both ends.
    pub readers: Vec<OtherReader>,
}

/// A process that is no part of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherReader {
    /// Its name of at most 15 bytes.
    pub name: String,
    /// Its PID as memtide sees it.
    pub pid: u32,
    /// Read from disks while the job ran.
    pub read_bytes: Bytes,
}

/// A cgroup at one time, those below it included.
#[derive(Debug, Clone, Copy, Default)]
struct GroupThen {
    refaulted: Bytes,
    cached: Bytes,
    limit_hits: u64,
}

impl GroupThen {
    fn of(row: &Row, page: PageSize) -> Self {
        let hits = [CGROUP_EVENTS_MAX, CGROUP_EVENTS_HIGH].map(|signal| row.get(signal));
        Self {
            refaulted: row.get(CGROUP_REFAULT_FILE).unwrap_or_default().to_bytes(page),
            cached: row
                .get(CGROUP_FILE)
                .unwrap_or_default()
                .saturating_sub(row.get(CGROUP_SHMEM).unwrap_or_default()),
            limit_hits: hits.into_iter().flatten().map(Count::get).sum(),
        }
    }
}

/// All cgroups and processes at one time.
#[derive(Debug, Default)]
struct HostThen {
    groups: BTreeMap<String, GroupThen>,
    /// What each process read from disks so far; those of other users only for root.
    read: HashMap<u32, Bytes>,
}

/// Watches those who are no part of a job.
#[derive(Debug)]
pub(super) struct Others {
    page: PageSize,
    mode: Option<CgroupMode>,
    cgroups: Cgroups,
    memory_groups: Option<MemoryGroups>,
    /// Cgroups that processes of the job were in.
    of_job: BTreeSet<String>,
    asked: HashSet<u32>,
    before: HostThen,
}

impl Others {
    /// Reads all cgroups and processes; the job begins after that, in the cgroup of this process or elsewhere.
    pub(super) fn begin(page: PageSize, is_started_here: bool) -> Self {
        let root = Root::default();
        let mut others = Self {
            page,
            mode: memory_cgroup_mount(&root).map(|(mode, _)| mode),
            cgroups: Cgroups::new(&root),
            memory_groups: MemoryGroups::find(&root),
            of_job: BTreeSet::new(),
            asked: HashSet::new(),
            before: HostThen::default(),
        };
        if is_started_here {
            others
                .of_job
                .extend(others.memory_groups.as_ref().and_then(|groups| groups.of("self")));
        }
        others.before = others.read();
        others
    }

    /// These processes are of the job.
    pub(super) fn are_of_job(&mut self, pids: &[u32]) {
        let Some(groups) = &self.memory_groups else { return };
        for pid in pids {
            if self.asked.len() < JOB_PIDS_MAX && self.asked.insert(*pid) {
                self.of_job.extend(groups.of(pid));
            }
        }
    }

    /// What became of others since the beginning, those who read the most again first. Processes of the job are no others.
    /// `host_evicted`: file pages that the host evicted meanwhile.
    pub(super) fn end(
        &mut self,
        of_job: &HashSet<u32>,
        host_evicted: Option<Bytes>,
    ) -> Vec<OtherGroup> {
        let after = self.read();
        let readers = self.readers(&after, of_job);
        let growth = |(group, then): (&String, &GroupThen)| {
            let before = self.before.groups.get(group).copied().unwrap_or_default();
            let grown = GroupGrowth {
                refaulted: then.refaulted.saturating_sub(before.refaulted).get(),
                limit_hits: then.limit_hits.saturating_sub(before.limit_hits),
                cached_before: before.cached.get(),
                cached_after: then.cached.get(),
            };
            (group.clone(), grown)
        };
        let growth = after.groups.iter().map(growth).collect();
        lost(&growth, (self.mode, host_evicted), &self.of_job, readers)
    }

    fn read(&mut self) -> HostThen {
        let mut sample = Sample::default();
        // A cgroup that cannot be read has no row.
        let _ = self.cgroups.sample(&mut sample);
        let rows = sample.table(Entity::Cgroup).rows();
        let groups = rows.iter().map(|row| (row.key.clone(), GroupThen::of(&row.row, self.page)));
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let read =
            pids.filter_map(|pid| Some((pid, read_io(&format!("/proc/{pid}/io"))?.read_bytes)));
        HostThen { groups: groups.collect(), read: read.collect() }
    }

    /// Processes of others by cgroup.
    fn readers(
        &self,
        after: &HostThen,
        of_job: &HashSet<u32>,
    ) -> BTreeMap<String, Vec<OtherReader>> {
        let mut all: BTreeMap<String, Vec<OtherReader>> = BTreeMap::new();
        let Some(groups) = &self.memory_groups else { return all };
        for (pid, read) in &after.read {
            let before = self.before.read.get(pid).copied().unwrap_or_default();
            let read_bytes = read.saturating_sub(before);
            let is_other = *pid != std::process::id() && !of_job.contains(pid);
            if !is_other || read_bytes == Bytes::ZERO {
                continue;
            }
            let Some(group) = groups.of(pid) else { continue };
            let name = name_of(*pid).unwrap_or_default();
            all.entry(group).or_default().push(OtherReader { name, pid: *pid, read_bytes });
        }
        all
    }
}

/// What became of a cgroup meanwhile, those below it included.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupGrowth {
    /// Bytes read again after an eviction.
    pub(crate) refaulted: u64,
    pub(crate) limit_hits: u64,
    /// Bytes of files in the cache.
    pub(crate) cached_before: u64,
    pub(crate) cached_after: u64,
}

/// What each cgroup lost, those that read the most again first; readers are processes that are not of the job. Where the host
/// evicted no file page, only limits did: others lost something to the job below a limit that is around both.
pub(crate) fn lost(
    growth: &BTreeMap<String, GroupGrowth>,
    (mode, host_evicted): (Option<CgroupMode>, Option<Bytes>),
    of_job: &BTreeSet<String>,
    mut readers: BTreeMap<String, Vec<OtherReader>>,
) -> Vec<OtherGroup> {
    let own = |figure: &dyn Fn(&GroupGrowth) -> u64| {
        without_those_below(growth.iter().map(|(key, grown)| (&**key, figure(grown))).collect())
    };
    let refaulted = own(&|grown| grown.refaulted);
    let cached_before = own(&|grown| grown.cached_before);
    let cached_after = own(&|grown| grown.cached_after);
    // Those of v1 are of the cgroup alone.
    let hits: BTreeMap<&str, u64> = match mode {
        Some(CgroupMode::V2) => own(&|grown| grown.limit_hits),
        _ => growth.iter().map(|(key, grown)| (&**key, grown.limit_hits)).collect(),
    };
    let is_around_job =
        |group: &str| of_job.iter().any(|job| ancestors(job).any(|one| one == group));
    let met = |group: &str| hits.get(group).is_some_and(|hits| *hits > 0);
    let met_limit = |group: &str| met(group) && !is_around_job(group);
    let shares_limit = |group: &str| ancestors(group).any(|one| met(one) && is_around_job(one));
    let may_be_harm = |group: &str| host_evicted != Some(Bytes::ZERO) || shares_limit(group);
    let row = |(group, refaulted): (&str, u64)| {
        let mut readers = readers.remove(group).unwrap_or_default();
        readers.sort_by_key(|reader| std::cmp::Reverse((reader.read_bytes, reader.pid)));
        let has_job = of_job.contains(group);
        let read: Bytes = readers.iter().map(|reader| reader.read_bytes).sum();
        readers.truncate(READERS_MAX);
        let value = |of: &BTreeMap<&str, u64>| of.get(group).copied().unwrap_or_default();
        let shrunk = value(&cached_before).saturating_sub(value(&cached_after));
        // In the cgroup of the job both have added to the cache.
        let (reread_bytes, shrunk_bytes) = if has_job {
            (Bytes::new(refaulted).min(read), Bytes::ZERO)
        } else {
            (Bytes::new(refaulted), Bytes::new(shrunk))
        };
        let is_lost = reread_bytes + shrunk_bytes > Bytes::ZERO && may_be_harm(group);
        is_lost.then(|| OtherGroup {
            name: GroupNames::default().called(group).into_owned(),
            cgroup: group.to_owned(),
            reread_bytes,
            shrunk_bytes,
            has_job,
            is_at_own_limit: ancestors(group).any(met_limit),
            readers,
        })
    };
    let mut found: Vec<OtherGroup> = refaulted.into_iter().filter_map(row).collect();
    found.sort_by_key(|group| std::cmp::Reverse((group.reread_bytes, group.shrunk_bytes)));
    found.truncate(GROUPS_MAX);
    found
}

/// Figures of cgroups without those of the cgroups below them.
fn without_those_below(all: BTreeMap<&str, u64>) -> BTreeMap<&str, u64> {
    let mut own = all.clone();
    for (group, figure) in &all {
        if let Some(above) = parent(group).and_then(|above| own.get_mut(above)) {
            *above = above.saturating_sub(*figure);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_reclaim_of_the_host_took_is_the_jobs_doing_only_below_a_common_limit() {
        let grown =
            |refaulted, limit_hits| GroupGrowth { refaulted, limit_hits, ..GroupGrowth::default() };
        let growth = BTreeMap::from([
            ("/shared".to_owned(), grown(9 << 20, 7)),
            ("/shared/job".to_owned(), grown(0, 0)),
            ("/shared/db".to_owned(), grown(9 << 20, 0)),
            ("/builds".to_owned(), grown(8 << 20, 0)),
        ]);
        let of_job = BTreeSet::from(["/shared/job".to_owned()]);
        let names = |evicted| {
            let all = lost(&growth, (Some(CgroupMode::V1), evicted), &of_job, BTreeMap::new());
            all.into_iter().map(|group| group.cgroup).collect::<Vec<_>>()
        };
        assert_eq!(names(Some(Bytes::ZERO)), ["/shared/db"]);
        assert_eq!(names(Some(Bytes::from_mib(1))), ["/shared/db", "/builds"]);
    }

    #[test]
    fn a_figure_of_a_cgroup_is_that_of_its_own_processes() {
        let all = BTreeMap::from([("/", 10), ("/a", 7), ("/a/b", 4), ("/a/c", 1), ("/d", 2)]);
        let own = BTreeMap::from([("/", 1), ("/a", 2), ("/a/b", 4), ("/a/c", 1), ("/d", 2)]);
        assert_eq!(without_those_below(all), own);
    }
}
