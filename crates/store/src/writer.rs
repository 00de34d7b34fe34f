//! The only writer of recordings: samples become frames of the head; a full head is sealed.

pub(crate) mod disk;
pub(crate) mod state;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use timeline::{Absence, Event, EventKind, Facts, ProcessCells, Sample, Stamp};
use units::{Bytes, Span};

use crate::StoreError;
use crate::directory::RecordingDirectory;
use crate::directory::identity::HostIdentity;
use crate::directory::pinned::PinnedDirectory;
use crate::head::{self, Encoder, put_absent, put_end, put_event};
use disk::{Batch, Cut, DiskWork, DiskWriter};
use state::{Shared, WriterState};

/// Settings of a writer: interval, sync, retention.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The longest time that the recording covers.
    pub keep: Span,
    /// The largest size of the recording.
    pub keep_size: Bytes,
    /// The longest time of samples that a power failure may lose.
    pub sync_every: Span,
    /// The duration of a head file, and so of a segment.
    pub segment: Span,
    /// The nominal interval of samples; stored for readers.
    pub every: Span,
    /// The command that seals head files, started as `sealer… DIRECTORY`; it inherits the recorder's priority and must
    /// lower it. `None`: the disk thread seals.
    pub sealer: Option<Vec<OsString>>,
    /// Whether to wait for the disk instead of losing samples: for sources that can wait, such as a file that is
    /// converted to a recording.
    pub patient: bool,
}

impl Default for WriterOptions {
    /// Returns 14 days, 2 GiB, a sample a second, synced every 5 s, an hour per segment, sealed in place.
    fn default() -> Self {
        Self {
            keep: Span::from_hours(14 * 24),
            keep_size: Bytes::from_gib(2),
            sync_every: Span::from_secs(5),
            segment: Span::from_hours(1),
            every: Span::from_secs(1),
            sealer: None,
            patient: false,
        }
    }
}

/// A process known to the writer; valid until the process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub(crate) index: u32,
    /// Distinguishes it from an earlier process in the same slot.
    pub(crate) generation: u32,
}

/// Shows other threads the state of a writer.
#[derive(Debug, Clone)]
pub struct Monitor {
    shared: Arc<Shared>,
}

impl Monitor {
    /// Returns the state of the writer.
    pub fn state(&self) -> WriterState {
        self.shared.state()
    }

    /// Returns the directory that is written; it changes if it is removed and made again.
    pub fn directory(&self) -> PinnedDirectory {
        self.shared.pinned()
    }
}

/// A recording that is being written.
///
/// Samples are encoded into a buffer; every few seconds it is exchanged for another, which the disk thread has written
/// and synced meanwhile. If the disk is slower, the buffer fills up to its limit; then samples are lost, counted and
/// later reported by an event.
#[derive(Debug)]
pub struct Writer {
    options: WriterOptions,
    shared: Arc<Shared>,
    encoder: Encoder,
    pending: Batch,
    /// The boot clock at the first pending sample.
    pending_since: Option<Span>,
    /// The boot clock at the first sample of the file.
    file_since: Option<Span>,
    file_bytes: u64,
    is_sampling: bool,
    /// Time of the sample in progress, or of the last one.
    stamp: Stamp,
    /// Samples lost since the disk stopped accepting them: how many, and when the first.
    losing: Option<(u64, Stamp)>,
    events_lost: u64,
    /// How the previous recorder ended, until an event reports it.
    before: Option<Cut>,
    /// Parts dropped from a full disk, as last reported.
    dropped: u64,
    is_seal_wanted: bool,
    absent: Vec<(&'static str, Absence)>,
    facts: Option<Box<Facts>>,
    key: Vec<u8>,
    work: SyncSender<DiskWork>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<Option<String>>>,
}

/// Size of a buffer: minutes of a busy host with 2,000 processes. There are two; more would exceed a recorder's memory,
/// which is locked.
const BUFFER: usize = 3 << 19;
/// The part of a buffer that is reserved for events.
const FOR_EVENTS: usize = 64 << 10;

impl Writer {
    /// Opens a directory for recording and creates it if absent.
    ///
    /// # Errors
    /// Another writer has locked it, it is not a recording or is another host's, or it cannot be written.
    pub fn open(
        directory: &Path,
        identity: &HostIdentity,
        facts: &Facts,
        options: WriterOptions,
    ) -> Result<Self, StoreError> {
        let place = RecordingDirectory::make(directory, identity, options.every)?;
        let lock = place.take()?;
        let shared = Arc::new(Shared::new(place.pinned.clone()));
        let disk = DiskWriter::begin(place, lock, &options, Arc::clone(&shared))?;
        let before = disk.before;
        let (work, its_work) = sync_channel(8);
        let (its_empty, empty) = sync_channel(2);
        // Cannot block or fail: the channel has room for two.
        let _ = its_empty.try_send(Vec::with_capacity(BUFFER));
        let thread = std::thread::Builder::new()
            .name("memtide-disk".to_owned())
            .spawn(move || disk.run(&its_work, &its_empty))
            .map_err(|error| StoreError::io("write to", directory, error))?;
        Ok(Self {
            options,
            shared,
            encoder: Encoder::new(),
            pending: Batch { bytes: Vec::with_capacity(BUFFER), ..Batch::default() },
            pending_since: None,
            file_since: None,
            file_bytes: 0,
            is_sampling: false,
            stamp: Stamp::default(),
            losing: None,
            events_lost: 0,
            before,
            dropped: 0,
            is_seal_wanted: false,
            absent: Vec::new(),
            facts: Some(Box::new(facts.clone())),
            key: Vec::with_capacity(32),
            work,
            empty,
            thread: Some(thread),
        })
    }

