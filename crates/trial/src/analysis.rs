//! What the runs show: each variant against the baseline, by blocks, on the scale of logarithms.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{BlockDesign, MeanDifference};
use units::Ratio;

use crate::footprint::MemoryMean;
use crate::plan::TrialPlan;
use crate::run::{RunMemory, RunOutcome, TrialRun};
use crate::variant::VariantSetting;

/// More blocks are not predicted.
const BLOCKS_PREDICTED_MAX: usize = 200;

/// What is compared; of each, less is better.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TrialMetric {
    /// Mean memory over the work.
    Memory,
    /// The most memory.
    PeakMemory,
    /// Memory with the last operation.
    EndMemory,
    /// Memory after idling.
    IdleMemory,
    /// CPU time, for each operation where they are counted.
    Cpu,
    /// Time, for each operation where they are counted.
    Time,
    /// Latency, the median.
    P50,
    /// Latency, 95 of 100.
    P95,
    /// Latency, 99 of 100.
    P99,
    /// Page faults, for each operation where they are counted.
    Faults,
}

impl TrialMetric {
    /// All, in the order of the answer.
    pub const ALL: [Self; 10] = [
        Self::Memory,
        Self::PeakMemory,
        Self::EndMemory,
        Self::IdleMemory,
        Self::Cpu,
        Self::Time,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Faults,
    ];

    /// Whether it is memory.
    pub const fn is_memory(self) -> bool {
        matches!(self, Self::Memory | Self::PeakMemory | Self::EndMemory | Self::IdleMemory)
    }

    /// Its value in a run: bytes, seconds, or a number of faults.
    pub fn of(self, run: &TrialRun, measure: TrialMeasure) -> Option<f64> {
        let memory = run.memory.as_ref();
        let speed = run.speed.as_ref()?;
        let operations = speed.operations.filter(|_| measure.is_per_operation).unwrap_or(1.0);
        #[allow(clippy::cast_precision_loss)] // far below 2^52
        let value = match self {
            Self::Memory => measure.memory_of(memory?)?.mean.get() as f64,
            Self::PeakMemory => memory?.peak.get() as f64,
            Self::EndMemory => memory?.end?.get() as f64,
            Self::IdleMemory => memory?.idle?.get() as f64,
            Self::Cpu => speed.cpu?.as_secs_f64() / operations,
            Self::Time => speed.wall.as_secs_f64() / operations,
            Self::P50 => speed.p50_ms? / 1000.0,
            Self::P95 => speed.p95_ms? / 1000.0,
            Self::P99 => speed.p99_ms? / 1000.0,
            Self::Faults => speed.faults? as f64 / operations,
        };
        Some(value).filter(|value| *value > 0.0)
    }
}

/// What figures are for each of, the same for all runs of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialMeasure {
    /// Whether times and faults are for each operation: every run counted them.
    pub is_per_operation: bool,
    /// What mean memory is over.
    pub memory_over: WorkKind,
}

/// What equal shares of a run are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// Operations, where every run announced them as it went on.
    Operations,
    /// CPU time, where every run used a CPU for half of its time or longer.
    CpuTime,
    /// Time: runs wait, and what is held asleep counts.
    Time,
}

impl TrialMeasure {
    fn of<'a>(runs: impl Iterator<Item = &'a TrialRun> + Clone) -> Self {
        let counts = |run: &TrialRun| run.speed.is_some_and(|speed| speed.operations.is_some());
        let announces =
            |run: &TrialRun| run.memory.is_some_and(|one| one.over_operations.is_some());
        /// Of the wall time.
        const CPU_SHARE_MIN: f64 = 0.5;
        let is_busy = |run: &TrialRun| {
            let speed = run.speed.and_then(|speed| Some((speed.cpu?, speed.wall)));
            run.memory.is_some_and(|one| one.over_cpu.is_some())
                && speed.is_some_and(|(cpu, wall)| {
                    cpu.as_secs_f64() >= CPU_SHARE_MIN * wall.as_secs_f64()
                })
        };
        let has_runs = runs.clone().next().is_some();
        Self {
            is_per_operation: has_runs && runs.clone().all(counts),
            memory_over: if has_runs && runs.clone().all(announces) {
                WorkKind::Operations
            } else if runs.clone().all(is_busy) {
                WorkKind::CpuTime
            } else {
                WorkKind::Time
            },
        }
    }

    /// The mean memory of a run.
    pub fn memory_of(self, memory: &RunMemory) -> Option<MemoryMean> {
        match self.memory_over {
            WorkKind::Operations => memory.over_operations,
            WorkKind::CpuTime => memory.over_cpu,
            WorkKind::Time => Some(memory.over_time),
        }
    }
}

