//! Tests of whole answers; tests of a term are in its file. Accuracy is checked on captures with known demands
//! (corpus, bench).

use timeline::facts::{MGLRU, MemoryMount, OVERCOMMIT_MEMORY, ZONE_RECLAIM_MODE};
use timeline::signals::{
    CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
    CGROUP_FILE_DIRTY, CGROUP_FILE_MAPPED, CGROUP_HIGH, CGROUP_INACTIVE_FILE, CGROUP_MAX,
    CGROUP_REFAULT_FILE, COMMIT_LIMIT, COMMITTED_AS, HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_RSVD,
    MEM_ACTIVE_FILE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE,
    MEM_INACTIVE_FILE, MEM_MAPPED, MEM_SHMEM, MEM_SWAP_CACHED, MEM_TOTAL, MEM_WRITEBACK,
    NODE_ACTIVE_FILE, NODE_FREE, NODE_INACTIVE_FILE, NR_DIRTIED, OOM_KILLS, PGPGIN, PROC_RSS_SHMEM,
    PSI_MEMORY_SOME, PSWPIN, PSWPOUT, REFAULT_ANON, REFAULT_FILE, SWAP_FREE, SWAP_TOTAL,
    ZONE_BOOST, ZONE_HIGH, ZONE_LOW, ZONE_MANAGED,
};
use timeline::{Entity, Facts, Sample, Timeline};
use units::{Bytes, Count, Limit as Size, Pages, Quantity, Ratio};

use super::*;
use crate::rules::testing::Case;

const MIB: fn(u64) -> Bytes = Bytes::from_mib;
const PAGES: fn(u64) -> Pages = |mib| Pages::new(mib * 256);

/// A host of 1000 MiB watched for a minute: 400 available, of which 300 are files, 100 of them used more than once.
/// Low watermarks of 20 MiB, so available leaves out 20 of the cache.
fn host() -> Case {
    lasting(60)
}

fn lasting(seconds: u64) -> Case {
    Case::over(seconds)
        .gauge(MEM_TOTAL, MIB(1000))
        .gauge(MEM_FREE, MIB(140))
        .gauge(MEM_AVAILABLE, MIB(400))
        .gauge(MEM_CACHED, MIB(310))
        .gauge(MEM_BUFFERS, MIB(0))
        .gauge(MEM_SHMEM, MIB(10))
        .gauge(MEM_ACTIVE_FILE, MIB(100))
        .gauge(MEM_INACTIVE_FILE, MIB(200))
        .gauge(MEM_MAPPED, MIB(0))
        .gauge(MEM_DIRTY, MIB(0))
        .gauge(MEM_WRITEBACK, MIB(0))
        .gauge(SWAP_TOTAL, MIB(0))
        .gauge(SWAP_FREE, MIB(0))
        .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, PAGES(1000))
        .gauge_of(Entity::Zone, "0/Normal", ZONE_LOW, PAGES(20))
        .gauge_of(Entity::Zone, "0/Normal", ZONE_HIGH, PAGES(24))
        .counter(REFAULT_FILE, 0)
        .counter(PGPGIN, 0)
        .fact(MGLRU, "0x0000")
}

/// The answer where the watched minute is the whole cycle of the load.
fn asked(case: &Case, add: Option<(u64, DemandKind)>) -> Headroom {
    asked_over(Span::from_mins(1), case, add)
}

fn asked_over(cycle: Span, case: &Case, add: Option<(u64, DemandKind)>) -> Headroom {
    answered(cycle, case, add, None)
}

/// The answer for something that is added in a cgroup.
fn asked_within(group: &str, case: &Case, add: (u64, DemandKind)) -> Headroom {
    answered(Span::from_mins(1), case, Some(add), Some(group))
}

fn answered(
    cycle: Span,
    case: &Case,
    add: Option<(u64, DemandKind)>,
    within: Option<&str>,
) -> Headroom {
    let question = Question {
        add: add.map(|(mib, kind)| Demand { bytes: MIB(mib), kind }),
        cycle,
        ..Question::default()
    };
    case.with(|cx| headroom(cx, &question, within))
}

/// The limit that binds, and its room in MiB; `None` where RAM binds.
fn binding(headroom: &Headroom) -> Option<(LimitKind, i64)> {
    match &headroom.binds {
        Some(HeadroomBinding::Limit(limit)) => Some((limit.kind, limit.bounds.best() >> 20)),
        Some(HeadroomBinding::Chain(_)) => {
            Some((LimitKind::Cgroup, headroom.room.as_ref()?.least.best() >> 20))
        }
        _ => None,
    }
}

#[test]
fn a_minute_of_a_longer_cycle_shows_a_lack_and_never_that_there_is_enough() {
    let of_a_week = |mib| asked_over(Question::CYCLE, &host(), Some((mib, DemandKind::Anon)));
    let small = of_a_week(200);
    assert_eq!(small.answer, FitAnswer::FitsSoFar);
    let HeadroomBasis::Room { least, usual, .. } = small.basis else { panic!("{small:?}") };
    assert_eq!((mib(least.likely), mib(usual.likely)), (Some(320), Some(320)));
    assert!(small.remarks.contains(&HeadroomRemark::WatchedTooShort));
    assert_eq!(of_a_week(600).answer, FitAnswer::DoesNotFit);
}

