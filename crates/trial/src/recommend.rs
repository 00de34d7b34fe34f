//! Which variant to choose: the least memory among those that are not too slow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, Effect, MetricResult, TrialMetric, TrialVerdict};
use crate::plan::TrialPlan;
use crate::run::TrialRun;

/// What to choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The variant's number; 0 is the baseline.
    pub variant: usize,
    /// What decided the choice.
    pub reason: ChoiceReason,
    /// Other variants that would have served as well, as far as the runs show.
    pub as_good: Vec<usize>,
}

/// Why a variant is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceReason {
    /// It takes less memory, and is not slower by more than is allowed.
    LessMemory,
    /// It is faster, and takes no more memory.
    Faster,
    /// The baseline: no other takes less memory, as far as the runs show.
    NothingSaves,
    /// The baseline: what takes less memory is slower, or may be.
    SavingsAreSlower,
    /// The baseline: what saves memory stays above the budget.
    OverBudget,
}

/// Where a variant stands between memory and speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariantStanding {
    /// No other is better in one without being worse in the other.
    Front,
    /// Another is better in one and not worse in the other.
    Dominated {
        /// That other variant's number.
        by: usize,
    },
    /// The runs do not decide it.
    Undecided,
}

impl Recommendation {
    /// Chooses; `None` where nothing was compared.
    pub fn of(plan: &TrialPlan, analysis: &Analysis, runs: &[TrialRun]) -> Option<Self> {
        let memory = analysis.metric(TrialMetric::Memory)?;
        let speed = speed(analysis);
        let savers: Vec<&Effect> =
            memory.effects.iter().filter(|one| one.verdict == TrialVerdict::Less).collect();
        let most = 1.0 + plan.goals.max_slowdown.get();
        let is_fast = |effect: &&&Effect| {
            let of_speed = speed.and_then(|speed| speed.effect(effect.variant));
            of_speed.is_none_or(|speed| speed.high.get() <= most)
                && !is_slower(analysis, effect.variant, most)
        };
        let in_budget = |effect: &&&Effect| match plan.goals.memory_budget {
            Some(budget) => {
                let peaks = runs.iter().filter(|run| run.variant == effect.variant);
                peaks.filter_map(|run| run.memory).all(|memory| memory.peak <= budget)
            }
            None => true,
        };
        let fast: Vec<&Effect> = savers.iter().filter(is_fast).copied().collect();
        let mut chosen: Vec<&Effect> = fast.iter().filter(in_budget).copied().collect();
        chosen.sort_by(|one, other| one.ratio.get().total_cmp(&other.ratio.get()));
        if let Some(best) = chosen.first() {
            let as_good = chosen.iter().skip(1).filter(|other| other.low.get() <= best.high.get());
            return Some(Self {
                variant: best.variant,
                reason: ChoiceReason::LessMemory,
                as_good: as_good.map(|other| other.variant).collect(),
            });
        }
        if let Some(faster) = fastest(analysis, memory, speed, plan) {
            return Some(Self {
                variant: faster.variant,
                reason: ChoiceReason::Faster,
                as_good: Vec::new(),
            });
        }
        let reason = match (savers.is_empty(), fast.is_empty()) {
            (true, _) => ChoiceReason::NothingSaves,
            (false, true) => ChoiceReason::SavingsAreSlower,
            (false, false) => ChoiceReason::OverBudget,
        };
        Some(Self { variant: 0, reason, as_good: Vec::new() })
    }
}

/// What speed is judged by: CPU time, which others disturb least, or time where it is not counted.
pub fn speed(analysis: &Analysis) -> Option<&MetricResult> {
    analysis.metric(TrialMetric::Cpu).or_else(|| analysis.metric(TrialMetric::Time))
}

/// Whether a variant is shown to be slower than this, by any measure: CPU time does not see that threads wait for a lock.
fn is_slower(analysis: &Analysis, variant: usize, most: f64) -> bool {
    let all = [TrialMetric::Cpu, TrialMetric::Time, TrialMetric::P95];
    let effects = all.iter().filter_map(|metric| analysis.metric(*metric)?.effect(variant));
    effects.into_iter().any(|one| one.verdict == TrialVerdict::More && one.ratio.get() > most)
}

/// The fastest variant that surely takes no more memory than counts.
fn fastest<'a>(
    analysis: &Analysis,
    memory: &MetricResult,
    speed: Option<&'a MetricResult>,
    plan: &TrialPlan,
) -> Option<&'a Effect> {
    let most = 1.0 + plan.goals.max_slowdown.get();
    let is_small = |effect: &&Effect| {
        let of_memory = memory.effect(effect.variant);
        of_memory.is_some_and(|memory| memory.high.get() <= 1.0 + plan.goals.margin.get())
            && !is_slower(analysis, effect.variant, most)
    };
    let faster = speed?.effects.iter().filter(|one| one.verdict == TrialVerdict::Less);
    faster.filter(is_small).min_by(|one, other| one.ratio.get().total_cmp(&other.ratio.get()))
}

impl VariantStanding {
    /// Where a variant stands among all that are compared. The baseline has ratio 1 in both.
    pub fn of(plan: &TrialPlan, analysis: &Analysis, variant: usize) -> Option<Self> {
        let memory = analysis.metric(TrialMetric::Memory)?;
        let speed = speed(analysis)?;
        let place = |variant: usize| -> Option<[Spot; 2]> {
            Some([Spot::of(memory, variant)?, Spot::of(speed, variant)?])
        };
        let own = place(variant)?;
        let margin = plan.goals.margin.get();
        let mut may_be = false;
        for other in (0..plan.variants.len()).filter(|other| *other != variant) {
            let Some(theirs) = place(other) else { continue };
            let better = own.iter().zip(&theirs).any(|(own, other)| other.high < own.low);
            let no_worse =
                own.iter().zip(&theirs).all(|(own, other)| other.high <= own.high * (1.0 + margin));
            // Time and latency scatter too much to show that one is as good; but that it is worse shows.
            let is_slow = [TrialMetric::Time, TrialMetric::P95].iter().any(|metric| {
                let result = analysis.metric(*metric);
                let spots = result.and_then(|one| Spot::of(one, variant).zip(Spot::of(one, other)));
                spots.is_some_and(|(own, other)| other.low > own.high)
            });
            if better && no_worse && !is_slow {
                return Some(Self::Dominated { by: other });
            }
            let pairs = own.iter().zip(&theirs);
            may_be |= !is_slow
                && pairs.clone().all(|(own, other)| other.ratio <= own.ratio * (1.0 + margin))
                && pairs.clone().any(|(own, other)| other.ratio < own.ratio / (1.0 + margin));
        }
        Some(if may_be { Self::Undecided } else { Self::Front })
    }
}

/// A variant's place on one axis.
#[derive(Debug, Clone, Copy)]
struct Spot {
    low: f64,
    ratio: f64,
    high: f64,
}

impl Spot {
    fn of(result: &MetricResult, variant: usize) -> Option<Self> {
        if variant == 0 {
            return Some(Self { low: 1.0, ratio: 1.0, high: 1.0 });
        }
        let effect = result.effect(variant)?;
        Some(Self { low: effect.low.get(), ratio: effect.ratio.get(), high: effect.high.get() })
    }
}
