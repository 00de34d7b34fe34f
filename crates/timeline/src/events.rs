//! What happened while a source was watched, as one list in order of time: kills and failed allocations, limits of
//! control groups, changed settings, reboots and other breaks, and what a recorder noted.
//!
//! Many tell of one thing: the kernel's log, the counters of a group and of those above it, a recorder that read both.
//! Each thing is told once, by whoever knows most of it: the kernel's report, then the recorder's note, then counters.
//! Cost: proportional to changes of counters, not to samples.

mod breaks;
mod counters;
mod kernel;
mod kills;
mod moment;

use units::Span;

use crate::event::{Event, EventKind};
use crate::facts::{Change, Facts};
use crate::sample::Stamp;
use crate::timeline::Timeline;

pub use counters::{CounterRise, cgroup_counter_rises, host_counter_rises};
pub use kills::{Kill, kills_since_boot, recent_kills};
pub use moment::EventTime;

/// What is told twice is told within this: a recorder reads settings once a minute and notes a kill a moment later.
const NEAR: Span = Span::from_secs(90);

/// An event as a whole source tells it: once, with what is known of its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedEvent {
    /// What happened. Its stamp is the time that the first-hand clock tells, the kernel's log before a counter, or the first
    /// reading that shows it.
    pub event: Event,
    /// How exactly the stamp tells when.
    pub dated: Dated,
    /// When it ended; `None` for what is of a moment.
    pub until: Option<Stamp>,
}

/// How exactly it is known when something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dated {
    /// At the stamp.
    Exactly,
    /// Between this reading, which does not show it yet, and the stamp.
    Since(Stamp),
    /// Before the stamp, as far as is known; what was before is not.
    Before,
    /// Between the machine's boot and the stamp, the first sample: only a counter tells.
    SinceBoot,
}

/// An event on the timeline's clock.
#[derive(Debug)]
struct Placed {
    at: EventTime,
    /// When it ended; as `at` for what is of a moment.
    until: EventTime,
    told: DatedEvent,
}

impl Placed {
    fn moment(at: EventTime, event: Event) -> Self {
        Self::dated(at, event, Dated::Exactly)
    }

    fn dated(at: EventTime, event: Event, dated: Dated) -> Self {
        Self {
            at,
            until: at,
            told: DatedEvent {
                event,
                dated,
                until: None,
            },
        }
    }

    fn kind(&self) -> EventKind {
        self.told.event.kind
    }

    /// Whether both tell of one thing, as far as their kinds and times go.
    fn is_near(&self, other: &Self) -> bool {
        self.kind() == other.kind()
            && self.at <= other.until.plus(NEAR)
            && other.at <= self.until.plus(NEAR)
    }
}

/// All that happened, in order of time. Noted events are those of the whole source, the rest those of this timeline.
pub fn events(timeline: &Timeline, facts: &Facts) -> Vec<DatedEvent> {
    let mut noted = noted(timeline);
    let reports = kernel::of_timeline(timeline);
    let mut all = kernel::told(&reports);
    kernel::merge(&reports, &mut all, &mut noted);
    let kills = kills::of(&reports, &noted);
    let mut derived: Vec<Placed> = kills::untold(timeline, facts, kills)
        .iter()
        .filter_map(|kill| kill.event(timeline))
        .collect();
    derived.extend(counters::limits(timeline, facts));
    // The recorder saw it happen; counters and clocks only show that it did.
    derived.retain(|placed| !noted.iter().any(|note| says_the_same(note, placed)));
    let breaks = breaks::of(timeline);
    let changes: Vec<Placed> = facts.changes().iter().map(|it| of(timeline, it)).collect();
    // Of a setting both readings are known, and the note has one; where a break was, the timeline knows both ends.
    let is_own = |note: &Placed| {
        let mut better = breaks.iter().chain(&changes);
        !better.any(|it| says_the_same(it, note))
    };
    noted.retain(is_own);
    for more in [noted, derived, changes, breaks] {
        all.extend(more);
    }
    all.sort_by_key(|placed| placed.at);
    all.into_iter().map(|placed| placed.told).collect()
}

/// Whether a note and what follows from samples tell of one thing. Breaks of the same kind close together are one.
fn says_the_same(one: &Placed, other: &Placed) -> bool {
    one.is_near(other) && one.told.event.subject == other.told.event.subject
}

/// A changed setting.
fn of(timeline: &Timeline, change: &Change) -> Placed {
    let stamp = stamp_at(timeline, change.at);
    let event = Event::of_change(stamp, change.fact.name, &change.from, &change.to);
    let since = change.since.map(|since| stamp_at(timeline, since));
    let dated = since.map_or(Dated::Before, Dated::Since);
    Placed::dated(EventTime::new(change.at, stamp.wall), event, dated)
}

impl Event {
    /// A changed setting: also for a recorder that notes it.
    pub fn of_change(stamp: Stamp, name: &str, from: &str, to: &str) -> Self {
        let (from, to) = (choice(from), choice(to));
        Self {
            stamp,
            kind: EventKind::FactChanged,
            subject: name.to_owned(),
            text: format!("{name} changed from {from} to {to}"),
            report: String::new(),
        }
    }
}

/// The chosen word of a text that lists its choices (`always [madvise] never`), else the text.
fn choice(text: &str) -> &str {
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text, |(choice, _)| choice)
}

/// The clocks at a time of the timeline.
fn stamp_at(timeline: &Timeline, at: Span) -> Stamp {
    let after = timeline.times().partition_point(|time| *time <= at);
    let index = after.saturating_sub(1);
    let sample = timeline.stamp(index).unwrap_or_default();
    let past = at.saturating_sub(timeline.times().get(index).copied().unwrap_or(at));
    Stamp {
        boot: sample.boot.plus(past),
        awake: sample.awake.map(|awake| awake.plus(past)),
        wall: sample.wall.map(|wall| wall.plus(past)),
    }
}

/// What a recorder noted, each at its own time.
fn noted(timeline: &Timeline) -> Vec<Placed> {
    let place = |event: &Event| {
        let own = EventTime::of(timeline, event.stamp);
        Placed::moment(own, event.clone())
    };
    timeline.recorder_events().iter().map(place).collect()
}

#[cfg(test)]
mod tests;
