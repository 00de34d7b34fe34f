//! A run as it is kept: how it ended, whether its settings were applied, memory and speed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Ratio, Span};

use crate::applied::{Applied, SeenProcess};
use crate::footprint::MemoryMean;
use crate::machine::RunMachine;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// With its work done.
    Completed,
    /// The command exited with this code.
    Failed(i32),
    /// This signal ended it.
    Signalled(i32),
    /// The kernel killed it at its limit.
    OomKilled,
    /// It took longer than a run may take.
    TimedOut,
    /// The server was not ready in time, or had ended before.
    NotReady,
    /// The load failed; with the end of what it wrote.
    LoadFailed(String),
    /// The command could not be started.
    NotStarted(String),
    /// Its virtual machine died, or was lost, before the work was done; with why.
    MachineDied(String),
    /// The user ended it.
    Interrupted,
}

/// Memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMemory {
    /// The mean over the operations that it announced, where it did so at five readings or more.
    pub over_operations: Option<MemoryMean>,
    /// The mean over its CPU time.
    pub over_cpu: Option<MemoryMean>,
    /// The mean over time.
    pub over_time: MemoryMean,
    /// The most at any reading.
    pub peak: Bytes,
    /// With the last operation, where the program still runs then.
    pub end: Option<Bytes>,
    /// After the work, when the program had idled.
    pub idle: Option<Bytes>,
    /// The most that its cgroup had, page cache included: what a limit must allow.
    pub group_peak: Option<Bytes>,
}

/// Speed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSpeed {
    /// The time that the measured work took.
    pub wall: Span,
    /// CPU time of all its processes meanwhile.
    pub cpu: Option<Span>,
    /// Operations, where the program or its load counts them.
    pub operations: Option<f64>,
    /// Latencies in milliseconds.
    pub p50_ms: Option<f64>,
    /// The same for 95 of 100.
    pub p95_ms: Option<f64>,
    /// The same for 99 of 100.
    pub p99_ms: Option<f64>,
    /// Page faults, served from memory and from disk.
    pub faults: Option<u64>,
    /// Page faults that waited for a disk.
    pub major_faults: Option<u64>,
}

/// A run: what it was, and all that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRun {
    /// The trial that it belongs to.
    pub trial: String,
    /// The block that it belongs to, from 0 on.
    pub block: usize,
    /// Its place in the block.
    pub place: usize,
    /// Which column of the block: with a control, 0 and 1 are the baseline.
    pub column: usize,
    /// Which variant, by its number in the plan.
    pub variant: usize,
    /// How often it was run before, and why it was run again.
    pub repeated: Vec<String>,
    /// When it began.
    pub begun: jiff::Timestamp,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The end of what it wrote to standard error, where it failed.
    pub message: Option<String>,
    /// Whether the variant was applied.
    pub applied: Applied,
    /// Its processes, as far as they were seen.
    pub processes: Vec<SeenProcess>,
    /// Memory, where there was a reading.
    pub memory: Option<RunMemory>,
    /// Speed, where the work was done.
    pub speed: Option<RunSpeed>,
    /// CPUs that others used meanwhile.
    pub outside_cpus: Option<Ratio>,
    /// CPUs that the hypervisor took.
    pub steal: Option<Ratio>,
    /// Processes that it left behind, which were ended.
    pub left_over: usize,
    /// Whether it did not end when it was asked to.
    pub is_killed_at_end: bool,
    /// The cgroup that it had.
    pub group: Option<String>,
    /// CPU time that measuring took.
    pub own_cpu: Span,
    /// For a picture: seconds since its start, and bytes.
    pub curve: Vec<(f64, u64)>,
    /// The virtual machine that it had.
    pub machine: Option<RunMachine>,
}

/// Where a run stands in its trial.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PlaceInTrial {
    /// As [`TrialRun::block`] has it.
    pub block: usize,
    /// As [`TrialRun::place`] has it.
    pub place: usize,
    /// As [`TrialRun::column`] has it.
    pub column: usize,
    /// As [`TrialRun::variant`] has it.
    pub variant: usize,
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Failed(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Self::OomKilled => f.write_str("killed at its limit"),
            Self::TimedOut => f.write_str("took longer than --timeout"),
            Self::NotReady => f.write_str("was never ready"),
            Self::LoadFailed(why) => write!(f, "its load failed: {why}"),
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
            Self::MachineDied(words) => write!(f, "its machine died: {words}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl TrialRun {
    /// A run of which only this is known.
    pub(crate) fn new(
        place: PlaceInTrial,
        begun: jiff::Timestamp,
        outcome: RunOutcome,
        applied: Applied,
    ) -> Self {
        Self {
            trial: String::new(),
            block: place.block,
            place: place.place,
            column: place.column,
            variant: place.variant,
            repeated: Vec::new(),
            begun,
            outcome,
            message: None,
            applied,
            processes: Vec::new(),
            memory: None,
            speed: None,
            outside_cpus: None,
            steal: None,
            left_over: 0,
            is_killed_at_end: false,
            group: None,
            own_cpu: Span::ZERO,
            curve: Vec::new(),
            machine: None,
        }
    }

    /// A run of a command that could not be started.
    pub(crate) fn not_started(place: PlaceInTrial, begun: jiff::Timestamp, why: String) -> Self {
        let applied = Applied::NotSeen("it was not started".to_owned());
        Self::new(place, begun, RunOutcome::NotStarted(why), applied)
    }

    /// Whether it is compared: its work was done, and not seen to be done without the variant's settings.
    pub fn is_compared(&self) -> bool {
        self.outcome == RunOutcome::Completed && !matches!(self.applied, Applied::No(_))
    }

    /// Why it is not compared, with the last line that the command wrote to standard error.
    pub fn fault(&self) -> Option<String> {
        match (&self.outcome, &self.applied) {
            (RunOutcome::Completed, Applied::No(why)) => Some(format!("not applied: {why}")),
            (RunOutcome::Completed, _) => None,
            (outcome, _) => {
                let last = self.message.as_deref().and_then(|text| text.lines().last());
                Some(match last.map(shortened) {
                    Some(last) => format!("{outcome}: {last}"),
                    None => outcome.to_string(),
                })
            }
        }
    }
}

/// A line of a program for a person: without control characters, and not longer than two lines of a terminal.
fn shortened(line: &str) -> String {
    const CHARACTERS_MAX: usize = 160;
    line.chars().filter(|one| !one.is_control()).take(CHARACTERS_MAX).collect()
}
