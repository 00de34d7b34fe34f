//! Node reclaim: a full NUMA node evicts its pages although another node has free memory.

use timeline::facts::{MIN_UNMAPPED, ZONE_RECLAIM_MODE};
use timeline::signals::{
    ALLOCSTALL, NODE_FREE, PGSCAN_DIRECT, REFAULT_FILE, ZONE_RECLAIM_FAILED, ZONE_RECLAIM_SUCCESS,
};

use crate::prelude::*;

declare_rule! {
    /// A full NUMA node reclaims its own pages although another node has free memory: vm.zone_reclaim_mode is on.
    ///
    /// ## What it means
    /// With `vm.zone_reclaim_mode` set, an allocation that does not fit on its own NUMA node first reclaims pages
    /// there, mostly page cache, instead of using free pages of another node. System CPU rises, files are read again
    /// and again, and half the memory stays free.
    /// ## How it is recognised
    /// The mode is not 0, allocating tasks scan at least {PressureWindow::SCANNED} for reclaim, allocation stalls are
    /// rare (at most {PressureWindow::PER_SCANNED_PAGE} for each scanned page: node reclaim does not count as one), and
    /// another node keeps {FREE_ELSEWHERE} of RAM free. It is critical when nothing runs for {PressureWindow::STANDSTILL} of the time, or
    /// {READ_AGAIN_MUCH} of files are read again after eviction.
    /// ## Not this
    /// - Mode 0: `numa-imbalance` (a policy binds tasks to a node), or a shortage of the whole host.
    /// - `page-cache-thrash`: files are read again because the whole host lacks memory, not one node.
    /// ## What to do
    /// Now: `sysctl -w vm.zone_reclaim_mode=0`. For good: the same in a file under `/etc/sysctl.d/`. Verify: reading
    /// the same files a second time reads nothing from disk, and scanning by allocating tasks stops.
    /// ## References
    /// - kernel commit 4f9b16a64753 (3.16): off by default; before, on at boot where a node distance exceeds 30 (20 before 3.0)
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, zone_reclaim_mode
    pub(crate) RULE = {
        id: "node-reclaim-on", since: "0.1.0", class: Setting,
        numbers: [PressureWindow::SCANNED, PressureWindow::PER_SCANNED_PAGE, FREE_ELSEWHERE,
            READ_AGAIN_MUCH, PressureWindow::STANDSTILL],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "Kernels before 3.16 switch the mode on at boot if a NUMA distance exceeds 20; on \
                later kernels it was set by hand.",
        verify: "the second pass over the same files reads nothing from disk; pages scanned by \
                 allocating tasks fall to 0",
        brings_about: &[
            "numa-imbalance", "page-cache-thrash", "exec-pages-evicted", "direct-reclaim-stall", "kswapd-saturated",
        ],
        explained_by: &[Explains::Surely(ZONE_RECLAIM_MODE), Explains::Maybe(MIN_UNMAPPED)],
    }
}

/// Re-reading this much keeps an ordinary disk busy; labelled captures, November 2026: 140 MiB/s and more.
const READ_AGAIN_MUCH: BytesPerSecond = BytesPerSecond::from_mib(10.0);
/// Free memory on another node. An engineering choice: in labelled captures node reclaim leaves a third of RAM and
/// more unused.
const FREE_ELSEWHERE: Ratio = Ratio::from_percent(5.0);

fn trigger() -> Trigger {
    let nodes: Reading<Count> = computed("NUMA nodes", |cx| Ok(cx.timeline.constant(nodes(cx))));
    let scanned = rate(PGSCAN_DIRECT);
    // Node reclaim does not count as an allocation stall.
    let most_stalls = rate(ALLOCSTALL).at_most_of(
        &scanned,
        "allocation stalls",
        PressureWindow::PER_SCANNED_PAGE,
    );
    Trigger::on_host(
        STALL,
        all![
            nodes.at_least("NUMA nodes", Count::new(2)),
            fact(ZONE_RECLAIM_MODE).at_least("vm.zone_reclaim_mode", Count::new(1)),
            scanned.at_least("scanned by allocating tasks", PressureWindow::SCANNED),
            most_stalls,
        ],
    )
}

