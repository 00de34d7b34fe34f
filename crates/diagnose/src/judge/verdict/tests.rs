use super::*;
use crate::rules::testing::Case;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_MAX, CGROUP_PSI_MEMORY_SOME_AVG60, MEM_AVAILABLE, MEM_BUFFERS,
    MEM_CACHED, MEM_FREE, NODE_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSI_MEMORY_SOME_AVG60,
    PSI_MEMORY_SOME_AVG300, PSWPIN, REFAULT_FILE, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Entity, Facts, Sample, Timeline};
use units::{Limit, Micros};

/// The verdict without findings.
fn judged(cx: &Evidence<'_>) -> Verdict {
    Verdict::from_findings(cx, cx.recorded(), &mut [])
}

/// The verdict on one sample of a host with these sizes in MiB.
fn one_sample(total: u64, free: u64, available: u64, swapped: u64) -> Verdict {
    let mut sample = Sample::at(Span::ZERO);
    sample.host.set(MEM_TOTAL, Bytes::from_mib(total));
    sample.host.set(MEM_FREE, Bytes::from_mib(free));
    sample.host.set(MEM_AVAILABLE, Bytes::from_mib(available));
    sample.host.set(SWAP_TOTAL, Bytes::from_mib(20_480));
    sample.host.set(SWAP_FREE, Bytes::from_mib(20_480 - swapped));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let facts = Facts::default();
    judged(&Evidence::new(&timeline, &facts))
}

#[test]
fn free_memory_on_the_floor_is_not_headroom() {
    let verdict = one_sample(80_429, 579, 9_662, 1_402);
    assert_eq!(verdict.level, Level::Unknown);
    assert!(verdict.headline.contains("headroom seems small"));
    assert!(verdict.remarks[0].contains("is not headroom"), "{:?}", verdict.remarks);
}

#[test]
fn one_sample_of_a_host_with_headroom_is_still_unknown() {
    let verdict = one_sample(80_429, 40_000, 60_000, 0);
    assert_eq!(verdict.level, Level::Unknown);
    assert!(!verdict.headline.contains("headroom"));
}

#[test]
fn a_large_cache_beside_some_swap_is_no_small_headroom() {
    let verdict = one_sample(80_429, 579, 70_000, 400);
    assert!(!verdict.headline.contains("headroom"), "{}", verdict.headline);
}

#[test]
fn a_mebibyte_in_swap_is_no_sign_of_small_headroom() {
    let headline = |swapped| one_sample(47_104, 554, 20_254, swapped).headline;
    assert!(!headline(1).contains("headroom"), "{}", headline(1));
    assert!(headline(2_000).contains("headroom seems small"), "{}", headline(2_000));
}

#[test]
fn without_refaults_normal_levels_are_not_called_enough() {
    let watched = || Case::over(20).gauge(MEM_TOTAL, Bytes::from_gib(8));
    assert_eq!(unjudged(&watched()).level, Level::Unknown);
    let seeing = watched().counter(timeline::signals::REFAULT_FILE, 0);
    assert_eq!(unjudged(&seeing).level, Level::Ok);
}

#[test]
fn stalls_that_no_finding_explains_are_not_called_enough() {
    let mut timeline = Timeline::default();
    for t in 0..30 {
        let mut sample = Sample::at(Span::from_secs(t));
        sample.host.set(MEM_TOTAL, Bytes::from_gib(8));
        sample.host.set(PSI_MEMORY_SOME, units::Micros::new(t * 900_000));
        timeline.push(&sample).unwrap();
    }
    let facts = Facts::default();
    let verdict = crate::diagnose(&timeline, &facts).verdict;
    assert_eq!(verdict.level, Level::Unknown);
    assert!(verdict.headline.contains("90 % of the time"), "{}", verdict.headline);
}

