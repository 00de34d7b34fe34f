//! When memory was short as seen: what the rules found. A formula that sees room at such a time is wrong.

use super::Short;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::judge::RuleAnswers;
use crate::rule::Class;
use crate::rules;

/// When memory was short, and by which rule.
pub(super) fn times(cx: &Evidence<'_>) -> Vec<Short> {
    let is_shortage = |finding: &Finding| {
        let rule = rules::by_id(finding.id);
        // What is only worth knowing, as kills at some time since boot are, is of no moment of the source.
        finding.severity > Severity::Info && rule.is_some_and(|rule| rule.class == Class::Shortage)
    };
    let incidents = RuleAnswers::collect(cx).incidents;
    let short = incidents.iter().filter(|finding| is_shortage(finding));
    short.flat_map(|finding| each_time(cx, finding)).collect()
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
