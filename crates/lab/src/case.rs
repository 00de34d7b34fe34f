//! A labelled case: a source that memtide reads, and what it must and must not report of it (corpus/README.md).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use report::Report;
use report::model::{Finding, Severity};
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
    /// Claims of the scenario that did not hold in this run.
    #[serde(default)]
    pub unproven: Vec<String>,
    /// Its settings.
    pub settings: ScenarioSettings,
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
    /// All cases below a directory that have labels, in the order of their paths.
    ///
    /// # Errors
    /// [`LabError::Case`] where a file of labels cannot be read.
    pub fn below(directory: &Path) -> Result<Vec<Self>, LabError> {
        let mut cases: Vec<Self> = Self::in_directory(directory)?.into_iter().collect();
        let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
            .at(directory)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
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
        let text = toml::to_string(&self.file).map_err(std::io::Error::other)?;
        let path = self.directory.join(LABELS);
        std::fs::write(&path, text).at(&path)
    }

    /// The source: what memtide opens.
    pub fn source(&self) -> Option<PathBuf> {
        ["capture.jsonl.gz", "paste.txt", "recording"]
            .map(|name| self.directory.join(name))
            .into_iter()
            .find(|path| path.exists())
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        let name = self.directory.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl CaseLabels {
    /// Compares a report with the labels. A finding counts under its id and its aliases.
    pub fn judge(&self, report: &Report) -> CaseVerdict {
        let mut verdict = CaseVerdict::default();
        let reported: Vec<&Finding> = report.findings.iter().chain(&report.notes).collect();
        let is_called = |finding: &Finding, id: &str| {
            finding.id == id || finding.aliases.iter().any(|alias| alias == id)
        };
        for expected in &self.must_find {
            let mut ids = expected.split('|');
            // Of either, the one that was reported counts.
            match ids.find(|id| reported.iter().any(|finding| is_called(finding, id))) {
                Some(id) => verdict.found.push(id.to_owned()),
                None => verdict.missed.push(expected.clone()),
            }
        }
        let is_in = |finding: &Finding, ids: &[String]| {
            let mut ids = ids.iter().flat_map(|ids| ids.split('|'));
            ids.any(|id| is_called(finding, id))
        };
        let warnings = reported
            .iter()
            .filter(|finding| finding.severity != Severity::Info)
            .filter(|finding| !is_in(finding, &self.must_find));
        for finding in warnings {
            let is_other = self
                .may_find
                .as_ref()
                .is_some_and(|may| !is_in(finding, may));
            if self.calm || is_other || is_in(finding, &self.must_not_find) {
                verdict.wrong.push(finding.id.clone());
            } else {
                verdict.allowed.push(finding.id.clone());
            }
        }
        verdict
    }
}
