//! kswapd runs all the time and reclaims nothing, on a host with memory to spare.

use timeline::signals::{
    MEM_AVAILABLE, PAGEOUTRUN, PGSCAN_KSWAPD, PGSTEAL_KSWAPD, PROC_STIME, SLABS_SCANNED, ZONE_FREE,
    ZONE_HIGH, ZONE_MANAGED,
};

use crate::measures::kernel_threads;
use crate::measures::readings::AVAILABLE_ROOMY_SHARE;
use crate::prelude::*;
use crate::trigger::computed_within;

declare_rule! {
    /// kswapd keeps a CPU busy and reclaims nothing, although the host has memory to spare.
    ///
    /// ## What it means
    /// kswapd should sleep until a zone falls below its low watermark. Here it runs without an end and scans hardly a
    /// page: it goes round a small zone that cannot reach its watermark, or round kernel caches that have nothing to
    /// give. That costs a CPU, and latency on small hosts. It is a fault of the kernel or of a setting, not of the
    /// load.
    /// ## How it is recognised
    /// For {LEVEL} or longer, a kswapd thread uses {CPU_BUSY} of a CPU or more, scans fewer than {SCANNED_MAX} and
    /// reclaims fewer than {RECLAIMED_MAX}, while {AVAILABLE_ROOMY_SHARE} of RAM or more is available.
    /// ## Not this
    /// - `kswapd-saturated`: it scans many pages and reclaims few; memory is short.
    /// - `streaming-read`: it reclaims what it scans.
    /// - A process of the same name that is not a kernel thread (a known disguise of miners).
    /// ## What to do
    /// See where it runs: its stack, and the zone below its watermark. Now: `echo 1 > /proc/sys/vm/drop_caches` once
    /// often ends it; `sysctl -w vm.watermark_boost_factor=0` if the zone is boosted. For good: a newer kernel. Verify:
    /// kswapd below {kernel_threads::CPU_GOAL} of a CPU.
    /// ## References
    /// - kernel mm/vmscan.c, balance_pgdat and prepare_kswapd_sleep
    pub(crate) RULE = {
        id: "kswapd-stuck", since: "0.1.0", class: Stall,
        numbers: [LEVEL, CPU_BUSY, SCANNED_MAX, RECLAIMED_MAX, kernel_threads::CPU_GOAL,
            AVAILABLE_ROOMY_SHARE],
        trigger: trigger, waits: Memory, story: story,
        cause: "A zone cannot reach its watermark by reclaim, or kernel caches have nothing to \
                give, and kswapd does not give up.",
        verify: "memtide check --for 1m: kswapd below {kernel_threads::CPU_GOAL} of a CPU",
    }
}

const KSWAPD: &str = "kswapd";
/// An engineering choice. Labelled captures, November 2026: 20 % at most on calm hosts, also while streaming.
const CPU_BUSY: Ratio = Ratio::from_percent(80.0);
/// From here on it scans: then kswapd-saturated or a stream.
const SCANNED_MAX: PerSecond<Pages> = PressureWindow::SCANNED;
/// 0.4 MiB/s: an engineering choice.
const RECLAIMED_MAX: PerSecond<Pages> = PerSecond::new(100.0);

