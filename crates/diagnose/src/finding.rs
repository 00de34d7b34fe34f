//! What a rule found, with everything a reader needs to believe it and to act.

mod evidence_line;
mod fix;
mod graph;
mod occasion;
mod severity;

use timeline::{Stretch, Track};
use units::{Quantity, Span};

pub(crate) use evidence_line::{Computed, Says};
pub use evidence_line::{EvidenceLine, Measured, Threshold, ThresholdSide};
pub use fix::Fix;
pub use graph::Graph;
pub use occasion::{Bursts, Harm, Occasion, Scope};
pub use severity::{Confidence, Severity};

/// A look-alike that the evidence excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuledOut {
    /// Id of a rule, or a short name for what has no rule.
    pub id: &'static str,
    /// Why it is not that.
    pub because: String,
}

/// A service, process, cgroup, node or device that a finding is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Affected {
    /// `process`, `cgroup`, `node`, `disk`, `slab cache`, …
    pub kind: &'static str,
    /// Its name as the kernel gives it: untrusted text.
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
        Self {
            kind,
            name: name.into(),
            what: what.into(),
        }
    }
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id of the rule.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence: the effect, the number, the cause.
    pub title: String,
    /// When it held, the longest time of several: what the evidence is about. `None` where it is about a state without a
    /// beginning.
    pub when: Option<Stretch>,
    /// How long before the first sample it was, where only the kernel log has it; `when` is then `None`.
    pub before: Option<Span>,
    /// What proves it; the strongest first.
    pub evidence: Vec<EvidenceLine>,
    /// What it is not.
    pub ruled_out: Vec<RuledOut>,
    /// Why it happens.
    pub cause: String,
    /// What to do.
    pub fixes: Vec<Fix>,
    /// How to see that the fix worked.
    pub verify: String,
    /// Whom it hits or who does it.
    pub affected: Vec<Affected>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Kernel documentation, articles.
    pub references: Vec<&'static str>,
    /// Other ids that a reader may know it by.
    pub aliases: Vec<&'static str>,
    /// How its main signal ran.
    pub graph: Option<Graph>,
    /// The rule of the finding that this one follows from; set when all rules have spoken.
    pub caused_by: Option<&'static str>,
    /// In what it happened.
    pub scope: Scope,
    /// What it cost, all times together.
    pub harm: Harm,
    /// Each time that it happened, in order; empty where it is a state without a beginning.
    pub occasions: Vec<Occasion>,
    /// The event that the kernel reported, if the finding is about one.
    pub(crate) event: Option<KernelEvent>,
    /// The independent kinds of evidence that its lines are of, in their order: what its confidence rests on.
    pub(crate) kinds: Vec<&'static str>,
}

/// What a rule says of a source. What it could not say is its `Err`: [`Missing`].
#[derive(Debug)]
pub enum Outcome {
    /// It is there.
    Found(Box<Finding>),
    /// It is not there, and why that is certain.
    Clear(String),
}

impl From<Finding> for Outcome {
    fn from(finding: Finding) -> Self {
        Self::Found(Box::new(finding))
    }
}

/// What a kernel report is about. An event sorts before levels of the same severity, whatever caused it; the most severe last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KernelEvent {
    /// An allocation failed, and no process was killed for it.
    FailedAllocation,
    /// A kill that is about a part of the host: a cgroup, some nodes, by hand.
    Kill,
    /// A kill of the host itself.
    HostKill,
}

// Evidence that a source may lack, each shape as one statement of a story.
impl Finding {
    /// Goes on with a value where there is one.
    #[must_use]
    pub(crate) fn with<T>(self, value: Option<T>, go_on: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => go_on(self, value),
            None => self,
        }
    }

    /// Goes on with a part of the story that is a function of its own.
    #[must_use]
    pub(crate) fn and(self, go_on: impl FnOnce(Self) -> Self) -> Self {
        go_on(self)
    }

    /// Goes on where a condition holds.
    #[must_use]
    pub(crate) fn when(self, holds: bool, go_on: impl FnOnce(Self) -> Self) -> Self {
        if holds { go_on(self) } else { self }
    }

    /// A level that counts from a threshold up, and is worth showing below it too.
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
            self.shows_from(signal, level, threshold, at, text)
                .counts_as("the level")
        } else {
            self.shows(signal, level, at, text)
        }
    }

    /// Several kinds.
    #[must_use]
    pub(crate) fn counts_as_all(self, kinds: impl IntoIterator<Item = &'static str>) -> Self {
        kinds.into_iter().fold(self, Self::counts_as)
    }

    /// The evidence added so far is of this kind, too: see [`Finding::sure_by_kinds`].
    #[must_use]
    pub(crate) fn counts_as(mut self, kind: &'static str) -> Self {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        self
    }

    /// The same, where it is strong enough.
    #[must_use]
    pub(crate) fn counts_if(self, is_strong: bool, kind: &'static str) -> Self {
        self.when(is_strong, |finding| finding.counts_as(kind))
    }

    /// All that was added so far counts as one kind where a condition holds.
    #[must_use]
    pub(crate) fn counts_once_if(mut self, is_one: bool) -> Self {
        if is_one {
            self.kinds.truncate(1);
        }
        self
    }

    /// No surer than this, however many kinds of evidence agree.
    #[must_use]
    pub(crate) fn sure_at_most(mut self, most: f64) -> Self {
        self.confidence.value = self.confidence.value.min(most);
        self
    }
}

