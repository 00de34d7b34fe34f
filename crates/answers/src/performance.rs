//! What a monitoring system draws of a source: the last levels, shares of waiting over all of it, totals.
//!
//! Only what was measured. A threshold is given only where it is a warning by itself; the verdict weighs the rest.

use diagnose::{Evidence, least_available};
use report::Report;
use report::text::{PerformanceDatum, PerformanceValue};
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_PSI_MEMORY_FULL,
    CGROUP_PSI_MEMORY_SOME, CGROUP_SWAP_CURRENT, MEM_AVAILABLE, OOM_KILLS, PSI_MEMORY_FULL,
    PSI_MEMORY_SOME, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Entity, EntitySeries, Source, Timeline, Track};
use units::{Bytes, Count, Micros, PerSecond};

/// Returns the data of the host, or of the cgroup that the report is about.
pub fn performance(source: &Source, report: &Report) -> Vec<PerformanceDatum> {
    let cx = Evidence::new(&source.timeline, &source.facts);
    let Some(group) = &report.group else {
        return of_host(&cx).into_iter().flatten().collect();
    };
    let smallest = group.limits.iter().map(|limit| limit.limit_bytes).min();
    let series = source.timeline.entity(Entity::Cgroup, &group.path);
    let data = series.map(|series| of_group(&source.timeline, series, smallest));
    data.into_iter().flatten().flatten().collect()
}

fn of_host(cx: &Evidence<'_>) -> [Option<PerformanceDatum>; 5] {
    let swap = cx.last(SWAP_TOTAL).ok().filter(|all| *all > Bytes::ZERO);
    let swapped = swap.zip(cx.last(SWAP_FREE).ok());
    [
        cx.last(MEM_AVAILABLE).ok().map(|bytes| {
            let value =
                PerformanceValue::Size { bytes, least: least_available(cx), most: cx.ram().ok() };
            PerformanceDatum { label: "available", value }
        }),
        swapped.map(|(all, free)| size("swap_used", all.saturating_sub(free), swap)),
        cx.rate(PSI_MEMORY_SOME).ok().and_then(|rate| waiting("stalled_some", rate)),
        cx.rate(PSI_MEMORY_FULL).ok().and_then(|rate| waiting("stalled_full", rate)),
        cx.last(OOM_KILLS).ok().map(|kills| counter("oom_kills", kills)),
    ]
}

/// The data of a cgroup of which no more than `limit` can be charged.
fn of_group(
    timeline: &Timeline,
    group: &EntitySeries,
    limit: Option<Bytes>,
) -> [Option<PerformanceDatum>; 6] {
    let total = |label, signal| timeline.last_of(group, signal).map(|all| counter(label, all));
    let waiting = |label, signal| waiting(label, timeline.rate_of(group, signal)?);
    [
        timeline.last_of(group, CGROUP_CURRENT).map(|bytes| size("usage", bytes, limit)),
        timeline.last_of(group, CGROUP_SWAP_CURRENT).map(|bytes| size("swap_used", bytes, None)),
        waiting("stalled_some", CGROUP_PSI_MEMORY_SOME),
        waiting("stalled_full", CGROUP_PSI_MEMORY_FULL),
        total("limit_hits", CGROUP_EVENTS_MAX),
        total("oom_kills", CGROUP_EVENTS_OOM_KILL),
    ]
}

fn size(label: &'static str, bytes: Bytes, most: Option<Bytes>) -> PerformanceDatum {
    PerformanceDatum { label, value: PerformanceValue::Size { bytes, least: None, most } }
}

/// The share of all the time in which tasks waited.
fn waiting(label: &'static str, rate: Track<PerSecond<Micros>>) -> Option<PerformanceDatum> {
    let share = rate.to_share();
    let mean = share.mean_in(&share.whole()?)?;
    Some(PerformanceDatum { label, value: PerformanceValue::Time(mean) })
}

fn counter(label: &'static str, count: Count) -> PerformanceDatum {
    PerformanceDatum { label, value: PerformanceValue::Counter(count) }
}
