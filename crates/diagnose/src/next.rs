//! What to run on that host next, where the source could not say all.

use crate::evidence::Evidence;
use crate::lately::Lately;
use crate::missing::{Missing, Need};

/// A command that would tell more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The command.
    pub command: &'static str,
    /// What it would tell.
    pub tells: &'static str,
}

/// What would supply most of what rules lacked; empty where they lacked nothing that looking again would give.
pub(crate) fn steps(cx: &Evidence<'_>, not_evaluated: &[(&'static str, Missing)]) -> Vec<Step> {
    let lacks = |wanted: fn(&Need) -> bool| not_evaluated.iter().any(|(_, m)| wanted(&m.need));
    let levels_only = cx.is_single_look() || lacks(|need| *need == Need::TwoLooks);
    let lacks_files = lacks(|need| matches!(need, Need::Field { .. } | Need::File(_)));
    if !levels_only && !lacks_files {
        return Vec::new();
    }
    vec![
        Step {
            command: "memtide check --for 1m",
            tells: "whether anything moves, waits or comes back after eviction",
        },
        Step {
            // What is there already is not asked for again.
            command: if Lately::for_memory(cx).is_some() {
                "vmstat -w 5 12; cat /proc/meminfo; grep -E 'refault|pgscan|allocstall' /proc/vmstat"
            } else {
                "vmstat -w 5 12; cat /proc/meminfo; head /proc/pressure/*"
            },
            tells: "part of that without memtide there: paste it into memtide check -",
        },
    ]
}
