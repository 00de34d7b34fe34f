//! Synthetic cases for rules' own tests: a host built signal by signal. Accuracy is checked on the corpus.
#![allow(clippy::field_reassign_with_default)] // Facts keeps some fields private

use timeline::signals::{PROC_HEAP_FREE, PROC_HEAP_LIVE, PROC_RSS_ANON};
use timeline::{Counter, Entity, Fact, Facts, Gauge, KernelReport, Sample, Signal, Timeline};
use units::{Bytes, Limit, PageSize, Quantity as _, Span, Unit};

use crate::evidence::{Evidence, Missing};
use crate::finding::{Finding, Fix, FixChange, Outcome, SettingChange, SettingValue};
use crate::judge::causes;
use crate::judge::incidents;
use crate::judge::weight::WaitTracks;
use crate::oom::testing::Report;
use crate::rule::Rule;
use crate::rules;

/// A host sampled once a second, 4 KiB pages.
pub(crate) struct Case {
    samples: Vec<Sample>,
    /// Kernel reports, each with its sample.
    reports: Vec<(usize, KernelReport)>,
    /// Messages of programs about kills.
    notices: Vec<timeline::KillNotice>,
    /// Facts may be added freely.
    pub(crate) facts: Facts,
}

impl Case {
    /// A case of `seconds` intervals of a second, which has one sample more.
    pub(crate) fn over(seconds: u64) -> Self {
        Self::every(Span::from_secs(1), seconds)
    }

    /// A case of as many intervals of this length, which has one sample more.
    pub(crate) fn every(interval: Span, intervals: u64) -> Self {
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        Self {
            samples: (0..=intervals)
                .map(|n| Sample::at(Span::from_nanos(interval.as_nanos() * n)))
                .collect(),
            reports: Vec::new(),
            notices: Vec::new(),
            facts,
        }
    }

    /// A case that consists of one kernel report.
    pub(crate) fn of_report(report: Report) -> Self {
        Self::of_reports([report])
    }

    /// A case of several kernel reports, a second apart.
    pub(crate) fn of_reports<const N: usize>(reports: [Report; N]) -> Self {
        let mut case = Self::once();
        case.samples.clear();
        for (second, report) in (0..).zip(reports) {
            let at = case.samples.len();
            case.samples.push(Sample::at(Span::from_secs(second)));
            case = case.reporting(at, report);
        }
        case
    }

    /// Adds a kernel report at sample `at`, which then shows the host as the report does.
    pub(crate) fn reporting(mut self, at: usize, Report(report): Report) -> Self {
        self.samples[at].host = report.host.clone();
        self.reports.push((at, report));
        self
    }

    /// Adds a kernel report in a second of the case; the sample keeps its readings.
    pub(crate) fn with_report(mut self, second: usize, Report(report): Report) -> Self {
        self.reports.push((second, report));
        self
    }

    /// Adds a program's message about a kill.
    pub(crate) fn noticing(mut self, notice: timeline::KillNotice) -> Self {
        self.notices.push(notice);
        self
    }

    /// A case of one sample.
    pub(crate) fn once() -> Self {
        Self::over(0)
    }

    /// Sets a gauge to a constant.
    pub(crate) fn gauge<U: Unit>(mut self, signal: Signal<Gauge<U>>, value: U) -> Self {
        for sample in &mut self.samples {
            sample.host.set(signal, value);
        }
        self
    }

    /// Sets a gauge sample by sample; the last value continues.
    pub(crate) fn gauge_steps<U: Unit>(mut self, signal: Signal<Gauge<U>>, values: &[U]) -> Self {
        for (i, sample) in self.samples.iter_mut().enumerate() {
            sample.host.set(signal, values[i.min(values.len() - 1)]);
        }
        self
    }

    /// Adds a counter that rises by `per_second` each second, from 1000.
    pub(crate) fn counter<U: Unit>(self, signal: Signal<Counter<U>>, per_second: u64) -> Self {
        let n = self.samples.len();
        self.counter_steps(signal, &vec![per_second; n])
    }

