//! The order of findings, and so which one gives the headline: what matters now comes first.
//!
//! What is wrong comes before what is only worth knowing. First comes what happened at the moment that was asked about, then
//! what happened around it, then what was there all along, before and after: a state of the host, which nobody asks about by
//! a time. Where no moment was asked about, what goes on or is about to happen at the end of the source comes first, and last
//! what is over. Among equals the severity decides, then whether the kernel reported it (a kill, a failed allocation), then
//! how near to the moment it began, then its harm, then how soon what it foretells happens.

use std::cmp::Reverse;

use timeline::Stretch;
use units::{Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::rules;

/// A finding that ended longer than this before the end of the source is over: an engineering choice, the time in which
/// people notice.
const OVER: Span = Span::from_mins(1);

/// What is nearer to the moment that was asked about happened around it: as [`OVER`].
const AROUND_MOMENT: Span = OVER;
/// What is nearer happened at it: an engineering choice, as clocks and sample times differ by seconds.
const AT_MOMENT: Span = Span::from_secs(5);

/// What holds for so much of the source, and at both ends of it, was there all along: an engineering choice. A source that is
/// asked about a moment is the minutes around it.
const ALL_ALONG: Ratio = Ratio::from_percent(75.0);

/// Sorts families, each a root followed by its consequences.
pub(crate) fn of_families(cx: &Evidence<'_>, mut families: Vec<Vec<Finding>>) -> Vec<Finding> {
    for finding in families.iter_mut().flatten() {
        finding.is_asked = is_asked(cx, finding);
        finding.is_over = is_over(cx, finding);
    }
    for family in &mut families {
        if let [_, consequences @ ..] = family.as_mut_slice() {
            consequences.sort_by_key(|finding| lead(cx, std::slice::from_ref(finding)));
        }
    }
    families.sort_by_key(|family| lead(cx, family));
    families.into_iter().flatten().collect()
}

/// Returns a sort key of a root and its consequences: the family that leads has the least one.
fn lead(cx: &Evidence<'_>, family: &[Finding]) -> impl Ord + use<> {
    let near = |all: &mut dyn Iterator<Item = &Finding>| {
        let away = all.filter_map(|finding| away(cx, finding)).min();
        [AROUND_MOMENT, AT_MOMENT].map(|near| away.is_some_and(|away| away <= near))
    };
    let happened = near(&mut family.iter().filter(|finding| !was_all_along(cx, finding)));
    let near = near(&mut family.iter());
    let goes_on = !cx.is_asked() && family.iter().any(|finding| !finding.is_over);
    family.first().map(|root| {
        let is_wrong = root.severity > Severity::Info;
        let weight = (is_wrong, happened, near, goes_on, root.severity, root.event);
        let foretold = (root.foretells_in.is_none(), root.foretells_in);
        let among_equals = (began(cx, root), Reverse(root.harm), foretold, rules::place(root.id));
        (Reverse(weight), among_equals)
    })
}

/// Whether it happened at the moment that was asked about, or around it.
fn is_asked(cx: &Evidence<'_>, finding: &Finding) -> bool {
    away(cx, finding).is_some_and(|away| away <= AROUND_MOMENT)
}

/// Whether it holds from the first minute of the source to the last, with few breaks.
fn was_all_along(cx: &Evidence<'_>, finding: &Finding) -> bool {
    let ends = cx.timeline.times().first().copied().zip(end(cx));
    let all = finding.stretches();
    let (Some((start, end)), Some(first), Some(last)) = (ends, all.first(), all.last()) else {
        return false;
    };
    let held: Span = all.iter().fold(Span::ZERO, |sum, one| sum.plus(one.to - one.from));
    let source = end.saturating_sub(start);
    first.from.saturating_sub(start) <= OVER
        && end.saturating_sub(last.to) <= OVER
        && held.as_secs_f64() >= source.as_secs_f64() * ALL_ALONG.get()
}

/// How far it is from the moment that was asked about; `None` if none was, or it has no time.
fn away(cx: &Evidence<'_>, finding: &Finding) -> Option<Span> {
    let all = finding.stretches().into_iter();
    all.filter_map(|when| cx.away_from_asked(Some(when))).min()
}

/// How far its nearest beginning is from that moment.
fn began(cx: &Evidence<'_>, finding: &Finding) -> Option<Span> {
    let all = finding.stretches().into_iter().map(|when| Stretch { to: when.from, ..when });
    all.filter_map(|when| cx.away_from_asked(Some(when))).min()
}

/// Whether it ended longer than a minute before the end of the source. A state without a beginning goes on.
fn is_over(cx: &Evidence<'_>, finding: &Finding) -> bool {
    let last = finding.stretches().into_iter().map(|when| when.to).max();
    match (finding.before, last) {
        (Some(before), _) => end(cx).is_some_and(|end| before.plus(end) > OVER),
        (None, Some(last)) => has_ended(cx, last),
        (None, None) => false,
    }
}

/// Whether this time is longer than a minute before the end of the source. Of samples in unknown order nothing is over.
pub(crate) fn has_ended(cx: &Evidence<'_>, at: Span) -> bool {
    end(cx).is_some_and(|end| end.saturating_sub(at) > OVER)
}

fn end(cx: &Evidence<'_>) -> Option<Span> {
    cx.timeline.times().last().copied().filter(|_| cx.timeline.is_one_segment())
}

#[cfg(test)]
mod tests {
    use timeline::{Facts, Sample, Timeline};

    use super::*;
    use crate::finding::{Harm, KernelEvent};

    /// Families of one finding each of a source of half an hour, in the order of the answer, each by its title.
    fn order(asked: Option<u64>, findings: Vec<Finding>) -> Vec<String> {
        let mut timeline = Timeline::default();
        for second in [0, 1_800] {
            timeline.push(&Sample::at(Span::from_secs(second))).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts).asked_about(asked.map(Span::from_secs));
        let families = findings.into_iter().map(|one| vec![one]).collect();
        of_families(&cx, families).iter().map(|one| one.title.to_string()).collect()
    }

    /// A finding from one second to another.
    fn lasted(title: &str, severity: Severity, (from, to): (u64, u64)) -> Finding {
        let mut finding = rules::ALL[0].found(severity, title);
        let (from, to) = (Span::from_secs(from), Span::from_secs(to));
        finding.when = Some(Stretch { from, to, ..Stretch::empty() });
        finding
    }

    fn kill(at: u64) -> Finding {
        let mut finding = lasted("kill", Severity::Critical, (at, at));
        finding.event = Some(KernelEvent::Kill);
        finding.harm = Harm { killed: 1, waited: None };
        finding
    }

    use Severity::{Info, Warning};

    #[test]
    fn what_goes_on_leads_over_what_is_over_however_bad() {
        let goes_on = || lasted("goes on", Warning, (900, 1_800));
        assert_eq!(order(None, vec![kill(300), goes_on()]), ["goes on", "kill"]);
        // Half a minute ago is not over.
        assert_eq!(order(None, vec![goes_on(), kill(1_770)]), ["kill", "goes on"]);
        let harmless = lasted("harmless", Info, (900, 1_800));
        assert_eq!(order(None, vec![harmless, kill(300)]), ["kill", "harmless"]);
    }

    #[test]
    fn what_is_about_to_happen_leads_among_equals() {
        let state = lasted("state", Warning, (0, 1_800));
        let later = lasted("later", Warning, (0, 1_800)).foretells_in(Some(Span::from_mins(9)));
        let soon = lasted("soon", Warning, (0, 1_800)).foretells_in(Some(Span::from_secs(94)));
        assert_eq!(order(None, vec![state, later, soon]), ["soon", "later", "state"]);
    }

    #[test]
    fn what_happened_at_the_moment_that_was_asked_about_leads() {
        let all = || {
            vec![
                kill(1_790),
                lasted("state", Warning, (0, 1_800)),
                lasted("slow", Warning, (500, 540)),
                kill(470),
            ]
        };
        // At it, then around it: the kill half a minute before is no answer to what was slow then.
        assert_eq!(order(Some(510), all()), ["slow", "kill", "state", "kill"]);
        // Of what was at it, the worst leads.
        assert_eq!(order(Some(473), all())[0], "kill");
        // What was there all along is no answer to what happened half a minute away, unless nothing did.
        assert_eq!(order(Some(510), all()[1..].to_vec())[0], "slow");
        assert_eq!(order(Some(500), vec![all().remove(1), kill(470)]), ["kill", "state"]);
        assert_eq!(order(Some(600), vec![all().remove(1), kill(470)]), ["state", "kill"]);
        // One that began in the minutes before is no state of the host.
        let began = lasted("began", Severity::Warning, (300, 1_800));
        assert_eq!(order(Some(500), vec![kill(470), began]), ["began", "kill"]);
        // Of equals, what began nearest.
        assert_eq!(order(Some(900), all())[0], "state");
        assert_eq!(order(None, all())[0], "kill");
    }
}
