//! A profile as it was collected or read: stacks, episodes, and what is known of how they came about. Nothing is judged here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use crate::cgroup_use::CgroupUse;
use crate::episode::EpisodeTable;
use crate::stack::StackTable;

/// What the weights of stacks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuUnit {
    /// Samples of busy CPUs.
    Samples,
    /// Percent of all samples, as `perf report` prints them.
    Percent,
    /// Single backtraces: of a warning, a hung task, a person with `/proc/PID/stack`.
    Backtraces,
}

/// How waiting was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockedHow {
    /// Each wait was traced from its begin to its end.
    Traced,
    /// Waiting tasks were looked for again and again; short waits are counted too low.
    Polled,
}

/// Stacks of tasks that waited in state D, with seconds.
#[derive(Debug, Clone)]
pub struct BlockedStacks {
    /// How they were measured.
    pub how: BlockedHow,
    /// Stacks with seconds of waiting.
    pub stacks: StackTable,
}

/// Something that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// What is missing: `CPU samples`, `episodes`.
    pub what: String,
    /// Why it could not be.
    pub why: String,
    /// What to type; `None` where nothing helps.
    pub help: Option<String>,
}

/// How a profile came about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileOrigin {
    /// `live`, or the form of a file: `perf script`, `folded stacks`.
    pub form: String,
    /// The files that it was read from.
    pub files: Vec<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// CPUs that were sampled.
    pub cpus: Option<u32>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Samples of a busy CPU in a second.
    pub hz: Option<f64>,
    /// What takes the samples: `cpu-clock`, `cycles`.
    pub event: Option<String>,
    /// Which processes: `all`, or the selection as typed.
    pub scope: Option<String>,
    /// Samples that found no room in the kernel's buffer.
    pub lost: Option<u64>,
    /// When it began, in seconds since 1970.
    pub unix_time_s: Option<f64>,
}

/// A profile, not judged.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// How it came about.
    pub origin: ProfileOrigin,
    /// What ran, and how it is counted; `None` where it was not measured.
    pub cpu: Option<(CpuUnit, StackTable)>,
    /// What waited; `None` where it was not measured.
    pub blocked: Option<BlockedStacks>,
    /// Times of reclaim and compaction; `None` where they were not measured.
    pub episodes: Option<EpisodeTable>,
    /// Limits of cgroups, and how often they were met; empty where they were not read.
    pub cgroups: Vec<CgroupUse>,
    /// Counters of `/proc/vmstat`: how much they rose meanwhile.
    pub vmstat_delta: BTreeMap<String, i64>,
    /// Settings of the host at the time that explain a reason, as text.
    pub settings: BTreeMap<String, String>,
    /// What the reader must know about the source.
    pub remarks: Vec<String>,
    /// What could not be measured.
    pub not_measured: Vec<NotMeasured>,
    /// Percent of samples that a text does not print.
    pub unprinted_percent: f64,
    /// How many samples a text counts that prints only shares.
    pub samples_of_text: Option<f64>,
}

/// What is written of a profile: a graph or a file has one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfilePart {
    /// What ran; of a profile of waits alone, those.
    Cpu,
    /// What waited in state D.
    Waits,
}

impl Profile {
    /// The stacks of a part, and whether they are waits; `None` where it was not measured.
    pub fn part(&self, part: ProfilePart) -> Option<(&StackTable, bool)> {
        let waits = self.blocked.as_ref().map(|blocked| (&blocked.stacks, true));
        match part {
            ProfilePart::Cpu => self.cpu.as_ref().map(|(_, stacks)| (stacks, false)).or(waits),
            ProfilePart::Waits => waits,
        }
    }

    /// How long it took.
    pub fn lasted(&self) -> Option<Span> {
        self.origin.seconds.filter(|seconds| *seconds > 0.0).map(Span::from_secs_f64)
    }

    /// Joins what several files show of one recording: CPU samples, waits, episodes.
    pub fn join(&mut self, other: Self) {
        let Self { origin, cpu, blocked, episodes, cgroups, vmstat_delta, settings, .. } = other;
        match (&mut self.cpu, cpu) {
            (Some((unit, stacks)), Some((other_unit, more))) if *unit == other_unit => {
                stacks.extend(more);
            }
            (mine @ None, more) => *mine = more,
            _ => {}
        }
        match (&mut self.blocked, blocked) {
            // What was traced is better than what was polled at the same time: they are not added.
            (Some(mine), Some(more)) if mine.how != more.how => {
                if more.how == BlockedHow::Traced {
                    *mine = more;
                }
            }
            (Some(mine), Some(more)) => mine.stacks.extend(more.stacks),
            (mine @ None, more) => *mine = more,
            (Some(_), None) => {}
        }
        if self.episodes.is_none() {
            self.episodes = episodes;
        }
        if self.cgroups.is_empty() {
            self.cgroups = cgroups;
        }
        self.vmstat_delta.extend(vmstat_delta);
        self.settings.extend(settings);
        self.remarks.extend(other.remarks);
        self.not_measured.extend(other.not_measured);
        self.unprinted_percent = self.unprinted_percent.max(other.unprinted_percent);
        self.samples_of_text = self.samples_of_text.or(other.samples_of_text);
        let mine = &mut self.origin;
        mine.files.extend(origin.files);
        mine.kernel = mine.kernel.take().or(origin.kernel);
        mine.cpus = mine.cpus.or(origin.cpus);
        mine.seconds = mine.seconds.or(origin.seconds);
        mine.hz = mine.hz.or(origin.hz);
        mine.event = mine.event.take().or(origin.event);
        mine.lost = mine.lost.or(origin.lost);
        mine.scope = mine.scope.take().or(origin.scope);
        mine.unix_time_s = mine.unix_time_s.or(origin.unix_time_s);
    }
}
