//! A live recorder that is abused, and the comparison of its recording with the truth.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use store::{
    HostIdentity, Loaded, Recording, Resolution, Selection, StoreError, Writer, WriterOptions,
};
use timeline::signals::{MEM_FREE, MEM_TOTAL, PGFAULT};
use timeline::{EventKind, Facts, Timeline};
use units::Span;

use crate::bench::{Bench, Truth};
use crate::score::Score;

/// What a kill may cost.
pub(crate) const LOSS_MAX: Span = Span::from_secs(5);
/// From the moment at which a kill was decided to the moment of it, and from a sample that is due to its encoding; and as
/// long as this host stood still.
const SLACK: Span = Span::from_millis(1_500);
/// How long the first sample of a recorder is waited for: BPF is loaded before it, with all CPUs in use.
const START_MAX: Span = Span::from_secs(120);

/// A recorder; it is killed when this is dropped.
pub(crate) struct Recorder {
    child: Child,
    errors: PathBuf,
}

impl Recorder {
    pub(crate) fn start(bench: &Bench, directory: &Path, options: &[&str]) -> Self {
        let errors = directory.with_extension("stderr");
        let log = File::options().create(true).append(true).open(&errors).unwrap();
        let child = bench
            .command(env!("CARGO_BIN_EXE_memtide"))
            // Ten times as many samples as usual, for ten times as many moments.
            .args(["record", "--every", "100ms", "--to"])
            .arg(directory)
            .args(options)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, errors }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Waits until it has taken a sample, or has ended. Returns the time then.
    pub(crate) fn until_it_samples(&mut self, directory: &Path) -> Span {
        let pid = self.child.id();
        let has_sample = || {
            let text = std::fs::read(directory.join("status.json")).unwrap_or_default();
            let status: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            status["pid"] == pid && status["samples"]["taken"].as_u64() > Some(0)
        };
        let began = boot();
        while !has_sample() && self.child.try_wait().unwrap().is_none() {
            let waited = boot().saturating_sub(began);
            assert!(waited < START_MAX, "no sample in {}", directory.display());
            wait(100);
        }
        boot()
    }

