//! `minutes.parquet`: roll-ups, one row for each signal and minute, or for several minutes without a change.
//!
//! For other tools it is a table in long format; for memtide it is the fast way to read weeks: columns of numbers, and
//! each name once.

mod before;
mod read;
mod roll;
mod rolled_up;

use serde::{Deserialize, Serialize};
use timeline::{Entity, EntitySeries, Facts, Run, SignalId, Timeline, signals};

use crate::format::json;
use crate::segment::host::{StoredSample, nanos};
use crate::segment::table::{ColumnChunk, ColumnShape};

pub(crate) use before::Before;
pub(crate) use read::{Buffers, MinutesFile, RollUpIndex};
use roll::{CounterStart, Grid, RollUpRow};
pub(crate) use rolled_up::{RollUpColumns, WantedSignals, of_samples};

/// Kinds of entities by importance, which is their order in the file.
pub(crate) const BY_IMPORTANCE: [Entity; 10] = [
    Entity::Host,
    Entity::Zone,
    Entity::Node,
    Entity::Disk,
    Entity::SwapArea,
    Entity::Zram,
    Entity::Cgroup,
    Entity::Service,
    Entity::Process,
    Entity::Slab,
];

/// How many processes and slab caches are stored: the largest ones show where memory went.
const NAMES_MAX: usize = 64;

/// Samples of one minute, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MinuteRange {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl MinuteRange {
    /// Returns the sample that stands for the minute: its last one.
    pub(crate) fn end(self, taken: &[StoredSample]) -> StoredSample {
        let within = &taken[self.first..=self.last];
        StoredSample {
            is_unrelated: taken[self.first].is_unrelated,
            read: StoredSample::read_in_any(within),
            ..taken[self.last]
        }
    }
}

/// Splits samples into minutes of the wall clock, or of the boot clock without one. No minute crosses a reboot or the
/// border of a segment.
pub(crate) fn minutes(taken: &[StoredSample]) -> Vec<MinuteRange> {
    const MINUTE: i64 = 60_000_000_000;
    let number = |sample: &StoredSample| {
        let nanos = sample.wall().unwrap_or(nanos(sample.stamp.boot));
        nanos.div_euclid(MINUTE)
    };
    let mut minutes: Vec<MinuteRange> = Vec::new();
    for (index, sample) in taken.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| &taken[at]);
        let goes_on = before
            .is_some_and(|before| !breaks(before, sample) && number(before) == number(sample));
        match minutes.last_mut().filter(|_| goes_on) {
            Some(minute) => minute.last = index,
            None => minutes.push(MinuteRange { first: index, last: index }),
        }
    }
    minutes
}

/// Whether counters were, or may have been, reset between two samples.
fn breaks(before: &StoredSample, after: &StoredSample) -> bool {
    after.is_unrelated
        || after.stamp.boot <= before.stamp.boot
        || after.stamp.is_of_boot_of(&before.stamp) == Some(false)
}

/// A minute in the file's metadata: boot clock, awake clock, wall clock, starts a segment, which tables were read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct MinuteRow(i64, Option<i64>, Option<i64>, u8, i64);

/// A boot in the file's metadata: its first minute, and its number where that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BootRow(usize, Option<String>);

/// The roll-ups of a segment, to be written.
pub(crate) struct Rolled<'a> {
    rows: Vec<RollUpRow>,
    series: Vec<RollUpSeries>,
    /// Key, label and group of each entity.
    names: Vec<[&'a str; 3]>,
    taken: &'a [StoredSample],
    minutes: Vec<MinuteRange>,
}

/// One signal of one entity: the index of its names, and its number of rows.
#[derive(Debug, Clone, Copy)]
struct RollUpSeries {
    of: usize,
    signal: SignalId,
    rows: usize,
}

