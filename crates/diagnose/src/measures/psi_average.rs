//! The kernel's averages of memory pressure: what one sample shows of the minutes before it. If two totals give the
//! share of the recorded time, that share is better, and the averages are not used.

use timeline::{
    EntitySeries, Gauge, Signal,
    signals::{
        CGROUP_PSI_MEMORY_FULL_AVG60, CGROUP_PSI_MEMORY_FULL_AVG300, CGROUP_PSI_MEMORY_SOME,
        CGROUP_PSI_MEMORY_SOME_AVG60, CGROUP_PSI_MEMORY_SOME_AVG300, PSI_IO_FULL_AVG60,
        PSI_IO_SOME_AVG60, PSI_MEMORY_FULL_AVG60, PSI_MEMORY_FULL_AVG300, PSI_MEMORY_SOME,
        PSI_MEMORY_SOME_AVG60, PSI_MEMORY_SOME_AVG300,
    },
};
use units::{Micros, Ratio};

use crate::evidence::Evidence;

/// Shares of time in a window before the last sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PressureAverage {
    /// At least one task waited.
    pub(crate) some: Ratio,
    /// All tasks waited; the kernel does not print it everywhere.
    pub(crate) full: Option<Ratio>,
    /// The window: `last minute`.
    pub(crate) period: &'static str,
}

type Average = Signal<Gauge<Micros>>;

pub(crate) const MINUTE: &str = "last minute";
const FIVE_MINUTES: &str = "last 5 minutes";

impl PressureAverage {
    /// From this share on, memory pressure is more than noise: healthy hosts stay below 1 %, and swap thrash shows 45 %
    /// and more (labelled captures).
    pub(crate) const MUCH: Ratio = Ratio::from_percent(5.0);

    /// Returns the window in which the host's tasks waited most for memory.
    pub(crate) fn for_memory(cx: &Evidence<'_>) -> Option<Self> {
        if cx.stall(PSI_MEMORY_SOME).is_ok() {
            return None;
        }
        let read = |signal| cx.timeline.last(signal);
        worst([
            window(read, PSI_MEMORY_SOME_AVG60, PSI_MEMORY_FULL_AVG60, MINUTE),
            window(read, PSI_MEMORY_SOME_AVG300, PSI_MEMORY_FULL_AVG300, FIVE_MINUTES),
        ])
    }

    /// The same for the tasks of a cgroup.
    pub(crate) fn for_memory_in(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Self> {
        if cx.rate_of(group, CGROUP_PSI_MEMORY_SOME).is_ok() {
            return None;
        }
        let read = |signal| cx.timeline.last_of(group, signal);
        worst([
            window(read, CGROUP_PSI_MEMORY_SOME_AVG60, CGROUP_PSI_MEMORY_FULL_AVG60, MINUTE),
            window(
                read,
                CGROUP_PSI_MEMORY_SOME_AVG300,
                CGROUP_PSI_MEMORY_FULL_AVG300,
                FIVE_MINUTES,
            ),
        ])
    }

    /// The same as [`for_memory`](Self::for_memory), where one sample is all there is.
    pub(crate) fn of_one_sample(cx: &Evidence<'_>) -> Option<Self> {
        Self::for_memory(cx).filter(|_| cx.is_single_sample())
    }

    /// The same as [`for_memory_in`](Self::for_memory_in), where one sample is all there is.
    pub(crate) fn of_one_sample_in(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Self> {
        Self::for_memory_in(cx, group).filter(|_| cx.is_single_sample())
    }

    /// Returns the host's last minute: for memory, and for disks.
    pub(crate) fn minute(cx: &Evidence<'_>) -> (Option<Self>, Option<Self>) {
        let read = |signal| cx.timeline.last(signal);
        (
            window(read, PSI_MEMORY_SOME_AVG60, PSI_MEMORY_FULL_AVG60, MINUTE),
            window(read, PSI_IO_SOME_AVG60, PSI_IO_FULL_AVG60, MINUTE),
        )
    }

    /// Whether tasks waited more than on healthy hosts.
    pub(crate) fn matters(&self) -> bool {
        self.some >= Self::MUCH
    }

    /// Returns `Tasks stalled on memory 58 % of the last 5 minutes (full)`; `subject` is empty or ` of the cgroup X`.
    pub(crate) fn clause(&self, subject: &str) -> String {
        match self.full.filter(|full| *full >= Self::MUCH) {
            Some(full) => {
                format!("Tasks{subject} stalled on memory {full} of the {} (full)", self.period)
            }
            None => format!(
                "Tasks{subject} waited for memory {} of the {} (some)",
                self.some, self.period
            ),
        }
    }
}

fn window(
    read: impl Fn(Average) -> Option<Micros>,
    some: Average,
    full: Average,
    period: &'static str,
) -> Option<PressureAverage> {
    // µs of each second.
    #[allow(clippy::cast_precision_loss)] // at most a million
    let share = |micros: Micros| Ratio::new(micros.get() as f64 / 1e6);
    Some(PressureAverage { some: share(read(some)?), full: read(full).map(share), period })
}

/// Returns the window with the most waiting; of equal windows the longer, which comes last.
fn worst(windows: [Option<PressureAverage>; 2]) -> Option<PressureAverage> {
    windows.into_iter().flatten().max_by(|a, b| a.some.get().total_cmp(&b.some.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;

    fn paused(minute: u64, five: u64, full: u64) -> Case {
        Case::once()
            .gauge(PSI_MEMORY_SOME_AVG60, Micros::new(minute * 10_000))
            .gauge(PSI_MEMORY_SOME_AVG300, Micros::new(five * 10_000))
            .gauge(PSI_MEMORY_FULL_AVG300, Micros::new(full * 10_000))
    }

    fn average(case: Case) -> Option<PressureAverage> {
        case.with(PressureAverage::for_memory)
    }

    #[test]
    fn the_worse_window_speaks() {
        let clause = |case| average(case).unwrap().clause("");
        assert_eq!(
            clause(paused(20, 70, 58)),
            "Tasks stalled on memory 58 % of the last 5 minutes (full)"
        );
        assert_eq!(
            clause(paused(70, 20, 2)),
            "Tasks waited for memory 70 % of the last minute (some)"
        );
    }

    #[test]
    fn calm_averages_do_not_matter() {
        assert!(!average(paused(0, 4, 1)).unwrap().matters());
        assert!(average(Case::once()).is_none());
    }

    #[test]
    fn a_measured_share_is_better() {
        let mut case = Case::over(10).counter(PSI_MEMORY_SOME, 0);
        case = case.gauge(PSI_MEMORY_SOME_AVG60, Micros::new(700_000));
        assert!(average(case).is_none());
    }
}
