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
    /// The baseline: no other takes less memory.
    NothingSaves,
    /// The baseline, for now: whether another takes less memory is not decided.
    NothingIsShownToSave,
    /// The baseline: what takes less memory is slower.
    SavingsAreSlower,
    /// The baseline, for now: what takes less memory may be slower.
    SavingsMayBeSlower,
    /// The baseline: what is better in the mean has a higher peak.
    PeaksAreHigher,
    /// The baseline: what takes less memory in the mean is over the budget at its peak.
    SavingsAreOverBudget,
    /// None that is fast enough stays within the memory budget.
    OverBudget,
    /// It stays within the memory budget, which the baseline does not, and is not slower by more than is allowed.
    FitsBudget,
}

impl ChoiceReason {
    /// Whether more blocks may lead to another choice.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::NothingIsShownToSave | Self::SavingsMayBeSlower)
    }
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
        let choice = Choice { plan, analysis, runs, memory: analysis.metric(TrialMetric::Memory)? };
        let reference = analysis.reference;
        let keep = |reason| Some(Self { variant: reference, reason, as_good: Vec::new() });
        let of_machine = plan.is_about_machine();
        let faster = |choice: &Choice<'_>| {
            let faster = choice.fastest()?.variant;
            Some(Self { variant: faster, reason: ChoiceReason::Faster, as_good: Vec::new() })
        };
        // Settings of a machine are tried for speed.
        if let Some(faster) = faster(&choice).filter(|_| of_machine) {
            return Some(faster);
        }
        let savers: Vec<&Effect> =
            choice.memory.effects.iter().filter(|one| one.verdict == TrialVerdict::Less).collect();
        let has_room = |one: &&Effect| choice.is_in_budget(one.variant);
        let lower: Vec<&Effect> =
            savers.iter().filter(|one| !choice.has_higher_peak(one.variant)).copied().collect();
        let fast = lower.iter().filter(|one| choice.speed_of(one.variant) == Speed::AsFast);
        let mut chosen: Vec<&Effect> = fast.clone().copied().filter(has_room).collect();
        chosen.sort_by(|one, other| one.ratio.get().total_cmp(&other.ratio.get()));
        if let Some(least) = chosen.first() {
            // What is hardly larger and clearly faster beats it.
            let by = match VariantStanding::of(plan, analysis, least.variant) {
                Some(VariantStanding::Dominated { by }) => by,
                _ => least.variant,
            };
            let best = chosen.iter().find(|one| one.variant == by).unwrap_or(least);
            let others = chosen.iter().filter(|other| other.variant != best.variant);
            let as_good = others.filter(|other| other.low.get() <= best.high.get());
            return Some(Self {
                variant: best.variant,
                reason: ChoiceReason::LessMemory,
                as_good: as_good.map(|other| other.variant).collect(),
            });
        }
        if let Some(faster) = faster(&choice) {
            return Some(faster);
        }
        if !choice.is_in_budget(reference) {
            // A peak may be lower where the mean is not.
            let fast = |one: &&Effect| choice.speed_of(one.variant) == Speed::AsFast;
            let all = choice.memory.effects.iter().filter(has_room).filter(fast);
            let least = all.min_by(|one, other| one.ratio.get().total_cmp(&other.ratio.get()));
            return match least {
                Some(fits) => {
                    let reason = ChoiceReason::FitsBudget;
                    Some(Self { variant: fits.variant, reason, as_good: Vec::new() })
                }
                None => keep(ChoiceReason::OverBudget),
            };
        }
        if fast.count() > 0 {
            return keep(ChoiceReason::SavingsAreOverBudget);
        }
        if lower.is_empty() && !savers.is_empty() {
            return keep(ChoiceReason::PeaksAreHigher);
        }
        if !lower.is_empty() {
            let may_be = lower.iter().any(|one| choice.speed_of(one.variant) == Speed::Unknown);
            return keep(if may_be {
                ChoiceReason::SavingsMayBeSlower
            } else {
                ChoiceReason::SavingsAreSlower
            });
        }
        let is_open = |one: &Effect| one.verdict == TrialVerdict::NoEvidence;
        let of_speed = analysis.speed().filter(|_| of_machine);
        let mut all =
            choice.memory.effects.iter().chain(of_speed.iter().flat_map(|one| &one.effects));
        let has_open = all.any(is_open);
        keep(if has_open { ChoiceReason::NothingIsShownToSave } else { ChoiceReason::NothingSaves })
    }
}

/// How fast a variant is, against what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speed {
    AsFast,
    Slower,
    Unknown,
}

