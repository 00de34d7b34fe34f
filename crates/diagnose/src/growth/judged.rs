//! How an owner of memory grows: as its whole series does, or as the line in which it rises at its end. `check` asks the
//! same.

use timeline::Entity;
use timeline::EntitySeries;
use timeline::cgroup::unique_name;
use timeline::signals::{SERVICE_RSS_ANON, SERVICE_SWAP};
use units::{Bytes, Ratio, Span};

use super::owners::{GrowthEnd, GrowthOwner, GrowthOwnerKind, room};
use super::reason::{GrowthAndFall, GrowthReason};
use super::{Growth, GrowthClass};
use crate::evidence::Evidence;
use crate::measures::grew_until::LASTS_MIN;
use crate::measures::readings::{held_by_cgroup, held_by_process};
use crate::measures::rise::Rise;
use crate::measures::steady_growth::SteadyGrowth;
use crate::trigger::{Reading, gauge};

/// A line towards a limit that is far away is one from this time on: an engineering choice, longer than programs load.
pub(crate) const NOTED: Span = Span::from_mins(5);
/// A sum of processes rises steadily if its slope explains this much of its variance: an engineering choice.
const STEADY: f64 = 0.9;
/// A rise was given back where no more than this part of it is left: an engineering choice.
const GIVEN_BACK: Ratio = Ratio::from_percent(50.0);
/// What is left where neither the sum nor one process grows steadily.
const OPEN: Ratio = Ratio::from_percent(30.0);

/// What is judged of an owner, sample by sample.
pub(crate) fn size(kind: GrowthOwnerKind) -> Reading<Bytes> {
    match kind {
        GrowthOwnerKind::Process => held_by_process(),
        GrowthOwnerKind::Cgroup => held_by_cgroup(),
        GrowthOwnerKind::Service => gauge(SERVICE_RSS_ANON).plus([gauge(SERVICE_SWAP)]),
    }
}

/// The line in which an owner rises until the source ends: towards a limit that is near, or for long.
pub(crate) fn late_line(
    cx: &Evidence<'_>,
    kind: GrowthOwnerKind,
    owner: &EntitySeries,
) -> Option<SteadyGrowth> {
    let size = size(kind).track_of(cx, owner).ok()?;
    let growth = SteadyGrowth::of(cx, &size, |_| room(cx, kind, owner))?;
    (growth.limit_in().is_some() || growth.lasted() >= NOTED).then_some(growth)
}

/// Whether an owner belongs in a list of all: one that ended does if it leaked until it was killed, or for long. A command
/// that took memory in a line and ended by itself is no leak.
pub fn is_listed(owner: &GrowthOwner<'_>, growth: &Growth) -> bool {
    let leaked = |end: GrowthEnd| growth.class.leaks() && (end.is_killed || growth.judged >= NOTED);
    owner.ended.is_none_or(leaked)
}

/// Whether an owner leaks, and to the end of the source: not one that ended, or that leaked until an earlier restart or kill.
pub fn leaks_on(owner: &GrowthOwner<'_>, growth: &Growth) -> bool {
    growth.class.leaks() && growth.goes_on && owner.ended.is_none()
}

/// Returns how an owner grows.
pub fn judge(cx: &Evidence<'_>, owner: &GrowthOwner<'_>) -> Growth {
    let mut growth = judge_whole(cx, owner);
    if growth.class == GrowthClass::Flat {
        growth.reasons.extend(rose_and_fell(cx, owner).map(GrowthReason::RoseAndFell));
    }
    growth
}

/// The largest rise of an owner that took longer than programs load, and was given back since.
fn rose_and_fell(cx: &Evidence<'_>, owner: &GrowthOwner<'_>) -> Option<GrowthAndFall> {
    let size = size(owner.kind).track_of(cx, owner.entity).ok()?;
    let now = size.last()?;
    let end = *cx.timeline.times().last()?;
    let is_back = |rise: &Rise| now <= rise.from + rise.by().share(GIVEN_BACK);
    let rises = Rise::of_size(&size, Rise::NOISE).into_iter();
    let grew = rises.filter(|rise| rise.climbs && rise.stretch.duration() >= LASTS_MIN);
    let largest = grew.filter(is_back).max_by_key(Rise::by)?;
    let Rise { from, to, stretch, .. } = largest;
    let ago = end.saturating_sub(stretch.to);
    Some(GrowthAndFall { from, to, took: stretch.duration(), ago })
}

