//! The disk thread: writes full buffers to the head, syncs them, begins the next file when one ends, has it sealed, and
//! drops what is too old. After any error it reports the state of the disk and tries again.

mod disk_space;
mod last_end;
mod log;
mod sealer;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;
use std::{io, thread};

use rustix::io::Errno;
use timeline::{Facts, Stamp, with_causes};
use units::{Bytes, Span};

use crate::directory::lock::Lock;
use crate::directory::pinned::PinnedDirectory;
use crate::directory::{RecordingDirectory, retention};
use crate::writer::state::{DiskState, Shared};
use crate::{StoreError, facts, head};
use disk_space::DiskSpace;
use log::Log;
use sealer::Sealer;

pub use last_end::Cut;

/// Frames to be written to disk.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) samples: u64,
    /// Offset of the first complete sample, and the number of samples before it.
    pub(crate) key: Option<(usize, u64)>,
    /// The clocks of the last sample.
    pub(crate) last: Option<Stamp>,
    /// Whether the file ends with them.
    pub(crate) ends_file: bool,
}

/// A message to the disk thread.
#[derive(Debug)]
pub(crate) enum DiskWork {
    /// Frames to be written; the emptied buffer is returned.
    Batch(Batch),
    /// Facts, of which new ones are written.
    Facts(Stamp, Box<Facts>),
    /// The end of all messages.
    Close,
}

/// The pause before a failed write is tried again.
const PAUSE: Duration = Duration::from_secs(2);

/// How long closing waits for the last head file to be sealed: a service manager kills the process after a while.
const LAST_SEAL: Duration = Duration::from_millis(800);

/// The state of the disk thread.
#[derive(Debug)]
pub(crate) struct DiskWriter {
    place: RecordingDirectory,
    keep: Span,
    keep_size: Bytes,
    shared: Arc<Shared>,
    lock: Option<Lock>,
    log: Option<Log>,
    sealer: Sealer,
    /// The last facts that were written, and when they were read.
    facts: Option<(Stamp, Box<Facts>)>,
    /// Those that could not be written.
    unwritten: Option<(Stamp, Box<Facts>)>,
    /// How the previous recorder ended, if not cleanly.
    pub(crate) before: Option<Cut>,
    /// When the previous file ended.
    rotated: Option<Stamp>,
    room: DiskSpace,
    given_up: Option<String>,
}

impl DiskWriter {
    /// Begins a file in a directory that is locked. Where its disk is full, and the writer does not wait for disks, the
    /// thread begins it with the first frames: until then they wait in memory as they do when a disk becomes full later.
    pub(crate) fn begin(
        place: RecordingDirectory,
        lock: Lock,
        options: &crate::WriterOptions,
        shared: Arc<Shared>,
    ) -> Result<Self, StoreError> {
        let mut disk = Self {
            sealer: Sealer::new(options.sealer.clone()),
            place,
            keep: options.keep,
            keep_size: options.keep_size,
            shared,
            lock: Some(lock),
            log: None,
            facts: None,
            unwritten: None,
            before: None,
            rotated: None,
            room: DiskSpace::default(),
            given_up: None,
        };
        let heads = head::directory_of(disk.place.pinned.name());
        disk.before = last_end::cut(disk.place.path());
        let begun = disk.place.clear_empty_head().and_then(|()| disk.begin_log());
        match begun {
            Err(error) if is_full(&error) && !options.patient => {
                disk.report_state(&error);
            }
            Err(error) => return Err(StoreError::io("write to", &heads, error)),
            Ok(()) => {}
        }
        Ok(disk)
    }

    fn begin_log(&mut self) -> io::Result<()> {
        let sequence = self.place.next_sequence()?;
        let log = Log::create(self.place.path(), sequence)?;
        self.shared.sequence.store(sequence, Relaxed);
        self.log = Some(log);
        Ok(())
    }

