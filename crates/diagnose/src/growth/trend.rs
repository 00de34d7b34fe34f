//! Does a curve rise, and how fast? Theil–Sen slopes with their 95 % interval and the Mann–Kendall test, on medians or
//! low quantiles of blocks. Neighbours that resemble each other count less, as they are fewer independent readings.

use stats::{PairSlopes, autocorrelation, mann_kendall_variance};

use super::curve::GrowthCurve;
use super::numbers::{median, scatter};

/// Blocks of a trend: enough to test, few enough that noise within a block averages out.
const BLOCKS: usize = 24;
/// The quantile of a block that is its lower envelope.
const LOW: f64 = 0.1;
/// Correlation of neighbours: a negative one counts as none, and a short list cannot show a larger one.
const ALIKE: (f64, f64) = (0.0, 0.7);
/// Standard deviations of the 95 % interval, both tails (normal distribution).
const ONE_IN_20: f64 = 1.96;

/// A slope per span that is judged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trend {
    pub(super) slope: f64,
    /// The 95 % interval of the slope.
    pub(super) from: f64,
    pub(super) to: f64,
    /// The Mann–Kendall statistic: above 3, chance makes such a rise once in 700.
    pub(super) z: f64,
    /// The share of the blocks' variance that the line explains.
    pub(super) r_squared: f64,
    /// How long the curve is, as a share of the span.
    pub(super) length: f64,
}

impl Trend {
    /// Returns the trend of medians, or of the lower envelope if that is clearer: noise that only adds leaves it alone.
    pub(super) fn of(curve: &GrowthCurve) -> Self {
        let medians = Self::of_blocks(&curve.blocks(BLOCKS, 0.5));
        let lows = Self::of_blocks(&curve.blocks(BLOCKS, LOW));
        if lows.z > medians.z * 1.3 { lows } else { medians }
    }

    /// Returns the trend of a few points.
    pub(super) fn of_blocks(blocks: &GrowthCurve) -> Self {
        let count = blocks.len();
        if count < 3 {
            return Self::default();
        }
        let slopes = PairSlopes::of(&blocks.at, &blocks.values);
        let slope = slopes.median().unwrap_or(0.0);
        let rest: Vec<f64> = blocks.points().map(|(at, value)| value - slope * at).collect();
        let alike = autocorrelation(&rest).unwrap_or(0.0).clamp(ALIKE.0, ALIKE.1);
        let variance = mann_kendall_variance(count, alike);
        let (from, to) = slopes.interval(ONE_IN_20, variance).unwrap_or((slope, slope));
        let all = scatter(&blocks.values);
        Self {
            slope,
            from,
            to,
            z: slopes.z(variance),
            r_squared: if all > 0.0 { (1.0 - scatter(&rest) / all).max(0.0) } else { 0.0 },
            length: blocks.at[count - 1] - blocks.at[0],
        }
    }

    /// Returns how much the curve rose.
    pub(super) fn growth(&self) -> f64 {
        self.slope * self.length
    }

    /// Returns the slope of the second half as a share of the slope of the first half.
    pub(super) fn slope_ratio(curve: &GrowthCurve) -> f64 {
        let blocks = curve.blocks(BLOCKS, 0.5);
        let (Some(from), Some(to)) = (blocks.at.first(), blocks.at.last()) else {
            return 1.0;
        };
        let middle = (from + to) / 2.0;
        let early = Self::of_blocks(&blocks.part(*from, middle)).slope;
        let late = Self::of_blocks(&blocks.part(middle, *to)).slope;
        if early > 0.0 { late / early } else { f64::INFINITY }
    }

    /// Returns how much steeper the middle third is than the outer ones: 1 for a line, 2 for the rise of a sine.
    pub(super) fn bulge(curve: &GrowthCurve) -> f64 {
        let blocks = curve.blocks(BLOCKS, 0.5);
        let (Some(from), Some(to)) = (blocks.at.first().copied(), blocks.at.last().copied()) else {
            return 1.0;
        };
        let third = (to - from) / 3.0;
        let slope = |n: f64| {
            Self::of_blocks(&blocks.part(from + third * n, from + third * (n + 1.0))).slope
        };
        let outer = median(&[slope(0.0), slope(2.0)]).min(f64::midpoint(slope(0.0), slope(2.0)));
        if outer > 0.0 { slope(1.0) / outer } else { f64::INFINITY }
    }
}
