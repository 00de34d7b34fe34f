//! Findings of one side only, or at another cost: by rule and by place.

use std::cmp::{Ordering, Reverse};

use schemars::JsonSchema;
use serde::Serialize;
use timeline::{Entity, Timeline};
use units::{Ratio, Span};

use super::Compared;
use crate::finding::{Finding, Scope, Severity, Title};

/// What a rule found in one place, on either side.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingChange {
    /// Id of the rule.
    pub id: &'static str,
    /// The place by its usual name, without the ids of containers, which are new each time (untrusted text); `None`
    /// for the host.
    pub place: Option<String>,
    /// The finding before; `None` where there was none.
    pub before: Option<Found>,
    /// The finding after.
    pub after: Option<Found>,
    /// Why it is unknown whether the finding is gone or new, better or worse; `None` if known.
    pub doubt: Option<NotComparable>,
}

/// Why a finding cannot be compared between the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotComparable {
    /// The rule could not be evaluated on a side.
    NotEvaluated,
    /// One side was watched too briefly: it may have missed the finding, or cannot show how often it occurs.
    TooShort,
}

/// What was found on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its severity.
    pub severity: Severity,
    /// Its title.
    pub title: Title,
    /// Id of the finding that it follows from.
    pub caused_by: Option<&'static str>,
    /// How often, how long, and at what cost.
    pub cost: FindingCost,
}

/// How often a finding occurred, how long it lasted and what it cost, in the time that a side was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FindingCost {
    /// How often it occurred; 0 for a state without a beginning.
    pub times: usize,
    /// Its total duration; `None` for a state without a beginning.
    pub lasted: Option<Span>,
    /// How long tasks waited; `None` where the source does not measure it, or where the finding makes no task wait.
    pub waited: Option<Span>,
    /// Processes that were killed.
    pub killed: u64,
    /// For how long the side was watched.
    pub watched: Span,
}

/// One side has more of a finding from this factor on; an engineering choice.
const MORE: f64 = 2.0;
/// The least difference in seconds, scaled to the shorter side: a few samples do not make it.
const SECONDS_MIN: f64 = 5.0;
/// The least difference in kills: numbers in the same time differ by one by chance.
const KILLS_MIN: f64 = 2.0;

impl FindingCost {
    fn sum(findings: &[&Finding], watched: Span) -> Self {
        let mut it = Self { watched, ..Self::default() };
        let add = |sum: Option<Span>, more: Option<Span>| match (sum, more) {
            (Some(sum), Some(more)) => Some(sum.plus(more)),
            (sum, more) => sum.or(more),
        };
        for finding in findings {
            it.times += finding.stretches().len();
            it.lasted = add(it.lasted, finding.duration());
            it.waited = add(it.waited, finding.harm.waited);
            it.killed += finding.harm.killed;
        }
        it
    }

    /// The share of the watched time for which it held.
    pub fn share(&self) -> Option<Ratio> {
        let watched = self.watched.as_secs_f64();
        let lasted = self.lasted?.as_secs_f64();
        (watched > 0.0).then(|| Ratio::new((lasted / watched).min(1.0)))
    }

    /// How long tasks waited per hour that was watched.
    pub fn waited_an_hour(&self) -> Option<Span> {
        let waited = self.waited?.as_secs_f64() * self.hours_inverse()?;
        Some(Span::from_secs_f64(waited))
    }

