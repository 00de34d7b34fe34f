//! The median interval while samples are appended. It is a running median, because reading all samples again for each
//! new one would take minutes on a long downsampled recording.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Span;

use super::BreakKind;
use super::sample_clock::SampleClock;

/// Medians of the steps to downsampled samples and of the other steps. Steps are added only when a median is needed.
#[derive(Debug, Clone, Default)]
pub(super) struct MedianStep {
    every: Median,
    downsampled: Median,
    /// Samples and breaks added so far.
    samples: usize,
    breaks: usize,
}

impl SampleClock {
    /// The median interval that applies to the sample appended next; `None` where unknown.
    pub(super) fn median_step(&mut self) -> Option<Span> {
        let mut steps = std::mem::take(&mut self.median_step);
        steps.add_new(self);
        let (every, downsampled) = (steps.every.get(), steps.downsampled.get());
        self.median_step = steps;
        match self.resolution {
            // However close the samples before it are, it may be the last of its minute.
            Some(to) => Some(downsampled.or(every)?.max(to)),
            None => every.or(downsampled),
        }
    }
}

impl MedianStep {
    fn add_new(&mut self, clock: &SampleClock) {
        let (times, breaks) = (&clock.times, &clock.breaks);
        for at in self.samples.max(1)..times.len() {
            while breaks.get(self.breaks).is_some_and(|gap| gap.before < at) {
                self.breaks += 1;
            }
            let mut here = breaks[self.breaks..].iter().take_while(|gap| gap.before == at);
            if here.any(|gap| gap.kind == BreakKind::NewSegment) {
                continue;
            }
            let step = times[at] - times[at - 1];
            match clock.resolution_at(at) {
                Some(_) => self.downsampled.take(step),
                None => self.every.take(step),
            }
        }
        self.samples = times.len();
    }
}

/// A running median: the larger of the two middle values.
#[derive(Debug, Clone, Default)]
struct Median {
    /// The smaller half; as many values as `large`, or one fewer.
    small: BinaryHeap<Span>,
    large: BinaryHeap<Reverse<Span>>,
}

impl Median {
    fn get(&self) -> Option<Span> {
        self.large.peek().map(|Reverse(middle)| *middle)
    }

    fn take(&mut self, step: Span) {
        self.large.push(Reverse(step));
        self.small.extend(self.large.pop().map(|Reverse(least)| least));
        if self.small.len() > self.large.len() {
            self.large.extend(self.small.pop().map(Reverse));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Sample, Timeline};
    use units::Span;

    #[test]
    fn the_running_median_is_that_of_all_samples_so_far() {
        let mut timeline = Timeline::default();
        let mut at = 0;
        for step in [60, 60, 1, 7, 7, 300, 2, 2, 2, 9, 61, 1, 1, 1, 1, 1] {
            at += step;
            let sample = Sample::at(Span::from_secs(at));
            match step {
                7 => timeline.push_new_segment(&sample),
                _ => timeline.push(&sample).unwrap(),
            }
            assert_eq!(timeline.clock.median_step(), timeline.interval(), "at {at} s");
        }
    }
}
