//! Rounded figures (`free -h` prints `3.6Gi`) must not decide: a finding that other figures within the rounding would
//! not support is not made.

use timeline::{Nudge, SignalId};

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, Rule};

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
