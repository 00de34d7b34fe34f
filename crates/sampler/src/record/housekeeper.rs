//! Work in parallel to sampling, on its own thread: the kernel log, the facts once a minute, the names of new cgroups, and
//! the status file.
//!
//! This thread may wait for a disk; the sampler never waits for it. Its messages go through a bounded queue, and
//! messages for which the queue has no room wait here.

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::JoinHandle;

use jiff::Timestamp;
use probe::kmsg::KMSG;
use probe::{ProcessFiles, Root, now};
use recorder_status::{
    AbsentFile, RecorderCost, RecorderDisk, RecorderHeaps, RecorderKernelLog, RecorderSamples,
    RecorderScans, RecorderSettings, RecorderStatus,
};
use rustix::event::{PollFd, PollFlags, poll};
use store::{DiskState, Monitor};
use timeline::signals::PROC_PSS;
use timeline::{Absence, EntityRow, Facts, Stamp};
use units::{Bytes, Micros, Ratio, Span, WallClock};

use crate::record::facts_watch::FactsWatch;
use crate::record::health::HeapsRead;
use crate::record::kernel_log::Watch;
use crate::record::names_watch::NamesWatch;
use crate::record::own_child::timespec;
use crate::record::{memory_lock, status};
use crate::{Figures, Health, Message};

/// The longest age of the status: writing it costs as much as a sample.
const STATUS_EVERY: Span = Span::from_secs(recorder_status::WRITTEN_EVERY_S);
/// The longest age of a status that lacks the latest position in the kernel log: what is read twice is reported twice.
const STATUS_AFTER_NEWS: Span = Span::from_secs(10);
/// How often to check for something new to show in the status.
const CHECK_EVERY: Span = Span::from_secs(5);
/// The status is written this soon after the disk began or ceased to refuse, after a finding came or went, and for the second
/// time: the user who started the recorder checks whether it works.
const STATUS_AT_FIRST: Span = Span::from_secs(2);
/// How often the facts and our own proportional share of memory are read: 0.5 ms each time.
const FACTS_EVERY: Span = Span::from_mins(1);
/// When memory is locked for the second time, after the start: the first samples and scans have been taken, and a status
/// has been written. 1 to 2 MiB of the program and its heap were needed for those only.
const LOCKED_AGAIN_AFTER: Span = Span::from_secs(32);
/// The pause after each read of the kernel log: a device that writes to it constantly must not keep us awake.
const LOG_PAUSE: Span = Span::from_millis(200);
/// At most 1,024 messages wait: a storm of kills for a minute while the sampler is stuck.
const WAITING_MAX: usize = 1024;
/// Bytes of stack; the deepest call parses a kernel report.
const STACK: usize = 512 << 10;

/// What the housekeeper needs to know of the recording for its status.
#[derive(Debug, Clone)]
pub struct RecordingState {
    /// The recorder's settings as the status shows them.
    pub settings: RecorderSettings,
    /// Version of memtide.
    pub memtide: String,
    /// The state of the disk.
    pub monitor: Monitor,
}

/// A running housekeeper; it ends when dropped.
#[derive(Debug)]
pub struct Housekeeper {
    thread: Option<JoinHandle<()>>,
    /// Closing it wakes the thread and ends it.
    alive: Option<PipeWriter>,
}

impl Housekeeper {
    /// Starts work on the host below `root` with these `facts`.
    ///
    /// # Errors
    /// The operating system's, if it cannot create a thread.
    pub fn start(
        root: &Root,
        facts: Facts,
        recording: RecordingState,
        health: Arc<Health>,
        outbox: SyncSender<Message>,
    ) -> std::io::Result<Self> {
        let (ending, alive) = std::io::pipe()?;
        let mut work = Work::new(root, facts, recording, health, outbox);
        let thread = std::thread::Builder::new()
            .name("memtide-events".to_owned())
            .stack_size(STACK)
            .spawn(move || work.run(&ending))?;
        Ok(Self { thread: Some(thread), alive: Some(alive) })
    }

