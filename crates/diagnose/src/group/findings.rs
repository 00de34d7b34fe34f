//! The part of a host's diagnosis that is about one cgroup, the cgroups around it and those within it.

use timeline::Entity;
use timeline::cgroup::{ROOT, is_related};
use timeline::signals::{CGROUP_CURRENT, CGROUP_MAX};
use units::{Bytes, Limit, Ratio};

use super::GroupState;
use crate::accounting::account;
use crate::evidence::Evidence;
use crate::finding::{Affected, Finding, Scope, Severity};
use crate::judge::Diagnosis;
use crate::judge::incidents::{complete, limits_now::as_of_now};
use crate::judge::verdict::{Level, Verdict, level_at_end, too_short_for_growth, worst};
use crate::measures::cgroups::{self, NEARLY_FULL, owns_processes};
use crate::rules::{
    self,
    cgroup_limit_ahead::{RULE, soon},
};

/// The diagnosis of a cgroup, and how its host stands.
#[derive(Debug)]
pub struct GroupDiagnosis {
    /// The cgroup.
    pub state: GroupState,
    /// What is wrong with it; its verdict is about the cgroup.
    pub diagnosis: Diagnosis,
    /// The host's verdict.
    pub host: Verdict,
    /// Whether the host's headline is that of the cgroup: its worst finding is the cgroup's.
    pub is_worst_of_host: bool,
    /// Roots among the host's findings that are not about the cgroup.
    pub host_findings: Vec<Finding>,
}

impl Diagnosis {
    /// Returns the part of this diagnosis of `cx` that is about a cgroup; its state counts from sample `from` on, and the
    /// accounting is of its moment.
    pub fn about(mut self, cx: &Evidence<'_>, path: &str, from: usize) -> GroupDiagnosis {
        let is_about = |finding: &Finding| concerns(cx, finding, path);
        let (mut own, others): (Vec<_>, Vec<_>) = self.findings.into_iter().partition(is_about);
        let ids: Vec<&str> = own.iter().map(|finding| finding.id).collect();
        for finding in &mut own {
            // A root that is not about the cgroup stands with the host.
            finding.caused_by = finding.caused_by.filter(|root| ids.contains(root));
        }
        let is_root =
            |finding: &&Finding| finding.caused_by.is_none() && finding.severity > Severity::Info;
        let host_findings = others.iter().filter(is_root).cloned().collect();
        let was_headline = own.first().is_some_and(|finding| finding.is_headline);
        own.iter_mut().for_each(|finding| finding.is_headline = false);
        self.notes.retain(is_about);
        self.earlier.retain(is_about);
        self.bursts.clear();
        self.clear.retain(|(id, _)| is_rule_of_cgroups(id));
        self.not_evaluated.retain(|(id, _)| is_rule_of_cgroups(id));
        self.next.clear();
        add_growth(cx, path, &mut own);
        let state = GroupState::new(cx, path, from, &own, !self.notes.is_empty());
        let verdict = verdict(cx, &state, &mut own);
        if let Some(at) = state.index {
            self.accounting = account(cx, at);
        }
        let host = std::mem::replace(&mut self.verdict, verdict);
        let is_worst_of_host = was_headline && own.first().is_some_and(|first| first.is_headline);
        GroupDiagnosis {
            state,
            host,
            is_worst_of_host,
            host_findings,
            diagnosis: Self { findings: own, ..self },
        }
    }
}

/// Adds that the cgroup meets a limit soon if it grows on as in the last seconds, where no rule foretells it. It goes on, so it
/// leads over what is over. At another moment than the end it is no answer.
fn add_growth(cx: &Evidence<'_>, path: &str, own: &mut Vec<Finding>) {
    let Some(group) = cx.timeline.entity(Entity::Cgroup, path).filter(|_| !cx.is_asked()) else {
        return;
    };
    if own.iter().any(|finding| finding.foretells_in.is_some()) {
        return;
    }
    let was_killed = own.iter().any(|finding| finding.harm.killed > 0);
    let Some(mut finding) = soon::finding(cx, group, was_killed) else {
        return;
    };
    finding = complete(&RULE, finding);
    finding.scope = Scope { entity: Entity::Cgroup, key: path.to_owned() };
    finding.occasions = finding.occasion().into_iter().collect();
    as_of_now(cx, &mut finding, None);
    let leads = |other: &Finding| {
        other.caused_by.is_none() && (other.is_over || other.severity <= finding.severity)
    };
    let at = own.iter().position(leads).unwrap_or(own.len());
    own.insert(at, finding);
}

