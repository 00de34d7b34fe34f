//! Several looks of which nobody knows how they lie in time (two pastes of `free`, a log of OOM reports): each was judged
//! by itself; here the answers become one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use timeline::{Timeline, signals::MEM_TOTAL};

use crate::evidence::{Evidence, Missing};
use crate::finding::Bursts;
use crate::finding::{EvidenceLine, Finding};
use crate::judge::Diagnosis;
use crate::judge::causes;
use crate::judge::verdict::{Level, Verdict, two_machines};
use crate::oom;

/// One answer of several. A finding that several looks show is told once, as the worst of them shows it, with all its times.
pub(crate) fn merge<'a>(
    cx: &Evidence<'_>,
    judged: impl Iterator<Item = (&'a Timeline, Diagnosis)>,
) -> Diagnosis {
    let all: Vec<JudgedSegment<'_>> = judged
        .enumerate()
        .map(|(number, (timeline, diagnosis))| JudgedSegment {
            number,
            timeline,
            diagnosis,
        })
        .collect();
    let count = all.len();
    let mut looks = without_aftermath(all);
    let left_out = count - looks.len();
    newest_last(&mut looks);
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    let mut bursts = BTreeMap::new();
    for one in &mut looks {
        let place = |finding| SegmentFinding::of(finding, one.number, one.timeline);
        let diagnosis = &mut one.diagnosis;
        findings.extend(diagnosis.findings.drain(..).map(place));
        notes.extend(diagnosis.notes.drain(..).map(place));
        for more in diagnosis.bursts.drain(..) {
            add_bursts(&mut bursts, more, one.timeline.origin());
        }
    }
    let mut findings = causes::order(cx, joined(findings, count));
    if let Some(lead) = findings.first_mut().filter(|_| left_out > 0) {
        lead.evidence.push(aftermath(left_out));
    }
    let notes = joined(notes, count);
    let said =
        |id: &str| findings.iter().chain(&notes).any(|f| f.id == id) || bursts.contains_key(id);
    let mut clear = BTreeMap::new();
    let mut not_evaluated: BTreeMap<&'static str, Missing> = BTreeMap::new();
    for JudgedSegment { diagnosis, .. } in &mut looks {
        clear.extend(diagnosis.clear.drain(..));
        not_evaluated.extend(diagnosis.not_evaluated.drain(..));
    }
    clear.retain(|id, _| !said(id));
    not_evaluated.retain(|id, _| !said(id) && !clear.contains_key(id));
    // Reports are events: that growth between them was not judged goes without saying.
    let events = looks
        .iter()
        .all(|one| one.timeline.reports().next().is_some());
    let sizes = looks.iter().filter_map(|one| one.timeline.last(MEM_TOTAL));
    let machines = two_machines(sizes);
    let at = leading(&looks, findings.first());
    let JudgedSegment {
        timeline,
        diagnosis: mut lead,
        ..
    } = looks.swap_remove(at);
    lead.verdict.remarks.extend(machines);
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
        earlier: Vec::new(),
        bursts: bursts.into_values().collect(),
        clear: clear.into_iter().collect(),
        not_evaluated: not_evaluated.into_iter().collect(),
        accounting: lead.accounting,
        next: lead.next,
    }
}

/// One look and what was found in it.
struct JudgedSegment<'a> {
    /// Its place in the source, from 0.
    number: usize,
    timeline: &'a Timeline,
    diagnosis: Diagnosis,
}

