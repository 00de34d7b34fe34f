//! Encodes samples and related records as frames. Sixty samples are a block: the first is complete, each other one is
//! the difference to the previous sample.
//!
//! A sample's payload: in the first of a block [`MARK`], the checksum of the dictionary and the sample's number in the
//! file; then flags, the clocks, in the first of a block the number of the boot, and a section ([`super::table`]) for
//! each table that was read.

use timeline::{Absence, BootId, Entity, Event, ProcessCells, Sample, Stamp};

use super::bytes::{put, put_step, put_text};
use super::frame::{self, FrameKind, HEADER, MARK};
use super::table::HeadTableEncoder;
use super::unknown::UnknownFieldCache;

/// Samples in a block: the most that a damaged byte can cost.
pub(crate) const BLOCK: u64 = 60;

pub(super) const HAS_AWAKE: u8 = 1;
pub(super) const HAS_WALL: u8 = 2;
/// Only in complete samples and in events: the other samples of a block are of the same boot.
pub(super) const HAS_BOOT_ID: u8 = 4;

/// The clocks of the previous sample; zero before the first of a block. The offsets of the other clocks from the boot
/// clock hardly change.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeadClocks {
    pub(super) boot: u64,
    pub(super) step: u64,
    pub(super) awake: u64,
    pub(super) wall: u64,
}

/// Encodes samples as frames.
#[derive(Debug)]
pub(crate) struct Encoder {
    frame: Vec<u8>,
    processes_begun: bool,
    /// Whether the section of the processes is being written, at the end of the frame.
    processes_open: bool,
    host_taken: bool,
    tables: Vec<HeadTableEncoder>,
    unknown: UnknownFieldCache,
    dictionary: u32,
    clocks: HeadClocks,
    /// Blocks begun so far, in all files.
    block: u64,
    in_block: u64,
    /// Samples begun so far, in all files.
    sample: u64,
    /// Samples in this file.
    number: u64,
    key_wanted: bool,
    /// The boot of this block's samples.
    boot_id: Option<BootId>,
}

impl Encoder {
    /// Initial capacity: a frame of 2,000 processes fits without growing.
    const FRAME: usize = 256 << 10;

    pub(crate) fn new() -> Self {
        let mut tables: Vec<HeadTableEncoder> =
            Entity::ALL.into_iter().map(HeadTableEncoder::new).collect();
        tables[Entity::Process as usize].reserve(256);
        Self {
            frame: Vec::with_capacity(Self::FRAME),
            processes_begun: false,
            processes_open: false,
            host_taken: false,
            tables,
            unknown: UnknownFieldCache::default(),
            dictionary: super::dictionary::checksum_of_own(),
            clocks: HeadClocks::default(),
            block: 0,
            in_block: 0,
            sample: 0,
            number: 0,
            key_wanted: true,
            boot_id: None,
        }
    }

    /// Makes the next sample complete.
    pub(crate) fn want_key(&mut self) {
        self.key_wanted = true;
    }

    /// Makes the next sample the first of a file.
    pub(crate) fn begin_file(&mut self) {
        self.key_wanted = true;
        self.number = 0;
        self.unknown.forget_written();
    }

    /// Begins a sample.
    pub(crate) fn begin(&mut self, stamp: Stamp) {
        let is_other_boot = stamp.boot_id != self.boot_id;
        let is_key = self.key_wanted || self.in_block >= BLOCK || is_other_boot;
        self.boot_id = stamp.boot_id;
        self.frame.clear();
        self.processes_begun = false;
        self.processes_open = false;
        self.host_taken = false;
        self.sample += 1;
        let kind = if is_key { FrameKind::Key } else { FrameKind::Step };
        frame::begin(&mut self.frame, kind);
        if is_key {
            self.begin_block();
        }
        self.in_block += 1;
        self.clocks(stamp);
    }

    /// Confirms that the last sample's frame is in the file; the next one may depend on it.
    pub(crate) fn commit(&mut self) {
        self.number += 1;
    }

    fn begin_block(&mut self) {
        self.key_wanted = false;
        self.block += 1;
        self.in_block = 0;
        self.clocks = HeadClocks::default();
        self.frame.extend_from_slice(MARK);
        self.frame.extend_from_slice(&self.dictionary.to_le_bytes());
        put(&mut self.frame, self.number);
    }

    fn clocks(&mut self, stamp: Stamp) {
        let boot = stamp.boot.as_nanos();
        let awake = stamp.awake.map(|awake| boot.wrapping_sub(awake.as_nanos()));
        let wall = stamp.wall.map(|wall| wall.unix_nanos().cast_unsigned().wrapping_sub(boot));
        let boot_id = stamp.boot_id.filter(|_| self.is_key());
        self.frame.push(flags(&Stamp { boot_id, ..stamp }));
        let before = self.clocks;
        let step = boot.wrapping_sub(before.boot);
        put_step(&mut self.frame, before.step, step);
        for (old, new) in [(before.awake, awake), (before.wall, wall)] {
            if let Some(new) = new {
                put_step(&mut self.frame, old, new);
            }
        }
        put_boot_id(&mut self.frame, boot_id);
        self.clocks = HeadClocks {
            boot,
            step,
            awake: awake.unwrap_or(before.awake),
            wall: wall.unwrap_or(before.wall),
        };
    }

