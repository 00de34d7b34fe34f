//! Breaks between samples, as events: reboots, suspends, gaps, steps of the wall clock.

use crate::event::{Event, EventKind};
use crate::sample::Stamp;
use crate::timeline::{Break, BreakKind, Timeline};

use super::{EventTime, PlacedEvent};

/// Returns all breaks but the borders of segments: nothing is known to have happened there.
pub(super) fn events(timeline: &Timeline) -> Vec<PlacedEvent> {
    let breaks = timeline.breaks();
    let kinds_at = |before: usize| {
        breaks.iter().filter(move |other| other.before == before).map(|other| other.kind)
    };
    breaks
        .iter()
        .filter(|found| found.kind.is_worth_reporting(kinds_at(found.before)))
        .filter_map(|found| event(timeline, *found))
        .collect()
}

impl Event {
    /// The event of a break between two samples; `None` at the border of two segments. An event with a duration is
    /// stamped with its start. Also used by a recorder.
    pub fn of_break(kind: BreakKind, before: Stamp, after: Stamp) -> Option<Self> {
        let (stamp, kind, text) = match kind {
            BreakKind::Reboot => (after, EventKind::Boot, "the machine rebooted".to_owned()),
            BreakKind::Suspend(duration) => {
                (before, EventKind::Suspend, format!("the machine was suspended for {duration}"))
            }
            BreakKind::Gap(duration) => {
                (before, EventKind::Gap, format!("no samples for {duration}"))
            }
            BreakKind::ClockForward(by) => {
                (after, EventKind::ClockStep, format!("the wall clock was set forward by {by}"))
            }
            BreakKind::ClockBack(by) => {
                (after, EventKind::ClockStep, format!("the wall clock was set back by {by}"))
            }
            BreakKind::NewSegment => return None,
        };
        Some(Self { stamp, kind, subject: String::new(), text, report: String::new() })
    }
}

fn event(timeline: &Timeline, found: Break) -> Option<PlacedEvent> {
    let before = found.before.checked_sub(1)?;
    let (last, next) = (timeline.stamp(before)?, timeline.stamp(found.before)?);
    let has_duration = matches!(found.kind, BreakKind::Suspend(_) | BreakKind::Gap(_));
    let event = Event::of_break(found.kind, last, next)?;
    let until = EventTime::at_sample(timeline, found.before)?;
    let mut placed = PlacedEvent::exact(until, event);
    if has_duration {
        placed.at = EventTime::at_sample(timeline, before)?;
        placed.dated_event.until = Some(next);
    }
    Some(placed)
}
