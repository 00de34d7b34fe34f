//! Whether tasks waited during a stretch, for memory or for disks: pressure totals (averages if one sample has no
//! more), allocation stalls, major faults, blocked tasks. Each is absent if the source does not measure it; absence
//! does not mean calm.

use timeline::{
    Counter, Signal, Stretch, Track,
    signals::{
        PGMAJFAULT, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME, RECORDER_LATE,
        TASKS_BLOCKED,
    },
};
use units::{Count, Micros, Pages, PerSecond, Quantity, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::measures::psi_average::{self, PressureAverage};

/// The window in which waiting is judged: the worst ten seconds of an incident, like the kernel's avg10. A mean over
/// the whole incident would depend on how long its level stays after tasks have resumed, and on where the recording is
/// cut.
pub(crate) const WORST: Span = Span::from_secs(10);

/// Returns the mean over the worst ten seconds of a stretch.
pub(crate) fn worst<Q: Quantity>(track: &Track<Q>, stretch: &Stretch) -> Option<Q> {
    track.highest_mean_in(stretch, WORST)
}

/// The time that a share of waiting refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WindowPart {
    /// All of a short incident.
    #[default]
    Whole,
    /// The worst part of a longer one: ten seconds, or the time between two samples.
    Worst(Span),
    /// The `last minute` before the only sample, from the kernel's averages.
    Before(&'static str),
}

impl WindowPart {
    /// Returns the time to which the shares from [`worst`] refer.
    pub(crate) fn for_stretch(stretch: &Stretch) -> Self {
        let interval = stretch.interval();
        let worst = WORST.max(Span::from_secs_f64(interval.as_secs_f64().round()));
        if stretch.duration() <= worst.plus(interval) { Self::Whole } else { Self::Worst(worst) }
    }

    /// Formats a share for a sentence: `up to 61 % of the time`.
    pub(crate) fn time(self, share: Ratio) -> String {
        match self {
            Self::Whole => format!("{share} of the time"),
            Self::Worst(_) => format!("up to {share} of the time"),
            Self::Before(period) => format!("{share} of the {period}"),
        }
    }

    /// Returns the remark behind the shares in a line of evidence.
    pub(crate) fn remark(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Worst(span) => format!(" in the worst {span}"),
            Self::Before(period) => format!(" of the {period}"),
        }
    }
}

/// Shares of time in which tasks waited for one thing, on the host or in a cgroup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waited {
    /// At least one task.
    pub(crate) some: Option<Ratio>,
    /// All tasks that could have run.
    full: Option<Ratio>,
    over: WindowPart,
}

impl Waited {
    /// Measures the worst part of a stretch; `share` returns that share for a pressure total.
    pub(crate) fn during(
        stretch: &Stretch,
        [some, full]: [Signal<Counter<Micros>>; 2],
        share: impl Fn(Signal<Counter<Micros>>) -> Option<Ratio>,
    ) -> Self {
        Self { some: share(some), full: share(full), over: WindowPart::for_stretch(stretch) }
    }

    /// The kernel's averages in the only sample.
    pub(crate) fn averaged(average: PressureAverage) -> Self {
        Self {
            some: Some(average.some),
            full: average.full,
            over: WindowPart::Before(average.period),
        }
    }

    /// Whether nothing ran for much of the time.
    pub(crate) fn is_standstill(&self) -> bool {
        self.full.is_some_and(|full| full >= PressureWindow::STANDSTILL)
    }

    /// Returns what tasks did and for how long: `stalled` and `up to 61 % of the time`; `None` if it was not measured.
    pub(crate) fn clause(&self) -> Option<(&'static str, String)> {
        match self.full.filter(|full| *full >= PressureWindow::MEMORY) {
            Some(full) => Some(("stalled", self.over.time(full))),
            None => Some(("waited", self.over.time(self.some?))),
        }
    }

    /// Returns for how much of the time a task waited: `up to 61 % of the time`.
    pub(crate) fn time(&self) -> Option<String> {
        Some(self.over.time(self.some?))
    }

