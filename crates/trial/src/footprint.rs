//! How much memory a run took: from readings of its cgroup, over equal shares of its work.
//!
//! The memory of a run is what cannot be dropped: anonymous and shared memory of all its processes, and what they have in
//! swap, as their cgroup counts it. Page cache is apart. Reading it takes no lock of the processes; 20 µs, where the
//! `smaps_rollup` of one with 200 MiB takes 1 to 12 ms under its mmap lock. A page that processes share counts once.
//!
//! A mean over time depends on speed: where phases of a run have different sizes, a run that is slow in the largest phase
//! has a larger mean for the same memory. So there are means over work, too: over operations where the program announces
//! them, and over its CPU time. Which of them is compared is one choice for all runs of a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timeline::Row;
use timeline::signals::{CGROUP_ANON, CGROUP_SHMEM, CGROUP_SWAP_CURRENT, CGROUP_SWAPCACHED};
use units::{Bytes, Ratio, Span};

/// What cannot be dropped of a cgroup's memory; `None` where the kernel does not count it.
pub(crate) fn footprint(row: &Row) -> Option<Bytes> {
    let anon = row.get(CGROUP_ANON)?;
    let others = [row.get(CGROUP_SHMEM), row.get(CGROUP_SWAP_CURRENT)];
    let sum = others.into_iter().flatten().fold(anon, |sum, more| sum + more);
    // What was read back from swap and keeps its place there is in both.
    Some(sum.saturating_sub(row.get(CGROUP_SWAPCACHED).unwrap_or_default()))
}

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment {
    pub(crate) at: Span,
    pub(crate) memory: Bytes,
    pub(crate) cpu: Option<Span>,
    /// Operations so far, where the program announces them.
    pub(crate) operations: Option<f64>,
}

/// The moments of a run, thinned where there are many.
#[derive(Debug)]
pub(crate) struct RunCourse {
    moments: Vec<Moment>,
    peak: Bytes,
    /// Every so many moments one is kept.
    stride: usize,
    seen: usize,
}

/// What the course of a run was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CourseFigures {
    pub(crate) over_operations: Option<MemoryMean>,
    pub(crate) over_cpu: Option<MemoryMean>,
    pub(crate) over_time: MemoryMean,
    pub(crate) peak: Bytes,
    pub(crate) end: Bytes,
}

/// Mean memory over equal shares of one thing: operations, CPU time or time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryMean {
    /// The mean over all of it.
    pub mean: Bytes,
    /// The mean of the last fifth over that of the fifth before.
    pub growth: Option<Ratio>,
}

impl RunCourse {
    /// A run of 10 minutes at 50 readings a second has 30,000.
    const MOMENTS_MAX: usize = 20_000;

    pub(crate) const fn new() -> Self {
        Self { moments: Vec::new(), peak: Bytes::ZERO, stride: 1, seen: 0 }
    }

