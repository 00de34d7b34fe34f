//! Tasks waited for memory, and no other rule explains why.

use timeline::signals::{
    ALLOCSTALL, MEM_AVAILABLE, PGSCAN_DIRECT, PGSCAN_KSWAPD, PSI_CPU_SOME, PSI_MEMORY_FULL,
    PSI_MEMORY_SOME, RESTORE_FILE,
};

use crate::measures::available::AVAILABLE_CALM_SHARE;
use crate::measures::pressure::Waited;
use crate::measures::psi_average::PressureAverage;
use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::prelude::*;

declare_rule! {
    /// Tasks waited for memory, and nothing in the source explains why.
    ///
    /// ## What it means
    /// The kernel counts the time in which tasks wait for memory: in reclaim, for refaults, or because a cgroup is
    /// throttled. Each of these has its own rule. If none of them fires at that time, the source lacks the data that
    /// would name the cause, such as the files of cgroups.
    /// ## How it is recognised
    /// Memory stalls of {STALL_NOTICED_SHARE} of the time or more for {LEVEL}, while no other rule has an incident. It
    /// is a warning if nothing ran for {PressureWindow::STANDSTILL} of that time, otherwise informational. In one
    /// sample the kernel's averages of a minute or five show the stalls.
    /// ## Not this
    /// - Any incident at the same time: that is the cause.
    /// - Files in use that a backup or a build evicted, and that are read again while {AVAILABLE_CALM_SHARE} of RAM or
    ///   more is available.
    /// - A host short of CPU time (stolen or throttled) on which kswapd or khugepaged reclaims: the kernel counts these
    ///   threads as waiting for memory while they wait for a CPU.
    /// ## What to do
    /// Record cgroups and `/proc/vmstat` too (`memtide record` as root). Verify: the next such stall has a cause.
    /// ## References
    /// - kernel Documentation/accounting/psi.rst
    pub(crate) RULE = {
        id: "unexplained-stall", since: "0.1.0", class: Unexplained,
        numbers: [STALL_NOTICED_SHARE, LEVEL, AVAILABLE_CALM_SHARE, PressureWindow::STANDSTILL],
        trigger: trigger, waits: Memory, story: story,
        cause: "Unknown: reclaim and refaults were low or not measured, and cgroups were not read \
                or not at a limit.",
        verify: "the next such stall has a cause in memtide check",
    }
}

/// Guests with a fifth of a CPU each: 90 % and more while kswapd reclaimed for streamed files; 10 % and less on calm
/// ones.
const SHORT_OF_CPU: Ratio = Ratio::from_percent(50.0);

/// Samples further apart show a stall but seldom its cause, which may be shorter: an engineering choice.
const SAMPLE_INTERVAL_RARE: Span = Span::from_secs(15);

/// This many restored pages explain a wait: an engineering choice, a disk seek each tenth of a second.
const RESTORED: PerSecond<Pages> = PerSecond::new(10.0);

fn trigger() -> Trigger {
    let average = computed("memory stalls before the sample", |cx| {
        let average = PressureAverage::of_one_sample(cx)
            .ok_or_else(|| cx.lacks_signal(PSI_MEMORY_SOME.id()))?;
        Ok(cx.timeline.constant(average.some).cast())
    });
    Trigger::on_host(
        LEVEL,
        any![
            average.at_least("memory stalls", STALL_NOTICED_SHARE),
            stall(PSI_MEMORY_SOME).at_least("memory stalls", STALL_NOTICED_SHARE),
        ],
    )
}

/// The finding where one sample is all there is.
fn of_one_sample(cx: &Evidence<'_>, average: PressureAverage) -> Outcome {
    let full = average.full.unwrap_or_default();
    let title = format!("{}, and nothing in this source explains why.", average.clause(""));
    let waited = Waited::averaged(average);
    RULE.found(Severity::warning_if(full >= PressureWindow::STANDSTILL), title)
        .shows_from(
            PSI_MEMORY_SOME,
            average.some,
            STALL_NOTICED_SHARE,
            None,
            format!("memory stalls: {}", waited.shares()),
        )
        .counts_as("memory stalls")
        .fix(find_the_cgroup())
        .sure_by_kinds(cx, "a recording of the host would settle it")
        .into()
}

