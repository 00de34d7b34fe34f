//! Whole comparisons of synthetic hosts; accuracy is checked on recordings.

use proptest::prelude::*;
use timeline::facts::{SWAPPINESS, THP_ENABLED, ZONE_RECLAIM_MODE};
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_MAX, CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_FILE,
    MEM_ANON, MEM_ANON_HUGE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM,
    MEM_TOTAL, PGPGIN, PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSWPIN, PSWPOUT, REFAULT_ANON,
    REFAULT_FILE, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Sample, Stamp};
use units::{Bytes, Limit, Span};

use super::*;
use crate::rules::testing::Case;

fn mib(n: u64) -> Bytes {
    Bytes::from_mib(n)
}

/// A host of 1,000 MiB at rest, with every reading that the rules about movement need.
fn healthy() -> Case {
    host(0)
}

/// The same host, watched for this many seconds.
fn healthy_for(seconds: u64) -> Case {
    host_for(seconds, 0)
}

/// The same host, swapping this many pages a second both ways; if any, it is full of anonymous memory.
fn host(pages: u64) -> Case {
    host_for(30, pages)
}

fn host_for(seconds: u64, pages: u64) -> Case {
    let (stall, anon, free) = if pages > 0 { (600_000, 900, 20) } else { (0, 200, 500) };
    Case::over(seconds)
        .gauge(MEM_TOTAL, mib(1000))
        .gauge(MEM_FREE, mib(free))
        .gauge(MEM_AVAILABLE, mib(free + 10))
        .gauge(MEM_ANON, mib(anon))
        .gauge(MEM_CACHED, mib(40))
        .gauge(MEM_BUFFERS, mib(1))
        .gauge(MEM_SHMEM, mib(1))
        .gauge(SWAP_TOTAL, mib(1000))
        .gauge(SWAP_FREE, mib(if pages > 0 { 500 } else { 1000 }))
        .counter(PSWPIN, pages)
        .counter(PSWPOUT, pages)
        .counter(REFAULT_ANON, pages)
        .counter(REFAULT_FILE, 0)
        .counter(PSI_MEMORY_SOME, stall)
        .counter(PSI_MEMORY_FULL, stall)
        .counter(PGPGIN, 4096)
}

fn compared(before: &Case, after: &Case) -> Comparison {
    before.with(|before| {
        after.with(|after| {
            let judged = |cx: &Evidence<'_>| crate::diagnose(cx.timeline, cx.facts);
            let (old, new) = (judged(before), judged(after));
            compare(
                Compared { timeline: before.timeline, facts: before.facts, diagnosis: &old },
                Compared { timeline: after.timeline, facts: after.facts, diagnosis: &new },
            )
        })
    })
}

/// How the findings of the headline changed.
fn turns(it: &Comparison) -> Vec<Turn> {
    let turn = |one: &Statement| match one {
        Statement::Finding(change) => Some(change.turn()),
        _ => None,
    };
    it.headline.iter().filter_map(turn).collect()
}

fn doubt(it: &Comparison) -> Option<FindingDoubt> {
    it.headline.iter().find_map(|one| match one {
        Statement::Unknown { doubt, .. } => *doubt,
        _ => None,
    })
}

/// By how many MiB the side after uses more, and whether tasks wait for it.
fn used(it: &Comparison) -> Option<(i64, UseWaiting)> {
    it.headline.iter().find_map(|one| match one {
        Statement::Uses(used) => {
            let amount = &used.amounts[0];
            let by = (amount.after? - amount.before?).abs() >> 20;
            Some((if used.is_more { by } else { -by }, used.waiting))
        }
        _ => None,
    })
}

/// What explains the change, where the headline begins with that.
fn explained(it: &Comparison) -> Option<(&str, CauseStrength)> {
    match it.headline.first()? {
        Statement::Explained(cause, facts) => Some((facts[0].name.as_ref(), cause.strength)),
        _ => None,
    }
}

