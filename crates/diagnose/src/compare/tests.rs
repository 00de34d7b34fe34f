//! Whole comparisons of synthetic hosts; truth is judged on recordings.

use timeline::facts::{SWAPPINESS, THP_ENABLED, ZONE_RECLAIM_MODE};
use timeline::signals::{
    MEM_ANON, MEM_ANON_HUGE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM,
    MEM_TOTAL, PGPGIN, PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSWPIN, PSWPOUT, REFAULT_ANON,
    REFAULT_FILE, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Sample, Stamp};
use units::{Bytes, Span};

use super::*;
use crate::rules::testing::Case;

fn mib(n: u64) -> Bytes {
    Bytes::from_mib(n)
}

/// A host of 1,000 MiB with everything that the rules about movement ask for, at rest.
fn healthy() -> Case {
    host(0)
}

/// The same; full of anonymous memory and swapping where it swaps so many pages a second both ways.
fn host(pages: u64) -> Case {
    let (stall, anon, free) = if pages > 0 {
        (600_000, 900, 20)
    } else {
        (0, 200, 500)
    };
    Case::over(30)
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
                Compared {
                    timeline: before.timeline,
                    facts: before.facts,
                    diagnosis: &old,
                },
                Compared {
                    timeline: after.timeline,
                    facts: after.facts,
                    diagnosis: &new,
                },
            )
        })
    })
}

#[test]
fn a_source_against_itself_shows_nothing() {
    let it = compared(&healthy(), &healthy());
    assert_eq!(it.direction, Direction::Same);
    assert!(
        it.headline.starts_with("Nothing changed"),
        "{}",
        it.headline
    );
    assert!(it.rates.iter().all(|rate| !rate.is_clear()));
    assert_eq!(it.facts, []);
    assert_eq!(it.basis, [""; 0]);
}

#[test]
fn a_new_disease_is_worse_and_its_end_better() {
    let worse = compared(&healthy(), &host(5000));
    assert_eq!(worse.direction, Direction::Worse, "{}", worse.headline);
    assert!(worse.headline.contains("New after: "), "{}", worse.headline);
    assert!(
        worse
            .headline
            .contains("No fact that was recorded explains it.")
    );
    let better = compared(&host(5000), &healthy());
    assert_eq!(better.direction, Direction::Better, "{}", better.headline);
    assert!(
        better.headline.contains("Gone after: "),
        "{}",
        better.headline
    );
}

#[test]
fn of_two_sides_that_are_ill_alike_what_it_costs_decides() {
    let it = compared(&host(5000), &host(20_000));
    assert_eq!(it.direction, Direction::Worse, "{}", it.headline);
    assert_eq!(
        compared(&host(5000), &host(5000)).direction,
        Direction::Same
    );
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
        (cause.facts.as_slice(), cause.sureness),
        (&["vm.swappiness"][..], Sureness::May)
    );
    assert!(
        it.headline
            .starts_with("vm.swappiness may explain it: 10 before, 200 after."),
        "{}",
        it.headline
    );
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
    assert!(
        it.headline
            .starts_with("thp.enabled explains it: never before, always after."),
        "{}",
        it.headline
    );
    assert!(it.headline.contains("180 MiB after"), "{}", it.headline);
}

#[test]
fn huge_pages_under_the_same_setting_are_the_programs_choice() {
    let setting = "always [madvise] never";
    let with = healthy()
        .gauge(MEM_ANON_HUGE, mib(180))
        .fact(THP_ENABLED, setting);
    let without = healthy()
        .gauge(MEM_ANON_HUGE, mib(0))
        .fact(THP_ENABLED, setting);
    let it = compared(&without, &with);
    assert!(
        it.headline
            .contains("the programs' own choice: thp.enabled is madvise on both sides"),
        "{}",
        it.headline
    );
}

#[test]
fn what_one_side_could_not_look_for_is_neither_new_nor_gone() {
    let blind = Case::over(30)
        .gauge(MEM_TOTAL, mib(1000))
        .gauge(MEM_FREE, mib(500))
        .gauge(MEM_AVAILABLE, mib(700));
    let it = compared(&host(5000), &blind);
    assert_eq!(it.direction, Direction::Unknown, "{}", it.headline);
    let swap = it.findings.iter().find(|f| f.id == "swap-thrash").unwrap();
    assert_eq!(swap.turn(), Turn::Unknown);
    assert!(!it.headline.contains("Gone after"), "{}", it.headline);
    let rate = it
        .rates
        .iter()
        .find(|rate| rate.name == "vm.pswpin")
        .unwrap();
    assert_eq!((rate.change(), rate.contrast), (None, None));
}

/// Samples at these seconds of the boot clock; a step back is a reboot. Each second reads a MiB.
fn reading(boots: &[u64]) -> Timeline {
    let mut timeline = Timeline::default();
    for (nth, second) in boots.iter().enumerate() {
        let mut sample = Sample::default();
        let wall = i64::try_from(nth * 60).unwrap() * 1_000_000_000;
        sample.stamp = Stamp {
            boot: Span::from_secs(*second),
            awake: None,
            wall: Some(units::WallClock::from_unix_nanos(
                1_795_000_000_000_000_000 + wall,
            )),
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
    let (old, new) = (
        crate::diagnose(before, &facts),
        crate::diagnose(after, &facts),
    );
    let side = |timeline, diagnosis| Compared {
        timeline,
        facts: &facts,
        diagnosis,
    };
    let (before, after) = (side(before, &old), side(after, &new));
    compare(before, after)
}

#[test]
fn a_reboot_or_a_gap_within_a_side_is_no_change_of_rates() {
    let steady: Vec<u64> = (1..=20).map(|n| n * 60).collect();
    let mut rebooted = steady.clone();
    rebooted[10..]
        .iter_mut()
        .enumerate()
        .for_each(|(n, t)| *t = 20 + 60 * n as u64);
    let it = alone(&reading(&steady), &reading(&rebooted));
    assert!(
        it.rates.iter().all(|rate| !rate.is_clear()),
        "{:?}",
        it.rates
    );
    assert!(
        it.basis.join(" ").contains("a reboot after"),
        "{:?}",
        it.basis
    );
}

#[test]
fn sources_without_anything_are_compared_without_a_panic() {
    let empty = Timeline::default();
    let it = alone(&empty, &empty);
    assert_eq!(it.direction, Direction::Unknown);
    assert!(it.rates.is_empty() && it.memory.amounts.is_empty());
}
