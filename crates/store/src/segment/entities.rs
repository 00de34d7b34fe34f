//! `process.parquet` and its like: one row for each time that an entity's readings did not change.

use timeline::{Entity, EntitySeries, Run, SignalId, Timeline};

use super::host::Taken;
use super::names;
use super::picks::Picks;
use super::runs::Joined;
use super::table::{Cells, Column, Opened, Part, Shape};

/// A row: the entity's place among its kind, and the samples from the first to the last in which its readings were these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    of: u32,
    first: u32,
    last: u32,
}

/// The rows of an entity's table.
pub(super) struct Table<'a> {
    series: Vec<&'a EntitySeries>,
    rows: Vec<Row>,
    signals: Vec<SignalId>,
    taken: &'a [Taken],
}

fn place(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Entities of one name beside each other, as they began: what is alike then packs well, and keys that count upwards do.
fn in_order(timeline: &Timeline, entity: Entity) -> Vec<&EntitySeries> {
    let begins = |series: &EntitySeries| {
        let firsts = series
            .runs()
            .filter_map(|(_, runs)| Some(runs.first()?.first));
        firsts.min()
    };
    let mut all: Vec<&EntitySeries> = timeline.entities(entity).collect();
    all.sort_by_cached_key(|series| (series.label.as_str(), begins(series), series.key.as_str()));
    all
}

/// Samples in which a table was read, numbered.
struct Reads {
    samples: Vec<u32>,
    /// For each sample how many reads lie before it.
    before: Vec<u32>,
}

impl Reads {
    fn new(entity: Entity, taken: &[Taken]) -> Self {
        let mut reads = Self {
            samples: Vec::new(),
            before: vec![0],
        };
        for (sample, taken) in taken.iter().enumerate() {
            if taken.was_read(entity) {
                reads.samples.push(place(sample));
            }
            reads.before.push(place(reads.samples.len()));
        }
        reads
    }

    /// The numbers of the reads within a run: the first, and the one after the last.
    fn of(&self, run: &Run) -> (u32, u32) {
        (self.before[run.first], self.before[run.last + 1])
    }
}

impl<'a> Table<'a> {
    /// The rows of a timeline's entities of a kind; `None` where there are none.
    pub(super) fn of(timeline: &'a Timeline, entity: Entity, taken: &'a [Taken]) -> Option<Self> {
        let reads = Reads::new(entity, taken);
        let mut table = Self {
            series: Vec::new(),
            rows: Vec::new(),
            signals: Vec::new(),
            taken,
        };
        let mut has = vec![false; timeline::signals::ALL.len()];
        for series in in_order(timeline, entity) {
            let before = table.rows.len();
            table.take(series, &reads);
            if table.rows.len() > before {
                table.series.push(series);
                series.runs().for_each(|(id, _)| has[id.place()] = true);
            }
        }
        let signals = (0..has.len()).filter(|signal| has[*signal]);
        table.signals = signals.filter_map(SignalId::at).collect();
        (!table.rows.is_empty()).then_some(table)
    }

    /// Cuts an entity's time where any of its readings begins or ends.
    fn take(&mut self, series: &EntitySeries, reads: &Reads) {
        let mut edges: Vec<(u32, i32)> = Vec::new();
        for (_, runs) in series.runs() {
            for (first, end) in runs.iter().map(|run| reads.of(run)) {
                if first < end {
                    edges.extend([(first, 1), (end, -1)]);
                }
            }
        }
        edges.sort_unstable();
        let (mut running, mut since) = (0, 0);
        for (at, by) in edges {
            if running > 0 && at > since {
                self.rows.push(Row {
                    of: place(self.series.len()),
                    first: reads.samples[index(since)],
                    last: reads.samples[index(at) - 1],
                });
            }
            running += by;
            since = at;
        }
    }

    /// The signals that it has columns for.
    pub(super) fn signals(&self) -> &[SignalId] {
        &self.signals
    }

    /// Its columns.
    pub(super) fn columns(&'a self) -> Vec<Column<'a>> {
        let number = |name, shape, of: fn(&Row, &[Taken]) -> Option<i64>| {
            Column::numbers(name, shape, move |cells| {
                self.rows
                    .iter()
                    .for_each(|row| cells.push(of(row, self.taken)));
            })
        };
        let word = |name, of: fn(&EntitySeries) -> &str| {
            let words = self.series.iter().map(|series| of(series)).collect();
            Column::words(name, words, move |out| {
                self.rows.iter().for_each(|row| out(index(row.of)));
            })
        };
        let mut columns = vec![
            number("time", Shape::Time, |row, taken| {
                taken[index(row.first)].wall()
            }),
            number("until", Shape::Time, |row, taken| {
                taken[index(row.last)].wall()
            }),
            number("first", Shape::Ordinal, |row, _| Some(i64::from(row.first))),
            number("last", Shape::Ordinal, |row, _| Some(i64::from(row.last))),
            word("key", |series| &series.key),
            word("label", |series| &series.label),
            word("group", |series| &series.group),
        ];
        columns.extend(self.signals.iter().map(|signal| {
            Column::numbers(signal.def().name, Shape::Reading, move |cells| {
                self.fill(*signal, cells);
            })
        }));
        columns
    }

    fn fill(&self, signal: SignalId, cells: &mut Cells) {
        let mut rows = self.rows.as_slice();
        for (of, series) in self.series.iter().enumerate() {
            let end = rows.partition_point(|row| index(row.of) <= of);
            let (its, rest) = rows.split_at(end);
            rows = rest;
            let mut runs = series.runs().filter(|(id, _)| *id == signal);
            let runs = runs.next().map_or(&[][..], |(_, runs)| runs);
            let mut at = 0;
            for row in its {
                let first = index(row.first);
                while runs.get(at).is_some_and(|run| run.last < first) {
                    at += 1;
                }
                let run = runs.get(at).filter(|run| run.first <= first);
                cells.push(run.map(|run| run.value.cast_signed()));
            }
        }
    }
}

/// Appends the readings of a file to a timeline.
pub(super) fn read(
    file: &Opened,
    entity: Entity,
    picks: &Picks,
    timeline: &mut Timeline,
) -> Result<(), String> {
    let names = file.columns();
    let column = |name: &str| {
        let found = names.iter().position(|found| found == name);
        found.ok_or_else(|| format!("it has no column `{name}`"))
    };
    let part = file.part(0).map_err(|e| e.to_string())?;
    let keys = part.words(column("key")?).map_err(|e| e.to_string())?;
    let starts = starts(&keys);
    let words = |name: &str| {
        let words = part.words_at(column(name)?, &starts);
        words.map_err(|e| e.to_string())
    };
    let whose = Whose {
        entity,
        labels: words("label")?,
        groups: words("group")?,
        keys,
    };
    let ranks = ranks(&part, (column("first")?, column("last")?), picks)?;
    let mut cells = Cells::default();
    for (column, name) in names.iter().enumerate() {
        let signal = names::signal(name).filter(|signal| signal.def().entity == entity);
        let Some(signal) = signal else {
            continue;
        };
        part.numbers(column, &mut cells)
            .map_err(|e| format!("column `{name}`: {e}"))?;
        whose.fill(timeline, signal, &cells, &ranks, picks);
    }
    Ok(())
}

fn starts(keys: &[(String, usize)]) -> Vec<usize> {
    let mut at = 0;
    let start = |(_, rows): &(String, usize)| {
        at += rows;
        at - rows
    };
    keys.iter().map(start).collect()
}

/// For each row which kept samples it speaks for.
type Ranks = Vec<Option<(u32, u32)>>;

fn ranks(part: &Part<'_>, columns: (usize, usize), picks: &Picks) -> Result<Ranks, String> {
    let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
    part.ordinals(columns.0, &mut firsts)
        .and_then(|()| part.ordinals(columns.1, &mut lasts))
        .map_err(|e| e.to_string())?;
    let rows = firsts.into_iter().zip(lasts);
    Ok(rows
        .map(|(first, last)| picks.within(first, last))
        .collect())
}

/// Which entities a file's rows belong to.
struct Whose {
    entity: Entity,
    /// Each with the number of its rows.
    keys: Vec<(String, usize)>,
    labels: Vec<String>,
    groups: Vec<String>,
}

impl Whose {
    /// Appends one signal's readings.
    fn fill(
        &self,
        timeline: &mut Timeline,
        signal: SignalId,
        cells: &Cells,
        ranks: &Ranks,
        picks: &Picks,
    ) {
        let mut values = cells.values.iter();
        let mut rows = cells.present.iter().zip(ranks);
        let mut joined = Joined::default();
        for (of, (key, count)) in self.keys.iter().enumerate() {
            for (present, ranks) in rows.by_ref().take(*count) {
                let value = (*present > 0).then(|| values.next()).flatten();
                if let (Some(value), Some(ranks)) = (value, ranks) {
                    joined.push(*ranks, *value);
                }
            }
            if !joined.is_empty() {
                let runs = joined.drain(picks).map(|run| (signal, run));
                let (label, group) = (&self.labels[of], &self.groups[of]);
                timeline.fill(self.entity, key, label, group, runs);
            }
        }
    }
}