    /// Adds a counter that rises by `increases[i]` in second i.
    pub(crate) fn counter_steps<U: Unit>(
        mut self,
        signal: Signal<Counter<U>>,
        increases: &[u64],
    ) -> Self {
        let mut total = 1000;
        for (i, sample) in self.samples.iter_mut().enumerate() {
            if i > 0 {
                total += increases.get(i - 1).copied().unwrap_or(0);
            }
            sample.host.set(signal, U::from_raw(total));
        }
        self
    }

    /// Sets an entity's gauge to a constant.
    pub(crate) fn gauge_of<U: Unit>(
        mut self,
        entity: Entity,
        key: &str,
        signal: Signal<Gauge<U>>,
        value: U,
    ) -> Self {
        for sample in &mut self.samples {
            sample.table_mut(entity).entry(key).row.set(signal, value);
        }
        self
    }

    /// Sets an entity's gauge sample by sample; the last value continues.
    #[allow(dead_code)]
    pub(crate) fn gauge_steps_of<U: Unit>(
        mut self,
        entity: Entity,
        key: &str,
        signal: Signal<Gauge<U>>,
        values: &[U],
    ) -> Self {
        for (i, sample) in self.samples.iter_mut().enumerate() {
            let row = sample.table_mut(entity).entry(key);
            row.row.set(signal, values[i.min(values.len() - 1)]);
        }
        self
    }

    /// Adds an entity's counter that rises by `per_second` each second, from 1000.
    pub(crate) fn counter_of<U: Unit>(
        mut self,
        entity: Entity,
        key: &str,
        signal: Signal<Counter<U>>,
        per_second: u64,
    ) -> Self {
        for (i, sample) in self.samples.iter_mut().enumerate() {
            let row = sample.table_mut(entity).entry(key);
            row.row.set(signal, U::from_raw(1000 + per_second * i as u64));
        }
        self
    }

    /// Sets a counter to a constant total.
    pub(crate) fn counter_at<U: Unit>(mut self, signal: Signal<Counter<U>>, total: u64) -> Self {
        for sample in &mut self.samples {
            sample.host.set(signal, U::from_raw(total));
        }
        self
    }

    /// Adds an entity's counter that rises by `increases[i]` in second i, from 1000.
    pub(crate) fn counter_steps_of<U: Unit>(
        mut self,
        entity: Entity,
        key: &str,
        signal: Signal<Counter<U>>,
        increases: &[u64],
    ) -> Self {
        let mut total = 1000;
        for (i, sample) in self.samples.iter_mut().enumerate() {
            if i > 0 {
                total += increases.get(i - 1).copied().unwrap_or(0);
            }
            let row = sample.table_mut(entity).entry(key);
            row.row.set(signal, U::from_raw(total));
        }
        self
    }

    /// Sets a gauge of an entity that exists in the first `values.len()` samples only.
    pub(crate) fn gauge_until_of<U: Unit>(
        mut self,
        entity: Entity,
        key: &str,
        signal: Signal<Gauge<U>>,
        values: &[U],
    ) -> Self {
        for (sample, value) in self.samples.iter_mut().zip(values) {
            sample.table_mut(entity).entry(key).row.set(signal, *value);
        }
        self
    }

    /// Reads entities of this kind in every `samples`th sample only, from the first on.
    pub(crate) fn read_every(mut self, samples: usize, entity: Entity) -> Self {
        for (at, sample) in self.samples.iter_mut().enumerate() {
            let table = sample.table_mut(entity);
            while at % samples > 0 && !table.rows().is_empty() {
                table.drop_last();
            }
        }
        self
    }

    /// Reads the malloc heap of a process with each sample: MiB of live and of free memory by the second.
    pub(crate) fn heap_of(mut self, key: &str, heap: impl Fn(f64) -> [f64; 2]) -> Self {
        for sample in &mut self.samples {
            let mib = |size: f64| Bytes::from_f64(size * 1_048_576.0);
            let [live, free] = heap(sample.stamp.boot.as_secs_f64());
            let row = &mut sample.table_mut(Entity::Process).entry(key).row;
            row.set(PROC_HEAP_LIVE, mib(live));
            row.set(PROC_HEAP_FREE, mib(free));
            row.set(PROC_RSS_ANON, mib(live + free));
        }
        self
    }

