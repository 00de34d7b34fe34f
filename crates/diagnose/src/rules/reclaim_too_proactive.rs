//! A controller reclaims memory ahead of need, and programs need it back.

use timeline::signals::{MEM_AVAILABLE, PGSCAN_PROACTIVE, REFAULT_ANON, REFAULT_FILE};

use crate::measures::readings::{ANON_REFAULTS_MIN, AVAILABLE_ROOMY_SHARE, refaults_file};
use crate::prelude::*;

declare_rule! {
    /// A controller reclaims memory ahead of need (memory.reclaim) and takes pages that are in use.
    ///
    /// ## What it means
    /// Programs such as senpai, or an agent of a cluster, write to `memory.reclaim` of cgroups to take cold memory away
    /// while nothing is short. If they take too much, programs read the same pages again at once. The host has memory
    /// free, and its tasks wait all the same.
    /// ## How it is recognised
    /// For {STALL} or longer, {SCANNED} or more are scanned by proactive reclaim, while {READ_AGAIN} of files or
    /// {ANON_REFAULTS_MIN} of anonymous memory refault and {AVAILABLE_ROOMY_SHARE} of RAM or more is available. It is a
    /// warning if tasks wait for memory or disks, otherwise informational.
    /// ## Not this
    /// - `page-cache-thrash`, `swap-thrash`: memory is short, and the kernel reclaims by itself.
    /// - `cgroup-high-throttle`, `cgroup-cache-starved`: a limit makes the kernel reclaim.
    /// - Proactive reclaim of cold memory: hardly a page is needed again.
    /// ## What to do
    /// Slow the controller down (its target for pressure, its step), or exclude the cgroup. Verify: refaults below
    /// {READ_AGAIN} while it runs.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.reclaim
    pub(crate) RULE = {
        id: "reclaim-too-proactive", since: "0.1.0", class: Setting,
        numbers: [STALL, SCANNED, READ_AGAIN, ANON_REFAULTS_MIN, AVAILABLE_ROOMY_SHARE],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "A program asks the kernel to reclaim more (memory.reclaim) than is cold.",
        verify: "memtide check --for 1m while the controller runs: refaults below {READ_AGAIN}",
        brings_about: &["page-cache-thrash", "swap-thrash"],
    }
}

/// From here on reclaim works noticeably.
const SCANNED: PerSecond<Pages> = PressureWindow::SCANNED;

fn trigger() -> Trigger {
    let files = refaults_file().bytes().at_least("files read again", READ_AGAIN);
    let anon = rate(REFAULT_ANON).at_least("anonymous refaults", ANON_REFAULTS_MIN);
    Trigger::on_host(
        STALL,
        all![
            rate(PGSCAN_PROACTIVE).at_least("scanned by proactive reclaim", SCANNED),
            any![files, anon],
            gauge(MEM_AVAILABLE).at_least("available", ram().share(AVAILABLE_ROOMY_SHARE)),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let scanned = cx.rate(PGSCAN_PROACTIVE)?;
    let rate = cx.mean_in(stretch, PGSCAN_PROACTIVE, &scanned)?;
    let page = cx.page_size()?;
    let refaults = cx.refaults_file().ok();
    let files = refaults.and_then(|refaults| Some(refaults.mean_in(stretch)?.to_bytes(page)));
    let anon = cx.mean_rate(REFAULT_ANON, stretch);
    let stalls = PressureWindow::during(cx, stretch);
    let least = cx.lowest_in(MEM_AVAILABLE, stretch);
    let left = least.map_or_else(String::new, |(least, _)| format!(" with {least} available"));
    let title = Title::from(format!(
        "A controller reclaims memory that is in use{left}: {rate} scanned for memory.reclaim, \
         and pages are needed again at once."
    ))
    .then(stalls.sentence());
    Ok(RULE
        .found(Severity::warning_if(stalls.any()), title)
        .graph("scanned by proactive reclaim", &scanned)
        .shows_from(
            PGSCAN_PROACTIVE,
            rate,
            SCANNED,
            None,
            format!("{rate} scanned on request (memory.reclaim)"),
        )
        .counts_as("proactive reclaim")
        .with(files.filter(|files| *files >= READ_AGAIN), |finding, files| {
            let text = format!("{files} of files read again after eviction");
            finding
                .shows_from(Computed(REFAULT_FILE), files, READ_AGAIN, None, text)
                .counts_as("refaults")
        })
        .with(anon.filter(|anon| *anon >= ANON_REFAULTS_MIN), |finding, anon| {
            let text = format!("{anon} of anonymous refaults (evicted and needed again)");
            finding
                .shows_from(REFAULT_ANON, anon, ANON_REFAULTS_MIN, None, text)
                .counts_as("refaults")
        })
        .shows_stalls(&stalls)
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("at least {least} available"))
        .not("available-exhaustion", "a quarter of RAM or more is available")
        .fix(Fix::say("Find the controller: it writes to memory.reclaim of cgroups.").inspect(
            "pgrep -af 'senpai|oomd|reclaim'\n\
             grep -rlsE 'memory\\.reclaim' /etc /usr/local /opt | head",
        ))
        .fix(Fix::say(
            "Slow it down (a lower target for pressure, smaller steps), or exclude the cgroup.",
        ))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PGSCAN_KSWAPD, PSI_MEMORY_SOME};

    fn host(case: Case, available: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
    }

    fn reclaiming(scanned: u64, refaults: u64) -> Case {
        host(Case::over(30), 500)
            .counter(PGSCAN_PROACTIVE, scanned)
            .counter(REFAULT_FILE, refaults)
            .counter(REFAULT_ANON, 0)
    }

    #[test]
    fn refaults_after_proactive_reclaim_are_found() {
        let finding = found(RULE, &reclaiming(5_000, 3_000));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("500 MiB available"), "{}", finding.title);
        let case =
            reclaiming(5_000, 0).counter(REFAULT_ANON, 900).counter(PSI_MEMORY_SOME, 200_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn clear_when_only_cold_memory_is_taken() {
        clear(RULE, &reclaiming(5_000, 20));
    }

    #[test]
    fn clear_when_the_kernel_reclaims_or_memory_is_short() {
        clear(RULE, &reclaiming(0, 3_000).counter(PGSCAN_KSWAPD, 50_000));
        clear(RULE, &host(reclaiming(5_000, 3_000), 100));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |refaults| {
            host(Case::over(3600), 500)
                .counter_steps(PGSCAN_PROACTIVE, &amid_calm(5_000, 0))
                .counter_steps(REFAULT_FILE, &amid_calm(refaults, 0))
        };
        assert_eq!(times(&found(RULE, &hour(3_000))), [(1800, 1830)]);
        clear(RULE, &hour(30));
    }

    #[test]
    fn not_evaluated_on_kernels_that_do_not_count_it() {
        let case = host(Case::over(30), 500).counter(REFAULT_FILE, 3_000);
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.pgscan_proactive"]);
    }
}
