//! The answer of `compare`: two sources, and what changed from one to the other.

use diagnose::compare::{
    AmountChange, AmountKind, Cause, Comparison, Direction, FactChange, FindingChange, Found,
    RateChange, Significance, Spread, Turn,
};
use diagnose::{Diagnosis, Level, Severity};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Ratio, SignedBytes, Span};

use super::{Host, Source};
use crate::phrases::compare::headline;

/// Name and version of the contract of `compare`.
pub const COMPARE_SCHEMA: &str = "memtide-compare/1";

/// The whole answer of `compare`.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompareReport {
    /// Name and version of this contract; a change that readers must know of is another version.
    #[schemars(extend("const" = "memtide-compare/1"))]
    pub schema: &'static str,
    /// Where it went; also the exit code: better, same and different 0, worse 1, unknown 3.
    pub direction: Direction,
    /// In a line or two: the cause where a fact explains what changed, and the worst finding that did; else what differs
    /// most.
    pub headline: String,
    /// What else is worth a sentence.
    pub more: Vec<String>,
    /// The facts that explain it; null where none does.
    pub cause: Option<Cause>,
    /// What makes the two hard to compare, in sentences: other lengths, intervals, sizes; breaks; too few samples.
    pub basis: Vec<String>,
    pub before: Side,
    pub after: Side,
    /// Findings of either side; those that changed first, the worst first.
    pub findings: Vec<FindingEntry>,
    /// Where memory was; the largest change relative to RAM first.
    pub memory: Vec<AmountEntry>,
    /// How fast things went; the largest effect first.
    pub rates: Vec<RateEntry>,
    /// Facts that differ, or that one side lacks; those that explain first.
    pub facts: Vec<FactChange>,
}

/// One of the two sources.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    pub host: Host,
    /// Where the samples came from.
    pub source: Source,
    /// How it stood.
    pub verdict: Level,
    /// Its verdict in one or two sentences.
    pub headline: String,
    /// The typical sample, the one compared, in seconds from the first; null where the source has no MemTotal.
    pub typical_s: Option<Span>,
}

/// What a rule found in one thing, on either side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FindingEntry {
    /// Id of the rule.
    pub id: String,
    /// In what it happened, without ids of containers; null for the host.
    pub place: Option<String>,
    /// How it changed.
    pub change: Turn,
    /// As it was found before; null where it was not.
    pub before: Option<FoundEntry>,
    /// As it was found after; null where it was not.
    pub after: Option<FoundEntry>,
}

/// A finding on one side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FoundEntry {
    /// How much it matters.
    pub severity: Severity,
    /// Its sentence.
    pub title: String,
    /// Id of the finding that it follows from; null for a root.
    pub caused_by: Option<String>,
    /// How often it came; 0 for a state without a beginning.
    pub times: usize,
    /// How long it lasted in all; null for a state without a beginning.
    pub lasted_s: Option<Span>,
    /// How long tasks waited; null where that is not measured, or nobody need wait.
    pub waited_s: Option<Span>,
    /// Processes that were killed.
    pub killed: u64,
    /// For how long this side was watched.
    pub watched_s: Span,
    /// How often it came per hour that was watched.
    pub times_per_hour: Option<f64>,
    /// How long tasks waited per hour that was watched.
    pub waited_s_per_hour: Option<Span>,
}

/// An amount of memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AmountEntry {
    /// What kind it is.
    pub kind: AmountKind,
    /// Id of the term, name of the signal, or name of the owner.
    pub name: String,
    /// What people call it; a name from the host where it is an owner.
    pub label: String,
    /// How much before; null where that source lacks it.
    pub before_bytes: Option<SignedBytes>,
    /// How much after.
    pub after_bytes: Option<SignedBytes>,
    /// The same as a share of RAM.
    pub before_share: Option<Ratio>,
    /// The same as a share of RAM.
    pub after_share: Option<Ratio>,
    /// The change in words; null where one side lacks it.
    pub change: Option<String>,
    /// Whether it changed; null where one side lacks it.
    pub significance: Option<Significance>,
    /// Whether it is worth a line: it changed, or that is unknown, or it is large and one side lacks it.
    pub is_worth_a_line: bool,
}

