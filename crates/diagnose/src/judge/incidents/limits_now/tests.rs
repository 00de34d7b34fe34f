//! A cgroup reads its files again, and its limit is changed.

use super::*;
use crate::rules;
use crate::rules::testing::{Case, changed, incidents, times};
use timeline::Entity::Cgroup;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL,
    CGROUP_FILE, CGROUP_HIGH, CGROUP_MAX, CGROUP_MAX_WITH_SWAP, CGROUP_PSI_MEMORY_SOME,
    CGROUP_REFAULT_FILE, MEM_AVAILABLE, MEM_TOTAL,
};

const WEB: &str = "/web";

fn limits_of(parts: &[(usize, u64)]) -> Vec<Limit> {
    let limit = |mib| if mib == 0 { Limit::Unlimited } else { Limit::Bytes(Bytes::from_mib(mib)) };
    parts.iter().flat_map(|(seconds, mib)| vec![limit(*mib); *seconds]).collect()
}

/// A cgroup with these limits in MiB, each for so many seconds, that is full and re-reads in the first `sick` seconds.
fn starved(parts: &[(usize, u64)], sick: usize) -> Case {
    starved_in(parts, 0..sick)
}

/// The same, in these seconds.
pub(in crate::judge::incidents) fn starved_in(
    parts: &[(usize, u64)],
    sick: std::ops::Range<usize>,
) -> Case {
    let limits = limits_of(parts);
    let over = u64::try_from(limits.len()).unwrap() - 1;
    let full = limits.iter().map(|limit| limit.limited().unwrap_or(Bytes::from_mib(100)));
    let full: Vec<Bytes> = full.collect();
    let per_second = |n: u64| [vec![0; sick.start], vec![n; sick.len()], vec![0]].concat();
    Case::over(over)
        .gauge(MEM_TOTAL, Bytes::from_mib(2000))
        .gauge(MEM_AVAILABLE, Bytes::from_mib(1600))
        .gauge_of(Cgroup, "/", CGROUP_CURRENT, Bytes::from_mib(400))
        .gauge_steps_of(Cgroup, WEB, CGROUP_MAX, &limits)
        .gauge_steps_of(Cgroup, WEB, CGROUP_CURRENT, &full)
        .gauge_of(Cgroup, WEB, CGROUP_ANON, Bytes::from_mib(20))
        .gauge_of(Cgroup, WEB, CGROUP_FILE, Bytes::from_mib(40))
        .counter_steps_of(Cgroup, WEB, CGROUP_EVENTS_MAX, &per_second(200))
        .counter_steps_of(Cgroup, WEB, CGROUP_REFAULT_FILE, &per_second(12_000))
        .counter_steps_of(Cgroup, WEB, CGROUP_PSI_MEMORY_SOME, &per_second(200_000))
}

pub(in crate::judge::incidents) fn found(case: &Case) -> Vec<Finding> {
    incidents(rules::by_id("cgroup-cache-starved").copied().unwrap(), case)
}

pub(in crate::judge::incidents) fn has_line(finding: &Finding, text: &str) -> bool {
    finding.evidence.iter().any(|line| line.text == text)
}

#[test]
fn an_incident_has_the_limit_of_its_own_moment() {
    let all = found(&starved(&[(30, 64), (30, 80), (60, 256)], 60));
    let titles: Vec<&str> = all.iter().map(|finding| finding.title.first()).collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
    assert!(titles[0].contains("limit of 64 MiB"), "{titles:?}");
    assert!(titles[1].contains("limit of 80 MiB"), "{titles:?}");
    assert!(times(&all[0])[0].1 < 30 && times(&all[1])[0].0 >= 30, "{all:?}");
}

#[test]
fn what_ended_when_the_limit_was_raised_is_over_and_gets_no_command() {
    for finding in found(&starved(&[(30, 64), (30, 80), (60, 256)], 60)) {
        assert!(has_line(&finding, "over since the limit was raised to 256 MiB"), "{finding:?}");
        let line = finding.evidence.iter().find(|line| line.text.starts_with("over since"));
        assert_eq!(line.unwrap().at, Some(Span::from_secs(60)));
        assert!(finding.title.ends_with("It is over since the limit was raised to 256 MiB."));
        assert!(finding.fixes.iter().all(|fix| changed(fix).is_empty()), "{finding:?}");
        assert!(finding.fixes[0].what.starts_with("Its limit is 256 MiB now"), "{finding:?}");
    }
}

