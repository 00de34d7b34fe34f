//! What is wrong with a host's memory?

use diagnose::{Diagnosis, Evidence};
use report::Report;
use report::model::GroupSection;
use timeline::cgroup::ROOT;
use timeline::{Source, TimePoint};
use units::Span;

/// Returns the answer of `check` about a source.
pub fn check(source: &Source) -> Report {
    Report::new(source, &diagnosis(source))
}

/// The same about a cgroup of the source, by its path, or about a moment of it: what happened then leads. A moment that is
/// relative to the ends of a source is not known in a part of it.
pub fn check_about(source: &Source, group: Option<&str>, at: Option<TimePoint>) -> Report {
    let asked = at.and_then(|at| asked(source, at));
    report(source, diagnosis_about(source, asked), group)
}

/// A moment of the wall clock on the timeline's clock.
fn asked(source: &Source, at: TimePoint) -> Option<Span> {
    let TimePoint::At(at) = at else {
        return None;
    };
    let timeline = &source.timeline;
    let is_before = |index: &usize| {
        timeline.stamp(*index).and_then(|stamp| stamp.wall).is_some_and(|wall| wall <= at)
    };
    let before = (0..timeline.len()).rev().find(is_before)?;
    let since = at.saturating_since(timeline.stamp(before)?.wall?);
    Some(timeline.times().get(before)?.plus(since))
}

/// Returns the answer of `check` about this host or one cgroup of it, live, with its recording if the source has one.
/// Kills and stalls count towards the verdict if they are no older than `recent`.
pub fn check_now(source: &Source, recent: Span, group: Option<&str>) -> Report {
    report(source, diagnosis_now(source, recent), group)
}

fn report(source: &Source, diagnosis: Diagnosis, group: Option<&str>) -> Report {
    let Some(path) = group else {
        return Report::new(source, &diagnosis);
    };
    let cx = Evidence::new(&source.timeline, &source.facts);
    let live_from = source.origin.live_from.unwrap_or_default();
    let group = diagnosis.about(&cx, path, live_from);
    let name = match path {
        ROOT => Some(source.facts.names.place(path).into_owned()),
        path => source.facts.names.innermost(path),
    };
    let mut report = Report::new(source, &group.diagnosis);
    report.group = Some(GroupSection::new(&source.timeline, &group, name));
    report
}

fn diagnosis_now(source: &Source, recent: Span) -> Diagnosis {
    let live_from = source.origin.live_from.unwrap_or_default();
    diagnose::diagnose_now(&source.timeline, live_from, &source.facts, recent)
}

/// Returns what the rules find in a source.
pub(crate) fn diagnosis(source: &Source) -> Diagnosis {
    diagnosis_about(source, None)
}

fn diagnosis_about(source: &Source, asked: Option<Span>) -> Diagnosis {
    let diagnosis = diagnose::diagnose_about(&source.timeline, &source.facts, asked);
    if source.origin.is_cut_short {
        diagnosis.first_part_only(source.timeline.duration())
    } else if source.timeline.is_empty() {
        of_text(source, diagnosis)
    } else if source.origin.is_partly_quoted {
        diagnosis.of_partly_quoted_text()
    } else {
        diagnosis
    }
}

/// The answer about a text that was recognised and holds no reading of a Linux host's memory.
fn of_text(source: &Source, diagnosis: Diagnosis) -> Diagnosis {
    let inputs = &source.origin.inputs;
    let mut systems = inputs.iter().map(|input| input.other_system);
    if let Some(system) = systems.find(|system| !system.is_empty()) {
        return diagnosis.of_another_system(system);
    }
    let mut recognised: Vec<&str> = Vec::new();
    for input in inputs {
        if !recognised.contains(&input.what.as_str()) {
            recognised.push(&input.what);
        }
    }
    diagnosis.of_text_without_readings(&recognised)
}
