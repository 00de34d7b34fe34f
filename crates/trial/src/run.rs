//! One run: a command with a variant's settings in a cgroup of its own, from its start to its end.

use std::process::{Command, Stdio};

use sampler::{CgroupRunError, CgroupRunOptions, GroupLimits, run_in_cgroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Ratio, Span};

use crate::applied::{Applied, SeenProcess, Watcher};
use crate::child::{PreparedChild, Tail, prepare};
use crate::outside::{HostGauge, Outside};
use crate::plan::Plan;
use crate::preflight::ReadyVariant;
use crate::session::Session;
use crate::variant::VariantSetting;

/// From one reading of the cgroup to the next: 50 a second take 0.1 to 0.2 % of a CPU.
const READING_INTERVAL: Span = Span::from_millis(20);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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
    /// The user ended it.
    Interrupted,
}

/// Memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMemory {
    /// The mean over its work.
    pub mean: Bytes,
    /// The most at any reading.
    pub peak: Bytes,
    /// With the last operation, where the program still runs then.
    pub end: Option<Bytes>,
    /// After the work, when the program had idled.
    pub idle: Option<Bytes>,
    /// The most that its cgroup had, page cache included: what a limit must allow.
    pub group_peak: Option<Bytes>,
    /// The last fifth of the work over the fifth before.
    pub growth: Option<Ratio>,
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

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The block that it belongs to, from 0 on.
    pub block: usize,
    /// Its place in the block.
    pub place: usize,
    /// Which column of the block: with a control, 0 and 1 are the baseline.
    pub column: usize,
    /// The variant.
    pub variant: usize,
    /// How often it was run before, and why it was run again.
    pub repeated: Vec<String>,
    /// When it began.
    pub begun: jiff::Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// The end of what it wrote to standard error, where it failed.
    pub message: Option<String>,
    /// Whether the variant was applied.
    pub applied: Applied,
    /// Its processes.
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
    /// The cgroup that it had.
    pub group: Option<String>,
    /// CPU time that measuring took.
    pub own_cpu: Span,
    /// For a picture: seconds since its start, and bytes.
    pub curve: Vec<(f64, u64)>,
}

/// Where a run stands in its trial.
#[derive(Debug, Clone, Copy)]
pub struct RunPlace {
    /// See [`Run::block`].
    pub block: usize,
    /// See [`Run::place`].
    pub place: usize,
    /// See [`Run::column`].
    pub column: usize,
    /// See [`Run::variant`].
    pub variant: usize,
}

/// Makes one run.
///
/// # Errors
/// No cgroup can be made, or its processes cannot be ended: no other run would fare better. What is wrong with the command
/// is an [`Outcome`].
pub(crate) fn run_once(
    plan: &Plan,
    ready: &ReadyVariant,
    place: RunPlace,
    gauge: &mut HostGauge,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Run, CgroupRunError> {
    let variant = &ready.variant;
    let begun = jiff::Timestamp::now();
    if let Some(prepare) = &plan.runs.prepare
        && let Err(why) = prepared(prepare)
    {
        return Ok(Run::not_started(place, begun, why));
    }
    let words = plan.command_of(variant).words();
    let child = match prepare(&words, &variant.settings, ready.preload.as_deref()) {
        Ok(child) => child,
        Err(error) => return Ok(Run::not_started(place, begun, error.to_string())),
    };
    let own_cpu = probe::thread_cpu();
    let before = gauge.read();
    let PreparedChild { command, announcements, their_end } = child;
    let (send, errors) = std::io::pipe()
        .map(|(read, write)| (write, read))
        .map_err(|source| CgroupRunError::NotStarted { program: words.join(" "), source })?;
    let mut command = command;
    command.stderr(Stdio::from(send)).current_dir(&plan.working_directory);
    let tail = Tail::of(errors);
    let mut session = Session::new(
        &plan.runs,
        Watcher::of(variant, place.block == 0),
        announcements,
        is_interrupted,
    );
    let mut their_end = Some(their_end);
    let options = CgroupRunOptions {
        name: "memtide-trial",
        limits: limits(&variant.settings, before.available),
        every: READING_INTERVAL,
    };
    let ran = run_in_cgroup(command, &options, &mut |now| {
        their_end.take();
        session.step(now)
    });
    drop(their_end);
    let ran = match ran {
        Ok(ran) => ran,
        Err(error @ CgroupRunError::NotStarted { .. }) => {
            let why = timeline::with_causes(&error);
            return Ok(Run::not_started(place, begun, why));
        }
        Err(error) => return Err(error),
    };
    let outside = Outside::between(&before, &gauge.read(), ran.last.cpu);
    let own_cpu = probe::thread_cpu() - own_cpu;
    Ok(session.finish(place, begun, &ran, &tail, outside, own_cpu))
}

/// The limits of a variant; without one, that which keeps the host alive.
fn limits(settings: &[VariantSetting], available: Option<Bytes>) -> GroupLimits {
    /// Of what is available.
    const GUARD: Ratio = Ratio::new(0.8);
    let mut limits = GroupLimits {
        memory: available.map(|available| available.share(GUARD)),
        ..GroupLimits::default()
    };
    for setting in settings {
        match setting {
            VariantSetting::Limit(limit) => limits.memory = Some(*limit),
            VariantSetting::High(limit) => limits.high = Some(*limit),
            VariantSetting::Swap(limit) => limits.swap = Some(*limit),
            _ => {}
        }
    }
    limits
}

/// Runs the command before a run.
fn prepared(line: &str) -> Result<(), String> {
    let output = Command::new("/bin/sh").args(["-c", line]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("--prepare: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let written = String::from_utf8_lossy(&output.stderr);
    let last = written.lines().last().unwrap_or_default();
    Err(format!("--prepare failed ({}): {last}", output.status))
}

impl Run {
    /// A run whose command could not be started.
    fn not_started(place: RunPlace, begun: jiff::Timestamp, why: String) -> Self {
        Self {
            block: place.block,
            place: place.place,
            column: place.column,
            variant: place.variant,
            repeated: Vec::new(),
            begun,
            outcome: Outcome::NotStarted(why),
            message: None,
            applied: Applied::NotSeen("it was not started".to_owned()),
            processes: Vec::new(),
            memory: None,
            speed: None,
            outside_cpus: None,
            steal: None,
            left_over: 0,
            group: None,
            own_cpu: Span::ZERO,
            curve: Vec::new(),
        }
    }
}
