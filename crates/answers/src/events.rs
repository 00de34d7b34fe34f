//! What happened, and when?

use report::model::EventsReport;
use timeline::cgroup::is_related;
use timeline::{Event, Source};

/// Returns the events of these kinds (`oom-kill`, `boot`, …), in order of time; all events if `kinds` is empty. With a
/// `group`, those of this cgroup, the cgroups around it and within it alone.
pub fn events(source: &Source, kinds: &[String], group: Option<&str>) -> EventsReport {
    let mut events = timeline::events(&source.timeline, &source.facts);
    events.retain(|entry| {
        let name = entry.event.kind.name();
        let is_asked = kinds.is_empty() || kinds.iter().any(|kind| kind == name);
        is_asked && group.is_none_or(|group| is_about(&entry.event, group))
    });
    EventsReport::new(source, &events)
}

/// Whether an event names the cgroup, or its service. A kernel's report of a kill has the cgroup in its words.
fn is_about(event: &Event, group: &str) -> bool {
    let is_service =
        || !event.subject.is_empty() && group.split('/').any(|part| part == event.subject);
    let words = event.text.split([' ', ',', ';', '(', ')']);
    let mut paths = words
        .chain([event.subject.as_str()])
        .filter(|word| word.starts_with('/'));
    is_service() || paths.any(|path| is_related(path.trim_end_matches(['.', ':']), group))
}
