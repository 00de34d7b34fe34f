//! Rounded figures (`free -h` prints `3.6Gi`) must not decide: a finding that other figures within the rounding would
//! not support is not made.

use timeline::RoundingCase;

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::Finding;
use crate::judge::incidents::{self, RuleAnswer};
use crate::judge::weight::WaitTracks;
use crate::rule::Rule;

/// What a rule found, if it also finds it wherever the true readings may lie; with the least severity that it then has.
///
/// # Errors
/// [`Missing`] where only some of the possible readings show it.
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
            let found = incidents::ask(rule, &other, &WaitTracks::of_host(&other));
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