#[test]
fn kills_at_some_time_since_boot_are_no_shortage_of_the_time_watched() {
    let killed = host().counter(OOM_KILLS, 3);
    let answer = asked(&killed, Some((200, DemandKind::Anon)));
    assert_eq!(answer.answer, FitAnswer::Fits, "{:?}", answer.short);
}

fn mib(bytes: Option<i64>) -> Option<i64> {
    bytes.map(|bytes| bytes >> 20)
}

#[test]
fn files_used_more_than_once_must_stay_and_others_may_go() {
    let answer = asked(&host(), None);
    let room = answer.room.unwrap();
    // 400 available − (100 read cache − 20 left out of it already).
    assert_eq!(mib(room.least.likely), Some(320));
    // All 300 of the cache needed, or none of it.
    assert_eq!(mib(room.least.lower), Some(120));
    assert_eq!(mib(Some(room.least.upper)), Some(400));
    assert_eq!(answer.terms.unwrap().read_cache.how, How::ActiveList);
    assert_eq!(answer.answer, FitAnswer::Fits);
}

#[test]
fn a_demand_is_judged_by_what_is_left_at_the_worst_moment() {
    use DemandKind::Anon;
    for (add, answer) in [
        (200, FitAnswer::Fits),
        // Less than a tenth of RAM would be left.
        (230, FitAnswer::Tight),
        (280, FitAnswer::Tight),
        (350, FitAnswer::DoesNotFit),
        (500, FitAnswer::DoesNotFit),
    ] {
        assert_eq!(asked(&host(), Some((add, Anon))).answer, answer, "{add}");
    }
    // A shortage that lasts for a moment only makes it tight.
    let mut available = vec![MIB(400); 60];
    available[30] = MIB(150);
    let case = host().gauge_steps(MEM_AVAILABLE, &available);
    let answer = asked(&case, Some((150, Anon)));
    assert_eq!(answer.answer, FitAnswer::Tight, "{:?}", answer.basis);
    assert_eq!(answer.room.unwrap().worst, 30);
}

#[test]
fn writers_keep_their_room_up_to_where_they_run_free() {
    let room = |dirty| {
        let case = host().gauge(MEM_DIRTY, MIB(dirty)).gauge(MEM_INACTIVE_FILE, MIB(300));
        asked(&case, None).terms.unwrap().write_cache
    };
    assert_eq!(room(30), (MIB(30), MIB(30)));
    // 17.5 % of what can be had.
    assert_eq!(room(200), (MIB(70), MIB(70)));
}

#[test]
fn raised_marks_are_kept_by_the_kernel() {
    let case = host().gauge_of(Entity::Zone, "0/Normal", ZONE_BOOST, PAGES(40));
    let answer = asked(&case, None);
    assert_eq!(answer.terms.unwrap().kept, Some(MIB(40)));
    assert_eq!(mib(answer.room.unwrap().least.likely), Some(280));
}

#[test]
fn with_generations_the_lists_tell_nothing_and_bounds_remain() {
    let case = host().fact(MGLRU, "0x0007");
    let room = |answer: &Headroom| answer.room.clone().unwrap().least;
    let answer = asked(&case, Some((10, DemandKind::Anon)));
    assert_eq!(room(&answer).likely, None);
    assert_eq!(mib(room(&answer).lower), Some(120));
    assert_eq!(answer.answer, FitAnswer::Fits);
    // Between the bounds it is unknown, beyond them it does not fit.
    assert_eq!(asked(&case, Some((200, DemandKind::Anon))).answer, FitAnswer::Unknown);
    assert_eq!(asked(&case, Some((401, DemandKind::Anon))).answer, FitAnswer::DoesNotFit);
    assert!(answer.unknown.iter().any(|unknown| unknown.what == "read cache"));
}

#[test]
fn one_look_shows_a_lack_and_never_that_there_is_none() {
    let once = || {
        Case::once()
            .gauge(MEM_TOTAL, MIB(80_429))
            .gauge(MEM_FREE, MIB(579))
            .gauge(MEM_AVAILABLE, MIB(9662))
            .gauge(MEM_CACHED, MIB(20_943))
            .gauge(MEM_SHMEM, MIB(1028))
    };
    let answer = asked(&once(), Some((500, DemandKind::Anon)));
    assert_eq!(answer.answer, FitAnswer::Unknown);
    let cache = &answer.terms.as_ref().unwrap().read_cache;
    assert_eq!((cache.likely, cache.upper, cache.how), (None, None, How::Unknown));
    let names: Vec<_> = answer.unknown.iter().map(|unknown| unknown.what).collect();
    assert_eq!(names, ["floor", "write cache", "read cache"]);
    // More of the cache is not available than the floor explains.
    let is_residue = |remark: &HeadroomRemark| matches!(remark, HeadroomRemark::Residue(_));
    assert!(answer.remarks.iter().any(is_residue), "{:?}", answer.remarks);
    let article = answer.article.unwrap();
    assert!(article.differs && article.bytes < 0, "{}", article.text);
    assert_eq!(asked(&once(), Some((12_000, DemandKind::Anon))).answer, FitAnswer::DoesNotFit);
}

