//! The answers of `memtide lab run` and `memtide lab score`.

use std::collections::BTreeMap;

use report::model::{Level, Severity};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Ratio};

use crate::message::GuestProfile;

/// Name and version of the contract of `lab run`.
pub const LAB_SCHEMA: &str = "memtide-lab/1";
/// Name and version of the contract of `lab score`.
pub const SCORE_SCHEMA: &str = "memtide-lab-score/1";

/// Name and version of the contract of `lab cure`.
pub const CURE_SCHEMA: &str = "memtide-lab-cure/1";

/// Whether the first fix of each finding ends what it was found for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CureReport {
    /// Name and version of this contract.
    pub schema: &'static str,
    /// How the machine's instructions ran: KVM or TCG.
    pub accelerator: String,
    /// A row for each finding that was to be treated, on each kernel.
    pub rows: Vec<CureRow>,
}

/// A finding, its first fix, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CureRow {
    /// The rule's id.
    pub rule: String,
    /// The scenario that made it.
    pub scenario: String,
    /// The arm of that scenario.
    pub arm: String,
    /// The kernel's version.
    pub kernel: String,
    /// The finding, in a sentence; empty where it was not found while the load went on.
    pub finding: String,
    /// What its first fix says.
    pub advice: String,
    /// What the fix changes: names of settings, files of limits, `command`; empty if it is words.
    pub changes: Vec<String>,
    /// What was carried out, a command a line; empty where nothing was.
    pub applied: Vec<String>,
    /// What came of it while the load went on.
    pub effect: CureEffect,
    /// Why, where the effect alone does not say it.
    pub because: String,
    /// What came of it in a run that began with it: its commands in a shell, or the settings of the scenario that its words
    /// ask for. `None` where there was no such run.
    pub from_start: Option<CureEffect>,
    /// Why, where that alone does not say it.
    pub from_start_because: String,
    /// Work done a second after the fix, of that before: bytes that programs read and wrote, or their CPU time where they read
    /// and write nothing.
    pub work_ratio: Option<Ratio>,
    /// Whether the fix was taken back and the state before holds again; `None` where nothing was carried out.
    pub is_taken_back: Option<bool>,
}

impl CureRow {
    /// The effects of the fix, of each way in which it was tried.
    fn effects(&self) -> impl Iterator<Item = CureEffect> {
        let untried = [CureEffect::IsWords, CureEffect::NotTried];
        let all = [Some(self.effect), self.from_start].into_iter().flatten();
        all.filter(move |effect| !untried.contains(effect))
    }

    /// Whether the fix was tried in a way that could show something.
    pub fn is_tried(&self) -> bool {
        self.effects().next().is_some()
    }

    /// Whether it made something worse.
    pub fn is_worse(&self) -> bool {
        self.effects().any(|effect| effect == CureEffect::Worse)
    }

    /// Whether it cures, now or from the next start of what suffers.
    pub fn is_cured(&self) -> bool {
        !self.is_worse() && self.effects().any(|effect| effect == CureEffect::Cured)
    }
}

/// What came of a fix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CureEffect {
    /// The finding is gone, nothing new was found, and no less work is done.
    Cured,
    /// The finding is there still, but less bad, or more work is done.
    Better,
    /// All is as before.
    NoEffect,
    /// Something new and bad was found, or much less work is done.
    Worse,
    /// The fix is words.
    IsWords,
    /// The finding was not there while the load went on, or the load ended too soon.
    #[default]
    NotTried,
}

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabReport {
    /// Name and version of this contract.
    pub schema: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// What it shows.
    pub shows: String,
    /// The article's experiment that it repeats; empty where none.
    pub article: String,
    /// The kernel's version.
    pub kernel: String,
    /// How the machine's instructions ran: KVM or TCG.
    pub accelerator: String,
    /// RAM of the machine.
    pub ram_bytes: Bytes,
    /// Whether every claim holds, and every arm was found as expected.
    pub holds: bool,
    /// The article's figures and ours.
    pub claims: Vec<LabClaim>,
    /// The arms that were played, in their order.
    pub arms: Vec<LabArm>,
    /// What is drawn.
    pub figures: Vec<LabFigure>,
}

/// A figure of the article and ours.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabClaim {
    /// What is compared.
    pub what: String,
    /// The article's figure; empty where it has none.
    pub article: String,
    pub ours: String,
    /// Whether it holds.
    pub state: ClaimState,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// The figure is within the bounds.
    Holds,
    /// It is not.
    Fails,
    /// An arm that it needs was not played, or lost the figure.
    NotMeasured,
    /// The figure has no bounds: it is there to be seen.
    NoBounds,
}

/// What came of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabArm {
    /// As in `memtide lab list SCENARIO`.
    pub name: String,
    /// The scenario's settings as they were in this arm.
    pub settings: BTreeMap<String, f64>,
    /// The verdict of `check`.
    pub verdict: Level,
    /// The verdict in a sentence.
    pub headline: String,
    /// What `check` found.
    pub found: Vec<LabFinding>,
    /// Ids that it should have found and did not; `a|b` means either.
    pub missed: Vec<String>,
    /// Ids that it found and should not have.
    pub wrong: Vec<String>,
    /// What the scenario measured, by name.
    pub measured: BTreeMap<String, f64>,
    /// The answer of `profile`, where it was asked for.
    pub profile: Option<GuestProfile>,
    /// The file with its samples, where it is kept.
    pub capture: Option<String>,
    /// The file with its page, where it is kept.
    pub page: Option<String>,
}