    /// How often it occurred per watched hour; `None` for a state without a beginning.
    pub fn times_an_hour(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)] // a number of incidents
        let times = self.times as f64;
        Some(times * self.hours_inverse()?).filter(|_| self.times > 0)
    }

    fn hours_inverse(&self) -> Option<f64> {
        let watched = self.watched.as_secs_f64();
        (watched > 0.0).then_some(3600.0 / watched)
    }

    /// Compares the cost on this side with that on the other, in the same time: by kills, else by waiting, else by
    /// duration.
    pub(super) fn against(&self, other: &Self) -> Ordering {
        let (mine, others) = (self.watched.as_secs_f64(), other.watched.as_secs_f64());
        let shorter = mine.min(others);
        if shorter <= 0.0 {
            return Ordering::Equal;
        }
        let more = |one: f64, two: f64, least: f64| {
            let (one, two) = (one * shorter / mine, two * shorter / others);
            let is_clear = one.max(two) >= MORE * one.min(two) && (one - two).abs() >= least;
            if is_clear { one.total_cmp(&two) } else { Ordering::Equal }
        };
        #[allow(clippy::cast_precision_loss)] // a number of processes
        let kills = more(self.killed as f64, other.killed as f64, KILLS_MIN);
        let seconds = |one: Option<Span>, two: Option<Span>| {
            let (one, two) = (one?.as_secs_f64(), two?.as_secs_f64());
            Some(more(one, two, SECONDS_MIN))
        };
        kills.then_with(|| {
            seconds(self.waited, other.waited)
                .or_else(|| seconds(self.lasted, other.lasted))
                .unwrap_or(Ordering::Equal)
        })
    }
}

/// How a finding changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// Only after.
    New,
    /// Only before.
    Gone,
    /// On both sides, more severe after, or alike and at a higher cost in the same time.
    Worse,
    /// On both sides, less severe after, or alike and at a lower cost in the same time.
    Better,
    /// The same on both sides.
    Same,
    /// The other side could not look for it, or not for long enough.
    Unknown,
}

impl FindingChange {
    /// How it changed.
    pub fn turn(&self) -> Turn {
        match (&self.before, &self.after) {
            _ if self.doubt.is_some() => Turn::Unknown,
            (Some(before), Some(after)) => match after.against(before) {
                Ordering::Greater => Turn::Worse,
                Ordering::Less => Turn::Better,
                Ordering::Equal => Turn::Same,
            },
            (None, _) => Turn::New,
            (_, None) => Turn::Gone,
        }
    }

    /// The higher of the two severities.
    pub fn severity(&self) -> Option<Severity> {
        let severity = |found: &Option<Found>| found.as_ref().map(|found| found.severity);
        severity(&self.before).max(severity(&self.after))
    }

    /// Whether it is severe enough to affect a verdict.
    pub(super) fn is_of_weight(&self) -> bool {
        self.severity() > Some(Severity::Info)
    }

    /// The finding on one side.
    pub fn found(&self, is_after: bool) -> Option<&Found> {
        if is_after { &self.after } else { &self.before }.as_ref()
    }

    /// Whether it is worse after; `None` where both are alike.
    pub(super) fn is_worse_after(&self) -> Option<bool> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => match after.against(before) {
                Ordering::Greater => Some(true),
                Ordering::Less => Some(false),
                Ordering::Equal => None,
            },
            (before, after) => (before.is_some() != after.is_some()).then_some(after.is_some()),
        }
    }

    /// Whether it is a root cause on the side where it was found.
    pub(super) fn is_root(&self) -> bool {
        let found = self.after.as_ref().or(self.before.as_ref());
        found.is_some_and(|found| found.caused_by.is_none())
    }
}

impl Found {
    fn against(&self, other: &Self) -> Ordering {
        let severity = self.severity.cmp(&other.severity);
        severity.then_with(|| self.cost.against(&other.cost))
    }
}

/// Sorts by severity, and roots before what follows from them.
pub(super) fn order(changes: &mut [FindingChange]) {
    changes.sort_by_key(|change| {
        (change.turn() == Turn::Same, Reverse(change.severity()), !change.is_root())
    });
}

/// All findings of either side.
pub(super) fn both(before: Compared<'_>, after: Compared<'_>) -> Vec<FindingChange> {
    let mut changes: Vec<FindingChange> = Vec::new();
    for side in [before, after] {
        for finding in &side.diagnosis.findings {
            let (id, place) = (finding.id, place(finding, side.timeline));
            if changes.iter().any(|known| known.id == id && known.place == place) {
                continue;
            }
            let is_blind = |side: Compared<'_>| {
                let mut unasked = side.diagnosis.not_evaluated.iter();
                unasked.any(|(blind, _)| *blind == id)
            };
            let found = |side| Found::from_findings(&of_place(side, id, place.as_ref()), side);
            let (old, new) = (found(before), found(after));
            let is_unasked = old.is_none() && is_blind(before) || new.is_none() && is_blind(after);
            changes.push(FindingChange {
                id,
                place,
                before: old,
                after: new,
                doubt: is_unasked.then_some(NotComparable::NotEvaluated),
            });
        }
    }
    changes
}

