//! Compares two sources: before and after a fix, a good and a bad host. What changed in the verdict, in where memory
//! is, in rates and in facts, and which fact explains it. Pure and total: what one source lacks is reported.
//!
//! A source is compared by what is typical of it, never by one sample: [`memory`] and [`rates`] say how, [`spread`]
//! when a difference is more than noise.

mod basis;
mod cause;
mod decision;
mod differences;
mod figure;
mod findings;
mod headline;
mod length;
mod memory;
mod movement;
mod rates;
mod settings;
mod spread;
mod statement;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::ancestors;
use timeline::{Entity, Facts, Timeline};

pub use cause::{Cause, CauseStrength};
pub use figure::{Figure, Measure};
pub use findings::{FindingChange, FindingCost, Found, NotComparable, Turn};
pub use memory::{AmountChange, AmountKind, Memory};
pub use rates::RateChange;
pub use settings::FactChange;
pub use spread::{Contrast, Significance, Spread};
pub use statement::{
    DoubtReason, FindingDoubt, MemoryUse, Moved, SourceSide, Statement, UseWaiting,
};

use self::decision::Decision;
use crate::evidence::Evidence;
use crate::judge::Diagnosis;

/// A source and its diagnosis.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// Its samples.
    pub timeline: &'a Timeline,
    /// Its facts.
    pub facts: &'a Facts,
    /// Its diagnosis.
    pub diagnosis: &'a Diagnosis,
}

/// Where it went from before to after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Fewer or less severe findings, or less waiting.
    Better,
    /// Nothing that matters differs.
    Same,
    /// Something large differs, and whether that is better or worse is not known: more memory in use, for which nothing waits.
    Different,
    /// More or worse findings, or more waiting.
    Worse,
    /// A side cannot be judged, or could not look for what the other found, or not for long enough.
    Unknown,
}

/// The comparison of two sources.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Whether after is better or worse than before.
    pub direction: Direction,
    /// One or two lines: the cause where a fact explains what changed, and the most severe finding that changed; else
    /// what differs most.
    pub headline: Vec<Statement>,
    /// Further statements.
    pub more: Vec<Statement>,
    /// Whether the hosts' RAM differs: amounts are then compared as shares of it.
    pub is_other_size: bool,
    /// The fact that explains the change.
    pub cause: Option<Cause>,
    /// What makes the two sources hard to compare, in sentences; shown first.
    pub basis: Vec<String>,
    /// Findings of either side; those that changed come first.
    pub findings: Vec<FindingChange>,
    /// Where memory was.
    pub memory: Memory,
    /// Rates of both sides, the largest effect first.
    pub rates: Vec<RateChange>,
    /// Facts that differ or that one side lacks; those that explain the change come first.
    pub facts: Vec<FactChange>,
}

/// Compares two sources.
pub fn compare(before: Compared<'_>, after: Compared<'_>) -> Comparison {
    let old = Evidence::new(before.timeline, before.facts);
    let new = Evidence::new(after.timeline, after.facts);
    let mut findings = findings::both(before, after);
    length::doubt(before, after, &mut findings);
    findings::order(&mut findings);
    let memory = Memory::compare(&old, &new);
    let rates = rates::compare(&old, &new);
    let mut facts = settings::compare(&old, &new);
    let around = [before, after]
        .into_iter()
        .flat_map(|side| &side.diagnosis.findings)
        .filter(|finding| finding.scope.entity == Entity::Cgroup)
        .flat_map(|finding| ancestors(&finding.scope.key))
        .collect();
    facts.extend(settings::limits(&old, &new, &around));
    let it = differences::Differences {
        before: before.diagnosis,
        after: after.diagnosis,
        findings: &findings,
        facts: &facts,
        amounts: &memory.amounts,
        rates: &rates,
        sides: (&old, &new),
    };
    let decision = Decision::from_differences(&it);
    let direction = decision.direction;
    let cause = cause::find(&it, &decision);
    let (headline, more) = headline::statements(&it, &decision, cause.as_ref());
    let is_other_size = it.is_other_size();
    let names = cause.iter().flat_map(|cause| &cause.facts);
    let names: Vec<Cow<'static, str>> = names.cloned().collect();
    for fact in &mut facts {
        fact.explains = names.contains(&fact.name);
    }
    facts.sort_by_key(|fact| (!fact.explains, !fact.differs()));
    Comparison {
        direction,
        headline,
        more,
        is_other_size,
        cause,
        basis: basis::remarks(&old, &new),
        findings,
        memory,
        rates,
        facts,
    }
}

#[cfg(test)]
mod tests;
