//! The status of a recorder: what `memtide record` writes to `status.json` and `memtide record --status` prints.
//!
//! One noun: a **status** ([`RecorderStatus`]), with a type for each of its parts.
//!
//! ```
//! let status = recorder_status::RecorderStatus { pid: 812, ..Default::default() };
//! assert!(!status.has_ended);
//! ```
//!
//! Durations are seconds, sizes bytes, times RFC 3339. A field that an older memtide did not write has its default.

#![warn(clippy::disallowed_methods)]

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds from one writing of the status to the next.
pub const WRITTEN_EVERY_S: u64 = 30;

/// The status of a recorder, as in the recording's `status.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderStatus {
    /// Version of memtide that records.
    pub memtide: String,
    /// The boot: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// PID of the recorder.
    pub pid: u32,
    /// `PID@START`, START in clock ticks since boot: unique within a boot, unlike the PID.
    pub process: String,
    /// Whether it stopped cleanly.
    pub has_ended: bool,
    /// When it started.
    pub started: Option<Timestamp>,
    /// The same on the boot clock, which cannot be set, in nanoseconds; null from an earlier memtide.
    pub started_boot_ns: Option<u64>,
    /// When this status was last written.
    pub written: Option<Timestamp>,
    /// The same on the boot clock, in nanoseconds; null from an earlier memtide.
    pub written_boot_ns: Option<u64>,
    /// Its settings.
    pub settings: RecorderSettings,
    /// Its samples.
    pub samples: RecorderSamples,
    /// What it costs.
    pub cost: RecorderCost,
    /// What its last scans covered.
    pub seen: RecorderScans,
    /// How processes are read: `BPF task iterator` or `/proc`; null if they are not read.
    pub tasks_source: Option<String>,
    /// Why not by BPF, in words; null if they are, or were not meant to be.
    pub why_not_bpf: Option<String>,
    /// Malloc heaps that it reads; null if it reads none.
    pub heaps: Option<RecorderHeaps>,
    /// Checks of its own recording; null if it makes none.
    pub checks: Option<RecorderChecks>,
    /// Privileges it was granted and refused, in words.
    pub privileges: Vec<String>,
    /// Kernel files it cannot read.
    pub absent: Vec<AbsentFile>,
    /// State of its disk.
    pub disk: RecorderDisk,
    /// How it reads the kernel log.
    pub kernel_log: RecorderKernelLog,
    /// Events dropped because the queue to the disk was full.
    pub events_lost: u64,
}

/// Settings of a recorder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderSettings {
    /// From sample to sample.
    pub every_s: f64,
    /// From scan to scan of processes; null if they are not scanned.
    pub processes_s: Option<f64>,
    /// From scan to scan of cgroups, where scans are cheap enough; null if they are not scanned, and from an earlier memtide.
    pub cgroups_s: Option<f64>,
    /// The share of one CPU that scans of cgroups may take; null if they are not scanned, and from an earlier memtide.
    pub cgroups_cpu_share: Option<f64>,
    /// Maximum age of what is stored.
    pub keep_s: f64,
    /// Maximum size of what is stored.
    pub keep_size_bytes: u64,
    /// From sync to sync: what a power failure may cost.
    pub sync_s: f64,
    /// The cgroup that is read with every sample while it is there, with those around it and in it, as it was typed: `unit web`;
    /// null if none was chosen.
    pub follows: Option<String>,
    /// Names of the processes, services and cgroups with malloc heaps that are read.
    pub heaps_of: Vec<String>,
    /// From reading to reading of these heaps; null if none are read.
    pub heaps_s: Option<f64>,
    /// The condition at which the kernel's work is profiled, as it was typed: `psi.memory>10%`; null if it never is.
    pub profiles_when: Option<String>,
    /// From check to check of its own recording; null if it makes none.
    pub checks_s: Option<f64>,
    /// The command that gets each finding, as it was typed; null if there is none.
    pub on_finding: Option<String>,
}

/// Samples of a recorder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderSamples {
    /// Taken since the start.
    pub taken: u64,
    /// Beats without a sample.
    pub missed: u64,
    /// Taken late by more than a tenth of the interval.
    pub late: u64,
    /// Taken, but not stored because the disk did not accept them.
    pub lost: u64,
    /// When the last one was taken.
    pub last: Option<Timestamp>,
    /// How late the last one was.
    pub last_late_s: f64,
    /// How late the most delayed one was.
    pub worst_late_s: f64,
    /// When the most delayed one was taken.
    pub worst_late: Option<Timestamp>,
}

