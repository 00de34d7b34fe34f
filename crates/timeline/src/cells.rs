//! The readings of one process, laid out so that a recorder of thousands of processes neither allocates nor searches.

use units::Unit;

use crate::signals::{Kind, PROC_PARENT, PROCESS_SIGNALS, Signal, SignalId};

/// Readings of a process in the order of the catalogue, with a bit for each that is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCells {
    values: [u64; PROCESS_SIGNALS],
    present: u64,
}

// Each signal needs a bit.
const _: () = assert!(PROCESS_SIGNALS <= 64);

impl Default for ProcessCells {
    fn default() -> Self {
        Self { values: [0; PROCESS_SIGNALS], present: 0 }
    }
}

impl ProcessCells {
    const FIRST: usize = PROC_PARENT.id().index();

    /// Records a reading. A signal of another entity is ignored.
    pub fn set<K: Kind>(&mut self, signal: Signal<K>, value: K::Unit) {
        self.set_raw(signal.id(), value.raw());
    }

    /// Records a reading that is already in the catalogue's unit. A signal of another entity is ignored.
    pub fn set_raw(&mut self, signal: SignalId, raw: u64) {
        let index = signal.index().wrapping_sub(Self::FIRST);
        if let Some(value) = self.values.get_mut(index) {
            *value = raw;
            self.present |= 1 << index;
        }
    }

    /// The reading of a signal, if there is one.
    pub fn get<K: Kind>(&self, signal: Signal<K>) -> Option<K::Unit> {
        self.get_raw(signal.id()).map(K::Unit::from_raw)
    }

    /// The raw reading of a signal, for code that iterates over signals.
    pub fn get_raw(&self, signal: SignalId) -> Option<u64> {
        let index = signal.index().wrapping_sub(Self::FIRST);
        let value = self.values.get(index)?;
        (self.present >> index & 1 == 1).then_some(*value)
    }

    /// Forgets all readings.
    pub fn clear(&mut self) {
        self.present = 0;
    }

    /// The values in the order of the catalogue; a value is undefined where its bit in [`present`](Self::present) is
    /// clear.
    pub fn values(&self) -> &[u64; PROCESS_SIGNALS] {
        &self.values
    }

    /// Which values were read: bit *n* for the *n*th signal of processes.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// All readings, raw.
    pub fn iter(&self) -> impl Iterator<Item = (SignalId, u64)> + '_ {
        (0..PROCESS_SIGNALS).filter(|index| self.present >> index & 1 == 1).filter_map(|index| {
            let signal = SignalId::from_index(Self::FIRST + index)?;
            Some((signal, self.values[index]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::{MEM_FREE, PROC_OOM_ADJ, PROC_RSS};
    use units::{Bytes, Count, Pages};

    #[test]
    fn zero_is_not_absent_and_signals_of_other_entities_are_ignored() {
        let mut cells = ProcessCells::default();
        cells.set(PROC_OOM_ADJ, Count::ZERO);
        cells.set(MEM_FREE, Bytes::new(9));
        assert_eq!(cells.get(PROC_OOM_ADJ), Some(Count::ZERO));
        assert_eq!(cells.get(PROC_RSS), None::<Pages>);
        assert_eq!(cells.iter().count(), 1);
        cells.clear();
        assert_eq!(cells.get(PROC_OOM_ADJ), None);
    }
}
