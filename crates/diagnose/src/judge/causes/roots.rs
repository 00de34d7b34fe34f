//! Finds the root of each incident: the one at the start of its chain of causes.
//!
//! A long recording has thousands of incidents, so they are not compared in pairs. Possible causes are kept in lists by
//! rule and cgroup, and each list is swept in order of time. That takes n log n for n incidents.

use std::collections::HashMap;

use timeline::Entity;
use timeline::cgroup::ancestors;

use super::overlaps::{OverlapTime, Overlaps, least};
use super::{has_limit, leads};
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::rules;
use crate::rules::place;

/// Returns the root of each incident; `None` if the incident is a root itself.
pub(super) fn roots(cx: &Evidence<'_>, incidents: &[Finding]) -> Vec<Option<usize>> {
    let all: Vec<RootIncident<'_>> = incidents.iter().map(RootIncident::new).collect();
    let lists = Lists::new(&all);
    let lists_of = lists_of(cx, &all, &lists);
    let nearest = nearest(&all, &lists, &lists_of);
    let ultimate = |at: usize| {
        // This terminates: no rule brings itself about, directly or indirectly.
        std::iter::successors(nearest[at], |cause| nearest[*cause]).last()
    };
    (0..incidents.len()).map(ultimate).collect()
}

/// The properties of an incident that decide about cause and effect.
struct RootIncident<'a> {
    finding: &'a Finding,
    /// Index of its rule.
    rule: usize,
    /// The cgroup of the incident; `None` for the host and its parts.
    group: Option<&'a str>,
    time: OverlapTime,
}

impl<'a> RootIncident<'a> {
    fn new(finding: &'a Finding) -> Self {
        let scope = &finding.scope;
        Self {
            finding,
            rule: place(finding.id),
            group: (scope.entity == Entity::Cgroup).then_some(scope.key.as_str()),
            time: OverlapTime::from_finding(finding),
        }
    }

    /// Whether it may explain others: a note explains nothing more severe than itself.
    fn is_of_weight(&self) -> bool {
        self.finding.severity > Severity::Info
    }

    fn kind(&self) -> RootKind<'a> {
        RootKind { rule: self.rule, group: self.group, is_event: self.finding.event.is_some() }
    }
}

/// The properties, other than time, that decide what an incident can bring about.
#[derive(PartialEq, Eq, Hash)]
struct RootKind<'a> {
    rule: usize,
    group: Option<&'a str>,
    /// Whether the kernel reported it.
    is_event: bool,
}

/// The possible causes: indices of incidents, by kind.
#[derive(Default)]
struct Lists<'a> {
    numbers: HashMap<RootKind<'a>, usize>,
    members: Vec<Vec<usize>>,
}

impl<'a> Lists<'a> {
    fn new(all: &[RootIncident<'a>]) -> Self {
        let mut lists = Self::default();
        for (index, one) in all.iter().enumerate().filter(|(_, one)| one.is_of_weight()) {
            let next = lists.members.len();
            let number = *lists.numbers.entry(one.kind()).or_insert(next);
            if number == next {
                lists.members.push(Vec::new());
            }
            lists.members[number].push(index);
        }
        lists
    }
}

/// Returns for each incident the lists that contain its causes, if these overlap it in time.
fn lists_of(cx: &Evidence<'_>, all: &[RootIncident<'_>], lists: &Lists<'_>) -> Vec<Vec<usize>> {
    let rules = causes_of_rules();
    let ruled_out = ruled_out(all);
    let own = |effect: &RootIncident<'_>| {
        let is_ruled_out = |cause: usize| {
            let by = ruled_out.get(&(cause, effect.rule));
            by.is_some_and(|by| by.count(effect.time) > 0)
        };
        let groups = reaching(cx, effect);
        let events = if leads(effect.finding) { &[true][..] } else { &[true, false] };
        let mut own = Vec::new();
        for rule in rules[effect.rule].iter().filter(|rule| !is_ruled_out(**rule)) {
            for group in &groups {
                own.extend(events.iter().filter_map(|is_event| {
                    let kind = RootKind { rule: *rule, group: *group, is_event: *is_event };
                    lists.numbers.get(&kind)
                }));
            }
        }
        own
    };
    all.iter().map(own).collect()
}

/// Returns for each rule, by index, the rules that bring it about.
fn causes_of_rules() -> Vec<Vec<usize>> {
    let mut causes = vec![Vec::new(); rules::ALL.len()];
    for (cause, rule) in rules::ALL.iter().enumerate() {
        for effect in rule.brings_about {
            causes[place(effect)].push(cause);
        }
    }
    causes
}

