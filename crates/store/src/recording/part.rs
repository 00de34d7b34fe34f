//! Appends the timeline of a head file to another.

use timeline::{Entity, SignalId, Timeline};

use crate::segment::picks::SamplePicks;
use crate::segment::runs::Joined;

/// Appends the readings of a kind of entity.
pub(super) fn append(from: &Timeline, entity: Entity, picks: &SamplePicks, into: &mut Timeline) {
    if entity == Entity::Host {
        return append_host(from, |_| true, picks, into);
    }
    for series in from.entities(entity) {
        let mut columns = Vec::new();
        for (signal, runs) in series.runs() {
            let mut selected = Vec::new();
            Joined::new(picks, &mut selected).take(runs);
            if !selected.is_empty() {
                columns.push((signal, selected));
            }
        }
        if !columns.is_empty() {
            let (key, label) = (&series.key, &series.label);
            into.append_runs(entity, key, label, &series.group, columns);
        }
    }
}

/// Appends the readings of the requested host signals.
pub(super) fn append_host(
    from: &Timeline,
    wanted: impl Fn(SignalId) -> bool,
    picks: &SamplePicks,
    into: &mut Timeline,
) {
    let mut selected = Vec::new();
    for (signal, runs) in from.host_runs().filter(|(signal, _)| wanted(*signal)) {
        selected.clear();
        Joined::new(picks, &mut selected).take(runs);
        into.append_host_runs(signal, &selected);
    }
}
