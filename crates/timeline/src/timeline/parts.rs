//! A timeline cut where nothing is known of time: two pastes, two kernel reports.

use super::{Break, Columns, EntitySeries, Timeline};
use crate::signals::Entity;

impl Timeline {
    /// Whether nothing lies between its samples that [`stretches`](Self::stretches) would cut.
    pub fn is_one_stretch(&self) -> bool {
        self.unrelated_steps().next().is_none()
    }

    /// The parts between which nothing is known of time, each a timeline of its own on the same clock.
    pub fn stretches(&self) -> Vec<Self> {
        let mut starts = vec![0];
        starts.extend(self.unrelated_steps());
        let ends = starts.iter().skip(1).copied().chain([self.len()]);
        let spans = starts.iter().copied().zip(ends);
        spans.map(|(first, end)| self.part(first, end)).collect()
    }

    /// The samples from `first` to before `end`, as a timeline of its own on the same clock.
    pub fn part(&self, first: usize, end: usize) -> Self {
        let from = self.breaks.partition_point(|gap| gap.before <= first);
        let breaks = self.breaks[from..].iter();
        let entities = self.entities.iter().filter_map(|(key, series)| {
            let columns = series.columns.cut(first, end, self.reads(key.0));
            (!columns.is_empty()).then(|| (key.clone(), series.with(columns)))
        });
        Self {
            stamps: self.stamps[first..end].to_vec(),
            times: self.times[first..end].to_vec(),
            host: self.host.cut(first, end, self.reads(Entity::Host)),
            entities: entities.collect(),
            reads: std::array::from_fn(|i| self.reads[i].cut(first, end)),
            entity_runs: self.entity_runs,
            entities_cut: self.entities_cut,
            breaks: breaks
                .take_while(|gap| gap.before < end)
                .map(|gap| Break {
                    before: gap.before - first,
                    kind: gap.kind,
                })
                .collect(),
            absent: self.absent.clone(),
            unknown: self.unknown.clone(),
            reports: self.reports.clone(),
            report_bytes: self.report_bytes,
            origin: self.origin + first,
            rounded: self.rounded.clone(),
            ..Self::default()
        }
    }

    /// Index of this timeline's first sample in the one that it was cut from.
    pub fn origin(&self) -> usize {
        self.origin
    }
}

impl EntitySeries {
    /// The same entity with other readings.
    fn with(&self, columns: Columns) -> Self {
        Self {
            entity: self.entity,
            key: self.key.clone(),
            label: self.label.clone(),
            group: self.group.clone(),
            columns,
        }
    }
}
