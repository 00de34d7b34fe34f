//! Whether fixes cure: a scenario makes a finding, its first fix is carried out while the load goes on, and the time after
//! is judged against the time before. Then the scenario is played again from a start with the fix.
//!
//! The load works longer than in a plain run. After a fix the machine has some seconds to settle: a cache that fits now
//! must be read once. Only the time in which the load worked counts, before and after.

use std::path::PathBuf;

use report::Report;
use report::model::Severity;
use timeline::facts;
use timeline::signals::{PROC_RCHAR, PROC_UTIME, PROC_WCHAR};
use timeline::{Entity, ProcessKey, Source, Stretch, TimePoint, TimeRange};
use units::{Ratio, Span, WallClock};

use crate::LabError;
use crate::message::{Treatment, TreatmentOrder, TreatmentOutcome};
use crate::model::{CURE_SCHEMA, CureEffect, CureReport, CureRow};
use crate::outcome::ArmOutcome;
use crate::progress::RunProgress;
use crate::run::{RunOptions, run};
use crate::scenario::{Arm, Scenario};

/// How many times as long loads work: a finding needs some ten seconds to be there, and its cure as long to show.
const STRETCH: f64 = 4.0;
/// What a fix needs to take effect, at least: files that fit now are read once, which a disk of 10 MiB/s does with 100 MiB in 10 s.
const SETTLE: Span = Span::from_secs(12);
/// The part of the time before the fix in which the finding was there: work is compared with the work of it.
const SICK: Span = Span::from_secs(8);
/// A shorter time after the fix shows nothing.
const AFTER_MIN: Span = Span::from_secs(8);
/// A smaller change of the work that is done is noise of an emulated machine: an engineering choice.
const WORK_NOISE: f64 = 0.2;

/// Treats each finding that these scenarios make, on each of these kernels; on one that is found if there are none.
///
/// # Errors
/// As [`run`]; an arm that could not be played is a row.
pub fn cure(
    scenarios: &[&Scenario],
    kernels: &[PathBuf],
    options: &RunOptions,
    progress: RunProgress<'_>,
) -> Result<CureReport, LabError> {
    let mut report =
        CureReport { schema: CURE_SCHEMA, accelerator: String::new(), rows: Vec::new() };
    let kernels: Vec<Option<&PathBuf>> = match kernels {
        [] => vec![None],
        kernels => kernels.iter().map(Some).collect(),
    };
    for kernel in kernels {
        for scenario in scenarios {
            let options = RunOptions {
                kernel: kernel.cloned(),
                output: options.output.as_ref().map(|kept| kept.join(scenario.name)),
                ..options.clone()
            };
            let is_wanted = |name: &str| options.arm.as_deref().is_none_or(|arm| arm == name);
            for arm in scenario.arms.iter().filter(|arm| is_wanted(arm.name)) {
                for rule in arm.finds {
                    let treated = TreatedArm { scenario, arm, rule, options: &options };
                    report.rows.push(treated.play(&mut report.accelerator, progress)?);
                }
            }
        }
    }
    Ok(report)
}

/// An arm that makes a finding.
struct TreatedArm<'a> {
    scenario: &'a Scenario,
    arm: &'a Arm,
    /// The finding's rule; `a|b` means either.
    rule: &'a str,
    options: &'a RunOptions,
}

