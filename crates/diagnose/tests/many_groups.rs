//! What a diagnosis of many cgroups costs, and how much of it is shown. Times are compared with each other only, and of the
//! CPU: other programs of this host cost none of it.

use rustix::time::{ClockId, clock_gettime};
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX,
    OOM_KILLS,
};
use timeline::{Entity, Event, EventKind, Facts, Sample, Timeline};
use units::{Bytes, Count, Limit, Span};

/// A host with as many cgroups as this, each below one of `parents` others. In the third second each hits its limit
/// and the kernel kills in it, and a recorder notes both.
fn host(groups: u64, parents: u64) -> Timeline {
    let mut timeline = Timeline::default();
    for second in 0..4 {
        let killed = u64::from(second >= 2);
        let mut sample = Sample::at(Span::from_secs(second));
        sample.host.set(OOM_KILLS, Count::new(killed * groups));
        let mut add = |key: &str, limit, kills| {
            let row = &mut sample.table_mut(Entity::Cgroup).entry(key).row;
            row.set(CGROUP_CURRENT, Bytes::from_mib(95));
            row.set(CGROUP_MAX, limit);
            for events in [CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL] {
                row.set(events, Count::new(kills));
            }
        };
        for parent in 0..parents {
            let below = (groups + parents - 1 - parent) / parents;
            add(&format!("/p{parent}"), Limit::Unlimited, killed * below);
        }
        for group in 0..groups {
            add(&key(group, parents), Limit::Bytes(Bytes::from_mib(100)), killed);
        }
        timeline.push(&sample).expect("in order");
    }
    for group in 0..groups {
        timeline.add_recorder_event(Event {
            stamp: Sample::at(Span::from_secs(2)).stamp,
            kind: EventKind::CgroupLimit,
            subject: key(group, parents),
            text: String::new(),
            report: String::new(),
        });
    }
    timeline
}

fn key(group: u64, parents: u64) -> String {
    format!("/p{}/g{group}", group % parents)
}

/// The least CPU time of three runs in this thread.
fn least_time(run: impl Fn()) -> Span {
    let spent = || {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        let part = |number| u64::try_from(number).unwrap_or_default();
        Span::from_nanos(part(spent.tv_sec) * 1_000_000_000 + part(spent.tv_nsec))
    };
    let time = |_| {
        let began = spent();
        run();
        spent().saturating_sub(began)
    };
    (0..3).map(time).min().unwrap_or_default()
}

#[test]
fn four_times_the_cgroups_with_kills_cost_less_than_eight_times_as_much() {
    let facts = Facts::default();
    for parents in [1, 50] {
        let [few, many] = [500, 2_000].map(|groups| host(groups, parents));
        let diagnosed =
            |timeline: &Timeline| least_time(|| drop(diagnose::diagnose(timeline, &facts)));
        let listed = |timeline: &Timeline| least_time(|| drop(timeline::events(timeline, &facts)));
        let (less, more) = (diagnosed(&few), diagnosed(&many));
        assert!(more < less.times(8.0), "diagnosis, {parents} parents: {less:?}, {more:?}");
        let (less, more) = (listed(&few), listed(&many));
        assert!(more < less.times(8.0), "events, {parents} parents: {less:?}, {more:?}");
    }
}

#[test]
fn of_many_cgroups_with_kills_some_are_findings_and_the_others_are_counted() {
    let diagnosis = diagnose::diagnose(&host(2_000, 50), &Facts::default());
    let findings = &diagnosis.findings;
    assert_eq!(findings.len(), 50);
    assert!(findings.iter().all(|finding| finding.id == "oom-cgroup"));
    let lines: Vec<&str> = findings
        .iter()
        .flat_map(|finding| &finding.evidence)
        .map(|line| line.text.as_str())
        .filter(|text| text.contains(" more "))
        .collect();
    let others = "also in 1,950 more cgroups without findings of their own, with 1,950 kills";
    assert_eq!(lines, [others]);
    assert!(findings.iter().all(|finding| finding.evidence.len() <= 10));
}
