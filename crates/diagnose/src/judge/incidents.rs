//! One rule on one stretch of time: where its trigger held, and what its story makes of each of these incidents.
//!
//! A story never sees the recording: its evidence is cut to a window around the incident, and the host's settings are those
//! of that time. So an incident is the same one, however much was watched before and after it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use timeline::kernel_report::ReportKind;
use timeline::{Entity, EntitySeries, Facts, Reported, Stretch, Timeline};
use units::Span;

use crate::evidence::{Evidence, Missing};
use crate::finding::Finding;
use crate::finding::{Bursts, Harm, Occasion, Outcome, Scope};
use crate::judge::bursts::{self, Weighed};
use crate::judge::weight::{WaitTracks, Weight};
use crate::oom::kills::KillCounts;
use crate::rule::{Incident, Rule, Waits};
use crate::trigger::{self, Occurrence, Trigger};

/// What a story may see of the time before and after an incident.
const AROUND: Span = Span::from_secs(10);
/// Tables that are read more rarely than that: up to their last reading before, and their first after.
const RARE_TABLES: Span = Span::from_secs(90);
/// The log's clock and the samples' differ by this at most.
const SLACK: Span = Span::from_secs(2);
/// Incidents of one rule whose story is asked, besides the costliest of each entity; of more, the times and costs.
const MOST_TOLD: usize = 50;
/// The same of a note, of which one is said, and of bursts, which are only counted.
const MOST_NOTED: usize = 5;

