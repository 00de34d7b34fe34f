//! Whether fixes cure: a scenario makes a finding, its first fix is carried out while the load goes on, and the time after
//! is judged against the time before.
//!
//! The load works longer than in a plain run. After a fix the machine has some seconds to settle: a cache that fits now
//! must be read once. Only the time in which the load worked counts, before and after.

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
use crate::scenario::Scenario;

/// How many times as long loads work: a finding needs some ten seconds to be there, and its cure as long to show.
const STRETCH: f64 = 4.0;
/// What a fix needs to take effect: files that fit now are read once, which a disk of 10 MiB/s does with 100 MiB in 10 s.
const SETTLE: Span = Span::from_secs(12);
/// The part of the time before the fix in which the finding was there: work is compared with the work of it.
const SICK: Span = Span::from_secs(8);
/// A shorter time after the fix shows nothing.
const AFTER_MIN: Span = Span::from_secs(8);
/// A smaller change of the work that is done is noise of an emulated machine: an engineering choice.
const WORK_NOISE: f64 = 0.2;

/// Treats each finding that these scenarios make.
///
/// # Errors
/// As [`run`]; an arm that could not be played is a row.
pub fn cure(
    scenarios: &[&Scenario],
    options: &RunOptions,
    progress: RunProgress<'_>,
) -> Result<CureReport, LabError> {
    let mut report = CureReport {
        schema: CURE_SCHEMA,
        kernel: String::new(),
        accelerator: String::new(),
        rows: Vec::new(),
    };
    for scenario in scenarios {
        let is_wanted = |name: &str| options.arm.as_deref().is_none_or(|wanted| wanted == name);
        for arm in scenario.arms.iter().filter(|arm| is_wanted(arm.name)) {
            for rule in arm.finds.iter().filter_map(|rules| rules.split('|').next()) {
                let order = TreatmentOrder { rule: rule.to_owned(), stretch: STRETCH };
                let options = RunOptions {
                    arm: Some(arm.name.to_owned()),
                    treated: Some(order),
                    output: options.output.as_ref().map(|kept| kept.join(scenario.name)),
                    ..options.clone()
                };
                let row = CureRow {
                    rule: rule.to_owned(),
                    scenario: scenario.name.to_owned(),
                    arm: arm.name.to_owned(),
                    finding: String::new(),
                    advice: String::new(),
                    applied: Vec::new(),
                    effect: CureEffect::NotTried,
                    because: String::new(),
                    work_ratio: None,
                    is_taken_back: None,
                };
                report.rows.push(match run(scenario, &options, progress) {
                    Ok(outcomes) => {
                        let played = outcomes.arms.into_iter().next();
                        if let Some(played) = &played {
                            report.kernel.clone_from(&played.kernel);
                            played.accelerator.name().clone_into(&mut report.accelerator);
                        }
                        played.map_or(row.clone(), |played| judge(row, played))
                    }
                    Err(LabError::Guest { why, .. }) => CureRow { because: why, ..row },
                    Err(error) => return Err(error),
                });
            }
        }
    }
    Ok(report)
}

/// Fills in the row of an arm that was played.
fn judge(mut row: CureRow, mut played: ArmOutcome) -> CureRow {
    let Some(treatment) = played.treatment else {
        "it was not found while the load went on".clone_into(&mut row.because);
        return row;
    };
    let Treatment { at_unix_ns, finding, advice, outcome, settings } = treatment;
    row.finding = finding;
    row.advice = advice;
    row.is_taken_back = played.taken_back.as_ref().map(Option::is_none);
    match outcome {
        TreatmentOutcome::Applied(commands) => row.applied = commands,
        TreatmentOutcome::IsWords => {
            row.effect = CureEffect::NotCarriedOut;
            "words only".clone_into(&mut row.because);
            return row;
        }
        TreatmentOutcome::IsCommand(command) => {
            row.effect = CureEffect::NotCarriedOut;
            row.because = format!("needs a shell: {command}");
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
        Some(windows) => windows.compare(row, played.source),
        None => {
            "the load ended too soon after the fix".clone_into(&mut row.because);
            row
        }
    }
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
        let settled = times.partition_point(|time| *time < at.plus(SETTLE));
        let clock = timeline.constant(Ratio::new(0.0));
        let after = clock.stretch(settled, end_of_work(source, fixed)?)?;
        let sick = times.partition_point(|time| time.plus(SICK) < at);
        (after.duration() >= AFTER_MIN).then_some(Self {
            before: clock.stretch(0, fixed)?,
            sick: clock.stretch(sick, fixed)?,
            after,
        })
    }

    fn compare(&self, mut row: CureRow, source: Source) -> CureRow {
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
        let severity = |report: &Report, rule: &str| {
            let mut all = report.findings.iter().chain(&report.notes);
            all.find(|finding| finding.id == rule).map(|finding| finding.severity)
        };
        let is_new = |id: &&str| severity(&before, id).is_none();
        let ids = after.findings.iter().filter(|finding| finding.severity != Severity::Info);
        let new: Vec<&str> = ids.map(|finding| finding.id.as_str()).filter(is_new).collect();
        let work = row.work_ratio.map_or(1.0, Ratio::get);
        let (was, is) = (severity(&before, &row.rule), severity(&after, &row.rule));
        row.effect = if !new.is_empty() {
            row.because = format!("found after it: {}", new.join(", "));
            CureEffect::Worse
        } else if work < 1.0 - WORK_NOISE {
            CureEffect::Worse
        } else if is.is_none() {
            CureEffect::Cured
        } else if is < was || work > 1.0 + WORK_NOISE {
            CureEffect::Better
        } else {
            CureEffect::NoEffect
        };
        row
    }
}

/// The last sample of the load that works at this one: afterwards fewer processes are there.
fn end_of_work(source: &Source, at: usize) -> Option<usize> {
    let present = |index: usize| {
        let load = source.timeline.entities(Entity::Process).filter(|one| is_load(&one.key));
        load.filter(|one| source.timeline.at_of(one, PROC_UTIME, index).is_some()).count()
    };
    let there = present(at);
    let all = at..source.timeline.len();
    (there > 0).then(|| all.take_while(|index| present(*index) >= there).last())?
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

    /// How many times as much another one is; `None` where nothing was done.
    fn ratio_to(self, other: Self) -> Option<Ratio> {
        /// Fewer bytes a second are messages, no work.
        const BYTES_MIN: f64 = 65_536.0;
        let (was, is) = if self.bytes.max(other.bytes) >= BYTES_MIN {
            (self.bytes, other.bytes)
        } else {
            (self.ticks, other.ticks)
        };
        (was > 0.0).then(|| Ratio::new(is / was))
    }
}
