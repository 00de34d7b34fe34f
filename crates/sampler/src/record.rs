//! The recording loop: a sample on each beat, the host's files first and at one moment, then cgroups and processes at
//! their own intervals. Everything goes to the store; messages of other threads follow between two samples.
//!
//! Cost of a sample, measured on 6.18 with 2 CPUs that others keep busy: 0.3 ms of CPU for the host alone, of which the
//! disk and the housekeeper take 0.05; with all processes by BPF 0.8 ms where there are some 130, 1.4 with 600, 3.6
//! with 2,100; with files below `/proc` 2, 8 and 20 ms. Four cgroups every ten seconds add 0.06 ms.

mod allowance;
mod control;
mod facts_watch;
mod health;
mod heap_watch;
mod housekeeper;
mod kernel_log;
pub mod memory_lock;
mod names_watch;
mod own_child;
mod own_cost;
mod own_pages;
pub mod privilege;
mod processes;
mod pss;
mod recorder_events;
mod services;
mod settings;
pub mod status;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use probe::{Root, now};
use store::{StoreError, Writer};
use timeline::signals::{RECORDER_LATE, RECORDER_LOST};
use timeline::{Absence, Event, Stamp};
use units::{Count, Micros, Span};

use crate::new_groups::NewGroups;
use crate::pace::{Beat, LastDone};
use crate::record::processes::Processes;
use crate::sampler::Sampler;
pub use control::{Control, INBOX, Message};
pub use health::{Figures, Health, HeapsRead, TasksRead};
pub use heap_watch::{HeapPlan, HeapWatch};
pub use housekeeper::{Housekeeper, RecordingState};
pub use own_child::{ChildEnd, ChildOutcome, ChildTask, OwnChildren};
pub use own_cost::OwnCost;
pub use settings::Settings;

/// A recorder, ready to run.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    sampler: Sampler,
    writer: Writer,
    health: Arc<Health>,
    inbox: Receiver<Message>,
    processes: Option<Processes>,
    own: OwnCost,
    done: Done,
    new_groups: NewGroups,
    last: Option<Stamp>,
    /// Events to store when the sample is complete.
    events: Vec<Event>,
    absent: Vec<(&'static str, Absence)>,
}

#[derive(Debug, Default)]
struct Done {
    own: LastDone,
    processes: LastDone,
    refresh: LastDone,
}

impl Recorder {
    /// From one refresh to the next: it opens devices and mounts that appeared and files that could not be opened. It
    /// allocates.
    const REFRESH: Span = Span::from_mins(5);

