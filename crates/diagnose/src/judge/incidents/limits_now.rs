//! Advice on limits of cgroups, brought up to the end of the source.
//!
//! A finding is about its moment, and a command is typed afterwards: the limit may have been raised since, and the cgroup
//! may be gone. Every change of a limit passes here: no command lowers a limit that was raised since, or names a cgroup that
//! is no longer there. Advice starts from the largest limit at which it still happened.

use std::collections::HashMap;

use timeline::cgroup::ROOT;
use timeline::facts::CgroupMode;
use timeline::{Entity, EntitySeries, LimitStep, limit_steps};
use units::{Bytes, Limit, Span};

use super::RuleAnswer;
use super::limit_lowered::put_back;
use crate::evidence::Evidence;
use crate::finding::{Finding, Fix, FixChange, LimitChange, LimitFile, SmallLimit};
use crate::measures::cgroups::{self, is_raised};
use crate::remedy::{in_whole_mib, more};

/// What was recorded after a limit was raised is too short to show that it is over if it is shorter: as long as a level
/// has to last to be found.
const OVER_MIN: Span = crate::trigger::LEVEL;

/// Brings the findings of one rule up to the end of the source.
pub(super) fn bring_up_to_date(cx: &Evidence<'_>, answer: &mut RuleAnswer) {
    let advises = |finding: &Finding| {
        let mut fixes = finding.fixes.iter();
        fixes.any(|fix| fix.raises.is_some() || limits(fix).next().is_some())
    };
    if !answer.incidents.iter().any(advises) {
        return;
    }
    advise_from_the_largest(&mut answer.incidents);
    put_back(cx, &mut answer.incidents);
    let lasts = last_times(answer);
    for finding in &mut answer.incidents {
        let last = lasts.get(&finding.scope.key).copied();
        as_of_now(cx, finding, last);
    }
}

/// Brings one finding up to date. `last`: the last sample in which the same was found; `None` for a state without a
/// beginning, and for what was before the first sample.
pub(crate) fn as_of_now(cx: &Evidence<'_>, finding: &mut Finding, last: Option<usize>) {
    let raised: Vec<RaisedLimit> = finding
        .fixes
        .iter()
        .filter_map(|fix| RaisedLimit::since(cx, fix.raises.as_ref()?))
        .collect();
    let of = |cgroup: &str| raised.iter().find(|raised| raised.small.cgroup == cgroup);
    finding.fixes.retain_mut(|fix| {
        let advised = fix.raises.as_ref().map(|small| small.cgroup.clone());
        match advised.as_deref().and_then(of) {
            Some(raised) => *fix = raised.fix(cx, last, fix),
            // The bound that goes with a limit fits that limit.
            None if fix.raises.is_none()
                && limits(fix).any(|limit| of(&limit.cgroup).is_some()) =>
            {
                return false;
            }
            None => set_now(cx, fix),
        }
        true
    });
    for raised in &raised {
        raised.note(cx, last, finding);
    }
}

fn limits(fix: &Fix) -> impl Iterator<Item = &LimitChange> {
    fix.changes.iter().filter_map(|change| match change {
        FixChange::Limit(limit) => Some(limit),
        _ => None,
    })
}

/// Gives each finding about a limit the fixes of the one with the largest limit of that cgroup, the last of these.
fn advise_from_the_largest(findings: &mut [Finding]) {
    let mut largest: HashMap<(String, LimitFile), (Bytes, usize)> = HashMap::new();
    for (at, finding) in findings.iter().enumerate() {
        let Some(small) = finding.small_limit() else {
            continue;
        };
        let known = largest.entry((small.cgroup.clone(), small.file)).or_insert((small.size, at));
        if small.size >= known.0 {
            *known = (small.size, at);
        }
    }
    for at in 0..findings.len() {
        let Some(small) = findings[at].small_limit() else {
            continue;
        };
        let most = largest.get(&(small.cgroup.clone(), small.file)).copied();
        let Some((size, other)) =
            most.filter(|(size, _)| is_raised(small.size, Limit::Bytes(*size)))
        else {
            continue;
        };
        findings[at].fixes = findings[other].fixes.clone();
        findings[at].add_line(format!("it happened at a limit of {size}, too"));
    }
}