/// How a variant compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// Less than the baseline.
    Less,
    /// More than the baseline.
    More,
    /// Less, by less than what counts.
    LessUnderMargin,
    /// More, by less than what counts.
    MoreUnderMargin,
    /// The same within what counts.
    Same,
    /// Neither a difference nor that there is none.
    NoEvidence,
}

/// A variant against the baseline, in one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The variant's number.
    pub variant: usize,
    /// Its value over the baseline's.
    pub ratio: Ratio,
    /// The lower end of the interval.
    pub low: Ratio,
    /// The upper end.
    pub high: Ratio,
    /// What that means.
    pub verdict: TrialVerdict,
    /// About how many more blocks would decide it; `None` where it is decided, or more than 200 would be needed.
    pub blocks_to_decide: Option<usize>,
}

/// The second copy of the baseline against the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlEffect {
    /// One over the other.
    pub ratio: Ratio,
    /// The lower end of its interval.
    pub low: Ratio,
    /// The upper end.
    pub high: Ratio,
    /// Whether the interval excludes 1.
    pub is_off: bool,
    /// Whether an interval of this metric was widened to it: what nothing produces is no difference.
    pub has_widened: bool,
}

/// A metric of all variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricResult {
    /// What is compared here.
    pub metric: TrialMetric,
    /// The baseline's median: bytes, seconds, or faults.
    pub baseline: f64,
    /// The standard deviation of a value within its block, as a share.
    pub spread: Ratio,
    /// Blocks that it rests on.
    pub blocks: usize,
    /// The other variants that are compared.
    pub effects: Vec<Effect>,
    /// The control, where there is one.
    pub control: Option<ControlEffect>,
}

/// What became of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantState {
    /// As in the plan.
    pub name: String,
    /// Runs that were made.
    pub runs: usize,
    /// Those that did their work, with the variant applied.
    pub completed: usize,
    /// Those that the kernel killed at a limit.
    pub killed: usize,
    /// Why it is not compared.
    pub out: Option<String>,
}

/// All that the runs show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// One for each of the plan, in its order.
    pub variants: Vec<VariantState>,
    /// The variant that the others are compared with: the baseline, or where the kernel killed that, the first that did its work.
    pub reference: usize,
    /// The metrics that there are values of.
    pub metrics: Vec<MetricResult>,
    /// What its figures are for each of.
    pub measure: TrialMeasure,
    /// What speed is judged by: CPU time, which others disturb least; time for settings of a whole machine.
    pub speed_metric: TrialMetric,
    /// Blocks in which every compared variant did its work.
    pub blocks: usize,
}

impl Analysis {
    /// Compares what there is.
    pub fn of(plan: &TrialPlan, runs: &[TrialRun]) -> Self {
        let variants: Vec<VariantState> =
            (0..plan.variants.len()).map(|variant| state(plan, runs, variant)).collect();
        let columns: Vec<(usize, usize)> = plan
            .columns()
            .into_iter()
            .enumerate()
            .filter(|(_, variant)| variants[*variant].out.is_none())
            .collect();
        let is_killed = variants.first().is_some_and(|baseline| baseline.killed > 0);
        let living = columns.first().filter(|_| is_killed);
        let reference = living.map_or(0, |(_, variant)| *variant);
        let is_compared = variants.get(reference).is_some_and(|one| one.out.is_none());
        let baselines = columns.iter().filter(|(_, variant)| *variant == reference).count().max(1);
        let design = BlockDesign { baselines, treatments: columns.len().saturating_sub(baselines) };
        let blocks = complete_blocks(runs, &columns);
        let measure = TrialMeasure::of(runs.iter().filter(|run| run.is_compared()));
        let judge = Judge { plan, runs, columns: &columns, design, measure };
        let metrics = if is_compared { judge.metrics(&blocks) } else { Vec::new() };
        let speed_metric =
            if plan.is_about_machine() { TrialMetric::Time } else { TrialMetric::Cpu };
        Self { variants, reference, metrics, measure, speed_metric, blocks: blocks.len() }
    }

