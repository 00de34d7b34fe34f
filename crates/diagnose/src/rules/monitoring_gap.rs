//! The source has gaps, so conclusions are limited.

use timeline::BreakKind;
use timeline::signals::{ALLOCSTALL, PGMAJFAULT, PSI_MEMORY_SOME, PSWPIN, RECORDER_LATE};
use units::Micros;

use crate::measures::psi_average::PressureAverage;
use crate::prelude::*;

declare_rule! {
    /// The source has gaps: no rule can see what happened in them, or what the source does not measure.
    ///
    /// ## What it means
    /// Samples ten minutes apart do not show two minutes of thrashing, a source without stalls or refaults does not
    /// show a shortage, and after a reboot or in a gap nothing was recorded. "Nothing found" then means less.
    /// ## How it is recognised
    /// One of these: gaps, suspends or reboots in the recording; samples more than {COARSE} apart; a recorder that was
    /// late for {LATE_SHARE} of the time, or by a second or more, {LATE_IN_ALL} in all (with memory stalls at that time, the
    /// host stalled; without, only the recorder was stopped or starved); no memory pressure and no allocation stalls;
    /// no refaults; readings dropped because there were too many processes. A single sample is not a gap: its findings
    /// say what it cannot show.
    /// ## Not this
    /// - A short recording: it is complete, only short.
    /// - A suspended machine: its recorder is not late, because the time asleep is known.
    /// ## What to do
    /// Capture on the host itself (`memtide capture`), every few seconds, over a whole work cycle; boot with `psi=1` if
    /// pressure is compiled in but off. Verify: this note is gone.
    /// ## References
    /// - kernel Documentation/accounting/psi.rst
    pub(crate) RULE = { id: "monitoring-gap", since: "0.1.0", class: Source,
        numbers: [COARSE, LATE_IN_ALL, LATE_SHARE],
        trigger: || Trigger::Source, story: story,
        verify: "memtide check of the new recording does not show this note",
    }
}

/// An engineering choice: a shortage can come and go within minutes.
const COARSE: Span = Span::from_mins(5);
/// A sample is late from this multiple of the median interval on; reclaim delays a recorder by up to 4 s at 1 s
/// (labelled captures), which is not a gap.
const LATE_INTERVALS: f64 = 5.0;
/// A recorder that was late for less than this in total missed almost nothing; an engineering choice.
const LATE_IN_ALL: Span = Span::from_secs(5);
/// An engineering choice: the recorder missed a considerable part.
const LATE_SHARE: Ratio = Ratio::from_percent(20.0);

fn story<'a>(cx: &Evidence<'a>, _: &Incident<'a>) -> Result<Outcome, Missing> {
    if cx.is_single_sample() {
        return clear!("a single sample: levels only, and no gap in it");
    }
    let interval = cx.timeline.interval().unwrap_or_default();
    let mut gaps = gaps_in_time(cx, interval);
    gaps.extend(blind_spots(cx));
    let samples = cx.timeline.len();
    let Some(worst) = gaps.first() else {
        return clear!("{samples} samples, {interval} apart, without a gap");
    };
    let title = format!("This source can prove only some things: {worst}.");
    let cause =
        format!("{samples} samples over {}: rules see only what is in them.", cx.recorded());
    let finding = RULE.found(Severity::Info, title);
    Ok(gaps
        .iter()
        .fold(finding, Finding::with_line)
        .cause(cause)
        .counts_as("the samples' own times and fields")
        .fix(
            Fix::say(
                "Capture on the host itself, over a whole work cycle. If /proc/pressure is \
                 missing, boot with psi=1 on the kernel command line.",
            )
            .inspect("memtide capture --for 24h --every 10s -o day.jsonl.zst"),
        )
        .sure_by_kinds(cx, "")
        .into())
}

/// Times without samples.
fn gaps_in_time(cx: &Evidence<'_>, interval: Span) -> Vec<String> {
    let mut texts = Vec::new();
    let mut gaps = Vec::new();
    let (mut suspends, mut reboots) = (0_u32, 0_u32);
    for gap in cx.timeline.breaks() {
        match gap.kind {
            BreakKind::Gap(span) => gaps.push(span),
            BreakKind::Suspend(_) => suspends += 1,
            BreakKind::Reboot => reboots += 1,
            BreakKind::ClockForward(_) | BreakKind::ClockBack(_) | BreakKind::NewSegment => {}
        }
    }
    if let Some(longest) = gaps.iter().max_by_key(|gap| gap.as_nanos()) {
        let all = gaps.iter().fold(Span::ZERO, |sum, gap| sum.plus(*gap));
        texts.push(match gaps.len() {
            1 => format!("a gap of {longest}"),
            n => format!("{n} gaps of {all} in all, up to {longest}"),
        });
    }
    texts.extend(times(suspends, "the machine was suspended"));
    texts.extend(times(reboots, "the machine was restarted"));
    if interval > COARSE {
        texts.push(format!("samples are {interval} apart"));
    }
    if let Some(late) = late(cx, interval) {
        texts.push(format!("samples were late for {late} of the time"));
    }
    texts.extend(lateness(cx));
    let cut = cx.timeline.left_out().entity_rows;
    if cut > 0 {
        let cut = Count::new(cut as u64);
        texts.push(format!("{cut} readings of processes and cgroups were dropped"));
    }
    texts
}

