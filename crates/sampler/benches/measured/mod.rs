//! A recorder into a directory of its own, and what this process has cost so far.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use probe::Root;
use rustix::time::{ClockId, clock_gettime};
use sampler::{Health, INBOX, Message, Recorder, Settings};
use store::{HostIdentity, Writer, WriterOptions};
use timeline::Facts;

/// A recorder, and what it needs for as long as it runs.
pub(crate) struct MeasuredRecorder {
    pub(crate) recorder: Recorder,
    pub(crate) health: Arc<Health>,
    _outbox: SyncSender<Message>,
    _directory: tempfile::TempDir,
}

impl MeasuredRecorder {
    pub(crate) fn start(settings: Settings) -> Self {
        let directory = tempfile::tempdir().expect("a place for the recording");
        let identity = HostIdentity { id: "bench".to_owned(), name: "bench".to_owned() };
        let options = WriterOptions::default();
        let writer = Writer::open(directory.path(), &identity, &Facts::default(), options);
        let writer = writer.expect("a recording");
        let health = Arc::new(Health::default());
        let (outbox, inbox) = sync_channel(INBOX);
        let root = Root::default();
        let recorder = Recorder::new(&root, writer, settings, Arc::clone(&health), inbox);
        Self { recorder, health, _outbox: outbox, _directory: directory }
    }

    pub(crate) fn stop(self) {
        self.recorder.stop().expect("the recording ends in good order");
    }
}

/// CPU time of this process, user and system, the disk thread included.
pub(crate) fn cpu() -> Duration {
    let time = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime));
    time.expect("CPU time is not negative")
}

/// The first number of the line of `file` that begins with `field`: KiB.
pub(crate) fn kib(file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
