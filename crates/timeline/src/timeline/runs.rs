//! A timeline's readings as runs, as a store writes and loads them.

use super::column::Run;
use super::{BreakKind, EntitySeries, Timeline, eviction};
use crate::memory_budget::MemoryBudget;
use crate::signals::{Entity, SignalId};

impl Timeline {
    /// The host's readings, signal by signal in the order of the catalogue.
    pub fn host_runs(&self) -> impl Iterator<Item = (SignalId, &[Run])> {
        self.host.iter().map(|(signal, column)| (signal, column.runs()))
    }

    /// Whether entities of a kind were read in a sample; always true for the host itself.
    pub fn was_read(&self, entity: Entity, index: usize) -> bool {
        self.reads(entity).contains(index)
    }

    /// Whether a sample is the first of a segment: its order relative to the sample before is unknown.
    pub fn starts_segment(&self, index: usize) -> bool {
        self.clock.breaks.iter().any(|gap| gap.kind == BreakKind::NewSegment && gap.before == index)
    }

    /// Whether only some entities of a kind were read in a sample: one without a reading was not gone.
    pub fn was_read_in_part(&self, entity: Entity, index: usize) -> bool {
        self.table_reads(entity).is_partial(index)
    }

    /// Records that entities of a kind were read in a sample, which is not before the last such sample.
    pub fn mark_read(&mut self, entity: Entity, index: usize) {
        self.note_read(entity, index, false);
    }

    /// As [`mark_read`](Self::mark_read), where only some of them were.
    pub fn mark_read_in_part(&mut self, entity: Entity, index: usize) {
        self.note_read(entity, index, true);
    }

    /// Appends runs of a host signal, which are in order and begin after its last run. Beyond the bound of memory they are
    /// dropped and counted.
    pub fn append_host_runs(&mut self, signal: SignalId, runs: impl AsRef<[Run]>) {
        if self.budget.is_spent() {
            self.left_out.host_signals += 1;
            return;
        }
        let host = self.host.own();
        let before = host.len();
        let filled = host.fill([(signal, runs)]);
        let columns = host.len() - before;
        self.budget.take(MemoryBudget::of_readings(columns, filled));
    }

    /// Drops all samples but the last few, and all that [`alone`](Self::alone) drops. Reuses the memory of the host's
    /// readings, for reading a recording part by part.
    pub fn keep_last(&mut self, samples: usize) {
        let first = self.len().saturating_sub(samples);
        let mut host = std::mem::take(&mut self.host);
        host.own().keep_from(first, self.reads(Entity::Host));
        let part = self.part(first, self.len()).alone();
        let entities: usize = part.entities.values().map(eviction::size).sum();
        let samples = part.len() * MemoryBudget::SAMPLE_BYTES;
        let mut budget = self.budget.emptied();
        budget.take(entities + samples + host.size());
        *self = Self { host, budget, ..part };
    }

    /// Appends runs of an entity's signals, which for each signal are in order and begin after its last run. Beyond
    /// the bound of memory they are dropped and counted.
    pub fn append_runs<R: AsRef<[Run]>>(
        &mut self,
        entity: Entity,
        key: &str,
        label: &str,
        group: &str,
        columns: impl IntoIterator<Item = (SignalId, R)>,
    ) {
        let Some(series) = self.series_mut(entity, key, label, group) else {
            return;
        };
        let series = series.columns.own();
        let before = series.len();
        let filled = series.fill(columns);
        let added = series.len() - before;
        self.budget.take(MemoryBudget::of_readings(added, filled));
        self.evict_ended_while_loading();
    }
}

impl EntitySeries {
    /// The samples of its first and its last reading; `None` without a reading.
    pub fn samples(&self) -> Option<(usize, usize)> {
        self.columns.ends()
    }

    /// The entity's readings, signal by signal in the order of the catalogue.
    pub fn runs(&self) -> impl Iterator<Item = (SignalId, &[Run])> {
        let columns = self.columns.iter();
        columns.map(|(signal, column)| (signal, column.runs()))
    }
}

