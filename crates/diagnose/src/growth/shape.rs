//! The shape of one curve: its cycles and its trend, and the fits that decide what kind of rise it is.
//!
//! Fits cost most of a judgement, and the trend alone rules most curves out. So each fit is made when it is first asked for.

use std::cell::OnceCell;

use units::Quantity;

use super::NOISE_FLOOR;
use super::curve::GrowthCurve;
use super::cycles::Cycles;
use super::fit::Fit;
use super::levels::CurveLevels;
use super::numbers::{median, noise};
use super::trend::Trend;

/// The share of the span at its beginning that a trend leaves out: start-up.
pub(super) const START: f64 = 0.15;
/// Where the last part of the span begins.
const LAST_PART: f64 = 0.45;
/// Growth below this share of the size is noise.
const GROWTH_MIN: f64 = 0.03;
/// Points for fits: enough for shapes, few enough for many fits.
pub(super) const CURVE_POINTS: usize = 200;

/// The shape of one curve.
#[derive(Debug, Clone)]
pub(super) struct CurveShape {
    pub(super) cycles: Cycles,
    /// The trend after the start, without cycles.
    pub(super) trend: Trend,
    /// From the first readings to the last.
    pub(super) rise: f64,
    pub(super) begins: f64,
    pub(super) ends: f64,
    pub(super) peak: f64,
    /// Growth below this is noise.
    pub(super) floor: f64,
    /// The squared differences that noise alone makes in the coarse curve.
    noise_rest: f64,
    /// The curve without its cycles.
    calm: GrowthCurve,
    /// The same, as medians.
    coarse: GrowthCurve,
    fits: LazyFits,
}

/// What was computed so far of a curve.
#[derive(Debug, Clone, Default)]
struct LazyFits {
    late: OnceCell<Trend>,
    slope_ratio: OnceCell<f64>,
    levels: OnceCell<CurveLevels>,
    line: OnceCell<Fit>,
    saturating: OnceCell<Fit>,
    line_after: OnceCell<Fit>,
    saturating_after: OnceCell<Fit>,
}

impl CurveShape {
    /// Measures a curve.
    pub(super) fn of(curve: &GrowthCurve) -> Self {
        let level = median(&curve.values);
        let floor = (level * GROWTH_MIN).max(NOISE_FLOOR.as_f64());
        let cycles = Cycles::of(curve, floor);
        let calm = cycles.removed(curve);
        let coarse = calm.blocks(CURVE_POINTS, 0.5);
        let begins = curve.level(0.0, 0.015);
        let ends = calm.level(0.9, 1.0);
        Self {
            trend: trend(&cycles, &calm.part(START, 1.0)),
            rise: ends - begins,
            begins,
            ends,
            peak: coarse.values.iter().copied().fold(0.0, f64::max),
            floor,
            noise_rest: noise(&coarse.values).powi(2) * coarse.len() as f64,
            fits: LazyFits::default(),
            cycles,
            calm,
            coarse,
        }
    }

    /// Returns the trend of the last part of the span.
    pub(super) fn late(&self) -> &Trend {
        self.fits.late.get_or_init(|| trend(&self.cycles, &self.calm.part(LAST_PART, 1.0)))
    }

    /// Returns the slope of the second half to that of the first, after the start.
    pub(super) fn slope_ratio(&self) -> f64 {
        let ratio = || Trend::slope_ratio(&self.calm.part(START, 1.0));
        *self.fits.slope_ratio.get_or_init(ratio)
    }

    /// Returns the same within the last part.
    pub(super) fn late_slope_ratio(&self) -> f64 {
        Trend::slope_ratio(&self.calm.part(LAST_PART, 1.0))
    }

    /// Returns how much steeper the middle is than the rest, after the start.
    pub(super) fn bulge(&self) -> f64 {
        Trend::bulge(&self.calm.part(START, 1.0))
    }

    /// Returns the curve as levels.
    pub(super) fn levels(&self) -> &CurveLevels {
        self.fits.levels.get_or_init(|| CurveLevels::of(&self.coarse))
    }

    /// Returns the fit of a line.
    pub(super) fn line(&self) -> &Fit {
        self.fits.line.get_or_init(|| Fit::line(&self.coarse))
    }

    /// Returns the fit of a curve that levels off.
    pub(super) fn saturating(&self) -> &Fit {
        self.fits.saturating.get_or_init(|| Fit::saturating(&self.coarse))
    }

    /// Returns the fit of a logarithm.
    pub(super) fn logarithm(&self) -> Fit {
        Fit::logarithm(&self.coarse)
    }

    /// Returns the fit of a line to what remains after the start.
    pub(super) fn line_after(&self) -> &Fit {
        self.fits.line_after.get_or_init(|| Fit::line(&self.coarse_after()))
    }

    /// Returns the fit of a curve that levels off to what remains after the start.
    pub(super) fn saturating_after(&self) -> &Fit {
        self.fits.saturating_after.get_or_init(|| Fit::saturating(&self.coarse_after()))
    }

    /// Returns the fit of a part of a sine to what remains after the start.
    pub(super) fn sine(&self) -> Fit {
        let after = self.coarse_after();
        Fit::best((0..16).map(|n| Fit::sine(&after, 0.35 * 1.09_f64.powi(n))))
    }

    fn coarse_after(&self) -> GrowthCurve {
        self.coarse.part(START, 1.0)
    }

    /// Returns what a fit leaves beyond noise.
    pub(super) fn beyond_noise(&self, rest: f64) -> f64 {
        (rest - self.noise_rest).max(0.02 * self.noise_rest).max(f64::MIN_POSITIVE)
    }
}

/// Returns the trend of a part; of the bottoms of a few teeth, that of the points themselves.
fn trend(cycles: &Cycles, part: &GrowthCurve) -> Trend {
    let is_teeth = matches!(cycles, Cycles::Teeth { .. });
    if is_teeth && part.len() <= 24 { Trend::of_blocks(part) } else { Trend::of(part) }
}
