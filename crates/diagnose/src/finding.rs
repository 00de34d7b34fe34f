//! What a rule found, with everything a reader needs to believe it and to act.

use timeline::signals::{MEM_ANON, MEM_SHMEM, MEM_SLAB_UNRECLAIMABLE, REFAULT_FILE};
use timeline::{AnySignal, Counter, Gauge, Signal, Stretch, Track};
use units::{
    Bytes, BytesPerSecond, Limit, Micros, Millis, Pages, PerSecond, Quantity, Ratio, Span, Ticks,
    Unit,
};

use crate::evidence::Evidence;
use crate::incident::{Harm, Occasion, Scope};
use crate::measures::pressure::Stalls;
use crate::measures::readings::READ_AGAIN;
use crate::remedy::Fix;
use crate::rule::Rule;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; never changes the verdict.
    Info,
    /// Something is slower or nearer to an edge than it should be.
    Warning,
    /// Work stands still, or processes were or will be killed.
    Critical,
}

impl Severity {
    /// A warning where it hurts, else worth knowing only.
    pub(crate) const fn warning_if(hurts: bool) -> Self {
        if hurts { Self::Warning } else { Self::Info }
    }

    /// Critical where it is grave, else a warning.
    pub(crate) const fn critical_if(is_grave: bool) -> Self {
        if is_grave {
            Self::Critical
        } else {
            Self::Warning
        }
    }
}

/// How sure a finding is, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Confidence {
    /// From 0 to 1; 0.9 and above is *confirmed*, 0.6 and above *probable*, below *possible*.
    pub value: f64,
    /// What it rests on, and what would settle it.
    pub why: String,
}

impl Confidence {
    /// `confirmed`, `probable` or `possible`.
    pub fn word(&self) -> &'static str {
        if self.value >= 0.9 {
            "confirmed"
        } else if self.value >= 0.6 {
            "probable"
        } else {
            "possible"
        }
    }
}

/// One line of evidence: a sentence, and what was measured where it is about a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceLine {
    /// The measured value; `None` where the sentence is not about one.
    pub measured: Option<Measured>,
    /// When, on the timeline's clock.
    pub at: Option<Span>,
    /// The sentence a person reads, numbers included.
    pub text: String,
}

/// A value as it leaves the types: named, in its unit, against its threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name of the signal or fact in its catalogue.
    pub signal: &'static str,
    /// The value in `unit`.
    pub value: f64,
    /// Unit of the value: `bytes`, `pages/s`, `ratio`.
    pub unit: &'static str,
    /// The value as people read it: `9.9 MiB/s`.
    pub text: String,
    /// From where on (or down from where) it counts.
    pub threshold: Option<Threshold>,
}

/// From where on a value counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// In the value's unit.
    pub value: f64,
    /// On which side of it a value counts.
    pub side: ThresholdSide,
    /// For people: `≥ 1 MiB/s`.
    pub text: String,
}

/// On which side of a threshold a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdSide {
    /// From it up.
    From,
    /// From it down.
    Below,
}

impl ThresholdSide {
    const fn symbol(self) -> &'static str {
        match self {
            Self::From => "≥",
            Self::Below => "≤",
        }
    }
}

/// A signal that can say `Q`, without computing anything but what its kind and unit mean: a gauge its level, a counter
/// its rate or its total; pages may be told in bytes, time per time as a share. Anything else is [`Computed`].
pub(crate) trait Says<Q: Quantity> {
    /// The signal's name.
    fn name(&self) -> &'static str;
}

/// A quantity that a rule computed from this signal and others: a share of a whole, a sum, bytes counted as blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed<S>(pub(crate) S);

macro_rules! says {
    ($(for[$($u:ident)?] $signal:ty => $quantity:ty;)*) => {$(
        impl<$($u: Unit)?> Says<$quantity> for Signal<$signal> {
            fn name(&self) -> &'static str {
                self.definition().name
            }
        }
    )*};
}

says! {
    for[U] Gauge<U> => U;
    for[U] Counter<U> => U;
    for[U] Counter<U> => PerSecond<U>;
    for[] Gauge<Pages> => Bytes;
    for[] Counter<Pages> => Bytes;
    for[] Counter<Pages> => BytesPerSecond;
    for[] Gauge<Limit> => Bytes;
    for[] Counter<Micros> => Ratio;
    for[] Counter<Millis> => Ratio;
    for[] Counter<Ticks> => Ratio;
}

impl<S: AnySignal, Q: Quantity> Says<Q> for Computed<S> {
    fn name(&self) -> &'static str {
        self.0.definition().name
    }
}

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

/// How a signal ran, for a small graph beside the finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// What it draws: `swapped in`.
    pub label: String,
    /// Its peak, printed: `20 MiB/s`.
    pub peak: String,
    /// Index of the sample that the first value is of.
    pub first: usize,
    /// Values of the samples from there on.
    pub values: Vec<Option<f64>>,
    print: Print,
}

impl Graph {
    /// Its peak is that of the time that the finding is about: what was before and after is drawn beside it at most.
    pub(crate) fn peak_within(&mut self, stretch: &Stretch) {
        let from = stretch.first.saturating_sub(self.first);
        let to = (stretch.last + 1).saturating_sub(self.first);
        let values = self.values.iter().take(to).skip(from);
        if let Some(peak) = values.flatten().copied().reduce(f64::max) {
            self.peak = (self.print.0)(peak);
        }
    }
}

