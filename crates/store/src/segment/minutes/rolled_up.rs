//! Roll-ups as data: from a segment's file, or from a head file's samples.

use std::ops::Range;

use timeline::{Entity, Minute as Rolled, RollUp, RollUps, SignalId, Timeline};
use units::Span;

use super::read::{MinutesFile, NO_SERIES, SeriesRows, column, text};
use super::roll::{CounterStart, Grid};
use super::{Before, FIRST, INCREASE, LAST, MAX, MIN, breaks, minutes};
use crate::segment::host::StoredSample;
use crate::segment::table::Cells;

/// A selection of the catalogue's signals.
#[derive(Debug)]
pub(crate) struct WantedSignals {
    is_wanted: Vec<bool>,
}

impl WantedSignals {
    pub(crate) fn new(signals: impl IntoIterator<Item = SignalId>) -> Self {
        let mut is_wanted = vec![false; timeline::signals::ALL.len()];
        for signal in signals {
            is_wanted[signal.index()] = true;
        }
        Self { is_wanted }
    }

    pub(crate) fn has(&self, signal: SignalId) -> bool {
        self.is_wanted.get(signal.index()) == Some(&true)
    }
}

/// Returns the minutes with these last samples, after a part that ended with `before`.
fn minutes_of(ends: &[StoredSample], before: Option<&StoredSample>) -> Vec<Rolled> {
    const UNKNOWN: Span = Span::from_mins(1);
    let mut before = before;
    let mut minutes = Vec::with_capacity(ends.len());
    for end in ends {
        let duration = match before.filter(|before| !breaks(before, end)) {
            Some(before) => end.stamp.boot - before.stamp.boot,
            None => UNKNOWN,
        };
        minutes.push(Rolled { end: end.stamp, duration });
        before = Some(end);
    }
    minutes
}

/// The selected rows of a file; reused from file to file.
#[derive(Default)]
pub(crate) struct RollUpColumns {
    /// The selected rows: sorted ranges that do not overlap.
    rows: Vec<Range<usize>>,
    /// For each range, how many rows come before it.
    before: Vec<usize>,
    first: Vec<i32>,
    last: Vec<i32>,
    min: Sparse,
    max: Sparse,
    increase: Sparse,
}

/// A column that has values only in some rows.
#[derive(Default)]
struct Sparse {
    cells: Cells,
    /// For each row, how many values come before it.
    before: Vec<u32>,
}

impl Sparse {
    fn clear(&mut self) {
        self.cells.clear();
        self.before.clear();
    }

    fn index(&mut self) {
        self.before.clear();
        let mut so_far = 0;
        for present in &self.cells.present {
            self.before.push(so_far);
            so_far += u32::from(*present > 0);
        }
    }

    fn at(&self, row: usize) -> Option<u64> {
        let is_present = *self.cells.present.get(row)? > 0;
        let at = usize::try_from(*self.before.get(row)?).ok()?;
        let value = self.cells.values.get(at).filter(|_| is_present);
        value.map(|value| value.cast_unsigned())
    }
}

impl MinutesFile {
    /// Returns the roll-ups of some signals, after a part that ended with `before`.
    pub(crate) fn roll_ups(
        &self,
        wanted: &WantedSignals,
        before: Option<&StoredSample>,
        columns: &mut RollUpColumns,
    ) -> Result<RollUps, String> {
        let mut rolled = RollUps::new(minutes_of(self.taken(), before));
        for kind in self.kinds() {
            let wanted = kind.series.iter().filter(|series| wanted.has(series.signal));
            // Counters have increases, gauges have minima: the other column is not decompressed.
            let (counters, gauges): (Vec<&SeriesRows>, Vec<&SeriesRows>) =
                wanted.partition(|series| series.signal.def().is_counter);
            for (series, are_counters) in [(counters, true), (gauges, false)] {
                if series.is_empty() {
                    continue;
                }
                columns.choose(&series);
                self.fill(are_counters, columns)?;
                for series in series {
                    columns.put(self, kind.entity, series, &mut rolled)?;
                }
            }
        }
        Ok(rolled)
    }

    /// Reads the selected rows.
    fn fill(&self, are_counters: bool, columns: &mut RollUpColumns) -> Result<(), String> {
        let file = self.file();
        let read = file.part(0).map_err(text)?;
        let rows = &columns.rows;
        for (name, ordinals) in [(FIRST, &mut columns.first), (LAST, &mut columns.last)] {
            read.ordinals_at(column(file, name)?, rows, ordinals).map_err(text)?;
        }
        for (name, only, sparse) in [
            (MIN, Some(false), &mut columns.min),
            (MAX, None, &mut columns.max),
            (INCREASE, Some(true), &mut columns.increase),
        ] {
            sparse.clear();
            if only.is_none_or(|only| only == are_counters) {
                let column = column(file, name)?;
                read.numbers_at(column, rows, &mut sparse.cells).map_err(text)?;
                sparse.index();
            }
        }
        Ok(())
    }
}

