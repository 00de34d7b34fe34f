//! What counters of control groups and of the host tell: kills without a report, and limits that were met.
//!
//! A group's counters count what happened in those below it too, so each event shows at every group above: it is told
//! once, at the lowest group known.

use std::collections::BTreeMap;

use units::{Bytes, Count, Limit, Span};

use crate::cgroup;
use crate::event::{Event, EventKind};
use crate::facts::Facts;
use crate::sample::Stamp;
use crate::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_HIGH, CGROUP_MAX,
    Counter, Entity, Gauge, OOM_KILLS, Signal, SignalId,
};
use crate::timeline::{BreakKind, Run, Timeline};

use super::{Dated, EventTime, Kill, Placed};

/// A group at its limit meets it over and over: with pauses shorter than this it is one event.
const PAUSE: Span = Span::from_secs(60);
/// How far a counter rose between two readings, whether or not anybody sampled in between; not across a reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterRise {
    /// Sample of the last reading before.
    pub from: usize,
    /// Sample of the first reading after.
    pub to: usize,
    /// By how many.
    pub by: u64,
}

/// Rises of one counter with short pauses between them.
#[derive(Debug, Clone, Copy)]
struct Spell {
    /// Sample of the last reading before the first rise.
    since: usize,
    /// Sample of the first reading after that.
    from: usize,
    /// Sample of the first reading after the last rise.
    to: usize,
    by: u64,
}

/// Kills that a counter tells of.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) kill: Kill,
    /// The first reading that shows them.
    pub(super) stamp: Stamp,
    pub(super) dated: Dated,
}

/// Rises of one counter, by group.
type Rises = BTreeMap<String, Vec<CounterRise>>;

/// Kills that counters of groups show, and those that only the host's counter does. The host's is read more often: where it
/// rose once between two readings of a group, that is when.
pub(super) fn kills(
    timeline: &Timeline,
    facts: &Facts,
) -> (Vec<(String, CounterRise)>, Vec<CounterRise>) {
    let groups = cgroup_counter_rises(timeline, facts, CGROUP_EVENTS_OOM_KILL);
    let mut host = host_counter_rises(timeline, OOM_KILLS.id());
    let mut all = Vec::new();
    for (group, rise) in flat(&groups) {
        for part in narrowed(&host, rise) {
            take_off(&mut host, part);
            all.push((group.to_owned(), part));
        }
    }
    host.retain(|rise| rise.by > 0);
    (all, host)
}

/// A rise as the host's counter dates it, where all that the host counted in that time is of the group.
fn narrowed(host: &[CounterRise], rise: CounterRise) -> Vec<CounterRise> {
    let first = host.partition_point(|it| it.to < rise.from);
    let near = host[first..].iter().take_while(|it| it.from <= rise.to);
    let within = near.filter(|it| it.by > 0 && rise.from <= it.from && it.to <= rise.to);
    let parts: Vec<CounterRise> = within.copied().collect();
    match parts.iter().map(|it| it.by).sum::<u64>() == rise.by {
        true => parts,
        false => vec![rise],
    }
}

/// Groups that met their limits.
pub(super) fn limits(timeline: &Timeline, facts: &Facts) -> Vec<Placed> {
    let mut all = Vec::new();
    let kinds = [
        (CGROUP_EVENTS_MAX, CGROUP_MAX, "met its limit"),
        (CGROUP_EVENTS_HIGH, CGROUP_HIGH, "was throttled at its mark"),
    ];
    for (events, limit, what) in kinds {
        for (group, rises) in cgroup_counter_rises(timeline, facts, events) {
            for spell in spells(timeline, &rises) {
                let size = limit_of(timeline, &group, limit, spell.to);
                let size = size.map_or_else(String::new, |size| format!(" of {size}"));
                let text = format!("{group} {what}{size}{}", often(timeline, spell));
                all.extend(placed(timeline, &group, text, spell));
            }
        }
    }
    all
}

fn often(timeline: &Timeline, spell: Spell) -> String {
    let times = timeline.times();
    let lasts = times[spell.to] - times[spell.from];
    let times = match spell.by {
        1 => return String::new(),
        n => format!(", {} times", Count::new(n)),
    };
    match lasts {
        Span::ZERO => times,
        lasts => format!("{times} in {lasts}"),
    }
}

/// Rises with short pauses joined: from the sample where the first shows to that of the last.
fn spells(timeline: &Timeline, rises: &[CounterRise]) -> Vec<Spell> {
    let times = timeline.times();
    let mut spells: Vec<Spell> = Vec::new();
    for rise in rises {
        match spells.last_mut() {
            Some(last) if times[rise.to] - times[last.to] <= PAUSE => {
                last.to = rise.to;
                last.by += rise.by;
            }
            _ => spells.push(Spell {
                since: rise.from,
                from: rise.to,
                to: rise.to,
                by: rise.by,
            }),
        }
    }
    spells
}

fn limit_of(
    timeline: &Timeline,
    group: &str,
    limit: Signal<Gauge<Limit>>,
    index: usize,
) -> Option<Bytes> {
    let series = timeline.entity(Entity::Cgroup, group)?;
    timeline.latest_of(series, limit, index)?.limited()
}

/// What happened in each group itself, or below it in a group that nobody knows.
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
            rises.iter().for_each(|rise| take_off(theirs, *rise));
        }
    }
    own.values_mut()
        .for_each(|rises| rises.retain(|rise| rise.by > 0));
    own
}

/// Takes what happened below off the rises of a group above, first where both were read in the same samples.
fn take_off(theirs: &mut [CounterRise], rise: CounterRise) {
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
        whole.then_some(CounterRise {
            from: a.last(),
            to: b.first(),
            by,
        })
    };
    runs.windows(2).filter_map(rise).collect()
}

/// Samples before which counters began anew, or are another host's.
fn cuts(timeline: &Timeline) -> Vec<usize> {
    let anew = |kind| matches!(kind, BreakKind::Reboot | BreakKind::NewSegment);
    let breaks = timeline.breaks().iter();
    breaks
        .filter(|found| anew(found.kind))
        .map(|found| found.before)
        .collect()
}

fn placed(timeline: &Timeline, group: &str, text: String, spell: Spell) -> Option<Placed> {
    let event = Event {
        stamp: timeline.stamp(spell.from)?,
        kind: EventKind::CgroupLimit,
        subject: group.to_owned(),
        text,
        report: String::new(),
    };
    let dated = Dated::Since(timeline.stamp(spell.since)?);
    let mut placed = Placed::dated(EventTime::of_sample(timeline, spell.from)?, event, dated);
    placed.until = EventTime::of_sample(timeline, spell.to)?;
    placed.told.until = timeline.stamp(spell.to).filter(|_| spell.from < spell.to);
    Some(placed)
}