    /// Begins a sample.
    pub fn begin(&mut self, stamp: Stamp) {
        self.stamp = stamp;
        if self.shared.begin_anew.swap(false, Relaxed) {
            self.begin_file();
        }
        if self.losing.is_some() && !self.hand_over(false) {
            // The buffer is full, so the sample is not encoded.
            self.is_sampling = false;
            self.lose();
            return;
        }
        self.is_sampling = true;
        self.encoder.begin(stamp);
    }

    /// Adds the host's readings, all rows of the sample's tables and its unknown fields. Rows of processes count only
    /// if processes are not added [one by one](Self::process).
    pub fn rows(&mut self, sample: &Sample) {
        if self.is_sampling {
            self.encoder.rows(sample);
        }
    }

    /// Begins reading processes in this sample: those that are not [added](Self::process) before its other rows, or its
    /// end, are gone.
    pub fn begin_processes(&mut self) {
        if self.is_sampling {
            self.encoder.begin_processes();
        }
    }

    /// Registers a process. Its name may be any bytes.
    pub fn declare(&mut self, pid: u32, start_ticks: u64, name: &[u8], service: &str) -> Slot {
        self.key.clear();
        // Writing to memory does not fail.
        let _ = write!(self.key, "{pid}@{start_ticks}");
        let (index, generation) = self.encoder.declare(&self.key, name, service.as_bytes());
        Slot { index, generation }
    }

    /// Adds a process's readings. Returns false if the slot no longer belongs to the process because an earlier sample
    /// lacked it: declare it again.
    pub fn process(&mut self, slot: Slot, cells: &ProcessCells) -> bool {
        if !self.is_sampling {
            return self.encoder.holds(slot.index, slot.generation);
        }
        self.encoder.process(slot.index, slot.generation, cells)
    }

