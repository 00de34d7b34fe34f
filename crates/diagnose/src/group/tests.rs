use timeline::Entity::Cgroup;
use timeline::facts::CgroupMode;
use timeline::signals::{CGROUP_HIGH, CGROUP_MAX, MEM_TOTAL};

use super::*;
use crate::finding::{Scope, Severity};
use crate::judge::diagnose;
use crate::judge::verdict::Level;
use crate::rules::testing::Case;

const MIB: fn(u64) -> Bytes = Bytes::from_mib;

fn host() -> Case {
    Case::over(60).gauge(MEM_TOTAL, MIB(4096)).gauge(MEM_AVAILABLE, MIB(3000))
}

/// A cgroup with this hard limit and these parts.
fn group(
    case: Case,
    path: &str,
    limit: Option<u64>,
    [current, anon, inactive, active]: [u64; 4],
) -> Case {
    let limit = limit.map_or(Limit::Unlimited, |limit| Limit::Bytes(MIB(limit)));
    case.gauge_of(Cgroup, path, CGROUP_MAX, limit)
        .gauge_of(Cgroup, path, CGROUP_CURRENT, MIB(current))
        .gauge_of(Cgroup, path, CGROUP_ANON, MIB(anon))
        .gauge_of(Cgroup, path, CGROUP_FILE, MIB(inactive + active))
        .gauge_of(Cgroup, path, CGROUP_SHMEM, MIB(0))
        .gauge_of(Cgroup, path, CGROUP_INACTIVE_FILE, MIB(inactive))
        .gauge_of(Cgroup, path, CGROUP_ACTIVE_FILE, MIB(active))
}

fn state(case: &Case, path: &str) -> GroupState {
    case.with(|cx| GroupState::new(cx, path, 0, &[], false))
}

fn about(case: &Case, path: &str) -> GroupDiagnosis {
    case.with(|cx| diagnose(cx.timeline, cx.facts).about(cx, path, 0))
}

#[test]
fn what_counts_adds_up_and_the_working_set_is_that_of_kubernetes() {
    let case = group(host(), "/a", Some(400), [300, 180, 60, 40])
        .gauge_of(Cgroup, "/a", CGROUP_FILE_DIRTY, MIB(10))
        .gauge_of(Cgroup, "/a", CGROUP_SLAB_RECLAIMABLE, MIB(5));
    let state = state(&case, "/a");
    assert_eq!(state.working_set, Some(MIB(240)));
    // 100 of files, 10 of them dirty, and 5 of kernel objects.
    assert_eq!(state.droppable, Some(MIB(95)));
    assert_eq!(state.unwritten, Some(MIB(10)));
    let parts: Vec<_> = state.parts.iter().map(|part| (part.label, part.bytes)).collect();
    assert_eq!(
        parts,
        [
            ("anonymous", MIB(180)),
            ("page cache", MIB(100)),
            ("reclaimable slab", MIB(5)),
            ("other", MIB(15)),
        ]
    );
}

#[test]
fn limits_are_listed_from_the_inside_with_the_names_of_the_kernel() {
    let high = Limit::Bytes(MIB(350));
    let case = group(host(), "/p", Some(500), [400, 300, 50, 50]);
    let mut case = group(case, "/p/a", Some(400), [300, 250, 25, 25]).gauge_of(
        Cgroup,
        "/p/a",
        CGROUP_HIGH,
        high,
    );
    let files = |case: &Case| -> Vec<(String, &str, u64)> {
        let limits = state(case, "/p/a").limits.into_iter();
        limits.map(|limit| (limit.path, limit.file, limit.limit.get() >> 20)).collect()
    };
    let both = files(&case);
    assert_eq!(
        both,
        [
            ("/p/a".to_owned(), "memory.high", 350),
            ("/p/a".to_owned(), "memory.max", 400),
            ("/p".to_owned(), "memory.max", 500),
        ]
    );
    case.facts.cgroup_mode = Some(CgroupMode::V1);
    let v1 = files(&case);
    assert!(v1.iter().all(|(_, file, _)| *file != "memory.max"), "{v1:?}");
    assert_eq!(v1[1].1, "memory.limit_in_bytes");
    let unknown = state(&case, "/p/a").unknown.join(" ");
    assert!(unknown.contains("cgroup v1 has no pressure"), "{unknown}");
    assert!(!unknown.contains("does not have its pressure"), "{unknown}");
}

