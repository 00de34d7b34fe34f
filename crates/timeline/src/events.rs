//! What happened while a source was recorded, as one list in order of time: kills and failed allocations, limit hits
//! and changed limits of cgroups, changed settings, reboots and other breaks, and events that a recorder noted.
//!
//! Several sources may report the same event: the kernel's log, the counters of a cgroup and of its ancestors, a
//! recorder that read both. Each event is listed once, from the source that knows most: the kernel's report, then the
//! recorder's event, then counters. The cost is proportional to changes of counters, not to samples.

mod breaks;
mod counters;
mod event_time;
mod kernel;
mod kills;
mod limits;

use std::collections::HashMap;

use units::Span;

use crate::event::{Event, EventKind};
use crate::facts::{Change, Facts, chosen_word};
use crate::sample::Stamp;
use crate::timeline::{Noticed, Timeline};

pub use counters::{CounterRise, cgroup_counter_rises, host_counter_rises};
pub use event_time::EventTime;
pub use kills::{Kill, kills_since_boot, recent_kills};
pub use limits::{LimitStep, limit_steps};

/// Two reports of one event are at most this far apart: a recorder reads settings once a minute and notes a kill a
/// moment later.
const NEAR_KILL: Span = Span::from_secs(90);

/// An event, and how exactly its time is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedEvent {
    /// The event. Its stamp is the time in the kernel's log if there is one, or else of the first reading that shows
    /// it.
    pub event: Event,
    /// The cgroup in which it happened, as the event's text names it; `None` for the host, or where it is unknown.
    pub group: Option<String>,
    /// How exact the stamp is.
    pub dated: Dated,
    /// The end of the event; `None` for an event without duration.
    pub until: Option<Stamp>,
}

/// How exactly the time of an event is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dated {
    /// At the stamp.
    Exactly,
    /// Between this reading, which does not yet show it, and the stamp.
    Since(Stamp),
    /// At some time before the stamp.
    Before,
    /// Between boot and the stamp, the first sample: only a counter shows it.
    SinceBoot,
}

/// An event on the timeline's clock.
#[derive(Debug)]
struct PlacedEvent {
    at: EventTime,
    /// The end of the event; equals `at` for an event without duration.
    until: EventTime,
    dated_event: DatedEvent,
}

impl PlacedEvent {
    fn exact(at: EventTime, event: Event) -> Self {
        Self::new(at, event, Dated::Exactly)
    }

    fn new(at: EventTime, event: Event, dated: Dated) -> Self {
        let dated_event = DatedEvent { event, group: None, dated, until: None };
        Self { at, until: at, dated_event }
    }

    /// Sets the cgroup in which it happened; none if the path is empty.
    fn within(mut self, group: &str) -> Self {
        self.dated_event.group = Some(group.to_owned()).filter(|group| !group.is_empty());
        self
    }

    fn kind(&self) -> EventKind {
        self.dated_event.event.kind
    }

    /// Its kind, and what it happened to.
    fn subject(&self) -> (EventKind, &str) {
        (self.kind(), &self.dated_event.event.subject)
    }

    /// Whether both may be the same event, by time.
    fn is_near(&self, other: &Self) -> bool {
        self.at <= other.until.plus(NEAR_KILL) && other.at <= self.until.plus(NEAR_KILL)
    }
}

/// Returns all events, in order of time. A recorder's events are those of the whole source, the others those of this
/// timeline.
pub fn events(timeline: &Timeline, facts: &Facts) -> Vec<DatedEvent> {
    let mut noted = noted(timeline);
    let reports = kernel::of_timeline(timeline);
    let mut all = kernel::events(&reports);
    kernel::merge(&reports, &mut all, &mut noted);
    let kills = kills::from_reports(&reports, &noted);
    let mut derived: Vec<PlacedEvent> = kills::only_counted(timeline, facts, kills)
        .iter()
        .filter_map(|kill| kill.event(timeline))
        .collect();
    derived.extend(counters::limit_hits(timeline, facts));
    // The recorder saw the event happen; counters and clocks only show that it did.
    let notes = by_subject(noted.iter());
    derived.retain(|placed| {
        let mut same = notes.get(&placed.subject()).into_iter().flatten();
        !same.any(|note| note.is_near(placed))
    });
    let breaks = breaks::events(timeline);
    let changes: Vec<PlacedEvent> =
        facts.changes().iter().map(|change| fact_change(timeline, change)).collect();
    // The timeline knows both readings of a changed setting and both ends of a break; the recorder's event has only
    // one.
    let in_samples = by_subject(breaks.iter().chain(&changes));
    noted.retain(|note| {
        let mut same = in_samples.get(&note.subject()).into_iter().flatten();
        !same.any(|event| event.is_near(note))
    });
    for more in [noted, derived, changes, limits::changes(timeline), breaks, noticed(timeline)] {
        all.extend(more);
    }
    all.sort_by_key(|placed| placed.at);
    all.into_iter().map(|placed| placed.dated_event).collect()
}

