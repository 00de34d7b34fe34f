//! The answer of `memtide profile` as JSON: `memtide-profile/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::callers::CallerBranch;
use crate::cgroup_stalls::CgroupStalls;
use crate::collected::{BlockedHow, CpuUnit, NotMeasured, ProfileOrigin};
use crate::kernel_work::KernelWork;
use crate::purpose::Purpose;
use crate::reason::{Reason, ReasonGroup};

/// The schema of the answer.
pub const PROFILE_SCHEMA: &str = "memtide-profile/1";

/// The answer of a profile. Shares are fractions from 0 to 1 of the samples of busy CPUs, unless their name says of what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileReport {
    /// Always [`PROFILE_SCHEMA`] here.
    pub schema: String,
    /// What matters, in a sentence or two.
    pub headline: String,
    /// Reasons of trouble that cost noticeably, the most important first; empty on a healthy host.
    pub hot: Vec<ReasonRow>,
    /// All reasons that were seen, the largest first.
    pub reasons: Vec<ReasonRow>,
    /// How the profile came about.
    pub origin: ProfileOrigin,
    /// What ran; `None` where it was not measured.
    pub cpu: Option<CpuSummary>,
    /// What waited in state D; `None` where it was not measured.
    pub blocked: Option<BlockedSummary>,
    /// Whether lengths of reclaim and compaction were measured.
    pub has_episodes: bool,
    /// What each cgroup waited for, the longest first; empty where the source does not say who is in which.
    #[serde(default)]
    pub cgroups: Vec<CgroupStalls>,
    /// File pages of the host that were read again after an eviction (refaults), in bytes; `None` where they were few, or where the
    /// source does not count them.
    #[serde(default)]
    pub reread_bytes: Option<u64>,
    /// Swap-in, and reclaim that writes to swap.
    pub swap_share: Option<f64>,
    /// Settings of the host at the time that explain a reason.
    pub settings: BTreeMap<String, String>,
    /// What the reader must know about the source.
    pub remarks: Vec<String>,
    /// What could not be measured.
    pub not_measured: Vec<NotMeasured>,
    /// What differs from a base; `None` without one.
    pub difference: Option<ProfileDifference>,
}

/// What ran, in sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSummary {
    /// What is counted.
    pub unit: CpuUnit,
    /// Samples of busy CPUs; `None` where a text prints only shares.
    pub samples: Option<f64>,
    /// Of all CPUs over the whole time.
    pub busy_share: Option<f64>,
    /// Samples of idle CPUs that were left out, of all in the source.
    pub idle_share: Option<f64>,
    /// What a text does not print.
    pub unprinted_share: Option<f64>,
    /// In the kernel, in functions of which not one has a name: why is unknown.
    #[serde(default)]
    pub nameless_share: Option<f64>,
}

/// What waited, in sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedSummary {
    /// How it was measured.
    pub how: BlockedHow,
    /// Tasks that waited in state D, on average.
    pub tasks: Option<f64>,
    /// All waits together.
    pub seconds: f64,
}

/// Why a reason is hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HotBy {
    /// It takes much CPU time.
    Share,
    /// Tasks wait for it.
    StalledTasks,
    /// Its episodes are long, or fill much of the time of threads of one name.
    Episodes,
}

