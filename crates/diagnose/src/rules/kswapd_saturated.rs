//! kswapd, the background reclaimer, uses much CPU and reclaims little.

use timeline::facts::MGLRU;
use timeline::signals::{
    PAGEOUTRUN, PGSCAN_KSWAPD, PGSTEAL_KSWAPD, PROC_CPU, PROC_STIME, ZONE_BOOST,
};

use crate::measures::kernel_threads::{self, KSWAPD, kswapd_cpu, kswapd_cpu_in_top};
use crate::prelude::*;

declare_rule! {
    /// kswapd burns CPU looking for pages to reclaim and finds few.
    ///
    /// ## What it means
    /// kswapd is the kernel thread that reclaims memory in the background. Here it uses half a CPU or more, and cannot
    /// reclaim most of the pages it scans: they are in use, mapped, dirty or locked. Allocating tasks will soon have to
    /// reclaim too.
    /// ## How it is recognised
    /// For {STALL} or longer, a kswapd thread uses {KSWAPD_CPU_BUSY} of a CPU or more and reclaims at most {EFFICIENT}
    /// of the pages it scans. Where only `top` shows it, {KSWAPD_CPU_FULL} of a CPU count, and whether it reclaims
    /// pages is open.
    /// ## Not this
    /// - `streaming-read`: kswapd is busy, but reclaims nearly every page it scans.
    /// - A process of the same name that is not a kernel thread (a known disguise of miners): its parent is not
    ///   kthreadd.
    /// - `watermark-boost`: kswapd works for a temporary boost after fragmentation; the reclaimed pages are clean
    ///   cache.
    /// - `kswapd-stuck`: kswapd is busy and scans hardly a page.
    /// ## What to do
    /// Reduce demand: cap what grew. If pages are mapped and hot, the multi-generational LRU ages them better: now
    /// `echo y > /sys/kernel/mm/lru_gen/enabled`, for good through tmpfiles.d. Verify: kswapd below
    /// {kernel_threads::CPU_GOAL} of a CPU under the same load.
    /// ## References
    /// - kernel mm/vmscan.c, balance_pgdat
    /// - kernel Documentation/admin-guide/mm/multigen_lru.rst
    pub(crate) RULE = {
        id: "kswapd-saturated", since: "0.1.0", class: Scarcity,
        numbers: [STALL, KSWAPD_CPU_BUSY, EFFICIENT, KSWAPD_CPU_FULL, kernel_threads::CPU_GOAL],
        trigger: trigger, waits: Memory, story: story,
        cause: "The pages that kswapd scans are in use, mapped, dirty or locked.",
        verify: "memtide check --for 1m under the same load: kswapd below \
                 {kernel_threads::CPU_GOAL} of a CPU",
    }
}

/// An engineering choice, checked on the labelled captures, November 2026: 20 % at most on calm hosts, also while
/// streaming.
const KSWAPD_CPU_BUSY: Ratio = Ratio::from_percent(50.0);
/// An engineering choice. Labelled captures: 100 % while streaming, 60 % while mapped files thrash, 20 % while swap
/// thrashes.
const EFFICIENT: Ratio = Ratio::from_percent(30.0);
/// Without the counters of reclaim, so that it is informational: nearly half of two CPUs, as busybox prints one that is
/// busy. An engineering choice.
const KSWAPD_CPU_FULL: Ratio = Ratio::from_percent(45.0);