/// The findings of a rule in one place: several where it follows from several roots.
pub(super) fn of_place<'a>(
    side: Compared<'a>,
    id: &str,
    place_asked: Option<&String>,
) -> Vec<&'a Finding> {
    let findings = side.diagnosis.findings.iter();
    let same = findings.filter(|finding| {
        finding.id == id && place(finding, side.timeline).as_ref() == place_asked
    });
    same.collect()
}

impl Found {
    /// Takes the most severe as representative of all.
    fn from_findings(findings: &[&Finding], side: Compared<'_>) -> Option<Self> {
        let worst = findings.iter().rev().max_by_key(|finding| finding.severity)?;
        let root = findings.iter().find(|finding| finding.caused_by.is_none());
        Some(Self {
            severity: worst.severity,
            title: worst.title.clone(),
            caused_by: root.map_or(worst.caused_by, |_| None),
            cost: FindingCost::sum(findings, side.timeline.recorded()),
        })
    }
}

/// The usual name of the place where it happened.
fn place(finding: &Finding, timeline: &Timeline) -> Option<String> {
    let Scope { entity, key } = &finding.scope;
    if *entity == Entity::Host {
        return None;
    }
    let label = timeline.entity(*entity, key).map_or(key.as_str(), |entity| entity.label.as_str());
    Some(match entity {
        Entity::Node => format!("node {label}"),
        _ => without_ids(label),
    })
}

/// A name without the words that are ids of containers and pods.
fn without_ids(name: &str) -> String {
    let mut words = String::new();
    let is_part = |letter: char| letter.is_alphanumeric();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| is_part(letter) != is_part(first));
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let is_id = word.len() >= 8
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.bytes().any(|byte| byte.is_ascii_digit());
        words.push_str(if is_id { "…" } else { word });
        rest = behind;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(watched: u64, lasted: u64, waited: u64, killed: u64) -> FindingCost {
        FindingCost {
            times: 1,
            lasted: Some(Span::from_secs(lasted)),
            waited: Some(Span::from_secs(waited)),
            killed,
            watched: Span::from_secs(watched),
        }
    }

    #[test]
    fn costs_are_compared_in_the_same_time() {
        for (one, two, order) in [
            (cost(100, 50, 30, 0), cost(100, 50, 20, 0), Ordering::Equal),
            (cost(100, 50, 30, 0), cost(100, 50, 12, 0), Ordering::Greater),
            (cost(100, 9, 4, 0), cost(100, 9, 1, 0), Ordering::Equal),
            (cost(7200, 60, 60, 0), cost(60, 60, 60, 0), Ordering::Less),
            (cost(100, 1, 0, 3), cost(100, 90, 80, 1), Ordering::Greater),
            (cost(100, 1, 0, 2), cost(100, 1, 0, 1), Ordering::Equal),
            (cost(0, 1, 0, 2), cost(100, 1, 0, 1), Ordering::Equal),
        ] {
            assert_eq!(one.against(&two), order, "{one:?} {two:?}");
            assert_eq!(two.against(&one), order.reverse());
        }
    }

    #[test]
    fn costs_are_told_per_hour() {
        let it = cost(600, 60, 30, 0);
        assert_eq!(it.share(), Some(Ratio::new(0.1)));
        assert_eq!(it.waited_an_hour(), Some(Span::from_secs(180)));
        assert_eq!(it.times_an_hour(), Some(6.0));
        assert_eq!(FindingCost::default().waited_an_hour(), None);
    }

    #[test]
    fn a_container_that_was_started_anew_is_the_same_place() {
        for (name, shown) in [
            ("/system.slice/docker-0a1b2c3d4e5f.scope", "/system.slice/docker-….scope"),
            ("/system.slice/nginx.service", "/system.slice/nginx.service"),
            ("/deadbeef", "/deadbeef"),
            ("", ""),
        ] {
            assert_eq!(without_ids(name), shown);
        }
    }
}
