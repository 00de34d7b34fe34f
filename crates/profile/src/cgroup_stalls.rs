//! Which cgroups stand still, and for what: a limit of their own or of a cgroup around them, or the host's lack of memory.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timeline::cgroup::{ROOT, ancestors};

use crate::cgroup_use::CgroupUse;
use crate::classify::classify;
use crate::collected::Profile;
use crate::episode::EpisodeKind;
use crate::kernel_work::KernelWork;
use crate::reason::Reason;

/// What a cgroup waited for, and what it cost. Times are of its threads together: two that wait for a second are two seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupStalls {
    /// Its path, by which its memory is counted; `/` is the root, with the threads of the kernel.
    pub cgroup: String,
    /// What people call it: a unit, a container, a pod; `None` where its path says nothing else.
    pub name: Option<String>,
    /// In reclaim at its own limit, and in the sleeps of its own `memory.high`.
    pub own_limit_s: f64,
    /// The same at limits of cgroups around it.
    pub outer_limit_s: f64,
    /// Whether limits of both were met: how the time is divided between them goes by how often each was.
    pub is_divided: bool,
    /// In reclaim and compaction because the host, or a node of it, lacks memory.
    pub host_s: f64,
    /// Waiting for what was evicted before: swap, and files that are read again.
    pub reads_back_s: f64,
    /// CPU time of reclaim at limits, of the busy CPU.
    pub limit_share: Option<f64>,
    /// CPU time of reclaim and compaction for the host, of the busy CPU.
    pub host_share: Option<f64>,
    /// CPU time of all that it does, of the busy CPU.
    pub cpu_share: Option<f64>,
    /// How much its memory grew meanwhile, with that of the cgroups in it: who takes what others wait for.
    pub grew_bytes: Option<i64>,
    /// Limits that were met meanwhile: its own and those around it, the most often met first.
    pub limits: Vec<MetLimit>,
}

/// A limit that was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetLimit {
    /// The cgroup that has it.
    pub cgroup: String,
    /// By which file it is set.
    pub limit: MetLimitKind,
    /// Where it is, in bytes.
    pub bytes: Option<u64>,
    /// How often it was met.
    pub hits: u64,
}

/// A limit by its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetLimitKind {
    /// `memory.max`; on version 1 `memory.limit_in_bytes`.
    Max,
    /// `memory.high`, which only version 2 has.
    High,
}

impl CgroupStalls {
    /// At limits, its own and others'.
    pub fn limit_s(&self) -> f64 {
        self.own_limit_s + self.outer_limit_s
    }

    /// All that it waited for memory.
    pub fn stalled_s(&self) -> f64 {
        self.limit_s() + self.host_s + self.reads_back_s
    }
}

/// What lacks memory where a reason has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LackOf {
    Limit,
    Host,
    ReadsBack,
}

/// Adds up what each cgroup waited for. Empty where the source does not say who is in which. `reads_again`: waits for files are for
/// what was evicted before.
pub(crate) fn cgroup_stalls(profile: &Profile, reads_again: bool) -> Vec<CgroupStalls> {
    let mut sums = StallSums { rows: HashMap::new(), busy: 0.0, reads_again };
    sums.add_cpu(profile);
    sums.add_blocked(profile);
    sums.add_episodes(profile);
    let StallSums { rows: all, busy, .. } = sums;
    let known = by_path(profile);
    let mut rows: Vec<CgroupStalls> = all
        .into_iter()
        .map(|(path, row)| {
            let mut row = CgroupStalls { cgroup: path.to_owned(), ..row };
            for share in [&mut row.cpu_share, &mut row.limit_share, &mut row.host_share] {
                *share = (busy > 0.0).then(|| share.unwrap_or(0.0) / busy);
            }
            row.grew_bytes = known.get(path).and_then(|one| one.grew_bytes);
            row.limits = met_limits(path, &known);
            divide(&mut row);
            row
        })
        .collect();
    rows.sort_by(|one, other| {
        let by = |row: &CgroupStalls| (row.stalled_s(), row.cpu_share.unwrap_or(0.0));
        let (one_by, other_by) = (by(one), by(other));
        let order = other_by.0.total_cmp(&one_by.0).then(other_by.1.total_cmp(&one_by.1));
        order.then_with(|| one.cgroup.cmp(&other.cgroup))
    });
    rows
}

/// Sums by cgroup while they are made.
struct StallSums<'a> {
    rows: HashMap<&'a str, CgroupStalls>,
    /// The weight of all samples that were not idle.
    busy: f64,
    reads_again: bool,
}

