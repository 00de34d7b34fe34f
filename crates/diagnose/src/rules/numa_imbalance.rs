//! NUMA imbalance: one node is full while another has free memory, and programs bound to the full one swap or reclaim.

use timeline::facts::{NUMA_BALANCING, ZONE_RECLAIM_MODE};
use timeline::signals::{
    ALLOCSTALL, NODE_ANON, NODE_FOREIGN, NODE_FREE, NODE_TOTAL, PGDEMOTE_DIRECT, PGDEMOTE_KSWAPD,
    PGSCAN_DIRECT, PSI_MEMORY_SOME, PSWPOUT,
};

use crate::measures::floor::Floor;
use crate::measures::readings::{RECLAIM_COSTS, SWAP_OUT_NOTABLE, swapped_out};
use crate::prelude::*;
use crate::trigger::most_of_others;

declare_rule! {
    /// One NUMA node is full while another has free memory, and programs bound to the full one swap or reclaim.
    ///
    /// ## What it means
    /// A program can be bound to the memory of some nodes (numactl, cpuset, mbind). When those are full, it swaps and
    /// reclaims although the host as a whole has memory; it may even be killed. Without a binding, the kernel allocates
    /// on another node, which is slower to reach but hurts far less.
    /// ## How it is recognised
    /// For {STALL} or longer, a node's free memory is at most {Floor::REACH} times its floor (the high watermarks of
    /// its zones) while another node has {FREE_ELSEWHERE} free, and at the same time {SWAPPED_OUT} are swapped out, one
    /// allocation per second stalls, or tasks wait for memory {RECLAIM_COSTS} of the time. If allocations merely go to
    /// the other node (`numa_foreign`) and programs' memory fills the full one, it is informational.
    /// ## Not this
    /// - `node-reclaim-on`: vm.zone_reclaim_mode makes the full node reclaim; that needs no binding.
    /// - Page cache that fills one node first: new allocations go to the other node, and no task waits.
    /// - A node without CPUs as a slower tier (CXL): pages are moved there on purpose.
    /// ## What to do
    /// Now: `migratepages PID FROM TO` moves the existing pages. For good: start the program with `numactl
    /// --interleave=all` (MySQL: innodb_numa_interleave), or widen its cpuset. Verify: the nodes' free memory evens
    /// out, and swap-out ends.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/numa_memory_policy.rst
    /// - kernel Documentation/admin-guide/numastat.rst
    pub(crate) RULE = { id: "numa-imbalance", since: "0.1.0", class: Setting,
        numbers: [STALL, Floor::REACH, FREE_ELSEWHERE, SWAPPED_OUT, RECLAIM_COSTS],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "A memory policy or cpuset binds programs to one node, or one large program started \
                there.",
        verify: "numastat -m: free memory of the nodes evens out; swap-out and allocation stalls \
                 end",
        brings_about: &["swap-thrash", "page-cache-thrash", "exec-pages-evicted",
            "direct-reclaim-stall", "kswapd-saturated"],
        explained_by: &[Explains::Maybe(NUMA_BALANCING)],
    }
}

/// An engineering choice.
const FREE_ELSEWHERE: Ratio = Ratio::from_percent(20.0);
/// The node swaps although another is free.
const SWAPPED_OUT: PerSecond<Pages> = SWAP_OUT_NOTABLE;
/// Allocations served by another node; fewer do not matter.
const FOREIGN: PerSecond<Pages> = PerSecond::new(100.0);
/// At least this share of a full node is programs' memory, not cache.
const ANON: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let free = gauge(NODE_FREE).at_most("free memory of a node", Floor::high().times(Floor::REACH));
    let elsewhere = most_free_elsewhere();
    Trigger::on(
        Subjects::Each(Entity::Node, |_, _| true),
        STALL,
        all![
            fact(ZONE_RECLAIM_MODE).at_most("vm.zone_reclaim_mode", Count::ZERO).if_measured(),
            free,
            elsewhere.at_least("free share of another node", FREE_ELSEWHERE),
            any![costs(), goes_elsewhere()],
        ],
    )
}