    /// Works until the channel is closed. Returns an error if not everything was written.
    pub(crate) fn run(
        mut self,
        work: &Receiver<DiskWork>,
        empty: &SyncSender<Vec<u8>>,
    ) -> Option<String> {
        // Head files of a killed recorder.
        self.seal();
        while let Ok(work) = work.recv() {
            match work {
                DiskWork::Batch(batch) => self.batch(batch, empty),
                DiskWork::Facts(stamp, facts) => self.keep_facts(stamp, facts),
                DiskWork::Close => break,
            }
            if let Some(failure) = self.sealer.poll(&self.place.pinned) {
                self.shared.note_error(failure);
            }
        }
        self.finish();
        self.given_up
    }

    /// Seals the last file as well, unless the disk cannot be written.
    fn finish(&mut self) {
        if self.given_up.is_some() {
            return;
        }
        self.log = None;
        // While a recording is locked, its last head file is not sealed.
        self.lock = None;
        if let Some(failure) = self.sealer.finish(&self.place.pinned, LAST_SEAL) {
            self.shared.note_error(failure);
        }
    }

    fn batch(&mut self, mut batch: Batch, empty: &SyncSender<Vec<u8>>) {
        let written = self.save(&batch);
        self.shared.written.fetch_add(written, Relaxed);
        self.shared.lost.fetch_add(batch.samples - written, Relaxed);
        self.shared.flushing.store(0, Relaxed);
        batch.bytes.clear();
        // Returned first, as sealing takes long.
        let _ = empty.send(batch.bytes);
        self.note_moves();
        if written > 0
            && let Some((stamp, facts)) = self.unwritten.take()
        {
            self.keep_facts(stamp, facts);
        }
        if batch.ends_file {
            self.rotate(batch.last);
        }
    }

    /// Notes that the directory has another name now.
    fn note_moves(&self) {
        let pinned = &self.place.pinned;
        let to = pinned.moved_to().filter(|_| pinned.is_there());
        if self.shared.moved(to.clone())
            && let Some(to) = to
        {
            self.shared.note_error(format!(
                "{} is no longer the directory that is recorded into: that is now {}",
                pinned.name().display(),
                to.display()
            ));
        }
    }

