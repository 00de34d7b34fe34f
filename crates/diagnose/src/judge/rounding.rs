//! Rounded figures (`free -h` prints `3.6Gi`) must not decide: a finding that other figures within the rounding would
//! not support is not made.

use timeline::{Gauge, RoundingCase, Signal};
use units::{Bytes, Quantity as _, Ratio};

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::Finding;
use crate::incident::Waiting;
use crate::judge::incidents::{self, Answer};
use crate::rule::Rule;

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
    let error = Bytes::new(cx.timeline.rounding_error(signal.id())?);
    Some((
        value.saturating_sub(error),
        Bytes::new(value.get().saturating_add(error.get())),
    ))
}

/// What a rule found, if it also finds it wherever the true readings may lie; with the least severity that it then has.
///
/// # Errors
/// [`Missing`] where only some of the possible readings show it.
pub(crate) fn survives(
    cx: &Evidence<'_>,
    rule: &'static Rule,
    mut answer: Answer,
) -> Result<Answer, Missing> {
    for signal in cx.timeline.rounded_signals() {
        for nudge in RoundingCase::ALL {
            if answer.incidents.is_empty() {
                return Ok(answer);
            }
            let nudged = cx.timeline.in_rounding_case(signal, nudge);
            let other = Evidence::new(&nudged, cx.facts);
            let found = incidents::ask(rule, &other, &Waiting::of_host(&other));
            let found = found.unwrap_or_default().incidents;
            answer.incidents.retain_mut(|one| keep(one, &found));
            if answer.incidents.is_empty() {
                return Err(Missing::because(
                    vec![signal.def().name],
                    Need::FinerFigures,
                ));
            }
        }
    }
    Ok(answer)
}

/// Whether an incident is among those that other readings show.
fn keep(one: &mut Finding, found: &[Finding]) -> bool {
    let same = found.iter().find(|other| {
        let times = one.when.zip(other.when);
        one.scope == other.scope && times.is_none_or(|(a, b)| a.overlaps(&b))
    });
    if let Some(same) = same {
        one.severity = one.severity.min(same.severity);
    }
    same.is_some()
}