/// A rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RateEntry {
    /// Name of its main signal.
    pub name: String,
    /// What people call it.
    pub label: String,
    /// Unit of all its values.
    pub unit: &'static str,
    /// Whether more of it is worse for the work.
    pub is_cost: bool,
    /// How it was before; null where that source does not have it.
    pub before: Option<SpreadEntry>,
    /// How it was after.
    pub after: Option<SpreadEntry>,
    /// The change of the mean in words; null where one side does not have it.
    pub change: Option<String>,
    /// Cliff's delta over all pairs of intervals: from -1 (every one before is larger) to 1. Null where one side does not
    /// have it.
    pub lead: Option<f64>,
    /// Whether it changed; null where one side does not have it.
    pub significance: Option<Significance>,
}

/// Values of the intervals of one side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SpreadEntry {
    /// The mean over the watched time.
    pub mean: f64,
    /// A tenth of the values lies below.
    pub p10: f64,
    /// The value in the middle.
    pub median: f64,
    /// A tenth of the values lies above.
    pub p90: f64,
    /// The mean as people read it.
    pub text: String,
    /// p10 and p90 as people read them.
    pub range_text: String,
    /// How many intervals.
    pub intervals: usize,
}

impl CompareReport {
    /// The answer of `compare`.
    pub fn new(it: &Comparison, before: Side, after: Side) -> Self {
        Self {
            schema: COMPARE_SCHEMA,
            direction: it.direction,
            headline: headline::lead(it),
            more: headline::more(it),
            cause: it.cause.clone(),
            basis: it.basis.clone(),
            before,
            after,
            findings: it.findings.iter().map(finding).collect(),
            memory: it.memory.amounts.iter().map(amount).collect(),
            rates: it.rates.iter().map(rate).collect(),
            facts: it.facts.clone(),
        }
    }
}

impl Side {
    /// One source of a comparison, with what was found in it and the time of its typical sample.
    pub fn new(source: &timeline::Source, diagnosis: &Diagnosis, typical: Option<Span>) -> Self {
        Self {
            host: Host::new(source),
            source: Source::new(source),
            verdict: diagnosis.verdict.level,
            headline: diagnosis.verdict.headline.clone(),
            typical_s: typical,
        }
    }
}

fn finding(change: &FindingChange) -> FindingEntry {
    let found = |found: &Found| FoundEntry {
        severity: found.severity,
        title: found.title.to_string(),
        caused_by: found.caused_by.map(str::to_owned),
        times: found.cost.times,
        lasted_s: found.cost.lasted,
        waited_s: found.cost.waited,
        killed: found.cost.killed,
        watched_s: found.cost.watched,
        times_per_hour: found.cost.times_an_hour(),
        waited_s_per_hour: found.cost.waited_an_hour(),
    };
    FindingEntry {
        id: change.id.to_owned(),
        place: change.place.clone(),
        change: change.turn(),
        before: change.before.as_ref().map(found),
        after: change.after.as_ref().map(found),
    }
}

fn amount(change: &AmountChange) -> AmountEntry {
    AmountEntry {
        kind: change.kind,
        name: change.name.clone(),
        label: change.label.clone(),
        before_bytes: change.before.map(SignedBytes::new),
        after_bytes: change.after.map(SignedBytes::new),
        before_share: change.before_share,
        after_share: change.after_share,
        change: change.change(),
        significance: change.significance,
        is_worth_a_line: change.is_worth_a_line(),
    }
}

fn rate(change: &RateChange) -> RateEntry {
    let spread = |it: &Spread| {
        let [p10, p90] = [0.1, 0.9].map(|share| it.quantile(Ratio::new(share)));
        let text = |value| change.measure.figure(value).to_string();
        SpreadEntry {
            mean: it.mean,
            p10,
            median: it.median(),
            p90,
            text: text(it.mean),
            range_text: format!("{} to {}", text(p10), text(p90)),
            intervals: it.count(),
        }
    };
    RateEntry {
        name: change.name.to_owned(),
        label: change.label.to_owned(),
        unit: change.measure.unit(),
        is_cost: change.is_cost,
        before: change.before.as_ref().map(spread),
        after: change.after.as_ref().map(spread),
        change: change.change(),
        lead: change.contrast.map(|it| it.lead),
        significance: change.contrast.map(|it| it.significance),
    }
}
