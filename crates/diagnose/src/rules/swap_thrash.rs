//! Swap thrash: pages are swapped out and needed again at once.

use timeline::facts::SWAPPINESS;
use timeline::signals::{
    CGROUP_REFAULT_ANON, MEM_AVAILABLE, PSWPIN, PSWPOUT, REFAULT_ANON, TASKS_BLOCKED,
};

use crate::measures::available::{self, room_left};
use crate::measures::cgroups;
use crate::measures::readings::{
    ANON_REFAULTS_MIN, AVAILABLE_ROOMY_SHARE, swapped_in, swapped_out,
};
use crate::prelude::*;

declare_rule! {
    /// Anonymous memory does not fit into RAM: pages are swapped out and needed again at once.
    ///
    /// ## What it means
    /// The processes together touch more anonymous memory than RAM can hold. The kernel swaps out pages that are needed
    /// again a moment later, and a task waits for every such page. Used swap says nothing; sustained traffic in both
    /// directions is the shortage.
    /// ## How it is recognised
    /// Pages are swapped in at {SWAP_IN_RATE_MIN} or more, at least {ANON_REFAULTS_MIN} of them are anonymous refaults
    /// (known to have been evicted before), for {STALL} or longer. Kernels before 5.9 do not count anonymous refaults:
    /// there, pages must move both ways at once. A slow disk moves less: {SWAPPED_SLOWLY} both ways is enough while two
    /// or more tasks are in uninterruptible sleep and at most {NOTHING_LEFT} are available. Memory stalls
    /// ({PressureWindow::MEMORY} of the time or more) confirm it. It is critical when work stands still: nothing runs
    /// for {PressureWindow::STANDSTILL} of the time, or, without pressure files, as many tasks as there are CPUs are in
    /// uninterruptible sleep. Otherwise it is a warning.
    /// ## Not this
    /// - `swap-cold-harmless`: swap is used, but nothing is swapped in.
    /// - Swap-in after a job has ended, after a suspend, or in a cgroup at its own limit: {AVAILABLE_ROOMY_SHARE} of
    ///   RAM or more stays available.
    /// - Healthy zram or zswap: the same counters, but hardly any stalls; then this is a warning.
    /// ## What to do
    /// Now: stop or cap what grew last. For good: less demand (smaller pools, fewer workers) or more RAM. More swap
    /// only moves the wall; `swapoff` turns thrashing into OOM kills. Verify: swapped in below {SWAPPED_SLOWLY} and
    /// stalls below {PressureWindow::CALM} under the same load.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault
    /// - kernel Documentation/accounting/psi.rst
    pub(crate) RULE = {
        id: "swap-thrash", since: "0.1.0", class: Shortage,
        numbers: [SWAP_IN_RATE_MIN, ANON_REFAULTS_MIN, STALL, SWAPPED_SLOWLY, NOTHING_LEFT,
            PressureWindow::MEMORY, PressureWindow::CALM, PressureWindow::STANDSTILL,
            AVAILABLE_ROOMY_SHARE],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "The processes touch more anonymous memory than RAM holds, so the kernel swaps out \
                pages that are needed again.",
        verify: "memtide check --for 1m under the same load: swapped in below {SWAPPED_SLOWLY}, \
                 stalls below {PressureWindow::CALM}",
        brings_about: &[
            "available-exhaustion", "cache-starved-floor", "swap-full", "page-cache-thrash", "exec-pages-evicted",
            "direct-reclaim-stall", "kswapd-saturated", "zram-misuse", "zswap-pool-full",
            "swap-slow-device", "swap-readahead-waste",
        ],
        explained_by: &[Explains::Maybe(SWAPPINESS)],
        replaces: &["NodeMemoryMajorPagesFaults"],
    }
}

/// Labelled captures, November 2026: 9.9 MiB/s on average while thrashing; 0.8 MiB/s at most with incidental swap-in.
const SWAP_IN_RATE_MIN: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// The same for a disk that needs a seek for every page: an engineering choice. A mail of 2004 shows 0.4 MiB/s with 24
/// tasks blocked.
const SWAPPED_SLOWLY: BytesPerSecond = BytesPerSecond::from_kib(100.0);
/// Tasks in uninterruptible sleep; one may be a backup.
const BLOCKED: Count = Count::new(2);
/// No host works with so little page cache: an engineering choice.
const NOTHING_LEFT: Bytes = Bytes::from_mib(64);
/// A cgroup at its limit with this share of the refaults explains them: an engineering choice.
const IN_A_CGROUP: Ratio = Ratio::from_percent(60.0);

