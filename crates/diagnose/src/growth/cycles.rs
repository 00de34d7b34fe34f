//! Does a curve go up and down again and again? Turning points that noise does not make, and sines.
//!
//! The thresholds are engineering choices: with them each class is right in 95 of 100 generated series, sawtooths, days and
//! nights among them (`tests/growth/accuracy.rs`).

use super::curve::GrowthCurve;
use super::fit::Fit;
use super::numbers::{median, noise, scatter, spread};
use super::trend::Trend;

/// A turn counts if the curve returns by this share of its spread …
const TURN_SHARE_MIN: f64 = 0.35;
/// … and by this many standard deviations of the noise.
const TURN_NOISE_MIN: f64 = 6.0;
/// Falls that make a pattern of them.
const FALLS_MIN: usize = 3;
/// A sawtooth rises this much longer than it falls, or the other way round.
const ASYMMETRY_MIN: f64 = 2.5;
/// What two harmonics must explain of a curve of several cycles, without its noise.
const HARMONICS_EXPLAIN_MIN: f64 = 0.8;
/// What one sine must explain of a curve that goes up and down once or twice, without its noise.
const SINE_EXPLAINS_MIN: f64 = 0.93;

/// What straight ways between turning points may leave of the variance.
const LEGS_LEAVE_MAX: f64 = 0.45;
/// The readings that a cycle has at least.
const CYCLE_READINGS_MIN: f64 = 5.0;
/// What a cycle must explain of a curve with its noise.
const HARMONICS_EXPLAIN_NOISY_MIN: f64 = 0.4;
/// What a single cycle must explain of a curve with its noise.
const SINE_EXPLAINS_NOISY_MIN: f64 = 0.7;
/// A single cycle goes both up and down by this share of its spread.
const UP_AND_DOWN_MIN: f64 = 0.4;

/// Ups and downs of a curve.
#[derive(Debug, Clone)]
pub(super) enum Cycles {
    None,
    /// Sharp falls (or rises), each as large as the others.
    Teeth {
        /// Points at the bottom of each fall.
        troughs: GrowthCurve,
        falls: usize,
        amplitude: f64,
    },
    /// Smooth ups and downs with one period.
    Season {
        fit: Fit,
        r_squared: f64,
    },
}

/// A way from one turning point to the next.
#[derive(Debug, Clone, Copy)]
struct Leg {
    from: usize,
    to: usize,
    by: f64,
}

impl Cycles {
    /// Finds the cycles of `curve` that are larger than `floor`.
    pub(super) fn of(curve: &GrowthCurve, floor: f64) -> Self {
        let slope = Trend::of(curve).slope;
        let level: Vec<f64> = curve.points().map(|(at, value)| value - slope * at).collect();
        let sigma = noise(&curve.values);
        let least = (TURN_SHARE_MIN * spread(&level)).max(TURN_NOISE_MIN * sigma).max(floor);
        let around = legs(&level, least);
        let season = season(curve, inner(&around), sigma);
        // A jump that stays is no fall, though it falls below a line.
        let legs = legs(&curve.values, least);
        let falls = legs.iter().filter(|leg| leg.by < 0.0).count();
        let (up, down) =
            (duration(curve, inner(&legs), true), duration(curve, inner(&legs), false));
        let is_symmetric = up < ASYMMETRY_MIN * down && down < ASYMMETRY_MIN * up;
        match season {
            Some(season) if falls < FALLS_MIN || is_symmetric => return season,
            _ => {}
        }
        let is_regular = !is_symmetric || regular(curve, inner(&legs));
        if falls < FALLS_MIN || !is_regular || !follows(&level, &legs) {
            return Self::None;
        }
        let sizes: Vec<f64> = legs.iter().filter(|leg| leg.by < 0.0).map(|leg| -leg.by).collect();
        let amplitude = median(&sizes);
        let off: Vec<f64> = sizes.iter().map(|size| (size - amplitude).abs()).collect();
        if median(&off) > amplitude * 0.4 {
            return Self::None;
        }
        let bottoms: Vec<usize> =
            legs.iter().filter(|leg| leg.by < 0.0).map(|leg| leg.to).collect();
        Self::Teeth { troughs: curve.picked(&bottoms), falls, amplitude }
    }

    /// Returns the curve without its cycles: the bottoms of teeth, or what a season leaves.
    pub(super) fn removed(&self, curve: &GrowthCurve) -> GrowthCurve {
        match self {
            Self::None => curve.clone(),
            Self::Teeth { troughs, .. } => troughs.clone(),
            Self::Season { fit, .. } if fit.parameter >= 2.0 => {
                curve.with(curve.points().map(|(at, value)| value - fit.cycle_at(at)).collect())
            }
            Self::Season { .. } => curve.clone(),
        }
    }
}

/// Returns the ways with both ends within the curve.
fn inner(legs: &[Leg]) -> &[Leg] {
    legs.get(1..legs.len().saturating_sub(1)).unwrap_or_default()
}

/// Returns how long rises, or falls, take.
fn duration(curve: &GrowthCurve, legs: &[Leg], rises: bool) -> f64 {
    let some = legs.iter().filter(|leg| (leg.by > 0.0) == rises);
    median(&some.map(|leg| curve.at[leg.to] - curve.at[leg.from]).collect::<Vec<_>>())
}

