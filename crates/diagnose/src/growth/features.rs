//! What a series shows, in numbers: the shapes of its curves, and the free memory that no peak explains.

use super::curve::GrowthCurve;
use super::series::Prepared;
use super::shape::{CURVE_POINTS, CurveShape, START};
use super::trend::Trend;

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
    pub(super) heap_readings: usize,
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
            heap_readings: prepared.heap_readings,
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
    let smooth = curve.blocks(CURVE_POINTS, 0.5);
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