fn trigger() -> Trigger {
    let refaults = rate(REFAULT_ANON).at_least("anonymous refaults", ANON_REFAULTS_MIN);
    // Kernels before 5.9 do not count them: there, pages must move both ways at once.
    let out = swapped_out().bytes().at_least("swapped out", SWAP_IN_RATE_MIN);
    let fast = all![
        swapped_in().bytes().at_least("swapped in", SWAP_IN_RATE_MIN),
        refaults.or_without(out),
    ];
    Trigger::on_host(STALL, Predicate::Also(vec![fast, is_slow()]))
}

/// A slow disk that serves pages both ways while tasks wait for it and nothing is left to drop.
fn is_slow() -> Predicate {
    all![
        swapped_in().bytes().at_least("swapped in", SWAPPED_SLOWLY),
        swapped_out().bytes().at_least("swapped out", SWAPPED_SLOWLY),
        gauge(TASKS_BLOCKED).at_least("blocked tasks", BLOCKED),
        available::upper_bound().at_most("available", NOTHING_LEFT),
    ]
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let swapped_in = swapped_in().bytes().track(cx)?;
    let swapped_out = swapped_out().bytes().track(cx)?;
    let rate_in = cx.mean_in(stretch, PSWPIN, &swapped_in)?;
    let rate_out = cx.mean_in(stretch, PSWPOUT, &swapped_out)?;
    let available = cx.lowest_in(MEM_AVAILABLE, stretch);
    if let Some(least) = room_left(cx, stretch) {
        return clear!(
            "{rate_in} swapped in, but {least} stayed available: the host is not short of memory; \
             a job ended, or a cgroup is at its own limit"
        );
    }
    if let Some(cgroup) = in_a_cgroup(cx, incident) {
        return clear!("{rate_in} swapped in, into {cgroup} at its own limit");
    }
    let stalls = PressureWindow::during(cx, stretch);
    let severity = Severity::critical_if(stalls.standstill() || stalls.all_blocked(cx));
    let worst = available.map_or(stretch.last, |(_, index)| index);
    let edge = if rate_in < SWAP_IN_RATE_MIN { SWAPPED_SLOWLY } else { SWAP_IN_RATE_MIN };
    let title = Title::from(format!(
        "This host needs more memory than it has: pages are swapped out and needed again at once \
         ({rate_in} swapped in for {}).",
        stretch.duration()
    ))
    .then(stalls.sentence());
    Ok(RULE
        .found(severity, title)
        .graph("swapped in", &swapped_in)
        .shows_from(PSWPIN, rate_in, edge, None, format!("{rate_in} swapped in, {rate_out} out"))
        .counts_as("swap traffic")
        .and(|finding| show_refaults(finding, cx, stretch, rate_out))
        .and(|finding| stalls.shown_in(finding))
        .counts_if(stalls.for_memory(), "memory stalls")
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("available fell to {least}"))
        .not("swap-cold-harmless", "the pages that were swapped out are swapped in again")
        .fix(Fix::cap(cx, worst, "Stop what grew last, or cap its cgroup."))
        .fix(Fix::say(
            "Use fewer workers or smaller pools, or add RAM. More swap would not help, and swapoff \
             would end in OOM kills.",
        ))
        .affects(processes::largest(cx, worst, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// The cgroup at its own limit that has most of the refaults: then its limit is too small, not the host.
fn in_a_cgroup<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Option<String> {
    let host = cx.rate(REFAULT_ANON).ok()?.mean_in(&incident.stretch)?;
    let groups = cgroups::with(cx, CGROUP_REFAULT_ANON).ok()?;
    let explains = groups.into_iter().find(|group| {
        let refaults = cx.rate_of(group, CGROUP_REFAULT_ANON).ok();
        let mean = refaults.and_then(|refaults| refaults.mean_in(&incident.stretch));
        mean.is_some_and(|mean| mean.get() >= host.get() * IN_A_CGROUP.get())
            && cgroups::is_at_limit(cx, group, &incident.stretch)
    });
    explains.map(|group| cgroups::called(cx, group))
}

/// Adds anonymous refaults, or swap-out on kernels that do not count them.
fn show_refaults(
    finding: Finding,
    cx: &Evidence<'_>,
    stretch: &Stretch,
    rate_out: BytesPerSecond,
) -> Finding {
    if let Some(refaults) = cx.mean_rate(REFAULT_ANON, stretch) {
        let text = format!("{refaults} of anonymous refaults (evicted and needed again)");
        return finding.shows_from(REFAULT_ANON, refaults, ANON_REFAULTS_MIN, None, text);
    }
    let text = format!("{rate_out} swapped out at the same time");
    finding.shows_from(PSWPOUT, rate_out, SWAP_IN_RATE_MIN, None, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_CACHED, MEM_FREE, PSI_MEMORY_FULL, PSI_MEMORY_SOME};

    /// `n` seconds in which `swapped` pages go out and `back` come in each second.
    fn moving(seconds: u64, back: u64, out: u64) -> Case {
        Case::over(seconds).counter(PSWPIN, back).counter(PSWPOUT, out).counter(REFAULT_ANON, back)
    }

    #[test]
    fn traffic_both_ways_with_stalls_is_critical() {
        let case = moving(30, 2500, 2500)
            .counter(PSI_MEMORY_SOME, 600_000)
            .counter(PSI_MEMORY_FULL, 500_000);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn each_occurrence_is_reported_but_not_a_moment() {
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
    fn a_slow_disk_swaps_little_while_tasks_wait() {
        let case = |back, blocked, cache| {
            Case::over(30)
                .counter(PSWPIN, back)
                .counter(PSWPOUT, 400)
                .gauge(TASKS_BLOCKED, Count::new(blocked))
                .gauge(MEM_FREE, Bytes::from_mib(2))
                .gauge(MEM_CACHED, Bytes::from_mib(cache))
        };
        let finding = found(RULE, &case(100, 24, 20));
        assert_eq!(finding.severity, Severity::Warning);
        clear(RULE, &case(100, 1, 20));
        clear(RULE, &case(100, 24, 900));
        clear(RULE, &case(10, 24, 20));
    }

    #[test]
    fn compressed_swap_without_stalls_is_a_warning() {
        let case =
            moving(30, 2500, 2500).counter(PSI_MEMORY_SOME, 20_000).counter(PSI_MEMORY_FULL, 1_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn probable_without_pressure_files() {
        let finding = found(RULE, &moving(30, 2500, 2500));
        assert_eq!(finding.confidence.word(), "probable");
        assert_eq!(finding.severity, Severity::Warning);
    }

    #[test]
    fn without_pressure_files_blocked_tasks_on_all_cpus_are_critical() {
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
    fn clear_when_swap_only_fills() {
        clear(RULE, &moving(30, 0, 5000));
    }

    #[test]
    fn clear_when_much_memory_is_available() {
        let roomy = moving(30, 5000, 0)
            .gauge(timeline::signals::MEM_TOTAL, units::Bytes::from_gib(64))
            .gauge(MEM_AVAILABLE, units::Bytes::from_gib(50));
        clear(RULE, &roomy);
    }

    #[test]
    fn clear_after_a_burst_of_2_s() {
        let mut rates = vec![0; 30];
        rates[10..12].fill(5000);
        let case = Case::over(30)
            .counter_steps(PSWPIN, &rates)
            .counter_steps(REFAULT_ANON, &rates)
            .counter(PSWPOUT, 0);
        clear(RULE, &case);
    }

    #[test]
    fn kernels_before_5_9_need_traffic_both_ways() {
        found(RULE, &Case::over(30).counter(PSWPIN, 2500).counter(PSWPOUT, 2500));
        clear(RULE, &Case::over(30).counter(PSWPIN, 2500).counter(PSWPOUT, 0));
    }

    #[test]
    fn not_evaluated_without_vmstat() {
        let missing = not_evaluated(RULE, &Case::over(30));
        assert_eq!(missing.names, ["vm.pswpin"]);
    }
}
