//! Direct reclaim: tasks that allocate memory have to reclaim some first.

use timeline::facts::{THP_DEFRAG, WATERMARK_SCALE, ZONE_RECLAIM_MODE};
use timeline::settings::WATERMARK_SCALE_DEFAULT;
use timeline::signals::{
    ALLOCSTALL, COMPACT_STALL, MEM_AVAILABLE, NR_DIRTY_BACKGROUND_THRESHOLD, NR_VMSCAN_IMMEDIATE,
    PGSCAN_DIRECT, PGSCAN_KSWAPD, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
};

use crate::measures::readings::RECLAIM_COSTS;
use crate::prelude::*;

declare_rule! {
    /// Tasks that allocate memory have to reclaim pages themselves first (direct reclaim).
    ///
    /// ## What it means
    /// Normally kswapd reclaims memory in the background, and an allocation finds a free page at once. When free memory
    /// falls below the min watermark, the allocating task must search for pages to evict itself (direct reclaim,
    /// counted as an allocation stall). Users see pauses; system CPU rises.
    /// ## How it is recognised
    /// For {STALL} or longer, one allocation stall per second or more while allocating tasks do at least
    /// {RECLAIM_CPU_SHARE} of all scanning, and tasks wait for memory for {RECLAIM_COSTS} of the time or more. Without
    /// pressure files (PSI) the confidence is lower.
    /// ## Not this
    /// - `node-reclaim-on`: pages scanned by allocating tasks, but no allocation stalls.
    /// - `cgroup-high-throttle`, `cgroup-cache-starved`: a cgroup at its limit; that moves neither counter.
    /// - `compaction-stall`: the requests are for large blocks, and memory is moved rather than freed.
    /// - A few stalls that cost no time: reclaim of clean page cache by a fast reader.
    /// ## What to do
    /// If the host is short of memory, this is a consequence: fix the shortage. Otherwise the bursts are larger than
    /// the gap between the low and the min watermark: now `sysctl -w vm.watermark_scale_factor={SCALE}`, for good the
    /// same in a file under `/etc/sysctl.d/`. Verify: no allocation stalls at the same load.
    /// ## References
    /// - kernel mm/page_alloc.c, __alloc_pages_direct_reclaim
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, watermark_scale_factor
    pub(crate) RULE = {
        id: "direct-reclaim-stall", since: "0.1.0", class: Shortage,
        numbers: [STALL, RECLAIM_CPU_SHARE, RECLAIM_COSTS, SCALE, PressureWindow::CALM],
        trigger: trigger, waits: Memory, story: story,
        verify: "memtide check --for 1m under the same load: no allocation stalls, memory stalls \
                 below {PressureWindow::CALM}",
        brings_about: &["kswapd-saturated"],
        explained_by: &[Explains::Maybe(THP_DEFRAG)],
    }
}

/// An engineering choice: below this share kswapd does the work, and stalls are incidental.
const RECLAIM_CPU_SHARE: Ratio = Ratio::from_percent(10.0);
/// Reclaim that finds this many pages still under writeback waits for the disk; an engineering choice.
const UNDER_WRITEBACK: PerSecond<Pages> = PerSecond::new(100.0);
/// The value to set: gaps between the watermarks of 1 % of each zone; an engineering choice.
const SCALE: u64 = 10 * WATERMARK_SCALE_DEFAULT;
/// The threshold to set for background writeback: an engineering choice, half a second to two seconds of a disk's
/// throughput.
const EARLY: Bytes = Bytes::from_mib(64);