#[test]
fn a_source_against_itself_shows_nothing() {
    let it = compared(&healthy(), &healthy());
    assert_eq!(it.direction, Direction::Same);
    assert!(matches!(it.headline[..], [Statement::Nothing { .. }]), "{:?}", it.headline);
    assert!(it.rates.iter().all(|rate| !rate.is_clear()));
    assert_eq!(it.facts, []);
    assert_eq!(it.basis, [""; 0]);
}

#[test]
fn a_new_disease_is_worse_and_its_end_better() {
    let worse = compared(&healthy(), &host(5000));
    assert_eq!(worse.direction, Direction::Worse, "{:?}", worse.headline);
    assert_eq!(turns(&worse), [Turn::New]);
    assert_eq!(worse.more[0], Statement::Unexplained);
    let better = compared(&host(5000), &healthy());
    assert_eq!(better.direction, Direction::Better, "{:?}", better.headline);
    assert_eq!(turns(&better), [Turn::Gone]);
}

/// Hours of calm, with half a minute of swapping from the hundredth second on.
fn burst_in(seconds: u64) -> Case {
    let steps = |height: u64| -> Vec<u64> {
        let is_burst = |at: &u64| (100..130).contains(at);
        (0..seconds).map(|at| if is_burst(&at) { height } else { 0 }).collect()
    };
    let levels = |ill: u64, well: u64| -> Vec<Bytes> {
        let is_burst = |at: u64| (100..130).contains(&at);
        (0..seconds).map(|at| mib(if is_burst(at) { ill } else { well })).collect()
    };
    Case::over(seconds)
        .gauge(MEM_TOTAL, mib(1000))
        .gauge_steps(MEM_FREE, &levels(20, 500))
        .gauge_steps(MEM_AVAILABLE, &levels(30, 510))
        .gauge_steps(MEM_ANON, &levels(900, 200))
        .gauge(MEM_CACHED, mib(40))
        .gauge(MEM_BUFFERS, mib(1))
        .gauge(MEM_SHMEM, mib(1))
        .gauge(SWAP_TOTAL, mib(1000))
        .gauge_steps(SWAP_FREE, &levels(500, 1000))
        .counter_steps(PSWPIN, &steps(5000))
        .counter_steps(PSWPOUT, &steps(5000))
        .counter_steps(REFAULT_ANON, &steps(5000))
        .counter(REFAULT_FILE, 0)
        .counter_steps(PSI_MEMORY_SOME, &steps(600_000))
        .counter_steps(PSI_MEMORY_FULL, &steps(600_000))
        .counter(PGPGIN, 4096)
}

#[test]
fn a_longer_source_alone_makes_nothing_better_or_worse() {
    // Two hours that contain the same half minute: half a minute cannot show how often it occurs.
    let long = || burst_in(7200);
    for (before, after) in [(host(5000), long()), (long(), host(5000))] {
        let it = compared(&before, &after);
        assert_eq!(it.direction, Direction::Unknown, "{:?}", it.headline);
        let swap = it.findings.iter().find(|f| f.id == "swap-thrash");
        assert_eq!(swap.map(FindingChange::turn), Some(Turn::Unknown));
        let why = DoubtReason::ShortSide(Span::from_secs(30));
        assert_eq!(doubt(&it), Some(FindingDoubt { id: "swap-thrash", why }));
    }
}

#[test]
fn half_a_minute_without_it_does_not_show_that_it_is_gone() {
    for (before, after) in [(healthy(), burst_in(7200)), (burst_in(7200), healthy())] {
        let it = compared(&before, &after);
        assert_eq!(it.direction, Direction::Unknown, "{:?}", it.headline);
        let Some(FindingDoubt { id: "swap-thrash", why }) = doubt(&it) else {
            panic!("{:?}", it.headline)
        };
        let DoubtReason::MayBeMissed { lasted, watched, .. } = why else { panic!("{why:?}") };
        assert_eq!((lasted, watched), (Some(Span::from_secs(30)), Span::from_secs(7200)));
    }
}

