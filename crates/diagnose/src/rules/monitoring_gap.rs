//! What was watched has holes, so conclusions are limited.

use timeline::BreakKind;
use timeline::signals::{ALLOCSTALL, PGMAJFAULT, PSI_MEMORY_SOME, PSWPIN, RECORDER_LATE};
use units::Micros;

use crate::measures::psi_average::Lately;
use crate::prelude::*;

declare_rule! {
    /// The source has holes: what happened in them, or what it does not measure, no rule could see.
    ///
    /// ## What it means
    /// A thrash of two minutes does not show in samples ten minutes apart, a shortage does not show without stalls or
    /// refaults, and after a reboot or in a gap nobody watched. "Nothing found" then means less.
    /// ## How it is recognised
    /// One of these: gaps, suspends or reboots in the recording; samples more than 5 minutes apart; a recorder that came
    /// late itself for a fifth of the time, or by a second and more, 5 s in all: while tasks waited for memory that is
    /// evidence that the host stood still, and without it the recorder alone was stopped or starved; no memory pressure and
    /// no allocation stalls; no refaults; readings dropped because there were too many processes. A single sample is not
    /// called a gap: it says itself what it cannot tell.
    /// ## Not this
    /// - A short recording: it is whole, only short.
    /// - A suspended machine: its recorder is not late, as the time is known to be slept.
    /// ## What to do
    /// Capture on the host itself (`memtide capture`), every few seconds, over a whole cycle of the work; boot with `psi=1`
    /// where pressure is compiled in but off. Verify: this note is gone.
    /// ## References
    /// - kernel Documentation/accounting/psi.rst
    pub(crate) RULE = { id: "monitoring-gap", since: "0.1.0", class: Source,
        trigger: || Trigger::Source, story: story,
        verify: "memtide check of the new recording does not show this note",
    }
}

/// An engineering choice: a shortage comes and goes within minutes.
const COARSE: Span = Span::from_mins(5);
/// A sample is late from this multiple of the usual interval on; reclaim delays a recorder by up to 4 s at 1 s (labelled
/// captures), which is genuine and no gap.
const LATE: f64 = 5.0;
/// A recorder that was late for less than this in all missed next to nothing; an engineering choice.
const LATE_IN_ALL: Span = Span::from_secs(5);
/// From here on the recorder missed what it was to see.
const LATE_SHARE: Ratio = Ratio::from_percent(20.0);

fn story<'a>(cx: &Evidence<'a>, _: &Incident<'a>) -> Result<Outcome, Missing> {
    if cx.is_single_look() {
        return clear!("a single sample: levels only, and no hole in it");
    }
    let usual = cx.timeline.interval().unwrap_or_default();
    let mut holes = in_time(cx, usual);
    holes.extend(blind_spots(cx));
    let samples = cx.timeline.len();
    let Some(worst) = holes.first() else {
        return clear!("{samples} samples, {usual} apart, without a gap");
    };
    let title = format!("What this source can prove is limited: {worst}.");
    let cause = format!(
        "{samples} samples over {}: rules saw only what is in them.",
        cx.look()
    );
    let finding = RULE.found(Severity::Info, title);
    Ok(holes
        .iter()
        .fold(finding, Finding::tells)
        .cause(cause)
        .counts_as("the samples' own times and fields")
        .fix(Fix::say("Capture on the host itself, over a whole cycle of its work. Where /proc/pressure is missing, psi=1 on the kernel's command line brings it.").look("memtide capture --for 24h --every 10s -o day.jsonl.zst"))
        .sure_by_kinds(cx, "")
        .into())
}

