//! Do treatments differ? Randomised complete blocks: every block has one value of each treatment, taken at nearly the same
//! time, so that what changes slowly changes all values of a block alike and is no difference between treatments.
//!
//! The model is y = block + treatment + error, on whatever scale the caller chose: on that of logarithms a difference is a
//! ratio. The error is pooled over all columns, with (B−1)(V−1) degrees of freedom for V columns in B blocks. A treatment
//! that spreads far more than the others has its own error, from its differences to the baseline (B−1 degrees).

use crate::max_t::MaxT;
use crate::split_mix::SplitMix64;
use crate::spread::{mean, squares_sum};

/// A treatment with an own error that is larger than the pooled one by this factor is judged by its own. Where one of eight
/// spreads twice as much, pooled limits call 13 % of equal pairs different instead of 5 %.
const OWN_ERROR_FACTOR: f64 = 1.6;

/// The columns of a table of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDesign {
    /// How many of the first columns are the baseline: 1, or more where it is taken again as a control.
    pub baselines: usize,
    /// The columns after them, each compared with the baseline.
    pub treatments: usize,
}

/// The limits of t for a table of so many blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockLimits {
    /// Of all comparisons with the baseline together, by the pooled error.
    all: f64,
    /// Of each comparison alone, by its own error, so that all hold together (Šidák's bound: such errors are not shared).
    own: f64,
    /// Of one comparison by the pooled error.
    single: f64,
}

/// What a table of blocks shows.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockComparison {
    /// The standard deviation of a value around its block and treatment.
    pub error: f64,
    /// Each treatment's mean less the baseline's, in the order of columns. All intervals hold together.
    pub differences: Vec<MeanDifference>,
    /// The second column of the baseline against the first; `None` where there is one column only.
    pub control: Option<MeanDifference>,
}

/// A difference of means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanDifference {
    /// The difference itself, on the scale of the values.
    pub mean: f64,
    /// Half the width of its interval.
    pub half_width: f64,
    /// The standard deviation of a value that this rests on.
    pub error: f64,
}

impl MeanDifference {
    /// The ends of the interval.
    pub fn interval(&self) -> (f64, f64) {
        (self.mean - self.half_width, self.mean + self.half_width)
    }