/// How a value of a graph is printed; two graphs are the same whatever prints them.
#[derive(Debug, Clone, Copy)]
struct Print(fn(f64) -> String);

impl PartialEq for Print {
    fn eq(&self, _: &Self) -> bool {
        true
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
    /// How long before the first sample it was, where it is known from the kernel's log only; `when` cannot tell that.
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
    /// What the kernel told itself, where the finding is about that.
    pub(crate) event: Option<Event>,
    /// The independent kinds of evidence that its lines are of, in their order: what its confidence rests on.
    pub(crate) kinds: Vec<&'static str>,
}

/// What a kernel report tells. An event leads over levels of the same weight, whatever brought it about; the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// An allocation failed, and nobody was killed for it.
    FailedAllocation,
    /// A kill that is about a part of the host: a control group, some nodes, by hand.
    Kill,
    /// A kill of the host itself.
    HostKill,
}

impl Rule {
    /// A finding of this rule, to be completed by the methods below.
    pub(crate) fn found(&self, severity: Severity, title: impl Into<String>) -> Finding {
        Finding {
            id: self.id,
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

    /// The lowest level of a gauge in a stretch, when it was that low.
    #[must_use]
    pub(crate) fn shows_lowest<U: Unit>(
        self,
        cx: &Evidence<'_>,
        signal: Signal<Gauge<U>>,
        stretch: &Stretch,
        text: impl FnOnce(U) -> String,
    ) -> Self {
        self.with(cx.lowest_in(signal, stretch), |finding, (least, index)| {
            finding.shows(signal, least, cx.time(index), text(least))
        })
    }

    /// The mean rate of a counter in a stretch.
    #[must_use]
    pub(crate) fn shows_mean<U: Unit>(
        self,
        cx: &Evidence<'_>,
        signal: Signal<Counter<U>>,
        stretch: &Stretch,
        text: impl FnOnce(PerSecond<U>) -> String,
    ) -> Self {
        self.with(cx.mean_rate(signal, stretch), |finding, mean| {
            finding.shows(signal, mean, None, text(mean))
        })
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

    /// Files that came back after eviction, where that was measured.
    #[must_use]
    pub(crate) fn shows_refaults(self, again: Option<BytesPerSecond>) -> Self {
        self.with(again, |finding, again| {
            let text = format!("{again} of files came back after eviction");
            finding
                .shows_from(REFAULT_FILE, again, READ_AGAIN, None, text)
                .counts_if(again >= READ_AGAIN, "refaults")
        })
    }

    /// What holds much at a sample, of what cannot be dropped: each part of this size or more.
    #[must_use]
    pub(crate) fn shows_holders(mut self, cx: &Evidence<'_>, index: usize, much: Bytes) -> Self {
        for (signal, what) in [
            (MEM_ANON, "anonymous memory"),
            (MEM_SHMEM, "shared memory"),
            (
                MEM_SLAB_UNRECLAIMABLE,
                "kernel objects that cannot be dropped",
            ),
        ] {
            let part = cx.level(signal, index).filter(|part| *part >= much);
            self = self.with(part, |finding, part| {
                finding.shows(signal, part, cx.time(index), format!("{part} of {what}"))
            });
        }
        self
    }

    /// What tasks waited for, where that was measured; waiting that is worth a finding is a kind of evidence.
    #[must_use]
    pub(crate) fn shows_stalls(self, stalls: &Stalls) -> Self {
        stalls.shown_in(self).counts_if(stalls.any(), "stalls")
    }

    /// A look-alike that is excluded because a setting has this value.
    #[must_use]
    pub(crate) fn not_where(
        self,
        cx: &Evidence<'_>,
        fact: timeline::Fact,
        value: u64,
        id: &'static str,
    ) -> Self {
        self.when(cx.number(fact) == Ok(value), |finding| {
            finding.not(id, format!("{} is {value}", fact.name))
        })
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

    /// How sure it is by the kinds of evidence that it counts as; `open` says what would settle the rest.
    #[must_use]
    pub(crate) fn sure_by_kinds(self, cx: &Evidence<'_>, open: &str) -> Self {
        let confidence = cx.confidence(&self.kinds, open);
        self.sure(confidence)
    }

    /// No surer than this, however many kinds of evidence agree.
    #[must_use]
    pub(crate) fn sure_at_most(mut self, most: f64) -> Self {
        self.confidence.value = self.confidence.value.min(most);
        self
    }
}

impl Finding {
    /// When it was, where that is not the incident's own time.
    #[must_use]
    pub(crate) fn during(mut self, stretch: Stretch) -> Self {
        self.when = Some(stretch);
        self
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

    /// Something that proves it and is no measurement: an order, a gap, a name.
    #[must_use]
    pub(crate) fn tells(mut self, text: impl Into<String>) -> Self {
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

    /// How its main signal ran.
    #[must_use]
    pub(crate) fn graph<Q: Quantity>(mut self, label: &str, track: &Track<Q>) -> Self {
        self.graph = track.max().map(|(peak, _)| Graph {
            label: label.to_owned(),
            peak: peak.to_string(),
            first: 0,
            values: track.values().to_vec(),
            print: Print(|value| Q::from_f64(value).to_string()),
        });
        self
    }
}
