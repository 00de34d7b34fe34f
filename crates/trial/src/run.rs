//! One run: a command with a variant's settings in a cgroup of its own, from its start to its end.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sampler::{
    CgroupRun, CgroupRunError, CgroupRunOptions, GroupLimits, GroupReading, RunEnd, RunNow,
    RunPeak, run_in_cgroup,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timeline::signals::{CGROUP_PGFAULT, CGROUP_PGMAJFAULT};
use units::{Bytes, Ratio, Span};

use crate::applied::{Applied, SeenProcess, Watcher};
use crate::child::{Announcement, Announcements, PreparedChild, Tail, prepare};
use crate::footprint::{Course, Moment, footprint};
use crate::outside::{HostMoment, Outside};
use crate::plan::{Plan, RunPlan, ServerPlan, TrialCommand};
use crate::preflight::ReadyVariant;
use crate::score::Score;
use crate::variant::VariantSetting;

/// From one reading of the cgroup to the next: 50 a second take 0.1 to 0.2 % of a CPU.
const READING_INTERVAL: Span = Span::from_millis(20);
/// How long a program may take to end after SIGTERM.
const ENDING_MAX: Duration = Duration::from_secs(20);
/// How long a server may take to be ready.
const STARTING_MAX: Duration = Duration::from_secs(60);
/// Points of the picture of a run.
const CURVE_POINTS_MAX: usize = 150;

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
pub fn run_once(
    plan: &Plan,
    ready: &ReadyVariant,
    place: RunPlace,
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
    let before = HostMoment::now();
    let own_cpu = probe::thread_cpu();
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
    let own_cpu = probe::thread_cpu() - own_cpu;
    let outside = Outside::between(&before, &HostMoment::now(), ran.last.cpu);
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

/// What a run does now.
#[derive(Debug)]
enum Stage {
    /// A server starts.
    Starting,
    /// The load runs, unmeasured.
    WarmingUp(Load),
    /// A server under its measured load.
    Loaded(Load),
    /// A batch works.
    Working,
    /// The work is done.
    Idling(Instant),
    /// It was asked to end.
    Ending(Instant),
}

/// A load generator that is ended with this value.
#[derive(Debug)]
struct Load {
    child: Child,
    output: Receiver<String>,
    errors: Tail,
}

impl Load {
    /// What is kept of its output.
    const OUTPUT_MAX: u64 = 4 << 20;

    fn start(line: &str) -> std::io::Result<Self> {
        let words = TrialCommand::Line(line.to_owned()).words();
        let mut child = Command::new(words.first().map_or("", String::as_str))
            .args(words.get(1..).unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (send, output) = channel();
        if let Some(mut stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = (&mut stdout).take(Self::OUTPUT_MAX).read_to_end(&mut text);
                let _ = send.send(String::from_utf8_lossy(&text).into_owned());
                let _ = std::io::copy(&mut stdout, &mut std::io::sink());
            });
        }
        let errors = child.stderr.take().map(Tail::of).unwrap_or_default();
        Ok(Self { child, output, errors })
    }

    /// `None` while it runs; then its output, or why it failed.
    fn ended(&mut self) -> Option<Result<String, String>> {
        let status = match self.child.try_wait() {
            Ok(status) => status?,
            Err(error) => return Some(Err(error.to_string())),
        };
        if status.success() {
            let text = self.output.recv_timeout(Duration::from_secs(2));
            return Some(Ok(text.unwrap_or_default()));
        }
        let why = self.errors.text();
        let last = why.lines().last().unwrap_or_default();
        Some(Err(format!("{status}: {last}")))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.child.wait();
        }
    }
}

/// The part of a run that is measured.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    from: Option<Mark>,
    to: Option<Mark>,
}

/// The counters at one end of it.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at: Span,
    cpu: Option<Span>,
    operations: f64,
    faults: Option<u64>,
    major_faults: Option<u64>,
}

struct Session<'a> {
    plan: &'a RunPlan,
    watcher: Watcher,
    announcements: Announcements,
    is_interrupted: &'a dyn Fn() -> bool,
    stage: Stage,
    begun: Instant,
    course: Course,
    measured: Measured,
    operations: Option<f64>,
    latencies_ms: Vec<f64>,
    score: Score,
    idle: Option<Bytes>,
    /// Why it was ended before its work was done.
    ended_by: Option<Outcome>,
}