/// What a recorder costs, sealing included.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderCost {
    /// CPU time since the start.
    pub cpu_s: f64,
    /// CPU time of startup: loading the BPF program, the first scans.
    pub cpu_start_s: Option<f64>,
    /// CPU time per sample, without startup; null with fewer than three samples.
    pub cpu_s_per_sample: Option<f64>,
    /// The same as a share of one CPU.
    pub cpu_share: Option<f64>,
    /// Resident memory (RSS).
    pub rss_bytes: u64,
    /// Proportional share of it (PSS).
    pub pss_bytes: Option<u64>,
}

/// What a recorder's last scans covered.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderScans {
    pub processes: u64,
    /// Processes that were left out: above the limit, or without an answer.
    pub processes_left_out: u64,
    pub cgroups: u64,
    /// Cgroups above the limit, which were left out.
    pub cgroups_left_out: u64,
    /// From scan to scan of cgroups: longer than configured if there are so many that scanning costs too much.
    pub cgroups_every_s: Option<f64>,
    pub services: u64,
    /// Readings of processes' PSS since the start.
    pub shares_read: u64,
    /// Processes with a PSS that is due to be read.
    pub shares_waiting: u64,
    /// Processes that are skipped because they did not answer in time.
    pub blocked: u64,
}

/// Malloc heaps that a recorder reads, by its last round.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderHeaps {
    /// Processes that were read.
    pub processes: u64,
    /// Rounds since the start.
    pub rounds: u64,
    /// CPU time of the round.
    pub cpu_s: f64,
    /// From it to the next: longer than configured where reading would cost too much.
    pub every_s: Option<f64>,
    /// When it began.
    pub last: Option<Timestamp>,
    /// What was not read, and why, in words.
    pub problems: Vec<String>,
}

/// Checks of a recorder's own recording.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderChecks {
    /// Checks since the start.
    pub done: u64,
    /// Those that gave no answer.
    pub failed: u64,
    /// Of these, those that took too long and were ended.
    pub ended: u64,
    /// CPU time of all of them.
    pub cpu_s: f64,
    /// From the last one to the next: longer than configured where checking would cost too much.
    pub every_s: Option<f64>,
    /// When the last one began.
    pub last: Option<Timestamp>,
    /// Findings that came, went or changed their severity since the start.
    pub changes: u64,
    /// What is wrong now. The next recorder goes on from here.
    pub active: Vec<ActiveFinding>,
    /// How often the command of `--on-finding` was run.
    pub commands_run: u64,
    /// How often it failed, or took too long.
    pub commands_failed: u64,
    /// What went wrong with checks and commands, in words: each once.
    pub problems: Vec<String>,
}

/// A finding of a recorder that is not over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ActiveFinding {
    /// The id of its rule.
    pub id: String,
    /// `warning` or `critical`.
    pub severity: String,
    /// In what it is: `host`, `cgroup`, `process`, ….
    pub scope: String,
    /// Which one: the path of a cgroup; empty for the host.
    pub subject: String,
    /// What is wrong, in a sentence.
    pub title: String,
    /// When it began, by the samples; null for a state without a beginning.
    pub since: Option<Timestamp>,
    /// When a check found it.
    pub found: Option<Timestamp>,
    /// How many checks in a row did not find it.
    pub missed: u32,
    /// How many checks in a row found it less severe.
    pub less_severe: u32,
}

/// A kernel file that cannot be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct AbsentFile {
    /// Its path.
    pub file: String,
    /// Why, in words.
    pub why: String,
    /// Whether the recorder lacks the permission.
    pub is_denied: bool,
}

/// State of a recorder's disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderDisk {
    /// What is wrong now, in words; null if nothing is.
    pub problem: Option<String>,
    /// Samples on disk.
    pub samples_written: u64,
    /// Parts of the recording, oldest first, that were dropped because the disk was full.
    pub parts_dropped: u64,
    /// Since when samples are being lost.
    pub lost_since: Option<Timestamp>,
    /// What is in memory only.
    pub waiting_bytes: u64,
    /// The last error, in words; it may be over.
    pub last_error: Option<String>,
}

/// How a recorder reads the kernel log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RecorderKernelLog {
    /// Why it is not read, in words; null if it is.
    pub problem: Option<String>,
    /// Number of the first record that was not read yet, in this boot.
    pub next: Option<u64>,
    /// Records that were overwritten before they were read.
    pub overwritten: u64,
    /// Reports of kills and failed allocations stored since the start.
    pub reports: u64,
}
