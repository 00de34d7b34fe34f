//! From a diagnosis to the report: a change of clothes, nothing is judged here.

use diagnose::Diagnosis;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use timeline::facts::Change;
use timeline::signals::{
    MEM_AVAILABLE, MEM_TOTAL, NODE_FREE, NODE_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};
use timeline::{Entity, Event, Facts, Stamp, Stretch, Timeline};
use units::{Bytes, PageSize, Ratio, Span};

use super::{
    Accounting, Affected, Branch, Bursts, Changed, Clear, ClockStep, Container, Evidence, Finding,
    Fix, Graph, Harm, History, Host, Incident, Input, Level, NodeMemory, NotEvaluated, Report,
    RuledOut, SCHEMA, Scope, Severity, Source, SourceKind, Step, SwapSpace, Term, ThresholdSide,
    WHERE_SCHEMA, WhereReport,
};
use crate::plain::is_plain;

/// What is known of a source apart from its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceInfo {
    /// What kind it is.
    pub kind: SourceKind,
    /// Its name for people; empty for this host.
    pub name: String,
    /// What was wrong with it, in words.
    pub problems: Vec<String>,
    /// What was recognised in it; empty but for text.
    pub inputs: Vec<Input>,
    /// Lines of a text that belong to nothing known.
    pub lines_skipped: usize,
    /// The distance to which samples were thinned out.
    pub thinned_to: Option<Span>,
    /// Where only a part of the source was wanted: how long after the source's first sample that of the part lies.
    pub cut_at: Option<Span>,
    /// At which of the timeline's samples this host's look begins, where those before it are of its recording.
    pub live_from: Option<usize>,
}

impl SourceInfo {
    /// This host.
    pub const fn live() -> Self {
        Self {
            kind: SourceKind::Live,
            name: String::new(),
            problems: Vec::new(),
            inputs: Vec::new(),
            lines_skipped: 0,
            thinned_to: None,
            cut_at: None,
            live_from: None,
        }
    }

    /// A capture of this name.
    pub fn capture(name: impl Into<String>) -> Self {
        Self {
            kind: SourceKind::Capture,
            name: name.into(),
            problems: Vec::new(),
            inputs: Vec::new(),
            lines_skipped: 0,
            thinned_to: None,
            cut_at: None,
            live_from: None,
        }
    }
}

/// A week of a new kernel's fields must not fill a report.
const MOST_UNKNOWN_FIELDS: usize = 200;
/// Two for each column of the widest terminal.
const GRAPH_POINTS: usize = 240;

/// The report as JSON text, indented. What is not plainly visible is written as `\u202e`: programs read the same, and a
/// terminal that it is printed to is not steered by a name.
///
/// # Errors
/// None in practice: all values of the contract can be written.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string_pretty(value)?;
    // Outside of strings there is nothing but ASCII and the ends of lines.
    let is_harmless = |c: char| c == '\n' || is_plain(c);
    if text.chars().all(is_harmless) {
        return Ok(text);
    }
    let mut safe = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        match is_harmless(c) {
            true => safe.push(c),
            false => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    Ok(safe)
}

/// The JSON Schema of [`Report`], as published in `docs/report.schema.json`.
///
/// # Errors
/// None in practice, as for [`json`].
pub fn json_schema() -> Result<String, serde_json::Error> {
    schema_of::<Report>()
}

/// The JSON Schema of a command's answer; those of `headroom`, `compare` and `events` are published beside that of `check`.
///
/// # Errors
/// None in practice, as for [`json`].
pub fn schema_of<T: JsonSchema>() -> Result<String, serde_json::Error> {
    let schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    json(&schema)
}