#[test]
fn raising_says_what_binds_next() {
    let raising = |case: &Case, path: &str| state(case, path).raising.join(" ");
    let free = group(host(), "/a", None, [300, 280, 10, 10]);
    assert!(raising(&free, "/a").contains("the host comes first"));
    let calm = group(host(), "/a", Some(1000), [300, 280, 10, 10]);
    let text = raising(&calm, "/a");
    assert!(
        text.contains(
            "changes nothing so far. The nearest is memory.max of /a (1,000 MiB), with 700 MiB left"
        ),
        "{text}"
    );
    // Nearly full of anonymous memory, within a parent that has 100 MiB left.
    let full = group(host(), "/p", Some(500), [400, 390, 5, 5]);
    let full = group(full, "/p/a", Some(300), [298, 290, 4, 4]);
    let text = raising(&full, "/p/a");
    assert!(
        text.starts_with(
            "Raising memory.max of /p/a (300 MiB) gives room for 100 MiB more, then memory.max of \
             /p (500 MiB) is next."
        ),
        "{text}"
    );
    let tight = group(host(), "/p", Some(400), [400, 390, 5, 5]);
    let tight = group(tight, "/p/a", Some(300), [298, 290, 4, 4]);
    let text = raising(&tight, "/p/a");
    assert!(
        text.contains(
            "changes nothing while memory.max of /p (400 MiB) has no room left: raise both"
        ),
        "{text}"
    );
}

/// A sibling in trouble next to a calm cgroup, both below one slice.
fn siblings() -> Case {
    let high = Limit::Bytes(MIB(80));
    let throttled: Vec<u64> = vec![20; 60];
    let case = group(host(), "/p/calm", Some(1000), [100, 50, 25, 25])
        .counter_of(Cgroup, "/p/calm", CGROUP_PSI_MEMORY_SOME, 0)
        .gauge_of(Cgroup, "/p/sick", CGROUP_HIGH, high)
        .gauge_of(Cgroup, "/p/sick", CGROUP_CURRENT, MIB(85))
        .counter_steps_of(Cgroup, "/p/sick", CGROUP_EVENTS_HIGH, &throttled)
        .counter_steps_of(Cgroup, "/p/sick", CGROUP_PSI_MEMORY_SOME, &vec![900_000; 60]);
    group(case, "/p", None, [200, 100, 50, 50])
}

#[test]
fn findings_are_of_the_group_those_around_it_and_those_within_it() {
    let case = siblings();
    let sick = about(&case, "/p/sick");
    let ids: Vec<_> = sick.diagnosis.findings.iter().map(|finding| finding.id).collect();
    assert!(ids.contains(&"cgroup-high-throttle"), "{ids:?}");
    assert!(sick.diagnosis.verdict.level != Level::Ok);
    let outer = about(&case, "/p");
    assert_eq!(outer.diagnosis.verdict.level, sick.diagnosis.verdict.level);
    let calm = about(&case, "/p/calm");
    assert_eq!(calm.diagnosis.findings, []);
    assert_eq!(calm.diagnosis.verdict.level, Level::Ok);
    assert!(calm.diagnosis.verdict.headline.contains("/p/calm has 100 MiB"));
    // What is wrong elsewhere stands with the host.
    assert!(calm.host.level != Level::Ok);
    assert_eq!(calm.host_findings.first().map(|finding| finding.id), Some("cgroup-high-throttle"));
}

#[test]
fn only_rules_about_cgroups_are_clear_or_lack_something() {
    let calm = about(&siblings(), "/p/calm").diagnosis;
    let clear = calm.clear.iter().map(|(id, _)| *id);
    let ids: Vec<_> = clear.chain(calm.not_evaluated.iter().map(|(id, _)| *id)).collect();
    assert!(ids.contains(&"cgroup-cache-starved") && ids.contains(&"oom-cgroup"), "{ids:?}");
    assert!(!ids.contains(&"swap-thrash"), "{ids:?}");
}

#[test]
fn throttling_and_stalls_are_felt_and_what_is_not_measured_is_named() {
    let case = siblings();
    let sick = state(&case, "/p/sick");
    assert_eq!(sick.felt.throttled, Some(Count::new(1200)));
    let some = sick.felt.some.map_or(0.0, Ratio::get);
    assert!((some - 0.9).abs() < 1e-9, "{some}");
    assert_eq!(sick.felt.kills, None);
    assert!(sick.unknown[0].contains("what is charged to it"), "{:?}", sick.unknown);
    let nowhere = about(&case, "/other");
    assert_eq!(nowhere.diagnosis.verdict.level, Level::Unknown);
    assert!(nowhere.state.unknown[0].contains("only messages name it"));
}

#[test]
fn one_sample_says_nothing_about_a_lack() {
    let case = Case::over(0).gauge(MEM_TOTAL, MIB(4096));
    let case = group(case, "/a", Some(400), [300, 180, 60, 40]);
    let one = about(&case, "/a").diagnosis.verdict;
    assert_eq!(one.level, Level::Unknown);
    assert!(one.headline.starts_with("One sample cannot show"), "{}", one.headline);
}

