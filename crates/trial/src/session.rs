//! A run as it goes on: from reading to reading, what it does now, and what is measured of it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use sampler::{CgroupRun, GroupReading, RunEnd, RunNow, RunPeak};
use timeline::signals::{CGROUP_PGFAULT, CGROUP_PGMAJFAULT};
use units::{Bytes, Span};

use crate::applied::AppliedWatch;
use crate::child::{Announcement, Announcements, Tail};
use crate::footprint::{Moment, RunCourse, footprint};
use crate::load::Load;
use crate::outside::Outside;
use crate::plan::{RunPlan, ServerPlan};
use crate::ready::ReadyWhen;
use crate::run::{PlaceInTrial, RunMemory, RunOutcome, RunSpeed, TrialRun};
use crate::score::Score;

/// How long a program may take to end after SIGTERM.
pub(crate) const ENDING_MAX: Span = Span::from_secs(20);
/// How long a server may take to be ready.
const STARTING_MAX: Duration = Duration::from_secs(60);
/// Points of the picture of a run.
const CURVE_POINTS_MAX: usize = 150;

/// What a run does now.
#[derive(Debug)]
enum Stage {
    /// A server starts; with the command that asks whether it is ready, where one does.
    Starting(Option<Load>),
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

/// The part of a run that is measured.
#[derive(Debug, Clone, Copy, Default)]
struct MeasuredPart {
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

pub(crate) struct Session<'a> {
    plan: &'a RunPlan,
    watcher: AppliedWatch,
    announcements: Announcements,
    is_interrupted: &'a dyn Fn() -> bool,
    stage: Stage,
    begun: Instant,
    course: RunCourse,
    measured: MeasuredPart,
    operations: Option<f64>,
    latencies_ms: Vec<f64>,
    score: Score,
    idle: Option<Bytes>,
    /// Why it was ended before its work was done.
    ended_by: Option<RunOutcome>,
    /// Whether it did not end when it was asked to.
    is_killed_at_end: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        plan: &'a RunPlan,
        watcher: AppliedWatch,
        announcements: Announcements,
        is_interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        let stage = if plan.server.is_some() { Stage::Starting(None) } else { Stage::Working };
        Self {
            plan,
            watcher,
            announcements,
            is_interrupted,
            stage,
            begun: Instant::now(),
            course: RunCourse::new(),
            measured: MeasuredPart::default(),
            operations: None,
            latencies_ms: Vec::new(),
            score: Score::default(),
            idle: None,
            ended_by: None,
            is_killed_at_end: false,
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
    pub(crate) fn step(&mut self, now: &RunNow<'_>) -> ControlFlow<()> {
        if (self.is_interrupted)() {
            self.ended_by = Some(RunOutcome::Interrupted);
            return ControlFlow::Break(());
        }
        if now.reading.at >= self.plan.timeout && self.measured.to.is_none() {
            self.ended_by.get_or_insert(RunOutcome::TimedOut);
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
        let all = self.announcements.take();
        self.take_announcements(&all, reading)
    }

    fn take_announcements(&mut self, all: &[Announcement], reading: &GroupReading) -> bool {
        let mut holds = false;
        for announced in all {
            match *announced {
                // What falls, or is more than anything counts, was no count.
                Announcement::Operations(operations) => {
                    const OPERATIONS_MAX: f64 = 1e15;
                    let least = self.operations.unwrap_or(0.0);
                    if (least..=OPERATIONS_MAX).contains(&operations) {
                        self.operations = Some(operations);
                    }
                }
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
            Stage::Starting(asking) => self.starting(asking, now),
            Stage::WarmingUp(mut load) => match load.ended() {
                None => go_on(Stage::WarmingUp(load)),
                Some(Ok(_)) => self.begin_load(now),
                Some(Err(why)) => self.give_up(RunOutcome::LoadFailed(why)),
            },
            Stage::Loaded(mut load) => match load.ended() {
                None => go_on(Stage::Loaded(load)),
                Some(Ok(output)) => {
                    let format = self.server().and_then(|server| server.score);
                    self.score = format.map(|format| format.read(&output)).unwrap_or_default();
                    go_on(self.work_is_done(now))
                }
                Some(Err(why)) => self.give_up(RunOutcome::LoadFailed(why)),
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
            Stage::Ending(since) if since.elapsed() > ENDING_MAX.as_duration() => {
                self.is_killed_at_end = true;
                ControlFlow::Break(())
            }
            Stage::Ending(since) => go_on(Stage::Ending(since)),
        }
    }

    fn server(&self) -> Option<&'a ServerPlan> {
        self.plan.server.as_ref()
    }

    fn give_up(&mut self, outcome: RunOutcome) -> ControlFlow<(), Stage> {
        self.ended_by = Some(outcome);
        ControlFlow::Break(())
    }

    fn starting(&mut self, asking: Option<Load>, now: &RunNow<'_>) -> ControlFlow<(), Stage> {
        let Some(server) = self.server() else {
            return ControlFlow::Continue(Stage::Working);
        };
        let elapsed = self.begun.elapsed();
        let (is_ready, asking) = match &server.ready {
            ReadyWhen::Command(line) => asked(line, asking),
            other => (other.is_ready(elapsed), None),
        };
        if !is_ready {
            if elapsed > STARTING_MAX {
                return self.give_up(RunOutcome::NotReady);
            }
            return ControlFlow::Continue(Stage::Starting(asking));
        }
        if !server.has_warm_up {
            return self.begin_load(now);
        }
        match Load::start(&server.load) {
            Ok(load) => ControlFlow::Continue(Stage::WarmingUp(load)),
            Err(error) => self.give_up(RunOutcome::LoadFailed(error.to_string())),
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
            Err(error) => self.give_up(RunOutcome::LoadFailed(error.to_string())),
        }
    }

    fn work_is_done(&mut self, now: &RunNow<'_>) -> Stage {
        self.measured.to = Some(self.mark(now.reading));
        self.watcher.look(now.pids());
        Stage::Idling(Instant::now())
    }

    fn outcome(&mut self, ran: &CgroupRun) -> RunOutcome {
        if ran.was_oom_killed() == Some(true) {
            return RunOutcome::OomKilled;
        }
        if let Some(outcome) = self.ended_by.take() {
            return outcome;
        }
        let is_server = self.plan.server.is_some();
        match ran.end {
            // A server is ended when its load is done.
            _ if is_server && self.measured.to.is_some() => RunOutcome::Completed,
            RunEnd::Exited(0) if is_server => RunOutcome::NotReady,
            RunEnd::Exited(0) | RunEnd::Stopped => RunOutcome::Completed,
            RunEnd::Exited(code) => RunOutcome::Failed(code),
            RunEnd::Signalled(signal) => RunOutcome::Signalled(signal),
        }
    }

    pub(crate) fn finish(
        mut self,
        place: PlaceInTrial,
        begun: jiff::Timestamp,
        ran: &CgroupRun,
        tail: &Tail,
        outside: Outside,
        own_cpu: Span,
    ) -> TrialRun {
        let outcome = self.outcome(ran);
        let last = self.announcements.take_last();
        self.take_announcements(&last, &ran.last);
        let from = self.measured.from.unwrap_or_default();
        let to = self.measured.to.unwrap_or_else(|| self.mark(&ran.last));
        let memory = self.course.figures(from.at, to.at).map(|figures| RunMemory {
            over_operations: figures.over_operations,
            over_cpu: figures.over_cpu,
            over_time: figures.over_time,
            peak: figures.peak,
            end: self.measured.to.map(|_| figures.end),
            idle: self.idle,
            group_peak: ran.peak.map(RunPeak::bytes),
        });
        let is_completed = outcome == RunOutcome::Completed;
        let speed = is_completed.then(|| self.speed(from, to));
        let message = Some(tail.text()).filter(|text| !is_completed && !text.is_empty());
        let (processes, applied) = self.watcher.finish();
        TrialRun {
            message,
            processes,
            memory,
            speed,
            outside_cpus: outside.cpus,
            steal: outside.steal,
            left_over: ran.left_over,
            is_killed_at_end: self.is_killed_at_end,
            group: Some(ran.group.display().to_string()),
            own_cpu,
            curve: self.course.curve(CURVE_POINTS_MAX),
            ..TrialRun::new(place, begun, outcome, applied)
        }
    }

    fn speed(&mut self, from: Mark, to: Mark) -> RunSpeed {
        let announced = Some(to.operations - from.operations).filter(|done| *done > 0.0);
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

/// Asks by a command, which may take its time: whether it succeeded, and the command that still runs.
fn asked(line: &str, asking: Option<Load>) -> (bool, Option<Load>) {
    let Some(mut asking) = asking.or_else(|| Load::start(line).ok()) else {
        return (false, None);
    };
    match asking.ended() {
        None => (false, Some(asking)),
        Some(ended) => (ended.is_ok(), None),
    }
}