    /// Adds a sample's readings, rows and unknown fields, which ends its processes. Rows of processes are taken only if
    /// processes are not added one by one.
    pub(crate) fn rows(&mut self, sample: &Sample) {
        self.end_processes();
        if !sample.host.is_empty() {
            self.host(sample);
        }
        for entity in Entity::ALL {
            let taken = sample.table(entity);
            let rows = taken.rows();
            let is_host = entity == Entity::Host;
            if rows.is_empty() || is_host || (entity == Entity::Process && self.processes_begun) {
                continue;
            }
            let table = &mut self.tables[entity as usize];
            table.begin(&mut self.frame, self.block, taken.is_partial());
            for row in rows {
                table.entity(&mut self.frame, row, self.sample);
            }
            table.end(&mut self.frame, self.sample);
        }
        self.unknown.take(&sample.unknown);
    }

    fn host(&mut self, sample: &Sample) {
        self.host_taken = true;
        let table = &mut self.tables[Entity::Host as usize];
        table.begin(&mut self.frame, self.block, false);
        table.only(&mut self.frame, &sample.host, self.sample);
        table.end(&mut self.frame, self.sample);
    }

    pub(crate) fn begin_processes(&mut self) {
        if !self.processes_begun {
            (self.processes_begun, self.processes_open) = (true, true);
            self.tables[Entity::Process as usize].begin(&mut self.frame, self.block, false);
        }
    }

    fn end_processes(&mut self) {
        if std::mem::take(&mut self.processes_open) {
            self.tables[Entity::Process as usize].end(&mut self.frame, self.sample);
        }
    }

    /// Assigns a slot to a process: its index and generation.
    pub(crate) fn declare(&mut self, key: &[u8], name: &[u8], service: &[u8]) -> (u32, u32) {
        self.tables[Entity::Process as usize].claim(key, name, service)
    }

    /// Adds a process's readings; returns false if the slot is no longer its own.
    pub(crate) fn process(&mut self, index: u32, generation: u32, cells: &ProcessCells) -> bool {
        self.begin_processes();
        debug_assert!(self.processes_open, "all processes of a sample are added in one go");
        let table = &mut self.tables[Entity::Process as usize];
        let Some(index) = table.slot_of(index, generation) else {
            return false;
        };
        let present = [cells.present()];
        table.dense(&mut self.frame, index, cells.values(), &present, self.sample);
        true
    }

    /// Ends the sample and returns its frame.
    pub(crate) fn end(&mut self) -> &[u8] {
        self.end_processes();
        if !self.host_taken {
            self.host(&Sample::default());
        }
        frame::end(&mut self.frame, 0);
        &self.frame
    }

    /// Returns the last sample's frame.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Whether the last sample is complete.
    pub(crate) fn is_key(&self) -> bool {
        self.in_block == 1
    }

    /// Whether a slot still belongs to the process that it was assigned to.
    pub(crate) fn holds(&self, index: u32, generation: u32) -> bool {
        let table = &self.tables[Entity::Process as usize];
        table.slot_of(index, generation).is_some()
    }

    /// Whether the last sample's frame is longer than readers accept.
    pub(crate) fn is_too_long(&self) -> bool {
        self.frame.len() - HEADER > frame::FRAME_BYTES_MAX
    }

    /// Appends unknown fields that are new or have changed since they were last written.
    pub(crate) fn put_unknown(&mut self, into: &mut Vec<u8>) {
        self.unknown.put(into);
    }
}

/// Returns which clocks a stamp has, as bits.
fn flags(stamp: &Stamp) -> u8 {
    let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
    bit(stamp.awake.is_some(), HAS_AWAKE)
        | bit(stamp.wall.is_some(), HAS_WALL)
        | bit(stamp.boot_id.is_some(), HAS_BOOT_ID)
}

fn put_boot_id(into: &mut Vec<u8>, boot_id: Option<BootId>) {
    if let Some(boot_id) = boot_id {
        into.extend_from_slice(&boot_id.to_bytes());
    }
}

/// Appends an event.
pub(crate) fn put_event(into: &mut Vec<u8>, event: &Event) {
    let at = frame::begin(into, FrameKind::Event);
    let stamp = event.stamp;
    into.push(flags(&stamp));
    put(into, stamp.boot.as_nanos());
    if let Some(awake) = stamp.awake {
        put(into, awake.as_nanos());
    }
    if let Some(wall) = stamp.wall {
        put(into, wall.unix_nanos().cast_unsigned());
    }
    put_boot_id(into, stamp.boot_id);
    for text in [event.kind.name(), &event.subject, &event.text, &event.report] {
        put_text(into, text.as_bytes());
    }
    frame::end(into, at);
}

/// Appends a record that a kernel file could not be read.
pub(crate) fn put_absent(into: &mut Vec<u8>, file: &str, why: &Absence) {
    let at = frame::begin(into, FrameKind::Absent);
    put_text(into, file.as_bytes());
    let (code, text) = match why {
        Absence::NotFound => (0, ""),
        Absence::PermissionDenied => (1, ""),
        Absence::Failed(text) => (2, text.as_str()),
    };
    into.push(code);
    put_text(into, text.as_bytes());
    frame::end(into, at);
}

/// Appends a record that the file ended cleanly.
pub(crate) fn put_end(into: &mut Vec<u8>) {
    let at = frame::begin(into, FrameKind::End);
    frame::end(into, at);
}