#[test]
fn a_kernel_report_is_an_event_and_not_a_sample_of_levels() {
    let mut sample = Sample::at(Span::ZERO);
    sample.host.set(MEM_TOTAL, Bytes::from_gib(8));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let crate::oom::testing::Report(report) = crate::oom::testing::Report::of_a_host();
    timeline.report(report, None);
    let facts = Facts::default();
    let verdict = judged(&Evidence::new(&timeline, &facts));
    assert!(verdict.headline.contains("doxygen"), "{}", verdict.headline);
    assert!(verdict.remarks.is_empty(), "{:?}", verdict.remarks);
}

#[test]
fn one_sample_of_an_old_kernel_has_an_upper_bound() {
    let mut sample = Sample::at(Span::ZERO);
    for (signal, mib) in [(MEM_TOTAL, 3994), (MEM_FREE, 378), (MEM_CACHED, 2274)] {
        sample.host.set(signal, Bytes::from_mib(mib));
    }
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let facts = Facts::default();
    let verdict = judged(&Evidence::new(&timeline, &facts));
    assert!(verdict.remarks[1].starts_with("available: not measured."), "{:?}", verdict.remarks);
}

#[test]
fn swap_traffic_is_reported_without_the_size_of_ram() {
    let blind = unjudged(&Case::over(20)).headline;
    assert!(blind.starts_with("Whether memory is enough"), "{blind}");
    let quiet = Case::over(20).counter(timeline::signals::PSWPIN, 0);
    let quiet = unjudged(&quiet).headline;
    assert!(quiet.starts_with("No sustained swapping"), "{quiet}");
}

/// The verdict on a case without findings.
fn unjudged(case: &Case) -> Verdict {
    case.with(judged)
}

#[test]
fn a_wait_of_seconds_is_mentioned_without_a_finding() {
    let verdict = |peak: u64| {
        let mut waited = vec![0; 3600];
        waited[1800..1804].fill(peak);
        let case = Case::over(3600)
            .gauge(MEM_TOTAL, Bytes::from_gib(8))
            .counter(PSWPIN, 0)
            .counter(REFAULT_FILE, 0)
            .counter_steps(PSI_MEMORY_SOME, &waited)
            .counter_steps(PSI_MEMORY_FULL, &waited);
        unjudged(&case)
    };
    let (calm, burst) = (verdict(20_000), verdict(900_000));
    assert_eq!((calm.level, burst.level), (Level::Ok, Level::Ok));
    assert_eq!(calm.headline, "Memory is enough, and nothing waits for it.");
    assert_eq!(
        burst.headline,
        "Memory is enough, and nothing waited for it for long: at worst all tasks stalled for 3.6 \
         s within 4 s."
    );
}

#[test]
fn pressure_averages_count_where_no_stall_was_measured() {
    let waited = |case: Case| case.gauge(PSI_MEMORY_SOME_AVG300, Micros::new(699_100));
    for case in [Case::once(), Case::over(30), Case::over(30).gauge(MEM_TOTAL, Bytes::from_gib(8))]
    {
        let verdict = unjudged(&waited(case));
        assert_eq!(verdict.level, Level::Warning);
        assert!(verdict.headline.contains("70 % of the last 5 minutes"), "{}", verdict.headline);
    }
    let group = Case::once().gauge_of(
        Entity::Cgroup,
        "/app",
        CGROUP_PSI_MEMORY_SOME_AVG60,
        Micros::new(850_000),
    );
    assert!(unjudged(&group).headline.contains("cgroup /app"));
}

#[test]
fn nothing_waits_needs_measured_stalls() {
    let calm = || Case::over(30).gauge(MEM_TOTAL, Bytes::from_gib(8)).counter(REFAULT_FILE, 0);
    let headline = |case: Case| unjudged(&case).headline;
    assert!(headline(calm().counter(PSI_MEMORY_SOME, 0)).contains("nothing waits"));
    // A node's total does not measure waiting.
    let one = calm().gauge_until_of(Entity::Node, "0", NODE_TOTAL, &[Bytes::ZERO]);
    assert!(headline(one).contains("as far as measured"));
    let averages = calm().gauge(PSI_MEMORY_SOME_AVG60, Micros::new(0));
    assert!(headline(averages).contains("in the last minute"));
}