    /// Puts this time between two samples.
    pub(crate) fn spaced(mut self, interval: Span) -> Self {
        for (n, sample) in (0..).zip(&mut self.samples) {
            let at = Sample::at(Span::from_nanos(interval.as_nanos() * n));
            sample.stamp = at.stamp;
        }
        self
    }

    /// Names a process in some samples only.
    pub(crate) fn named_within(
        mut self,
        key: &str,
        samples: std::ops::Range<usize>,
        name: &str,
    ) -> Self {
        for sample in &mut self.samples[samples] {
            let row = sample.table_mut(Entity::Process).entry(key);
            row.label.clear();
            row.label.push_str(name);
        }
        self
    }

    /// Names a process (key `PID@START`) in all samples.
    #[allow(dead_code)]
    pub(crate) fn named(mut self, key: &str, name: &str) -> Self {
        for sample in &mut self.samples {
            let row = sample.table_mut(Entity::Process).entry(key);
            row.label.clear();
            row.label.push_str(name);
        }
        self
    }

    /// A process `PID@START` of a cgroup with this many MiB of anonymous memory, sample by sample, as long as it lives.
    pub(crate) fn process_in(mut self, group: &str, key: &str, name: &str, mib: &[u64]) -> Self {
        for (sample, mib) in self.samples.iter_mut().zip(mib) {
            let row = sample.table_mut(Entity::Process).entry(key);
            row.label = name.to_owned();
            row.group = group.to_owned();
            row.row.set(PROC_RSS_ANON, Bytes::from_mib(*mib));
        }
        self
    }

    /// Sets a gauge of an entity that exists in some samples only.
    pub(crate) fn gauge_within_of<U: Unit>(
        mut self,
        entity: Entity,
        key: &str,
        samples: std::ops::Range<usize>,
        signal: Signal<Gauge<U>>,
        value: U,
    ) -> Self {
        for sample in &mut self.samples[samples] {
            sample.table_mut(entity).entry(key).row.set(signal, value);
        }
        self
    }

    /// Adds a counter of a cgroup that exists in some samples only and rises by `increases[i]` in second i, from 1000.
    pub(crate) fn counter_within_of<U: Unit>(
        mut self,
        key: &str,
        samples: std::ops::Range<usize>,
        signal: Signal<Counter<U>>,
        increases: &[u64],
    ) -> Self {
        let mut total = 1000;
        for (sample, increase) in self.samples[samples].iter_mut().zip(increases) {
            let row = sample.table_mut(Entity::Cgroup).entry(key);
            row.row.set(signal, U::from_raw(total));
            total += increase;
        }
        self
    }

    /// Records a fact.
    pub(crate) fn fact(mut self, fact: Fact, text: &str) -> Self {
        self.facts.record(Span::ZERO, fact, text);
        self
    }

    /// The engine's result for the rule: the most severe finding, or why there is none.
    fn check(&self, rule: Rule) -> Result<Outcome, Missing> {
        let rule = rules::by_id(rule.id).expect("a rule of the catalogue");
        self.with(|cx| {
            let answer = incidents::evaluate(rule, cx, &WaitTracks::for_host(cx))?;
            let worst = causes::order(cx, answer.incidents).into_iter().next();
            Ok(match worst {
                Some(finding) => finding.into(),
                None => Outcome::Clear(answer.clear),
            })
        })
    }

