//! Readings that were rounded when they were printed, and the bounds of the true values.

use super::Timeline;
use crate::signals::{Entity, SignalId};

/// How the true readings differ from the rounded ones, each by at most the rounding error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundingCase {
    /// All are lower.
    Down,
    /// All are higher.
    Up,
    /// The first is lower and the last higher: growth that rounding hides.
    Steeper,
    /// The first is higher and the last lower: growth that rounding makes up.
    Flatter,
}

impl RoundingCase {
    /// All cases.
    pub const ALL: [Self; 4] = [Self::Down, Self::Up, Self::Steeper, Self::Flatter];
}

impl Timeline {
    /// Records that readings of a host gauge are rounded: the true ones differ by `error_at_most` at most (in the
    /// catalogue's unit).
    pub fn note_rounding(&mut self, signal: SignalId, error_at_most: u64) {
        let known = self.rounded.entry(signal).or_default();
        *known = error_at_most.max(*known);
    }

    /// Host gauges with rounded readings.
    pub fn rounded_signals(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.rounded.keys().copied()
    }

    /// The largest rounding error of a host gauge; `None` where it is not rounded.
    pub fn rounding_error(&self, signal: SignalId) -> Option<u64> {
        self.rounded.get(&signal).copied()
    }

    /// A copy in which the readings of a rounded gauge are moved according to the case.
    pub fn in_rounding_case(&self, signal: SignalId, case: RoundingCase) -> Self {
        let mut moved = self.clone();
        let error = i128::from(self.rounding_error(signal).unwrap_or(0));
        let reads = self.reads(Entity::Host);
        let Some(column) = moved.host.own().get_mut(signal) else {
            return moved;
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
            let true_value = i128::from(value).saturating_add(by).max(0);
            u64::try_from(true_value).unwrap_or(u64::MAX)
        });
        moved
    }
}
