//! Samples in order, as columns. Finds gaps, reboots, suspends, clock steps and counter resets, and computes rates
//! only between samples without a break.

use std::collections::BTreeMap;

use units::{Span, Unit};

use crate::memory_budget::{LeftOut, MemoryBudget};
use crate::sample::{Sample, Stamp};
use crate::signals::{Entity, Kind, Signal, SignalId};

mod breaks;
mod column;
mod downsampled;
mod entities;
mod evicted_sums;
mod eviction;
mod log;
mod median_step;
mod parts;
mod read_set;
mod readings;
mod reported;
mod rounding;
mod runs;
mod sample_clock;
mod samples;
mod step;
mod tracks;
mod wall;

pub use breaks::{Break, BreakKind};
pub use column::Run;
pub use downsampled::Downsampled;
pub use entities::EntitySeries;
pub use eviction::Evicted;
pub use reported::{EarlierReport, Noticed, Reported};
pub use rounding::RoundingCase;
pub use samples::Samples;
pub use step::{CLOCK_TOLERANCE, Step, step};
pub use wall::ClockStep;

use eviction::EvictedEntities;
use log::TimelineLog;
use read_set::{ReadSet, SamplesRead};
use readings::Readings;
use sample_clock::SampleClock;

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

/// Samples in order.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    clock: SampleClock,
    host: Readings,
    entities: BTreeMap<(Entity, String), EntitySeries>,
    /// The samples in which each table was read, in the order of [`Entity::ALL`].
    reads: [SamplesRead; Entity::ALL.len()],
    evicted: EvictedEntities,
    log: TimelineLog,
    budget: MemoryBudget,
    left_out: LeftOut,
    /// Kernel files that the source could not read, and why.
    pub absent: BTreeMap<&'static str, Absence>,
    unknown: BTreeMap<(&'static str, String), u64>,
    rounded: BTreeMap<SignalId, u64>,
    /// Index of the first sample in the timeline that this one was cut from.
    origin: usize,
    /// Whether it may share columns with that timeline.
    is_sharing: bool,
}

impl Timeline {
    /// At most this many unknown fields; further ones are dropped.
    const UNKNOWN_MAX: usize = 4096;

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
        self.clock.push(stamp)?;
        self.note_sample();
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
        self.clock.push_new_segment(stamp);
        self.note_sample();
    }

    fn note_sample(&mut self) {
        self.note_read(Entity::Host, self.len() - 1, false);
        self.budget.take(MemoryBudget::SAMPLE_BYTES);
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
}

#[cfg(test)]
mod tests;
