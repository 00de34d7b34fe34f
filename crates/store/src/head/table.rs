//! The writer's state of one kind of entity: the last reading of every signal of every entity, in rows of equal width,
//! so that thousands of processes are compared sequentially and unchanged readings are skipped.
//!
//! A **section** of a sample has the changes of one table. It is a list of operations; each is a number that combines
//! the distance from the previous operation's slot with its kind. Zero ends the list.
//!
//! A section may be **partial**: its sample read only some of the table's entities. These have an operation each, if
//! only one that changes nothing; the others keep their readings and are not gone. In the first section of a block they
//! are declared too, after [`NOT_READ`].

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use timeline::{Entity, EntityRow, Row, SignalId};

use super::bytes::{ones, put, put_bits, put_step, put_text};

/// What an operation of a section does with its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Some readings changed.
    Change = 0,
    /// Some readings appeared or disappeared, and some may have changed.
    Presence = 1,
    /// The slot gets a new entity; its key, label and group follow. All its readings are absent.
    Declare = 2,
    /// The entity is gone.
    Gone = 3,
}

impl Operation {
    pub(super) fn from_number(number: u64) -> (Self, u64) {
        let operation = match number & 3 {
            0 => Self::Change,
            1 => Self::Presence,
            2 => Self::Declare,
            _ => Self::Gone,
        };
        (operation, (number >> 2) - 1)
    }
}

/// A bit of a section's first byte: all present entities are declared in it.
pub(super) const ALL_DECLARED: u8 = 0x80;

/// A bit of a section's first byte: entities without an operation were not read, and those after [`NOT_READ`] neither.
pub(super) const PARTIAL: u8 = 0x40;

/// A number in place of an operation: the entities that follow are declared with their last readings, but were not
/// read.
pub(super) const NOT_READ: u64 = 1;

/// An entity's names, encoded as for a declaration, which is all that needs them.
#[derive(Debug, Default)]
struct EntityNames {
    encoded: Vec<u8>,
    key: (usize, usize),
    label: (usize, usize),
    group: (usize, usize),
    /// Hash under which a row's key is found; processes need none.
    hash: Option<u64>,
}

impl EntityNames {
    fn set(&mut self, key: &[u8], label: &[u8], group: &[u8]) {
        self.encoded.clear();
        for (text, place) in
            [(key, &mut self.key), (label, &mut self.label), (group, &mut self.group)]
        {
            put_text(&mut self.encoded, text);
            *place = (self.encoded.len() - text.len(), self.encoded.len());
        }
    }

    fn get(&self, (from, to): (usize, usize)) -> &[u8] {
        &self.encoded[from..to]
    }

    fn key(&self) -> &[u8] {
        self.get(self.key)
    }

    fn is_called(&self, label: &[u8], group: &[u8]) -> bool {
        self.get(self.label) == label && self.get(self.group) == group
    }
}

/// The slot of an entity, reused when that is gone. Each sample goes through those of all processes, so it is small.
#[derive(Debug, Default)]
struct EntitySlot {
    is_used: bool,
    /// How many entities had this slot before.
    generation: u32,
    /// The block in which it was last declared.
    declared: u64,
    /// The sample in which it was last read.
    seen: u64,
}

/// The state of one kind of entity.
#[derive(Debug)]
pub(super) struct HeadTableEncoder {
    code: u8,
    first: usize,
    /// Columns up to the last one that was ever read: figures of heaps are few hosts'.
    width: usize,
    words: usize,
    values: Vec<u64>,
    present: Vec<u64>,
    places: Vec<EntitySlot>,
    names: Vec<EntityNames>,
    free: Vec<u32>,
    by_hash: HashMap<u64, u32>,
    hasher: RandomState,
    /// A row's readings by column, and which of them are present.
    row: Vec<u64>,
    row_present: Vec<u64>,
    /// The block in which a section was last written.
    block: u64,
    /// The slot of the previous operation, in the section being written.
    before: u64,
    /// Whether that section is partial.
    is_partial: bool,
}

impl HeadTableEncoder {
    pub(super) fn new(entity: Entity) -> Self {
        let signals = entity.signals();
        let words = signals.len().div_ceil(64);
        Self {
            code: entity as u8,
            first: signals.start,
            width: 0,
            words,
            values: Vec::new(),
            present: Vec::new(),
            places: Vec::new(),
            names: Vec::new(),
            free: Vec::new(),
            by_hash: HashMap::new(),
            hasher: RandomState::new(),
            row: vec![0; signals.len()],
            row_present: vec![0; words],
            block: 0,
            before: 0,
            is_partial: false,
        }
    }

