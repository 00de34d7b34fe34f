//! The answer of a trial as JSON: `memtide-trial/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::plan::TrialPlan;
use crate::recommend::{Recommendation, VariantStanding};
use crate::run::TrialRun;
use crate::trial::Trial;
use crate::trial_end::TrialEnd;

/// The schema of the answer.
pub const TRIAL_SCHEMA: &str = "memtide-trial/1";

/// The answer of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialReport {
    /// Always [`TRIAL_SCHEMA`] here.
    pub schema: String,
    /// Where its runs are kept.
    pub directory: String,
    /// What was planned.
    pub plan: TrialPlan,
    /// Why it ended.
    pub end: TrialEnd,
    /// What to choose; `None` where nothing was compared.
    pub recommendation: Option<Recommendation>,
    /// What the runs show.
    pub analysis: Analysis,
    /// Where each compared variant stands between memory and speed, by its number.
    pub standings: Vec<Option<VariantStanding>>,
    /// Every run, by blocks and places.
    pub runs: Vec<TrialRun>,
}

impl TrialReport {
    /// The answer of a trial that is only read.
    pub fn of_kept(trial: &Trial) -> Self {
        Self::of(trial, trial.directory().end())
    }

    /// The name of a variant, by its number.
    pub fn name(&self, variant: usize) -> &str {
        self.analysis.variants.get(variant).map_or("", |one| one.name.as_str())
    }

    /// The name of the variant that the others are compared with.
    pub fn reference(&self) -> &str {
        self.name(self.analysis.reference)
    }

    /// Whether there is an answer; `None` where nothing was compared.
    pub fn is_answered(&self) -> Option<bool> {
        let has_killed = self.analysis.variants.iter().any(|one| one.killed > 0);
        let has_effects = self.analysis.deciding().any(|one| !one.effects.is_empty());
        let reason = self.recommendation.as_ref().filter(|_| has_effects).map(|one| one.reason);
        match reason {
            Some(reason) => Some(has_killed || !reason.is_open()),
            None => has_killed.then_some(true),
        }
    }

    /// The answer of a trial so far.
    pub fn of(trial: &Trial, end: TrialEnd) -> Self {
        let analysis = trial.analysis();
        let plan = trial.plan().clone();
        let is_compared =
            |variant: usize| analysis.variants.get(variant).is_some_and(|one| one.out.is_none());
        let standing = |variant: usize| {
            is_compared(variant).then(|| VariantStanding::of(&plan, &analysis, variant)).flatten()
        };
        Self {
            schema: TRIAL_SCHEMA.to_owned(),
            directory: trial.directory().path().display().to_string(),
            end,
            recommendation: Recommendation::of(&plan, &analysis, trial.runs())
                .filter(|_| analysis.deciding().any(|one| !one.effects.is_empty())),
            standings: (0..plan.variants.len()).map(standing).collect(),
            runs: trial.runs().to_vec(),
            analysis,
            plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TrialReport;

    /// `BLESS=1 cargo test -p memtide-trial` writes it anew.
    #[test]
    fn the_published_schema_is_fresh() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let path = docs.join("trial.schema.json");
        let schema = report::model::schema_of::<TrialReport>().unwrap() + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            published == schema,
            "docs/trial.schema.json is stale: BLESS=1 cargo test -p memtide-trial"
        );
    }
}
