//! Readings of chosen signals over time, as data.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::metric::is_unlimited;
use timeline::{Entity, EntitySeries, Run, SignalId, Timeline};

use super::Source;
use super::time::wall;
use crate::plain::harmless;

/// Name and version of this contract.
pub const SERIES_SCHEMA: &str = "memtide-series/1";

/// Which readings are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesPicks {
    /// Of these signals.
    pub signals: Vec<SignalId>,
    /// Of this entity only, by its key: `sda`, `/system.slice`; `None`: of all.
    pub key: Option<String>,
    /// So many samples at most.
    pub points: usize,
}

impl SeriesPicks {
    /// More points are more than any screen shows.
    pub const POINTS_MAX: usize = 10_000;
    /// About as many as a screen has columns.
    pub const POINTS_USUAL: usize = 1_500;
    /// A host has thousands of processes and cgroups.
    pub const SERIES_MAX: usize = 200;
}

/// The whole answer.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SeriesReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-series/1"))]
    pub schema: &'static str,
    /// Where the samples came from.
    pub source: Source,
    /// When each sample was taken; null where the source has no wall clock.
    pub at: Vec<Option<Timestamp>>,
    /// The same, in seconds from the first sample.
    pub at_s: Vec<f64>,
    /// Every so many samples of the source are listed: 1 where all are. What lies between them is left out.
    pub every_nth: usize,
    pub series: Vec<SampledSeries>,
    /// How many more series there are, of the same signals: `key` chooses one.
    pub left_out: usize,
}

/// Readings of a signal.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SampledSeries {
    /// The name of the signal, as `memtide signals` lists it.
    pub signal: &'static str,
    /// The unit of a reading: `bytes`, `pages`, `count`, `us`, `ticks`.
    pub unit: &'static str,
    /// Whether it only ever rises, so that differences are what counts.
    pub is_counter: bool,
    /// What it is of: `host`, `cgroup`, `process`.
    pub table: &'static str,
    /// Of which one; null for the host.
    pub key: Option<String>,
    /// What people call it; null for the host.
    pub label: Option<String>,
    /// A reading for each time; null where nothing was read, and where there is no limit.
    pub values: Vec<Option<u64>>,
}

impl SeriesReport {
    /// Readings of a source.
    pub fn new(source: &timeline::Source, picks: &SeriesPicks) -> Self {
        let timeline = &source.timeline;
        let every_nth = timeline.len().div_ceil(picks.points.max(1)).max(1);
        // Counted from the end: the last sample is the one that is asked for most.
        let first = timeline.len().saturating_sub(1) % every_nth;
        let samples: Vec<usize> = (first..timeline.len()).step_by(every_nth).collect();
        let mut series = Vec::new();
        let mut left_out = 0;
        for signal in &picks.signals {
            for (entity, runs) in runs_of(timeline, *signal) {
                if picks.key.as_ref().is_some_and(|key| entity.is_none_or(|one| one.key != *key)) {
                    continue;
                }
                if series.len() == SeriesPicks::SERIES_MAX {
                    left_out += 1;
                    continue;
                }
                series.push(SampledSeries::new(*signal, entity, runs, (timeline, &samples)));
            }
        }
        let time = |index: &usize| timeline.times().get(*index).copied().unwrap_or_default();
        Self {
            schema: SERIES_SCHEMA,
            source: Source::new(source),
            at: samples.iter().map(|index| wall(timeline, time(index))).collect(),
            at_s: samples.iter().map(|index| time(index).as_secs_f64()).collect(),
            every_nth,
            series,
            left_out,
        }
    }
}

impl SampledSeries {
    fn new(
        signal: SignalId,
        entity: Option<&EntitySeries>,
        runs: &[Run],
        (timeline, samples): (&Timeline, &[usize]),
    ) -> Self {
        let def = signal.def();
        let mut left = runs;
        let mut reading = |index: usize| {
            while let [run, rest @ ..] = left
                && run.last() < index
            {
                left = rest;
            }
            let run = left.first().filter(|run| run.first() <= index)?;
            let was_read = timeline.was_read(def.entity, index);
            (was_read && !is_unlimited(signal, run.value)).then_some(run.value)
        };
        Self {
            signal: def.name,
            unit: def.unit,
            is_counter: def.is_counter,
            table: def.entity.name(),
            key: entity.map(|one| harmless(&one.key)),
            label: entity.map(|one| harmless(&one.label)).filter(|label| !label.is_empty()),
            values: samples.iter().map(|index| reading(*index)).collect(),
        }
    }
}

fn runs_of(timeline: &Timeline, signal: SignalId) -> Vec<(Option<&EntitySeries>, &[Run])> {
    match signal.def().entity {
        Entity::Host => {
            let mut host = timeline.host_runs();
            host.find(|(found, _)| *found == signal)
                .map(|(_, runs)| (None, runs))
                .into_iter()
                .collect()
        }
        entity => {
            let its = timeline.entities(entity).filter_map(|one| {
                let (_, runs) = one.runs().find(|(found, _)| *found == signal)?;
                Some((Some(one), runs))
            });
            its.collect()
        }
    }
}