/// What a rule says of a stretch of time.
#[derive(Debug, Default)]
pub(crate) struct RuleAnswer {
    /// One finding for each incident, in order of time.
    pub(crate) incidents: Vec<Finding>,
    /// What was too small to be told.
    pub(crate) bursts: Option<Bursts>,
    /// Incidents that are so many that no story was asked about them: their times and costs only.
    pub(crate) untold: Vec<Unreported>,
    /// Why there is no incident.
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
pub(crate) struct Unreported {
    pub(crate) id: &'static str,
    key: String,
    pub(crate) stretch: Stretch,
    pub(crate) harm: Harm,
}

impl Unreported {
    /// Adds it to the finding of its rule and entity; to none where the stories of the others cleared them.
    pub(crate) fn join(self, findings: &mut [Finding]) {
        let is_of = |finding: &&mut Finding| finding.id == self.id && finding.scope.key == self.key;
        let Some(finding) = findings.iter_mut().find(is_of) else {
            return;
        };
        let severities = finding.occasions.iter().map(|one| one.severity);
        finding.occasions.push(Occasion {
            stretch: self.stretch,
            severity: severities.min().unwrap_or(finding.severity),
            confidence: finding.confidence.value,
            harm: self.harm,
            title: finding.title.clone(),
        });
        finding.harm = finding.harm.plus(self.harm);
    }
}

/// The incidents of a rule.
struct Incidents {
    rule: &'static Rule,
    entity: Entity,
    /// Those of weight.
    told: Vec<Weighed>,
    /// Those that are too many to ask for their stories.
    untold: Vec<Weighed>,
    /// Those that are too short and too cheap, which are only counted: some of them are asked, as a story may clear them.
    bursts: Vec<Weighed>,
    more_bursts: Vec<Weighed>,
}

/// Asks one rule.
///
/// # Errors
/// [`Missing`] where the source lacks what it reads.
pub(crate) fn ask(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    waiting: &WaitTracks,
) -> Result<RuleAnswer, Missing> {
    let occurrences = match (rule.trigger)() {
        Trigger::Source => return of_source(rule, cx),
        Trigger::While(trigger) => {
            let subjects = trigger::subjects(cx, trigger.scope, &trigger.when)?;
            trigger::wherever(&trigger, &subjects)?
        }
        Trigger::Found(found) => {
            let occurrences = (found.find)(cx)?;
            match found.none {
                Some(none) if occurrences.is_empty() => return Ok(said(rule, none(cx)?)),
                _ => occurrences,
            }
        }
    };
    sorted_out(rule, cx, waiting, occurrences).answer(cx)
}

/// A rule that has no incidents: about all that was watched.
fn of_source(rule: &'static Rule, cx: &Evidence<'_>) -> Result<RuleAnswer, Missing> {
    let whole = cx.timeline.whole();
    let stretch = whole.unwrap_or_else(Stretch::empty);
    let incident = Incident {
        stretch,
        of: None,
        key: None,
    };
    Ok(said(rule, (rule.story)(cx, &incident)?))
}

/// What is of no time.
fn said(rule: &'static Rule, outcome: Outcome) -> RuleAnswer {
    match outcome {
        Outcome::Found(finding) => RuleAnswer {
            incidents: vec![complete(rule, *finding)],
            ..RuleAnswer::default()
        },
        Outcome::Clear(clear) => RuleAnswer {
            clear,
            ..RuleAnswer::default()
        },
    }
}

/// Weighs occurrences: what is a burst, what is told, and what is too much to be told.
fn sorted_out(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    waiting: &WaitTracks,
    occurrences: Vec<Occurrence>,
) -> Incidents {
    let trigger = (rule.trigger)();
    let (entity, is_found) = (trigger.entity(), matches!(trigger, Trigger::Found(_)));
    let mut of_groups: HashMap<&str, WaitTracks> = HashMap::new();
    let mut weighed: Vec<Weighed> = Vec::new();
    for occurrence in occurrences {
        let of = series(cx.timeline, entity, &occurrence);
        let Some(stretch) = cx.timeline.stretch(occurrence.first, occurrence.last) else {
            continue;
        };
        let is_own = |it: &&EntitySeries| it.entity == Entity::Cgroup && rule.waits != Waits::No;
        let of_subject = match of.filter(is_own) {
            Some(group) => &*of_groups
                .entry(&group.key)
                .or_insert_with(|| WaitTracks::of_group(cx, group)),
            None => waiting,
        };
        let waited = of_subject.within(&stretch, rule.waits);
        let harm = Harm { killed: 0, waited };
        weighed.push((occurrence, stretch, harm));
    }
    let last = cx.timeline.len().saturating_sub(1);
    let at_least = trigger.at_least();
    let (bursts, mut incidents): (Vec<_>, Vec<_>) =
        weighed.into_iter().partition(|(_, stretch, harm)| {
            let is_event = stretch.first == stretch.last || is_found;
            let weight = Weight {
                lasts: stretch.duration(),
                harm: *harm,
                is_cut: stretch.first == 0 || stretch.last == last,
            };
            let is_short = stretch.duration() < at_least;
            !is_event && !rule.is_note() && (is_short || weight.is_burst())
        });
    let (mut bursts, together) = bursts::apart(bursts);
    incidents.extend(together);
    let more_bursts = beyond(&mut bursts, MOST_NOTED);
    let untold = if rule.is_note() {
        beyond(&mut incidents, MOST_NOTED)
    } else {
        beyond(&mut incidents, MOST_TOLD)
    };
    Incidents {
        rule,
        entity,
        told: incidents,
        untold,
        bursts,
        more_bursts,
    }
}

impl Incidents {
    fn answer(self, cx: &Evidence<'_>) -> Result<RuleAnswer, Missing> {
        let mut answer = RuleAnswer::default();
        let mut lacks = None;
        let story =
            |(occurrence, _, harm): &Weighed| told(self.rule, cx, self.entity, occurrence, *harm);
        for incident in &self.told {
            match story(incident) {
                Ok(Outcome::Found(finding)) => answer.incidents.push(*finding),
                Ok(Outcome::Clear(why)) if answer.clear.is_empty() => answer.clear = why,
                Ok(Outcome::Clear(_)) => {}
                Err(missing) => lacks = lacks.or(Some(missing)),
            }
        }
        answer
            .incidents
            .sort_by_key(|finding| finding.when.map(|when| when.from));
        let mut real: Vec<Weighed> = Vec::new();
        for burst in self.bursts {
            match story(&burst) {
                Ok(Outcome::Found(_)) => real.push(burst),
                Ok(Outcome::Clear(why)) if answer.clear.is_empty() => answer.clear = why,
                Ok(Outcome::Clear(_)) => {}
                Err(missing) => lacks = lacks.or(Some(missing)),
            }
        }
        // Those that were not asked count where some of the same entity do that were.
        let known: BTreeSet<_> = real.iter().map(|(one, ..)| one.key.clone()).collect();
        let more = self.more_bursts.into_iter();
        real.extend(more.filter(|(one, ..)| known.contains(&one.key)));
        answer.bursts = bursts::counted(self.rule, &real);
        // Kills are counted by stories; those that are not asked have no other count.
        let are_kills = answer.incidents.iter().any(|it| it.harm.killed > 0);
        let killed = (are_kills && !self.untold.is_empty()).then(|| KillCounts::of(cx));
        let untold = self.untold.into_iter().map(|(occurrence, stretch, harm)| {
            let group = occurrence.key.as_deref();
            let killed = killed.as_ref().map_or(0, |it| it.during(group, &stretch));
            Unreported {
                id: self.rule.id,
                harm: Harm { killed, ..harm },
                key: occurrence.key.unwrap_or_default(),
                stretch,
            }
        });
        answer.untold = untold.collect();
        match lacks {
            Some(missing) if answer.is_empty() && answer.clear.is_empty() => Err(missing),
            _ => {
                if answer.is_empty() && answer.clear.is_empty() {
                    answer.clear = how_near(self.rule, cx)?;
                }
                Ok(answer)
            }
        }
    }
}

/// How near it came to an incident.
fn how_near(rule: &Rule, cx: &Evidence<'_>) -> Result<String, Missing> {
    Ok(match (rule.trigger)() {
        Trigger::Source => String::new(),
        Trigger::While(trigger) => {
            trigger.clear(&trigger::subjects(cx, trigger.scope, &trigger.when)?)
        }
        Trigger::Found(found) => found.clear(cx),
    })
}

/// Takes out what no story is asked about: of each entity the costliest is told, of all the last ones, and of the rest the
/// costliest, up to so many.
fn beyond(incidents: &mut Vec<Weighed>, most: usize) -> Vec<Weighed> {
    const LAST: usize = 5;
    incidents.sort_by_key(|(_, stretch, _)| std::cmp::Reverse(stretch.to));
    let mut ranked: Vec<(bool, Weighed)> = std::mem::take(incidents)
        .into_iter()
        .enumerate()
        .map(|(at, one)| (at < LAST.min(most), one))
        .collect();
    ranked.sort_by_key(|(_, (_, stretch, harm))| std::cmp::Reverse((*harm, stretch.duration())));
    let mut seen = BTreeSet::new();
    for (is_told, (occurrence, ..)) in &mut ranked {
        *is_told |= seen.insert(occurrence.key.clone());
    }
    ranked.sort_by_key(|(is_told, _)| !is_told);
    let fixed = ranked.iter().filter(|(is_told, _)| *is_told).count();
    let rest = ranked.split_off(ranked.len().min(fixed.max(most)));
    incidents.extend(ranked.into_iter().map(|(_, one)| one));
    rest.into_iter().map(|(_, one)| one).collect()
}

/// The entity of an occurrence.
fn series<'a>(
    timeline: &'a Timeline,
    entity: Entity,
    occurrence: &Occurrence,
) -> Option<&'a EntitySeries> {
    timeline.entity(entity, occurrence.key.as_deref()?)
}

