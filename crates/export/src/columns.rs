//! The columns of a table, read sample by sample.

use timeline::{Entity, EntitySeries, Run, SignalId, Timeline};

use crate::Picks;

/// Readings of one signal, read in the order of samples.
#[derive(Debug)]
pub(crate) struct ColumnCursor<'a> {
    runs: &'a [Run],
}

impl<'a> ColumnCursor<'a> {
    pub(crate) const fn new(runs: &'a [Run]) -> Self {
        Self { runs }
    }

    /// Returns the reading at a sample in which the table was read; `index` must not decrease.
    pub(crate) fn at(&mut self, index: usize) -> Option<u64> {
        while let [first, rest @ ..] = self.runs
            && first.last() < index
        {
            self.runs = rest;
        }
        let run = self.runs.first()?;
        (run.first() <= index).then_some(run.value)
    }
}

/// Returns the requested columns of the host or of one entity.
pub(crate) fn of<'a>(
    runs: impl Iterator<Item = (SignalId, &'a [Run])>,
    picks: &Picks,
) -> Vec<(SignalId, &'a [Run])> {
    runs.filter(|(signal, runs)| picks.has(*signal) && !runs.is_empty()).collect()
}

/// The requested columns of one entity.
pub(crate) struct EntityColumns<'a> {
    /// `None` for the host.
    pub(crate) entity: Option<&'a EntitySeries>,
    pub(crate) columns: Vec<(SignalId, &'a [Run])>,
}

impl EntityColumns<'_> {
    /// Returns the indices of the first and the last sample with a reading.
    pub(crate) fn span(&self) -> Option<(usize, usize)> {
        let firsts = self.columns.iter().filter_map(|(_, runs)| runs.first());
        let lasts = self.columns.iter().filter_map(|(_, runs)| runs.last());
        Some((firsts.map(|run| run.first()).min()?, lasts.map(|run| run.last()).max()?))
    }
}

/// Returns the series of a table that have any requested reading, by key.
pub(crate) fn table<'a>(
    timeline: &'a Timeline,
    entity: Entity,
    picks: &Picks,
) -> Vec<EntityColumns<'a>> {
    let mut all = Vec::new();
    if entity == Entity::Host {
        all.push(EntityColumns { entity: None, columns: of(timeline.host_runs(), picks) });
    }
    all.extend(
        timeline.entities(entity).map(|series| EntityColumns {
            entity: Some(series),
            columns: of(series.runs(), picks),
        }),
    );
    all.retain(|series| !series.columns.is_empty());
    all
}
