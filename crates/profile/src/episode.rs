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
/// Steps of written lengths for each doubling: a length is known to 6 %.
const STEPS_A_DOUBLING: f64 = 8.0;
/// The shortest written length: a tenth of a microsecond.
const LENGTH_S_MIN: f64 = 1e-7;
/// No profile takes longer: 30 years of threads together.
const SECONDS_MAX: f64 = 1e9;
/// At most so many steps: 2^30 times the shortest are 107 s.
const STEP_MAX: u16 = 240;

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
        self.count = self.count.saturating_add(other.count);
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

    /// Lengths by steps, an eighth of a doubling each, as a file keeps them: the step, and how many.
    fn steps(&self) -> Vec<(u16, u64)> {
        let mut steps: std::collections::BTreeMap<u16, u64> = std::collections::BTreeMap::new();
        for length in &self.lengths {
            let step = ((length / LENGTH_S_MIN).log2() * STEPS_A_DOUBLING).floor();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
            let step = step.clamp(0.0, f64::from(STEP_MAX)) as u16;
            *steps.entry(step).or_default() += 1;
        }
        steps.into_iter().collect()
    }

    /// The lengths of a file: each is the middle of its step, and none is above the longest. At most so many are kept as there is room
    /// for.
    fn of_steps(row: &WrittenEpisodes, room: &mut usize) -> Self {
        let (count, total_s, max_s) = (row.count, row.total_s, row.max_s);
        let mut lengths = Vec::new();
        for (step, number) in &row.steps {
            let doublings = (f64::from(*step) + 0.5) / STEPS_A_DOUBLING;
            let length = (LENGTH_S_MIN * doublings.exp2()).min(max_s);
            let number = usize::try_from(*number).unwrap_or(*room).min(*room);
            *room -= number;
            lengths.extend(std::iter::repeat_n(length, number));
        }
        Self { lengths, count, total_s, max_s }
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

/// Episodes of one kind in threads of one name in one cgroup, in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WrittenEpisodes {
    kind: EpisodeKind,
    comm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cgroup: Option<String>,
    count: u64,
    total_s: f64,
    max_s: f64,
    steps: Vec<(u16, u64)>,
}

/// The threads of which episodes are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpisodeKey {
    /// What they are episodes of.
    pub kind: EpisodeKind,
    /// The name of the threads.
    pub comm: Arc<str>,
    /// Their cgroup; `None` where the source does not say it.
    pub cgroup: Option<Arc<str>>,
}

/// All episodes of a profile, by kind, name of the thread and cgroup.
#[derive(Debug, Clone, Default)]
pub struct EpisodeTable {
    rows: HashMap<EpisodeKey, EpisodeTimes>,
    /// Begins that wait for their ends, by thread.
    open: HashMap<(EpisodeKind, u32), f64>,
}

impl EpisodeTable {
    /// Takes an event of a thread at a time in seconds. An end without a begin began before the profile.
    pub fn event(
        &mut self,
        point: &EpisodeTracepoint,
        tid: u32,
        thread: (&str, Option<&str>),
        at_s: f64,
        field: Option<i64>,
    ) {
        let (comm, cgroup) = thread;
        match point.role {
            TracepointRole::Begins => {
                self.open.insert((point.kind, tid), at_s);
            }
            TracepointRole::Ends => {
                if let Some(begin) = self.open.remove(&(point.kind, tid)) {
                    self.add(point.kind, comm, cgroup, at_s - begin);
                }
            }
            TracepointRole::Lasted(_, unit) => {
                #[allow(clippy::cast_precision_loss)] // milliseconds
                if let Some(length) = field.filter(|length| *length > 0) {
                    self.add(point.kind, comm, cgroup, length as f64 * unit);
                }
            }
        }
    }

    /// Adds an episode of threads of a name, in a cgroup.
    pub fn add(&mut self, kind: EpisodeKind, comm: &str, cgroup: Option<&str>, seconds: f64) {
        let key = EpisodeKey { kind, comm: comm.into(), cgroup: cgroup.map(Into::into) };
        if seconds >= 0.0 && (self.rows.len() < ROWS_MAX || self.rows.contains_key(&key)) {
            self.rows.entry(key).or_default().add(seconds);
        }
    }

