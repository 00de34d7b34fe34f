//! Stretches of a timeline: from when to when something held.

use units::Span;

use crate::clock::Clock;

/// A part of a timeline, from one sample to a later one; both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the sample at which it starts.
    pub first: usize,
    /// Index of the sample at which it ends.
    pub last: usize,
    /// Time of the first sample on the timeline's clock.
    pub from: Span,
    /// Time of the last sample on the timeline's clock.
    pub to: Span,
    /// How much of that was recorded: without gaps, sleep and reboots.
    pub recorded: Span,
}

impl Stretch {
    /// How long it lasts, as far as that was recorded: what happened in a gap nobody knows.
    pub fn lasts(&self) -> Span {
        self.recorded
    }

    /// From its first sample to its last on the clock, gaps included.
    pub fn spans(&self) -> Span {
        self.to - self.from
    }

    /// Whether the two have any time in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

/// Whether something held, sample by sample; unknown where it was not measured.
///
/// The value at sample *i* speaks for the time since sample *i − 1*, as rates do; for no time where nobody recorded
/// between the two.
#[derive(Debug, Clone)]
pub struct Condition {
    pub(crate) clock: Clock,
    pub(crate) holds: Vec<Option<bool>>,
}

impl Condition {
    /// How much of a stretch must satisfy the condition: an engineering choice.
    const SUSTAINED: f64 = 0.7;