impl Report {
    /// The answer of `check`.
    pub fn new(
        diagnosis: &Diagnosis,
        timeline: &Timeline,
        facts: &Facts,
        source: &SourceInfo,
    ) -> Self {
        let cx = Context { timeline };
        Self {
            schema: SCHEMA,
            host: host(timeline, facts),
            source: cx.source(source),
            verdict: diagnosis.verdict.level.into(),
            now: diagnosis.verdict.now.map(Level::from),
            headline: diagnosis.verdict.headline.clone(),
            remarks: diagnosis.verdict.remarks.clone(),
            findings: diagnosis.findings.iter().map(|f| cx.finding(f)).collect(),
            incidents: cx.incidents(diagnosis),
            bursts: diagnosis
                .bursts
                .iter()
                .filter_map(|it| cx.bursts(it))
                .collect(),
            notes: diagnosis.notes.iter().map(|f| cx.finding(f)).collect(),
            earlier: diagnosis.earlier.iter().map(|f| cx.finding(f)).collect(),
            changed: facts.changes().iter().map(|it| cx.changed(it)).collect(),
            clear: diagnosis
                .clear
                .iter()
                .map(|(id, because)| Clear {
                    id: (*id).to_owned(),
                    because: because.clone(),
                })
                .collect(),
            not_evaluated: diagnosis
                .not_evaluated
                .iter()
                .map(|(id, missing)| NotEvaluated {
                    id: (*id).to_owned(),
                    missing: owned(&missing.names),
                    needs: missing.need.to_string(),
                })
                .collect(),
            accounting: diagnosis.accounting.as_ref().ok().map(|a| cx.accounting(a)),
            next: match source.kind {
                SourceKind::Live => Vec::new(),
                // Nobody can look again at what is past; what was kept of it can be looked at more closely.
                SourceKind::Recording => cx.looking_back(diagnosis, source),
                _ => diagnosis.next.iter().map(step).collect(),
            },
        }
    }
}

fn scope(scope: &diagnose::Scope) -> Scope {
    Scope {
        entity: scope.entity.name().to_owned(),
        key: scope.key.clone(),
    }
}

fn harm(harm: &diagnose::Harm) -> Harm {
    Harm {
        waited_s: harm.waited.map(Span::as_secs_f64),
        killed: harm.killed,
    }
}

/// A name as a shell takes it for one word.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:,".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

fn step(step: &diagnose::Step) -> Step {
    Step {
        command: step.command.to_owned(),
        tells: step.tells.to_owned(),
    }
}

impl WhereReport {
    /// The answer of `where`, about the moment that `accounting` is about; `None` where the source has no MemTotal.
    pub fn new(
        accounting: Option<&diagnose::accounting::Accounting>,
        timeline: &Timeline,
        facts: &Facts,
        source: &SourceInfo,
    ) -> Self {
        let cx = Context { timeline };
        let evidence = diagnose::Evidence::new(timeline, facts);
        Self {
            schema: WHERE_SCHEMA,
            host: host(timeline, facts),
            source: cx.source(source),
            accounting: accounting.map(|a| cx.accounting(a)),
            tree: accounting.map(|a| branch(&a.tree(&evidence))),
            explanations: accounting.map_or_else(Vec::new, |a| a.explanations(&evidence)),
        }
    }
}

/// Where the wall clock was set. Of very many times some that follow each other are one, after which it is right again.
fn clock_steps(timeline: &Timeline) -> Vec<ClockStep> {
    const MOST: usize = 200;
    let steps = timeline.clock_steps();
    let together = steps.chunks(steps.len().div_ceil(MOST).max(1));
    #[allow(clippy::cast_precision_loss)] // to the microsecond over centuries
    let told = together.filter_map(|steps| {
        Some(ClockStep {
            at_s: steps.last()?.at.as_secs_f64(),
            by_s: steps.iter().map(|step| step.by_nanos as f64 / 1e9).sum(),
        })
    });
    told.collect()
}

/// Where the samples came from.
pub(super) fn source_of(timeline: &Timeline, source: &SourceInfo) -> Source {
    Context { timeline }.source(source)
}

pub(super) fn host(timeline: &Timeline, facts: &Facts) -> Host {
    Host {
        kernel: facts.kernel_release().map(str::to_owned),
        ram_bytes: timeline.last(MEM_TOTAL).map(Bytes::get),
        swap_bytes: timeline.last(SWAP_TOTAL).map(Bytes::get),
        cpus: facts.cpus,
        page_size_bytes: facts.page_size.map(PageSize::bytes).map(Bytes::get),
        hostname: facts.hostname.clone(),
        container: facts.container.as_ref().map(|container| Container {
            signs: container.signs.clone(),
            meminfo_is_own: container.meminfo_is_own,
        }),
    }
}

/// What turns a timeline's clock into the contract's.
struct Context<'a> {
    timeline: &'a Timeline,
}

