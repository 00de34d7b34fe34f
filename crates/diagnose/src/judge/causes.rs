//! Cause and effect between incidents: a problem is reported once, at its root.
//!
//! The rules declare what each can bring about (`brings_about`). An incident is linked to a root that overlaps it in
//! time and scope, unless the evidence of a finding rules that root out. Two simultaneous problems stay two roots.

mod overlaps;
mod roots;

use std::cmp::Reverse;
use std::collections::HashMap;

use timeline::signals::{CGROUP_HIGH, CGROUP_MAX};
use timeline::{Entity, Stretch};
use units::{Bytes, Span};

use crate::evidence::Evidence;
use crate::finding::{Finding, KernelEvent, Severity};
use crate::finding::{Harm, Occasion, Scope};
use crate::judge::order;

/// Links consequences to their roots, joins incidents of one rule, scope and root into one finding, and gives a root
/// the severity of its worst consequence. Returns the root that matters most first, each followed by its consequences.
pub(crate) fn order(cx: &Evidence<'_>, incidents: Vec<Finding>) -> Vec<Finding> {
    let problem = |one: &Finding| (one.id, one.scope.clone());
    let roots = roots::roots(cx, &incidents).into_iter();
    let roots: Vec<_> = roots.map(|root| root.map(|at| problem(&incidents[at]))).collect();
    let mut groups: Vec<(CauseGroup, Finding)> = Vec::new();
    let mut numbers: HashMap<CauseGroup, usize> = HashMap::new();
    for (mut finding, root) in incidents.into_iter().zip(roots) {
        let group = CauseGroup { own: problem(&finding), root };
        finding.caused_by = group.root.as_ref().map(|(id, _)| *id);
        let next = groups.len();
        match *numbers.entry(group.clone()).or_insert(next) {
            number if number == next => groups.push((group, finding)),
            number => groups[number].1.join(cx, finding),
        }
    }
    lend_severity(&mut groups);
    in_order(cx, groups)
}

/// A rule and the scope in which it found something.
type Problem = (&'static str, Scope);

/// Incidents that become one finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CauseGroup {
    own: Problem,
    root: Option<Problem>,
}

/// Whether the cgroup of an incident had a limit of its own then, so that the host need not be the cause.
fn has_limit(cx: &Evidence<'_>, incident: &Finding) -> bool {
    let group = cx.timeline.entity(Entity::Cgroup, &incident.scope.key);
    let last = incident.when.map_or(cx.timeline.len(), |when| when.last);
    group.is_some_and(|group| {
        let mut limits = [CGROUP_MAX, CGROUP_HIGH]
            .into_iter()
            .filter_map(|limit| cx.timeline.latest_of(group, limit, last));
        limits.any(|limit| limit.limited().is_some_and(|limit| limit > Bytes::ZERO))
    })
}

/// Whether a finding is a kill that the kernel reported. Its report shows what filled memory, so no level is its cause.
fn leads(finding: &Finding) -> bool {
    finding.event > Some(KernelEvent::FailedAllocation) && finding.severity > Severity::Info
}

/// Raises the severity of each root to that of its worst consequence.
fn lend_severity(groups: &mut [(CauseGroup, Finding)]) {
    let mut worst: HashMap<Problem, Severity> = HashMap::new();
    for (group, finding) in groups.iter() {
        if let Some(root) = &group.root {
            let worst = worst.entry(root.clone()).or_insert(finding.severity);
            *worst = finding.severity.max(*worst);
        }
    }
    let roots = groups.iter_mut().filter(|(group, _)| group.root.is_none());
    for (group, finding) in roots {
        let worst = worst.get(&group.own).copied();
        finding.severity = finding.severity.max(worst.unwrap_or(finding.severity));
    }
}

/// Inserts findings from before the first sample. They caused no finding in the samples and follow from none. If two
/// have the same weight, the newer one leads.
pub(crate) fn with_earlier(
    cx: &Evidence<'_>,
    ordered: Vec<Finding>,
    earlier: Vec<Finding>,
) -> Vec<Finding> {
    let mut families: Vec<Vec<Finding>> = Vec::new();
    for finding in ordered {
        match families.last_mut().filter(|_| finding.caused_by.is_some()) {
            Some(family) => family.push(finding),
            None => families.push(vec![finding]),
        }
    }
    families.extend(earlier.into_iter().map(|one| vec![one]));
    order::of_families(cx, families)
}

/// Returns the root that matters most first, each followed by its consequences.
fn in_order(cx: &Evidence<'_>, groups: Vec<(CauseGroup, Finding)>) -> Vec<Finding> {
    let mut roots: Vec<(Problem, Finding)> = Vec::new();
    let mut consequences: HashMap<Problem, Vec<Finding>> = HashMap::new();
    for (group, finding) in groups {
        match group.root {
            None => roots.push((group.own, finding)),
            Some(root) => consequences.entry(root).or_default().push(finding),
        }
    }
    let families = roots.into_iter().map(|(problem, root)| {
        let own = consequences.remove(&problem).unwrap_or_default();
        std::iter::once(root).chain(own).collect()
    });
    order::of_families(cx, families.collect())
}

