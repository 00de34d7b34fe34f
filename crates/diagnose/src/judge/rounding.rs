//! Rounded figures (`free -h` prints `3.6Gi`) must not decide: a finding is dropped if other readings within the
//! rounding would not support it.

use timeline::RoundingCase;

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::Finding;
use crate::judge::incidents::{self, RuleAnswer};
use crate::judge::weight::WaitTracks;
use crate::rule::Rule;

/// Keeps what a rule finds for all true readings within the rounding, with the lowest severity among them.
///
/// # Errors
/// [`Missing`] if only some of the possible readings show it.
pub(crate) fn survives(
    cx: &Evidence<'_>,
    rule: &'static Rule,
    mut answer: RuleAnswer,
) -> Result<RuleAnswer, Missing> {
    for signal in cx.timeline.rounded_signals() {
        for nudge in RoundingCase::ALL {
            if answer.incidents.is_empty() {
                return Ok(answer);
            }
            let nudged = cx.timeline.in_rounding_case(signal, nudge);
            let other = Evidence::new(&nudged, cx.facts);
            let found = incidents::evaluate(rule, &other, &WaitTracks::for_host(&other));
            let found = found.unwrap_or_default().incidents;
            answer.incidents.retain_mut(|one| keep(one, &found));
            if answer.incidents.is_empty() {
                return Err(Missing::because(vec![signal.def().name], Need::FinerFigures));
            }
        }
    }
    Ok(answer)
}

/// Keeps an incident if other possible readings show it too.
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
