//! Several looks of which nobody knows how they lie in time (two pastes of `free`, a log of OOM reports): each was judged
//! by itself; here the answers become one.

use std::collections::BTreeMap;

use timeline::Timeline;

use crate::causes;
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::missing::Missing;
use crate::verdict::{Level, Verdict};

/// One answer of several. A finding that several looks show is told once, as the worst of them shows it.
pub(crate) fn merge<'a>(judged: impl Iterator<Item = (&'a Timeline, Diagnosis)>) -> Diagnosis {
    let mut looks: Vec<(&Timeline, Diagnosis)> = judged.collect();
    let count = looks.len();
    let samples: usize = looks.iter().map(|(one, _)| one.len()).sum();
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    for (look, (timeline, diagnosis)) in looks.iter_mut().enumerate() {
        let place = Place {
            look,
            count,
            timeline,
            samples,
        };
        findings.extend(diagnosis.findings.drain(..).map(|f| place.of(f)));
        notes.extend(diagnosis.notes.drain(..).map(|f| place.of(f)));
    }
    let findings = causes::order(worst_of_each(findings));
    let notes = worst_of_each(notes);
    let said = |id: &str| findings.iter().chain(&notes).any(|f| f.id == id);
    let mut clear = BTreeMap::new();
    let mut not_evaluated: BTreeMap<&'static str, Missing> = BTreeMap::new();
    for (_, diagnosis) in &mut looks {
        clear.extend(diagnosis.clear.drain(..));
        not_evaluated.extend(diagnosis.not_evaluated.drain(..));
    }
    clear.retain(|id, _| !said(id));
    not_evaluated.retain(|id, _| !said(id) && !clear.contains_key(id));
    // Reports are events: that growth between them was not judged goes without saying.
    let events = looks.iter().all(|(one, _)| one.reports().next().is_some());
    let at = leading(&looks, findings.first());
    let (timeline, mut lead) = looks.swap_remove(at);
    if let Ok(accounting) = &mut lead.accounting {
        accounting.index += timeline.origin();
    }
    Diagnosis {
        verdict: if events {
            lead.verdict
        } else {
            verdict(lead.verdict, count)
        },
        findings,
        notes,
        clear: clear.into_iter().collect(),
        not_evaluated: not_evaluated.into_iter().collect(),
        accounting: lead.accounting,
        next: lead.next,
    }
}

/// A look's place among the others.
struct Place<'a> {
    look: usize,
    count: usize,
    timeline: &'a Timeline,
    samples: usize,
}

impl Place<'_> {
    /// A finding of this look on the whole source's samples.
    fn of(&self, mut finding: Finding) -> Finding {
        let origin = self.timeline.origin();
        finding.caused_by = None;
        finding.when = finding.when.or_else(|| self.timeline.whole());
        if let Some(when) = &mut finding.when {
            when.first += origin;
            when.last += origin;
        }
        if let Some(graph) = &mut finding.graph {
            let mut values = vec![None; origin];
            values.append(&mut graph.values);
            values.resize(self.samples, None);
            graph.values = values;
        }
        finding.tells(format!("seen in look {} of {}", self.look + 1, self.count))
    }
}

/// Each id once: of the same severity the surer, of the same sureness the later.
fn worst_of_each(findings: Vec<Finding>) -> Vec<Finding> {
    let mut worst: Vec<Finding> = Vec::new();
    for finding in findings {
        let outdoes = |known: &Finding| {
            let sureness = finding.confidence.value.total_cmp(&known.confidence.value);
            finding.severity.cmp(&known.severity).then(sureness).is_ge()
        };
        match worst.iter_mut().find(|known| known.id == finding.id) {
            Some(known) if outdoes(known) => *known = finding,
            Some(_) => {}
            None => worst.push(finding),
        }
    }
    worst
}

/// The look whose verdict speaks for all: the one that shows the worst finding, else the last that is not calm.
fn leading(looks: &[(&Timeline, Diagnosis)], worst: Option<&Finding>) -> usize {
    let rank = |level: Level| match level {
        Level::Ok => 0,
        Level::Unknown => 1,
        Level::Warning => 2,
        Level::Critical => 3,
    };
    let shows = |timeline: &Timeline| {
        worst.and_then(|f| f.when).is_some_and(|when| {
            (timeline.origin()..timeline.origin() + timeline.len()).contains(&when.first)
        })
    };
    (0..looks.len())
        .max_by_key(|i| {
            let (timeline, diagnosis) = &looks[*i];
            (rank(diagnosis.verdict.level), shows(timeline), *i)
        })
        .unwrap_or(0)
}

fn verdict(mut lead: Verdict, count: usize) -> Verdict {
    lead.remarks.push(format!(
        "{count} looks, of which nothing tells how they lie in time: each was judged by itself, and growth between them was not."
    ));
    lead
}