fn judge_whole(cx: &Evidence<'_>, owner: &GrowthOwner<'_>) -> Growth {
    let whole = Growth::of(&owner.series);
    let has_heap = owner.series.points.iter().any(|point| point.live.is_some());
    let is_unit = owner.kind != GrowthOwnerKind::Process;
    // What it leaks now comes before what it leaked until a kill, and before how it lived for hours.
    if is_unit && !has_heap && !leaks_on(owner, &whole) && owner.ended.is_none() {
        let line = late_line(cx, owner.kind, owner.entity);
        if let Some(line) = line.filter(|_| has_leaking_process(cx, owner.entity)) {
            return line.growth;
        }
    }
    if whole.class.leaks() {
        let is_shown = has_heap || !is_unit;
        return if is_shown || is_steady(&whole) || has_leaking_process(cx, owner.entity) {
            whole
        } else {
            no_leak(whole)
        };
    }
    if has_heap || is_unit {
        return whole;
    }
    let line = match owner.ended {
        None => late_line(cx, owner.kind, owner.entity),
        Some(end) => {
            let lasts = if end.is_killed { LASTS_MIN } else { NOTED };
            let size = size(owner.kind).track_of(cx, owner.entity).ok();
            let line = size.and_then(|size| SteadyGrowth::until_its_end(cx, &size));
            line.filter(|line| line.lasted() >= lasts)
        }
    };
    line.map_or(whole, |line| line.growth)
}

fn is_steady(growth: &Growth) -> bool {
    growth.method.slope_r_squared >= STEADY
}

/// Whether one process of a cgroup or a service grows in a line, or none of its processes is known.
fn has_leaking_process(cx: &Evidence<'_>, unit: &EntitySeries) -> bool {
    let own = unique_name(&unit.key);
    let members = cx
        .timeline
        .entities(Entity::Process)
        .filter(|one| one.group == own || one.group == unit.key);
    let mut members = members.peekable();
    if members.peek().is_none() {
        return true;
    }
    members.any(|process| {
        let series = super::process_series(cx, process, 0, cx.timeline.len());
        Growth::of_leak(&series).is_some()
            || late_line(cx, GrowthOwnerKind::Process, process).is_some()
    })
}

