//! When memory was short according to the rules. A formula that shows room at such a time is wrong.

use super::Short;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::judge::RuleAnswers;
use crate::rule::Class;

/// The times at which memory was short, each with its rule.
pub(super) fn times(cx: &Evidence<'_>) -> Vec<Short> {
    let answers = RuleAnswers::of_rules(cx, |rule| rule.class == Class::Shortage);
    // A finding of severity info, such as kills at an unknown time since boot, is not tied to a moment of the source.
    let short = answers.incidents.iter();
    short
        .filter(|finding| finding.severity > Severity::Info)
        .flat_map(|finding| each_time(cx, finding))
        .collect()
}

/// Every time at which a finding held; the whole source where the finding has no time.
pub(super) fn each_time(cx: &Evidence<'_>, finding: &Finding) -> Vec<Short> {
    let mut stretches = finding.stretches();
    if stretches.is_empty() {
        stretches.extend(cx.timeline.whole());
    }
    let short =
        |when| Short { rule: finding.id, when: Some(when), text: finding.title.to_string() };
    stretches.into_iter().map(short).collect()
}
