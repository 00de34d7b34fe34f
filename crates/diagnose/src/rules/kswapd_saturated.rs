//! kswapd: the kernel's reclaimer works hard and finds little to free.

use timeline::{
    Entity, EntitySeries, Stretch, Track,
    facts::MGLRU,
    signals::{
        PAGEOUTRUN, PGSCAN_KSWAPD, PGSTEAL_KSWAPD, PROC_PARENT, PROC_STIME, PROC_UTIME, ZONE_BOOST,
    },
};
use units::{Count, Pages, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Affected, Computed, Severity};
use crate::fix::Fix;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// kswapd burns CPU looking for memory to free and finds little.
    ///
    /// ## What it means
    /// kswapd is the kernel thread that frees memory in the background. Here it uses half a CPU or more, and most pages
    /// it looks at cannot go: they are in use, mapped, dirty or locked. Allocating tasks will soon have to search too.
    /// ## How it is recognised
    /// A kswapd thread uses 50 % of a CPU or more, sustained, and frees fewer than 30 of 100 pages it looks at.
    /// ## Not this
    /// - `streaming-read`: kswapd is busy, but frees nearly every page it looks at.
    /// - A process of the same name that is not a kernel thread (a known disguise of miners): its parent is not
    ///   kthreadd.
    /// - A temporary boost of the marks after fragmentation: the pages freed are clean cache.
    /// ## What to do
    /// Less demand: cap what grew. Where pages are mapped and hot, the multi-generational LRU judges them better: now
    /// `echo y > /sys/kernel/mm/lru_gen/enabled`, for good through tmpfiles.d. Verify: kswapd below 10 % of a CPU under
    /// the same load.
    /// ## References
    /// - kernel mm/vmscan.c, balance_pgdat
    /// - kernel Documentation/admin-guide/mm/multigen_lru.rst
    pub(crate) RULE = { id: "kswapd-saturated", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice, judged on the labelled captures, November 2026: 20 % at most on calm hosts, also while streaming.
const BUSY: Ratio = Ratio::from_percent(50.0);
/// An engineering choice. Labelled captures: 100 % while streaming, 60 % while mapped files thrash, 20 % while swap thrashes.
const EFFICIENT: Ratio = Ratio::from_percent(30.0);
const HOLD: Span = Span::from_mins(5);
/// kthreadd, the parent of kernel threads.
const KTHREADD: Count = Count::new(2);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let scanned = cx.rate(PGSCAN_KSWAPD)?;
    let freed = cx.rate(PGSTEAL_KSWAPD)?;
    let mut worst: Option<(&EntitySeries, Track<Ratio>, Ratio, Stretch)> = None;
    let mut busiest = Ratio::new(0.0);
    let mut seen = false;
    // Between two readings only a mean is known, which does not show that it held.
    let step = cx.timeline.interval_of(Entity::Process).unwrap_or_default();
    let is_seen_to_hold = |stretch: &Stretch| stretch.lasts() > step.times(1.5);
    for thread in cx
        .timeline
        .entities(Entity::Process)
        .filter(|p| is_kswapd(cx, p))
    {
        let Ok(mut ticks) = cx.rate_of(thread, PROC_STIME) else {
            continue;
        };
        if let Ok(user) = cx.rate_of(thread, PROC_UTIME) {
            ticks = ticks.plus(&user);
        }
        seen = true;
        let cpus = ticks.to_cpus(cx.facts.user_hz());
        if let Some((peak, _)) = cpus.max()
            && peak > busiest
        {
            busiest = peak;
        }
        if let Some((stretch, used)) = cx.held(&cpus.at_least(BUSY), &cpus, HOLD)
            && is_seen_to_hold(&stretch)
            && worst
                .as_ref()
                .is_none_or(|(_, _, _, longest)| stretch.lasts() > longest.lasts())
        {
            worst = Some((thread, cpus, used, stretch));
        }
    }
    if !seen {
        return Err(Missing::because(
            vec![PROC_STIME.def().name],
            Need::File(PROC_STIME.def().file),
        ));
    }
    let Some((thread, cpus, used, stretch)) = worst else {
        return clear!("kswapd used at most {busiest} of a CPU, and not {BUSY} on end");
    };
    let name = &thread.label;
    // Of the pages it looked at, those that it freed.
    let yielded_in = |stretch: &Stretch| {
        let looked_at = scanned.integral_in(stretch);
        (looked_at > 0.0).then(|| Ratio::new(freed.integral_in(stretch) / looked_at))
    };
    let Some(yielded) = yielded_in(&stretch) else {
        return clear!("{name} used {used} of a CPU, but looked at no page");
    };
    if yielded >= EFFICIENT {
        return clear!(
            "{name} used {used} of a CPU, but freed {yielded} of the pages it looked at"
        );
    }
    let held = cx.each_time(stretch, &cpus.at_least(BUSY), HOLD, |again| {
        is_seen_to_hold(again) && yielded_in(again).is_some_and(|it| it < EFFICIENT)
    });

    let stalls = Stalls::during(cx, &stretch);
    let severity = if stalls.any() {
        Severity::Warning
    } else {
        Severity::Info
    };
    let rate = cx.mean_in(&stretch, PGSCAN_KSWAPD, &scanned)?;
    let mut finding = RULE
        .found(
            severity,
            format!(
                "{name} used {used} of a CPU for {} and freed only {yielded} of the pages it looked at: hardly a page can go.",
                held.how_long()
            ),
        )
        .during(held)
        .graph("kswapd's CPU", &cpus)
        .shows_from(PROC_STIME, used, BUSY, None, format!("{name} used {used} of a CPU"))
        .shows_below(
            Computed(PGSTEAL_KSWAPD),
            yielded, EFFICIENT,
            None,
            format!("{rate} looked at, {yielded} of them freed"),
        );
    if let Some(runs) = cx.rate(PAGEOUTRUN).ok().and_then(|r| r.mean_in(&stretch)) {
        finding = finding.shows(PAGEOUTRUN, runs, None, format!("kswapd was woken {runs}"));
    }
    let mut kinds = vec!["kswapd's CPU time", "its low yield"];
    if stalls.any() {
        finding = stalls.shown_in(finding);
        kinds.push("stalls");
    }
    if !boosted(cx, &stretch) {
        finding = finding.not("a boost of the marks", "no zone's marks were raised");
    }
    finding = finding
        .not(
            "streaming-read",
            format!("a stream is freed as fast as it is looked at, not at {yielded}"),
        )
        .cause("The pages it looks at are in use, mapped, dirty or locked.")
        .fix(Fix::cap(
            cx,
            stretch.last,
            "Less demand: cap or stop what grew last.",
        ));
    if cx.number(MGLRU) == Ok(0) {
        finding = finding.fix(Fix::file(
            "Let the multi-generational LRU judge which pages are in use (now 0).",
            "/sys/kernel/mm/lru_gen/enabled",
            "y",
            Some("n"),
        ));
    }
    Ok(finding
        .verify("memtide check --for 1m under the same load: kswapd below 10 % of a CPU")
        .affects([Affected {
            kind: "process",
            name: name.clone(),
            what: format!("{used} of a CPU"),
        }])
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: mm/vmscan.c, balance_pgdat")
        .into())
}

