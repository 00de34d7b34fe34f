//! The answer of `events`: what happened, in order of time.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::{Dated, DatedEvent, EventKind, Origin, SourceKind, Stamp, Timeline};

use super::Source;
use super::time::timestamp;

/// Name and version of the contract of `events`.
pub const EVENTS_SCHEMA: &str = "memtide-events/1";

/// The whole answer of `events`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventsReport {
    /// Name and version of this contract; a change that readers must know of is another version.
    #[schemars(extend("const" = "memtide-events/1"))]
    pub schema: &'static str,
    /// Where the samples came from.
    pub source: Source,
    /// What happened, in order of time.
    pub events: Vec<EventEntry>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventEntry {
    /// When: the kernel log's time, else the first reading that shows it. Null where the source has no wall
    /// clock, or when it happened is unknown.
    pub at: Option<Timestamp>,
    /// The same, counted from the source's first sample; null where unknown, and below zero before it.
    pub offset_s: Option<f64>,
    /// The last reading that does not show it yet: it happened between this and `at`. Null where `at` is when it happened,
    /// or where that reading is not known.
    pub since: Option<Timestamp>,
    /// The same, counted from the source's first sample.
    pub since_offset_s: Option<f64>,
    /// When it ended; null for what is of a moment.
    pub until: Option<Timestamp>,
    /// The same, counted from the source's first sample.
    pub until_offset_s: Option<f64>,
    /// How exact `at` is: `exactly`; `between` where it happened after `since`; `before` where it happened before
    /// it and nothing more is known; `since-boot` where only a counter shows that it happened before the first sample.
    pub dated: &'static str,
    /// `oom-kill`, `allocation-failure`, `cgroup-limit`, `fact-changed`, `limit-changed`, `boot`, `suspend`, `clock-step`, `gap`,
    /// `recorder-started`, `recorder-stopped`, `samples-lost`, `blocked`, `service-started`, `service-ended`,
    /// `kernel-profile`, `finding-found`, `finding-changed`, `finding-cleared`.
    pub kind: &'static str,
    /// To what: a process, a cgroup, a tunable; null for the host.
    pub subject: Option<String>,
    /// The cgroup in which it happened, a path; null for the host, or where it is unknown.
    pub cgroup: Option<String>,
    /// One sentence for people.
    pub text: String,
    /// The lines that the kernel logged, or the screen of a kept profile; null where there are none, or they are not kept.
    pub report: Option<String>,
}

impl EventsReport {
    /// Events of a source, in the order given. What was counted before the first sample is none of a part's: the source
    /// says more of it.
    pub fn new(source: &timeline::Source, events: &[DatedEvent]) -> Self {
        let is_part = source.origin.cut_at.is_some();
        let listed = events.iter().filter(|event| !(is_part && event.dated == Dated::SinceBoot));
        Self {
            schema: EVENTS_SCHEMA,
            source: Source::new(source),
            events: listed.map(|event| EventEntry::new(event, source)).collect(),
        }
    }
}

impl EventEntry {
    fn new(dated_event: &DatedEvent, source: &timeline::Source) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let event = &dated_event.event;
        let at = Some(event.stamp).filter(|_| dated_event.dated != Dated::SinceBoot);
        let since = match dated_event.dated {
            Dated::Since(since) => Some(since),
            Dated::Exactly | Dated::Before | Dated::SinceBoot => None,
        };
        let time = |stamp: Option<Stamp>| timestamp(stamp?.wall?);
        let offset = |stamp: Option<Stamp>| stamp.and_then(|stamp| offset(stamp, &source.timeline));
        let mut text = event.text.clone();
        text.push_str(before(dated_event, offset(at), &source.origin));
        Self {
            at: time(at),
            offset_s: offset(at),
            since: time(since),
            since_offset_s: offset(since),
            until: time(dated_event.until),
            until_offset_s: offset(dated_event.until),
            dated: dated(dated_event.dated),
            kind: event.kind.name(),
            subject: some(&event.subject),
            cgroup: dated_event.group.clone(),
            text,
            report: some(&event.report),
        }
    }
}

const fn dated(dated: Dated) -> &'static str {
    match dated {
        Dated::Exactly => "exactly",
        Dated::Since(_) => "between",
        Dated::Before => "before",
        Dated::SinceBoot => "since-boot",
    }
}

/// The note on a kill or a failure that the kernel's log had from before the first sample.
fn before(dated_event: &DatedEvent, offset_s: Option<f64>, origin: &Origin) -> &'static str {
    let is_of_kernel =
        matches!(dated_event.event.kind, EventKind::OomKill | EventKind::AllocationFailure);
    let is_before = offset_s.is_some_and(|at| at < 0.0) || dated_event.dated == Dated::SinceBoot;
    match origin.kind {
        _ if !is_of_kernel || !is_before || origin.cut_at.is_some() => "",
        SourceKind::Recording => ", before the recording began",
        SourceKind::Capture => ", before the capture began",
        SourceKind::Live => ", before this check began",
        SourceKind::Text | SourceKind::Bundle => "",
    }
}

/// Between unrelated snapshots the time is unknown.
fn offset(stamp: Stamp, timeline: &Timeline) -> Option<f64> {
    if !timeline.is_one_segment() || timeline.len() < 2 {
        return None;
    }
    let nanos = timeline.nanos_at(stamp)? - i128::from(timeline.times().first()?.as_nanos());
    #[allow(clippy::cast_precision_loss)] // to the microsecond over centuries
    Some(nanos as f64 / 1e9)
}