    /// The result of a metric.
    pub fn metric(&self, metric: TrialMetric) -> Option<&MetricResult> {
        self.metrics.iter().find(|one| one.metric == metric)
    }

    /// The metrics that a trial is run to decide: memory and speed.
    pub fn deciding(&self) -> impl Iterator<Item = &MetricResult> {
        self.metric(TrialMetric::Memory).into_iter().chain(self.speed())
    }

    /// The metric that speed is judged by; time where CPU time is not counted.
    pub fn speed(&self) -> Option<&MetricResult> {
        self.metric(self.speed_metric).or_else(|| self.metric(TrialMetric::Time))
    }

    /// Whether there is nothing more to find out with so many more blocks.
    pub fn is_settled(&self, blocks_left: usize) -> bool {
        let mut open = self
            .deciding()
            .flat_map(|one| &one.effects)
            .filter(|effect| effect.verdict == TrialVerdict::NoEvidence)
            .peekable();
        if open.peek().is_none() {
            return self.blocks > 0;
        }
        open.all(|effect| effect.blocks_to_decide.is_none_or(|more| more > blocks_left))
    }
}

impl MetricResult {
    /// The effect of a variant; `None` for the baseline, and for one that is not compared.
    pub fn effect(&self, variant: usize) -> Option<&Effect> {
        self.effects.iter().find(|effect| effect.variant == variant)
    }
}

fn state(plan: &TrialPlan, runs: &[TrialRun], variant: usize) -> VariantState {
    let own: Vec<&TrialRun> = runs.iter().filter(|run| run.variant == variant).collect();
    let completed = own.iter().filter(|run| run.is_compared()).count();
    let killed = own.iter().filter(|run| run.outcome == RunOutcome::OomKilled).count();
    let first_bad = own.iter().find(|run| !run.is_compared());
    let is_without = is_without_operations(plan, runs, &own);
    let settings = &plan.variants[variant].settings;
    let has_limit = settings.iter().any(|one| matches!(one, VariantSetting::Limit(_)));
    let had_machine = plan.runs.machine.is_some();
    let without = "announced no operation, as others did: its work was not done";
    let out = match first_bad {
        Some(run) => Some(why_out(run, killed, own.len(), has_limit || had_machine)),
        None => is_without.then(|| without.to_owned()),
    };
    VariantState {
        name: plan.variants[variant].name.clone(),
        runs: own.len(),
        completed,
        killed,
        out,
    }
}

/// Whether a variant of the one command counted no operation where others did: what did no work is small and fast.
fn is_without_operations(plan: &TrialPlan, runs: &[TrialRun], own: &[&TrialRun]) -> bool {
    let mut settings = plan.variants.iter().flat_map(|one| &one.settings);
    let has_own_commands = settings.any(|one| matches!(one, VariantSetting::Command(_)));
    let counts = |run: &TrialRun| run.speed.is_some_and(|speed| speed.operations.is_some());
    let did_no_work = own.iter().any(|run| run.is_compared()) && !own.iter().any(|run| counts(run));
    did_no_work && !has_own_commands && runs.iter().any(counts)
}

/// Why a variant is not compared.
fn why_out(run: &TrialRun, killed: usize, runs: usize, is_limited: bool) -> String {
    match run.outcome {
        RunOutcome::OomKilled if is_limited => format!("killed {killed} of {runs}"),
        RunOutcome::OomKilled => {
            format!("killed {killed} of {runs}: it needs more than 80 % of what is available here")
        }
        _ => run.fault().unwrap_or_default(),
    }
}

/// Blocks in which each of these columns has a run that counts.
fn complete_blocks(runs: &[TrialRun], columns: &[(usize, usize)]) -> Vec<usize> {
    let mut blocks: Vec<usize> = runs.iter().map(|run| run.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let has = |block: usize, column: usize| {
        runs.iter().any(|run| run.block == block && run.column == column && run.is_compared())
    };
    blocks.retain(|block| columns.iter().all(|(column, _)| has(*block, *column)));
    blocks
}

struct Judge<'a> {
    plan: &'a TrialPlan,
    runs: &'a [TrialRun],
    /// Columns of the table, each with its variant.
    columns: &'a [(usize, usize)],
    design: BlockDesign,
    measure: TrialMeasure,
}