#[test]
fn a_source_of_comparable_length_without_it_shows_that_it_is_gone() {
    let (ill, well) = (|| burst_in(7200), || burst_in(100));
    let an_hour = || healthy_for(4000);
    let better = compared(&ill(), &an_hour());
    assert_eq!(better.direction, Direction::Better, "{:?}", better.headline);
    let worse = compared(&an_hour(), &ill());
    assert_eq!(worse.direction, Direction::Worse, "{:?}", worse.headline);
    // A shorter recording does too, where the finding is there nearly all the time.
    let always = compared(&host(5000), &healthy_for(10));
    assert_eq!(always.direction, Direction::Better, "{:?}", always.headline);
    let calm = compared(&healthy(), &well());
    assert_eq!(calm.direction, Direction::Same, "{:?}", calm.headline);
}

#[test]
fn a_longer_source_that_shows_it_nowhere_is_a_cure() {
    let calm = || burst_in(100);
    let better = compared(&host(5000), &calm());
    assert_eq!(better.direction, Direction::Better, "{:?}", better.headline);
    let worse = compared(&calm(), &host(5000));
    assert_eq!(worse.direction, Direction::Worse, "{:?}", worse.headline);
}

#[test]
fn each_side_says_how_often_how_long_and_at_what_cost() {
    let it = compared(&burst_in(7200), &healthy_for(4000));
    let swap = it.findings.iter().find(|f| f.id == "swap-thrash").unwrap();
    let cost = swap.before.as_ref().unwrap().cost;
    assert_eq!(cost.times, 1);
    assert!(cost.lasted.unwrap() >= Span::from_secs(28));
    assert_eq!(cost.watched, Span::from_secs(7200));
    let waited = cost.waited.unwrap().as_secs_f64();
    assert!((15.0..25.0).contains(&waited), "{waited}");
    let an_hour = cost.waited_an_hour().unwrap().as_secs_f64();
    assert!((an_hour - waited / 2.0).abs() < 1e-6, "{an_hour}");
}

/// A healthy host with this much memory in use; tasks wait for memory for `stall` µs of each second.
fn using(mib_used: u64, stall: u64) -> Case {
    healthy()
        .gauge(MEM_FREE, mib(900 - mib_used))
        .gauge(MEM_AVAILABLE, mib(940 - mib_used))
        .gauge(MEM_ANON, mib(mib_used))
        .counter(PSI_MEMORY_SOME, stall)
}

#[test]
fn more_memory_in_use_is_told_with_its_direction_and_is_neither_better_nor_worse() {
    let more = compared(&using(100, 0), &using(400, 0));
    assert_eq!(more.direction, Direction::Different, "{:?}", more.headline);
    assert_eq!(used(&more), Some((300, UseWaiting::NoneAfter)));
    let less = compared(&using(400, 0), &using(100, 0));
    assert_eq!(less.direction, Direction::Different, "{:?}", less.headline);
    assert_eq!(used(&less), Some((-300, UseWaiting::NoneBefore)));
    // Huge pages that replace small ones take no more memory, so their setting does not explain it.
    let small = using(100, 0).gauge(MEM_ANON_HUGE, mib(0));
    let huge = using(100, 0).gauge(MEM_ANON_HUGE, mib(100));
    let full = huge.gauge(MEM_AVAILABLE, mib(700));
    let it = compared(
        &small.fact(THP_ENABLED, "always madvise [never]"),
        &full.fact(THP_ENABLED, "[always] madvise never"),
    );
    assert_eq!(used(&it).map(|(by, _)| by), Some(140));
    let alike = compared(&using(100, 0), &using(110, 0));
    assert_eq!(alike.direction, Direction::Same, "{:?}", alike.headline);
}