/// Asks the story of one incident, in a window of its own, and puts what it found on the whole's samples.
fn told(
    rule: &'static Rule,
    cx: &Evidence<'_>,
    entity: Entity,
    occurrence: &Occurrence,
    harm: Harm,
) -> Result<Outcome, Missing> {
    let (first, end) = window(cx.timeline, occurrence);
    let part = within(cx.timeline, first, end);
    let stretch = part.stretch(occurrence.first - first, occurrence.last - first);
    let Some(stretch) = stretch else {
        return Ok(Outcome::Clear(String::new()));
    };
    let facts = cx.facts.as_of(stretch.from.plus(stretch.to).times(0.5));
    let within = Evidence::new(&part, &facts).about(&stretch);
    let of = series(&part, entity, occurrence);
    let outcome = (rule.story)(
        &within,
        &Incident {
            stretch,
            of,
            key: occurrence.key.as_deref(),
        },
    )?;
    let Outcome::Found(finding) = outcome else {
        return Ok(outcome);
    };
    let mut finding = since_changed(cx.facts, complete(rule, *finding));
    let when = *finding.when.get_or_insert(stretch);
    if let Some(graph) = &mut finding.graph {
        graph.peak_within(&when);
    }
    finding.move_by(first);
    finding.scope = match &occurrence.key {
        Some(key) => Scope {
            entity,
            key: key.clone(),
        },
        None => Scope::host(),
    };
    finding.harm = harm.max(finding.harm);
    at_the_logs_time(&within, &mut finding);
    finding.occasions = finding.occasion().into_iter().collect();
    Ok(finding.into())
}

