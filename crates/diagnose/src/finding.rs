//! A rule's finding: the evidence to believe it and the means to act on it.

mod evidence_line;
mod fix;
mod graph;
mod occasion;
mod proven;
mod sentence;
mod severity;
mod title;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::{Stretch, Track};
use units::{Quantity, Span};

pub(crate) use evidence_line::{Computed, Says};
pub use evidence_line::{EvidenceLine, Measured, Threshold, ThresholdSide};
pub use fix::{
    Fix, FixChange, Inspection, Lasting, LimitChange, LimitFile, SettingChange, SettingValue,
    ShellCommand, SmallLimit,
};
pub use graph::Graph;
pub use occasion::{Bursts, Harm, Occasion, Scope};
pub(crate) use sentence::capital;
pub use severity::{Confidence, Severity, Sureness};
pub use title::Title;

/// A look-alike that the evidence excludes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuledOut {
    /// Id of a rule, or a short name for what has no rule.
    pub id: &'static str,
    /// Why it is not that.
    pub because: String,
}

/// A service, process, cgroup, node or device that a finding is about.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Affected {
    /// `process`, `cgroup`, `node`, `disk`, `slab cache`, …
    pub kind: &'static str,
    /// Its name as the kernel gives it.
    pub name: String,
    /// What about it, with numbers.
    pub what: String,
}

impl Affected {
    /// One of a kind, and what about it.
    pub(crate) fn new(
        kind: &'static str,
        name: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self { kind, name: name.into(), what: what.into() }
    }
}

/// A problem or a note that a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id of the rule.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The effect, the number, the cause, and what adds to it.
    pub title: Title,
    /// Whether the verdict's headline begins with its title.
    pub is_headline: bool,
    /// Whether it happened at the moment that was asked about; set with the order of the findings.
    pub(crate) is_asked: bool,
    /// Whether it ended before the end of the source; set with the order of the findings.
    pub is_over: bool,
    /// In how long what it foretells happens: a limit is met.
    pub(crate) foretells_in: Option<Span>,
    /// The longest interval in which it held, which the evidence is about. `None` for a state without a beginning.
    pub when: Option<Stretch>,
    /// How long before the first sample it happened, if only the kernel log shows it; `when` is then `None`.
    pub before: Option<Span>,
    /// Lines that prove it, the strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// What it is not.
    pub ruled_out: Vec<RuledOut>,
    /// Why it happens.
    pub cause: String,
    /// What to do.
    pub fixes: Vec<Fix>,
    /// How to see that the fix worked.
    pub verify: String,
    /// Services, processes, cgroups, nodes or devices that suffer from it or cause it.
    pub affected: Vec<Affected>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Kernel documentation, articles.
    pub references: Vec<&'static str>,
    /// Other ids that readers may know it by.
    pub aliases: Vec<&'static str>,
    /// The course of its main signal.
    pub graph: Option<Graph>,
    /// The rule of the finding that this one follows from; set after all rules have been evaluated.
    pub caused_by: Option<&'static str>,
    /// The host or the entity in which it happened.
    pub scope: Scope,
    /// What it cost, all occasions together.
    pub harm: Harm,
    /// All its occasions, in order of time; empty for a state without a beginning.
    pub occasions: Vec<Occasion>,
    /// The event that the kernel reported, if the finding is about one.
    pub(crate) event: Option<KernelEvent>,
    /// The independent kinds of evidence that its lines belong to, in the order of the lines: the basis of its
    /// confidence.
    pub(crate) kinds: Vec<&'static str>,
}

/// A rule's answer for a source. If it cannot answer, the result is an `Err` with [`Missing`](crate::evidence::Missing).
#[derive(Debug)]
pub enum Outcome {
    /// The rule found a problem.
    Found(Box<Finding>),
    /// The rule found no problem, and why that is certain.
    Clear(String),
}

impl From<Finding> for Outcome {
    fn from(finding: Finding) -> Self {
        Self::Found(Box::new(finding))
    }
}

/// What a kernel report is about, the most severe last. A finding with an event sorts before levels of the same
/// severity, whatever caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KernelEvent {
    /// An allocation failed, and no process was killed for it.
    FailedAllocation,
    /// The OOM killer began: neither its victim nor the reason is shown.
    KillBegun,
    /// A kill in a part of the host (a cgroup, some nodes), or by hand.
    Kill,
    /// A kill for a shortage of the whole host.
    HostKill,
}

// Statements of a story about evidence that a source may lack.
impl Finding {
    /// The limit that its fixes raise.
    pub(crate) fn small_limit(&self) -> Option<&SmallLimit> {
        self.fixes.iter().find_map(|fix| fix.raises.as_ref())
    }

