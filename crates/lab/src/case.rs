//! A labelled case: a source that memtide reads, and what it must and must not report of it (corpus/README.md).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use report::Report;
use report::model::Severity;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::error::AtPath as _;
use crate::model::UnscoredCase;
use crate::setting::ScenarioSettings;

/// The name of the file with a case's labels.
const LABELS: &str = "case.toml";

/// What is written beside a source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseFile {
    /// What must and must not be reported; none where it cannot be decided.
    pub labels: Option<CaseLabels>,
    /// How the lab made it; none for other cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<CaseRecipe>,
}

/// What must and must not be reported of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseLabels {
    /// Ids that must be reported, at any severity; `a|b` means either.
    #[serde(default)]
    pub must_find: Vec<String>,
    /// Ids that must not be reported as a warning or worse.
    #[serde(default)]
    pub must_not_find: Vec<String>,
    /// Where given, the only other ids that may be reported as a warning or worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_find: Option<Vec<String>>,
    /// Nothing at all may be reported as a warning or worse.
    #[serde(default)]
    pub calm: bool,
    /// Ids of `must_find` that are not reported yet, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_yet: BTreeMap<String, String>,
}

/// How the lab made a case: enough to make it again.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseRecipe {
    pub scenario: String,
    pub arm: String,
    /// The kernel's version.
    pub kernel: String,
    /// RAM of the machine in MiB.
    pub ram_mib: u64,
    /// Whether the guest had the memory controller of cgroup v1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cgroup_v1: bool,
    /// Whether MGLRU was switched on or off; none: as the kernel had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mglru: Option<bool>,
    /// Claims of the scenario that did not hold in this run.
    #[serde(default)]
    pub unproven: Vec<String>,
    /// The scenario's revision, see [`Scenario::revision`](crate::Scenario::revision).
    #[serde(default = "first_revision")]
    pub revision: u32,
    /// Its settings.
    pub settings: ScenarioSettings,
}

fn first_revision() -> u32 {
    1
}

/// What a report says of a case's labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseVerdict {
    /// Expected and found.
    pub found: Vec<String>,
    /// Expected and not found.
    pub missed: Vec<String>,
    /// Found, and not to be found.
    pub wrong: Vec<String>,
    /// Found, and allowed.
    pub allowed: Vec<String>,
    /// Notes that nobody expected; they do not count.
    pub noted: Vec<String>,
}

/// A case in its directory.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct Case {
    pub directory: PathBuf,
    /// What stands beside the source.
    pub file: CaseFile,
}

/// The cases below a directory.
#[derive(Debug, Clone, Default)]
pub struct CasesBelow {
    /// In the order of their paths.
    pub whole: Vec<Case>,
    /// What looks like a case and cannot be read as one, each with the reason.
    pub damaged: Vec<UnscoredCase>,
}

impl CasesBelow {
    /// Finds the cases below a directory.
    ///
    /// # Errors
    /// [`LabError::File`] where the directory itself cannot be read.
    pub fn find(directory: &Path) -> Result<Self, LabError> {
        let mut cases = Self::default();
        cases.add(directory)?;
        Ok(cases)
    }

    /// Adds those of another directory.
    pub fn extend(&mut self, others: Self) {
        self.whole.extend(others.whole);
        self.damaged.extend(others.damaged);
    }

    fn add(&mut self, directory: &Path) -> Result<(), LabError> {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
            .at(directory)?
            .filter_map(Result::ok)
            // A link may lead back here; a name with a dot is of a case that is being written.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
            .map(|entry| entry.path())
            .collect();
        match Case::in_directory(directory) {
            Ok(case) => self.whole.extend(case),
            Err(why) => self.is_damaged(directory, why),
        }
        entries.sort();
        for entry in entries {
            if let Err(error) = self.add(&entry) {
                self.is_damaged(&entry, error.to_string());
            }
        }
        Ok(())
    }

    fn is_damaged(&mut self, directory: &Path, why: String) {
        self.damaged.push(UnscoredCase { case: name_of(directory), why });
    }
}

/// A `case.toml` as it is written. The tables that only its readers and the test suite use are named, so that a key that is
/// misspelt is none of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    labels: Option<CaseLabels>,
    lab: Option<CaseRecipe>,
    partner: Option<IgnoredAny>,
    host: Option<IgnoredAny>,
    headroom: Option<IgnoredAny>,
    made: Option<IgnoredAny>,
    origin: Option<IgnoredAny>,
}

impl WrittenCase {
    /// What the lab uses of it; the error says what is missing.
    fn checked(self) -> Result<CaseFile, &'static str> {
        let others = [self.partner, self.host, self.headroom, self.made, self.origin];
        let has_other = self.lab.is_some() || others.iter().any(Option::is_some);
        match &self.labels {
            None if !has_other => Err("it is empty"),
            Some(labels) if labels.ask_for_nothing() => Err(
                "its [labels] ask for nothing: none of must_find, must_not_find, may_find and calm",
            ),
            _ => Ok(CaseFile { labels: self.labels, lab: self.lab }),
        }
    }
}

