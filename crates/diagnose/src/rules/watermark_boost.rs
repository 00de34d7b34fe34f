//! Boosted watermarks make kswapd reclaim although enough memory is free.

use timeline::facts::WATERMARK_BOOST;
use timeline::signals::{
    MEM_AVAILABLE, MEM_FREE, PGSCAN_KSWAPD, PGSTEAL_KSWAPD, REFAULT_FILE, ZONE_BOOST, ZONE_FREE,
    ZONE_HIGH,
};

use crate::measures::readings::AVAILABLE_ROOMY_SHARE;
use crate::prelude::*;

declare_rule! {
    /// Boosted watermarks make kswapd drop page cache although enough memory is free.
    ///
    /// ## What it means
    /// When the kernel must mix movable and unmovable pages in one block, it raises the watermarks of the zone for a
    /// time, so that kswapd frees more and large blocks can form. On hosts with much churn of kernel objects and huge
    /// pages this happens again and again: kswapd drops cache that is needed, and free memory stays high for nothing.
    /// ## How it is recognised
    /// For {STALL} or longer, a zone's watermarks are boosted, its free memory is above the high watermark that holds
    /// without the boost, kswapd scans {SCANNED} or more, and {AVAILABLE_ROOMY_SHARE} of RAM or more is available. It is a
    /// warning if dropped files are read again at {READ_AGAIN} or more and tasks wait, otherwise informational.
    /// ## Not this
    /// - `kswapd-saturated`: kswapd reclaims little of what it scans.
    /// - `min-free-too-large`: the watermarks themselves are too high, always.
    /// - A boost while free memory is at its floor, or while little is available: kswapd would work without it too.
    /// ## What to do
    /// Now: `sysctl -w vm.watermark_boost_factor=0`; for good in a file under `/etc/sysctl.d/`. If high-order
    /// allocations then fail, go back. Verify: `boost` in /proc/zoneinfo stays 0, and kswapd is idle while memory is
    /// free.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, watermark_boost_factor
    /// - kernel mm/vmscan.c, balance_pgdat
    pub(crate) RULE = {
        id: "watermark-boost", since: "0.1.0", class: Setting,
        numbers: [STALL, SCANNED, READ_AGAIN, AVAILABLE_ROOMY_SHARE],
        trigger: trigger, waits: Memory, story: story,
        cause: "Fragmentation raises the watermarks for a time (vm.watermark_boost_factor), and \
                kswapd works until they are met.",
        verify: "grep boost /proc/zoneinfo: 0, and kswapd idle while memory is free",
        brings_about: &["page-cache-thrash"],
        explained_by: &[Explains::Surely(WATERMARK_BOOST)],
    }
}

/// kswapd works from here on; a stream through the cache needs more.
const SCANNED: PerSecond<Pages> = PressureWindow::SCANNED;