/// The last sample in which something was found in each cgroup.
fn last_times(answer: &RuleAnswer) -> HashMap<String, usize> {
    let mut lasts: HashMap<String, usize> = HashMap::new();
    let found = answer
        .incidents
        .iter()
        .filter_map(|finding| Some((finding.scope.key.as_str(), finding.when?.last)));
    let counted = answer.without_story.iter().map(|one| (one.key.as_str(), one.stretch.last));
    for (key, at) in found.chain(counted) {
        let last = lasts.entry(key.to_owned()).or_insert(at);
        *last = at.max(*last);
    }
    // Bursts do not say in which cgroup they were.
    let bursts = answer.bursts.iter().flat_map(|bursts| &bursts.stretches);
    if let Some(burst) = bursts.map(|stretch| stretch.last).max() {
        lasts.values_mut().for_each(|last| *last = burst.max(*last));
    }
    lasts
}

/// A limit that is larger at the end of the source than where it was too small.
struct RaisedLimit {
    small: SmallLimit,
    now: Limit,
    /// Its last change; `None` where the source does not show it.
    step: Option<LimitStep>,
}

impl RaisedLimit {
    fn since(cx: &Evidence<'_>, small: &SmallLimit) -> Option<Self> {
        let group = cx.timeline.entity(Entity::Cgroup, &small.cgroup)?;
        let signal = small.file.signal();
        let now = cx.timeline.last_of(group, signal)?;
        if !is_raised(small.size, now) {
            return None;
        }
        let step = limit_steps(cx.timeline, group, signal).pop();
        Some(Self { small: small.clone(), now, step: step.filter(|step| step.to == now) })
    }

    /// Whether the same was found after it was raised.
    fn returned(&self, last: Option<usize>) -> bool {
        self.step.zip(last).is_some_and(|(step, last)| last > step.at)
    }

    /// For how long it was not found since the limit was raised; `None` if that is too short to say so, or unknown.
    fn over_for(&self, cx: &Evidence<'_>, last: Option<usize>) -> Option<Span> {
        last?;
        if self.returned(last) || is_gone(cx, &self.small.cgroup) {
            return None;
        }
        let end = cx.timeline.times().last()?;
        Some(end.saturating_sub(cx.time(self.step?.at)?)).filter(|watched| *watched >= OVER_MIN)
    }

    /// What there is to do instead.
    fn fix(&self, cx: &Evidence<'_>, last: Option<usize>, instead_of: &Fix) -> Fix {
        let now = match self.now {
            Limit::Bytes(now) => format!("Its limit is {now} now"),
            Limit::Unlimited => "It has no limit now".to_owned(),
        };
        if is_gone(cx, &self.small.cgroup) {
            let limit = match self.now {
                Limit::Bytes(now) => format!("Its limit was {now} at last"),
                Limit::Unlimited => "It had no limit at last".to_owned(),
            };
            return Fix::say(format!("{limit}. {GONE}"));
        }
        if let Some(watched) = self.over_for(cx, last) {
            return Fix::say(format!(
                "{now}, and in the {watched} since then this was not seen: nothing more to raise."
            ));
        }
        let fix = Fix::say(format!("{now}: see whether that is enough before changing it again."));
        match limits(instead_of).next() {
            Some(limit) => {
                fix.inspect(format!("memtide check --cgroup {} --for 10s", limit.cgroup))
            }
            None => fix,
        }
    }

    /// Says in the finding when the limit was raised, and whether that ended it.
    fn note(&self, cx: &Evidence<'_>, last: Option<usize>, finding: &mut Finding) {
        let Some(step) = self.step else {
            return;
        };
        let to = match self.now {
            Limit::Bytes(to) if step.is_raised() => format!("the limit was raised to {to}"),
            Limit::Bytes(to) => format!("the limit was set to {to}"),
            Limit::Unlimited => "the limit was removed".to_owned(),
        };
        let text = if self.over_for(cx, last).is_some() {
            let title = std::mem::take(&mut finding.title);
            finding.title = title.then(format!("It is over since {to}."));
            format!("over since {to}")
        } else if self.returned(last) {
            format!("{to}, and it returned")
        } else {
            format!("{to} since")
        };
        finding.add_line_at(cx.time(step.at), text);
    }
}

const GONE: &str =
    "The cgroup no longer exists: what is advised here is for when it is made again.";

