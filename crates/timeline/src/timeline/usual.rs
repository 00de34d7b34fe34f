//! The usual distance of samples while they come in: a median that is kept, as walking all samples for each new one would
//! take minutes on a long recording by the minute.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Span;

use super::{Break, BreakKind};

/// The median of the steps so far; the larger of the two in the middle. Steps are taken in only when it is asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Usual {
    /// The smaller half, as many as `large` or one less.
    small: BinaryHeap<Span>,
    large: BinaryHeap<Reverse<Span>>,
    /// Samples and breaks that are taken in.
    samples: usize,
    breaks: usize,
}

impl Usual {
    /// The median of the steps between all samples that are related; `None` with fewer than two.
    pub(super) fn of(&mut self, times: &[Span], breaks: &[Break]) -> Option<Span> {
        for at in self.samples.max(1)..times.len() {
            while breaks.get(self.breaks).is_some_and(|gap| gap.before < at) {
                self.breaks += 1;
            }
            let mut its = breaks[self.breaks..].iter();
            let mut its = its.by_ref().take_while(|gap| gap.before == at);
            if !its.any(|gap| gap.kind == BreakKind::Unrelated) {
                self.take(times[at] - times[at - 1]);
            }
        }
        self.samples = times.len();
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

    use super::Usual;

    #[test]
    fn it_is_the_median_after_every_sample() {
        let mut timeline = Timeline::default();
        let mut usual = Usual::default();
        let mut at = 0;
        for step in [60, 60, 1, 7, 7, 300, 2, 2, 2, 9, 61, 1, 1, 1, 1, 1] {
            at += step;
            let sample = Sample::at(Span::from_secs(at));
            match step {
                7 => timeline.push_unrelated(&sample),
                _ => timeline.push(&sample).unwrap(),
            }
            let kept = usual.of(timeline.times(), timeline.breaks());
            assert_eq!(kept, timeline.interval(), "at {at} s");
        }
    }
}
