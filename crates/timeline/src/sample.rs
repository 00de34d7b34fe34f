//! A sample: the readings of the host and one row per entity, reused from sample to sample.
//!
//! Filling a sample allocates only until every name and row has been seen once.

use std::collections::HashMap;
use std::num::NonZeroU128;

use units::{Span, Unit, WallClock};

use crate::signals::{Entity, Kind, Signal, SignalId};

/// When a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// CLOCK_BOOTTIME: runs during suspend, starts at zero with each boot. In a capture: the time since its first
    /// sample.
    pub boot: Span,
    /// CLOCK_MONOTONIC: stops during suspend. `None` where the source lacks it.
    pub awake: Option<Span>,
    /// The wall clock, which may jump. `None` where the source lacks it.
    pub wall: Option<WallClock>,
    /// The boot of the machine. `None` where the source lacks it.
    pub boot_id: Option<BootId>,
}

/// A boot of a machine: the random number that the kernel chose then (`/proc/sys/kernel/random/boot_id`). The clocks of
/// two boots may overlap, as without a battery both start at the same time; this number is
/// another in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(NonZeroU128);

impl BootId {
    /// Its bytes, in the order in which the kernel prints them.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }

    /// The boot with these bytes; `None` of zeros.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        NonZeroU128::new(u128::from_be_bytes(bytes)).map(Self)
    }

    /// Reads 32 hexadecimal digits, with or without hyphens; `None` of any other text.
    pub fn from_text(text: &str) -> Option<Self> {
        let digits = text.bytes().filter(|byte| *byte != b'-');
        let mut number: u128 = 0;
        let mut count = 0;
        for digit in digits {
            let digit = char::from(digit).to_digit(16)?;
            number = (number << 4) | u128::from(digit);
            count += 1;
        }
        NonZeroU128::new(number).filter(|_| count == 32).map(Self)
    }
}

/// As the kernel prints it: `de91fbcf-0ae3-435d-82e6-8dacd242095d`.
impl std::fmt::Display for BootId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, byte) in self.to_bytes().iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl Stamp {
    /// The clock that stops during suspend, or else the boot clock. Sampling intervals are measured by it.
    pub fn awake_or_boot(&self) -> Span {
        self.awake.unwrap_or(self.boot)
    }

    /// What the wall clock, as it is set at another stamp, showed at this one; `None` where they are not known to be of one
    /// boot.
    pub fn wall_as_set_at(&self, other: Self) -> Option<WallClock> {
        let is_known = self.is_of_boot_of(&other) == Some(true) && self.boot <= other.boot;
        let wall = other.wall.filter(|_| is_known)?;
        Some(wall.minus(other.boot - self.boot))
    }

    /// Whether both are of one boot; `None` where that is not known of either.
    pub fn is_of_boot_of(&self, other: &Self) -> Option<bool> {
        Some(self.boot_id? == other.boot_id?)
    }
}

/// Readings of one entity at one instant: signals with raw values, in no particular order.
#[derive(Debug, Clone, Default)]
pub struct Row(Vec<(SignalId, u64)>);

impl Row {
    /// Records a reading. The unit is checked by the signal's type; setting twice keeps the later value.
    pub fn set<K: Kind>(&mut self, signal: Signal<K>, value: K::Unit) {
        self.set_raw(signal.id(), value.raw());
    }

    /// Records a reading that is already in the catalogue's unit, for parsers that find signals by field name.
    pub fn set_raw(&mut self, signal: SignalId, raw: u64) {
        self.0.push((signal, raw));
    }

    /// The reading of `signal`, if there is one.
    pub fn get<K: Kind>(&self, signal: Signal<K>) -> Option<K::Unit> {
        let id = signal.id();
        self.0.iter().rev().find(|(found, _)| *found == id).map(|(_, raw)| K::Unit::from_raw(*raw))
    }

