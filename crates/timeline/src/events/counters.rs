//! Events that only counters show, of cgroups and of the host: kills without a report, and limit hits.
//!
//! The counters of a cgroup include its descendants, so each event appears at every ancestor. It is listed once, at
//! the lowest known cgroup.

use std::collections::BTreeMap;

use units::{Count, Limit, Span};

use crate::cgroup;
use crate::event::{Event, EventKind};
use crate::facts::Facts;
use crate::sample::Stamp;
use crate::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_HIGH, CGROUP_MAX,
    Counter, Entity, OOM_KILLS, Signal, SignalId,
};
use crate::timeline::{BreakKind, Run, Timeline};

use super::limits::{LimitStep, limit_steps};
use super::{Dated, EventTime, Kill, PlacedEvent};

/// Limit hits of a cgroup with shorter pauses than this are one event: a cgroup at its limit hits it over and over. Hits
/// of another limit are another event.
const PAUSE: Span = Span::from_secs(60);

/// The increase of a counter between two readings, gaps included; not across a reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterRise {
    /// The sample of the reading before.
    pub from: usize,
    /// The sample of the reading after.
    pub to: usize,
    /// The increase.
    pub by: u64,
}

/// Rises of one counter with short pauses between them.
#[derive(Debug, Clone, Copy)]
struct Spell {
    /// The sample of the last reading before the first rise.
    since: usize,
    /// The sample of the first reading after the first rise.
    from: usize,
    /// The sample of the first reading after the last rise.
    to: usize,
    /// The sample of the last reading before the last rise.
    last_from: usize,
    by: u64,
}

/// Kills that only a counter shows.
#[derive(Debug)]
pub(super) struct CountedKills {
    pub(super) kill: Kill,
    /// The first reading that shows them.
    pub(super) stamp: Stamp,
    pub(super) dated: Dated,
}

/// Rises of one counter, by cgroup.
type Rises = BTreeMap<String, Vec<CounterRise>>;

/// The kills that counters of cgroups show, and those that only the host's counter shows. The host's counter is read
/// more often: where it rose once between two readings of a cgroup, that is the time of the kill.
pub(super) fn kills(
    timeline: &Timeline,
    facts: &Facts,
) -> (Vec<(String, CounterRise)>, Vec<CounterRise>) {
    let groups = cgroup_counter_rises(timeline, facts, CGROUP_EVENTS_OOM_KILL);
    let mut host = host_counter_rises(timeline, OOM_KILLS.id());
    let mut all = Vec::new();
    for (group, rise) in flat(&groups) {
        for part in narrowed(&host, rise) {
            subtract(&mut host, part);
            all.push((group.to_owned(), part));
        }
    }
    host.retain(|rise| rise.by > 0);
    (all, host)
}

/// Replaces a rise of a cgroup's counter with the host's rises in that time, if these add up to the same number.
fn narrowed(host: &[CounterRise], rise: CounterRise) -> Vec<CounterRise> {
    let first = host.partition_point(|part| part.to < rise.from);
    let parts: Vec<CounterRise> = host[first..]
        .iter()
        .take_while(|part| part.from <= rise.to)
        .filter(|part| part.by > 0 && rise.from <= part.from && part.to <= rise.to)
        .copied()
        .collect();
    let sum = parts.iter().map(|part| part.by);
    if sum.fold(0, u64::saturating_add) == rise.by { parts } else { vec![rise] }
}

/// Limit hits of cgroups, as events.
pub(super) fn limit_hits(timeline: &Timeline, facts: &Facts) -> Vec<PlacedEvent> {
    let mut all = Vec::new();
    let kinds = [
        (CGROUP_EVENTS_MAX, CGROUP_MAX, "hit its limit"),
        (CGROUP_EVENTS_HIGH, CGROUP_HIGH, "was throttled at memory.high"),
    ];
    for (events, limit, what) in kinds {
        for (group, rises) in cgroup_counter_rises(timeline, facts, events) {
            let Some(series) = timeline.entity(Entity::Cgroup, &group) else {
                continue;
            };
            let mut steps = limit_steps(timeline, series, limit);
            steps.retain(LimitStep::is_other_limit);
            for spell in spells(timeline, &rises, &steps) {
                let at = [spell.last_from, spell.to];
                let mut size = at.iter().filter_map(|at| timeline.latest_of(series, limit, *at));
                let size = size
                    .next()
                    .and_then(Limit::limited)
                    .map_or_else(String::new, |size| format!(" of {size}"));
                let text = format!("{group} {what}{size}{}", count_text(timeline, spell));
                all.extend(placed(timeline, &group, text, spell));
            }
        }
    }
    all
}

fn count_text(timeline: &Timeline, spell: Spell) -> String {
    let times = timeline.times();
    let duration = times[spell.to] - times[spell.from];
    let count = match spell.by {
        1 => return String::new(),
        n => format!(", {} times", Count::new(n)),
    };
    match duration {
        Span::ZERO => count,
        duration => format!("{count} in {duration}"),
    }
}

