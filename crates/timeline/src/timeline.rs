//! Samples in order, as columns. Finds gaps, reboots, suspends, clock steps and counter resets, and computes rates
//! only between samples without a break.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use units::{Span, Unit, WallClock};

use crate::clock::TimelineClock;
use crate::event::Event;
use crate::memory_budget::{LeftOut, MemoryBudget, start_of};
use crate::repeats::RepeatIndex;
use crate::sample::{Sample, Stamp};
use crate::signals::{Entity, Kind, Signal, SignalId};
use crate::stretch::Stretch;

mod breaks;
mod column;
mod downsampled;
mod evicted_sums;
mod eviction;
mod median_step;
mod parts;
mod read_set;
mod readings;
mod reported;
mod rounding;
mod runs;
mod samples;
mod step;
mod tracks;
mod wall;

pub use breaks::{Break, BreakKind};
pub use column::Run;
pub use downsampled::Downsampled;
pub use eviction::Evicted;
pub use reported::{EarlierReport, Noticed, Reported};
pub use rounding::RoundingCase;
pub use samples::Samples;
pub use step::{CLOCK_TOLERANCE, Step, step};
pub use wall::ClockStep;

use evicted_sums::EvictedSums;
use median_step::MedianStep;
use read_set::{ReadSet, SamplesRead};
use readings::Readings;

/// Why a timeline cannot take a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrder;

/// Why a kernel file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It does not exist in this kernel or configuration.
    NotFound,
    /// It exists, but this user may not read it.
    PermissionDenied,
    /// Another error.
    Failed(String),
}

/// One entity over time: a cgroup, a process, a zone.
#[derive(Debug, Clone)]
pub struct EntitySeries {
    /// Its kind.
    pub entity: Entity,
    /// What identifies it.
    pub key: String,
    /// Its display name; the key where it has no other name.
    pub label: String,
    /// What it belongs to, such as a process's service; empty where unknown.
    pub group: String,
    columns: Readings,
}

/// Samples in order.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    stamps: Vec<Stamp>,
    times: Vec<Span>,
    clock: OnceLock<TimelineClock>,
    host: Readings,
    entities: BTreeMap<(Entity, String), EntitySeries>,
    /// The samples in which each table was read, in the order of [`Entity::ALL`].
    reads: [SamplesRead; Entity::ALL.len()],
    budget: MemoryBudget,
    left_out: LeftOut,
    /// The evicted entities, in the order of [`Entity::ALL`].
    evicted: [Evicted; Entity::ALL.len()],
    /// Sums of the evicted entities' readings.
    evicted_sums: EvictedSums,
    /// Eviction begins when there are more entities than this.
    evict_above: usize,
    /// For each kind of entity, the last samples in which the whole table and in which any of it was read, up to which
    /// all readings are present.
    complete: [Option<(usize, usize)>; Entity::ALL.len()],
    breaks: Vec<Break>,
    median_step: MedianStep,
    /// The downsampled ranges, in order.
    downsampled: Vec<Downsampled>,
    /// The resolution of samples that are appended next; `None` means every sample is kept.
    resolution: Option<Span>,
    /// Kernel files that the source could not read, and why.
    pub absent: BTreeMap<&'static str, Absence>,
    unknown: BTreeMap<(&'static str, String), u64>,
    reports: Arc<Vec<Reported>>,
    /// Messages of programs about kills, in the order of the source.
    notices: Arc<Vec<Noticed>>,
    /// Reports from before the first sample, in order.
    earlier: Arc<Vec<EarlierReport>>,
    /// Bytes of the reports' texts.
    report_bytes: usize,
    /// Events that a recorder noted in the whole source, in order.
    recorder_events: Arc<Vec<Event>>,
    repeats: RepeatIndex,
    /// Index of the first sample in the timeline that this one was cut from.
    origin: usize,
    /// Whether it may share columns with that timeline.
    is_sharing: bool,
    rounded: BTreeMap<SignalId, u64>,
}