/// Whether tasks swap, reclaim or wait.
fn costs() -> Predicate {
    any![
        swapped_out().at_least("swapped out", SWAPPED_OUT),
        rate(ALLOCSTALL).at_least("allocation stalls", PressureWindow::ALLOCATION_STALLS),
        stall(PSI_MEMORY_SOME).at_least("memory stalls", RECLAIM_COSTS),
    ]
}

/// Whether programs get memory of another node.
fn goes_elsewhere() -> Predicate {
    let anon = gauge(NODE_ANON).ratio_of(gauge(NODE_TOTAL));
    all![
        rate(NODE_FOREIGN).at_least("allocations of the node served by another", FOREIGN),
        anon.at_least("programs' share of the node", ANON),
    ]
}

/// The largest free share of the other nodes.
fn most_free_elsewhere() -> Reading<Ratio> {
    most_of_others(gauge(NODE_FREE).ratio_of(gauge(NODE_TOTAL)))
}

/// The other node with the largest free share, its free memory and its size.
fn freest_other<'a>(
    cx: &Evidence<'a>,
    full: &EntitySeries,
    stretch: &Stretch,
) -> Option<(&'a EntitySeries, Bytes, Bytes)> {
    let mean = |track: Track<Bytes>| track.mean_in(stretch);
    let (_, node, free, total) = cx
        .timeline
        .entities(Entity::Node)
        .filter(|node| node.key != full.key)
        .filter_map(|node| {
            let free = mean(cx.gauge_of(node, NODE_FREE).ok()?)?;
            let total = mean(cx.gauge_of(node, NODE_TOTAL).ok()?)?;
            Some((free.ratio_of(total)?, node, free, total))
        })
        .max_by(|a, b| a.0.get().total_cmp(&b.0.get()))?;
    Some((node, free, total))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (full, stretch) = (incident.entity()?, &incident.stretch);
    let mode = cx.number(ZONE_RECLAIM_MODE).ok();
    let full_name = &full.key;
    let lacks = || Missing::same_time(NODE_FREE.def());
    let (other, idle, total) = freest_other(cx, full, stretch).ok_or_else(lacks)?;
    let other_name = &other.key;
    let free = cx.gauge_of(full, NODE_FREE)?;
    let left = cx.mean_in(stretch, NODE_FREE, &free)?;
    if let Some(demoted) = demoted(cx, stretch) {
        return clear!("{demoted} demoted to a slower tier: node {full_name} is full on purpose");
    }
    if mode.is_none() && reclaims_like_a_node(cx, stretch) {
        return Err(Missing::fact(ZONE_RECLAIM_MODE));
    }
    let costs = Costs::during(cx, stretch);
    let effect = if costs.any() {
        "programs bound to the full node reclaim or swap"
    } else {
        "its programs get memory from the other node"
    };
    let title =
        format!("Node {full_name} is full although node {other_name} has {idle} free: {effect}.");
    let open = if mode == Some(0) {
        "the programs' memory policies (/proc/PID/numa_maps, Mems_allowed_list) would show which \
         are bound"
    } else {
        "vm.zone_reclaim_mode is unknown"
    };
    Ok(RULE
        .found(Severity::warning_if(costs.any()), title)
        .graph("free on the full node", &free)
        .shows_from(
            NODE_FREE,
            idle,
            total.share(FREE_ELSEWHERE),
            None,
            format!("{idle} free on node {other_name}, {left} on node {full_name}"),
        )
        .counts_as("the nodes' free memory")
        .and(|finding| costs.shown_in(finding))
        // Without the mode, node reclaim is not excluded.
        .counts_if(costs.any() && mode.is_some(), "reclaim or stalls")
        .with(foreign(cx, full, stretch), |finding, rate| {
            let text = format!("{rate} meant for node {full_name} were allocated on another");
            finding.shows_from(NODE_FOREIGN, rate, FOREIGN, None, text)
        })
        .with(anon_share(cx, full, stretch), |finding, share| {
            let text = format!("{share} of node {full_name} is programs' memory");
            finding.shows(Computed(NODE_ANON), share, None, text)
        })
        .not_where(cx, ZONE_RECLAIM_MODE, 0, "node-reclaim-on")
        .not("available-exhaustion", format!("{idle} is free on node {other_name}"))
        .fix(Fix::say(format!(
            "Move the program's pages to node {other_name} (migratepages), then let it use all \
             nodes: NUMAPolicy=interleave and NUMAMask=all in its unit file, or start it with \
             numactl --interleave=all."
        )))
        .affects([Affected::new("node", full_name, format!("{left} free"))])
        .sure_by_kinds(cx, open)
        .into())
}

