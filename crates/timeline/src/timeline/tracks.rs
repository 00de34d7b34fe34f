//! Tracks of a timeline: levels and rates of one signal, sample by sample.

use units::{PerSecond, Quantity, Ratio, Span, Unit};

use super::readings::Readings;
use super::{EntitySeries, Timeline};
use crate::condition::Condition;
use crate::signals::{Counter, Entity, Gauge, Signal, SignalId};
use crate::track::Track;

impl Timeline {
    /// The levels of a host gauge; `None` where the source does not have it.
    pub fn gauge<U: Unit>(&self, signal: Signal<Gauge<U>>) -> Option<Track<U>> {
        self.gauge_in(&self.host, signal.id(), |raw| U::from_raw(raw).as_f64())
    }

    /// The rates of a host counter; `None` where the source does not have it.
    pub fn rate<U: Unit>(&self, signal: Signal<Counter<U>>) -> Option<Track<PerSecond<U>>> {
        self.rate_in(&self.host, signal.id())
    }

    /// The levels of an entity's gauge; `None` where it does not have it. A level holds until the next reading where
    /// the entity has one at each read of its whole table, and after the last reading for the usual interval between
    /// reads.
    pub fn gauge_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Gauge<U>>,
    ) -> Option<Track<U>> {
        self.gauge_in(&series.columns, signal.id(), |raw| U::from_raw(raw).as_f64())
    }

    /// The rates of an entity's counter; `None` where it does not have it.
    pub fn rate_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Counter<U>>,
    ) -> Option<Track<PerSecond<U>>> {
        self.rate_in(&series.columns, signal.id())
    }

    /// The levels of a gauge of the host or of an entity as plain numbers in the catalogue's unit; `None` where the
    /// source does not have it.
    pub fn levels(&self, series: Option<&EntitySeries>, signal: SignalId) -> Option<Track<Ratio>> {
        #[allow(clippy::cast_precision_loss)] // as all quantities do
        self.gauge_in(self.columns_of(series), signal, |raw| raw as f64)
    }

    /// The increase per second of a counter of the host or of an entity, as plain numbers in the catalogue's unit;
    /// `None` where the source does not have it.
    pub fn increases(
        &self,
        series: Option<&EntitySeries>,
        signal: SignalId,
    ) -> Option<Track<Ratio>> {
        self.rate_in(self.columns_of(series), signal)
    }

    fn columns_of<'a>(&'a self, series: Option<&'a EntitySeries>) -> &'a Readings {
        series.map_or(&self.host, |series| &series.columns)
    }

    fn gauge_in<Q: Quantity>(
        &self,
        columns: &Readings,
        signal: SignalId,
        value: impl Fn(u64) -> f64,
    ) -> Option<Track<Q>> {
        let column = columns.get(signal)?;
        let entity = signal.def().entity;
        let mut values = vec![None; self.len()];
        let breaks = self.clock.rate_breaks();
        let (last, due) = self.last_until(entity, &breaks);
        let level = |raw| Some(value(raw));
        for part in column.unbroken(self.table_reads(entity), &breaks) {
            // Between two readings the earlier one holds.
            if let Some((at, earlier)) = part.before.filter(|(at, _)| at + 1 < part.first) {
                values[at + 1..part.first].fill(level(earlier));
            }
            let end = if part.last >= last { due.max(part.last + 1) } else { part.last + 1 };
            values[part.first..end].fill(level(part.value));
        }
        Some(Track::new(self.clock.computed().clone(), values))
    }

    /// The last sample in which all entities of a kind were read, and the sample until which that reading holds: the
    /// one at which the next read was due, or the next break.
    fn last_until(&self, entity: Entity, breaks: &[usize]) -> (usize, usize) {
        let reads = &self.table_reads(entity).whole;
        let last = reads.last().unwrap_or(0);
        let usual = reads.before(last).map_or(1, |before| last - before);
        let due = (last + usual).min(self.len());
        let broken = breaks.iter().find(|at| **at > last);
        (last, broken.map_or(due, |at| due.min(*at)).max(last + 1))
    }

    fn rate_in<Q: Quantity>(&self, columns: &Readings, signal: SignalId) -> Option<Track<Q>> {
        let column = columns.get(signal)?;
        let entity = signal.def().entity;
        let mut values = vec![None; self.len()];
        #[allow(clippy::cast_precision_loss)] // as all quantities do
        let rate = |increase: u64, elapsed: Span| {
            let seconds = elapsed.as_secs_f64();
            (seconds > 0.0).then(|| increase as f64 / seconds)
        };
        for part in column.unbroken(self.table_reads(entity), &self.clock.rate_breaks()) {
            if let Some((at, earlier)) = part.before
                // A counter that fell was reset, so its increase is unknown.
                && let Some(increase) = part.value.checked_sub(earlier)
            {
                let elapsed = self.clock.times[part.first] - self.clock.times[at];
                values[at + 1..=part.first].fill(rate(increase, elapsed));
            }
            let still = part.first + 1..=part.last;
            if !still.is_empty() {
                values[still].fill(Some(0.0));
            }
        }
        Some(Track::new(self.clock.computed().clone(), values))
    }

    /// A track of values that were computed elsewhere, one for each sample.
    ///
    /// # Panics
    /// If there is not one value for each sample: a defect of the caller.
    pub fn track<Q: Quantity>(&self, values: Vec<Option<f64>>) -> Track<Q> {
        assert_eq!(values.len(), self.len(), "one value for each sample");
        Track::new(self.clock.computed().clone(), values)
    }

    /// A track with the same value at every sample.
    pub fn constant<Q: Quantity>(&self, value: Q) -> Track<Q> {
        self.track(vec![Some(value.as_f64()); self.len()])
    }

    /// A condition that holds at every sample.
    pub fn always(&self) -> Condition {
        Condition { clock: self.clock.computed().clone(), holds: vec![Some(true); self.len()] }
    }
}