#[cfg(test)]
mod tests {
    use crate::signals::{CGROUP_CURRENT, MEM_FREE};
    use crate::{Entity, Sample, Timeline};
    use units::{Bytes, Span};

    /// A host that is read in every sample and a cgroup that is read in every third.
    fn watched() -> Timeline {
        let mut timeline = Timeline::default();
        for i in 0..10u64 {
            let mut sample = Sample::at(Span::from_secs(i));
            sample.host.set(MEM_FREE, Bytes::new(i / 4));
            if i % 3 == 0 {
                let row = sample.table_mut(Entity::Cgroup).entry("/web");
                row.row.set(CGROUP_CURRENT, Bytes::new(i / 6));
            }
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    #[test]
    fn a_timeline_made_of_anothers_runs_is_the_same() {
        let from = watched();
        let mut to = Timeline::default();
        for index in 0..from.len() {
            to.push_stamp(from.stamp(index).unwrap()).unwrap();
            for entity in Entity::ALL {
                if from.was_read(entity, index) {
                    to.mark_read(entity, index);
                }
            }
        }
        for (signal, runs) in from.host_runs() {
            to.append_host_runs(signal, runs);
        }
        for series in from.entities(Entity::Cgroup) {
            to.append_runs(series.entity, &series.key, &series.label, &series.group, series.runs());
        }
        for index in 0..from.len() {
            let (a, b) = (from.sample(index).unwrap(), to.sample(index).unwrap());
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
    }

    #[test]
    fn the_last_samples_that_are_kept_are_those_of_a_part() {
        for samples in [0, 1, 4, 99] {
            let mut trimmed = watched();
            let first = trimmed.len().saturating_sub(samples);
            let part = trimmed.part(first, trimmed.len()).alone();
            trimmed.keep_last(samples);
            assert_eq!(trimmed.times(), part.times());
            for index in 0..part.len() {
                let (a, b) = (trimmed.sample(index).unwrap(), part.sample(index).unwrap());
                assert_eq!(format!("{a:?}"), format!("{b:?}"));
            }
            assert_eq!(trimmed.gauge(MEM_FREE).is_some(), samples > 0);
        }
    }

    #[test]
    fn a_level_that_is_read_rarely_holds_until_the_next_reading() {
        let timeline = watched();
        let web = timeline.entity(Entity::Cgroup, "/web").unwrap();
        let track = timeline.gauge_of(web, CGROUP_CURRENT).unwrap();
        assert_eq!(track.values()[4..=7], [Some(0.0), Some(0.0), Some(1.0), Some(1.0)]);
        assert_eq!(timeline.at_of(web, CGROUP_CURRENT, 4), None, "not a reading");
    }

    #[test]
    fn after_the_last_reading_a_level_holds_until_the_next_was_due() {
        let mut timeline = Timeline::default();
        for i in 0..12u64 {
            let mut sample = Sample::at(Span::from_secs(i));
            sample.host.set(MEM_FREE, Bytes::new(1));
            if [0, 3, 6].contains(&i) {
                let groups = sample.table_mut(Entity::Cgroup);
                let current = Bytes::new(10 + i);
                groups.entry("/web").row.set(CGROUP_CURRENT, current);
                if i < 6 {
                    groups.entry("/gone").row.set(CGROUP_CURRENT, current);
                }
            }
            timeline.push(&sample).unwrap();
        }
        let levels = |key: &str| -> Vec<Option<f64>> {
            let group = timeline.entity(Entity::Cgroup, key).unwrap();
            let track = timeline.gauge_of(group, CGROUP_CURRENT).unwrap();
            track.values().to_vec()
        };
        let (a, b, c) = (Some(10.0), Some(13.0), Some(16.0));
        let web = [a, a, a, b, b, b, c, c, c, None, None, None];
        assert_eq!(levels("/web"), web);
        let gone = levels("/gone");
        assert_eq!(gone[..4], web[..4]);
        assert_eq!(gone[4..], [None; 8], "when it ended is not known");
    }
}