    /// Opens a recorder of the host below `root` that writes to `writer`. Its first sample is due now. Trying BPF takes
    /// about 30 ms.
    pub fn new(
        root: &Root,
        writer: Writer,
        settings: Settings,
        health: Arc<Health>,
        inbox: Receiver<Message>,
    ) -> Self {
        privilege::allow_open_files();
        let processes = settings.processes.map(|every| Processes::open(root, &settings, every));
        if let Some(processes) = &processes {
            health.set_tasks(processes.source());
        }
        Self {
            settings,
            sampler: Sampler::open(root, settings.rates()),
            writer,
            health,
            inbox,
            processes,
            own: OwnCost::open(),
            done: Done::default(),
            new_groups: NewGroups::default(),
            last: None,
            events: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// Adds what a watch reads of malloc heaps to the processes; without processes it has no effect.
    #[must_use]
    pub fn with_heaps(mut self, heaps: HeapWatch) -> Self {
        if let Some(processes) = &mut self.processes {
            processes.watch_heaps(heaps);
        }
        self
    }

    /// Samples until it is stopped, then ends the recording cleanly.
    ///
    /// # Errors
    /// If the last samples could not be written.
    pub fn run(mut self, control: &Control) -> Result<(), StoreError> {
        privilege::wake_exactly();
        while !control.is_stopped() {
            // So that a flag set by another thread is seen within a second.
            if !self.sampler.wait(Span::from_secs(1)) {
                continue;
            }
            self.take();
            if control.takes_seal() {
                self.writer.seal();
            }
        }
        self.stop()
    }

    /// Takes the sample that is due, without waiting. [`run`](Self::run) calls it on the beat; if it is called faster,
    /// samples are never late.
    pub fn take(&mut self) {
        let taken = self.sampler.take();
        let stamp = taken.stamp;
        self.record_own_cost(stamp, taken.beat);
        if let Some(walk) = &taken.cgroups {
            let every = self.sampler.cgroups_every();
            self.health.groups(walk.read, walk.left_out, every);
            let scan = self.sampler.sample();
            self.health.note_groups(&mut self.new_groups, scan);
        }
        self.writer.begin(stamp);
        self.scan_processes(stamp);
        self.writer.rows(self.sampler.sample());
        self.writer.end();
        self.after(stamp);
        self.last = Some(stamp);
    }

    /// Stores everything found so far and ends the recording.
    ///
    /// # Errors
    /// If the last samples could not be written.
    pub fn stop(mut self) -> Result<(), StoreError> {
        self.hand_over();
        let samples = self.health.figures().samples;
        self.writer.event(&recorder_events::stopped(now(), samples));
        self.writer.close()
    }

    /// Adds the recorder's own figures to the sample: a host that delays the recorder delays other processes too.
    fn record_own_cost(&mut self, stamp: Stamp, beat: Beat) {
        let is_whole = self.sampler.takes(&mut self.done.own, self.settings.slow);
        let host = &mut self.sampler.sample().host;
        host.set(RECORDER_LATE, Micros::new(beat.late.as_nanos() / 1_000));
        host.set(RECORDER_LOST, Count::new(self.writer.lost()));
        self.health.sampled(stamp.boot, beat, self.settings.every);
        let (cpu, rss) = self.own.read(host, is_whole);
        self.health.cost(cpu, rss, self.writer.lost());
    }

    fn scan_processes(&mut self, stamp: Stamp) {
        let Some((processes, every)) = self.processes.as_mut().zip(self.settings.processes) else {
            return;
        };
        self.events.extend(processes.blocked(stamp).inspect(|_| self.health.blocked()));
        if self.sampler.takes(&mut self.done.processes, every) {
            let events = &mut self.events;
            let report = &mut |event| events.push(event);
            let sample = self.sampler.sample();
            let scan = processes.scan(stamp, &mut self.writer, sample, report);
            self.health.scanned(&scan);
        }
    }

    /// Does the work between two samples.
    fn after(&mut self, stamp: Stamp) {
        match self.last {
            None => self.begun(stamp),
            Some(last) => {
                self.events.extend(recorder_events::between(last, stamp, self.settings.every))
            }
        }
        let is_first = self.done.refresh.is_never();
        if self.sampler.takes(&mut self.done.refresh, Self::REFRESH) {
            if !is_first {
                self.sampler.refresh();
            }
            self.note_absent();
        }
        self.hand_over();
    }

    fn begun(&mut self, stamp: Stamp) {
        let absent = self.sampler.host().absent().collect::<Vec<_>>();
        let source = self.health.tasks();
        self.events.push(recorder_events::started(stamp, &self.settings, source, &absent));
    }

    /// Stores kernel files that became unreadable.
    fn note_absent(&mut self) {
        let absent = self.sampler.host().absent().collect::<Vec<_>>();
        for (file, why) in absent.iter().filter(|known| !self.absent.contains(known)) {
            self.writer.absent(file, why);
        }
        self.health.absent_are(&absent);
        self.absent = absent;
    }

    /// Hands the sample's events and the messages of other threads to the store.
    fn hand_over(&mut self) {
        for event in self.events.drain(..) {
            self.writer.event(&event);
        }
        // Bounded by the queue's length, so that a flood does not delay the next sample.
        for message in self.inbox.try_iter().take(crate::INBOX) {
            match message {
                Message::Event(event) => self.writer.event(&event),
                Message::Facts(stamp, facts) => self.writer.facts(stamp, &facts),
                Message::Follow(key) => self.sampler.follow(&key),
                Message::Absent(file, why) => self.writer.absent(file, &why),
            }
        }
    }
}
