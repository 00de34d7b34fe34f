//! The answer in words: method, evidence, rate, limit.

use units::{Bytes, BytesPerSecond, Quantity, Ratio, SignedBytes, Span};

use super::class::GrowthClass;
use super::cycles::Cycles;
use super::decision::GrowthDecision;
use super::features::Features;
use super::series::Prepared;
use super::shape::CurveShape;
use super::trend::Trend;
use super::{Growth, GrowthRate};

/// Writes a decision down.
pub(super) fn growth(
    prepared: &Prepared,
    features: &Features,
    decision: &GrowthDecision,
    limit: Option<Bytes>,
) -> Growth {
    let now = Bytes::from_f64(prepared.total.level(0.98, 1.0));
    let grows = decision.class.leaks();
    let rate = grows.then(|| rate(&features.judged.trend, prepared));
    let limit_in = rate.and_then(|rate| limit_in(rate, now, limit));
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
        needs: decision.needs.map(|times| prepared.span.times(times)),
        evidence: evidence(prepared, features, decision),
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

/// Says which fit won and what the live size did.
fn method(features: &Features, class: GrowthClass) -> String {
    let shape = &features.judged;
    let what = if features.live_known { "live bytes" } else { "total" };
    let fit = match (&shape.cycles, class) {
        (Cycles::Teeth { falls, .. }, _) => {
            format!("a sawtooth of {falls} falls, judged at its bottoms")
        }
        (Cycles::Season { fit, r_squared }, _) => {
            format!("{:.1} cycles (R² {r_squared:.2})", fit.parameter)
        }
        (_, GrowthClass::Steps | GrowthClass::Pinned) => {
            format!("{} levels", shape.levels().levels.len())
        }
        _ => {
            let curves = [
                ("a line", *shape.line()),
                ("a curve that levels off", *shape.saturating()),
                ("a logarithm", shape.logarithm()),
            ];
            let best = curves.into_iter().min_by(|a, b| a.1.rest.total_cmp(&b.1.rest));
            let (name, fit) = best.unwrap_or(("a line", *shape.line()));
            format!(
                "{name} fits best (R² {:.2}; a line {:.2})",
                fit.r_squared,
                shape.line().r_squared
            )
        }
    };
    let ratio = if shape.trend.z.abs() >= 2.0 && shape.slope_ratio().is_finite() {
        format!("; slope of the second half to the first {:.2}", shape.slope_ratio())
    } else {
        String::new()
    };
    let trend = &shape.trend;
    format!("{what}: {fit}; Mann-Kendall z {:.1}, slope R² {:.2}{ratio}", trend.z, trend.r_squared)
}

/// Says what the class rests on.
fn evidence(prepared: &Prepared, features: &Features, decision: &GrowthDecision) -> Vec<String> {
    let mut lines = Vec::new();
    let change = |shape: &CurveShape| {
        let (from, to) = (Bytes::from_f64(shape.begins), Bytes::from_f64(shape.ends));
        format!("{from} to {to}")
    };
    let late = |shape: &CurveShape| signed(shape.trend.growth());
    lines.push(format!(
        "Total: {}; {:+} after the first 15 % of {}, by its trend.",
        change(&features.total),
        late(&features.total),
        prepared.span
    ));
    if features.live_known {
        lines.push(format!(
            "Live: {}; {:+} after the first 15 %, by its trend.",
            change(&features.judged),
            late(&features.judged)
        ));
    }
    if let Some(excess) = features.excess {
        lines.push(format!(
            "Free in the allocator: {} of the total; {} of the total beyond what peaks of the live \
             size explain.",
            Ratio::new(excess.free_share.max(0.0)),
            Ratio::new(excess.share.max(0.0))
        ));
    } else if !features.live_known {
        let line = "Live and free bytes of malloc are known of no or too few readings: the total \
                    alone is judged.";
        lines.push(line.into());
    }
    if prepared.restarts > 0 {
        lines
            .push(format!("The process restarted ({} ×); one part was judged.", prepared.restarts));
    }
    if let Some(times) = decision.needs {
        let more = prepared.span.times(times);
        lines.push(format!("Not enough data: about {more} more are needed."));
    }
    lines
}

/// Returns a change of bytes.
#[allow(clippy::cast_possible_truncation)] // saturates
fn signed(bytes: f64) -> SignedBytes {
    SignedBytes::new(bytes.round() as i64)
}