/// Times at which nobody watched.
fn in_time(cx: &Evidence<'_>, usual: Span) -> Vec<String> {
    let mut texts = Vec::new();
    let mut gaps = Vec::new();
    let (mut suspends, mut reboots) = (0_u32, 0_u32);
    for hole in cx.timeline.breaks() {
        match hole.kind {
            BreakKind::Gap(span) => gaps.push(span),
            BreakKind::Suspend(_) => suspends += 1,
            BreakKind::Reboot => reboots += 1,
            BreakKind::ClockForward(_) | BreakKind::ClockBack(_) | BreakKind::NewSegment => {}
        }
    }
    if let Some(longest) = gaps.iter().max_by_key(|s| s.as_nanos()) {
        let all = gaps.iter().fold(Span::ZERO, |sum, s| sum.plus(*s));
        texts.push(match gaps.len() {
            1 => format!("nobody looked for {longest}"),
            n => format!("nobody looked {n} times, {all} in all, up to {longest}"),
        });
    }
    texts.extend(times(suspends, "the machine was suspended"));
    texts.extend(times(reboots, "the machine was restarted"));
    if usual > COARSE {
        texts.push(format!("samples are {usual} apart"));
    }
    if let Some(late) = late(cx, usual) {
        texts.push(format!("samples came late for {late} of the time"));
    }
    texts.extend(lateness(cx));
    let cut = cx.timeline.dropped_entity_rows();
    if cut > 0 {
        let cut = Count::new(cut as u64);
        texts.push(format!(
            "{cut} readings of processes and groups were dropped"
        ));
    }
    texts
}

/// What a recorder says of its own lateness: where tasks waited for memory at the same time, the host stood still; else
/// the recorder was stopped or starved of CPU, or its virtual machine was.
fn lateness(cx: &Evidence<'_>) -> Vec<String> {
    let Some(late) = cx.timeline.gauge(RECORDER_LATE) else {
        return Vec::new();
    };
    let (mut waited, mut alone) = (Late::default(), Late::default());
    for index in 1..cx.timeline.len() {
        let Some(by) = late.at(index).filter(|by| *by >= Stalls::LATE) else {
            continue;
        };
        match waited_before(cx, index) {
            Some(share) if share >= Stalls::MEMORY => waited.note(by),
            Some(_) => alone.note(by),
            None => {}
        }
    }
    let both = [
        (
            waited,
            "while tasks waited for memory: the host stood still, and this is where samples lack",
        ),
        (
            alone,
            "while nobody waited for memory: it was stopped or starved of CPU, or its virtual machine was",
        ),
    ];
    let enough = both
        .into_iter()
        .filter(|(late, _)| late.in_all >= LATE_IN_ALL);
    enough
        .map(|(late, why)| format!("the recorder came late {}, {why}", late.times()))
        .collect()
}

