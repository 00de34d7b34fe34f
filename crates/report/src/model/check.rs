//! From a diagnosis to the report: a change of clothes, nothing is judged here.

use diagnose::Diagnosis;
use jiff::{SignedDuration, Timestamp};
use timeline::facts::Change;
use timeline::signals::{MEM_AVAILABLE, NODE_FREE, NODE_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED};
use timeline::{Entity, Event, Origin, Stamp, Stretch, Timeline};
use units::{Bytes, Ratio, SignedBytes, Span};

use super::next;
use super::time::wall;
use super::{
    Accounting, Bursts, Changed, Clear, Evidence, Finding, Fix, Graph, Host, Incident, NeedKind,
    NodeMemory, NotEvaluated, Report, SCHEMA, Source, SwapSpace, WHERE_SCHEMA, WhereReport,
};

/// Two for each column of the widest terminal.
const GRAPH_POINTS: usize = 240;

impl Report {
    /// The answer of `check`.
    pub fn new(source: &timeline::Source, diagnosis: &Diagnosis) -> Self {
        let cx = Context { timeline: &source.timeline, origin: &source.origin };
        Self {
            schema: SCHEMA,
            host: match &diagnosis.accounting {
                Ok(shown) => Host::at(source, shown.index),
                Err(_) => Host::new(source),
            },
            source: Source::new(source),
            verdict: diagnosis.verdict.level,
            now: diagnosis.verdict.now,
            headline: diagnosis.verdict.headline.clone(),
            remarks: diagnosis.verdict.remarks.clone(),
            group: None,
            findings: diagnosis.findings.iter().map(|f| cx.finding(f)).collect(),
            incidents: cx.incidents(diagnosis),
            bursts: diagnosis.bursts.iter().filter_map(|it| cx.bursts(it)).collect(),
            notes: diagnosis.notes.iter().map(|f| cx.finding(f)).collect(),
            earlier: diagnosis.earlier.iter().map(|f| cx.finding(f)).collect(),
            changed: source.facts.changes().iter().map(|it| cx.changed(it)).collect(),
            clear: diagnosis
                .clear
                .iter()
                .map(|(id, because)| Clear { id: (*id).to_owned(), because: because.clone() })
                .collect(),
            not_evaluated: diagnosis
                .not_evaluated
                .iter()
                .map(|(id, missing)| NotEvaluated {
                    id: (*id).to_owned(),
                    kind: need_kind(&missing.need),
                    missing: owned(&missing.names),
                    needs: missing.need.to_string(),
                })
                .collect(),
            accounting: diagnosis.accounting.as_ref().ok().map(|a| cx.accounting(a)),
            profile: None,
            next: next::steps(source, diagnosis),
        }
    }
}

fn need_kind(need: &diagnose::Need) -> NeedKind {
    match need {
        diagnose::Need::Root(_) => NeedKind::Root,
        diagnose::Need::MoreSamples { .. }
        | diagnose::Need::LongerWatch { .. }
        | diagnose::Need::FinerFigures => NeedKind::Precision,
        _ => NeedKind::Readings,
    }
}

fn confidence(value: f64) -> Ratio {
    Ratio::new(finite(value).map_or(0.0, |value| value.clamp(0.0, 1.0)))
}

impl WhereReport {
    /// The answer of `where`, about the time of the accounting.
    pub fn new(source: &timeline::Source, accounting: &diagnose::accounting::Accounting) -> Self {
        let timeline = &source.timeline;
        let cx = Context { timeline, origin: &source.origin };
        let evidence = diagnose::Evidence::new(timeline, &source.facts);
        Self {
            schema: WHERE_SCHEMA,
            host: Host::new(source),
            source: Source::new(source),
            accounting: Some(cx.accounting(accounting)),
            tree: Some(accounting.tree(&evidence, &source.inventory)),
            explanations: accounting.explanations(&evidence, &source.inventory),
        }
    }
}

/// What turns a timeline's clock into the contract's.
struct Context<'a> {
    timeline: &'a Timeline,
    origin: &'a Origin,
}

