//! A timeline cut where nothing is known of time (two pastes, two kernel reports), or to the part that somebody asked for.

use std::sync::{Arc, OnceLock};

use super::{Break, Columns, EntitySeries, OutOfOrder, Timeline};
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
        let cut = |series: &EntitySeries| {
            let reads = self.reads(series.entity);
            series.columns.cut(first, end, reads)
        };
        let entities = self.entities.iter().filter_map(|(key, series)| {
            let columns = cut(series);
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
            left_out: self.left_out,
            merged: self.merged.cut(cut),
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
            earlier: self.earlier.clone(),
            report_bytes: self.report_bytes,
            noted: self.noted.clone(),
            thinned: self.thinned_within(first, end),
            origin: self.origin + first,
            rounded: self.rounded.clone(),
            ..Self::default()
        }
    }

    /// Appends what was watched later, by somebody else: samples, kernel reports, and which files are absent. Of reports that
    /// both know one is kept.
    ///
    /// # Errors
    /// [`OutOfOrder`] where it does not lie after what is there; the samples before that are appended.
    pub fn append(&mut self, later: &Self) -> Result<(), OutOfOrder> {
        let thinning = self.thinning;
        for known in later.earlier_reports() {
            self.report_by_time(known.stamp, known.report.clone(), known.text.clone());
        }
        for index in 0..later.len() {
            if let Some(sample) = later.sample(index) {
                self.thinning = later.resolution_at(index);
                let pushed = self.push(&sample);
                self.thinning = thinning;
                pushed?;
            }
            let reports = later
                .reports()
                .filter(|r| later.sample_of(r) == Some(index));
            for reported in reports {
                let last = self.len().saturating_sub(1);
                let (report, text) = (reported.report.clone(), reported.text.clone());
                self.report_when(last, reported.stamp, report, text);
            }
        }
        self.absent.clone_from(&later.absent);
        let unknown = later
            .unknown
            .iter()
            .map(|(key, value)| (key.clone(), *value));
        self.unknown.extend(unknown);
        Ok(())
    }

    /// A part as a source of its own: its clock begins with it, and what was reported or noted outside of it is forgotten.
    #[must_use]
    pub fn alone(mut self) -> Self {
        let first = self.times.first().copied().unwrap_or_default();
        self.times.iter_mut().for_each(|time| *time = *time - first);
        let origin = self.origin;
        let own = self.reports().cloned().map(|mut reported| {
            reported.sample -= origin;
            reported.at = reported.at - first;
            reported
        });
        let own: Vec<_> = own.collect();
        let walls = || self.stamps.iter().filter_map(|stamp| stamp.wall);
        let (from, to) = (walls().min(), walls().max());
        let is_own = |wall| from <= Some(wall) && Some(wall) <= to;
        let noted = self.noted.iter();
        // Without a wall clock nothing tells when it was.
        let noted = noted.filter(|event| event.stamp.wall.is_none_or(is_own));
        self.noted = Arc::new(noted.cloned().collect());
        self.reports = Arc::new(own);
        self.earlier = Arc::default();
        self.origin = 0;
        self.clock = OnceLock::new();
        self
    }

    /// Index of this timeline's first sample in the one that it was cut from.
    pub fn origin(&self) -> usize {
        self.origin
    }
}

impl EntitySeries {
    /// The same entity with other readings.
    pub(super) fn with(&self, columns: Columns) -> Self {
        Self {
            entity: self.entity,
            key: self.key.clone(),
            label: self.label.clone(),
            group: self.group.clone(),
            columns,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::signals::MEM_FREE;
    use crate::{KernelReport, Sample, Timeline};
    use units::{Bytes, Span};

    #[test]
    fn a_part_alone_has_its_own_clock_and_its_own_reports() {
        let mut timeline = Timeline::default();
        for i in 0..10u64 {
            let mut sample = Sample::at(Span::from_secs(i * 10));
            sample.host.set(MEM_FREE, Bytes::new(i));
            timeline.push(&sample).unwrap();
        }
        for index in [2, 5, 9] {
            timeline.report_at(index, KernelReport::default(), None);
        }
        let part = timeline.part(4, 8).alone();
        assert_eq!(part.times()[0], Span::ZERO);
        assert_eq!(part.lasts(), Span::from_secs(30));
        let at: Vec<_> = part
            .all_reports()
            .iter()
            .map(|r| (r.sample, r.at))
            .collect();
        assert_eq!(at, [(1, Span::from_secs(10))]);
        assert_eq!(part.at(MEM_FREE, 1), Some(Bytes::new(5)));
    }
}
