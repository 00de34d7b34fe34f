//! A limit of a cgroup that was lowered before a finding: the change is the reason, and the limit before was enough.

use timeline::{Entity, LimitStep, limit_steps};
use units::Limit;

use crate::evidence::Evidence;
use crate::finding::{Finding, FixChange};

/// Names the change in each finding of a rule that began after it, and advises the limit of before.
pub(super) fn put_back(cx: &Evidence<'_>, findings: &mut [Finding]) {
    for at in 0..findings.len() {
        if let Some(step) = lowered_before(cx, findings, at) {
            blame(cx, &mut findings[at], step);
        }
    }
}

/// The change that made the limit of a finding as small as it is, if the cgroup did without this finding before.
fn lowered_before(cx: &Evidence<'_>, findings: &[Finding], at: usize) -> Option<LimitStep> {
    let finding = &findings[at];
    let small = finding.small_limit()?;
    let (first, last) = finding.when.map(|when| (when.first, when.last))?;
    let group = cx.timeline.entity(Entity::Cgroup, &small.cgroup)?;
    let mut steps = limit_steps(cx.timeline, group, small.file.signal()).into_iter();
    let step = steps.rfind(|step| step.at <= last)?;
    let is_of_it =
        !step.is_raised() && step.to == Limit::Bytes(small.size) && step.since <= first + 1;
    let was_so_before = findings.iter().any(|other| {
        let when = other.when.filter(|_| other.scope.key == finding.scope.key);
        when.is_some_and(|when| when.first < step.since)
    });
    (is_of_it && !was_so_before).then_some(step)
}

fn blame(cx: &Evidence<'_>, finding: &mut Finding, step: LimitStep) {
    let words = |limit: Limit| limit.limited().map_or("none".to_owned(), |size| size.to_string());
    let (from, to) = (words(step.from), words(step.to));
    finding.cause =
        format!("Its limit was lowered to {to} (it was {from}), and that is too little for it.");
    finding.add_line_at(cx.time(step.at), format!("the limit was lowered to {to} (it was {from})"));
    let raise = finding.fixes.iter_mut().find(|fix| fix.raises.is_some());
    let Some((raise, before)) = raise.zip(step.from.limited()) else {
        return;
    };
    raise.what = format!(
        "Put its limit back to {before}, at which this was not seen. Or make the program need less."
    );
    for change in &mut raise.changes {
        if let FixChange::Limit(limit) = change {
            limit.to = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits_now::tests::{found, has_line, starved_in};
    use crate::rules::testing::changed;

    #[test]
    fn a_lowered_limit_is_the_reason_and_is_put_back() {
        let all = found(&starved_in(&[(30, 256), (60, 48)], 30..90));
        assert_eq!(
            all[0].cause,
            "Its limit was lowered to 48 MiB (it was 256 MiB), and that is too little for it."
        );
        assert!(has_line(&all[0], "the limit was lowered to 48 MiB (it was 256 MiB)"), "{all:?}");
        assert!(all[0].fixes[0].what.starts_with("Put its limit back to 256 MiB"));
        assert_eq!(
            changed(&all[0].fixes[0]),
            ["/web/memory.max=50331648 -> /web/memory.max=268435456"]
        );
    }

    #[test]
    fn a_limit_that_was_too_small_before_is_not_put_back() {
        for finding in found(&starved_in(&[(30, 80), (60, 48)], 0..90)) {
            assert!(!finding.fixes[0].what.starts_with("Put"), "{}", finding.fixes[0].what);
        }
    }
}
