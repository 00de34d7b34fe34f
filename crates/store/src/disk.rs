//! The disk thread: writes full buffers to the head, syncs them, begins the next file when one ends, has it sealed, and
//! drops what is too old. Whatever the disk does, it tries again, and says meanwhile what is wrong.

mod before;
mod log;
mod room;
mod sealer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;
use std::{io, thread};

use rustix::io::Errno;
use timeline::{Facts, Stamp};
use units::{Bytes, Span, WallClock};

use crate::lock::Lock;
use crate::place::{self, Place};
use crate::state::{DiskState, Shared};
use crate::{StoreError, facts, head, retention};
use log::Log;
use room::Room;
use sealer::Sealer;

pub use before::Cut;

/// Frames on their way to the disk.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    /// How many samples they are.
    pub(crate) samples: u64,
    /// Where the first of them begins that stands by itself, and how many are before it.
    pub(crate) key: Option<(usize, u64)>,
    /// When the last was taken.
    pub(crate) wall: Option<WallClock>,
    /// Whether the file ends with them.
    pub(crate) ends_file: bool,
}

/// What the disk thread is given.
#[derive(Debug)]
pub(crate) enum Work {
    /// To be written; the emptied buffer is given back.
    Batch(Batch),
    /// To be kept as far as they are new.
    Facts(Stamp, Box<Facts>),
    /// There is no more.
    Close,
}

/// How long to wait before a disk that refused is asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// How long the end waits for the last head file to be sealed: whoever told us to end, ends us after a while.
const LAST_SEAL: Duration = Duration::from_millis(800);

/// The disk thread's own.
#[derive(Debug)]
pub(crate) struct Disk {
    place: Place,
    keep: Span,
    keep_size: Bytes,
    shared: Arc<Shared>,
    lock: Option<Lock>,
    log: Option<Log>,
    sealer: Sealer,
    facts: Option<Box<Facts>>,
    /// How the recorder before ended, if it was not in good order.
    pub(crate) before: Option<Cut>,
    /// When the file before ended.
    rotated: Option<WallClock>,
    room: Room,
    given_up: Option<String>,
}

impl Disk {
    /// Begins a file in a place that is locked.
    pub(crate) fn begin(
        place: Place,
        lock: Lock,
        options: &crate::Options,
        shared: Arc<Shared>,
    ) -> Result<Self, StoreError> {
        let mut disk = Self {
            sealer: Sealer::new(options.sealer.clone(), place.directory.clone()),
            place,
            keep: options.keep,
            keep_size: options.keep_size,
            shared,
            lock: Some(lock),
            log: None,
            facts: None,
            before: None,
            rotated: None,
            room: Room::default(),
            given_up: None,
        };
        let heads = head::directory_of(&disk.place.directory);
        let begun = disk.place.clear_empty_head().and_then(|()| {
            disk.before = before::cut(&disk.place.directory);
            disk.begin_log()
        });
        begun.map_err(|error| StoreError::io("write to", &heads, &error))?;
        Ok(disk)
    }

    fn begin_log(&mut self) -> io::Result<()> {
        let sequence = self.place.next_sequence()?;
        let log = Log::create(&self.place.directory, sequence)?;
        self.shared.sequence.store(sequence, Relaxed);
        self.log = Some(log);
        Ok(())
    }

    /// Works until there is no more. Gives what could not be done, in words.
    pub(crate) fn run(
        mut self,
        work: &Receiver<Work>,
        empty: &SyncSender<Vec<u8>>,
    ) -> Option<String> {
        // What a recorder left that was killed.
        self.seal();
        while let Ok(work) = work.recv() {
            match work {
                Work::Batch(batch) => self.batch(batch, empty),
                Work::Facts(stamp, facts) => self.keep_facts(stamp, facts),
                Work::Close => break,
            }
            if let Some(failure) = self.sealer.look() {
                self.shared.note_error(failure);
            }
        }
        self.finish();
        self.given_up
    }

    /// What was recorded last is sealed as well, unless the disk does not take it.
    fn finish(&mut self) {
        if self.given_up.is_some() {
            return;
        }
        self.log = None;
        // The last head file of a recording that is written to is left alone.
        self.lock = None;
        if let Some(failure) = self.sealer.finish(LAST_SEAL) {
            self.shared.note_error(failure);
        }
    }

    fn batch(&mut self, mut batch: Batch, empty: &SyncSender<Vec<u8>>) {
        let written = self.save(&batch);
        self.shared.written.fetch_add(written, Relaxed);
        self.shared.lost.fetch_add(batch.samples - written, Relaxed);
        self.shared.flushing.store(0, Relaxed);
        batch.bytes.clear();
        // Given back first: sealing takes its time.
        let _ = empty.send(batch.bytes);
        if batch.ends_file {
            self.rotate(batch.wall);
        }
    }

