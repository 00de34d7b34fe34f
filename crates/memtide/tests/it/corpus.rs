//! The labelled captures and pastes: every rule on every case. Precision before recall; a calm case has no warning.

mod expected;
mod labels;
mod layout;
mod variants;

use std::collections::BTreeSet;

use diagnose::{Finding, FixChange, Lasting, Rule, Severity};
use lab::{CaseVerdict, ReportedFinding};
use report::FixCommands;

use crate::cases::{self, Case, on_each};

/// Compares what is reported of a case with its labels, if it has any.
fn verdict(case: &Case) -> Option<(&Case, CaseVerdict)> {
    let labels = case.file.labels.as_ref()?;
    let reported: Vec<ReportedFinding<'_>> = case
        .judged()
        .reported()
        .map(|finding| ReportedFinding {
            id: finding.id,
            aliases: finding.aliases.to_vec(),
            is_warning: finding.severity > Severity::Info,
        })
        .collect();
    Some((case, labels.judge_findings(&reported)))
}

/// Ids under which something is reported of a case, aliases too.
fn reported_ids(case: &Case) -> BTreeSet<&'static str> {
    let findings = case.judged().reported();
    findings
        .flat_map(|finding| std::iter::once(finding.id).chain(finding.aliases.iter().copied()))
        .collect()
}

fn findings() -> impl Iterator<Item = &'static Finding> {
    cases::all().iter().flat_map(|case| case.judged().reported())
}

#[test]
fn every_labelled_case_is_judged_right() {
    assert!(cases::captures().count() >= 85 && cases::pastes().count() >= 55);
    let verdicts = on_each(cases::all(), verdict);
    let mut wrong = String::new();
    for (case, verdict) in verdicts.iter().flatten() {
        for rule in &verdict.wrong {
            wrong += &format!("{}: wrongly reports {rule}\n", case.id);
        }
        let labels = case.file.labels.as_ref().unwrap();
        let known: Vec<&String> = labels.not_yet.keys().collect();
        if verdict.missed.iter().collect::<Vec<_>>() != known {
            wrong += &format!(
                "{}: misses {:?}, known to be missed are {known:?}; reported {:?}\n",
                case.id,
                verdict.missed,
                reported_ids(case)
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_capture_is_read_without_a_problem() {
    for case in cases::all().iter().filter(|case| case.is_capture()) {
        assert_eq!(case.judged().source.problems, Vec::<String>::new(), "{}", case.id);
    }
}

#[test]
fn a_rule_that_found_nothing_says_what_it_looked_at() {
    for case in cases::captures() {
        let clear = &case.judged().diagnosis.clear;
        let silent = clear.iter().filter(|(_, why)| why.is_empty() || why == "nothing showed it");
        let silent: Vec<&str> = silent.map(|(id, _)| *id).collect();
        assert_eq!(silent, Vec::<&str>::new(), "{}", case.id);
    }
}

/// Every rule is shown by a case, a made-up host where nothing real shows it.
#[test]
fn every_rule_is_reported_of_a_case() {
    let reported: BTreeSet<&str> = findings().map(|finding| finding.id).collect();
    for rule in diagnose::rules::ALL {
        assert!(
            reported.contains(rule.id),
            "{}: no case shows it: CONTRIBUTING.md, Add a rule",
            rule.id
        );
    }
}

/// What was ruled out and is written like an id is a rule's: somebody will ask `memtide rules` for it.
#[test]
fn what_is_ruled_out_is_a_rule_or_a_phrase() {
    for finding in findings() {
        for other in &finding.ruled_out {
            let is_id = !other.id.contains(' ') && other.id.contains('-');
            assert!(!is_id || is_rule(other.id), "{}: no rule is called {}", finding.id, other.id);
        }
    }
}

fn is_rule(id: &str) -> bool {
    diagnose::rules::by_id(id).is_some()
}

/// A reader of the documentation and a reader of a finding are sent to the same places.
#[test]
fn references_of_findings_are_those_of_the_documentation() {
    for finding in findings() {
        let rule = diagnose::rules::by_id(finding.id).unwrap();
        assert_eq!(finding.references, documented(rule), "{}", finding.id);
    }
}

fn documented(rule: &Rule) -> Vec<&str> {
    rule.references().collect()
}

#[test]
fn every_command_runs_as_it_stands() {
    let fixes = findings().flat_map(|finding| &finding.fixes);
    let origin = timeline::Origin::default();
    let fixes = fixes.map(|fix| FixCommands::new(fix, &origin));
    let blocks = fixes.flat_map(|fix| [fix.now, fix.persistent, fix.undo]);
    let blocks: BTreeSet<String> = blocks.collect();
    let commands: BTreeSet<&str> = blocks.iter().flat_map(|block| block.lines()).collect();
    assert!(commands.len() > 40, "{} commands", commands.len());
    for command in commands {
        let parsed = std::process::Command::new("sh").args(["-n", "-c", command]).output().unwrap();
        assert!(parsed.status.success(), "sh does not take: {command}");
        let first = command.split(' ').next().unwrap_or_default();
        assert!(!first.contains(':') && !first.ends_with(".conf"), "no command: {command}");
        let placeholder = command
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .find(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase()));
        assert_eq!(placeholder, None, "to be filled in: {command}");
        assert!(!command.contains('…') && !command.contains(" PID"), "{command}");
    }
}

/// Changes that nothing takes back, and why.
const NOT_TAKEN_BACK: [(&str, &str); 2] = [
    ("memory.min", "it is not read of the unit that is guessed"),
    ("thp.max_ptes_none", "older captures do not have it"),
];

#[test]
fn a_change_is_taken_back_where_a_capture_tells_what_was_before() {
    let findings = cases::captures().flat_map(|case| case.judged().reported());
    let changes = findings.flat_map(|finding| &finding.fixes).flat_map(|fix| &fix.changes);
    let mut seen = BTreeSet::new();
    for change in changes {
        let (what, is_taken_back) = match change {
            FixChange::Setting(change) if change.lasts == Lasting::FromBoot => continue,
            FixChange::Setting(change) => (change.to.fact.name, change.from.is_some()),
            FixChange::Limit(change) => (change.file.name(), change.from.is_some()),
            FixChange::Command(command) => (command.now.as_str(), !command.undo.is_empty()),
        };
        let is_known = NOT_TAKEN_BACK.iter().any(|(known, _why)| what == *known);
        assert!(is_taken_back || is_known, "no way back: {change:?}");
        seen.insert(format!("{change:?}"));
    }
    assert!(seen.len() > 10, "{} changes", seen.len());
}