fn trigger() -> Trigger {
    // The watermarks of /proc/zoneinfo contain the boost.
    let high = gauge(ZONE_HIGH).minus(gauge(ZONE_BOOST));
    Trigger::on(
        Subjects::Each(Entity::Zone, |_, _| true),
        STALL,
        all![
            gauge(ZONE_BOOST).at_least("boost of the zone", Pages::new(1)),
            gauge(ZONE_FREE).at_least("free memory of the zone", high),
            rate(PGSCAN_KSWAPD).at_least("scanned by kswapd", SCANNED),
            gauge(MEM_AVAILABLE).at_least("available", ram().share(AVAILABLE_ROOMY_SHARE)),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (zone, stretch) = (incident.entity()?, &incident.stretch);
    let name = &zone.key;
    let page = cx.page_size()?;
    let boost = cx.gauge_of(zone, ZONE_BOOST)?.to_bytes(page);
    let Some((most, at)) = boost.max_in(stretch) else {
        return clear!("the boost was not measured");
    };
    let free = cx.gauge_of(zone, ZONE_FREE)?.to_bytes(page);
    let free = cx.mean_in(stretch, ZONE_FREE, &free)?;
    let high = cx.gauge_of(zone, ZONE_HIGH)?.to_bytes(page);
    let high = cx.mean_in(stretch, ZONE_HIGH, &high.minus(&boost))?;
    let scanned = cx.mean_in(stretch, PGSCAN_KSWAPD, &cx.rate(PGSCAN_KSWAPD)?)?;
    let reclaimed = cx.bytes_rate(PGSTEAL_KSWAPD).ok();
    let dropped = reclaimed.and_then(|rate| rate.mean_in(stretch));
    let read_again = cx.refaults_file().ok();
    let refaults = read_again.and_then(|rate| Some(rate.mean_in(stretch)?.to_bytes(page)));
    let stalls = PressureWindow::during(cx, stretch);
    let hurts = refaults.is_some_and(|refaults| refaults >= READ_AGAIN) && stalls.any();
    let reclaims =
        dropped.map_or_else(|| format!("scans {scanned}"), |dropped| format!("reclaims {dropped}"));
    let title = format!(
        "kswapd {reclaims} for {} although {free} is free in zone {name}: its watermarks are \
         boosted by {most}.",
        stretch.duration()
    );
    Ok(RULE
        .found(Severity::warning_if(hurts), title)
        .graph("boost of the zone", &boost)
        .shows_from(
            ZONE_BOOST,
            most,
            Bytes::new(1),
            cx.time(at),
            format!("watermarks of {name} boosted by {most}"),
        )
        .counts_as("the boost")
        .shows_from(
            ZONE_FREE,
            free,
            high,
            None,
            format!("{free} free in {name}; without the boost kswapd stops at {high}"),
        )
        .shows_from(PGSCAN_KSWAPD, scanned, SCANNED, None, format!("kswapd scanned {scanned}"))
        .counts_as("kswapd's scanning")
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("at least {least} available"))
        .shows_lowest(cx, MEM_FREE, stretch, |least| format!("at least {least} free on the host"))
        .with(refaults, |finding, refaults| {
            let text = format!("{refaults} of files were read again after eviction");
            finding.shows(Computed(REFAULT_FILE), refaults, None, text).counts_if(hurts, "refaults")
        })
        .when(stalls.any(), |finding| finding.shows_stalls(&stalls))
        .not("min-free-too-large", format!("without the boost the high watermark is {high}"))
        .fix(Fix::tunable(
            cx,
            "Switch the boost off. If large allocations then fail (page allocation failure in the \
             kernel log), go back.",
            WATERMARK_BOOST,
            0,
        ))
        .affects([Affected::new("zone", name, format!("boosted by {most}, {free} free"))])
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME};

    const ZONE: &str = "0/Normal";

    /// A zone with a high watermark of 40 MiB, boosted, with `free` MiB free; kswapd scans.
    fn boosted(boost: u64, free: u64, scanned: u64) -> Case {
        zone(Case::over(30), free)
            .gauge_of(Entity::Zone, ZONE, ZONE_BOOST, Pages::new(boost * 256))
            .gauge_of(Entity::Zone, ZONE, ZONE_HIGH, Pages::new((40 + boost) * 256))
            .counter(PGSCAN_KSWAPD, scanned)
            .counter(PGSTEAL_KSWAPD, scanned)
    }

    fn zone(case: Case, free: u64) -> Case {
        case.gauge_of(Entity::Zone, ZONE, ZONE_FREE, Pages::new(free * 256))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(500))
    }

    #[test]
    fn a_kswapd_that_works_for_a_boost_alone_is_informational() {
        let finding = found(RULE, &boosted(60, 90, 5_000));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("boosted by 60 MiB"), "{}", finding.title);
    }

    #[test]
    fn a_warning_when_dropped_files_are_read_again_and_tasks_wait() {
        let case = boosted(60, 90, 5_000)
            .counter(REFAULT_FILE, 3_000)
            .counter(PSI_MEMORY_SOME, 200_000)
            .fact(WATERMARK_BOOST, "15000");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        let boost = ["vm.watermark_boost_factor=15000 -> vm.watermark_boost_factor=0"];
        assert_eq!(changed(&finding.fixes[0]), boost);
    }

    #[test]
    fn clear_when_kswapd_would_work_without_the_boost() {
        clear(RULE, &boosted(60, 30, 5_000));
        clear(RULE, &boosted(60, 90, 5_000).gauge(MEM_AVAILABLE, Bytes::from_mib(95)));
    }

    #[test]
    fn clear_without_a_boost_or_without_scanning() {
        clear(RULE, &boosted(0, 90, 5_000));
        clear(RULE, &boosted(60, 90, 0));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |scanned| {
            zone(Case::over(3600), 90)
                .gauge_of(Entity::Zone, ZONE, ZONE_HIGH, Pages::new(100 * 256))
                .gauge_of(Entity::Zone, ZONE, ZONE_BOOST, Pages::new(60 * 256))
                .counter_steps(PGSCAN_KSWAPD, &amid_calm(scanned, 0))
        };
        assert_eq!(times(&found(RULE, &hour(5_000))), [(1800, 1830)]);
        clear(RULE, &hour(300));
    }

    #[test]
    fn not_evaluated_on_kernels_that_do_not_show_the_boost() {
        let old = zone(Case::over(30), 90)
            .gauge_of(Entity::Zone, ZONE, ZONE_HIGH, Pages::new(100 * 256))
            .counter(PGSCAN_KSWAPD, 5_000);
        assert_eq!(not_evaluated(RULE, &old).names, ["zone.boost"]);
    }
}