/// Joins rises with short pauses between them, and with the same limit.
fn spells(timeline: &Timeline, rises: &[CounterRise], steps: &[LimitStep]) -> Vec<Spell> {
    let times = timeline.times();
    let steps_before = |sample: usize| steps.partition_point(|step| step.at <= sample);
    let mut spells: Vec<Spell> = Vec::new();
    for rise in rises {
        match spells.last_mut() {
            Some(last)
                if times[rise.to] - times[last.to] <= PAUSE
                    && steps_before(last.last_from) == steps_before(rise.from) =>
            {
                last.to = rise.to;
                last.last_from = rise.from;
                last.by = last.by.saturating_add(rise.by);
            }
            _ => spells.push(Spell {
                since: rise.from,
                from: rise.to,
                to: rise.to,
                last_from: rise.from,
                by: rise.by,
            }),
        }
    }
    spells
}

/// The rises of each cgroup's counter by its own events, or by those of descendants that were not recorded.
pub fn cgroup_counter_rises(
    timeline: &Timeline,
    facts: &Facts,
    signal: Signal<Counter<Count>>,
) -> BTreeMap<String, Vec<CounterRise>> {
    let cuts = cuts(timeline);
    let mut all = Rises::new();
    for series in timeline.entities(Entity::Cgroup) {
        let runs = series.runs().find(|(found, _)| *found == signal.id());
        let rises = runs.map_or_else(Vec::new, |(_, runs)| rises(runs, &cuts));
        if !rises.is_empty() {
            all.insert(series.key.clone(), rises);
        }
    }
    if !cgroup::counts_below(facts) {
        return all;
    }
    let mut own = all.clone();
    for (group, rises) in &all {
        let mut above = cgroup::ancestors(group).skip(1);
        if let Some(parent) = above.find(|key| all.contains_key(*key))
            && let Some(theirs) = own.get_mut(parent)
        {
            rises.iter().for_each(|rise| subtract(theirs, *rise));
        }
    }
    own.values_mut().for_each(|rises| rises.retain(|rise| rise.by > 0));
    own
}

/// Subtracts the rise of a descendant from those of its ancestor; first from those between the same two samples.
fn subtract(theirs: &mut [CounterRise], rise: CounterRise) {
    let mut left = rise.by;
    let first = theirs.partition_point(|their| their.to < rise.from);
    let near = &mut theirs[first..];
    let end = near.partition_point(|their| their.from <= rise.to);
    near[..end].sort_by_key(|their| (their.from, their.to) != (rise.from, rise.to));
    for their in &mut near[..end] {
        let part = left.min(their.by);
        their.by -= part;
        left -= part;
    }
    near[..end].sort_by_key(|their| their.to);
}

fn flat(rises: &Rises) -> impl Iterator<Item = (&str, CounterRise)> {
    let groups = rises.iter();
    groups.flat_map(|(group, rises)| rises.iter().map(|rise| (group.as_str(), *rise)))
}

/// Rises of a counter of the host, in order.
pub fn host_counter_rises(timeline: &Timeline, signal: SignalId) -> Vec<CounterRise> {
    let runs = timeline.host_runs().find(|(found, _)| *found == signal);
    runs.map_or_else(Vec::new, |(_, runs)| rises(runs, &cuts(timeline)))
}

fn rises(runs: &[Run], cuts: &[usize]) -> Vec<CounterRise> {
    let rise = |pair: &[Run]| {
        let (a, b) = (pair.first()?, pair.get(1)?);
        let by = b.value.checked_sub(a.value).filter(|by| *by > 0)?;
        let cut = cuts.get(cuts.partition_point(|cut| *cut <= a.last()));
        let whole = cut.is_none_or(|cut| *cut > b.first());
        whole.then_some(CounterRise { from: a.last(), to: b.first(), by })
    };
    runs.windows(2).filter_map(rise).collect()
}

/// The samples before which counters started from zero, or belong to another host.
pub(super) fn cuts(timeline: &Timeline) -> Vec<usize> {
    let begins_anew = |kind| matches!(kind, BreakKind::Reboot | BreakKind::NewSegment);
    let breaks = timeline.breaks().iter();
    breaks.filter(|found| begins_anew(found.kind)).map(|found| found.before).collect()
}

fn placed(timeline: &Timeline, group: &str, text: String, spell: Spell) -> Option<PlacedEvent> {
    let event = Event {
        stamp: timeline.stamp(spell.from)?,
        kind: EventKind::CgroupLimit,
        subject: group.to_owned(),
        text,
        report: String::new(),
    };
    let dated = Dated::Since(timeline.stamp(spell.since)?);
    let at = EventTime::at_sample(timeline, spell.from)?;
    let mut placed = PlacedEvent::new(at, event, dated).within(group);
    placed.until = EventTime::at_sample(timeline, spell.to)?;
    placed.dated_event.until = timeline.stamp(spell.to).filter(|_| spell.from < spell.to);
    Some(placed)
}
