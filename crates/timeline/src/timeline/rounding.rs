//! Readings that were rounded when they were printed, and where the true ones may lie.

use super::Timeline;
use crate::signals::{Entity, SignalId};

/// A way in which the true readings behind rounded ones may lie: each at most the error of its rounding away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundingCase {
    /// All lower.
    Down,
    /// All higher.
    Up,
    /// The first lower and the last higher: growth that rounding hides.
    Steeper,
    /// The first higher and the last lower: growth that rounding invents.
    Flatter,
}

impl RoundingCase {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Down, Self::Up, Self::Steeper, Self::Flatter];
}

impl Timeline {
    /// Notes that readings of a host gauge are rounded: the true ones lie within `error_at_most` (in the catalogue's unit)
    /// of those given.
    pub fn note_rounding(&mut self, signal: SignalId, error_at_most: u64) {
        let known = self.rounded.entry(signal).or_default();
        *known = error_at_most.max(*known);
    }

    /// Host gauges whose readings are rounded.
    pub fn rounded_signals(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.rounded.keys().copied()
    }

    /// How far the true readings of a rounded host gauge may lie from those given; `None` where it is not rounded.
    pub fn rounding_error(&self, signal: SignalId) -> Option<u64> {
        self.rounded.get(&signal).copied()
    }

    /// The same, with the readings of a rounded gauge where the true ones may lie.
    pub fn in_rounding_case(&self, signal: SignalId, case: RoundingCase) -> Self {
        let mut nudged = self.clone();
        let error = i128::from(self.rounding_error(signal).unwrap_or(0));
        let reads = self.reads(Entity::Host);
        let Some(column) = nudged.host.own().get_mut(signal) else {
            return nudged;
        };
        let (first, last) = column.ends().unwrap_or_default();
        let middle = (last - first).max(1);
        *column = column.changed(reads, |index, value| {
            let along = error * (2 * (index - first) as i128 - middle as i128) / middle as i128;
            let by = match case {
                RoundingCase::Down => -error,
                RoundingCase::Up => error,
                RoundingCase::Steeper => along,
                RoundingCase::Flatter => -along,
            };
            let moved = i128::from(value).saturating_add(by).max(0);
            u64::try_from(moved).unwrap_or(u64::MAX)
        });
        nudged
    }
}