    /// Continues with a value if there is one.
    #[must_use]
    pub(crate) fn with<T>(self, value: Option<T>, go_on: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => go_on(self, value),
            None => self,
        }
    }

    /// Continues with a part of the story that is a separate function.
    #[must_use]
    pub(crate) fn and(self, go_on: impl FnOnce(Self) -> Self) -> Self {
        go_on(self)
    }

    /// Continues if a condition holds.
    #[must_use]
    pub(crate) fn when(self, holds: bool, go_on: impl FnOnce(Self) -> Self) -> Self {
        if holds { go_on(self) } else { self }
    }

    /// Shows a level that counts from a threshold up, and is worth showing below it too.
    #[must_use]
    pub(crate) fn shows_level<Q: Quantity>(
        self,
        signal: impl Says<Q>,
        level: Q,
        threshold: Q,
        at: Option<Span>,
        text: impl Into<String>,
    ) -> Self {
        if level >= threshold {
            self.shows_from(signal, level, threshold, at, text).counts_as("the level")
        } else {
            self.shows(signal, level, at, text)
        }
    }

    /// Counts the evidence added so far as several kinds.
    #[must_use]
    pub(crate) fn counts_as_all(self, kinds: impl IntoIterator<Item = &'static str>) -> Self {
        kinds.into_iter().fold(self, Self::counts_as)
    }

    /// Counts the evidence added so far as this kind, too: see [`Finding::sure_by_kinds`].
    #[must_use]
    pub(crate) fn counts_as(mut self, kind: &'static str) -> Self {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        self
    }

    /// Counts the evidence added so far as this kind, if it is strong enough.
    #[must_use]
    pub(crate) fn counts_if(self, is_strong: bool, kind: &'static str) -> Self {
        self.when(is_strong, |finding| finding.counts_as(kind))
    }

    /// Counts all evidence added so far as one kind, if a condition holds.
    #[must_use]
    pub(crate) fn counts_once_if(mut self, is_one: bool) -> Self {
        if is_one {
            self.kinds.truncate(1);
        }
        self
    }

    /// Limits the confidence, however many kinds of evidence agree.
    #[must_use]
    pub(crate) fn sure_at_most(mut self, most: f64) -> Self {
        self.confidence.value = self.confidence.value.min(most);
        self
    }
}

impl Finding {
    /// Starts a finding of the rule with this id; the methods below complete it.
    pub(crate) fn new(id: &'static str, severity: Severity, title: impl Into<Title>) -> Self {
        Self {
            id,
            severity,
            title: title.into(),
            is_headline: false,
            is_asked: false,
            is_over: false,
            foretells_in: None,
            when: None,
            before: None,
            evidence: Vec::new(),
            ruled_out: Vec::new(),
            cause: String::new(),
            fixes: Vec::new(),
            verify: String::new(),
            affected: Vec::new(),
            confidence: Confidence { value: 0.0, why: String::new() },
            references: Vec::new(),
            aliases: Vec::new(),
            graph: None,
            caused_by: None,
            scope: Scope::host(),
            harm: Harm::default(),
            occasions: Vec::new(),
            event: None,
            kinds: Vec::new(),
        }
    }

    /// Sets the graph of its main signal.
    #[must_use]
    pub(crate) fn graph<Q: Quantity>(mut self, label: &str, track: &Track<Q>) -> Self {
        self.graph = Graph::new(label, track);
        self
    }

    /// Sets in how long what it foretells happens.
    #[must_use]
    pub(crate) const fn foretells_in(mut self, left: Option<Span>) -> Self {
        self.foretells_in = left;
        self
    }

    /// Sets its interval, if that is not the incident's own.
    #[must_use]
    pub(crate) fn during(mut self, stretch: Stretch) -> Self {
        self.when = Some(stretch);
        self
    }

    /// Converts sample numbers of a window, which begins at sample `first`, to those of the whole timeline.
    pub(crate) fn move_by(&mut self, first: usize) {
        let occasions = self.occasions.iter_mut().map(|one| &mut one.stretch);
        let stretches = self.when.iter_mut();
        for stretch in stretches.chain(occasions) {
            stretch.first += first;
            stretch.last += first;
        }
        if let Some(graph) = &mut self.graph {
            graph.first += first;
        }
    }

    /// Makes its title the headline, and returns it.
    pub(crate) fn lead(&mut self) -> String {
        self.is_headline = true;
        self.title.to_string()
    }

    /// Returns the one occasion that it is about so far.
    pub(crate) fn occasion(&self) -> Option<Occasion> {
        Some(Occasion {
            stretch: self.when?,
            severity: self.severity,
            confidence: self.confidence.value,
            harm: self.harm,
            title: self.title.to_string(),
        })
    }

