//! NUMA imbalance: one node is full while another has plenty, and what is bound to the full one suffers.

use timeline::facts::{NUMA_BALANCING, ZONE_RECLAIM_MODE};
use timeline::signals::{
    ALLOCSTALL, NODE_ANON, NODE_FOREIGN, NODE_FREE, NODE_TOTAL, PGDEMOTE_DIRECT, PGDEMOTE_KSWAPD,
    PGSCAN_DIRECT, PSI_MEMORY_SOME, PSWPOUT,
};

use crate::measures::floor::Floor;
use crate::measures::readings::{RECLAIM_COSTS, swapped_out};
use crate::prelude::*;
use crate::trigger::most_of_others;

declare_rule! {
    /// One NUMA node is full while another has plenty, and programs bound to the full one swap or reclaim.
    ///
    /// ## What it means
    /// A program can be bound to the memory of some nodes (numactl, cpuset, mbind). Where those are full, it swaps and
    /// reclaims although the host as a whole has memory; it may even be killed. Without a binding the kernel takes
    /// memory of another node, which is slower to reach but hurts far less.
    /// ## How it is recognised
    /// For 4 s or longer, a node's free memory is at most 1.3 times its floor (the high watermarks of its zones) while
    /// another has 20 % free, and meanwhile 100 pages a second are swapped out, one allocation a second stalls or tasks
    /// wait for memory 2 % of the time. Where allocations merely go to the other node (`numa_foreign`) and programs'
    /// memory fills the full one, it is information.
    /// ## Not this
    /// - `node-reclaim-on`: vm.zone_reclaim_mode makes the full node reclaim; no binding is needed.
    /// - Page cache that fills one node first: new allocations go to the other and nobody waits.
    /// - A node without CPUs as a slower tier (CXL): pages are moved there on purpose.
    /// ## What to do
    /// Now: `migratepages PID FROM TO` moves what is there. For good: start the program with `numactl --interleave=all`
    /// (MySQL: innodb_numa_interleave), or widen its cpuset. Verify: the nodes' free memory evens out, swap-out ends.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/numa_memory_policy.rst
    /// - kernel Documentation/admin-guide/numastat.rst
    pub(crate) RULE = { id: "numa-imbalance", since: "0.1.0", class: Setting,
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "A memory policy or cpuset keeps programs on one node, or one large program started there.",
        verify: "numastat -m: free memory of the nodes evens out; swap-out and allocation stalls end",
        brings_about: &["swap-thrash", "page-cache-thrash", "exec-pages-evicted", "direct-reclaim-stall", "kswapd-saturated"],
        explained_by: &[Explains::Maybe(NUMA_BALANCING)],
    }
}

/// An engineering choice: free memory up to this part of the node's floor.
const FULL: f64 = 1.3;
/// An engineering choice.
const FREE_ELSEWHERE: Ratio = Ratio::from_percent(20.0);
/// Swap-out of 0.4 MiB/s; less is the odd cold page.
const SWAPPED_OUT: PerSecond<Pages> = PerSecond::new(100.0);
/// Allocations that went elsewhere; fewer are the odd page.
const FOREIGN: PerSecond<Pages> = PerSecond::new(100.0);
/// The node is full of programs' memory, not of cache.
const ANON: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let free = gauge(NODE_FREE).at_most("free memory of a node", Floor::high().times(FULL));
    let elsewhere = most_free_elsewhere();
    Trigger::on(
        Scope::Each(Entity::Node, |_, _| true),
        STALL,
        all![
            fact(ZONE_RECLAIM_MODE)
                .at_most("vm.zone_reclaim_mode", Count::ZERO)
                .if_measured(),
            free,
            elsewhere.at_least("free share of another node", FREE_ELSEWHERE),
            any![costs(), goes_elsewhere()],
        ],
    )
}