/// More than any file of labels has; that of the largest case has 4 KiB.
const LABELS_BYTES_MAX: u64 = 1 << 20;

/// The text of a file of labels; `None` where there is none. A pipe or a device in its place is not opened.
fn read_labels(path: &Path) -> std::io::Result<Option<String>> {
    let fails = |why: &str| Err(std::io::Error::other(why.to_owned()));
    let meta = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        meta => meta?,
    };
    if !meta.is_file() {
        return fails("it is not a regular file");
    }
    if meta.len() > LABELS_BYTES_MAX {
        return fails("it is larger than 1 MiB");
    }
    match String::from_utf8(std::fs::read(path)?) {
        Ok(text) => Ok(Some(text)),
        Err(_) => fails("it is not UTF-8"),
    }
}

fn name_of(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Case {
    /// The case of a directory; `None` where there is none. The error says what is wrong with its labels.
    pub(crate) fn in_directory(directory: &Path) -> Result<Option<Self>, String> {
        let fails = |why: &dyn std::fmt::Display| format!("{LABELS}: {why}");
        let text = read_labels(&directory.join(LABELS)).map_err(|error| fails(&error))?;
        let Some(text) = text else {
            return match source_in(directory) {
                None => Ok(None),
                Some(_) => Err(fails(&"it is missing")),
            };
        };
        let written: WrittenCase =
            toml::from_str(&text).map_err(|error| fails(&error.message()))?;
        Ok(Some(Self {
            directory: directory.to_owned(),
            file: written.checked().map_err(|why| fails(&why))?,
        }))
    }

    /// Writes the labels into the case's directory.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn write(&self) -> Result<(), LabError> {
        let path = self.directory.join(LABELS);
        let text = toml::to_string(&self.file).map_err(std::io::Error::other);
        std::fs::write(&path, text.at(&path)?).at(&path)
    }

    /// The source: what memtide opens.
    pub fn source(&self) -> Option<PathBuf> {
        source_in(&self.directory)
    }

    /// Whether its source is there and not empty.
    pub(crate) fn has_samples(&self) -> bool {
        let size = |source: PathBuf| std::fs::metadata(source).map_or(0, |file| file.len());
        self.source().is_some_and(|source| size(source) > 0)
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        name_of(&self.directory)
    }
}

/// The source of a case's directory.
fn source_in(directory: &Path) -> Option<PathBuf> {
    ["capture.jsonl.gz", "paste.txt", "recording"]
        .map(|name| directory.join(name))
        .into_iter()
        .find(|path| path.exists())
}

impl CaseLabels {
    /// Labels by which all of `finds` must be reported, and of the rest only what is in `may_find`.
    pub(crate) fn exactly<'a>(
        finds: impl IntoIterator<Item = &'a &'a str>,
        may_find: impl IntoIterator<Item = &'a &'a str>,
    ) -> Self {
        let owned = |ids: &mut dyn Iterator<Item = &'a &'a str>| -> Vec<String> {
            ids.map(|id| (*id).to_owned()).collect()
        };
        Self {
            must_find: owned(&mut finds.into_iter()),
            may_find: Some(owned(&mut may_find.into_iter())),
            ..Self::default()
        }
    }

    /// Whether every report would do.
    fn ask_for_nothing(&self) -> bool {
        let asks_for_some = !self.must_find.is_empty() || !self.must_not_find.is_empty();
        !asks_for_some && self.may_find.is_none() && !self.calm
    }

    /// Compares a report with the labels.
    pub fn judge(&self, report: &Report) -> CaseVerdict {
        let all = report.findings.iter().chain(&report.notes);
        let reported: Vec<ReportedFinding<'_>> = all
            .map(|finding| ReportedFinding {
                id: &finding.id,
                aliases: finding.aliases.iter().map(String::as_str).collect(),
                is_warning: finding.severity != Severity::Info,
            })
            .collect();
        self.judge_findings(&reported)
    }

    /// Compares findings with the labels. A finding counts under its id and its aliases.
    pub fn judge_findings(&self, reported: &[ReportedFinding<'_>]) -> CaseVerdict {
        let mut verdict = CaseVerdict::default();
        for expected in &self.must_find {
            let mut ids = expected.split('|');
            // Of either, the one that was reported counts.
            match ids.find(|id| reported.iter().any(|finding| finding.is_called(id))) {
                Some(id) => verdict.found.push(id.to_owned()),
                None => verdict.missed.push(expected.clone()),
            }
        }
        let is_in = |finding: &ReportedFinding<'_>, ids: &[String]| {
            let mut ids = ids.iter().flat_map(|ids| ids.split('|'));
            ids.any(|id| finding.is_called(id))
        };
        let others = reported.iter().filter(|finding| !is_in(finding, &self.must_find));
        let mut counted = BTreeSet::new();
        for finding in others {
            // In three cgroups it is the same rule.
            if !counted.insert((finding.id, finding.is_warning)) {
                continue;
            }
            if !finding.is_warning {
                verdict.noted.push(finding.id.to_owned());
                continue;
            }
            let is_other = self.may_find.as_ref().is_some_and(|may| !is_in(finding, may));
            if self.calm || is_other || is_in(finding, &self.must_not_find) {
                verdict.wrong.push(finding.id.to_owned());
            } else {
                verdict.allowed.push(finding.id.to_owned());
            }
        }
        verdict
    }
}