#[test]
fn kills_of_the_kernels_log_count_where_no_counter_was_read_after_them() {
    let case = group(host(), "/a", Some(1000), [300, 280, 10, 10]);
    let state = |from: usize, key: &str| {
        case.with(|cx| {
            let mut kill = Finding::new("oom-cgroup", Severity::Critical, "a kill").killed(2);
            kill.scope = Scope { entity: Entity::Cgroup, key: key.to_owned() };
            kill.when = cx.timeline.stretch(1, 2);
            GroupState::new(cx, "/a", from, &[kill], false)
        })
    };
    let killed = state(0, "/a");
    assert_eq!(killed.felt.kills, Some(Count::new(2)));
    assert_eq!(killed.limits[0].hits, Some(Count::new(1)));
    assert!(killed.raising[0].starts_with("Raising memory.max of /a"));
    // Of another cgroup, and before the time in question.
    for other in [state(0, "/b"), state(3, "/a")] {
        assert_ne!(other.felt.kills, Some(Count::new(2)));
    }
}

#[test]
fn hits_are_those_of_one_limit_and_a_limit_that_was_raised_since_is_not_to_be_raised() {
    let limits = |after: u64| {
        let limit = |mib| Limit::Bytes(MIB(mib));
        let steps = [vec![limit(64); 30], vec![limit(after); 31]].concat();
        let hits = [vec![100; 29], vec![7; 31]].concat();
        let case = group(host(), "/a", Some(64), [64, 60, 2, 2])
            .gauge_steps_of(Cgroup, "/a", CGROUP_MAX, &steps)
            .gauge_steps_of(
                Cgroup,
                "/a",
                CGROUP_CURRENT,
                &[vec![MIB(64); 30], vec![MIB(30); 31]].concat(),
            )
            .counter_steps_of(Cgroup, "/a", CGROUP_EVENTS_MAX, &hits);
        case.with(|cx| {
            let whole = cx.timeline.whole().unwrap();
            let group = cx.timeline.entity(Cgroup, "/a").unwrap();
            let mut state = GroupState { path: "/a".to_owned(), ..GroupState::default() };
            state.limits = super::limits(cx, group, 10, &whole);
            let sentences = raising::sentences(&state, true);
            (state.limits[0].hits.unwrap().get(), sentences)
        })
    };
    let (hits, sentences) = limits(256);
    // The hits of the second in which it was raised may be of either limit.
    assert_eq!(hits, 29 * 100 + 7);
    assert_eq!(sentences, ["The limit that was hit, memory.max of /a (64 MiB), is 256 MiB since."]);
    let (hits, sentences) = limits(64);
    assert_eq!(hits, 29 * 100 + 31 * 7);
    assert!(sentences[0].starts_with("Raising memory.max of /a (64 MiB)"), "{sentences:?}");
}

/// A cgroup that is made 20 s after the start, and read for the first time 2 s after a kill in it.
fn made_late() -> Case {
    let limit = Limit::Bytes(MIB(128));
    host()
        .gauge_of(Cgroup, "/b", CGROUP_CURRENT, MIB(9))
        .gauge_within_of(Cgroup, "/a", 22..61, CGROUP_MAX, limit)
        .gauge_within_of(Cgroup, "/a", 22..40, CGROUP_CURRENT, MIB(100))
        .gauge_within_of(Cgroup, "/a", 40..61, CGROUP_CURRENT, MIB(0))
        .counter_within_of("/a", 22..61, CGROUP_EVENTS_MAX, &[0; 39])
}

#[test]
fn what_was_counted_before_the_first_reading_of_a_cgroup_made_meanwhile_counts() {
    let hits = state(&made_late(), "/a").felt.hits;
    assert_eq!(hits, Some(Count::new(1_000)));
}

#[test]
fn the_moment_of_a_cgroup_that_was_not_read_during_its_finding_is_the_nearest() {
    made_late().with(|cx| {
        let when = cx.timeline.stretch(20, 21).unwrap();
        let finding = Finding::new("oom-cgroup", Severity::Critical, "").during(when);
        let state = GroupState::new(cx, "/a", 0, &[finding], false);
        assert_eq!((state.index, state.current), (Some(22), Some(MIB(100))));
    });
}

#[test]
fn of_kernel_memory_of_v1_nothing_says_how_much_can_be_dropped() {
    let with_kernel = |mib| {
        let case = group(host(), "/a", Some(64), [32, 1, 0, 0]);
        state(&case.gauge_of(Cgroup, "/a", CGROUP_KERNEL, MIB(mib)), "/a")
    };
    let much = with_kernel(31);
    assert_eq!((much.limits[0].undroppable, much.droppable), (None, None));
    let unknown = much.unknown.join(" ");
    assert!(unknown.contains("How much of its 31 MiB of kernel memory"), "{unknown}");
    assert_eq!(with_kernel(1).limits[0].undroppable, Some(MIB(32)));
}