    /// Ends the thread; its last status says that the recorder ended cleanly.
    pub fn stop(self) {}
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // It ends by itself; a panic in it is already on stderr.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Work {
    recording: RecordingState,
    health: Arc<Health>,
    outbox: SyncSender<Message>,
    waiting: VecDeque<Message>,
    facts: FactsWatch,
    names: NamesWatch,
    log: Watch,
    /// The position in the log up to which reports are certainly on disk, as of the previous status.
    log_safe: Option<u64>,
    /// The constant part of the status: who we are and since when.
    us: RecorderStatus,
    pss: Option<Bytes>,
    began: Span,
    facts_due: Span,
    /// When memory is to be locked again; `None` once it is.
    lock_due: Option<Span>,
    /// When the last status was written, and the state of the disk in it.
    status_at: Option<Span>,
    disk_reported: DiskState,
    /// How many findings had come and gone by then.
    changes_reported: u64,
}

impl Work {
    fn new(
        root: &Root,
        facts: Facts,
        recording: RecordingState,
        health: Arc<Health>,
        outbox: SyncSender<Message>,
    ) -> Self {
        let now = now();
        // We are a process of this machine, even if a directory of saved files is recorded.
        let machine = Root::default();
        let pid = std::process::id();
        let us = RecorderStatus {
            memtide: recording.memtide.clone(),
            boot_id: status::boot_id(&machine).unwrap_or_default(),
            pid,
            process: status::process(&machine, pid).unwrap_or_default(),
            started: now.wall.and_then(status::timestamp),
            started_boot_ns: Some(now.boot.as_nanos()),
            settings: recording.settings.clone(),
            ..RecorderStatus::default()
        };
        let directory = recording.monitor.directory();
        let before = status::read(directory.path()).filter(|status| status.boot_id == us.boot_id);
        let log_safe = before.and_then(|status| status.kernel_log.next);
        Self {
            facts: FactsWatch::new(root, facts),
            // The first scan of all cgroups is done by then.
            names: NamesWatch::new(root, &directory, now.boot.plus(STATUS_AT_FIRST)),
            log: Watch::open(root, log_safe),
            recording,
            health,
            outbox,
            waiting: VecDeque::new(),
            log_safe,
            us,
            pss: None,
            began: now.boot,
            // So that our own share of memory is also reported soon.
            facts_due: now.boot.plus(STATUS_AT_FIRST),
            lock_due: Some(now.boot.plus(LOCKED_AGAIN_AFTER)),
            status_at: None,
            disk_reported: DiskState::Ok,
            changes_reported: 0,
        }
    }

    fn run(&mut self, ending: &PipeReader) {
        if let Some(why) = self.log.absence() {
            self.queue(Message::Absent(KMSG, why.clone()));
        }
        self.log.read(now(), false);
        let mut log_at = Span::ZERO;
        loop {
            self.run_due(now());
            // Pauses after the log was read.
            let paused = log_at.plus(LOG_PAUSE).saturating_sub(now().boot);
            match self.wait(ending, paused) {
                Woken::End => break,
                Woken::Log => {
                    log_at = now().boot;
                    self.log.read(now(), true);
                }
                Woken::Time if paused > Span::ZERO => self.log.read(now(), false),
                Woken::Time => {}
            }
        }
        self.end();
    }

    /// Does what is due.
    fn run_due(&mut self, now: Stamp) {
        self.queue_reports(now, false);
        self.names.poll(now, &self.health, &self.recording.monitor.directory());
        if now.boot >= self.facts_due {
            self.facts_due = now.boot.plus(FACTS_EVERY);
            self.pss = own_share();
            if let Some((facts, events)) = self.facts.poll(now) {
                self.queue(Message::Facts(now, Box::new(facts)));
                for event in events {
                    self.queue(Message::Event(event));
                }
            }
        }
        self.send();
        if self.lock_due.is_some_and(|due| now.boot >= due) {
            self.lock_due = None;
            memory_lock::lock_memory();
        }
        if now.boot >= self.status_due() {
            self.status_at = Some(now.boot);
            self.disk_reported = self.recording.monitor.state().disk;
            self.changes_reported = self.health.finding_changes();
            let safe = std::mem::replace(&mut self.log_safe, self.log.resume_at());
            self.write_status(now, safe, false);
        }
    }