    /// Whether the interval excludes zero.
    pub fn is_clear(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

impl BlockDesign {
    /// Returns the limits with which all intervals of a table hold together.
    pub fn limits(&self, blocks: usize, confidence: f64) -> BlockLimits {
        let single = |freedom| MaxT { comparisons: 1, correlation: 0.0, freedom };
        let each = confidence.powf(1.0 / self.treatments.max(1) as f64);
        BlockLimits {
            all: self.largest(blocks).limit(confidence),
            own: single(blocks.saturating_sub(1) as f64).limit(each),
            single: single(self.freedom(blocks)).limit(confidence),
        }
    }

    /// Compares each treatment with the baseline, from rows that are blocks, as many as the limits are for. `None` with
    /// fewer than two rows, or where one has another number of values than the design has columns.
    pub fn compare(&self, rows: &[Vec<f64>], limits: &BlockLimits) -> Option<BlockComparison> {
        let is_of_design = |row: &Vec<f64>| row.len() == self.columns();
        if rows.len() < 2 || self.baselines == 0 || !rows.iter().all(is_of_design) {
            return None;
        }
        let error = self.error(rows);
        let of_treatment = |column| self.difference(rows, column, error, limits);
        let control = (self.baselines > 1).then(|| {
            let apart: Vec<f64> = rows.iter().map(|row| row[1] - row[0]).collect();
            let half_width = limits.single * error * (2.0 / rows.len() as f64).sqrt();
            MeanDifference { mean: mean(&apart).unwrap_or(0.0), half_width, error }
        });
        let columns = self.baselines..self.columns();
        Some(BlockComparison { error, differences: columns.map(of_treatment).collect(), control })
    }

    /// Half the width that intervals have after so many blocks with this error.
    pub fn half_width(&self, error: f64, blocks: usize, confidence: f64) -> f64 {
        self.largest(blocks).limit(confidence) * error * self.scale(blocks)
    }

    /// After how many blocks intervals are no wider than this to each side; `None` beyond `most`.
    pub fn blocks_until(
        &self,
        half_width: f64,
        error: f64,
        confidence: f64,
        most: usize,
    ) -> Option<usize> {
        // The width falls with each block.
        let is_enough = |blocks| self.half_width(error, blocks, confidence) <= half_width;
        if most < 2 || !is_enough(most) {
            return None;
        }
        let (mut too_few, mut enough) = (1, most);
        while enough - too_few > 1 {
            let middle = usize::midpoint(too_few, enough);
            if is_enough(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Some(enough)
    }

    /// Returns the confidence that each of several looks needs while a table grows, so that with the `whole` confidence none
    /// of them calls equal treatments different. Who looks after every block of 20 at 95 % finds a difference between equal
    /// programs in 21 % of trials.
    ///
    /// `looks` are numbers of blocks, ascending. Simulated with a fixed seed: normal errors, the same level at each look
    /// (Pocock 1977). The standard error of the level is 0.15 %.
    pub fn confidence_of_each_look(&self, looks: &[usize], whole: f64) -> f64 {
        const TABLES: usize = 20_000;
        let (Some(most), true) = (looks.last(), looks.len() > 1 && self.treatments > 0) else {
            return whole;
        };
        let mut noise = NormalNoise::new();
        let mut row = |_| (0..self.columns()).map(|_| noise.next()).collect();
        let tables: Vec<Vec<f64>> = (0..TABLES)
            .map(|_| {
                let rows: Vec<Vec<f64>> = (0..*most).map(&mut row).collect();
                looks.iter().map(|blocks| self.largest_t(&rows[..*blocks])).collect()
            })
            .collect();
        let is_above_whole = |confidence: f64| {
            let limits: Vec<f64> =
                looks.iter().map(|blocks| self.largest(*blocks).limit(confidence)).collect();
            let is_beyond = |t: &&Vec<f64>| t.iter().zip(&limits).any(|(t, limit)| t > limit);
            tables.iter().filter(is_beyond).count() as f64 > (1.0 - whole) * TABLES as f64
        };
        let (mut low, mut high) = (whole, 1.0 - (1.0 - whole) / looks.len() as f64);
        while high - low > 1e-4 {
            let middle = f64::midpoint(low, high);
            if is_above_whole(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    fn columns(&self) -> usize {
        self.baselines + self.treatments
    }

    fn freedom(&self, blocks: usize) -> f64 {
        (blocks.saturating_sub(1) * self.columns().saturating_sub(1)) as f64
    }

    /// The variance of a difference to the baseline's mean, in variances of a value.
    fn parts(&self) -> f64 {
        1.0 + 1.0 / self.baselines.max(1) as f64
    }

    /// The standard deviation of a difference of means, in those of a value.
    fn scale(&self, blocks: usize) -> f64 {
        (self.parts() / blocks.max(1) as f64).sqrt()
    }

    /// The largest t of all comparisons with the baseline.
    fn largest(&self, blocks: usize) -> MaxT {
        MaxT {
            comparisons: self.treatments,
            correlation: 1.0 - 1.0 / self.parts(),
            freedom: self.freedom(blocks),
        }
    }

    fn difference(
        &self,
        rows: &[Vec<f64>],
        column: usize,
        pooled: f64,
        limits: &BlockLimits,
    ) -> MeanDifference {
        let blocks = rows.len();
        let over_baseline = self.over_baseline(rows, column);
        let own = (squares_sum(&over_baseline) / (blocks as f64 - 1.0) / self.parts()).sqrt();
        let is_own = self.treatments > 1 && own > OWN_ERROR_FACTOR * pooled;
        let (error, limit) = if is_own { (own, limits.own) } else { (pooled, limits.all) };
        let half_width = limit * error * self.scale(blocks);
        MeanDifference { mean: mean(&over_baseline).unwrap_or(0.0), half_width, error }
    }

    /// A column less the mean of the baseline's columns, by blocks.
    fn over_baseline(&self, rows: &[Vec<f64>], column: usize) -> Vec<f64> {
        let baseline = |row: &Vec<f64>| mean(&row[..self.baselines]).unwrap_or(0.0);
        rows.iter().map(|row| row[column] - baseline(row)).collect()
    }

    /// The standard deviation of what neither block nor treatment explains.
    fn error(&self, rows: &[Vec<f64>]) -> f64 {
        let of_column =
            |column| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
        let columns: Vec<f64> = (0..self.columns()).map(of_column).collect();
        let all = mean(&columns).unwrap_or(0.0);
        let squares_of_row = |row: &Vec<f64>| {
            let block = mean(row).unwrap_or(0.0);
            let values = row.iter().zip(&columns);
            values.map(|(value, column)| (value - block - column + all).powi(2)).sum::<f64>()
        };
        let squares: f64 = rows.iter().map(squares_of_row).sum();
        (squares / self.freedom(rows.len())).sqrt()
    }

    fn largest_t(&self, rows: &[Vec<f64>]) -> f64 {
        let scale = self.error(rows) * self.scale(rows.len());
        let mean_of = |column| mean(&self.over_baseline(rows, column)).unwrap_or(0.0);
        let columns = self.baselines..self.columns();
        columns.map(|column| mean_of(column).abs() / scale).fold(0.0, f64::max)
    }
}

/// Normal noise from a fixed seed, by the transform of Box and Muller.
struct NormalNoise {
    chance: SplitMix64,
    second: Option<f64>,
}

impl NormalNoise {
    fn new() -> Self {
        Self { chance: SplitMix64::new(0x6d65_6d74_6964_6521), second: None }
    }

    fn next(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let radius = (-2.0 * (1.0 - self.chance.uniform()).ln()).sqrt();
        let (sine, cosine) = (2.0 * std::f64::consts::PI * self.chance.uniform()).sin_cos();
        self.second = Some(radius * sine);
        radius * cosine
    }
}