#[test]
fn more_waiting_for_memory_is_worse_though_no_rule_finds_anything() {
    let worse = compared(&using(100, 0), &using(100, 70_000));
    assert_eq!(worse.direction, Direction::Worse, "{:?}", worse.headline);
    let Some(Statement::Decides { rate, is_mixed: false }) = worse.headline.first() else {
        panic!("{:?}", worse.headline)
    };
    assert_eq!(rate.name, PSI_MEMORY_SOME.def().name);
    let (before, after) = rate.means().unwrap();
    assert!(before == 0.0 && (after - 0.07).abs() < 1e-9, "{after}");
    let better = compared(&using(100, 70_000), &using(100, 0));
    assert_eq!(better.direction, Direction::Better, "{:?}", better.headline);
}

#[test]
fn a_setting_is_named_on_top_for_the_memory_that_it_took() {
    let small = using(100, 0).gauge(MEM_ANON_HUGE, mib(0));
    let huge = using(400, 0).gauge(MEM_ANON_HUGE, mib(300));
    let it = compared(
        &small.fact(THP_ENABLED, "always madvise [never]"),
        &huge.fact(THP_ENABLED, "[always] madvise never"),
    );
    assert_eq!(it.direction, Direction::Different, "{:?}", it.headline);
    assert_eq!(explained(&it), Some(("thp.enabled", CauseStrength::Explains)));
    assert_eq!(used(&it).map(|(by, _)| by), Some(300));
    let is_apart = |one: &Statement| matches!(one, Statement::Independent(_));
    assert!(!it.more.iter().any(is_apart), "{:?}", it.more);
}

#[test]
fn a_setting_gets_no_word_for_what_it_does_not_bear_on() {
    // Huge pages changed with the setting; the swapping has nothing to do with it.
    let setting = |it: Case, word: &str| it.fact(THP_ENABLED, word);
    let it = compared(
        &setting(healthy().gauge(MEM_ANON_HUGE, mib(180)), "[always] madvise never"),
        &setting(host(5000).gauge(MEM_ANON_HUGE, mib(0)), "always madvise [never]"),
    );
    assert_eq!(it.direction, Direction::Worse, "{:?}", it.headline);
    assert!(matches!(&it.headline[0], Statement::Finding(change) if change.turn() == Turn::New));
    assert!(it.cause.is_none_or(|cause| cause.is_beside));
}

#[test]
fn what_a_setting_does_not_explain_is_told_apart() {
    let it = compared(
        &using(100, 0).gauge(MEM_ANON_HUGE, mib(0)).fact(THP_ENABLED, "always madvise [never]"),
        &using(400, 0).gauge(MEM_ANON_HUGE, mib(40)).fact(THP_ENABLED, "[always] madvise never"),
    );
    assert_eq!(it.direction, Direction::Different, "{:?}", it.headline);
    assert_eq!(used(&it).map(|(by, _)| by), Some(300));
    assert!(it.cause.is_none_or(|cause| cause.is_beside));
}

#[test]
fn a_headline_is_a_statement_or_two() {
    for (before, after) in [
        (healthy(), host(5000)),
        (host(5000), healthy()),
        (host(5000), burst_in(7200)),
        (healthy(), healthy()),
    ] {
        let it = compared(&before, &after);
        assert!((1..=2).contains(&it.headline.len()), "{:?}", it.headline);
    }
}

#[test]
fn of_two_sides_that_are_ill_alike_what_it_costs_decides() {
    let it = compared(&host(5000), &host(20_000));
    assert_eq!(it.direction, Direction::Worse, "{:?}", it.headline);
    assert_eq!(compared(&host(5000), &host(5000)).direction, Direction::Same);
}

#[test]
fn a_setting_that_merely_differs_explains_nothing() {
    let before = healthy().fact(ZONE_RECLAIM_MODE, "0");
    let after = host(5000).fact(ZONE_RECLAIM_MODE, "1");
    let it = compared(&before, &after);
    assert_eq!(it.cause, None);
    assert_eq!(it.facts.len(), 1);
    assert!(!it.facts[0].explains);
}