const ADVICE: &str = "Switch node reclaim off; PostgreSQL, MongoDB and Hadoop all require that.";

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let mode = cx.number(ZONE_RECLAIM_MODE)?;
    let scanned = cx.rate(PGSCAN_DIRECT)?;
    let scan = cx.mean_in(stretch, PGSCAN_DIRECT, &scanned)?;
    let stalls = cx.mean_in(stretch, ALLOCSTALL, &cx.allocation_stalls()?)?;
    let much = cx.ram()?.share(FREE_ELSEWHERE);
    let free = free_of_nodes(cx, stretch);
    let (Some((full, left)), Some((other, idle))) = (free.first(), free.last()) else {
        return Err(Missing::file(NODE_FREE.def()));
    };
    if *idle < much {
        return clear!("no node kept {FREE_ELSEWHERE} of RAM free while tasks reclaimed");
    }
    let page = cx.page_size()?;
    let refaults = cx.refaults_file().ok();
    let refaulted = refaults.and_then(|refaults| refaults.mean_in(stretch));
    let reread =
        |least: BytesPerSecond| refaulted.is_some_and(|pages| pages.to_bytes(page) >= least);
    let waits = PressureWindow::during(cx, stretch);
    let severity = Severity::critical_if(waits.standstill() || reread(READ_AGAIN_MUCH));
    let effect = if reread(READ_AGAIN) {
        "evicts its page cache and reads it again"
    } else {
        "reclaims its own pages"
    };
    let title = format!(
        "Node {full} {effect} although node {other} has {idle} free: vm.zone_reclaim_mode is on."
    );
    Ok(RULE
        .found(severity, title)
        .graph("scanned by allocating tasks", &scanned)
        .shows_fact(
            ZONE_RECLAIM_MODE,
            mode,
            format!("vm.zone_reclaim_mode = {mode}{}", distance(cx)),
        )
        .counts_as("the setting")
        .shows_from(
            PGSCAN_DIRECT,
            scan,
            PressureWindow::SCANNED,
            None,
            format!(
                "allocating tasks scanned {scan}, but allocation stalls are at {stalls}: node \
                 reclaim, not a shortage"
            ),
        )
        .counts_as("reclaim without allocation stalls")
        .shows_from(
            NODE_FREE,
            *idle,
            much,
            None,
            format!(
                "at least {idle} free on node {other} throughout, down to {left} on node {full}"
            ),
        )
        .counts_as("free memory on another node")
        .with(reclaims(cx, stretch), |finding, runs| {
            finding.shows(ZONE_RECLAIM_SUCCESS, runs, None, format!("node reclaim ran {runs}"))
        })
        .with(refaulted, |finding, rate| {
            finding.shows(REFAULT_FILE, rate, None, format!("{rate} of file refaults"))
        })
        .counts_if(reread(READ_AGAIN), "refaults")
        .when(waits.any(), |finding| waits.shown_in(finding))
        .not("page-cache-thrash", "the host as a whole has free memory")
        .not("numa-imbalance", "the mode explains it; no memory policy is needed")
        .fix(Fix::tunable(cx, ADVICE, ZONE_RECLAIM_MODE, 0))
        .affects([Affected::new("node", *full, format!("down to {left} free"))])
        .sure_by_kinds(cx, "")
        .into())
}

/// The number of NUMA nodes.
fn nodes(cx: &Evidence<'_>) -> Ratio {
    let nodes = cx.timeline.entities(Entity::Node).count();
    let nodes = nodes.max(cx.facts.nodes.len());
    Ratio::new(f64::from(u32::try_from(nodes).unwrap_or(u32::MAX)))
}

