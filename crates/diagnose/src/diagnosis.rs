//! All rules on one source, and what comes out.

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
    /// What RAM held at the moment that matters: the tightest of the worst finding, else the last.
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

/// The sample whose memory is worth showing: where the least was available while the worst finding held.
fn moment(cx: &Evidence<'_>, findings: &[Finding]) -> usize {
    let last = cx.timeline.len().saturating_sub(1);
    let tightest = || {
        let stretch = findings.first()?.when?;
        let available = cx.timeline.gauge(MEM_AVAILABLE)?;
        // The sample before the first interval counts too: a kill ends the shortage that it is about.
        (stretch.first..=stretch.last)
            .filter_map(|index| Some((available.at(index)?, index)))
            .min()
            .map(|(_, index)| index)
    };
    tightest().unwrap_or(last)
}
