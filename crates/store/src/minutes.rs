//! `minutes.parquet`: roll-ups, one row for each signal and minute, or for as many minutes as it did not change.
//!
//! For people a tall table; for memtide the fast way through weeks: three columns of numbers, and names only in metadata.

mod before;
mod read;
mod roll;

use serde::{Deserialize, Serialize};
use timeline::{Entity, EntitySeries, Facts, Run, SignalId, Timeline, signals};

use crate::segment::about::json;
use crate::segment::host::{Taken, nanos};
use crate::segment::table::{Column, Shape};

pub(crate) use before::Before;
pub(crate) use read::{Buffers, Minutes};
use roll::{Counted, Grid, RollUp};

/// Kinds of entities by how much is lost without them; the file has a row group for each that is there.
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

/// Processes and slab caches come and go by the thousand; the largest tell where memory went.
const LARGEST: usize = 64;

/// Samples of one minute, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Minute {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// The minutes of the wall clock that samples lie in, or of the boot clock where they have no other. None reaches across a
/// reboot or an unrelated break.
pub(crate) fn minutes(taken: &[Taken]) -> Vec<Minute> {
    const MINUTE: i64 = 60_000_000_000;
    let number = |sample: &Taken| {
        let nanos = sample.wall().unwrap_or(nanos(sample.stamp.boot));
        nanos.div_euclid(MINUTE)
    };
    let mut minutes: Vec<Minute> = Vec::new();
    for (index, sample) in taken.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| &taken[at]);
        let goes_on = before
            .is_some_and(|before| !breaks(before, sample) && number(before) == number(sample));
        match minutes.last_mut().filter(|_| goes_on) {
            Some(minute) => minute.last = index,
            None => minutes.push(Minute {
                first: index,
                last: index,
            }),
        }
    }
    minutes
}

/// Whether counters began anew between two samples, or nobody knows.
fn breaks(before: &Taken, after: &Taken) -> bool {
    after.is_unrelated || after.stamp.boot <= before.stamp.boot
}

/// A minute as the file's metadata tells it: boot clock, awake clock, wall clock, unrelated, which tables were read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Told(i64, Option<i64>, Option<i64>, u8, i64);

/// What a row group holds: rows are in the order of `series`, each of which is the number of a key, of a signal, and how
/// many rows follow of them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Directory {
    entity: String,
    /// Key, label and group of each entity.
    keys: Vec<(String, String, String)>,
    signals: Vec<String>,
    series: Vec<(u32, u32, u32)>,
}

/// The roll-ups of a segment, to be written.
pub(crate) struct Rolled<'a> {
    parts: Vec<PartRows<'a>>,
    taken: &'a [Taken],
    minutes: Vec<Minute>,
}

/// The rows of one kind of entity.
struct PartRows<'a> {
    entity: Entity,
    rows: Vec<RollUp>,
    /// For each series its key, signal and number of rows.
    series: Vec<(u32, u32, u32)>,
    keys: Vec<[&'a str; 3]>,
    signals: Vec<SignalId>,
}

impl<'a> Rolled<'a> {
    /// The roll-ups of a timeline.
    pub(crate) fn of(
        timeline: &'a Timeline,
        taken: &'a [Taken],
        before: &Before,
        facts: &Facts,
    ) -> Self {
        let minutes = minutes(taken);
        let goes_on = taken.first().is_some_and(|first| before.goes_on(first));
        let before = goes_on.then_some(before);
        let parts = BY_IMPORTANCE.map(|entity| {
            let grid = Grid::new(&minutes, taken, entity);
            let mut part = PartRows::new(entity);
            let before = |key: &str, signal| before?.reading(entity, key, signal);
            if entity == Entity::Host {
                part.take(["", "", ""], timeline.host_runs(), &grid, before);
            } else {
                for series in largest(timeline, entity, facts) {
                    let names = [series.key.as_str(), &series.label, &series.group];
                    part.take(names, series.runs(), &grid, before);
                }
            }
            part
        });
        Self {
            parts: parts
                .into_iter()
                .filter(|part| !part.rows.is_empty())
                .collect(),
            taken,
            minutes,
        }
    }