/// The least free memory of each node, the fullest node first.
fn free_of_nodes<'a>(cx: &Evidence<'a>, stretch: &Stretch) -> Vec<(&'a str, Bytes)> {
    let nodes = cx.timeline.entities(Entity::Node);
    let mut free: Vec<_> = nodes
        .filter_map(|node| {
            let (least, _) = cx.gauge_of(node, NODE_FREE).ok()?.min_in(stretch)?;
            Some((node.key.as_str(), least))
        })
        .collect();
    free.sort_by_key(|(_, bytes)| *bytes);
    free
}

fn distance(cx: &Evidence<'_>) -> String {
    let distances = cx.facts.nodes.iter().flat_map(|node| &node.distances);
    distances.max().map_or_else(String::new, |distance| format!("; node distance {distance}"))
}

/// How often nodes reclaimed, where the kernel counts it (`zone_reclaim_success`).
fn reclaims(cx: &Evidence<'_>, stretch: &Stretch) -> Option<PerSecond<Count>> {
    let done = cx.rate(ZONE_RECLAIM_SUCCESS).ok()?;
    done.plus(&cx.rate(ZONE_RECLAIM_FAILED).ok()?).mean_in(stretch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_TOTAL, PSI_IO_FULL, PSI_IO_SOME};

    fn two_nodes(mode: &str, scanned: u64, stalls: u64, free_on_1: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .fact(ZONE_RECLAIM_MODE, mode)
            .counter(PGSCAN_DIRECT, scanned)
            .counter(ALLOCSTALL, stalls)
            .gauge_of(Entity::Node, "0", NODE_FREE, Bytes::from_mib(20))
            .gauge_of(Entity::Node, "1", NODE_FREE, Bytes::from_mib(free_on_1))
    }

    #[test]
    fn found_when_a_node_reclaims_and_another_is_free() {
        let finding = found(RULE, &two_nodes("1", 60_000, 0, 400));
        assert!(finding.title.contains("node 1 has 400 MiB free"));
        assert_eq!(finding.confidence.word(), "confirmed");
        // Refaults are not measured here.
        assert_eq!(finding.severity, Severity::Warning);
        assert!(!finding.title.contains("reads it again"));
    }

    #[test]
    fn critical_with_refaults_or_a_standstill() {
        let case = || two_nodes("1", 60_000, 0, 400);
        let reading = found(RULE, &case().counter(REFAULT_FILE, 50_000));
        assert_eq!(reading.severity, Severity::Critical);
        assert!(reading.title.contains("reads it again"));
        let calm = found(RULE, &case().counter(REFAULT_FILE, 10));
        assert_eq!(calm.severity, Severity::Warning);
        let standing = case().counter(PSI_IO_SOME, 500_000).counter(PSI_IO_FULL, 400_000);
        assert_eq!(found(RULE, &standing).severity, Severity::Critical);
    }

    #[test]
    fn clear_when_the_mode_is_off_or_nothing_is_reclaimed() {
        clear(RULE, &two_nodes("0", 60_000, 0, 400));
        clear(RULE, &two_nodes("1", 10, 0, 400));
    }

    #[test]
    fn clear_when_the_whole_host_is_short() {
        clear(RULE, &two_nodes("1", 60_000, 900, 400));
        clear(RULE, &two_nodes("1", 60_000, 0, 21));
    }

    #[test]
    fn clear_with_one_node_and_not_evaluated_without_the_mode() {
        clear(RULE, &Case::over(20));
        let no_mode = Case::over(20).gauge_of(Entity::Node, "0", NODE_FREE, Bytes::ZERO).gauge_of(
            Entity::Node,
            "1",
            NODE_FREE,
            Bytes::ZERO,
        );
        assert_eq!(not_evaluated(RULE, &no_mode).names, ["vm.zone_reclaim_mode"]);
    }
}