impl Finding {
    /// Joins a finding of the same rule from another time. The one nearer to the moment that was asked about supplies the
    /// text; or else the worse of the two. Of kills at the limit of a cgroup it is the last one below the limit that it has
    /// now; of other equals the one that goes on.
    pub(crate) fn join(&mut self, cx: &Evidence<'_>, other: Self) {
        let weight = |one: &Self| {
            let worst = one.worst_time(cx);
            (cx.away_from_asked(one.when).map(Reverse), worst.0, one.kill_at_a_limit(cx), worst)
        };
        let other_speaks = weight(&other) > weight(self);
        self.join_later(other, other_speaks);
        self.occasions.sort_by_key(|one| one.stretch.first);
    }

    /// Joins a later finding of the same rule. One of the two supplies the text, with the occasions and the harm of
    /// both.
    pub(crate) fn join_later(&mut self, mut later: Self, later_speaks: bool) {
        let harm = self.harm.plus(later.harm);
        let has_times = !(self.occasions.is_empty() && later.occasions.is_empty());
        // Two states without a beginning count as one.
        let mut times = Vec::new();
        if has_times {
            times.extend(self.take_times());
            times.extend(later.take_times());
        }
        if later_speaks {
            *self = later;
        }
        self.occasions = times;
        self.harm = harm;
    }

    /// Whether the limit of the cgroup is that of the kill still, and when that was; `None` of any other finding.
    fn kill_at_a_limit(&self, cx: &Evidence<'_>) -> Option<(bool, Span)> {
        let is_kill = self.harm.killed > 0 && self.scope.entity == Entity::Cgroup;
        let when = self.when.filter(|_| is_kill)?;
        let group = cx.timeline.entity(Entity::Cgroup, &self.scope.key)?;
        let then = cx.timeline.latest_of(group, CGROUP_MAX, when.first);
        Some((then == cx.timeline.last_of(group, CGROUP_MAX), when.to))
    }

    /// Returns severity, whether it goes on, harm and duration of its worst occasion.
    fn worst_time(&self, cx: &Evidence<'_>) -> (Severity, bool, Harm, Option<Span>) {
        let goes_on = |when: Stretch| !order::has_ended(cx, when.to);
        let (going_on, lasted) = (self.when.map(goes_on), self.when.map(|when| when.duration()));
        let own = (self.severity, going_on.unwrap_or_default(), self.harm, lasted);
        let weight = |one: &Occasion| {
            (one.severity, goes_on(one.stretch), one.harm, Some(one.stretch.duration()))
        };
        self.occasions.iter().map(weight).max().unwrap_or(own)
    }