impl Judge<'_> {
    fn metrics(&self, blocks: &[usize]) -> Vec<MetricResult> {
        TrialMetric::ALL.into_iter().filter_map(|metric| self.metric(metric, blocks)).collect()
    }

    fn metric(&self, metric: TrialMetric, blocks: &[usize]) -> Option<MetricResult> {
        let row = |block: &usize| -> Option<Vec<f64>> {
            let value = |(column, _): &(usize, usize)| {
                let is_it = |run: &&TrialRun| run.block == *block && run.column == *column;
                metric.of(self.runs.iter().find(is_it)?, self.measure).map(f64::ln)
            };
            self.columns.iter().map(value).collect()
        };
        let rows: Vec<Vec<f64>> = blocks.iter().filter_map(row).collect();
        let limits = self.design.limits(rows.len().max(2), self.plan.confidence);
        let compared = self.design.compare(&rows, &limits)?;
        // What the same program produces against itself is no difference.
        let floor =
            compared.control.filter(MeanDifference::is_clear).map_or(0.0, |one| one.mean.abs());
        let control = compared.control.map(|control| ControlEffect {
            ratio: Ratio::new(control.mean.exp()),
            low: Ratio::new(control.interval().0.exp()),
            high: Ratio::new(control.interval().1.exp()),
            is_off: control.is_clear(),
            has_widened: compared.differences.iter().any(|one| one.half_width < floor),
        });
        let of_variants = self.columns.iter().skip(self.design.baselines);
        let effects = of_variants.zip(&compared.differences).map(|((_, variant), difference)| {
            let half_width = difference.half_width.max(floor);
            self.effect(*variant, &MeanDifference { half_width, ..*difference }, rows.len())
        });
        let baseline: Vec<f64> = rows
            .iter()
            .flat_map(|row| &row[..self.design.baselines])
            .map(|log| log.exp())
            .collect();
        Some(MetricResult {
            metric,
            baseline: stats::median(&baseline)?,
            spread: Ratio::new(compared.error),
            blocks: rows.len(),
            effects: effects.collect(),
            control,
        })
    }

    fn effect(&self, variant: usize, difference: &MeanDifference, blocks: usize) -> Effect {
        let (low, high) = difference.interval();
        let margin = self.plan.goals.margin.get().ln_1p();
        let verdict = TrialVerdict::of(low, high, margin);
        // It is decided when the interval is clear of 1, or within the margin.
        // A difference that is not clear yet is more often too large than too small.
        const SHRINKS_TO: f64 = 0.7;
        let size = difference.mean.abs();
        let wanted = (SHRINKS_TO * size).max(margin - size);
        let is_open = verdict == TrialVerdict::NoEvidence;
        let needed = is_open.then(|| {
            let (error, confidence) = (difference.error, self.plan.confidence);
            self.design.blocks_until(wanted, error, confidence, BLOCKS_PREDICTED_MAX)
        });
        let more = needed.flatten().map(|needed| needed.saturating_sub(blocks).max(1));
        Effect {
            variant,
            ratio: Ratio::new(difference.mean.exp()),
            low: Ratio::new(low.exp()),
            high: Ratio::new(high.exp()),
            verdict,
            blocks_to_decide: more,
        }
    }
}

impl TrialVerdict {
    /// The verdict of an interval of differences, or of logarithms of ratios; within the margin nothing counts.
    pub fn of(low: f64, high: f64, margin: f64) -> Self {
        let is_inside = low >= -margin && high <= margin;
        match (high < 0.0, low > 0.0, is_inside) {
            (true, _, true) => Self::LessUnderMargin,
            (true, _, false) => Self::Less,
            (_, true, true) => Self::MoreUnderMargin,
            (_, true, false) => Self::More,
            (false, false, true) => Self::Same,
            (false, false, false) => Self::NoEvidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_an_interval_that_is_clear_or_small() {
        for (low, high, expected) in [
            (-0.4, -0.2, TrialVerdict::Less),
            (-0.04, -0.01, TrialVerdict::LessUnderMargin),
            (0.1, 0.3, TrialVerdict::More),
            (0.01, 0.03, TrialVerdict::MoreUnderMargin),
            (-0.02, 0.03, TrialVerdict::Same),
            (-0.12, 0.09, TrialVerdict::NoEvidence),
        ] {
            assert_eq!(TrialVerdict::of(low, high, 0.05_f64.ln_1p()), expected, "{low} {high}");
        }
    }
}
