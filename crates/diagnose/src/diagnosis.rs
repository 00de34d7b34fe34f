//! All rules on one source, and what comes out.

use std::cmp::Reverse;

use timeline::{Facts, Timeline, signals::MEM_AVAILABLE};

use crate::accounting::{Accounting, account};
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::missing::Missing;
use crate::next::{self, Step};
use crate::rule::{Outcome, Purpose};
use crate::verdict::Verdict;
use crate::{causes, looks, rounding, rules};

/// What all rules say of a source.
#[derive(Debug)]
pub struct Diagnosis {
    /// In one sentence.
    pub verdict: Verdict,
    /// What is wrong: the worst root first, each followed by its consequences.
    pub findings: Vec<Finding>,
    /// What looks wrong and is not.
    pub notes: Vec<Finding>,
    /// What a recording of this host shows that is over: worth knowing, never part of the verdict.
    pub earlier: Vec<Finding>,
    /// What was looked for and is not there: rule and reason.
    pub clear: Vec<(&'static str, String)>,
    /// What could not be looked for: rule and what it lacks.
    pub not_evaluated: Vec<(&'static str, Missing)>,
    /// What RAM held at the moment that matters: the tightest of the worst finding, else of all. Whoever shows one moment
    /// shows this one.
    pub accounting: Result<Accounting, Missing>,
    /// What to run on that host to learn what the source could not say.
    pub next: Vec<Step>,
}

/// Asks every rule: of each stretch of time by itself, where the source has several of which nobody knows how they lie
/// to each other.
pub fn diagnose(timeline: &Timeline, facts: &Facts) -> Diagnosis {
    let judged = |timeline: &Timeline| judge(&Evidence::new(timeline, facts));
    if timeline.is_one_stretch() {
        // Live or a capture, perhaps of days: not to be copied.
        return judged(timeline);
    }
    let stretches = timeline.stretches();
    looks::merge(stretches.iter().map(|one| (one, judged(one))))
}

/// Asks every rule of one stretch of time.
pub(crate) fn judge(cx: &Evidence<'_>) -> Diagnosis {
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    let mut clear = Vec::new();
    let mut not_evaluated = Vec::new();
    for rule in rules::ALL {
        match (rule.check)(cx).and_then(|outcome| rounding::survives(cx, rule, outcome)) {
            Ok(Outcome::Found(finding)) => match rule.purpose {
                Purpose::Finding => findings.push(*finding),
                Purpose::Note => notes.push(*finding),
            },
            Ok(Outcome::Clear(why)) => clear.push((rule.id, why)),
            Err(missing) => not_evaluated.push((rule.id, missing)),
        }
    }
    let findings = causes::order(findings);
    let blind: Vec<&str> = not_evaluated.iter().map(|(id, _)| *id).collect();
    let verdict = Verdict::of(cx, &findings, &blind);
    let accounting = account(cx, moment(cx, &findings));
    let next = next::steps(cx, &not_evaluated);
    Diagnosis {
        verdict,
        findings,
        notes,
        earlier: Vec::new(),
        clear,
        not_evaluated,
        accounting,
        next,
    }
}

/// The moment that matters: where the least was available while the worst finding held, or at all where nothing was
/// found. Of moments alike the last one.
fn moment(cx: &Evidence<'_>, findings: &[Finding]) -> usize {
    let last = cx.timeline.len().saturating_sub(1);
    let held = findings.first().and_then(|finding| finding.when);
    // The sample before the first interval counts too: a kill ends the shortage that it is about.
    let (from, to) = held.map_or((0, last), |when| (when.first, when.last.min(last)));
    let tightest = cx.timeline.gauge(MEM_AVAILABLE).and_then(|available| {
        let measured = (from..=to).filter_map(|index| Some((available.at(index)?, index)));
        measured.min_by_key(|(available, index)| (*available, Reverse(*index)))
    });
    tightest.map_or(to, |(_, index)| index)
}

#[cfg(test)]
mod tests {
    use timeline::signals::MEM_FREE;
    use timeline::{Gauge, Sample, Signal};
    use units::{Bytes, Span};

    use super::*;
    use crate::finding::Severity;

    /// The moment that matters on these samples, where something was found from the one to the other.
    fn moment_of(samples: &[Sample], found: Option<(usize, usize)>) -> usize {
        let mut timeline = Timeline::default();
        for sample in samples {
            timeline.push(sample).expect("in order");
        }
        let facts = Facts::default();
        let findings = found.map(|(first, last)| {
            let when = timeline.stretch(first, last).expect("in order");
            rules::ALL[0].found(Severity::Warning, "").during(when)
        });
        moment(&Evidence::new(&timeline, &facts), findings.as_slice())
    }

    fn samples(signal: Signal<Gauge<Bytes>>, sizes: &[u64]) -> Vec<Sample> {
        let numbered = (0..).zip(sizes);
        let sample = numbered.map(|(second, mib)| {
            let mut sample = Sample::default();
            sample.stamp.boot = Span::from_secs(second);
            sample.host.set(signal, Bytes::from_mib(*mib));
            sample
        });
        sample.collect()
    }

    #[test]
    fn the_moment_that_matters_is_the_tightest_of_the_worst_finding_else_of_all() {
        let samples = samples(MEM_AVAILABLE, &[500, 90, 80, 300, 300, 20, 400]);
        for (found, matters) in [(None, 5), (Some((0, 4)), 2), (Some((3, 4)), 4)] {
            assert_eq!(moment_of(&samples, found), matters, "{found:?}");
        }
    }

    #[test]
    fn without_memavailable_it_is_the_last_of_what_was_found() {
        let samples = samples(MEM_FREE, &[5, 4, 3, 2]);
        for (found, matters) in [(None, 3), (Some((0, 2)), 2)] {
            assert_eq!(moment_of(&samples, found), matters, "{found:?}");
        }
        assert_eq!(moment_of(&[], None), 0);
    }
}
