//! The JSON contract: what `--format json` prints, and what text and HTML are drawn from.
//!
//! `docs/*.schema.json` hold it: a test fails where a rename would break it. A field's type has its unit, and its name the
//! unit of the number in JSON: sizes are bytes, shares are ratios, times are RFC 3339 in UTC where the source has a wall
//! clock, and offsets in seconds from the first sample always. Every number is finite; what is not known is null or absent, never 0. Text that comes from
//! the host (names of processes, groups, caches) is passed on as it is: whoever draws it escapes it.

mod alert;
mod catalogue;
mod check;
mod compare;
mod events;
pub mod explain;
mod fix;
mod group;
pub mod growth;
pub mod headroom;
mod json;
mod next;
mod notice;
mod order;
pub(crate) use order::by_need;
pub mod page;
pub mod runtime_stats;
pub mod series;
mod source;
pub mod status;
mod time;
pub mod top;
mod where_by;

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Ratio, SignedBytes, Span};

pub use alert::{AlertEntry, AlertFile};
pub use catalogue::{RuleEntry, SignalEntry};
pub use compare::{
    AmountEntry, COMPARE_SCHEMA, CompareReport, FindingEntry, FoundEntry, RateEntry, Side,
    SpreadEntry,
};
pub use diagnose::accounting::{MemoryNode, OwnerRow, RestRow, SizeKind, Term};
pub use diagnose::compare::{
    AmountKind, Cause, CauseStrength, Direction, FactChange, Significance, Turn,
};
pub use diagnose::group::{ChargedPart, GroupFelt};
pub use diagnose::{
    Affected, Harm, Level, RecordedPart, RuledOut, Scope, Severity, Sureness, ThresholdSide,
};
pub use events::{EVENTS_SCHEMA, EventEntry, EventsReport};
pub use fix::{Fix, FixChange, SettingValue};
pub use group::{Around, GroupSection, HostFinding, LimitEntry};
pub use json::{json, json_schema, schema_of};
pub use notice::{FindingNotice, FindingState, NOTICE_SCHEMA};
pub use time::timestamp;
pub use where_by::{WHERE_BY_SCHEMA, WhereByReport};

/// Name and version of the contract of `check`.
pub const SCHEMA: &str = "memtide-report/1";
/// Name and version of the contract of `where`.
pub const WHERE_SCHEMA: &str = "memtide-where/1";

/// The whole answer of `check`.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Name and version of this contract; a change that readers must know of is another version.
    #[schemars(extend("const" = "memtide-report/1"))]
    pub schema: &'static str,
    pub host: Host,
    /// Where the samples came from.
    pub source: Source,
    /// How it stands; also the exit code: ok 0, warning 1, critical 2, unknown 3.
    pub verdict: Level,
    /// How it stands at the end of what was watched, where that is better than the verdict: what is wrong is over. Absent
    /// where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Level>,
    /// The verdict in one or two sentences.
    pub headline: String,
    /// More sentences that belong to the verdict.
    pub remarks: Vec<String>,
    /// The cgroup that was asked about: then verdict, headline, findings and what follows are about it, and `around` in it
    /// is the host. Absent where the host was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupSection>,
    /// What is wrong: what happened when it was asked about first, then what goes on, then what is over; the worst first of
    /// each, and each root followed by what it brings about.
    pub findings: Vec<Finding>,
    /// Every time at which something was wrong, in order of time: findings join those of one rule, scope and root.
    pub incidents: Vec<Incident>,
    /// What was too short and too cheap to be listed one by one. Absent where nothing was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<Bursts>,
    /// What looks wrong and is not, and limits of the source.
    pub notes: Vec<Finding>,
    /// What a recording of this host shows that is over; the verdict does not know of it. Absent where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Finding>,
    /// Settings that changed while the source was watched, in order of time. Absent where none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
    /// What was looked for and is not there.
    pub clear: Vec<Clear>,
    /// What could not be looked for.
    pub not_evaluated: Vec<NotEvaluated>,
    /// What RAM held at the moment that matters; null where the source has no MemTotal.
    pub accounting: Option<Accounting>,
    /// What the kernel's memory work cost meanwhile. Absent where it was not profiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<KernelProfile>,
    /// What to run on that host to learn what the source could not say; empty for this host, live.
    pub next: Vec<Step>,
}

