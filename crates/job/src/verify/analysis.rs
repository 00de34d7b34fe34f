//! What the runs of a remedy show against the runs of the job as it is: `memtide-job-verify/1`.

use schemars::JsonSchema;
use serde::Serialize;
use stats::BlockDesign;
use trial::{CONFIDENCE, TrialVerdict};
use units::{Bytes, Quantity, Ratio, Span};

use super::{VerifiedRun, VerifyPlan};

/// The schema of the answer.
pub const VERIFY_SCHEMA: &str = "memtide-job-verify/1";

/// A smaller difference counts for nothing.
const MARGIN: Ratio = Ratio::new(0.05);

/// Less than this is none.
const NOTHING: Bytes = Bytes::from_mib(1);

/// The answer: what each remedy changes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerifyReport {
    /// Always [`VERIFY_SCHEMA`] here.
    pub schema: String,
    /// The command as it was typed.
    pub name: String,
    /// How often each way was run in balanced blocks.
    pub blocks: usize,
    /// The job as it is, then each remedy.
    pub ways: Vec<VerifiedWay>,
}

/// One way to run the job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerifiedWay {
    /// The remedy as typed; `as it is`.
    pub name: String,
    /// What was done to the command, in a sentence.
    pub applied: Option<String>,
    /// Why it is not compared: how its first failed run ended.
    pub fault: Option<String>,
    /// Its figures, one for each that is compared.
    pub values: Vec<VerifiedValue>,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedMetric {
    /// Read from disks and written to them, in bytes.
    NetIo,
    /// How long it took, in seconds.
    Time,
    /// CPU time of its processes, in seconds.
    Cpu,
    /// The most of its files that was in the cache at once, in bytes.
    CacheTaken,
    /// What of its files was in the cache at the end, in bytes.
    LeftBehind,
    /// What left the cache of others, in bytes.
    PushedOut,
    /// What others read again, in bytes.
    ReadAgain,
}

impl VerifiedMetric {
    pub(super) const ALL: [Self; 7] = [
        Self::NetIo,
        Self::Time,
        Self::Cpu,
        Self::CacheTaken,
        Self::LeftBehind,
        Self::PushedOut,
        Self::ReadAgain,
    ];

    fn of(self, run: &VerifiedRun) -> f64 {
        match self {
            Self::NetIo => run.io.net().as_f64(),
            Self::Time => run.wall.as_secs_f64(),
            Self::Cpu => run.cpu.as_secs_f64(),
            Self::CacheTaken => run.cached_most.as_f64(),
            Self::LeftBehind => run.left.as_f64(),
            Self::PushedOut => run.pushed_out.as_f64(),
            Self::ReadAgain => run.reread.as_f64(),
        }
    }

    pub(super) const fn is_time(self) -> bool {
        matches!(self, Self::Time | Self::Cpu)
    }

    /// Its name at the head of a column.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NetIo => "I/O",
            Self::Time => "time",
            Self::Cpu => "CPU",
            Self::CacheTaken => "cache taken",
            Self::LeftBehind => "left behind",
            Self::PushedOut => "others lost",
            Self::ReadAgain => "read again",
        }
    }

    /// A value as people read it.
    pub(super) fn shown(self, value: f64) -> String {
        if self.is_time() {
            Span::from_secs_f64(value).to_string()
        } else {
            Bytes::from_f64(value).to_string()
        }
    }
}

/// A figure of one way, against the job as it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct VerifiedValue {
    /// What it is.
    pub metric: VerifiedMetric,
    /// The median of its runs.
    pub median: f64,
    /// By how much of the mean of the job as it is it differs: 0 is the same, -1 is none. `null` for that itself, and
    /// where that has none.
    pub change: Option<Ratio>,
    /// The interval of that; all of an answer hold together.
    pub low: Option<Ratio>,
    /// Its upper end.
    pub high: Option<Ratio>,
    /// What that means.
    pub verdict: Option<TrialVerdict>,
}

impl VerifyReport {
    pub(super) fn of(plan: &VerifyPlan, blocks: &[Vec<VerifiedRun>], is_v1: bool) -> Self {
        let ways = plan.hints.len() + 1;
        let fault = |way: usize| blocks.iter().find_map(|block| block.get(way)?.fault.clone());
        // Those that did their work each time; the job as it is comes first.
        let compared: Vec<usize> = (0..ways).filter(|way| fault(*way).is_none()).collect();
        let has_baseline = compared.first() == Some(&0);
        let way = |way: usize| {
            let hint = way.checked_sub(1).and_then(|hint| plan.hints.get(hint));
            let column = compared.iter().position(|one| *one == way).filter(|_| has_baseline);
            let values = VerifiedMetric::ALL
                .into_iter()
                .filter_map(|metric| value(metric, blocks, way, column, &compared));
            VerifiedWay {
                name: hint.map_or_else(|| "as it is".to_owned(), ToString::to_string),
                applied: hint.map(|hint| hint.what_is_applied(is_v1)),
                fault: fault(way),
                values: values.collect(),
            }
        };
        let words: Vec<String> = plan.command.iter().map(|word| report::quoted(word)).collect();
        Self {
            schema: VERIFY_SCHEMA.to_owned(),
            name: words.join(" "),
            blocks: blocks.len(),
            ways: (0..ways).map(way).collect(),
        }
    }
}