    /// All readings, raw.
    pub fn iter(&self) -> impl Iterator<Item = (SignalId, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Forgets the readings of some signals.
    pub fn forget(&mut self, signals: &[SignalId]) {
        self.0.retain(|(found, _)| !signals.contains(found));
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all readings and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// One entity's readings: a NUMA node, a zone, a disk, a cgroup, a process.
#[derive(Debug, Clone, Default)]
pub struct EntityRow {
    /// What identifies it over time: `0/Normal`, `sda`, `/system.slice/ssh.service`, `4242@123456` (PID and start
    /// time).
    pub key: String,
    /// Its display name: the process's name; empty where the key is enough.
    pub label: String,
    /// What it belongs to, such as a process's service (systemd unit or cgroup); empty where unknown.
    pub group: String,
    /// Its readings.
    pub row: Row,
}

impl EntityRow {
    /// Gives back the memory of texts and readings that is more than a host's rows take.
    fn shrink(&mut self, bytes_max: usize) {
        for text in [&mut self.key, &mut self.label, &mut self.group] {
            if text.capacity() > bytes_max {
                *text = String::new();
            }
        }
        if self.row.0.capacity() > bytes_max / size_of::<(SignalId, u64)>() {
            self.row.0 = Vec::new();
        }
    }
}

/// The rows of one kind of entity. The memory of earlier rows is reused.
#[derive(Debug, Clone)]
pub struct EntityTable {
    rows: Vec<EntityRow>,
    used: usize,
    /// At most this many rows.
    rows_max: usize,
    /// What rows beyond the bound are written to.
    surplus: Option<Box<EntityRow>>,
    /// How many rows were beyond the bound.
    left_out: usize,
    /// Whether an entity without a row in this sample was not read, rather than gone.
    is_partial: bool,
    /// Whether the last row that was added is one of these.
    is_surplus: bool,
    /// Bytes of the keys of `indexes`.
    indexed_bytes: usize,
    /// The last index of each key; it may be out of date, because it is kept from sample to sample.
    indexes: HashMap<String, usize>,
    /// The number of rows of this sample that are not indexed, because their keys were written after they were added.
    unindexed: usize,
}

impl EntityTable {
    /// At most this many processes, services or cgroups, more than a large host has. Each takes about 400 bytes.
    const ROWS_MAX: usize = 1 << 16;
    /// At most this many devices, zones or slab caches: a host has hundreds.
    const DEVICES_MAX: usize = 1 << 13;
    /// Texts of rows that are longer than this do not keep their memory for the next sample.
    const KEPT_BYTES_MAX: usize = 4096;
    /// Keys that are indexed have at most this many bytes.
    const INDEXED_BYTES_MAX: usize = 8 << 20;

    fn of(entity: Entity) -> Self {
        let has_many = matches!(entity, Entity::Process | Entity::Cgroup | Entity::Service);
        Self {
            rows: Vec::new(),
            used: 0,
            rows_max: if has_many { Self::ROWS_MAX } else { Self::DEVICES_MAX },
            surplus: None,
            left_out: 0,
            is_partial: false,
            is_surplus: false,
            indexed_bytes: 0,
            indexes: HashMap::new(),
            unindexed: 0,
        }
    }

    /// Whether no more rows have room: further ones are counted, and what is written to them is lost.
    pub fn is_full(&self) -> bool {
        self.used >= self.rows_max
    }

    /// Adds an empty row; the caller writes `key` and `label`.
    pub fn add(&mut self) -> &mut EntityRow {
        self.unindexed += 1;
        self.next()
    }

    fn next(&mut self) -> &mut EntityRow {
        self.is_surplus = self.is_full();
        let row = if self.is_surplus {
            self.left_out += 1;
            &mut **self.surplus.get_or_insert_default()
        } else {
            if self.used == self.rows.len() {
                self.rows.push(EntityRow::default());
            }
            self.used += 1;
            &mut self.rows[self.used - 1]
        };
        row.key.clear();
        row.label.clear();
        row.group.clear();
        row.row.clear();
        row
    }

    /// Returns the row with this key, added if absent: several files may describe one entity.
    pub fn entry(&mut self, key: &str) -> &mut EntityRow {
        if let Some(at) = self.find(key) {
            return &mut self.rows[at];
        }
        let (at, is_full) = (self.used, self.is_full());
        match self.indexes.get_mut(key) {
            Some(index) => *index = at,
            None if is_full => {}
            None => {
                self.indexed_bytes += key.len();
                self.indexes.insert(key.to_owned(), at);
            }
        }
        let row = self.next();
        row.key.push_str(key);
        row
    }

    fn find(&self, key: &str) -> Option<usize> {
        let rows = self.rows();
        self.indexes
            .get(key)
            .copied()
            .filter(|at| rows.get(*at).is_some_and(|row| row.key == key))
            .or_else(|| {
                // A text of 100,000 cgroups must not be searched once for each of them.
                (self.unindexed > 0).then(|| rows.iter().position(|row| row.key == key)).flatten()
            })
    }

    fn forget(&mut self) {
        for row in &mut self.rows[..self.used] {
            row.shrink(Self::KEPT_BYTES_MAX);
        }
        self.surplus = None;
        self.used = 0;
        self.unindexed = 0;
        self.left_out = 0;
        self.is_partial = false;
        self.is_surplus = false;
        if self.indexed_bytes > Self::INDEXED_BYTES_MAX {
            self.indexes.clear();
            self.indexed_bytes = 0;
        }
        // Bounds the index: cgroups and processes come and go for months.
        if self.indexes.len() > self.rows.len().max(256) * 4 {
            self.indexes.clear();
            self.indexed_bytes = 0;
        }
    }

    /// Records that only some entities were read in this sample: one without a row is not gone.
    pub fn set_partial(&mut self) {
        self.is_partial = true;
    }

    /// Whether only some entities were read in this sample.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Removes the last added row.
    pub fn drop_last(&mut self) {
        if std::mem::take(&mut self.is_surplus) {
            self.left_out = self.left_out.saturating_sub(1);
        } else {
            self.used = self.used.saturating_sub(1);
        }
    }

    /// The rows of this sample.
    pub fn rows(&self) -> &[EntityRow] {
        &self.rows[..self.used]
    }

    /// The rows of this sample, mutable: several files may describe one entity.
    pub fn rows_mut(&mut self) -> &mut [EntityRow] {
        &mut self.rows[..self.used]
    }
}

/// A field of a kernel file that is not in the catalogue; stored so that nothing of a new kernel is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnknownField {
    /// The kernel file.
    pub file: &'static str,
    /// The field as written in the file.
    pub field: String,
    /// Its value as written in the file, in the file's own unit.
    pub value: u64,
}

/// The unknown fields of a sample; their memory is reused.
#[derive(Debug, Clone, Default)]
pub struct UnknownFields {
    fields: Vec<UnknownField>,
    used: usize,
    is_closed: bool,
}

impl UnknownFields {
    /// At most this many fields a sample: a hostile file must not fill memory.
    const ROWS_MAX: usize = 512;

    /// Stores a field that is not in the catalogue; dropped beyond 512 a sample.
    pub fn keep(&mut self, file: &'static str, field: &str, value: u64) {
        if self.is_closed {
            return;
        }
        if self.used == self.fields.len() {
            if self.fields.len() == Self::ROWS_MAX {
                return;
            }
            self.fields.push(UnknownField::default());
        }
        let slot = &mut self.fields[self.used];
        self.used += 1;
        slot.file = file;
        slot.field.clear();
        slot.field.push_str(field);
        slot.value = value;
    }

    /// Drops fields until [`open`](Self::open) is called. There are dozens, each with a text: a recorder stores them
    /// rarely.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Stores fields again.
    pub fn open(&mut self) {
        self.is_closed = false;
    }

    /// The stored fields.
    pub fn iter(&self) -> impl Iterator<Item = &UnknownField> {
        self.fields[..self.used].iter()
    }
}

/// All readings of one time.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it was taken.
    pub stamp: Stamp,
    /// Readings of the whole host.
    pub host: Row,
    /// Fields that the catalogue does not know.
    pub unknown: UnknownFields,
    entities: [EntityTable; Entity::ALL.len()],
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            stamp: Stamp::default(),
            host: Row::default(),
            unknown: UnknownFields::default(),
            entities: Entity::ALL.map(EntityTable::of),
        }
    }
}