    /// Ends a sample. Never waits for the disk, unless the writer is [patient](WriterOptions::patient).
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_sampling) {
            self.keep_sample();
        }
        if self.is_file_full() {
            self.is_seal_wanted = true;
        }
        if self.is_seal_wanted {
            self.end_file();
        } else if self.is_sync_due() {
            self.hand_over(false);
        }
        self.send_facts();
    }

    fn keep_sample(&mut self) {
        let len = self.encoder.end().len();
        let room = BUFFER - FOR_EVENTS;
        let is_too_much = |bytes: &Vec<u8>| !bytes.is_empty() && bytes.len() + len > room;
        if self.encoder.is_too_long() || is_too_much(&self.pending.bytes) && !self.hand_over(false)
        {
            self.lose();
            return;
        }
        if self.file_since.is_none() {
            self.begin_of_file();
        }
        self.report_previous_end();
        self.report_losses();
        self.report_dropped();
        self.report_place();
        self.append_sample();
    }

    fn append_sample(&mut self) {
        let bytes = &mut self.pending.bytes;
        if self.encoder.is_key() && self.pending.key.is_none() {
            self.pending.key = Some((bytes.len(), self.pending.samples));
        }
        let before = bytes.len();
        bytes.extend_from_slice(self.encoder.frame());
        if self.encoder.is_key() {
            self.encoder.put_unknown(bytes);
        }
        self.encoder.commit();
        self.file_bytes += (bytes.len() - before) as u64;
        self.pending.samples += 1;
        self.pending.last = Some(self.stamp);
        self.pending_since.get_or_insert(self.stamp.boot);
        self.shared.filling.store(bytes.len() as u64, Relaxed);
    }

    /// Writes the beginning of a file.
    fn begin_of_file(&mut self) {
        self.file_since = Some(self.stamp.boot);
        self.file_begins_here();
        for (file, why) in &self.absent {
            put_absent(&mut self.pending.bytes, file, why);
        }
    }

    /// Sets the file's start: its first sample is complete, and frames before that belong to the file too.
    fn file_begins_here(&mut self) {
        let here = (self.pending.bytes.len(), self.pending.samples);
        self.pending.key.get_or_insert(here);
    }

    fn lose(&mut self) {
        let (count, _) = self.losing.get_or_insert((0, self.stamp));
        *count += 1;
        self.shared.lose(self.stamp.wall);
        self.encoder.want_key();
    }

    /// Reports that the previous recorder was killed, which it could not report itself.
    fn report_previous_end(&mut self) {
        let Some(Cut { last }) = self.before.take() else {
            return;
        };
        // Only the boot clock cannot be set. It says nothing across a boot.
        let (what, lasted) = match self.stamp.is_of_boot_of(&last) {
            Some(true) => (
                "the previous recorder was killed",
                Some(self.stamp.boot.saturating_sub(last.boot)),
            ),
            Some(false) => ("the machine went down while it was recorded", self.since(last)),
            None => ("the previous recorder was killed or the machine went down", self.since(last)),
        };
        let lasted = lasted
            .map_or_else(String::new, |lasted| format!(": nothing was recorded for {lasted}"));
        self.add_event(self.stamp, EventKind::Gap, format!("{what}{lasted}"));
    }

    /// Returns the time since an earlier sample by the wall clock; `None` where that was set back.
    fn since(&self, last: Stamp) -> Option<Span> {
        let (last, now) = (last.wall?.unix_nanos(), self.stamp.wall?.unix_nanos());
        u64::try_from(now.checked_sub(last)?).ok().map(Span::from_nanos)
    }

    fn report_dropped(&mut self) {
        let dropped = self.shared.dropped.load(Relaxed);
        let text = match dropped - std::mem::replace(&mut self.dropped, dropped) {
            0 => return,
            1 => "the disk was full: the oldest part of the recording was dropped".to_owned(),
            n => format!("the disk was full: the oldest {n} parts of the recording were dropped"),
        };
        self.add_event(self.stamp, EventKind::SamplesLost, text);
    }

    /// Reports that the directory was renamed, or removed and made again.
    fn report_place(&mut self) {
        if self.shared.is_moved.swap(false, Relaxed) {
            match self.shared.moves() {
                Some((from, to)) if from == to => {}
                Some((from, to)) => {
                    let name = "the recording's directory";
                    self.event(&Event::of_change(self.stamp, name, &from, &to));
                }
                None => self.shared.is_moved.store(true, Relaxed),
            }
        }
        if self.shared.is_replaced.swap(false, Relaxed) {
            let text = "the recording's directory was removed; recording goes on in the one that \
                        took its place";
            self.add_event(self.stamp, EventKind::SamplesLost, text.to_owned());
        }
    }

    fn add_event(&mut self, stamp: Stamp, kind: EventKind, text: String) {
        self.event(&Event { stamp, kind, subject: String::new(), text, report: String::new() });
    }

    /// Returns who can rename or remove the recording's directory besides root and this user, in words.
    pub fn exposed(&self) -> Option<String> {
        self.shared.pinned().exposed().map(str::to_owned)
    }

    /// Returns how the previous recorder ended, if not cleanly; until the first sample reports it.
    pub fn before(&self) -> Option<Cut> {
        self.before
    }

    fn report_losses(&mut self) {
        let Some((count, first)) = self.losing.take() else {
            return;
        };
        self.shared.losing.store(false, Relaxed);
        let lasted = self.stamp.boot.saturating_sub(first.boot);
        let events = match std::mem::take(&mut self.events_lost) {
            0 => String::new(),
            events => format!(", nor {events} events"),
        };
        self.add_event(
            first,
            EventKind::SamplesLost,
            format!(
                "{count} samples within {lasted} were lost{events}: the disk could not be written"
            ),
        );
    }

    /// Whether pending samples would wait too long for the sample after this one.
    fn is_sync_due(&self) -> bool {
        let Some(since) = self.pending_since else {
            return false;
        };
        let next = self.stamp.boot.plus(self.options.every);
        // Half a buffer is enough for one write; a clock that was set back is ignored.
        next.saturating_sub(since) >= self.options.sync_every
            || self.stamp.boot < since
            || self.pending.bytes.len() > BUFFER / 2
    }

    fn is_file_full(&self) -> bool {
        let largest = head::full_bytes(self.options.keep_size);
        let lasted = |since: Span| self.stamp.boot.saturating_sub(since);
        self.file_bytes >= largest
            || self.file_since.is_some_and(|since| lasted(since) >= self.options.segment)
    }

    /// Hands pending frames to the disk thread; returns false if that is still busy with the previous ones.
    fn hand_over(&mut self, ends_file: bool) -> bool {
        let spare =
            if self.options.patient { self.empty.recv().ok() } else { self.empty.try_recv().ok() };
        let Some(spare) = spare else {
            return false;
        };
        let next = Batch { bytes: spare, ..Batch::default() };
        let mut batch = std::mem::replace(&mut self.pending, next);
        batch.ends_file = ends_file;
        self.shared.flushing.store(batch.bytes.len() as u64, Relaxed);
        self.shared.filling.store(0, Relaxed);
        self.pending_since = None;
        // The channel is never full: at most one batch, some facts and the end wait in it.
        let _ = self.work.try_send(DiskWork::Batch(batch));
        true
    }

    fn begin_file(&mut self) {
        self.encoder.begin_file();
        self.file_since = None;
        self.file_bytes = 0;
    }

    /// Ends the file as soon as the disk thread is free.
    fn end_file(&mut self) {
        if self.file_since.is_none() {
            self.is_seal_wanted = false;
            return;
        }
        let before = self.pending.bytes.len();
        put_end(&mut self.pending.bytes);
        if self.hand_over(true) {
            self.is_seal_wanted = false;
            self.begin_file();
        } else {
            self.pending.bytes.truncate(before);
        }
    }

    /// Stores an event.
    pub fn event(&mut self, event: &Event) {
        if self.file_since.is_none() {
            self.file_begins_here();
        }
        let bytes = &mut self.pending.bytes;
        let before = bytes.len();
        put_event(bytes, event);
        let is_too_much = before > 0 && bytes.len() > BUFFER;
        if is_too_much && !self.options.patient {
            bytes.truncate(before);
            self.events_lost += 1;
            return;
        }
        self.file_bytes += (self.pending.bytes.len() - before) as u64;
        self.file_since.get_or_insert(event.stamp.boot);
        self.pending_since.get_or_insert(event.stamp.boot);
    }

    /// Stores facts that are new or have changed.
    pub fn facts(&mut self, stamp: Stamp, facts: &Facts) {
        self.stamp = stamp;
        self.facts = Some(Box::new(facts.clone()));
        self.send_facts();
    }

    fn send_facts(&mut self) {
        if self.facts.is_none() || self.shared.facts_pending.swap(true, Relaxed) {
            return;
        }
        if let Some(facts) = self.facts.take() {
            let _ = self.work.try_send(DiskWork::Facts(self.stamp, facts));
        }
    }

    /// Stores which kernel files could not be read, and why.
    pub fn absent(&mut self, file: &'static str, why: &Absence) {
        match self.absent.iter_mut().find(|(known, _)| *known == file) {
            Some((_, known)) if known == why => return,
            Some((_, known)) => known.clone_from(why),
            None => self.absent.push((file, why.clone())),
        }
        if self.file_since.is_some() {
            put_absent(&mut self.pending.bytes, file, why);
        }
    }

    /// Ends the head now and seals it.
    pub fn seal(&mut self) {
        self.is_seal_wanted = true;
        if !self.is_sampling {
            self.end_file();
        }
    }

    /// Returns the state of the writer.
    pub fn state(&self) -> WriterState {
        self.shared.state()
    }

    /// Returns the number of samples lost so far; costs nothing.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// Returns a view of the writer's state for other threads.
    pub fn monitor(&self) -> Monitor {
        Monitor { shared: Arc::clone(&self.shared) }
    }

    /// Writes all pending frames and ends. A failed write is tried once more.
    ///
    /// # Errors
    /// Samples could not be written.
    pub fn close(mut self) -> Result<(), StoreError> {
        match self.finish() {
            None => Ok(()),
            Some(reason) => Err(StoreError::NotWritten { reason }),
        }
    }

    fn finish(&mut self) -> Option<String> {
        let thread = self.thread.take()?;
        self.end();
        self.shared.closing.store(true, Relaxed);
        thread.thread().unpark();
        // Even if everything is already with the disk thread: a file without an end counts as that of a killed
        // recorder.
        if self.file_since.is_some() || !self.pending.bytes.is_empty() {
            put_end(&mut self.pending.bytes);
            self.options.patient = true;
            self.hand_over(false);
        }
        let _ = self.work.send(DiskWork::Close);
        thread.join().unwrap_or_else(|_| Some("the disk thread failed".to_owned()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