    /// Returns `some 78 %, full 71 % in the worst 10 s`, for a line of evidence; without `full` if it was not measured.
    pub(crate) fn shares(&self) -> String {
        let share = |name: &str, share: Option<Ratio>| share.map(|share| format!("{name} {share}"));
        let shares = [share("some", self.some), share("full", self.full)];
        let shares: Vec<String> = shares.into_iter().flatten().collect();
        format!("{}{}", shares.join(", "), self.over.remark())
    }
}

/// Waiting in the worst ten seconds of a stretch.
#[derive(Debug, Clone, Default)]
pub(crate) struct PressureWindow {
    /// At least one task waited for memory.
    pub(crate) memory_some: Option<Ratio>,
    /// All tasks that could have run waited for memory.
    pub(crate) memory_full: Option<Ratio>,
    /// At least one task waited for a disk.
    pub(crate) io_some: Option<Ratio>,
    /// All tasks that could have run waited for a disk.
    pub(crate) io_full: Option<Ratio>,
    allocation_stalls: Option<PerSecond<Count>>,
    major_faults: Option<PerSecond<Count>>,
    blocked: Option<f64>,
    /// The most by which the recorder itself was late.
    late: Option<Micros>,
    over: WindowPart,
}

impl PressureWindow {
    /// Below this share tasks do not wait noticeably for memory: healthy hosts stay below it.
    pub(crate) const CALM: Ratio = Ratio::from_percent(1.0);
    /// From this share on, memory pressure is more than noise.
    pub(crate) const MEMORY: Ratio = PressureAverage::MUCH;
    /// The same for disks, where a busy healthy host waits more; an engineering choice.
    pub(crate) const IO: Ratio = Ratio::from_percent(10.0);
    /// A recorder that is late by this much shows a stalled host: it only sleeps and reads, so nothing else delays it.
    /// It is late by milliseconds on calm hosts, and by 1 to 4 s under reclaim (labelled captures, November 2026).
    pub(crate) const LATE: Micros = Micros::new(1_000_000);
    /// Nothing at all ran for a quarter of the time: work stalls. systemd-oomd kills at 60 % for 30 s, which its manual
    /// calls the last resort; users complain long before.
    pub(crate) const STANDSTILL: Ratio = Ratio::from_percent(25.0);
    /// Allocations that had to reclaim memory themselves. Labelled captures, November 2026: 0 on calm hosts except for
    /// single events, 10 to 300/s on hosts short of memory.
    pub(crate) const ALLOCATION_STALLS: PerSecond<Count> = PerSecond::new(1.0);
    /// Page faults that waited for a disk; an engineering choice: at 1 ms each, a tenth of one task's time.
    pub(crate) const MAJOR_FAULTS: PerSecond<Count> = PerSecond::new(100.0);
    /// Pages scanned by allocating tasks; from this rate on, tasks do reclaim. Labelled captures, November 2026:
    /// 63,000 pages/s with node reclaim on and 0 with it off; 52 in the worst second of a stream that kswapd keeps up
    /// with.
    pub(crate) const SCANNED: PerSecond<Pages> = PerSecond::new(1000.0);
    /// Up to this many allocation stalls per scanned page are node reclaim, which mm/vmscan.c does not count as an
    /// allocation stall. Direct reclaim of a host short of memory stalls once per 30 to 120 pages (labelled captures).
    pub(crate) const PER_SCANNED_PAGE: f64 = 0.001;
    /// One task in uninterruptible sleep in every sample.
    const BLOCKED: f64 = 1.0;