/// The rate of demotion to a slower tier, if there is any; then a node is full on purpose.
fn demoted(cx: &Evidence<'_>, stretch: &Stretch) -> Option<PerSecond<Pages>> {
    [PGDEMOTE_KSWAPD, PGDEMOTE_DIRECT]
        .into_iter()
        .filter_map(|signal| cx.mean_rate(signal, stretch))
        .find(|rate| rate.get() > 0.0)
}

/// Allocations that were meant for the full node and served by another, where they are many.
fn foreign(cx: &Evidence<'_>, full: &EntitySeries, stretch: &Stretch) -> Option<PerSecond<Pages>> {
    let rate = cx.rate_of(full, NODE_FOREIGN).ok()?.mean_in(stretch);
    rate.filter(|rate| *rate >= FOREIGN)
}

fn anon_share(cx: &Evidence<'_>, full: &EntitySeries, stretch: &Stretch) -> Option<Ratio> {
    let anon = cx.gauge_of(full, NODE_ANON).ok()?.mean_in(stretch)?;
    anon.ratio_of(cx.gauge_of(full, NODE_TOTAL).ok()?.mean_in(stretch)?)
}

/// Whether allocating tasks scan without allocation stalls, which only node reclaim does (see `node-reclaim-on`).
fn reclaims_like_a_node(cx: &Evidence<'_>, stretch: &Stretch) -> bool {
    let scanned = cx.mean_rate(PGSCAN_DIRECT, stretch);
    let both = scanned.zip(cx.mean_rate(ALLOCSTALL, stretch));
    both.is_some_and(|(scanned, stalls)| {
        scanned >= PressureWindow::SCANNED && PressureWindow::are_of_a_node(stalls, scanned)
    })
}

/// What the imbalance costs; each value only where it is large.
struct Costs {
    swapped: Option<PerSecond<Pages>>,
    stalls: Option<PerSecond<Count>>,
    waited: Option<Ratio>,
}

impl Costs {
    fn during(cx: &Evidence<'_>, stretch: &Stretch) -> Self {
        let swapped_out = cx.swapped_out().ok();
        let stalled = cx.stall(PSI_MEMORY_SOME).ok();
        Self {
            swapped: swapped_out
                .and_then(|track| track.mean_in(stretch))
                .filter(|rate| *rate >= SWAPPED_OUT),
            stalls: cx
                .mean_rate(ALLOCSTALL, stretch)
                .filter(|rate| *rate >= PressureWindow::ALLOCATION_STALLS),
            waited: stalled
                .and_then(|track| track.mean_in(stretch))
                .filter(|share| *share >= RECLAIM_COSTS),
        }
    }