#[test]
fn without_refaults_a_flat_edge_of_free_memory_leaves_the_need_open() {
    let free = [1900, 1500, 900, 720, 700, 705, 710, 1300, 1900].map(MIB);
    let case = |free: &[Bytes]| {
        Case::over(8)
            .gauge(MEM_TOTAL, MIB(32_010))
            .gauge_steps(MEM_FREE, free)
            .gauge(MEM_AVAILABLE, MIB(5000))
            .gauge(MEM_CACHED, MIB(4200))
            .gauge(MEM_SHMEM, MIB(60))
            .gauge(MEM_DIRTY, MIB(0))
    };
    let answer = asked(&case(&free), None);
    assert_eq!(answer.terms.unwrap().read_cache.upper, None);
    assert_eq!(answer.article.unwrap().kept_free, MIB(700));
    // Free memory that is far from any floor: the cache was never squeezed, and all of it is the most that is needed.
    let roomy = asked(&case(&[MIB(9000)]), None);
    let cache = roomy.terms.unwrap().read_cache;
    assert_eq!((cache.upper, cache.how), (Some(MIB(4140)), How::NeverSqueezed));
}

#[test]
fn what_was_seen_counts_more_than_the_formula() {
    let thrash = || {
        host()
            .counter(PSWPIN, 2000)
            .counter(PSWPOUT, 2000)
            .counter(REFAULT_ANON, 2000)
            .gauge(SWAP_TOTAL, MIB(500))
            .gauge(SWAP_FREE, MIB(300))
            .gauge(MEM_AVAILABLE, MIB(200))
    };
    let answer = asked(&thrash(), None);
    assert_eq!(answer.answer, FitAnswer::DoesNotFit, "{:?}", answer.basis);
    assert_eq!(answer.short[0].rule, "swap-thrash");
    assert_eq!(answer.smallest_ram, None);
    // The look-alike: swap is used and nothing moves.
    let cold = host().gauge(SWAP_TOTAL, MIB(500)).gauge(SWAP_FREE, MIB(300));
    let cold = asked(&cold, None);
    assert_eq!(cold.answer, FitAnswer::Fits);
    assert!(cold.short.is_empty());
}

#[test]
fn files_that_come_back_need_more_cache_than_there_is() {
    let case = host()
        .gauge(MEM_FREE, MIB(24))
        .gauge(MEM_AVAILABLE, MIB(100))
        .gauge(MEM_CACHED, MIB(80))
        .gauge(MEM_ACTIVE_FILE, MIB(20))
        .gauge(MEM_INACTIVE_FILE, MIB(60))
        .counter(REFAULT_FILE, 3000)
        .counter(PGPGIN, 12 << 20);
    let answer = asked(&case, None);
    let cache = answer.terms.unwrap().read_cache;
    assert_eq!((cache.how, cache.lower), (How::Refaults, MIB(80)));
    assert!(cache.upper > Some(MIB(80)));
    assert_eq!(answer.answer, FitAnswer::DoesNotFit);
}

#[test]
fn the_tightest_limit_that_holds_binds() {
    let group = |own: &str| {
        let case = host()
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_MAX, Size::Bytes(MIB(300)))
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_CURRENT, MIB(250))
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_FILE_DIRTY, MIB(0))
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_FILE, MIB(30));
        asked_within(own, &case, (100, DemandKind::Anon))
    };
    let inside = group("/pod/app");
    assert_eq!(inside.answer, FitAnswer::DoesNotFit);
    // 80, and 30 of that if all of its cache is needed.
    assert_eq!(binding(&inside), Some((LimitKind::Cgroup, 50)));
    let outside = group("/");
    assert_eq!(outside.answer, FitAnswer::Fits);
    assert!(!outside.limits[0].holds);
}

#[test]
fn the_limit_of_the_recorders_own_unit_is_none_of_the_hosts() {
    let unit = "/system.slice/memtide.service";
    let mut case = host()
        .gauge_of(Entity::Cgroup, unit, CGROUP_MAX, Size::Bytes(MIB(384)))
        .gauge_of(Entity::Cgroup, unit, CGROUP_CURRENT, MIB(350))
        .gauge_of(Entity::Cgroup, unit, CGROUP_FILE, MIB(0));
    case.facts.own_cgroup = Some(unit.to_owned());
    let answer = asked(&case, Some((100, DemandKind::Anon)));
    assert_eq!(answer.answer, FitAnswer::Fits, "{:?}", answer.binds);
}

#[test]
fn where_a_cgroup_is_throttled_nothing_more_fits_in_it() {
    let group = |own: &str| {
        let case = host()
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_HIGH, Size::Bytes(MIB(200)))
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_MAX, Size::Unlimited)
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_CURRENT, MIB(190))
            .gauge_of(Entity::Cgroup, "/pod", CGROUP_FILE, MIB(0));
        asked_within(own, &case, (100, DemandKind::Anon))
    };
    let inside = group("/pod");
    assert_eq!(inside.answer, FitAnswer::DoesNotFit);
    assert_eq!(binding(&inside), Some((LimitKind::Cgroup, 10)));
    assert_eq!(group("/").answer, FitAnswer::Fits);
}