impl<'a> StallSums<'a> {
    fn lack(&self, reason: Reason) -> Option<LackOf> {
        match reason {
            Reason::MemcgMax | Reason::MemcgHigh => Some(LackOf::Limit),
            Reason::DirectReclaim
            | Reason::NodeReclaim
            | Reason::DirectCompact
            | Reason::Kswapd => Some(LackOf::Host),
            Reason::SwapIn => Some(LackOf::ReadsBack),
            reason if reason.is_file_wait() && self.reads_again => Some(LackOf::ReadsBack),
            _ => None,
        }
    }

    fn add_cpu(&mut self, profile: &'a Profile) {
        for (stack, weight) in profile.cpu.iter().flat_map(|(_, stacks)| stacks.iter()) {
            let class = classify(stack);
            if class.is_idle {
                continue;
            }
            self.busy += weight;
            let Some(cgroup) = &stack.cgroup else {
                continue;
            };
            let lack = self.lack(class.reason);
            let row = self.rows.entry(cgroup).or_default();
            *row.cpu_share.get_or_insert(0.0) += weight;
            match lack {
                Some(LackOf::Limit) => *row.limit_share.get_or_insert(0.0) += weight,
                Some(LackOf::Host) => *row.host_share.get_or_insert(0.0) += weight,
                Some(LackOf::ReadsBack) | None => {}
            }
        }
    }

    fn add_blocked(&mut self, profile: &'a Profile) {
        let has_episodes = profile.episodes.is_some();
        for (stack, seconds) in profile.blocked.iter().flat_map(|blocked| blocked.stacks.iter()) {
            let Some(cgroup) = &stack.cgroup else {
                continue;
            };
            let class = classify(stack);
            // The sleep of memory.high comes after its reclaim; other waits are parts of episodes.
            let is_counted = !has_episodes || class.work == Some(KernelWork::Throttle);
            let lack = self.lack(class.reason);
            let row = self.rows.entry(cgroup).or_default();
            match lack {
                Some(LackOf::Limit) if is_counted => row.own_limit_s += seconds,
                Some(LackOf::Host) if !has_episodes && class.reason != Reason::Kswapd => {
                    row.host_s += seconds;
                }
                Some(LackOf::ReadsBack) => row.reads_back_s += seconds,
                _ => {}
            }
        }
    }

    fn add_episodes(&mut self, profile: &'a Profile) {
        for (key, times) in profile.episodes.iter().flat_map(|table| table.sorted()) {
            let Some(cgroup) = &key.cgroup else {
                continue;
            };
            let is_of_task =
                !key.kind.reasons(&key.comm).iter().any(|reason| reason.is_background());
            match key.kind {
                EpisodeKind::MemcgReclaim => {
                    self.rows.entry(cgroup).or_default().own_limit_s += times.total_s();
                }
                EpisodeKind::DirectReclaim | EpisodeKind::NodeReclaim | EpisodeKind::Compaction
                    if is_of_task =>
                {
                    self.rows.entry(cgroup).or_default().host_s += times.total_s();
                }
                // Pauses of reclaim are parts of it; writers do not wait for memory to be freed.
                _ => {}
            }
        }
    }
}

/// Whether a limit of a cgroup, or of one around it, was met meanwhile.
pub(crate) fn has_met_limit(path: &str, profile: &Profile) -> bool {
    !met_limits(path, &by_path(profile)).is_empty()
}

fn by_path(profile: &Profile) -> HashMap<&str, &CgroupUse> {
    profile.cgroups.iter().map(|one| (one.path.as_str(), one)).collect()
}

/// Limits of a cgroup and of those around it that were met.
fn met_limits(path: &str, known: &HashMap<&str, &CgroupUse>) -> Vec<MetLimit> {
    let mut all = Vec::new();
    for one in ancestors(path).filter(|path| *path != ROOT).filter_map(|path| known.get(path)) {
        let limits = [
            (MetLimitKind::Max, one.max_bytes, one.max_hits),
            (MetLimitKind::High, one.high_bytes, one.high_hits),
        ];
        for (limit, bytes, hits) in limits.into_iter().filter(|(_, _, hits)| *hits > 0) {
            all.push(MetLimit { cgroup: one.path.clone(), limit, bytes, hits });
        }
    }
    all.sort_by_key(|limit| std::cmp::Reverse(limit.hits));
    all
}

