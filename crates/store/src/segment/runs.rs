//! Joins readings row by row into runs.

use timeline::{Entity, Run, SignalId, Timeline};

use super::picks::SamplePicks;
use super::table::Cells;

impl Cells {
    /// Appends runs of consecutive rows of a timeline, the first at sample `first`. Equivalent to [`Joined`] if all
    /// rows are selected, without a search for each.
    pub(super) fn push_runs(&self, first: usize, runs: &mut Vec<Run>) {
        let mut values = self.values.iter();
        let mut is_open = false;
        for (at, present) in (first..).zip(&self.present) {
            let value = (*present > 0).then(|| values.next()).flatten();
            if let Some(value) = value.map(|value| value.cast_unsigned()) {
                match runs.last_mut().filter(|run| is_open && run.value == value) {
                    Some(run) => *run = run.ending_at(at),
                    None => runs.push(Run::at(at, value)),
                }
            }
            is_open = value.is_some();
        }
    }
}

/// Receives readings run by run: a timeline, or a buffer that orders them first.
pub(crate) trait RunSink {
    /// Appends runs of a host signal, which are in order and begin after all existing ones.
    fn host(&mut self, signal: SignalId, runs: &[Run]);

    /// Appends runs of an entity's signals, which for each signal are in order and begin after all existing ones. The
    /// entity is given by key, label and group.
    fn entity<'a>(
        &mut self,
        entity: Entity,
        names: [&str; 3],
        columns: impl Iterator<Item = (SignalId, &'a [Run])>,
    );
}

impl RunSink for Timeline {
    fn host(&mut self, signal: SignalId, runs: &[Run]) {
        self.append_host_runs(signal, runs);
    }

    fn entity<'a>(
        &mut self,
        entity: Entity,
        [key, label, group]: [&str; 3],
        columns: impl Iterator<Item = (SignalId, &'a [Run])>,
    ) {
        self.append_runs(entity, key, label, group, columns);
    }
}

/// Joins rows of one signal of one entity into runs, and appends these to a list.
pub(crate) struct Joined<'a> {
    picks: &'a SamplePicks,
    runs: &'a mut Vec<Run>,
    /// The index of its own first run.
    start: usize,
    /// The rank of the last selected sample so far.
    last: u32,
}

impl<'a> Joined<'a> {
    pub(crate) fn new(picks: &'a SamplePicks, runs: &'a mut Vec<Run>) -> Self {
        let start = runs.len();
        Self { picks, runs, start, last: 0 }
    }

    /// Adds the next row: ranks of selected samples, and the reading.
    pub(crate) fn push(&mut self, (first, last): (u32, u32), value: i64) {
        let value = value.cast_unsigned();
        let follows = self.last + 1 == first;
        self.last = last;
        let last = self.picks.place(last);
        match self.runs[self.start..].last_mut() {
            Some(run) if follows && run.value == value => *run = run.ending_at(last),
            _ => self.runs.push(Run::new(self.picks.place(first), last, value)),
        }
    }

    /// Adds all runs of a signal.
    pub(crate) fn take(&mut self, runs: &[Run]) {
        for run in runs {
            let ordinals = i32::try_from(run.first()).ok().zip(i32::try_from(run.last()).ok());
            let ranks = ordinals.and_then(|(first, last)| self.picks.within(first, last));
            if let Some(ranks) = ranks {
                self.push(ranks, run.value.cast_signed());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_rows_that_are_all_kept_are_those_that_are_joined() {
        let rows = [None, Some(1), Some(1), None, Some(1), Some(2), Some(2), None];
        for end in 0..=rows.len() {
            let mut cells = Cells::default();
            rows[..end].iter().for_each(|row| cells.push(*row));
            let picks = SamplePicks::new((7..7 + end).map(Some));
            let mut runs = Vec::new();
            let mut joined = Joined::new(&picks, &mut runs);
            for (rank, row) in (0..).zip(&rows[..end]) {
                row.iter().for_each(|value| joined.push((rank, rank), *value));
            }
            let mut pushed = Vec::new();
            cells.push_runs(7, &mut pushed);
            assert_eq!(pushed, runs);
        }
    }
}
