//! Readings row by row become runs again.

use timeline::Run;

use super::picks::Picks;

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

    /// The runs, which are forgotten here.
    pub(crate) fn drain<'a>(&'a mut self, picks: &'a Picks) -> impl Iterator<Item = Run> + 'a {
        self.runs.drain(..).map(|(first, last, value)| Run {
            first: picks.place(first),
            last: picks.place(last),
            value,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}