fn trigger() -> Trigger {
    let cpu: Reading<Ratio> = computed_within(
        "kswapd's CPU",
        |cx| kernel_threads::busiest(cx, KSWAPD),
        kernel_threads::at_most,
    );
    Trigger::on_host(
        LEVEL,
        all![
            rate(PGSCAN_KSWAPD).at_most("scanned by kswapd", SCANNED_MAX),
            rate(PGSTEAL_KSWAPD).at_most("reclaimed by kswapd", RECLAIMED_MAX),
            gauge(MEM_AVAILABLE).at_least("available", ram().share(AVAILABLE_ROOMY_SHARE)),
            cpu.at_least("kswapd's CPU", CPU_BUSY),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let Some((thread, cpus)) = kernel_threads::busiest_in(cx, KSWAPD, stretch) else {
        return clear!("kswapd was not measured");
    };
    let name = &thread.label;
    let used = cx.mean_in(stretch, PROC_STIME, &cpus)?;
    let scanned = cx.mean_in(stretch, PGSCAN_KSWAPD, &cx.rate(PGSCAN_KSWAPD)?)?;
    let reclaimed = cx.mean_in(stretch, PGSTEAL_KSWAPD, &cx.rate(PGSTEAL_KSWAPD)?)?;
    let available = cx.lowest_in(MEM_AVAILABLE, stretch);
    let left = available.map_or_else(String::new, |(left, _)| format!(", with {left} available"));
    let stalls = PressureWindow::during(cx, stretch);
    let title = format!(
        "{name} used {used} of a CPU for {} and reclaimed next to nothing{left}: it is stuck.",
        stretch.duration()
    );
    Ok(RULE
        .found(Severity::warning_if(stalls.any()), title)
        .graph("kswapd's CPU", &cpus)
        .shows_from(PROC_STIME, used, CPU_BUSY, None, format!("{name} used {used} of a CPU"))
        .counts_as("kswapd's CPU time")
        .shows_below(
            PGSTEAL_KSWAPD,
            reclaimed,
            RECLAIMED_MAX,
            None,
            format!("it scanned {scanned} and reclaimed {reclaimed}"),
        )
        .counts_as("its yield")
        .with(available, |finding, (left, index)| {
            finding.shows(MEM_AVAILABLE, left, cx.time(index), format!("at least {left} available"))
        })
        .with(lowest_zone(cx, stretch), |finding, (zone, free, high)| {
            let text = format!("zone {zone} has {free} free, and kswapd stops at {high}");
            finding.shows(ZONE_FREE, free, None, text).affects([Affected::new(
                "zone",
                zone,
                format!("{free} free of {high}"),
            )])
        })
        .shows_mean(cx, PAGEOUTRUN, stretch, |runs| format!("kswapd was woken {runs}"))
        .shows_mean(cx, SLABS_SCANNED, stretch, |rate| format!("{rate} kernel objects scanned"))
        .when(stalls.any(), |finding| finding.shows_stalls(&stalls))
        .not("kswapd-saturated", format!("it scanned only {scanned}"))
        .not("available-exhaustion", "enough memory is available")
        .fix(
            Fix::say(
                "See where it runs: in reclaim of pages, of kernel caches, or between the zones.",
            )
            .inspect(
                "for i in 1 2 3 4 5; do cat /proc/$(pgrep -o kswapd)/stack; echo; \
                 sleep 1; done\n\
                 grep -E 'Node|free |high |boost|managed' /proc/zoneinfo",
            ),
        )
        .fix(
            Fix::say(
                "Dropping clean page cache once often ends it; nothing is lost but the time to \
                 read it again. Then look for a newer kernel.",
            )
            .run("echo 1 > /proc/sys/vm/drop_caches"),
        )
        .affects([Affected::new("process", name, format!("{used} of a CPU"))])
        .sure_by_kinds(cx, "the stack of the thread would show where it runs")
        .into())
}

/// The zone that is farthest below its high watermark, with its free memory and that watermark; `None` if all are above.
fn lowest_zone<'a>(cx: &Evidence<'a>, stretch: &Stretch) -> Option<(&'a str, Bytes, Bytes)> {
    let page = cx.page_size().ok()?;
    let level = |zone, signal: Signal<timeline::Gauge<Pages>>| {
        let track = cx.gauge_of(zone, signal).ok()?;
        track.to_bytes(page).mean_in(stretch)
    };
    let zones = cx.timeline.entities(Entity::Zone).filter_map(|zone| {
        let (free, high) = (level(zone, ZONE_FREE)?, level(zone, ZONE_HIGH)?);
        let is_used = level(zone, ZONE_MANAGED)? > Bytes::ZERO;
        (is_used && free < high).then_some((zone.key.as_str(), free, high))
    });
    let share = |(_, free, high): &(&str, Bytes, Bytes)| free.ratio_of(*high).unwrap_or_default();
    zones.min_by(|a, b| share(a).get().total_cmp(&share(b).get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::kernel_threads::KTHREADD;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PROC_PARENT, PSI_MEMORY_SOME};

    const THREAD: &str = "39@12";

    /// A host of 1,000 MiB on which kswapd uses `ticks` hundredths of a CPU.
    fn running(case: Case, ticks: u64, available: u64) -> Case {
        kswapd(case, available).counter_of(Entity::Process, THREAD, PROC_STIME, ticks)
    }

    fn kswapd(case: Case, available: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
            .counter(PGSCAN_KSWAPD, 20)
            .counter(PGSTEAL_KSWAPD, 0)
            .gauge_of(Entity::Process, THREAD, PROC_PARENT, KTHREADD)
            .named(THREAD, "kswapd0")
    }

    #[test]
    fn a_busy_thread_that_reclaims_nothing_is_found_with_its_zone() {
        let zone = |case: Case, key, free, high| {
            case.gauge_of(Entity::Zone, key, ZONE_FREE, Pages::new(free))
                .gauge_of(Entity::Zone, key, ZONE_HIGH, Pages::new(high))
                .gauge_of(Entity::Zone, key, ZONE_MANAGED, Pages::new(4_000))
        };
        let case = zone(running(Case::over(30), 99, 600), "0/DMA32", 90_000, 4_000);
        let case = zone(case, "0/Normal", 256, 1_024);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("600 MiB available"), "{}", finding.title);
        assert!(finding.affected.iter().any(|one| one.name == "0/Normal"));
    }

    #[test]
    fn a_warning_while_tasks_wait() {
        let case = running(Case::over(30), 99, 600).counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn clear_where_it_scans_or_reclaims() {
        let base = || running(Case::over(30), 99, 600);
        clear(RULE, &base().counter(PGSCAN_KSWAPD, 40_000));
        clear(RULE, &base().counter(PGSTEAL_KSWAPD, 900).counter(PGSCAN_KSWAPD, 900));
    }

    #[test]
    fn clear_where_memory_is_short_or_it_is_idle() {
        clear(RULE, &running(Case::over(30), 99, 60));
        clear(RULE, &running(Case::over(30), 20, 600));
    }

    #[test]
    fn not_evaluated_when_a_user_process_calls_itself_kswapd() {
        let case = running(Case::over(30), 99, 600);
        let case = case.gauge_of(Entity::Process, THREAD, PROC_PARENT, Count::new(1));
        assert_eq!(not_evaluated(RULE, &case).names, ["proc.stime"]);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |ticks| {
            kswapd(Case::over(3600), 600).counter_steps_of(
                Entity::Process,
                THREAD,
                PROC_STIME,
                &amid_calm(ticks, 1),
            )
        };
        assert_eq!(times(&found(RULE, &hour(99))), [(1800, 1830)]);
        clear(RULE, &hour(40));
    }

    #[test]
    fn not_evaluated_without_counters() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["vm.pgscan_kswapd"]);
    }
}