impl Sample {
    /// An empty sample taken at `boot` on the boot clock.
    pub fn at(boot: Span) -> Self {
        Self { stamp: Stamp { boot, ..Stamp::default() }, ..Self::default() }
    }

    /// Empties the sample for the next one and keeps its memory.
    pub fn clear(&mut self) {
        self.stamp = Stamp::default();
        self.host.clear();
        for table in &mut self.entities {
            table.forget();
        }
        self.unknown.used = 0;
    }

    /// How many rows of entities had no room.
    pub fn rows_left_out(&self) -> usize {
        self.entities.iter().map(|table| table.left_out).sum()
    }

    /// The rows of one kind of entity.
    pub fn table(&self, entity: Entity) -> &EntityTable {
        &self.entities[entity as usize]
    }

    /// The rows of one kind of entity, mutable.
    pub fn table_mut(&mut self, entity: Entity) -> &mut EntityTable {
        &mut self.entities[entity as usize]
    }

    /// Returns the row with this key, added if absent, and the unknown fields: a parser fills both at once.
    pub fn entry_and_unknown(
        &mut self,
        entity: Entity,
        key: &str,
    ) -> (&mut EntityRow, &mut UnknownFields) {
        (self.entities[entity as usize].entry(key), &mut self.unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::{CGROUP_CURRENT, MEM_FREE};
    use units::Bytes;

    #[test]
    fn a_cleared_sample_is_empty_and_its_rows_are_reused() {
        let mut sample = Sample::at(Span::from_secs(1));
        sample.host.set(MEM_FREE, Bytes::new(1));
        let row = sample.table_mut(Entity::Cgroup).entry("/web");
        row.row.set(CGROUP_CURRENT, Bytes::new(7));
        sample.unknown.keep("/proc/meminfo", "New", 3);
        sample.clear();
        assert!(sample.host.is_empty());
        assert!(sample.table(Entity::Cgroup).rows().is_empty());
        assert_eq!(sample.unknown.iter().count(), 0);
        assert!(sample.table_mut(Entity::Cgroup).entry("/db").row.get(CGROUP_CURRENT).is_none());
    }

    #[test]
    fn rows_beyond_the_bound_are_counted_and_lost_and_the_others_stay() {
        let mut sample = Sample::default();
        let disks = sample.table_mut(Entity::Disk);
        for number in 0..EntityTable::DEVICES_MAX + 10 {
            disks.entry(&format!("sd{number}")).label = "x".repeat(10);
        }
        assert_eq!(disks.entry("sd7").label.len(), 10);
        disks.drop_last();
        assert_eq!(disks.rows().len(), EntityTable::DEVICES_MAX);
        assert_eq!(sample.rows_left_out(), 9);
        sample.clear();
        assert_eq!(sample.rows_left_out(), 0);
        assert!(!sample.table_mut(Entity::Disk).is_full());
    }

    #[test]
    fn two_files_of_one_entity_share_its_row() {
        let mut sample = Sample::default();
        sample.table_mut(Entity::Cgroup).entry("/web").row.set(CGROUP_CURRENT, Bytes::new(7));
        assert_eq!(
            sample.table_mut(Entity::Cgroup).entry("/web").row.get(CGROUP_CURRENT),
            Some(Bytes::new(7))
        );
        assert_eq!(sample.table(Entity::Cgroup).rows().len(), 1);
    }
}