/// A kernel thread of that name; anything can call itself so.
fn is_kswapd(cx: &Evidence<'_>, process: &EntitySeries) -> bool {
    process.label.starts_with("kswapd")
        && cx
            .timeline
            .last_of(process, PROC_PARENT)
            .is_none_or(|parent| parent == KTHREADD)
}

fn boosted(cx: &Evidence<'_>, stretch: &Stretch) -> bool {
    cx.timeline.entities(Entity::Zone).any(|zone| {
        cx.gauge_of(zone, ZONE_BOOST)
            .ok()
            .and_then(|boost| boost.max_in(stretch))
            .is_some_and(|(most, _)| most > Pages::ZERO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, three_times, times};
    use timeline::signals::PSI_MEMORY_SOME;

    const KSWAPD: &str = "77@12";

    fn working(ticks: u64, scanned: u64, freed: u64) -> Case {
        Case::over(30)
            .counter(PGSCAN_KSWAPD, scanned)
            .counter(PGSTEAL_KSWAPD, freed)
            .counter_of(Entity::Process, KSWAPD, PROC_STIME, ticks)
            .gauge_of(Entity::Process, KSWAPD, PROC_PARENT, KTHREADD)
            .named(KSWAPD, "kswapd0")
    }

    #[test]
    fn much_work_for_little_is_found() {
        let finding = found(
            RULE,
            &working(80, 40_000, 4000).counter(PSI_MEMORY_SOME, 300_000),
        );
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.starts_with("kswapd0 used 80 % of a CPU"));
    }

    #[test]
    fn each_time_of_little_yield_is_told_and_honest_work_between_is_not() {
        let case = Case::over(240)
            .counter(PGSCAN_KSWAPD, 40_000)
            .counter_steps(PGSTEAL_KSWAPD, &three_times([4000, 38_000, 4000], 0))
            .counter_steps_of(
                Entity::Process,
                KSWAPD,
                PROC_STIME,
                &three_times([80; 3], 1),
            )
            .gauge_of(Entity::Process, KSWAPD, PROC_PARENT, KTHREADD)
            .named(KSWAPD, "kswapd0");
        let finding = found(RULE, &case);
        assert_eq!(times(&finding), [(0, 40), (200, 240)]);
        assert!(
            finding.title.contains("for up to 40 s at a time"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn it_is_information_while_nobody_waits() {
        let finding = found(RULE, &working(80, 40_000, 4000));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn honest_work_is_clear() {
        clear(RULE, &working(80, 40_000, 38_000));
        clear(RULE, &working(20, 40_000, 4000));
        clear(RULE, &working(80, 0, 0));
    }

    #[test]
    fn a_process_in_disguise_is_not_kswapd() {
        let case =
            working(90, 40_000, 100).gauge_of(Entity::Process, KSWAPD, PROC_PARENT, Count::new(1));
        assert_eq!(not_evaluated(RULE, &case).names, ["proc.stime"]);
    }

    #[test]
    fn needs_process_data_and_the_counters() {
        let no_process = Case::over(30)
            .counter(PGSCAN_KSWAPD, 1)
            .counter(PGSTEAL_KSWAPD, 1);
        assert_eq!(not_evaluated(RULE, &no_process).names, ["proc.stime"]);
        assert_eq!(
            not_evaluated(RULE, &Case::over(30)).names,
            ["vm.pgscan_kswapd"]
        );
    }
}