impl<'a> Rolled<'a> {
    /// Builds the roll-ups of a timeline.
    pub(crate) fn from_timeline(
        timeline: &'a Timeline,
        taken: &'a [StoredSample],
        before: &Before,
        facts: &Facts,
    ) -> Self {
        let goes_on = taken.first().is_some_and(|first| before.goes_on(first));
        let before = goes_on.then_some(before);
        let mut rolled = Self {
            rows: Vec::new(),
            series: Vec::new(),
            names: vec![[""; 3]],
            minutes: minutes(taken),
            taken,
        };
        for entity in BY_IMPORTANCE {
            let last = before.and_then(Before::last);
            let grid = Grid::new(&rolled.minutes, taken, entity, last);
            // Sorted by signal: similar rows are adjacent, for readers and for compression.
            for (of, signal, runs) in by_signal(&mut rolled.names, timeline, entity, facts) {
                let counted = if signal.def().is_counter {
                    let key = rolled.names[of][0];
                    CounterStart::From(
                        before.and_then(|before| before.reading(entity, key, signal)),
                    )
                } else {
                    CounterStart::Not
                };
                let start = rolled.rows.len();
                grid.roll(runs, counted, &mut rolled.rows);
                let rows = rolled.rows.len() - start;
                rolled.series.push(RollUpSeries { of, signal, rows });
            }
        }
        rolled.series.retain(|series| series.rows > 0);
        rolled
    }

    /// Returns the number of rows of each kind of entity.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Entity, usize)> + '_ {
        let kinds = self.series.chunk_by(|a, b| a.entity() == b.entity());
        kinds.map(|kind| (kind[0].entity(), kind.iter().map(|series| series.rows).sum()))
    }

    /// Returns the metadata that memtide reads: the minutes and their boots.
    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        let row_of = |minute: &MinuteRange| {
            let end = minute.end(self.taken);
            MinuteRow(
                nanos(end.stamp.boot),
                end.stamp.awake.map(nanos),
                end.wall(),
                u8::from(end.is_unrelated),
                end.read,
            )
        };
        let rows: Vec<MinuteRow> = self.minutes.iter().map(row_of).collect();
        vec![(MINUTES_KEY.to_owned(), json(&rows)), (BOOTS_KEY.to_owned(), json(&self.boots()))]
    }

    /// Returns from which minute on each boot holds.
    fn boots(&self) -> Vec<BootRow> {
        let mut boots: Vec<BootRow> = Vec::new();
        for (number, minute) in self.minutes.iter().enumerate() {
            let boot = self.taken[minute.last].stamp.boot_id;
            let id = boot.map(|boot| boot.to_string());
            if boots.last().map(|last| &last.1) != Some(&id) {
                boots.push(BootRow(number, id));
            }
        }
        boots
    }

    /// Returns the columns.
    pub(crate) fn columns(&'a self) -> Vec<ColumnChunk<'a>> {
        let number = |name, shape, of: fn(&RollUpRow) -> Option<i64>| {
            ColumnChunk::numbers(name, shape, move |cells| {
                self.rows.iter().for_each(|row| cells.push(of(row)));
            })
        };
        let paged = |name, shape, of| number(name, shape, of).in_pages_of(PAGE);
        let time = |name, of: fn(&RollUpRow, &[MinuteRange]) -> usize| {
            ColumnChunk::numbers(name, ColumnShape::Time, move |cells| {
                for row in &self.rows {
                    cells.push(self.taken[of(row, &self.minutes)].wall());
                }
            })
        };
        let name = |column, place: usize| {
            let names = self.names.iter().map(|names| names[place]).collect();
            self.words(column, names, |series| series.of)
        };
        let kinds = Entity::ALL.map(Entity::name).to_vec();
        let signals = timeline::signals::ALL.iter().map(|def| def.name).collect();
        vec![
            time("time", |row, minutes| minutes[row.first_minute()].first),
            time("until", |row, minutes| minutes[row.last_minute()].last),
            number(FIRST, ColumnShape::Ordinal, |row| Some(i64::from(row.first))),
            number(LAST, ColumnShape::Ordinal, |row| Some(i64::from(row.last))),
            self.numbers(KEY_NUMBER, |series| series.of),
            self.numbers(SIGNAL_NUMBER, |series| series.signal.index()),
            self.words("entity", kinds, |series| series.entity() as usize),
            name(KEY, 0),
            name(LABEL, 1),
            name(GROUP, 2),
            self.words(SIGNAL, signals, |series| series.signal.index()),
            paged(MIN, ColumnShape::Reading, |row| row.min),
            paged(MAX, ColumnShape::Reading, |row| row.max),
            number("mean", ColumnShape::Reading, |row| row.mean),
            number(VALUE, ColumnShape::Always, |row| Some(row.value)),
            paged(INCREASE, ColumnShape::Reading, |row| row.increase),
        ]
    }

    /// Returns a column of numbers that are equal in all rows of a series.
    fn numbers(&'a self, name: &'a str, of: fn(&RollUpSeries) -> usize) -> ColumnChunk<'a> {
        ColumnChunk::numbers(name, ColumnShape::Ordinal, move |cells| {
            for series in &self.series {
                cells.repeat(i64::try_from(of(series)).unwrap_or(i64::MAX), series.rows);
            }
        })
    }

    /// Returns a column of words that are equal in all rows of a series.
    fn words(
        &'a self,
        name: &'a str,
        distinct: Vec<&'a str>,
        which: fn(&RollUpSeries) -> usize,
    ) -> ColumnChunk<'a> {
        ColumnChunk::names(name, distinct, move |out| {
            for series in &self.series {
                (0..series.rows).for_each(|_| out(which(series)));
            }
        })
    }
}