    pub(crate) fn push(&mut self, moment: Moment) {
        self.peak = self.peak.max(moment.memory);
        if self.seen.is_multiple_of(self.stride) {
            self.moments.push(moment);
        }
        self.seen += 1;
        if self.moments.len() > Self::MOMENTS_MAX {
            let mut at = 0;
            self.moments.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The figures of the part between two times; `None` without a moment in it.
    pub(crate) fn figures(&self, from: Span, to: Span) -> Option<CourseFigures> {
        let part: Vec<Moment> =
            self.moments.iter().filter(|one| one.at >= from && one.at <= to).copied().collect();
        let last = part.last()?;
        // Before the first that it announced there were none.
        let announces = part.iter().any(|one| one.operations.is_some());
        let operations: Option<Vec<f64>> =
            announces.then(|| part.iter().map(|one| one.operations.unwrap_or(0.0)).collect());
        let cpu: Option<Vec<f64>> = part.iter().map(|one| one.cpu.map(Span::as_secs_f64)).collect();
        let time: Vec<f64> = part.iter().map(|one| one.at.as_secs_f64()).collect();
        /// Fewer steps are no course.
        const STEPS_MIN: usize = 5;
        let steps = |work: &[f64]| work.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let over = |work: Vec<f64>| MemoryMean::of(&part, &work);
        Some(CourseFigures {
            over_operations: operations.filter(|all| steps(all) >= STEPS_MIN).map(over),
            over_cpu: cpu.filter(|all| steps(all) > 0).map(over),
            over_time: over(time),
            peak: self.peak,
            end: last.memory,
        })
    }

    /// At most so many points for a picture: seconds and bytes.
    pub(crate) fn curve(&self, points_max: usize) -> Vec<(f64, u64)> {
        let step = self.moments.len().div_ceil(points_max.max(1)).max(1);
        // The largest of each step, so that no peak is lost.
        let largest = |moments: &[Moment]| {
            moments
                .iter()
                .max_by_key(|one| one.memory)
                .map(|one| (one.at.as_secs_f64(), one.memory.get()))
        };
        self.moments.chunks(step).filter_map(largest).collect()
    }
}

impl MemoryMean {
    /// `work` is how much was done at each moment.
    fn of(part: &[Moment], work: &[f64]) -> Self {
        let (begun, ended) = work.first().zip(work.last()).map_or((0.0, 0.0), |(a, b)| (*a, *b));
        let first = part.first().map_or(Bytes::ZERO, |one| one.memory);
        let share = |fifths: f64| begun + (ended - begun) * fifths / 5.0;
        let fifth = |from: f64| mean_between(part, work, share(from), share(from + 1.0));
        /// A fifth of fewer than a few moments is chance.
        const MOMENTS_MIN: usize = 25;
        let fifths = fifth(3.0).zip(fifth(4.0)).filter(|_| part.len() >= MOMENTS_MIN);
        Self {
            mean: mean_between(part, work, begun, ended)
                .map_or(first, |mean| Bytes::new(rounded(mean))),
            growth: fifths
                .filter(|(before, _)| *before > 0.0)
                .map(|(before, last)| Ratio::new(last / before)),
        }
    }
}

/// The mean memory over work, from one amount of work to another.
fn mean_between(part: &[Moment], work: &[f64], from: f64, to: f64) -> Option<f64> {
    let (mut sum, mut all) = (0.0, 0.0);
    for (moments, work) in part.windows(2).zip(work.windows(2)) {
        let done = work[1].min(to) - work[0].max(from);
        if done > 0.0 {
            sum += done * (moments[0].memory.get() as f64 + moments[1].memory.get() as f64) / 2.0;
            all += done;
        }
    }
    (all > 0.0).then(|| sum / all)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bytes, never negative
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that has 10 MiB in its first half of work and 30 in its second, which takes `slow` times as long.
    fn course(slow: u64, announces: bool) -> RunCourse {
        let mut course = RunCourse::new();
        let mut at = Span::ZERO;
        for step in 0..100_u64 {
            let is_second = step >= 50;
            course.push(Moment {
                at,
                memory: Bytes::from_mib(if is_second { 30 } else { 10 }),
                cpu: (!announces).then(|| Span::from_millis(10 * step)),
                // The first one is announced when it is done.
                operations: (announces && step > 0).then_some(step as f64),
            });
            at = at.plus(Span::from_millis(if is_second { 10 * slow } else { 10 }));
        }
        course
    }

    #[test]
    fn the_mean_is_over_work_and_not_over_time() {
        for announces in [true, false] {
            let means = [1, 9].map(|slow| {
                let figures = course(slow, announces).figures(Span::ZERO, Span::from_secs(60));
                let figures = figures.unwrap();
                assert!(slow == 1 || figures.over_time.mean > Bytes::from_mib(25));
                figures.over_operations.or(figures.over_cpu).unwrap().mean
            });
            assert_eq!(means[0], means[1]);
            assert!(means[0] > Bytes::from_mib(19) && means[0] < Bytes::from_mib(21), "{means:?}");
        }
    }

    #[test]
    fn growth_is_that_of_the_last_fifth_and_a_peak_is_never_thinned_away() {
        let mut course = RunCourse::new();
        for step in 0..50_000_u64 {
            let memory = if step == 4001 { Bytes::from_mib(900) } else { Bytes::new(1000 + step) };
            course.push(Moment {
                at: Span::from_millis(step),
                memory,
                cpu: None,
                operations: None,
            });
        }
        let figures = course.figures(Span::from_secs(10), Span::from_secs(50)).unwrap();
        assert_eq!(course.peak, Bytes::from_mib(900));
        assert_eq!(figures.peak, Bytes::from_mib(900));
        assert!(figures.over_time.growth.unwrap().get() > 1.15, "{figures:?}");
        let curve = course.curve(200);
        assert!(curve.len() <= 200 && course.moments.len() <= RunCourse::MOMENTS_MAX);
        assert_eq!(course.figures(Span::from_secs(99), Span::from_secs(100)), None);
    }
}
