//! One rule on one timeline: sorts the occurrences of its trigger into incidents and bursts.

mod limit_lowered;
mod limit_raised;
pub(crate) mod limits_now;
mod story;

use std::collections::{BTreeSet, HashMap};

use timeline::{Entity, EntitySeries, Stretch, Timeline};
use units::Count;

use crate::evidence::{Evidence, Missing};
use crate::finding::Finding;
use crate::finding::{Bursts, Harm, Occasion, Outcome};
use crate::judge::bursts::{self, Weighed};
use crate::judge::weight::{WaitTracks, Weight};
use crate::measures::cgroups;
use crate::oom::{self, kills::KillCounts};
use crate::rule::{Class, Incident, Rule, Waits};
use crate::trigger::{self, Occurrence, Trigger};
use story::Windows;
pub(crate) use story::complete;

/// How many incidents of one rule get a story: the last five, then the costliest of each entity, then others. Those
/// without a story are listed with time and cost; of entities without any, only the number is shown.
pub(crate) const MAX_STORIES: usize = 50;
/// The same for a note, which is reported once, and for bursts, which are only counted.
const MAX_NOTE_STORIES: usize = 5;

/// The result of one rule on one timeline.
#[derive(Debug, Default)]
pub(crate) struct RuleAnswer {
    /// One finding for each incident, in order of time.
    pub(crate) incidents: Vec<Finding>,
    /// Incidents too short and too cheap for a finding.
    pub(crate) bursts: Option<Bursts>,
    /// Incidents beyond [`MAX_STORIES`], with times and costs only.
    pub(crate) without_story: Vec<UnexplainedIncident>,
    /// Why no incident was found.
    pub(crate) clear: String,
}

impl RuleAnswer {
    /// Whether nothing was found: neither incidents nor bursts.
    pub(crate) fn is_empty(&self) -> bool {
        self.incidents.is_empty() && self.bursts.is_none()
    }
}

/// An incident without a story.
#[derive(Debug)]
pub(crate) struct UnexplainedIncident {
    pub(crate) id: &'static str,
    key: String,
    pub(crate) stretch: Stretch,
    pub(crate) harm: Harm,
    /// Whether another incident of its entity has a story.
    is_of_explained: bool,
}

impl UnexplainedIncident {
    /// Its rule and entity.
    pub(crate) fn problem(&self) -> (&'static str, String) {
        (self.id, self.key.clone())
    }

    /// Adds it to the finding of its rule and entity.
    pub(crate) fn join(self, finding: &mut Finding) {
        let severities = finding.occasions.iter().map(|one| one.severity);
        finding.occasions.push(Occasion {
            stretch: self.stretch,
            severity: severities.min().unwrap_or(finding.severity),
            confidence: finding.confidence.value,
            harm: self.harm,
            title: finding.title.to_string(),
        });
        finding.harm = finding.harm.plus(self.harm);
    }

    /// The line of a finding for incidents of its rule in entities without a finding. `None` if there are no such
    /// entities: where an entity has stories but no finding, these cleared its incidents.
    pub(crate) fn of_others(all: &[Self], kind: Entity) -> Option<String> {
        let others = all.iter().filter(|one| !one.is_of_explained);
        without_findings(others.map(|one| (one.key.as_str(), one.harm)), kind)
    }
}

/// The line of a finding for entities in which the same happened, each with its harm, and that have no finding of their
/// own. `None` if there are none.
pub(crate) fn without_findings<'a>(
    others: impl Iterator<Item = (&'a str, Harm)>,
    kind: Entity,
) -> Option<String> {
    let mut keys = BTreeSet::new();
    let mut killed = 0_u64;
    for (key, harm) in others {
        keys.insert(key);
        killed = killed.saturating_add(harm.killed);
    }
    let count = u64::try_from(keys.len()).ok().filter(|count| *count > 0)?;
    let kills = match killed {
        0 => String::new(),
        killed => format!(", with {} kills", Count::new(killed)),
    };
    let (name, plural) = (kind.name(), if count == 1 { "" } else { "s" });
    let count = Count::new(count);
    Some(format!("also in {count} more {name}{plural} without findings of their own{kills}"))
}

/// Evaluates one rule on one timeline.
///
/// # Errors
/// [`Missing`] if the source lacks what the rule reads.
pub(crate) fn evaluate(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    host_waits: &WaitTracks,
) -> Result<RuleAnswer, Missing> {
    let mut answer = evaluate_then(rule, cx, host_waits)?;
    limit_raised::note(cx, &mut answer.incidents);
    limits_now::bring_up_to_date(cx, &mut answer);
    Ok(answer)
}

