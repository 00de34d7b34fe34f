//! What happened while a source was watched, as one list in order of time: kills and failed allocations, limits of
//! control groups, changed settings, reboots and other breaks, and what a recorder noted.
//!
//! Many tell of one thing: the kernel's log, the counters of a group and of those above it, a recorder that read both.
//! Each thing is told once, by whoever knows most of it: the kernel's report, then the recorder's note, then counters.
//! Cost: proportional to changes of counters, not to samples.

mod breaks;
mod counters;
mod kernel;
mod moment;

use units::Span;

use crate::event::{Event, EventKind};
use crate::facts::{Change, Facts};
use crate::sample::Stamp;
use crate::timeline::Timeline;

use moment::Moment;

/// What is told twice is told within this: a recorder reads settings once a minute and notes a kill a moment later.
const NEAR: Span = Span::from_secs(90);

/// An event on the timeline's clock.
#[derive(Debug)]
struct Placed {
    at: Moment,
    /// When it ended; as `at` for what is of a moment.
    until: Moment,
    event: Event,
}

impl Placed {
    fn moment(at: Moment, event: Event) -> Self {
        Self {
            at,
            until: at,
            event,
        }
    }

    /// Whether both tell of one thing, as far as their kinds and times go.
    fn is_near(&self, other: &Self) -> bool {
        self.event.kind == other.event.kind
            && self.at <= other.until.plus(NEAR)
            && other.at <= self.until.plus(NEAR)
    }
}

/// All that happened, in order of time. Noted events are those of the whole source, the rest those of this timeline.
pub fn events(timeline: &Timeline, facts: &Facts) -> Vec<Event> {
    let mut noted = noted(timeline);
    let mut all = kernel::of_reports(timeline);
    kernel::merge(&mut all, &mut noted);
    let mut told = kernel::kills(timeline);
    let of_kills = noted
        .iter()
        .filter(|note| note.event.kind == EventKind::OomKill);
    told.extend(of_kills.map(|note| note.at));
    let mut derived = counters::kills(timeline, facts, told);
    derived.extend(counters::limits(timeline, facts));
    derived.extend(facts.changes().iter().map(|change| of(timeline, change)));
    // The recorder saw it happen; counters and clocks only show that it did.
    derived.retain(|placed| !noted.iter().any(|note| says_the_same(note, placed)));
    let breaks = breaks::of(timeline);
    let own = |placed: &Placed| !breaks.iter().any(|note| says_the_same(note, placed));
    noted.retain(own);
    all.extend(noted);
    all.extend(derived);
    all.extend(breaks);
    all.sort_by_key(|placed| (placed.at, placed.event.stamp.wall));
    all.into_iter().map(|placed| placed.event).collect()
}

/// Whether a note and what follows from samples tell of one thing. Breaks of the same kind close together are one.
fn says_the_same(one: &Placed, other: &Placed) -> bool {
    one.is_near(other) && one.event.subject == other.event.subject
}

/// A changed setting.
fn of(timeline: &Timeline, change: &Change) -> Placed {
    let stamp = stamp_at(timeline, change.at);
    let event = Event::of_change(stamp, change.fact.name, &change.from, &change.to);
    Placed::moment(change.at.into(), event)
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

/// The clocks at a time of the timeline: the nearest earlier sample's.
fn stamp_at(timeline: &Timeline, at: Span) -> Stamp {
    let after = timeline.times().partition_point(|time| *time <= at);
    timeline.stamp(after.saturating_sub(1)).unwrap_or_default()
}

/// What a recorder noted, each placed at the last sample that is not later; before the first one, at its own time.
fn noted(timeline: &Timeline) -> Vec<Placed> {
    let times = timeline.times();
    let place = |event: &Event| {
        let own = Moment::of(timeline, event.stamp);
        let after = times.partition_point(|time| Moment::from(*time) <= own);
        let sample = after.checked_sub(1).map(|index| Moment::from(times[index]));
        Placed::moment(sample.unwrap_or(own), event.clone())
    };
    timeline.noted().iter().map(place).collect()
}

#[cfg(test)]
mod tests;
