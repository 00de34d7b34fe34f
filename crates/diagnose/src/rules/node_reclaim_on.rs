//! Node reclaim: a full NUMA node throws away its pages although another node has free ones.

use timeline::{
    Entity, EntitySeries, Stretch,
    facts::ZONE_RECLAIM_MODE,
    signals::{
        ALLOCSTALL, NODE_FREE, PGSCAN_DIRECT, REFAULT_FILE, ZONE_RECLAIM_FAILED,
        ZONE_RECLAIM_SUCCESS,
    },
};
use units::{Bytes, BytesPerSecond, Quantity, Ratio, Span};

use super::page_cache_thrash::READ_AGAIN;
use crate::evidence::Evidence;
use crate::finding::{Affected, Severity};
use crate::fix::Fix;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// A full NUMA node reclaims its own pages although another node has free ones: vm.zone_reclaim_mode is on.
    ///
    /// ## What it means
    /// With `vm.zone_reclaim_mode` set, an allocation that does not fit on its own NUMA node first reclaims pages
    /// there, page cache above all, instead of taking free pages of another node. System CPU rises, files are read
    /// again and again, and half the memory stays free.
    /// ## How it is recognised
    /// The mode is not 0, allocating tasks scan at least 1,000 pages a second for reclaim, allocation stalls are rare
    /// (below one in 1,000 scanned pages: node reclaim does not count as one), and another node keeps 5 % of RAM free. It
    /// is critical when nothing runs for a quarter of the time, or 10 MiB/s of files are read again after eviction.
    /// ## Not this
    /// - mode 0: `numa-imbalance` (a policy binds tasks to a node), or a shortage of the whole host.
    /// - `page-cache-thrash`: files are read again because the whole host lacks memory, not one node.
    /// ## What to do
    /// Now: `sysctl -w vm.zone_reclaim_mode=0`. For good: the same in a file under `/etc/sysctl.d/`. Verify: reading
    /// the same files a second time reads nothing from disk, and scanning by allocating tasks stops.
    /// ## References
    /// - kernel commit 4f9b16a64753 (3.16): off by default; before, on at boot where a node distance exceeds 20
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, zone_reclaim_mode
    pub(crate) RULE = { id: "node-reclaim-on", since: "0.1.0", purpose: Finding, check: check }
}

