//! When the samples of a timeline were taken, and what lies between them.

use std::sync::OnceLock;

use units::{Span, WallClock};

use super::downsampled::Downsampled;
use super::median_step::MedianStep;
use super::{Break, BreakKind, OutOfOrder, Timeline, step};
use crate::clock::TimelineClock;
use crate::sample::Stamp;
use crate::stretch::Stretch;

/// The stamps of the samples, their times on the timeline's clock, breaks, and ranges of downsampled samples.
#[derive(Debug, Clone, Default)]
pub(super) struct SampleClock {
    pub(super) stamps: Vec<Stamp>,
    /// Counted from the first.
    pub(super) times: Vec<Span>,
    pub(super) breaks: Vec<Break>,
    pub(super) median_step: MedianStep,
    /// The downsampled ranges, in order.
    pub(super) downsampled: Vec<Downsampled>,
    /// The resolution of samples that are appended next; `None` means every sample is kept.
    pub(super) resolution: Option<Span>,
    /// Computed from times and breaks when it is first needed.
    computed: OnceLock<TimelineClock>,
}

impl SampleClock {
    /// Appends a sample, with the breaks before it.
    pub(super) fn push(&mut self, stamp: Stamp) -> Result<(), OutOfOrder> {
        let time = match self.stamps.last() {
            None => Span::ZERO,
            Some(last) => {
                let step = step::step(*last, stamp, || self.median_step())?;
                let before = self.stamps.len();
                self.breaks.extend(step.breaks().map(|kind| Break { before, kind }));
                self.last_time().plus(step.elapsed)
            }
        };
        self.append(stamp, time);
        Ok(())
    }

    /// Appends the first sample of a new segment.
    pub(super) fn push_new_segment(&mut self, stamp: Stamp) {
        let time = match self.stamps.last() {
            None => Span::ZERO,
            Some(last) => {
                let before = self.stamps.len();
                let kind = BreakKind::NewSegment;
                self.breaks.push(Break { before, kind });
                let nanos_between = |(a, b): (WallClock, WallClock)| {
                    u64::try_from(b.unix_nanos().checked_sub(a.unix_nanos())?).ok()
                };
                let step = last
                    .wall
                    .zip(stamp.wall)
                    .and_then(nanos_between)
                    .filter(|nanos| *nanos > 0)
                    .map(Span::from_nanos);
                // The clock must advance, so that the times of samples differ.
                self.last_time().plus(step.unwrap_or(Span::from_secs(1)))
            }
        };
        self.append(stamp, time);
    }

    fn append(&mut self, stamp: Stamp, time: Span) {
        self.stamps.push(stamp);
        self.times.push(time);
        self.note_resolution();
        self.computed = OnceLock::new();
    }

    /// The samples from `first` to before `end`, on the same clock.
    pub(super) fn part(&self, first: usize, end: usize) -> Self {
        let from = self.breaks.partition_point(|gap| gap.before <= first);
        let breaks = self.breaks[from..].iter().take_while(|gap| gap.before < end);
        Self {
            stamps: self.stamps[first..end].to_vec(),
            times: self.times[first..end].to_vec(),
            breaks: breaks
                .map(|gap| Break { before: gap.before - first, kind: gap.kind })
                .collect(),
            downsampled: self.downsampled_within(first, end),
            ..Self::default()
        }
    }

    /// Has the clock begin with the first sample. Returns when that was before.
    pub(super) fn restart(&mut self) -> Span {
        let first = self.times.first().copied().unwrap_or_default();
        self.times.iter_mut().for_each(|time| *time = *time - first);
        self.computed = OnceLock::new();
        first
    }

    fn last_time(&self) -> Span {
        self.times.last().copied().unwrap_or_default()
    }

    pub(super) fn segment_starts(&self) -> impl Iterator<Item = usize> + '_ {
        self.breaks.iter().filter(|gap| gap.kind == BreakKind::NewSegment).map(|gap| gap.before)
    }

    /// The samples that follow a break of rates, in order.
    pub(super) fn rate_breaks(&self) -> Vec<usize> {
        self.breaks.iter().filter(|gap| gap.kind.breaks_rates()).map(|gap| gap.before).collect()
    }

    /// For each sample, whether it follows a break that `by` admits.
    fn broken(&self, by: impl Fn(BreakKind) -> bool) -> Vec<bool> {
        let mut broken = vec![false; self.stamps.len()];
        for gap in self.breaks.iter().filter(|gap| by(gap.kind)) {
            broken[gap.before] = true;
        }
        broken
    }

    pub(super) fn computed(&self) -> &TimelineClock {
        self.computed.get_or_init(|| TimelineClock::new(&self.times, &self.rate_breaks()))
    }
}

impl Timeline {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.clock.stamps.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.clock.stamps.is_empty()
    }

    /// When the samples were taken, counted from the first.
    pub fn times(&self) -> &[Span] {
        &self.clock.times
    }

    /// The stamp of a sample.
    pub fn stamp(&self, index: usize) -> Option<Stamp> {
        self.clock.stamps.get(index).copied()
    }

    /// The time from the first sample to the last, without the unknown time between segments.
    pub fn duration(&self) -> Span {
        let first = self.clock.times.first().copied().unwrap_or_default();
        self.clock.segment_starts().fold(self.clock.last_time() - first, |duration, at| {
            duration - (self.clock.times[at] - self.clock.times[at - 1])
        })
    }

    /// The recorded time: without gaps, suspends, reboots and the time between segments.
    pub fn recorded(&self) -> Span {
        let last = self.len().saturating_sub(1);
        self.clock.computed().recorded(last)
    }

    /// The median interval between samples; `None` with fewer than two. In a downsampled timeline it is the coarsest
    /// interval, that of the downsampled samples.
    pub fn interval(&self) -> Option<Span> {
        let starts_segment = self.clock.broken(|kind| kind == BreakKind::NewSegment);
        let steps = (1..self.len()).filter(|at| !starts_segment[*at]).map(|at| (at - 1, at));
        self.median_interval(steps)
    }

    /// The median of steps between two samples; where there are steps to downsampled samples, the median of these.
    pub(super) fn median_interval(
        &self,
        steps: impl Iterator<Item = (usize, usize)> + Clone,
    ) -> Option<Span> {
        let elapsed = |(from, to): (usize, usize)| self.clock.times[to] - self.clock.times[from];
        let downsampled = steps.clone().filter(|(_, to)| self.clock.resolution_at(*to).is_some());
        median(downsampled.map(elapsed)).or_else(|| median(steps.map(elapsed)))
    }

    /// The stretch from the first sample to the last; `None` without samples.
    pub fn whole(&self) -> Option<Stretch> {
        self.stretch(0, self.len().checked_sub(1)?)
    }

    /// The stretch between two samples; `None` where they are not in order or out of range.
    pub fn stretch(&self, first: usize, last: usize) -> Option<Stretch> {
        (first <= last && last < self.len()).then(|| self.clock.computed().stretch(first, last))
    }

    /// Breaks, in order.
    pub fn breaks(&self) -> &[Break] {
        &self.clock.breaks
    }
}

/// The median, the longer of the middle two; `None` where there are no steps.
fn median(steps: impl Iterator<Item = Span>) -> Option<Span> {
    stats::middle(&mut steps.collect::<Vec<Span>>())
}