    /// Whether it runs, by itself.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills it, or it and all that it started. Notes where it had ended by itself: its start was refused.
    pub(crate) fn kill(mut self, is_whole_group: bool, score: &mut Score) {
        let ended = self.child.try_wait().unwrap();
        // A SIGHUP that comes before a program can take it ends it: that is no refusal.
        let early = Some(Signal::HUP.as_raw());
        if let Some(code) = ended.filter(|code| code.signal() != early) {
            let text = std::fs::read_to_string(&self.errors).unwrap();
            let end = text.lines().last().unwrap_or_default();
            score.refused.push(format!("{code}: {end}"));
        }
        if is_whole_group {
            let _ = kill_process_group(self.pid(), Signal::KILL);
        }
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Ends it in good order.
    pub(crate) fn end(mut self, score: &mut Score) {
        self.signal(Signal::TERM);
        let code = self.child.wait().unwrap();
        if !code.success() {
            let text = std::fs::read_to_string(&self.errors).unwrap();
            score.refused.push(format!("at the end {code}: {text}"));
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The boot clock now.
pub(crate) fn boot() -> Span {
    probe::now().boot
}

/// Waits.
pub(crate) fn wait(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// A writer in this process. While another thread starts a program, that has a copy of the lock of the writer before.
pub(crate) fn writer(directory: &Path, facts: &Facts, options: &WriterOptions) -> Writer {
    let host = HostIdentity { id: "abuse".to_owned(), name: "abuse".to_owned() };
    for _ in 0..100 {
        match Writer::open(directory, &host, facts, options.clone()) {
            Err(StoreError::Locked { .. }) => wait(50),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", directory.display())
}

/// Everything of a recording.
pub(crate) fn load(directory: &Path) -> Result<Loaded, String> {
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    let recording = Recording::open(directory).map_err(|error| timeline::with_causes(&error))?;
    Ok(recording.load(selection, &mut |_| {}))
}

/// A stretch of time in which a recorder took samples, on the boot clock; its end is when it was killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) from: Span,
    pub(crate) until: Span,
}

/// Compares a recording with the truth, and with when its recorders ran.
pub(crate) fn judge(bench: &Bench, directory: &Path, runs: &[Run], score: &mut Score) {
    let errors = std::fs::read_to_string(directory.with_extension("stderr")).unwrap_or_default();
    score.panics.extend(errors.lines().filter(|line| line.contains("panicked")).map(str::to_owned));
    let timeline = match load(directory) {
        Ok(loaded) => loaded.timeline,
        Err(error) => {
            return score.lost.push(format!("all of {}: {error}", directory.display()));
        }
    };
    let truth = bench.truth();
    lost(&timeline, runs, &truth, score);
    silent(&timeline, score);
    wrong(&timeline, &truth, score);
}

/// The longest time between two readings of the truth since then: so long this host stood still.
fn stood_still(truth: &[Truth], from: Span, until: Span) -> Span {
    let within =
        |pair: &&[Truth]| pair[1].before >= from.as_nanos() && pair[0].after <= until.as_nanos();
    let between = |pair: &[Truth]| pair[1].before.saturating_sub(pair[0].after);
    let longest = truth.windows(2).filter(within).map(between).max();
    Span::from_nanos(longest.unwrap_or_default())
}

/// Samples that should be there: of each run all up to five seconds before it was killed.
fn lost(timeline: &Timeline, runs: &[Run], truth: &[Truth], score: &mut Score) {
    let boots: Vec<Span> = (0..timeline.len()).map(|at| timeline.stamp(at).unwrap().boot).collect();
    for run in runs {
        let near = run.until.saturating_sub(LOSS_MAX.times(2.0));
        let slack = SLACK.plus(stood_still(truth, near, run.until.plus(SLACK)));
        let kept_until = run.until.saturating_sub(LOSS_MAX).saturating_sub(slack);
        if kept_until <= run.from {
            continue;
        }
        let after = boots.partition_point(|boot| *boot < kept_until);
        let last = after.checked_sub(1).map_or(Span::ZERO, |at| boots[at]);
        let missing = kept_until.saturating_sub(last);
        if missing > slack && boots.get(after).is_none_or(|next| *next > kept_until.plus(slack)) {
            score.lost.push(format!("{missing} before the kill at {}", run.until));
        }
    }
}

/// Holes in a recording, each of which needs an event.
fn silent(timeline: &Timeline, score: &mut Score) {
    const HOLE: Span = Span::from_secs(5);
    let names_it = |kind: EventKind| {
        matches!(
            kind,
            EventKind::Gap
                | EventKind::SamplesLost
                | EventKind::RecorderStarted
                | EventKind::Suspend
        )
    };
    let events = timeline.recorder_events();
    for at in 1..timeline.len() {
        let [from, to] = [at - 1, at].map(|at| timeline.stamp(at).unwrap().boot);
        let is_named = || {
            let mut within =
                events.iter().filter(|event| from <= event.stamp.boot && event.stamp.boot <= to);
            within.any(|event| names_it(event.kind))
        };
        if to.saturating_sub(from) > HOLE && !is_named() {
            score.silent.push(format!("no event names {} without samples at {from}", to - from));
        }
    }
}

/// Readings that cannot be: counters outside of the truth before and after them.
fn wrong(timeline: &Timeline, truth: &[Truth], score: &mut Score) {
    // The truth is read at the same time as a sample, which takes a while under load, and ends before the next one begins.
    const AROUND: u64 = 500_000_000;
    let boot_of = |at: usize| timeline.stamp(at).map(|stamp| stamp.boot.as_nanos());
    for at in 0..timeline.len() {
        let boot = boot_of(at).unwrap();
        let ended = boot_of(at + 1).unwrap_or(0).max(boot + AROUND);
        let before = truth.partition_point(|known| known.after + 20_000_000 < boot);
        let after = truth.partition_point(|known| known.before < ended);
        let Some((before, after)) =
            before.checked_sub(1).zip((after < truth.len()).then_some(after))
        else {
            continue;
        };
        let (first, last) = (truth[before], truth[after]);
        if last.before - first.after > 3_000_000_000 {
            continue;
        }
        let around = &truth[before.saturating_sub(5)..(after + 5).min(truth.len())];
        let range = |of: fn(&Truth) -> u64| {
            (around.iter().map(of).min().unwrap(), around.iter().map(of).max().unwrap())
        };
        let (least, most) = range(|known| known.free_kib);
        // Others use the machine: what builds take in a second. A figure of another time is farther off.
        let may_move = (2 * (most - least)).max(256 << 10);
        let free = timeline.at(MEM_FREE, at).map(|free| free.get() >> 10);
        let is_free = free.is_some_and(|free| free + may_move >= least && free <= most + may_move);
        let faults = timeline.at(PGFAULT, at).map(|faults| faults.get());
        let is_fault = faults.is_some_and(|faults| (first.faults..=last.faults).contains(&faults));
        let total = timeline.at(MEM_TOTAL, at).map(|total| total.get() >> 10);
        if !is_free || !is_fault || total != Some(first.total_kib) {
            score.wrong.push(format!(
                "at {boot}: total {total:?}, free {free:?} of {least} to {most}, faults {faults:?} \
                 of {} to {}",
                first.faults, last.faults
            ));
        }
        score.compared += 3;
    }
}