    /// Measures what the source shows of `stretch`.
    pub(crate) fn during(cx: &Evidence<'_>, stretch: &Stretch) -> Self {
        let share = |signal| worst(&cx.stall(signal).ok()?, stretch);
        let measured = [share(PSI_MEMORY_SOME), share(PSI_IO_SOME)];
        let averaged = measured.iter().all(Option::is_none);
        let (memory, io) = if averaged { PressureAverage::minute(cx) } else { (None, None) };
        let rate = |track: Result<Track<_>, _>| worst(&track.ok()?, stretch);
        Self {
            over: if memory.is_some() || io.is_some() {
                WindowPart::Before(psi_average::MINUTE)
            } else {
                WindowPart::for_stretch(stretch)
            },
            memory_some: measured[0].or(memory.map(|average| average.some)),
            memory_full: share(PSI_MEMORY_FULL).or(memory.and_then(|average| average.full)),
            io_some: measured[1].or(io.map(|average| average.some)),
            io_full: share(PSI_IO_FULL).or(io.and_then(|average| average.full)),
            allocation_stalls: rate(cx.allocation_stalls()),
            major_faults: rate(cx.rate(PGMAJFAULT)),
            late: cx
                .gauge(RECORDER_LATE)
                .ok()
                .and_then(|track| track.max_in(stretch))
                .map(|(late, _)| late),
            blocked: cx.gauge(TASKS_BLOCKED).ok().and_then(|track| {
                // A mean of counts must keep its fraction: 0.5 is one task in every second sample.
                let tasks: Track<Ratio> = track.cast();
                Some(worst(&tasks, stretch)?.get())
            }),
        }
    }

    /// Whether so few allocation stalls for this much scanning mean node reclaim (vm.zone_reclaim_mode) rather than
    /// lack of memory.
    pub(crate) fn are_of_a_node(stalls: PerSecond<Count>, scanned: PerSecond<Pages>) -> bool {
        stalls.get() <= scanned.get() * Self::PER_SCANNED_PAGE
    }

    /// Without pressure data: whether at least as many tasks slept uninterruptibly as there are CPUs to run them.
    pub(crate) fn all_blocked(&self, cx: &Evidence<'_>) -> bool {
        let pressure = self.memory_some.is_some() || self.io_some.is_some();
        match (self.blocked, cx.facts.cpus) {
            (Some(blocked), Some(cpus)) => !pressure && blocked >= f64::from(cpus.max(1)),
            _ => false,
        }
    }

    /// Whether tasks waited because memory had to be reclaimed first.
    pub(crate) fn for_memory(&self) -> bool {
        self.memory_some.is_some_and(|s| s >= Self::MEMORY)
            || self.allocation_stalls.is_some_and(|s| s >= Self::ALLOCATION_STALLS)
    }

    /// Whether tasks waited for pages to come from a disk.
    pub(crate) fn for_disk(&self) -> bool {
        self.io_some.is_some_and(|s| s >= Self::IO)
            || self.major_faults.is_some_and(|f| f >= Self::MAJOR_FAULTS)
            || self.blocked.is_some_and(|b| b >= Self::BLOCKED)
    }

    /// Whether tasks waited for memory or for a disk.
    pub(crate) fn any(&self) -> bool {
        self.for_memory() || self.for_disk()
    }

    /// Whether the source has any measure of waiting.
    pub(crate) fn measured(&self) -> bool {
        self.memory_some.is_some()
            || self.io_some.is_some()
            || self.allocation_stalls.is_some()
            || self.major_faults.is_some()
            || self.blocked.is_some()
    }

    /// Whether nothing ran for much of the time.
    pub(crate) fn standstill(&self) -> bool {
        self.longest().is_some_and(|full| full >= Self::STANDSTILL)
    }

    /// Returns the severity: info if no task waited, as far as measured.
    pub(crate) fn severity(&self) -> Severity {
        match (self.any(), self.measured()) {
            (true, _) if self.standstill() => Severity::Critical,
            (false, true) => Severity::Info,
            _ => Severity::Warning,
        }
    }

    /// Returns the larger of the two shares of time in which nothing ran. They overlap, so they are not added.
    fn longest(&self) -> Option<Ratio> {
        match (self.memory_full, self.io_full) {
            (Some(memory), Some(io)) => Some(if memory >= io { memory } else { io }),
            (memory, io) => memory.or(io),
        }
    }

    /// Returns a second sentence for a title: ` Tasks stalled 61 % of the time.`; empty if too little to mention.
    pub(crate) fn sentence(&self) -> String {
        self.worth_a_sentence().map_or_else(String::new, |time| format!(" Tasks stalled {time}."))
    }