/// Whether a finding is about the cgroup, one around it, or one within it, or about a process in it.
fn concerns(cx: &Evidence<'_>, finding: &Finding, path: &str) -> bool {
    let scope = &finding.scope;
    let is_related = |group: &str| match path {
        // Messages of the kernel name cgroups by their paths on the host; a container sees its own.
        ROOT => cx.timeline.entity(Entity::Cgroup, group).is_some(),
        path => is_related(group, path),
    };
    match scope.entity {
        Entity::Cgroup => is_related(&scope.key),
        Entity::Process => {
            let process = cx.timeline.entity(Entity::Process, &scope.key);
            process.is_some_and(owns_processes(cx, path))
        }
        // Some rules find cgroups one by one and name them as affected.
        Entity::Host => {
            let is_group = |one: &Affected| one.kind == "cgroup";
            finding.affected.first().is_some_and(is_group)
                && finding.affected.iter().any(|one| is_group(one) && is_related(&one.name))
        }
        _ => false,
    }
}

fn is_rule_of_cgroups(id: &str) -> bool {
    rules::by_id(id).is_some_and(|rule| rule.is_of_cgroups())
}

fn verdict(cx: &Evidence<'_>, state: &GroupState, findings: &mut [Finding]) -> Verdict {
    let level = match worst(findings) {
        Some(Severity::Critical) => Level::Critical,
        Some(Severity::Warning) => Level::Warning,
        _ if state.current.is_none() || cx.is_too_short() => Level::Unknown,
        _ => Level::Ok,
    };
    let top = findings.first_mut().filter(|_| matches!(level, Level::Critical | Level::Warning));
    Verdict {
        level,
        headline: top.map_or_else(|| headline(cx, state), Finding::lead),
        remarks: match level {
            Level::Ok => too_short_for_growth(cx, cx.recorded()).into_iter().collect(),
            _ => Vec::new(),
        },
        now: level_at_end(level, findings).filter(|now| *now != Level::Ok || has_enough(cx, state)),
    }
}

/// Whether a cgroup works at the end, and has room: of one that is empty, gone, or nearly full of what cannot be dropped
/// nothing says that its memory is enough.
fn has_enough(cx: &Evidence<'_>, state: &GroupState) -> bool {
    /// A cgroup without processes has less.
    const IN_USE: Bytes = Bytes::from_mib(1);
    let Some(group) = cx.timeline.entity(Entity::Cgroup, &state.path) else {
        return true;
    };
    let current = cx.timeline.last_of(group, CGROUP_CURRENT);
    let held = cgroups::undroppable().track_of(cx, group).ok().and_then(|held| held.last());
    let limit = cx.timeline.last_of(group, CGROUP_MAX).and_then(Limit::limited);
    let is_full = held.zip(limit).is_some_and(|(held, limit)| held >= limit.share(NEARLY_FULL));
    !is_full && current.is_none_or(|current| current >= IN_USE)
}

/// The headline without findings.
fn headline(cx: &Evidence<'_>, state: &GroupState) -> String {
    /// Less of it is not worth a sentence.
    const NOTABLE: Ratio = Ratio::from_percent(1.0);
    let path = &state.path;
    let Some(current) = state.current else {
        return format!("This source does not show how much memory {path} has.");
    };
    let nearest = state.limits.iter().max_by(|a, b| {
        let share = |limit: &super::GroupLimitState| limit.share().unwrap_or_default().get();
        share(a).total_cmp(&share(b))
    });
    let limit = nearest.map_or_else(
        || "no limit around it is below the host's RAM".to_owned(),
        |limit| {
            let share = limit.share().unwrap_or_default();
            format!("the nearest limit, {} of {}, is used to {share}", limit.file, limit.place)
        },
    );
    let droppable = state
        .droppable
        .filter(|bytes| *bytes >= current.share(NOTABLE))
        .map_or_else(String::new, |bytes| format!(" {bytes} of it can be dropped."));
    let place = cx.facts.names.place(path);
    let has = format!("{place} has {current}; {limit}.{droppable}");
    let recorded = cx.recorded();
    if cx.is_single_sample() {
        return format!("One sample cannot show whether memory is enough: {has}");
    }
    if cx.is_too_short() {
        return format!("{recorded} is too short to see waits: {has}");
    }
    format!("Nothing is wrong in {recorded}: {has}")
}
