//! Services, containers and other cgroups at one moment.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::{GroupName, ROOT, ancestors, parent};
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
    CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_ANON, CGROUP_REFAULT_FILE,
    CGROUP_SWAP_CURRENT,
};
use timeline::{Entity, EntitySeries};
use units::{Bytes, BytesPerSecond, Count, PageSize, PerSecond, Ratio, SignedBytes};

use super::window::RecentReadings;
use crate::accounting::own_limit_at;
use crate::evidence::Evidence;

/// A cgroup's memory, and what it waits for; null where the source does not have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GroupActivity {
    /// Its path below the root of the hierarchy.
    pub path: String,
    /// What people call it: a unit, a container, a pod; null where it is neither.
    pub name: Option<String>,
    /// What is charged to it and to those below it, page cache and kernel memory included.
    pub bytes: Bytes,
    /// Its memory of processes (anon).
    #[serde(rename = "anon_bytes")]
    pub anon: Option<Bytes>,
    /// Its page cache, shared memory included.
    #[serde(rename = "file_bytes")]
    pub file: Option<Bytes>,
    /// Its memory in swap.
    #[serde(rename = "swap_bytes")]
    pub swap: Option<Bytes>,
    /// By how much it grew in the last minute, or since the first sample.
    #[serde(rename = "growth_last_minute_bytes")]
    pub growth: Option<SignedBytes>,
    /// Read back from swap (refaults of anon).
    #[serde(rename = "swap_in_bytes_per_second")]
    pub swap_in: Option<BytesPerSecond>,
    /// File pages read again soon after they were dropped.
    #[serde(rename = "refault_bytes_per_second")]
    pub refault: Option<BytesPerSecond>,
    /// The share of the time in which a task of it waited for memory (PSI).
    pub memory_wait: Option<Ratio>,
    /// The share of the time in which a task of it waited for I/O (PSI).
    pub io_wait: Option<Ratio>,
    /// The tighter one of its own limits, if it is below RAM.
    #[serde(rename = "limit_bytes")]
    pub limit: Option<Bytes>,
    /// How much of that is used.
    pub of_limit: Option<Ratio>,
    /// How often it met its limit.
    #[serde(rename = "limit_hits_per_second")]
    pub limit_hits: Option<PerSecond<Count>>,
    /// Processes that the kernel killed in it since the first sample.
    pub kills: Option<Count>,
}

/// The rows from `group` on: of all cgroups those at which a unit or a container begins, those with a limit, and of the rest
/// those without others below them.
pub(super) fn at(cx: &Evidence<'_>, index: usize, group: &str) -> Vec<GroupActivity> {
    let Some(window) = RecentReadings::of_table(cx, Entity::Cgroup, index) else {
        return Vec::new();
    };
    let is_asked = |path: &str| group == ROOT || ancestors(path).any(|above| above == group);
    let all: Vec<&EntitySeries> = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter(|series| series.key != ROOT && is_asked(&series.key))
        .filter(|series| cx.timeline.latest_of(series, CGROUP_CURRENT, window.now).is_some())
        .collect();
    let with_others_below: HashSet<&str> =
        all.iter().filter_map(|series| parent(&series.key)).collect();
    let is_row = |series: &&&EntitySeries| {
        let path = &*series.key;
        let name = GroupName::of(path);
        let unit = name.unit.map(|it| it.path);
        let container = name.container.map(|it| it.path);
        let begins = [unit, container].contains(&Some(path));
        let belongs = unit.or(container).is_some();
        let is_last = !belongs && !with_others_below.contains(path);
        path == group || begins || is_last || own_limit_at(cx, series, window.now).is_some()
    };
    let mut rows: Vec<GroupActivity> =
        all.iter().filter(is_row).filter_map(|series| row(cx, &window, series)).collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    rows
}

fn row(
    cx: &Evidence<'_>,
    window: &RecentReadings<'_>,
    series: &EntitySeries,
) -> Option<GroupActivity> {
    let page = cx.facts.page_size.unwrap_or(PageSize::USUAL);
    let bytes = window.level(series, CGROUP_CURRENT)?;
    let reads = |signal| Some(window.rate(Some(series), signal)?.to_bytes(page));
    let wait = |signal| Some(window.rate(Some(series), signal)?.to_share());
    let limit = own_limit_at(cx, series, window.now);
    let kills = || {
        let mut all = cx.timeline.readings_of(series, CGROUP_EVENTS_OOM_KILL);
        let (_, first) = all.next()?;
        let last = cx.timeline.latest_of(series, CGROUP_EVENTS_OOM_KILL, window.now)?;
        Some(Count::new(last.get().saturating_sub(first.get())))
    };
    Some(GroupActivity {
        path: series.key.clone(),
        name: cx.facts.names.innermost(&series.key),
        bytes,
        anon: window.level(series, CGROUP_ANON),
        file: window.level(series, CGROUP_FILE),
        swap: window.level(series, CGROUP_SWAP_CURRENT),
        growth: window.growth(|at| cx.timeline.at_of(series, CGROUP_CURRENT, at)),
        swap_in: reads(CGROUP_REFAULT_ANON),
        refault: reads(CGROUP_REFAULT_FILE),
        memory_wait: wait(CGROUP_PSI_MEMORY_SOME),
        io_wait: wait(CGROUP_PSI_IO_SOME),
        limit,
        of_limit: limit.and_then(|limit| bytes.ratio_of(limit)),
        limit_hits: window.rate(Some(series), CGROUP_EVENTS_MAX),
        kills: kills(),
    })
}
