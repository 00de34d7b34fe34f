//! The answer of `events`: what happened, in order of time.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::{Event, Timeline};

use super::build::source_of;
use super::{Source, SourceInfo};

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
    /// When; null where the source has no wall clock.
    pub at: Option<Timestamp>,
    /// The same, counted from the source's first sample; null where nothing tells, and below zero before it.
    pub offset_s: Option<f64>,
    /// `oom-kill`, `allocation-failure`, `cgroup-limit`, `fact-changed`, `boot`, `suspend`, `clock-step`, `gap`,
    /// `recorder-started`, `recorder-stopped`, `samples-lost`, `blocked`, `service-started`, `service-ended`.
    pub kind: &'static str,
    /// To what: a process, a control group, a tunable; null for the host.
    pub subject: Option<String>,
    /// One sentence for people.
    pub text: String,
    /// What the kernel said, line by line; null where it said nothing, or where that is not kept.
    pub report: Option<String>,
}

impl EventsReport {
    /// Events of a source, in the order given.
    pub fn new(events: &[Event], timeline: &Timeline, source: &SourceInfo) -> Self {
        Self {
            schema: EVENTS_SCHEMA,
            source: source_of(timeline, source),
            events: events
                .iter()
                .map(|event| EventEntry::new(event, timeline))
                .collect(),
        }
    }
}

impl EventEntry {
    fn new(event: &Event, timeline: &Timeline) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let at = event.stamp.wall.and_then(|wall| {
            // To the millisecond, as everywhere.
            Timestamp::from_millisecond(wall.unix_nanos().div_euclid(1_000_000)).ok()
        });
        Self {
            at,
            offset_s: offset(event, timeline),
            kind: event.kind.name(),
            subject: some(&event.subject),
            text: event.text.clone(),
            report: some(&event.report),
        }
    }
}

/// Nothing tells between unrelated looks.
fn offset(event: &Event, timeline: &Timeline) -> Option<f64> {
    if !timeline.is_one_stretch() || timeline.len() < 2 {
        return None;
    }
    let nanos = timeline.nanos_at(event.stamp)? - i128::from(timeline.times().first()?.as_nanos());
    #[allow(clippy::cast_precision_loss)] // to the microsecond over centuries
    Some(nanos as f64 / 1e9)
}