/// Somebody pays for it.
fn costs() -> Predicate {
    any![
        swapped_out().at_least("swapped out", SWAPPED_OUT),
        rate(ALLOCSTALL).at_least("allocation stalls", Stalls::ALLOCATION_STALLS),
        stall(PSI_MEMORY_SOME).at_least("memory stalls", RECLAIM_COSTS),
    ]
}

/// Programs get memory of another node than theirs.
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

fn others<'a>(cx: &Evidence<'a>, of: &EntitySeries) -> impl Iterator<Item = &'a EntitySeries> {
    let own = of.key.clone();
    let nodes = cx.timeline.entities(Entity::Node);
    nodes.filter(move |node| node.key != own)
}

/// The other node of which most is free.
fn freest<'a>(
    cx: &Evidence<'a>,
    of: &EntitySeries,
    stretch: &Stretch,
) -> Option<(&'a EntitySeries, Bytes, Bytes)> {
    let means = others(cx, of).filter_map(|node| {
        let mean = |track: Track<Bytes>| track.mean_in(stretch);
        let free = mean(cx.gauge_of(node, NODE_FREE).ok()?)?;
        let total = mean(cx.gauge_of(node, NODE_TOTAL).ok()?)?;
        Some((free.ratio_of(total)?, node, free, total))
    });
    let freest = means.max_by(|a, b| a.0.get().total_cmp(&b.0.get()))?;
    Some((freest.1, freest.2, freest.3))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (full, stretch) = (incident.entity()?, &incident.stretch);
    let mode = cx.number(ZONE_RECLAIM_MODE).ok();
    let full_name = &full.key;
    let lacks = || Missing::same_time(NODE_FREE.def());
    let (other, idle, total) = freest(cx, full, stretch).ok_or_else(lacks)?;
    let other_name = &other.key;
    let free = cx.gauge_of(full, NODE_FREE)?;
    let left = cx.mean_in(stretch, NODE_FREE, &free)?;
    if let Some(demoted) = demoted(cx, stretch) {
        return clear!("{demoted} are moved to a slower tier: node {full_name} is full on purpose");
    }
    if mode.is_none() && reclaims_like_a_node(cx, stretch) {
        return Err(Missing::fact(ZONE_RECLAIM_MODE));
    }
    let costs = Costs::of(cx, stretch);
    let effect = if costs.any() {
        "what is bound to the full node must reclaim or swap"
    } else {
        "its programs get memory of the other node"
    };
    let title =
        format!("Node {full_name} is full although node {other_name} has {idle} free: {effect}.");
    let open = if mode == Some(0) {
        "the programs' memory policies (/proc/PID/numa_maps, Mems_allowed_list) would settle who is bound"
    } else {
        "vm.zone_reclaim_mode is not known"
    };
    Ok(RULE
        .found(Severity::warning_if(costs.any()), title)
        .graph("free on the full node", &free)
        .shows_from(NODE_FREE, idle, total.share(FREE_ELSEWHERE), None, format!("{idle} free on node {other_name}, {left} on node {full_name}"))
        .counts_as("the nodes' free memory")
        .and(|finding| costs.shown_in(finding))
        // Without the mode, node reclaim is not quite excluded.
        .counts_if(costs.any() && mode.is_some(), "reclaim or stalls meanwhile")
        .with(foreign(cx, full, stretch), |it, rate| {
            let text = format!("{rate} wanted on node {full_name} came from another");
            it.shows_from(NODE_FOREIGN, rate, FOREIGN, None, text)
        })
        .with(anon_share(cx, full, stretch), |it, share| {
            let text = format!("{share} of node {full_name} is programs' memory");
            it.shows(Computed(NODE_ANON), share, None, text)
        })
        .not_where(cx, ZONE_RECLAIM_MODE, 0, "node-reclaim-on")
        .not("available-exhaustion", format!("{idle} are free on node {other_name}"))
        .fix(Fix::say(format!("Move the program's pages to node {other_name} (migratepages), then let it use all nodes: NUMAPolicy=interleave and NUMAMask=all in its unit file, or numactl --interleave=all before its command.")))
        .affects([Affected::new("node", full_name, format!("{left} free"))])
        .sure_by_kinds(cx, open)
        .into())
}

