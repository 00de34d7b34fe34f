//! Conditions: whether something holds over time.

use units::Span;

use crate::clock::TimelineClock;
use crate::stretch::Stretch;

/// Whether something holds, sample by sample; unknown where it was not measured.
///
/// The value at sample *i* covers the time since sample *i − 1*, as rates do. It covers no time where nothing was
/// recorded between the two.
#[derive(Debug, Clone)]
pub struct Condition {
    pub(crate) clock: TimelineClock,
    pub(crate) holds: Vec<Option<bool>>,
}

impl Condition {
    /// The share of a stretch for which the condition must hold: an engineering choice.
    pub const SUSTAINED: f64 = 0.7;
    /// An interruption up to this long does not end a stretch: an engineering choice, one late sample and its
    /// neighbours.
    const SHORT_HOLE: Span = Span::from_secs(5);
    /// The same as a number of samples, where samples are further apart.
    const FEW_SAMPLES: usize = 2;

    /// The condition that both hold. Unknown where either is unknown, unless the other is false.
    pub fn and(&self, other: &Self) -> Self {
        self.join(other, |a, b| match (a, b) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    /// The condition that either holds. Unknown where either is unknown, unless the other is true.
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
            holds: self.holds.iter().zip(&other.holds).map(|(a, b)| f(*a, *b)).collect(),
        }
    }

    /// Whether it holds at this sample.
    pub fn at(&self, index: usize) -> Option<bool> {
        self.holds.get(index).copied().flatten()
    }

    /// The total time for which it holds.
    pub fn total(&self) -> Span {
        let nanos = (1..self.holds.len())
            .filter(|&i| self.holds[i] == Some(true))
            .map(|i| self.clock.step(i).as_nanos())
            .sum();
        Span::from_nanos(nanos)
    }

    /// The stretches in which it holds at every sample, in order; a break ends a stretch.
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

    /// Whether it holds at any sample.
    pub fn ever_holds(&self) -> bool {
        self.holds.contains(&Some(true))
    }

    /// Whether it holds at any sample or may hold at one where it is unknown.
    pub fn could_hold(&self) -> bool {
        self.holds.iter().any(|holds| *holds != Some(false))
    }

    /// The recorded time of all samples, known or not.
    pub fn recorded(&self) -> Span {
        let last = self.holds.len().checked_sub(1);
        last.map_or(Span::ZERO, |last| self.clock.recorded(last))
    }

    /// At how many samples it is known.
    pub fn known(&self) -> usize {
        self.holds.iter().flatten().count()
    }

    /// The last sample at which it holds, if it holds wherever it is known.
    pub fn last_of_all(&self) -> Option<usize> {
        if self.holds.contains(&Some(false)) {
            return None;
        }
        self.holds.iter().rposition(|holds| *holds == Some(true))
    }

    /// The longest of [`bridged_runs`](Self::bridged_runs).
    pub fn longest_run(&self) -> Option<Stretch> {
        self.bridged_runs().into_iter().max_by_key(Stretch::duration)
    }

    /// The stretches in which it holds, in order: runs, joined across holes of a few samples where it holds for at
    /// least 70 % of the joined stretch. Whether two runs are joined depends only on what is between them, so that the
    /// samples before and after do not matter. Where no time was recorded at all, as with a single sample, returns the
    /// last sample at which it holds.
    pub fn bridged_runs(&self) -> Vec<Stretch> {
        let Some(last) = self.holds.len().checked_sub(1) else {
            return Vec::new();
        };
        if self.clock.recorded(last) == Span::ZERO {
            let holds = self.holds.iter().rposition(|holds| *holds == Some(true));
            let at = holds.map(|holds| self.clock.stretch(holds, holds));
            return at.into_iter().collect();
        }
        let mut joined: Vec<(Stretch, Span)> = Vec::new();
        for run in self.runs() {
            let mut next = (run, run.duration());
            while let Some(bridged) = joined.last().and_then(|before| self.bridge(before, &next)) {
                joined.pop();
                next = bridged;
            }
            joined.push(next);
        }
        joined.into_iter().map(|(stretch, _)| stretch).collect()
    }

    /// Joins two stretches, each with the time for which it holds in them; `None` where they are too far apart.
    fn bridge(&self, a: &(Stretch, Span), b: &(Stretch, Span)) -> Option<(Stretch, Span)> {
        let hole = b.0.from - a.0.to;
        let is_short = hole <= Self::SHORT_HOLE || b.0.first - a.0.last <= Self::FEW_SAMPLES;
        let held = a.1.plus(b.1);
        let whole = self.clock.stretch(a.0.first, b.0.last);
        let is_dense = held.as_secs_f64() >= whole.elapsed().as_secs_f64() * Self::SUSTAINED;
        (is_short && is_dense).then_some((whole, held))
    }

