//! A limit of a cgroup that was raised after a kill, and at which the kernel killed again: what the raise did.

use timeline::signals::CGROUP_MAX;
use timeline::{Entity, LimitStep, limit_steps};
use units::{Limit, Span};

use crate::evidence::Evidence;
use crate::finding::Finding;

/// Says in each finding about kills in a cgroup that its limit was raised since an earlier kill, and how long that lasted.
pub(super) fn note(cx: &Evidence<'_>, findings: &mut [Finding]) {
    for at in 0..findings.len() {
        if let Some((step, lasted)) = raised_before(cx, findings, at) {
            let finding = &mut findings[at];
            let from = step.from.limited().unwrap_or_default();
            let title = std::mem::take(&mut finding.title);
            finding.title =
                title.adding(&format!("; its limit had been raised from {from} {lasted} before"));
            let to = step.to.limited().unwrap_or_default();
            let text =
                format!("the limit was raised from {from} to {to}, and {lasted} later it was met");
            finding.add_line_at(cx.time(step.at), text);
        }
    }
}

/// The last change before a kill, if it raised the limit after an earlier kill in the cgroup, and how long that lasted.
fn raised_before(cx: &Evidence<'_>, findings: &[Finding], at: usize) -> Option<(LimitStep, Span)> {
    let finding = findings.get(at).filter(|finding| finding.harm.killed > 0)?;
    let when = finding.when.filter(|_| finding.scope.entity == Entity::Cgroup)?;
    let group = cx.timeline.entity(Entity::Cgroup, &finding.scope.key)?;
    let steps = limit_steps(cx.timeline, group, CGROUP_MAX);
    let step = steps.into_iter().rfind(|step| step.at <= when.first)?;
    let is_raise = step.is_raised() && matches!(step.to, Limit::Bytes(_));
    let was_killed = findings.iter().any(|other| {
        let earlier = other.when.filter(|_| other.scope.key == finding.scope.key);
        other.harm.killed > 0 && earlier.is_some_and(|earlier| earlier.last <= step.at)
    });
    let lasted = when.from.saturating_sub(cx.time(step.at)?);
    (is_raise && was_killed).then_some((step, lasted))
}

#[cfg(test)]
mod tests {
    use crate::judge::diagnose;
    use crate::rules::testing::Case;
    use timeline::Entity::Cgroup;
    use timeline::signals::{
        CGROUP_CURRENT, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX, MEM_TOTAL,
    };
    use units::{Bytes, Limit};

    /// The title of the kills of a cgroup at 100 s and at 400 s; its limit is changed from 200 MiB at 300 s.
    fn title(to: u64) -> String {
        let limit = |at| Limit::Bytes(Bytes::from_mib(if at < 300 { 200 } else { to }));
        let limits: Vec<Limit> = (0..=600).map(limit).collect();
        let kills: Vec<u64> = (0..600).map(|at| u64::from(at == 99 || at == 399)).collect();
        let case = Case::over(600)
            .gauge(MEM_TOTAL, Bytes::from_gib(8))
            .gauge_steps_of(Cgroup, "/app", CGROUP_MAX, &limits)
            .gauge_of(Cgroup, "/app", CGROUP_CURRENT, Bytes::from_mib(150))
            .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM, &kills)
            .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &kills);
        let diagnosis = case.with(|cx| diagnose(cx.timeline, cx.facts));
        let finding = diagnosis.findings.iter().find(|one| one.id == "oom-cgroup").unwrap();
        finding.title.to_string()
    }

    #[test]
    fn the_last_kill_below_the_present_limit_leads_with_what_the_raise_did() {
        let raised = title(250);
        assert!(raised.contains("hit its limit of 250 MiB"), "{raised}");
        assert!(
            raised.contains("; its limit had been raised from 200 MiB 99 s before"),
            "{raised}"
        );
        let same = title(200);
        assert!(!same.contains("raised"), "{same}");
    }
}
