//! Compaction: tasks move memory about to make room for a large block, and often in vain.

use timeline::{
    Stretch,
    facts::{COMPACTION_PROACTIVENESS, THP_DEFRAG, ZONE_RECLAIM_MODE},
    signals::{COMPACT_FAIL, COMPACT_MIGRATE_SCANNED, COMPACT_STALL, THP_FAULT_FALLBACK},
};
use units::{Count, PerSecond, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Computed, Finding, Severity};
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// Tasks wait while the kernel moves memory about to make a large free block, and most attempts fail.
    ///
    /// ## What it means
    /// A request for several pages in a row (a huge page, a network buffer, a kernel stack) found no free block. The
    /// task that asked has to move other pages out of the way before it goes on. Each attempt costs milliseconds of
    /// system CPU; where most fail, they are wasted.
    /// ## How it is recognised
    /// One such attempt a second or more (`compact_stall`), sustained, and half of them or more fail.
    /// ## Not this
    /// - `node-reclaim-on`: system CPU for reclaim on a full node.
    /// - `direct-reclaim-stall`: single pages are missing; nothing is moved.
    /// - Background compaction (kcompactd): nobody waits for it.
    /// ## What to do
    /// Let page faults not wait: now `echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag`, for good through
    /// tmpfiles.d; let kcompactd work ahead (`vm.compaction_proactiveness`). Reserve hugetlb pages at boot. Verify:
    /// fewer than one stall a minute under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/transhuge.rst, defrag
    /// - kernel mm/compaction.c
    pub(crate) RULE = { id: "compaction-stall", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice. Labelled captures, November 2026: none at all on calm hosts.
const STALLS: PerSecond<Count> = PerSecond::new(1.0);
/// An engineering choice: where most succeed, the work is not wasted.
const FAILED: Ratio = Ratio::from_percent(50.0);
const HOLD: Span = Span::from_mins(5);
/// The kernel's default for background compaction (5.9 and later).
const PROACTIVENESS: u64 = 20;

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let stalls = cx.rate(COMPACT_STALL)?;
    let failures = cx.rate(COMPACT_FAIL)?;
    let stalling = stalls.at_least(STALLS);
    let Some((stretch, rate)) = cx.held(&stalling, &stalls, HOLD) else {
        return match stalls.max() {
            Some((peak, _)) if peak >= STALLS => clear!(
                "up to {peak} tasks waited for a large block, but not for {} on end",
                cx.hold(HOLD)
            ),
            _ => clear!("no task had to move memory about for a large block"),
        };
    };
    let failed_in = |stretch: &Stretch| {
        let attempts = stalls.integral_in(stretch);
        let in_vain = failures.integral_in(stretch);
        Ratio::new(if attempts > 0.0 {
            in_vain / attempts
        } else {
            0.0
        })
    };
    let failed = failed_in(&stretch);
    if failed < FAILED {
        return clear!("{rate} tasks waited for a large block, but only {failed} of them in vain");
    }

    let waits = Stalls::during(cx, &stretch);
    let severity = if waits.any() {
        Severity::Warning
    } else {
        Severity::Info
    };
    let attempts = whole(stalls.integral_in(&stretch));
    let in_vain = whole(failures.integral_in(&stretch));
    let mut finding = RULE
        .found(
            severity,
            format!(
                "Tasks wait while memory is moved about to make large free blocks: {in_vain} of {attempts} attempts failed in {}.",
                stretch.lasts()
            ),
        )
        .during(cx.each_time(stretch, &stalling, HOLD, |again| failed_in(again) >= FAILED))
        .graph("waits for a large block", &stalls)
        .shows_from(COMPACT_STALL, rate, STALLS, None, format!("{rate} tasks had to compact memory"))
        .shows_from(Computed(COMPACT_FAIL), failed, FAILED, None, format!("{in_vain} of {attempts} attempts failed, {failed}"));
    let optional = |signal| cx.rate(signal).ok().and_then(|r| r.mean_in(&stretch));
    if let Some(fallbacks) = optional(THP_FAULT_FALLBACK)
        && fallbacks.get() > 0.0
    {
        finding = finding.shows(
            THP_FAULT_FALLBACK,
            fallbacks,
            None,
            format!("{fallbacks} page faults got small pages instead of a huge one"),
        );
    }
    if let Some(scanned) = cx
        .rate(COMPACT_MIGRATE_SCANNED)
        .ok()
        .and_then(|r| r.mean_in(&stretch))
    {
        finding = finding.shows(
            COMPACT_MIGRATE_SCANNED,
            scanned,
            None,
            format!("{scanned} looked at for moving"),
        );
    }
    if cx.number(ZONE_RECLAIM_MODE) == Ok(0) {
        finding = finding.not("node-reclaim-on", "vm.zone_reclaim_mode is 0");
    }
    let mut kinds = vec!["waits for large blocks", "their failures"];
    if waits.any() {
        finding = waits.shown_in(finding);
        kinds.push("stalls");
    }
    Ok(remedy(cx, finding)
        .cause("Free memory is in pieces too small for what is asked.")
        .verify("memtide check --for 1m under the same load: compact_stall stands still")
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: Documentation/admin-guide/mm/transhuge.rst")
        .into())
}

