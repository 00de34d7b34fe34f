//! The answer: rate, limit, and what the class rests on.

use units::{Bytes, BytesPerSecond, Quantity, Ratio, SignedBytes, Span};

use super::class::GrowthClass;
use super::cycles::Cycles;
use super::decision::GrowthDecision;
use super::features::Features;
use super::few_readings;
use super::reason::{CurveKind, GrowthChange, GrowthFit, GrowthMethod, GrowthReason};
use super::series::Prepared;
use super::shape::CurveShape;
use super::trend::Trend;
use super::{Growth, GrowthRate};

/// Completes a decision with its figures.
pub(super) fn growth(
    prepared: &Prepared,
    features: &Features,
    decision: &GrowthDecision,
    limit: Option<Bytes>,
) -> Growth {
    let now = prepared.ends_at();
    let rate = match decision.class {
        class if class.leaks() => Some(rate(&features.judged.trend, prepared)),
        // A line has a rate, whatever it will turn out to be.
        GrowthClass::Unknown => {
            few_readings::straight(prepared).map(|trend| rate(&trend, prepared))
        }
        _ => None,
    };
    // What grew in an earlier part was killed, and need not grow now.
    let goes_on = prepared.now.is_none();
    let limit_in = rate.filter(|_| goes_on).and_then(|rate| limit_in(rate, now, limit));
    let levels_off = matches!(
        decision.class,
        GrowthClass::Fragmentation | GrowthClass::Saturating | GrowthClass::Warmup
    );
    Growth {
        class: decision.class,
        confidence: Ratio::new(decision.confidence),
        method: method(features, decision.class),
        now,
        judged: prepared.span,
        readings: prepared.readings,
        rate,
        levels_off_at: levels_off.then(|| plateau(&features.total, now)),
        limit_in,
        // One reading has no span of which more could be needed.
        needs: decision
            .needs
            .filter(|_| prepared.readings > 1)
            .map(|times| prepared.span.times(times)),
        goes_on,
        reasons: reasons(prepared, features),
    }
}

/// Returns the slope of a trend by time.
pub(super) fn rate(trend: &Trend, prepared: &Prepared) -> GrowthRate {
    let span = prepared.span.as_secs_f64().max(f64::MIN_POSITIVE);
    let per_second = |slope: f64| BytesPerSecond::new(slope / span);
    GrowthRate {
        rate: per_second(trend.slope.max(0.0)),
        from: per_second(trend.from),
        to: per_second(trend.to),
    }
}

/// Returns how long it takes at a rate until the limit is reached.
pub(super) fn limit_in(rate: GrowthRate, now: Bytes, limit: Option<Bytes>) -> Option<Span> {
    let seconds = limit?.saturating_sub(now).as_f64() / rate.rate.get();
    seconds.is_finite().then(|| Span::from_secs_f64(seconds))
}

/// Returns where a curve that levels off ends: the limit of its fit, but never more than what it grew so far beyond now.
fn plateau(shape: &CurveShape, now: Bytes) -> Bytes {
    let [level, height, ..] = shape.saturating().terms;
    let end = (level + height).min(now.as_f64() + shape.rise.max(0.0));
    Bytes::from_f64(end.max(now.as_f64()))
}

/// Returns which fit won, and the trend.
fn method(features: &Features, class: GrowthClass) -> GrowthMethod {
    let shape = &features.judged;
    let fit = match (&shape.cycles, class) {
        (Cycles::Teeth { falls, .. }, _) => GrowthFit::Sawtooth { falls: *falls },
        (Cycles::Season { fit, r_squared }, _) => {
            GrowthFit::Season { cycles: fit.parameter, r_squared: *r_squared }
        }
        (_, GrowthClass::Steps | GrowthClass::Pinned) => {
            GrowthFit::Levels(shape.levels().levels.len())
        }
        _ => {
            let line = *shape.line();
            let others = [
                (CurveKind::LevelsOff, *shape.saturating()),
                (CurveKind::Logarithm, shape.logarithm()),
            ];
            let best = others.into_iter().fold((CurveKind::Line, line), |best, other| {
                if other.1.rest.total_cmp(&best.1.rest).is_lt() { other } else { best }
            });
            GrowthFit::Curve {
                kind: best.0,
                r_squared: best.1.r_squared,
                line_r_squared: line.r_squared,
            }
        }
    };
    let is_trend = shape.trend.z.abs() >= 2.0 && shape.slope_ratio().is_finite();
    GrowthMethod {
        is_of_live: features.live_known,
        fit,
        z: shape.trend.z,
        slope_r_squared: shape.trend.r_squared,
        slope_ratio: is_trend.then(|| shape.slope_ratio()),
    }
}

fn reasons(prepared: &Prepared, features: &Features) -> Vec<GrowthReason> {
    let change = |shape: &CurveShape| GrowthChange {
        from: Bytes::from_f64(shape.begins),
        to: Bytes::from_f64(shape.ends),
        late: signed(shape.trend.growth()),
    };
    let mut reasons = vec![GrowthReason::Total(change(&features.total))];
    if features.live_known {
        reasons.push(GrowthReason::Live(change(&features.judged)));
    }
    if let Some(excess) = features.excess {
        let [free, beyond_peaks] =
            [excess.free_share, excess.share].map(|share| Ratio::new(share.max(0.0)));
        reasons.push(GrowthReason::Free { free, beyond_peaks });
    } else if !features.live_known {
        reasons.push(GrowthReason::TotalOnly);
    }
    reasons.extend(parts(prepared));
    reasons
}

/// Why only a part of the series was judged.
pub(super) fn parts(prepared: &Prepared) -> impl Iterator<Item = GrowthReason> {
    let some = |times: usize, reason: fn(usize) -> GrowthReason| (times > 0).then(|| reason(times));
    let killed = some(prepared.killed, GrowthReason::Killed);
    killed.into_iter().chain(some(prepared.restarts, GrowthReason::Restarts))
}

/// Returns a change of bytes.
#[allow(clippy::cast_possible_truncation)] // saturates
fn signed(bytes: f64) -> SignedBytes {
    SignedBytes::new(bytes.round() as i64)
}