fn trigger() -> Trigger {
    let scanned = rate(PGSCAN_KSWAPD);
    let freed = rate(PGSTEAL_KSWAPD);
    let finds_little = all![
        scanned.clone().at_least("scanned by kswapd", PressureWindow::SCANNED),
        freed.at_most_of(&scanned, "share of scanned pages that kswapd reclaimed", EFFICIENT.get()),
        kswapd_cpu().at_least("kswapd's CPU", KSWAPD_CPU_BUSY),
    ];
    let is_full = kswapd_cpu_in_top().at_least("kswapd's CPU in top", KSWAPD_CPU_FULL);
    Trigger::on_host(STALL, any![finds_little, is_full])
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let (Ok(scanned), Ok(freed)) = (cx.rate(PGSCAN_KSWAPD), cx.rate(PGSTEAL_KSWAPD)) else {
        return in_top(cx, stretch);
    };
    let Some((thread, cpus)) = kernel_threads::busiest_in(cx, KSWAPD, stretch) else {
        return in_top(cx, stretch);
    };
    let name = &thread.label;
    let used = cx.mean_in(stretch, PROC_STIME, &cpus)?;
    let rate = cx.mean_in(stretch, PGSCAN_KSWAPD, &scanned)?;
    // The share of scanned pages that it reclaimed.
    let yielded = Ratio::new(freed.integral_in(stretch) / scanned.integral_in(stretch).max(1.0));
    if yielded >= EFFICIENT {
        return clear!("{name} used {used} of a CPU, but reclaimed {yielded} of the scanned pages");
    }
    let stalls = PressureWindow::during(cx, stretch);
    let title = format!(
        "{name} used {used} of a CPU for {} and reclaimed only {yielded} of the pages it scanned.",
        stretch.duration()
    );
    let why_no_stream =
        format!("kswapd reclaims nearly all scanned pages of a stream, not {yielded}");
    let low_yield = format!("kswapd scanned {rate} and reclaimed {yielded} of them");
    let finding = RULE
        .found(Severity::warning_if(stalls.any()), title)
        .graph("kswapd's CPU", &cpus)
        .shows_from(PROC_STIME, used, KSWAPD_CPU_BUSY, None, format!("{name} used {used} of a CPU"))
        .counts_as("kswapd's CPU time")
        .shows_below(Computed(PGSTEAL_KSWAPD), yielded, EFFICIENT, None, low_yield)
        .counts_as("its low reclaim yield")
        .when(stalls.any(), |finding| finding.shows_stalls(&stalls));
    Ok(with_circumstances(cx, stretch, finding)
        .not("streaming-read", why_no_stream)
        .affects([Affected::new("process", name, format!("{used} of a CPU"))])
        .sure_by_kinds(cx, "")
        .into())
}