/// The recorder's own lateness. With memory stalls at the same time, the host stalled; otherwise the recorder or its
/// virtual machine was stopped or starved of CPU.
fn lateness(cx: &Evidence<'_>) -> Vec<String> {
    let Some(late) = cx.timeline.gauge(RECORDER_LATE) else {
        return Vec::new();
    };
    let (mut with_stalls, mut without_stalls) = (Lateness::default(), Lateness::default());
    for index in 1..cx.timeline.len() {
        let Some(by) = late.at(index).filter(|by| *by >= PressureWindow::LATE) else {
            continue;
        };
        match waited_before(cx, index) {
            Some(share) if share >= PressureWindow::MEMORY => with_stalls.add(by),
            Some(_) => without_stalls.add(by),
            None => {}
        }
    }
    [
        (
            with_stalls,
            "while tasks waited for memory: the host stalled, and samples are missing there",
        ),
        (
            without_stalls,
            "while no task waited for memory: it or its virtual machine was stopped or starved of \
             CPU",
        ),
    ]
    .into_iter()
    .filter(|(late, _)| late.in_all >= LATE_IN_ALL)
    .map(|(late, why)| format!("the recorder was late {}, {why}", late.times()))
    .collect()
}

/// The share of the time before a sample in which tasks waited for memory. It is computed from the totals at both
/// ends, because a very late recorder leaves a gap without a rate; `None` if the machine was suspended or rebooted.
fn waited_before(cx: &Evidence<'_>, index: usize) -> Option<Ratio> {
    use BreakKind::{NewSegment, Reboot, Suspend};
    let is_reset = |kind| matches!(kind, Suspend(_) | Reboot | NewSegment);
    let mut breaks = cx.timeline.breaks().iter();
    if breaks.any(|gap| gap.before == index && is_reset(gap.kind)) {
        return None;
    }
    let total = |index| cx.timeline.at(PSI_MEMORY_SOME, index).map(Micros::get);
    let waited = Micros::new(total(index)?.checked_sub(total(index - 1)?)?);
    let times = cx.timeline.times();
    let elapsed = (times[index] - times[index - 1]).as_secs_f64();
    (elapsed > 0.0).then(|| Ratio::new(waited.to_span().as_secs_f64() / elapsed))
}

/// How often a recorder was late, and by how much.
#[derive(Debug, Clone, Copy, Default)]
struct Lateness {
    count: u64,
    most: Span,
    in_all: Span,
}

impl Lateness {
    fn add(&mut self, by: Micros) {
        let by = by.to_span();
        self.count += 1;
        self.most = self.most.max(by);
        self.in_all = self.in_all.plus(by);
    }

    fn times(&self) -> String {
        match self.count {
            1 => format!("by {}", self.most),
            n => format!("{} times, by up to {}", Count::new(n), self.most),
        }
    }
}

/// Names the signals that rules about shortages need and that the source lacks.
fn blind_spots(cx: &Evidence<'_>) -> impl Iterator<Item = String> {
    let no_stalls = cx.stall(PSI_MEMORY_SOME).is_err()
        && cx.rate(ALLOCSTALL).is_err()
        && PressureAverage::for_memory(cx).is_none();
    let no_swap = cx.rate(PSWPIN).is_err() && cx.rate(PGMAJFAULT).is_err();
    [
        (no_stalls, "stalls are not measured"),
        (cx.refaults_file().is_err(), "refaults are not measured"),
        (no_swap, "swap traffic is not measured"),
    ]
    .into_iter()
    .filter(|(blind, _)| *blind)
    .map(|(_, text)| text.to_owned())
}

fn times(n: u32, what: &str) -> Option<String> {
    match n {
        0 => None,
        1 => Some(what.to_owned()),
        n => Some(format!("{what} {n} times")),
    }
}