#[test]
fn a_setting_that_bears_on_the_finding_may_explain_it() {
    let before = healthy().fact(SWAPPINESS, "10");
    let after = host(5000).fact(SWAPPINESS, "200");
    let it = compared(&before, &after);
    let cause = it.cause.unwrap();
    assert_eq!(
        (cause.facts.as_slice(), cause.strength),
        (&[Cow::Borrowed("vm.swappiness")][..], CauseStrength::May)
    );
    assert_eq!(explained(&compared(&before, &after)), Some(("vm.swappiness", CauseStrength::May)));
    assert!(it.facts[0].explains);
}

#[test]
fn a_setting_known_on_one_side_only_explains_nothing() {
    let it = compared(&healthy(), &host(5000).fact(SWAPPINESS, "200"));
    assert_eq!(it.cause, None);
    assert!(!it.facts[0].differs());
}

#[test]
fn huge_pages_under_another_setting_are_explained_by_it() {
    let with = healthy().gauge(MEM_ANON_HUGE, mib(180));
    let without = healthy().gauge(MEM_ANON_HUGE, mib(0));
    let it = compared(
        &without.fact(THP_ENABLED, "always madvise [never]"),
        &with.fact(THP_ENABLED, "[always] madvise never"),
    );
    assert_eq!(it.direction, Direction::Same);
    assert_eq!(explained(&it), Some(("thp.enabled", CauseStrength::Explains)));
    let Some(Statement::Most(parts)) = it.headline.last() else { panic!("{:?}", it.headline) };
    let is_huge =
        |part: &Moved| matches!(part, Moved::Amount(huge) if huge.after == Some(180 << 20));
    assert!(parts.iter().any(is_huge), "{parts:?}");
}

#[test]
fn huge_pages_under_the_same_setting_are_the_programs_choice() {
    let setting = "always [madvise] never";
    let with = healthy().gauge(MEM_ANON_HUGE, mib(180)).fact(THP_ENABLED, setting);
    let without = healthy().gauge(MEM_ANON_HUGE, mib(0)).fact(THP_ENABLED, setting);
    let it = compared(&without, &with);
    let choice = Statement::HugePages { is_more: true, setting: "madvise".to_owned() };
    assert!(it.headline.contains(&choice), "{:?}", it.headline);
}

#[test]
fn what_one_side_could_not_look_for_is_neither_new_nor_gone() {
    let blind = Case::over(30)
        .gauge(MEM_TOTAL, mib(1000))
        .gauge(MEM_FREE, mib(500))
        .gauge(MEM_AVAILABLE, mib(700));
    let it = compared(&host(5000), &blind);
    assert_eq!(it.direction, Direction::Unknown, "{:?}", it.headline);
    let swap = it.findings.iter().find(|f| f.id == "swap-thrash").unwrap();
    assert_eq!(swap.turn(), Turn::Unknown);
    assert!(!turns(&it).contains(&Turn::Gone), "{:?}", it.headline);
    let rate = it.rates.iter().find(|rate| rate.name == "vm.pswpin").unwrap();
    assert_eq!((rate.change(), rate.contrast), (None, None));
}

/// Samples at these seconds of the boot clock; a step back is a reboot. One MiB is read each second.
fn reading(boots: &[u64]) -> Timeline {
    let mut timeline = Timeline::default();
    for (nth, second) in boots.iter().enumerate() {
        let mut sample = Sample::default();
        let wall = i64::try_from(nth * 60).unwrap() * 1_000_000_000;
        sample.stamp = Stamp {
            boot: Span::from_secs(*second),
            awake: None,
            wall: Some(units::WallClock::from_unix_nanos(1_795_000_000_000_000_000 + wall)),
            ..Stamp::default()
        };
        sample.host.set(MEM_TOTAL, mib(1000));
        sample.host.set(MEM_FREE, mib(500));
        sample.host.set(PGPGIN, mib(*second));
        timeline.push(&sample).unwrap();
    }
    timeline
}

