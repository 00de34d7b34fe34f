//! What happened, and when?

use report::model::EventsReport;
use timeline::Source;

/// The answer of `events`: those of these kinds (`oom-kill`, `boot`, …), in order of time; of all kinds where none is named.
pub fn events(source: &Source, kinds: &[String]) -> EventsReport {
    let mut events = timeline::events(&source.timeline, &source.facts);
    events.retain(|entry| {
        let name = entry.event.kind.name();
        kinds.is_empty() || kinds.iter().any(|kind| kind == name)
    });
    EventsReport::new(source, &events)
}
