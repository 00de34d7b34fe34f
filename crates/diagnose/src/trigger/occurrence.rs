//! Occurrences: between which samples, and in which entity, a trigger holds for long enough.

use timeline::{Condition, Entity, EntitySeries};
use units::Span;

use super::evaluate::Subject;
use super::reading::Predicate;
use super::{Subjects, While};
use crate::evidence::{Evidence, Missing, Need};

/// An interval in which a trigger holds, in an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// Index of the first sample.
    pub(crate) first: usize,
    /// Index of the last sample.
    pub(crate) last: usize,
    /// Key of the entity, which need not have any sample: a kernel report may name it. `None` for the host.
    pub(crate) key: Option<String>,
}

impl Occurrence {
    /// Creates an occurrence on the host.
    pub(crate) const fn on_host(first: usize, last: usize) -> Self {
        Self { first, last, key: None }
    }
}

/// Returns occurrences in order of time. Those in one entity are joined if they overlap or are at most `within` apart.
pub(crate) fn joined(cx: &Evidence<'_>, mut all: Vec<Occurrence>, within: Span) -> Vec<Occurrence> {
    let times = cx.timeline.times();
    all.sort_by(|a, b| (&a.key, a.first, a.last).cmp(&(&b.key, b.first, b.last)));
    let mut joined: Vec<Occurrence> = Vec::new();
    for next in all {
        match joined.last_mut().filter(|known| known.key == next.key) {
            Some(known)
                if next.first < known.last
                    || times[next.last].saturating_sub(times[known.last]) <= within =>
            {
                known.last = known.last.max(next.last);
            }
            _ => joined.push(next),
        }
    }
    joined.sort_by_key(|one| (one.first, one.last));
    joined
}

/// Returns where a trigger holds for long enough, in all entities that it is about.
///
/// # Errors
/// [`Missing`] if it could be evaluated in none of them.
pub(crate) fn holding(cx: &Evidence<'_>, trigger: &While) -> Result<Vec<Occurrence>, Missing> {
    let subjects = subjects(cx, trigger.scope, &trigger.when)?;
    let mut occurrences = Vec::new();
    let mut lacks = None;
    for subject in subjects {
        match trigger.when.holds(subject) {
            Ok(holds) if is_one_moment(subject.cx, &holds, trigger) => {
                lacks = lacks.or(Some(flows_of(trigger, Need::TwoSamples)));
            }
            Ok(holds) => {
                let lasting = lasting(&holds, trigger, subject.of);
                if lasting.is_empty() {
                    let every = one_long_interval(&holds, trigger);
                    let more = |every| flows_of(trigger, Need::MoreSamples { every });
                    lacks = lacks.or(every.map(more)).or_else(|| cut_short(&holds, trigger));
                }
                occurrences.extend(lasting);
            }
            Err(missing) => lacks = lacks.or(Some(missing)),
        }
    }
    match lacks {
        Some(missing) if occurrences.is_empty() => Err(missing),
        _ => Ok(occurrences),
    }
}

/// Whether it holds in a single sample, which does not show a flow.
fn is_one_moment(cx: &Evidence<'_>, holds: &Condition, trigger: &While) -> bool {
    cx.is_single_sample() && trigger.when.is_flow() && holds.ever_holds()
}

/// Returns the longest flow that only one interval shows, if it is as long as the trigger asks: samples are too rare to
/// tell a moment of flow from a whole interval of it.
fn one_long_interval(holds: &Condition, trigger: &While) -> Option<Span> {
    let runs = holds.runs().into_iter().filter(|_| trigger.when.is_flow());
    let lasts = runs.map(|run| run.duration());
    lasts.filter(|lasts| *lasts >= trigger.at_least).max()
}

