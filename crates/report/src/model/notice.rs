//! What `memtide record --on-finding` hands to its command: one finding that came, changed or went, as a line of JSON.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Finding, Fix, Severity};

/// Name and version of the contract of `record --on-finding`.
pub const NOTICE_SCHEMA: &str = "memtide-finding/1";

/// Whether a finding came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// It is there, and was not at the check before.
    Found,
    /// Its severity is another.
    Changed,
    /// It is over.
    Cleared,
}

impl FindingState {
    /// The word for it in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Changed => "changed",
            Self::Cleared => "cleared",
        }
    }
}

/// A finding that came, changed or went.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FindingNotice {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-finding/1"))]
    pub schema: &'static str,
    /// What became of it.
    pub state: FindingState,
    /// Id of the rule; `memtide rules ID` explains it.
    pub id: String,
    /// How much it matters; of one that is over, how much it did.
    pub severity: Severity,
    /// How much it mattered before; null unless the state is `changed`.
    pub severity_before: Option<Severity>,
    /// One sentence: the effect, the number, the cause.
    pub title: String,
    /// When it began, by the samples; null for a state without a beginning.
    pub since: Option<Timestamp>,
    /// When the recorder noticed.
    pub at: Option<Timestamp>,
    /// In what it is: `host`, `cgroup`, `process`, ….
    pub scope: String,
    /// Which one: the path of a cgroup, `PID@START` of a process; empty for the host.
    pub subject: String,
    /// The host's name.
    pub host: String,
    /// The directory of the recording: `memtide check DIRECTORY --since -10m` shows more.
    pub recording: String,
    /// What to do, as in the answer of `check`; empty when it is over.
    pub fix: Vec<Fix>,
}

impl FindingNotice {
    /// The notice of a finding that came.
    pub fn found(finding: &Finding, host: &str, recording: &str) -> Self {
        Self {
            schema: NOTICE_SCHEMA,
            state: FindingState::Found,
            id: finding.id.clone(),
            severity: finding.severity,
            severity_before: None,
            title: finding.title.clone(),
            since: finding.from,
            at: None,
            scope: finding.scope.entity.name().to_owned(),
            subject: finding.scope.key.clone(),
            host: host.to_owned(),
            recording: recording.to_owned(),
            fix: finding.fix.clone(),
        }
    }
}
