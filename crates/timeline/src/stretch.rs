//! Stretches of a timeline: from when to when something held.

use std::sync::Arc;

use units::Span;

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
}

impl Stretch {
    /// How long it lasts.
    pub fn lasts(&self) -> Span {
        self.to - self.from
    }

    /// Whether the two have any time in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

/// Whether something held, sample by sample; unknown where it was not measured.
///
/// The value at sample *i* speaks for the time since sample *i − 1*, as rates do.
#[derive(Debug, Clone)]
pub struct Condition {
    pub(crate) times: Arc<[Span]>,
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
            times: self.times.clone(),
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
            .map(|i| (self.times[i] - self.times[i - 1]).as_nanos())
            .sum();
        Span::from_nanos(nanos)
    }

    /// The longest stretch of which the condition holds for at least 70 % of the time, from where it first holds to
    /// where it last does. `None` where it never holds. With a single sample, that sample where it holds.
    pub fn longest(&self) -> Option<Stretch> {
        if self.holds.len() == 1 {
            return (self.holds[0] == Some(true)).then(|| self.stretch(0, 0));
        }
        // Gains and losses such that a stretch qualifies exactly when they sum to zero or more; then the longest
        // such stretch by prefix sums, in one pass over candidates for its start and one for its end.
        let n = self.holds.len();
        if n == 0 {
            return None;
        }
        let mut prefix = Vec::with_capacity(n);
        let mut sum = 0.0;
        prefix.push(0.0);
        for i in 1..n {
            let seconds = (self.times[i] - self.times[i - 1]).as_secs_f64();
            sum += match self.holds[i] {
                Some(true) => seconds * (1.0 - Self::SUSTAINED),
                _ => -seconds * Self::SUSTAINED,
            };
            prefix.push(sum);
        }
        let holds = |i: usize| self.holds[i] == Some(true);
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
                let length = |(s, e): (usize, usize)| self.times[e].saturating_sub(self.times[s]);
                if start < end && best.is_none_or(|b| length((start, end)) >= length(b)) {
                    best = Some((start, end));
                }
            }
        }
        best.map(|(start, end)| self.stretch(start, end))
    }

    fn stretch(&self, first: usize, last: usize) -> Stretch {
        Stretch {
            first,
            last,
            from: self.times[first],
            to: self.times[last],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn condition(holds: &[u8]) -> Condition {
        Condition {
            times: (0..holds.len() as u64).map(Span::from_secs).collect(),
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
    fn never_means_none_and_one_sample_speaks_for_itself() {
        assert_eq!(longest(&[0, 0, 0]), None);
        assert_eq!(longest(&[]), None);
        assert_eq!(longest(&[1]), Some((0, 0)));
    }

    #[test]
    fn unmeasured_time_does_not_count_as_holding() {
        assert_eq!(longest(&[2, 1, 2, 2, 2, 1, 2]), Some((0, 1)));
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