impl Timeline {
    /// At most this many unknown fields; further ones are dropped.
    const UNKNOWN_MAX: usize = 4096;
    /// The longest path on Linux (PATH_MAX); a hostile capture may contain longer ones.
    const KEY_LEN_MAX: usize = 4096;
    /// The longest name or service that is kept; the kernel's names have at most 64 bytes.
    const NAME_LEN_MAX: usize = 512;

    /// A timeline of a part of a source, which is copied into another one: it may take half the memory.
    pub fn of_a_part() -> Self {
        Self { budget: MemoryBudget::of_a_part(), ..Self::default() }
    }

    /// A timeline of a recorder's own samples: entities alone are bounded, as none of its samples may be lost.
    pub fn of_own_samples() -> Self {
        Self { budget: MemoryBudget::of_own_samples(), ..Self::default() }
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// [`OutOfOrder`] where the sample is not later than the last one and the machine did not reboot in between.
    pub fn push(&mut self, sample: &Sample) -> Result<(), OutOfOrder> {
        self.push_stamp(sample.stamp)?;
        self.append_readings(sample);
        Ok(())
    }

    /// Appends a sample without readings, which are added by [`append_host_runs`](Self::append_host_runs) and
    /// [`append_runs`](Self::append_runs).
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_stamp(&mut self, stamp: Stamp) -> Result<(), OutOfOrder> {
        let time = match self.stamps.last() {
            None => Span::ZERO,
            Some(last) => self.last_time().plus(self.advance(*last, stamp)?),
        };
        self.append_stamp(stamp, time);
        Ok(())
    }

    /// Appends a sample in a new segment: its order relative to the sample before is unknown, and neither rates nor
    /// stretches cross the border.
    pub fn push_new_segment(&mut self, sample: &Sample) {
        self.push_stamp_new_segment(sample.stamp);
        self.append_readings(sample);
    }

    /// As [`push_stamp`](Self::push_stamp), in a new segment.
    pub fn push_stamp_new_segment(&mut self, stamp: Stamp) {
        let time = match self.stamps.last() {
            None => Span::ZERO,
            Some(last) => {
                let before = self.stamps.len();
                let kind = BreakKind::NewSegment;
                self.breaks.push(Break { before, kind });
                let nanos_between = |(a, b): (WallClock, WallClock)| {
                    u64::try_from(b.unix_nanos().checked_sub(a.unix_nanos())?).ok()
                };
                let step = last
                    .wall
                    .zip(stamp.wall)
                    .and_then(nanos_between)
                    .filter(|nanos| *nanos > 0)
                    .map(Span::from_nanos);
                // The clock must advance, so that the times of samples differ.
                self.last_time().plus(step.unwrap_or(Span::from_secs(1)))
            }
        };
        self.append_stamp(stamp, time);
    }

    fn last_time(&self) -> Span {
        self.times.last().copied().unwrap_or_default()
    }

    fn append_stamp(&mut self, stamp: Stamp, time: Span) {
        self.note_read(Entity::Host, self.stamps.len(), false);
        self.budget.take(MemoryBudget::SAMPLE_BYTES);
        self.stamps.push(stamp);
        self.times.push(time);
        self.note_resolution();
        self.clock = OnceLock::new();
    }

    /// Appends the readings of the last sample.
    fn append_readings(&mut self, sample: &Sample) {
        let index = self.len() - 1;
        let host = self.host.own();
        let before = host.len();
        let mut grown = 0;
        for (signal, raw) in sample.host.iter() {
            grown += host.set(signal, index, index.checked_sub(1), raw);
        }
        let columns = host.len() - before;
        self.budget.take(MemoryBudget::of_readings(columns, grown));
        self.left_out.entity_rows += sample.rows_left_out();
        for entity in Entity::ALL {
            let table = sample.table(entity);
            let rows = table.rows();
            if !rows.is_empty() {
                self.note_read(entity, index, table.is_partial());
            }
            let before = self.table_reads(entity).whole.before(index);
            for row in rows {
                self.push_entity(entity, row, index, before);
            }
        }
        self.evict_ended();
        for field in sample.unknown.iter() {
            self.note_unknown(field.file, field.field.clone(), field.value);
        }
    }

    /// Replaces a reading of the host at an existing sample, where a kernel report is closer to the time than the
    /// sample taken a little later.
    pub fn amend(&mut self, index: usize, signal: SignalId, raw: u64) {
        if index < self.len() {
            self.host.own().amend(signal, index, raw);
        }
    }

    /// Adds an event that a recorder noted, unless a recorder that was killed had already read it from the log.
    pub fn add_recorder_event(&mut self, event: Event) {
        if self.repeats.has(&event, &self.recorder_events) {
            return;
        }
        let texts = event.subject.len() + event.text.len() + event.report.len();
        if self.budget.takes(MemoryBudget::of_event(texts)) {
            Arc::make_mut(&mut self.recorder_events).push(event);
        } else {
            self.left_out.events += 1;
        }
    }

    /// Replaces all recorder events.
    pub fn set_recorder_events(&mut self, events: Vec<Event>) {
        self.recorder_events = Arc::new(events);
        self.repeats = RepeatIndex::default();
    }

    /// Events that a recorder noted, of the whole source.
    pub fn recorder_events(&self) -> &[Event] {
        &self.recorder_events
    }

    /// Returns how far the timeline's clock advances to the next sample, and adds breaks.
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
        let (count, mut grown) = (columns.len(), 0);
        for (signal, raw) in row.row.iter() {
            grown += columns.set(signal, index, before, raw);
        }
        let added = columns.len() - count;
        self.budget.take(MemoryBudget::of_readings(added, grown));
    }