fn trigger() -> Trigger {
    let direct = || rate(PGSCAN_DIRECT);
    let share = direct().ratio_of(direct().plus([rate(PGSCAN_KSWAPD)]));
    Trigger::on_host(
        STALL,
        all![
            rate(ALLOCSTALL).at_least("allocation stalls", PressureWindow::ALLOCATION_STALLS),
            share.at_least("scanned by allocating tasks, of all scanning", RECLAIM_CPU_SHARE),
            stall(PSI_MEMORY_SOME).at_least("memory stalls", RECLAIM_COSTS).if_measured(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let stalls = cx.allocation_stalls()?;
    let rate = cx.mean_in(stretch, ALLOCSTALL, &stalls)?;
    let scanned = cx.mean_in(stretch, PGSCAN_DIRECT, &cx.rate(PGSCAN_DIRECT)?)?;
    let is_on = cx.number(ZONE_RECLAIM_MODE).is_ok_and(|mode| mode != 0);
    if is_on && PressureWindow::are_of_a_node(rate, scanned) {
        return clear!(
            "allocating tasks scanned {scanned} with hardly a stall: node reclaim, not a shortage"
        );
    }
    let share = |signal| pressure::worst(&cx.stall(signal).ok()?, stretch);
    let waited = Waited::during(stretch, [PSI_MEMORY_SOME, PSI_MEMORY_FULL], share);
    let sentence =
        waited.time().map_or_else(String::new, |time| format!(" Tasks waited for memory {time}."));
    let title = Title::from(format!(
        "Tasks have to reclaim memory before they can allocate: {rate} allocation stalls for {}.",
        stretch.duration()
    ))
    .then(sentence);
    let least = cx.lowest_in(MEM_AVAILABLE, stretch);
    let share_of_ram = least.and_then(|(least, _)| least.ratio_of(cx.ram().ok()?));
    let is_short = share_of_ram.is_some_and(|share| share < AVAILABLE_LOW_SHARE);
    let open = match waited.some {
        Some(_) => "",
        None => "memory stalls (PSI) would settle it",
    };
    let worst = least.map_or(stretch.last, |(_, index)| index);
    Ok(RULE
        .found(Severity::critical_if(waited.is_standstill()), title)
        .graph("allocation stalls", &stalls)
        .shows_from(
            ALLOCSTALL,
            rate,
            PressureWindow::ALLOCATION_STALLS,
            None,
            format!("allocation stalls: {rate}"),
        )
        .counts_as("allocation stalls")
        .with(share_of_scanning(cx, stretch, scanned), |finding, part| {
            let text = format!("allocating tasks scanned {scanned}, {part} of all scanning");
            finding.shows_from(Computed(PGSCAN_DIRECT), part, RECLAIM_CPU_SHARE, None, text)
        })
        .with(waited.some, |finding, some| {
            let text = format!("memory stalls: {}", waited.shares());
            finding
                .shows_from(PSI_MEMORY_SOME, some, RECLAIM_COSTS, None, text)
                .counts_as("memory stalls")
        })
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("available fell to {least}"))
        .and(|finding| causes(cx, stretch, finding, is_short))
        .not_where(cx, ZONE_RECLAIM_MODE, 0, "node-reclaim-on")
        .with(cx.mean_rate(COMPACT_STALL, stretch), |finding, waited| {
            show_large_blocks(finding, waited, rate)
        })
        .fix(Fix::cap(
            cx,
            worst,
            "Cap or stop what allocates most. If the host is short of memory, that is the root \
             cause.",
        ))
        .affects(processes::largest(cx, worst, 3))
        .sure_by_kinds(cx, open)
        .into())
}

/// The share of all scanned pages that allocating tasks scanned.
fn share_of_scanning(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    direct: PerSecond<Pages>,
) -> Option<Ratio> {
    let kswapd = cx.mean_rate(PGSCAN_KSWAPD, stretch)?;
    let all = direct.get() + kswapd.get();
    (all > 0.0).then(|| Ratio::new(direct.get() / all))
}

/// Pages that reclaim found under writeback, where they are many.
fn behind_writeback(cx: &Evidence<'_>, stretch: &Stretch) -> Option<PerSecond<Pages>> {
    let rate = cx.mean_rate(NR_VMSCAN_IMMEDIATE, stretch)?;
    (rate >= UNDER_WRITEBACK).then_some(rate)
}

/// Why reclaim does not keep up, and what to do about it.
fn causes(cx: &Evidence<'_>, stretch: &Stretch, finding: Finding, is_short: bool) -> Finding {
    let writeback = behind_writeback(cx, stretch);
    let cause = if writeback.is_some() {
        "Reclaim finds pages that are dirty or under writeback, so it has to wait for the disk."
    } else if is_short {
        "The host is short of memory: few pages are left to evict."
    } else {
        "Programs allocate in bursts larger than the gap between the low and the min watermark, \
         faster than kswapd reclaims."
    };
    // If background writeback starts earlier already, the setting would delay it.
    let background = cx.bytes(NR_DIRTY_BACKGROUND_THRESHOLD).ok();
    let lowest = background.and_then(|threshold| threshold.min_in(stretch));
    let is_late = writeback.is_some() && lowest.is_none_or(|(threshold, _)| threshold > EARLY);
    finding
        .with(writeback, |finding, rate| {
            let text = format!("reclaim found {rate} still under writeback");
            finding.shows_from(NR_VMSCAN_IMMEDIATE, rate, UNDER_WRITEBACK, None, text)
        })
        .cause(cause)
        .when(!is_short, |finding| widen_the_gap(cx, finding))
        .when(is_late, |finding| {
            let what = "Start writeback earlier, so that reclaim finds fewer dirty pages.";
            finding.fix(Fix::dirty_limits(cx, what, EARLY, None))
        })
}

/// Adds whether the requests were for large blocks.
fn show_large_blocks(
    finding: Finding,
    waited: PerSecond<Count>,
    stalls: PerSecond<Count>,
) -> Finding {
    if waited.get() <= 0.0 {
        finding.not("compaction-stall", "no task waited for a large block")
    } else if waited < stalls {
        let why = format!("only {waited} waited for a large block");
        finding.not("compaction-stall", why)
    } else {
        let text = format!("compaction stalls: {waited}, for large blocks");
        finding.shows(COMPACT_STALL, waited, None, text)
    }
}

/// Advises wider gaps between the watermarks, unless they are wide already. Kernels before 4.6 lack the setting.
fn widen_the_gap(cx: &Evidence<'_>, finding: Finding) -> Finding {
    match cx.number(WATERMARK_SCALE) {
        Ok(now) if now < SCALE => {
            let text = format!("vm.watermark_scale_factor = {now}");
            let fix = Fix::tunable(cx, "Make kswapd start earlier.", WATERMARK_SCALE, SCALE);
            finding.shows_fact(WATERMARK_SCALE, now, text).fix(fix)
        }
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{
        Case, amid_calm, changed, clear, found, not_evaluated, three_times, times,
    };
    use timeline::signals::MEM_TOTAL;

    #[test]
    fn dirty_limits_are_advised_only_if_writeback_starts_late() {
        let offers = |begins_mib: u64| {
            let case = reclaiming(900, 60_000, 20_000)
                .counter(NR_VMSCAN_IMMEDIATE, 100_000)
                .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(begins_mib * 256));
            let fixes = found(RULE, &case).fixes;
            fixes.iter().flat_map(changed).any(|change| change.contains("dirty_background"))
        };
        assert!(offers(300));
        assert!(!offers(27));
    }

    #[test]
    fn only_occurrences_with_stalls_are_reported() {
        let case = Case::over(240)
            .counter_steps(ALLOCSTALL, &three_times([900; 3], 0))
            .counter_steps(PGSCAN_DIRECT, &three_times([60_000; 3], 0))
            .counter(PGSCAN_KSWAPD, 20_000)
            .counter_steps(PSI_MEMORY_SOME, &three_times([200_000, 0, 200_000], 0));
        let finding = found(RULE, &case);
        assert_eq!(times(&finding), [(0, 40), (200, 240)]);
        assert!(finding.title.contains("for 40 s"), "{}", finding.title);
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_reclaim_without_stalls() {
        let in_an_hour = |stalled| {
            Case::over(3600)
                .counter_steps(ALLOCSTALL, &amid_calm(50, 0))
                .counter_steps(PGSCAN_DIRECT, &amid_calm(4000, 0))
                .counter_steps(PGSCAN_KSWAPD, &amid_calm(9000, 0))
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(stalled, 0))
                .counter_steps(PSI_MEMORY_FULL, &amid_calm(stalled / 2, 0))
        };
        let finding = found(RULE, &in_an_hour(700_000));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1800, 1830)]);
        clear(RULE, &in_an_hour(10_000));
    }

    fn reclaiming(stalls: u64, direct: u64, kswapd: u64) -> Case {
        Case::over(30)
            .counter(ALLOCSTALL, stalls)
            .counter(PGSCAN_DIRECT, direct)
            .counter(PGSCAN_KSWAPD, kswapd)
    }

    #[test]
    fn allocation_stalls_that_cost_time_are_found() {
        let case = reclaiming(50, 4000, 9000).counter(PSI_MEMORY_SOME, 200_000);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn a_standstill_is_critical() {
        let case = reclaiming(50, 4000, 9000)
            .counter(PSI_MEMORY_SOME, 700_000)
            .counter(PSI_MEMORY_FULL, 400_000);
        assert_eq!(found(RULE, &case).severity, Severity::Critical);
    }

    #[test]
    fn probable_without_pressure_files() {
        let finding = found(RULE, &reclaiming(50, 4000, 9000));
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn clear_when_stalls_cost_no_time() {
        clear(RULE, &reclaiming(50, 4000, 9000).counter(PSI_MEMORY_SOME, 10_000));
    }

    #[test]
    fn clear_when_kswapd_does_the_work() {
        clear(RULE, &reclaiming(2, 100, 20_000));
        clear(RULE, &reclaiming(0, 0, 20_000));
    }

    #[test]
    fn clear_after_a_burst_of_one_second() {
        let mut stalls = vec![0; 30];
        stalls[10] = 500;
        let case = Case::over(30)
            .counter_steps(ALLOCSTALL, &stalls)
            .counter_steps(PGSCAN_DIRECT, &stalls)
            .counter(PGSCAN_KSWAPD, 0);
        clear(RULE, &case);
    }

    #[test]
    fn clear_on_node_reclaim() {
        clear(
            RULE,
            &reclaiming(2, 60_000, 0)
                .fact(ZONE_RECLAIM_MODE, "1")
                .counter(PSI_MEMORY_SOME, 150_000),
        );
    }

    #[test]
    fn wider_watermarks_are_advised_unless_the_host_is_short() {
        let case = |available| {
            reclaiming(50, 4000, 9000)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
                .fact(WATERMARK_SCALE, "10")
        };
        let widened = |case: &Case| {
            let fixes = found(RULE, case).fixes;
            fixes.iter().flat_map(changed).any(|it| it.ends_with("watermark_scale_factor=100"))
        };
        assert!(widened(&case(400)));
        assert!(!widened(&case(20)));
    }

    #[test]
    fn not_evaluated_without_the_counters() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["vm.allocstall"]);
        let no_scans = Case::over(30).counter(ALLOCSTALL, 5);
        assert_eq!(not_evaluated(RULE, &no_scans).names, ["vm.pgscan_direct"]);
    }
}