    /// Writes until it is done, or the writer ends and the disk does not take it. Gives how many samples were written.
    fn save(&mut self, batch: &Batch) -> u64 {
        let mut may_be_back = true;
        loop {
            let is_last_try = self.shared.closing.load(Relaxed);
            let error = match self.attempt(batch) {
                Ok(samples) => {
                    self.shared.disk_is_well();
                    return samples;
                }
                Err(error) => error,
            };
            if self.has_made_room(&error) {
                continue;
            }
            if std::mem::replace(&mut may_be_back, false) && self.is_back(&error) {
                continue;
            }
            let told = format!(
                "cannot write to {}: {error}",
                self.place.directory.display()
            );
            self.shared
                .disk_is(&state_of(&error, &self.place.directory), told.clone());
            if is_last_try {
                self.given_up = Some(told);
                return 0;
            }
            may_be_back = true;
            if !self.shared.closing.load(Relaxed) {
                thread::park_timeout(PAUSE);
            }
        }
    }

    fn attempt(&mut self, batch: &Batch) -> io::Result<u64> {
        if self.log.is_none() {
            self.begin_log()?;
        }
        let Some(log) = &mut self.log else {
            return Ok(0);
        };
        if log.has_key {
            log.append(&batch.bytes)?;
            return Ok(batch.samples);
        }
        // A new file, where the sampler did not know that it would be one: what builds on another file is of no use.
        let (from, before) = batch.key.unwrap_or((batch.bytes.len(), batch.samples));
        log.append(&batch.bytes[from..])?;
        log.has_key = batch.key.is_some();
        Ok(batch.samples - before)
    }

    /// Drops the oldest part of the recording for a disk that is full, and says so.
    fn has_made_room(&mut self, error: &io::Error) -> bool {
        let directory = &self.place.directory;
        let is_made = is_full(error) && self.room.make(directory, self.keep_size);
        if is_made {
            let dropped = self.shared.dropped.fetch_add(1, Relaxed) + 1;
            let parts = match dropped {
                1 => "the oldest part was".to_owned(),
                many => format!("the oldest {many} parts were"),
            };
            self.shared.note_error(format!(
                "the disk of {} was full: so far {parts} dropped for it",
                directory.display()
            ));
        }
        is_made
    }

    /// Whether the directory is there and only the file was taken away, or both were and the directory is back.
    fn is_back(&mut self, error: &io::Error) -> bool {
        if !is_gone(error) || !place::is_there(&self.place.directory) {
            return false;
        }
        // Our own lock of what was there before would be in the way.
        self.lock = None;
        match self.place.take() {
            Ok(lock) => {
                self.lock = Some(lock);
                self.log = None;
                self.shared.begin_anew.store(true, Relaxed);
                self.shared.note_error(format!(
                    "the head of {} was taken away; recording goes on in a new one",
                    self.place.directory.display()
                ));
                true
            }
            Err(error) => {
                self.shared.note_error(error.to_string());
                false
            }
        }
    }

    /// Begins the next file, has the last one sealed and drops what is too old.
    fn rotate(&mut self, wall: Option<WallClock>) {
        self.log = None;
        // Where that fails it is tried again with the next frames.
        if let Err(error) = self.begin_log() {
            self.shared.note_error(error.to_string());
        }
        self.seal();
        self.retain(wall);
    }

    fn seal(&mut self) {
        if let Some(failure) = self.sealer.start() {
            self.shared.note_error(failure);
        }
    }

    /// A clock that was wrong for less than a segment must not make everything too old: the earlier time of two counts, and
    /// at the first nothing is dropped for its age.
    fn retain(&mut self, wall: Option<WallClock>) {
        let before = std::mem::replace(&mut self.rotated, wall);
        let now = before.zip(wall).map(|(before, wall)| before.min(wall));
        let keep = now.map_or(Span::from_nanos(u64::MAX), |_| self.keep);
        let now = now.unwrap_or(WallClock::from_unix_nanos(0));
        if let Err(error) = retention::enforce(&self.place.directory, keep, self.keep_size, now) {
            self.shared.note_error(error.to_string());
        }
    }

    /// Facts that could not be kept come again with the next.
    fn keep_facts(&mut self, stamp: Stamp, facts: Box<Facts>) {
        match facts::append(&self.place.directory, stamp, &facts, self.facts.as_deref()) {
            Ok(_) => self.facts = Some(facts),
            Err(error) => self.shared.note_error(error.to_string()),
        }
        self.shared.facts_on_their_way.store(false, Relaxed);
    }
}

fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.iter()
        .any(|errno| Errno::from_io_error(error) == Some(*errno))
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::STALE];
    error.kind() == io::ErrorKind::NotFound
        || gone
            .iter()
            .any(|errno| Errno::from_io_error(error) == Some(*errno))
}

fn state_of(error: &io::Error, directory: &Path) -> DiskState {
    if is_full(error) {
        DiskState::Full
    } else if Errno::from_io_error(error) == Some(Errno::ROFS) {
        DiskState::ReadOnly
    } else if !place::is_there(directory) {
        DiskState::Vanished
    } else {
        DiskState::Failed(error.to_string())
    }
}
