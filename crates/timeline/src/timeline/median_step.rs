//! The usual distance of samples while they come in: a median that is kept, as walking all samples for each new one would
//! take minutes on a long recording by the minute.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Span;

use super::{BreakKind, Timeline};

/// Medians of the steps so far, of those to thinned samples and of the others. Steps are taken in only when they are asked
/// for.
#[derive(Debug, Clone, Default)]
pub(super) struct MedianStep {
    every: Median,
    thinned: Median,
    /// Samples and breaks that are taken in.
    samples: usize,
    breaks: usize,
}

impl Timeline {
    /// The usual distance from a sample to the next one, which is appended now; `None` where nothing tells.
    pub(super) fn median_step(&mut self) -> Option<Span> {
        let mut usual = std::mem::take(&mut self.median_step);
        usual.take_in(self);
        let (every, thinned) = (usual.every.get(), usual.thinned.get());
        self.median_step = usual;
        match self.resolution {
            // However close the samples before it are, it may be as late as the last of its minute.
            Some(to) => Some(thinned.or(every)?.max(to)),
            None => every.or(thinned),
        }
    }
}

impl MedianStep {
    fn take_in(&mut self, timeline: &Timeline) {
        let (times, breaks) = (&timeline.times, &timeline.breaks);
        for at in self.samples.max(1)..times.len() {
            while breaks.get(self.breaks).is_some_and(|gap| gap.before < at) {
                self.breaks += 1;
            }
            let mut its = breaks[self.breaks..].iter();
            let mut its = its.by_ref().take_while(|gap| gap.before == at);
            if its.any(|gap| gap.kind == BreakKind::NewSegment) {
                continue;
            }
            let step = times[at] - times[at - 1];
            match timeline.resolution_at(at) {
                Some(_) => self.thinned.take(step),
                None => self.every.take(step),
            }
        }
        self.samples = times.len();
    }
}

/// A median that is kept; the larger of the two in the middle.
#[derive(Debug, Clone, Default)]
struct Median {
    /// The smaller half, as many as `large` or one less.
    small: BinaryHeap<Span>,
    large: BinaryHeap<Reverse<Span>>,
}

impl Median {
    fn get(&self) -> Option<Span> {
        self.large.peek().map(|Reverse(middle)| *middle)
    }

    fn take(&mut self, step: Span) {
        self.large.push(Reverse(step));
        self.small
            .extend(self.large.pop().map(|Reverse(least)| least));
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
    fn it_is_the_median_after_every_sample() {
        let mut timeline = Timeline::default();
        let mut at = 0;
        for step in [60, 60, 1, 7, 7, 300, 2, 2, 2, 9, 61, 1, 1, 1, 1, 1] {
            at += step;
            let sample = Sample::at(Span::from_secs(at));
            match step {
                7 => timeline.push_new_segment(&sample),
                _ => timeline.push(&sample).unwrap(),
            }
            assert_eq!(timeline.median_step(), timeline.interval(), "at {at} s");
        }
    }
}
