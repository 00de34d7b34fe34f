//! Compaction stalls: tasks move pages to make a large free block, and most attempts fail.

use timeline::facts::{
    COMPACTION_PROACTIVENESS, THP_DEFRAG, THP_ENABLED, THP_MAX_PTES_NONE, ZONE_RECLAIM_MODE,
};
use timeline::settings::COMPACTION_PROACTIVENESS_DEFAULT;
use timeline::signals::{
    COMPACT_FAIL, COMPACT_MIGRATE_SCANNED, COMPACT_STALL, MEM_AVAILABLE, THP_FAULT_FALLBACK,
};

use crate::prelude::*;

declare_rule! {
    /// Tasks wait while the kernel moves pages to make a large free block (compaction), and most attempts fail.
    ///
    /// ## What it means
    /// A request for several contiguous pages (a huge page, a network buffer, a kernel stack) found no free block. The
    /// allocating task has to move other pages out of the way before it goes on. Each attempt costs milliseconds of
    /// system CPU; where most fail, that time is wasted.
    /// ## How it is recognised
    /// One such attempt per second or more (`compact_stall`) for {STALL} or longer, and half of them or more fail.
    /// ## Not this
    /// - `node-reclaim-on`: system CPU for reclaim on a full node.
    /// - A host with {AVAILABLE_LOW_SHARE} of RAM or less available: compaction moves pages into free ones and fails
    ///   without them (`available-exhaustion`, `page-cache-thrash`, `swap-thrash`).
    /// - `direct-reclaim-stall`: single pages are missing; nothing is moved.
    /// - Background compaction (kcompactd): no task waits for it.
    /// ## What to do
    /// Stop page faults from waiting: now `echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag`, for good
    /// through tmpfiles.d. Let kcompactd work ahead (`vm.compaction_proactiveness`). Reserve hugetlb pages at boot.
    /// Verify: fewer than one stall per minute under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/transhuge.rst, defrag
    /// - kernel mm/compaction.c
    pub(crate) RULE = { id: "compaction-stall", since: "0.1.0", class: Stall,
        numbers: [STALL, AVAILABLE_LOW_SHARE],
        trigger: trigger, waits: Memory, story: story,
        cause: "Free memory is fragmented: its blocks are smaller than the requests.",
        verify: "memtide check --for 1m under the same load: compact_stall does not rise",
        explained_by: &[
            Explains::Maybe(THP_DEFRAG), Explains::Maybe(THP_ENABLED), Explains::Maybe(THP_MAX_PTES_NONE),
        ],
    }
}

/// An engineering choice. Labelled captures, November 2026: no compaction stalls at all on calm hosts.
const STALLS: PerSecond<Count> = PerSecond::new(1.0);
/// An engineering choice: if most attempts succeed, the work is not wasted.
const FAILED: Ratio = Ratio::from_percent(50.0);
/// The advised value.
const PROACTIVENESS: u64 = COMPACTION_PROACTIVENESS_DEFAULT;

