//! Samples in order, as columns. Knows gaps, reboots, suspends, clock steps and counter resets, and computes rates
//! only between samples that are real neighbours.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use units::{PerSecond, Quantity, Ratio, Span, Unit, WallClock};

use crate::clock::Clock;
use crate::event::Event;
use crate::sample::{Sample, Stamp};
use crate::signals::{Counter, Entity, Gauge, Kind, Signal, SignalId};
use crate::stretch::{Condition, Stretch};
use crate::track::Track;

mod column;
mod downsampled;
mod evicted_sums;
mod eviction;
mod median_step;
mod parts;
mod readings;
mod reported;
mod rounding;
mod runs;
mod step;
mod wall;

pub use column::Run;
pub use downsampled::Downsampled;
pub use eviction::Evicted;
pub use reported::{EarlierReport, Reported};
pub use rounding::RoundingCase;
pub use step::{CLOCK_TOLERANCE, Step, step};
pub use wall::ClockStep;

use column::Reads;
use evicted_sums::EvictedSums;
use median_step::MedianStep;
use readings::Readings;

/// Why a timeline cannot take a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrder;

/// Something between two samples that breaks the chain of rates, or the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// Index of the sample after it.
    pub before: usize,
    /// What happened.
    pub kind: BreakKind,
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    /// The machine was started anew: counters began at zero.
    Reboot,
    /// The machine slept for this long.
    Suspend(Span),
    /// Nobody sampled for this long.
    Gap(Span),
    /// The wall clock was moved by this much; rates are not affected.
    ClockForward(Span),
    /// The wall clock was moved back by this much; rates are not affected.
    ClockBack(Span),
    /// How the samples before and after lie in time is not known, or means nothing: two pastes, two kernel reports.
    NewSegment,
}

impl BreakKind {
    /// Whether nothing is known of the time before the sample, so that it has no rates; a clock that was set hides nothing.
    pub const fn breaks_rates(self) -> bool {
        match self {
            Self::Reboot | Self::Suspend(_) | Self::Gap(_) | Self::NewSegment => true,
            Self::ClockForward(_) | Self::ClockBack(_) => false,
        }
    }
}

/// Why a kernel file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It does not exist: this kernel, or this configuration, does not have it.
    NotFound,
    /// It exists, but not for this user.
    PermissionDenied,
    /// Another error, in words.
    Failed(String),
}

/// One entity over time: a cgroup, a process, a zone.
#[derive(Debug, Clone)]
pub struct EntitySeries {
    /// What kind it is.
    pub entity: Entity,
    /// What identifies it.
    pub key: String,
    /// What people call it; the key where it has no other name.
    pub label: String,
    /// What it belongs to: a process's service; empty where not known.
    pub group: String,
    columns: Readings,
}

/// Samples in order.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    stamps: Vec<Stamp>,
    times: Vec<Span>,
    clock: OnceLock<Clock>,
    host: Readings,
    entities: BTreeMap<(Entity, String), EntitySeries>,
    /// In which samples each table was read, in the order of [`Entity::ALL`].
    reads: [Reads; Entity::ALL.len()],
    /// Runs of all entities' columns.
    entity_runs: usize,
    dropped_entity_rows: usize,
    /// In the order of [`Entity::ALL`].
    evicted: [Evicted; Entity::ALL.len()],
    /// What those held.
    evicted_sums: EvictedSums,
    /// With more entities than this, room is made.
    evict_above: usize,
    /// For each kind the last sample up to which all readings are there.
    complete: [Option<usize>; Entity::ALL.len()],
    breaks: Vec<Break>,
    median_step: MedianStep,
    /// Where samples were left out, in order.
    downsampled: Vec<Downsampled>,
    /// How samples are thinned that are appended now.
    resolution: Option<Span>,
    /// Kernel files that the source could not give, and why.
    pub absent: BTreeMap<&'static str, Absence>,
    unknown: BTreeMap<(&'static str, String), u64>,
    reports: Arc<Vec<Reported>>,
    /// Those of before the first sample, in order.
    earlier: Arc<Vec<EarlierReport>>,
    /// Bytes of the reports' texts.
    report_bytes: usize,
    /// What a recorder noted, in order; of the whole source.
    recorder_events: Arc<Vec<Event>>,
    /// Index of the first sample in the timeline that this one was cut from.
    origin: usize,
    /// Whether it may share columns with that one.
    is_sharing: bool,
    rounded: BTreeMap<SignalId, u64>,
}