    /// Returns every interval in which it happened, in order.
    pub fn stretches(&self) -> Vec<Stretch> {
        if self.occasions.is_empty() {
            return self.when.into_iter().collect();
        }
        self.occasions.iter().map(|one| one.stretch).collect()
    }

    /// Returns how long it lasted in all; `None` for a state without a beginning.
    pub fn duration(&self) -> Option<Span> {
        let lasted = self.stretches().iter().map(Stretch::duration).reduce(Span::plus);
        lasted.filter(|_| self.when.is_some())
    }

    /// Shows a value of a signal; `at` is set if the value belongs to one moment.
    #[must_use]
    pub(crate) fn shows<Q: Quantity>(
        self,
        signal: impl Says<Q>,
        value: Q,
        at: Option<Span>,
        text: impl Into<String>,
    ) -> Self {
        self.measured(signal.name(), value, None, at, text.into())
    }

    /// Shows a value of a signal that counts from a threshold up.
    #[must_use]
    pub(crate) fn shows_from<Q: Quantity>(
        self,
        signal: impl Says<Q>,
        value: Q,
        threshold: Q,
        at: Option<Span>,
        text: impl Into<String>,
    ) -> Self {
        let threshold = Some((ThresholdSide::From, threshold));
        self.measured(signal.name(), value, threshold, at, text.into())
    }

    /// Shows a value of a signal that counts from a threshold down.
    #[must_use]
    pub(crate) fn shows_below<Q: Quantity>(
        self,
        signal: impl Says<Q>,
        value: Q,
        threshold: Q,
        at: Option<Span>,
        text: impl Into<String>,
    ) -> Self {
        let threshold = Some((ThresholdSide::Below, threshold));
        self.measured(signal.name(), value, threshold, at, text.into())
    }

    fn measured<Q: Quantity>(
        mut self,
        signal: &'static str,
        value: Q,
        threshold: Option<(ThresholdSide, Q)>,
        at: Option<Span>,
        text: String,
    ) -> Self {
        self.evidence.push(EvidenceLine {
            measured: Some(Measured {
                signal,
                value: value.as_f64(),
                unit: Q::NAME,
                text: value.to_string(),
                threshold: threshold.map(|(side, threshold)| Threshold {
                    value: threshold.as_f64(),
                    side,
                    text: format!("{} {threshold}", side.symbol()),
                }),
            }),
            at,
            text,
        });
        self
    }

    /// Adds a line of evidence that is not a measurement: an order, a gap, a name.
    #[must_use]
    pub(crate) fn with_line(mut self, text: impl Into<String>) -> Self {
        self.add_line(text.into());
        self
    }

    /// As [`with_line`](Self::with_line).
    pub(crate) fn add_line(&mut self, text: String) {
        self.add_line_at(None, text);
    }

    /// The same for a line that belongs to a moment.
    pub(crate) fn add_line_at(&mut self, at: Option<Span>, text: String) {
        self.evidence.push(EvidenceLine { measured: None, at, text });
    }

    /// Unit of evidence that is a setting.
    pub(crate) const SETTING: &str = "setting";

    /// Shows a setting that matters, with its value.
    #[must_use]
    pub(crate) fn shows_fact(
        mut self,
        fact: timeline::Fact,
        value: u64,
        text: impl Into<String>,
    ) -> Self {
        #[allow(clippy::cast_precision_loss)]
        self.evidence.push(EvidenceLine {
            measured: Some(Measured {
                signal: fact.name,
                value: value as f64,
                unit: Self::SETTING,
                text: value.to_string(),
                threshold: None,
            }),
            at: None,
            text: text.into(),
        });
        self
    }

    /// Excludes a look-alike.
    #[must_use]
    pub(crate) fn not(mut self, id: &'static str, because: impl Into<String>) -> Self {
        self.ruled_out.push(RuledOut { id, because: because.into() });
        self
    }

    /// Sets why it happens.
    #[must_use]
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Sets how many processes were killed at least.
    #[must_use]
    pub(crate) fn killed(mut self, count: u64) -> Self {
        self.harm.killed = self.harm.killed.max(count);
        self
    }

    /// Adds a fix.
    #[must_use]
    pub(crate) fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    /// Sets how to see that the fix worked.
    #[must_use]
    pub(crate) fn verify(mut self, how: impl Into<String>) -> Self {
        self.verify = how.into();
        self
    }

    /// Adds services, processes, cgroups, nodes or devices that suffer from it or cause it.
    #[must_use]
    pub(crate) fn affects(mut self, affected: impl IntoIterator<Item = Affected>) -> Self {
        self.affected.extend(affected);
        self
    }

    /// Sets the confidence; see [`Evidence::confidence`](crate::Evidence::confidence).
    #[must_use]
    pub(crate) fn sure(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }
}
