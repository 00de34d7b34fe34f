//! What a series shows, in numbers: trends, fits, cycles, levels, and the free memory that no peak explains.

use units::Quantity;

use super::NOISE_FLOOR;
use super::curve::GrowthCurve;
use super::cycles::Cycles;
use super::fit::Fit;
use super::levels::CurveLevels;
use super::numbers::{median, noise};
use super::series::Prepared;
use super::trend::Trend;

/// The share of the span at its beginning that a trend leaves out: start-up.
pub(super) const START: f64 = 0.15;
/// Growth below this share of the size is noise.
const GROWTH_MIN: f64 = 0.03;
/// Points for fits: enough for shapes, few enough for many fits.
const COARSE: usize = 200;

/// The shape of one curve.
#[derive(Debug, Clone)]
pub(super) struct CurveShape {
    pub(super) cycles: Cycles,
    /// The trend after the start, without cycles.
    pub(super) trend: Trend,
    /// The trend of the last part of the span.
    pub(super) late: Trend,
    /// The slope of the second half to that of the first, after the start.
    pub(super) slope_ratio: f64,
    /// The same within the last part.
    pub(super) late_slope_ratio: f64,
    pub(super) bulge: f64,
    pub(super) line: Fit,
    pub(super) saturating: Fit,
    pub(super) logarithm: Fit,
    /// Fits of what remains after the start.
    pub(super) line_after: Fit,
    pub(super) saturating_after: Fit,
    pub(super) sine: Fit,
    pub(super) levels: CurveLevels,
    /// The squared differences that noise alone makes in the coarse curve.
    pub(super) noise_rest: f64,
    /// From the first readings to the last.
    pub(super) rise: f64,
    pub(super) begins: f64,
    pub(super) ends: f64,
    pub(super) peak: f64,
    /// Growth below this is noise.
    pub(super) floor: f64,
}

impl CurveShape {
    /// Measures a curve.
    fn of(curve: &GrowthCurve) -> Self {
        let level = median(&curve.values);
        let floor = (level * GROWTH_MIN).max(NOISE_FLOOR.as_f64());
        let cycles = Cycles::of(curve, floor);
        let calm = cycles.removed(curve);
        let after = calm.part(START, 1.0);
        let late = calm.part(0.45, 1.0);
        let is_teeth = matches!(cycles, Cycles::Teeth { .. });
        let trend = |part: &GrowthCurve| {
            if is_teeth && part.len() <= 24 { Trend::of_blocks(part) } else { Trend::of(part) }
        };
        let coarse = calm.blocks(COARSE, 0.5);
        let coarse_after = coarse.part(START, 1.0);
        let sines = (0..16).map(|n| Fit::sine(&coarse_after, 0.35 * 1.09_f64.powi(n)));
        let begins = curve.level(0.0, 0.015);
        let ends = calm.level(0.9, 1.0);
        Self {
            trend: trend(&after),
            late: trend(&late),
            slope_ratio: Trend::slope_ratio(&after),
            late_slope_ratio: Trend::slope_ratio(&late),
            bulge: Trend::bulge(&after),
            line: Fit::line(&coarse),
            saturating: Fit::saturating(&coarse),
            logarithm: Fit::logarithm(&coarse),
            line_after: Fit::line(&coarse_after),
            saturating_after: Fit::saturating(&coarse_after),
            sine: Fit::best(sines),
            levels: CurveLevels::of(&coarse),
            noise_rest: noise(&coarse.values).powi(2) * coarse.len() as f64,
            rise: ends - begins,
            begins,
            ends,
            peak: coarse.values.iter().copied().fold(0.0, f64::max),
            floor,
            cycles,
        }
    }

    /// Returns what a fit leaves beyond noise.
    pub(super) fn beyond_noise(&self, rest: f64) -> f64 {
        (rest - self.noise_rest).max(0.02 * self.noise_rest).max(f64::MIN_POSITIVE)
    }
}

/// Free memory that no peak of the live size explains.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Excess {
    /// At the end, and as a share of the total.
    pub(super) ends: f64,
    pub(super) share: f64,
    pub(super) grew: f64,
    /// The largest jump between neighbours, as a share of the growth, and when.
    pub(super) jump: f64,
    pub(super) jump_at: f64,
    /// All free memory at the end, as a share of the total.
    pub(super) free_share: f64,
}

/// All that a decision rests on.
#[derive(Debug, Clone)]
pub(super) struct Features {
    pub(super) readings: usize,
    /// The live size where it is known, else the total.
    pub(super) judged: CurveShape,
    pub(super) total: CurveShape,
    pub(super) live_known: bool,
    pub(super) excess: Option<Excess>,
    /// The trend of what lies outside the heap, after the start.
    pub(super) outside: Option<Trend>,
}

impl Features {
    /// Measures a series.
    pub(super) fn of(prepared: &Prepared) -> Self {
        let total = CurveShape::of(&prepared.total);
        let judged = prepared.live.as_ref().map(CurveShape::of);
        let heap = prepared.live.as_ref().zip(prepared.free.as_ref());
        let same_times = heap
            .filter(|(live, free)| live.len() == free.len() && live.len() == prepared.total.len());
        let outside = same_times.map(|(live, free)| {
            let rest = prepared.total.values.iter().zip(&live.values).zip(&free.values);
            let rest = prepared.total.with(rest.map(|((t, l), f)| t - l - f).collect());
            Trend::of(&rest.part(START, 1.0))
        });
        Self {
            readings: prepared.readings,
            live_known: judged.is_some(),
            excess: heap.map(|(live, free)| excess(live, free, total.ends)),
            outside,
            judged: judged.unwrap_or_else(|| total.clone()),
            total,
        }
    }
}

/// Measures the free memory beyond what the highest live size so far left behind.
fn excess(live: &GrowthCurve, free: &GrowthCurve, total: f64) -> Excess {
    let mut highest = 0.0_f64;
    let mut values = Vec::with_capacity(live.len());
    for (live, free) in live.values.iter().zip(&free.values) {
        highest = highest.max(*live);
        values.push(free - (highest - live).max(0.0));
    }
    let curve = GrowthCurve { at: live.at.iter().copied().take(values.len()).collect(), values };
    let begins = curve.level(0.0, 0.015).min(curve.values.first().copied().unwrap_or(0.0));
    let ends = curve.level(0.8, 1.0);
    let grew = ends - begins.max(0.0);
    let smooth = curve.blocks(COARSE, 0.5);
    let jumps = smooth.values.windows(2).zip(&smooth.at).map(|(two, at)| (two[1] - two[0], *at));
    let (jump, jump_at) = jumps.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    Excess {
        ends,
        share: ends / total.max(1.0),
        grew,
        jump: if grew > 0.0 { jump / grew } else { 0.0 },
        jump_at,
        free_share: free.level(0.8, 1.0) / total.max(1.0),
    }
}
