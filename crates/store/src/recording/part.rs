//! A timeline of its own, appended to another: what a head file holds.

use timeline::{Entity, SignalId, Timeline};

use crate::segment::picks::Picks;
use crate::segment::runs::Joined;

/// Appends the readings of a kind of entity.
pub(super) fn append(from: &Timeline, entity: Entity, picks: &Picks, into: &mut Timeline) {
    if entity == Entity::Host {
        return append_host(from, |_| true, picks, into);
    }
    let mut joined = Joined::default();
    let mut kept = Vec::new();
    for series in from.entities(entity) {
        for (signal, runs) in series.runs() {
            joined.take(runs, picks);
            kept.extend(joined.drain(picks).map(|run| (signal, run)));
        }
        if !kept.is_empty() {
            let (key, label) = (&series.key, &series.label);
            into.fill(entity, key, label, &series.group, kept.drain(..));
        }
    }
}

/// Appends the readings of the host's signals that are wanted.
pub(super) fn append_host(
    from: &Timeline,
    wanted: impl Fn(SignalId) -> bool,
    picks: &Picks,
    into: &mut Timeline,
) {
    let mut joined = Joined::default();
    for (signal, runs) in from.host_runs().filter(|(signal, _)| wanted(*signal)) {
        joined.take(runs, picks);
        into.fill_host(signal, joined.drain(picks));
    }
}