impl RollUpSeries {
    fn entity(&self) -> Entity {
        self.signal.def().entity
    }
}

const MINUTES_KEY: &str = "memtide.minutes";
const BOOTS_KEY: &str = "memtide.boots";
const FIRST: &str = "first_minute";
const LAST: &str = "last_minute";
const KEY_NUMBER: &str = "key_number";
const SIGNAL_NUMBER: &str = "signal_number";
const KEY: &str = "key";
const LABEL: &str = "label";
const GROUP: &str = "group";
const SIGNAL: &str = "signal";
const VALUE: &str = "last";
const MIN: &str = "min";
const MAX: &str = "max";
const INCREASE: &str = "increase";

/// Rows per page of the columns that screening reads: it needs only some signals of the host and of cgroups.
const PAGE: usize = 1_024;

fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns the readings of a kind of entity by signal. For each entity: the index of its names, which are added to
/// `names`, the signal and its runs.
fn by_signal<'a>(
    names: &mut Vec<[&'a str; 3]>,
    timeline: &'a Timeline,
    entity: Entity,
    facts: &Facts,
) -> Vec<(usize, SignalId, &'a [Run])> {
    let mut all: Vec<_> = match entity {
        // The host has no name: its index is the first one.
        Entity::Host => timeline.host_runs().map(|(id, runs)| (0, id, runs)).collect(),
        _ => Vec::new(),
    };
    for series in largest(timeline, entity, facts) {
        let of = names.len();
        names.push([&series.key, &series.label, &series.group]);
        all.extend(series.runs().map(|(id, runs)| (of, id, runs)));
    }
    // A stable sort: of each signal the largest entity comes first.
    all.sort_by_key(|(_, signal, _)| *signal);
    all
}

/// Returns the entities of a kind, largest first; of processes and slab caches only the largest.
fn largest<'a>(timeline: &'a Timeline, entity: Entity, facts: &Facts) -> Vec<&'a EntitySeries> {
    let page = facts.page_size.map_or(4096, |size| size.bytes().get());
    let scale: &[(SignalId, u64)] = match entity {
        Entity::Process => &[(signals::PROC_RSS.id(), page), (signals::PROC_SWAP.id(), 1)],
        Entity::Service => &[(signals::SERVICE_RSS.id(), page)],
        Entity::Cgroup => &[(signals::CGROUP_CURRENT.id(), 1)],
        Entity::Slab => &[(signals::SLAB_PAGES.id(), page)],
        _ => &[],
    };
    let peak = |series: &EntitySeries| {
        let columns = series.runs().filter_map(|(id, runs)| {
            let (_, scale) = scale.iter().find(|(signal, _)| *signal == id)?;
            let peak = runs.iter().map(|run| run.value).max()?;
            // An unlimited limit is not a size.
            Some(peak.saturating_mul(*scale)).filter(|peak| *peak < u64::MAX)
        });
        columns.fold(0, u64::saturating_add)
    };
    let mut all: Vec<(u64, &EntitySeries)> =
        timeline.entities(entity).map(|series| (peak(series), series)).collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.key.cmp(&b.1.key)));
    if matches!(entity, Entity::Process | Entity::Slab) {
        all.truncate(NAMES_MAX);
    }
    all.into_iter().map(|(_, series)| series).collect()
}