#[test]
fn what_returned_at_a_larger_limit_is_not_over_and_advice_starts_from_the_larger() {
    let all = found(&starved(&[(30, 64), (60, 80)], 90));
    assert_eq!(all.len(), 2);
    for finding in &all {
        assert!(!finding.title.contains("over since"), "{}", finding.title);
        assert_eq!(
            changed(&finding.fixes[0]),
            ["/web/memory.max=83886080 -> /web/memory.max=335544320"]
        );
    }
    assert!(has_line(&all[0], "it happened at a limit of 80 MiB, too"), "{all:?}");
}

#[test]
fn a_limit_that_was_not_changed_or_lowered_is_advised_as_before() {
    let same = found(&starved(&[(90, 80)], 60));
    assert_eq!(
        changed(&same[0].fixes[0]),
        ["/web/memory.max=83886080 -> /web/memory.max=335544320"]
    );
    let lowered = found(&starved(&[(60, 80), (30, 40)], 59));
    assert_eq!(
        changed(&lowered[0].fixes[0]),
        ["/web/memory.max=41943040 -> /web/memory.max=335544320"]
    );
    // A controller adjusted it a little: the advice is above what is set now.
    let adjusted = found(&starved(&[(60, 80), (30, 84)], 59));
    assert!(!adjusted[0].title.contains("over since"), "{}", adjusted[0].title);
    assert!(!changed(&adjusted[0].fixes[0]).is_empty());
}

#[test]
fn a_moment_after_a_raise_does_not_show_that_it_is_over() {
    let all = found(&starved(&[(30, 64), (5, 256)], 30));
    assert!(!all[0].title.contains("over since"), "{}", all[0].title);
    assert!(has_line(&all[0], "the limit was raised to 256 MiB since"), "{all:?}");
    assert!(changed(&all[0].fixes[0]).is_empty());
}

#[test]
fn a_cgroup_that_is_gone_gets_no_command() {
    let limit = Limit::Bytes(Bytes::from_mib(80));
    let case = |key: &str, until: usize| {
        let full = Bytes::from_mib(79);
        let each = |n: u64| vec![n; 90];
        let case = Case::over(90)
            .gauge(MEM_TOTAL, Bytes::from_mib(2000))
            .gauge_of(Cgroup, "/", CGROUP_CURRENT, Bytes::from_mib(400))
            .gauge_within_of(Cgroup, key, 0..until, CGROUP_MAX, limit)
            .gauge_within_of(Cgroup, key, 0..until, CGROUP_CURRENT, full);
        let case = case.counter_within_of(key, 0..until, CGROUP_REFAULT_FILE, &each(12_000));
        case.counter_within_of(key, 0..until, CGROUP_EVENTS_MAX, &each(200))
    };
    let finding = &found(&case(WEB, 60))[0];
    assert!(changed(&finding.fixes[0]).is_empty(), "{finding:?}");
    assert!(finding.fixes[0].what.ends_with(GONE), "{}", finding.fixes[0].what);
    assert!(!changed(&found(&case(WEB, 91))[0].fixes[0]).is_empty());
    // A service has its limit in its unit file.
    let service = &found(&case("/system.slice/web.service", 60))[0];
    assert!(changed(&service.fixes[0]).is_empty(), "{service:?}");
    assert!(
        service.fixes[0].what.ends_with("set MemoryMax= to 100 MiB in its unit file."),
        "{}",
        service.fixes[0].what
    );
}

/// On cgroup v1, a full cgroup with this limit of memory and swap together.
fn with_swap(own: Limit, above: Limit) -> Case {
    let mut case = starved(&[(60, 80)], 59)
        .gauge_of(Cgroup, WEB, CGROUP_MAX_WITH_SWAP, own)
        .gauge_of(Cgroup, "/", CGROUP_MAX_WITH_SWAP, above);
    case.facts.cgroup_mode = Some(CgroupMode::V1);
    case
}