impl TreatedArm<'_> {
    fn play(
        &self,
        accelerator: &mut String,
        progress: RunProgress<'_>,
    ) -> Result<CureRow, LabError> {
        let row = CureRow {
            rule: self.rule.to_owned(),
            scenario: self.scenario.name.to_owned(),
            arm: self.arm.name.to_owned(),
            ..CureRow::default()
        };
        let order = TreatmentOrder { rule: self.rule.to_owned(), stretch: STRETCH };
        let options = RunOptions { treated: Some(order), ..self.options.clone() };
        let sick = match self.run(options, progress)? {
            Ok(sick) => sick,
            Err(why) => return Ok(CureRow { because: why, ..row }),
        };
        sick.accelerator.name().clone_into(accelerator);
        let before = sick.report.clone();
        let mut row = judge(self.arm, CureRow { kernel: sick.kernel.clone(), ..row }, sick);
        let first = row.applied.join("\n");
        let is_advised =
            row.effect == CureEffect::IsWords && self.scenario.advised_in(self.arm.name).is_some();
        if first.is_empty() && !is_advised {
            return Ok(row);
        }
        let output = self.options.output.as_ref().map(|kept| kept.join("from-start"));
        let options = RunOptions { first, is_advised, output, ..self.options.clone() };
        let (effect, because) = match self.run(options, progress)? {
            Ok(played) => compare(self.arm, &row.rule, &before, &played.report, None),
            Err(why) => (CureEffect::NotTried, why),
        };
        row.from_start = Some(effect);
        row.from_start_because = because;
        Ok(row)
    }

    /// Plays the arm; why not, where the machine could not.
    fn run(
        &self,
        options: RunOptions,
        progress: RunProgress<'_>,
    ) -> Result<Result<ArmOutcome, String>, LabError> {
        let options = RunOptions { arm: Some(self.arm.name.to_owned()), ..options };
        match run(self.scenario, &options, progress) {
            Ok(outcomes) => {
                let arm = outcomes.arms.into_iter().next();
                Ok(arm.ok_or_else(|| "no arm was played".to_owned()))
            }
            Err(LabError::Guest { why, .. }) => Ok(Err(why)),
            Err(error @ (LabError::TimedOut { .. } | LabError::Ended { .. })) => {
                Ok(Err(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Fills in the row of an arm that was treated while its load went on.
fn judge(arm: &Arm, mut row: CureRow, mut played: ArmOutcome) -> CureRow {
    let Some(treatment) = played.treatment else {
        "it was not found while the load went on".clone_into(&mut row.because);
        return row;
    };
    let Treatment { rule, at_unix_ns, finding, advice, outcome, settings, changes } = treatment;
    row = CureRow { rule, finding, advice, changes, ..row };
    row.is_taken_back = played.taken_back.as_ref().map(Option::is_none);
    match outcome {
        TreatmentOutcome::Applied(commands) => row.applied = commands,
        TreatmentOutcome::IsWords => {
            row.effect = CureEffect::IsWords;
            return row;
        }
        TreatmentOutcome::Refused(why) => {
            row.effect = CureEffect::Worse;
            row.because = why;
            return row;
        }
    }
    let Some(begun) = played.source.timeline.stamp(0).and_then(|first| first.wall) else {
        "the samples have no times".clone_into(&mut row.because);
        return row;
    };
    let at = WallClock::from_unix_nanos(at_unix_ns).saturating_since(begun);
    for (name, value) in settings {
        if let Some(fact) = facts::ALL.iter().find(|fact| fact.name == name) {
            played.source.facts.record(at, *fact, &value);
        }
    }
    match CureWindows::of(&played.source, at) {
        Some(windows) => windows.compare(arm, row, played.source),
        None => {
            "the load ended too soon after the fix".clone_into(&mut row.because);
            row
        }
    }
}

/// What came of a fix, by what `check` found without it and with it and by the work that is done, of that before; and why.
/// Findings that the arm may have are not new.
fn compare(
    arm: &Arm,
    rule: &str,
    before: &Report,
    after: &Report,
    work: Option<Ratio>,
) -> (CureEffect, String) {
    // What has no time was before: kills that a counter remembers.
    let severity = |report: &Report, rule: &str| {
        let mut all = report.findings.iter().chain(&report.notes);
        let found = all.find(|finding| finding.id == rule && finding.from_s.is_some());
        found.map(|finding| finding.severity)
    };
    let is_new = |id: &&str| severity(before, id).is_none() && !arm.may_find.contains(id);
    let ids = after.findings.iter().filter(|finding| finding.severity != Severity::Info);
    let new: Vec<&str> = ids.map(|finding| finding.id.as_str()).filter(is_new).collect();
    if !new.is_empty() {
        return (CureEffect::Worse, format!("found after it: {}", new.join(", ")));
    }
    let work = work.map_or(1.0, Ratio::get);
    let (was, is) = (severity(before, rule), severity(after, rule));
    let effect = if work < 1.0 - WORK_NOISE {
        CureEffect::Worse
    } else if is.is_none() {
        CureEffect::Cured
    } else if is < was || work > 1.0 + WORK_NOISE {
        CureEffect::Better
    } else {
        CureEffect::NoEffect
    };
    (effect, String::new())
}

/// The time before a fix and the time after it.
struct CureWindows {
    /// Since the recording began.
    before: Stretch,
    /// The end of that, in which the finding was there.
    sick: Stretch,
    after: Stretch,
}

impl CureWindows {
    /// `at`: when the fix was carried out, since the first sample. `None` if too little of the load is left.
    fn of(source: &Source, at: Span) -> Option<Self> {
        let timeline = &source.timeline;
        let times = timeline.times();
        let fixed = times.partition_point(|time| *time <= at).checked_sub(1)?;
        let end = end_of_work(source, fixed)?;
        // A backlog takes longer: what was unwritten when the dirty limit was lowered keeps writers waiting.
        let half = Span::from_secs_f64(times.get(end)?.plus(at).as_secs_f64() / 2.0);
        let settled = times.partition_point(|time| *time < at.plus(SETTLE).max(half));
        let clock = timeline.constant(Ratio::new(0.0));
        let after = clock.stretch(settled, end)?;
        let sick = times.partition_point(|time| time.plus(SICK) < at);
        (after.duration() >= AFTER_MIN).then_some(Self {
            before: clock.stretch(0, fixed)?,
            sick: clock.stretch(sick, fixed)?,
            after,
        })
    }

    fn compare(&self, arm: &Arm, mut row: CureRow, source: Source) -> CureRow {
        let Self { before, sick, after } = self;
        row.work_ratio =
            LoadWork::in_stretch(&source, sick).ratio_to(LoadWork::in_stretch(&source, after));
        let report = |stretch: &Stretch| {
            let range = TimeRange {
                since: Some(TimePoint::AfterStart(stretch.from)),
                until: Some(TimePoint::AfterStart(stretch.to)),
            };
            source.clone().within(range).map(|part| answers::check(&part))
        };
        let (Ok(before), Ok(after)) = (report(before), report(after)) else {
            "the samples have no times".clone_into(&mut row.because);
            return row;
        };
        (row.effect, row.because) = compare(arm, &row.rule, &before, &after, row.work_ratio);
        row
    }
}

/// The last sample with as many processes of the load as work at this one; with any, where one has just been killed.
fn end_of_work(source: &Source, at: usize) -> Option<usize> {
    let present = |index: usize| {
        let load = source.timeline.entities(Entity::Process).filter(|one| is_load(&one.key));
        load.filter(|one| source.timeline.at_of(one, PROC_UTIME, index).is_some()).count()
    };
    let there = present(at).max(1);
    (at..source.timeline.len()).rfind(|index| present(*index) >= there)
}

/// Whether a process is of the load: all but the machine's first one are.
fn is_load(key: &str) -> bool {
    ProcessKey::parse(key).pid != "1"
}

/// What the processes of the load do in a second.
#[derive(Debug, Clone, Copy)]
struct LoadWork {
    /// Bytes that they read and write, from the page cache or not.
    bytes: f64,
    /// CPU time in their own code, in ticks.
    ticks: f64,
}

impl LoadWork {
    fn in_stretch(source: &Source, stretch: &Stretch) -> Self {
        let timeline = &source.timeline;
        let seconds = stretch.duration().as_secs_f64();
        let mut work = Self { bytes: 0.0, ticks: 0.0 };
        for process in timeline.entities(Entity::Process).filter(|one| is_load(&one.key)) {
            let bytes = [PROC_RCHAR, PROC_WCHAR].map(|signal| timeline.rate_of(process, signal));
            let bytes = bytes.into_iter().flatten().map(|rate| rate.integral_in(stretch));
            work.bytes += bytes.sum::<f64>() / seconds;
            let ticks = timeline.rate_of(process, PROC_UTIME);
            work.ticks += ticks.map_or(0.0, |rate| rate.integral_in(stretch)) / seconds;
        }
        work
    }

    /// How many times as much another one is; `None` where nothing was done, or that is unknown.
    fn ratio_to(self, other: Self) -> Option<Ratio> {
        /// Fewer bytes a second are messages, no work.
        const BYTES_MIN: f64 = 65_536.0;
        if self.bytes.max(other.bytes) >= BYTES_MIN {
            return (self.bytes > 0.0).then(|| Ratio::new(other.bytes / self.bytes));
        }
        // A program that has all the memory that it wants may rest: less CPU time is no less work.
        let more = other.ticks > self.ticks && self.ticks > 0.0;
        more.then(|| Ratio::new(other.ticks / self.ticks))
    }
}