fn whole(events: f64) -> Count {
    units::Quantity::from_f64(events)
}

fn remedy(cx: &Evidence<'_>, mut finding: Finding) -> Finding {
    match cx.choice(THP_DEFRAG) {
        Ok(now @ ("defer+madvise" | "defer" | "never")) => {
            finding = finding.not(
                "page faults that insist on huge pages",
                format!("transparent_hugepage/defrag is {now}"),
            );
        }
        now => {
            finding = finding.fix(Fix::file(
                "Let page faults take small pages at once instead of compacting.",
                "/sys/kernel/mm/transparent_hugepage/defrag",
                "defer+madvise",
                now.ok(),
            ));
        }
    }
    match cx.number(COMPACTION_PROACTIVENESS) {
        Ok(now) if now < PROACTIVENESS => finding.fix(Fix::tunable(cx, "Let kcompactd make large blocks ahead of need.", COMPACTION_PROACTIVENESS, PROACTIVENESS)),
        _ => finding.fix(Fix::say("Who needs many huge pages should have them reserved at boot, before memory is in pieces: hugepages= on the kernel's command line.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::PSI_MEMORY_SOME;

    fn compacting(stalls: u64, failures: u64) -> Case {
        Case::over(30)
            .counter(COMPACT_STALL, stalls)
            .counter(COMPACT_FAIL, failures)
    }

    #[test]
    fn attempts_in_vain_are_found() {
        let case = compacting(20, 16)
            .counter(PSI_MEMORY_SOME, 80_000)
            .fact(THP_DEFRAG, "[always] defer defer+madvise madvise never");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("480 of 600 attempts failed"));
        assert!(finding.fixes[0].undo.starts_with("echo always >"));
    }

    #[test]
    fn it_is_information_while_nobody_waits() {
        let case = compacting(20, 16).counter(PSI_MEMORY_SOME, 0);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
    }

    #[test]
    fn success_or_quiet_is_clear() {
        clear(RULE, &compacting(20, 2));
        clear(RULE, &compacting(0, 0));
    }

    #[test]
    fn a_burst_is_clear() {
        let mut steps = vec![0; 30];
        steps[4] = 400;
        let case = Case::over(30)
            .counter_steps(COMPACT_STALL, &steps)
            .counter_steps(COMPACT_FAIL, &steps);
        clear(RULE, &case);
    }

    #[test]
    fn needs_the_counters() {
        assert_eq!(
            not_evaluated(RULE, &Case::over(30)).names,
            ["vm.compact_stall"]
        );
    }
}