/// Whether a level held at the end of a watch in which it could not last long enough: what comes then is unknown.
fn cut_short(holds: &Condition, trigger: &While) -> Option<Missing> {
    let run = holds.longest_run().filter(|_| !trigger.when.is_flow())?;
    let is_open = holds.at(run.last) == Some(true) && holds.recorded() < trigger.at_least;
    let is_at_end = (run.last + 1..).map_while(|at| holds.at(at)).next().is_none();
    let mut signals = trigger.when.signals().into_iter();
    let names = signals.next().into_iter().map(|signal| signal.def().name).collect();
    let need = Need::LongerWatch { lasts: trigger.at_least };
    (is_open && is_at_end).then(|| Missing::because(names, need))
}

fn flows_of(trigger: &While, need: Need) -> Missing {
    let mut signals = trigger.when.signals().into_iter();
    let flow = signals.find(|signal| signal.def().is_counter);
    let names = flow.into_iter().map(|signal| signal.def().name);
    Missing::because(names.collect(), need)
}

/// Returns what a trigger is evaluated on: the host, or each entity that it is about.
pub(crate) fn subjects<'a>(
    cx: &'a Evidence<'a>,
    scope: Subjects,
    when: &Predicate,
) -> Result<Vec<Subject<'a>>, Missing> {
    let Subjects::Each(entity, accepts) = scope else {
        return Ok(vec![Subject { cx, of: None }]);
    };
    let mut all = cx.timeline.entities(entity).peekable();
    if all.peek().is_none() {
        if has_none(cx, entity) {
            return Ok(Vec::new());
        }
        return Err(no_such_entity(cx, when, entity));
    }
    let accepted = all.filter(|series| accepts(cx, series));
    Ok(accepted.map(|series| Subject { cx, of: Some(series) }).collect())
}

/// Whether the host has no entities of this kind, as far as the source shows.
fn has_none(cx: &Evidence<'_>, entity: Entity) -> bool {
    let mut areas = cx.timeline.entities(Entity::SwapArea);
    match entity {
        Entity::Zram => !areas.any(|area| area.key.contains("zram")),
        Entity::Node => cx.facts.nodes.len() < 2,
        _ => false,
    }
}

/// Returns the missing files: without any entity of the kind, they are missing and not a field of a newer kernel.
fn no_such_entity(cx: &Evidence<'_>, when: &Predicate, entity: Entity) -> Missing {
    let signals = when.signals();
    let own = signals.iter().find(|signal| signal.def().entity == entity);
    let Some(signal) = own else {
        return Missing::because(Vec::new(), Need::SameTime);
    };
    let mut missing = cx.lacks_signal(*signal);
    if matches!(missing.need, Need::Field { .. }) {
        missing.need = Need::File(signal.def().file);
    }
    missing
}

/// Returns where a condition holds for long enough: a flow for as long as the trigger asks, seen by two intervals or by
/// one that is long; a level in two samples. A single sample is enough for a level; so is one in which it was read once, and one that is shorter than
/// the trigger asks and has the level wherever it was read: they show no less.
pub(crate) fn lasting(
    holds: &Condition,
    trigger: &While,
    of: Option<&EntitySeries>,
) -> Vec<Occurrence> {
    /// A mean over this long is not a spike.
    const LONG_MEAN: Span = Span::from_secs(15);
    let is_flow = trigger.when.is_flow();
    let occurrence =
        |first, last| Occurrence { first, last, key: of.map(|series| series.key.clone()) };
    let is_short = holds.recorded() < trigger.shortest() || holds.known() == 1;
    if let Some(at) = holds.last_of_all().filter(|_| is_short && !is_flow) {
        return vec![occurrence(at, at)];
    }
    let runs = holds.bridged_runs().into_iter();
    let lasting = runs.filter(|run| {
        let is_point = run.last == run.first;
        let intervals = run.last - run.first;
        let is_seen = if is_flow {
            intervals >= 2 || run.duration() >= LONG_MEAN
        } else {
            // It need not hold at the first sample yet.
            intervals >= 2 || holds.at(run.first) == Some(true)
        };
        (is_point && !is_flow) || (is_seen && run.duration() >= trigger.shortest())
    });
    lasting.map(|run| occurrence(run.first, run.last)).collect()
}
