//! What to run on that host next, where the source could not say all.

use timeline::{Stretch, Timeline};
use units::Span;

use crate::evidence::{Evidence, Missing, Need};
use crate::judge::Diagnosis;
use crate::measures::psi_average::PressureAverage;

/// A command that would tell more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// The command.
    pub command: &'static str,
    /// What it would tell.
    pub tells: &'static str,
}

/// The time of a long source that is worth a look at every sample: that of the worst finding, with some minutes around it,
/// and of a finding of hours its tightest.
pub fn worth_a_closer_look(timeline: &Timeline, diagnosis: &Diagnosis) -> Option<Stretch> {
    /// What led to it and what came of it.
    const AROUND: Span = Span::from_mins(5);
    /// At every second, an hour is read in a fifth of one.
    const MOST: Span = Span::from_hours(1);
    let finding = diagnosis.findings.iter().chain(&diagnosis.earlier).next()?;
    let when = finding.when?;
    let moment = diagnosis
        .accounting
        .as_ref()
        .map_or(when.from, |shown| shown.at);
    let (from, to) = match when.duration() > MOST {
        true => (
            moment.saturating_sub(MOST.times(0.5)),
            moment.plus(MOST.times(0.5)),
        ),
        false => (when.from, when.to),
    };
    let times = timeline.times();
    let first = times.partition_point(|time| *time < from.saturating_sub(AROUND));
    let last = times
        .partition_point(|time| *time <= to.plus(AROUND))
        .checked_sub(1)?;
    timeline.stretch(first, last)
}

/// What would supply most of what rules lacked; empty where they lacked nothing that looking again would give.
pub(crate) fn steps(cx: &Evidence<'_>, not_evaluated: &[(&'static str, Missing)]) -> Vec<NextStep> {
    let lacks = |wanted: fn(&Need) -> bool| not_evaluated.iter().any(|(_, m)| wanted(&m.need));
    let levels_only = cx.is_single_look() || lacks(|need| *need == Need::TwoLooks);
    // Only /proc/vmstat itself tells of allocation stalls: who has them has been watched as memtide would.
    if !cx.is_too_short() && cx.allocation_stalls().is_ok() {
        return Vec::new();
    }
    let lacks_files = lacks(|need| matches!(need, Need::Field { .. } | Need::File(_)));
    if !levels_only && !lacks_files {
        return Vec::new();
    }
    vec![
        NextStep {
            command: "memtide check --for 1m",
            tells: "whether anything moves, waits or comes back after eviction",
        },
        NextStep {
            // What is there already is not asked for again.
            command: if PressureAverage::for_memory(cx).is_some() {
                "vmstat -w 5 12; cat /proc/meminfo; grep -E 'refault|pgscan|allocstall' /proc/vmstat"
            } else {
                "vmstat -w 5 12; cat /proc/meminfo; head /proc/pressure/*"
            },
            tells: "part of that without memtide there: paste it into memtide check -",
        },
    ]
}