/// The answer where `top` alone shows kswapd.
fn in_top(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Outcome, Missing> {
    let Some((thread, used)) = kernel_threads::busiest_in_top(cx, stretch) else {
        return clear!("kswapd was not measured");
    };
    let name = &thread.label;
    let title = format!("{name} uses {used} of a CPU; how much it reclaims is not shown.");
    let open = "pgscan_kswapd and pgsteal_kswapd of two readings of /proc/vmstat would show \
                whether it finds pages";
    Ok(RULE
        .found(Severity::Info, title)
        .shows_from(
            Computed(PROC_CPU),
            used,
            KSWAPD_CPU_FULL,
            None,
            format!("{name} used {used} of a CPU"),
        )
        .counts_as("kswapd's CPU time")
        .fix(Fix::say("See whether it reclaims pages, and how much memory is available.").inspect(
            "grep -E 'kswapd|available' /proc/vmstat /proc/meminfo; sleep 10; grep kswapd \
             /proc/vmstat",
        ))
        .fix(Fix::cap(cx, stretch.last, "Reduce demand: cap or stop what grew last."))
        .affects([Affected::new("process", name, format!("{used} of a CPU"))])
        .sure_by_kinds(cx, open)
        .into())
}

/// Adds how often it was woken, whether watermarks were boosted, and the fixes.
fn with_circumstances(cx: &Evidence<'_>, stretch: &Stretch, finding: Finding) -> Finding {
    let what = "Reduce demand: cap or stop what grew last.";
    let finding = finding
        .shows_mean(cx, PAGEOUTRUN, stretch, |runs| format!("kswapd was woken {runs}"))
        .when(boosted(cx, stretch) == Some(false), |finding| {
            finding.not("a boost of the watermarks", "no zone's watermarks were boosted")
        })
        .fix(Fix::cap(cx, stretch.last, what));
    match cx.number(MGLRU) {
        Ok(0) => finding.fix(Fix::file(
            "Switch on the multi-generational LRU, which finds unused pages better (now 0).",
            MGLRU,
            "y",
            Some("n"),
        )),
        _ => finding,
    }
}

/// Whether a zone's watermarks were boosted; `None` where that was not measured.
fn boosted(cx: &Evidence<'_>, stretch: &Stretch) -> Option<bool> {
    let zones = cx.timeline.entities(Entity::Zone);
    let boosts = zones.filter_map(|zone| {
        let boost = cx.gauge_of(zone, ZONE_BOOST).ok()?;
        Some(boost.max_in(stretch)?.0)
    });
    boosts.max().map(|most| most > Pages::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::kernel_threads::KTHREADD;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{PROC_PARENT, PSI_MEMORY_SOME};

    const THREAD: &str = "77@12";

    fn working(ticks: u64, scanned: u64, freed: u64) -> Case {
        Case::over(30)
            .counter(PGSCAN_KSWAPD, scanned)
            .counter(PGSTEAL_KSWAPD, freed)
            .counter_of(Entity::Process, THREAD, PROC_STIME, ticks)
            .gauge_of(Entity::Process, THREAD, PROC_PARENT, KTHREADD)
            .named(THREAD, "kswapd0")
    }

    #[test]
    fn much_cpu_and_few_reclaimed_pages_are_found() {
        let finding = found(RULE, &working(80, 40_000, 4000).counter(PSI_MEMORY_SOME, 300_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.starts_with("kswapd0 used 80 % of a CPU"));
    }

    #[test]
    fn each_occurrence_of_low_yield_is_reported() {
        let case = Case::over(240)
            .counter(PGSCAN_KSWAPD, 40_000)
            .counter_steps(PGSTEAL_KSWAPD, &three_times([4000, 38_000, 4000], 0))
            .counter_steps_of(Entity::Process, THREAD, PROC_STIME, &three_times([80; 3], 1))
            .gauge_of(Entity::Process, THREAD, PROC_PARENT, KTHREADD)
            .named(THREAD, "kswapd0");
        let finding = found(RULE, &case);
        assert_eq!(times(&finding), [(0, 40), (200, 240)]);
        assert!(finding.title.contains("for 40 s"), "{}", finding.title);
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_a_stream() {
        let in_an_hour = |freed| {
            Case::over(3600)
                .counter_steps(PGSCAN_KSWAPD, &amid_calm(40_000, 0))
                .counter_steps(PGSTEAL_KSWAPD, &amid_calm(freed, 0))
                .counter_steps_of(Entity::Process, THREAD, PROC_STIME, &amid_calm(80, 0))
                .gauge_of(Entity::Process, THREAD, PROC_PARENT, KTHREADD)
                .named(THREAD, "kswapd0")
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(300_000, 0))
        };
        let finding = found(RULE, &in_an_hour(4000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1800, 1830)]);
        clear(RULE, &in_an_hour(39_000));
    }

    #[test]
    fn informational_while_no_task_waits() {
        let finding = found(RULE, &working(80, 40_000, 4000));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn clear_when_kswapd_reclaims_what_it_scans() {
        clear(RULE, &working(80, 40_000, 38_000));
        clear(RULE, &working(20, 40_000, 4000));
        clear(RULE, &working(80, 0, 0));
    }

    #[test]
    fn clear_when_a_user_process_calls_itself_kswapd() {
        let case =
            working(90, 40_000, 100).gauge_of(Entity::Process, THREAD, PROC_PARENT, Count::new(1));
        assert_eq!(not_evaluated(RULE, &case).names, ["proc.stime"]);
    }

    /// What `top` shows of kswapd.
    fn in_top(percent: u64) -> Case {
        use timeline::signals::PROC_CPU;
        use units::Micros;
        Case::once()
            .gauge_of(Entity::Process, THREAD, PROC_CPU, Micros::new(percent * 10_000))
            .named(THREAD, "kswapd0")
    }

    #[test]
    fn a_busy_kswapd_in_top_is_informational() {
        let finding = found(RULE, &in_top(100));
        assert_eq!(finding.severity, Severity::Info);
        assert_ne!(finding.confidence.word(), "confirmed");
        found(RULE, &in_top(50));
        clear(RULE, &in_top(40));
    }

    #[test]
    fn not_evaluated_without_processes_or_counters() {
        let no_process = Case::over(30).counter(PGSCAN_KSWAPD, 10).counter(PGSTEAL_KSWAPD, 1);
        assert_eq!(not_evaluated(RULE, &no_process).names, ["proc.stime"]);
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["vm.pgscan_kswapd"]);
    }
}