#[test]
fn promises_bind_memory_of_processes_and_not_page_cache() {
    let strict = |mode: &str| {
        host()
            .gauge(COMMIT_LIMIT, MIB(500))
            .gauge(COMMITTED_AS, MIB(450))
            .fact(OVERCOMMIT_MEMORY, mode)
    };
    let answer = asked(&strict("2"), Some((100, DemandKind::Anon)));
    assert_eq!(answer.answer, FitAnswer::DoesNotFit);
    assert_eq!(binding(&answer), Some((LimitKind::Commit, 50)));
    assert_eq!(asked(&strict("2"), Some((100, DemandKind::Cache))).answer, FitAnswer::Fits);
    assert_eq!(asked(&strict("0"), Some((100, DemandKind::Anon))).answer, FitAnswer::Fits);
    // If the mode is unknown, the limit may apply or not; where more is promised than the limit, it is not enforced.
    let untold = |promised| {
        let case = host().gauge(COMMIT_LIMIT, MIB(500)).gauge(COMMITTED_AS, MIB(promised));
        asked(&case, Some((100, DemandKind::Anon))).answer
    };
    assert_eq!(
        [untold(450), untold(100), untold(600)],
        [FitAnswer::Unknown, FitAnswer::Fits, FitAnswer::Fits]
    );
}

#[test]
fn a_node_binds_where_it_reclaims_before_it_takes_from_others() {
    let nodes = |mode: &str| {
        let mut case = host().fact(ZONE_RECLAIM_MODE, mode);
        for (node, free) in [("0", 60), ("1", 300)] {
            case = case
                .gauge_of(Entity::Node, node, NODE_FREE, MIB(free))
                .gauge_of(Entity::Node, node, NODE_ACTIVE_FILE, MIB(10))
                .gauge_of(Entity::Node, node, NODE_INACTIVE_FILE, MIB(10));
        }
        asked(&case, Some((100, DemandKind::Anon)))
    };
    assert_eq!(binding(&nodes("1")).map(|(kind, _)| kind), Some(LimitKind::Node));
    assert_eq!(nodes("0").binds, Some(HeadroomBinding::Ram(MIB(1000))));
}

#[test]
fn on_a_node_of_its_own_files_that_are_read_again_must_stay() {
    let mut case = host().fact(ZONE_RECLAIM_MODE, "1");
    for (node, free, files) in [("0", 60, 240), ("1", 300, 60)] {
        case = case
            .gauge_of(Entity::Node, node, NODE_FREE, MIB(free))
            .gauge_of(Entity::Node, node, NODE_ACTIVE_FILE, MIB(0))
            .gauge_of(Entity::Node, node, NODE_INACTIVE_FILE, MIB(files));
    }
    // Node 0 has 80 of the 100 that are read again; its floor is 24: 60 + 240 − 80 − 24.
    let answer = asked(&case, Some((100, DemandKind::Anon)));
    let node = answer.limits.iter().find(|limit| limit.name == "0");
    assert_eq!(mib(node.map(|node| node.bounds.best())), Some(196));
    assert!(
        matches!(&answer.binds, Some(HeadroomBinding::Limit(node)) if node.text.contains("beside 80 MiB of its cache"))
    );
}

#[test]
fn unused_huge_pages_are_told_and_bind_nothing() {
    let case = host()
        .gauge(HUGEPAGE_SIZE, MIB(2))
        .gauge(HUGEPAGES_FREE, Count::new(60))
        .gauge(HUGEPAGES_RSVD, Count::new(10));
    let answer = asked(&case, None);
    let pool = answer.limits.iter().find(|limit| limit.kind == LimitKind::Hugetlb);
    assert_eq!(mib(pool.map(|limit| limit.bounds.best())), Some(100));
    assert_eq!(answer.binds, Some(HeadroomBinding::Ram(MIB(1000))));
}

#[test]
fn the_smallest_ram_holds_the_worst_moment_and_the_demand() {
    let answer = asked(&host(), Some((100, DemandKind::Anon)));
    // 1000 − 320 + 100; with all cache 1000 − 120 + 100.
    assert_eq!(answer.smallest_ram, Some((Some(MIB(780)), Some(MIB(980)))));
    assert_eq!(mib(answer.added.unwrap().left), Some(220));
}

#[test]
fn what_has_no_place_goes_to_swap_or_to_the_killer() {
    let effect = |swap: u64, kind| {
        let case = host().gauge(SWAP_TOTAL, MIB(swap)).gauge(SWAP_FREE, MIB(swap));
        asked(&case, Some((500, kind))).added.unwrap().effects.pop().unwrap()
    };
    let past_cliff = |swap| AddedEffect::PastCliff { bytes: MIB(100), swap_left: Some(MIB(swap)) };
    assert_eq!(effect(0, DemandKind::Anon), past_cliff(0));
    assert_eq!(effect(200, DemandKind::Tmpfs), past_cliff(200));
    assert_eq!(effect(0, DemandKind::Cache), AddedEffect::DropsCache(MIB(180)));
}

#[test]
fn nothing_measured_is_not_nothing_left() {
    let answer = asked(&Case::once(), None);
    assert_eq!((answer.answer, answer.room), (FitAnswer::Unknown, None));
    assert_eq!(answer.basis, HeadroomBasis::AvailableUnknown);
    assert!(answer.unknown[0].text.contains("needs"), "{:?}", answer.unknown);
}

#[test]
fn a_higher_percentile_asks_for_more_of_the_time() {
    let mut available = vec![MIB(400); 101];
    available[..4].fill(MIB(200));
    let case = host().gauge_steps(MEM_AVAILABLE, &available);
    let usual = |percent| {
        let quantile = Ratio::from_percent(percent);
        let question = Question { quantile, ..Question::default() };
        let answer = case.with(|cx| headroom(cx, &question, None));
        mib(answer.room.unwrap().usual.likely)
    };
    assert_eq!((usual(90.0), usual(99.0)), (Some(320), Some(120)));
}

