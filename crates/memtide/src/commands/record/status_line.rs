//! Shows the state of a running recorder: a line on a terminal, warnings in the journal, notifications to systemd. It
//! has its own thread, as a terminal or a journal may block.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use probe::TaskSource;
use sampler::{Control, Health, RecordingState};
use store::{DiskState, Monitor, Recording};
use units::{Bytes, Count, Span};

use crate::cli::RecordArgs;
use crate::journal::Supervisor;
use crate::output::{self, Output};

/// The thread that shows the state.
pub(super) struct StatusLine {
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    view: View,
}

/// The state that the thread reads.
#[derive(Clone)]
struct View {
    directory: PathBuf,
    health: Arc<Health>,
    monitor: Monitor,
    control: Control,
    is_terminal: bool,
    began: Instant,
}

impl StatusLine {
    /// Starts the thread. If it cannot be started, the recorder runs without it.
    pub(super) fn start(
        args: &RecordArgs,
        directory: &Path,
        recording: &RecordingState,
        health: &Arc<Health>,
        control: &Control,
        output: &Output,
    ) -> Self {
        let view = View {
            directory: directory.to_owned(),
            health: Arc::clone(health),
            monitor: recording.monitor.clone(),
            control: control.clone(),
            is_terminal: std::io::stderr().is_terminal(),
            began: Instant::now(),
        };
        let how_to_end = if view.is_terminal { "; Ctrl-C ends it" } else { "" };
        output.note(&format!(
            "recording into {}, the last {} or {}{how_to_end}",
            directory.display(),
            args.keep,
            args.keep_size
        ));
        let (alive, ended) = channel();
        let theirs = view.clone();
        let thread = std::thread::Builder::new()
            .name("memtide-status".to_owned())
            .stack_size(512 << 10)
            .spawn(move || theirs.attend(&ended));
        Self { alive: Some(alive), thread: thread.ok(), view }
    }

    /// Ends the thread, and prints on a terminal what was recorded.
    pub(super) fn stop(mut self, in_good_order: bool) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // Its panic was already printed on stderr.
            let _ = thread.join();
        }
        if self.view.is_terminal && in_good_order {
            output::say(&self.view.closing());
        }
    }
}

impl View {
    fn attend(self, ended: &Receiver<()>) {
        let supervisor = Supervisor::find();
        let bar = self.is_terminal.then(line);
        let mut notified = Notified::default();
        let mut disk = DiskState::Ok;
        let mut known = Vec::new();
        let mut moved = None;
        let mut size = RecordingSize::default();
        loop {
            let tick = self.tick(supervisor.as_ref(), &notified);
            if !matches!(ended.recv_timeout(tick), Err(RecvTimeoutError::Timeout)) {
                break;
            }
            self.tell_disk(&mut disk, bar.as_ref());
            self.tell_moved(&mut moved, bar.as_ref());
            self.tell_problems(&mut known, bar.as_ref());
            if let Some(bar) = &bar {
                bar.set_message(self.line(size.of(self.monitor.directory().path())));
                // The terminal was closed: no user can end the recorder, and SIGHUP only seals.
                if !std::io::stderr().is_terminal() {
                    self.control.stop.store(true, Relaxed);
                }
            }
            if let Some(supervisor) = &supervisor {
                notified.notify(supervisor, &self);
            }
        }
        // Of the time since the last turn.
        self.tell_moved(&mut moved, bar.as_ref());
        self.tell_problems(&mut known, bar.as_ref());
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        if let Some(supervisor) = &supervisor {
            supervisor.notify("STOPPING=1");
        }
    }

    fn tick(&self, supervisor: Option<&Supervisor>, notified: &Notified) -> Duration {
        let watchdog = supervisor.and_then(|supervisor| supervisor.watchdog);
        if supervisor.is_some() && !notified.is_ready {
            Duration::from_millis(100)
        } else if self.is_terminal {
            Duration::from_secs(1)
        } else {
            let usual = Duration::from_secs(10);
            watchdog.map_or(usual, |watchdog| (watchdog / 4).min(usual))
        }
    }

    /// Warns when samples cannot be written, and notes when writing works again.
    fn tell_disk(&self, before: &mut DiskState, bar: Option<&ProgressBar>) {
        let state = self.monitor.state();
        if state.disk == *before {
            return;
        }
        let directory = self.directory.display();
        let text = match &state.disk {
            DiskState::Ok => format!(
                "writing to {directory} works again; {} were lost",
                Count::new(state.samples_lost)
            ),
            problem => format!(
                "warning: samples cannot be written to {directory}: {}; they wait in memory as far \
                 as it goes, and writing is retried",
                problem
            ),
        };
        *before = state.disk;
        say(&text, bar);
    }

