//! Limits of cgroups that were changed, as two readings show it.

use units::{Bytes, Count, Limit, Quantity as _, Span, Unit as _};

use super::counters::cuts;
use super::{Dated, EventTime, PlacedEvent};
use crate::event::{Event, EventKind};
use crate::signals::{CGROUP_HIGH, CGROUP_MAX, CGROUP_MAX_WITH_SWAP, Entity, Gauge, Signal};
use crate::timeline::{EntitySeries, Timeline};

/// A limit of a cgroup took another value between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitStep {
    /// The sample of the last reading before.
    pub since: usize,
    /// The sample of the first reading after.
    pub at: usize,
    /// The limit before.
    pub from: Limit,
    /// The limit after.
    pub to: Limit,
}

/// The changes of a cgroup's limit, in order. A cgroup that was removed and made again has not been changed.
pub fn limit_steps(
    timeline: &Timeline,
    group: &EntitySeries,
    limit: Signal<Gauge<Limit>>,
) -> Vec<LimitStep> {
    let Some((_, runs)) = group.runs().find(|(found, _)| *found == limit.id()) else {
        return Vec::new();
    };
    if runs.len() < 2 {
        return Vec::new();
    }
    let cuts = cuts(timeline);
    let steps = runs.windows(2).filter_map(|pair| {
        let (a, b) = (pair.first()?, pair.get(1)?);
        let (since, at) = (a.last(), b.first());
        let cut = cuts.get(cuts.partition_point(|cut| *cut <= since));
        let is_whole = cut.is_none_or(|cut| *cut > at);
        // All cgroups were read in between, and this one was not among them.
        let between = timeline.all_read_before(Entity::Cgroup, at.checked_sub(1)?);
        let was_gone = between.is_some_and(|between| between > since);
        let step =
            LimitStep { since, at, from: Limit::from_raw(a.value), to: Limit::from_raw(b.value) };
        (is_whole && !was_gone && step.from != step.to).then_some(step)
    });
    steps.collect()
}

/// Changes of one limit with shorter pauses than this follow each other.
const PAUSE: Span = Span::from_secs(60);
/// From so many changes that follow each other on, a program sets the limit again and again, and they are one event: an
/// engineering choice.
const MANY: usize = 8;

/// Changed limits of cgroups, as events.
pub(super) fn changes(timeline: &Timeline) -> Vec<PlacedEvent> {
    let mut all = Vec::new();
    for group in timeline.entities(Entity::Cgroup) {
        for (limit, name) in [
            (CGROUP_MAX, "limit"),
            (CGROUP_HIGH, "memory.high"),
            (CGROUP_MAX_WITH_SWAP, "limit of memory and swap together"),
        ] {
            // A cgroup has the limit with swap of those above it.
            let is_inherited = |step: &LimitStep| {
                limit.id() == CGROUP_MAX_WITH_SWAP.id() && is_above(timeline, group, step)
            };
            let mut steps = limit_steps(timeline, group, limit);
            steps.retain(|step| !is_inherited(step));
            for steps in in_a_row(timeline, &steps) {
                all.extend(events_of(timeline, &group.key, name, steps));
            }
        }
    }
    all
}

/// Whether the cgroup above took the same limit at the same time.
fn is_above(timeline: &Timeline, group: &EntitySeries, step: &LimitStep) -> bool {
    let above = crate::cgroup::parent(&group.key);
    let above = above.and_then(|key| timeline.entity(Entity::Cgroup, key));
    above.is_some_and(|above| {
        let limit = |at| timeline.latest_of(above, CGROUP_MAX_WITH_SWAP, at);
        limit(step.at) == Some(step.to) && limit(step.since) != limit(step.at)
    })
}

/// Splits steps where there is a pause between them.
fn in_a_row<'a>(timeline: &Timeline, steps: &'a [LimitStep]) -> Vec<&'a [LimitStep]> {
    let times = timeline.times();
    let follows = |a: &LimitStep, b: &LimitStep| times[b.at] - times[a.at] <= PAUSE;
    steps.chunk_by(follows).collect()
}

fn events_of(
    timeline: &Timeline,
    group: &str,
    name: &str,
    steps: &[LimitStep],
) -> Vec<PlacedEvent> {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Vec::new();
    };
    if steps.len() < MANY {
        let each = steps.iter().filter_map(|step| {
            let text = format!("{name} of {group} {}", step.words());
            placed(timeline, group, text, step, step)
        });
        return each.collect();
    }
    let sizes = steps.iter().flat_map(|step| [step.from, step.to]).filter_map(Limit::limited);
    let (least, most) = (sizes.clone().min(), sizes.max());
    let between = least.zip(most).map_or_else(String::new, between);
    let text =
        format!("{name} of {group} changed {} times{between}", Count::new(steps.len() as u64));
    placed(timeline, group, text, first, last).into_iter().collect()
}

fn between((least, most): (Bytes, Bytes)) -> String {
    if least == most { String::new() } else { format!(", between {least} and {most}") }
}

/// A limit that differs by less is the same one, which a controller adjusts: an engineering choice.
const SAME_LIMIT: f64 = 1.1;

impl LimitStep {
    /// Whether what happened before and after happened at different limits.
    pub fn is_other_limit(&self) -> bool {
        match (self.from, self.to) {
            (Limit::Bytes(from), Limit::Bytes(to)) => {
                let (least, most) = (from.min(to).as_f64(), from.max(to).as_f64());
                most >= least * SAME_LIMIT
            }
            (from, to) => from != to,
        }
    }

    /// Whether the limit is larger after.
    pub fn is_raised(&self) -> bool {
        match (self.from, self.to) {
            (Limit::Bytes(from), Limit::Bytes(to)) => to > from,
            (from, to) => from != to && to == Limit::Unlimited,
        }
    }

    /// What happened to the limit: `raised from 64 MiB to 256 MiB`, `set to 256 MiB`, `removed (64 MiB before)`.
    fn words(&self) -> String {
        match (self.from, self.to) {
            (Limit::Unlimited, Limit::Bytes(to)) => format!("set to {to}; there was none before"),
            (Limit::Bytes(from), Limit::Unlimited) => format!("removed; it was {from} before"),
            (Limit::Bytes(from), Limit::Bytes(to)) => {
                let verb = if to > from { "raised" } else { "lowered" };
                format!("{verb} from {from} to {to}")
            }
            (Limit::Unlimited, Limit::Unlimited) => String::new(),
        }
    }
}

fn placed(
    timeline: &Timeline,
    group: &str,
    text: String,
    first: &LimitStep,
    last: &LimitStep,
) -> Option<PlacedEvent> {
    let event = Event {
        stamp: timeline.stamp(first.at)?,
        kind: EventKind::LimitChanged,
        subject: group.to_owned(),
        text,
        report: String::new(),
    };
    let dated = Dated::Since(timeline.stamp(first.since)?);
    let at = EventTime::at_sample(timeline, first.at)?;
    let mut placed = PlacedEvent::new(at, event, dated).within(group);
    placed.until = EventTime::at_sample(timeline, last.at)?;
    placed.dated_event.until = timeline.stamp(last.at).filter(|_| first.at < last.at);
    Some(placed)
}
