//! A job that runs already: a process with all below it, or the processes of a cgroup.
//!
//! The account of a living process contains those of its threads and children that ended and were waited for. So the sum is what
//! living processes have, what ended ones had at the last look where nobody in the job waited for them, less what all had when they
//! were met first. What a process does between its last look and its end is missing, unless its parent is of the job.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use probe::{MemoryGroups, ProcessFiles, Root};
use timeline::EntityRow;
use timeline::cgroup::GroupNames;
use timeline::signals::{PROC_PARENT, PROC_STIME, PROC_UTIME};
use units::{Count, Span};

use crate::observe::JobIo;
use crate::observe::account::read_io;
use crate::observe::process_tree;

/// Processes that are followed; further ones are in no account.
const PROCESSES_MAX: usize = 1 << 14;

/// What is watched of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobTarget {
    /// A process, and all that it started or starts.
    Process(u32),
    /// The processes of a cgroup, by its path below the mount, and of those below it.
    Cgroup(String),
}

impl JobTarget {
    /// The cgroup that it is charged to.
    pub(super) fn cgroup(&self) -> Option<String> {
        match self {
            Self::Process(pid) => MemoryGroups::find(&Root::default())?.of(pid),
            Self::Cgroup(path) => Some(path.clone()),
        }
    }
}

impl fmt::Display for JobTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => {
                let name = process_tree::name_of(*pid);
                write!(
                    f,
                    "process {pid}{}",
                    name.map_or_else(String::new, |name| format!(" ({name})"))
                )
            }
            Self::Cgroup(path) => f.write_str(&GroupNames::default().called(path)),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct AttachedProcess {
    parent: u32,
    io: JobIo,
    cpu: Span,
}

/// The processes of a job that this process did not start.
#[derive(Debug)]
pub(super) struct Attached {
    target: JobTarget,
    groups: Option<MemoryGroups>,
    has_looked: bool,
    living: HashMap<u32, AttachedProcess>,
    /// Sums of processes that ended without being waited for by the job, and of what all had at first.
    ended: JobIo,
    ended_cpu: Span,
    before: JobIo,
    before_cpu: Span,
    /// Processes with an account that this user may not read.
    refused: HashSet<u32>,
}

impl Attached {
    pub(super) fn to(target: JobTarget) -> Self {
        Self {
            target,
            groups: MemoryGroups::find(&Root::default()),
            has_looked: false,
            living: HashMap::new(),
            ended: JobIo::default(),
            ended_cpu: Span::ZERO,
            before: JobIo::default(),
            before_cpu: Span::ZERO,
            refused: HashSet::new(),
        }
    }

    /// Reads the accounts of all processes of the job. Those that are met now and began before it have done that before.
    pub(super) fn look(&mut self) -> Vec<u32> {
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let mut pids = self.listed();
        pids.truncate(PROCESSES_MAX);
        let now: HashSet<u32> = pids.iter().copied().collect();
        let gone: Vec<u32> =
            self.living.keys().filter(|pid| !now.contains(*pid)).copied().collect();
        for process in gone.iter().filter_map(|pid| self.living.remove(pid)) {
            self.ended_cpu = self.ended_cpu.plus(process.cpu);
            // A living parent has waited for it: its account has all of it.
            if !now.contains(&process.parent) {
                self.ended = self.ended.plus(process.io);
            }
        }
        for pid in &pids {
            let Some(io) = read_io(&format!("/proc/{pid}/io")) else {
                if self.refused.len() < PROCESSES_MAX && is_there(*pid) {
                    self.refused.insert(*pid);
                }
                continue;
            };
            let (parent, cpu) = parent_and_cpu(*pid).unwrap_or_default();
            let is_new = self.living.insert(*pid, AttachedProcess { parent, io, cpu }).is_none();
            // One that is met later has begun meanwhile: all of it is of the job.
            if is_new && is_first {
                self.before = self.before.plus(io);
                self.before_cpu = self.before_cpu.plus(cpu);
            }
        }
        pids
    }

    fn listed(&self) -> Vec<u32> {
        match &self.target {
            JobTarget::Cgroup(path) => {
                self.groups.as_ref().map(|groups| groups.processes(path)).unwrap_or_default()
            }
            JobTarget::Process(pid) => {
                // Orphans are below it no more, and are of the job still.
                let known = self.living.keys().copied().filter(|pid| is_there(*pid));
                let mut tops: Vec<u32> = known.collect();
                if is_there(*pid) {
                    tops.push(*pid);
                }
                process_tree::with_all_below(tops)
            }
        }
    }

    /// What all of them did since they were met.
    pub(super) fn sum(&self) -> JobIo {
        let living = self.living.values().fold(self.ended, |sum, one| sum.plus(one.io));
        living.less(self.before)
    }

    /// CPU time of all of them.
    pub(super) fn cpu(&self) -> Span {
        let living = self.living.values().fold(self.ended_cpu, |sum, one| sum.plus(one.cpu));
        living - self.before_cpu
    }

    pub(super) fn running(&self) -> Count {
        Count::new(self.living.len() as u64)
    }

    pub(super) fn unreadable(&self) -> Count {
        Count::new(self.refused.len() as u64)
    }
}

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/task")).exists()
}

/// The parent of a process, and CPU time of all its threads.
fn parent_and_cpu(pid: u32) -> Option<(u32, Span)> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let mut process = EntityRow::default();
    // A malformed line is an absent reading.
    let _ = ProcessFiles::default().parse(pid, "stat", &text, &mut process);
    let parent = u32::try_from(process.row.get(PROC_PARENT)?.get()).ok()?;
    let ticks = process.row.get(PROC_UTIME)?.get() + process.row.get(PROC_STIME)?.get();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some((parent, Span::from_secs_f64(ticks as f64 / per_second as f64)))
}
