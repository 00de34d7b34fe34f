//! A timeline cut where nothing is known of time: two pastes, two kernel reports.

use super::{Break, Column, Columns, EntitySeries, Timeline};

impl Timeline {
    /// Whether nothing lies between its samples that [`stretches`](Self::stretches) would cut.
    pub fn is_one_stretch(&self) -> bool {
        self.unrelated_steps().next().is_none()
    }

    /// The parts between which nothing is known of time, each a timeline of its own on the same clock. Cost: each reading
    /// is copied once.
    pub fn stretches(&self) -> Vec<Self> {
        let mut starts = vec![0];
        starts.extend(self.unrelated_steps());
        let ends = starts.iter().skip(1).copied().chain([self.len()]);
        let spans = starts.iter().copied().zip(ends);
        let mut parts: Vec<Self> = spans.map(|(first, end)| self.part(first, end)).collect();
        let mut copy = |column: &Column, to: &mut dyn FnMut(&mut Self, usize, u64)| {
            for (index, value) in column.readings() {
                let at = starts.partition_point(|start| *start <= index) - 1;
                to(&mut parts[at], index - starts[at], value);
            }
        };
        for (signal, column) in &self.host.0 {
            copy(column, &mut |part, index, value| {
                part.host.0.entry(*signal).or_default().set(index, value);
            });
        }
        for (key, series) in &self.entities {
            for (signal, column) in &series.columns.0 {
                copy(column, &mut |part, index, value| {
                    let series = part
                        .entities
                        .entry(key.clone())
                        .or_insert_with(|| series.bare());
                    series
                        .columns
                        .0
                        .entry(*signal)
                        .or_default()
                        .set(index, value);
                });
            }
        }
        parts
    }

    /// The samples from `first` to before `end`, without readings.
    fn part(&self, first: usize, end: usize) -> Self {
        let from = self.breaks.partition_point(|gap| gap.before <= first);
        let breaks = self.breaks[from..].iter();
        Self {
            stamps: self.stamps[first..end].to_vec(),
            times: self.times[first..end].to_vec(),
            entity_cells: self.entity_cells,
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
    /// The same entity, without readings.
    fn bare(&self) -> Self {
        Self {
            key: self.key.clone(),
            label: self.label.clone(),
            group: self.group.clone(),
            columns: Columns::default(),
        }
    }
}