    /// Returns when the next status is due.
    fn status_due(&self) -> Span {
        let Some(last) = self.status_at else {
            return self.began;
        };
        let is_first = last < self.began.plus(STATUS_AT_FIRST);
        let is_news = self.disk_reported != self.recording.monitor.state().disk
            || self.changes_reported != self.health.finding_changes();
        let every = if is_first || is_news {
            STATUS_AT_FIRST
        } else if self.log_safe == self.log.resume_at() {
            STATUS_EVERY
        } else {
            STATUS_AFTER_NEWS
        };
        last.plus(every)
    }

    /// Sends the reports in the log so far, and writes the last status.
    fn end(&mut self) {
        let now = now();
        self.log.read(now, false);
        self.queue_reports(now, true);
        self.send();
        // The sampler is gone: the next recorder reads the log from here and reports what still waits.
        let next = if self.waiting.is_empty() { self.log.resume_at() } else { self.log_safe };
        // A recorder that started after our sampler ended has already written its own status.
        let theirs = status::read(self.recording.monitor.directory().path());
        if theirs.is_none_or(|status| status.process == self.us.process) {
            self.names.run(now, &self.health, &self.recording.monitor.directory());
            self.write_status(now, next, true);
        }
    }

    /// Waits until something is due, the log has new records, or the recording ends.
    fn wait(&self, ending: &PipeReader, paused: Span) -> Woken {
        let now = now().boot;
        let due = self.facts_due.min(self.status_due());
        let mut until = due.saturating_sub(now).min(CHECK_EVERY);
        if self.log.is_waiting() || !self.waiting.is_empty() {
            until = until.min(Span::from_secs(1));
        }
        if paused > Span::ZERO {
            until = until.min(paused);
        }
        let device = self.log.device().filter(|_| paused == Span::ZERO);
        let mut sources = vec![PollFd::new(ending, PollFlags::IN)];
        sources
            .extend(device.map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN)));
        // Interrupted by a signal, it just polls again.
        let _ = poll(&mut sources, Some(&timespec(until)));
        let ready = |index: usize| {
            let source = sources.get(index);
            source.is_some_and(|source| !source.revents().is_empty())
        };
        if ready(0) {
            Woken::End
        } else if ready(1) {
            Woken::Log
        } else {
            Woken::Time
        }
    }

    fn queue_reports(&mut self, now: Stamp, is_end: bool) {
        let (events, groups) = self.log.settled(now, is_end);
        for event in events {
            self.queue(Message::Event(event));
        }
        self.names.reported(groups);
    }

    fn queue(&mut self, message: Message) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(message);
        } else {
            self.health.message_dropped();
        }
    }

    /// Sends waiting messages until the queue is full.
    fn send(&mut self) {
        while let Some(message) = self.waiting.pop_front() {
            match self.outbox.try_send(message) {
                Ok(()) => {}
                Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                    self.waiting.push_front(message);
                    return;
                }
            }
        }
    }

    fn write_status(&self, now: Stamp, log_next: Option<u64>, has_ended: bool) {
        let figures = self.health.figures();
        let status = RecorderStatus {
            has_ended,
            written_boot_ns: Some(now.boot.as_nanos()),
            written: now.wall.and_then(status::timestamp),
            samples: samples(&figures, now),
            cost: cost(&figures, self.pss),
            seen: seen(&figures),
            tasks_source: self.health.tasks().map(|tasks| tasks.source.name().to_owned()),
            why_not_bpf: self.health.tasks().and_then(|tasks| tasks.why_not_bpf.clone()),
            heaps: self.health.heaps().map(|read| heaps(read, now)),
            checks: self.health.checks(),
            privileges: self.health.privileges().to_vec(),
            absent: self.absent(),
            disk: disk(&self.recording.monitor),
            kernel_log: RecorderKernelLog {
                problem: self.log.problem(),
                next: log_next,
                overwritten: self.log.overwritten(),
                reports: self.log.reports(),
            },
            events_lost: figures.messages_dropped,
            ..self.us.clone()
        };
        // If the disk is full or gone, the store's own state shows it; the write is tried again.
        let _ = status::write(&status, self.recording.monitor.directory().path());
    }

    fn absent(&self) -> Vec<AbsentFile> {
        let absent = self.health.absent();
        let log = self.log.absence().map(|why| (KMSG, why.clone()));
        let known = absent.iter().any(|(file, _)| *file == KMSG);
        let all = absent.into_iter().chain(log.filter(|_| !known));
        let absent = |(file, why): (&str, Absence)| AbsentFile {
            file: file.to_owned(),
            why: in_words(&why),
            is_denied: why == Absence::PermissionDenied,
        };
        all.map(absent).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    End,
    Log,
    Time,
}