/// Returns the intervals in which the evidence of a finding of weight excludes a cause of an effect. The effect is the
/// finding's own rule, or one that this rule brings about.
fn ruled_out(all: &[RootIncident<'_>]) -> HashMap<(usize, usize), Overlaps> {
    let mut times: HashMap<(usize, usize), Vec<OverlapTime>> = HashMap::new();
    for one in all.iter().filter(|one| one.is_of_weight()) {
        let effects = rules::ALL[one.rule].brings_about.iter().map(|id| place(id));
        let effects: Vec<usize> = effects.chain([one.rule]).collect();
        for cause in one.finding.ruled_out.iter().map(|other| place(other.id)) {
            for effect in &effects {
                times.entry((cause, *effect)).or_default().push(one.time);
            }
        }
    }
    let overlaps = |(pair, times): (_, Vec<OverlapTime>)| (pair, Overlaps::new(times.into_iter()));
    times.into_iter().map(overlaps).collect()
}

/// Returns the cgroups with incidents that can cause this one: its own, those above it, and the host (`None`) if the
/// cgroup had no limit of its own then.
fn reaching<'a>(cx: &Evidence<'_>, effect: &RootIncident<'a>) -> Vec<Option<&'a str>> {
    let groups = effect.group.into_iter().flat_map(ancestors);
    let host = (effect.group.is_none() || !has_limit(cx, effect.finding)).then_some(None);
    groups.map(Some).chain(host).collect()
}

/// Returns for each incident the cause that has the fewest causes itself. If several are equal: the one of the rule
/// listed first, then the first incident of that rule.
fn nearest(
    all: &[RootIncident<'_>],
    lists: &Lists<'_>,
    lists_of: &[Vec<usize>],
) -> Vec<Option<usize>> {
    let times = |members: &Vec<usize>| Overlaps::new(members.iter().map(|one| all[*one].time));
    let overlaps: Vec<Overlaps> = lists.members.iter().map(times).collect();
    let count = |(effect, own): (&RootIncident<'_>, &Vec<usize>)| -> usize {
        own.iter().map(|list| overlaps[*list].count(effect.time)).sum()
    };
    let counts: Vec<usize> = all.iter().zip(lists_of).map(count).collect();
    let mut effects_of = vec![Vec::new(); lists.members.len()];
    for (effect, own) in lists_of.iter().enumerate() {
        own.iter().for_each(|list| effects_of[*list].push(effect));
    }
    let mut nearest = vec![None; all.len()];
    for (members, effects) in lists.members.iter().zip(effects_of) {
        let rank = |one: usize| (counts[one], all[one].rule, one);
        let causes: Vec<_> = members.iter().map(|one| (all[*one].time, rank(*one))).collect();
        let times: Vec<_> = effects.iter().map(|one| all[*one].time).collect();
        for (effect, cause) in effects.into_iter().zip(least(&causes, &times)) {
            nearest[effect] = nearest[effect].into_iter().chain(cause).min();
        }
    }
    let index = |rank: Option<(usize, usize, usize)>| rank.map(|(_, _, index)| index);
    nearest.into_iter().map(index).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use timeline::Stretch;
    use timeline::signals::CGROUP_MAX;
    use units::{Bytes, Limit, Span};

    use super::*;
    use crate::finding::KernelEvent;
    use crate::finding::Scope;
    use crate::rules::testing::Case;

    /// The definition: compares each incident with every other.
    mod definition {
        use super::*;

        const LAG: Span = Span::from_secs(3);

        pub(super) fn roots(cx: &Evidence<'_>, incidents: &[Finding]) -> Vec<Option<usize>> {
            let all = || 0..incidents.len();
            let follows = |cause: &usize, effect: usize| follows(cx, incidents, *cause, effect);
            let direct: Vec<Vec<usize>> = all()
                .map(|effect| all().filter(|cause| follows(cause, effect)).collect())
                .collect();
            let nearest = |at: usize| {
                let rank = |cause: &usize| (direct[*cause].len(), place(incidents[*cause].id));
                direct[at].iter().copied().min_by_key(rank)
            };
            let ultimate = |at| std::iter::successors(nearest(at), |at| nearest(*at)).last();
            all().map(ultimate).collect()
        }

        fn follows(cx: &Evidence<'_>, incidents: &[Finding], cause: usize, effect: usize) -> bool {
            let (cause, effect) = (&incidents[cause], &incidents[effect]);
            cause.severity > Severity::Info
                && brings_about(cause.id, effect.id)
                && !incidents.iter().any(|one| rules_out(one, cause.id, effect))
                && !(leads(effect) && cause.event.is_none())
                && at_the_same_time(cause, effect)
                && reaches(cx, cause, effect)
        }

        fn brings_about(cause: &str, effect: &str) -> bool {
            rules::by_id(cause).is_some_and(|rule| rule.brings_about.contains(&effect))
        }

        fn rules_out(one: &Finding, cause: &str, effect: &Finding) -> bool {
            one.severity > Severity::Info
                && one.ruled_out.iter().any(|other| other.id == cause)
                && (one.id == effect.id || brings_about(one.id, effect.id))
                && at_the_same_time(one, effect)
        }

        fn at_the_same_time(a: &Finding, b: &Finding) -> bool {
            match (a.when, b.when) {
                (Some(a), Some(b)) => a.from <= b.to.plus(LAG) && b.from <= a.to.plus(LAG),
                _ => true,
            }
        }

        /// The host reaches every cgroup without a limit of its own; a cgroup reaches those below it. A cgroup's own
        /// limit explains nothing that happens to the host.
        fn reaches(cx: &Evidence<'_>, cause: &Finding, effect: &Finding) -> bool {
            match (cause.scope.entity, effect.scope.entity) {
                (Entity::Cgroup, Entity::Cgroup) => {
                    ancestors(&effect.scope.key).any(|group| group == cause.scope.key)
                }
                (Entity::Cgroup, _) => false,
                (_, Entity::Cgroup) => !has_limit(cx, effect),
                _ => true,
            }
        }
    }

    /// Creates a host with a limited cgroup and one without a limit.
    fn host() -> Case {
        let limit = Limit::Bytes(Bytes::from_mib(80));
        Case::once().gauge_of(Entity::Cgroup, "/lim", CGROUP_MAX, limit).gauge_of(
            Entity::Cgroup,
            "/app",
            CGROUP_MAX,
            Limit::Unlimited,
        )
    }

    fn stretch((from, lasts): (u64, u64)) -> Stretch {
        Stretch {
            from: Span::from_secs(from),
            to: Span::from_secs(from + lasts),
            ..Stretch::empty()
        }
    }

    fn a_scope() -> impl Strategy<Value = Scope> {
        let groups = ["/", "/app", "/app/web", "/lim", "/lim/web"].map(|key| (Entity::Cgroup, key));
        let hosts = [(Entity::Host, ""), (Entity::Host, ""), (Entity::Node, "0")];
        let all: Vec<_> = groups.into_iter().chain(hosts).collect();
        prop::sample::select(all).prop_map(|(entity, key)| Scope { entity, key: key.to_owned() })
    }

    prop_compose! {
        fn an_incident()(
            rule in prop::sample::select(rules::ALL),
            severity in prop::sample::select(vec![Severity::Info, Severity::Warning, Severity::Critical]),
            when in prop::option::weighted(0.9, (0..300_u64, 0..40_u64)),
            scope in a_scope(),
            event in prop::option::weighted(0.2, prop::sample::select(vec![KernelEvent::FailedAllocation, KernelEvent::Kill])),
            ruled_out in prop::option::weighted(0.2, prop::sample::select(rules::ALL)),
        ) -> Finding {
            let mut finding = rule.found(severity, "");
            finding.when = when.map(stretch);
            finding.scope = scope;
            finding.event = event;
            match ruled_out {
                Some(other) => finding.not(other.id, ""),
                None => finding,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn they_are_those_of_the_definition(incidents in prop::collection::vec(an_incident(), 0..120)) {
            host().with(|cx| {
                assert_eq!(roots(cx, &incidents), definition::roots(cx, &incidents));
            });
        }
    }

    #[test]
    fn no_rule_brings_itself_about_whatever_lies_between() {
        let causes = causes_of_rules();
        for rule in 0..rules::ALL.len() {
            let mut above = causes[rule].clone();
            let mut next = 0;
            while let Some(cause) = above.get(next).copied() {
                let new = causes[cause].iter().copied();
                let new: Vec<_> = new.filter(|one| !above.contains(one)).collect();
                above.extend(new);
                next += 1;
            }
            assert!(!above.contains(&rule), "{}", rules::ALL[rule].id);
        }
    }
}