/// What the kernel's memory work cost, as `memtide profile` says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelProfile {
    /// What matters, in a sentence or two.
    pub headline: String,
    /// Reasons that cost noticeably, the most important first; empty on a healthy host.
    pub hot: Vec<HotReason>,
}

/// A reason of kernel work that costs noticeably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HotReason {
    /// As in the answer of `profile`: `node-reclaim`.
    pub reason: String,
    /// The id of the rule that explains it; null where none does.
    pub rule: Option<String>,
}

/// A setting that took another value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// The last reading of the value before: it changed between this and `at`. Null where the source has no wall clock, or
    /// that reading is not known.
    pub since: Option<Timestamp>,
    /// The same, counted from the first sample; null where that reading is not known.
    pub since_s: Option<f64>,
    /// The first reading of the value after; null where the source has no wall clock.
    pub at: Option<Timestamp>,
    /// The same, counted from the first sample.
    pub at_s: f64,
    /// Its dotted name: `vm.swappiness`.
    pub setting: String,
    /// Its value before.
    pub from: String,
    /// Its value from then on.
    pub to: String,
    /// All of that in a sentence for people.
    pub text: String,
}

/// A command that would show more.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Step {
    pub command: String,
    /// What it would show.
    pub shows: String,
}

/// The whole answer of `where`.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhereReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-where/1"))]
    pub schema: &'static str,
    pub host: Host,
    /// Where the samples came from.
    pub source: Source,
    /// What RAM held; null where the source has no MemTotal.
    pub accounting: Option<Accounting>,
    /// The same, grouped and broken down, from MemTotal down.
    pub tree: Option<MemoryNode>,
    /// Which of the kernel's numbers must not be added up, with this host's figures.
    pub explanations: Vec<String>,
}

/// What `check` says of one of its sources.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// It was read.
    Report(Box<Report>),
    /// It gives nothing at all.
    Failed {
        /// Which it was.
        source: FailedSource,
        /// Why, in words.
        error: String,
    },
}

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedSource {
    /// Its name for people.
    pub name: String,
}

impl Answer {
    /// Of a source that could not be read.
    pub fn failed(name: String, error: String) -> Self {
        Self::Failed { source: FailedSource { name }, error }
    }

    /// The report, where there is one.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Report(report) => Some(report),
            Self::Failed { .. } => None,
        }
    }
}

impl From<Report> for Answer {
    fn from(report: Report) -> Self {
        Self::Report(Box::new(report))
    }
}

/// The host, as far as the source has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Host {
    /// The kernel's release: `6.1.0-56-cloud-amd64`.
    pub kernel: Option<String>,
    /// MemTotal.
    pub ram_bytes: Option<Bytes>,
    /// Size of all swap areas; 0 where there is none.
    pub swap_bytes: Option<Bytes>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// Size of a base page.
    pub page_size_bytes: Option<Bytes>,
    /// Its name, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The box that memtide ran in; absent on the machine itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
}

/// The box that memtide ran in.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Container {
    /// What gave it away.
    pub signs: Vec<String>,
    /// Whether `/proc/meminfo` shows the box instead of the machine.
    pub meminfo_is_own: bool,
}

/// What kind of source it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// This host, while it was watched.
    Live,
    /// Kernel files saved over time.
    Capture,
    /// Text that somebody pasted or saved: output of tools, kernel logs.
    Text,
    /// A directory or an archive of saved files: a support bundle.
    Bundle,
    /// What `memtide record` kept.
    Recording,
}