#[test]
fn on_v1_the_limit_with_swap_is_raised_first_where_it_is_in_the_way() {
    let mib = |mib| Limit::Bytes(Bytes::from_mib(mib));
    let advised = |own, above| changed(&found(&with_swap(own, above))[0].fixes[0]);
    let memory = "/web/memory.limit_in_bytes=83886080 -> /web/memory.limit_in_bytes=335544320";
    assert_eq!(
        advised(mib(80), Limit::Unlimited),
        [
            "/web/memory.memsw.limit_in_bytes=83886080 -> /web/memory.memsw.limit_in_bytes=335544320",
            memory
        ]
    );
    assert_eq!(advised(mib(400), Limit::Unlimited), [memory]);
    assert_eq!(advised(Limit::Unlimited, Limit::Unlimited), [memory]);
    // The kernel shows that of a cgroup above.
    assert_eq!(advised(mib(80), mib(80)), [memory]);
}

#[test]
fn kills_at_two_limits_are_two_incidents() {
    let killed = |limits: &[Limit]| {
        let kills: Vec<u64> = (0..60).map(|at| u64::from(at == 10 || at == 16)).collect();
        let case = Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(2000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(1600))
            .gauge_steps_of(Cgroup, WEB, CGROUP_MAX, limits)
            .gauge_of(Cgroup, WEB, CGROUP_CURRENT, Bytes::from_mib(64))
            .counter_steps_of(Cgroup, WEB, CGROUP_EVENTS_MAX, &kills)
            .counter_steps_of(Cgroup, WEB, CGROUP_EVENTS_OOM_KILL, &kills);
        incidents(rules::by_id("oom-cgroup").copied().unwrap(), &case)
    };
    let two = killed(&limits_of(&[(14, 64), (47, 80)]));
    let titles: Vec<&str> = two.iter().map(|finding| finding.title.first()).collect();
    assert_eq!(two.iter().map(|one| one.harm.killed).collect::<Vec<_>>(), [1, 1], "{titles:?}");
    assert!(titles[0].contains("limit of 64 MiB") && titles[1].contains("limit of 80 MiB"));
    for finding in &two {
        let fix = changed(&finding.fixes[0]);
        assert_eq!(fix, ["/web/memory.max=83886080 -> /web/memory.max=335544320"]);
    }
    let one = killed(&limits_of(&[(61, 64)]));
    assert_eq!(one.iter().map(|one| one.harm.killed).collect::<Vec<_>>(), [2]);
}

#[test]
fn the_bound_below_a_limit_that_was_raised_since_is_not_set() {
    let kills: Vec<u64> = (0..60).map(|at| u64::from(at == 10)).collect();
    let case = Case::over(60)
        .gauge_steps_of(Cgroup, WEB, CGROUP_MAX, &limits_of(&[(20, 64), (41, 256)]))
        .gauge_of(Cgroup, WEB, CGROUP_HIGH, Limit::Unlimited)
        .gauge_of(Cgroup, WEB, CGROUP_CURRENT, Bytes::from_mib(64))
        .counter_of(Cgroup, WEB, CGROUP_EVENTS_HIGH, 0)
        .counter_steps_of(Cgroup, WEB, CGROUP_EVENTS_MAX, &kills)
        .counter_steps_of(Cgroup, WEB, CGROUP_EVENTS_OOM_KILL, &kills);
    let all = incidents(rules::by_id("oom-cgroup").copied().unwrap(), &case);
    assert_eq!(all[0].fixes.len(), 1, "{all:?}");
    assert!(changed(&all[0].fixes[0]).is_empty());
}

#[test]
fn hits_that_only_the_limit_with_swap_counts_do_not_clear_a_cgroup() {
    let mib = |mib| Limit::Bytes(Bytes::from_mib(mib));
    let found = |with_swap_limit| {
        let case = with_swap(with_swap_limit, Limit::Unlimited);
        found(&case.counter_of(Cgroup, WEB, CGROUP_EVENTS_MAX, 0)).len()
    };
    assert_eq!(found(mib(80)), 1);
    assert_eq!(found(mib(160)), 0);
    assert_eq!(found(Limit::Unlimited), 0);
}
