//! Breaks between samples, as events: reboots, suspends, gaps, steps of the wall clock.

use crate::event::{Event, EventKind};
use crate::sample::Stamp;
use crate::timeline::{Break, BreakKind, Timeline};

use super::{EventTime, Placed};

/// Breaks of unrelated looks are none: nothing is known to have happened there.
pub(super) fn of(timeline: &Timeline) -> Vec<Placed> {
    let breaks = timeline.breaks();
    let beside = |before: usize| {
        let same = breaks.iter().filter(move |other| other.before == before);
        same.map(|other| other.kind)
    };
    let told = breaks
        .iter()
        .filter(|found| found.kind.is_worth_reporting(beside(found.before)));
    told.filter_map(|found| event(timeline, *found)).collect()
}

impl Event {
    /// What broke between two samples; `None` where nothing is known to have happened. What lasts is told where it began.
    /// Also for a recorder that notes it.
    pub fn of_break(kind: BreakKind, before: Stamp, after: Stamp) -> Option<Self> {
        let (stamp, kind, text) = match kind {
            BreakKind::Reboot => (
                after,
                EventKind::Boot,
                "the machine was started anew".to_owned(),
            ),
            BreakKind::Suspend(lasts) => (
                before,
                EventKind::Suspend,
                format!("the machine slept for {lasts}"),
            ),
            BreakKind::Gap(lasts) => (before, EventKind::Gap, format!("no samples for {lasts}")),
            BreakKind::ClockForward(by) => (
                after,
                EventKind::ClockStep,
                format!("the wall clock was moved forward by {by}"),
            ),
            BreakKind::ClockBack(by) => (
                after,
                EventKind::ClockStep,
                format!("the wall clock was moved back by {by}"),
            ),
            BreakKind::NewSegment => return None,
        };
        Some(Self {
            stamp,
            kind,
            subject: String::new(),
            text,
            report: String::new(),
        })
    }
}

fn event(timeline: &Timeline, found: Break) -> Option<Placed> {
    let before = found.before.checked_sub(1)?;
    let (last, next) = (timeline.stamp(before)?, timeline.stamp(found.before)?);
    let lasts = matches!(found.kind, BreakKind::Suspend(_) | BreakKind::Gap(_));
    let event = Event::of_break(found.kind, last, next)?;
    let until = EventTime::of_sample(timeline, found.before)?;
    let mut placed = Placed::moment(until, event);
    if lasts {
        placed.at = EventTime::of_sample(timeline, before)?;
        placed.told.until = Some(next);
    }
    Some(placed)
}
