//! Whether tasks waited for disks for most of a series, for any reason: vmstat's columns `b` and `wa`.

use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM, CPU_USER,
    TASKS_BLOCKED,
};
use units::{Count, Quantity as _, Ratio};

use crate::evidence::Evidence;
use crate::trigger::{Reading, rate};

/// An engineering choice: on calm hosts CPUs idle for disks for a few percent of the time.
pub(crate) const IOWAIT: Ratio = Ratio::from_percent(30.0);
/// An engineering choice: one task may always be writing something back.
pub(crate) const BLOCKED: Count = Count::new(2);

/// The share of CPU time that is idle while a task waits for a disk.
pub(crate) fn share() -> Reading<Ratio> {
    let others = [CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IDLE, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL];
    rate(CPU_IOWAIT).ratio_of(rate(CPU_IOWAIT).plus(others.map(rate)))
}

/// Returns `CPUs idled for the disk 84 % of their time`, or how many tasks were blocked; `None` if that is little, not
/// measured, or a single sample.
pub(crate) fn sentence(cx: &Evidence<'_>) -> Option<String> {
    iowait(cx).or_else(|| blocked(cx))
}

fn iowait(cx: &Evidence<'_>) -> Option<String> {
    let mean = share().track(cx).ok()?.mean_in(&cx.timeline.whole()?)?;
    // Without CPU time there is no share, and NaN is not at least 30 %.
    (mean >= IOWAIT).then(|| format!("CPUs idled for the disk {mean} of their time"))
}

fn blocked(cx: &Evidence<'_>) -> Option<String> {
    if cx.is_single_sample() {
        return None;
    }
    let track = cx.gauge(TASKS_BLOCKED).ok()?;
    let readings: Vec<f64> = track.values().iter().flatten().copied().collect();
    let many = readings.iter().filter(|n| **n >= BLOCKED.as_f64()).count();
    (many * 2 > readings.len()).then(|| {
        format!(
            "{BLOCKED} tasks or more were blocked, mostly waiting for the disk, in {many} of {} \
             samples",
            readings.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;

    fn shown(case: &Case) -> Option<String> {
        case.with(sentence)
    }

    #[test]
    fn much_iowait_is_told_and_little_is_not() {
        let waiting =
            |percent| Case::over(10).counter(CPU_IOWAIT, percent).counter(CPU_IDLE, 100 - percent);
        assert!(shown(&waiting(84)).unwrap().contains("84 %"));
        assert_eq!(shown(&waiting(12)), None);
        assert_eq!(shown(&Case::over(10).counter(CPU_IOWAIT, 0)), None);
    }

    #[test]
    fn blocked_tasks_count_where_they_are_most_of_the_series() {
        let blocked = |steps: &[u64]| {
            let counts: Vec<Count> = steps.iter().map(|n| Count::new(*n)).collect();
            Case::over(3).gauge_steps(TASKS_BLOCKED, &counts)
        };
        assert!(shown(&blocked(&[0, 14, 18, 21])).is_some());
        assert_eq!(shown(&blocked(&[9, 0, 1, 0])), None);
        let once = Case::once().gauge(TASKS_BLOCKED, Count::new(20));
        assert_eq!(shown(&once), None);
    }
}
