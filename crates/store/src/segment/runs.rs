//! Readings row by row become runs again.

use timeline::{Entity, Run, SignalId, Timeline};

use super::picks::Picks;
use super::table::Cells;

impl Cells {
    /// Runs of rows that lie beside each other in a timeline, the first of them at sample `first`: what [`Joined`] makes of
    /// them, without a list in between.
    pub(super) fn runs(&self, first: usize) -> impl Iterator<Item = Run> {
        let mut rows = (first..).zip(&self.present);
        let mut values = self.values.iter();
        let mut open: Option<Run> = None;
        std::iter::from_fn(move || {
            for (at, present) in rows.by_ref() {
                let value = (*present > 0).then(|| values.next()).flatten();
                let Some(value) = value.map(|value| value.cast_unsigned()) else {
                    if open.is_some() {
                        break;
                    }
                    continue;
                };
                match &mut open {
                    Some(run) if run.value == value => run.last = at,
                    _ => {
                        let next = Run {
                            first: at,
                            last: at,
                            value,
                        };
                        if let Some(done) = open.replace(next) {
                            return Some(done);
                        }
                    }
                }
            }
            open.take()
        })
    }
}

/// Takes readings run by run: a timeline, or what is put in order before.
pub(crate) trait Sink {
    /// Appends runs of a host signal, which are in order and begin after all that it has.
    fn host(&mut self, signal: SignalId, runs: &[Run]);

    /// Appends runs of an entity's signals, which for each signal are in order and begin after all that it has; the entity by
    /// key, label and group.
    fn entity<'a>(
        &mut self,
        entity: Entity,
        names: [&str; 3],
        columns: impl Iterator<Item = (SignalId, &'a [Run])>,
    );
}

impl Sink for Timeline {
    fn host(&mut self, signal: SignalId, runs: &[Run]) {
        self.fill_host(signal, runs);
    }

    fn entity<'a>(
        &mut self,
        entity: Entity,
        [key, label, group]: [&str; 3],
        columns: impl Iterator<Item = (SignalId, &'a [Run])>,
    ) {
        self.fill(entity, key, label, group, columns);
    }
}

/// Joins rows of one signal of one entity to runs.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    runs: Vec<(u32, u32, u64)>,
}

impl Joined {
    /// Takes the next row: ranks of kept samples, and the reading.
    pub(crate) fn push(&mut self, (first, last): (u32, u32), value: i64) {
        let value = value.cast_unsigned();
        match self.runs.last_mut() {
            Some(run) if run.2 == value && run.1 + 1 == first => run.1 = last,
            _ => self.runs.push((first, last, value)),
        }
    }

    /// Takes all runs of a signal.
    pub(crate) fn take(&mut self, runs: &[Run], picks: &Picks) {
        for run in runs {
            let ordinals = i32::try_from(run.first)
                .ok()
                .zip(i32::try_from(run.last).ok());
            if let Some(ranks) = ordinals.and_then(|(first, last)| picks.within(first, last)) {
                self.push(ranks, run.value.cast_signed());
            }
        }
    }

    /// Appends the runs to others and forgets them.
    pub(crate) fn move_to(&mut self, picks: &Picks, runs: &mut Vec<Run>) {
        let run = |(first, last, value)| Run {
            first: picks.place(first),
            last: picks.place(last),
            value,
        };
        runs.extend(self.runs.drain(..).map(run));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_rows_that_are_all_kept_are_those_that_are_joined() {
        let rows = [
            None,
            Some(1),
            Some(1),
            None,
            Some(1),
            Some(2),
            Some(2),
            None,
        ];
        for end in 0..=rows.len() {
            let mut cells = Cells::default();
            rows[..end].iter().for_each(|row| cells.push(*row));
            let picks = Picks::new((7..7 + end).map(Some));
            let mut joined = Joined::default();
            for (rank, row) in (0..).zip(&rows[..end]) {
                row.iter()
                    .for_each(|value| joined.push((rank, rank), *value));
            }
            let mut runs = Vec::new();
            joined.move_to(&picks, &mut runs);
            assert_eq!(cells.runs(7).collect::<Vec<_>>(), runs);
        }
    }
}
