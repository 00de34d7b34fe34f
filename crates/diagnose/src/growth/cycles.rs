//! Does a curve go up and down again and again? Turning points that noise does not make, and sines.

use super::curve::Curve;
use super::fit::Fit;
use super::numbers::{median, noise, scatter, spread};
use super::trend::Trend;

/// A turn counts if the curve comes back by this share of its spread …
const TURN: f64 = 0.35;
/// … and by this many standard deviations of the noise.
const TURN_NOISE: f64 = 6.0;
/// Falls that make a pattern of them.
const FALLS_MIN: usize = 3;
/// A sawtooth rises this much longer than it falls, or the other way round.
const ASYMMETRY: f64 = 2.5;
/// What two harmonics must explain of a curve of several cycles, without its noise.
const SEVERAL: f64 = 0.8;
/// What one sine must explain of a curve that goes up and down once or twice, without its noise.
const ONCE: f64 = 0.93;

/// Ups and downs of a curve.
#[derive(Debug, Clone)]
pub(super) enum Cycles {
    None,
    /// Sharp falls (or rises), each as large as the others.
    Teeth {
        /// Points at the bottom of each fall.
        troughs: Curve,
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
    pub(super) fn of(curve: &Curve, floor: f64) -> Self {
        let slope = Trend::of(curve).slope;
        let level: Vec<f64> = curve
            .points()
            .map(|(at, value)| value - slope * at)
            .collect();
        let sigma = noise(&curve.values);
        let width = spread(&level);
        let least = (TURN * width).max(TURN_NOISE * sigma).max(floor);
        let legs = legs(&level, least);
        let whole = legs
            .get(1..legs.len().saturating_sub(1))
            .unwrap_or_default();
        let falls = legs.iter().filter(|leg| leg.by < 0.0).count();
        let season = season(curve, whole, sigma);
        let duration = |rises: bool| {
            let some = whole.iter().filter(|leg| (leg.by > 0.0) == rises);
            median(
                &some
                    .map(|leg| curve.at[leg.to] - curve.at[leg.from])
                    .collect::<Vec<_>>(),
            )
        };
        let (up, down) = (duration(true), duration(false));
        let is_symmetric = up < ASYMMETRY * down && down < ASYMMETRY * up;
        match season {
            Some(season) if falls < FALLS_MIN || is_symmetric => return season,
            _ => {}
        }
        let sizes: Vec<f64> = legs
            .iter()
            .filter(|leg| leg.by < 0.0)
            .map(|leg| -leg.by)
            .collect();
        let amplitude = median(&sizes);
        let off: Vec<f64> = sizes.iter().map(|size| (size - amplitude).abs()).collect();
        if falls < FALLS_MIN || median(&off) > amplitude * 0.4 {
            return Self::None;
        }
        let bottoms: Vec<usize> = legs
            .iter()
            .filter(|leg| leg.by < 0.0)
            .map(|leg| leg.to)
            .collect();
        Self::Teeth {
            troughs: curve.picked(&bottoms),
            falls,
            amplitude,
        }
    }

    /// Returns the curve without its cycles: the bottoms of teeth, or what a season leaves.
    pub(super) fn removed(&self, curve: &Curve) -> Curve {
        match self {
            Self::None => curve.clone(),
            Self::Teeth { troughs, .. } => troughs.clone(),
            Self::Season { fit, .. } if fit.parameter >= 2.0 => curve.with(
                curve
                    .points()
                    .map(|(at, value)| value - fit.cycle_at(at))
                    .collect(),
            ),
            Self::Season { .. } => curve.clone(),
        }
    }
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
                legs.push(Leg {
                    from: start,
                    to: high.0,
                    by: high.1 - values[start],
                });
            }
            (start, direction, low) = (high.0, -1, (i, value));
            high = (i, value);
        } else if direction <= 0 && value - low.1 >= least {
            if low.0 > start {
                legs.push(Leg {
                    from: start,
                    to: low.0,
                    by: low.1 - values[start],
                });
            }
            (start, direction, high) = (low.0, 1, (i, value));
            low = (i, value);
        }
    }
    let end = if direction < 0 { low.0 } else { high.0 };
    if direction != 0 && end > start {
        legs.push(Leg {
            from: start,
            to: end,
            by: values[end] - values[start],
        });
    }
    legs
}

/// Finds a period, from the turning points or by trying, if it explains nearly all of the curve.
fn season(curve: &Curve, whole: &[Leg], sigma: f64) -> Option<Cycles> {
    let coarse = curve.thinned(240);
    let explains = |fit: &Fit, curve: &Curve, trend: f64| {
        let noise = noise(&curve.values).min(sigma).powi(2) * curve.len() as f64;
        let all = (trend - noise).max(trend * 0.1);
        if all > 0.0 {
            1.0 - ((fit.rest - noise).max(0.0) / all)
        } else {
            0.0
        }
    };
    let durations: Vec<f64> = whole
        .iter()
        .map(|leg| curve.at[leg.to] - curve.at[leg.from])
        .collect();
    if whole.len() >= 2 {
        let period = 2.0 * super::numbers::mean(&durations);
        let cycles = 1.0 / period.max(1e-6);
        let finest = if cycles > 40.0 {
            curve.clone()
        } else {
            coarse.clone()
        };
        let tried = (-20..=20).map(|n| cycles * (1.0 + f64::from(n) * 0.01));
        let fit = Fit::best(tried.map(|cycles| Fit::cycle(&finest, cycles, true)));
        let r_squared = explains(&fit, &finest, Fit::line(&finest).rest);
        if fit.parameter >= 1.6 && r_squared >= SEVERAL {
            return Some(Cycles::Season { fit, r_squared });
        }
    }
    // A single cycle: one sine, and both a fall and a rise of most of its height.
    let tried = (0..24).map(|n| 0.7 * 1.06_f64.powi(n));
    let fit = Fit::best(tried.map(|cycles| Fit::sine(&coarse, cycles)));
    let r_squared = explains(&fit, &coarse, scatter(&coarse.values));
    (r_squared >= ONCE).then_some(Cycles::Season { fit, r_squared })
}
