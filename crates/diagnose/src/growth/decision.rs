//! From numbers to a class. The live size decides between leak and fragmentation; the shape decides the rest.
//!
//! Numbers without another origin are engineering choices: with them each class is right in 95 of 100 generated series, and
//! no leak is surely called fragmentation (`tests/growth/accuracy.rs`).

use super::class::GrowthClass;
use super::cycles::Cycles;
use super::features::{Excess, Features};
use super::shape::CurveShape;

/// Readings below which nothing is judged: an engineering choice.
pub(super) const READINGS_MIN: usize = 40;
/// Readings from which on a rule can rest on an answer: an engineering choice.
pub(crate) const READINGS_SURE: usize = 60;
/// A rise is seen from three standard deviations on: of a normal distribution, chance makes it once in 740 series.
pub(super) const Z_SEEN: f64 = 3.0;
/// A rise is plain: an engineering choice, as readings of one series depend on each other and real noise has heavier ends.
const Z_PLAIN: f64 = 5.0;
/// Free memory beyond what peaks explain, as a share of the total: some, and much. Engineering choices.
const FREE_SOME: f64 = 0.10;
const FREE_MUCH: f64 = 0.18;
/// A rise that goes on adds this part of its mean pace in its last part: an engineering choice, as load makes a line uneven.
const LAST_PACE_MIN: f64 = 0.3;
/// The surest that an answer can be, with the live size and without it: engineering choices, as the total alone does not tell
/// a leak from fragmentation.
const CONFIDENCE_MAX: f64 = 0.97;
const CONFIDENCE_TOTAL_ONLY_MAX: f64 = 0.7;
/// What a class is as sure of, where the heap was read less often than a class needs: an engineering choice.
const HEAP_SPARSE: f64 = 0.7;

/// A class and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GrowthDecision {
    pub(super) class: GrowthClass,
    pub(super) confidence: f64,
    /// How many times the span more data are needed.
    pub(super) needs: Option<f64>,
}

impl GrowthDecision {
    fn of(class: GrowthClass, confidence: f64) -> Self {
        Self { class, confidence, needs: None }
    }

    fn unknown(needs: f64) -> Self {
        Self { class: GrowthClass::Unknown, confidence: 0.3, needs: Some(needs) }
    }
}

/// How a curve rises at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RiseShape {
    No,
    /// On and on.
    Straight(f64),
    /// Ever more slowly; the number is the confidence.
    Slowing(f64),
    /// As a part of something larger: a cycle or a curve that may level off.
    Unclear,
}

/// Judges the numbers of a series.
pub(super) fn decide(features: &Features) -> GrowthDecision {
    if features.readings < READINGS_MIN {
        let more = READINGS_MIN as f64 * 1.5 / features.readings.max(1) as f64 - 1.0;
        return GrowthDecision::unknown(more.max(0.5));
    }
    let mut decision = by_growth(features);
    decision.confidence *= match features.readings {
        ..READINGS_SURE => 0.8,
        READINGS_SURE..100 => 0.92,
        _ => 1.0,
    };
    if features.live_known && features.heap_readings < READINGS_MIN {
        decision.confidence *= HEAP_SPARSE;
    }
    let surest = if features.live_known { CONFIDENCE_MAX } else { CONFIDENCE_TOTAL_ONLY_MAX };
    decision.confidence = decision.confidence.clamp(0.05, surest);
    decision
}

/// Judges growth first, patterns after it.
fn by_growth(features: &Features) -> GrowthDecision {
    let shape = &features.judged;
    let rises = rises(shape);
    let fragments = features.excess.map_or(0.0, |excess| fragmentation(&excess, shape));
    match rises {
        RiseShape::Straight(sure) if fragments >= 0.5 => {
            let sure = sure.min(0.5 + fragments / 2.0);
            GrowthDecision::of(GrowthClass::LeakAndFragmentation, sure)
        }
        RiseShape::Straight(sure) => {
            let doubt = if fragments > 0.0 { 0.8 } else { 1.0 };
            GrowthDecision::of(GrowthClass::Leak, sure * doubt)
        }
        _ if fragments >= 0.5 => {
            let doubt = match rises {
                RiseShape::Unclear => 0.75,
                _ if shape.trend.z >= Z_SEEN => 0.85,
                _ => 1.0,
            };
            GrowthDecision::of(GrowthClass::Fragmentation, fragments * doubt)
        }
        RiseShape::Slowing(sure) if features.live_known => {
            GrowthDecision::of(GrowthClass::Warmup, sure)
        }
        RiseShape::Slowing(sure) => GrowthDecision::of(GrowthClass::Saturating, sure),
        RiseShape::Unclear => GrowthDecision::unknown(1.0),
        RiseShape::No => by_pattern(features, fragments),
    }
}

