//! The part of `check --cgroup` about the cgroup itself.

use diagnose::group::{self as engine, ChargedPart, GroupFelt};
use diagnose::{GroupDiagnosis, Level};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::Timeline;
use units::{Bytes, Count, Ratio};

use super::time::wall;

/// A cgroup as its own host: where findings, verdict and headline of the report are about it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GroupSection {
    /// Its path.
    pub path: String,
    /// What people call it; null where its path names nothing.
    pub name: Option<String>,
    /// The moment of the sizes: where it had most memory during its worst finding, else the last sample. Null where the
    /// source has no wall clock.
    pub at: Option<Timestamp>,
    /// The same from the first sample on.
    pub at_s: f64,
    /// What is charged to it and those below it; null where unknown.
    pub current_bytes: Option<Bytes>,
    /// The most that was ever charged to it; null where unknown.
    pub peak_bytes: Option<Bytes>,
    /// What that is made of: the parts add up to `current_bytes` unless counters drift.
    pub parts: Vec<ChargedPart>,
    /// `current_bytes` without inactive file cache, as Kubernetes computes it; null where unknown.
    pub working_set_bytes: Option<Bytes>,
    /// What reclaim can take without swap: clean file cache and reclaimable kernel objects; null where unknown.
    pub droppable_bytes: Option<Bytes>,
    /// File cache that has to be written first; null where unknown.
    pub unwritten_bytes: Option<Bytes>,
    /// What it has in swap; null where unknown.
    pub swap_bytes: Option<Bytes>,
    /// The limits of it and of the cgroups around it that are below RAM, from the inside.
    pub limits: Vec<LimitEntry>,
    /// What it felt since the first sample.
    pub felt: GroupFelt,
    /// What raising which limit would change, in sentences.
    pub raising: Vec<String>,
    /// What the source cannot show, in sentences.
    pub unknown: Vec<String>,
    /// The host around it.
    pub around: Around,
}

/// A limit of a cgroup.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitEntry {
    /// The cgroup that has it.
    pub path: String,
    /// The same in a sentence: by the name of its container or pod.
    pub place: String,
    /// The kernel's file: `memory.max`, `memory.high`; on cgroup v1 `memory.limit_in_bytes`.
    pub file: &'static str,
    pub limit_bytes: Bytes,
    /// What counts towards it; null where unknown.
    pub used_bytes: Option<Bytes>,
    /// Its used share, above 1 where the kernel let it be exceeded.
    pub used: Option<Ratio>,
    /// What is left below it.
    pub room_bytes: Option<Bytes>,
    /// The used part that reclaim cannot take without swap.
    pub undroppable_bytes: Option<Bytes>,
    /// How often it was hit since the first sample; null where that is not counted.
    pub hits: Option<u64>,
}

/// The host around a cgroup.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Around {
    /// How it stands.
    pub verdict: Level,
    /// The same in one or two sentences.
    pub headline: String,
    /// MemAvailable at the moment of the sizes; null where unknown.
    pub available_bytes: Option<Bytes>,
    /// Whether what is wrong with the cgroup is also the worst of the host, and so its headline.
    pub is_same: bool,
    /// Roots among its findings that are not about the cgroup.
    pub findings: Vec<HostFinding>,
}

/// A finding about the host, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostFinding {
    /// Id of the rule.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Whether the host's headline is this title.
    pub is_headline: bool,
}

impl GroupSection {
    /// The part about a cgroup with what people call it.
    pub fn new(timeline: &Timeline, group: &GroupDiagnosis, name: Option<String>) -> Self {
        let state = &group.state;
        Self {
            path: state.path.clone(),
            name: name.filter(|name| !state.path.ends_with(&**name)),
            at: wall(timeline, state.at),
            at_s: state.at.as_secs_f64(),
            current_bytes: state.current,
            peak_bytes: state.peak,
            parts: state.parts.clone(),
            working_set_bytes: state.working_set,
            droppable_bytes: state.droppable,
            unwritten_bytes: state.unwritten,
            swap_bytes: state.swap,
            limits: state.limits.iter().map(LimitEntry::from).collect(),
            felt: state.felt,
            raising: state.raising.clone(),
            unknown: state.unknown.clone(),
            around: Around {
                verdict: group.host.level,
                headline: group.host.headline.clone(),
                available_bytes: state.available,
                is_same: group.is_worst_of_host,
                findings: group
                    .host_findings
                    .iter()
                    .map(|finding| HostFinding {
                        id: finding.id.to_owned(),
                        title: finding.title.to_string(),
                        is_headline: finding.is_headline,
                    })
                    .collect(),
            },
        }
    }
}

impl From<&engine::GroupLimitState> for LimitEntry {
    fn from(limit: &engine::GroupLimitState) -> Self {
        Self {
            path: limit.path.clone(),
            place: limit.place.clone(),
            file: limit.file,
            limit_bytes: limit.limit,
            used_bytes: limit.used,
            used: limit.share(),
            room_bytes: limit.room(),
            undroppable_bytes: limit.undroppable,
            hits: limit.hits.map(Count::get),
        }
    }
}
