//! What a source may have missed because it was watched for a shorter time than the other.
//!
//! An incident is found whatever length of recording surrounds it, so a longer source hides nothing. But half a minute
//! without an incident does not show that it is gone, if it occurred for half a minute in two hours. The chance to
//! miss it is computed: the share of all times at which the shorter source could have been watched, within the longer
//! one, at which the incident would not show.

use std::cmp::Ordering;

use timeline::Stretch;
use units::{Ratio, Span};

use super::Compared;
use super::findings::{FindingChange, NotComparable, of_place};
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

/// Lengths of two sources within this factor count as equal; an engineering choice.
const OTHER_LENGTH: f64 = 2.0;
/// A source with a higher chance to miss a finding does not show that the finding is gone; an engineering choice.
const MAY_MISS: Ratio = Ratio::from_percent(20.0);
/// How much of an incident must lie within a source to be seen: this, or half of a shorter source. Less is a burst.
const DURATION_ENOUGH: Span = Span::from_secs(10);

/// How the length of the source after compares with that before; `None` where the lengths count as equal.
pub(super) fn differs(before: &Evidence<'_>, after: &Evidence<'_>) -> Option<Ordering> {
    order(before.recorded(), after.recorded())
}

fn order(before: Span, after: Span) -> Option<Ordering> {
    let (old, new) = (before.as_secs_f64(), after.as_secs_f64());
    let is_other = old.min(new) > 0.0 && old.max(new) >= old.min(new) * OTHER_LENGTH;
    is_other.then(|| new.total_cmp(&old))
}

/// Marks the changes that may be due to the different lengths alone as doubtful.
pub(super) fn doubt(before: Compared<'_>, after: Compared<'_>, changes: &mut [FindingChange]) {
    let (old, new) = (before.timeline.recorded(), after.timeline.recorded());
    let Some(order) = order(old, new) else {
        return;
    };
    let is_after = order == Ordering::Greater;
    let (long, short) = if is_after { (after, old) } else { (before, new) };
    for change in changes.iter_mut().filter(|change| change.doubt.is_none()) {
        let severity = |is_after: bool| change.found(is_after).map(|found| found.severity);
        let (longer, shorter) = (severity(is_after), severity(!is_after));
        let is_in_doubt = match longer.cmp(&shorter) {
            Ordering::Greater => {
                let findings = of_place(long, change.id, change.place.as_ref());
                chance_to_miss(long, &findings, longer, short) > MAY_MISS
            }
            // The longer source had the better chance to show it.
            Ordering::Less => false,
            // The shorter source cannot show how often it occurs.
            Ordering::Equal => change.is_worse_after().is_some(),
        };
        if is_in_doubt {
            change.doubt = Some(NotComparable::TooShort);
        }
    }
}

/// The chance that a source of this length misses that the finding can be so severe.
fn chance_to_miss(
    long: Compared<'_>,
    findings: &[&Finding],
    severity: Option<Severity>,
    short: Span,
) -> Ratio {
    let mut times: Vec<Stretch> = Vec::new();
    for finding in findings.iter().filter(|finding| Some(finding.severity) == severity) {
        // A state without a beginning shows at any time.
        if finding.when.is_none() {
            return Ratio::new(0.0);
        }
        let occasions = finding.occasions.iter();
        let severe = occasions.filter(|one| Some(one.severity) == severity);
        let severe: Vec<Stretch> = severe.map(|one| one.stretch).collect();
        // Empty where a root has its severity from a finding that follows from it.
        times.extend(if severe.is_empty() { finding.stretches() } else { severe });
    }
    let all = long.timeline.times();
    let (first, last) = (all.first().copied(), all.last().copied());
    let Some((first, last)) = first.zip(last) else {
        return Ratio::new(1.0);
    };
    let times = times.iter().map(|one| (one.from, one.to));
    missed(times.collect(), (first, last), long.timeline.recorded(), short)
}

/// The share of possible starting points in a range, of which `recorded` was recorded, from which a source of length
/// `short` sees none of these times.
fn missed(
    mut times: Vec<(Span, Span)>,
    (first, last): (Span, Span),
    recorded: Span,
    short: Span,
) -> Ratio {
    let seconds = Span::as_secs_f64;
    let (begin, end, short) = (seconds(first), seconds(last) - seconds(short), seconds(short));
    let possible = (end - begin).min(seconds(recorded) - short);
    if possible <= 0.0 {
        return Ratio::new(0.0);
    }
    times.sort_unstable();
    let (mut seen, mut until) = (0.0, begin);
    for (from, to) in times {
        let (from, to) = (seconds(from), seconds(to));
        let enough = (to - from).min(seconds(DURATION_ENOUGH)).min(short / 2.0);
        let (earliest, latest) = ((from - short + enough).max(until), (to - enough).min(end));
        if latest > earliest {
            seen += latest - earliest;
            until = latest;
        }
    }
    Ratio::new((1.0 - seen / possible).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance that a source this long misses these times, in 7,200 s.
    fn chance(times: &[(u64, u64)], short: u64) -> f64 {
        let secs = Span::from_secs;
        let times = times.iter().map(|(from, to)| (secs(*from), secs(*to)));
        let all = (secs(0), secs(7200));
        missed(times.collect(), all, secs(7200), secs(short)).get()
    }

    #[test]
    fn what_is_rare_is_missed_by_a_short_source_and_what_is_always_there_is_not() {
        assert!(chance(&[(100, 130)], 30) > 0.99);
        assert!(chance(&[(0, 7200)], 30) < 1e-9);
        assert!(chance(&[(0, 7200)], 5) < 1e-9);
        assert!((chance(&[(0, 3600)], 30) - 0.5).abs() < 0.01);
        assert!((chance(&[], 30) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_comes_often_is_met_by_a_source_longer_than_its_pauses() {
        let often: Vec<(u64, u64)> = (0..72).map(|n| (n * 100, n * 100 + 20)).collect();
        assert!(chance(&often, 100) < 0.05);
        assert!(chance(&often, 20) > 0.6);
    }

    #[test]
    fn an_event_is_met_wherever_the_source_covers_it() {
        assert!((chance(&[(3600, 3600)], 2400) - 0.5).abs() < 0.01);
    }

    #[test]
    fn a_source_of_comparable_length_misses_nothing() {
        let secs = Span::from_secs;
        assert_eq!(order(secs(30), secs(59)), None);
        assert_eq!(order(secs(30), secs(60)), Some(Ordering::Greater));
        assert_eq!(order(secs(60), secs(0)), None);
    }
}
