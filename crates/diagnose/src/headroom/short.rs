//! When memory was short as seen: what the rules found. A formula that sees room at such a time is wrong.

use timeline::Stretch;
use timeline::signals::PSI_MEMORY_SOME;
use units::Span;

use super::Short;
use super::terms::Levels;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::rule::Outcome;
use crate::rules;

/// Rules whose findings mean that RAM did not hold what was wanted: files or processes' memory came back after eviction,
/// or processes were killed for want of memory.
const SHORTAGES: [&str; 6] = [
    "swap-thrash",
    "page-cache-thrash",
    "exec-pages-evicted",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "oom-global",
];

/// What a burst is judged in: a look of its own, as hours of calm around it would hide it.
const AROUND: Span = Span::from_mins(1);

/// When memory was short for long, and by which rule.
pub(super) fn times(cx: &Evidence<'_>) -> Vec<Short> {
    let rules = rules::ALL.iter();
    rules
        .filter(|rule| SHORTAGES.contains(&rule.id))
        .filter_map(|rule| match (rule.check)(cx) {
            // What is only worth knowing, as kills at some time since boot are, is of no moment of the source.
            Ok(Outcome::Found(finding)) if finding.severity > Severity::Info => Some(finding),
            _ => None,
        })
        .flat_map(|finding| each_time(cx, &finding))
        .collect()
}

/// Every time at which a finding held; the whole source where it is of no time.
fn each_time(cx: &Evidence<'_>, finding: &Finding) -> Vec<Short> {
    let mut stretches = finding.stretches();
    if stretches.is_empty() {
        stretches.extend(cx.timeline.whole());
    }
    let short = |when| Short {
        rule: finding.id,
        when: Some(when),
        text: finding.title.clone(),
    };
    stretches.into_iter().map(short).collect()
}

/// The same, and what the rules find in the minutes around the tightest moment and around that of the longest wait.
pub(super) fn with_bursts(cx: &Evidence<'_>, levels: &Levels, lasting: Vec<Short>) -> Vec<Short> {
    let mut all = lasting;
    let waits = cx.stall(PSI_MEMORY_SOME).ok();
    let longest_wait = waits.and_then(|waits| waits.max()).map(|(_, at)| at);
    for index in [levels.tightest(), longest_wait].into_iter().flatten() {
        if all.iter().any(|short| short.covers(index)) {
            continue;
        }
        let Some(around) = around(cx, index) else {
            continue;
        };
        let part = cx.timeline.part(around.first, around.last + 1);
        let found = times(&Evidence::new(&part, cx.facts));
        all.extend(found.into_iter().map(|short| Short {
            when: short.when.and_then(|when| {
                let at = |index: usize| around.first + index;
                cx.timeline.stretch(at(when.first), at(when.last))
            }),
            ..short
        }));
    }
    all
}

/// The samples around a moment.
fn around(cx: &Evidence<'_>, index: usize) -> Option<Stretch> {
    let times = cx.timeline.times();
    let at = *times.get(index)?;
    let first = times.partition_point(|time| *time < at.saturating_sub(AROUND));
    let last = times.partition_point(|time| *time <= at.plus(AROUND));
    cx.timeline.stretch(first, last.checked_sub(1)?)
}