/// What moves to a slower tier, where something does: then a node is full on purpose.
fn demoted(cx: &Evidence<'_>, stretch: &Stretch) -> Option<PerSecond<Pages>> {
    let rates = [PGDEMOTE_KSWAPD, PGDEMOTE_DIRECT].into_iter();
    let mut rates = rates.filter_map(|signal| cx.mean_rate(signal, stretch));
    rates.find(|rate| rate.get() > 0.0)
}

/// Allocations that were meant for the full node and went elsewhere, where they are many.
fn foreign(cx: &Evidence<'_>, full: &EntitySeries, stretch: &Stretch) -> Option<PerSecond<Pages>> {
    let rate = cx.rate_of(full, NODE_FOREIGN).ok()?.mean_in(stretch);
    rate.filter(|rate| *rate >= FOREIGN)
}

fn anon_share(cx: &Evidence<'_>, full: &EntitySeries, stretch: &Stretch) -> Option<Ratio> {
    let anon = cx.gauge_of(full, NODE_ANON).ok()?.mean_in(stretch)?;
    anon.ratio_of(cx.gauge_of(full, NODE_TOTAL).ok()?.mean_in(stretch)?)
}

/// Whether allocating tasks scan without stalling, as only node reclaim makes them (see `node-reclaim-on`).
fn reclaims_like_a_node(cx: &Evidence<'_>, stretch: &Stretch) -> bool {
    let scanned = cx.mean_rate(PGSCAN_DIRECT, stretch);
    let both = scanned.zip(cx.mean_rate(ALLOCSTALL, stretch));
    both.is_some_and(|(scanned, stalls)| {
        scanned >= Stalls::SCANNED && Stalls::are_of_a_node(stalls, scanned)
    })
}

/// What it costs while the other node is idle; each where it is much.
struct Costs {
    swapped: Option<PerSecond<Pages>>,
    stalls: Option<PerSecond<Count>>,
    waited: Option<Ratio>,
}

impl Costs {
    fn of(cx: &Evidence<'_>, stretch: &Stretch) -> Self {
        let swapped = cx.swapped_out().ok();
        let swapped = swapped.and_then(|it| it.mean_in(stretch));
        let waited = cx.stall(PSI_MEMORY_SOME).ok();
        let waited = waited.and_then(|it| it.mean_in(stretch));
        let stalls = cx.mean_rate(ALLOCSTALL, stretch);
        Self {
            swapped: swapped.filter(|rate| *rate >= SWAPPED_OUT),
            stalls: stalls.filter(|rate| *rate >= Stalls::ALLOCATION_STALLS),
            waited: waited.filter(|share| *share >= RECLAIM_COSTS),
        }
    }

