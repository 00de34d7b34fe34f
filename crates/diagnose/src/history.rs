//! This host now, and what a recording says of the hours before: when that which holds now began, what grows too slowly
//! for a look of seconds, and what is over.
//!
//! The look is judged as ever, and history and look once more as one. What the look finds stays as it found it, with its
//! real beginning. What only both together find counts where it reaches into the look; growth, which seconds cannot show,
//! where it reached its height lately. All else is over: worth knowing, and no part of the verdict.

use std::collections::BTreeMap;

use timeline::{Facts, Stretch, Timeline};

use crate::causes;
use crate::diagnosis::{Diagnosis, diagnose, judge};
use crate::evidence::Evidence;
use crate::finding::{EvidenceLine, Finding, Severity};
use crate::missing::Missing;
use crate::rule::Reach;
use crate::rules;
use crate::verdict::Verdict;

/// Growth goes on where it was at its height within this part of its own length: a level that grows steadily is within a
/// twentieth of its height for a twentieth of the time, and twice that is an engineering choice.
const LATELY: f64 = 0.1;

/// Judges a look at this host whose samples begin at `live_from`, with the recording of the time before it that the
/// timeline begins with. All indices and times of the answer are the timeline's.
pub fn with_history(timeline: &Timeline, live_from: usize, facts: &Facts) -> Diagnosis {
    let live = timeline.part(live_from.min(timeline.len()), timeline.len());
    let cx = Evidence::new(&live, facts);
    let now = judge(&cx);
    let long = diagnose(timeline, facts);
    let joined = Joined {
        timeline,
        live_from,
    };
    let (mut findings, earlier) = joined.findings(now.findings, long.findings);
    findings.iter_mut().for_each(|f| f.caused_by = None);
    let findings = causes::order(findings);
    let notes = joined.notes(now.notes, long.notes);
    let (clear, not_evaluated) = joined.silent((now.clear, now.not_evaluated), long.clear, |id| {
        findings.iter().chain(&notes).any(|f| f.id == id)
    });
    let blind: Vec<&str> = not_evaluated.iter().map(|(id, _)| *id).collect();
    let mut accounting = now.accounting;
    if let Ok(accounting) = &mut accounting {
        accounting.index += live_from;
    }
    Diagnosis {
        verdict: Verdict::of_long(&cx, timeline.recorded(), &findings, &blind),
        findings,
        notes,
        earlier,
        clear,
        not_evaluated,
        accounting,
        next: now.next,
    }
}

/// History and look on one clock.
struct Joined<'a> {
    timeline: &'a Timeline,
    live_from: usize,
}