    /// Both hold. Unknown where either is unknown, unless the other says no.
    pub fn and(&self, other: &Self) -> Self {
        self.join(other, |a, b| match (a, b) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    /// Either holds. Unknown where either is unknown, unless the other says yes.
    pub fn or(&self, other: &Self) -> Self {
        self.join(other, |a, b| match (a, b) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        })
    }

    fn join(&self, other: &Self, f: impl Fn(Option<bool>, Option<bool>) -> Option<bool>) -> Self {
        Self {
            clock: self.clock.clone(),
            holds: self
                .holds
                .iter()
                .zip(&other.holds)
                .map(|(a, b)| f(*a, *b))
                .collect(),
        }
    }

    /// Whether it holds at this sample.
    pub fn at(&self, index: usize) -> Option<bool> {
        self.holds.get(index).copied().flatten()
    }

    /// Total time for which it holds.
    pub fn total(&self) -> Span {
        let nanos = (1..self.holds.len())
            .filter(|&i| self.holds[i] == Some(true))
            .map(|i| self.clock.step(i).as_nanos())
            .sum();
        Span::from_nanos(nanos)
    }

    /// The stretches in which it holds in every sample, in order; a break ends one.
    pub fn runs(&self) -> Vec<Stretch> {
        let mut runs: Vec<Stretch> = Vec::new();
        for at in (1..self.holds.len()).filter(|at| self.holds_since(*at)) {
            let first = match runs.last().filter(|run| run.last == at - 1) {
                Some(run) => run.first,
                None => at - 1,
            };
            if first < at - 1 {
                runs.pop();
            }
            runs.push(self.clock.stretch(first, at));
        }
        runs
    }

    /// The longest stretch of which the condition holds for at least 70 % of the time, from where it first holds to
    /// where it last does. Time that nobody recorded counts as time in which it does not hold, so a stretch goes on
    /// across a short gap and ends at a long one. `None` where it never holds. Where no time was recorded at all, as
    /// with a single sample, the last sample at which it holds.
    pub fn longest(&self) -> Option<Stretch> {
        let last = self.holds.len().checked_sub(1)?;
        if self.clock.recorded(last) == Span::ZERO {
            let holds = self.holds.iter().rposition(|holds| *holds == Some(true))?;
            return Some(self.clock.stretch(holds, holds));
        }
        self.longest_within(0, last)
            .map(|(start, end)| self.clock.stretch(start, end))
    }

    /// All stretches like [`longest`](Self::longest) that last at least so long, in order of time: the longest, then the
    /// longest before and after it, and so on. They have no interval in common.
    pub fn stretches(&self, least: Span) -> Vec<Stretch> {
        let mut found = Vec::new();
        let mut open = vec![(0, self.holds.len().saturating_sub(1))];
        while let Some((from, to)) = open.pop() {
            let Some((start, end)) = self.longest_within(from, to) else {
                continue;
            };
            let stretch = self.clock.stretch(start, end);
            if stretch.lasts() < least {
                continue;
            }
            found.push(stretch);
            open.extend([(from, start), (end, to)]);
        }
        found.sort_by_key(|stretch| stretch.first);
        found
    }

    /// Ends of the longest qualifying stretch between two samples.
    fn longest_within(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        // Gains and losses such that a stretch qualifies exactly when they sum to zero or more; then the longest
        // such stretch by prefix sums, in one pass over candidates for its start and one for its end.
        let n = (to + 1).saturating_sub(from);
        if n < 2 {
            return None;
        }
        let mut prefix = Vec::with_capacity(n);
        let mut sum = 0.0;
        prefix.push(0.0);
        for i in from + 1..=to {
            let seconds = self.clock.elapsed(i).as_secs_f64();
            sum += match self.holds_since(i) {
                true => seconds * (1.0 - Self::SUSTAINED),
                false => -seconds * Self::SUSTAINED,
            };
            prefix.push(sum);
        }
        let holds = |i: usize| self.holds_since(from + i);
        let mut starts: Vec<usize> = Vec::new();
        for i in (0..n - 1).filter(|&i| holds(i + 1)) {
            if starts.last().is_none_or(|&s| prefix[i] < prefix[s]) {
                starts.push(i);
            }
        }
        let mut best: Option<(usize, usize)> = None;
        for end in (1..n).rev().filter(|&i| holds(i)) {
            while let Some(&start) = starts.last() {
                // A start at or behind this end serves no earlier end either.
                if start < end && prefix[end] + 1e-9 < prefix[start] {
                    break;
                }
                starts.pop();
                let length = |(s, e): (usize, usize)| self.clock.stretch_lasts(from + s, from + e);
                if start < end && best.is_none_or(|b| length((start, end)) >= length(b)) {
                    best = Some((start, end));
                }
            }
        }
        best.map(|(start, end)| (from + start, from + end))
    }

    /// Whether it holds for the time since the sample before, which was recorded.
    fn holds_since(&self, index: usize) -> bool {
        self.holds[index] == Some(true) && self.clock.step(index) > Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(len: usize) -> Vec<Span> {
        (0..len as u64).map(Span::from_secs).collect()
    }

    fn condition(holds: &[u8]) -> Condition {
        Condition {
            clock: Clock::new(&seconds(holds.len()), &[]),
            holds: holds
                .iter()
                .map(|h| match h {
                    0 => Some(false),
                    1 => Some(true),
                    _ => None,
                })
                .collect(),
        }
    }

    fn longest(holds: &[u8]) -> Option<(usize, usize)> {
        condition(holds).longest().map(|s| (s.first, s.last))
    }

    #[test]
    fn a_short_dip_does_not_end_a_stretch() {
        assert_eq!(longest(&[0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0]), Some((1, 7)));
    }

    #[test]
    fn runs_are_the_stretches_without_any_dip() {
        let runs = condition(&[1, 1, 1, 0, 1, 2, 1, 1]).runs();
        let ends: Vec<_> = runs.iter().map(|run| (run.first, run.last)).collect();
        assert_eq!(ends, [(0, 2), (3, 4), (5, 7)]);
    }

    #[test]
    fn what_comes_back_is_told_each_time_unless_it_is_too_short() {
        let holds = [
            0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1,
        ];
        let ends = |least| -> Vec<_> {
            let all = condition(&holds).stretches(Span::from_secs(least));
            all.iter().map(|s| (s.first, s.last)).collect()
        };
        assert_eq!(ends(4), [(0, 4), (8, 12), (18, 24)]);
        assert_eq!(ends(1), [(0, 4), (8, 12), (15, 16), (18, 24)]);
        assert_eq!(condition(&[0, 0]).stretches(Span::ZERO), []);
        assert_eq!(condition(&[]).stretches(Span::ZERO), []);
    }

    #[test]
    fn never_means_none_and_one_sample_speaks_for_itself() {
        assert_eq!(longest(&[0, 0, 0]), None);
        assert_eq!(longest(&[]), None);
        assert_eq!(longest(&[1]), Some((0, 0)));
    }

    #[test]
    fn unmeasured_time_does_not_count_as_holding() {
        assert_eq!(longest(&[2, 1, 2, 2, 2, 1, 2]), Some((0, 1)));
    }

    #[test]
    fn a_long_gap_ends_a_stretch_and_a_short_one_is_not_counted() {
        let held = |gap: u64| {
            let times = (0..20).map(|at| Span::from_secs(at + if at < 12 { 0 } else { gap }));
            let all: Vec<Span> = times.collect();
            let condition = Condition {
                clock: Clock::new(&all, &[12]),
                holds: vec![Some(true); 20],
            };
            assert_eq!(condition.total(), Span::from_secs(18));
            let longest = condition.longest().unwrap();
            (longest.first, longest.last, longest.lasts())
        };
        assert_eq!(held(432_000), (0, 11, Span::from_secs(11)));
        assert_eq!(held(4), (0, 19, Span::from_secs(18)));
    }

    #[test]
    fn where_no_time_was_recorded_the_last_sample_speaks_for_itself() {
        let condition = Condition {
            clock: Clock::new(&seconds(3), &[1, 2]),
            holds: vec![Some(true), Some(true), Some(false)],
        };
        let longest = condition.longest().unwrap();
        assert_eq!((longest.first, longest.last), (1, 1));
        assert_eq!(longest.lasts(), Span::ZERO);
    }

    proptest! {
        /// The one-pass search agrees with trying all stretches.
        #[test]
        fn longest_is_the_longest(holds in proptest::collection::vec(0u8..3, 2..40)) {
            let found = condition(&holds).longest().map(|s| s.lasts());
            let mut best = None;
            for a in 0..holds.len() {
                for b in a + 1..holds.len() {
                    let held = holds[a + 1..=b].iter().filter(|h| **h == 1).count();
                    let ends_hold = holds[a + 1] == 1 && holds[b] == 1;
                    if ends_hold && 10 * held >= 7 * (b - a) {
                        best = best.max(Some(Span::from_secs((b - a) as u64)));
                    }
                }
            }
            prop_assert_eq!(found, best);
        }
    }
}
