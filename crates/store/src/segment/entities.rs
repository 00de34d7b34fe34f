//! `process.parquet` and similar files: one row for each period in which an entity's readings did not change.

use timeline::{Entity, EntitySeries, Run, SignalId, Timeline};

use super::host::StoredSample;
use super::names;
use super::picks::SamplePicks;
use super::runs::{Joined, RunSink};
use super::table::{Cells, ColumnChunk, ColumnShape, OpenedTable, RowGroup};

/// A row: the entity's number among its kind, and the first and the last sample with these readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntityFileRow {
    of: u32,
    first: u32,
    last: u32,
}

/// The rows of a table of entities.
pub(super) struct EntityTableWriter<'a> {
    series: Vec<&'a EntitySeries>,
    rows: Vec<EntityFileRow>,
    signals: Vec<SignalId>,
    taken: &'a [StoredSample],
}

fn place(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns the entities sorted by name and start: similar rows and increasing keys compress well.
fn in_order(timeline: &Timeline, entity: Entity) -> Vec<&EntitySeries> {
    let begins = |series: &EntitySeries| {
        let firsts = series.runs().filter_map(|(_, runs)| Some(runs.first()?.first()));
        firsts.min()
    };
    let mut all: Vec<&EntitySeries> = timeline.entities(entity).collect();
    all.sort_by_cached_key(|series| (series.label.as_str(), begins(series), series.key.as_str()));
    all
}

/// The samples in which a table was read, numbered.
struct TableReads {
    samples: Vec<u32>,
    /// For each sample, how many reads come before it.
    before: Vec<u32>,
}

impl TableReads {
    fn new(entity: Entity, taken: &[StoredSample]) -> Self {
        let mut reads = Self { samples: Vec::new(), before: vec![0] };
        for (sample, taken) in taken.iter().enumerate() {
            if taken.was_read(entity) {
                reads.samples.push(place(sample));
            }
            reads.before.push(place(reads.samples.len()));
        }
        reads
    }

    /// Returns the numbers of the reads within a run: the first, and the one after the last.
    fn range_of(&self, run: &Run) -> (u32, u32) {
        (self.before[run.first()], self.before[run.last() + 1])
    }
}

impl<'a> EntityTableWriter<'a> {
    /// Builds the rows of a timeline's entities of a kind; `None` if there are none.
    pub(super) fn from_timeline(
        timeline: &'a Timeline,
        entity: Entity,
        taken: &'a [StoredSample],
    ) -> Option<Self> {
        let reads = TableReads::new(entity, taken);
        let mut table = Self { series: Vec::new(), rows: Vec::new(), signals: Vec::new(), taken };
        let mut has = vec![false; timeline::signals::ALL.len()];
        for series in in_order(timeline, entity) {
            let before = table.rows.len();
            table.take(series, &reads);
            if table.rows.len() > before {
                table.series.push(series);
                series.runs().for_each(|(id, _)| has[id.index()] = true);
            }
        }
        let signals = (0..has.len()).filter(|signal| has[*signal]);
        table.signals = signals.filter_map(SignalId::from_index).collect();
        (!table.rows.is_empty()).then_some(table)
    }

    /// Splits an entity's time wherever one of its readings begins or ends.
    fn take(&mut self, series: &EntitySeries, reads: &TableReads) {
        let mut edges: Vec<(u32, i32)> = Vec::new();
        for (_, runs) in series.runs() {
            for (first, end) in runs.iter().map(|run| reads.range_of(run)) {
                if first < end {
                    edges.extend([(first, 1), (end, -1)]);
                }
            }
        }
        edges.sort_unstable();
        let (mut running, mut since) = (0, 0);
        for (at, by) in edges {
            if running > 0 && at > since {
                self.rows.push(EntityFileRow {
                    of: place(self.series.len()),
                    first: reads.samples[index(since)],
                    last: reads.samples[index(at) - 1],
                });
            }
            running += by;
            since = at;
        }
    }

    /// Returns the signals that have columns.
    pub(super) fn signals(&self) -> &[SignalId] {
        &self.signals
    }

    /// Returns the columns.
    pub(super) fn columns(&'a self) -> Vec<ColumnChunk<'a>> {
        let number = |name, shape, of: fn(&EntityFileRow, &[StoredSample]) -> Option<i64>| {
            ColumnChunk::numbers(name, shape, move |cells| {
                self.rows.iter().for_each(|row| cells.push(of(row, self.taken)));
            })
        };
        let word = |name, of: fn(&EntitySeries) -> &str| {
            let words = self.series.iter().map(|series| of(series)).collect();
            ColumnChunk::words(name, words, move |out| {
                self.rows.iter().for_each(|row| out(index(row.of)));
            })
        };
        let mut columns = vec![
            number("time", ColumnShape::Time, |row, taken| taken[index(row.first)].wall()),
            number("until", ColumnShape::Time, |row, taken| taken[index(row.last)].wall()),
            number("first", ColumnShape::Ordinal, |row, _| Some(i64::from(row.first))),
            number("last", ColumnShape::Ordinal, |row, _| Some(i64::from(row.last))),
            word("key", |series| &series.key),
            word("label", |series| &series.label),
            word("group", |series| &series.group),
        ];
        columns.extend(self.signals.iter().map(|signal| {
            ColumnChunk::numbers(signal.def().name, ColumnShape::Reading, move |cells| {
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
                while runs.get(at).is_some_and(|run| run.last() < first) {
                    at += 1;
                }
                let run = runs.get(at).filter(|run| run.first() <= first);
                cells.push(run.map(|run| run.value.cast_signed()));
            }
        }
    }
}

/// Appends the readings of a file to a timeline. Returns what is wrong with some of its rows, which are left out.
pub(super) fn read(
    file: &OpenedTable,
    entity: Entity,
    picks: &SamplePicks,
    timeline: &mut impl RunSink,
) -> Result<Option<String>, String> {
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
    let names_of_rows =
        EntityRowNames { entity, labels: words("label")?, groups: words("group")?, keys };
    let ends = (column("first")?, column("last")?);
    let (rows, wrong) = kept_rows(&part, ends, &names_of_rows.keys, picks)?;
    let mut cells = Cells::default();
    for (column, name) in names.iter().enumerate() {
        let signal = names::signal(name).filter(|signal| signal.def().entity == entity);
        let Some(signal) = signal else {
            continue;
        };
        part.numbers(column, &mut cells).map_err(|e| format!("column `{name}`: {e}"))?;
        names_of_rows.fill(timeline, signal, &cells, &rows, picks);
    }
    Ok((wrong > 0).then(|| {
        let samples = picks.samples();
        format!("rows that are not in order or not of its {samples} samples: {wrong}")
    }))
}

fn starts(keys: &[(String, usize)]) -> Vec<usize> {
    let mut at = 0;
    let start = |(_, rows): &(String, usize)| {
        at += rows;
        at - rows
    };
    keys.iter().map(start).collect()
}

/// A row that covers selected samples.
struct KeptRow {
    /// Its number in the file.
    row: usize,
    /// The index of its entity.
    of: usize,
    /// The ranks of the selected samples that it covers.
    ranks: (u32, u32),
}

/// Returns the rows that cover selected samples, and the number of rows that cannot be: a writer's have samples of the
/// segment, and those of an entity are in order.
fn kept_rows(
    part: &RowGroup<'_>,
    columns: (usize, usize),
    keys: &[(String, usize)],
    picks: &SamplePicks,
) -> Result<(Vec<KeptRow>, usize), String> {
    let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
    part.ordinals(columns.0, &mut firsts)
        .and_then(|()| part.ordinals(columns.1, &mut lasts))
        .map_err(|e| e.to_string())?;
    let counts = keys.iter().enumerate();
    let of = counts.flat_map(|(of, (_, rows))| std::iter::repeat_n(of, *rows));
    let (mut kept, mut wrong) = (Vec::new(), 0);
    // The entity of the row before, and the sample after its last one.
    let mut before = (0, 0);
    for (row, ((first, last), of)) in firsts.into_iter().zip(lasts).zip(of).enumerate() {
        let free = if before.0 == of { before.1 } else { 0 };
        let samples = usize::try_from(first).ok().zip(usize::try_from(last).ok());
        let is_right = |(first, last): &(usize, usize)| {
            free <= *first && first <= last && *last < picks.samples()
        };
        let Some((_, end)) = samples.filter(is_right) else {
            wrong += 1;
            continue;
        };
        before = (of, end + 1);
        if let Some(ranks) = picks.within(first, last) {
            kept.push(KeptRow { row, of, ranks });
        }
    }
    Ok((kept, wrong))
}

/// The entities of a file's rows.
struct EntityRowNames {
    entity: Entity,
    /// Keys, each with its number of rows.
    keys: Vec<(String, usize)>,
    labels: Vec<String>,
    groups: Vec<String>,
}

impl EntityRowNames {
    /// Appends one signal's readings.
    fn fill(
        &self,
        timeline: &mut impl RunSink,
        signal: SignalId,
        cells: &Cells,
        rows: &[KeptRow],
        picks: &SamplePicks,
    ) {
        let mut runs = Vec::new();
        // The rows skipped so far, and how many of them have a value.
        let (mut row, mut values) = (0, 0);
        for its in rows.chunk_by(|a, b| a.of == b.of) {
            runs.clear();
            let mut joined = Joined::new(picks, &mut runs);
            for covered in its {
                let over = cells.present.get(row..covered.row).unwrap_or_default();
                values += over.iter().filter(|present| **present > 0).count();
                row = covered.row;
                let is_present = cells.present.get(row).is_some_and(|present| *present > 0);
                if let Some(value) = cells.values.get(values).filter(|_| is_present) {
                    joined.push(covered.ranks, *value);
                }
            }
            let of = its[0].of;
            if !runs.is_empty() {
                let names = [&self.keys[of].0, &self.labels[of], &self.groups[of]];
                let columns = std::iter::once((signal, runs.as_slice()));
                timeline.entity(self.entity, names.map(String::as_str), columns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::table;
    use timeline::signals::CGROUP_CURRENT;
    use timeline::{Sample, Timeline};
    use units::Span;

    #[test]
    fn rows_that_no_writer_makes_are_left_out_and_counted() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("cgroup.parquet");
        // (first, last, key) of five samples.
        let rows =
            [(0, 2, "/a"), (2, 4, "/a"), (3, 4, "/a"), (0, 5, "/b"), (3, 1, "/b"), (0, 4, "/c")];
        let number = |name, shape, of: fn(&(i64, i64, &str)) -> i64| {
            ColumnChunk::numbers(name, shape, move |cells| {
                rows.iter().for_each(|row| cells.push(Some(of(row))));
            })
        };
        let word = |name| {
            let words = rows.iter().map(|row| row.2).collect();
            ColumnChunk::words(name, words, move |out| (0..rows.len()).for_each(out))
        };
        let columns = [
            number("first", ColumnShape::Ordinal, |row| row.0),
            number("last", ColumnShape::Ordinal, |row| row.1),
            word("key"),
            word("label"),
            word("group"),
            number(CGROUP_CURRENT.def().name, ColumnShape::Reading, |_| 7),
        ];
        table::write(&path, &columns, Vec::new()).unwrap();
        let file = OpenedTable::new(std::fs::read(&path).unwrap()).unwrap();
        let mut timeline = Timeline::default();
        for second in 0..5 {
            timeline.push(&Sample::at(Span::from_secs(second))).unwrap();
        }
        let picks = SamplePicks::new((0..5).map(Some));
        let wrong = read(&file, Entity::Cgroup, &picks, &mut timeline).unwrap();
        let wrong = wrong.unwrap();
        assert!(wrong.ends_with("not of its 5 samples: 3"), "{wrong}");
        let readings = |key: &str| {
            let series = timeline.entity(Entity::Cgroup, key)?;
            let runs = series.runs().flat_map(|(_, runs)| runs);
            Some(runs.map(|run| (run.first(), run.last())).collect::<Vec<_>>())
        };
        assert_eq!(readings("/b"), None);
        assert_eq!(readings("/c"), Some(vec![(0, 4)]));
        assert_eq!(readings("/a"), Some(vec![(0, 4)]));
    }
}
