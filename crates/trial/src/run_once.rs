//! One run is made: a command with a variant's settings in a cgroup of its own.

use std::process::Stdio;

use sampler::{CgroupRunError, CgroupRunOptions, GroupLimits, run_in_cgroup};
use units::{Bytes, Ratio, Span};

use crate::applied::AppliedWatch;
use crate::child::{AnnounceNumber, PreparedChild, Tail, prepare};
use crate::load::Load;
use crate::outside::{HostGauge, Outside};
use crate::plan::TrialPlan;
use crate::preflight::ReadyVariant;
use crate::run::{PlaceInTrial, RunOutcome, TrialRun};
use crate::session::Session;
use crate::variant::VariantSetting;

/// From one reading of the cgroup to the next, for short runs and for long ones: a reading takes 60 to 90 µs of CPU time.
const READING_INTERVAL_MIN: Span = Span::from_millis(20);
const READING_INTERVAL_MAX: Span = Span::from_millis(50);

/// How often the runs of a trial are read, by the length of its first one: a hundred times or more.
pub(crate) fn reading_interval(first: Option<&TrialRun>) -> Span {
    let wall = first.and_then(|run| run.speed).map(|speed| speed.wall);
    let hundredth = wall.map_or(READING_INTERVAL_MIN, |wall| wall.times(0.01));
    hundredth.clamp(READING_INTERVAL_MIN, READING_INTERVAL_MAX)
}

/// Makes one run.
///
/// # Errors
/// No cgroup can be made, or its processes cannot be ended: no other run would fare better. What is wrong with the command
/// is an [`RunOutcome`].
pub(crate) fn run_once(
    plan: &TrialPlan,
    ready: &ReadyVariant,
    place: PlaceInTrial,
    gauge: &mut HostGauge,
    announced: &AnnounceNumber,
    every: Span,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<TrialRun, CgroupRunError> {
    let variant = &ready.variant;
    let begun = jiff::Timestamp::now();
    if let Some(prepare) = &plan.runs.prepare
        && let Err(why) = Load::run(prepare, plan.runs.timeout.as_duration(), is_interrupted)
    {
        let mut run = TrialRun::not_started(place, begun, format!("--prepare: {why}"));
        if is_interrupted() {
            run.outcome = RunOutcome::Interrupted;
        }
        return Ok(run);
    }
    if let Some(server) = &plan.runs.server
        && server.ready.is_answered_before()
    {
        let why = format!("something else answers at {} already", server.ready);
        return Ok(TrialRun::not_started(place, begun, why));
    }
    let words = plan.command_of(variant).words();
    let (settings, preload) = (&variant.settings, ready.preload.as_deref());
    let is_in_machine = plan.runs.machine.is_some();
    let child = match prepare(&words, settings, preload, announced, is_in_machine) {
        Ok(child) => child,
        Err(error) => return Ok(TrialRun::not_started(place, begun, error.to_string())),
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
        AppliedWatch::of(variant, place.block == 0),
        announcements,
        is_interrupted,
    );
    let mut their_end = Some(their_end);
    let options = CgroupRunOptions {
        name: "memtide-trial",
        // A virtual machine is there to be filled.
        limits: limits(&variant.settings, before.available.filter(|_| !is_in_machine)),
        every,
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
            return Ok(TrialRun::not_started(place, begun, why));
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