#[test]
fn mapped_files_are_used_and_mapped_shared_memory_is_no_file() {
    let room = |case: &Case| mib(asked(case, None).room.unwrap().least.likely);
    // 150 of the other list are mapped: 400 − (100 + 150 − 20).
    let mapped = host().gauge(MEM_MAPPED, MIB(150));
    assert_eq!(room(&mapped), Some(170));
    let database = host().gauge(MEM_MAPPED, MIB(150)).gauge_of(
        Entity::Process,
        "7@1",
        PROC_RSS_SHMEM,
        MIB(140),
    );
    assert_eq!(room(&database), Some(310));
}

fn course(cx: &Evidence<'_>) -> Option<Course> {
    Needs::measure(cx, None)?.course(cx)
}

#[test]
fn a_course_is_the_answer_sample_by_sample_and_of_a_part_too() {
    let case = host().gauge_steps(MEM_AVAILABLE, &[MIB(400), MIB(380), MIB(390)]);
    let answer = asked(&case, None);
    case.with(|cx| {
        let whole = course(cx).unwrap();
        let likely = whole.likely.clone().unwrap();
        let worst = answer.room.as_ref().unwrap();
        assert_eq!(likely[worst.worst].map(terms::whole), worst.least.likely);
        assert_eq!(whole.available[1], Some(MIB(380).as_f64()));
        assert!(whole.lower.is_some() && whole.upper.is_some());
        // Only the whole shows what a part needs.
        let part = cx.timeline.part(1, 3).alone();
        let part = Needs::measure(cx, None).unwrap().course(&Evidence::new(&part, cx.facts));
        assert_eq!(part.unwrap().likely.unwrap(), likely[1..3]);
    });
    // With the multi-generational LRU only bounds are known, without an estimate.
    let bounds = host().fact(MGLRU, "0x0007").with(|cx| course(cx).unwrap());
    assert_eq!(bounds.likely, None);
    assert_eq!(bounds.upper.unwrap()[0], Some(MIB(400).as_f64()));
    assert_eq!(Case::once().with(course), None);
}

#[test]
fn a_course_below_a_limit_is_that_of_the_limit_of_the_time() {
    let limits = [Size::Bytes(MIB(200)), Size::Unlimited, Size::Bytes(MIB(250))];
    let case = host()
        .gauge_of(Entity::Cgroup, "/a", CGROUP_CURRENT, MIB(180))
        .gauge_of(Entity::Cgroup, "/a", CGROUP_ACTIVE_FILE, MIB(0))
        .gauge_of(Entity::Cgroup, "/a", CGROUP_INACTIVE_FILE, MIB(0))
        .gauge_steps_of(Entity::Cgroup, "/a", CGROUP_MAX, &limits);
    case.with(|cx| {
        let needs = Needs::measure(cx, Some("/a")).unwrap();
        let left = needs.course(cx).unwrap().available;
        assert_eq!(left[..3], [Some(MIB(20).as_f64()), None, Some(MIB(70).as_f64())]);
        let limit = needs.limit().unwrap();
        assert_eq!(limit.words_throughout(cx), "memory.max of /a");
    });
}

#[test]
fn the_worst_moment_is_that_of_the_nightly_job_however_rare() {
    // Ten minutes of a week are 0.1 %.
    let mut dirty = vec![MIB(0); 1001];
    dirty[500] = MIB(60);
    let answer = asked(&lasting(1000).gauge_steps(MEM_DIRTY, &dirty), None);
    let room = answer.room.unwrap();
    assert_eq!(room.worst, 500);
    // 400 − (60 + 100 − 20) then, 400 − (100 − 20) usually.
    assert_eq!((mib(room.least.likely), mib(room.usual.likely)), (Some(260), Some(320)));
    assert_eq!(answer.terms.unwrap().write_cache, (MIB(60), MIB(60)));
}

#[test]
fn the_usual_is_of_time_and_not_of_samples() {
    // A thousand samples in a second, then a minute with one each second, or an hour with one each minute.
    for step in [1, 60] {
        let often = (0..1000).map(|at| (Span::from_millis(at), 400));
        let rarely = (1..=60).map(|at| (Span::from_secs(at * step), 100));
        assert_eq!(usual(often.chain(rarely), 50.0), Some(100), "{step}");
    }
    // One sample after a gap of days does not count for the days.
    let steady = (0..100).map(|at| (Span::from_secs(at), 400));
    let after = (0..2).map(|at| (Span::from_hours(100).plus(Span::from_secs(at)), 100));
    assert_eq!(usual(steady.chain(after), 50.0), Some(400));
}

/// The headroom for this share of the time, from available memory by time.
fn usual(available: impl Iterator<Item = (Span, u64)>, percent: f64) -> Option<i64> {
    let mut timeline = Timeline::default();
    for (at, mib) in available {
        let mut sample = Sample::at(at);
        sample.host.set(MEM_TOTAL, MIB(1000));
        sample.host.set(MEM_FREE, MIB(mib));
        sample.host.set(MEM_AVAILABLE, MIB(mib));
        sample.host.set(MEM_CACHED, MIB(0));
        sample.host.set(MEM_SHMEM, MIB(0));
        timeline.push(&sample).unwrap();
    }
    let question = Question { quantile: Ratio::from_percent(percent), ..Question::default() };
    let answer = headroom(&Evidence::new(&timeline, &Facts::default()), &question, None);
    mib(Some(answer.room?.usual.upper))
}