/// What is chosen from.
struct Choice<'a> {
    plan: &'a TrialPlan,
    analysis: &'a Analysis,
    runs: &'a [TrialRun],
    memory: &'a MetricResult,
}

impl<'a> Choice<'a> {
    /// CPU time decides; but it does not see that threads wait for a lock, so that what is shown to be slower by any measure is.
    fn speed_of(&self, variant: usize) -> Speed {
        let most = 1.0 + self.plan.goals.max_slowdown.get();
        if slower_by(self.plan, self.analysis, variant).is_some() {
            return Speed::Slower;
        }
        match self.analysis.speed().and_then(|speed| speed.effect(variant)) {
            Some(speed) if speed.high.get() > most => Speed::Unknown,
            _ => Speed::AsFast,
        }
    }

    /// Whether all its peaks stay within the budget.
    fn is_in_budget(&self, variant: usize) -> bool {
        let peaks = self.runs.iter().filter(|run| run.variant == variant);
        let mut memories = peaks.filter_map(|run| run.memory);
        self.plan
            .goals
            .memory_budget
            .is_none_or(|budget| memories.all(|memory| memory.peak <= budget))
    }

    /// A mean over work does not show memory that is held for a moment, or asleep.
    fn has_higher_peak(&self, variant: usize) -> bool {
        let margin = 1.0 + self.plan.goals.margin.get();
        let peak = self.analysis.metric(TrialMetric::PeakMemory);
        let effect = peak.and_then(|peak| peak.effect(variant));
        effect.is_some_and(|one| one.verdict == TrialVerdict::More && one.ratio.get() > margin)
    }

    /// The fastest variant that surely takes no more memory than counts.
    fn fastest(&self) -> Option<&'a Effect> {
        let is_small = |effect: &&Effect| {
            let memory = self.memory.effect(effect.variant);
            memory.is_some_and(|memory| memory.high.get() <= 1.0 + self.plan.goals.margin.get())
                && self.speed_of(effect.variant) == Speed::AsFast
                && !self.has_higher_peak(effect.variant)
                && self.is_in_budget(effect.variant)
        };
        let faster = self.analysis.speed()?.effects.iter();
        faster
            .filter(|one| one.verdict == TrialVerdict::Less)
            .filter(is_small)
            .min_by(|one, other| one.ratio.get().total_cmp(&other.ratio.get()))
    }
}

/// The measure by which a variant is shown to be slower than is allowed.
pub(crate) fn slower_by<'a>(
    plan: &TrialPlan,
    analysis: &'a Analysis,
    variant: usize,
) -> Option<(&'a MetricResult, &'a Effect)> {
    let most = 1.0 + plan.goals.max_slowdown.get();
    let all = [analysis.speed_metric, TrialMetric::Time, TrialMetric::P95];
    all.iter().find_map(|metric| {
        let result = analysis.metric(*metric)?;
        let effect = result.effect(variant)?;
        (effect.low.get() > most).then_some((result, effect))
    })
}

impl VariantStanding {
    /// Where a variant stands among all that are compared. The baseline has ratio 1 in both.
    pub fn of(plan: &TrialPlan, analysis: &Analysis, variant: usize) -> Option<Self> {
        let memory = analysis.metric(TrialMetric::Memory)?;
        let speed = analysis.speed()?;
        let reference = analysis.reference;
        let spot = |result, variant| Spot::of(result, variant, reference);
        let place = |variant: usize| -> Option<[Spot; 2]> {
            Some([spot(memory, variant)?, spot(speed, variant)?])
        };
        let own = place(variant)?;
        let margin = plan.goals.margin.get();
        let mut may_be = false;
        for other in (0..plan.variants.len()).filter(|other| *other != variant) {
            let Some(theirs) = place(other) else { continue };
            let better = own.iter().zip(&theirs).any(|(own, other)| other.high < own.low);
            let no_worse =
                own.iter().zip(&theirs).all(|(own, other)| other.high <= own.low * (1.0 + margin));
            // Time and latency scatter too much to show that one is as good; but that it is worse shows.
            let is_slow =
                [TrialMetric::Time, TrialMetric::P50, TrialMetric::P95].iter().any(|metric| {
                    let result = analysis.metric(*metric);
                    let spots = result.and_then(|one| spot(one, variant).zip(spot(one, other)));
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
    fn of(result: &MetricResult, variant: usize, reference: usize) -> Option<Self> {
        if variant == reference {
            return Some(Self { low: 1.0, ratio: 1.0, high: 1.0 });
        }
        let effect = result.effect(variant)?;
        Some(Self { low: effect.low.get(), ratio: effect.ratio.get(), high: effect.high.get() })
    }
}