    /// Rows in the order of kinds, names and cgroups.
    pub fn sorted(&self) -> Vec<(&EpisodeKey, &EpisodeTimes)> {
        let mut all: Vec<_> = self.rows.iter().collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows as a file keeps them, those that took longest first.
    pub(crate) fn written(&self) -> Vec<WrittenEpisodes> {
        let mut all = self.sorted();
        all.sort_by(|one, other| other.1.total_s.total_cmp(&one.1.total_s));
        let row = |(key, times): (&EpisodeKey, &EpisodeTimes)| WrittenEpisodes {
            kind: key.kind,
            comm: key.comm.to_string(),
            cgroup: key.cgroup.as_deref().map(str::to_owned),
            count: times.count,
            total_s: rounded(times.total_s),
            max_s: rounded(times.max_s),
            steps: times.steps(),
        };
        all.into_iter().map(row).collect()
    }

    /// Rows of a file.
    pub(crate) fn of_written(rows: Vec<WrittenEpisodes>) -> Self {
        let (mut table, mut room) = (Self::default(), LENGTHS_MAX);
        for row in rows.into_iter().take(ROWS_MAX) {
            let is_sane = |seconds: f64| (0.0..SECONDS_MAX).contains(&seconds);
            if is_sane(row.total_s) && is_sane(row.max_s) {
                let times = EpisodeTimes::of_steps(&row, &mut room);
                let cgroup = row.cgroup.map(Into::into);
                let key = EpisodeKey { kind: row.kind, comm: row.comm.into(), cgroup };
                table.rows.insert(key, times);
            }
        }
        table
    }
}

/// Seconds to the tenth of a microsecond.
fn rounded(seconds: f64) -> f64 {
    (seconds / LENGTH_S_MIN).round() * LENGTH_S_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_without_a_begin_is_none_and_pauses_have_their_length() {
        let mut table = EpisodeTable::default();
        let [begin, end] = [&TRACEPOINTS[0], &TRACEPOINTS[1]];
        table.event(end, 1, ("a", None), 1.0, None);
        table.event(begin, 1, ("a", None), 2.0, None);
        table.event(begin, 2, ("b", None), 2.5, None);
        table.event(end, 1, ("a", None), 2.25, None);
        table.event(&TRACEPOINTS[9], 3, ("w", Some("/x")), 3.0, Some(200));
        table.event(&TRACEPOINTS[9], 3, ("w", Some("/x")), 3.0, Some(-1));
        let rows: Vec<_> = table
            .sorted()
            .into_iter()
            .map(|(key, times)| (key.kind, &*key.comm, key.cgroup.as_deref(), times.max_s()))
            .collect();
        assert_eq!(
            rows,
            [
                (EpisodeKind::DirectReclaim, "a", None, 0.25),
                (EpisodeKind::DirtyThrottle, "w", Some("/x"), 0.2)
            ]
        );
    }

    #[test]
    fn what_a_file_keeps_has_the_same_sums_and_nearly_the_same_quantiles() {
        let mut table = EpisodeTable::default();
        for length in 1..=1_000 {
            table.add(EpisodeKind::MemcgReclaim, "db", Some("/db"), f64::from(length) * 17e-6);
        }
        let read = EpisodeTable::of_written(table.written());
        let (before, after) = (table.sorted(), read.sorted());
        assert_eq!(before[0].0, after[0].0);
        let (before, after) = (before[0].1, after[0].1);
        assert_eq!((before.count(), after.count()), (1_000, 1_000));
        assert!((before.total_s() - after.total_s()).abs() < 1e-6);
        for share in [0.5, 0.99] {
            let ratio = after.quantile_s(share) / before.quantile_s(share);
            assert!((0.94..1.06).contains(&ratio), "{ratio}");
        }
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
