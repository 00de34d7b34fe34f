//! Swap thrash: pages leave for swap and are wanted back at once.

use timeline::Stretch;
use timeline::signals::{MEM_AVAILABLE, PSWPIN, PSWPOUT, REFAULT_ANON};
use units::{BytesPerSecond, Pages, PerSecond, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;
use crate::who;

declare_rule! {
    /// Anonymous memory does not fit into RAM: pages are swapped out and wanted back at once.
    ///
    /// ## What it means
    /// The processes together touch more anonymous memory than RAM can hold. The kernel writes pages to swap that are
    /// needed again a moment later, and every such page makes a task wait. How much swap is *used* says nothing; that
    /// it *moves*, both ways and for long, is the shortage.
    /// ## How it is recognised
    /// Pages come back from swap at 1 MiB/s or more, at least 200 of them a second are known to have been evicted
    /// before (anonymous refaults), and this is sustained. Kernels before 5.9 do not count anonymous refaults: there
    /// pages must move both ways at once. Stalls for memory (5 % of the time or more) confirm it. It is critical when work
    /// stands still: nothing runs for a quarter of the time, or, where pressure is not measured, as many tasks wait in
    /// uninterruptible sleep as there are CPUs. Otherwise it is a warning.
    /// ## Not this
    /// - `swap-cold-harmless`: swap is used, but nothing moves.
    /// - Swap-in after a job has ended or a suspend, or in a control group at its own limit: a quarter of RAM or more
    ///   stays available.
    /// - zram or zswap in good order: the same counters, but hardly a stall; then this is a warning.
    /// ## What to do
    /// Now: stop or cap what grew last. For good: less demand (smaller pools, fewer workers) or more RAM. More swap
    /// only moves the wall; `swapoff` turns thrashing into OOM kills. Verify: swapped in below 0.1 MiB/s and stalls
    /// below 1 % under the same load.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault
    /// - kernel Documentation/accounting/psi.rst
    pub(crate) RULE = { id: "swap-thrash", since: "0.1.0", purpose: Finding, check: check }
}

/// Labelled captures, November 2026: 9.9 MiB/s on average while thrashing; 0.8 MiB/s at most where swap moved by the way.
const SWAPPED_IN: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// The same captures: 2,500 pages/s against 200 in one second of a host whose floor was set too high.
pub(crate) const REFAULTS: PerSecond<Pages> = PerSecond::new(200.0);
/// The catalogue's time for a recording; short looks need a part of it.
const HOLD: Span = Span::from_mins(5);

/// A host with this much available all the time does not swap for want of memory; thrashing ones have below 10 %.
pub(crate) const ROOM: Ratio = Ratio::from_percent(25.0);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let pages_in = cx.swapped_in()?;
    let page = cx.page_size()?;
    let swapped_in = pages_in.to_bytes(page);
    let swapped_out = cx.swapped_out()?.to_bytes(page);
    let refaults = cx.refaults_anon().ok();
    let thrashing = match &refaults {
        Some(refaults) => swapped_in
            .at_least(SWAPPED_IN)
            .and(&refaults.at_least(REFAULTS)),
        None => swapped_in
            .at_least(SWAPPED_IN)
            .and(&swapped_out.at_least(SWAPPED_IN)),
    };
    let Some((stretch, came_in)) = cx.held(&thrashing, &swapped_in, HOLD) else {
        return match swapped_in.max() {
            Some((peak, _)) if peak >= SWAPPED_IN => clear!(
                "pages came back from swap at up to {peak}, but not for {} on end",
                cx.hold(HOLD)
            ),
            Some((peak, _)) => clear!("at most {peak} came back from swap"),
            None => clear!("nothing came back from swap"),
        };
    };

    // Pages that come back while there is room all the time are wanted again after a job has ended, or belong to a
    // control group that is at its own limit: the host is not short.
    let room = |stretch: &Stretch| {
        let (least, _) = cx.gauge(MEM_AVAILABLE).ok()?.min_in(stretch)?;
        (least >= cx.ram().ok()?.share(ROOM)).then_some(least)
    };
    if let Some(least) = room(&stretch) {
        return clear!(
            "{came_in} came back from swap, but {least} stayed available: the host is not short; a job ended, or a control group is at its own limit"
        );
    }

    let held = cx.each_time(stretch, &thrashing, HOLD, |again| room(again).is_none());
    let went_out = cx.mean_in(&stretch, PSWPOUT, &swapped_out)?;
    let stalls = Stalls::during(cx, &stretch);
    let severity = if stalls.standstill() || stalls.all_blocked(cx) {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let mut finding = RULE
        .found(
            severity,
            format!(
                "This host needs more memory than it has: pages are swapped out and wanted back at once ({came_in} came back for {}).{}",
                held.how_long(),
                stalls.sentence()
            ),
        )
        .during(held)
        .graph("swapped in", &swapped_in)
        .shows_from(PSWPIN, came_in, SWAPPED_IN, None, format!("{came_in} swapped in, {went_out} out"));
    if let Some(back) = refaults.as_ref().and_then(|r| r.mean_in(&stretch)) {
        finding = finding.shows_from(
            REFAULT_ANON,
            back,
            REFAULTS,
            None,
            format!("{back} of anonymous memory came back after eviction"),
        );
    } else {
        finding = finding.shows_from(
            PSWPOUT,
            went_out,
            SWAPPED_IN,
            None,
            format!("{went_out} went out at the same time"),
        );
    }
    finding = stalls.shown_in(finding);
    let mut worst = stretch.last;
    if let Ok(available) = cx.gauge(MEM_AVAILABLE)
        && let Some((least, index)) = available.min_in(&stretch)
    {
        worst = index;
        finding = finding.shows(
            MEM_AVAILABLE,
            least,
            Some(cx.timeline.times()[index]),
            format!("available fell to {least}"),
        );
    }
    let mut kinds = vec!["swap traffic"];
    if stalls.for_memory() {
        kinds.push("memory stalls");
    }
    Ok(finding
        .not("swap-cold-harmless", "what went out came back")
        .cause("The processes touch more anonymous memory than RAM holds, so the kernel swaps out pages that are needed again.")
        .fix(Fix::cap(cx, worst, "Stop what grew last, or cap the group it belongs to."))
        .fix(Fix::say("Fewer workers, smaller pools, or more RAM. More swap would not help, and swapoff would end in OOM kills."))
        .verify("memtide check --for 1m under the same load: swapped in below 0.1 MiB/s, stalls below 1 %")
        .affects(who::largest(cx, worst, 3))
        .sure(cx.confidence(&kinds, stalls.open()))
        .see("kernel: mm/workingset.c")
        .see("kernel: Documentation/accounting/psi.rst")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{PSI_MEMORY_FULL, PSI_MEMORY_SOME, TASKS_BLOCKED};
    use units::Count;

    /// `n` seconds in which `swapped` pages go out and `back` come in each second.
    fn moving(seconds: u64, back: u64, out: u64) -> Case {
        Case::over(seconds)
            .counter(PSWPIN, back)
            .counter(PSWPOUT, out)
            .counter(REFAULT_ANON, back)
    }

    #[test]
    fn pages_that_go_both_ways_with_stalls_are_critical() {
        let case = moving(30, 2500, 2500)
            .counter(PSI_MEMORY_SOME, 600_000)
            .counter(PSI_MEMORY_FULL, 500_000);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn what_comes_again_is_told_each_time_and_a_moment_of_it_is_not() {
        let again = |lengths: &[usize]| {
            let mut steps = vec![0; 10];
            for length in lengths {
                steps.extend(vec![2500; *length]);
                steps.extend(vec![0; 20]);
            }
            let case = [PSWPIN, PSWPOUT, REFAULT_ANON]
                .into_iter()
                .fold(Case::over(steps.len() as u64), |case, signal| {
                    case.counter_steps(signal, &steps)
                });
            let finding = found(RULE, &case);
            let stretches = finding.stretches();
            assert!(stretches.contains(&finding.when.unwrap()));
            stretches.len()
        };
        assert_eq!(again(&[20]), 1);
        assert_eq!(again(&[20, 18, 20]), 3);
        assert_eq!(again(&[20, 2]), 1);
    }

    #[test]
    fn compressed_swap_that_stalls_nobody_is_a_warning() {
        let case = moving(30, 2500, 2500)
            .counter(PSI_MEMORY_SOME, 20_000)
            .counter(PSI_MEMORY_FULL, 1_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn without_pressure_files_it_is_only_probable_and_no_standstill() {
        let finding = found(RULE, &moving(30, 2500, 2500));
        assert_eq!(finding.confidence.word(), "probable");
        assert_eq!(finding.severity, Severity::Warning);
    }

    #[test]
    fn without_pressure_files_as_many_blocked_tasks_as_cpus_are_a_standstill() {
        let blocked = |tasks| {
            let mut case = moving(30, 2500, 2500).gauge(TASKS_BLOCKED, Count::new(tasks));
            case.facts.cpus = Some(4);
            found(RULE, &case).severity
        };
        assert_eq!(blocked(5), Severity::Critical);
        assert_eq!(blocked(1), Severity::Warning);
    }

    #[test]
    fn stalls_without_a_standstill_are_a_warning() {
        let case = moving(30, 2500, 2500)
            .counter(PSI_MEMORY_SOME, 300_000)
            .counter(PSI_MEMORY_FULL, 50_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn swap_that_only_fills_is_not_thrash() {
        clear(RULE, &moving(30, 0, 5000));
    }

    #[test]
    fn pages_that_come_back_into_a_roomy_host_are_not_thrash() {
        let roomy = moving(30, 5000, 0)
            .gauge(timeline::signals::MEM_TOTAL, units::Bytes::from_gib(64))
            .gauge(MEM_AVAILABLE, units::Bytes::from_gib(50));
        clear(RULE, &roomy);
    }

    #[test]
    fn a_burst_of_two_seconds_is_not_thrash() {
        let mut rates = vec![0; 30];
        rates[10..12].fill(5000);
        let case = Case::over(30)
            .counter_steps(PSWPIN, &rates)
            .counter_steps(REFAULT_ANON, &rates)
            .counter(PSWPOUT, 0);
        clear(RULE, &case);
    }

    #[test]
    fn a_kernel_before_5_9_must_show_both_directions() {
        found(
            RULE,
            &Case::over(30).counter(PSWPIN, 2500).counter(PSWPOUT, 2500),
        );
        clear(
            RULE,
            &Case::over(30).counter(PSWPIN, 2500).counter(PSWPOUT, 0),
        );
    }

    #[test]
    fn without_vmstat_it_says_what_it_lacks() {
        let missing = not_evaluated(RULE, &Case::over(30));
        assert_eq!(missing.names, ["vm.pswpin"]);
    }
}