#[test]
fn hours_of_calm_do_not_hide_half_a_minute_without_memory() {
    let burst = |height: u64| -> Vec<u64> {
        let is_burst = |at: u64| (3600..3625).contains(&at);
        (0..7200).map(|at| if is_burst(at) { height } else { 0 }).collect()
    };
    let (moved, waits) = (burst(3000), burst(600_000));
    let available: Vec<Bytes> = burst(380).into_iter().map(|less| MIB(400 - less)).collect();
    let thrash = || {
        lasting(7200)
            .gauge_steps(MEM_AVAILABLE, &available)
            .gauge(SWAP_TOTAL, MIB(500))
            .gauge(SWAP_FREE, MIB(300))
            .counter_steps(PSWPIN, &moved)
            .counter_steps(PSWPOUT, &moved)
            .counter_steps(REFAULT_ANON, &moved)
            .counter_steps(PSI_MEMORY_SOME, &waits)
    };
    let answer = asked(&thrash(), None);
    assert_eq!(answer.answer, FitAnswer::Tight, "{:?}", answer.basis);
    assert_eq!(answer.short[0].rule, "swap-thrash");
    assert!(answer.room.unwrap().least.likely <= Some(0));
    assert_eq!(answer.smallest_ram, None);
}

#[test]
fn what_a_node_leaves_is_a_range_where_its_files_or_the_setting_are_not_told() {
    let nodes = |case: Case| {
        [("0", 60), ("1", 300)].into_iter().fold(case, |case, (node, free)| {
            case.gauge_of(Entity::Node, node, NODE_FREE, MIB(free))
                .gauge_of(Entity::Node, node, NODE_ACTIVE_FILE, MIB(0))
                .gauge_of(Entity::Node, node, NODE_INACTIVE_FILE, MIB(150))
        })
    };
    let own_only = || host().fact(ZONE_RECLAIM_MODE, "1");
    for (what, case, answer) in [
        ("all known", own_only(), FitAnswer::DoesNotFit),
        ("no lists", own_only().fact(MGLRU, "0x0007"), FitAnswer::Unknown),
        ("the setting", host(), FitAnswer::Unknown),
        ("the setting is off", host().fact(ZONE_RECLAIM_MODE, "0"), FitAnswer::Fits),
    ] {
        let asked = asked(&nodes(case), Some((150, DemandKind::Anon)));
        assert_eq!(asked.answer, answer, "{what}: {:?}", asked.binds);
    }
}

#[test]
fn pages_on_their_way_to_swap_are_no_write_cache() {
    // Under writeback from the tenth second on.
    let writeback: Vec<Bytes> = (0..60).map(|at| MIB(if at < 10 { 0 } else { 60 })).collect();
    let case = |writeback: &[Bytes]| host().gauge_steps(MEM_WRITEBACK, writeback);
    let waits = |case: Case| {
        let least: Vec<Bytes> = (0..60).map(|at| MIB(if at == 30 { 300 } else { 400 })).collect();
        let answer = asked(&case.gauge_steps(MEM_AVAILABLE, &least), None);
        assert_eq!(answer.room.unwrap().worst, 30);
        answer.terms.unwrap().write_cache.1
    };
    for (what, case, mib) in [
        ("no file was dirtied", case(&writeback).counter(NR_DIRTIED, 0), 0),
        ("files were dirtied", case(&writeback).counter(NR_DIRTIED, 10 * 256), 60),
        ("some were", case(&writeback).counter(NR_DIRTIED, 256), 21),
        ("unknown", case(&writeback), 60),
        // Data under writeback before anything was read may be file data.
        ("from the beginning", case(&[MIB(60)]).counter(NR_DIRTIED, 0), 60),
    ] {
        assert_eq!(waits(case), MIB(mib), "{what}");
    }
}

#[test]
fn more_available_than_ram_is_refused_with_a_sentence() {
    let answer = asked(&host().gauge(MEM_AVAILABLE, MIB(9000)), Some((600, DemandKind::Anon)));
    assert_eq!((answer.answer, answer.room), (FitAnswer::Unknown, None));
    assert!(answer.unknown[0].text.contains("which is impossible"), "{:?}", answer.unknown);
    // Tools round, each figure for itself.
    let rounded = asked(&host().gauge(MEM_AVAILABLE, MIB(1010)), None);
    assert!(rounded.room.is_some());
}

#[test]
fn without_the_size_of_ram_nothing_is_said_to_fit() {
    let unknown = host().gauge(MEM_TOTAL, MIB(0));
    let asked = |mib| asked(&unknown, Some((mib, DemandKind::Anon))).answer;
    assert_eq!((asked(100), asked(900)), (FitAnswer::Unknown, FitAnswer::DoesNotFit));
}