/// Where the samples came from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Source {
    /// What kind it is.
    pub kind: SourceKind,
    /// Its name for people: a file's name; null for this host.
    pub name: Option<String>,
    /// When the first sample was taken; null where the source has no wall clock.
    pub from: Option<Timestamp>,
    /// When the last sample was taken.
    pub to: Option<Timestamp>,
    /// Number of samples.
    pub samples: usize,
    /// The usual distance between samples (median); null with fewer than two.
    pub interval_s: Option<Span>,
    /// From the first sample to the last.
    pub watched_s: Span,
    /// Fields of kernel files that memtide does not know, `FILE FIELD`; at most 200.
    pub unknown_fields: Vec<String>,
    /// What was wrong with the source; the rest of it was read.
    pub problems: Vec<String>,
    /// What was recognised in a text, in order; empty for this host and for captures.
    pub inputs: Vec<Input>,
    /// Lines of a text that belong to nothing known: prose, prompts.
    pub lines_skipped: usize,
    /// The distance to which the samples of a long recording were thinned out; absent where every one was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinned_to_s: Option<Span>,
    /// Where only a part of the source was judged: how long after the source's first sample that of the part was taken, so
    /// that an offset and this are the offset in the source. Absent where nothing was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_at_s: Option<f64>,
    /// Where the wall clock was set, in order; at most 200: of more, some that follow each other are one. What it showed is
    /// `from`, the time since the first sample, and all steps so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clock_steps: Vec<ClockStep>,
    /// The recording of this host that was judged together with the look at it; absent where there was none. Then offsets
    /// in seconds count from the recording's first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

impl Source {
    /// The last part of its name that says something: `sick.jsonl.gz`, `memtide` of `/var/lib/memtide/`.
    pub(crate) fn file_name(&self) -> Option<&str> {
        let mut parts = self.name.as_ref()?.rsplit('/');
        parts.find(|part| !part.is_empty())
    }
}

/// The host's wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ClockStep {
    /// The first sample after it, counted from the first that was judged.
    pub at_s: f64,
    /// By how many seconds: below zero where it was set back.
    pub by_s: f64,
}

/// What a recording of this host says of the time before it was watched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// From when on.
    pub from: Option<Timestamp>,
    /// The distance of its samples (median).
    pub resolution_s: Option<Span>,
    /// Number of its samples.
    pub samples: usize,
}

/// A block that was recognised in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Input {
    /// The form: `free`, `/proc/meminfo`.
    pub form: String,
    /// More exactly, for people.
    pub what: String,
    /// The file that it is in, where the source has several; null else.
    pub file: Option<String>,
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// The unit of its sizes; null where it has none or writes it out.
    pub unit: Option<String>,
    /// Names of the signals that it gave.
    pub signals: Vec<String>,
    /// How many of its lines were not understood.
    pub not_understood: usize,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// Id of the rule; `memtide rules ID` explains it.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// In what it happened.
    pub scope: Scope,
    /// What it cost, all times together.
    pub harm: Harm,
    /// One sentence: the effect, the number, the cause.
    pub title: String,
    /// Sentences that add to the title. Absent where there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub more: String,
    /// Whether the headline begins with the title.
    pub is_headline: bool,
    /// Whether it ended longer than a minute before the end of what was watched.
    pub is_over: bool,
    /// From 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Ratio,
    /// `confirmed` from 0.9, `probable` from 0.6, else `possible`.
    pub confidence_word: Sureness,
    /// What the confidence rests on, and what would settle it.
    pub confidence_why: String,
    /// When it began, even if before the first sample; null where the source has no wall clock, or it is a state without a
    /// beginning.
    pub from: Option<Timestamp>,
    /// When it ended.
    pub to: Option<Timestamp>,
    /// When it began, from the first sample on; null where it is a state without a beginning, or was before that.
    pub from_s: Option<f64>,
    /// When it ended, from the first sample on.
    pub to_s: Option<f64>,
    /// Every time at which it held, in order. What is between `from_s` and `to_s` is the longest of them, which the evidence
    /// is about. Empty where it is a state without a beginning.
    pub stretches: Vec<Stretch>,
    /// The part of the watched time that these take together.
    pub share: Option<Ratio>,
    /// What proves it; the strongest first.
    pub evidence: Vec<Evidence>,
    /// What it is not.
    pub ruled_out: Vec<RuledOut>,
    /// Why it happens.
    pub cause: String,
    /// What to do.
    pub fix: Vec<Fix>,
    /// How to see that the fix worked.
    pub verify: String,
    /// Whom it hits or who does it.
    pub affected: Vec<Affected>,
    /// Kernel documentation, articles.
    pub references: Vec<String>,
    /// Other ids that a reader may know it by.
    pub aliases: Vec<String>,
    /// Id of the finding that this one follows from; null for a root.
    pub caused_by: Option<String>,
    /// How its main signal ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
}