impl<'a> Session<'a> {
    fn new(
        plan: &'a RunPlan,
        watcher: Watcher,
        announcements: Announcements,
        is_interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        let stage = if plan.server.is_some() { Stage::Starting } else { Stage::Working };
        Self {
            plan,
            watcher,
            announcements,
            is_interrupted,
            stage,
            begun: Instant::now(),
            course: Course::new(),
            measured: Measured::default(),
            operations: None,
            latencies_ms: Vec::new(),
            score: Score::default(),
            idle: None,
            ended_by: None,
        }
    }

    fn mark(&self, reading: &GroupReading) -> Mark {
        let count = |signal| reading.row.get(signal).map(units::Count::get);
        Mark {
            at: reading.at,
            cpu: reading.cpu,
            operations: self.operations.unwrap_or(0.0),
            faults: count(CGROUP_PGFAULT),
            major_faults: count(CGROUP_PGMAJFAULT),
        }
    }

    /// One reading of a run that goes on.
    fn step(&mut self, now: &RunNow<'_>) -> ControlFlow<()> {
        if (self.is_interrupted)() {
            self.ended_by = Some(Outcome::Interrupted);
            return ControlFlow::Break(());
        }
        if now.reading.at >= self.plan.timeout {
            self.ended_by.get_or_insert(Outcome::TimedOut);
            return ControlFlow::Break(());
        }
        let holds = self.read_announcements(now.reading);
        self.record(now.reading);
        self.watcher.look_when_due(|| now.pids());
        let stage = std::mem::replace(&mut self.stage, Stage::Working);
        match self.next(stage, now, holds) {
            ControlFlow::Continue(stage) => {
                self.stage = stage;
                ControlFlow::Continue(())
            }
            ControlFlow::Break(()) => ControlFlow::Break(()),
        }
    }

    fn record(&mut self, reading: &GroupReading) {
        if let Some(memory) = footprint(&reading.row) {
            self.course.push(Moment {
                at: reading.at,
                memory,
                cpu: reading.cpu,
                operations: self.operations,
            });
        }
    }

    /// Takes what the program announced; returns whether it holds.
    fn read_announcements(&mut self, reading: &GroupReading) -> bool {
        let mut holds = false;
        for announced in self.announcements.take() {
            match announced {
                Announcement::Operations(operations) => self.operations = Some(operations),
                Announcement::Latency(latency) => self.latencies_ms.push(latency),
                Announcement::Steady => {
                    self.latencies_ms.clear();
                    self.measured.from = Some(self.mark(reading));
                }
                Announcement::Hold => holds = true,
            }
        }
        holds
    }

    /// What comes after a stage; broken where the run is to be ended.
    fn next(&mut self, stage: Stage, now: &RunNow<'_>, holds: bool) -> ControlFlow<(), Stage> {
        let go_on = ControlFlow::Continue;
        match stage {
            Stage::Starting => self.starting(now),
            Stage::WarmingUp(mut load) => match load.ended() {
                None => go_on(Stage::WarmingUp(load)),
                Some(Ok(_)) => self.begin_load(now),
                Some(Err(why)) => self.give_up(Outcome::LoadFailed(why)),
            },
            Stage::Loaded(mut load) => match load.ended() {
                None => go_on(Stage::Loaded(load)),
                Some(Ok(output)) => {
                    let format = self.server().and_then(|server| server.score);
                    self.score = format.map(|format| format.read(&output)).unwrap_or_default();
                    go_on(self.work_is_done(now))
                }
                Some(Err(why)) => self.give_up(Outcome::LoadFailed(why)),
            },
            Stage::Working if holds => go_on(self.work_is_done(now)),
            Stage::Working => go_on(Stage::Working),
            Stage::Idling(since) => {
                if since.elapsed() < self.plan.idle.as_duration() || self.watcher.is_looking() {
                    return go_on(Stage::Idling(since));
                }
                if self.plan.idle > Span::ZERO {
                    self.idle = footprint(&now.reading.row);
                }
                match self.plan.server {
                    Some(_) => now.terminate(),
                    None => self.announcements.release(),
                }
                go_on(Stage::Ending(Instant::now()))
            }
            Stage::Ending(since) if since.elapsed() > ENDING_MAX => ControlFlow::Break(()),
            Stage::Ending(since) => go_on(Stage::Ending(since)),
        }
    }

