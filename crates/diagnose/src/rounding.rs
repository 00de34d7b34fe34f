//! Rounded figures (`free -h` prints `3.6Gi`) must not decide: a finding that other figures within the rounding would
//! not support is not made.

use timeline::{Gauge, Nudge, Signal, SignalId};
use units::{Bytes, Quantity as _, Ratio};

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, Rule};

/// A reading as it may be printed: with what it may be where it is rounded so much that the plain figure would mislead.
pub(crate) fn shown(cx: &Evidence<'_>, signal: Signal<Gauge<Bytes>>, value: Bytes) -> String {
    /// Coarser than this, the figure is printed with its bounds.
    const COARSE: Ratio = Ratio::from_percent(10.0);
    match bounds(cx, signal, value) {
        Some((least, most)) if least == Bytes::ZERO => format!("less than {most} (rounded)"),
        Some((least, most))
            if most.saturating_sub(least).as_f64() > 2.0 * COARSE.get() * value.as_f64() =>
        {
            format!("{least} to {most} (rounded)")
        }
        _ => value.to_string(),
    }
}

/// Between which figures the true reading lies; `None` where it is exact.
pub(crate) fn bounds(
    cx: &Evidence<'_>,
    signal: Signal<Gauge<Bytes>>,
    value: Bytes,
) -> Option<(Bytes, Bytes)> {
    let error = Bytes::new(cx.timeline.error_at_most(signal.id())?);
    Some((
        value.saturating_sub(error),
        Bytes::new(value.get().saturating_add(error.get())),
    ))
}

/// What a rule found, if it also finds it wherever the true readings may lie; with the least severity that it then has.
pub(crate) fn survives(
    cx: &Evidence<'_>,
    rule: &Rule,
    outcome: Outcome,
) -> Result<Outcome, Missing> {
    let Outcome::Found(mut finding) = outcome else {
        return Ok(outcome);
    };
    for signal in cx.timeline.rounded() {
        for nudge in Nudge::ALL {
            match found_with(cx, rule, signal, nudge) {
                Some(other) => finding.severity = finding.severity.min(other.severity),
                None => {
                    return Err(Missing::because(
                        vec![signal.def().name],
                        Need::FinerFigures,
                    ));
                }
            }
        }
    }
    Ok(Outcome::Found(finding))
}

fn found_with(
    cx: &Evidence<'_>,
    rule: &Rule,
    signal: SignalId,
    nudge: Nudge,
) -> Option<Box<Finding>> {
    let nudged = cx.timeline.nudged(signal, nudge);
    match (rule.check)(&Evidence::new(&nudged, cx.facts)) {
        Ok(Outcome::Found(finding)) => Some(finding),
        _ => None,
    }
}