    /// The same for a title about a cgroup that has no stalls of its own to show.
    pub(crate) fn sentence_beside_a_cgroup(&self) -> String {
        let time = self.worth_a_sentence();
        time.map_or_else(String::new, |time| {
            format!(
                " On the whole host tasks stalled {time}; cgroup v1 does not count those of one \
                 cgroup."
            )
        })
    }

    fn worth_a_sentence(&self) -> Option<String> {
        let full = self.longest().filter(|full| *full >= Self::MEMORY);
        full.map(|full| self.over.time(full))
    }

    /// Returns what would settle the matter, if pressure is not measured.
    pub(crate) fn open(&self) -> &'static str {
        if self.memory_some.is_some() || self.io_some.is_some() {
            ""
        } else {
            "memory and I/O stalls (PSI) would settle it"
        }
    }

    /// Adds the measured stalls to a finding's evidence.
    pub(crate) fn shown_in(&self, mut finding: Finding) -> Finding {
        if let (Some(some), Some(full)) = (self.memory_some, self.memory_full) {
            finding = finding.shows_from(
                PSI_MEMORY_SOME,
                some,
                Self::MEMORY,
                None,
                format!("memory stalls: some {some}, full {full}{}", self.over.remark()),
            );
        }
        if let (Some(some), Some(full)) = (self.io_some, self.io_full) {
            finding = finding.shows_from(
                PSI_IO_SOME,
                some,
                Self::IO,
                None,
                format!("I/O stalls: some {some}, full {full}{}", self.over.remark()),
            );
        }
        if let Some(late) = self.late.filter(|late| *late >= Self::LATE && self.any()) {
            finding = finding.shows_from(
                RECORDER_LATE,
                late,
                Self::LATE,
                None,
                format!("the recorder itself could not run: it came late by up to {late}"),
            );
        }
        if self.memory_some.is_none()
            && let Some(stalls) = self.allocation_stalls
        {
            finding = finding.shows_from(
                timeline::signals::ALLOCSTALL,
                stalls,
                Self::ALLOCATION_STALLS,
                None,
                format!("{stalls} allocations had to reclaim memory themselves"),
            );
        }
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::{PSI_MEMORY_FULL_AVG60, PSI_MEMORY_SOME_AVG60};
    use units::Micros;

    fn averaged(case: Case) -> Case {
        case.gauge(PSI_MEMORY_SOME_AVG60, Micros::new(685_200))
            .gauge(PSI_MEMORY_FULL_AVG60, Micros::new(580_600))
    }

    fn stalls(case: &Case) -> PressureWindow {
        case.with(|cx| PressureWindow::during(cx, &cx.timeline.whole().unwrap()))
    }

    #[test]
    fn one_look_tells_of_the_minute_before_it() {
        let stalls = stalls(&averaged(Case::once()));
        assert!(stalls.for_memory() && stalls.standstill());
        assert_eq!(stalls.sentence(), " Tasks stalled 58 % of the last minute.");
        let beside = stalls.sentence_beside_a_cgroup();
        assert!(beside.starts_with(" On the whole host tasks stalled 58 % of"), "{beside}");
    }

    #[test]
    fn a_recorder_that_was_kept_from_running_is_evidence_where_tasks_waited() {
        let shown = |per_second, late| {
            let case = Case::over(20)
                .counter(PSI_MEMORY_SOME, per_second)
                .gauge(RECORDER_LATE, Micros::new(late));
            let stalls = stalls(&case);
            let rule = crate::rules::by_id("swap-thrash").unwrap();
            let finding = stalls.shown_in(rule.found(crate::Severity::Warning, ""));
            finding.evidence.iter().any(|line| line.text.contains("came late"))
        };
        assert!(shown(600_000, 4_000_000));
        assert!(!shown(600_000, 20_000));
        assert!(!shown(0, 4_000_000));
    }

    #[test]
    fn what_was_watched_counts_before_averages() {
        let stalls = stalls(&averaged(Case::over(10)).counter(PSI_MEMORY_SOME, 0));
        assert!(!stalls.for_memory());
    }
}