/// The share of time in intervals far longer than the median, where it matters.
fn late(cx: &Evidence<'_>, interval: Span) -> Option<Ratio> {
    let limit = interval.times(LATE_INTERVALS);
    let late = cx
        .timeline
        .times()
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|step| *step > limit)
        .fold(Span::ZERO, Span::plus);
    let share = late.as_secs_f64() / cx.timeline.duration().as_secs_f64().max(f64::MIN_POSITIVE);
    (share >= LATE_SHARE.get()).then(|| Ratio::new(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::rules::testing::{Case, clear, found};
    use timeline::signals::{MEM_FREE, PSI_MEMORY_SOME_AVG60, REFAULT_FILE};
    use timeline::{Facts, Sample, Timeline};
    use units::{Bytes, Micros, Pages};

    fn complete(seconds: u64) -> Case {
        Case::over(seconds).counter(PSI_MEMORY_SOME, 0).counter(REFAULT_FILE, 0).counter(PSWPIN, 0)
    }

    /// A source that measures everything, sampled at these seconds.
    fn at(seconds: &[u64]) -> Option<String> {
        let mut timeline = Timeline::default();
        for s in seconds {
            let mut sample = Sample::at(Span::from_secs(*s));
            sample.host.set(MEM_FREE, Bytes::from_mib(1));
            sample.host.set(ALLOCSTALL, Count::ZERO);
            sample.host.set(REFAULT_FILE, Pages::ZERO);
            sample.host.set(PSWPIN, Pages::ZERO);
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let stretch = timeline.whole().unwrap();
        match story(&cx, &Incident { stretch, of: None, key: None }).unwrap() {
            Outcome::Found(finding) => Some(finding.title.to_string()),
            Outcome::Clear(_) => None,
        }
    }

    #[test]
    fn a_complete_source_has_no_gap_however_short() {
        clear(RULE, &complete(10));
        clear(RULE, &Case::once());
        // Reclaim may delay a recorder by some seconds now and then.
        assert_eq!(at(&[0, 1, 2, 5, 6, 7, 11, 12, 13]), None);
    }

    #[test]
    fn gaps_coarse_and_late_samples_are_reported() {
        let mut gap: Vec<u64> = (0..20).collect();
        gap.extend(3600..3620);
        assert!(at(&gap).unwrap().contains("a gap of 60 min"));
        assert!(at(&[0, 600, 1200]).unwrap().contains("10 min apart"));
        let late: Vec<u64> = [0, 1, 2, 3, 4, 5, 20, 21, 22, 23].to_vec();
        assert!(at(&late).unwrap().contains("late"));
    }

    #[test]
    fn a_late_recorder_says_whether_the_host_stood_still() {
        let case = |waits: u64, late: &[u64]| {
            let late: Vec<_> = late.iter().map(|ms| Micros::new(ms * 1000)).collect();
            let case = Case::over(60).counter(PSI_MEMORY_SOME, waits * 10_000);
            case.counter(REFAULT_FILE, 0).counter(PSWPIN, 0).gauge_steps(RECORDER_LATE, &late)
        };
        let often = [0, 4_000, 3_000, 10, 2_000, 0];
        let title = |case: &Case| found(RULE, case).title;
        let stood_still = title(&case(60, &often));
        assert!(stood_still.contains("3 times, by up to 4 s, while tasks waited"), "{stood_still}");
        let stopped = title(&case(0, &often));
        assert!(
            stopped
                .contains("while no task waited for memory: it or its virtual machine was stopped"),
            "{stopped}"
        );
        clear(RULE, &case(60, &[0, 3_000, 0]));
        clear(RULE, &case(60, &[20]));
    }

    #[test]
    fn totals_show_stalls_over_a_gap_but_not_over_a_suspend() {
        let late_over = |waited: u64, slept: u64| {
            let mut timeline = Timeline::default();
            for (boot, awake, total) in [(0, 0, 0), (1, 1, 0), (2, 2, 0), (92, 92 - slept, waited)]
            {
                let mut sample = Sample::at(Span::from_secs(boot));
                sample.stamp.awake = Some(Span::from_secs(awake));
                sample.host.set(PSI_MEMORY_SOME, Micros::new(total * 1_000_000));
                let late = if boot == 92 { 89_000_000 } else { 0 };
                sample.host.set(RECORDER_LATE, Micros::new(late));
                timeline.push(&sample).unwrap();
            }
            let facts = Facts::default();
            lateness(&Evidence::new(&timeline, &facts)).join(" ")
        };
        assert!(late_over(60, 0).contains("the host stalled"));
        assert!(late_over(1, 0).contains("no task waited"));
        assert_eq!(late_over(60, 60), "");
    }

    #[test]
    fn missing_signals_are_reported() {
        let case = Case::over(20)
            .gauge(MEM_FREE, Bytes::from_mib(1))
            .counter(PSWPIN, 0)
            .counter(REFAULT_FILE, 0);
        let finding = found(RULE, &case);
        assert!(finding.title.contains("stalls"), "{}", finding.title);
        assert_eq!(finding.severity, Severity::Info);
        // Pressure averages in one of the samples count as a measurement.
        clear(RULE, &case.gauge(PSI_MEMORY_SOME_AVG60, Micros::new(0)));
    }
}
