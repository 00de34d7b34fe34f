//! Reclaim meets dirty pages faster than the disk writes them.

use timeline::signals::{
    DIRTY_AND_WRITEBACK, NR_THROTTLED_WRITTEN, NR_VMSCAN_IMMEDIATE, NR_WRITTEN, PSWPOUT,
};

use crate::measures::cgroups;
use crate::measures::readings::{SWAP_OUT_NOTABLE, memory_waits};
use crate::measures::writeback::{filled_cgroups, is_far_from_limit, unwritten};
use crate::prelude::*;
use crate::rule::DIRTY_LIMITS;

declare_rule! {
    /// Reclaim meets unwritten file pages instead of clean ones: allocations wait for the disk.
    ///
    /// ## What it means
    /// Clean file pages are dropped at once; dirty ones must be written first. Where much is written to a slow disk,
    /// dirty pages reach the old end of the page lists. Reclaim marks them, goes on, and finally waits for the disk.
    /// Then a task that only needs memory, and writes nothing, is as slow as the disk.
    /// ## How it is recognised
    /// For {STALL} or longer, reclaim meets {MET} or more of dirty file pages (`nr_vmscan_immediate_reclaim`) while
    /// tasks wait for memory {PressureWindow::MEMORY} of the time or more, or one allocation per second or more stalls,
    /// and hardly a page is swapped out.
    /// ## Not this
    /// - `dirty-throttle`: those who write wait, and those who allocate do not.
    /// - `direct-reclaim-stall` alone: allocations wait for reclaim, which meets clean or anonymous pages.
    /// - `swap-thrash`: the pages under writeback are swap.
    /// - `cgroup-dirty-reclaim`: a cgroup of v1 is full of its own dirty pages, and the host is far from its limit.
    /// ## What to do
    /// Keep less dirty: now `sysctl -w vm.dirty_background_bytes=… vm.dirty_bytes=…` at one and four seconds of the
    /// disk's speed, for good in a file under `/etc/sysctl.d/`; or give the writer a cgroup with `MemoryHigh=`. Verify:
    /// reclaim meets less than {MET} of dirty pages, and tasks do not wait for memory.
    /// ## References
    /// - kernel mm/vmscan.c, shrink_folio_list
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, dirty_bytes
    pub(crate) RULE = {
        id: "reclaim-behind-writes", since: "0.1.0", class: Stall,
        numbers: [STALL, MET, PressureWindow::MEMORY],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "Dirty file pages reach the end of the page lists before the disk has written them.",
        verify: "memtide check --for 1m during the same writes: no task waits for memory",
        brings_about: &["direct-reclaim-stall", "kswapd-saturated"],
        explained_by: DIRTY_LIMITS,
    }
}

/// An engineering choice: 1 MiB/s. Labelled captures, November 2026: 2 pages/s and less, but for one second of 420 as a
/// writer's host filled up.
const MET: PerSecond<Pages> = PerSecond::new(256.0);
/// Limits below this make writers wait for every request.
const LIMIT_MIN: Bytes = Bytes::from_mib(16);