/// Returns whether ups and downs come in equal times.
fn regular(curve: &GrowthCurve, legs: &[Leg]) -> bool {
    let turns: Vec<f64> =
        legs.windows(2).map(|two| curve.at[two[1].to] - curve.at[two[0].from]).collect();
    let typical = median(&turns);
    let off: Vec<f64> = turns.iter().map(|turn| (turn - typical).abs()).collect();
    turns.len() >= 3 && median(&off) < 0.2 * typical
}

/// Returns whether the curve follows the ways between its turning points, which noise does not, and each takes a few
/// readings.
fn follows(level: &[f64], legs: &[Leg]) -> bool {
    let (Some(first), Some(last)) = (legs.first(), legs.last()) else {
        return false;
    };
    let mut rest = 0.0;
    for leg in legs {
        let by = level[leg.to] - level[leg.from];
        for i in leg.from..leg.to {
            let share = (i - leg.from) as f64 / (leg.to - leg.from) as f64;
            rest += (level[leg.from] + share * by - level[i]).powi(2);
        }
    }
    let inside = &level[first.from..last.to];
    let lengths: Vec<f64> = legs.windows(2).map(|two| (two[1].to - two[0].from) as f64).collect();
    rest < LEGS_LEAVE_MAX * scatter(inside) && median(&lengths) >= CYCLE_READINGS_MIN
}

/// Returns the ways between turning points that lie at least `least` apart.
fn legs(values: &[f64], least: f64) -> Vec<Leg> {
    let Some(first) = values.first() else {
        return Vec::new();
    };
    let mut legs: Vec<Leg> = Vec::new();
    let (mut low, mut high) = ((0, *first), (0, *first));
    let mut start = 0;
    // 1: rises, −1: falls, 0: not known yet.
    let mut direction = 0;
    for (i, value) in values.iter().copied().enumerate() {
        if value > high.1 {
            high = (i, value);
        }
        if value < low.1 {
            low = (i, value);
        }
        if direction >= 0 && high.1 - value >= least {
            if high.0 > start {
                legs.push(Leg { from: start, to: high.0, by: high.1 - values[start] });
            }
            (start, direction, low) = (high.0, -1, (i, value));
            high = (i, value);
        } else if direction <= 0 && value - low.1 >= least {
            if low.0 > start {
                legs.push(Leg { from: start, to: low.0, by: low.1 - values[start] });
            }
            (start, direction, high) = (low.0, 1, (i, value));
            low = (i, value);
        }
    }
    let end = if direction < 0 { low.0 } else { high.0 };
    if direction != 0 && end > start {
        legs.push(Leg { from: start, to: end, by: values[end] - values[start] });
    }
    legs
}

/// Finds a period, from the turning points or by trying, if it explains nearly all of the curve.
fn season(curve: &GrowthCurve, whole: &[Leg], sigma: f64) -> Option<Cycles> {
    let coarse = curve.thinned(240);
    let explains = |fit: &Fit, curve: &GrowthCurve, trend: f64| {
        let noise = noise(&curve.values).min(sigma).powi(2) * curve.len() as f64;
        let all = (trend - noise).max(trend * 0.1);
        if all > 0.0 { 1.0 - ((fit.rest - noise).max(0.0) / all) } else { 0.0 }
    };
    let durations: Vec<f64> =
        whole.iter().map(|leg| curve.at[leg.to] - curve.at[leg.from]).collect();
    if whole.len() >= 2 {
        let period = 2.0 * super::numbers::mean(&durations);
        let cycles = 1.0 / period.max(1e-6);
        let finest = if cycles > 40.0 { curve.clone() } else { coarse.clone() };
        let tried = (-20..=20).map(|n| cycles * (1.0 + f64::from(n) * 0.01));
        let fit = Fit::best(tried.map(|cycles| Fit::cycle(&finest, cycles, true)));
        let r_squared = explains(&fit, &finest, Fit::line(&finest).rest);
        let with_noise = 1.0 - fit.rest / Fit::line(&finest).rest.max(f64::MIN_POSITIVE);
        if fit.parameter >= 1.6
            && r_squared >= HARMONICS_EXPLAIN_MIN
            && with_noise >= HARMONICS_EXPLAIN_NOISY_MIN
        {
            return Some(Cycles::Season { fit, r_squared });
        }
    }
    // A single cycle: one sine, and both a fall and a rise of most of its height.
    if !goes_up_and_down(&coarse) {
        return None;
    }
    let tried = (0..24).map(|n| 0.7 * 1.06_f64.powi(n));
    let fit = Fit::best(tried.map(|cycles| Fit::sine(&coarse, cycles)));
    let r_squared = explains(&fit, &coarse, scatter(&coarse.values));
    let line = Fit::line(&coarse).rest;
    let is_clear = fit.r_squared >= SINE_EXPLAINS_NOISY_MIN && fit.rest < 0.3 * line;
    (r_squared >= SINE_EXPLAINS_MIN && is_clear).then_some(Cycles::Season { fit, r_squared })
}

/// Returns whether a curve both rises and falls by a good part of its spread.
fn goes_up_and_down(curve: &GrowthCurve) -> bool {
    let values = curve.blocks(60, 0.5).values;
    let largest = |sign: f64| {
        let mut lowest = f64::INFINITY;
        let rises = values.iter().map(|value| {
            lowest = lowest.min(sign * value);
            sign * value - lowest
        });
        rises.fold(0.0, f64::max)
    };
    largest(1.0).min(largest(-1.0)) >= UP_AND_DOWN_MIN * spread(&values)
}