impl Context<'_> {
    /// The wall clock at a time of the timeline, to the millisecond.
    fn wall(&self, time: Span) -> Option<Timestamp> {
        let nanos = self.timeline.wall_at(time)?.unix_nanos();
        Timestamp::from_millisecond(nanos.div_euclid(1_000_000)).ok()
    }

    fn source(&self, source: &SourceInfo) -> Source {
        let history = source.live_from.filter(|from| *from > 0);
        let looked = history.map(|from| self.timeline.part(from, self.timeline.len()));
        let looked = looked.as_ref().unwrap_or(self.timeline);
        let ends = looked.whole();
        Source {
            kind: source.kind,
            name: (!source.name.is_empty()).then(|| source.name.clone()),
            from: ends.and_then(|ends| self.wall(ends.from)),
            to: ends.and_then(|ends| self.wall(ends.from.plus(looked.duration()))),
            samples: looked.len(),
            interval_s: looked.interval().map(Span::as_secs_f64),
            watched_s: looked.recorded().as_secs_f64(),
            unknown_fields: self
                .timeline
                .unknown()
                .take(MOST_UNKNOWN_FIELDS)
                .map(|(file, field, _)| format!("{file} {field}"))
                .collect(),
            problems: source.problems.clone(),
            inputs: source.inputs.clone(),
            lines_skipped: source.lines_skipped,
            thinned_to_s: source.thinned_to.map(Span::as_secs_f64),
            cut_at_s: source.cut_at.map(Span::as_secs_f64),
            clock_steps: clock_steps(looked),
            history: history.map(|samples| History {
                from: self.wall(Span::ZERO),
                resolution_s: self
                    .timeline
                    .part(0, samples)
                    .interval()
                    .map(Span::as_secs_f64),
                samples,
            }),
        }
    }

    /// How a finding's main signal ran: over all that was watched, or where the finding takes a small part of that, around
    /// it, as the points would be too few to show it.
    fn graph(&self, graph: &diagnose::Graph, when: Option<Stretch>) -> Graph {
        /// With fewer of the points within the finding, they are laid closer.
        const PART: f64 = 0.1;
        let times = self.timeline.times();
        let ends = (Span::ZERO, self.timeline.duration());
        let lasts = when.map_or(ends.1, |when| when.duration());
        let close = when.filter(|_| lasts > Span::ZERO && lasts < ends.1.times(PART));
        let (from, to) = close.map_or(ends, |when| {
            (
                when.from.saturating_sub(lasts),
                when.to.plus(lasts).min(ends.1),
            )
        });
        // What it draws may be a window around the finding only.
        let drawn = graph.first..graph.first + graph.values.len();
        let end = times.partition_point(|time| *time <= to);
        let end = end.clamp(drawn.start, drawn.end);
        let first = times.partition_point(|time| *time < from);
        let first = first.clamp(drawn.start, end);
        let from = times.get(first).copied().unwrap_or(from);
        let to = times[..end].last().copied().unwrap_or(to);
        let shifted: Vec<Span> = times[first..end].iter().map(|time| *time - from).collect();
        Graph {
            label: graph.label.clone(),
            peak: graph.peak.clone(),
            from_s: from.as_secs_f64(),
            to_s: to.as_secs_f64(),
            values: thin(
                &shifted,
                &graph.values[first - drawn.start..end - drawn.start],
            ),
        }
    }

    /// How to look more closely at what a recording shows; nothing where it shows nothing.
    fn looking_back(&self, diagnosis: &Diagnosis, source: &SourceInfo) -> Vec<Step> {
        let mut steps: Vec<Step> = self.closer(diagnosis, source).into_iter().collect();
        let name = quoted(&source.name);
        let found = diagnosis.findings.iter().find_map(|finding| finding.when);
        if let (Some(_), Ok(shown)) = (found, &diagnosis.accounting)
            && let Some(at) = self.second(shown.at)
        {
            steps.push(Step {
                command: format!("memtide where {name} --at {at}"),
                tells: "what held memory at the worst moment".to_owned(),
            });
        }
        if found.is_some() || !self.timeline.recorder_events().is_empty() {
            steps.push(Step {
                command: format!("memtide events {name}"),
                tells: "kills, changed settings, services and the recorder, in order of time"
                    .to_owned(),
            });
        }
        steps
    }

    /// The wall clock at a time of the timeline, to the second before it.
    fn second(&self, time: Span) -> Option<Timestamp> {
        Timestamp::from_second(self.wall(time)?.as_second()).ok()
    }

    /// How to look at every sample of the worst time of a recording that was judged more coarsely.
    fn closer(&self, diagnosis: &Diagnosis, source: &SourceInfo) -> Option<Step> {
        let every = source.thinned_to?;
        let stretch = diagnose::worth_a_closer_look(self.timeline, diagnosis)?;
        let (since, until) = (self.second(stretch.from)?, self.second(stretch.to)?);
        Some(Step {
            command: format!(
                "memtide check {} --since {since} --until {until}",
                quoted(&source.name)
            ),
            tells: format!(
                "every sample of the worst time, of which this was judged at one in {every}"
            ),
        })
    }

    fn changed(&self, change: &Change) -> Changed {
        let name = change.fact.name;
        let told = Event::of_change(Stamp::default(), name, &change.from, &change.to);
        Changed {
            since: change.since.and_then(|since| self.wall(since)),
            since_s: change.since.map(Span::as_secs_f64),
            at: self.wall(change.at),
            at_s: change.at.as_secs_f64(),
            setting: name.to_owned(),
            from: change.from.clone(),
            to: change.to.clone(),
            text: told.text,
        }
    }

    fn finding(&self, finding: &diagnose::Finding) -> Finding {
        let when = finding.when;
        let watched = self.timeline.recorded().as_secs_f64();
        let stretches = finding.stretches();
        let before = || {
            let ago = SignedDuration::from_secs_f64(finding.before?.as_secs_f64());
            self.wall(Span::ZERO)?.checked_sub(ago).ok()
        };
        Finding {
            id: finding.id.to_owned(),
            severity: finding.severity.into(),
            scope: scope(&finding.scope),
            harm: harm(&finding.harm),
            title: finding.title.clone(),
            confidence: finite(finding.confidence.value).map_or(0.0, |c| c.clamp(0.0, 1.0)),
            confidence_word: finding.confidence.word().to_owned(),
            confidence_why: finding.confidence.why.clone(),
            from: when.map_or_else(before, |w| self.wall(w.from)),
            to: when.map_or_else(before, |w| self.wall(w.to)),
            from_s: when.map(|w| w.from.as_secs_f64()),
            to_s: when.map(|w| w.to.as_secs_f64()),
            share: finding
                .duration()
                .and_then(|held| finite(held.as_secs_f64() / watched)),
            stretches: stretches.iter().map(|it| self.stretch(it)).collect(),
            evidence: finding.evidence.iter().map(|e| self.evidence(e)).collect(),
            ruled_out: finding
                .ruled_out
                .iter()
                .map(|other| RuledOut {
                    id: other.id.to_owned(),
                    because: other.because.clone(),
                })
                .collect(),
            cause: finding.cause.clone(),
            fix: finding
                .fixes
                .iter()
                .map(|fix| Fix {
                    what: fix.what.clone(),
                    now: fix.now.clone(),
                    is_look: fix.is_look,
                    persistent: fix.persistent.clone(),
                    undo: fix.undo.clone(),
                })
                .collect(),
            verify: finding.verify.clone(),
            affected: finding
                .affected
                .iter()
                .map(|one| Affected {
                    kind: one.kind.to_owned(),
                    name: one.name.clone(),
                    what: one.what.clone(),
                })
                .collect(),
            references: owned(&finding.references),
            aliases: owned(&finding.aliases),
            caused_by: finding.caused_by.map(str::to_owned),
            graph: finding
                .graph
                .as_ref()
                .map(|graph| self.graph(graph, when.filter(|_| stretches.len() == 1))),
        }
    }

    /// Every time of every finding, in order.
    fn incidents(&self, diagnosis: &Diagnosis) -> Vec<Incident> {
        let findings = diagnosis.findings.iter().chain(&diagnosis.earlier);
        let mut all: Vec<(usize, Incident)> = findings
            .flat_map(|finding| finding.occasions.iter().map(move |one| (finding, one)))
            .map(|(finding, one)| (one.stretch.first, self.incident(finding, one)))
            .collect();
        all.sort_by_key(|(first, _)| *first);
        all.into_iter().map(|(_, incident)| incident).collect()
    }

    fn incident(&self, finding: &diagnose::Finding, one: &diagnose::Occasion) -> Incident {
        let when = &one.stretch;
        let last = self.timeline.len().saturating_sub(1);
        Incident {
            id: finding.id.to_owned(),
            scope: scope(&finding.scope),
            from: self.wall(when.from),
            to: self.wall(when.to),
            from_s: when.from.as_secs_f64(),
            to_s: when.to.as_secs_f64(),
            ongoing: when.last == last,
            seen_every_s: self.seen_every(when).map(Span::as_secs_f64),
            severity: one.severity.into(),
            confidence: finite(one.confidence).map_or(0.0, |c| c.clamp(0.0, 1.0)),
            harm: harm(&one.harm),
            root: finding.caused_by.map(str::to_owned),
            title: one.title.clone(),
        }
    }

    /// The distance of the samples of a stretch (median).
    fn seen_every(&self, when: &Stretch) -> Option<Span> {
        let times = self.timeline.times().get(when.first..=when.last)?;
        let mut steps: Vec<Span> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied()
    }

    fn bursts(&self, bursts: &diagnose::Bursts) -> Option<Bursts> {
        let (first, last) = (bursts.stretches.first()?, bursts.stretches.last()?);
        let longest = bursts.longest()?;
        Some(Bursts {
            id: bursts.id.to_owned(),
            count: bursts.count(),
            from: self.wall(first.from),
            to: self.wall(last.to),
            from_s: first.from.as_secs_f64(),
            to_s: last.to.as_secs_f64(),
            longest_s: longest.duration().as_secs_f64(),
            waited_s: bursts.waited.map(Span::as_secs_f64),
            example_s: longest.from.as_secs_f64(),
            example: self.wall(longest.from),
        })
    }

    fn stretch(&self, stretch: &Stretch) -> super::Stretch {
        super::Stretch {
            from: self.wall(stretch.from),
            to: self.wall(stretch.to),
            from_s: stretch.from.as_secs_f64(),
            to_s: stretch.to.as_secs_f64(),
            recorded_s: stretch.duration().as_secs_f64(),
        }
    }

    fn evidence(&self, line: &diagnose::EvidenceLine) -> Evidence {
        let measured = line.measured.as_ref();
        let threshold = measured.and_then(|m| m.threshold.as_ref());
        Evidence {
            signal: measured.map(|m| m.signal.to_owned()),
            value: measured.and_then(|m| finite(m.value)),
            unit: measured.map(|m| m.unit.to_owned()),
            value_text: measured.map(|m| m.text.clone()),
            threshold: threshold.and_then(|t| finite(t.value)),
            threshold_side: threshold.map(|t| t.side.into()),
            threshold_text: threshold.map(|t| t.text.clone()),
            at: line.at.and_then(|at| self.wall(at)),
            at_s: line.at.map(Span::as_secs_f64),
            text: line.text.clone(),
        }
    }

    fn accounting(&self, accounting: &diagnose::accounting::Accounting) -> Accounting {
        let (at, index) = (accounting.at, accounting.index);
        let timeline = self.timeline;
        let level = |signal| timeline.at(signal, index);
        let swap = || {
            let total: Bytes = level(SWAP_TOTAL)?;
            // What a source prints as used is more exact than the difference of two figures rounded to GiB.
            let used = match level(SWAP_USED) {
                Some(used) => used,
                None => total.saturating_sub(level(SWAP_FREE)?),
            };
            (total > Bytes::ZERO).then(|| SwapSpace {
                total_bytes: total.get(),
                used_bytes: used.get(),
            })
        };
        let read = timeline.read_before(Entity::Node, index);
        let nodes: Vec<NodeMemory> = timeline
            .entities(Entity::Node)
            .filter_map(|node| {
                Some(NodeMemory {
                    node: node.key.clone(),
                    total_bytes: timeline.at_of(node, NODE_TOTAL, read?)?.get(),
                    free_bytes: timeline.at_of(node, NODE_FREE, read?)?.get(),
                })
            })
            .collect();
        Accounting {
            at: self.wall(at),
            at_s: at.as_secs_f64(),
            total_bytes: accounting.total.get(),
            terms: accounting
                .terms
                .iter()
                .map(|term| Term {
                    id: term.kind.id().to_owned(),
                    bytes: term.bytes.get(),
                    label: term.label.to_owned(),
                })
                .collect(),
            unaccounted_bytes: accounting.unaccounted_bytes,
            broken_down: accounting.is_broken_down(),
            missing: owned(&accounting.missing),
            available_bytes: level(MEM_AVAILABLE).map(Bytes::get),
            swap: swap(),
            nodes: if nodes.len() > 1 { nodes } else { Vec::new() },
        }
    }
}

