//! The entities of a timeline, each with its readings: added row by row, found by key, read at one sample.

use units::Unit;

use super::Timeline;
use super::readings::Readings;
use crate::memory_budget::{MemoryBudget, start_of};
use crate::sample::EntityRow;
use crate::signals::{Entity, Kind, Signal};

/// One entity over time: a cgroup, a process, a zone.
#[derive(Debug, Clone)]
pub struct EntitySeries {
    /// Its kind.
    pub entity: Entity,
    /// What identifies it.
    pub key: String,
    /// Its display name; the key where it has no other name.
    pub label: String,
    /// What it belongs to, such as a process's service; empty where unknown.
    pub group: String,
    pub(super) columns: Readings,
}

impl Timeline {
    /// The longest path on Linux (PATH_MAX); a hostile capture may contain longer ones.
    const KEY_LEN_MAX: usize = 4096;
    /// The longest name or service that is kept; the kernel's names have at most 64 bytes.
    pub(super) const NAME_LEN_MAX: usize = 512;

    pub(super) fn push_entity(
        &mut self,
        entity: Entity,
        row: &EntityRow,
        index: usize,
        before: Option<usize>,
    ) {
        let Some(series) = self.series_mut(entity, &row.key, &row.label, &row.group) else {
            return;
        };
        let columns = series.columns.own();
        let (count, mut grown) = (columns.len(), 0);
        for (signal, raw) in row.row.iter() {
            grown += columns.set(signal, index, before, raw);
        }
        let added = columns.len() - count;
        self.budget.take(MemoryBudget::of_readings(added, grown));
    }

    /// The series of an entity, added if absent. Beyond the bound of memory it is counted as dropped and `None` is
    /// returned.
    pub(super) fn series_mut(
        &mut self,
        entity: Entity,
        key: &str,
        label: &str,
        group: &str,
    ) -> Option<&mut EntitySeries> {
        if !self.budget.has_room_for_entities() || key.len() > Self::KEY_LEN_MAX {
            self.left_out.entity_rows += 1;
            return None;
        }
        let label = if label.is_empty() { key } else { start_of(label, Self::NAME_LEN_MAX) };
        let group = start_of(group, Self::NAME_LEN_MAX);
        let series = self.entities.entry((entity, key.to_owned())).or_insert_with(|| {
            self.budget.take(MemoryBudget::of_entity(key, label, group));
            EntitySeries {
                entity,
                key: key.to_owned(),
                label: String::new(),
                group: String::new(),
                columns: Readings::default(),
            }
        });
        if series.label != label {
            label.clone_into(&mut series.label);
        }
        // A reader that does not see what it belongs to does not take back what another one saw.
        if !group.is_empty() && series.group != group {
            group.clone_into(&mut series.group);
        }
        Some(series)
    }

    /// Entities of one kind, by key.
    pub fn entities(&self, entity: Entity) -> impl Iterator<Item = &EntitySeries> {
        self.entities
            .range((entity, String::new())..)
            .take_while(move |((kind, _), _)| *kind == entity)
            .map(|(_, series)| series)
    }

    /// The entity with this key.
    pub fn entity(&self, entity: Entity, key: &str) -> Option<&EntitySeries> {
        self.entities.get(&(entity, key.to_owned()))
    }

    /// The cgroups below one, at any depth, by key.
    pub fn cgroups_below(&self, key: &str) -> impl Iterator<Item = &EntitySeries> {
        let below = format!("{}/", key.trim_end_matches('/'));
        self.entities
            .range((Entity::Cgroup, below.clone())..)
            .map(|(_, series)| series)
            .take_while(move |series| {
                series.entity == Entity::Cgroup && series.key.starts_with(&below)
            })
            .filter(|series| series.key != crate::cgroup::ROOT)
    }

    /// The last reading of an entity's signal; for a counter, its total so far.
    pub fn last_of<K: Kind>(&self, series: &EntitySeries, signal: Signal<K>) -> Option<K::Unit> {
        series.columns.last(signal.id()).map(K::Unit::from_raw)
    }

    /// The reading of an entity's signal at exactly this sample.
    pub fn at_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        let reading = series.columns.at(signal.id(), index, self.reads(series.entity));
        reading.map(K::Unit::from_raw)
    }

    /// The readings of an entity's signal, each with its sample, in order: one pass, where [`at_of`](Self::at_of) searches
    /// for each sample.
    pub fn readings_of<'a, K: Kind + 'a>(
        &'a self,
        series: &'a EntitySeries,
        signal: Signal<K>,
    ) -> impl Iterator<Item = (usize, K::Unit)> + 'a {
        let column = series.columns.get(signal.id());
        let readings =
            column.into_iter().flat_map(|column| column.readings(self.reads(series.entity)));
        readings.map(|(index, reading)| (index, K::Unit::from_raw(reading)))
    }

    /// The reading of an entity's signal at a sample, or else the latest one before: slab caches and PSS are read less
    /// often than other signals.
    pub fn latest_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        series.columns.latest(signal.id(), index).map(K::Unit::from_raw)
    }

    /// The least and the largest reading of an entity's signal.
    pub fn bounds_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
    ) -> Option<(K::Unit, K::Unit)> {
        let values = || Some(series.columns.get(signal.id())?.runs().iter().map(|run| run.value));
        let (least, largest) = (values()?.min()?, values()?.max()?);
        Some((K::Unit::from_raw(least), K::Unit::from_raw(largest)))
    }
}