fn find_the_cgroup() -> Fix {
    Fix::say("Find the waiting cgroup while it lasts.")
        .inspect("grep -r ^full --include=memory.pressure /sys/fs/cgroup | sort -t= -k2 -rn | head")
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    if let Some(average) = PressureAverage::of_one_sample(cx) {
        return Ok(of_one_sample(cx, average));
    }
    // Samples too far apart do not show the cause.
    let every = stretch.interval();
    if every > SAMPLE_INTERVAL_RARE {
        let names = vec![PSI_MEMORY_SOME.def().name];
        return Err(Missing::because(names, Need::MoreSamples { every }));
    }
    if let Some(cpu) = of_kernel_threads(cx, stretch) {
        return clear!(
            "only kernel threads reclaimed, and they waited for a CPU (CPU stalls {cpu} of the \
             time): PSI counts that as waiting for memory"
        );
    }
    if let Some((restored, left)) = restored(cx, stretch) {
        return clear!(
            "evicted files in use were read again ({restored}) with {left} available: the \
             aftermath of a backup or a build, no shortage"
        );
    }
    let stalled = cx.stall(PSI_MEMORY_SOME)?;
    let some =
        pressure::worst(&stalled, stretch).ok_or_else(|| cx.lacks_signal(PSI_MEMORY_SOME.id()))?;
    let full = cx.stall(PSI_MEMORY_FULL).ok();
    let full = full.and_then(|full| pressure::worst(&full, stretch));
    let over = WindowPart::for_stretch(stretch);
    let is_standstill = full.is_some_and(|full| full >= PressureWindow::STANDSTILL);
    let (waited, share) = match full.filter(|full| *full >= PressureWindow::MEMORY) {
        Some(full) => ("stalled on", full),
        None => ("waited for", some),
    };
    let title = format!(
        "Tasks {waited} memory for {}, {}, and nothing in this source explains why.",
        stretch.duration(),
        over.time(share)
    );
    let text = format!("memory stalls: some {some}{}", over.remark());
    Ok(RULE
        .found(Severity::warning_if(is_standstill), title)
        .graph("memory stalls", &stalled)
        .shows_from(PSI_MEMORY_SOME, some, STALL_NOTICED_SHARE, None, text)
        .counts_as("memory stalls")
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("at least {least} available"))
        .fix(find_the_cgroup())
        .sure_by_kinds(cx, "the memory.pressure files of the cgroups would settle it")
        .into())
}

/// The rate at which evicted files that were in use are read again, and available memory, where the rate and memory
/// are high enough: the kernel counts this wait as a memory stall (mm/workingset.c).
fn restored(cx: &Evidence<'_>, stretch: &Stretch) -> Option<(PerSecond<Pages>, Bytes)> {
    let restored = cx.mean_rate(RESTORE_FILE, stretch)?;
    let (left, _) = cx.lowest_in(MEM_AVAILABLE, stretch)?;
    let is_enough = left >= cx.ram().ok()?.share(AVAILABLE_CALM_SHARE);
    (restored >= RESTORED && is_enough).then_some((restored, left))
}

