//! What happened, and when?

use report::model::EventsReport;
use timeline::Source;

/// Returns the events of these kinds (`oom-kill`, `boot`, …), in order of time; all events if `kinds` is empty.
pub fn events(source: &Source, kinds: &[String]) -> EventsReport {
    let mut events = timeline::events(&source.timeline, &source.facts);
    events.retain(|entry| {
        let name = entry.event.kind.name();
        kinds.is_empty() || kinds.iter().any(|kind| kind == name)
    });
    EventsReport::new(source, &events)
}
