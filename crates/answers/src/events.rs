//! What happened, and when?

use std::path::Path;
use std::sync::LazyLock;

use crate::profile::draw_profiles;
use import::{MinuteScreen, OpenError, OpenOptions};
use report::model::EventsReport;
use timeline::cgroup::{GroupNames, ROOT, is_related, is_within};
use timeline::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_HIGH, CGROUP_MAX,
    CGROUP_MAX_WITH_SWAP, OOM_KILLS,
};
use timeline::{
    DatedEvent, Entity, Event, EventKind, Facts, RollUp, RollUps, SignalId, Source, TimeRange,
};

/// Reads a range of a source in the detail that events need: from a long recording roll-ups, and every sample of the minutes
/// in which a counter of events rose or a limit of a cgroup changed. By the minute alone, what happened in two neighbouring minutes would be one event.
///
/// # Errors
/// As [`crate::open()`].
pub fn open_for_events(
    path: &Path,
    range: TimeRange,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    static SIGNALS: LazyLock<[SignalId; 7]> = LazyLock::new(|| {
        [
            CGROUP_EVENTS_MAX.id(),
            CGROUP_EVENTS_HIGH.id(),
            CGROUP_EVENTS_OOM_KILL.id(),
            OOM_KILLS.id(),
            CGROUP_MAX.id(),
            CGROUP_HIGH.id(),
            CGROUP_MAX_WITH_SWAP.id(),
        ]
    });
    let screen = MinuteScreen { signals: &*SIGNALS, could_hold: something_happened };
    let options = OpenOptions { range, screen: Some(screen), ..OpenOptions::default() };
    crate::open(path, options, progress)
}

/// Returns for each minute whether one of the counters that were rolled up rose in it, or one of the limits is another than
/// before, as far as is known.
fn something_happened(rolled: &RollUps, _: &Facts) -> Vec<bool> {
    let mut happened = vec![false; rolled.len()];
    let entities = [Entity::Host, Entity::Cgroup].map(|entity| rolled.entities(entity));
    let signals = entities.into_iter().flatten().flat_map(|entity| entity.signals());
    for (_, minutes) in signals {
        let mut limit = None;
        for (happened, one) in happened.iter_mut().zip(minutes) {
            *happened |= match one {
                None => false,
                Some(RollUp::Increase { by, .. }) => *by != Some(0),
                Some(RollUp::Level { min, max }) => {
                    let before = limit.replace(*max);
                    min != max || before.is_some_and(|before| before != *max)
                }
            };
        }
    }
    happened
}

/// Returns the events of these kinds (`oom-kill`, `boot`, …), in order of time; all events if `kinds` is empty. With a
/// `group`, those of this cgroup, the cgroups around it and within it alone.
pub fn events(source: &Source, kinds: &[String], group: Option<&str>) -> EventsReport {
    let mut events = timeline::events(&source.timeline, &source.facts);
    events.retain(|entry| {
        let name = entry.event.kind.name();
        let is_asked = kinds.is_empty() || kinds.iter().any(|kind| kind == name);
        is_asked && group.is_none_or(|group| is_about(source, entry, group))
    });
    for entry in &mut events {
        name_container(entry, &source.facts.names);
    }
    draw_profiles(&mut events);
    EventsReport::new(source, &events)
}

fn is_of_service(event: &Event) -> bool {
    matches!(event.kind, EventKind::ServiceStarted | EventKind::ServiceEnded)
}

/// Calls the service or cgroup of an event by its name in the event's text.
fn name_container(entry: &mut DatedEvent, names: &GroupNames) {
    let Some(group) = entry.group.as_deref().filter(|group| *group != ROOT) else {
        return;
    };
    let named = if is_of_service(&entry.event) {
        names.service(group)
    } else {
        names.place(group).into_owned()
    };
    entry.event.text = entry.event.text.replacen(group, &named, 1);
}

/// Whether an event is of the cgroup, one around it or one within it. Services are those within it.
fn is_about(source: &Source, entry: &DatedEvent, group: &str) -> bool {
    if group == ROOT {
        // A container: messages of the kernel name cgroups of its host, too, by paths that it does not have.
        let is_own = |place: &String| source.timeline.entity(Entity::Cgroup, place).is_some();
        return is_of_service(&entry.event) || entry.group.as_ref().is_none_or(is_own);
    }
    let is_about = |place: &String| {
        if is_of_service(&entry.event) { is_within(group, place) } else { is_related(place, group) }
    };
    entry.group.as_ref().is_some_and(is_about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Minute, Stamp};
    use units::Span;

    /// Whether the minutes with these least and largest limits are read sample by sample.
    fn read_whole(limits: &[Option<(u64, u64)>]) -> Vec<bool> {
        let minute = Minute { end: Stamp::default(), duration: Span::from_mins(1) };
        let mut rolled = RollUps::new(vec![minute; limits.len()]);
        let minutes = rolled.entry(Entity::Cgroup, "/web", CGROUP_MAX.id());
        for (minute, limit) in minutes.iter_mut().zip(limits) {
            *minute = limit.map(|(min, max)| RollUp::Level { min, max });
        }
        something_happened(&rolled, &Facts::default())
    }

    #[test]
    fn minutes_in_which_a_limit_changed_are_read_sample_by_sample() {
        let limits = [Some((64, 64)), Some((64, 80)), Some((80, 80)), None, Some((256, 256))];
        assert_eq!(read_whole(&limits), [false, true, false, false, true]);
        assert_eq!(read_whole(&[Some((64, 64)); 3]), [false; 3]);
    }
}
