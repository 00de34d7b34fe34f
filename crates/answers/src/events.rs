//! What happened, and when?

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use import::{MinuteScreen, OpenError, OpenOptions};
use report::model::EventsReport;
use timeline::cgroup::{GroupNames, ROOT, is_related, is_within};
use timeline::signals::{CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, OOM_KILLS};
use timeline::{Entity, Event, EventKind, Facts, RollUp, RollUps, SignalId, Source, TimeRange};

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
        is_asked && group.is_none_or(|group| is_about(&entry.event, group))
    });
    for entry in &mut events {
        name_containers(&mut entry.event, &source.facts.names);
    }
    EventsReport::new(source, &events)
}

/// Calls services and cgroups by their names in the text of an event.
fn name_containers(event: &mut Event, names: &GroupNames) {
    if matches!(event.kind, EventKind::ServiceStarted | EventKind::ServiceEnded) {
        let named = names.service(&event.subject);
        event.text = event.text.replacen(&event.subject, &named, 1);
    }
    let words = event.text.split(' ').map(|word| {
        let path = word.trim_end_matches([',', '.', ';', ':', ')']);
        if path.starts_with('/') && path != ROOT {
            Cow::Owned(word.replacen(path, &names.place(path), 1))
        } else {
            Cow::Borrowed(word)
        }
    });
    event.text = words.collect::<Vec<_>>().join(" ");
}

/// Whether an event names the cgroup, or its service. A kernel's report of a kill has the cgroup in its words.
fn is_about(event: &Event, group: &str) -> bool {
    let is_service = || !event.subject.is_empty() && is_within(group, &event.subject);
    let words = event.text.split([' ', ',', ';', '(', ')']);
    let mut paths = words.chain([event.subject.as_str()]).filter(|word| word.starts_with('/'));
    is_service() || paths.any(|path| is_related(path.trim_end_matches(['.', ':']), group))
}