/// Re-reading this much keeps an ordinary disk busy; labelled captures, November 2026: 140 MiB/s and more.
/// From page-cache-thrash's rate on the title speaks of it.
const READ_AGAIN_MUCH: BytesPerSecond = BytesPerSecond::from_mib(10.0);
/// Free on another node. An engineering choice: node reclaim keeps out a third of RAM and more in labelled captures.
const FREE_ELSEWHERE: Ratio = Ratio::from_percent(5.0);
const HOLD: Span = Span::from_mins(1);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let nodes: Vec<_> = cx.timeline.entities(Entity::Node).collect();
    if nodes.len() < 2 && cx.facts.nodes.len() < 2 {
        return clear!("the host has one NUMA node");
    }
    let mode = cx.number(ZONE_RECLAIM_MODE)?;
    if mode == 0 {
        return clear!("vm.zone_reclaim_mode is 0");
    }
    let scanned = cx.rate(PGSCAN_DIRECT)?;
    let counted = cx
        .rate(ZONE_RECLAIM_SUCCESS)
        .ok()
        .zip(cx.rate(ZONE_RECLAIM_FAILED).ok())
        .map(|(done, failed)| done.plus(&failed));
    let scanning = scanned.at_least(Stalls::SCANNED);
    let Some((stretch, scan)) = cx.held(&scanning, &scanned, HOLD) else {
        return clear!("vm.zone_reclaim_mode is {mode}, but no allocating task had to reclaim");
    };
    let stalled = cx.allocation_stalls()?;
    let stalls = cx.mean_in(&stretch, ALLOCSTALL, &stalled)?;
    if !Stalls::are_of_a_node(stalls, scan) {
        return clear!(
            "tasks reclaimed because the whole host was short ({stalls} allocation stalls), not one node"
        );
    }
    let ram = cx.ram()?;
    let free_in = |stretch: &Stretch| -> Vec<(&str, Bytes)> {
        let least =
            |node: &EntitySeries| Some(cx.gauge_of(node, NODE_FREE).ok()?.min_in(stretch)?.0);
        let known = nodes
            .iter()
            .filter_map(|node| Some((node.key.as_str(), least(node)?)));
        let mut free: Vec<_> = known.collect();
        free.sort_by_key(|(_, bytes)| *bytes);
        free
    };
    let has_room = |idle: Bytes| idle.as_f64() >= ram.share(FREE_ELSEWHERE).as_f64();
    let free = free_in(&stretch);
    let (Some((full, left)), Some((other, idle))) = (free.first(), free.last()) else {
        return Err(Missing::because(
            vec![NODE_FREE.def().name],
            Need::File(NODE_FREE.def().file),
        ));
    };
    if !has_room(*idle) {
        return clear!("no node kept {FREE_ELSEWHERE} of RAM free while tasks reclaimed");
    }

    let distance = cx
        .facts
        .nodes
        .iter()
        .flat_map(|node| node.distances.iter().copied())
        .max()
        .map_or_else(String::new, |d| format!("; node distance {d}"));
    let page = cx.page_size()?;
    let again = cx.refaults_file().ok().and_then(|r| r.mean_in(&stretch));
    let read_again = |from: BytesPerSecond| again.is_some_and(|again| again.to_bytes(page) >= from);
    let waits = Stalls::during(cx, &stretch);
    let severity = if waits.standstill() || read_again(READ_AGAIN_MUCH) {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let effect = if read_again(READ_AGAIN) {
        "throws away its page cache and reads it again"
    } else {
        "reclaims its own pages"
    };
    let mut finding = RULE
        .found(
            severity,
            format!(
                "Node {full} {effect} although node {other} has {idle} free: vm.zone_reclaim_mode is on."
            ),
        )
        .during(cx.each_time(stretch, &scanning, HOLD, |again| {
            let both = stalled.mean_in(again).zip(scanned.mean_in(again));
            both.is_some_and(|(stalls, scan)| Stalls::are_of_a_node(stalls, scan))
                && free_in(again).last().is_some_and(|(_, idle)| has_room(*idle))
        }))
        .graph("scanned by allocating tasks", &scanned)
        .shows_fact(ZONE_RECLAIM_MODE, mode, format!("vm.zone_reclaim_mode = {mode}{distance}"))
        .shows_from(
            PGSCAN_DIRECT,
            scan, Stalls::SCANNED,
            None,
            format!("{scan} scanned by allocating tasks and {stalls} allocation stalls: node reclaim, not a shortage"),
        )
        .shows_from(NODE_FREE, *idle, ram.share(FREE_ELSEWHERE), None, format!("at least {idle} free on node {other} all the time, down to {left} on node {full}"));
    if let Some(runs) = counted.and_then(|c| c.mean_in(&stretch)) {
        finding = finding.shows(
            ZONE_RECLAIM_SUCCESS,
            runs,
            None,
            format!("{runs} node reclaims"),
        );
    }
    let mut kinds = vec![
        "the setting",
        "reclaim without allocation stalls",
        "free memory elsewhere",
    ];
    if let Some(again) = again {
        finding = finding.shows(
            REFAULT_FILE,
            again,
            None,
            format!("{again} of files read again after eviction"),
        );
        if read_again(READ_AGAIN) {
            kinds.push("refaults");
        }
    }
    if waits.any() {
        finding = waits.shown_in(finding);
    }
    Ok(finding
        .not("page-cache-thrash", "the host as a whole has free memory")
        .not("numa-imbalance", "the mode explains it; no memory policy is needed")
        .cause("Kernels before 3.16 switch the mode on at boot when a NUMA distance exceeds 20; on later ones somebody set it.")
        .fix(Fix::tunable(cx, "Switch node reclaim off; PostgreSQL, MongoDB and Hadoop all want it off.", ZONE_RECLAIM_MODE, 0))
        .verify("the second pass over the same files reads nothing from disk; pages scanned by allocating tasks fall to 0")
        .affects([Affected {
            kind: "node",
            name: (*full).to_owned(),
            what: format!("down to {left} free"),
        }])
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: commit 4f9b16a64753 (3.16)")
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst")
        .into())
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
    fn fires_when_a_node_reclaims_beside_a_free_one() {
        let finding = found(RULE, &two_nodes("1", 60_000, 0, 400));
        assert!(finding.title.contains("node 1 has 400 MiB free"));
        assert_eq!(finding.confidence.word(), "confirmed");
        // Whether anything is read again is not measured here.
        assert_eq!(finding.severity, Severity::Warning);
        assert!(!finding.title.contains("reads it again"));
    }

    #[test]
    fn critical_when_files_are_read_again_or_work_stands_still() {
        let case = || two_nodes("1", 60_000, 0, 400);
        let reading = found(RULE, &case().counter(REFAULT_FILE, 50_000));
        assert_eq!(reading.severity, Severity::Critical);
        assert!(reading.title.contains("reads it again"));
        let calm = found(RULE, &case().counter(REFAULT_FILE, 10));
        assert_eq!(calm.severity, Severity::Warning);
        let standing = case()
            .counter(PSI_IO_SOME, 500_000)
            .counter(PSI_IO_FULL, 400_000);
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
    fn one_node_is_clear_and_an_unknown_mode_is_not_evaluated() {
        clear(RULE, &Case::over(20));
        let no_mode = Case::over(20)
            .gauge_of(Entity::Node, "0", NODE_FREE, Bytes::ZERO)
            .gauge_of(Entity::Node, "1", NODE_FREE, Bytes::ZERO);
        assert_eq!(
            not_evaluated(RULE, &no_mode).names,
            ["vm.zone_reclaim_mode"]
        );
    }
}
