//! Converts roll-ups to readings of one sample a minute.

use std::ops::Range;

use timeline::{BootId, Entity, Run, SignalId, Stamp};
use units::WallClock;

use super::{
    BOOTS_KEY, Before, BootRow, FIRST, GROUP, KEY, KEY_NUMBER, LABEL, LAST, MINUTES_KEY, MinuteRow,
    SIGNAL, SIGNAL_NUMBER, VALUE, index,
};
use crate::segment::host::{StoredSample, span};
use crate::segment::names;
use crate::segment::picks::SamplePicks;
use crate::segment::runs::{Joined, RunSink};
use crate::segment::table::{Cells, OpenedTable};

/// The opened roll-ups of a segment.
pub(crate) struct MinutesFile {
    file: OpenedTable,
    index: RollUpIndex,
}

/// The entity and signal of each row of a file. Building it takes longer than reading most columns, so it is reused
/// when the file is opened again.
pub(crate) struct RollUpIndex {
    /// The last sample of each minute.
    taken: Vec<StoredSample>,
    names: Vec<SeriesNames>,
    kinds: Vec<EntityKindRows>,
}

/// The rows of one kind of entity.
pub(crate) struct EntityKindRows {
    pub(super) entity: Entity,
    /// Series of one entity are adjacent.
    pub(super) series: Vec<SeriesRows>,
}

/// Key, label and group of an entity.
type SeriesNames = (String, String, String);

/// One signal of one entity.
pub(super) struct SeriesRows {
    of: u32,
    pub(super) signal: SignalId,
    rows: Range<u32>,
}

impl SeriesRows {
    /// Creates the rows of the entity with this index of names.
    fn new(of: usize, signal: SignalId, rows: Range<usize>) -> Self {
        let [of, start, end] = [of, rows.start, rows.end].map(place);
        let rows = start..end;
        Self { of, signal, rows }
    }

    /// Returns the index of its entity's names.
    pub(super) fn entity_index(&self) -> usize {
        index(self.of)
    }

    /// Returns its rows in their row group.
    pub(super) fn rows(&self) -> Range<usize> {
        index(self.rows.start)..index(self.rows.end)
    }
}

/// Converts an index; one that does not fit becomes invalid, and reading it fails with [`NO_SERIES`].
fn place(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Buffers for columns, reused from segment to segment.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Whether they have the columns of the current file.
    are_read: bool,
    first: Vec<i32>,
    last: Vec<i32>,
    value: Cells,
    /// Runs of one entity, signal by signal.
    runs: Vec<Run>,
    /// The signals of the runs, each with its range.
    columns: Vec<(SignalId, Range<usize>)>,
}

impl MinutesFile {
    /// Opens a file, with its index if that was built before.
    pub(crate) fn open(file: OpenedTable, index: Option<RollUpIndex>) -> Result<Self, String> {
        let index = match index {
            Some(index) => index,
            None => RollUpIndex::read(&file)?,
        };
        Ok(Self { file, index })
    }

    /// Returns the index of its rows, for opening it again.
    pub(crate) fn into_index(self) -> RollUpIndex {
        self.index
    }

    /// Returns the file, for its metadata.
    pub(crate) fn file(&self) -> &OpenedTable {
        &self.file
    }

    /// Returns the last sample of each minute.
    pub(crate) fn taken(&self) -> &[StoredSample] {
        &self.index.taken
    }

    /// Returns the rows of each kind of entity.
    pub(super) fn kinds(&self) -> &[EntityKindRows] {
        &self.index.kinds
    }

    /// Returns the key of a series' entity.
    pub(super) fn key(&self, series: &SeriesRows) -> Option<&str> {
        self.index.names.get(series.entity_index()).map(|(key, ..)| key.as_str())
    }

    /// Returns the rows of a kind of entity.
    pub(crate) fn kind(&self, entity: Entity) -> Option<&EntityKindRows> {
        let mut kinds = self.index.kinds.iter();
        kinds.find(|kind| kind.entity == entity)
    }

