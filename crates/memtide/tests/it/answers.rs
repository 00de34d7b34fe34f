//! What each rule says, as people read it: one reviewed file a rule, `answers/ID.txt`.
//!
//! Its first lines say what it was drawn from: a file of the project that shows it, or a small host made up line by line
//! ([`crate::synthetic`]). `BLESS=1 cargo test -p memtide --test it answers` draws all of them anew; a rule without a file
//! gets one from the first source that shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use diagnose::Rule;
use report::Report;
use report::text::{Detail, Screen};
use timeline::{Source, SourceKind};

use crate::support::{blesses, root};
use crate::synthetic;

/// Before each line that says what an answer was drawn from.
const FROM: &str = "# ";

fn folder() -> PathBuf {
    root().join("crates/memtide/tests/it/answers")
}

fn kept(rule: &Rule) -> Option<String> {
    std::fs::read_to_string(folder().join(format!("{}.txt", rule.id))).ok()
}

/// The lines that say what an answer was drawn from, each ended.
fn origin(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix(FROM));
    lines.map(|line| line.to_owned() + "\n").collect()
}

fn is_made_up(origin: &str) -> bool {
    origin.starts_with("host of ")
}

fn judged(origin: &str) -> Report {
    let source = if is_made_up(origin) {
        let (timeline, facts) = synthetic::host(origin.lines());
        Source::new(SourceKind::Capture, "", timeline, facts)
    } else {
        let path = root().join(origin.trim_end());
        import::open(&path, &mut |_| ())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .named("")
    };
    answers::check(&source)
}

fn drawn(report: &Report, rule: &Rule) -> Option<String> {
    let mut screen = Screen::of_width(100);
    screen.detail = Detail::All;
    report::text::answer(report, rule.id, &screen)
}

/// What was ruled out and is written like an id is a rule's: somebody will ask `memtide rules` for it.
fn assert_ruled_out(report: &Report, rule: &Rule) {
    let findings = report.findings.iter().chain(&report.notes);
    for other in findings.flat_map(|finding| &finding.ruled_out) {
        let is_id = !other.id.contains(' ') && other.id.contains('-');
        let is_rule = diagnose::rules::by_id(&other.id).is_some();
        assert!(
            !is_id || is_rule,
            "{}: no rule is called {}",
            rule.id,
            other.id
        );
    }
}

/// A reader of the documentation and a reader of a finding are sent to the same places.
fn assert_references(report: &Report, rule: &Rule) {
    let documented: Vec<&str> = rule.references().collect();
    let findings = report.findings.iter().chain(&report.notes);
    for finding in findings.filter(|finding| finding.id == rule.id) {
        assert_eq!(finding.references, documented, "{}", rule.id);
    }
}

/// All files that may show something: labelled captures first.
fn sources() -> Vec<String> {
    let folders = [
        ("corpus", ".jsonl.gz"),
        ("corpus/pasted", ".paste"),
        ("crates/probe/tests/kernel_reports", ".log"),
    ];
    let mut sources = Vec::new();
    for (folder, ending) in folders {
        let mut names: Vec<String> = std::fs::read_dir(root().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(ending))
            .map(|name| format!("{folder}/{name}\n"))
            .collect();
        names.sort();
        sources.append(&mut names);
    }
    sources
}

/// The first source that shows what a rule finds, one named after the rule before others.
fn first_that_shows(rule: &Rule) -> Option<String> {
    let is_named = |source: &&String| source.contains(&format!("/{}--", rule.id));
    let sources = sources();
    let named = sources.iter().filter(is_named);
    let others = sources.iter().filter(|source| !is_named(source));
    named
        .chain(others)
        .find(|source| drawn(&judged(source), rule).is_some())
        .cloned()
}

/// Each source with the rules that it is to show, judged once.
static ANSWERS: LazyLock<BTreeMap<&'static str, Option<String>>> = LazyLock::new(|| {
    let mut rules: BTreeMap<String, Vec<&'static Rule>> = BTreeMap::new();
    for rule in diagnose::rules::ALL {
        let known = kept(rule).map(|text| origin(&text));
        let known = known.filter(|origin| !origin.is_empty());
        let search = || blesses().then(|| first_that_shows(rule)).flatten();
        if let Some(origin) = known.or_else(search) {
            rules.entry(origin).or_default().push(rule);
        }
    }
    let mut answers = BTreeMap::new();
    for (origin, rules) in rules {
        let report = judged(&origin);
        for rule in rules {
            assert_references(&report, rule);
            assert_ruled_out(&report, rule);
            let head: String = origin
                .lines()
                .map(|line| format!("{FROM}{line}\n"))
                .collect();
            let answer = drawn(&report, rule).map(|answer| format!("{head}\n{answer}"));
            answers.insert(rule.id, answer);
        }
    }
    answers
});

#[test]
fn every_rule_says_what_was_reviewed() {
    let mut wrong = String::new();
    for rule in diagnose::rules::ALL {
        let path = folder().join(format!("{}.txt", rule.id));
        match ANSWERS.get(rule.id) {
            None => {
                wrong += &format!(
                    "{}: nothing shows it: describe a host in {}\n",
                    rule.id,
                    path.display()
                )
            }
            Some(None) => {
                wrong += &format!("{}: what its answer names does not show it\n", rule.id)
            }
            Some(Some(answer)) if blesses() => std::fs::write(path, answer).unwrap(),
            Some(Some(answer)) if kept(rule).as_ref() != Some(answer) => {
                wrong += &format!("{}: it says\n{answer}\n", rule.id);
            }
            Some(Some(_)) => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "\n{wrong}BLESS=1 cargo test -p memtide --test it answers writes them anew: read the difference"
    );
}

#[test]
fn every_answer_is_of_a_rule() {
    let ids: BTreeSet<String> = diagnose::rules::ALL
        .iter()
        .map(|rule| format!("{}.txt", rule.id))
        .collect();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(ids.contains(&name), "answers/{name}: no rule has this id");
    }
}

/// What a reader of an answer must never meet.
#[test]
fn no_answer_is_unfinished() {
    const NEVER: [&str; 7] = ["NaN", " inf ", " 0 times", "..", " ,", "TODO", "{}"];
    for rule in diagnose::rules::ALL {
        let text = kept(rule).unwrap_or_default();
        let answer: String = text
            .lines()
            .filter(|line| !line.starts_with(FROM))
            .collect();
        for never in NEVER {
            assert!(!answer.contains(never), "{}: `{never}`", rule.id);
        }
        for part in ["evidence ", "why ", "confidence ", "see "] {
            assert!(
                answer.contains(&format!("   {part}")),
                "{}: no {part}",
                rule.id
            );
        }
    }
}