    /// Writes until it succeeds, or fails after the writer has ended. Returns how many samples were written.
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
            if self.dropped_oldest(&error) {
                continue;
            }
            if std::mem::replace(&mut may_be_back, false) && self.is_back(&error) {
                continue;
            }
            let problem = self.report_state(&error);
            if is_last_try {
                self.given_up = Some(problem);
                return 0;
            }
            may_be_back = true;
            if !self.shared.closing.load(Relaxed) {
                thread::park_timeout(PAUSE);
            }
        }
    }

    /// Reports an error as the state of the disk. Returns it in words.
    fn report_state(&self, error: &io::Error) -> String {
        let pinned = &self.place.pinned;
        let problem = format!("cannot write to {}: {error}", pinned.name().display());
        self.shared.disk_is(&state_of(error, pinned), problem.clone());
        problem
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
        // The sampler did not know that a new file begins: samples that depend on another file are useless.
        let (from, before) = batch.key.unwrap_or((batch.bytes.len(), batch.samples));
        log.append(&batch.bytes[from..])?;
        log.has_key = batch.key.is_some();
        Ok(batch.samples - before)
    }

    /// Drops the oldest part of the recording from a full disk, and reports it.
    fn dropped_oldest(&mut self, error: &io::Error) -> bool {
        let is_made = is_full(error) && self.room.make(self.place.path(), self.keep_size);
        if is_made {
            let dropped = self.shared.dropped.fetch_add(1, Relaxed) + 1;
            let parts = match dropped {
                1 => "the oldest part was".to_owned(),
                many => format!("the oldest {many} parts were"),
            };
            self.shared.note_error(format!(
                "the disk of {} was full: so far {parts} dropped for it",
                self.place.pinned.name().display()
            ));
        }
        is_made
    }

    /// Whether recording can go on: only the head file was removed, or the removed directory was made again.
    fn is_back(&mut self, error: &io::Error) -> bool {
        if !is_gone(error) {
            return false;
        }
        match self.take_again() {
            Ok(()) => true,
            // Still absent, as was reported.
            Err(StoreError::Io { doing: "open", .. }) => false,
            Err(error) => {
                self.shared.note_error(with_causes(&error));
                false
            }
        }
    }

    /// Takes the directory again if it exists, else the one that took its place.
    fn take_again(&mut self) -> Result<(), StoreError> {
        let is_there = self.place.pinned.is_there();
        let pinned =
            if is_there { self.place.pinned.clone() } else { self.place.pinned.open_again()? };
        // Our own lock on the file that was removed says nothing any more.
        self.lock = None;
        let place = RecordingDirectory { pinned, ..self.place.clone() };
        self.lock = Some(place.take()?);
        self.place = place;
        self.log = None;
        self.shared.begin_anew.store(true, Relaxed);
        let name = self.place.pinned.name().display();
        if is_there {
            self.shared.note_error(format!(
                "the head file of {name} was removed; recording continues in a new one"
            ));
        } else {
            self.shared.note_error(format!(
                "{name} was removed; recording continues in the directory that took its place"
            ));
            self.shared.place_is(self.place.pinned.clone());
            if let Some((stamp, facts)) = self.facts.take() {
                self.keep_facts(stamp, facts);
            }
        }
        Ok(())
    }

    /// Begins the next file, has the last one sealed and drops what is too old.
    fn rotate(&mut self, last: Option<Stamp>) {
        self.log = None;
        // After a failure the next frames try again.
        if let Err(error) = self.begin_log() {
            self.shared.note_error(error.to_string());
        }
        self.seal();
        self.retain(last);
    }

    fn seal(&mut self) {
        if let Some(failure) = self.sealer.start(&self.place.pinned) {
            self.shared.note_error(failure);
        }
    }

    /// Drops old parts. A clock that was wrong for less than a segment must not make everything too old, so the earlier
    /// of the last two times counts, and nothing is dropped for its age at the first time.
    fn retain(&mut self, last: Option<Stamp>) {
        let before = std::mem::replace(&mut self.rotated, last);
        let walls = before.and_then(|before| before.wall).zip(last.and_then(|last| last.wall));
        let now = Stamp {
            wall: walls.map(|(before, wall)| before.min(wall)),
            ..last.unwrap_or_default()
        };
        let keep = self.keep;
        if let Err(error) = retention::enforce(self.place.path(), keep, self.keep_size, now) {
            let error = self.place.pinned.named(error);
            self.shared.note_error(with_causes(&error));
        }
    }

    /// Writes facts; after a failure they are written when samples are, or with the next ones.
    fn keep_facts(&mut self, stamp: Stamp, facts: Box<Facts>) {
        let before = self.facts.as_ref().map(|(_, facts)| &**facts);
        match facts::append(self.place.path(), stamp, &facts, before) {
            Ok(_) => {
                self.facts = Some((stamp, facts));
                self.unwritten = None;
            }
            Err(error) => {
                let error = self.place.pinned.named(error);
                self.shared.note_error(with_causes(&error));
                self.unwritten = Some((stamp, facts));
            }
        }
        self.shared.facts_pending.store(false, Relaxed);
    }
}

fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.iter().any(|errno| Errno::from_io_error(error) == Some(*errno))
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::STALE];
    error.kind() == io::ErrorKind::NotFound
        || gone.iter().any(|errno| Errno::from_io_error(error) == Some(*errno))
}

fn state_of(error: &io::Error, pinned: &PinnedDirectory) -> DiskState {
    if is_full(error) {
        DiskState::Full
    } else if Errno::from_io_error(error) == Some(Errno::ROFS) {
        DiskState::ReadOnly
    } else if !pinned.is_there() {
        DiskState::Vanished
    } else {
        DiskState::Failed(error.to_string())
    }
}