/// Evaluates it, with advice for the time of each incident.
fn evaluate_then(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    host_waits: &WaitTracks,
) -> Result<RuleAnswer, Missing> {
    let occurrences = match (rule.trigger)() {
        Trigger::Source => return about_source(rule, cx),
        Trigger::While(trigger) => {
            let levels = trigger::holding(cx, &trigger);
            let levels = match trigger.reported {
                Some(is_reported) => oom::beside_levels(cx, levels, is_reported),
                None => levels,
            };
            let levels = match trigger.noticed {
                Some(kind) => oom::notices::or_levels(cx, levels, kind)?,
                None => levels?,
            };
            if rule.class == Class::Limit { cgroups::at_one_limit_each(cx, levels) } else { levels }
        }
        Trigger::Found(found) => {
            let occurrences = (found.find)(cx)?;
            match found.none {
                Some(none) if occurrences.is_empty() => return Ok(timeless(rule, none(cx)?)),
                _ => occurrences,
            }
        }
    };
    sort_and_explain(rule, cx, host_waits, occurrences)
}

/// Evaluates a rule without incidents, about the whole recording.
fn about_source(rule: &'static Rule, cx: &Evidence<'_>) -> Result<RuleAnswer, Missing> {
    let stretch = cx.timeline.whole().unwrap_or_else(Stretch::empty);
    let incident = Incident { stretch, of: None, key: None };
    Ok(timeless(rule, (rule.story)(cx, &incident)?))
}

/// Converts an outcome that belongs to no interval to an answer.
fn timeless(rule: &'static Rule, outcome: Outcome) -> RuleAnswer {
    match outcome {
        Outcome::Found(finding) => {
            RuleAnswer { incidents: vec![story::complete(rule, *finding)], ..RuleAnswer::default() }
        }
        Outcome::Clear(clear) => RuleAnswer { clear, ..RuleAnswer::default() },
    }
}

/// Sorts the occurrences of a trigger into incidents and bursts, and runs the story of each.
fn sort_and_explain(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    host_waits: &WaitTracks,
    occurrences: Vec<Occurrence>,
) -> Result<RuleAnswer, Missing> {
    let entity = (rule.trigger)().entity();
    let weighed = weigh(rule, cx, host_waits, occurrences);
    let (mut bursts, mut incidents) = split_bursts(rule, cx, weighed);
    // Only some bursts get a story, which may clear them.
    let more_bursts = take_excess(&mut bursts, MAX_NOTE_STORIES);
    let max_stories = if rule.is_note() { MAX_NOTE_STORIES } else { MAX_STORIES };
    let without_story = take_excess(&mut incidents, max_stories);
    let mut answer = RuleAnswer::default();
    let mut missing = None;
    let explained: BTreeSet<_> = incidents.iter().map(|(one, ..)| one.key.clone()).collect();
    let mut windows = Windows::new(cx);
    let mut story = |(occurrence, _, harm): &Weighed| match windows
        .run_story(rule, entity, occurrence, *harm)
    {
        Ok(Outcome::Found(finding)) => Some(*finding),
        Ok(Outcome::Clear(why)) => {
            if answer.clear.is_empty() {
                answer.clear = why;
            }
            None
        }
        Err(lacks) => {
            missing.get_or_insert(lacks);
            None
        }
    };
    answer.incidents = incidents.iter().filter_map(&mut story).collect();
    bursts.retain(|burst| story(burst).is_some());
    answer.incidents.sort_by_key(|finding| finding.when.map(|when| when.from));
    // A burst without a story counts if a story confirmed another burst of its entity.
    let confirmed: BTreeSet<_> = bursts.iter().map(|(one, ..)| one.key.clone()).collect();
    bursts.extend(more_bursts.into_iter().filter(|(one, ..)| confirmed.contains(&one.key)));
    answer.bursts = bursts::count(rule, &bursts);
    answer.without_story = counted_only(rule, cx, &answer.incidents, without_story, &explained);
    if answer.is_empty() && answer.clear.is_empty() {
        if let Some(missing) = missing {
            return Err(missing);
        }
        answer.clear = how_near(rule, cx)?;
    }
    Ok(answer)
}

/// Separates bursts, which are counted, from incidents, which are explained.
fn split_bursts(
    rule: &Rule,
    cx: &Evidence<'_>,
    weighed: Vec<Weighed>,
) -> (Vec<Weighed>, Vec<Weighed>) {
    let trigger = (rule.trigger)();
    let last = cx.timeline.len().saturating_sub(1);
    let at_least = trigger.at_least();
    let is_found = matches!(trigger, Trigger::Found(_));
    let is_burst = |(_, stretch, harm): &Weighed| {
        let is_event = stretch.first == stretch.last || is_found;
        let weight = Weight {
            duration: stretch.duration(),
            harm: *harm,
            is_cut: stretch.first == 0 || stretch.last == last,
        };
        // In a watch that is shorter than that nothing could last as long.
        let is_short = stretch.duration() < at_least && cx.recorded() >= at_least;
        !is_event && !rule.is_note() && (is_short || weight.is_burst())
    };
    let (bursts, mut incidents): (Vec<_>, Vec<_>) = weighed.into_iter().partition(is_burst);
    let (bursts, costly) = bursts::split_costly(bursts);
    incidents.extend(costly);
    (bursts, incidents)
}