    /// How many row groups the file has.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// How many rows each kind of entity has.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Entity, usize)> + '_ {
        self.parts.iter().map(|part| (part.entity, part.rows.len()))
    }

    /// The pairs of metadata from which memtide reads.
    pub(crate) fn metadata(&self) -> [(String, String); 2] {
        let tell = |minute: &Minute| {
            let within = &self.taken[minute.first..=minute.last];
            let last = &self.taken[minute.last].stamp;
            let read = within.iter().fold(0, |read, sample| read | sample.read);
            Told(
                nanos(last.boot),
                last.awake.map(nanos),
                self.taken[minute.last].wall(),
                u8::from(self.taken[minute.first].is_unrelated),
                read,
            )
        };
        let told: Vec<Told> = self.minutes.iter().map(tell).collect();
        let directories: Vec<_> = self.parts.iter().map(PartRows::directory).collect();
        [
            (TOLD.to_owned(), json(&told)),
            (DIRECTORY.to_owned(), json(&directories)),
        ]
    }

    /// The columns.
    pub(crate) fn columns(&'a self) -> Vec<Column<'a>> {
        let number = |name, shape, of: fn(&RollUp) -> Option<i64>| {
            Column::numbers(name, shape, move |part: usize, cells| {
                let rows = &self.parts[part].rows;
                rows.iter().for_each(|row| cells.push(of(row)));
            })
        };
        let time = |name, of: fn(&RollUp, &[Minute]) -> usize| {
            Column::numbers(name, Shape::Time, move |part: usize, cells| {
                for row in &self.parts[part].rows {
                    cells.push(self.taken[of(row, &self.minutes)].wall());
                }
            })
        };
        vec![
            time("time", |row, minutes| minutes[row.first_minute()].first),
            time("until", |row, minutes| minutes[row.last_minute()].last),
            number(FIRST, Shape::Ordinal, |row| Some(i64::from(row.first))),
            number(LAST, Shape::Ordinal, |row| Some(i64::from(row.last))),
            self.words("entity", |part| vec![part.entity.name()], |_| 0),
            self.words("key", PartRows::key_words, |series| series.0),
            self.words("signal", PartRows::signal_words, |series| series.1),
            number("min", Shape::Reading, |row| row.min),
            number("max", Shape::Reading, |row| row.max),
            number("mean", Shape::Reading, |row| row.mean),
            number(VALUE, Shape::Always, |row| Some(row.value)),
            number("increase", Shape::Reading, |row| row.increase),
        ]
    }

    fn words(
        &'a self,
        name: &'a str,
        distinct: impl Fn(&PartRows<'a>) -> Vec<&'a str>,
        which: impl Fn(&(u32, u32, u32)) -> u32 + 'a,
    ) -> Column<'a> {
        let mut starts = Vec::new();
        let mut all = Vec::new();
        for part in &self.parts {
            starts.push(all.len());
            all.extend(distinct(part));
        }
        Column::words(name, all, move |part, out| {
            for series in &self.parts[part].series {
                let at = starts[part] + index(which(series));
                (0..series.2).for_each(|_| out(at));
            }
        })
    }
}

const TOLD: &str = "memtide.minutes";
const DIRECTORY: &str = "memtide.series";
const FIRST: &str = "first_minute";
const LAST: &str = "last_minute";
const VALUE: &str = "last";

fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn place(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl<'a> PartRows<'a> {
    fn new(entity: Entity) -> Self {
        Self {
            entity,
            rows: Vec::new(),
            series: Vec::new(),
            keys: Vec::new(),
            signals: entity.signals().filter_map(SignalId::at).collect(),
        }
    }

    fn take<'r>(
        &mut self,
        names: [&'a str; 3],
        columns: impl Iterator<Item = (SignalId, &'r [Run])>,
        grid: &Grid<'_>,
        before: impl Fn(&str, SignalId) -> Option<u64>,
    ) {
        for (signal, runs) in columns {
            let start = self.rows.len();
            let counted = match signal.def().is_counter {
                true => Counted::From(before(names[0], signal)),
                false => Counted::Not,
            };
            grid.roll(runs, counted, &mut self.rows);
            let signal = signal.place() - self.entity.signals().start;
            let rows = place(self.rows.len() - start);
            if rows > 0 {
                self.series
                    .push((place(self.keys.len()), place(signal), rows));
            }
        }
        self.keys.push(names);
    }

    fn key_words(&self) -> Vec<&'a str> {
        self.keys.iter().map(|names| names[0]).collect()
    }

    fn signal_words(&self) -> Vec<&'a str> {
        self.signals
            .iter()
            .map(|signal| signal.def().name)
            .collect()
    }

    fn directory(&self) -> Directory {
        let names = |names: &[&str; 3]| {
            let [key, label, group] = names.map(str::to_owned);
            (key, label, group)
        };
        Directory {
            entity: self.entity.name().to_owned(),
            keys: self.keys.iter().map(names).collect(),
            signals: self.signal_words().into_iter().map(str::to_owned).collect(),
            series: self.series.clone(),
        }
    }
}

/// A kind's entities, the largest first; of those that come by the thousand the largest only.
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
            // A limit that is not set is no size.
            Some(peak.saturating_mul(*scale)).filter(|peak| *peak < u64::MAX)
        });
        columns.fold(0, u64::saturating_add)
    };
    let mut all: Vec<(u64, &EntitySeries)> = timeline
        .entities(entity)
        .map(|series| (peak(series), series))
        .collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.key.cmp(&b.1.key)));
    if matches!(entity, Entity::Process | Entity::Slab) {
        all.truncate(LARGEST);
    }
    all.into_iter().map(|(_, series)| series).collect()
}
