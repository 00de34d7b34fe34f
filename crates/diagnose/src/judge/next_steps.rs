//! Commands to run next on that host to get what the source lacks.

use timeline::{Stretch, Timeline};
use units::Span;

use crate::evidence::{Evidence, Missing, Need};
use crate::judge::Diagnosis;
use crate::measures::psi_average::PressureAverage;

/// A command that would supply what rules lack.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    pub command: &'static str,
    /// What it would show.
    pub shows: &'static str,
}

/// Returns the part of a long source to read at full resolution: the worst finding with some minutes around it, or the
/// tightest hour if the finding lasts for hours.
pub fn worth_full_detail(timeline: &Timeline, diagnosis: &Diagnosis) -> Option<Stretch> {
    /// Long enough to show what led to the finding and what followed.
    const AROUND: Span = Span::from_mins(5);
    /// An hour of samples every second is read in 0.2 s.
    const RANGE_MAX: Span = Span::from_hours(1);
    let finding = diagnosis.findings.iter().chain(&diagnosis.earlier).next()?;
    let when = finding.when?;
    let moment = diagnosis.accounting.as_ref().map_or(when.from, |shown| shown.at);
    let (from, to) = if when.duration() > RANGE_MAX {
        let half = RANGE_MAX.times(0.5);
        (moment.saturating_sub(half), moment.plus(half))
    } else {
        (when.from, when.to)
    };
    let times = timeline.times();
    let first = times.partition_point(|time| *time < from.saturating_sub(AROUND));
    let last = times.partition_point(|time| *time <= to.plus(AROUND)).checked_sub(1)?;
    timeline.stretch(first, last)
}

/// Returns commands that would supply most of what rules lacked; empty if another capture would add nothing.
pub(crate) fn steps(cx: &Evidence<'_>, not_evaluated: &[(&'static str, Missing)]) -> Vec<NextStep> {
    let lacks = |wanted: fn(&Need) -> bool| not_evaluated.iter().any(|(_, m)| wanted(&m.need));
    let levels_only = cx.is_single_sample() || lacks(|need| *need == Need::TwoSamples);
    // Only /proc/vmstat has allocation stalls: a source that has them has all that memtide reads.
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
            shows: "whether anything swaps, waits for memory, or is read from disk again",
        },
        NextStep {
            // Do not ask for what the source already has.
            command: if PressureAverage::for_memory(cx).is_some() {
                "vmstat -w 5 12; cat /proc/meminfo; grep -E 'refault|pgscan|allocstall' \
                 /proc/vmstat"
            } else {
                "vmstat -w 5 12; cat /proc/meminfo; head /proc/pressure/*"
            },
            shows: "part of that without memtide on the host: paste the output into memtide check \
                    -",
        },
    ]
}