impl Timeline {
    /// Readings of entities kept at most (16 bytes each), of which those that do not change count once. Beyond it, rows
    /// are dropped whole.
    const MOST_ENTITY_RUNS: usize = 5_000_000;
    /// The longest path that Linux takes (PATH_MAX); a hostile capture may name longer ones.
    const LONGEST_KEY: usize = 4096;

    /// Appends a sample.
    ///
    /// # Errors
    /// [`OutOfOrder`] where the sample is not later than the last one and the machine was not restarted in between.
    pub fn push(&mut self, sample: &Sample) -> Result<(), OutOfOrder> {
        self.push_stamp(sample.stamp)?;
        self.take(sample);
        Ok(())
    }

    /// Appends a sample without readings; [`append_host_runs`](Self::append_host_runs) and [`append_runs`](Self::append_runs)
    /// add them.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_stamp(&mut self, stamp: Stamp) -> Result<(), OutOfOrder> {
        let time = match self.stamps.last() {
            None => Span::ZERO,
            Some(last) => self.last_time().plus(self.advance(*last, stamp)?),
        };
        self.place(stamp, time);
        Ok(())
    }

    /// Appends a sample of which nobody knows when it was taken, or that has nothing to do with the one before: neither
    /// rates nor stretches reach across.
    pub fn push_new_segment(&mut self, sample: &Sample) {
        self.push_stamp_new_segment(sample.stamp);
        self.take(sample);
    }

    /// As [`push_stamp`](Self::push_stamp), in a new segment.
    pub fn push_stamp_new_segment(&mut self, stamp: Stamp) {
        let time = match self.stamps.last() {
            None => Span::ZERO,
            Some(last) => {
                let before = self.stamps.len();
                let kind = BreakKind::NewSegment;
                self.breaks.push(Break { before, kind });
                let later = |(a, b): (WallClock, WallClock)| {
                    u64::try_from(b.unix_nanos().checked_sub(a.unix_nanos())?).ok()
                };
                let step = last.wall.zip(stamp.wall).and_then(later);
                // The clock must go on, if only so that samples can be told apart.
                let step = step.filter(|nanos| *nanos > 0).map(Span::from_nanos);
                self.last_time().plus(step.unwrap_or(Span::from_secs(1)))
            }
        };
        self.place(stamp, time);
    }

    fn last_time(&self) -> Span {
        self.times.last().copied().unwrap_or_default()
    }

    fn place(&mut self, stamp: Stamp, time: Span) {
        self.note_read(Entity::Host, self.stamps.len());
        self.stamps.push(stamp);
        self.times.push(time);
        self.note_resolution();
        self.clock = OnceLock::new();
    }

    /// Takes the readings of the sample that was placed last.
    fn take(&mut self, sample: &Sample) {
        let index = self.len() - 1;
        let host = self.host.own();
        for (signal, raw) in sample.host.iter() {
            host.set(signal, index, index.checked_sub(1), raw);
        }
        for entity in Entity::ALL {
            let rows = sample.table(entity).rows();
            if !rows.is_empty() {
                self.note_read(entity, index);
            }
            let before = self.reads(entity).before(index);
            for row in rows {
                self.push_entity(entity, row, index, before);
            }
        }
        self.evict_ended();
        for field in sample.unknown.iter() {
            if let Some(value) = self.unknown.get_mut(&(field.file, field.field.clone())) {
                *value = field.value;
            } else if self.unknown.len() < 4096 {
                self.unknown
                    .insert((field.file, field.field.clone()), field.value);
            }
        }
    }

    /// Sets a reading of the host at a sample that is there already: what a kernel report says of its moment counts more
    /// than what was read a little later.
    pub fn amend(&mut self, index: usize, signal: SignalId, raw: u64) {
        if index < self.len() {
            self.host.own().amend(signal, index, raw);
        }
    }

    /// Keeps an event that a recorder noted; once, where a recorder that was killed told of it before.
    pub fn add_recorder_event(&mut self, event: Event) {
        if !event.is_repeated_in(&self.recorder_events) {
            Arc::make_mut(&mut self.recorder_events).push(event);
        }
    }

    /// Puts other events in the place of those noted so far.
    pub fn set_recorder_events(&mut self, events: Vec<Event>) {
        self.recorder_events = Arc::new(events);
    }

    /// What a recorder noted, of the whole source.
    pub fn recorder_events(&self) -> &[Event] {
        &self.recorder_events
    }

    /// The sample with this index, as it was appended but for fields that the catalogue does not know.
    pub fn sample(&self, index: usize) -> Option<Sample> {
        let mut sample = Sample::default();
        sample.stamp = self.stamp(index)?;
        for (signal, raw) in self.host.at(index, self.reads(Entity::Host)) {
            sample.host.set_raw(signal, raw);
        }
        for ((entity, key), series) in &self.entities {
            let mut readings = series.columns.at(index, self.reads(*entity)).peekable();
            if readings.peek().is_none() {
                continue;
            }
            let row = sample.table_mut(*entity).add();
            row.key.clone_from(key);
            row.label.clone_from(&series.label);
            row.group.clone_from(&series.group);
            for (signal, raw) in readings {
                row.row.set_raw(signal, raw);
            }
        }
        Some(sample)
    }

    /// How far the timeline's clock moves from one sample to the next; notes breaks.
    fn advance(&mut self, last: Stamp, next: Stamp) -> Result<Span, OutOfOrder> {
        let step = step::step(last, next, || self.median_step())?;
        let before = self.stamps.len();
        let breaks = step.breaks().map(|kind| Break { before, kind });
        self.breaks.extend(breaks);
        Ok(step.elapsed)
    }

    fn push_entity(
        &mut self,
        entity: Entity,
        row: &crate::sample::EntityRow,
        index: usize,
        before: Option<usize>,
    ) {
        let Some(series) = self.series_mut(entity, &row.key, &row.label, &row.group) else {
            return;
        };
        let columns = series.columns.own();
        let mut grown = 0;
        for (signal, raw) in row.row.iter() {
            grown += columns.set(signal, index, before, raw);
        }
        self.entity_runs += grown;
    }

    /// An entity's series, made if it is not there yet; `None`, and counted, where there is no room for more.
    fn series_mut(
        &mut self,
        entity: Entity,
        key: &str,
        label: &str,
        group: &str,
    ) -> Option<&mut EntitySeries> {
        if self.entity_runs >= Self::MOST_ENTITY_RUNS || key.len() > Self::LONGEST_KEY {
            self.dropped_entity_rows += 1;
            return None;
        }
        let series = self
            .entities
            .entry((entity, key.to_owned()))
            .or_insert_with(|| EntitySeries {
                entity,
                key: key.to_owned(),
                label: String::new(),
                group: String::new(),
                columns: Readings::default(),
            });
        let label = if label.is_empty() { key } else { label };
        if series.label != label {
            label.clone_into(&mut series.label);
        }
        if series.group != group {
            group.clone_into(&mut series.group);
        }
        Some(series)
    }

    fn reads(&self, entity: Entity) -> &Reads {
        &self.reads[entity as usize]
    }

    fn note_read(&mut self, entity: Entity, index: usize) {
        self.take_over();
        self.reads[entity as usize].note(index);
    }

    /// The sample at or before `index` in which entities of a kind were read last.
    pub fn read_before(&self, entity: Entity, index: usize) -> Option<usize> {
        self.reads(entity).before(index + 1)
    }

    /// The sample at or after `index` in which entities of a kind were read next.
    pub fn read_after(&self, entity: Entity, index: usize) -> Option<usize> {
        self.reads(entity).at_or_after(index)
    }

    /// The usual distance in time between samples in which entities of a kind were read (median); `None` with fewer than
    /// two. Where samples were left out, the distance of those that stand for the others.
    pub fn interval_of(&self, entity: Entity) -> Option<Span> {
        let reads: Vec<usize> = self.reads(entity).iter().collect();
        self.median_interval(reads.windows(2).map(|at| (at[0], at[1])))
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// When the samples were taken, counted from the first.
    pub fn times(&self) -> &[Span] {
        &self.times
    }

    /// The clocks at a sample.
    pub fn stamp(&self, index: usize) -> Option<Stamp> {
        self.stamps.get(index).copied()
    }

    /// From the first sample to the last, without the time between unrelated ones, which nobody knows.
    pub fn duration(&self) -> Span {
        let first = self.times.first().copied().unwrap_or_default();
        self.segment_starts()
            .fold(self.last_time() - first, |lasts, at| {
                lasts - (self.times[at] - self.times[at - 1])
            })
    }

    /// How much of that was recorded: without gaps, sleep, reboots and the time between unrelated samples.
    pub fn recorded(&self) -> Span {
        let last = self.len().saturating_sub(1);
        self.clock().recorded(last)
    }

    fn segment_starts(&self) -> impl Iterator<Item = usize> + '_ {
        self.breaks
            .iter()
            .filter(|gap| gap.kind == BreakKind::NewSegment)
            .map(|gap| gap.before)
    }

    /// The usual distance between samples (median); `None` with fewer than two. Where samples were left out, the distance of
    /// those that stand for the others: nowhere was it seen more rarely.
    pub fn interval(&self) -> Option<Span> {
        let unrelated = self.broken(|kind| kind == BreakKind::NewSegment);
        let related = (1..self.len()).filter(|at| !unrelated[*at]);
        self.median_interval(related.map(|at| (at - 1, at)))
    }

    /// The median of steps from one sample to another: of those to thinned samples where there are any.
    fn median_interval(&self, steps: impl Iterator<Item = (usize, usize)> + Clone) -> Option<Span> {
        let elapsed = |(from, to): (usize, usize)| self.times[to] - self.times[from];
        let thinned = steps
            .clone()
            .filter(|(_, to)| self.resolution_at(*to).is_some());
        median(thinned.map(elapsed)).or_else(|| median(steps.map(elapsed)))
    }

    /// All of it as a stretch; `None` without samples.
    pub fn whole(&self) -> Option<Stretch> {
        self.stretch(0, self.len().checked_sub(1)?)
    }

    /// The stretch between two samples; `None` where they are not in order or not there.
    pub fn stretch(&self, first: usize, last: usize) -> Option<Stretch> {
        (first <= last && last < self.len()).then(|| self.clock().stretch(first, last))
    }

    /// Reboots, suspends, gaps and clock steps, in order.
    pub fn breaks(&self) -> &[Break] {
        &self.breaks
    }

    /// Rows of entities that were dropped to bound memory; the host's own readings never are.
    pub fn dropped_entity_rows(&self) -> usize {
        self.dropped_entity_rows
    }

    /// Notes a field that the catalogue does not know, with its last value; beyond 4,096 it is dropped.
    pub fn note_unknown(&mut self, file: &'static str, field: String, value: u64) {
        let key = (file, field);
        if self.unknown.len() < 4096 || self.unknown.contains_key(&key) {
            self.unknown.insert(key, value);
        }
    }

    /// Fields that the catalogue does not know: file, name, last value.
    pub fn unknown(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        self.unknown
            .iter()
            .map(|((file, field), value)| (*file, field.as_str(), *value))
    }

    /// The levels of a host gauge; `None` where the source never had it.
    pub fn gauge<U: Unit>(&self, signal: Signal<Gauge<U>>) -> Option<Track<U>> {
        self.gauge_in(&self.host, signal.id(), |raw| U::from_raw(raw).as_f64())
    }

    /// The rates of a host counter; `None` where the source never had it.
    pub fn rate<U: Unit>(&self, signal: Signal<Counter<U>>) -> Option<Track<PerSecond<U>>> {
        self.rate_in(&self.host, signal.id())
    }

    /// The last reading of a host signal: for a counter, its total since boot.
    pub fn last<K: Kind>(&self, signal: Signal<K>) -> Option<K::Unit> {
        let column = self.host.get(signal.id())?;
        column.last().map(K::Unit::from_raw)
    }

    /// The reading of a host signal at a sample, exactly.
    pub fn at<K: Kind>(&self, signal: Signal<K>, index: usize) -> Option<K::Unit> {
        let column = self.host.get(signal.id())?;
        let reading = column.get(index, self.reads(Entity::Host));
        reading.map(K::Unit::from_raw)
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

    /// The levels of an entity's gauge; `None` where it never had it. A level speaks until the next reading where the entity
    /// has one whenever such entities are read, and after the last one as long as readings are usually apart.
    pub fn gauge_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Gauge<U>>,
    ) -> Option<Track<U>> {
        self.gauge_in(&series.columns, signal.id(), |raw| {
            U::from_raw(raw).as_f64()
        })
    }

    /// The rates of an entity's counter; `None` where it never had it.
    pub fn rate_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Counter<U>>,
    ) -> Option<Track<PerSecond<U>>> {
        self.rate_in(&series.columns, signal.id())
    }

    /// The last reading of an entity's signal; for a counter, its total so far.
    pub fn last_of<K: Kind>(&self, series: &EntitySeries, signal: Signal<K>) -> Option<K::Unit> {
        let column = series.columns.get(signal.id())?;
        column.last().map(K::Unit::from_raw)
    }

    /// The reading of an entity's signal at a sample, exactly.
    pub fn at_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        let column = series.columns.get(signal.id())?;
        let reading = column.get(index, self.reads(series.entity));
        reading.map(K::Unit::from_raw)
    }

    /// The reading of an entity's signal at a sample, or else the nearest earlier one: slab caches and PSS are read more
    /// rarely than the rest.
    pub fn latest_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        let column = series.columns.get(signal.id())?;
        column.latest(index).map(K::Unit::from_raw)
    }

    /// The levels of a gauge of the host or of an entity as plain numbers in the catalogue's unit; `None` where the source
    /// never had it.
    pub fn levels(&self, of: Option<&EntitySeries>, signal: SignalId) -> Option<Track<Ratio>> {
        #[allow(clippy::cast_precision_loss)] // as all quantities do
        self.gauge_in(self.columns_of(of), signal, |raw| raw as f64)
    }

    /// What a counter of the host or of an entity rises by in a second, as plain numbers in the catalogue's unit; `None`
    /// where the source never had it.
    pub fn increases(&self, of: Option<&EntitySeries>, signal: SignalId) -> Option<Track<Ratio>> {
        self.rate_in(self.columns_of(of), signal)
    }

    fn columns_of<'a>(&'a self, of: Option<&'a EntitySeries>) -> &'a Readings {
        of.map_or(&self.host, |series| &series.columns)
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
        let breaks = self.rate_breaks();
        let (last, due) = self.last_until(entity, &breaks);
        let level = |raw| Some(value(raw));
        for part in column.unbroken(self.reads(entity), &breaks) {
            // What is known between two readings is the earlier one.
            if let Some((at, earlier)) = part.before {
                values[at + 1..part.first].fill(level(earlier));
            }
            let end = if part.last == last {
                due
            } else {
                part.last + 1
            };
            values[part.first..end].fill(level(part.value));
        }
        Some(Track::new(self.clock().clone(), values))
    }

    /// The sample in which entities of a kind were read last, and the sample until before which that speaks: the one in
    /// which the next reading would have been due, or before which the chain broke.
    fn last_until(&self, entity: Entity, breaks: &[usize]) -> (usize, usize) {
        let reads = self.reads(entity);
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
        for part in column.unbroken(self.reads(entity), &self.rate_breaks()) {
            if let Some((at, earlier)) = part.before
                // A counter that fell was reset; what it counted since is not known.
                && let Some(increase) = part.value.checked_sub(earlier)
            {
                let elapsed = self.times[part.first] - self.times[at];
                values[at + 1..=part.first].fill(rate(increase, elapsed));
            }
            let still = part.first + 1..=part.last;
            if !still.is_empty() {
                values[still].fill(Some(0.0));
            }
        }
        Some(Track::new(self.clock().clone(), values))
    }

    /// Values computed elsewhere, one for each sample.
    ///
    /// # Panics
    /// Where they are not as many as samples: a defect of the caller.
    pub fn track<Q: Quantity>(&self, values: Vec<Option<f64>>) -> Track<Q> {
        assert_eq!(values.len(), self.len(), "one value for each sample");
        Track::new(self.clock().clone(), values)
    }

    /// One value at every sample.
    pub fn constant<Q: Quantity>(&self, value: Q) -> Track<Q> {
        self.track(vec![Some(value.as_f64()); self.len()])
    }

    /// What holds at every sample.
    pub fn always(&self) -> Condition {
        Condition {
            clock: self.clock().clone(),
            holds: vec![Some(true); self.len()],
        }
    }

    /// The samples before which nothing can be said of the time, in order.
    fn rate_breaks(&self) -> Vec<usize> {
        let breaks = self.breaks.iter().filter(|gap| gap.kind.breaks_rates());
        breaks.map(|gap| gap.before).collect()
    }

    /// For each sample, whether a break of such a kind lies before it.
    fn broken(&self, by: impl Fn(BreakKind) -> bool) -> Vec<bool> {
        let mut broken = vec![false; self.len()];
        for gap in self.breaks.iter().filter(|gap| by(gap.kind)) {
            broken[gap.before] = true;
        }
        broken
    }

    fn clock(&self) -> &Clock {
        self.clock
            .get_or_init(|| Clock::new(&self.times, &self.rate_breaks()))
    }
}

