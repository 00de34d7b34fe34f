//! The answer of `record --status`: the state of a directory's recorder, and of the recording in it.
//!
//! Durations are seconds, sizes bytes, times RFC 3339.

use jiff::Timestamp;
use recorder_status::RecorderStatus;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Span};

/// Name and version of the contract of `record --status`.
pub const STATUS_SCHEMA: &str = "memtide-recorder/1";

/// The whole answer of `record --status`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatusReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-recorder/1"))]
    pub schema: &'static str,
    /// The recording's directory.
    pub directory: String,
    /// State of the recorder.
    pub state: RecorderState,
    /// PID of the recorder; null if unknown or none runs.
    pub pid: Option<u32>,
    /// UID of the user who records or recorded last; 0 is root. Null if the recorder has written no status yet.
    pub user_id: Option<u32>,
    /// Health of a recorder that runs and has written a status; else null.
    pub health: Option<RecorderHealth>,
    /// The status that the recorder wrote last; null if there is none.
    pub recorder: Option<RecorderStatus>,
    /// The stored recording; null if there is none.
    pub recording: Option<RecordingStatus>,
}

/// State of a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecorderState {
    /// It records.
    Running,
    /// It stopped cleanly.
    Stopped,
    /// It ended without stopping: killed, or the machine crashed.
    Gone,
    /// It runs, but its directory was deleted.
    Vanished,
    /// Nothing was ever recorded there.
    None,
}

/// Whether a recorder writes its status, stores all samples in time, and has an undamaged recording.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecorderHealth {
    /// Whether there are no problems.
    pub is_healthy: bool,
    /// What is wrong.
    pub problems: Vec<RecorderProblem>,
    /// How long ago the status was written; null if unknown.
    pub status_age_s: Option<f64>,
    /// Age of the newest sample on disk; null if there is none.
    pub sample_age_s: Option<f64>,
}

impl RecorderHealth {
    /// Whether this is among its problems.
    pub fn has(&self, problem: RecorderProblem) -> bool {
        self.problems.contains(&problem)
    }
}

/// What makes a running recorder unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecorderProblem {
    /// The recorder has missed a writing of its status: it cannot write it, or is blocked.
    Stale,
    /// The newest sample on disk is older than the intervals explain: the recorder is stopped, or the disk is blocked.
    Behind,
    /// The disk does not accept samples: `recorder.disk.problem`.
    Disk,
    /// Samples are lost since `recorder.disk.lost_since`.
    SamplesLost,
    /// The disk was full, and the oldest parts of the recording were dropped: `recorder.disk.parts_dropped`.
    PartsDropped,
    /// The recording is damaged: `recording.problems`.
    Damaged,
}

/// The stored recording, and how fast it grows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecordingStatus {
    /// Size of all files.
    pub size_bytes: Bytes,
    /// Sealed segments.
    pub segments: usize,
    /// Time of the oldest sample.
    pub from: Option<Timestamp>,
    /// Time of the newest sample on disk.
    pub to: Option<Timestamp>,
    /// How long samples were taken, by the boot clock: without the times between recorders, however the wall clock was set.
    pub recorded_s: Span,
    /// Free space of the file system, as available to the user.
    pub free_bytes: Option<Bytes>,
    /// Growth per day so far; null for a recording of less than ten minutes.
    pub bytes_per_day: Option<f64>,
    /// Damage, in words.
    pub problems: Vec<String>,
}