impl Finding {
    /// The title with the sentences that add to it.
    pub fn whole_title(&self) -> Cow<'_, str> {
        if self.more.is_empty() {
            return Cow::Borrowed(&self.title);
        }
        Cow::Owned(format!("{} {}", self.title, self.more))
    }
}

/// A time at which a rule's trigger held, in an entity.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Incident {
    /// Id of the rule.
    pub id: String,
    /// In what it happened.
    pub scope: Scope,
    /// When it began; null where the source has no wall clock.
    pub from: Option<Timestamp>,
    /// When it ended.
    pub to: Option<Timestamp>,
    /// When it began, from the first sample on.
    pub from_s: f64,
    /// When it ended, from the first sample on.
    pub to_s: f64,
    /// Whether it holds at the last sample.
    pub ongoing: bool,
    /// The distance of the samples that show it (median); null with one sample.
    pub seen_every_s: Option<Span>,
    /// How much it mattered.
    pub severity: Severity,
    /// From 0 to 1.
    pub confidence: Ratio,
    /// What it cost.
    pub harm: Harm,
    /// Id of the finding that it follows from; null for a root.
    pub root: Option<String>,
    pub title: String,
}

/// Incidents of a rule that were too short and too cheap to be listed one by one.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bursts {
    /// Id of the rule.
    pub id: String,
    pub count: usize,
    /// When the first began; null where the source has no wall clock.
    pub from: Option<Timestamp>,
    /// When the last ended.
    pub to: Option<Timestamp>,
    /// When the first began, from the first sample on.
    pub from_s: f64,
    /// When the last ended, from the first sample on.
    pub to_s: f64,
    /// How long the longest lasted.
    pub longest_s: Span,
    /// How long tasks waited in all of them; null where that is not measured.
    pub waited_s: Option<Span>,
    /// When the longest began, from the first sample on.
    pub example_s: f64,
    /// The same on the wall clock.
    pub example: Option<Timestamp>,
}

/// A time at which a finding held.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stretch {
    /// When it began; null where the source has no wall clock.
    pub from: Option<Timestamp>,
    /// When it ended.
    pub to: Option<Timestamp>,
    /// When it began, from the first sample on.
    pub from_s: f64,
    /// When it ended, from the first sample on.
    pub to_s: f64,
    /// How much of that was recorded.
    pub recorded_s: Span,
}