    /// The series of an entity, added if absent. Beyond the bound of memory it is counted as dropped and `None` is
    /// returned.
    fn series_mut(
        &mut self,
        entity: Entity,
        key: &str,
        label: &str,
        group: &str,
    ) -> Option<&mut EntitySeries> {
        if !self.budget.has_room_for_entities() || key.len() > Self::KEY_LEN_MAX {
            self.left_out.entity_rows += 1;
            return None;
        }
        let label = if label.is_empty() { key } else { start_of(label, Self::NAME_LEN_MAX) };
        let group = start_of(group, Self::NAME_LEN_MAX);
        let series = self.entities.entry((entity, key.to_owned())).or_insert_with(|| {
            self.budget.take(MemoryBudget::of_entity(key, label, group));
            EntitySeries {
                entity,
                key: key.to_owned(),
                label: String::new(),
                group: String::new(),
                columns: Readings::default(),
            }
        });
        if series.label != label {
            label.clone_into(&mut series.label);
        }
        if series.group != group {
            group.clone_into(&mut series.group);
        }
        Some(series)
    }

    fn reads(&self, entity: Entity) -> &ReadSet {
        &self.table_reads(entity).all
    }

    fn table_reads(&self, entity: Entity) -> &SamplesRead {
        &self.reads[entity as usize]
    }

    fn note_read(&mut self, entity: Entity, index: usize, is_partial: bool) {
        self.take_over();
        self.reads[entity as usize].note(index, is_partial);
    }

    /// The last sample, up to `index`, in which entities of a kind were read.
    pub fn read_before(&self, entity: Entity, index: usize) -> Option<usize> {
        self.reads(entity).before(index + 1)
    }

    /// The last sample, up to `index`, in which all entities of a kind were read.
    pub fn all_read_before(&self, entity: Entity, index: usize) -> Option<usize> {
        self.table_reads(entity).whole.before(index + 1)
    }

    /// The first sample, from `index` on, in which entities of a kind were read.
    pub fn read_after(&self, entity: Entity, index: usize) -> Option<usize> {
        self.reads(entity).at_or_after(index)
    }