/// Events by kind and subject. A recorder's event and one derived from samples are the same if these are equal and the
/// times near. Breaks of one kind close together count as one.
fn by_subject<'a>(
    events: impl Iterator<Item = &'a PlacedEvent>,
) -> HashMap<(EventKind, &'a str), Vec<&'a PlacedEvent>> {
    let mut all: HashMap<_, Vec<_>> = HashMap::new();
    for event in events {
        all.entry(event.subject()).or_default().push(event);
    }
    all
}

/// A changed setting.
fn fact_change(timeline: &Timeline, change: &Change) -> PlacedEvent {
    let stamp = stamp_at(timeline, change.at);
    let event = Event::of_change(stamp, change.fact.name, &change.from, &change.to);
    let since = change.since.map(|since| stamp_at(timeline, since));
    let dated = since.map_or(Dated::Before, Dated::Since);
    PlacedEvent::new(EventTime::new(change.at, stamp.wall), event, dated)
}

impl Event {
    /// A changed setting; also used by a recorder.
    pub fn of_change(stamp: Stamp, name: &str, from: &str, to: &str) -> Self {
        let shown = |text| chosen_word(text).unwrap_or(text);
        let (from, to) = (shown(from), shown(to));
        Self {
            stamp,
            kind: EventKind::FactChanged,
            subject: name.to_owned(),
            text: format!("{name} changed from {from} to {to}"),
            report: String::new(),
        }
    }
}

/// The stamp of a time on the timeline's clock.
fn stamp_at(timeline: &Timeline, at: Span) -> Stamp {
    let after = timeline.times().partition_point(|time| *time <= at);
    let index = after.saturating_sub(1);
    let sample = timeline.stamp(index).unwrap_or_default();
    let past = at.saturating_sub(timeline.times().get(index).copied().unwrap_or(at));
    Stamp {
        boot: sample.boot.plus(past),
        awake: sample.awake.map(|awake| awake.plus(past)),
        wall: sample.wall.map(|wall| wall.plus(past)),
        boot_id: sample.boot_id,
    }
}

/// The recorder's events, each at its own time.
fn noted(timeline: &Timeline) -> Vec<PlacedEvent> {
    timeline
        .recorder_events()
        .iter()
        .map(|event| {
            let at = EventTime::at_stamp(timeline, event.stamp);
            let placed = PlacedEvent::exact(at, event.clone());
            match event.kind {
                EventKind::ServiceStarted | EventKind::ServiceEnded => {
                    placed.within(&event.subject)
                }
                // Of a cgroup, by its path.
                kind if kind.is_of_finding() && event.subject.starts_with('/') => {
                    placed.within(&event.subject)
                }
                _ => placed,
            }
        })
        .collect()
}

/// Kills that programs speak of, in their own words.
fn noticed(timeline: &Timeline) -> Vec<PlacedEvent> {
    let event = |noticed: &Noticed| {
        let notice = &noticed.notice;
        let sample = timeline.index_of(noticed)?;
        let stamp = timeline.stamp(sample)?;
        let at = EventTime::new(timeline.times().get(sample).copied()?, notice.wall);
        let event = Event {
            stamp: Stamp { wall: notice.wall.or(stamp.wall), ..stamp },
            kind: EventKind::OomKill,
            subject: notice.subject(),
            text: format!("{}: {}", notice.messenger.name(), notice.text),
            report: String::new(),
        };
        Some(PlacedEvent::exact(at, event))
    };
    let ended = timeline.notices().filter(|noticed| noticed.notice.ended_something());
    ended.filter_map(event).collect()
}

#[cfg(test)]
mod tests;