/// A sentence of evidence, and the measured value against its threshold where it is about one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Name of the signal or fact; `memtide signals NAME` explains it. Null where the sentence is not about a measurement.
    pub signal: Option<String>,
    /// The value in `unit`; null where it is without limit or nothing was measured.
    pub value: Option<f64>,
    /// Unit of value and threshold: `bytes`, `pages/s`, `ratio`; null where nothing was measured.
    pub unit: Option<String>,
    /// The value as people read it: `9.9 MiB/s`.
    pub value_text: Option<String>,
    /// From where on (or down from where) it counts.
    pub threshold: Option<f64>,
    /// On which side of the threshold the value counts.
    pub threshold_side: Option<ThresholdSide>,
    /// The threshold as people read it: `≥ 1 MiB/s`.
    pub threshold_text: Option<String>,
    /// When; null where it speaks for the whole stretch, or the source has no wall clock.
    pub at: Option<Timestamp>,
    /// When, from the first sample on.
    pub at_s: Option<f64>,
    /// The sentence a person reads.
    pub text: String,
}

impl Evidence {
    /// Its threshold for people. What was measured beside the proof may well stay on the calm side; then it must not look like proof.
    pub(crate) fn threshold_shown(&self) -> Option<String> {
        let text = self.threshold_text.as_ref()?;
        Some(if self.counts() { text.clone() } else { format!("{text}, not reached") })
    }

    /// Whether the value is on that side of its threshold that counts; also where there is none.
    pub(crate) fn counts(&self) -> bool {
        match (self.value.zip(self.threshold), self.threshold_side) {
            (Some((value, from)), Some(ThresholdSide::From)) => value >= from,
            (Some((value, below)), Some(ThresholdSide::Below)) => value <= below,
            _ => true,
        }
    }
}

/// How a signal ran.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Graph {
    /// What it draws: `swapped in`.
    pub label: String,
    /// Its peak, printed.
    pub peak: String,
    /// Where it starts, from the first sample on.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// Evenly spaced in time, the largest value within each step; null where nothing was measured. At most 240.
    pub values: Vec<Option<f64>>,
}

/// A rule that looked and found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Clear {
    /// Id of the rule.
    pub id: String,
    /// Why it is certain.
    pub because: String,
}

/// A rule that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotEvaluated {
    /// Id of the rule.
    pub id: String,
    /// What kind of thing is missing.
    pub kind: NeedKind,
    /// Names of the signals and facts that the source lacks.
    pub missing: Vec<String>,
    /// What would make it possible.
    pub needs: String,
}

/// What keeps a rule from being evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeedKind {
    /// Readings that the source does not have.
    Readings,
    /// The right to read a file that the host has.
    Root,
    /// Finer figures or more samples: with those of the source the rule may or may not hold.
    Precision,
}

/// What RAM held at one moment: `terms` and `unaccounted_bytes` add up to `total_bytes` exactly.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Accounting {
    /// When; null where the source has no wall clock.
    pub at: Option<Timestamp>,
    /// When, from the first sample on.
    pub at_s: f64,
    /// MemTotal.
    pub total_bytes: Bytes,
    /// Disjoint parts.
    pub terms: Vec<Term>,
    /// What no counter explains; slightly negative where counters drift.
    pub unaccounted_bytes: SignedBytes,
    /// Whether the source has the terms that hold nearly all memory of any host. Where it does not (the output of
    /// `free`), the remainder is no riddle, only not broken down.
    pub broken_down: bool,
    /// Signals that the source lacks and that usually hold memory: it is in the remainder.
    pub missing: Vec<String>,
    /// MemAvailable: the kernel's estimate of what can be allocated without swapping; contains page cache.
    pub available_bytes: Option<Bytes>,
    /// Swap at that moment; null where there is none or it is not known.
    pub swap: Option<SwapSpace>,
    /// NUMA nodes at that moment; empty where the source lacks them or there is one.
    pub nodes: Vec<NodeMemory>,
}

/// All swap areas together.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SwapSpace {
    pub total_bytes: Bytes,
    /// What holds something.
    pub used_bytes: Bytes,
}

/// Memory of a NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeMemory {
    /// Its number.
    pub node: String,
    /// Its RAM.
    pub total_bytes: Bytes,
    /// Its free RAM.
    pub free_bytes: Bytes,
}