/// Without the looks at allocations that failed because of a kill which another look is about: they need no finding nor
/// advice of their own.
fn without_aftermath(looks: Vec<JudgedSegment<'_>>) -> Vec<JudgedSegment<'_>> {
    let Some(reports) = looks.first().map(|one| one.timeline.all_reports()) else {
        return looks;
    };
    let kills = oom::KillHistory::of(reports);
    let is_own = |one: &Timeline| {
        let mut reports = one.reports().peekable();
        reports.peek().is_none() || reports.any(|reported| !kills.explain(reported))
    };
    looks
        .into_iter()
        .filter(|one| is_own(one.timeline))
        .collect()
}

fn aftermath(count: usize) -> EvidenceLine {
    let what = match count {
        1 => "a failed allocation goes with it: its process was being killed, or a kill had just been".to_owned(),
        _ => format!("{count} failed allocations go with it: their processes were being killed, or a kill had just been"),
    };
    EvidenceLine {
        measured: None,
        at: None,
        text: what,
    }
}

/// Where all looks are reports whose times tell, the newest comes last, however the log is sorted.
fn newest_last(looks: &mut [JudgedSegment<'_>]) {
    let when = |one: &JudgedSegment<'_>| one.timeline.reports().last().and_then(oom::when);
    let clock = |one: &JudgedSegment<'_>| when(one).map(|(clock, _)| clock);
    let first = looks.first().and_then(clock);
    if first.is_some() && looks.iter().all(|one| clock(one) == first) {
        looks.sort_by_key(when);
    }
}

/// A finding on the whole source's samples, and the looks that show it.
struct SegmentFinding {
    finding: Finding,
    looks: Vec<usize>,
}

impl SegmentFinding {
    fn of(mut finding: Finding, number: usize, timeline: &Timeline) -> Self {
        finding.caused_by = None;
        finding.when = finding.when.or_else(|| timeline.whole());
        finding.move_by(timeline.origin());
        Self {
            finding,
            looks: vec![number + 1],
        }
    }

    /// Of the same severity the surer speaks for both, of the same sureness the later.
    fn join(&mut self, other: Self) {
        self.looks.extend(other.looks);
        self.looks.dedup();
        let (one, other) = (&mut self.finding, other.finding);
        let sureness = other.confidence.value.total_cmp(&one.confidence.value);
        let other_speaks = other.severity.cmp(&one.severity).then(sureness).is_ge();
        one.join_later(other, other_speaks);
    }

    fn told(self, count: usize) -> Finding {
        let looks = match self.looks.as_slice() {
            [one] => format!("look {one} of {count}"),
            [one, other] => format!("looks {one} and {other} of {count}"),
            several => format!("{} of {count} looks", several.len()),
        };
        self.finding.tells(format!("seen in {looks}"))
    }
}

/// Each rule once for what it is about.
fn joined(findings: Vec<SegmentFinding>, count: usize) -> Vec<Finding> {
    let mut joined: Vec<SegmentFinding> = Vec::new();
    for one in findings {
        let is_same = |known: &&mut SegmentFinding| {
            known.finding.id == one.finding.id && known.finding.scope == one.finding.scope
        };
        match joined.iter_mut().find(is_same) {
            Some(known) => known.join(one),
            None => joined.push(one),
        }
    }
    joined.into_iter().map(|one| one.told(count)).collect()
}

/// Adds bursts of a look that begins at a sample of the whole.
fn add_bursts(all: &mut BTreeMap<&'static str, Bursts>, mut more: Bursts, origin: usize) {
    for stretch in &mut more.stretches {
        stretch.first += origin;
        stretch.last += origin;
    }
    match all.entry(more.id) {
        Entry::Vacant(free) => {
            free.insert(more);
        }
        Entry::Occupied(mut known) => {
            let known = known.get_mut();
            known.stretches.extend(more.stretches);
            known.waited = match (known.waited, more.waited) {
                (Some(a), Some(b)) => Some(a.plus(b)),
                (a, b) => a.or(b),
            };
        }
    }
}

/// The look whose verdict speaks for all: the one that shows the worst finding, else the last that is not calm.
fn leading(looks: &[JudgedSegment<'_>], worst: Option<&Finding>) -> usize {
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
            let one = &looks[*i];
            let level = rank(one.diagnosis.verdict.level);
            (level, shows(one.timeline), *i)
        })
        .unwrap_or(0)
}

fn verdict(mut lead: Verdict, count: usize) -> Verdict {
    lead.remarks.push(format!(
        "{count} looks, of which nothing tells how they lie in time: each was judged by itself, and growth between them was not."
    ));
    lead
}

#[cfg(test)]
mod tests {
    use timeline::kernel_report::{Invoker, LogStamp};
    use timeline::signals::{PSWPIN, PSWPOUT, REFAULT_ANON};
    use timeline::{Facts, KernelReport, Sample, Stamp};
    use units::{PageSize, Pages, Span};

    use super::*;
    use crate::diagnose;
    use crate::oom::testing::Report;

    fn source(reports: Vec<KernelReport>) -> Diagnosis {
        let mut timeline = Timeline::default();
        for (second, report) in (1..).zip(reports) {
            let mut sample = Sample::default();
            sample.stamp = Stamp {
                boot: Span::from_secs(second),
                ..Stamp::default()
            };
            sample.host = report.host.clone();
            timeline.push_new_segment(&sample);
            timeline.report(report, None);
        }
        diagnose(&timeline, &Facts::default())
    }

    fn stamped(mut report: Report, text: &str, seconds: u64) -> KernelReport {
        report.0.stamp = Some(LogStamp {
            text: text.to_owned(),
            of_year: Span::from_secs(seconds),
        });
        report.0
    }

    fn failed(pid: u32, name: &str) -> Report {
        let mut report = Report::of_a_host().failed();
        report.0.invoker = Some(Invoker {
            name: name.to_owned(),
            pid: Some(pid),
            oom_score_adj: None,
        });
        report
    }

    #[test]
    fn a_failed_allocation_of_a_killed_process_is_part_of_the_kill() {
        let with = |failed: Report| source(vec![Report::of_a_host().0, failed.0]);
        let dying = with(failed(20, "doxygen"));
        assert_eq!(dying.findings[0].id, "oom-global");
        let told = |text: &str| {
            dying.findings[0]
                .evidence
                .iter()
                .any(|e| e.text.contains(text))
        };
        assert!(told("a failed allocation goes with it"));
        assert!(told("seen in look 1 of 2"));
        let other = with(failed(20, "nginx"));
        let evidence = &other.findings[0].evidence;
        assert!(evidence.iter().all(|e| !e.text.contains("goes with it")));
    }

    #[test]
    fn a_failed_allocation_within_a_second_of_a_kill_is_part_of_it() {
        let at = |seconds| {
            let kill = stamped(Report::of_a_host(), "Nov 21 04:12:01", 100);
            source(vec![kill, stamped(failed(7, "nginx"), "", seconds)])
        };
        let is_part = |diagnosis: Diagnosis| {
            let evidence = &diagnosis.findings[0].evidence;
            evidence.iter().any(|e| e.text.contains("goes with it"))
        };
        assert!(is_part(at(101)));
        assert!(!is_part(at(3_700)));
    }

    #[test]
    fn a_finding_of_several_looks_has_the_times_and_the_kills_of_all() {
        let kill = |name: &str, text: &str, at| {
            let mut report = Report::of_a_host().killing(20, name);
            report.0.tasks.clear();
            stamped(report, text, at)
        };
        let diagnosis = source(vec![
            kill("java", "Nov 21 04:12:01", 500),
            kill("nginx", "Nov 20 04:12:01", 100),
            kill("nginx", "Nov 22 04:12:01", 900),
        ]);
        let one = &diagnosis.findings[0];
        assert!(one.title.contains("nginx"), "{}", one.title);
        // The log is not in order of time; the answer is.
        let samples: Vec<_> = one.stretches().iter().map(|when| when.first).collect();
        assert_eq!(samples, [1, 0, 2]);
        assert_eq!(one.harm.killed, 3);
        assert!(
            one.evidence
                .iter()
                .any(|e| e.text == "seen in 3 of 3 looks")
        );
    }

    /// Two stretches of which nothing tells how they lie in time, each calm but for some short and cheap thrash.
    #[test]
    fn bursts_of_all_looks_are_counted() {
        let mut timeline = Timeline::default();
        let mut pages = 0;
        for look in 0..2 {
            for second in 0..60 {
                let mut sample = Sample::at(Span::from_secs(look * 1000 + second));
                pages += if (20..25).contains(&second) { 3000 } else { 0 };
                for counter in [PSWPIN, PSWPOUT, REFAULT_ANON] {
                    sample.host.set(counter, Pages::new(pages));
                }
                match second {
                    0 => timeline.push_new_segment(&sample),
                    _ => timeline.push(&sample).expect("in order"),
                }
            }
        }
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        let diagnosis = diagnose(&timeline, &facts);
        let bursts = &diagnosis.bursts[0];
        let samples: Vec<_> = bursts.stretches.iter().map(|when| when.first).collect();
        assert_eq!(
            (bursts.id, samples.as_slice()),
            ("swap-thrash", &[19, 79][..])
        );
        assert!(!diagnosis.clear.iter().any(|(id, _)| *id == "swap-thrash"));
    }

    #[test]
    fn the_newest_kill_of_the_host_leads_however_the_log_is_sorted() {
        let kill = |name: &str, text: &str, at| {
            let mut report = Report::of_a_host().killing(20, name);
            report.0.tasks.clear();
            stamped(report, text, at)
        };
        let group = stamped(Report::of_a_group(100_000, 100_000), "Nov 22 07:00:00", 900);
        let diagnosis = source(vec![
            group,
            kill("java", "Nov 21 04:12:01", 500),
            kill("nginx", "Nov 20 04:12:01", 100),
        ]);
        let lead = &diagnosis.findings[0];
        assert!(lead.title.contains("java"), "{}", lead.title);
        assert_eq!(diagnosis.verdict.headline, lead.title);
        assert!(
            lead.evidence
                .iter()
                .any(|e| e.text.ends_with("Nov 21 04:12:01"))
        );
        let mut roots = diagnosis.findings.iter().filter(|f| f.caused_by.is_none());
        assert_eq!(roots.nth(1).map(|f| f.id), Some("oom-cgroup"));
    }
}