/// The answer where the sum rises unevenly and no process of it grows: programs that come and go.
fn no_leak(whole: Growth) -> Growth {
    let mut reasons = whole.reasons;
    reasons.push(GrowthReason::NoProcessGrows);
    Growth {
        class: GrowthClass::Unknown,
        confidence: OPEN,
        rate: None,
        limit_in: None,
        needs: Some(whole.judged),
        reasons,
        ..whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::{owners, owners_such};
    use crate::rule::Rule;
    use crate::rules::testing::{Case, clear, incidents};
    use timeline::signals::{
        CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX,
        MEM_AVAILABLE, MEM_TOTAL, PROC_RSS_ANON,
    };
    use units::{Limit, Quantity as _};

    const APP: &str = "/app";

    fn host(seconds: u64) -> Case {
        Case::over(seconds)
            .gauge(MEM_TOTAL, Bytes::from_gib(24))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(20))
    }

    /// A cgroup with this many MiB of anonymous memory, sample by sample, and kills in these seconds.
    fn app(case: Case, mib: &[u64], kills: &[usize]) -> Case {
        let mut killed = vec![0; mib.len()];
        kills.iter().for_each(|second| killed[*second] = 1);
        let sizes: Vec<Bytes> = mib.iter().map(|mib| Bytes::from_mib(*mib)).collect();
        case.gauge_of(Entity::Cgroup, APP, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(200)))
            .gauge_steps_of(Entity::Cgroup, APP, CGROUP_CURRENT, &sizes)
            .gauge_steps_of(Entity::Cgroup, APP, CGROUP_ANON, &sizes)
            .counter_steps_of(Entity::Cgroup, APP, CGROUP_EVENTS_OOM_KILL, &killed)
            .counter_steps_of(Entity::Cgroup, APP, CGROUP_EVENTS_OOM, &killed)
    }

    /// The class of each owner, its rate in MiB a second, and whether it was killed.
    fn judged(case: &Case) -> Vec<(String, GrowthClass, u64, bool)> {
        case.with(|cx| {
            let judged = owners(cx).into_iter().map(|owner| {
                let growth = judge(cx, &owner);
                let rate = growth.rate.map_or(0.0, |rate| rate.rate.get());
                let is_killed = owner.ended.is_some_and(|end| end.is_killed);
                (
                    owner.name().to_owned(),
                    growth.class,
                    Bytes::from_f64(rate + 524_288.0).get() >> 20,
                    is_killed,
                )
            });
            judged.collect()
        })
    }

    fn class_of(case: &Case, name: &str) -> GrowthClass {
        let all = judged(case);
        all.iter().find(|one| one.0 == name).unwrap_or_else(|| panic!("{name} of {all:?}")).1
    }

    #[test]
    fn what_grew_until_it_was_killed_is_listed_and_found_by_its_pid() {
        let leak: Vec<u64> = (0..=80).map(|n| 20 + n * 2).collect();
        let sizes: Vec<u64> = (0..=120).map(|n| if n <= 80 { 20 + n * 2 } else { 0 }).collect();
        let case = app(host(120), &sizes, &[80]).process_in("app", "29508@1", "python3", &leak);
        // One that lives, so that processes are read to the end.
        let case = case.process_in("", "1@0", "init", &[4; 121]);
        let all = judged(&case);
        assert!(all.contains(&("python3".to_owned(), GrowthClass::Leak, 2, true)), "{all:?}");
        assert!(all.contains(&("app".to_owned(), GrowthClass::Leak, 2, false)), "{all:?}");
        // Nothing grows now.
        let left = case
            .with(|cx| owners(cx).iter().map(|one| judge(cx, one).limit_in).collect::<Vec<_>>());
        assert!(left.iter().all(Option::is_none), "{left:?}");
        let named = case.with(|cx| owners_such(cx, |_, one| one.pid() == "29508").len());
        assert_eq!(named, 1);
    }

    #[test]
    fn a_service_that_is_killed_again_and_again_leaks_and_one_that_collects_does_not() {
        let saw = |n: u64| 20 + n % 60 * 3;
        // The last start is after a minute without any.
        let sizes: Vec<u64> = (0..=460).map(|n| if n <= 360 { saw(n) } else { 0 }).collect();
        let kills: Vec<usize> = (1..7).map(|n| n * 60 - 1).collect();
        assert_eq!(class_of(&app(host(460), &sizes, &kills), "app"), GrowthClass::Leak);
        let collects = app(host(360), &sizes[..360], &[]);
        assert_eq!(class_of(&collects, "app"), GrowthClass::Stationary);
    }

    #[test]
    fn builds_that_come_and_go_are_no_leak() {
        // A few at first, then more of them for a while, then as many as at first.
        let level = |n: u64| 40 + (n * 7919 % 61) + if (60..300).contains(&n) { 60 } else { 0 };
        let sizes: Vec<u64> = (0..=720).map(level).collect();
        let mut case = app(host(720), &sizes, &[]);
        for (n, from) in (0..70_u64).zip((0..).step_by(10)) {
            let mib = 30 + n * 31 % 90;
            let samples = from..from + 8;
            let key = format!("{}@{n}", 100 + n);
            case = case
                .gauge_within_of(
                    Entity::Process,
                    &key,
                    samples.clone(),
                    PROC_RSS_ANON,
                    Bytes::from_mib(mib),
                )
                .named_within(&key, samples, "cc1");
        }
        let all = judged(&case);
        assert!(all.iter().all(|one| !one.1.leaks()), "{all:?}");
    }

    #[test]
    fn a_sum_that_rises_unevenly_leaks_only_if_a_process_of_it_grows() {
        let noise = |n: u64| n * 7919 % 61;
        let sum: Vec<u64> = (0..=400).map(|n| 60 + n / 8 + noise(n) * 2).collect();
        let flat: Vec<u64> = (0..=400).map(|n| 10 + noise(n) / 20).collect();
        let grows: Vec<u64> = (0..=400).map(|n| 20 + n / 8).collect();
        let of = |mib: &[u64]| app(host(400), &sum, &[]).process_in("app", "7@1", "web", mib);
        assert_ne!(class_of(&of(&flat), "app"), GrowthClass::Leak);
        assert_eq!(class_of(&of(&grows), "app"), GrowthClass::Leak);
    }

    /// As a day that was made: one cgroup leaks until it is killed and stays, another begins to leak at the end of it.
    #[test]
    fn a_cgroup_that_began_to_leak_leaks_on_and_one_that_was_killed_does_not() {
        let ledger: Vec<u64> = (0..=1_200).map(|n| if n <= 90 { 10 + n * 2 } else { 0 }).collect();
        let api = |n: u64| if n <= 1_060 { 1 } else { 1 + (n - 1_060) * 2 };
        let api: Vec<u64> = (0..=1_200).map(api).collect();
        let sizes: Vec<Bytes> = api.iter().map(|mib| Bytes::from_mib(*mib)).collect();
        let limit = Limit::Bytes(Bytes::from_mib(400));
        let case = app(host(1_200), &ledger, &[90])
            .gauge_of(Entity::Cgroup, "/api", CGROUP_MAX, limit)
            .gauge_steps_of(Entity::Cgroup, "/api", CGROUP_CURRENT, &sizes)
            .gauge_steps_of(Entity::Cgroup, "/api", CGROUP_ANON, &sizes)
            .process_in("api", "7@1", "python3", &api);
        let leaking: Vec<_> = case.with(|cx| {
            let all = owners(cx).into_iter().map(|one| (one.name().to_owned(), one));
            all.map(|(name, one)| (name, judge(cx, &one), one))
                .filter(|(_, growth, _)| growth.class.leaks())
                .map(|(name, growth, one)| (name, leaks_on(&one, &growth), growth.limit_in))
                .collect()
        });
        let of = |name: &str| leaking.iter().find(|one| one.0 == name).unwrap();
        assert!(!of("app").1 && of("app").2.is_none(), "{leaking:?}");
        assert!(of("api").1, "{leaking:?}");
        let left = of("api").2.map(Span::as_secs_f64);
        assert!(left.is_some_and(|left| (55.0..65.0).contains(&left)), "{left:?}");
    }

    #[test]
    fn what_grew_within_the_time_and_gave_it_back_is_flat_and_says_so() {
        let reason = |mib: fn(u64) -> u64| {
            let sizes: Vec<u64> = (0..=800).map(mib).collect();
            let case = app(host(800), &sizes, &[]);
            case.with(|cx| {
                let owner = owners_such(cx, |_, one| one.key == APP).remove(0);
                let growth = judge(cx, &owner);
                assert_eq!(growth.class, GrowthClass::Flat, "{growth:?}");
                growth.reasons.into_iter().find_map(|reason| match reason {
                    GrowthReason::RoseAndFell(rose) => Some(rose),
                    _ => None,
                })
            })
        };
        // 3 MiB a second for 50 s, and again for 40 s.
        let rose = reason(|n| match n {
            20..=70 => 2 + (n - 20) * 3,
            620..=660 => 2 + (n - 620) * 3,
            _ => 2,
        });
        let GrowthAndFall { from, to, took, ago } = rose.unwrap();
        assert!(from <= Bytes::from_mib(12) && to == Bytes::from_mib(152), "{rose:?}");
        assert!((40.0..52.0).contains(&took.as_secs_f64()), "{took}");
        assert!((725.0..740.0).contains(&ago.as_secs_f64()), "{ago}");
        assert_eq!(reason(|_| 40), None);
        // A program that loads and ends.
        assert_eq!(reason(|n| if (100..110).contains(&n) { 100 } else { 2 }), None);
    }

    fn leak_rule() -> Rule {
        *crate::rules::by_id("process-leak").unwrap()
    }

    #[test]
    fn a_late_leak_is_one_for_both_answers() {
        // An hour flat, then 1 MiB a second for nine minutes.
        let late = |n: u64| 100 + n.saturating_sub(3_600) + n % 3;
        let sizes: Vec<u64> = (0..=4_140).map(late).collect();
        let case = host(4_140).process_in("", "7@1", "python3", &sizes);
        assert_eq!(class_of(&case, "python3"), GrowthClass::Leak);
        let found = incidents(leak_rule(), &case);
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(finding.severity, crate::Severity::Info);
        assert!(finding.title.contains("its limit would be met in"), "{}", finding.title);
        // As long, and then it stands.
        let warm = |n: u64| 100 + n.saturating_sub(3_000).min(540) + n % 3;
        let sizes: Vec<u64> = (0..=4_140).map(warm).collect();
        let case = host(4_140).process_in("", "7@1", "python3", &sizes);
        assert_ne!(class_of(&case, "python3"), GrowthClass::Leak);
        clear(leak_rule(), &case);
    }
}