/// Returns how sure it is that free memory grew beyond what peaks of the live size leave: 0 is not.
fn fragmentation(excess: &Excess, shape: &CurveShape) -> f64 {
    let enough = (shape.floor).max(0.4 * excess.ends);
    if excess.share < FREE_SOME || excess.grew < enough {
        return 0.0;
    }
    let is_one_jump = excess.jump > 0.7 && excess.jump_at > 0.03;
    let needs = if matches!(shape.cycles, Cycles::None) { 1.0 } else { 1.6 };
    if is_one_jump {
        return 0.0;
    }
    let share = (excess.share - FREE_SOME * needs) / (FREE_MUCH - FREE_SOME);
    (0.5 + share * 0.45).clamp(0.0, 0.95)
}

/// Judges how a curve rises after its start.
fn rises(shape: &CurveShape) -> RiseShape {
    let trend = &shape.trend;
    let floor = match &shape.cycles {
        Cycles::Teeth { amplitude, .. } => shape.floor.max(amplitude * 0.1),
        Cycles::Season { fit, .. } if fit.parameter < 2.0 => return RiseShape::No,
        _ => shape.floor,
    };
    let is_plain_line = trend.z >= 2.0 && trend.r_squared >= 0.9;
    let is_clear = trend.z >= Z_SEEN || is_plain_line;
    let is_seen = is_clear && trend.growth() >= floor && trend.from > 0.0;
    let grew = shape.rise >= shape.floor.max(shape.begins * 0.1);
    if !is_seen && !grew || is_step(shape) && steps_fit_best(shape) {
        return RiseShape::No;
    }
    let left =
        || shape.beyond_noise(shape.saturating().rest) / shape.beyond_noise(shape.line().rest);
    if !is_seen {
        let levelled = left() < 0.5 && shape.saturating().r_squared > 0.5;
        return if levelled {
            RiseShape::Slowing(sure_of_slowing(shape, left()))
        } else {
            RiseShape::No
        };
    }
    let line_after = shape.beyond_noise(shape.line_after().rest);
    let after = shape.beyond_noise(shape.saturating_after().rest) / line_after;
    let goes_on = goes_on(shape, floor);
    if after < 0.6 && shape.slope_ratio() < 0.6 && !goes_on {
        return RiseShape::Slowing(sure_of_slowing(shape, left()));
    }
    if shape.slope_ratio() > 2.5 || shape.bulge() > 1.6 {
        let sine = shape.beyond_noise(shape.sine().rest) / line_after;
        if sine < 0.3 && after > sine {
            return RiseShape::Unclear;
        }
    }
    if after < 0.3 && shape.slope_ratio() < 0.75 && !goes_on {
        return RiseShape::Unclear;
    }
    if !lasts(shape) {
        return RiseShape::Unclear;
    }
    RiseShape::Straight(sure_of_line(shape, floor, after))
}

/// Returns whether a curve that rose still does in its last part: by a part of what its trend would add.
fn lasts(shape: &CurveShape) -> bool {
    let late = shape.late();
    late.growth() >= LAST_PACE_MIN * shape.trend.slope * late.length
}

/// Returns whether levels leave less than a smooth curve does.
fn steps_fit_best(shape: &CurveShape) -> bool {
    let smooth = shape.beyond_noise(shape.saturating().rest.min(shape.line().rest));
    shape.beyond_noise(shape.levels().rest) < smooth * 0.6
}

/// Returns whether the last part still rises, as straight as its own first half.
fn goes_on(shape: &CurveShape, floor: f64) -> bool {
    let late = shape.late();
    let enough = floor.max(shape.trend.growth() * 0.12);
    late.z >= Z_SEEN && late.growth() >= enough * 0.7 && shape.late_slope_ratio() >= 0.75
}

