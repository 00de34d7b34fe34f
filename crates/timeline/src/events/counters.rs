//! What counters of control groups and of the host tell: kills without a report, and limits that were met.
//!
//! A group's counters count what happened in those below it too, so each event shows at every group above: it is told
//! once, at the lowest group known.

use std::collections::BTreeMap;

use units::{Bytes, Count, Limit, Span};

use crate::cgroup;
use crate::event::{Event, EventKind};
use crate::facts::Facts;
use crate::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_HIGH, CGROUP_MAX,
    Counter, Entity, Gauge, OOM_KILLS, Signal, SignalId,
};
use crate::timeline::{BreakKind, Run, Timeline};

use super::{Moment, Placed};

/// A group at its limit meets it over and over: with pauses shorter than this it is one event.
const PAUSE: Span = Span::from_secs(60);
/// The log's clock and the samples' differ by this at most.
const SLACK: Span = Span::from_secs(2);

/// How far a counter rose between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rise {
    /// Sample of the last reading before.
    from: usize,
    /// Sample of the first reading after.
    to: usize,
    by: u64,
}

/// Rises of one counter, by group.
type Rises = BTreeMap<String, Vec<Rise>>;

/// Kills that counters show and no report or note tells of; `told`: when those are.
pub(super) fn kills(timeline: &Timeline, facts: &Facts, mut told: Vec<Moment>) -> Vec<Placed> {
    let groups = own_rises(timeline, facts, CGROUP_EVENTS_OOM_KILL);
    let mut all = Vec::new();
    let mut host = host_rises(timeline, OOM_KILLS.id());
    for (group, rise) in flat(&groups) {
        take_off(&mut host, rise);
        let untold = rise.by - take(timeline, &mut told, rise);
        all.extend(kill(timeline, rise, untold, group));
    }
    for rise in host {
        let untold = rise.by - take(timeline, &mut told, rise);
        all.extend(kill(timeline, rise, untold, ""));
    }
    all
}

/// Takes as many of those told as lie within a rise and are not more than it; gives how many.
fn take(timeline: &Timeline, told: &mut Vec<Moment>, rise: Rise) -> u64 {
    let times = timeline.times();
    let from = Moment::from(times[rise.from]).minus(SLACK);
    let to = Moment::from(times[rise.to]).plus(SLACK);
    let mut taken = 0;
    told.retain(|at| {
        let is_it = taken < rise.by && (from..=to).contains(at);
        taken += u64::from(is_it);
        !is_it
    });
    taken
}

fn kill(timeline: &Timeline, rise: Rise, count: u64, group: &str) -> Option<Placed> {
    let what = match count {
        0 => return None,
        1 => "OOM kill".to_owned(),
        _ => format!("{} OOM kills", Count::new(count)),
    };
    let text = match group {
        "" => format!("{what}, by the host's counter"),
        group => format!("{what} in {group}"),
    };
    placed(timeline, EventKind::OomKill, group, text, rise.to, rise.to)
}

/// Groups that met their limits.
pub(super) fn limits(timeline: &Timeline, facts: &Facts) -> Vec<Placed> {
    let mut all = Vec::new();
    let kinds = [
        (CGROUP_EVENTS_MAX, CGROUP_MAX, "met its limit"),
        (CGROUP_EVENTS_HIGH, CGROUP_HIGH, "was throttled at its mark"),
    ];
    for (events, limit, what) in kinds {
        for (group, rises) in own_rises(timeline, facts, events) {
            for spell in spells(timeline, &rises) {
                let size = limit_of(timeline, &group, limit, spell.to);
                let size = size.map_or_else(String::new, |size| format!(" of {size}"));
                let text = format!("{group} {what}{size}{}", often(timeline, spell));
                let kind = EventKind::CgroupLimit;
                all.extend(placed(timeline, kind, &group, text, spell.from, spell.to));
            }
        }
    }
    all
}

fn often(timeline: &Timeline, spell: Rise) -> String {
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
fn spells(timeline: &Timeline, rises: &[Rise]) -> Vec<Rise> {
    let times = timeline.times();
    let mut spells: Vec<Rise> = Vec::new();
    for rise in rises {
        match spells.last_mut() {
            Some(last) if times[rise.to] - times[last.to] <= PAUSE => {
                last.to = rise.to;
                last.by += rise.by;
            }
            _ => spells.push(Rise {
                from: rise.to,
                ..*rise
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
fn own_rises(timeline: &Timeline, facts: &Facts, signal: Signal<Counter<Count>>) -> Rises {
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
fn take_off(theirs: &mut [Rise], rise: Rise) {
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

fn flat(rises: &Rises) -> impl Iterator<Item = (&str, Rise)> {
    let groups = rises.iter();
    groups.flat_map(|(group, rises)| rises.iter().map(|rise| (group.as_str(), *rise)))
}

fn host_rises(timeline: &Timeline, signal: SignalId) -> Vec<Rise> {
    let runs = timeline.host_runs().find(|(found, _)| *found == signal);
    runs.map_or_else(Vec::new, |(_, runs)| rises(runs, &cuts(timeline)))
}

fn rises(runs: &[Run], cuts: &[usize]) -> Vec<Rise> {
    let rise = |pair: &[Run]| {
        let (a, b) = (pair.first()?, pair.get(1)?);
        let by = b.value.checked_sub(a.value).filter(|by| *by > 0)?;
        let cut = cuts.get(cuts.partition_point(|cut| *cut <= a.last));
        let whole = cut.is_none_or(|cut| *cut > b.first);
        whole.then_some(Rise {
            from: a.last,
            to: b.first,
            by,
        })
    };
    runs.windows(2).filter_map(rise).collect()
}

/// Samples before which counters began anew, or are another host's.
fn cuts(timeline: &Timeline) -> Vec<usize> {
    let anew = |kind| matches!(kind, BreakKind::Reboot | BreakKind::Unrelated);
    let breaks = timeline.breaks().iter();
    breaks
        .filter(|found| anew(found.kind))
        .map(|found| found.before)
        .collect()
}

fn placed(
    timeline: &Timeline,
    kind: EventKind,
    subject: &str,
    text: String,
    from: usize,
    to: usize,
) -> Option<Placed> {
    let times = timeline.times();
    Some(Placed {
        at: (*times.get(from)?).into(),
        until: (*times.get(to)?).into(),
        event: Event {
            stamp: timeline.stamp(from)?,
            kind,
            subject: subject.to_owned(),
            text,
            report: String::new(),
        },
    })
}
