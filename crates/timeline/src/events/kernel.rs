//! Kernel reports as events, merged with the recorder's events of the same reports.

use std::collections::HashMap;
use std::sync::Arc;

use units::Span;

use crate::event::{Event, EventKind};
use crate::kernel_report::{GroupReport, KernelReport, Killed, ReportKind};
use crate::sample::Stamp;
use crate::timeline::{Reported, Timeline};

use super::{EventTime, PlacedEvent};

/// A kernel report with its own time.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenReport<'a> {
    pub(super) at: EventTime,
    pub(super) stamp: Stamp,
    pub(super) report: &'a KernelReport,
    text: Option<&'a Arc<str>>,
    /// Whether the log has wall-clock times; also true if it has no times at all.
    is_dated: bool,
}

/// Reports of the source up to a timeline's end, including those before its first sample.
pub(super) fn until_end(timeline: &Timeline) -> Vec<WrittenReport<'_>> {
    let end = timeline.origin() + timeline.len();
    let mut all = earlier(timeline);
    all.extend(
        timeline
            .all_reports()
            .iter()
            .take_while(|reported| reported.sample < end)
            .map(|reported| written(timeline, reported)),
    );
    all
}

/// Reports of a timeline, including those before the source's first sample.
pub(super) fn of_timeline(timeline: &Timeline) -> Vec<WrittenReport<'_>> {
    let mut all = earlier(timeline);
    all.extend(timeline.reports().map(|reported| written(timeline, reported)));
    all
}

fn earlier(timeline: &Timeline) -> Vec<WrittenReport<'_>> {
    timeline
        .earlier_reports()
        .iter()
        .map(|known| WrittenReport {
            at: EventTime::at_stamp(timeline, known.stamp),
            stamp: known.stamp,
            report: &known.report,
            text: known.text.as_ref(),
            is_dated: true,
        })
        .collect()
}

fn written<'a>(timeline: &Timeline, reported: &'a Reported) -> WrittenReport<'a> {
    WrittenReport {
        at: written_at(timeline, reported),
        stamp: reported.stamp,
        report: &reported.report,
        text: reported.text.as_ref(),
        is_dated: reported.wall.is_some() || reported.report.stamp.is_none(),
    }
}

/// The time at which a report was written. Its sample was taken a little later.
fn written_at(timeline: &Timeline, reported: &Reported) -> EventTime {
    let sample = timeline.sample_of(reported);
    let own = sample.and_then(|index| Some((index, timeline.stamp(index)?.wall?)));
    let (Some((index, own)), Some(wall)) = (own, reported.wall) else {
        return EventTime::new(reported.at, reported.wall);
    };
    let at = timeline.times().get(index).copied().unwrap_or_default();
    let by = Span::from_nanos(own.unix_nanos().abs_diff(wall.unix_nanos()));
    let at = EventTime::new(at, Some(wall));
    if own > wall { at.minus(by) } else { at.plus(by) }
}

/// Reports as events. A requested memory dump (SysRq m) is not one.
pub(super) fn events(reports: &[WrittenReport<'_>]) -> Vec<PlacedEvent> {
    reports.iter().filter(|written| !written.report.is_memory_dump()).map(event).collect()
}

fn event(written: &WrittenReport<'_>) -> PlacedEvent {
    let report = written.report;
    let lines = written.text.map_or("", |text| text.trim_end()).to_owned();
    let mut event = Event::of_report(written.stamp, report, lines);
    // A log without years: its own stamp is the best available.
    if let (Some(log), false) = (&report.stamp, written.is_dated) {
        event.text.push_str(&format!(" (log: {})", log.text));
    }
    let group = report.group.as_ref().map_or("", |group| group.path.as_str());
    PlacedEvent::exact(written.at, event).within(group)
}

impl Event {
    /// A kernel report as an event, with the kernel's lines; also used by a recorder.
    pub fn of_report(stamp: Stamp, report: &KernelReport, lines: String) -> Self {
        let (kind, text) = match report.kind {
            ReportKind::OomKill => (EventKind::OomKill, killed(report)),
            ReportKind::AllocationFailure => (EventKind::AllocationFailure, failed(report)),
        };
        Self { stamp, kind, subject: report.subject(), text, report: lines }
    }
}

/// Merges a recorder's event and a report of the same kill or failure into one event, with the report's words and the
/// kernel's lines. `reports` and `listed` have the same order.
pub(super) fn merge(
    reports: &[WrittenReport<'_>],
    listed: &mut [PlacedEvent],
    noted: &mut Vec<PlacedEvent>,
) {
    let reports: Vec<&WrittenReport<'_>> =
        reports.iter().filter(|written| !written.report.is_memory_dump()).collect();
    let mut of_subject: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, written) in reports.iter().enumerate() {
        let subject = written.report.subject();
        of_subject.entry(subject).or_default().push(at);
    }
    noted.retain(|note| {
        let event = &note.dated_event.event;
        let Some(left) = of_subject.get_mut(&event.subject) else {
            return true;
        };
        // Kills come in storms: takes the one that is nearest in time.
        let found = (0..left.len())
            .filter(|place| event.is_of(reports[left[*place]].report, reports[left[*place]].stamp))
            .min_by_key(|place| reports[left[*place]].at.apart(note.at));
        let Some(place) = found else { return true };
        let at = left.remove(place);
        let lines = &note.dated_event.event.report;
        if !lines.is_empty() {
            listed[at].dated_event.event.report.clone_from(lines);
        }
        false
    });
}

/// `OOM kill of java (4242), 3.1 GiB, in /web at its limit of 512 MiB`.
fn killed(report: &KernelReport) -> String {
    let mut text = match report.killed.as_slice() {
        [] => "out of memory; no killed process is named".to_owned(),
        [one] => format!("OOM kill of {}", one.named()),
        [one, more @ ..] => format!("OOM kill of {} and {} more", one.named(), more.len()),
    };
    if let Some(rss) = report.killed.first().and_then(Killed::rss) {
        text.push_str(&format!(", {rss}"));
    }
    if let Some(group) = &report.group {
        text.push_str(&at_limit(group));
    } else if report.is_by_hand() {
        text.push_str(", asked for by hand (SysRq f)");
    }
    text
}

fn at_limit(group: &GroupReport) -> String {
    let limits = [group.memory, group.swap, group.memory_and_swap];
    let full = limits.into_iter().flatten().find(|limit| limit.is_full());
    let limit = full.map_or_else(String::new, |full| format!(" at its limit of {}", full.limit));
    match group.path.as_str() {
        "" if limit.is_empty() => ", in a cgroup".to_owned(),
        "" => format!(", in a cgroup{limit}"),
        path => format!(", in {path}{limit}"),
    }
}

/// `allocation of order 5 failed for swapper/0 (0): GFP_ATOMIC`.
fn failed(report: &KernelReport) -> String {
    let request = report.request.as_ref();
    let mut text = match request {
        Some(request) => format!("allocation of order {} failed", request.order),
        None => "an allocation failed".to_owned(),
    };
    let by = report.subject();
    if !by.is_empty() {
        text.push_str(&format!(" for {by}"));
    }
    if let Some(names) = request.and_then(|request| request.gfp_names.as_deref()) {
        text.push_str(&format!(": {names}"));
    } else if let Some(cache) = &report.slab_cache {
        text.push_str(&format!(": slab cache {cache}"));
    }
    text
}
