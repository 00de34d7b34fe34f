//! Runs all rules on one source and assembles the diagnosis.

mod bursts;
pub(crate) mod causes;
pub(crate) mod incidents;
pub(crate) mod next_steps;
pub(crate) mod order;
mod recent_kills;
pub(crate) mod rounding;
mod segments;
pub(crate) mod verdict;
pub(crate) mod weight;
mod without_memtotal;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem::take;

use timeline::{Facts, Stretch, Timeline, signals::MEM_AVAILABLE};
use units::Span;

use crate::accounting::{Accounting, account};
use crate::evidence::{Evidence, Missing, Need};
use crate::finding::{Bursts, Harm};
use crate::finding::{Finding, Severity};
use crate::rule::{Class, Rule, Waits};
use crate::rules;
use incidents::UnexplainedIncident;
use next_steps::NextStep;
use verdict::Verdict;
use weight::WaitTracks;

/// The result of all rules on one source.
#[derive(Debug)]
pub struct Diagnosis {
    /// Level and headline.
    pub verdict: Verdict,
    /// What is wrong: what matters now first (see `judge/order.rs`), each root followed by its consequences.
    pub findings: Vec<Finding>,
    /// Things that seem wrong and are harmless.
    pub notes: Vec<Finding>,
    /// Findings that ended too long ago to count for the verdict; only [`diagnose_now`] fills it.
    pub earlier: Vec<Finding>,
    /// Incidents too short and too cheap for a finding each.
    pub bursts: Vec<Bursts>,
    /// Rules that found nothing, each with the reason.
    pub clear: Vec<(&'static str, String)>,
    /// Rules that could not be evaluated, each with what it lacks.
    pub not_evaluated: Vec<(&'static str, Missing)>,
    /// The breakdown of RAM at the sample that matters: the one with the least available memory during the worst
    /// finding, else in the whole source. Every view of a single moment shows this sample.
    pub accounting: Result<Accounting, Missing>,
    /// Commands to run on that host to get what the source lacks.
    pub next: Vec<NextStep>,
}

/// Runs all rules on a source. Segments in unknown order are judged separately and the results merged.
pub fn diagnose(timeline: &Timeline, facts: &Facts) -> Diagnosis {
    diagnose_about(timeline, facts, None)
}

/// The same about a moment, on the timeline's clock: what happened at it leads and gives the verdict, and a finding with
/// several occasions speaks of the nearest.
pub fn diagnose_about(timeline: &Timeline, facts: &Facts, asked: Option<Span>) -> Diagnosis {
    if timeline.is_one_segment() {
        return judge(&Evidence::new(timeline, facts).asked_about(asked));
    }
    let segments = timeline.segments();
    segments::merge(
        &Evidence::new(timeline, facts),
        segments.iter().map(|segment| (segment, judge(&Evidence::new(segment, facts)))),
    )
}

/// Runs all rules on a live host. Findings that ended longer than `recent` ago go to `earlier` and do not count for the
/// verdict. Live samples begin at `live_from`; those before it come from a recording.
pub fn diagnose_now(
    timeline: &Timeline,
    live_from: usize,
    facts: &Facts,
    recent: Span,
) -> Diagnosis {
    let all = Evidence::new(timeline, facts);
    let mut answers = RuleAnswers::collect(&all);
    let end = timeline.times().last().copied().unwrap_or_default();
    let is_now = |finding: &Finding| finding.when.is_none_or(|when| end - when.to <= recent);
    let (now, earlier): (Vec<_>, Vec<_>) =
        take(&mut answers.incidents).into_iter().partition(is_now);
    let kills = recent_kills::findings(timeline, facts, recent);
    let findings = causes::with_earlier(&all, causes::order(&all, now), kills);
    let mut earlier = causes::order(&all, earlier);
    join(take(&mut answers.without_story), &mut earlier);
    earlier.retain(|finding| finding.caused_by.is_none() && finding.severity > Severity::Info);
    earlier.sort_by_key(|finding| finding.when.map(|when| when.from));
    let live = timeline.part(live_from.min(timeline.len()), timeline.len());
    let live = Evidence::new(&live, facts);
    answers.notes.retain(is_now);
    let mut diagnosis = answers.diagnosis(&live, timeline.recorded(), findings, moment(&live, &[]));
    if let Ok(accounting) = &mut diagnosis.accounting {
        accounting.index += live_from;
    }
    Diagnosis { earlier, ..diagnosis }
}

impl Diagnosis {
    /// Returns the diagnosis of a source of which only the first `read` was read.
    #[must_use]
    pub fn first_part_only(mut self, read: Span) -> Self {
        self.verdict = self.verdict.first_part_only(read);
        self
    }

    /// Returns the diagnosis of a text of which some readings are quoted and others are not.
    #[must_use]
    pub fn of_partly_quoted_text(mut self) -> Self {
        self.verdict.remarks.insert(
            0,
            "Some readings are quoted (behind >) and others are not: this may be about another \
             host than yours."
                .to_owned(),
        );
        self
    }

    /// Returns the diagnosis of a text that has no reading of memory: what was recognised in it is the answer.
    #[must_use]
    pub fn of_text_without_readings(mut self, recognised: &[&str]) -> Self {
        self.verdict = self.verdict.on_text_without_readings(recognised);
        self
    }

    /// Returns the diagnosis of a text of another system, on which no command of Linux can be run.
    #[must_use]
    pub fn of_another_system(mut self, system: &str) -> Self {
        self.verdict = self.verdict.on_another_system(system);
        self.next.clear();
        self
    }
}

/// Adds incidents without a story to the finding of their rule and entity. The first finding of a rule also gets the
/// number of entities without a finding.
fn join(without_story: Vec<UnexplainedIncident>, findings: &mut [Finding]) {
    let mut numbers: HashMap<(&'static str, String), usize> = HashMap::new();
    for (number, finding) in findings.iter().enumerate() {
        let problem = (finding.id, finding.scope.key.clone());
        numbers.entry(problem).or_insert(number);
    }
    let mut others: HashMap<&'static str, Vec<UnexplainedIncident>> = HashMap::new();
    for incident in without_story {
        match numbers.get(&incident.problem()) {
            Some(number) => incident.join(&mut findings[*number]),
            None => others.entry(incident.id).or_default().push(incident),
        }
    }
    for finding in findings {
        finding.occasions.sort_by_key(|one| one.stretch.first);
        let others = others.remove(finding.id).unwrap_or_default();
        if let Some(line) = UnexplainedIncident::of_others(&others, finding.scope.entity) {
            finding.add_line(line);
        }
    }
}

/// Runs all rules on one segment.
pub(crate) fn judge(cx: &Evidence<'_>) -> Diagnosis {
    let mut answers = RuleAnswers::collect(cx);
    let mut findings = causes::order(cx, take(&mut answers.incidents));
    join(take(&mut answers.without_story), &mut findings);
    let moment = moment(cx, &findings);
    answers.diagnosis(cx, cx.recorded(), findings, moment)
}

/// The answers of all rules on one segment, before incidents are joined to findings.
#[derive(Default)]
pub(crate) struct RuleAnswers {
    pub(crate) incidents: Vec<Finding>,
    notes: Vec<Finding>,
    without_story: Vec<UnexplainedIncident>,
    bursts: Vec<Bursts>,
    clear: Vec<(&'static str, String)>,
    not_evaluated: Vec<(&'static str, Missing)>,
}

impl RuleAnswers {
    pub(crate) fn collect(cx: &Evidence<'_>) -> Self {
        let mut all = Self::of_rules(cx, |_| true);
        all.drop_explained();
        if cx.timeline.is_empty() {
            all.evaluate_none();
        }
        all
    }

    /// The answers of some rules. A stall that another rule explains is among them.
    pub(crate) fn of_rules(cx: &Evidence<'_>, is_asked: impl Fn(&Rule) -> bool) -> Self {
        let mut all = Self::default();
        let host_waits = WaitTracks::for_host(cx);
        for rule in rules::ALL.iter().filter(|rule| is_asked(rule)) {
            let answer = incidents::evaluate(rule, cx, &host_waits)
                .and_then(|answer| rounding::survives(cx, rule, answer));
            match answer {
                Ok(answer) => all.add(cx, rule, answer),
                Err(missing) => all.not_evaluated.push((rule.id, missing)),
            }
        }
        all
    }

    /// Without any reading no rule has found that something is not there.
    fn evaluate_none(&mut self) {
        let clear = take(&mut self.clear).into_iter();
        self.not_evaluated
            .extend(clear.map(|(id, _)| (id, Missing::because(Vec::new(), Need::Readings))));
    }

    /// Returns the diagnosis of these answers. `watched` is the recorded time behind the findings, which may be longer
    /// than that of `cx`; `moment` is the sample of the accounting.
    fn diagnosis(
        self,
        cx: &Evidence<'_>,
        watched: Span,
        mut findings: Vec<Finding>,
        moment: usize,
    ) -> Diagnosis {
        let verdict = Verdict::from_findings(cx, watched, &mut findings);
        Diagnosis {
            verdict,
            findings,
            notes: self.notes,
            earlier: Vec::new(),
            bursts: self.bursts,
            clear: self.clear,
            next: next_steps::steps(cx, &self.not_evaluated),
            not_evaluated: self.not_evaluated,
            accounting: account(cx, moment),
        }
    }

    /// Drops stalls without a known cause where another rule has a costly incident at the same time.
    fn drop_explained(&mut self) {
        let is_unexplained =
            |id: &str| rules::by_id(id).is_some_and(|rule| rule.class == Class::Unexplained);
        let costs = |harm: Harm| harm.killed > 0 || harm.waited > Some(Span::ZERO);
        // On cgroup v1 the waits of a cgroup are not known.
        let has_unknown_waits = |finding: &Finding| {
            finding.harm.waited.is_none()
                && finding.severity > Severity::Info
                && rules::by_id(finding.id).is_some_and(|rule| rule.waits != Waits::No)
        };
        let mut times: Vec<Stretch> = self
            .incidents
            .iter()
            .filter(|finding| !is_unexplained(finding.id))
            .filter(|finding| costs(finding.harm) || has_unknown_waits(finding))
            .flat_map(Finding::stretches)
            .collect();
        times.extend(
            self.without_story
                .iter()
                .filter(|incident| !is_unexplained(incident.id) && costs(incident.harm))
                .map(|incident| incident.stretch),
        );
        let is_at =
            |when: &Stretch, times: &[Stretch]| times.iter().any(|time| time.overlaps(when));
        let mut dropped = Vec::new();
        self.incidents.retain(|finding| {
            let is_explained =
                is_unexplained(finding.id) && finding.when.is_some_and(|when| is_at(&when, &times));
            dropped.extend(is_explained.then_some(finding.id));
            !is_explained
        });
        self.without_story
            .retain(|incident| !is_unexplained(incident.id) || !is_at(&incident.stretch, &times));
        // A burst can explain another burst.
        for bursts in self.bursts.iter().filter(|bursts| !is_unexplained(bursts.id)) {
            times.extend(&bursts.stretches);
        }
        for bursts in self.bursts.iter_mut().filter(|bursts| is_unexplained(bursts.id)) {
            let count = bursts.stretches.len();
            bursts.stretches.retain(|stretch| !is_at(stretch, &times));
            if bursts.stretches.len() < count {
                // The cost of the remaining bursts is unknown.
                bursts.waited = None;
                dropped.push(bursts.id);
            }
        }
        self.bursts.retain(|bursts| !bursts.stretches.is_empty());
        let why = "each stall has its cause among the findings";
        self.clear.extend(dropped.into_iter().map(|id| (id, why.to_owned())));
        let known = |id: &str| {
            self.incidents.iter().any(|finding| finding.id == id)
                || self.bursts.iter().any(|bursts| bursts.id == id)
        };
        let mut seen: Vec<&str> = Vec::new();
        self.clear.retain(|(id, _)| {
            let is_first = !seen.contains(id);
            seen.push(id);
            is_first && !known(id)
        });
    }

    fn add(&mut self, cx: &Evidence<'_>, rule: &'static Rule, answer: incidents::RuleAnswer) {
        if answer.is_empty() {
            let why =
                if answer.clear.is_empty() { "nothing showed it".to_owned() } else { answer.clear };
            self.clear.push((rule.id, why));
        }
        self.without_story.extend(answer.without_story);
        if rule.is_note() {
            let joined = answer.incidents.into_iter().reduce(|mut one, other| {
                one.join(cx, other);
                one
            });
            self.notes.extend(joined);
        } else {
            self.incidents.extend(answer.incidents);
        }
        self.bursts.extend(answer.bursts);
    }
}

/// Returns the sample that matters: the one with the least available memory during the worst finding, or in all samples
/// if there is no finding. The last one if several are equal.
fn moment(cx: &Evidence<'_>, findings: &[Finding]) -> usize {
    let last = cx.timeline.len().saturating_sub(1);
    let when = findings.first().and_then(|finding| finding.when);
    // The sample before the first interval counts too: a kill ends its shortage.
    let (from, to) = when.map_or((0, last), |when| (when.first, when.last.min(last)));
    let tightest = cx.timeline.gauge(MEM_AVAILABLE).and_then(|available| {
        let measured = (from..=to).filter_map(|index| Some((available.at(index)?, index)));
        measured.min_by_key(|(available, index)| (*available, Reverse(*index)))
    });
    tightest.map_or(to, |(_, index)| index)
}

#[cfg(test)]
mod tests {
    use timeline::signals::{
        CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_HIGH, CGROUP_PSI_MEMORY_SOME, MEM_FREE,
        MEM_TOTAL, PGSCAN_DIRECT, PGSCAN_KSWAPD, PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSWPIN, PSWPOUT,
        REFAULT_ANON, REFAULT_FILE,
    };
    use timeline::{Entity, Gauge, Sample, Signal};
    use units::{Bytes, Limit, Span};

    use crate::Level;
    use crate::rules::testing::Case;

    use super::*;

    /// Returns the sample that matters, given a finding between the two samples of `found`.
    fn moment_of(samples: &[Sample], found: Option<(usize, usize)>) -> usize {
        let mut timeline = Timeline::default();
        for sample in samples {
            timeline.push(sample).expect("in order");
        }
        let facts = Facts::default();
        let findings = found.map(|(first, last)| {
            let when = timeline.stretch(first, last).expect("in order");
            rules::ALL[0].found(Severity::Warning, "").during(when)
        });
        moment(&Evidence::new(&timeline, &facts), findings.as_slice())
    }

    fn samples(signal: Signal<Gauge<Bytes>>, sizes: &[u64]) -> Vec<Sample> {
        let numbered = (0..).zip(sizes);
        let sample = numbered.map(|(second, mib)| {
            let mut sample = Sample::default();
            sample.stamp.boot = Span::from_secs(second);
            sample.host.set(signal, Bytes::from_mib(*mib));
            sample
        });
        sample.collect()
    }

    /// A calm host with swap thrash in some seconds, and throttling of the cgroup /lim in others.
    fn host(seconds: usize, thrash: &[(usize, usize)], throttled: &[(usize, usize)]) -> Case {
        let steps = |during: &[(usize, usize)], each: u64| {
            let mut steps = vec![0; seconds];
            during.iter().for_each(|(from, to)| steps[*from..*to].fill(each));
            steps
        };
        let mut available = vec![Bytes::from_gib(3); seconds + 1];
        for (from, to) in thrash {
            available[*from + 1..=*to].fill(Bytes::from_mib(300));
        }
        let high = Limit::Bytes(Bytes::from_mib(80));
        Case::over(seconds as u64)
            .gauge(MEM_TOTAL, Bytes::from_gib(4))
            .gauge_steps(MEM_AVAILABLE, &available)
            .counter_steps(PSWPIN, &steps(thrash, 3000))
            .counter_steps(PSWPOUT, &steps(thrash, 3000))
            .counter_steps(REFAULT_ANON, &steps(thrash, 3000))
            .counter_steps(PSI_MEMORY_SOME, &steps(thrash, 700_000))
            .counter_steps(PSI_MEMORY_FULL, &steps(thrash, 600_000))
            .gauge_of(Entity::Cgroup, "/lim", CGROUP_HIGH, high)
            .gauge_of(Entity::Cgroup, "/lim", CGROUP_CURRENT, Bytes::from_mib(85))
            .counter_steps_of(Entity::Cgroup, "/lim", CGROUP_EVENTS_HIGH, &steps(throttled, 20))
            .counter_steps_of(
                Entity::Cgroup,
                "/lim",
                CGROUP_PSI_MEMORY_SOME,
                &steps(throttled, 900_000),
            )
    }

    fn diagnosed(case: &Case) -> Diagnosis {
        case.with(|cx| diagnose(cx.timeline, cx.facts))
    }

    /// Returns the findings: rule, root, severity, from and to in seconds from `origin` on.
    fn found(
        diagnosis: &Diagnosis,
        origin: usize,
    ) -> Vec<(&'static str, Option<&'static str>, Severity, usize, usize)> {
        let findings = diagnosis.findings.iter();
        findings
            .flat_map(|f| {
                f.stretches()
                    .into_iter()
                    .map(|s| (f.id, f.caused_by, f.severity, s.first - origin, s.last - origin))
            })
            .collect()
    }

    #[test]
    fn an_incident_is_the_same_however_long_the_recording() {
        let alone = found(&diagnosed(&host(60, &[(10, 50)], &[])), 0);
        assert!(alone.contains(&("swap-thrash", None, Severity::Critical, 10, 50)), "{alone:?}");
        for calm in [120, 1800, 7200] {
            let within = host(2 * calm + 60, &[(calm + 10, calm + 50)], &[]);
            assert_eq!(found(&diagnosed(&within), calm), alone, "{calm} s of calm on each side");
        }
    }

    #[test]
    fn two_simultaneous_problems_are_two_roots() {
        let diagnosis = diagnosed(&host(300, &[(100, 160)], &[(120, 200)]));
        let roots: Vec<_> = diagnosis.findings.iter().filter(|f| f.caused_by.is_none()).collect();
        let scopes: Vec<_> = roots.iter().map(|f| (f.id, f.scope.key.as_str())).collect();
        assert!(scopes.contains(&("swap-thrash", "")), "{scopes:?}");
        assert!(scopes.contains(&("cgroup-high-throttle", "/lim")), "{scopes:?}");
    }

    #[test]
    fn a_range_has_the_level_of_its_worst_incident_and_of_its_end() {
        let over = diagnosed(&host(2000, &[(100, 140)], &[])).verdict;
        assert_eq!((over.level, over.now), (Level::Critical, Some(Level::Ok)));
        let fresh = diagnosed(&host(2000, &[(1900, 1940)], &[])).verdict;
        assert_eq!((fresh.level, fresh.now), (Level::Critical, None));
    }

    #[test]
    fn a_live_host_lists_past_incidents_as_earlier() {
        let now = |recent| {
            let case = host(2000, &[(100, 140)], &[]);
            case.with(|cx| diagnose_now(cx.timeline, 1990, cx.facts, recent))
        };
        let long_ago = now(Span::from_mins(15));
        assert!(!long_ago.findings.iter().any(|f| f.id == "swap-thrash"));
        assert_eq!(long_ago.earlier[0].id, "swap-thrash");
        assert_eq!(long_ago.earlier[0].severity, Severity::Critical);
        assert_ne!(long_ago.verdict.level, Level::Critical);
        let within = now(Span::from_hours(1));
        assert_eq!(within.verdict.level, Level::Critical);
        assert!(within.earlier.is_empty());
    }

    #[test]
    fn cheap_bursts_are_counted_and_many_costly_ones_are_a_finding() {
        let bursts = |count: usize| -> Vec<(usize, usize)> {
            (0..count).map(|at| (100 + at * 60, 105 + at * 60)).collect()
        };
        let cheap = |count| {
            let steps = |each: u64| {
                let mut steps = vec![0; 3600];
                bursts(count).iter().for_each(|(from, to)| steps[*from..*to].fill(each));
                steps
            };
            let case = Case::over(3600)
                .counter_steps(PSWPIN, &steps(3000))
                .counter_steps(PSWPOUT, &steps(3000))
                .counter_steps(REFAULT_ANON, &steps(3000))
                .counter_steps(PSI_MEMORY_SOME, &steps(250_000))
                .counter_steps(PSI_MEMORY_FULL, &steps(0));
            diagnosed(&case)
        };
        let few = cheap(3);
        assert!(few.findings.is_empty(), "{:?}", few.findings);
        let counted = &few.bursts[0];
        assert_eq!((counted.id, counted.count()), ("swap-thrash", 3));
        assert_eq!(few.bursts.len(), 1, "{:?}", few.bursts);
        let many = cheap(40);
        let finding = many.findings.iter().find(|f| f.id == "swap-thrash");
        assert_eq!(finding.map(|f| f.occasions.len()), Some(40));
    }

    #[test]
    fn bursts_that_their_stories_clear_are_not_counted() {
        let bursts = |scanned| {
            let mut refaults = vec![0; 3600];
            for at in [100, 900, 2000] {
                refaults[at..at + 5].fill(2000);
            }
            let scanned: Vec<u64> = refaults.iter().map(|pages| pages * scanned).collect();
            let case = Case::over(3600)
                .counter_steps(REFAULT_FILE, &refaults)
                .counter_steps(PGSCAN_KSWAPD, &scanned)
                .counter(PGSCAN_DIRECT, 0)
                .counter(PSI_MEMORY_SOME, 0);
            let diagnosis = diagnosed(&case);
            let is_thrash = |id: &str| id == "page-cache-thrash";
            let counted = diagnosis.bursts.iter().find(|bursts| is_thrash(bursts.id));
            let clear = diagnosis.clear.iter().find(|(id, _)| is_thrash(id));
            (counted.map(Bursts::count), clear.map(|(_, why)| why.clone()))
        };
        assert_eq!(bursts(1), (Some(3), None));
        let (counted, clear) = bursts(0);
        assert_eq!(counted, None);
        let why = clear.unwrap_or_default();
        assert!(why.contains("the host itself evicts nothing"), "{why}");
    }

    #[test]
    fn the_accounting_shows_the_tightest_sample_of_the_worst_finding_else_of_all() {
        let samples = samples(MEM_AVAILABLE, &[500, 90, 80, 300, 300, 20, 400]);
        for (found, matters) in [(None, 5), (Some((0, 4)), 2), (Some((3, 4)), 4)] {
            assert_eq!(moment_of(&samples, found), matters, "{found:?}");
        }
    }

    #[test]
    fn without_memavailable_it_is_the_last_sample_of_the_finding() {
        let samples = samples(MEM_FREE, &[5, 4, 3, 2]);
        for (found, matters) in [(None, 3), (Some((0, 2)), 2)] {
            assert_eq!(moment_of(&samples, found), matters, "{found:?}");
        }
        assert_eq!(moment_of(&[], None), 0);
    }
}