/// The one in the middle, of two the longer one; `None` of none.
fn median(steps: impl Iterator<Item = Span>) -> Option<Span> {
    let mut steps: Vec<Span> = steps.collect();
    let middle = steps.len() / 2;
    (!steps.is_empty()).then(|| *steps.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::{CGROUP_CURRENT, MEM_FREE, PSWPIN};
    use units::{Bytes, Pages};

    /// Samples of `vm.pswpin` at the given seconds of the boot clock.
    fn counted(samples: &[(u64, u64)]) -> Timeline {
        let mut timeline = Timeline::default();
        for (seconds, pages) in samples {
            let mut sample = Sample::at(Span::from_secs(*seconds));
            sample.host.set(PSWPIN, Pages::new(*pages));
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    fn rates(timeline: &Timeline) -> Vec<Option<f64>> {
        timeline.rate(PSWPIN).unwrap().values().to_vec()
    }

    #[test]
    fn rates_divide_by_the_real_time_between_samples() {
        assert_eq!(
            rates(&counted(&[(10, 0), (11, 100), (15, 500)])),
            [None, Some(100.0), Some(100.0)]
        );
    }

    #[test]
    fn a_counter_that_falls_gives_no_rate() {
        assert_eq!(
            rates(&counted(&[(0, 500), (1, 3), (2, 5)])),
            [None, None, Some(2.0)]
        );
    }

    #[test]
    fn a_late_sample_is_a_neighbour_and_a_gap_is_not() {
        let late = counted(&[(0, 0), (1, 1), (2, 2), (6, 6)]);
        assert!(late.breaks().is_empty());
        let gap = counted(&[(0, 0), (1, 1), (2, 2), (602, 602)]);
        assert_eq!(
            gap.breaks(),
            [Break {
                before: 3,
                kind: BreakKind::Gap(Span::from_mins(10))
            }]
        );
        assert_eq!(rates(&gap)[3], None);
    }

    fn stamped(stamps: &[(u64, Option<u64>, Option<i64>)]) -> Result<Timeline, OutOfOrder> {
        let mut timeline = Timeline::default();
        for (i, (boot, awake, wall)) in stamps.iter().enumerate() {
            let mut sample = Sample::at(Span::from_secs(*boot));
            sample.stamp.awake = awake.map(Span::from_secs);
            sample.stamp.wall = wall.map(|s| WallClock::from_unix_nanos(s * 1_000_000_000));
            sample.host.set(PSWPIN, Pages::new(i as u64));
            timeline.push(&sample)?;
        }
        Ok(timeline)
    }

    #[test]
    fn a_reboot_is_a_smaller_boot_clock_at_a_later_time() {
        let timeline = stamped(&[
            (1000, None, Some(5000)),
            (1001, None, Some(5001)),
            (3, None, Some(5061)),
        ])
        .unwrap();
        assert_eq!(timeline.breaks()[0].kind, BreakKind::Reboot);
        assert_eq!(timeline.duration(), Span::from_secs(61));
        assert_eq!(timeline.recorded(), Span::from_secs(1));
        assert_eq!(rates(&timeline)[2], None);
    }

    #[test]
    fn a_sample_from_the_past_is_refused() {
        assert_eq!(
            stamped(&[(5, None, None), (4, None, None)]).unwrap_err(),
            OutOfOrder
        );
        assert_eq!(
            stamped(&[(5, None, Some(50)), (4, None, Some(49))]).unwrap_err(),
            OutOfOrder
        );
    }

    #[test]
    fn suspend_breaks_rates_and_a_clock_step_does_not() {
        let slept = stamped(&[(0, Some(0), None), (1, Some(1), None), (101, Some(2), None)]);
        let slept = slept.unwrap();
        assert!(matches!(slept.breaks()[0].kind, BreakKind::Suspend(_)));
        assert_eq!(rates(&slept)[2], None);
        let stepped = stamped(&[(0, None, Some(0)), (1, None, Some(3601))]).unwrap();
        assert_eq!(
            stepped.breaks()[0].kind,
            BreakKind::ClockForward(Span::from_secs(3600))
        );
        assert_eq!(rates(&stepped)[1], Some(1.0));
        let back = stamped(&[(0, None, Some(5000)), (1, None, Some(0))]).unwrap();
        assert!(matches!(back.breaks()[0].kind, BreakKind::ClockBack(_)));
        assert_eq!(back.duration(), Span::from_secs(1));
    }

    #[test]
    fn an_entity_that_comes_and_goes_is_absent_in_between() {
        let mut timeline = Timeline::default();
        for i in 0..4u64 {
            let mut sample = Sample::at(Span::from_secs(i));
            sample.host.set(MEM_FREE, Bytes::new(i));
            let other = sample.table_mut(Entity::Cgroup).entry("/db");
            other.row.set(CGROUP_CURRENT, Bytes::new(5));
            if i != 1 {
                let row = sample.table_mut(Entity::Cgroup).entry("/web");
                row.row.set(CGROUP_CURRENT, Bytes::new(10 + i));
            }
            timeline.push(&sample).unwrap();
        }
        let web = timeline.entity(Entity::Cgroup, "/web").unwrap();
        assert_eq!(
            timeline.gauge_of(web, CGROUP_CURRENT).unwrap().values(),
            [Some(10.0), None, Some(12.0), Some(13.0)]
        );
        assert_eq!(timeline.entities(Entity::Cgroup).count(), 2);
        assert_eq!(timeline.entities(Entity::Process).count(), 0);
    }

    #[test]
    fn a_reading_is_asked_for_exactly_or_as_the_latest_so_far() {
        let mut timeline = Timeline::default();
        for i in 0..4u64 {
            let mut sample = Sample::at(Span::from_secs(i));
            sample.host.set(MEM_FREE, Bytes::new(i));
            if i == 1 {
                let row = sample.table_mut(Entity::Cgroup).entry("/web");
                row.row.set(CGROUP_CURRENT, Bytes::new(7));
            }
            timeline.push(&sample).unwrap();
        }
        let web = timeline.entity(Entity::Cgroup, "/web").unwrap();
        assert_eq!(timeline.at(MEM_FREE, 2), Some(Bytes::new(2)));
        assert_eq!(timeline.at(MEM_FREE, 9), None);
        assert_eq!(timeline.latest_of(web, CGROUP_CURRENT, 0), None);
        assert_eq!(
            timeline.latest_of(web, CGROUP_CURRENT, 3),
            Some(Bytes::new(7))
        );
    }

    #[test]
    fn an_empty_timeline_answers_everything_with_nothing() {
        let timeline = Timeline::default();
        assert!(timeline.whole().is_none());
        assert!(timeline.interval().is_none());
        assert!(timeline.gauge(MEM_FREE).is_none());
    }
}
