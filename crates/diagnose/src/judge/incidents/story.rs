//! The story of one incident.
//!
//! A story never sees the whole recording: its evidence is a window around the incident, and what led to it, with the
//! settings of that time. So an incident reads the same however much was recorded before and after it.

use std::borrow::Cow;

use timeline::kernel_report::ReportKind;
use timeline::{Entity, Facts, Reported, Timeline};
use units::Span;

use super::series;
use crate::evidence::{Evidence, KnownKills, Missing};
use crate::finding::{Finding, Harm, Outcome, Scope};
use crate::rule::{Incident, Rule};
use crate::trigger::Occurrence;

/// The window reaches this far before and after the incident.
const AROUND: Span = Span::from_secs(10);
/// For tables that are read more rarely, the window reaches to the last reading before and the first after the
/// incident, up to this far.
const RARE_TABLES: Span = Span::from_secs(90);
/// The most by which the clocks of the kernel log and of the samples differ.
const CLOCK_SKEW: Span = Span::from_secs(2);

/// The windows of stories. The last one stays: many cgroups may have an incident at the same time.
pub(super) struct Windows<'a> {
    timeline: &'a Timeline,
    facts: &'a Facts,
    last: Option<StoryWindow<'a>>,
}

/// The samples around an incident, with the settings of that time.
struct StoryWindow<'a> {
    /// The first sample, and the end, which is not included.
    range: (usize, usize),
    /// The time of its settings.
    middle: Span,
    part: Cow<'a, Timeline>,
    facts: Facts,
    kills: KnownKills,
}

impl<'a> Windows<'a> {
    pub(super) fn new(cx: &Evidence<'a>) -> Self {
        Self { timeline: cx.timeline, facts: cx.facts, last: None }
    }

    fn around(&mut self, rule: &Rule, occurrence: &Occurrence) -> Option<&StoryWindow<'a>> {
        let mut range = window_around(self.timeline, occurrence);
        let all = Evidence::new(self.timeline, self.facts);
        if let Some(begins) = rule.looks_back.and_then(|begin| begin(&all, occurrence)) {
            range.0 = range.0.min(before(self.timeline, begins));
        }
        let incident = self.timeline.stretch(occurrence.first, occurrence.last)?;
        let middle = incident.from.plus(incident.to).times(0.5);
        let is_same = |last: &StoryWindow<'_>| (last.range, last.middle) == (range, middle);
        if !self.last.as_ref().is_some_and(is_same) {
            self.last = Some(StoryWindow {
                range,
                middle,
                part: samples_between(self.timeline, range.0, range.1),
                facts: self.facts.as_of(middle),
                kills: KnownKills::default(),
            });
        }
        self.last.as_ref()
    }

    /// Runs the story of one incident in its window. Returns a finding with sample numbers of the whole timeline.
    pub(super) fn run_story(
        &mut self,
        rule: &'static Rule,
        entity: Entity,
        occurrence: &Occurrence,
        harm: Harm,
    ) -> Result<Outcome, Missing> {
        let all_facts = self.facts;
        let Some(around) = self.around(rule, occurrence) else {
            return Ok(Outcome::Clear(String::new()));
        };
        let (part, (first, _)) = (around.part.as_ref(), around.range);
        let Some(stretch) = part.stretch(occurrence.first - first, occurrence.last - first) else {
            return Ok(Outcome::Clear(String::new()));
        };
        let window = Evidence::new(part, &around.facts).sharing(&around.kills);
        let window = window.about(&stretch);
        let of = series(part, entity, occurrence);
        let outcome =
            (rule.story)(&window, &Incident { stretch, of, key: occurrence.key.as_deref() })?;
        let Outcome::Found(finding) = outcome else {
            return Ok(outcome);
        };
        let mut finding = note_changed_settings(all_facts, complete(rule, *finding));
        let when = *finding.when.get_or_insert(stretch);
        if let Some(graph) = &mut finding.graph {
            graph.peak_within(&when);
        }
        finding.move_by(first);
        finding.scope = match &occurrence.key {
            Some(key) => Scope { entity, key: key.clone() },
            None => Scope::host(),
        };
        finding.harm = harm.max(finding.harm);
        take_log_time(&window, &mut finding);
        finding.occasions = finding.occasion().into_iter().collect();
        Ok(finding.into())
    }
}