/// What counts of a finding when it is compared with labels.
#[derive(Debug, Clone)]
pub struct ReportedFinding<'a> {
    /// The rule's id.
    pub id: &'a str,
    /// Other ids under which it counts.
    pub aliases: Vec<&'a str>,
    /// Whether it is a warning or worse.
    pub is_warning: bool,
}

impl ReportedFinding<'_> {
    fn is_called(&self, id: &str) -> bool {
        self.id == id || self.aliases.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported<'a>(id: &'a str, alias: Option<&'a str>, is_warning: bool) -> ReportedFinding<'a> {
        ReportedFinding { id, aliases: alias.into_iter().collect(), is_warning }
    }

    /// What is found below a directory in which one case has this file of labels.
    fn with_labels(text: &str) -> CasesBelow {
        let directory = tempfile::tempdir().unwrap();
        let case = directory.path().join("x--1");
        std::fs::create_dir(&case).unwrap();
        std::fs::write(case.join(LABELS), text).unwrap();
        CasesBelow::find(directory.path()).unwrap()
    }

    #[test]
    fn a_file_of_labels_that_says_nothing_is_damaged() {
        for (text, expected) in [
            ("", "it is empty"),
            ("# only this\n", "it is empty"),
            ("[labels]\n", "its [labels] ask for nothing"),
            ("[labels]\nmust_find = []\ncalm = false\n", "its [labels] ask for nothing"),
            ("[label]\ncalm = true\n", "unknown field `label`"),
            ("[labels]\ncalms = true\n", "unknown field `calms`"),
            ("[lab]\nscenario = \"idle\"\n", "missing field `arm`"),
            ("[labels]\nmust_find = [\"a\"", "case.toml: "),
        ] {
            let cases = with_labels(text);
            assert!(cases.whole.is_empty(), "{text}");
            let damaged = &cases.damaged[0];
            assert_eq!(damaged.case, "x--1");
            assert!(damaged.why.contains(expected), "{text}: {}", damaged.why);
        }
    }

    #[test]
    fn labels_that_ask_for_something_and_cases_for_other_tests_are_whole() {
        for text in [
            "[labels]\ncalm = true\n",
            "[labels]\nmay_find = []\n",
            "partner = \"healthy--idle\"\n",
            "[origin]\nplace = \"a thread\"\n",
        ] {
            let cases = with_labels(text);
            let counts = (cases.whole.len(), cases.damaged.len());
            assert_eq!(counts, (1, 0), "{text}: {cases:?}");
        }
    }

    #[test]
    fn either_of_two_ids_is_enough_and_an_alias_counts() {
        let labels = CaseLabels::exactly(
            &["swap-thrash|swap-full", "oom-global"],
            &["available-exhaustion"],
        );
        let found = [
            reported("swap-full", None, true),
            reported("shmem-growth", Some("available-exhaustion"), true),
            reported("page-cache-thrash", None, true),
            reported("cache-full-harmless", None, false),
        ];
        let verdict = labels.judge_findings(&found);
        let owned =
            |ids: &[&str]| -> Vec<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
        let expected = CaseVerdict {
            found: owned(&["swap-full"]),
            missed: owned(&["oom-global"]),
            wrong: owned(&["page-cache-thrash"]),
            allowed: owned(&["shmem-growth"]),
            noted: owned(&["cache-full-harmless"]),
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn without_a_list_of_others_only_what_is_forbidden_is_wrong() {
        let labels =
            CaseLabels { must_not_find: vec!["oom-global".to_owned()], ..CaseLabels::default() };
        let found = [reported("oom-global", None, true), reported("swap-full", None, true)];
        let verdict = labels.judge_findings(&found);
        assert_eq!((verdict.wrong.len(), verdict.allowed.len()), (1, 1));
        let calm = CaseLabels { calm: true, ..labels };
        assert_eq!(calm.judge_findings(&found).wrong.len(), 2);
    }
}
