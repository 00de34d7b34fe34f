//! Swap thrash: pages leave for swap and are wanted back at once.

use timeline::facts::SWAPPINESS;
use timeline::signals::{CGROUP_REFAULT_ANON, MEM_AVAILABLE, PSWPIN, PSWPOUT, REFAULT_ANON};

use crate::measures::cgroups;
use crate::measures::readings::{ROOM, SWAPPED_AGAIN, swapped_in, swapped_out};
use crate::prelude::*;

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
    pub(crate) RULE = {
        id: "swap-thrash", since: "0.1.0", class: Shortage,
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "The processes touch more anonymous memory than RAM holds, so the kernel swaps out pages that are needed again.",
        verify: "memtide check --for 1m under the same load: swapped in below 0.1 MiB/s, stalls below 1 %",
        brings_about: &[
            "available-exhaustion", "cache-starved-floor", "swap-full", "page-cache-thrash", "exec-pages-evicted",
            "direct-reclaim-stall", "kswapd-saturated", "zram-misuse",
        ],
        explained_by: &[Explains::Maybe(SWAPPINESS)],
    }
}

/// Labelled captures, November 2026: 9.9 MiB/s on average while thrashing; 0.8 MiB/s at most where swap moved by the way.
const SWAPPED_IN: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// A group at its limit that wants this share of the pages back explains them: an engineering choice.
const IN_A_GROUP: Ratio = Ratio::from_percent(60.0);

fn trigger() -> Trigger {
    let comes_back = rate(REFAULT_ANON).at_least("anonymous refaults", SWAPPED_AGAIN);
    // Kernels before 5.9 do not count them: there pages must move both ways at once.
    let goes_out = swapped_out().bytes().at_least("swapped out", SWAPPED_IN);
    Trigger::on_host(
        STALL,
        all![
            swapped_in().bytes().at_least("swapped in", SWAPPED_IN),
            comes_back.or_without(goes_out),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let swapped_in = swapped_in().bytes().track(cx)?;
    let swapped_out = swapped_out().bytes().track(cx)?;
    let came_in = cx.mean_in(stretch, PSWPIN, &swapped_in)?;
    let went_out = cx.mean_in(stretch, PSWPOUT, &swapped_out)?;
    let available = cx.lowest_in(MEM_AVAILABLE, stretch);
    let room = cx.ram().ok().map(|ram| ram.share(ROOM));
    if let (Some((least, _)), Some(room)) = (available, room)
        && least >= room
    {
        return clear!(
            "{came_in} came back from swap, but {least} stayed available: the host is not short; a job ended, or a control group is at its own limit"
        );
    }
    if let Some(group) = in_a_group(cx, incident) {
        return clear!(
            "{came_in} came back from swap, into control group {group} at its own limit"
        );
    }
    let stalls = Stalls::during(cx, stretch);
    let severity = Severity::critical_if(stalls.standstill() || stalls.all_blocked(cx));
    let worst = available.map_or(stretch.last, |(_, index)| index);
    let title = format!(
        "This host needs more memory than it has: pages are swapped out and wanted back at once ({came_in} came back for {}).{}",
        stretch.duration(),
        stalls.sentence()
    );
    Ok(RULE
        .found(severity, title)
        .graph("swapped in", &swapped_in)
        .shows_from(PSWPIN, came_in, SWAPPED_IN, None, format!("{came_in} swapped in, {went_out} out"))
        .counts_as("swap traffic")
        .and(|finding| with_what_came_back(finding, cx, stretch, went_out))
        .and(|finding| stalls.shown_in(finding))
        .counts_if(stalls.for_memory(), "memory stalls")
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("available fell to {least}"))
        .not("swap-cold-harmless", "what went out came back")
        .fix(Fix::cap(cx, worst, "Stop what grew last, or cap the group it belongs to."))
        .fix(Fix::say("Fewer workers, smaller pools, or more RAM. More swap would not help, and swapoff would end in OOM kills."))
        .affects(processes::largest(cx, worst, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// The control group at its own limit that most of what came back belongs to: then the limit is short, not the host.
fn in_a_group<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Option<&'a str> {
    let of_host = cx.rate(REFAULT_ANON).ok()?.mean_in(&incident.stretch)?;
    let groups = cgroups::with(cx, CGROUP_REFAULT_ANON).ok()?;
    let explains = groups.into_iter().find(|group| {
        let own = cx.rate_of(group, CGROUP_REFAULT_ANON).ok();
        let own = own.and_then(|own| own.mean_in(&incident.stretch));
        own.is_some_and(|own| own.get() >= of_host.get() * IN_A_GROUP.get())
            && cgroups::is_at_limit(cx, group, &incident.stretch)
    });
    explains.map(|group| group.label.as_str())
}

/// With what the kernel itself counts as back too soon; older kernels do not, then what went out speaks.
fn with_what_came_back(
    finding: Finding,
    cx: &Evidence<'_>,
    stretch: &Stretch,
    went_out: BytesPerSecond,
) -> Finding {
    if let Some(back) = cx.mean_rate(REFAULT_ANON, stretch) {
        let text = format!("{back} of anonymous memory came back after eviction");
        return finding.shows_from(REFAULT_ANON, back, SWAPPED_AGAIN, None, text);
    }
    let text = format!("{went_out} went out at the same time");
    finding.shows_from(PSWPOUT, went_out, SWAPPED_IN, None, text)
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