/// A figure of a way, compared where it is a column of the table.
fn value(
    metric: VerifiedMetric,
    blocks: &[Vec<VerifiedRun>],
    way: usize,
    column: Option<usize>,
    compared: &[usize],
) -> Option<VerifiedValue> {
    let own: Vec<f64> =
        blocks.iter().filter_map(|block| Some(metric.of(block.get(way)?))).collect();
    let alone = VerifiedValue {
        metric,
        median: stats::median(&own)?,
        change: None,
        low: None,
        high: None,
        verdict: None,
    };
    let Some(treatment) = column.and_then(|column| column.checked_sub(1)) else {
        return Some(alone);
    };
    let of_baseline = blocks.iter().filter_map(|block| Some(metric.of(block.first()?)));
    let baseline = of_baseline.sum::<f64>() / blocks.len() as f64;
    let least = if metric.is_time() { 1e-3 } else { NOTHING.as_f64() };
    if baseline < least {
        return Some(alone);
    }
    // As shares of the baseline's mean: what a remedy leaves may be nothing, which has no logarithm.
    let row = |block: &Vec<VerifiedRun>| -> Vec<f64> {
        compared.iter().map(|way| metric.of(&block[*way]) / baseline).collect()
    };
    let rows: Vec<Vec<f64>> = blocks.iter().map(row).collect();
    let design = BlockDesign { baselines: 1, treatments: compared.len() - 1 };
    let limits = design.limits(rows.len(), CONFIDENCE);
    let Some(found) = design.compare(&rows, &limits) else { return Some(alone) };
    let difference = found.differences.get(treatment)?;
    let (low, high) = difference.interval();
    Some(VerifiedValue {
        change: Some(Ratio::new(difference.mean)),
        low: Some(Ratio::new(low)),
        high: Some(Ratio::new(high)),
        verdict: Some(TrialVerdict::of(low, high, MARGIN.get())),
        ..alone
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::JobIo;
    use crate::verify::JobHint;

    fn run(seconds: f64, left_mib: u64, fault: Option<&str>) -> VerifiedRun {
        VerifiedRun {
            io: JobIo { read_bytes: Bytes::from_gib(1), ..JobIo::default() },
            wall: Span::from_secs_f64(seconds),
            cpu: Span::from_secs_f64(seconds / 2.0),
            cached_most: Bytes::from_gib(1),
            left: Bytes::from_mib(left_mib),
            reread: Bytes::ZERO,
            pushed_out: Bytes::ZERO,
            fault: fault.map(str::to_owned),
        }
    }

    #[test]
    fn a_remedy_that_leaves_nothing_is_clear_and_one_that_fails_is_not_compared() {
        let plan = VerifyPlan {
            command: vec!["tar".to_owned()],
            hints: vec![JobHint::Fadvise, JobHint::MemoryHigh(Bytes::from_mib(1))],
            blocks: 3,
            prepare: None,
        };
        let block = |n: f64| {
            vec![run(10.0 + n, 900, None), run(10.2 + n, 0, None), run(1.0, 0, Some("signal 9"))]
        };
        let report = VerifyReport::of(&plan, &[block(0.0), block(0.5), block(-0.1)], false);
        let of = |way: usize, metric| {
            *report.ways[way].values.iter().find(|one| one.metric == metric).unwrap()
        };
        let left = of(1, VerifiedMetric::LeftBehind);
        assert_eq!((left.median, left.verdict), (0.0, Some(TrialVerdict::Less)));
        assert!((left.change.unwrap().get() + 1.0).abs() < 1e-9);
        assert_eq!(of(1, VerifiedMetric::Time).verdict, Some(TrialVerdict::MoreUnderMargin));
        assert_eq!(of(1, VerifiedMetric::ReadAgain).verdict, None, "there is none");
        assert_eq!(report.ways[2].fault.as_deref(), Some("signal 9"));
        assert_eq!(of(2, VerifiedMetric::Time).verdict, None);
    }
}