type Clear = Vec<(&'static str, String)>;
type NotEvaluated = Vec<(&'static str, Missing)>;

impl Joined<'_> {
    /// What holds now, and what is over.
    fn findings(&self, now: Vec<Finding>, long: Vec<Finding>) -> (Vec<Finding>, Vec<Finding>) {
        let mut held: Vec<Finding> = now.into_iter().map(|f| self.placed(f)).collect();
        let is_root = |f: &Finding| f.caused_by.is_none();
        let mut earlier = Vec::new();
        for finding in long {
            let known = held.iter_mut().find(|f| f.id == finding.id);
            match (self.goes_on(&finding), known) {
                (true, Some(known)) => began(self.timeline, known, &finding),
                (true, None) => held.push(finding),
                (false, _) if is_root(&finding) && finding.severity > Severity::Info => {
                    earlier.push(Finding {
                        severity: Severity::Info,
                        ..finding
                    });
                }
                (false, _) => {}
            }
        }
        earlier.sort_by_key(|f| f.when.map(|when| when.from));
        (held, earlier)
    }

    /// A note on the whole day says more than one on ten seconds.
    fn notes(&self, now: Vec<Finding>, long: Vec<Finding>) -> Vec<Finding> {
        let mut long: BTreeMap<&str, Finding> = long.into_iter().map(|f| (f.id, f)).collect();
        let of_both = |note: Finding| match long.remove(note.id) {
            Some(longer) if reach(note.id) != Reach::Look && self.goes_on(&longer) => longer,
            _ => self.placed(note),
        };
        now.into_iter().map(of_both).collect()
    }

    /// What was looked for and not found, and what could not be looked for in either.
    fn silent(
        &self,
        (now, not_evaluated): (Clear, NotEvaluated),
        long: Clear,
        said: impl Fn(&str) -> bool,
    ) -> (Clear, NotEvaluated) {
        let mut clear: BTreeMap<_, _> = long.into_iter().chain(now).collect();
        clear.retain(|id, _| !said(id));
        let lacks = |(id, _): &(&str, Missing)| !said(id) && !clear.contains_key(id);
        let not_evaluated = not_evaluated.into_iter().filter(lacks).collect();
        (clear.into_iter().collect(), not_evaluated)
    }

    /// Whether what history and look show together still holds in the look.
    fn goes_on(&self, finding: &Finding) -> bool {
        let Some(when) = finding.when else {
            // A state is that of the last sample.
            return true;
        };
        // The first sample of the look speaks for the time before it.
        let seen = self.live_from.min(self.timeline.len().saturating_sub(2));
        let end = self.timeline.times().last().copied().unwrap_or_default();
        let is_late = || end - when.to <= when.lasts().times(LATELY);
        when.last > seen || (reach(finding.id) == Reach::Growth && is_late())
    }

    /// A finding of the look on the samples of both.
    fn placed(&self, mut finding: Finding) -> Finding {
        for held in finding.stretches_mut() {
            held.first += self.live_from;
            held.last += self.live_from;
        }
        if let Some(graph) = &mut finding.graph {
            let mut values = vec![None; self.live_from];
            values.append(&mut graph.values);
            graph.values = values;
        }
        finding
    }
}

/// How far a rule's findings reach.
fn reach(id: &str) -> Reach {
    let rule = rules::ALL.iter().find(|rule| rule.id == id);
    rule.map_or(Reach::Stretch, |rule| rule.reach)
}

/// Gives a finding of the look its beginning, from the same finding of both.
fn began(timeline: &Timeline, now: &mut Finding, long: &Finding) {
    let Some(long_when) = long.when else {
        return;
    };
    if now.when.is_none_or(|when| when.first <= long_when.first) {
        return;
    }
    let last = now.when.map_or(long_when.last, |when| when.last);
    now.when = timeline.stretch(long_when.first, last).or(now.when);
    let before = |one: &Stretch| one.last <= long_when.first;
    now.again = long.again.iter().copied().filter(before).collect();
    // The hours before the look are in the graph of both, as far as it draws the same.
    if long.graph.as_ref().map(|graph| &graph.label) == now.graph.as_ref().map(|graph| &graph.label)
    {
        now.graph.clone_from(&long.graph);
    }
    now.evidence.push(EvidenceLine {
        measured: None,
        at: None,
        text: format!("since it began: {}", long.title),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, Severity};
    use timeline::Sample;
    use timeline::signals::{
        MEM_ACTIVE_ANON, MEM_AVAILABLE, MEM_FREE, MEM_INACTIVE_ANON, MEM_SLAB_UNRECLAIMABLE,
        MEM_TOTAL, OOM_KILLS, PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSWPIN, PSWPOUT, REFAULT_ANON,
        REFAULT_FILE,
    };
    use units::{Bytes, Count, Micros, PageSize, Pages, Span};

    const MINUTES: u64 = 600;
    const SECONDS: u64 = 12;

    /// What a host does at a moment, and for how long since the sample before.
    #[derive(Clone, Copy)]
    struct At {
        second: u64,
        step: u64,
    }

    /// Ten hours at one sample a minute, then twelve seconds at one a second. `thrashes` says when pages go both ways.
    fn host(thrashes: impl Fn(At) -> bool, extra: impl Fn(At, &mut Sample)) -> Diagnosis {
        host_watched(SECONDS, thrashes, extra)
    }

    /// The same with a look of so many samples.
    fn host_watched(
        look: u64,
        thrashes: impl Fn(At) -> bool,
        extra: impl Fn(At, &mut Sample),
    ) -> Diagnosis {
        let minutes = (0..MINUTES).map(|i| At {
            second: i * 60,
            step: 60,
        });
        let end = MINUTES * 60;
        let seconds = (0..look).map(|i| At {
            second: end + i,
            step: 1,
        });
        let mut timeline = Timeline::default();
        let (mut pages, mut stalled) = (0, 0);
        for at in minutes.chain(seconds) {
            if thrashes(at) {
                pages += 3000 * at.step;
                stalled += 400_000 * at.step;
            }
            let mut sample = Sample::at(Span::from_secs(at.second));
            let host = &mut sample.host;
            host.set(MEM_TOTAL, Bytes::from_mib(500));
            host.set(MEM_FREE, Bytes::from_mib(10));
            let available = if thrashes(at) { 8 } else { 200 };
            host.set(MEM_AVAILABLE, Bytes::from_mib(available));
            host.set(MEM_ACTIVE_ANON, Bytes::from_mib(100));
            host.set(MEM_INACTIVE_ANON, Bytes::from_mib(100));
            for signal in [PSWPIN, PSWPOUT, REFAULT_ANON] {
                host.set(signal, Pages::new(pages));
            }
            host.set(REFAULT_FILE, Pages::ZERO);
            for signal in [PSI_MEMORY_SOME, PSI_MEMORY_FULL] {
                host.set(signal, Micros::new(stalled));
            }
            extra(at, &mut sample);
            timeline.push(&sample).unwrap();
        }
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        let from = usize::try_from(MINUTES).unwrap();
        with_history(&timeline, from, &facts)
    }

    fn nothing(_: At, _: &mut Sample) {}

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|f| f.id).collect()
    }

    #[test]
    fn what_holds_now_has_its_real_beginning() {
        let began = 7200;
        let diagnosis = host(|at| at.second > began, nothing);
        assert_eq!(diagnosis.verdict.level, Level::Critical);
        let thrash = &diagnosis.findings[0];
        assert_eq!(thrash.id, "swap-thrash");
        let when = thrash.when.unwrap();
        assert_eq!(when.from, Span::from_secs(began));
        assert_eq!(when.to, Span::from_secs(MINUTES * 60 + SECONDS - 1));
        assert_eq!(diagnosis.earlier, []);
    }

    #[test]
    fn what_is_over_is_told_and_changes_no_verdict() {
        let diagnosis = host(|at| (7200..=9600).contains(&at.second), nothing);
        assert_eq!(diagnosis.verdict.level, Level::Ok);
        assert_eq!(ids(&diagnosis.findings), [""; 0]);
        assert_eq!(ids(&diagnosis.earlier), ["swap-thrash"]);
        assert_eq!(diagnosis.earlier[0].severity, Severity::Info);
        let when = diagnosis.earlier[0].when.unwrap();
        assert_eq!(
            (when.from, when.to),
            (Span::from_secs(7140), Span::from_secs(9600))
        );
        let remarks = diagnosis.verdict.remarks.join(" ");
        assert!(!remarks.contains("slow growth"), "{remarks}");
    }

    #[test]
    fn a_look_too_short_by_itself_is_enough_behind_hours() {
        let diagnosis = host_watched(3, |_| false, nothing);
        assert_eq!(diagnosis.verdict.level, Level::Ok);
        assert!(diagnosis.verdict.headline.starts_with("Memory is enough"));
    }

    #[test]
    fn growth_that_seconds_cannot_show_counts_now() {
        let leak = |at: At, sample: &mut Sample| {
            let grown = Bytes::from_kib(20_000 + at.second * 4);
            sample.host.set(MEM_SLAB_UNRECLAIMABLE, grown);
        };
        let diagnosis = host(|_| false, leak);
        assert!(
            ids(&diagnosis.findings).contains(&"slab-leak"),
            "{:?}",
            ids(&diagnosis.findings)
        );
        assert_ne!(diagnosis.verdict.level, Level::Ok);
    }

    #[test]
    fn growth_that_ended_hours_ago_is_over() {
        let leak = |at: At, sample: &mut Sample| {
            let grown = Bytes::from_kib(20_000 + at.second.min(9000) * 16);
            sample.host.set(MEM_SLAB_UNRECLAIMABLE, grown);
        };
        let diagnosis = host(|_| false, leak);
        assert!(!ids(&diagnosis.findings).contains(&"slab-leak"));
        assert!(ids(&diagnosis.earlier).contains(&"slab-leak"));
    }

    #[test]
    fn kills_of_the_night_are_history() {
        let killed = |at: At, sample: &mut Sample| {
            if at.second == 7260 {
                sample.host.set(MEM_AVAILABLE, Bytes::from_mib(5));
            }
            sample
                .host
                .set(OOM_KILLS, Count::new(u64::from(at.second > 7200)));
        };
        let diagnosis = host(|_| false, killed);
        assert_eq!(diagnosis.verdict.level, Level::Ok);
        assert_eq!(ids(&diagnosis.earlier), ["oom-global"]);
    }

    #[test]
    fn without_history_the_answer_is_that_of_the_look() {
        let mut timeline = Timeline::default();
        for second in 0..20 {
            let mut sample = Sample::at(Span::from_secs(second));
            sample.host.set(MEM_TOTAL, Bytes::from_mib(500));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let (alone, with) = (
            diagnose(&timeline, &facts),
            with_history(&timeline, 0, &facts),
        );
        assert_eq!(alone.verdict, with.verdict);
        assert_eq!(alone.findings, with.findings);
    }
}