    /// Returns the segment's end: its last sample, and the last values of its counters.
    pub(crate) fn end(&self) -> Before {
        let mut before = Before::after(self.index.taken.last().copied());
        let mut buffers = Buffers::default();
        if self.check(&mut buffers).is_err() {
            return before;
        }
        for kind in &self.index.kinds {
            for series in &kind.series {
                let last = series.rows().end.checked_sub(1);
                let last = last.and_then(|last| buffers.value.values.get(last));
                if let (Some((key, ..)), Some(last)) =
                    (self.index.names.get(series.entity_index()), last)
                {
                    before.note(kind.entity, key, series.signal, last.cast_unsigned());
                }
            }
        }
        before
    }

    /// Appends the readings of a kind of entity to a timeline. The buffers must have this file's columns, or be
    /// cleared.
    pub(crate) fn read(
        &self,
        kind: &EntityKindRows,
        picks: &SamplePicks,
        timeline: &mut impl RunSink,
        buffers: &mut Buffers,
    ) -> Result<(), String> {
        self.check(buffers)?;
        for its in kind.series.chunk_by(|a, b| a.entity_index() == b.entity_index()) {
            buffers.runs.clear();
            buffers.columns.clear();
            for series in its {
                buffers.join(series, picks)?;
            }
            let names = self.index.names.get(its[0].entity_index());
            let (key, label, group) = names.ok_or(NO_SERIES)?;
            let columns =
                buffers.columns.iter().map(|(signal, at)| (*signal, &buffers.runs[at.clone()]));
            if kind.entity == Entity::Host {
                columns.for_each(|(signal, runs)| timeline.host(signal, runs));
            } else if !buffers.runs.is_empty() {
                timeline.entity(kind.entity, [key, label, group], columns);
            }
        }
        Ok(())
    }

    /// Reads the columns into the buffers before use, so that a damaged file is replaced as a whole by another.
    pub(crate) fn check(&self, buffers: &mut Buffers) -> Result<(), String> {
        if buffers.are_read {
            return Ok(());
        }
        let column = |name: &str| column(&self.file, name);
        let read = self.file.part(0).map_err(text)?;
        read.ordinals(column(FIRST)?, &mut buffers.first).map_err(text)?;
        read.ordinals(column(LAST)?, &mut buffers.last).map_err(text)?;
        read.numbers(column(VALUE)?, &mut buffers.value).map_err(text)?;
        buffers.are_whole(self.index.taken.len())?;
        buffers.are_read = true;
        Ok(())
    }
}

impl RollUpIndex {
    /// Returns its approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let words =
            self.names.iter().map(|(key, label, group)| key.len() + label.len() + group.len());
        let series: usize = self.kinds.iter().map(|kind| kind.series.len()).sum();
        words.sum::<usize>()
            + self.names.len() * size_of::<SeriesNames>()
            + series * size_of::<SeriesRows>()
            + self.taken.len() * size_of::<StoredSample>()
    }

    /// Builds the index of a file.
    fn read(file: &OpenedTable) -> Result<Self, String> {
        let rows: Vec<MinuteRow> = metadata(file, MINUTES_KEY)?;
        // A file of an earlier memtide does not name the boots.
        let boots: Vec<BootRow> = metadata(file, BOOTS_KEY).unwrap_or_default();
        let boot_of = |minute: usize| {
            let after = boots.partition_point(|boot| boot.0 <= minute);
            let boot = boots.get(after.checked_sub(1)?)?;
            BootId::from_text(boot.1.as_deref()?)
        };
        let taken = rows.into_iter().enumerate().map(|(at, row)| StoredSample {
            stamp: Stamp {
                boot: span(row.0),
                awake: row.1.map(span),
                wall: row.2.map(WallClock::from_unix_nanos),
                boot_id: boot_of(at),
            },
            is_unrelated: row.3 != 0,
            read: row.4,
        });
        let (names, kinds) = entities(file)?;
        Ok(Self { taken: taken.collect(), names, kinds })
    }
}

/// A series refers to rows, or to an entity, that the file does not have.
pub(super) const NO_SERIES: &str = "its rows have no valid key or signal";