/// A finding of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabFinding {
    /// The rule's id.
    pub id: String,
    /// The finding's title.
    pub title: String,
    /// How bad it is.
    pub severity: Severity,
}

/// A picture with a panel for each arm, all on one scale.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabFigure {
    /// A heading of a few words.
    pub title: String,
    /// What to see in it.
    pub help: String,
    /// What the horizontal axis counts: `s`, `file`, `pass`.
    pub x: String,
    /// The unit of the vertical axis.
    pub unit: LabUnit,
    /// How its curves are drawn.
    pub kind: LabFigureKind,
    /// Whether the vertical axis is logarithmic.
    pub is_log: bool,
    /// A panel for each arm.
    pub panels: Vec<LabPanel>,
}

/// The unit of a figure's vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabUnit {
    /// A plain number.
    Number,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Pages a second.
    PagesPerSecond,
    /// A share; 1 is all.
    Share,
    /// Milliseconds.
    Millis,
}

/// How curves are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabFigureKind {
    /// Areas on top of each other.
    Stack,
    /// Lines.
    Lines,
    /// A bar for each point.
    Bars,
}

/// A figure's curves of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabPanel {
    /// The arm's name.
    pub arm: String,
    /// In the order of the legend.
    pub curves: Vec<LabCurve>,
}

/// A quantity over the horizontal axis, in one arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LabCurve {
    /// What it is called in the legend.
    pub label: String,
    /// Its colour on the page: `anon`, `line_1`.
    pub colour: String,
    /// Whether it is a limit that the others are compared with.
    pub is_limit: bool,
    /// Its points; null where nothing was measured.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How well `check` does on cases of which the truth is known.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScoreReport {
    /// Name and version of this contract.
    pub schema: &'static str,
    /// Expected findings that were found.
    pub found: u64,
    /// Expected findings that were not found.
    pub missed: u64,
    /// Rules that reported what nobody expected, each once a case.
    pub wrong: u64,
    /// Found, of all that was found and counts; null where nothing was found.
    pub precision: Option<f64>,
    /// Found, of all that was expected; null where nothing was expected.
    pub recall: Option<f64>,
    /// Cases in which all was found, and nothing that was not allowed.
    pub perfect: u64,
    /// Cases in which a claim of the scenario did not hold. They count as all others do.
    pub unproven: u64,
    /// Cases without labels: they are made for something else than findings.
    pub unlabelled: u64,
    /// Cases that could not be scored.
    pub unscored: Vec<UnscoredCase>,
    pub cases: Vec<ScoreCase>,
    /// Each rule against each scenario in which it was expected or found.
    pub matrix: Vec<ScoreCell>,
}

/// A case of which the truth is known.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScoreCase {
    /// The scenario, or the family of a labelled case.
    pub scenario: String,
    /// What distinguishes it from others of the scenario: arm, settings, kernel.
    pub case: String,
    /// Ids that must be found: of either, the one that was; `a|b` where neither was.
    pub expected: Vec<String>,
    /// Ids that were found.
    pub found: Vec<String>,
    /// Ids that were missed.
    pub missed: Vec<String>,
    /// Ids that were wrong.
    pub wrong: Vec<String>,
    /// Claims of the scenario that did not hold: the situation was not as intended.
    pub unproven: Vec<String>,
}

impl ScoreCase {
    /// Whether anything of it is not as expected.
    pub fn is_faulty(&self) -> bool {
        self.faults().next().is_some()
    }

    /// What is not as expected: what kind it is, and which.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let all = [
            ("missed: ", self.missed.as_slice()),
            ("wrong: ", self.wrong.as_slice()),
            ("does not hold: ", self.unproven.as_slice()),
        ];
        all.into_iter().filter(|(_, which)| !which.is_empty())
    }
}

/// A case that could not be scored.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnscoredCase {
    /// Its name.
    pub case: String,
    pub why: String,
}

/// A rule in a scenario.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScoreCell {
    /// The rule's id; `a|b` where either would have done, and neither was found.
    pub rule: String,
    pub scenario: String,
    /// Cases in which it was expected and found.
    pub found: u64,
    /// Cases in which it was expected and missed.
    pub missed: u64,
    /// Cases in which it was found and not expected.
    pub wrong: u64,
    /// Cases in which it was found and may be.
    pub allowed: u64,
    /// Cases in which it was reported as a note that nobody expected. They do not count.
    pub noted: u64,
}

#[cfg(test)]
mod tests {
    use report::model::schema_of;

    use super::*;

    #[test]
    fn the_published_schemas_are_fresh() {
        for (name, schema) in [
            ("lab", schema_of::<LabReport>()),
            ("lab-score", schema_of::<ScoreReport>()),
            ("lab-cure", schema_of::<CureReport>()),
        ] {
            let schema = schema.unwrap() + "\n";
            let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
            let path = docs.join(format!("{name}.schema.json"));
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(path, schema).unwrap();
                continue;
            }
            let kept = std::fs::read_to_string(path).unwrap();
            assert!(kept == schema, "{name}: BLESS=1 cargo test -p memtide-lab writes it");
        }
    }
}