fn branch(node: &diagnose::accounting::Node) -> Branch {
    Branch {
        label: node.label.clone(),
        bytes: node.bytes.map(Bytes::get),
        share: node.share.map(Ratio::get).and_then(finite),
        note: node.note.clone(),
        children: node.children.iter().map(branch).collect(),
    }
}

impl From<diagnose::Level> for Level {
    fn from(level: diagnose::Level) -> Self {
        match level {
            diagnose::Level::Ok => Self::Ok,
            diagnose::Level::Warning => Self::Warning,
            diagnose::Level::Critical => Self::Critical,
            diagnose::Level::Unknown => Self::Unknown,
        }
    }
}

impl From<diagnose::ThresholdSide> for ThresholdSide {
    fn from(side: diagnose::ThresholdSide) -> Self {
        match side {
            diagnose::ThresholdSide::From => Self::From,
            diagnose::ThresholdSide::Below => Self::Below,
        }
    }
}

impl From<diagnose::Severity> for Severity {
    fn from(severity: diagnose::Severity) -> Self {
        match severity {
            diagnose::Severity::Info => Self::Info,
            diagnose::Severity::Warning => Self::Warning,
            diagnose::Severity::Critical => Self::Critical,
        }
    }
}

fn owned(names: &[&'static str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// JSON has no infinity: a size without limit becomes null.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// At most [`GRAPH_POINTS`] values, evenly spaced in time: each the largest of its step, so that no peak is lost.
///
/// The value at sample *i* speaks for the time since sample *i − 1*, as rates do.
fn thin(times: &[Span], values: &[Option<f64>]) -> Vec<Option<f64>> {
    let points = times.len().min(values.len()).min(GRAPH_POINTS);
    let Some(whole) = times.last().filter(|last| **last > Span::ZERO) else {
        return values
            .iter()
            .take(points)
            .map(|v| v.and_then(finite))
            .collect();
    };
    let whole = u128::from(whole.as_nanos());
    let step_of = |time: Span| {
        let step = u128::from(time.as_nanos()) * points as u128 / whole;
        usize::try_from(step).map_or(points, |step| step.min(points))
    };
    let mut thinned = vec![None; points];
    for (i, value) in values.iter().take(times.len()).enumerate() {
        let Some(value) = value.and_then(finite) else {
            continue;
        };
        let begin = if i == 0 { 0 } else { step_of(times[i - 1]) };
        let end = step_of(times[i]).max(begin + 1).min(points);
        for slot in &mut thinned[begin.min(end)..end] {
            *slot = Some(slot.map_or(value, |largest: f64| largest.max(value)));
        }
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(at: &[u64]) -> Vec<Span> {
        at.iter().map(|s| Span::from_secs(*s)).collect()
    }

    #[test]
    fn a_graph_keeps_every_peak_however_long_it_is() {
        let times: Vec<Span> = (0..100_000).map(Span::from_secs).collect();
        let mut values = vec![Some(1.0); times.len()];
        values[77_777] = Some(9.0);
        let thinned = thin(&times, &values);
        assert_eq!(thinned.len(), GRAPH_POINTS);
        assert_eq!(thinned.iter().filter(|v| **v == Some(9.0)).count(), 1);
        assert!(thinned.iter().all(Option::is_some));
    }

    #[test]
    fn a_late_sample_speaks_for_the_time_since_the_one_before() {
        let times = seconds(&[0, 1, 2, 6, 7]);
        let values = [None, Some(1.0), Some(1.0), Some(5.0), Some(2.0)];
        // Five steps of 1.4 s.
        assert_eq!(
            thin(&times, &values),
            [Some(1.0), Some(5.0), Some(5.0), Some(5.0), Some(2.0)]
        );
    }

    #[test]
    fn what_was_not_measured_or_is_not_finite_stays_absent() {
        let times = seconds(&[0, 1, 2, 3]);
        let values = [None, Some(f64::NAN), None, Some(f64::INFINITY)];
        assert_eq!(thin(&times, &values), [None; 4]);
        assert_eq!(thin(&seconds(&[0]), &[Some(3.0)]), [Some(3.0)]);
        assert_eq!(thin(&[], &[]), []);
    }
}