    /// Reserves memory for further entities.
    pub(super) fn reserve(&mut self, entities: usize) {
        self.values.reserve(entities * self.width);
        self.present.reserve(entities * self.words);
        self.places.reserve(entities);
        self.names.reserve(entities);
        self.free.reserve(entities);
    }

    /// Begins a section of a sample.
    pub(super) fn begin(&mut self, into: &mut Vec<u8>, block: u64, is_partial: bool) {
        let is_first = self.block != block;
        let declared = if is_first { ALL_DECLARED } else { 0 };
        into.push(self.code | declared | if is_partial { PARTIAL } else { 0 });
        self.block = block;
        self.before = 0;
        self.is_partial = is_partial;
    }

    /// Ends a section. Entities that this sample did not read are gone, unless it is partial.
    pub(super) fn end(&mut self, into: &mut Vec<u8>, sample: u64) {
        if self.is_partial {
            self.declare_unread(into, sample);
        } else {
            self.drop_unread(into, sample);
        }
        into.push(0);
    }

    /// Declares the entities that this block has not declared, with their last readings.
    fn declare_unread(&mut self, into: &mut Vec<u8>, sample: u64) {
        let mut is_first = true;
        for index in 0..self.places.len() {
            let place = &self.places[index];
            if !place.is_used || place.seen == sample || place.declared == self.block {
                continue;
            }
            if std::mem::take(&mut is_first) {
                put(into, NOT_READ);
            }
            let seen = place.seen;
            let mut values = std::mem::take(&mut self.row);
            let mut present = std::mem::take(&mut self.row_present);
            values[..self.width].copy_from_slice(&self.values[index * self.width..][..self.width]);
            present.copy_from_slice(&self.present[index * self.words..][..self.words]);
            self.dense(into, index, &values, &present, seen);
            self.row = values;
            self.row_present = present;
        }
    }

    fn drop_unread(&mut self, into: &mut Vec<u8>, sample: u64) {
        for index in 0..self.places.len() {
            let place = &self.places[index];
            if !place.is_used || place.seen == sample {
                continue;
            }
            if place.declared == self.block {
                self.operate(into, index, Operation::Gone);
            }
            self.release(index);
        }
    }

    #[allow(clippy::cast_possible_truncation)] // Slots are counted in 32 bits.
    fn release(&mut self, index: usize) {
        let place = &mut self.places[index];
        place.is_used = false;
        place.generation = place.generation.wrapping_add(1);
        if let Some(hash) = self.names[index].hash.take() {
            self.by_hash.remove(&hash);
        }
        self.free.push(index as u32);
    }

    fn operate(&mut self, into: &mut Vec<u8>, index: usize, operation: Operation) {
        let slot = index as u64;
        let step = slot.wrapping_sub(self.before).cast_signed();
        let zigzag = ((step << 1) ^ (step >> 63)).cast_unsigned();
        put(into, ((zigzag + 1) << 2) | operation as u64);
        self.before = slot;
    }