/// The share of the time before a sample in which somebody waited for memory. Taken from the totals at both ends, as a
/// recorder that is late enough leaves a gap, over which there is no rate; `None` where the machine slept or was started
/// anew.
fn waited_before(cx: &Evidence<'_>, index: usize) -> Option<Ratio> {
    use BreakKind::{NewSegment, Reboot, Suspend};
    let is_gone = |kind| matches!(kind, Suspend(_) | Reboot | NewSegment);
    let mut breaks = cx.timeline.breaks().iter();
    if breaks.any(|gap| gap.before == index && is_gone(gap.kind)) {
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
struct Late {
    count: u64,
    most: Span,
    in_all: Span,
}

impl Late {
    fn note(&mut self, by: Micros) {
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

/// What the source does not measure at all, and rules about shortage rest on.
fn blind_spots(cx: &Evidence<'_>) -> impl Iterator<Item = String> {
    let no_stalls = cx.stall(PSI_MEMORY_SOME).is_err()
        && cx.rate(ALLOCSTALL).is_err()
        && Lately::for_memory(cx).is_none();
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

/// The share of the time that passed in intervals far longer than usual, where it matters.
fn late(cx: &Evidence<'_>, usual: Span) -> Option<Ratio> {
    let limit = usual.times(LATE);
    let steps = cx.timeline.times().windows(2).map(|w| w[1] - w[0]);
    let late = steps
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
        Case::over(seconds)
            .counter(PSI_MEMORY_SOME, 0)
            .counter(REFAULT_FILE, 0)
            .counter(PSWPIN, 0)
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
        match story(
            &cx,
            &Incident {
                stretch,
                of: None,
                key: None,
            },
        )
        .unwrap()
        {
            Outcome::Found(finding) => Some(finding.title),
            Outcome::Clear(_) => None,
        }
    }

    #[test]
    fn a_whole_look_has_no_gap_however_short() {
        clear(RULE, &complete(10));
        clear(RULE, &Case::once());
        // A recorder that reclaim delays by some seconds now and then is genuine.
        assert_eq!(at(&[0, 1, 2, 5, 6, 7, 11, 12, 13]), None);
    }

    #[test]
    fn gaps_coarse_and_late_samples_are_told() {
        let mut gap: Vec<u64> = (0..20).collect();
        gap.extend(3600..3620);
        assert!(at(&gap).unwrap().contains("nobody looked for 60 min"));
        assert!(at(&[0, 600, 1200]).unwrap().contains("10 min apart"));
        let late: Vec<u64> = [0, 1, 2, 3, 4, 5, 20, 21, 22, 23].to_vec();
        assert!(at(&late).unwrap().contains("late"));
    }

    #[test]
    fn a_recorder_that_came_late_says_whether_the_host_stood_still() {
        let case = |waits: u64, late: &[u64]| {
            let late: Vec<_> = late.iter().map(|ms| Micros::new(ms * 1000)).collect();
            let case = Case::over(60).counter(PSI_MEMORY_SOME, waits * 10_000);
            case.counter(REFAULT_FILE, 0)
                .counter(PSWPIN, 0)
                .gauge_steps(RECORDER_LATE, &late)
        };
        let often = [0, 4_000, 3_000, 10, 2_000, 0];
        let title = |case: &Case| found(RULE, case).title;
        let stood_still = title(&case(60, &often));
        assert!(
            stood_still.contains("3 times, by up to 4 s, while tasks waited"),
            "{stood_still}"
        );
        let stopped = title(&case(0, &often));
        assert!(
            stopped.contains("while nobody waited for memory: it was stopped"),
            "{stopped}"
        );
        clear(RULE, &case(60, &[0, 3_000, 0]));
        clear(RULE, &case(60, &[20]));
    }

    #[test]
    fn over_a_gap_the_totals_at_its_ends_tell_and_over_a_suspend_nothing_does() {
        let late_over = |waited: u64, slept: u64| {
            let mut timeline = Timeline::default();
            for (boot, awake, total) in [(0, 0, 0), (1, 1, 0), (2, 2, 0), (92, 92 - slept, waited)]
            {
                let mut sample = Sample::at(Span::from_secs(boot));
                sample.stamp.awake = Some(Span::from_secs(awake));
                sample
                    .host
                    .set(PSI_MEMORY_SOME, Micros::new(total * 1_000_000));
                let late = if boot == 92 { 89_000_000 } else { 0 };
                sample.host.set(RECORDER_LATE, Micros::new(late));
                timeline.push(&sample).unwrap();
            }
            let facts = Facts::default();
            lateness(&Evidence::new(&timeline, &facts)).join(" ")
        };
        assert!(late_over(60, 0).contains("the host stood still"));
        assert!(late_over(1, 0).contains("nobody waited"));
        assert_eq!(late_over(60, 60), "");
    }

    #[test]
    fn what_is_not_measured_is_told() {
        let case = Case::over(20)
            .gauge(MEM_FREE, Bytes::from_mib(1))
            .counter(PSWPIN, 0)
            .counter(REFAULT_FILE, 0);
        let finding = found(RULE, &case);
        assert!(finding.title.contains("stalls"), "{}", finding.title);
        assert_eq!(finding.severity, Severity::Info);
        // The kernel's averages in one of the samples are a measure.
        clear(RULE, &case.gauge(PSI_MEMORY_SOME_AVG60, Micros::new(0)));
    }
}