/// A reason with all its measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonRow {
    /// Who started the work.
    pub reason: Reason,
    /// Its name in sentences.
    pub label: String,
    /// What it means for the reader.
    pub group: ReasonGroup,
    /// What happens, as a sentence without its end.
    pub means: String,
    /// Why it is hot; empty where it is not.
    pub hot_by: Vec<HotBy>,
    /// What was done most.
    pub work: Option<KernelWork>,
    /// Of the samples of busy CPUs.
    pub share: Option<f64>,
    /// The 95 % interval of the share, to each side.
    pub share_margin: Option<f64>,
    /// Samples of this reason.
    pub samples: Option<f64>,
    /// CPUs that it kept busy, on average.
    pub cpus: Option<f64>,
    /// Tasks that waited in state D for it, on average.
    pub stalled_tasks: Option<f64>,
    /// Of all waiting in state D.
    pub blocked_share: Option<f64>,
    /// Waiting in state D.
    pub blocked_s: Option<f64>,
    /// Lengths of its episodes; `None` where there was none.
    pub episodes: Option<EpisodeSummary>,
    /// What was done: shares of the busy CPU, or of the waiting where nothing ran.
    pub works: Vec<WorkShare>,
    /// Threads in which it ran, by name.
    pub comms: Vec<NameShare>,
    /// Cgroups in which it ran, or waited where nothing ran; empty where the source does not say it.
    pub cgroups: Vec<NameShare>,
    /// Threads that waited, by name.
    pub waiting_comms: Vec<NameShare>,
    /// System calls, page faults, kernel threads.
    pub entries: Vec<NameShare>,
    /// What memory was wanted for, where wanting it started the work.
    pub purposes: Vec<PurposeShare>,
    /// Callers, from what started the work outwards.
    pub callers: Vec<CallerBranch>,
    /// The rule of `memtide check` that explains it.
    pub rule: Option<String>,
    /// What to type.
    pub remedy: Option<String>,
}

/// A kind of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkShare {
    /// Which kind of work.
    pub work: KernelWork,
    /// Of the busy CPU.
    pub share: f64,
}

/// A name with its share of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NameShare {
    /// As the host has it: any user may choose the name of a thread.
    pub name: String,
    /// Of this reason.
    pub of_reason: f64,
}

/// What memory was wanted for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PurposeShare {
    /// What memory was wanted for.
    pub purpose: Purpose,
    /// By which system call, fault or thread.
    pub entry: String,
    /// The function that shows it.
    pub function: Option<String>,
    /// Of the busy CPU.
    pub share: f64,
    /// Of this reason.
    pub of_reason: f64,
}

/// Lengths of episodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeSummary {
    /// How many there were.
    pub count: u64,
    /// How many a second.
    pub per_second: Option<f64>,
    /// All together; threads at the same time are added.
    pub total_s: f64,
    /// Those of threads of one name, as a share of the time: 1 is one thread all the time.
    pub of_time: Option<f64>,
    /// Half of them are shorter.
    pub p50_s: f64,
    /// 99 % of them are shorter.
    pub p99_s: f64,
    /// Length of the longest.
    pub max_s: f64,
    /// The name of the threads that had most.
    pub comm: String,
}

/// What differs from a base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileDifference {
    /// The files of the base.
    pub base: Vec<String>,
    /// Samples of the base.
    pub base_samples: Option<f64>,
    /// CPUs that were busy in the base, on average.
    pub base_busy_cpus: Option<f64>,
    /// CPUs that were busy in this profile, on average.
    pub busy_cpus: Option<f64>,
    /// Reasons that differ by more than chance, the largest difference first.
    pub reasons: Vec<ReasonDifference>,
}

/// How a reason differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonDifference {
    /// Which one it is.
    pub reason: Reason,
    /// Its name in sentences.
    pub label: String,
    /// What it means for the reader.
    pub group: ReasonGroup,
    /// Its share of the busy CPU in the base.
    pub base_share: Option<f64>,
    /// Its share here.
    pub share: Option<f64>,
    /// CPUs that it kept busy in the base.
    pub base_cpus: Option<f64>,
    /// CPUs that it keeps busy here.
    pub cpus: Option<f64>,
    /// Tasks that waited for it in the base.
    pub base_stalled_tasks: Option<f64>,
    /// Tasks that wait for it here.
    pub stalled_tasks: Option<f64>,
    /// The difference of shares in standard errors.
    pub z: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::ProfileReport;

    /// `BLESS=1 cargo test -p memtide-profile` writes it anew.
    #[test]
    fn the_published_schema_is_fresh() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let path = docs.join("profile.schema.json");
        let schema = report::model::schema_of::<ProfileReport>().unwrap() + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            published == schema,
            "docs/profile.schema.json is stale: BLESS=1 cargo test -p memtide-profile"
        );
    }
}