/// Returns the interval of each occurrence and how long tasks waited in it: those of its cgroup if it has one, else the
/// host's.
fn weigh(
    rule: &Rule,
    cx: &Evidence<'_>,
    host_waits: &WaitTracks,
    occurrences: Vec<Occurrence>,
) -> Vec<Weighed> {
    let entity = (rule.trigger)().entity();
    let mut cgroup_waits: HashMap<&str, WaitTracks> = HashMap::new();
    let mut weighed = Vec::new();
    for occurrence in occurrences {
        let Some(stretch) = cx.timeline.stretch(occurrence.first, occurrence.last) else {
            continue;
        };
        let series = series(cx.timeline, entity, &occurrence);
        let waits = match series.filter(|series| series.entity == Entity::Cgroup) {
            Some(cgroup) if rule.waits != Waits::No => &*cgroup_waits
                .entry(&cgroup.key)
                .or_insert_with(|| WaitTracks::for_cgroup(cx, cgroup)),
            _ => host_waits,
        };
        let waited = waits.within(&stretch, rule.waits);
        weighed.push((occurrence, stretch, Harm { killed: 0, waited }));
    }
    weighed
}

/// Returns incidents without a story. Stories count kills; if they found any, the kills here are read from the kernel's
/// counters.
fn counted_only(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    with_story: &[Finding],
    without_story: Vec<Weighed>,
    explained: &BTreeSet<Option<String>>,
) -> Vec<UnexplainedIncident> {
    let are_kills = with_story.iter().any(|finding| finding.harm.killed > 0);
    let kills = (are_kills && !without_story.is_empty()).then(|| KillCounts::from_counters(cx));
    without_story
        .into_iter()
        .map(|(occurrence, stretch, harm)| {
            let cgroup = occurrence.key.as_deref();
            let killed = kills.as_ref().map_or(0, |kills| kills.during(cgroup, &stretch));
            UnexplainedIncident {
                id: rule.id,
                harm: Harm { killed, ..harm },
                is_of_explained: explained.contains(&occurrence.key),
                key: occurrence.key.unwrap_or_default(),
                stretch,
            }
        })
        .collect()
}

/// Returns how near the rule came to an incident.
fn how_near(rule: &Rule, cx: &Evidence<'_>) -> Result<String, Missing> {
    Ok(match (rule.trigger)() {
        Trigger::Source => String::new(),
        Trigger::While(trigger) => {
            trigger.clear(&trigger::subjects(cx, trigger.scope, &trigger.when)?)
        }
        Trigger::Found(found) => found.clear(cx),
    })
}

/// Takes out and returns the incidents that get no story. At most `most` stay: the last five, then the costliest of each
/// entity, then the costliest of the others.
fn take_excess(incidents: &mut Vec<Weighed>, most: usize) -> Vec<Weighed> {
    const LAST: usize = 5;
    incidents.sort_by_key(|(_, stretch, _)| std::cmp::Reverse(stretch.to));
    let mut ranked: Vec<(StoryRank, Weighed)> = std::mem::take(incidents)
        .into_iter()
        .enumerate()
        .map(|(at, one)| {
            let is_last = at < LAST.min(most);
            let rank = if is_last { StoryRank::Last } else { StoryRank::Other };
            (rank, one)
        })
        .collect();
    ranked.sort_by_key(|(_, (_, stretch, harm))| std::cmp::Reverse((*harm, stretch.duration())));
    let mut seen = BTreeSet::new();
    for (rank, (occurrence, ..)) in &mut ranked {
        if seen.insert(occurrence.key.clone()) {
            *rank = (*rank).min(StoryRank::CostliestOfEntity);
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    let rest = ranked.split_off(ranked.len().min(most));
    incidents.extend(ranked.into_iter().map(|(_, one)| one));
    rest.into_iter().map(|(_, one)| one).collect()
}

/// Which incidents get a story first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StoryRank {
    Last,
    CostliestOfEntity,
    Other,
}

/// Returns the entity of an occurrence.
fn series<'a>(
    timeline: &'a Timeline,
    entity: Entity,
    occurrence: &Occurrence,
) -> Option<&'a EntitySeries> {
    timeline.entity(entity, occurrence.key.as_deref()?)
}
