//! Episodes: stretches from the begin to the end of a reclaim, a compaction or a pause, as tracepoints show them. Exact, without
//! stacks; they count time on a CPU and off it together, also the wait for a CPU in between.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// What an episode is of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EpisodeKind {
    /// Reclaim by a task that needs a page.
    DirectReclaim,
    /// Reclaim on the node of the CPU.
    NodeReclaim,
    /// Reclaim at a cgroup's limit.
    MemcgReclaim,
    /// Compaction, by tasks and kcompactd.
    Compaction,
    /// A pause of a task that reclaims.
    ReclaimThrottled,
    /// A pause of a writer.
    DirtyThrottle,
}

/// What a tracepoint does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TracepointRole {
    /// An episode begins.
    Begins,
    /// The episode ends.
    Ends,
    /// It is over, and the field of this name has its length in these units of a second.
    Lasted(&'static str, f64),
}

/// A tracepoint that shows episodes.
#[derive(Debug, Clone, Copy)]
pub struct EpisodeTracepoint {
    /// Its folder in tracefs.
    pub system: &'static str,
    /// Its name in that folder.
    pub name: &'static str,
    /// Of which episodes.
    pub kind: EpisodeKind,
    /// What it shows of them.
    pub role: TracepointRole,
}

const fn point(
    system: &'static str,
    name: &'static str,
    kind: EpisodeKind,
    role: TracepointRole,
) -> EpisodeTracepoint {
    EpisodeTracepoint { system, name, kind, role }
}

/// All tracepoints of episodes: rare events, 440 to 750 a second in the worst runs and none on a healthy host.
pub const TRACEPOINTS: [EpisodeTracepoint; 10] = [
    point(
        "vmscan",
        "mm_vmscan_direct_reclaim_begin",
        EpisodeKind::DirectReclaim,
        TracepointRole::Begins,
    ),
    point(
        "vmscan",
        "mm_vmscan_direct_reclaim_end",
        EpisodeKind::DirectReclaim,
        TracepointRole::Ends,
    ),
    point(
        "vmscan",
        "mm_vmscan_node_reclaim_begin",
        EpisodeKind::NodeReclaim,
        TracepointRole::Begins,
    ),
    point("vmscan", "mm_vmscan_node_reclaim_end", EpisodeKind::NodeReclaim, TracepointRole::Ends),
    point(
        "vmscan",
        "mm_vmscan_memcg_reclaim_begin",
        EpisodeKind::MemcgReclaim,
        TracepointRole::Begins,
    ),
    point("vmscan", "mm_vmscan_memcg_reclaim_end", EpisodeKind::MemcgReclaim, TracepointRole::Ends),
    point("compaction", "mm_compaction_begin", EpisodeKind::Compaction, TracepointRole::Begins),
    point("compaction", "mm_compaction_end", EpisodeKind::Compaction, TracepointRole::Ends),
    point(
        "vmscan",
        "mm_vmscan_throttled",
        EpisodeKind::ReclaimThrottled,
        TracepointRole::Lasted("usec_delayed", 1e-6),
    ),
    point(
        "writeback",
        "balance_dirty_pages",
        EpisodeKind::DirtyThrottle,
        TracepointRole::Lasted("pause", 1e-3),
    ),
];

impl EpisodeKind {
    /// The reasons in the rows of which it may be shown: one tracepoint serves several. Without a stack of any it is the first.
    pub fn reasons(self, comm: &str) -> &'static [Reason] {
        match self {
            Self::DirectReclaim | Self::ReclaimThrottled => &[Reason::DirectReclaim],
            Self::NodeReclaim => &[Reason::NodeReclaim],
            Self::MemcgReclaim => &[Reason::MemcgMax, Reason::MemcgHigh, Reason::Proactive],
            Self::Compaction if comm.starts_with("kcompactd") => &[Reason::Kcompactd],
            Self::Compaction if comm == "khugepaged" => &[Reason::Khugepaged],
            Self::Compaction => &[Reason::DirectCompact, Reason::CompactSysctl],
            Self::DirtyThrottle => &[Reason::DirtyThrottle],
        }
    }
}

/// Episodes of one kind in threads of one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EpisodeTimes {
    /// Length of each in seconds, in no order; of more than [`LENGTHS_MAX`] the rest is only counted.
    lengths: Vec<f64>,
    count: u64,
    total_s: f64,
    max_s: f64,
}

/// At most so many lengths of a row are kept for its quantiles.
const LENGTHS_MAX: usize = 100_000;
/// At most so many rows: names of threads are chosen by anybody.
const ROWS_MAX: usize = 4_096;