    fn take_times(&mut self) -> Vec<Occasion> {
        if self.occasions.is_empty() {
            self.occasion().into_iter().collect()
        } else {
            std::mem::take(&mut self.occasions)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;
    use timeline::signals::{
        CGROUP_CURRENT, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, MEM_AVAILABLE,
    };

    /// Kills in these seconds at the limit of a cgroup.
    fn killed(case: Case, key: &str, seconds: &[usize]) -> Case {
        let mut events = vec![0; 1000];
        seconds.iter().for_each(|second| events[*second] += 1);
        case.gauge_of(Entity::Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
            .gauge_of(Entity::Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(95))
            .counter_steps_of(Entity::Cgroup, key, CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Entity::Cgroup, key, CGROUP_EVENTS_OOM, &events)
    }

    #[test]
    fn of_findings_as_bad_the_one_at_the_moment_that_is_asked_about_leads_and_speaks_of_it() {
        let case = Case::over(1000).gauge(MEM_AVAILABLE, Bytes::from_mib(500));
        let case = killed(case, "/often", &[100, 101, 102, 103]);
        let case = killed(case, "/twice", &[300, 301, 700]);
        let first = |asked: Option<u64>| {
            case.with(|cx| {
                let cx = Evidence::new(cx.timeline, cx.facts);
                let cx = cx.asked_about(asked.map(Span::from_secs));
                let first = crate::judge::judge(&cx).findings.into_iter().next().unwrap();
                (first.scope.key.clone(), first.when.unwrap().to.as_nanos() / 1_000_000_000)
            })
        };
        assert_eq!(first(None), ("/often".to_owned(), 104));
        assert_eq!(first(Some(102)), ("/often".to_owned(), 104));
        assert_eq!(first(Some(290)), ("/twice".to_owned(), 302));
        assert_eq!(first(Some(705)), ("/twice".to_owned(), 701));
        // Nothing happened then: the nearest leads.
        assert_eq!(first(Some(500)), ("/twice".to_owned(), 302));
    }
    use timeline::{Facts, Stretch, Timeline};
    use units::Limit;

    use crate::rules::testing::Case;

    fn stretch(from: u64, to: u64) -> Stretch {
        let index = |second: u64| usize::try_from(second).unwrap();
        Stretch {
            first: index(from),
            last: index(to),
            from: Span::from_secs(from),
            to: Span::from_secs(to),
            recorded: Span::from_secs(to - from),
        }
    }

    /// Creates an incident of a rule on the host, from second `from` to second `to`.
    fn incident(id: &str, severity: Severity, (from, to): (u64, u64)) -> Finding {
        let rule = rules::by_id(id).unwrap_or_else(|| panic!("no rule {id}"));
        let mut finding = rule.found(severity, "");
        finding.when = Some(stretch(from, to));
        finding
    }

    fn in_group(mut finding: Finding, key: &str) -> Finding {
        finding.scope = Scope { entity: Entity::Cgroup, key: key.to_owned() };
        finding
    }

    fn ordered(incidents: Vec<Finding>) -> Vec<(&'static str, Option<&'static str>)> {
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let findings = order(&Evidence::new(&timeline, &facts), incidents);
        findings.iter().map(|f| (f.id, f.caused_by)).collect()
    }

    use Severity::{Critical, Info, Warning};

    #[test]
    fn every_id_that_a_rule_brings_about_is_a_rule_and_none_brings_about_itself() {
        for rule in rules::ALL {
            for id in rule.brings_about {
                assert!(rules::by_id(id).is_some(), "{}: {id}", rule.id);
                assert_ne!(*id, rule.id);
            }
        }
    }

    #[test]
    fn a_chain_ends_at_its_root_and_lends_it_its_severity() {
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let incidents = vec![
            incident("direct-reclaim-stall", Warning, (10, 20)),
            incident("swap-thrash", Critical, (10, 20)),
            incident("min-free-too-large", Warning, (0, 60)),
        ];
        let findings = order(&Evidence::new(&timeline, &facts), incidents);
        let ids: Vec<_> = findings.iter().map(|f| (f.id, f.caused_by)).collect();
        let root = Some("min-free-too-large");
        assert_eq!(
            ids,
            [("min-free-too-large", None), ("swap-thrash", root), ("direct-reclaim-stall", root),]
        );
        assert_eq!(findings[0].severity, Critical);
    }

    #[test]
    fn an_incident_at_another_time_is_its_own_root() {
        let thrash = || incident("swap-thrash", Critical, (10, 20));
        let reclaim = |from| incident("direct-reclaim-stall", Warning, (from, from + 5));
        assert_eq!(
            ordered(vec![thrash(), reclaim(12), reclaim(500)]),
            [
                ("swap-thrash", None),
                ("direct-reclaim-stall", Some("swap-thrash")),
                ("direct-reclaim-stall", None),
            ]
        );
    }

    #[test]
    fn a_limit_of_a_group_explains_what_is_below_it_and_not_the_host() {
        let kill = || in_group(incident("oom-cgroup", Critical, (10, 20)), "/app");
        let starved = |key| in_group(incident("cgroup-cache-starved", Warning, (10, 20)), key);
        assert_eq!(
            ordered(vec![kill(), starved("/app/web"), starved("/other")]),
            [
                ("oom-cgroup", None),
                ("cgroup-cache-starved", Some("oom-cgroup")),
                ("cgroup-cache-starved", None),
            ]
        );
        let throttled = in_group(incident("cgroup-high-throttle", Critical, (10, 20)), "/lim");
        let both = ordered(vec![throttled, incident("swap-thrash", Critical, (10, 20))]);
        assert!(both.iter().all(|(_, root)| root.is_none()), "{both:?}");
    }

    #[test]
    fn what_a_finding_rules_out_is_not_made_its_root() {
        let tables = || incident("page-tables-large", Warning, (0, 60));
        let kill = || incident("oom-global", Critical, (30, 31));
        assert_eq!(ordered(vec![tables(), kill()])[0].0, "page-tables-large");
        let full = incident("swap-full", Warning, (20, 40));
        let ids = ordered(vec![tables(), kill().not("page-tables-large", "small"), full]);
        assert_eq!(
            ids,
            [("oom-global", None), ("swap-full", Some("oom-global")), ("page-tables-large", None),]
        );
    }

    #[test]
    fn a_reported_kill_leads_over_the_level_that_brought_it_about() {
        let with = |mut finding: Finding, event| {
            finding.event = Some(event);
            finding
        };
        let kill = with(incident("oom-global", Critical, (30, 31)), KernelEvent::HostKill);
        let of_a_group = with(incident("oom-cgroup", Critical, (30, 31)), KernelEvent::Kill);
        let level = incident("shmem-growth", Critical, (0, 60));
        let shortage = incident("available-exhaustion", Warning, (20, 30));
        assert_eq!(
            ordered(vec![level, of_a_group, kill, shortage]),
            [
                ("oom-global", None),
                ("oom-cgroup", None),
                ("shmem-growth", None),
                ("available-exhaustion", Some("shmem-growth")),
            ]
        );
    }

    #[test]
    fn a_kill_that_is_shown_leads_over_one_that_only_began() {
        let with = |id, event| {
            let mut finding = incident(id, Critical, (30, 31));
            finding.event = Some(event);
            finding
        };
        let begun = with("oom-global", KernelEvent::KillBegun);
        let of_a_group = with("oom-cgroup", KernelEvent::Kill);
        assert_eq!(ordered(vec![begun, of_a_group])[0].0, "oom-cgroup");
    }

    #[test]
    fn a_failed_allocation_leads_over_a_level_of_the_same_weight() {
        let mut failed = incident("external-fragmentation", Warning, (10, 11));
        failed.event = Some(KernelEvent::FailedAllocation);
        let level = incident("unaccounted-memory", Warning, (0, 60));
        assert_eq!(ordered(vec![level, failed])[0].0, "external-fragmentation");
    }

    #[test]
    fn the_title_is_that_of_the_longest_incident() {
        let thrash = |from, seconds| {
            let mut one = incident("swap-thrash", Critical, (from, from + seconds));
            one.title = format!("for {seconds} s").into();
            one.harm.waited = Some(Span::from_secs(seconds));
            one.occasions = one.occasion().into_iter().collect();
            one
        };
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let all = vec![thrash(10, 10), thrash(100, 10), thrash(200, 15)];
        let findings = order(&Evidence::new(&timeline, &facts), all);
        assert_eq!(findings[0].title, "for 15 s");
        assert_eq!(findings[0].harm.waited, Some(Span::from_secs(35)));
    }

    #[test]
    fn a_limit_set_later_excludes_no_host_cause() {
        let mut limits = vec![Limit::Unlimited; 101];
        limits[60..].fill(Limit::Bytes(Bytes::from_mib(80)));
        let case = Case::over(100).gauge_steps_of(Entity::Cgroup, "/app", CGROUP_MAX, &limits);
        let root = |(from, to)| {
            let starved = in_group(incident("page-cache-thrash", Warning, (from, to)), "/app");
            let both = vec![incident("swap-thrash", Critical, (from, to)), starved];
            let findings = case.with(|cx| order(cx, both));
            findings.into_iter().find_map(|finding| finding.caused_by)
        };
        assert_eq!((root((10, 20)), root((80, 90))), (Some("swap-thrash"), None));
    }

    #[test]
    fn a_kill_before_the_first_sample_sorts_by_its_weight() {
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let watched = vec![
            incident("swap-thrash", Critical, (10, 20)),
            incident("direct-reclaim-stall", Warning, (10, 20)),
            incident("thp-bloat", Warning, (10, 20)),
        ];
        let mut kill = incident("oom-cgroup", Warning, (0, 0));
        kill.event = Some(KernelEvent::Kill);
        let watched = order(&Evidence::new(&timeline, &facts), watched);
        let findings = with_earlier(&Evidence::new(&timeline, &facts), watched, vec![kill]);
        let ids: Vec<_> = findings.iter().map(|f| f.id).collect();
        assert_eq!(ids, ["swap-thrash", "direct-reclaim-stall", "oom-cgroup", "thp-bloat"]);
    }

    #[test]
    fn a_note_is_no_root() {
        let thrash = incident("swap-thrash", Critical, (10, 20));
        let shmem = incident("shmem-growth", Info, (0, 60));
        assert_eq!(ordered(vec![thrash, shmem])[0], ("swap-thrash", None));
    }

    #[test]
    fn incidents_of_one_rule_are_one_finding_with_the_title_of_the_worst() {
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let at = |severity, from: u64, to: u64| {
            let mut one = incident("swap-thrash", severity, (from, to));
            one.harm.waited = Some(Span::from_secs(to - from));
            one.occasions = one.occasion().into_iter().collect();
            one
        };
        let all = vec![at(Warning, 10, 40), at(Critical, 100, 110), at(Warning, 200, 260)];
        let findings = order(&Evidence::new(&timeline, &facts), all);
        assert_eq!(findings.len(), 1);
        let one = &findings[0];
        assert_eq!((one.severity, one.when), (Critical, Some(stretch(100, 110))));
        assert_eq!(one.stretches(), [stretch(10, 40), stretch(100, 110), stretch(200, 260)]);
        assert_eq!(one.harm.waited, Some(Span::from_secs(100)));
    }
}