fn trigger() -> Trigger {
    let attempts = || rate(COMPACT_STALL);
    let most_attempts = attempts().share(FAILED);
    Trigger::on_host(
        STALL,
        all![
            attempts().at_least("compaction stalls", STALLS),
            rate(COMPACT_FAIL).at_least("failed compactions", most_attempts),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let stalls = cx.rate(COMPACT_STALL)?;
    let rate = cx.mean_in(stretch, COMPACT_STALL, &stalls)?;
    let attempts = Count::from_f64(stalls.integral_in(stretch));
    let failures = Count::from_f64(cx.rate(COMPACT_FAIL)?.integral_in(stretch));
    let failed = Ratio::new(failures.as_f64() / attempts.as_f64().max(1.0));
    if failed < FAILED {
        return clear!("{rate} compaction stalls, but only {failed} of them failed");
    }
    if let Some(available) = little_available(cx, stretch) {
        return clear!(
            "{failures} of {attempts} compactions failed with {available} available: the host is \
             short of memory, fragmented or not"
        );
    }
    let waits = PressureWindow::during(cx, stretch);
    let fallbacks = cx.mean_rate(THP_FAULT_FALLBACK, stretch);
    let title = format!(
        "Tasks wait while memory is compacted into large free blocks: {failures} of {attempts} \
         attempts failed in {}.",
        stretch.duration()
    );
    let finding = RULE
        .found(Severity::warning_if(waits.any()), title)
        .graph("compaction stalls", &stalls)
        .shows_from(COMPACT_STALL, rate, STALLS, None, format!("compaction stalls: {rate}"))
        .counts_as("compaction stalls")
        .shows_from(
            Computed(COMPACT_FAIL),
            failed,
            FAILED,
            None,
            format!("{failures} of {attempts} attempts failed ({failed})"),
        )
        .counts_as("failed attempts")
        .with(fallbacks.filter(|rate| rate.get() > 0.0), |finding, fallbacks| {
            let text = format!("{fallbacks} page faults got small pages instead of a huge page");
            finding.shows(THP_FAULT_FALLBACK, fallbacks, None, text)
        })
        .shows_mean(cx, COMPACT_MIGRATE_SCANNED, stretch, |scanned| {
            format!("compaction scanned {scanned}")
        })
        .not_where(cx, ZONE_RECLAIM_MODE, 0, "node-reclaim-on")
        .when(waits.any(), |finding| finding.shows_stalls(&waits));
    Ok(remedy(cx, finding).sure_by_kinds(cx, "").into())
}

/// Returns available memory where it is too little for compaction to succeed: compaction moves pages into free ones
/// (mm/compaction.c, isolate_freepages).
fn little_available(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Bytes> {
    let available = cx.mean_level(MEM_AVAILABLE, stretch)?;
    let least = cx.ram().ok()?.share(AVAILABLE_LOW_SHARE);
    (available <= least).then_some(available)
}

fn remedy(cx: &Evidence<'_>, finding: Finding) -> Finding {
    let finding = match cx.choice(THP_DEFRAG) {
        Ok(now @ ("defer+madvise" | "defer" | "never")) => {
            let why = format!("transparent_hugepage/defrag is {now}");
            finding.not("page faults that compact to get huge pages", why)
        }
        now => finding.fix(Fix::file(
            "Let page faults take small pages at once instead of waiting for compaction.",
            THP_DEFRAG,
            "defer+madvise",
            now.ok(),
        )),
    };
    match cx.number(COMPACTION_PROACTIVENESS) {
        Ok(now) if now < PROACTIVENESS => finding.fix(Fix::tunable(
            cx,
            "Let kcompactd make large blocks in advance.",
            COMPACTION_PROACTIVENESS,
            PROACTIVENESS,
        )),
        _ => finding.fix(Fix::say(
            "Reserve huge pages at boot, before memory is fragmented: hugepages= on the kernel \
             command line.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME};

    fn compacting(stalls: u64, failures: u64) -> Case {
        Case::over(30).counter(COMPACT_STALL, stalls).counter(COMPACT_FAIL, failures)
    }

    #[test]
    fn failed_attempts_are_found() {
        let case = compacting(20, 16)
            .counter(PSI_MEMORY_SOME, 80_000)
            .fact(THP_DEFRAG, "[always] defer defer+madvise madvise never");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("480 of 600 attempts failed"));
        let defrag = ["thp.defrag=always -> thp.defrag=defer+madvise"];
        assert_eq!(changed(&finding.fixes[0]), defrag);
    }

    #[test]
    fn informational_while_no_task_waits() {
        let case = compacting(20, 16).counter(PSI_MEMORY_SOME, 0);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
    }

    #[test]
    fn clear_when_attempts_succeed_or_are_absent() {
        clear(RULE, &compacting(20, 2));
        clear(RULE, &compacting(0, 0));
    }

    #[test]
    fn clear_after_a_burst_of_one_second() {
        let mut steps = vec![0; 30];
        steps[4] = 400;
        let case =
            Case::over(30).counter_steps(COMPACT_STALL, &steps).counter_steps(COMPACT_FAIL, &steps);
        clear(RULE, &case);
    }

    #[test]
    fn not_evaluated_without_the_counters() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["vm.compact_stall"]);
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_successful_work() {
        let for_half_a_minute = |n| [vec![0; 1000], vec![n; 30], vec![0; 2570]].concat();
        let hour = |failures| {
            Case::over(3600)
                .counter_steps(COMPACT_STALL, &for_half_a_minute(20))
                .counter_steps(COMPACT_FAIL, &for_half_a_minute(failures))
                .counter_steps(PSI_MEMORY_SOME, &for_half_a_minute(80_000))
        };
        let finding = found(RULE, &hour(16));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1000, 1030)]);
        clear(RULE, &hour(2));
    }

    #[test]
    fn clear_on_a_host_short_of_memory() {
        let case = |available| {
            compacting(20, 20)
                .gauge(MEM_TOTAL, Bytes::from_mib(470))
                .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
        };
        assert!(clear(RULE, &case(33)).contains("short of memory"));
        found(RULE, &case(200));
    }
}