/// Returns how sure it is that a rise is a line.
fn sure_of_line(shape: &CurveShape, floor: f64, after: f64) -> f64 {
    let trend = &shape.trend;
    let mut sure: f64 = CONFIDENCE_MAX;
    sure *= match trend.z {
        z if z >= Z_PLAIN => 1.0,
        z if z >= 4.0 || trend.r_squared >= 0.95 => 0.9,
        _ => 0.75,
    };
    if trend.growth() < floor * 2.0 {
        sure *= 0.85;
    }
    if !(0.6..=1.8).contains(&shape.slope_ratio()) {
        sure *= 0.85;
    }
    if after < 0.6 {
        sure *= 0.85;
    }
    if trend.r_squared < 0.6 {
        sure *= 0.85;
    }
    sure
}

/// Returns how sure it is that a rise ends.
fn sure_of_slowing(shape: &CurveShape, left: f64) -> f64 {
    let mut sure: f64 = CONFIDENCE_MAX;
    if left > 0.25 {
        sure *= 0.85;
    }
    if shape.saturating().r_squared < 0.8 {
        sure *= 0.85;
    }
    if shape.slope_ratio() > 0.4 && shape.trend.z >= Z_SEEN {
        sure *= 0.8;
    }
    sure
}

/// Returns whether the levels of a curve are few, and one of them is a change of more than noise.
fn is_step(shape: &CurveShape) -> bool {
    let changes = shape.levels().changes();
    let late = shape.levels().levels.iter().skip(1).any(|(at, _)| *at > 0.08);
    let least = shape.floor.max(shape.begins * 0.05);
    late && changes.iter().any(|change| change.abs() >= least)
        && shape.levels().rest < 0.35 * shape.line().rest
}

/// Judges a curve that does not rise at its end.
fn by_pattern(features: &Features, fragments: f64) -> GrowthDecision {
    let shape = &features.judged;
    let total = &features.total;
    let outside = features.outside.filter(|outside| {
        outside.z >= Z_PLAIN && outside.growth() >= total.floor && features.live_known
    });
    if outside.is_some() && matches!(rises(total), RiseShape::Straight(_)) {
        return GrowthDecision::of(GrowthClass::Leak, 0.65);
    }
    match &shape.cycles {
        Cycles::Teeth { falls, .. } => {
            let sure = if *falls >= 5 { 0.95 } else { 0.75 };
            return GrowthDecision::of(GrowthClass::Stationary, sure);
        }
        Cycles::Season { fit, r_squared } if fit.r_squared > levels_explain(shape) => {
            let whole = if fit.parameter >= 1.8 { 1.0 } else { 0.88 };
            return GrowthDecision::of(GrowthClass::Seasonal, r_squared * whole);
        }
        _ => {}
    }
    if is_pulse(features) {
        return GrowthDecision::of(GrowthClass::Pinned, 0.9);
    }
    let jumped = features.excess.filter(|excess| excess.share > 0.25 && excess.jump > 0.5);
    if jumped.is_some_and(|excess| excess.grew > shape.floor) {
        return GrowthDecision::of(GrowthClass::Pinned, 0.8);
    }
    if is_step(shape) {
        return GrowthDecision::of(GrowthClass::Steps, 0.85);
    }
    let doubt = if fragments > 0.0 || shape.trend.z >= 2.0 && shape.trend.growth() > shape.floor {
        0.6
    } else {
        0.93
    };
    GrowthDecision::of(GrowthClass::Flat, doubt)
}

/// Returns the share of the variance that levels explain.
fn levels_explain(shape: &CurveShape) -> f64 {
    let all = shape.line().rest / (1.0 - shape.line().r_squared).max(1e-9);
    if all > 0.0 { 1.0 - shape.levels().rest / all } else { 0.0 }
}

/// Returns whether the live size rose once, fell again and stayed low, while the total stayed high.
fn is_pulse(features: &Features) -> bool {
    let (shape, total) = (&features.judged, &features.total);
    let fell = shape.peak - shape.ends;
    let kept = total.ends - total.begins > 0.5 * (total.peak - total.begins)
        || total.ends > 0.7 * total.peak;
    let last = shape.levels().levels.last().map_or(0.0, |(at, _)| *at);
    let still = shape.levels().levels.last().map_or(0.0, |(_, level)| (level - shape.ends).abs());
    features.live_known
        && kept
        && fell > shape.floor
        && fell > 0.25 * shape.peak
        && last < 0.88
        && still < 0.2 * fell
        && shape.levels().rest < 0.3 * shape.line().rest
}
