//! What was found on one side and not on the other, or more gravely.

use std::cmp::Reverse;

use crate::diagnosis::Diagnosis;
use crate::finding::{Finding, Severity};

/// A finding of either side.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingChange {
    /// Id of the rule.
    pub id: &'static str,
    /// As it was found before; `None` where it was not.
    pub before: Option<Found>,
    /// As it was found after.
    pub after: Option<Found>,
    /// What it is of the other side where only one has found it: `false` where its rule could not look there, so that
    /// nobody can tell whether it is gone or new.
    pub was_looked_for: bool,
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
    /// The other side could not look for it.
    Unknown,
}

impl FindingChange {
    /// How it changed.
    pub fn turn(&self) -> Turn {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if after.severity > before.severity => Turn::Graver,
            (Some(before), Some(after)) if after.severity < before.severity => Turn::Milder,
            (Some(_), Some(_)) => Turn::Same,
            _ if !self.was_looked_for => Turn::Unknown,
            (None, _) => Turn::New,
            (_, None) => Turn::Gone,
        }
    }

    /// The graver of the two.
    pub fn severity(&self) -> Option<Severity> {
        let severity = |found: &Option<Found>| found.as_ref().map(|found| found.severity);
        severity(&self.before).max(severity(&self.after))
    }

    /// Whether it is a root of weight on the side where it was found.
    pub(super) fn is_root(&self) -> bool {
        let found = self.after.as_ref().or(self.before.as_ref());
        found.is_some_and(|found| found.caused_by.is_none())
    }
}

/// All findings of either side: the gravest first, roots before what follows from them.
pub(super) fn compare(before: &Diagnosis, after: &Diagnosis) -> Vec<FindingChange> {
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
            was_looked_for: !is_blind(before) && !is_blind(after),
        });
    }
    changes.sort_by_key(|change| {
        (
            change.turn() == Turn::Same,
            Reverse(change.severity()),
            !change.is_root(),
        )
    });
    changes
}

impl Found {
    fn of(finding: &Finding) -> Self {
        Self {
            severity: finding.severity,
            title: finding.title.clone(),
            caused_by: finding.caused_by,
        }
    }
}
