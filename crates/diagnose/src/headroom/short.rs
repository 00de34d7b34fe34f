//! When memory was short as seen: what the rules found. A formula that sees room at such a time is wrong.

use super::Short;
use crate::evidence::Evidence;
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

/// When memory was short, and by which rule.
pub(super) fn times(cx: &Evidence<'_>) -> Vec<Short> {
    let rules = rules::ALL.iter();
    rules
        .filter(|rule| SHORTAGES.contains(&rule.id))
        .filter_map(|rule| match (rule.check)(cx) {
            Ok(Outcome::Found(finding)) => Some(Short {
                rule: finding.id,
                when: finding.when.or_else(|| cx.timeline.whole()),
                text: finding.title,
            }),
            _ => None,
        })
        .collect()
}