/// The samples from `first` to before `end`.
fn within(timeline: &Timeline, first: usize, end: usize) -> Cow<'_, Timeline> {
    if first == 0 && end == timeline.len() {
        return Cow::Borrowed(timeline);
    }
    Cow::Owned(timeline.part(first, end))
}

/// A kill has the time of the kernel's log where that tells it, and no duration between two readings of a counter.
fn at_the_logs_time(within: &Evidence<'_>, finding: &mut Finding) {
    let Some(when) = finding.when.as_mut().filter(|_| finding.harm.killed > 0) else {
        return;
    };
    let is_meant = |reported: &&Reported| {
        let group = reported.report.group.as_ref();
        let path = group.map_or("", |group| group.path.as_str());
        let is_in = finding.scope.entity != Entity::Cgroup || path == finding.scope.key;
        reported.report.kind == ReportKind::OomKill && is_in
    };
    let reports = within.timeline.reports().filter(is_meant);
    let times: Vec<Span> = reports.map(|reported| reported.at).collect();
    let during = times
        .into_iter()
        .filter(|at| when.from <= at.plus(SLACK) && *at <= when.to.plus(SLACK));
    let ends = during.fold(None, |ends: Option<(Span, Span)>, at| {
        Some(ends.map_or((at, at), |(from, to)| (from.min(at), to.max(at))))
    });
    if let Some((from, to)) = ends {
        when.from = from;
        when.to = to;
        when.recorded = to - from;
    }
}

/// A setting that has another value by the end is said to, and nobody is told to change it.
fn since_changed(facts: &Facts, mut finding: Finding) -> Finding {
    let settings: Vec<(&'static str, f64)> = finding
        .evidence
        .iter()
        .filter_map(|line| line.measured.as_ref())
        .filter(|measured| measured.unit == Finding::SETTING)
        .map(|measured| (measured.signal, measured.value))
        .collect();
    for (name, value) in settings {
        let fact = timeline::facts::ALL.iter().find(|fact| fact.name == name);
        let now = fact.and_then(|fact| facts.number(*fact));
        #[allow(clippy::cast_precision_loss)] // settings are small
        let Some(now) = now.filter(|now| *now as f64 != value) else {
            continue;
        };
        finding = finding.tells(format!("{name} is {now} since"));
        for fix in &mut finding.fixes {
            if fix.now == format!("sysctl -w {name}={now}") {
                fix.now.clear();
            }
        }
    }
    finding
}

/// The samples around an occurrence: from the first to before the last.
fn window(timeline: &Timeline, occurrence: &Occurrence) -> (usize, usize) {
    let times = timeline.times();
    let (from, to) = (times[occurrence.first], times[occurrence.last]);
    let before = times.partition_point(|time| *time < from.saturating_sub(AROUND));
    let after = times.partition_point(|time| *time <= to.plus(AROUND));
    let mut first = before.min(occurrence.first.saturating_sub(1));
    let mut last = after.saturating_sub(1).max(occurrence.last);
    for entity in Entity::ALL.into_iter().skip(1) {
        let earlier = timeline.read_before(entity, occurrence.first);
        let earlier = earlier.filter(|at| from - times[*at] <= RARE_TABLES);
        first = first.min(earlier.unwrap_or(first));
        let later = timeline.read_after(entity, occurrence.last);
        let later = later.filter(|at| times[*at] - to <= RARE_TABLES);
        last = last.max(later.unwrap_or(last));
    }
    (first, last + 1)
}

/// What the declaration says of every finding.
fn complete(rule: &'static Rule, mut finding: Finding) -> Finding {
    if finding.cause.is_empty() {
        rule.cause.clone_into(&mut finding.cause);
    }
    if finding.verify.is_empty() {
        rule.verify.clone_into(&mut finding.verify);
    }
    if finding.references.is_empty() {
        finding.references = rule.references().collect();
    }
    finding.aliases.extend(rule.aliases);
    finding
}