impl RollUpColumns {
    /// Selects the rows of some series.
    fn choose(&mut self, series: &[&SeriesRows]) {
        let mut rows: Vec<Range<usize>> = series.iter().map(|series| series.rows()).collect();
        rows.sort_unstable_by_key(|range| range.start);
        self.rows.clear();
        self.before.clear();
        let mut so_far = 0;
        for range in rows {
            let length = range.len();
            match self.rows.last_mut().filter(|last| range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => {
                    self.before.push(so_far);
                    self.rows.push(range);
                }
            }
            so_far += length;
        }
    }

    /// Returns the index of a row among the selected ones.
    fn place(&self, row: usize) -> Option<usize> {
        let at = self.rows.partition_point(|range| range.start <= row);
        let at = at.checked_sub(1)?;
        Some(self.before.get(at)? + row - self.rows.get(at)?.start)
    }

    /// Stores the rows of a signal of an entity.
    fn put(
        &self,
        from: &MinutesFile,
        entity: Entity,
        series: &SeriesRows,
        into: &mut RollUps,
    ) -> Result<(), String> {
        let key = from.key(series).ok_or(NO_SERIES)?;
        let start = self.place(series.rows().start).ok_or(NO_SERIES)?;
        let is_counter = series.signal.def().is_counter;
        let cells = into.entry(entity, key, series.signal);
        for row in start..start + series.rows().len() {
            let ends = self
                .first
                .get(row)
                .zip(self.last.get(row))
                .map(|(first, last)| (usize::try_from(*first), usize::try_from(*last)));
            let Some((Ok(first), Ok(last))) = ends else {
                return Err("its rows are of minutes that it lacks".to_owned());
            };
            let levels = self.min.at(row).zip(self.max.at(row));
            let roll_up = match levels.filter(|_| !is_counter) {
                Some((min, max)) => RollUp::Level { min, max },
                None => RollUp::Increase { by: self.increase.at(row), fastest: self.max.at(row) },
            };
            put(first..last + 1, roll_up, from.taken(), entity, cells)?;
        }
        Ok(())
    }
}

/// Stores one row in the minutes in which its table was read.
fn put(
    minutes: Range<usize>,
    roll_up: RollUp,
    taken: &[StoredSample],
    entity: Entity,
    cells: &mut [Option<RollUp>],
) -> Result<(), String> {
    let its = taken.get(minutes.clone()).zip(cells.get_mut(minutes));
    let (taken, cells) = its.ok_or("its rows are of minutes that it lacks")?;
    for (at, (taken, cell)) in taken.iter().zip(cells).enumerate() {
        // A row may span minutes in which the table was not read; it was read in its first and last one.
        if at == 0 || taken.was_read(entity) {
            *cell = Some(roll_up);
        }
    }
    Ok(())
}

/// Computes roll-ups of some signals from samples, after a part that ended with `before`.
pub(crate) fn of_samples(
    timeline: &Timeline,
    taken: &[StoredSample],
    before: &Before,
    wanted: &WantedSignals,
) -> RollUps {
    let ranges = minutes(taken);
    let ends: Vec<StoredSample> = ranges.iter().map(|minute| minute.end(taken)).collect();
    let mut rolled = RollUps::new(minutes_of(&ends, before.last()));
    let goes_on = taken.first().is_some_and(|first| before.goes_on(first));
    let before = goes_on.then_some(before);
    let mut rows = Vec::new();
    for entity in Entity::ALL {
        let last = before.and_then(Before::last);
        let grid = Grid::new(&ranges, taken, entity, last);
        let host = (entity == Entity::Host).then(|| timeline.host_runs().map(|runs| ("", runs)));
        let entities = timeline.entities(entity);
        let others =
            entities.flat_map(|series| series.runs().map(|runs| (series.key.as_str(), runs)));
        for (key, (signal, runs)) in host.into_iter().flatten().chain(others) {
            if !wanted.has(signal) {
                continue;
            }
            let counted = if signal.def().is_counter {
                CounterStart::From(before.and_then(|before| before.reading(entity, key, signal)))
            } else {
                CounterStart::Not
            };
            rows.clear();
            grid.roll(runs, counted, &mut rows);
            let cells = rolled.entry(entity, key, signal);
            for row in &rows {
                let _ = put(
                    row.first_minute()..row.last_minute() + 1,
                    row.roll_up(),
                    &ends,
                    entity,
                    cells,
                );
            }
        }
    }
    rolled
}
