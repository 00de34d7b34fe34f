//! Processes at one moment.

use schemars::JsonSchema;
use serde::Serialize;
use timeline::signals::{
    PROC_MAJFLT, PROC_MINFLT, PROC_PSS, PROC_RSS, PROC_STIME, PROC_SWAP, PROC_SWAP_PSS, PROC_UTIME,
};
use timeline::{Entity, EntitySeries};
use units::{Bytes, Count, PageSize, PerSecond, Ratio, SignedBytes, Span};

use super::window::RecentReadings;
use crate::evidence::Evidence;

/// What a process's size is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessSize {
    /// Its proportional share (PSS), read at this moment.
    Pss,
    /// Its PSS read some time ago, and by how much its RSS changed since.
    PssAndGrowth,
    /// Its RSS: what it shares with others counts in full.
    #[default]
    Rss,
}

/// A process's memory; null where the source does not have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ProcessActivity {
    /// Its PID with its start time: `4711@88123`.
    pub key: String,
    /// Its PID alone.
    pub pid: String,
    /// Its name: 15 bytes of the kernel.
    pub name: String,
    /// The service that it belongs to; empty where that is not known.
    pub service: String,
    /// Its memory in RAM and in swap.
    pub bytes: Bytes,
    /// What of RAM is counted.
    pub measured: ProcessSize,
    /// How old the PSS is; null where RSS is counted.
    #[serde(rename = "pss_age_s")]
    pub pss_age: Option<Span>,
    /// Its memory in swap.
    #[serde(rename = "swap_bytes")]
    pub swap: Option<Bytes>,
    /// By how much its RSS grew in the last minute, or since the first sample.
    #[serde(rename = "growth_last_minute_bytes")]
    pub growth: Option<SignedBytes>,
    /// Faults that had to wait for a disk or for swap.
    #[serde(rename = "major_faults_per_second")]
    pub major_faults: Option<PerSecond<Count>>,
    /// Faults that did not.
    #[serde(rename = "minor_faults_per_second")]
    pub minor_faults: Option<PerSecond<Count>>,
    /// How many CPUs it kept busy.
    pub cpus: Option<Ratio>,
}

/// The processes with memory of their own, or those of one cgroup, the largest first.
pub(super) fn at(cx: &Evidence<'_>, index: usize, group: Option<&str>) -> Vec<ProcessActivity> {
    let Some(window) = RecentReadings::of_table(cx, Entity::Process, index) else {
        return Vec::new();
    };
    let last = group.and_then(|group| group.rsplit('/').next());
    let is_asked = |series: &&EntitySeries| {
        last.is_none_or(|last| series.group.split('/').any(|part| part == last))
    };
    let all = cx.timeline.entities(Entity::Process).filter(is_asked);
    let mut rows: Vec<ProcessActivity> =
        all.filter_map(|series| row(cx, &window, series)).collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    rows
}

fn row(
    cx: &Evidence<'_>,
    window: &RecentReadings<'_>,
    series: &EntitySeries,
) -> Option<ProcessActivity> {
    let (timeline, page) = (cx.timeline, cx.facts.page_size.unwrap_or(PageSize::USUAL));
    let rss_at = |at| Some(timeline.at_of(series, PROC_RSS, at)?.to_bytes(page));
    let rss = rss_at(window.now).filter(|rss| *rss > Bytes::ZERO)?;
    let swap = timeline
        .latest_of(series, PROC_SWAP_PSS, window.now)
        .or_else(|| timeline.latest_of(series, PROC_SWAP, window.now));
    let read =
        timeline.readings_of(series, PROC_PSS).take_while(|(at, _)| *at <= window.now).last();
    let (in_ram, measured) = match read {
        Some((at, pss)) if at == window.now => (pss, ProcessSize::Pss),
        Some((at, pss)) => {
            let before = rss_at(at).unwrap_or(rss);
            let changed = (pss + rss).saturating_sub(before);
            (changed.min(rss), ProcessSize::PssAndGrowth)
        }
        None => (rss, ProcessSize::Rss),
    };
    let cpu = |signal| window.rate(Some(series), signal).map(PerSecond::get);
    let ticks = cpu(PROC_UTIME).zip(cpu(PROC_STIME)).map(|(user, system)| user + system);
    let age = |at| {
        cx.time(window.now).unwrap_or_default().saturating_sub(cx.time(at).unwrap_or_default())
    };
    Some(ProcessActivity {
        key: series.key.clone(),
        pid: series.pid().to_owned(),
        name: series.label.clone(),
        service: cx.facts.names.service(&series.group),
        bytes: in_ram + swap.unwrap_or_default(),
        measured,
        pss_age: read.map(|(at, _)| age(at)),
        swap,
        growth: window.growth(rss_at),
        major_faults: window.rate(Some(series), PROC_MAJFLT),
        minor_faults: window.rate(Some(series), PROC_MINFLT),
        cpus: ticks.map(|ticks| PerSecond::<units::Ticks>::new(ticks).to_cpus(cx.facts.user_hz())),
    })
}