    /// The median interval between samples in which all entities of a kind were read; `None` with fewer than two. In a
    /// downsampled timeline it is the interval of the downsampled samples.
    pub fn interval_of(&self, entity: Entity) -> Option<Span> {
        let reads: Vec<usize> = self.table_reads(entity).whole.iter().collect();
        self.median_interval(reads.windows(2).map(|at| (at[0], at[1])))
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// When the samples were taken, counted from the first.
    pub fn times(&self) -> &[Span] {
        &self.times
    }

    /// The stamp of a sample.
    pub fn stamp(&self, index: usize) -> Option<Stamp> {
        self.stamps.get(index).copied()
    }

    /// The time from the first sample to the last, without the unknown time between segments.
    pub fn duration(&self) -> Span {
        let first = self.times.first().copied().unwrap_or_default();
        self.segment_starts().fold(self.last_time() - first, |duration, at| {
            duration - (self.times[at] - self.times[at - 1])
        })
    }

    /// The recorded time: without gaps, suspends, reboots and the time between segments.
    pub fn recorded(&self) -> Span {
        let last = self.len().saturating_sub(1);
        self.clock().recorded(last)
    }

    fn segment_starts(&self) -> impl Iterator<Item = usize> + '_ {
        self.breaks.iter().filter(|gap| gap.kind == BreakKind::NewSegment).map(|gap| gap.before)
    }

    /// The median interval between samples; `None` with fewer than two. In a downsampled timeline it is the coarsest
    /// interval, that of the downsampled samples.
    pub fn interval(&self) -> Option<Span> {
        let starts_segment = self.broken(|kind| kind == BreakKind::NewSegment);
        let steps = (1..self.len()).filter(|at| !starts_segment[*at]).map(|at| (at - 1, at));
        self.median_interval(steps)
    }

    /// The median of steps between two samples; where there are steps to downsampled samples, the median of these.
    fn median_interval(&self, steps: impl Iterator<Item = (usize, usize)> + Clone) -> Option<Span> {
        let elapsed = |(from, to): (usize, usize)| self.times[to] - self.times[from];
        let downsampled = steps.clone().filter(|(_, to)| self.resolution_at(*to).is_some());
        median(downsampled.map(elapsed)).or_else(|| median(steps.map(elapsed)))
    }

    /// The stretch from the first sample to the last; `None` without samples.
    pub fn whole(&self) -> Option<Stretch> {
        self.stretch(0, self.len().checked_sub(1)?)
    }

    /// The stretch between two samples; `None` where they are not in order or out of range.
    pub fn stretch(&self, first: usize, last: usize) -> Option<Stretch> {
        (first <= last && last < self.len()).then(|| self.clock().stretch(first, last))
    }

    /// Breaks, in order.
    pub fn breaks(&self) -> &[Break] {
        &self.breaks
    }

    /// Notes what found no room in a timeline that is copied into this one.
    pub fn note_left_out(&mut self, more: LeftOut) {
        let known = &mut self.left_out;
        known.host_signals += more.host_signals;
        known.entity_rows += more.entity_rows;
        known.reports += more.reports;
        known.events += more.events;
    }

    /// What found no room in memory.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Whether it takes all the memory that a source may take: then a reader ends.
    pub fn is_full(&self) -> bool {
        self.budget.is_spent()
    }

    /// Why a reader ended, to follow what it has read; empty where there is room.
    pub fn why_full(&self) -> String {
        if self.is_full() {
            format!(", as a source may take {} of memory", MemoryBudget::SOURCE)
        } else {
            String::new()
        }
    }

    /// Adds a field that is not in the catalogue, with its last value; dropped beyond 4096 fields.
    pub fn note_unknown(&mut self, file: &'static str, field: String, value: u64) {
        let key = (file, field);
        let is_name = key.1.len() <= Self::NAME_LEN_MAX;
        if is_name && self.unknown.len() < Self::UNKNOWN_MAX || self.unknown.contains_key(&key) {
            self.unknown.insert(key, value);
        }
    }