fn trigger() -> Trigger {
    Trigger::on_host(
        STALL,
        all![
            rate(NR_VMSCAN_IMMEDIATE).at_least("dirty pages met by reclaim", MET),
            memory_waits(),
            rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE).if_measured(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let is_far = || is_far_from_limit().longest_in(cx, stretch) >= stretch.duration();
    let filled = filled_cgroups(cx, stretch).next();
    if let Some((group, _)) = filled.filter(|_| is_far()) {
        return clear!(
            "reclaim meets the dirty pages of {}, which fill it up to its limit",
            cgroups::called(cx, group)
        );
    }
    let met = cx.rate(NR_VMSCAN_IMMEDIATE)?;
    let rate = cx.mean_in(stretch, NR_VMSCAN_IMMEDIATE, &met)?;
    let stalls = PressureWindow::during(cx, stretch);
    let written = cx.bytes_rate(NR_WRITTEN).ok();
    let speed = written.and_then(|written| written.mean_in(stretch));
    let unwritten = unwritten().track(cx).ok();
    let level = unwritten.and_then(|unwritten| unwritten.mean_in(stretch));
    let at = speed.map_or_else(String::new, |speed| format!(" at {speed}"));
    let title = Title::from(format!(
        "Allocations wait for the disk: reclaim meets {rate} of dirty file pages that have yet to \
         be written{at}."
    ))
    .then(stalls.sentence());
    let throttled = cx.mean_rate(NR_THROTTLED_WRITTEN, stretch);
    let finding = RULE
        .found(Severity::warning_if(stalls.any()), title)
        .graph("dirty pages met by reclaim", &met)
        .shows_from(
            NR_VMSCAN_IMMEDIATE,
            rate,
            MET,
            None,
            format!("reclaim met {rate} that were dirty"),
        )
        .counts_as("dirty pages in reclaim")
        .with(throttled.filter(|rate| rate.get() > 0.0), |finding, rate| {
            finding.shows(
                NR_THROTTLED_WRITTEN,
                rate,
                None,
                format!("{rate} written while reclaim waited for them"),
            )
        })
        .with(level, |finding, level| {
            finding.shows(
                DIRTY_AND_WRITEBACK,
                level,
                None,
                format!("{level} dirty or under writeback"),
            )
        })
        .shows_stalls(&stalls)
        .when(cx.rate(PSWPOUT).is_ok(), |finding| {
            finding.not("swap-thrash", "hardly a page was swapped out")
        });
    Ok(remedy(cx, finding, speed)
        .affects(processes::largest(cx, stretch.last, 3))
        .sure_by_kinds(cx, "")
        .into())
}

fn remedy(cx: &Evidence<'_>, finding: Finding, speed: Option<BytesPerSecond>) -> Finding {
    let what = "Keep less dirty: start writing at one second's worth of the disk's speed, throttle \
                writers at four. Remove vm.dirty_ratio and vm.dirty_background_ratio from \
                /etc/sysctl.conf and /etc/sysctl.d/.";
    let finding = match speed.filter(|speed| speed.get() > 0.0) {
        Some(speed) => {
            let seconds = |n: f64| {
                let mib = Bytes::from_mib(1).as_f64();
                let whole = (speed.get() * n / mib).ceil() * mib;
                Bytes::from_f64(whole).max(LIMIT_MIN)
            };
            let background = seconds(1.0);
            let most = seconds(4.0).max(background + background);
            finding.fix(Fix::dirty_limits(cx, what, background, Some(most)))
        }
        None => finding.fix(Fix::say(what)),
    };
    finding.fix(Fix::say(
        "Or run the writer in a cgroup of its own, so that its dirty pages stay few: systemd-run \
         --scope -p MemoryHigh=512M COMMAND, or MemoryHigh=512M in its unit file.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::facts::CgroupMode;
    use timeline::signals::{
        ALLOCSTALL, CGROUP_EVENTS_MAX, CGROUP_FILE_DIRTY, CGROUP_FILE_WRITEBACK, CGROUP_MAX,
        MEM_DIRTY, MEM_TOTAL, MEM_WRITEBACK, PSI_MEMORY_SOME,
    };
    use units::Limit;

    fn reclaiming(met: u64, waits: u64) -> Case {
        Case::over(30)
            .gauge(MEM_DIRTY, Bytes::from_mib(160))
            .counter(NR_VMSCAN_IMMEDIATE, met)
            .counter(NR_WRITTEN, 20 * 256)
            .counter(PSI_MEMORY_SOME, waits)
    }

    #[test]
    fn reclaim_that_meets_dirty_pages_is_found() {
        let finding = found(RULE, &reclaiming(3_000, 300_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        let limits = changed(&finding.fixes[0]);
        assert!(limits[1].ends_with("vm.dirty_bytes=83886080"), "{limits:?}");
    }

    #[test]
    fn allocation_stalls_count_without_pressure_files() {
        let case = Case::over(30).counter(NR_VMSCAN_IMMEDIATE, 3_000).counter(ALLOCSTALL, 20);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn clear_when_only_writers_wait() {
        clear(RULE, &reclaiming(3_000, 0));
    }

    #[test]
    fn clear_when_reclaim_meets_clean_pages_or_swap() {
        clear(RULE, &reclaiming(20, 300_000));
        clear(RULE, &reclaiming(3_000, 300_000).counter(PSWPOUT, 3_000));
    }

    #[test]
    fn clear_when_the_dirty_pages_fill_a_cgroup_of_v1_and_the_host_is_far_from_its_limit() {
        let filled = |ram_mib| {
            let (group, mib) = ("/docker/job", Bytes::from_mib);
            let mut case = reclaiming(3_000, 300_000)
                .gauge(MEM_TOTAL, mib(ram_mib))
                .gauge(MEM_WRITEBACK, Bytes::ZERO)
                .gauge_of(Cgroup, group, CGROUP_MAX, Limit::Bytes(mib(256)))
                .gauge_of(Cgroup, group, CGROUP_FILE_DIRTY, mib(150))
                .gauge_of(Cgroup, group, CGROUP_FILE_WRITEBACK, Bytes::ZERO)
                .counter_of(Cgroup, group, CGROUP_EVENTS_MAX, 500);
            case.facts.cgroup_mode = Some(CgroupMode::V1);
            case
        };
        clear(RULE, &filled(32_000));
        // The host is at its own limit.
        found(RULE, &filled(1_000));
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_a_moment() {
        let hour = |met: &[u64]| {
            Case::over(3600)
                .counter_steps(NR_VMSCAN_IMMEDIATE, met)
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(300_000, 0))
        };
        let finding = found(RULE, &hour(&amid_calm(3_000, 0)));
        assert_eq!(times(&finding), [(1800, 1830)]);
        let mut moment = vec![0; 3600];
        moment[1810] = 420;
        clear(RULE, &hour(&moment));
    }

    #[test]
    fn not_evaluated_without_the_counter() {
        let case = Case::over(30).counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.nr_vmscan_immediate_reclaim"]);
    }
}
