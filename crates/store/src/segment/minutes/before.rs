//! The end of the previous segment: the increase of a counter from its last sample to the next segment's first belongs
//! to the next segment's first minute, or the sum over all segments would lack it.

use std::collections::HashMap;

use timeline::{Entity, Run, SignalId, Timeline};

use super::breaks;
use crate::segment::host::StoredSample;

/// The last sample of a segment, and the last values of its counters.
#[derive(Debug, Default)]
pub(crate) struct Before {
    last: Option<StoredSample>,
    readings: HashMap<(Entity, String), HashMap<SignalId, u64>>,
}

impl Before {
    /// Creates an end with only the last sample.
    pub(crate) fn after(last: Option<StoredSample>) -> Self {
        Self { last, ..Self::default() }
    }

    /// Creates the end of samples in memory.
    pub(crate) fn from_timeline(timeline: &Timeline, taken: &[StoredSample]) -> Self {
        let mut before = Self::after(taken.last().copied());
        for (signal, runs) in timeline.host_runs() {
            before.note_last(Entity::Host, "", signal, runs);
        }
        for entity in Entity::ALL {
            for series in timeline.entities(entity) {
                for (signal, runs) in series.runs() {
                    before.note_last(entity, &series.key, signal, runs);
                }
            }
        }
        before
    }

    fn note_last(&mut self, entity: Entity, key: &str, signal: SignalId, runs: &[Run]) {
        if let Some(last) = runs.last() {
            self.note(entity, key, signal, last.value);
        }
    }

    /// Returns the last sample.
    pub(crate) fn last(&self) -> Option<&StoredSample> {
        self.last.as_ref()
    }

    pub(super) fn note(&mut self, entity: Entity, key: &str, signal: SignalId, value: u64) {
        if signal.def().is_counter {
            let entity_key = (entity, key.to_owned());
            let readings = self.readings.entry(entity_key).or_default();
            readings.insert(signal, value);
        }
    }

    /// Whether counters continue at a segment's first sample.
    pub(super) fn goes_on(&self, first: &StoredSample) -> bool {
        self.last.is_some_and(|last| !breaks(&last, first))
    }

    /// Returns the last value of a counter.
    pub(super) fn reading(&self, entity: Entity, key: &str, signal: SignalId) -> Option<u64> {
        let readings = self.readings.get(&(entity, key.to_owned()))?;
        readings.get(&signal).copied()
    }
}