    fn any(&self) -> bool {
        self.swapped.is_some() || self.stalls.is_some() || self.waited.is_some()
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        finding
            .with(self.swapped, |finding, rate| {
                let text = format!("{rate} swapped out");
                finding.shows_from(PSWPOUT, rate, SWAPPED_OUT, None, text)
            })
            .with(self.stalls, |finding, rate| {
                let text = format!("allocation stalls: {rate}");
                finding.shows_from(ALLOCSTALL, rate, PressureWindow::ALLOCATION_STALLS, None, text)
            })
            .with(self.waited, |finding, share| {
                let text = format!("tasks waited for memory {share} of the time");
                finding.shows_from(PSI_MEMORY_SOME, share, RECLAIM_COSTS, None, text)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{ZONE_HIGH, ZONE_MANAGED};

    /// Two nodes of 500 MiB with this much free, in MiB.
    fn nodes(free_0: u64, free_1: u64) -> Case {
        nodes_of(Case::over(20).fact(ZONE_RECLAIM_MODE, "0"), free_0, free_1)
    }

    fn nodes_of(mut case: Case, free_0: u64, free_1: u64) -> Case {
        for (key, free) in [("0", free_0), ("1", free_1)] {
            let zone = format!("{key}/Normal");
            case = case
                .gauge_of(Entity::Node, key, NODE_FREE, Bytes::from_mib(free))
                .gauge_of(Entity::Node, key, NODE_TOTAL, Bytes::from_mib(500))
                .gauge_of(Entity::Zone, &zone, ZONE_MANAGED, Pages::new(128_000))
                .gauge_of(Entity::Zone, &zone, ZONE_HIGH, Pages::new(20 * 256));
        }
        case
    }

    #[test]
    fn a_full_node_that_swaps_is_found() {
        let finding = found(RULE, &nodes(22, 400).counter(PSWPOUT, 3000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("Node 0 is full although node 1 has 400 MiB free"));
        assert!(finding.fixes[0].what.contains("to node 1"));
    }

    #[test]
    fn each_occurrence_with_costs_is_reported() {
        let host = Case::over(240).fact(ZONE_RECLAIM_MODE, "0");
        let free = three_times([Bytes::from_mib(22); 3], Bytes::from_mib(300));
        let free = [vec![free[0]], free].concat();
        let case = nodes_of(host, 22, 400)
            .gauge_steps_of(Entity::Node, "0", NODE_FREE, &free)
            .counter_steps(PSWPOUT, &three_times([3000, 0, 3000], 0));
        assert_eq!(times(&found(RULE, &case)), [(0, 40), (200, 240)]);
    }

    #[test]
    fn allocations_on_the_other_node_are_informational() {
        let spilling = |anon| {
            nodes(22, 400).counter_of(Entity::Node, "0", NODE_FOREIGN, 3000).gauge_of(
                Entity::Node,
                "0",
                NODE_ANON,
                Bytes::from_mib(anon),
            )
        };
        assert_eq!(found(RULE, &spilling(400)).severity, Severity::Info);
        // A node full of page cache is normal.
        clear(RULE, &spilling(40));
    }

    #[test]
    fn clear_with_even_nodes_or_zone_reclaim_mode() {
        clear(RULE, &nodes(22, 25).counter(PSWPOUT, 3000));
        clear(RULE, &nodes(200, 400).counter(PSWPOUT, 3000));
        let mode = nodes(22, 400).counter(PSWPOUT, 3000).fact(ZONE_RECLAIM_MODE, "1");
        clear(RULE, &mode);
        clear(RULE, &Case::over(20));
    }

    #[test]
    fn clear_when_pages_are_demoted_to_a_slower_tier() {
        let case = nodes(22, 400).counter(PSWPOUT, 3000).counter(PGDEMOTE_KSWAPD, 500);
        clear(RULE, &case);
    }

    #[test]
    fn an_unknown_mode_makes_it_probable_or_not_evaluated() {
        let unknown = || nodes_of(Case::over(20), 22, 400).counter(PSI_MEMORY_SOME, 100_000);
        assert_eq!(found(RULE, &unknown()).confidence.word(), "probable");
        let scanning = unknown().counter(PGSCAN_DIRECT, 60_000).counter(ALLOCSTALL, 0);
        assert_eq!(not_evaluated(RULE, &scanning).names, ["vm.zone_reclaim_mode"]);
    }

    #[test]
    fn not_evaluated_without_the_zones_watermarks() {
        let case = Case::over(20)
            .gauge_of(Entity::Node, "0", NODE_FREE, Bytes::from_mib(22))
            .gauge_of(Entity::Node, "0", NODE_TOTAL, Bytes::from_mib(500))
            .gauge_of(Entity::Node, "1", NODE_FREE, Bytes::from_mib(400))
            .gauge_of(Entity::Node, "1", NODE_TOTAL, Bytes::from_mib(500));
        assert_eq!(not_evaluated(RULE, &case).names, ["zone.high"]);
    }

    #[test]
    fn finds_30_s_within_an_hour_with_the_same_severity() {
        let an_hour = |free_1: u64| {
            let mut out = vec![0; 3600];
            out[1800..1830].fill(3000);
            let case = Case::over(3600).fact(ZONE_RECLAIM_MODE, "0");
            nodes_of(case, 22, free_1).counter_steps(PSWPOUT, &out)
        };
        let finding = found(RULE, &an_hour(400));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1800, 1830)]);
        // The whole host is short of memory.
        clear(RULE, &an_hour(25));
    }
}