impl Finding {
    /// A finding of the rule with this id, to be completed by the methods below.
    pub(crate) fn new(id: &'static str, severity: Severity, title: impl Into<String>) -> Self {
        Self {
            id,
            severity,
            title: title.into(),
            when: None,
            before: None,
            evidence: Vec::new(),
            ruled_out: Vec::new(),
            cause: String::new(),
            fixes: Vec::new(),
            verify: String::new(),
            affected: Vec::new(),
            confidence: Confidence {
                value: 0.0,
                why: String::new(),
            },
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

    /// How its main signal ran.
    #[must_use]
    pub(crate) fn graph<Q: Quantity>(mut self, label: &str, track: &Track<Q>) -> Self {
        self.graph = Graph::new(label, track);
        self
    }

    /// When it was, where that is not the incident's own time.
    #[must_use]
    pub(crate) fn during(mut self, stretch: Stretch) -> Self {
        self.when = Some(stretch);
        self
    }

    /// Puts what a window showed on the samples of the whole.
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

    /// The one time that it is about so far.
    pub(crate) fn occasion(&self) -> Option<Occasion> {
        Some(Occasion {
            stretch: self.when?,
            severity: self.severity,
            confidence: self.confidence.value,
            harm: self.harm,
            title: self.title.clone(),
        })
    }

    /// Every time at which it happened, in order.
    pub fn stretches(&self) -> Vec<Stretch> {
        if self.occasions.is_empty() {
            return self.when.into_iter().collect();
        }
        self.occasions.iter().map(|one| one.stretch).collect()
    }

    /// How long it lasted in all; `None` where it is a state without a beginning.
    pub fn duration(&self) -> Option<Span> {
        let lasted = self
            .stretches()
            .iter()
            .map(Stretch::duration)
            .reduce(Span::plus);
        lasted.filter(|_| self.when.is_some())
    }

    /// A value of a signal; `at` where it belongs to one moment.
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

    /// A value of a signal that counts from a threshold up.
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

    /// A value of a signal that counts from a threshold down.
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

    /// A line of evidence that is no measurement: an order, a gap, a name.
    #[must_use]
    pub(crate) fn with_line(mut self, text: impl Into<String>) -> Self {
        self.evidence.push(EvidenceLine {
            measured: None,
            at: None,
            text: text.into(),
        });
        self
    }

    /// Unit of evidence that is a setting.
    pub(crate) const SETTING: &str = "setting";

    /// A setting that matters, with its value.
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

    /// A look-alike that is excluded.
    #[must_use]
    pub(crate) fn not(mut self, id: &'static str, because: impl Into<String>) -> Self {
        self.ruled_out.push(RuledOut {
            id,
            because: because.into(),
        });
        self
    }

    /// Why it happens.
    #[must_use]
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = cause.into();
        self
    }

    /// So many processes were killed, or more.
    #[must_use]
    pub(crate) fn killed(mut self, count: u64) -> Self {
        self.harm.killed = self.harm.killed.max(count);
        self
    }

    /// Something to do.
    #[must_use]
    pub(crate) fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    /// How to see that the fix worked.
    #[must_use]
    pub(crate) fn verify(mut self, how: impl Into<String>) -> Self {
        self.verify = how.into();
        self
    }

    /// Whom it hits or who does it.
    #[must_use]
    pub(crate) fn affects(mut self, affected: impl IntoIterator<Item = Affected>) -> Self {
        self.affected.extend(affected);
        self
    }

    /// How sure it is; see [`Evidence::confidence`](crate::Evidence::confidence).
    #[must_use]
    pub(crate) fn sure(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }
}
