//! What was found on one side and not on the other, or more gravely.

use std::cmp::Reverse;

use super::{Compared, length};
use crate::diagnosis::Diagnosis;
use crate::finding::{Finding, Severity};

/// A finding of either side.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingChange {
    /// Id of the rule.
    pub id: &'static str,
    /// As it was found before, be it in a stretch only ([`Doubt::Brief`]); `None` where it was not.
    pub before: Option<Found>,
    /// As it was found after.
    pub after: Option<Found>,
    /// Why nobody can tell whether it is gone or new, graver or milder; `None` where it can be told.
    pub doubt: Option<Doubt>,
}

/// Why the two sides cannot be held against each other in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The rule could not look for it on a side.
    NotLookedFor,
    /// The longer look hides it: it is found there in a stretch as long as the shorter look.
    Hidden,
    /// The longer look shows it for so small a part that the shorter one may have missed it.
    Rare,
    /// Only a stretch of the longer look, as long as the shorter one, shows it.
    Brief,
}

/// What is told of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// How much it matters.
    pub severity: Severity,
    /// Its sentence.
    pub title: String,
    /// Id of the finding that it follows from.
    pub caused_by: Option<&'static str>,
}

/// How a finding changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Only after.
    New,
    /// Only before.
    Gone,
    /// On both sides, more gravely after.
    Graver,
    /// On both sides, less gravely after.
    Milder,
    /// The same on both sides.
    Same,
    /// The other side could not look for it, or not for as long.
    Unknown,
}

impl FindingChange {
    /// What only a stretch of the longer side shows.
    pub(super) fn brief(id: &'static str, found: Found, is_after: bool) -> Self {
        let (before, after) = match is_after {
            true => (None, Some(found)),
            false => (Some(found), None),
        };
        let doubt = Some(Doubt::Brief);
        Self {
            id,
            before,
            after,
            doubt,
        }
    }

    /// How it changed.
    pub fn turn(&self) -> Turn {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if after.severity == before.severity => Turn::Same,
            _ if self.doubt.is_some() => Turn::Unknown,
            (Some(before), Some(after)) if after.severity > before.severity => Turn::Graver,
            (Some(_), Some(_)) => Turn::Milder,
            (None, _) => Turn::New,
            (_, None) => Turn::Gone,
        }
    }

    /// The graver of the two.
    pub fn severity(&self) -> Option<Severity> {
        let severity = |found: &Option<Found>| found.as_ref().map(|found| found.severity);
        severity(&self.before).max(severity(&self.after))
    }

    /// As it was found on a side.
    pub fn found(&self, is_after: bool) -> Option<&Found> {
        if is_after { &self.after } else { &self.before }.as_ref()
    }

    /// Whether one side has it and the other does not, or less of it, as far as both could look.
    pub(super) fn is_one_sided(&self) -> bool {
        !matches!(self.turn(), Turn::Same | Turn::Unknown)
    }

    /// Whether it is a root of weight on the side where it was found.
    pub(super) fn is_root(&self) -> bool {
        let found = self.after.as_ref().or(self.before.as_ref());
        found.is_some_and(|found| found.caused_by.is_none())
    }
}

/// All findings of either side: the gravest first, roots before what follows from them.
pub(super) fn compare(old: Compared<'_>, new: Compared<'_>) -> Vec<FindingChange> {
    let mut changes = both(old.diagnosis, new.diagnosis);
    length::doubt(old, new, &mut changes);
    changes.sort_by_key(|change| {
        (
            change.turn() == Turn::Same,
            Reverse(change.severity()),
            !change.is_root(),
        )
    });
    changes
}

fn both(before: &Diagnosis, after: &Diagnosis) -> Vec<FindingChange> {
    let mut changes: Vec<FindingChange> = Vec::new();
    for finding in before.findings.iter().chain(&after.findings) {
        if changes.iter().any(|change| change.id == finding.id) {
            continue;
        }
        let find = |diagnosis: &Diagnosis| {
            let found = diagnosis.findings.iter().find(|f| f.id == finding.id);
            found.map(Found::of)
        };
        let is_blind =
            |side: &Diagnosis| side.not_evaluated.iter().any(|(id, _)| *id == finding.id);
        changes.push(FindingChange {
            id: finding.id,
            before: find(before),
            after: find(after),
            doubt: (is_blind(before) || is_blind(after)).then_some(Doubt::NotLookedFor),
        });
    }
    changes
}

impl Found {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            severity: finding.severity,
            title: finding.title.clone(),
            caused_by: finding.caused_by,
        }
    }
}