    /// Whether it holds for the time since the sample before, and that time was recorded.
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
            clock: TimelineClock::new(&seconds(holds.len()), &[]),
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

    #[test]
    fn runs_are_the_stretches_without_any_dip() {
        let runs = condition(&[1, 1, 1, 0, 1, 2, 1, 1]).runs();
        let ends: Vec<_> = runs.iter().map(|run| (run.first, run.last)).collect();
        assert_eq!(ends, [(0, 2), (3, 4), (5, 7)]);
    }

    #[test]
    fn runs_are_bridged_across_short_holes_and_whatever_lies_around_changes_none() {
        let ends = |holds: &[u8]| -> Vec<_> {
            let runs = condition(holds).bridged_runs();
            runs.iter().map(|s| (s.first, s.last)).collect()
        };
        let sick = [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1];
        let apart = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
        for calm in [1, 10, 500] {
            let around = |sick: &[u8]| [vec![0; calm], sick.to_vec(), vec![0; calm]].concat();
            let from = calm - 1;
            assert_eq!(ends(&around(&sick)), [(from, from + 14)]);
            assert_eq!(ends(&around(&apart)), [(from, from + 4), (from + 10, from + 14)]);
        }
        // Half of the time is not most of it.
        assert_eq!(ends(&[0, 1, 0, 1, 0, 1, 0, 1]).len(), 4);
    }

    #[test]
    fn never_means_none_and_one_sample_speaks_for_itself() {
        assert_eq!(condition(&[0, 0, 0]).longest_run(), None);
        assert_eq!(condition(&[]).longest_run(), None);
        let one = condition(&[1]).longest_run().unwrap();
        assert_eq!((one.first, one.last), (0, 0));
    }

    #[test]
    fn unmeasured_time_does_not_count_as_holding() {
        let runs = condition(&[2, 1, 2, 2, 2, 1, 2]).bridged_runs();
        let ends: Vec<_> = runs.iter().map(|run| (run.first, run.last)).collect();
        assert_eq!(ends, [(0, 1), (4, 5)]);
    }

    #[test]
    fn a_long_gap_ends_a_stretch_and_a_short_one_is_not_counted() {
        let held = |gap: u64| {
            let times = (0..20).map(|at| Span::from_secs(at + if at < 12 { 0 } else { gap }));
            let all: Vec<Span> = times.collect();
            let condition =
                Condition { clock: TimelineClock::new(&all, &[12]), holds: vec![Some(true); 20] };
            assert_eq!(condition.total(), Span::from_secs(18));
            let longest = condition.longest_run().unwrap();
            (longest.first, longest.last, longest.duration())
        };
        assert_eq!(held(432_000), (0, 11, Span::from_secs(11)));
        assert_eq!(held(4), (0, 19, Span::from_secs(18)));
    }

    #[test]
    fn where_no_time_was_recorded_the_last_sample_speaks_for_itself() {
        let condition = Condition {
            clock: TimelineClock::new(&seconds(3), &[1, 2]),
            holds: vec![Some(true), Some(true), Some(false)],
        };
        let longest = condition.longest_run().unwrap();
        assert_eq!((longest.first, longest.last), (1, 1));
        assert_eq!(longest.duration(), Span::ZERO);
    }

    proptest! {
        /// Runs do not touch, are in order, hold at both ends and for most of the time, and contain every sample at
        /// which the condition holds.
        #[test]
        fn bridged_runs_cover_what_holds(holds in proptest::collection::vec(0u8..3, 2..60)) {
            let condition = condition(&holds);
            let runs = condition.bridged_runs();
            for pair in runs.windows(2) {
                prop_assert!(pair[0].last < pair[1].first + 1);
            }
            for run in &runs {
                prop_assert!(holds[run.first + 1] == 1 && holds[run.last] == 1);
                let held = holds[run.first + 1..=run.last].iter().filter(|h| **h == 1).count();
                prop_assert!(10 * held >= 7 * (run.last - run.first));
            }
            for at in (1..holds.len()).filter(|at| holds[*at] == 1) {
                prop_assert!(runs.iter().any(|run| run.first < at && at <= run.last));
            }
        }
    }
}