    /// Returns what `ask` computes from the evidence of the case.
    pub(crate) fn with<T>(&self, ask: impl FnOnce(&Evidence<'_>) -> T) -> T {
        let mut timeline = Timeline::default();
        for (at, sample) in self.samples.iter().enumerate() {
            timeline.push(sample).unwrap();
            for (_, report) in self.reports.iter().filter(|(of, _)| *of == at) {
                timeline.report(report.clone(), None);
            }
        }
        for notice in &self.notices {
            timeline.notice(notice.clone());
        }
        ask(&Evidence::new(&timeline, &self.facts))
    }
}

/// 240 seconds: 40 of each value, with 60 seconds of calm between them.
pub(crate) fn three_times<T: Copy>(values: [T; 3], calm: T) -> Vec<T> {
    let [first, second, third] = values.map(|value| vec![value; 40]);
    [first, vec![calm; 60], second, vec![calm; 60], third].concat()
}

/// Steps of a counter that rises by `n` in one second, and not in the others.
pub(crate) fn in_second(second: usize, of: usize, n: u64) -> Vec<u64> {
    let mut steps = vec![0; of];
    steps[second] = n;
    steps
}

/// All findings of the rule, one for each incident.
#[track_caller]
pub(crate) fn incidents(rule: Rule, case: &Case) -> Vec<Finding> {
    let rule = rules::by_id(rule.id).expect("a rule of the catalogue");
    let answer = case.with(|cx| incidents::evaluate(rule, cx, &WaitTracks::for_host(cx)));
    answer.expect("what it needs").incidents
}

/// An hour of `calm` with 30 seconds of `disease` in the middle.
pub(crate) fn amid_calm<T: Copy>(disease: T, calm: T) -> Vec<T> {
    let mut hour = vec![calm; 3600];
    hour[1800..1830].fill(disease);
    hour
}

/// The times at which a finding held, in seconds.
pub(crate) fn times(finding: &Finding) -> Vec<(usize, usize)> {
    let stretches = finding.stretches();
    stretches.iter().map(|it| (it.first, it.last)).collect()
}

/// The only change of a fix, which is that of a setting.
#[track_caller]
pub(crate) fn setting(fix: &Fix) -> SettingChange {
    let [FixChange::Setting(change)] = &fix.changes[..] else { panic!("{fix:?}") };
    change.clone()
}

/// What a fix changes, one by one: `vm.swappiness=1 -> vm.swappiness=60`, `? -> /app/memory.high=1048576`.
pub(crate) fn changed(fix: &Fix) -> Vec<String> {
    let text = |change: &FixChange| {
        let (from, to) = match change {
            FixChange::Setting(change) => {
                let text = |it: &SettingValue| format!("{}={}", it.fact.name, it.value);
                (change.from.as_ref().map(text), text(&change.to))
            }
            FixChange::Limit(change) => {
                let (group, file) = (&change.cgroup, change.file);
                let text = |it| format!("{group}/{}={}", file.name(), file.written(it));
                (change.from.map(text), text(Limit::Bytes(change.to)))
            }
            FixChange::Command(command) => (None, command.now.clone()),
        };
        format!("{} -> {to}", from.as_deref().unwrap_or("?"))
    };
    fix.changes.iter().map(text).collect()
}

/// Asserts that the rule fires, and that its finding is complete enough to print.
#[track_caller]
pub(crate) fn found(rule: Rule, case: &Case) -> Finding {
    match case.check(rule) {
        Ok(Outcome::Found(finding)) => {
            assert!(finding.title.ends_with('.'), "{}", finding.title);
            assert!(!finding.evidence.is_empty(), "{} shows nothing", rule.id);
            assert!(finding.confidence.value > 0.0, "{} says not how sure", rule.id);
            *finding
        }
        other => panic!("{} should fire: {other:?}", rule.id),
    }
}

/// Asserts that the rule is evaluated and finds nothing.
#[track_caller]
pub(crate) fn clear(rule: Rule, case: &Case) -> String {
    match case.check(rule) {
        Ok(Outcome::Clear(why)) => why,
        other => panic!("{} should be clear: {other:?}", rule.id),
    }
}

/// Asserts that the rule is not evaluated, and returns what it lacks.
#[track_caller]
pub(crate) fn not_evaluated(rule: Rule, case: &Case) -> Missing {
    match case.check(rule) {
        Err(missing) => missing,
        other => panic!("{} should lack something: {other:?}", rule.id),
    }
}