#[test]
fn seconds_without_refaults_are_not_enough() {
    let vmstat = |seconds| {
        let ram = Case::over(seconds).gauge(MEM_TOTAL, Bytes::from_gib(8));
        ram.counter(timeline::signals::PSWPIN, 0)
    };
    assert_eq!(unjudged(&vmstat(5)).level, Level::Unknown);
    let verdict = unjudged(&vmstat(10));
    assert_eq!(verdict.level, Level::Ok);
    assert!(verdict.headline.contains("refaults"), "{}", verdict.headline);
    assert_eq!(unjudged(&vmstat(5).counter(REFAULT_FILE, 0)).level, Level::Ok);
}

#[test]
fn samples_of_two_machines_are_recognised() {
    let sizes = |mib: [u64; 2]| two_machines(mib.map(Bytes::from_mib).into_iter());
    assert!(sizes([8000, 24_105]).unwrap().contains("two machines"));
    assert_eq!(sizes([7168, 7957]), None);
}

#[test]
fn rounded_figures_are_marked() {
    let mut sample = Sample::at(Span::ZERO);
    sample.host.set(MEM_TOTAL, Bytes::from_gib(23));
    sample.host.set(MEM_FREE, Bytes::ZERO);
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    timeline.note_rounding(MEM_FREE.id(), Bytes::from_gib(1).get());
    let facts = Facts::default();
    let remarks = judged(&Evidence::new(&timeline, &facts)).remarks;
    assert!(remarks[0].starts_with("free: less than 1 GiB (rounded)"), "{remarks:?}");
}

#[test]
fn without_meminfo_there_is_no_answer() {
    let (timeline, facts) = (Timeline::default(), Facts::default());
    let verdict = judged(&Evidence::new(&timeline, &facts));
    assert_eq!(verdict.level, Level::Unknown);
    assert!(verdict.headline.contains("no reading of a host's memory"));
    // Nothing was read, so nothing is proved to be absent.
    let diagnosis = crate::diagnose(&timeline, &facts);
    assert!(diagnosis.clear.is_empty(), "{:?}", diagnosis.clear);
    assert_eq!(diagnosis.not_evaluated.len(), crate::rules::ALL.len());
}

#[test]
fn a_text_without_readings_is_answered_by_what_it_is() {
    let judged = || crate::diagnose(&Timeline::default(), &Facts::default());
    let of_php = judged().of_text_without_readings(&["PHP's own limit (memory_limit), not used"]);
    let headline = of_php.verdict.headline;
    assert!(headline.ends_with("Recognised: PHP's own limit (memory_limit)."), "{headline}");
    let of_mac = judged().of_another_system("macOS");
    assert!(of_mac.verdict.headline.contains("output of macOS"));
    // /proc/meminfo is asked for on Linux only.
    assert!(of_mac.next.is_empty());
}

#[test]
fn no_remark_gives_a_share_of_more_than_the_whole() {
    let mut sample = Sample::at(Span::ZERO);
    sample.host.set(MEM_TOTAL, Bytes::from_gib(2));
    sample.host.set(MEM_FREE, Bytes::from_gib(1));
    sample.host.set(MEM_BUFFERS, Bytes::from_gib(1));
    sample.host.set(MEM_CACHED, Bytes::from_gib(1));
    let row = sample.table_mut(Entity::Cgroup).entry("/");
    row.row.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(100)));
    row.row.set(CGROUP_CURRENT, Bytes::from_mib(900));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let remarks = judged(&Evidence::new(&timeline, &Facts::default())).remarks.concat();
    assert!(remarks.contains("900 MiB, more than its limit of 100 MiB"), "{remarks}");
    assert!(remarks.contains("2 GiB (100 %)"), "{remarks}");
}