/// Returns the samples from `first` up to, but not including, `end`.
fn samples_between(timeline: &Timeline, first: usize, end: usize) -> Cow<'_, Timeline> {
    if first == 0 && end == timeline.len() {
        return Cow::Borrowed(timeline);
    }
    Cow::Owned(timeline.part(first, end))
}

/// Takes the time of a kill from the kernel log if the log has it, instead of the interval between two readings of a
/// counter.
fn take_log_time(window: &Evidence<'_>, finding: &mut Finding) {
    let Some(when) = finding.when.as_mut().filter(|_| finding.harm.killed > 0) else {
        return;
    };
    let is_meant = |reported: &&Reported| {
        let group = reported.report.group.as_ref();
        let path = group.map_or("", |group| group.path.as_str());
        let is_in = finding.scope.entity != Entity::Cgroup || path == finding.scope.key;
        reported.report.kind == ReportKind::OomKill && is_in
    };
    let reports = window.timeline.reports().filter(is_meant);
    let times: Vec<Span> = reports.map(|reported| reported.at).collect();
    let during = times
        .into_iter()
        .filter(|at| when.from <= at.plus(CLOCK_SKEW) && *at <= when.to.plus(CLOCK_SKEW));
    let ends = during.fold(None, |ends: Option<(Span, Span)>, at| {
        Some(ends.map_or((at, at), |(from, to)| (from.min(at), to.max(at))))
    });
    if let Some((from, to)) = ends {
        when.from = from;
        when.to = to;
        when.recorded = to - from;
    }
}

/// Notes settings that have another value now. What is already set is only kept, where it would not survive a boot.
fn note_changed_settings(facts: &Facts, mut finding: Finding) -> Finding {
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
        finding = finding.with_line(format!("{name} is {now} since"));
        for fix in &mut finding.fixes {
            fix.leave_set(name, &now.to_string());
        }
    }
    finding
}

/// Returns the window around an occurrence: the first sample, and the end, which is not included.
fn window_around(timeline: &Timeline, occurrence: &Occurrence) -> (usize, usize) {
    let times = timeline.times();
    let (from, to) = (times[occurrence.first], times[occurrence.last]);
    let after = times.partition_point(|time| *time <= to.plus(AROUND));
    let mut first = before(timeline, occurrence.first);
    let mut last = after.saturating_sub(1).max(occurrence.last);
    for entity in Entity::ALL.into_iter().skip(1) {
        let earlier = timeline
            .read_before(entity, occurrence.first)
            .filter(|at| from - times[*at] <= RARE_TABLES);
        first = first.min(earlier.unwrap_or(first));
        let later = timeline
            .read_after(entity, occurrence.last)
            .filter(|at| times[*at] - to <= RARE_TABLES);
        last = last.max(later.unwrap_or(last));
    }
    (first, last + 1)
}

/// Returns the first sample of the time before a sample that belongs to its window; at least one, where there is one.
fn before(timeline: &Timeline, sample: usize) -> usize {
    let times = timeline.times();
    let earliest = times[sample].saturating_sub(AROUND);
    times.partition_point(|time| *time < earliest).min(sample.saturating_sub(1))
}

/// Fills in what the rule declares for all its findings.
pub(crate) fn complete(rule: &'static Rule, mut finding: Finding) -> Finding {
    if finding.cause.is_empty() {
        finding.cause = rule.filled(rule.cause);
    }
    if finding.verify.is_empty() {
        finding.verify = rule.filled(rule.verify);
    }
    if finding.references.is_empty() {
        finding.references = rule.references().collect();
    }
    finding.aliases.extend(rule.aliases);
    finding
}
