//! What the host asks of the guest, and what the guest reports while it works.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine_settings::MachineSettings;
use crate::setting::ScenarioSettings;

/// Where the guest finds its job.
pub(crate) const JOB: &str = "/lab.json";

/// What a guest is to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The scenario's name; `None` for a program, or else a shell.
    pub scenario: Option<String>,
    /// Its settings.
    pub settings: ScenarioSettings,
    /// Modules in the order in which they are loaded, as paths in the initramfs.
    pub modules: Vec<String>,
    /// Seconds from sample to sample.
    pub every_s: f64,
    /// Whether the memory controller is that of cgroup v1.
    pub is_cgroup_v1: bool,
    /// Whether MGLRU is switched on or off; `None`: as the kernel has it.
    pub mglru: Option<bool>,
    /// The finding that is treated while the load goes on; `None`: none is.
    pub treated: Option<TreatmentOrder>,
    /// Commands of a fix that run before the recording begins; empty if none do.
    pub first: String,
    /// Whether the kernel's work is profiled as long as the scenario records.
    pub is_profiled: bool,
    /// What is run with the host's files, in the place of a scenario.
    pub program: Option<ProgramJob>,
}

/// A command of this program that runs with the host's files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgramJob {
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
    /// All of its standard input.
    pub input: String,
    /// The environment of who asked for it.
    pub environment: Vec<(String, String)>,
    /// What is set before it starts.
    pub settings: MachineSettings,
}

/// Which finding a guest treats, and how much longer its loads work than the scenario says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TreatmentOrder {
    /// The rule's id; `a|b` means either.
    pub rule: String,
    /// How many times as long each load works, so that there is a time after the treatment.
    pub stretch: f64,
}

/// What a guest did about a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Treatment {
    /// The rule's id.
    pub rule: String,
    /// On the machine's clock, nanoseconds since 1970: its samples have that time, too.
    pub at_unix_ns: i64,
    /// The finding, as its first line says it.
    pub finding: String,
    /// What its first fix says.
    pub advice: String,
    /// What came of that.
    pub outcome: TreatmentOutcome,
    /// Settings that hold since, by name: a capture has those of its begin.
    pub settings: Vec<(String, String)>,
    /// What was changed, by names of settings and files of limits, and `command` for the rest.
    pub changes: Vec<String>,
}

/// Whether the first fix of a finding was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreatmentOutcome {
    /// These commands, a line each: their files were written and read back, or a shell ran them.
    Applied(Vec<String>),
    /// It is words only.
    IsWords,
    /// The kernel refused it, or a command failed.
    Refused(String),
}

/// A line from the guest.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestMessage {
    /// It has started and its ports work.
    Ready {
        /// Seconds since the kernel's start.
        boot_s: f64,
    },
    /// Something new begins.
    Phase {
        /// Seconds since the kernel's start.
        at_s: f64,
        /// What, in a few words.
        text: String,
    },
    /// How the machine stands, every second.
    Vitals(Vitals),
    /// A number that the scenario measured.
    Measured {
        name: String,
        /// How much; the name says of what.
        value: f64,
    },
    /// A point of a curve that the scenario measured.
    Point {
        /// Of which curve.
        curve: String,
        x: f64,
        y: f64,
    },
    /// A finding was treated.
    Treated(Treatment),
    /// The treatment was taken back; why not, where the state before did not come back.
    TakenBack(Option<String>),
    /// The answer of `memtide profile` about the time of the recording.
    Profiled(GuestProfile),
    /// A setting of the machine could not be made.
    NotSet { why: String },
    /// The scenario could not go on.
    Failed { why: String },
    /// All is done, and the samples are written.
    Done,
}

/// What of the kernel's memory work cost noticeably, as `memtide profile` says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestProfile {
    /// What matters, in a sentence or two.
    pub headline: String,
    /// Reasons that are hot, the most important first.
    pub hot: Vec<String>,
    /// Memory work that took most CPU time or waiting, hot or not, with what was done: `cow/copying`.
    #[serde(default)]
    pub largest: Vec<String>,
}

/// So much of the largest work is of interest.
const WORK_ROWS_MAX: usize = 3;

impl GuestProfile {
    /// Reads the JSON of `memtide profile`.
    pub(crate) fn of(report: &serde_json::Value) -> Option<Self> {
        let hot = report.get("hot")?.as_array()?;
        let reasons = hot.iter().filter_map(|row| Some(row.get("reason")?.as_str()?.to_owned()));
        let is_memory = |row: &&serde_json::Value| {
            row.get("group").and_then(serde_json::Value::as_str) != Some("not-memory")
        };
        let text = |row: &serde_json::Value, name: &str| Some(row.get(name)?.as_str()?.to_owned());
        let largest =
            report.get("reasons")?.as_array()?.iter().filter(is_memory).filter_map(|row| {
                let work = text(row, "work").map(|work| format!("/{work}")).unwrap_or_default();
                Some(text(row, "reason")? + &work)
            });
        Some(Self {
            headline: report.get("headline")?.as_str()?.to_owned(),
            hot: reasons.collect(),
            largest: largest.take(WORK_ROWS_MAX).collect(),
        })
    }
}

impl GuestMessage {
    pub(crate) fn send(&self, port: &mut File) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            // One write a line: lines of two threads do not mix.
            let _ = port.write_all(&line);
        }
    }
}

/// How a machine stands; shares of 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Vitals {
    /// Available memory, of all.
    pub available: f64,
    /// Used swap, of all; 0 without swap.
    pub swap_used: f64,
    /// Dirty pages, of their limit.
    pub dirty: f64,
    /// Time in the last second for which some task waited for memory.
    pub stalled: f64,
}

/// Seconds since the kernel's start.
pub(crate) fn uptime_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default().as_secs_f64()
}