    /// Assigns a slot to a new entity.
    #[allow(clippy::cast_possible_truncation)] // A host has at most 4 Mi PIDs.
    pub(super) fn claim(&mut self, key: &[u8], label: &[u8], group: &[u8]) -> (u32, u32) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(EntitySlot::default());
            self.names.push(EntityNames::default());
            self.values.resize(self.places.len() * self.width, 0);
            self.present.resize(self.places.len() * self.words, 0);
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.is_used = true;
        place.declared = 0;
        place.seen = 0;
        let names = &mut self.names[index as usize];
        names.hash = None;
        names.set(key, label, group);
        (index, place.generation)
    }

    /// Returns the slot of an entity while it still has it.
    pub(super) fn slot_of(&self, index: u32, generation: u32) -> Option<usize> {
        let index = index as usize;
        let place = self.places.get(index)?;
        (place.is_used && place.generation == generation).then_some(index)
    }

    /// Returns the slot of a row's key; assigns one if it has none.
    fn place_of(&mut self, row: &EntityRow) -> usize {
        let key = row.key.as_bytes();
        let (label, group) = (row.label.as_bytes(), row.group.as_bytes());
        let mut hash = self.hasher.hash_one(key);
        while let Some(index) = self.by_hash.get(&hash) {
            let names = &mut self.names[*index as usize];
            if names.key() == key {
                if !names.is_called(label, group) {
                    names.set(key, label, group);
                    self.places[*index as usize].declared = 0;
                }
                return *index as usize;
            }
            hash = hash.wrapping_add(1);
        }
        let (index, _) = self.claim(key, label, group);
        self.names[index as usize].hash = Some(hash);
        self.by_hash.insert(hash, index);
        index as usize
    }

    /// Writes the changes of an entity.
    pub(super) fn entity(&mut self, into: &mut Vec<u8>, row: &EntityRow, sample: u64) {
        let index = self.place_of(row);
        self.sparse(into, index, &row.row, sample);
    }

    /// Writes the changes of the only entity of a table.
    pub(super) fn only(&mut self, into: &mut Vec<u8>, row: &Row, sample: u64) {
        if self.places.is_empty() {
            self.claim(b"", b"", b"");
        }
        self.sparse(into, 0, row, sample);
    }

    fn sparse(&mut self, into: &mut Vec<u8>, index: usize, row: &Row, sample: u64) {
        self.row_present.fill(0);
        for (signal, raw) in row.iter() {
            self.set(signal, raw);
        }
        // Taken out of `self`, which has the values to compare with.
        let values = std::mem::take(&mut self.row);
        let present = std::mem::take(&mut self.row_present);
        self.dense(into, index, &values, &present, sample);
        self.row = values;
        self.row_present = present;
    }

    /// Sets a reading; a signal of another kind of entity has no column and is skipped.
    fn set(&mut self, signal: SignalId, raw: u64) {
        let column = signal.index().wrapping_sub(self.first);
        if let Some(value) = self.row.get_mut(column) {
            *value = raw;
            self.row_present[column / 64] |= 1 << (column % 64);
        }
    }

    /// Writes the changes of the entity in a slot, from readings by column.
    pub(super) fn dense(
        &mut self,
        into: &mut Vec<u8>,
        index: usize,
        values: &[u64],
        present: &[u64],
        sample: u64,
    ) {
        self.widen(columns_in(present));
        let rows = index * self.width..(index + 1) * self.width;
        let words = index * self.words..(index + 1) * self.words;
        let place = &mut self.places[index];
        place.seen = sample;
        let operation = if place.declared != self.block {
            place.declared = self.block;
            self.values[rows.clone()].fill(0);
            self.present[words.clone()].fill(0);
            Operation::Declare
        } else if self.present[words.clone()] != *present {
            Operation::Presence
        } else if self.is_partial || differ(&self.values[rows.clone()], values, present) {
            Operation::Change
        } else {
            return;
        };
        self.operate(into, index, operation);
        if operation == Operation::Declare {
            into.extend_from_slice(&self.names[index].encoded);
        }
        if operation != Operation::Change {
            for (old, new) in self.present[words].iter_mut().zip(present) {
                put_bits(into, *old ^ new);
                *old = *new;
            }
        }
        put_changes(into, &mut self.values[rows], values, present);
    }

    /// Makes room for a column that is read for the first time.
    fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let mut wider = vec![0; self.places.len() * width];
        if self.width > 0 {
            let rows = wider.chunks_exact_mut(width).zip(self.values.chunks_exact(self.width));
            rows.for_each(|(wide, row)| wide[..self.width].copy_from_slice(row));
        }
        self.values = wider;
        self.width = width;
    }
}

/// Returns how many columns there are up to the last present one.
#[inline]
fn columns_in(present: &[u64]) -> usize {
    let last = present.iter().rposition(|word| *word != 0);
    last.map_or(0, |word| 64 * (word + 1) - present[word].leading_zeros() as usize)
}

/// Whether any present reading differs.
#[inline]
fn differ(old: &[u64], new: &[u64], present: &[u64]) -> bool {
    let chunks = old.chunks(64).zip(new.chunks(64)).zip(present);
    chunks.into_iter().any(|((old, new), present)| changed(old, new) & present != 0)
}

/// Returns which of up to 64 readings differ.
#[inline]
fn changed(old: &[u64], new: &[u64]) -> u64 {
    let mut mask = 0;
    // Eight at a time: usually nothing differs, and finding that out needs no branch for each reading.
    for (i, (old, new)) in old.chunks(8).zip(new.chunks(8)).enumerate() {
        let pairs = || old.iter().zip(new);
        if pairs().fold(0, |any, (a, b)| any | (a ^ b)) != 0 {
            let bits = pairs().enumerate();
            mask |= bits.fold(0, |bits, (bit, (a, b))| bits | u64::from(a != b) << bit) << (8 * i);
        }
    }
    mask
}

/// Writes which readings differ and by how much, and stores the new ones. No present reading is beyond the end of `old`.
fn put_changes(into: &mut Vec<u8>, mut old: &mut [u64], new: &[u64], present: &[u64]) {
    for (new, present) in new.chunks(64).zip(present) {
        let (known, rest) = old.split_at_mut(old.len().min(64));
        let mask = changed(known, new) & present;
        put_bits(into, mask);
        for column in ones(mask) {
            put_step(into, known[column], new[column]);
            known[column] = new[column];
        }
        old = rest;
    }
}