fn alone(before: &Timeline, after: &Timeline) -> Comparison {
    let facts = Facts::default();
    let (old, new) = (crate::diagnose(before, &facts), crate::diagnose(after, &facts));
    let side = |timeline, diagnosis| Compared { timeline, facts: &facts, diagnosis };
    let (before, after) = (side(before, &old), side(after, &new));
    compare(before, after)
}

#[test]
fn a_reboot_or_a_gap_within_a_side_is_no_change_of_rates() {
    let steady: Vec<u64> = (1..=20).map(|n| n * 60).collect();
    let mut rebooted = steady.clone();
    rebooted[10..].iter_mut().enumerate().for_each(|(n, t)| *t = 20 + 60 * n as u64);
    let it = alone(&reading(&steady), &reading(&rebooted));
    assert!(it.rates.iter().all(|rate| !rate.is_clear()), "{:?}", it.rates);
    assert!(it.basis.join(" ").contains("a reboot after"), "{:?}", it.basis);
}

#[test]
fn sources_without_anything_are_compared_without_a_panic() {
    let empty = Timeline::default();
    let it = alone(&empty, &empty);
    assert_eq!(it.direction, Direction::Unknown);
    assert!(it.rates.is_empty() && it.memory.amounts.is_empty());
}

/// A host with random levels and counters: samples a second apart, each counter with these steps.
fn any_host(levels: &[u64], steps: &[u64]) -> Case {
    let at = |i: usize| mib(levels.get(i).copied().unwrap_or_default());
    Case::over(steps.len() as u64)
        .gauge(MEM_TOTAL, mib(1000))
        .gauge_steps(MEM_FREE, &[at(0), at(1), at(2)])
        .gauge_steps(MEM_AVAILABLE, &[at(1), at(3)])
        .gauge(MEM_ANON, at(2))
        .gauge(MEM_CACHED, at(4))
        .gauge(SWAP_TOTAL, mib(1000))
        .gauge(SWAP_FREE, at(5))
        .counter_steps(PSWPIN, &steps.iter().map(|step| step % 7).collect::<Vec<_>>())
        .counter_steps(PSWPOUT, steps)
        .counter_steps(REFAULT_ANON, steps)
        .counter_steps(PSI_MEMORY_SOME, steps)
}

fn drawn_host() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    let levels = proptest::collection::vec(0..1200_u64, 6);
    let step = prop_oneof![Just(0), 0..5_000_u64, Just(10_000_000)];
    (levels, proptest::collection::vec(step, 1..40))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_host_shows_it_does_not_differ_from_itself((levels, steps) in drawn_host()) {
        let host = any_host(&levels, &steps);
        let it = compared(&host, &host);
        prop_assert!(matches!(it.direction, Direction::Same | Direction::Unknown));
        prop_assert!(it.rates.iter().all(|rate| !rate.is_clear()));
        prop_assert!(it.rates.iter().all(|rate| rate.contrast.is_none_or(|contrast| contrast.lead == 0.0)));
        prop_assert!(it.memory.amounts.iter().all(|amount| amount.before == amount.after));
        prop_assert!(it.facts.is_empty() && it.cause.is_none());
    }

    #[test]
    fn swapped_sides_tell_the_same_the_other_way_round(one in drawn_host(), other in drawn_host()) {
        let (one, other) = (any_host(&one.0, &one.1), any_host(&other.0, &other.1));
        let (there, back) = (compared(&one, &other), compared(&other, &one));
        for rate in &there.rates {
            let same = back.rates.iter().find(|other| other.name == rate.name).unwrap();
            prop_assert_eq!((&rate.before, &rate.after), (&same.after, &same.before));
            let lead = |it: &RateChange| it.contrast.map(|it| it.lead);
            let sum = lead(rate).zip(lead(same)).map_or(0.0, |(a, b)| a + b);
            prop_assert!(sum.abs() < 1e-9, "{} {sum}", rate.name);
            prop_assert_eq!(rate.is_clear(), same.is_clear());
        }
        prop_assert_eq!(there.memory.amounts.len(), back.memory.amounts.len());
        for amount in &there.memory.amounts {
            let same = back.memory.amounts.iter().find(|other| (other.kind, &other.name) == (amount.kind, &amount.name));
            let same = same.unwrap();
            prop_assert_eq!((amount.before, amount.after), (same.after, same.before));
        }
        // A new pathology that replaces another is worse in either direction; a change cannot be better in both.
        prop_assert!(!(there.direction == Direction::Better && back.direction == Direction::Better));
        prop_assert_eq!(there.direction == Direction::Same, back.direction == Direction::Same);
        // A finding that is certainly new is worse, whatever else is unknown.
        for (one, other) in [(&there, &back), (&back, &there)] {
            if one.direction == Direction::Unknown {
                prop_assert!(matches!(other.direction, Direction::Unknown | Direction::Worse));
            }
        }
    }
}