impl Context<'_> {
    fn wall(&self, time: Span) -> Option<Timestamp> {
        wall(self.timeline, time)
    }

    /// How a finding's main signal ran: over all that was watched, or where the finding takes a small part of that, around
    /// it, as the points would be too few to show it.
    fn graph(&self, graph: &diagnose::Graph, when: Option<Stretch>) -> Graph {
        /// With fewer of the points within the finding, they are laid closer.
        const PART_SHARE: f64 = 0.1;
        let times = self.timeline.times();
        let ends = (Span::ZERO, self.timeline.duration());
        let lasts = when.map_or(ends.1, |when| when.duration());
        let close = when.filter(|_| lasts > Span::ZERO && lasts < ends.1.times(PART_SHARE));
        let (from, to) = close.map_or(ends, |when| {
            (when.from.saturating_sub(lasts), when.to.plus(lasts).min(ends.1))
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
            values: thin(&shifted, &graph.values[first - drawn.start..end - drawn.start]),
        }
    }

    fn changed(&self, change: &Change) -> Changed {
        let name = change.fact.name;
        let event = Event::of_change(Stamp::default(), name, &change.from, &change.to);
        Changed {
            since: change.since.and_then(|since| self.wall(since)),
            since_s: change.since.map(Span::as_secs_f64),
            at: self.wall(change.at),
            at_s: change.at.as_secs_f64(),
            setting: name.to_owned(),
            from: change.from.clone(),
            to: change.to.clone(),
            text: event.text,
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
            severity: finding.severity,
            scope: finding.scope.clone(),
            harm: finding.harm,
            title: finding.title.first().to_owned(),
            more: finding.title.more().to_owned(),
            is_headline: finding.is_headline,
            is_over: finding.is_over,
            confidence: confidence(finding.confidence.value),
            confidence_word: finding.confidence.sureness(),
            confidence_why: finding.confidence.why.clone(),
            from: when.map_or_else(before, |w| self.wall(w.from)),
            to: when.map_or_else(before, |w| self.wall(w.to)),
            from_s: when.map(|w| w.from.as_secs_f64()),
            to_s: when.map(|w| w.to.as_secs_f64()),
            share: finding
                .duration()
                .and_then(|held| finite(held.as_secs_f64() / watched))
                .map(Ratio::new),
            stretches: stretches.iter().map(|it| self.stretch(it)).collect(),
            evidence: finding.evidence.iter().map(|e| self.evidence(e)).collect(),
            ruled_out: finding.ruled_out.clone(),
            cause: finding.cause.clone(),
            fix: finding.fixes.iter().map(|fix| Fix::new(finding.id, fix, self.origin)).collect(),
            verify: finding.verify.clone(),
            affected: finding.affected.clone(),
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
            scope: finding.scope.clone(),
            from: self.wall(when.from),
            to: self.wall(when.to),
            from_s: when.from.as_secs_f64(),
            to_s: when.to.as_secs_f64(),
            ongoing: when.last == last,
            seen_every_s: self.seen_every(when),
            severity: one.severity,
            confidence: confidence(one.confidence),
            harm: one.harm,
            root: finding.caused_by.map(str::to_owned),
            title: one.title.clone(),
        }
    }

    /// The distance of the samples of a stretch (median).
    fn seen_every(&self, when: &Stretch) -> Option<Span> {
        let times = self.timeline.times().get(when.first..=when.last)?;
        let mut steps: Vec<Span> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        stats::middle(&mut steps)
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
            longest_s: longest.duration(),
            waited_s: bursts.waited,
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
            recorded_s: stretch.duration(),
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
            threshold_side: threshold.map(|t| t.side),
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
            (total > Bytes::ZERO).then_some(SwapSpace { total_bytes: total, used_bytes: used })
        };
        let read = timeline.read_before(Entity::Node, index);
        let nodes: Vec<NodeMemory> = timeline
            .entities(Entity::Node)
            .filter_map(|node| {
                Some(NodeMemory {
                    node: node.key.clone(),
                    total_bytes: timeline.at_of(node, NODE_TOTAL, read?)?,
                    free_bytes: timeline.at_of(node, NODE_FREE, read?)?,
                })
            })
            .collect();
        Accounting {
            at: self.wall(at),
            at_s: at.as_secs_f64(),
            total_bytes: accounting.total,
            terms: accounting.terms.clone(),
            unaccounted_bytes: SignedBytes::new(accounting.unaccounted_bytes),
            broken_down: accounting.is_broken_down(),
            missing: owned(&accounting.missing),
            available_bytes: level(MEM_AVAILABLE),
            swap: swap(),
            nodes: if nodes.len() > 1 { nodes } else { Vec::new() },
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
pub(super) fn thin(times: &[Span], values: &[Option<f64>]) -> Vec<Option<f64>> {
    let points = times.len().min(values.len()).min(GRAPH_POINTS);
    let Some(whole) = times.last().filter(|last| **last > Span::ZERO) else {
        return values.iter().take(points).map(|v| v.and_then(finite)).collect();
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
        assert_eq!(thin(&times, &values), [Some(1.0), Some(5.0), Some(5.0), Some(5.0), Some(2.0)]);
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