    /// Warns once of each new name of the directory.
    fn tell_moved(&self, before: &mut Option<PathBuf>, bar: Option<&ProgressBar>) {
        let moved_to = self.monitor.state().moved_to;
        if let Some(to) = moved_to.as_ref().filter(|_| moved_to != *before) {
            let text = format!(
                "warning: {} is no longer the directory that is recorded into: recording goes on \
                 in {}",
                self.directory.display(),
                to.display()
            );
            say(&text, bar);
        }
        *before = moved_to;
    }

    /// Warns once of each heap that is not read, and of each way in which checks and their command fail.
    fn tell_problems(&self, known: &mut Vec<String>, bar: Option<&ProgressBar>) {
        /// A pool of workers that come and go must not fill the journal.
        const PROBLEMS_MAX: usize = 64;
        let heaps = self.health.heaps().unwrap_or_default().problems;
        let heaps = heaps.into_iter().map(|problem| format!("malloc heaps: {problem}"));
        for problem in heaps.chain(self.health.checks().unwrap_or_default().problems) {
            if known.len() < PROBLEMS_MAX && !known.contains(&problem) {
                say(&format!("warning: {problem}"), bar);
                known.push(problem);
            }
        }
    }

    /// `0:02:04 · 124 samples · 0.3 ms each · 0 late · 4.1 MiB of RAM · 1.2 MiB stored · BPF`.
    fn line(&self, size: Option<Bytes>) -> String {
        let figures = self.health.figures();
        let began = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut parts = vec![
            Span::from_nanos(began).as_clock(),
            self.samples(),
            format!("{} late", Count::new(figures.late_samples)),
            format!("{} of RAM", figures.own_rss),
        ];
        if let Some(each) = figures.cpu_per_sample() {
            parts.insert(2, format!("{each} each"));
        }
        parts.extend(size.map(|size| format!("{size} stored")));
        if figures.lost > 0 {
            parts.push(format!("{} lost", Count::new(figures.lost)));
        }
        let source = match self.health.tasks().map(|tasks| tasks.source) {
            Some(TaskSource::Bpf) => "BPF",
            Some(TaskSource::Proc) => "/proc",
            None => "no",
        };
        parts.push(source.to_owned());
        parts.join(" · ")
    }

    fn samples(&self) -> String {
        Count::new(self.health.figures().samples).named("sample", "samples")
    }

    fn closing(&self) -> String {
        let lasted = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let directory = self.directory.display().to_string();
        let directory = timeline::plain::escape(&directory).into_owned();
        let size = RecordingSize::default().of(self.monitor.directory().path());
        let size = size.map_or_else(String::new, |size| format!(", which holds {size}"));
        format!(
            "recorded {} in {} into {directory}{size}; memtide check {directory}",
            self.samples(),
            Span::from_secs(Span::from_nanos(lasted).as_nanos() / 1_000_000_000),
        )
    }
}

fn say(text: &str, bar: Option<&ProgressBar>) {
    let text = timeline::plain::escape(text).into_owned();
    match bar {
        Some(bar) => bar.suspend(|| output::say(&text)),
        None => output::say(&text),
    }
}

/// The size of the recording, measured rarely.
#[derive(Default)]
struct RecordingSize(Option<(Instant, Option<Bytes>)>);

impl RecordingSize {
    const HOLDS: Duration = Duration::from_secs(10);

    fn of(&mut self, directory: &std::path::Path) -> Option<Bytes> {
        if let Some((when, size)) = self.0
            && when.elapsed() < Self::HOLDS
        {
            return size;
        }
        let recording = Recording::open(directory).ok();
        let size = recording.map(|recording| recording.bytes());
        self.0 = Some((Instant::now(), size));
        size
    }
}

/// The last notification to systemd.
#[derive(Default)]
struct Notified {
    is_ready: bool,
    samples: u64,
}

impl Notified {
    /// Notifies `READY=1` with the first sample, and keep-alives while further samples follow.
    fn notify(&mut self, supervisor: &Supervisor, view: &View) {
        let samples = view.health.figures().samples;
        if samples == self.samples {
            return;
        }
        self.samples = samples;
        let status = format!("STATUS={}", view.line(None));
        if !std::mem::replace(&mut self.is_ready, true) {
            supervisor.notify(&format!("READY=1\n{status}"));
        } else {
            supervisor.notify(&format!("WATCHDOG=1\n{status}"));
        }
    }
}

fn line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    bar
}
