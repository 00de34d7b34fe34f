//! When samples were taken, and how much of the time between them was recorded. Uses no signals.

use std::sync::Arc;

use units::Span;

use crate::stretch::Stretch;

/// The times of a timeline's samples, and the recorded time, which stands still across gaps, suspends and reboots.
#[derive(Debug, Clone)]
pub(crate) struct TimelineClock {
    times: Arc<[Span]>,
    recorded: Arc<[Span]>,
}

impl TimelineClock {
    /// Builds the clock; `breaks` are the samples before which nothing was recorded, in order.
    pub(crate) fn new(times: &[Span], breaks: &[usize]) -> Self {
        let mut breaks = breaks.iter().copied().peekable();
        let mut recorded = Vec::with_capacity(times.len());
        let mut so_far = Span::ZERO;
        for (at, time) in times.iter().enumerate() {
            let is_broken = breaks.next_if_eq(&at).is_some();
            while breaks.next_if(|gap| *gap <= at).is_some() {}
            if at > 0 && !is_broken {
                so_far = so_far.plus(*time - times[at - 1]);
            }
            recorded.push(so_far);
        }
        Self { times: times.into(), recorded: recorded.into() }
    }

    pub(crate) fn times(&self) -> &[Span] {
        &self.times
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// The recorded time from the first sample to this one.
    pub(crate) fn recorded(&self, index: usize) -> Span {
        self.recorded.get(index).copied().unwrap_or_default()
    }

    /// The recorded time between a sample and the one before it; zero before the first, and across a break.
    pub(crate) fn step(&self, index: usize) -> Span {
        let before = index.checked_sub(1).map(|before| self.recorded(before));
        before.map_or(Span::ZERO, |before| self.recorded(index) - before)
    }

    /// The recorded time from one sample to a later one; zero where they are not in order.
    pub(crate) fn recorded_between(&self, first: usize, last: usize) -> Span {
        self.recorded(last).saturating_sub(self.recorded(first))
    }

    /// The stretch from one sample to a later one.
    pub(crate) fn stretch(&self, first: usize, last: usize) -> Stretch {
        Stretch {
            first,
            last,
            from: self.times[first],
            to: self.times[last],
            recorded: self.recorded_between(first, last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_recorded_time_stands_still_across_breaks() {
        let times = [0, 1, 2, 102, 103].map(Span::from_secs);
        let clock = TimelineClock::new(&times, &[3, 3]);
        let whole = clock.stretch(0, 4);
        assert_eq!(whole.duration(), Span::from_secs(3));
        assert_eq!(whole.elapsed(), Span::from_secs(103));
        assert_eq!((clock.step(0), clock.step(3)), (Span::ZERO, Span::ZERO));
        assert_eq!(clock.step(4), Span::from_secs(1));
    }
}
