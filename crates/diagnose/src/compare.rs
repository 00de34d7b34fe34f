//! Two sources held against each other: before and after a fix, a good and a bad host. What changed in the verdict, in
//! where memory is, in rates and in facts, and which fact explains it. Pure, and total: what one source lacks is told.
//!
//! A source is compared by what is typical of it, never by one look: [`memory`] and [`rates`] say how, [`spread`] when a
//! difference is more than noise.

mod basis;
mod cause;
mod figure;
mod findings;
mod headline;
mod length;
mod memory;
mod rates;
mod settings;
mod spread;

use std::cmp::Ordering;

use timeline::{Facts, Timeline};

pub use cause::{Cause, Sureness};
pub use figure::{Figure, Measure};
pub use findings::{Doubt, FindingChange, Found, Turn};
pub use memory::{AmountChange, AmountKind, Memory};
pub use rates::RateChange;
pub use settings::FactChange;
pub use spread::{Certainty, Contrast, Spread};

use crate::diagnosis::Diagnosis;
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::verdict::Level;

/// A source and what all rules say of it.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// Its samples.
    pub timeline: &'a Timeline,
    /// Its facts.
    pub facts: &'a Facts,
    /// What was found in it.
    pub diagnosis: &'a Diagnosis,
}

/// Where it went from before to after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Fewer or milder findings, or less of what they are about.
    Better,
    /// Neither better nor worse, as far as can be told.
    Same,
    /// More or graver findings, or more of what they are about.
    Worse,
    /// A side cannot be judged, or could not look for what the other found, or not for as long.
    Unknown,
}

/// Two sources held against each other.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Where it went.
    pub direction: Direction,
    /// In a line or two: the cause where a fact explains what changed, and the gravest finding that did; else what differs
    /// most.
    pub headline: String,
    /// What else is worth a sentence.
    pub more: Vec<String>,
    /// The fact that explains it.
    pub cause: Option<Cause>,
    /// What makes the two hard to compare, in sentences; to be said first.
    pub basis: Vec<String>,
    /// Findings of either side; those that changed first.
    pub findings: Vec<FindingChange>,
    /// Where memory was.
    pub memory: Memory,
    /// How fast things went; the largest effect first.
    pub rates: Vec<RateChange>,
    /// Facts that differ or that one side does not tell; those that explain first.
    pub facts: Vec<FactChange>,
}

/// Holds two sources against each other.
pub fn compare(before: Compared<'_>, after: Compared<'_>) -> Comparison {
    let old = Evidence::new(before.timeline, before.facts);
    let new = Evidence::new(after.timeline, after.facts);
    let findings = findings::compare(before, after);
    let memory = Memory::compare(&old, &new);
    let rates = rates::compare(&old, &new);
    let mut facts = settings::compare(&old, &new);
    let it = cause::Differences {
        before: before.diagnosis,
        after: after.diagnosis,
        findings: &findings,
        facts: &facts,
        amounts: &memory.amounts,
        rates: &rates,
        sides: (&old, &new),
        is_diluted: length::is_diluted(before, after),
    };
    let cause = cause::find(&it);
    let direction = direction(&it);
    let (headline, more) = headline::of(&it, direction, cause.as_ref());
    let names = cause.iter().flat_map(|cause| &cause.facts);
    let names: Vec<&str> = names.copied().collect();
    for fact in &mut facts {
        fact.explains = names.contains(&fact.name);
    }
    facts.sort_by_key(|fact| (!fact.explains, !fact.differs()));
    Comparison {
        direction,
        headline,
        more,
        cause,
        basis: basis::tell(&old, &new),
        findings,
        memory,
        rates,
        facts,
    }
}

/// The verdicts decide; where they are alike, findings of weight; where these are, what they cost.
fn direction(it: &cause::Differences<'_>) -> Direction {
    let rank = |level: Level| match level {
        Level::Ok => Some(0),
        Level::Warning => Some(1),
        Level::Critical => Some(2),
        Level::Unknown => None,
    };
    let levels = rank(it.before.verdict.level).zip(rank(it.after.verdict.level));
    let Some((before, after)) = levels else {
        return Direction::Unknown;
    };
    let of_weight = || {
        let roots = it.findings.iter().filter(|change| change.is_root());
        roots.filter(|change| change.severity() > Some(Severity::Info))
    };
    if of_weight().any(|change| change.turn() == Turn::Unknown) {
        return Direction::Unknown;
    }
    let turned = |turns: [Turn; 2]| of_weight().any(|change| turns.contains(&change.turn()));
    let (worse, better) = (
        turned([Turn::New, Turn::Graver]),
        turned([Turn::Gone, Turn::Milder]),
    );
    match (after.cmp(&before), worse, better) {
        // A new disease in the place of another of the same weight is no cure.
        (Ordering::Greater, _, _) | (Ordering::Equal, true, _) => Direction::Worse,
        (Ordering::Less, _, _) | (_, _, true) => Direction::Better,
        _ if before == 0 => Direction::Same,
        _ => match by_cost(it.rates) {
            // A mean over hours of which minutes were ill.
            Direction::Better | Direction::Worse if it.is_diluted => Direction::Unknown,
            direction => direction,
        },
    }
}

/// Of two sides that are ill alike: the one whose stalls, swapping and refaults rose, where all that moved agree.
fn by_cost(rates: &[RateChange]) -> Direction {
    let costs: Vec<(f64, f64)> = rates
        .iter()
        .filter(|rate| rate.is_cost && rate.is_clear())
        .filter_map(RateChange::means)
        .collect();
    let rose = |(before, after): &(f64, f64)| after > before;
    match (
        costs.is_empty(),
        costs.iter().all(rose),
        costs.iter().any(rose),
    ) {
        (true, _, _) => Direction::Same,
        (_, true, _) => Direction::Worse,
        (_, _, false) => Direction::Better,
        _ => Direction::Same,
    }
}

#[cfg(test)]
mod tests;