impl EpisodeTimes {
    /// Adds an episode.
    pub fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.total_s += seconds;
        self.max_s = self.max_s.max(seconds);
        if self.lengths.len() < LENGTHS_MAX {
            self.lengths.push(seconds);
        }
    }

    /// Adds all of another row.
    pub fn extend(&mut self, other: &Self) {
        self.count += other.count;
        self.total_s += other.total_s;
        self.max_s = self.max_s.max(other.max_s);
        let room = LENGTHS_MAX.saturating_sub(self.lengths.len());
        self.lengths.extend(other.lengths.iter().take(room));
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Seconds of all together.
    pub const fn total_s(&self) -> f64 {
        self.total_s
    }

    /// Seconds of the longest.
    pub const fn max_s(&self) -> f64 {
        self.max_s
    }

    /// Seconds that a share of all does not exceed.
    pub fn quantile_s(&self, share: f64) -> f64 {
        let mut sorted = self.lengths.clone();
        sorted.sort_by(f64::total_cmp);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
        sorted.get(at).copied().unwrap_or(0.0)
    }
}

/// All episodes of a profile, by kind and name of the thread.
#[derive(Debug, Clone, Default)]
pub struct EpisodeTable {
    rows: HashMap<(EpisodeKind, Arc<str>), EpisodeTimes>,
    /// Begins that wait for their ends, by thread.
    open: HashMap<(EpisodeKind, u32), f64>,
}

impl EpisodeTable {
    /// Takes an event of a thread at a time in seconds. An end without a begin began before the profile.
    pub fn event(
        &mut self,
        point: &EpisodeTracepoint,
        tid: u32,
        comm: &str,
        at_s: f64,
        field: Option<i64>,
    ) {
        match point.role {
            TracepointRole::Begins => {
                self.open.insert((point.kind, tid), at_s);
            }
            TracepointRole::Ends => {
                if let Some(begin) = self.open.remove(&(point.kind, tid)) {
                    self.add(point.kind, comm, at_s - begin);
                }
            }
            TracepointRole::Lasted(_, unit) => {
                #[allow(clippy::cast_precision_loss)] // milliseconds
                if let Some(length) = field.filter(|length| *length > 0) {
                    self.add(point.kind, comm, length as f64 * unit);
                }
            }
        }
    }

    /// Adds an episode.
    pub fn add(&mut self, kind: EpisodeKind, comm: &str, seconds: f64) {
        let key = (kind, Arc::from(comm));
        if seconds >= 0.0 && (self.rows.len() < ROWS_MAX || self.rows.contains_key(&key)) {
            self.rows.entry(key).or_default().add(seconds);
        }
    }

    /// Rows in the order of kinds and names.
    pub fn sorted(&self) -> Vec<(EpisodeKind, &str, &EpisodeTimes)> {
        let mut all: Vec<_> =
            self.rows.iter().map(|((kind, comm), times)| (*kind, &**comm, times)).collect();
        all.sort_by_key(|(kind, comm, _)| (*kind, *comm));
        all
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_without_a_begin_is_none_and_pauses_have_their_length() {
        let mut table = EpisodeTable::default();
        let [begin, end] = [&TRACEPOINTS[0], &TRACEPOINTS[1]];
        table.event(end, 1, "a", 1.0, None);
        table.event(begin, 1, "a", 2.0, None);
        table.event(begin, 2, "b", 2.5, None);
        table.event(end, 1, "a", 2.25, None);
        table.event(&TRACEPOINTS[9], 3, "w", 3.0, Some(200));
        table.event(&TRACEPOINTS[9], 3, "w", 3.0, Some(-1));
        let rows: Vec<_> = table
            .sorted()
            .into_iter()
            .map(|(kind, comm, times)| (kind, comm.to_owned(), times.count(), times.max_s()))
            .collect();
        assert_eq!(
            rows,
            [
                (EpisodeKind::DirectReclaim, "a".to_owned(), 1, 0.25),
                (EpisodeKind::DirtyThrottle, "w".to_owned(), 1, 0.2)
            ]
        );
    }

    #[test]
    fn of_a_hundred_the_99th_is_p99() {
        let mut times = EpisodeTimes::default();
        for length in (1..=100).rev() {
            times.add(f64::from(length));
        }
        assert_eq!(
            (times.quantile_s(0.5), times.quantile_s(0.99), times.max_s()),
            (50.0, 99.0, 100.0)
        );
    }
}