/// Returns the entities of the rows. Keys and signals are read by their numbers, as words are slow to read: each word
/// is read once.
fn entities(file: &OpenedTable) -> Result<(Vec<SeriesNames>, Vec<EntityKindRows>), String> {
    let part = file.part(0).map_err(text)?;
    let numbers = |name: &str| {
        let mut numbers = Vec::with_capacity(part.rows);
        let read = part.ordinals(column(file, name)?, &mut numbers);
        read.map_err(text).map(|()| numbers)
    };
    let (key_of, signal_of) = (numbers(KEY_NUMBER)?, numbers(SIGNAL_NUMBER)?);
    if key_of.len() != file.rows() || signal_of.len() != file.rows() {
        return Err("it has more than one row group".to_owned());
    }
    let (mut keys, mut signals) = (Firsts::default(), Firsts::default());
    let (mut all, mut from) = (Vec::new(), 0);
    // Rows of a series are adjacent: it ends where the key or signal changes.
    for of_signal in signal_of.chunk_by(|a, b| a == b) {
        let of_keys = &key_of[from..from + of_signal.len()];
        for of_key in of_keys.chunk_by(|a, b| a == b) {
            let (key, signal) = (of_key[0], of_signal[0]);
            let rows = from..from + of_key.len();
            all.push((keys.place(key, from)?, signals.place(signal, from)?, rows));
            from += of_key.len();
        }
    }
    let words = |name: &str, rows: &[usize]| {
        let words = part.words_at(column(file, name)?, rows);
        words.map_err(text)
    };
    let signals = words(SIGNAL, &signals.rows)?;
    // A later memtide may have written signals that this version does not know.
    let signals: Vec<_> = signals.iter().map(|name| names::signal(name)).collect();
    let mut kinds = Vec::new();
    for (of, signal, rows) in all {
        if let Some(signal) = signals.get(signal).copied().flatten() {
            add(&mut kinds, SeriesRows::new(of, signal, rows));
        }
    }
    for kind in &mut kinds {
        kind.series.sort_by_key(|series| series.entity_index());
    }
    let rows = keys.rows;
    let others = words(LABEL, &rows)?.into_iter().zip(words(GROUP, &rows)?);
    let names =
        words(KEY, &rows)?.into_iter().zip(others).map(|(key, (label, group))| (key, label, group));
    Ok((names.collect(), kinds))
}

/// The rows in which numbers appear for the first time.
#[derive(Default)]
struct Firsts {
    places: Vec<Option<usize>>,
    rows: Vec<usize>,
}

impl Firsts {
    /// Returns the index of a number among those seen so far.
    fn place(&mut self, number: i32, row: usize) -> Result<usize, String> {
        // No segment has more rows; an impossible number must not allocate memory.
        const ROWS_MAX: usize = 1 << 20;
        let number = usize::try_from(number).ok().filter(|number| *number < ROWS_MAX);
        let number = number.ok_or("its keys and signals are not numbered")?;
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        Ok(*self.places[number].get_or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() - 1
        }))
    }
}

/// Adds rows to their kind of entity.
fn add(kinds: &mut Vec<EntityKindRows>, series: SeriesRows) {
    let entity = series.signal.def().entity;
    match kinds.iter_mut().find(|kind| kind.entity == entity) {
        Some(kind) => kind.series.push(series),
        None => kinds.push(EntityKindRows { entity, series: vec![series] }),
    }
}

impl Buffers {
    /// Clears the content, before another file is read.
    pub(crate) fn clear(&mut self) {
        self.are_read = false;
    }

    /// Checks that each row has a value and covers existing minutes.
    fn are_whole(&self, minutes: usize) -> Result<(), String> {
        let values = &self.value;
        let missing = values.present.len() - values.values.len().min(values.present.len());
        if missing > 0 {
            let rows = values.present.len();
            return Err(format!("in {missing} of its {rows} rows `{VALUE}` is missing"));
        }
        let is_there = |(first, last): (&i32, &i32)| {
            let last_of_all = usize::try_from(*last).is_ok_and(|last| last < minutes);
            0 <= *first && first <= last && last_of_all
        };
        if self.first.iter().zip(&self.last).all(is_there) {
            Ok(())
        } else {
            Err("its rows are of minutes that it lacks".to_owned())
        }
    }

