//! What is wrong with a host's memory?

use crate::kept_findings::add_kept_findings;
use crate::profile::add_kept_profiles;
use diagnose::{Diagnosis, Evidence};
use report::Report;
use report::model::GroupSection;
use timeline::cgroup::ROOT;
use timeline::{Source, TimePoint, TimeRange, Timeline};
use units::{Span, WallClock};

/// Returns the answer of `check` about a source.
pub fn check(source: &Source) -> Report {
    Report::new(source, &diagnosis(source))
}

/// What `--at` covers before and after a time: long enough to show what led to it.
const AROUND: Span = Span::from_mins(5);

/// The part of a source that answers what happened at a moment.
pub fn around(at: TimePoint) -> TimeRange {
    TimeRange::around(at, AROUND)
}

/// The same about a cgroup of the source, by its path, or about a moment, of which the source is the part [`around`] it:
/// what happened then leads.
pub fn check_about(source: &Source, group: Option<&str>, at: Option<TimePoint>) -> Report {
    let asked = at.and_then(|at| asked(source, at));
    let mut report = report(source, diagnosis_about(source, asked), group);
    add_kept_profiles(&mut report, source);
    add_kept_findings(&mut report, source);
    report
}

/// A moment on the timeline's clock.
fn asked(source: &Source, at: TimePoint) -> Option<Span> {
    let timeline = &source.timeline;
    let (first, last) = (timeline.times().first()?, timeline.times().last()?);
    match at {
        TimePoint::At(wall) => on_clock(timeline, wall),
        TimePoint::AfterStart(after) => {
            Some(first.plus(after).saturating_sub(source.origin.cut_at.unwrap_or_default()))
        }
        TimePoint::BeforeEnd(before) => Some(last.saturating_sub(before.min(AROUND))),
    }
}

/// A moment of the wall clock on the timeline's clock.
fn on_clock(timeline: &Timeline, at: WallClock) -> Option<Span> {
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
    let mut report = report(source, diagnosis_now(source, recent), group);
    add_kept_profiles(&mut report, source);
    report
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

#[cfg(test)]
mod tests {
    use timeline::{Entity, Facts, Sample, SourceKind, signals};
    use units::{Bytes, Count, Limit};

    use super::*;

    /// The headline about a moment of a host without a clock, on which the kernel killed in /early after 400 s and in /late
    /// after 1,000 of 1,200 s.
    fn headline(at: TimePoint) -> String {
        let mut timeline = Timeline::default();
        for second in 0..=1_200 {
            let mut sample = Sample::at(Span::from_secs(second));
            sample.host.set(signals::MEM_TOTAL, Bytes::from_gib(4));
            sample.host.set(signals::MEM_AVAILABLE, Bytes::from_gib(3));
            for (path, at) in [("/early", 400), ("/late", 1_000)] {
                let group = sample.table_mut(Entity::Cgroup).entry(path);
                let killed = Count::new(u64::from(second >= at));
                group.row.set(signals::CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)));
                group.row.set(signals::CGROUP_EVENTS_OOM, killed);
                group.row.set(signals::CGROUP_EVENTS_OOM_KILL, killed);
            }
            timeline.push(&sample).expect("in order");
        }
        let source = Source::new(SourceKind::Capture, "", timeline, Facts::default());
        let part = source.within(around(at)).expect("has samples then");
        check_about(&part, None, Some(at)).headline
    }

    #[test]
    fn a_moment_may_be_counted_from_either_end() {
        let after = |second| TimePoint::AfterStart(Span::from_secs(second));
        let before = |second| TimePoint::BeforeEnd(Span::from_secs(second));
        // Both kills are within five minutes of these.
        for (at, path) in [(after(690), "/early"), (after(710), "/late"), (before(510), "/early")] {
            assert!(headline(at).contains(path), "{at:?}");
        }
        assert!(headline(before(200)).contains("/late"));
    }
}