/// Divides the time at limits between its own and those around it, by how often each was met.
fn divide(row: &mut CgroupStalls) {
    let hits = |is_own: bool| -> f64 {
        let of = row.limits.iter().filter(|limit| (limit.cgroup == row.cgroup) == is_own);
        #[allow(clippy::cast_precision_loss)] // counts
        of.map(|limit| limit.hits as f64).sum()
    };
    let (own, outer) = (hits(true), hits(false));
    if outer <= 0.0 {
        return;
    }
    let all = row.own_limit_s;
    row.outer_limit_s = all * outer / (own + outer);
    row.own_limit_s = all - row.outer_limit_s;
    row.is_divided = own > 0.0 && all > 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collected::{BlockedHow, BlockedStacks, CpuUnit};
    use crate::episode::EpisodeTable;
    use crate::stack::{FramePlace, StackTable};

    fn used(path: &str, max_hits: u64, high_hits: u64) -> CgroupUse {
        let (max_bytes, high_bytes) = (Some(1 << 26), Some(1 << 25));
        let grew_bytes = Some(4096);
        CgroupUse { path: path.into(), max_bytes, high_bytes, max_hits, high_hits, grew_bytes }
    }

    fn stacks(all: &[(&str, &str, f64)]) -> StackTable {
        let mut table = StackTable::default();
        for (cgroup, frames, weight) in all {
            let frames = frames.split(';').map(|name| (name, FramePlace::Kernel));
            table.add_in(Some(cgroup), "x", frames, *weight);
        }
        table
    }

    #[test]
    fn stalls_are_of_the_limit_that_was_met_or_of_the_host() {
        let mut episodes = EpisodeTable::default();
        episodes.add(EpisodeKind::MemcgReclaim, "x", Some("/own"), 3.0);
        episodes.add(EpisodeKind::MemcgReclaim, "x", Some("/outer/in"), 2.0);
        episodes.add(EpisodeKind::MemcgReclaim, "x", Some("/both/in"), 4.0);
        episodes.add(EpisodeKind::DirectReclaim, "x", Some("/victim"), 1.5);
        episodes.add(EpisodeKind::ReclaimThrottled, "x", Some("/victim"), 1.0);
        episodes.add(EpisodeKind::Compaction, "kcompactd0", Some("/"), 9.0);
        let high = "do_syscall_64;exit_to_user_mode_loop;mem_cgroup_handle_over_high;schedule_timeout_killable";
        let reclaims = "do_syscall_64;try_charge_memcg;try_to_free_mem_cgroup_pages;shrink_lruvec";
        let blocked = stacks(&[
            ("/own", high, 0.5),
            ("/own", reclaims, 2.0),
            ("/victim", "exc_page_fault;do_swap_page;folio_wait_bit_common", 0.25),
        ]);
        let profile = Profile {
            cpu: Some((
                CpuUnit::Samples,
                stacks(&[("/own", reclaims, 30.0), ("/victim", "do_syscall_64;ksys_read", 70.0)]),
            )),
            blocked: Some(BlockedStacks { how: BlockedHow::Traced, stacks: blocked }),
            episodes: Some(episodes),
            cgroups: vec![
                used("/own", 9, 0),
                used("/outer", 5, 0),
                used("/outer/in", 0, 0),
                used("/both", 0, 30),
                used("/both/in", 10, 0),
                used("/victim", 0, 0),
            ],
            ..Profile::default()
        };
        let rows = cgroup_stalls(&profile, false);
        let shown = |path: &str| {
            let row = rows.iter().find(|row| row.cgroup == path).unwrap();
            (row.own_limit_s, row.outer_limit_s, row.host_s, row.reads_back_s, row.is_divided)
        };
        assert_eq!(shown("/own"), (3.5, 0.0, 0.0, 0.0, false));
        assert_eq!(shown("/outer/in"), (0.0, 2.0, 0.0, 0.0, false));
        assert_eq!(shown("/both/in"), (1.0, 3.0, 0.0, 0.0, true));
        assert_eq!(shown("/victim"), (0.0, 0.0, 1.5, 0.25, false));
        assert!(rows.iter().all(|row| row.cgroup != "/"));
        let own = &rows.iter().find(|row| row.cgroup == "/own").unwrap();
        assert_eq!((own.limit_share, own.host_share), (Some(0.3), Some(0.0)));
        assert_eq!(rows[0].cgroup, "/both/in");
        assert_eq!(rows[0].limits[0].limit, MetLimitKind::High);
    }
}
