//! A table's columns, walked sample by sample.

use timeline::{Entity, EntitySeries, Run, SignalId, Timeline};

use crate::Picks;

/// Readings of one signal, asked for in the order of samples.
#[derive(Debug)]
pub(crate) struct ColumnCursor<'a> {
    runs: &'a [Run],
}

impl<'a> ColumnCursor<'a> {
    pub(crate) const fn new(runs: &'a [Run]) -> Self {
        Self { runs }
    }

    /// The reading of a sample in which the table was read; samples must not be asked for backwards.
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

/// The wanted columns of the host or of one entity.
pub(crate) fn of<'a>(
    runs: impl Iterator<Item = (SignalId, &'a [Run])>,
    picks: &Picks,
) -> Vec<(SignalId, &'a [Run])> {
    runs.filter(|(signal, runs)| picks.has(*signal) && !runs.is_empty())
        .collect()
}

/// One entity's wanted columns.
pub(crate) struct EntityColumns<'a> {
    /// `None` for the host.
    pub(crate) entity: Option<&'a EntitySeries>,
    pub(crate) columns: Vec<(SignalId, &'a [Run])>,
}

impl EntityColumns<'_> {
    /// From its first reading to its last.
    pub(crate) fn span(&self) -> Option<(usize, usize)> {
        let firsts = self.columns.iter().filter_map(|(_, runs)| runs.first());
        let lasts = self.columns.iter().filter_map(|(_, runs)| runs.last());
        Some((
            firsts.map(|run| run.first()).min()?,
            lasts.map(|run| run.last()).max()?,
        ))
    }
}

/// The series of a table that have any wanted reading, by key.
pub(crate) fn table<'a>(
    timeline: &'a Timeline,
    entity: Entity,
    picks: &Picks,
) -> Vec<EntityColumns<'a>> {
    let mut all = Vec::new();
    if entity == Entity::Host {
        all.push(EntityColumns {
            entity: None,
            columns: of(timeline.host_runs(), picks),
        });
    }
    all.extend(timeline.entities(entity).map(|series| EntityColumns {
        entity: Some(series),
        columns: of(series.runs(), picks),
    }));
    all.retain(|series| !series.columns.is_empty());
    all
}
