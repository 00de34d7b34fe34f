//! The labelled captures and pastes: every rule on every case. Precision before recall; a calm case has no warning.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use diagnose::{Diagnosis, Severity};

use crate::labels;
use crate::support::root;

struct Case {
    name: String,
    want: Vec<String>,
    forbid: Vec<String>,
    calm: bool,
    loud: BTreeSet<&'static str>,
    said: BTreeSet<&'static str>,
    /// What stands behind copy buttons.
    commands: BTreeSet<String>,
    /// Of these what changes something, and what takes it back.
    changes: BTreeSet<(String, String)>,
    /// Rules that found nothing and do not say what they looked at.
    silent: Vec<&'static str>,
}

impl Case {
    fn new(path: &Path, want: Vec<String>, forbid: Vec<String>, diagnosis: &Diagnosis) -> Case {
        Case {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            calm: want.iter().all(|id| id.contains("-harmless")),
            want,
            forbid,
            loud: diagnosis
                .findings
                .iter()
                .filter(|f| f.severity > Severity::Info)
                .map(|f| f.id)
                .collect(),
            said: diagnosis
                .findings
                .iter()
                .chain(&diagnosis.notes)
                .flat_map(|f| std::iter::once(f.id).chain(f.aliases.iter().copied()))
                .collect(),
            commands: diagnosis
                .findings
                .iter()
                .chain(&diagnosis.notes)
                .flat_map(|f| &f.fixes)
                .flat_map(|fix| [&fix.now, &fix.persistent, &fix.undo])
                .flat_map(|lines| lines.lines().map(str::to_owned))
                .collect(),
            changes: diagnosis
                .findings
                .iter()
                .chain(&diagnosis.notes)
                .flat_map(|f| &f.fixes)
                .filter(|fix| !fix.now.is_empty() && !fix.is_look)
                .map(|fix| (fix.now.clone(), fix.undo.clone()))
                .collect(),
            silent: diagnosis
                .clear
                .iter()
                .filter(|(_, why)| why.is_empty() || why == "nothing showed it")
                .map(|(id, _)| *id)
                .collect(),
        }
    }

    fn missed(&self) -> Vec<&str> {
        self.want
            .iter()
            .map(String::as_str)
            .filter(|want| !want.split('|').any(|id| self.said.contains(id)))
            .collect()
    }

    fn false_alarms(&self) -> Vec<&str> {
        self.loud
            .iter()
            .copied()
            .filter(|id| self.calm || self.forbid.iter().any(|forbidden| forbidden == id))
            .collect()
    }
}

pub(crate) fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    paths.sort();
    paths
}

fn captured(path: &Path) -> Case {
    let opened = import::open(path, &mut |_| ()).unwrap();
    assert_eq!(opened.problems, Vec::<String>::new(), "{}", path.display());
    let diagnosis = diagnose::diagnose(&opened.timeline, &opened.facts);
    let labels = labels::of(path);
    Case::new(
        path,
        labels.expected.clone(),
        labels.not_expected.clone(),
        &diagnosis,
    )
}

static CAPTURED: LazyLock<Vec<Case>> = LazyLock::new(|| {
    files("corpus", ".jsonl.gz")
        .iter()
        .map(|path| captured(path))
        .collect()
});

/// The labels of a pasted case are in the head of its `.txt`; the text that memtide reads lies beside it as `.paste`.
/// Also what no figures can decide must be readable.
fn pasted(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, _) = text.split_once("\n===").unwrap();
    let ids = |key: &str| -> Vec<String> {
        head.lines()
            .find_map(|line| {
                line.strip_prefix(key)?
                    .strip_prefix(": [")?
                    .strip_suffix(']')
            })
            .unwrap_or_default()
            .split(',')
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty())
            .collect()
    };
    let opened = import::open(&path.with_extension("paste"), &mut |_| ())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let diagnosis = diagnose::diagnose(&opened.timeline, &opened.facts);
    Case::new(path, ids("score"), ids("score_not"), &diagnosis)
}