/// Makes the limits that a fix sets those of a host at the end of the source.
fn set_now(cx: &Evidence<'_>, fix: &mut Fix) {
    let Some(limit) = limits(fix).next().cloned() else {
        return;
    };
    let key = fix.raises.as_ref().map_or(&limit.cgroup, |small| &small.cgroup).clone();
    if is_gone(cx, &key) {
        drop_limits(fix, &gone(&limit));
        return;
    }
    if cx.facts.cgroup_mode.is_some_and(|mode| (mode == CgroupMode::V1) != limit.file.is_v1()) {
        drop_limits(fix, "");
        return;
    }
    let Some(group) = cx.timeline.entity(Entity::Cgroup, &key) else {
        return;
    };
    let Some(now) = cx.timeline.last_of(group, limit.file.signal()) else {
        return;
    };
    let is_bound = fix.raises.is_none() && limit.file != LimitFile::Min;
    if is_bound && now.limited().is_some_and(|now| now <= limit.to) {
        drop_limits(fix, &format!("It is {} already.", now.limited().unwrap_or_default()));
        return;
    }
    // A controller may have adjusted the limit a little.
    let to = match now {
        Limit::Bytes(now) if !is_bound && now >= limit.to => in_whole_mib(more(now)),
        _ => limit.to,
    };
    let with_swap = with_swap_first(cx, group, &limit, now, to);
    let set = LimitChange { from: Some(now), to, ..limit };
    if let Some(with_swap) = &with_swap {
        let before = with_swap.from.and_then(Limit::limited).unwrap_or_default();
        fix.what.push_str(&format!(
            " Its limit of memory and swap together ({before}) is raised first: the kernel refuses \
             a limit of memory above it."
        ));
    }
    let all = with_swap.into_iter().chain([set]).map(FixChange::Limit);
    fix.changes.retain(|change| !matches!(change, FixChange::Limit(_)));
    fix.changes.extend(all);
}

/// On cgroup v1 the limit of memory and swap together, raised by as much, where the kernel would refuse the new limit of
/// memory: it may not be above (kernel mm/memcontrol.c, mem_cgroup_resize_max).
fn with_swap_first(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    limit: &LimitChange,
    now: Limit,
    to: Bytes,
) -> Option<LimitChange> {
    let own = cgroups::with_swap(cx, group).filter(|_| limit.file == LimitFile::MaxV1)?;
    let more = to.saturating_sub(now.limited()?);
    (own < to).then(|| LimitChange {
        file: LimitFile::MaxWithSwapV1,
        from: Some(Limit::Bytes(own)),
        to: in_whole_mib(own + more).max(to),
        ..limit.clone()
    })
}

/// Leaves a fix in words.
fn drop_limits(fix: &mut Fix, more: &str) {
    fix.changes.retain(|change| !matches!(change, FixChange::Limit(_)));
    if !more.is_empty() && !fix.what.is_empty() {
        fix.what.push(' ');
    }
    fix.what.push_str(more);
}

/// What to do about a limit of a cgroup that is gone.
fn gone(limit: &LimitChange) -> String {
    match limit.unit.as_deref().zip(limit.file.property()) {
        Some((unit, property)) if !unit.ends_with(".scope") => format!(
            "Its cgroup no longer exists: before {unit} is started again, set {property}= to {} \
             in its unit file.",
            limit.to
        ),
        _ => GONE.to_owned(),
    }
}

/// Whether a cgroup was not there any more when all cgroups were read last.
fn is_gone(cx: &Evidence<'_>, key: &str) -> bool {
    let last = cx.timeline.len().saturating_sub(1);
    let Some(whole) = cx.timeline.all_read_before(Entity::Cgroup, last) else {
        return false;
    };
    let was_read = |key: &str| {
        let group = cx.timeline.entity(Entity::Cgroup, key);
        group.and_then(EntitySeries::samples).map(|(_, last)| last >= whole)
    };
    match was_read(key) {
        Some(was_read) => !was_read,
        // A list that somebody pasted has some cgroups; a hierarchy that was walked has its root.
        None => was_read(ROOT) == Some(true) && cx.timeline.left_out().entity_rows == 0,
    }
}

#[cfg(test)]
pub(super) mod tests;