    fn join(&mut self, series: &SeriesRows, picks: &SamplePicks) -> Result<(), String> {
        let rows = || series.rows();
        let firsts = self.first.get(rows()).ok_or(NO_SERIES)?;
        let lasts = self.last.get(rows()).ok_or(NO_SERIES)?;
        let values = self.value.values.get(rows()).ok_or(NO_SERIES)?;
        let start = self.runs.len();
        let mut joined = Joined::new(picks, &mut self.runs);
        for ((first, last), value) in firsts.iter().zip(lasts).zip(values) {
            if let Some(ranks) = picks.within(*first, *last) {
                joined.push(ranks, *value);
            }
        }
        self.columns.push((series.signal, start..self.runs.len()));
        Ok(())
    }
}

pub(super) fn column(file: &OpenedTable, name: &str) -> Result<usize, String> {
    let found = file.columns().iter().position(|found| found == name);
    found.ok_or_else(|| format!("it has no column `{name}`"))
}

pub(super) fn text(error: parquet::errors::ParquetError) -> String {
    error.to_string()
}

fn metadata<T: serde::de::DeserializeOwned>(file: &OpenedTable, key: &str) -> Result<T, String> {
    let text = file.metadata(key);
    let text = text.ok_or_else(|| format!("it has no metadata `{key}`"))?;
    serde_json::from_str(text).map_err(|error| format!("metadata `{key}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::table::{self, ColumnChunk, ColumnShape};

    /// The first minute, the last, and the value.
    type Row = (i64, i64, Option<i64>);

    /// Opens and checks roll-ups of one minute.
    fn checked(rows: &[Row]) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("minutes.parquet");
        let number = |name, shape, of: fn(&Row) -> Option<i64>| {
            ColumnChunk::numbers(name, shape, move |cells| {
                rows.iter().for_each(|row| cells.push(of(row)));
            })
        };
        let word = |name, word| {
            ColumnChunk::names(name, vec![word], move |out| {
                rows.iter().for_each(|_| out(0));
            })
        };
        let columns = [
            number(FIRST, ColumnShape::Ordinal, |row| Some(row.0)),
            number(LAST, ColumnShape::Ordinal, |row| Some(row.1)),
            number(KEY_NUMBER, ColumnShape::Ordinal, |_| Some(0)),
            number(SIGNAL_NUMBER, ColumnShape::Ordinal, |_| Some(0)),
            word(KEY, ""),
            word(LABEL, ""),
            word(GROUP, ""),
            word(SIGNAL, timeline::signals::MEM_FREE.id().def().name),
            number(VALUE, ColumnShape::Reading, |row| row.2),
        ];
        let minutes = (MINUTES_KEY.to_owned(), "[[1,null,null,0,1]]".to_owned());
        table::write(&path, &columns, vec![minutes]).unwrap();
        let file = OpenedTable::new(std::fs::read(path).unwrap()).unwrap();
        let minutes = MinutesFile::open(file, None)?;
        assert!(minutes.kind(Entity::Host).is_some());
        minutes.check(&mut Buffers::default())
    }

    #[test]
    fn a_row_without_a_value_or_a_minute_is_not_taken_for_another() {
        assert_eq!(checked(&[(0, 0, Some(7))]), Ok(()));
        for (row, problem) in [
            ((0, 0, None), "in 1 of its 3 rows `last` is missing"),
            ((0, 1, Some(7)), "minutes that it lacks"),
            ((-1, 0, Some(7)), "minutes that it lacks"),
            ((0, -1, Some(7)), "minutes that it lacks"),
        ] {
            let refused = checked(&[(0, 0, Some(7)), row, (0, 0, Some(9))]).unwrap_err();
            assert!(refused.contains(problem), "{row:?}: {refused}");
        }
    }
}