    fn server(&self) -> Option<&'a ServerPlan> {
        self.plan.server.as_ref()
    }

    fn give_up(&mut self, outcome: Outcome) -> ControlFlow<(), Stage> {
        self.ended_by = Some(outcome);
        ControlFlow::Break(())
    }

    fn starting(&mut self, now: &RunNow<'_>) -> ControlFlow<(), Stage> {
        let Some(server) = self.server() else {
            return ControlFlow::Continue(Stage::Working);
        };
        let elapsed = self.begun.elapsed();
        if !server.ready.is_ready(elapsed) {
            if elapsed > STARTING_MAX {
                return self.give_up(Outcome::NotReady);
            }
            return ControlFlow::Continue(Stage::Starting);
        }
        if !server.has_warm_up {
            return self.begin_load(now);
        }
        match Load::start(&server.load) {
            Ok(load) => ControlFlow::Continue(Stage::WarmingUp(load)),
            Err(error) => self.give_up(Outcome::LoadFailed(error.to_string())),
        }
    }

    fn begin_load(&mut self, now: &RunNow<'_>) -> ControlFlow<(), Stage> {
        let line = self.server().map_or("", |server| &server.load);
        match Load::start(line) {
            Ok(load) => {
                self.latencies_ms.clear();
                self.measured.from = Some(self.mark(now.reading));
                ControlFlow::Continue(Stage::Loaded(load))
            }
            Err(error) => self.give_up(Outcome::LoadFailed(error.to_string())),
        }
    }

    fn work_is_done(&mut self, now: &RunNow<'_>) -> Stage {
        self.measured.to = Some(self.mark(now.reading));
        self.watcher.look(now.pids());
        Stage::Idling(Instant::now())
    }

    fn outcome(&mut self, ran: &CgroupRun) -> Outcome {
        if ran.was_oom_killed() == Some(true) {
            return Outcome::OomKilled;
        }
        if let Some(outcome) = self.ended_by.take() {
            return outcome;
        }
        let is_server = self.plan.server.is_some();
        match ran.end {
            // A server is ended when its load is done.
            _ if is_server && self.measured.to.is_some() => Outcome::Completed,
            RunEnd::Exited(0) if is_server => Outcome::NotReady,
            RunEnd::Exited(0) | RunEnd::Stopped => Outcome::Completed,
            RunEnd::Exited(code) => Outcome::Failed(code),
            RunEnd::Signalled(signal) => Outcome::Signalled(signal),
        }
    }

    fn finish(
        mut self,
        place: RunPlace,
        begun: jiff::Timestamp,
        ran: &CgroupRun,
        tail: &Tail,
        outside: Outside,
        own_cpu: Span,
    ) -> Run {
        let outcome = self.outcome(ran);
        self.read_announcements(&ran.last);
        let from = self.measured.from.unwrap_or_default();
        let to = self.measured.to.unwrap_or_else(|| self.mark(&ran.last));
        let memory = self.course.figures(from.at, to.at).map(|figures| RunMemory {
            mean: figures.mean,
            peak: figures.peak,
            end: self.measured.to.map(|_| figures.end),
            idle: self.idle,
            group_peak: ran.peak.map(RunPeak::bytes),
            growth: figures.growth,
        });
        let is_completed = outcome == Outcome::Completed;
        let speed = is_completed.then(|| self.speed(from, to));
        let message = Some(tail.text()).filter(|text| !is_completed && !text.is_empty());
        let (processes, applied) = self.watcher.finish();
        Run {
            block: place.block,
            place: place.place,
            column: place.column,
            variant: place.variant,
            repeated: Vec::new(),
            begun,
            outcome,
            message,
            applied,
            processes,
            memory,
            speed,
            outside_cpus: outside.cpus,
            steal: outside.steal,
            left_over: ran.left_over,
            group: Some(ran.group.display().to_string()),
            own_cpu,
            curve: self.course.curve(CURVE_POINTS_MAX),
        }
    }

    fn speed(&mut self, from: Mark, to: Mark) -> RunSpeed {
        let announced = (to.operations > from.operations).then(|| to.operations - from.operations);
        let grown =
            |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from.unwrap_or(0)));
        self.latencies_ms.sort_by(f64::total_cmp);
        let latency = |share| stats::of_sorted(&self.latencies_ms, share);
        RunSpeed {
            wall: to.at - from.at,
            cpu: to.cpu.map(|cpu| cpu - from.cpu.unwrap_or_default()),
            operations: self.score.operations.or(announced),
            p50_ms: self.score.p50_ms.or_else(|| latency(0.5)),
            p95_ms: self.score.p95_ms.or_else(|| latency(0.95)),
            p99_ms: self.score.p99_ms.or_else(|| latency(0.99)),
            faults: grown(from.faults, to.faults),
            major_faults: grown(from.major_faults, to.major_faults),
        }
    }
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
