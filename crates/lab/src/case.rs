//! A labelled case: a source that memtide reads, and what it must and must not report of it (corpus/README.md).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use report::Report;
use report::model::Severity;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::error::AtPath as _;
use crate::scenario::ScenarioSettings;

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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseRecipe {
    /// The scenario.
    pub scenario: String,
    /// Its arm.
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
#[derive(Debug, Clone)]
pub struct Case {
    /// The directory.
    pub directory: PathBuf,
    /// What stands beside the source.
    pub file: CaseFile,
}

impl Case {
    /// All cases below a directory, in the order of their paths.
    ///
    /// # Errors
    /// [`LabError::Case`] where a file of labels cannot be read.
    pub fn below(directory: &Path) -> Result<Vec<Self>, LabError> {
        let mut cases: Vec<Self> = Self::in_directory(directory)?.into_iter().collect();
        let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
            .at(directory)?
            .filter_map(Result::ok)
            // A link may lead back here; a name with a dot is of a case that is being written.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for entry in entries {
            cases.extend(Self::below(&entry)?);
        }
        Ok(cases)
    }

    /// The case of a directory; `None` where there is none.
    pub(crate) fn in_directory(directory: &Path) -> Result<Option<Self>, LabError> {
        let path = directory.join(LABELS);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            error => error.at(&path)?,
        };
        let file = toml::from_str(&text).map_err(|error| LabError::Case {
            path,
            why: error.message().to_owned(),
        })?;
        Ok(Some(Self {
            directory: directory.to_owned(),
            file,
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
        ["capture.jsonl.gz", "paste.txt", "recording"]
            .map(|name| self.directory.join(name))
            .into_iter()
            .find(|path| path.exists())
    }

    /// Whether its source is there and not empty.
    pub(crate) fn has_samples(&self) -> bool {
        let size = |source: PathBuf| std::fs::metadata(source).map_or(0, |file| file.len());
        self.source().is_some_and(|source| size(source) > 0)
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        let name = self.directory.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
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
        let others = reported
            .iter()
            .filter(|finding| !is_in(finding, &self.must_find));
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
            let is_other = self
                .may_find
                .as_ref()
                .is_some_and(|may| !is_in(finding, may));
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
        ReportedFinding {
            id,
            aliases: alias.into_iter().collect(),
            is_warning,
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
        let labels = CaseLabels {
            must_not_find: vec!["oom-global".to_owned()],
            ..CaseLabels::default()
        };
        let found = [
            reported("oom-global", None, true),
            reported("swap-full", None, true),
        ];
        let verdict = labels.judge_findings(&found);
        assert_eq!((verdict.wrong.len(), verdict.allowed.len()), (1, 1));
        let calm = CaseLabels {
            calm: true,
            ..labels
        };
        assert_eq!(calm.judge_findings(&found).wrong.len(), 2);
    }
}