/// The share of time for which tasks waited for a CPU, where only kernel threads reclaimed: kswapd alone, or
/// khugepaged and the like while work continued. PSI counts kernel threads as stalled for as long as they reclaim
/// (mm/vmscan.c, balance_pgdat), even while they wait for a CPU.
fn of_kernel_threads(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Ratio> {
    let scanned = |signal| Some(cx.mean_rate(signal, stretch)?.get());
    let is_kswapd = scanned(PGSCAN_KSWAPD)? > 0.0 && scanned(PGSCAN_DIRECT)? == 0.0;
    let full = pressure::worst(&cx.stall(PSI_MEMORY_FULL).ok()?, stretch)?;
    let work_continues = full < PressureWindow::MEMORY
        && cx.mean_rate(ALLOCSTALL, stretch)? < PressureWindow::ALLOCATION_STALLS;
    let cpu = cx.stall(PSI_CPU_SOME).ok()?.mean_in(stretch)?;
    ((is_kswapd || work_continues) && cpu >= SHORT_OF_CPU).then_some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;
    use timeline::{Facts, Sample, Timeline};
    use units::Micros;

    /// A calm hour with `seconds` of stalls in the middle.
    fn stalled(seconds: usize, some: u64, full: u64) -> Case {
        let steps = |micros| {
            let mut steps = vec![0; 3600];
            steps[1800..1800 + seconds].fill(micros);
            steps
        };
        Case::over(3600)
            .counter_steps(PSI_MEMORY_SOME, &steps(some))
            .counter_steps(PSI_MEMORY_FULL, &steps(full))
    }

    #[test]
    fn an_unexplained_standstill_is_a_warning() {
        let finding = found(RULE, &stalled(22, 900_000, 600_000));
        assert_eq!(finding.severity, Severity::Warning);
        let when = finding.when.expect("a time");
        assert_eq!((when.first, when.last), (1800, 1822));
    }

    #[test]
    fn clear_when_files_are_restored_and_memory_is_available() {
        let case = |available, pages| {
            stalled(22, 300_000, 260_000)
                .gauge(MEM_TOTAL, Bytes::from_mib(1_000))
                .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
                .counter(RESTORE_FILE, pages)
        };
        let why = clear(RULE, &case(700, 100));
        assert!(why.contains("700 MiB available"), "{why}");
        found(RULE, &case(100, 100));
        found(RULE, &case(700, 1));
    }

    #[test]
    fn not_evaluated_when_samples_are_too_rare() {
        let each_minute: Vec<Sample> = (0..10)
            .map(|minute| {
                let mut sample = Sample::at(Span::from_secs(minute * 60));
                let stalled = minute.saturating_sub(4) * 50_000_000;
                sample.host.set(PSI_MEMORY_SOME, Micros::new(stalled));
                sample
            })
            .collect();
        let mut timeline = Timeline::default();
        for sample in &each_minute {
            timeline.push(sample).unwrap();
        }
        let diagnosis = crate::diagnose(&timeline, &Facts::default());
        let missing = diagnosis.not_evaluated.iter().find(|(id, _)| *id == RULE.id);
        assert!(matches!(
            missing.map(|(_, missing)| &missing.need),
            Some(Need::MoreSamples { .. })
        ));
    }

    #[test]
    fn clear_when_kswapd_waits_for_a_cpu() {
        let reclaiming = |kswapd, direct, cpu| {
            stalled(22, 900_000, 600_000)
                .counter(PGSCAN_KSWAPD, kswapd)
                .counter(PGSCAN_DIRECT, direct)
                .counter(PSI_CPU_SOME, cpu)
        };
        let why = clear(RULE, &reclaiming(1_000, 0, 900_000));
        assert!(why.contains("CPU stalls 90 %"), "{why}");
        for other in [(1_000, 0, 100_000), (1_000, 200, 900_000), (0, 0, 900_000)] {
            found(RULE, &reclaiming(other.0, other.1, other.2));
        }
        // khugepaged reclaims a little itself, and work continues.
        let khugepaged = |stalls, full| {
            stalled(22, 900_000, full)
                .counter(PGSCAN_KSWAPD, 100)
                .counter(PGSCAN_DIRECT, 50)
                .counter(PSI_CPU_SOME, 900_000)
                .counter(ALLOCSTALL, stalls)
        };
        clear(RULE, &khugepaged(0, 10_000));
        found(RULE, &khugepaged(0, 200_000));
        found(RULE, &khugepaged(5, 10_000));
    }

    #[test]
    fn waits_without_a_standstill_are_informational() {
        let finding = found(RULE, &stalled(22, 300_000, 10_000));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn clear_after_a_burst_and_not_evaluated_without_pressure_files() {
        clear(RULE, &stalled(3, 900_000, 600_000));
        let missing = not_evaluated(RULE, &Case::over(30));
        assert_eq!(missing.names, ["psi.memory.some"]);
    }
}
