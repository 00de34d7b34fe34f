//! Files that are read again after eviction: which cgroups they belong to, and what evicts them.

use timeline::facts::ZONE_RECLAIM_MODE;
use timeline::signals::{CGROUP_REFAULT_FILE, MEM_FREE, PGPGIN, PGSCAN_DIRECT, PGSCAN_KSWAPD};
use timeline::{Entity, Stretch, Track};
use units::{Pages, PerSecond, Quantity, Ratio};

use crate::evidence::Evidence;
use crate::measures::cgroups;
use crate::measures::floor::Floor;
use crate::measures::readings::{READ_AGAIN, refaults_file};
use crate::trigger::{Predicate, all, rate};

/// If refaults are a smaller share of the disk reads, other reads dominate. An engineering choice: a cold start that
/// re-reads a few pages stays below a third.
pub(crate) const OF_READS: Ratio = Ratio::new(1.0 / 3.0);
/// What a fix must reach: below this share of the reads, files are hardly read again. An engineering choice.
pub(crate) const REREAD_GOAL: Ratio = Ratio::from_percent(2.0);
/// With fewer pages scanned per refault, a limit evicts: its reclaim is not in these counters (mm/vmscan.c,
/// cgroup_reclaim), while the host evicts at least as many pages as refault.
const SCANNED_PER_REFAULT: f64 = 0.1;
/// Cgroups with at least this share of the refaults explain them.
const IN_GROUPS: Ratio = Ratio::from_percent(60.0);
/// Free memory beyond the floor on the whole host, as in node-reclaim-on: with this much the host itself was not short.
const FREE: Ratio = Ratio::from_percent(5.0);

/// Holds where files refault for lack of cache: at a high rate, and as a good part of all reads.
pub(crate) fn rereading() -> Predicate {
    let again = || refaults_file().bytes();
    let of_reads = again().at_least("files read again, of all reads", rate(PGPGIN).share(OF_READS));
    all![again().at_least("files read again after eviction", READ_AGAIN), of_reads.if_measured(),]
}

/// Holds where the host itself evicts: of several cgroups nothing narrower does.
pub(crate) fn host_evicts() -> Predicate {
    let scanned = rate(PGSCAN_KSWAPD).and(rate(PGSCAN_DIRECT));
    let least = refaults_file().times(SCANNED_PER_REFAULT);
    scanned.at_least("scanned by the host", least).if_measured()
}

/// Returns why the host does not lack cache, if something narrower evicts while the host has memory.
pub(crate) fn evicted_by_another(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    pages: &Track<PerSecond<Pages>>,
) -> Option<String> {
    let refaulted = pages.mean_in(stretch)?;
    let scanned = |signal| cx.rate(signal).ok()?.mean_in(stretch);
    let host_evicts = match (scanned(PGSCAN_KSWAPD), scanned(PGSCAN_DIRECT)) {
        (Some(kswapd), Some(direct)) => {
            kswapd.get() + direct.get() >= refaulted.get() * SCANNED_PER_REFAULT
        }
        _ => true,
    };
    if !host_evicts {
        return Some(format!(
            "{refaulted} refaulted, but the host itself evicts nothing: a cgroup's limit does \
             (cgroup-cache-starved), or it was evicted long before"
        ));
    }
    let in_groups: f64 = cgroups::with(cx, CGROUP_REFAULT_FILE)
        .unwrap_or_default()
        .into_iter()
        .filter(|group| cgroups::is_at_limit(cx, group, stretch))
        .filter_map(|group| {
            let rate = cx.rate_of(group, CGROUP_REFAULT_FILE).ok()?;
            Some(rate.mean_in(stretch)?.get())
        })
        .fold(0.0, f64::max);
    let has_free = has_free(cx, stretch);
    if in_groups >= refaulted.get() * IN_GROUPS.get() {
        if has_free {
            return Some(format!(
                "{refaulted} refaulted in a cgroup at its limit while the host has free memory \
                 (cgroup-cache-starved)"
            ));
        }
        let rest = PerSecond::<Pages>::new(refaulted.get() - in_groups);
        if cx.page_size().is_ok_and(|page| rest.to_bytes(page) < READ_AGAIN) {
            return Some(format!(
                "{refaulted} refaulted, nearly all of it in a cgroup at its limit \
                 (cgroup-cache-starved)"
            ));
        }
    }
    if !has_free {
        return None;
    }
    let mode = cx.facts.number(ZONE_RECLAIM_MODE);
    let nodes = cx.facts.nodes.len().max(cx.timeline.entities(Entity::Node).count());
    (mode.is_some_and(|mode| mode != 0) && nodes > 1).then(|| {
        format!(
            "{refaulted} refaulted while the host has free memory: vm.zone_reclaim_mode is on \
             (node-reclaim-on)"
        )
    })
}

/// Whether free memory stayed well above the floor: then no shortage of the host evicted anything.
pub(crate) fn has_free(cx: &Evidence<'_>, stretch: &Stretch) -> bool {
    let (Some(free), Ok(ram)) =
        (cx.gauge(MEM_FREE).ok().and_then(|free| free.mean_in(stretch)), cx.ram())
    else {
        return false;
    };
    let floor = cx
        .floor()
        .ok()
        .and_then(|floor| floor.high.mean_in(stretch))
        .unwrap_or_else(|| Floor::predicted(ram).1);
    free.as_f64() >= floor.as_f64() * 2.0 && free >= ram.share(FREE)
}