    /// Fields that are not in the catalogue: file, name, last value.
    pub fn unknown(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        self.unknown.iter().map(|((file, field), value)| (*file, field.as_str(), *value))
    }

    /// The last reading of a host signal: for a counter, its total since boot.
    pub fn last<K: Kind>(&self, signal: Signal<K>) -> Option<K::Unit> {
        self.host.last(signal.id()).map(K::Unit::from_raw)
    }

    /// The reading of a host signal at exactly this sample.
    pub fn at<K: Kind>(&self, signal: Signal<K>, index: usize) -> Option<K::Unit> {
        let reading = self.host.at(signal.id(), index, self.reads(Entity::Host));
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

    /// The cgroups below one, at any depth, by key.
    pub fn cgroups_below(&self, key: &str) -> impl Iterator<Item = &EntitySeries> {
        let below = format!("{}/", key.trim_end_matches('/'));
        self.entities
            .range((Entity::Cgroup, below.clone())..)
            .map(|(_, series)| series)
            .take_while(move |series| {
                series.entity == Entity::Cgroup && series.key.starts_with(&below)
            })
            .filter(|series| series.key != crate::cgroup::ROOT)
    }

    /// The last reading of an entity's signal; for a counter, its total so far.
    pub fn last_of<K: Kind>(&self, series: &EntitySeries, signal: Signal<K>) -> Option<K::Unit> {
        series.columns.last(signal.id()).map(K::Unit::from_raw)
    }

    /// The reading of an entity's signal at exactly this sample.
    pub fn at_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        let reading = series.columns.at(signal.id(), index, self.reads(series.entity));
        reading.map(K::Unit::from_raw)
    }

    /// The readings of an entity's signal, each with its sample, in order: one pass, where [`at_of`](Self::at_of) searches
    /// for each sample.
    pub fn readings_of<'a, K: Kind + 'a>(
        &'a self,
        series: &'a EntitySeries,
        signal: Signal<K>,
    ) -> impl Iterator<Item = (usize, K::Unit)> + 'a {
        let column = series.columns.get(signal.id());
        let readings =
            column.into_iter().flat_map(|column| column.readings(self.reads(series.entity)));
        readings.map(|(index, reading)| (index, K::Unit::from_raw(reading)))
    }

    /// The reading of an entity's signal at a sample, or else the latest one before: slab caches and PSS are read less
    /// often than other signals.
    pub fn latest_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        series.columns.latest(signal.id(), index).map(K::Unit::from_raw)
    }

    /// The least and the largest reading of an entity's signal.
    pub fn bounds_of<K: Kind>(
        &self,
        series: &EntitySeries,
        signal: Signal<K>,
    ) -> Option<(K::Unit, K::Unit)> {
        let values = || Some(series.columns.get(signal.id())?.runs().iter().map(|run| run.value));
        let (least, largest) = (values()?.min()?, values()?.max()?);
        Some((K::Unit::from_raw(least), K::Unit::from_raw(largest)))
    }

    /// The samples that follow a break of rates, in order.
    fn rate_breaks(&self) -> Vec<usize> {
        self.breaks.iter().filter(|gap| gap.kind.breaks_rates()).map(|gap| gap.before).collect()
    }

    /// For each sample, whether it follows a break that `by` admits.
    fn broken(&self, by: impl Fn(BreakKind) -> bool) -> Vec<bool> {
        let mut broken = vec![false; self.len()];
        for gap in self.breaks.iter().filter(|gap| by(gap.kind)) {
            broken[gap.before] = true;
        }
        broken
    }

    fn clock(&self) -> &TimelineClock {
        self.clock.get_or_init(|| TimelineClock::new(&self.times, &self.rate_breaks()))
    }
}

/// The median, the longer of the middle two; `None` where there are no steps.
fn median(steps: impl Iterator<Item = Span>) -> Option<Span> {
    stats::middle(&mut steps.collect::<Vec<Span>>())
}

#[cfg(test)]
mod tests;
