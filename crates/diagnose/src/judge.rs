//! All rules on one source, and what comes out.

mod bursts;
pub(crate) mod causes;
pub(crate) mod incidents;
pub(crate) mod next_steps;
mod recent_kills;
pub(crate) mod rounding;
mod segments;
pub(crate) mod verdict;
pub(crate) mod weight;
mod without_memtotal;

use std::cmp::Reverse;

use timeline::{Facts, Stretch, Timeline, signals::MEM_AVAILABLE};
use units::Span;

use crate::accounting::{Accounting, account};
use crate::evidence::{Evidence, Missing};
use crate::finding::{Bursts, Harm};
use crate::finding::{Finding, Severity};
use crate::rule::{Class, Rule};
use crate::rules;
use next_steps::NextStep;
use verdict::Verdict;
use weight::WaitTracks;

/// What all rules say of a source.
#[derive(Debug)]
pub struct Diagnosis {
    /// In one sentence.
    pub verdict: Verdict,
    /// What is wrong: the worst root first, each followed by its consequences.
    pub findings: Vec<Finding>,
    /// What looks wrong and is not.
    pub notes: Vec<Finding>,
    /// Where a host is asked how it is now: what is over. It is no part of the verdict.
    pub earlier: Vec<Finding>,
    /// What was too short and too cheap to be told one by one.
    pub bursts: Vec<Bursts>,
    /// What was looked for and is not there: rule and reason.
    pub clear: Vec<(&'static str, String)>,
    /// What could not be looked for: rule and what it lacks.
    pub not_evaluated: Vec<(&'static str, Missing)>,
    /// What RAM held at the moment that matters: the tightest of the worst finding, else of all. Whoever shows one moment
    /// shows this one.
    pub accounting: Result<Accounting, Missing>,
    /// What to run on that host to learn what the source could not say.
    pub next: Vec<NextStep>,
}

/// Asks every rule about all that was watched: of each stretch of time by itself, where the source has several of which
/// nobody knows how they lie to each other.
pub fn diagnose(timeline: &Timeline, facts: &Facts) -> Diagnosis {
    if timeline.is_one_segment() {
        return judge(&Evidence::new(timeline, facts));
    }
    let stretches = timeline.segments();
    segments::merge(
        &Evidence::new(timeline, facts),
        stretches
            .iter()
            .map(|one| (one, judge(&Evidence::new(one, facts)))),
    )
}

/// Asks every rule how a host is now: what ended longer than `recent` ago is told as earlier and is no part of the verdict.
/// The look at the host begins with sample `live_from`; what is before it comes from a recording.
pub fn diagnose_now(
    timeline: &Timeline,
    live_from: usize,
    facts: &Facts,
    recent: Span,
) -> Diagnosis {
    let all = Evidence::new(timeline, facts);
    let answers = Answers::of(&all);
    let end = timeline.times().last().copied().unwrap_or_default();
    let is_now = |finding: &Finding| finding.when.is_none_or(|when| end - when.to <= recent);
    let (now, earlier): (Vec<_>, Vec<_>) = answers.incidents.into_iter().partition(is_now);
    let kills = recent_kills::findings(timeline, facts, recent);
    let findings = causes::with_earlier(causes::order(&all, now), kills);
    let mut earlier = causes::order(&all, earlier);
    join(answers.untold, &mut earlier);
    earlier.retain(|finding| finding.caused_by.is_none() && finding.severity > Severity::Info);
    earlier.sort_by_key(|finding| finding.when.map(|when| when.from));
    let live = timeline.part(live_from.min(timeline.len()), timeline.len());
    let look = Evidence::new(&live, facts);
    let mut accounting = account(&look, moment(&look, &[]));
    if let Ok(accounting) = &mut accounting {
        accounting.index += live_from;
    }
    Diagnosis {
        verdict: Verdict::of_long(&look, timeline.recorded(), &findings),
        findings,
        notes: answers.notes.into_iter().filter(is_now).collect(),
        earlier,
        bursts: answers.bursts,
        clear: answers.clear,
        next: next_steps::steps(&look, &answers.not_evaluated),
        not_evaluated: answers.not_evaluated,
        accounting,
    }
}

impl Diagnosis {
    /// The same of a source that has more than was read: whatever happened then is not known.
    #[must_use]
    pub fn of_a_beginning(mut self, read: Span) -> Self {
        self.verdict = self.verdict.of_a_beginning(read);
        self
    }
}

/// Adds the times of incidents that are too many to be told to the findings of their kind.
fn join(untold: Vec<incidents::Unreported>, findings: &mut [Finding]) {
    for one in untold {
        one.join(findings);
    }
    for finding in findings {
        finding.occasions.sort_by_key(|one| one.stretch.first);
    }
}

/// Asks every rule about one stretch of time.
pub(crate) fn judge(cx: &Evidence<'_>) -> Diagnosis {
    let answers = Answers::of(cx);
    let mut findings = causes::order(cx, answers.incidents);
    join(answers.untold, &mut findings);
    Diagnosis {
        verdict: Verdict::of(cx, &findings),
        accounting: account(cx, moment(cx, &findings)),
        findings,
        notes: answers.notes,
        earlier: Vec::new(),
        bursts: answers.bursts,
        clear: answers.clear,
        next: next_steps::steps(cx, &answers.not_evaluated),
        not_evaluated: answers.not_evaluated,
    }
}

/// What all rules answer about one stretch of time, before incidents are joined to findings.
pub(crate) struct Answers {
    pub(crate) incidents: Vec<Finding>,
    notes: Vec<Finding>,
    untold: Vec<incidents::Unreported>,
    bursts: Vec<Bursts>,
    clear: Vec<(&'static str, String)>,
    not_evaluated: Vec<(&'static str, Missing)>,
}

impl Answers {
    pub(crate) fn of(cx: &Evidence<'_>) -> Self {
        let mut all = Self {
            incidents: Vec::new(),
            notes: Vec::new(),
            untold: Vec::new(),
            bursts: Vec::new(),
            clear: Vec::new(),
            not_evaluated: Vec::new(),
        };
        let waiting = WaitTracks::of_host(cx);
        for rule in rules::ALL {
            let answer = incidents::ask(rule, cx, &waiting)
                .and_then(|answer| rounding::survives(cx, rule, answer));
            match answer {
                Ok(answer) => all.take(rule, answer),
                Err(missing) => all.not_evaluated.push((rule.id, missing)),
            }
        }
        all.drop_explained();
        all
    }

    /// What another rule has an incident for at the same time, in which tasks waited or were killed, is explained.
    fn drop_explained(&mut self) {
        let is_unexplained =
            |id: &str| rules::by_id(id).is_some_and(|rule| rule.class == Class::Unexplained);
        let costs = |harm: Harm| harm.killed > 0 || harm.waited > Some(Span::ZERO);
        let of_others = self.incidents.iter().filter(|it| !is_unexplained(it.id));
        let of_others = of_others.filter(|it| costs(it.harm));
        let mut times: Vec<Stretch> = of_others.flat_map(Finding::stretches).collect();
        let untold = self.untold.iter().filter(|it| !is_unexplained(it.id));
        times.extend(untold.filter(|it| costs(it.harm)).map(|it| it.stretch));
        let is_at = |when: &Stretch, times: &[Stretch]| times.iter().any(|it| it.overlaps(when));
        let mut dropped = Vec::new();
        self.incidents.retain(|it| {
            let is_explained = it.when.is_some_and(|when| is_at(&when, &times));
            let is_left = !is_unexplained(it.id) || !is_explained;
            dropped.extend((!is_left).then_some(it.id));
            is_left
        });
        self.untold
            .retain(|it| !is_unexplained(it.id) || !is_at(&it.stretch, &times));
        // A burst explains a burst.
        let bursts = self.bursts.iter().filter(|it| !is_unexplained(it.id));
        times.extend(bursts.flat_map(|it| it.stretches.iter().copied()));
        for bursts in self.bursts.iter_mut().filter(|it| is_unexplained(it.id)) {
            let count = bursts.stretches.len();
            bursts.stretches.retain(|stretch| !is_at(stretch, &times));
            if bursts.stretches.len() < count {
                // What the rest cost is not known.
                bursts.waited = None;
                dropped.push(bursts.id);
            }
        }
        self.bursts.retain(|it| !it.stretches.is_empty());
        let why = "each stall has its cause among the findings";
        self.clear
            .extend(dropped.into_iter().map(|id| (id, why.to_owned())));
        let known = |id: &str| {
            self.incidents.iter().any(|finding| finding.id == id)
                || self.bursts.iter().any(|bursts| bursts.id == id)
        };
        let mut said: Vec<&str> = Vec::new();
        self.clear.retain(|(id, _)| {
            let is_first = !said.contains(id);
            said.push(id);
            is_first && !known(id)
        });
    }

    fn take(&mut self, rule: &'static Rule, answer: incidents::RuleAnswer) {
        // What came in bursts is not clear, and not told one by one.
        if answer.is_empty() {
            let why = match answer.clear.is_empty() {
                true => "nothing showed it".to_owned(),
                false => answer.clear,
            };
            self.clear.push((rule.id, why));
        }
        self.untold.extend(answer.untold);
        if rule.is_note() {
            let joined = answer.incidents.into_iter().reduce(|mut one, other| {
                one.join(other);
                one
            });
            self.notes.extend(joined);
        } else {
            self.incidents.extend(answer.incidents);
        }
        self.bursts.extend(answer.bursts);
    }
}

/// The moment that matters: where the least was available while the worst finding held, or at all where nothing was
/// found. Of moments alike the last one.
fn moment(cx: &Evidence<'_>, findings: &[Finding]) -> usize {
    let last = cx.timeline.len().saturating_sub(1);
    let held = findings.first().and_then(|finding| finding.when);
    // The sample before the first interval counts too: a kill ends the shortage that it is about.
    let (from, to) = held.map_or((0, last), |when| (when.first, when.last.min(last)));
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

    /// The moment that matters on these samples, where something was found from the one to the other.
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

    /// A host that is calm but for swap thrash in some of its seconds, and whose group /lim is throttled in others.
    fn host(seconds: usize, thrash: &[(usize, usize)], throttled: &[(usize, usize)]) -> Case {
        let steps = |during: &[(usize, usize)], each: u64| {
            let mut steps = vec![0; seconds];
            during
                .iter()
                .for_each(|(from, to)| steps[*from..*to].fill(each));
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
            .counter_steps_of(
                Entity::Cgroup,
                "/lim",
                CGROUP_EVENTS_HIGH,
                &steps(throttled, 20),
            )
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

    /// What was found: rule, root, severity, from and to in seconds from `origin` on.
    fn found(
        diagnosis: &Diagnosis,
        origin: usize,
    ) -> Vec<(&'static str, Option<&'static str>, Severity, usize, usize)> {
        let findings = diagnosis.findings.iter();
        findings
            .flat_map(|f| {
                f.stretches().into_iter().map(|s| {
                    (
                        f.id,
                        f.caused_by,
                        f.severity,
                        s.first - origin,
                        s.last - origin,
                    )
                })
            })
            .collect()
    }

    #[test]
    fn what_happened_is_found_alike_however_much_is_watched_around_it() {
        let alone = found(&diagnosed(&host(60, &[(10, 50)], &[])), 0);
        assert!(
            alone.contains(&("swap-thrash", None, Severity::Critical, 10, 50)),
            "{alone:?}"
        );
        for calm in [120, 1800, 7200] {
            let within = host(2 * calm + 60, &[(calm + 10, calm + 50)], &[]);
            assert_eq!(
                found(&diagnosed(&within), calm),
                alone,
                "{calm} s of calm on each side"
            );
        }
    }

    #[test]
    fn two_diseases_at_once_are_two_roots() {
        let diagnosis = diagnosed(&host(300, &[(100, 160)], &[(120, 200)]));
        let roots: Vec<_> = diagnosis
            .findings
            .iter()
            .filter(|f| f.caused_by.is_none())
            .collect();
        let scopes: Vec<_> = roots.iter().map(|f| (f.id, f.scope.key.as_str())).collect();
        assert!(scopes.contains(&("swap-thrash", "")), "{scopes:?}");
        assert!(
            scopes.contains(&("cgroup-high-throttle", "/lim")),
            "{scopes:?}"
        );
    }

    #[test]
    fn a_range_has_the_verdict_of_its_worst_incident_and_says_that_it_is_over() {
        let over = diagnosed(&host(2000, &[(100, 140)], &[])).verdict;
        assert_eq!((over.level, over.now), (Level::Critical, Some(Level::Ok)));
        let fresh = diagnosed(&host(2000, &[(1900, 1940)], &[])).verdict;
        assert_eq!((fresh.level, fresh.now), (Level::Critical, None));
    }

    #[test]
    fn a_host_that_is_asked_how_it_is_now_has_what_is_over_apart() {
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
    fn short_and_cheap_ones_are_counted_and_many_that_cost_much_together_are_told() {
        let bursts = |count: usize| -> Vec<(usize, usize)> {
            (0..count)
                .map(|at| (100 + at * 60, 105 + at * 60))
                .collect()
        };
        let cheap = |count| {
            let steps = |each: u64| {
                let mut steps = vec![0; 3600];
                bursts(count)
                    .iter()
                    .for_each(|(from, to)| steps[*from..*to].fill(each));
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
        let told = many.findings.iter().find(|f| f.id == "swap-thrash");
        assert_eq!(told.map(|f| f.occasions.len()), Some(40));
    }

    #[test]
    fn bursts_that_their_stories_clear_are_not_counted() {
        let bursts = |scanned| {
            let mut again = vec![0; 3600];
            for at in [100, 900, 2000] {
                again[at..at + 5].fill(2000);
            }
            let scanned: Vec<u64> = again.iter().map(|pages| pages * scanned).collect();
            let case = Case::over(3600)
                .counter_steps(REFAULT_FILE, &again)
                .counter_steps(PGSCAN_KSWAPD, &scanned)
                .counter(PGSCAN_DIRECT, 0)
                .counter(PSI_MEMORY_SOME, 0);
            let diagnosis = diagnosed(&case);
            let is_it = |id: &str| id == "page-cache-thrash";
            let counted = diagnosis.bursts.iter().find(|bursts| is_it(bursts.id));
            let clear = diagnosis.clear.iter().find(|(id, _)| is_it(id));
            (
                counted.map(Bursts::count),
                clear.map(|(_, why)| why.clone()),
            )
        };
        assert_eq!(bursts(1), (Some(3), None));
        let (counted, clear) = bursts(0);
        assert_eq!(counted, None);
        let why = clear.unwrap_or_default();
        assert!(why.contains("the host itself evicts nothing"), "{why}");
    }

    #[test]
    fn the_moment_that_matters_is_the_tightest_of_the_worst_finding_else_of_all() {
        let samples = samples(MEM_AVAILABLE, &[500, 90, 80, 300, 300, 20, 400]);
        for (found, matters) in [(None, 5), (Some((0, 4)), 2), (Some((3, 4)), 4)] {
            assert_eq!(moment_of(&samples, found), matters, "{found:?}");
        }
    }

    #[test]
    fn without_memavailable_it_is_the_last_of_what_was_found() {
        let samples = samples(MEM_FREE, &[5, 4, 3, 2]);
        for (found, matters) in [(None, 3), (Some((0, 2)), 2)] {
            assert_eq!(moment_of(&samples, found), matters, "{found:?}");
        }
        assert_eq!(moment_of(&[], None), 0);
    }
}
