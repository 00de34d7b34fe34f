//! What happened, and when?

use std::path::Path;
use std::sync::LazyLock;

use import::{MinuteScreen, OpenError, OpenOptions};
use report::model::EventsReport;
use timeline::cgroup::{GroupNames, ROOT, is_related, is_within};
use timeline::signals::{CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, OOM_KILLS};
use timeline::{
    DatedEvent, Entity, Event, EventKind, Facts, RollUp, RollUps, SignalId, Source, TimeRange,
};

/// Reads a range of a source in the detail that events need: from a long recording roll-ups, and every sample of the minutes
/// in which a counter of events rose. By the minute alone, what happened in two neighbouring minutes would be one event.
///
/// # Errors
/// As [`crate::open`].
pub fn open_for_events(
    path: &Path,
    range: TimeRange,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    static COUNTERS: LazyLock<[SignalId; 4]> = LazyLock::new(|| {
        [
            CGROUP_EVENTS_MAX.id(),
            CGROUP_EVENTS_HIGH.id(),
            CGROUP_EVENTS_OOM_KILL.id(),
            OOM_KILLS.id(),
        ]
    });
    let screen = MinuteScreen { signals: &*COUNTERS, could_hold: counters_rose };
    let options = OpenOptions { range, screen: Some(screen), ..OpenOptions::default() };
    crate::open(path, options, progress)
}

/// Returns for each minute whether one of the counters that were rolled up rose in it, as far as is known.
fn counters_rose(rolled: &RollUps, _: &Facts) -> Vec<bool> {
    let mut rose = vec![false; rolled.len()];
    let entities = [Entity::Host, Entity::Cgroup].map(|entity| rolled.entities(entity));
    let counters = entities.into_iter().flatten().flat_map(|entity| entity.signals());
    for (_, minutes) in counters {
        let is_rise = |one: &Option<RollUp>| one.is_some_and(|one| one.increase() != Some(0));
        rose.iter_mut().zip(minutes).for_each(|(rose, one)| *rose |= is_rise(one));
    }
    rose
}

/// Returns the events of these kinds (`oom-kill`, `boot`, …), in order of time; all events if `kinds` is empty. With a
/// `group`, those of this cgroup, the cgroups around it and within it alone.
pub fn events(source: &Source, kinds: &[String], group: Option<&str>) -> EventsReport {
    let mut events = timeline::events(&source.timeline, &source.facts);
    events.retain(|entry| {
        let name = entry.event.kind.name();
        let is_asked = kinds.is_empty() || kinds.iter().any(|kind| kind == name);
        is_asked && group.is_none_or(|group| is_about(entry, group))
    });
    for entry in &mut events {
        name_container(entry, &source.facts.names);
    }
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
fn is_about(entry: &DatedEvent, group: &str) -> bool {
    let is_about = |place: &String| {
        if is_of_service(&entry.event) { is_within(group, place) } else { is_related(place, group) }
    };
    entry.group.as_ref().is_some_and(is_about)
}