#[test]
fn every_labelled_case_is_judged_right() {
    let cases = &*CAPTURED;
    assert!(cases.len() >= 20, "the corpus has {} cases", cases.len());
    let mut wrong = String::new();
    for case in cases {
        for want in case.missed() {
            wrong += &format!("{}: misses {want}; said {:?}\n", case.name, case.said);
        }
        for id in case.false_alarms() {
            wrong += &format!("{}: wrongly says {id}\n", case.name);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_rule_that_found_nothing_says_what_it_looked_at() {
    for case in &*CAPTURED {
        assert_eq!(case.silent, Vec::<&str>::new(), "{}", case.name);
    }
}

/// Rules that no labelled capture or paste makes fire.
pub(crate) fn without_a_case() -> Vec<&'static str> {
    let covered: BTreeSet<&str> = CAPTURED
        .iter()
        .chain(&*PASTED)
        .flat_map(|case| case.want.iter().map(move |want| (case, want)))
        .flat_map(|(case, want)| want.split('|').filter(|id| case.said.contains(id)))
        .collect();
    let ids = diagnose::rules::ALL.iter().map(|rule| rule.id);
    ids.filter(|id| !covered.contains(id)).collect()
}

/// What memtide does not say about a paste although it should, and why. Whoever mends one removes its line.
const NOT_YET: [(&str, &str, &str); 2] = [
    (
        "lowmem-1m-free-27g-high.txt",
        "lowmem-zone-exhausted",
        "LowTotal and LowFree of a 32-bit kernel's /proc/meminfo are not read",
    ),
    (
        "slabtop-kmem-cache-objects-2g.txt",
        "slab-leak",
        "where RAM is not known, 2.3 GiB are no more than a large host's usual share",
    ),
];

/// The pasted cases that are judged: some cannot be decided from what was posted.
static PASTED: LazyLock<Vec<Case>> = LazyLock::new(|| {
    files("corpus/pasted", ".txt")
        .iter()
        .map(|path| pasted(path))
        .filter(|case| case.want != ["skip"])
        .collect()
});

#[test]
fn every_pasted_case_is_judged_right() {
    assert!(PASTED.len() >= 40, "{} pasted cases", PASTED.len());
    let mut alarms = String::new();
    let mut missed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for case in &*PASTED {
        for id in case.false_alarms() {
            alarms += &format!("{}: wrongly says {id}\n", case.name);
        }
        if !case.missed().is_empty() {
            missed.insert(&case.name, case.missed());
        }
    }
    assert!(alarms.is_empty(), "\n{alarms}");
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, id, _why) in NOT_YET {
        known.entry(name).or_default().push(id);
    }
    assert_eq!(missed, known, "missed, and known to be missed");
}

#[test]
fn every_command_runs_as_it_stands() {
    let commands: BTreeSet<&str> = CAPTURED
        .iter()
        .chain(&*PASTED)
        .flat_map(|case| case.commands.iter().map(String::as_str))
        .collect();
    assert!(commands.len() > 40, "{} commands", commands.len());
    for command in commands {
        let parsed = std::process::Command::new("sh")
            .args(["-n", "-c", command])
            .output()
            .unwrap();
        assert!(parsed.status.success(), "sh does not take: {command}");
        let first = command.split(' ').next().unwrap_or_default();
        assert!(
            !first.contains(':') && !first.ends_with(".conf"),
            "no command: {command}"
        );
        let placeholder = command
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .find(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase()));
        assert_eq!(placeholder, None, "to be filled in: {command}");
        assert!(
            !command.contains('…') && !command.contains(" PID"),
            "{command}"
        );
    }
}

/// Changes that nothing takes back, and why.
const NOT_TAKEN_BACK: [(&str, &str); 2] = [
    (
        "systemctl set-property --runtime ssh.service MemoryMin=",
        "memory.min is not read",
    ),
    (
        "echo 64 > /sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none",
        "older captures do not have it",
    ),
];

/// What a command sets; a limit of dirty data is one setting, in bytes or as a ratio.
fn setting(command: &str) -> Option<&str> {
    if let Some((_, file)) = command.split_once(" > ") {
        return Some(file);
    }
    let (words, _) = command.rsplit_once('=')?;
    Some(words.trim_end_matches("_bytes").trim_end_matches("_ratio"))
}

#[test]
fn a_change_is_taken_back_where_a_capture_tells_what_was_before() {
    let changes: BTreeSet<&(String, String)> =
        CAPTURED.iter().flat_map(|case| &case.changes).collect();
    assert!(changes.len() > 10, "{} changes", changes.len());
    for (now, undo) in changes {
        let is_known = NOT_TAKEN_BACK
            .iter()
            .any(|(known, _why)| now.starts_with(known));
        assert!(!undo.is_empty() || is_known, "no way back: {now}");
        if !undo.is_empty() {
            let settings = |lines: &str| -> Vec<Option<String>> {
                let each = lines.lines().map(|line| setting(line).map(str::to_owned));
                each.collect()
            };
            assert_eq!(settings(now), settings(undo), "{now}");
        }
    }
}