#[test]
fn a_group_whose_limit_or_use_is_not_told_is_not_taken_for_harmless() {
    let group = |own: &str, case: Case| asked_within(own, &case, (100, DemandKind::Anon)).answer;
    let current = || host().gauge_of(Entity::Cgroup, "/app", CGROUP_CURRENT, MIB(86));
    let limit = || host().gauge_of(Entity::Cgroup, "/app", CGROUP_MAX, Size::Bytes(MIB(400)));
    let of_both = || limit().gauge_of(Entity::Cgroup, "/app", CGROUP_CURRENT, MIB(350));
    for (what, own, case, answer) in [
        ("no limit", "/app", current(), FitAnswer::Unknown),
        ("no limit of others", "/", current(), FitAnswer::Fits),
        ("no usage", "/app", limit(), FitAnswer::Unknown),
        ("no share of cache", "/app", of_both(), FitAnswer::Unknown),
        (
            "all known",
            "/app",
            of_both().gauge_of(Entity::Cgroup, "/app", CGROUP_FILE, MIB(10)),
            FitAnswer::DoesNotFit,
        ),
        (
            "no limit",
            "/app",
            current().gauge_of(Entity::Cgroup, "/app", CGROUP_MAX, Size::Unlimited),
            FitAnswer::Fits,
        ),
    ] {
        assert_eq!(group(own, case), answer, "{what}");
    }
}

#[test]
fn a_group_of_others_that_is_too_small_for_the_demand_gets_a_note() {
    let case = host()
        .gauge_of(Entity::Cgroup, "/pod", CGROUP_MAX, Size::Bytes(MIB(100)))
        .gauge_of(Entity::Cgroup, "/pod", CGROUP_CURRENT, MIB(90))
        .gauge_of(Entity::Cgroup, "/pod", CGROUP_FILE, MIB(0));
    let groups = |mib| {
        let remarks = asked(&case, Some((mib, DemandKind::Anon))).remarks.into_iter();
        let group = |remark| match remark {
            HeadroomRemark::SmallGroup(limit) => Some((limit.name, limit.bounds.upper)),
            _ => None,
        };
        remarks.filter_map(group).collect::<Vec<_>>()
    };
    assert_eq!(groups(50), [("/pod".to_owned(), 10 << 20)]);
    assert_eq!(groups(5), []);
}

#[test]
fn files_in_a_tmpfs_are_limited_by_its_size() {
    let mount = |kind: &str, size: Option<u64>| MemoryMount {
        point: format!("/{kind}"),
        kind: kind.to_owned(),
        size: size.map(MIB),
    };
    let answer = |mounts: Vec<MemoryMount>, kind| {
        let mut case = host();
        case.facts.memory_mounts = mounts;
        asked(&case, Some((100, kind))).answer
    };
    for (what, mounts, fits) in [
        ("too small", vec![mount("tmpfs", Some(50))], FitAnswer::Unknown),
        // 10 MiB of shared memory may be in it, or not.
        ("perhaps taken", vec![mount("tmpfs", Some(105))], FitAnswer::Unknown),
        ("large", vec![mount("tmpfs", Some(400))], FitAnswer::Fits),
        ("half of RAM by default", vec![mount("tmpfs", None)], FitAnswer::Fits),
        ("none mounted yet", vec![mount("devtmpfs", Some(50))], FitAnswer::Fits),
        ("unknown", vec![], FitAnswer::Unknown),
    ] {
        assert_eq!(answer(mounts, DemandKind::Tmpfs), fits, "{what}");
    }
    // It does not limit other memory.
    assert_eq!(answer(vec![mount("tmpfs", Some(50))], DemandKind::Anon), FitAnswer::Fits);
}

#[test]
fn what_wanted_memory_at_once_says_how_much_ram_would_have_held_it() {
    let thrash = || {
        host()
            .counter(PSWPIN, 2000)
            .counter(PSWPOUT, 2000)
            .counter(REFAULT_ANON, 2000)
            .gauge(SWAP_TOTAL, MIB(500))
            .gauge(SWAP_FREE, MIB(300))
            .gauge(MEM_SWAP_CACHED, MIB(20))
            .gauge(MEM_AVAILABLE, MIB(200))
    };
    let wanted = |case: &Case, add| {
        let answer = asked(case, add);
        answer.wanted_at_once.map(|bytes| bytes.get() >> 20)
    };
    // 800 of RAM in use, 200 in swap of which 20 are in RAM as well, and 100 of cache that is used more than once.
    assert_eq!(wanted(&thrash(), None), Some(1080));
    assert_eq!(wanted(&thrash(), Some((50, DemandKind::Anon))), Some(1130));
    // Neither cold swap nor a shortage without swap gives a figure.
    let cold = host().gauge(SWAP_TOTAL, MIB(500)).gauge(SWAP_FREE, MIB(300));
    assert_eq!(wanted(&cold, None), None);
}

#[test]
fn bounds_are_no_wider_than_the_machine() {
    let case = host()
        .gauge(MEM_FREE, MIB(24))
        .gauge(MEM_AVAILABLE, MIB(100))
        .gauge(MEM_ACTIVE_FILE, MIB(20))
        .gauge(MEM_INACTIVE_FILE, MIB(60))
        .counter(REFAULT_FILE, 300_000)
        .counter(PGPGIN, 1200 << 20);
    let answer = asked(&case, None);
    let cache = answer.terms.unwrap().read_cache;
    assert_eq!((cache.how, cache.upper), (How::Refaults, Some(MIB(1000))));
    let least = answer.room.unwrap().least;
    assert!(mib(least.lower) >= Some(-900), "{least:?}");
}

#[test]
fn the_row_of_the_cache_names_what_its_estimate_rests_on() {
    // More is mapped and used more than once than there was of cache at its smallest.
    let case = host()
        .gauge(MEM_ACTIVE_FILE, MIB(300))
        .gauge(MEM_INACTIVE_FILE, MIB(0))
        .gauge(MEM_MAPPED, MIB(100));
    let cache = asked(&case, None).terms.unwrap().read_cache;
    assert_eq!((cache.how, cache.likely), (How::ActiveList, cache.upper));
    assert!(cache.text.starts_with("400 MiB are mapped"), "{}", cache.text);
}