/// Describes why a file is absent.
fn in_words(why: &Absence) -> String {
    match why {
        Absence::NotFound => "not there".to_owned(),
        Absence::PermissionDenied => "permission denied".to_owned(),
        Absence::Failed(why) => why.clone(),
    }
}

/// Returns our own proportional share of memory; `None` before 4.14.
fn own_share() -> Option<Bytes> {
    let text = Root::default().read("/proc/self/smaps_rollup").ok()?;
    let mut row = EntityRow::default();
    let mut files = ProcessFiles::default();
    files.parse(0, "smaps_rollup", &text, &mut row).ok()?;
    row.row.get(PROC_PSS)
}

/// Converts a time on the boot clock to the current wall clock; `None` if nothing has happened yet.
fn on_wall(boot: Span, now: Stamp) -> Option<Timestamp> {
    let wall = now.wall.filter(|_| boot > Span::ZERO)?;
    let ago = i64::try_from((now.boot - boot).as_nanos()).ok()?;
    status::timestamp(WallClock::from_unix_nanos(wall.unix_nanos().saturating_sub(ago)))
}

fn seconds(micros: Micros) -> f64 {
    micros.to_span().as_secs_f64()
}

fn samples(figures: &Figures, now: Stamp) -> RecorderSamples {
    RecorderSamples {
        taken: figures.samples,
        missed: figures.missed,
        late: figures.late_samples,
        lost: figures.lost,
        last: on_wall(figures.last_sample, now),
        last_late_s: seconds(figures.last_late),
        worst_late_s: seconds(figures.worst_late),
        worst_late: on_wall(figures.worst_late_at, now),
    }
}

fn cost(figures: &Figures, pss: Option<Bytes>) -> RecorderCost {
    let each = figures.cpu_per_sample();
    RecorderCost {
        cpu_s: seconds(figures.own_cpu),
        cpu_start_s: each.map(|_| seconds(figures.start_cpu)),
        cpu_s_per_sample: each.map(Span::as_secs_f64),
        cpu_share: figures.cpu_share().map(Ratio::get),
        rss_bytes: figures.own_rss.get(),
        pss_bytes: pss.map(Bytes::get),
    }
}

fn seen(figures: &Figures) -> RecorderScans {
    RecorderScans {
        processes: figures.processes,
        processes_left_out: figures.processes_left_out,
        cgroups: figures.groups,
        cgroups_left_out: figures.cgroups_left_out,
        cgroups_every_s: Some(figures.cgroups_every)
            .filter(|every| *every > Span::ZERO)
            .map(Span::as_secs_f64),
        services: figures.services,
        shares_read: figures.shares_read,
        shares_waiting: figures.shares_waiting,
        blocked: figures.blocked,
    }
}

fn heaps(read: HeapsRead, now: Stamp) -> RecorderHeaps {
    RecorderHeaps {
        processes: u64::try_from(read.processes).unwrap_or(u64::MAX),
        rounds: read.rounds,
        cpu_s: read.cpu_s,
        every_s: Some(read.every.as_secs_f64()),
        last: on_wall(read.last, now),
        problems: read.problems,
    }
}

fn disk(monitor: &Monitor) -> RecorderDisk {
    let state = monitor.state();
    RecorderDisk {
        problem: (state.disk != DiskState::Ok).then(|| state.disk.to_string()),
        parts_dropped: state.parts_dropped,
        samples_written: state.samples_written,
        lost_since: state.lost_since.and_then(status::timestamp),
        waiting_bytes: state.waiting.get(),
        last_error: state.last_error,
    }
}