/// A cgroup with this limit in MiB that reads evicted files again, or does not, on a host at rest.
fn limited(limit: u64, is_starved: bool) -> Case {
    let (pages, stall) = if is_starved { (12_000, 200_000) } else { (0, 0) };
    healthy()
        .gauge_of(Entity::Cgroup, "/web", CGROUP_MAX, Limit::Bytes(mib(limit)))
        .gauge_of(Entity::Cgroup, "/web", CGROUP_CURRENT, mib(if is_starved { limit } else { 60 }))
        .counter_of(Entity::Cgroup, "/web", CGROUP_EVENTS_MAX, pages / 60)
        .counter_of(Entity::Cgroup, "/web", CGROUP_REFAULT_FILE, pages)
        .counter_of(Entity::Cgroup, "/web", CGROUP_PSI_MEMORY_SOME, stall)
}

#[test]
fn a_limit_that_differs_is_named_and_explains_what_the_tighter_one_brings() {
    let it = compared(&limited(64, true), &limited(256, false));
    assert_eq!(it.direction, Direction::Better, "{:?}", it.headline);
    assert_eq!(explained(&it), Some(("limit of /web", CauseStrength::Explains)));
    let fact = &it.facts[0];
    assert_eq!(
        (fact.before.as_deref(), fact.after.as_deref(), fact.explains),
        (Some("64 MiB"), Some("256 MiB"), true)
    );
}

#[test]
fn a_limit_that_is_larger_where_it_is_worse_or_of_another_cgroup_explains_nothing() {
    let it = compared(&limited(64, false), &limited(128, true));
    assert_eq!(it.cause, None);
    assert_eq!((it.facts[0].name.as_ref(), it.facts[0].explains), ("limit of /web", false));
    let other = |case: Case, limit| {
        case.gauge_of(Entity::Cgroup, "/db", CGROUP_MAX, Limit::Bytes(mib(limit)))
    };
    let it = compared(&other(limited(64, true), 100), &other(limited(64, false), 200));
    assert_eq!(it.cause, None);
    assert_eq!(it.facts[0].name, "limit of /db");
    assert_eq!(compared(&limited(64, true), &limited(64, false)).facts, []);
}

#[test]
fn the_limit_of_a_side_is_the_one_that_it_had_for_most_of_the_time() {
    let steps = [vec![Limit::Bytes(mib(64)); 25], vec![Limit::Bytes(mib(256)); 6]].concat();
    let mostly = || healthy().gauge_steps_of(Entity::Cgroup, "/web", CGROUP_MAX, &steps);
    let at =
        |limit| healthy().gauge_of(Entity::Cgroup, "/web", CGROUP_MAX, Limit::Bytes(mib(limit)));
    assert_eq!(compared(&mostly(), &at(64)).facts, []);
    assert_eq!(compared(&mostly(), &at(256)).facts.len(), 1);
}