/// A cgroup with a limit of 300 MiB: 120 cannot be dropped, and 100 of its 140 of cache were used more than once. It lies
/// in `/shop`, which has 20 more that cannot be dropped, and a limit of `around` MiB.
fn shop(around: u64) -> Case {
    let group = |case: Case, path: &'static str, max: u64, current: u64| {
        case.gauge_of(Entity::Cgroup, path, CGROUP_MAX, Size::Bytes(MIB(max)))
            .gauge_of(Entity::Cgroup, path, CGROUP_CURRENT, MIB(current))
            .gauge_of(Entity::Cgroup, path, CGROUP_ACTIVE_FILE, MIB(100))
            .gauge_of(Entity::Cgroup, path, CGROUP_INACTIVE_FILE, MIB(40))
            .gauge_of(Entity::Cgroup, path, CGROUP_FILE_MAPPED, MIB(0))
            .gauge_of(Entity::Cgroup, path, CGROUP_FILE_DIRTY, MIB(0))
            .counter_of(Entity::Cgroup, path, CGROUP_REFAULT_FILE, 0)
    };
    let case = group(host(), "/shop/web", 300, 260);
    group(case, "/shop", around, 280)
}

#[test]
fn below_a_limit_the_cache_that_the_cgroup_uses_must_stay() {
    let answer = asked_within("/shop/web", &shop(900), (50, DemandKind::Anon));
    let room = answer.room.as_ref().unwrap();
    // 300 − 120 − 100; with all of its cache 300 − 120 − 140, with none 300 − 120.
    assert_eq!((mib(room.least.likely), mib(room.least.lower)), (Some(80), Some(40)));
    assert_eq!((mib(Some(room.least.upper)), answer.answer), (Some(180), FitAnswer::Fits));
    let limit = answer.terms.unwrap().limit.unwrap();
    assert_eq!((&*limit.limit.path, limit.undroppable), ("/shop/web", MIB(120)));
    // The host has more, and is no limit of another kind.
    assert_eq!(
        answer.limits.iter().map(|limit| limit.kind).collect::<Vec<_>>(),
        [LimitKind::Ram, LimitKind::Cgroup]
    );
}

#[test]
fn where_files_stream_through_a_cgroup_others_stay_only_beside_as_many() {
    let case = shop(900).counter_of(Entity::Cgroup, "/shop/web", CGROUP_EVENTS_MAX, 5);
    let answer = asked_within("/shop/web", &case, (1, DemandKind::Anon));
    // 100 that were used more than once need 200, which is all of the cache and more.
    assert_eq!(mib(answer.room.unwrap().least.likely), Some(40));
    let cache = answer.terms.unwrap().read_cache;
    assert!(cache.text.contains("stay only beside 100 MiB"), "{}", cache.text);
}

#[test]
fn a_limit_around_the_cgroup_that_leaves_less_binds_first() {
    let answer = asked_within("/shop/web", &shop(300), (70, DemandKind::Anon));
    let Some(HeadroomBinding::Chain(limit)) = &answer.binds else { panic!("{:?}", answer.binds) };
    assert_eq!((&*limit.path, limit.limit), ("/shop", MIB(300)));
    // 300 − 140 − 100.
    assert_eq!(mib(answer.room.unwrap().least.likely), Some(60));
    assert_eq!(answer.answer, FitAnswer::DoesNotFit);
}

#[test]
fn where_a_cgroup_was_killed_in_nothing_more_fits_however_much_is_left_since() {
    let killed: Vec<u64> = (0..60).map(|at| u64::from(at >= 10)).collect();
    let case = |path| {
        shop(900)
            .counter_steps_of(Entity::Cgroup, path, CGROUP_EVENTS_OOM_KILL, &killed)
            .counter_steps_of(Entity::Cgroup, path, CGROUP_EVENTS_MAX, &killed)
    };
    let asked = |path, within| asked_within(within, &case(path), (1, DemandKind::Anon));
    let own = asked("/shop/web", "/shop/web");
    assert_eq!((own.answer, own.smallest_ram), (FitAnswer::DoesNotFit, None));
    assert_eq!(own.short[0].rule, "oom-cgroup");
    // It is not the limit of the cgroup around it that was hit.
    let around = asked("/shop/web", "/shop");
    assert_ne!(around.answer, FitAnswer::DoesNotFit, "{:?}", around.remarks);
    assert!(matches!(&around.remarks[0], HeadroomRemark::ShortWithin(_)), "{:?}", around.remarks);
}

#[test]
fn no_limit_around_a_cgroup_leaves_the_hosts_ram() {
    let case = host().gauge_of(Entity::Cgroup, "/free", CGROUP_MAX, Size::Unlimited).gauge_of(
        Entity::Cgroup,
        "/free",
        CGROUP_CURRENT,
        MIB(100),
    );
    let answer = asked_within("/free", &case, (200, DemandKind::Anon));
    assert_eq!(
        (answer.answer, answer.binds),
        (FitAnswer::Fits, Some(HeadroomBinding::Ram(MIB(1000))))
    );
    assert!(matches!(&answer.remarks[0], HeadroomRemark::NoLimitAround(_)), "{:?}", answer.remarks);
}