    fn any(&self) -> bool {
        self.swapped.is_some() || self.stalls.is_some() || self.waited.is_some()
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        finding
            .with(self.swapped, |it, rate| {
                let text = format!("{rate} swapped out meanwhile");
                it.shows_from(PSWPOUT, rate, SWAPPED_OUT, None, text)
            })
            .with(self.stalls, |it, rate| {
                let text = format!("{rate} allocations had to reclaim meanwhile");
                it.shows_from(ALLOCSTALL, rate, Stalls::ALLOCATION_STALLS, None, text)
            })
            .with(self.waited, |it, share| {
                let text = format!("tasks waited for memory {share} of that time");
                it.shows_from(PSI_MEMORY_SOME, share, RECLAIM_COSTS, None, text)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{ZONE_HIGH, ZONE_MANAGED};

    /// Two nodes of 500 MiB; node 0 with these many free, node 1 with these many.
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
    fn a_full_node_that_swaps_beside_a_free_one_is_found() {
        let finding = found(RULE, &nodes(22, 400).counter(PSWPOUT, 3000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding
                .title
                .contains("Node 0 is full although node 1 has 400 MiB free")
        );
        assert!(finding.fixes[0].what.contains("to node 1"));
    }

    #[test]
    fn each_time_is_told_at_which_somebody_pays() {
        let host = Case::over(240).fact(ZONE_RECLAIM_MODE, "0");
        let free = three_times([Bytes::from_mib(22); 3], Bytes::from_mib(300));
        let free = [vec![free[0]], free].concat();
        let case = nodes_of(host, 22, 400)
            .gauge_steps_of(Entity::Node, "0", NODE_FREE, &free)
            .counter_steps(PSWPOUT, &three_times([3000, 0, 3000], 0));
        assert_eq!(times(&found(RULE, &case)), [(0, 40), (200, 240)]);
    }

    #[test]
    fn memory_from_the_other_node_is_information() {
        let spilling = |anon| {
            nodes(22, 400)
                .counter_of(Entity::Node, "0", NODE_FOREIGN, 3000)
                .gauge_of(Entity::Node, "0", NODE_ANON, Bytes::from_mib(anon))
        };
        assert_eq!(found(RULE, &spilling(400)).severity, Severity::Info);
        // Filled by page cache, it is how the kernel is meant to work.
        clear(RULE, &spilling(40));
    }

    #[test]
    fn even_nodes_and_a_reclaiming_mode_are_clear() {
        clear(RULE, &nodes(22, 25).counter(PSWPOUT, 3000));
        clear(RULE, &nodes(200, 400).counter(PSWPOUT, 3000));
        let mode = nodes(22, 400)
            .counter(PSWPOUT, 3000)
            .fact(ZONE_RECLAIM_MODE, "1");
        clear(RULE, &mode);
        clear(RULE, &Case::over(20));
    }

    #[test]
    fn a_slower_tier_is_full_on_purpose() {
        let case = nodes(22, 400)
            .counter(PSWPOUT, 3000)
            .counter(PGDEMOTE_KSWAPD, 500);
        clear(RULE, &case);
    }

    #[test]
    fn an_unknown_mode_makes_it_probable_or_leaves_it_open() {
        let unknown = || nodes_of(Case::over(20), 22, 400).counter(PSI_MEMORY_SOME, 100_000);
        assert_eq!(found(RULE, &unknown()).confidence.word(), "probable");
        let scanning = unknown()
            .counter(PGSCAN_DIRECT, 60_000)
            .counter(ALLOCSTALL, 0);
        assert_eq!(
            not_evaluated(RULE, &scanning).names,
            ["vm.zone_reclaim_mode"]
        );
    }

    #[test]
    fn needs_the_zones_marks() {
        let case = Case::over(20)
            .gauge_of(Entity::Node, "0", NODE_FREE, Bytes::from_mib(22))
            .gauge_of(Entity::Node, "0", NODE_TOTAL, Bytes::from_mib(500))
            .gauge_of(Entity::Node, "1", NODE_FREE, Bytes::from_mib(400))
            .gauge_of(Entity::Node, "1", NODE_TOTAL, Bytes::from_mib(500));
        assert_eq!(not_evaluated(RULE, &case).names, ["zone.high"]);
    }

    #[test]
    fn half_a_minute_within_a_calm_hour_is_as_grave_as_alone() {
        let an_hour = |free_1: u64| {
            let mut out = vec![0; 3600];
            out[1800..1830].fill(3000);
            let case = Case::over(3600).fact(ZONE_RECLAIM_MODE, "0");
            nodes_of(case, 22, free_1).counter_steps(PSWPOUT, &out)
        };
        let finding = found(RULE, &an_hour(400));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1800, 1830)]);
        // A host that is short as a whole.
        clear(RULE, &an_hour(25));
    }
}
