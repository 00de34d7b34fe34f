//! What came of a scenario: what each arm measured, what `check` found in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use report::Report;
use timeline::Source;
use units::Bytes;

use crate::case::{CaseLabels, CaseVerdict};
use crate::claim::MeasuredArms;
use crate::host::accelerator::Accelerator;
use crate::host::work::WorkDirectory;
use crate::message::{GuestProfile, Treatment};
use crate::setting::ScenarioSettings;

/// What an arm left.
#[derive(Debug)]
pub struct ArmOutcome {
    /// The arm's name.
    pub arm: &'static str,
    /// Its settings.
    pub settings: ScenarioSettings,
    /// What `check` must and may find.
    pub expected: CaseLabels,
    /// Numbers that the scenario measured, by name.
    pub measured: BTreeMap<String, f64>,
    /// Curves that the scenario measured, by name.
    pub curves: BTreeMap<String, Vec<(f64, f64)>>,
    /// What was done about the finding that was to be treated; `None` where none was, or it was not found.
    pub treatment: Option<Treatment>,
    /// Whether that was taken back: `Some(None)` where it was, with the reason where not; `None` where nothing was done.
    pub taken_back: Option<Option<String>>,
    /// The answer of `profile`, where it was asked for.
    pub profile: Option<GuestProfile>,
    /// The samples.
    pub source: Source,
    /// Where the samples are.
    pub capture: PathBuf,
    /// The answer of `check`.
    pub report: Report,
    /// How its instructions ran.
    pub accelerator: Accelerator,
    /// The kernel's version.
    pub kernel: String,
    /// RAM of the machine.
    pub ram: Bytes,
}

impl ArmOutcome {
    /// What `check` found, compared with what it must and may find.
    pub fn verdict(&self) -> CaseVerdict {
        self.expected.judge(&self.report)
    }
}

/// What came of the arms of a scenario that were played, in their order.
#[allow(missing_docs)] // names say it
#[derive(Debug, Default)]
pub struct ArmOutcomes {
    pub arms: Vec<ArmOutcome>,
    /// Captures that nobody asked to keep: they go with this.
    pub(crate) _work: Option<WorkDirectory>,
}

impl MeasuredArms for ArmOutcomes {
    fn arms(&self) -> Vec<&'static str> {
        self.arms.iter().map(|outcome| outcome.arm).collect()
    }

    fn measured(&self, arm: &str, name: &str) -> Option<f64> {
        let outcome = self.arms.iter().find(|known| known.arm == arm)?;
        outcome.measured.get(name).copied()
    }
}
