//! Tracks: the values of one signal, or something computed from signals, on the timeline's clock.
//!
//! A track's quantity is its type, so pages cannot be added to bytes and a rate cannot be compared with a level. The
//! value at sample *i* covers the time since sample *i − 1*; it is absent where it was not measured.

use std::marker::PhantomData;

use units::{Micros, PageSize, Pages, PerSecond, Quantity, Ratio, Span, Ticks};

use crate::clock::TimelineClock;
use crate::condition::Condition;
use crate::stretch::Stretch;

/// Values of `Q` over time.
#[derive(Debug, Clone)]
pub struct Track<Q> {
    clock: TimelineClock,
    values: Vec<Option<f64>>,
    quantity: PhantomData<Q>,
}

impl<Q: Quantity> Track<Q> {
    pub(crate) fn new(clock: TimelineClock, values: Vec<Option<f64>>) -> Self {
        debug_assert_eq!(clock.len(), values.len());
        Self { clock, values, quantity: PhantomData }
    }

    /// When each sample was taken.
    pub fn times(&self) -> &[Span] {
        self.clock.times()
    }

    /// The value at a sample.
    pub fn at(&self, index: usize) -> Option<Q> {
        self.values.get(index).copied().flatten().map(Q::from_f64)
    }

    /// All values, for drawing.
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }

    /// The first measured value.
    pub fn first(&self) -> Option<Q> {
        self.values.iter().flatten().next().map(|v| Q::from_f64(*v))
    }

    /// The last measured value.
    pub fn last(&self) -> Option<Q> {
        self.values.iter().rev().flatten().next().map(|v| Q::from_f64(*v))
    }

    /// The smallest value and its sample.
    pub fn min(&self) -> Option<(Q, usize)> {
        self.extreme(0..self.values.len(), |new, old| new < old)
    }

    /// The largest value and its sample.
    pub fn max(&self) -> Option<(Q, usize)> {
        self.extreme(0..self.values.len(), |new, old| new > old)
    }

    /// The smallest value within a stretch and its sample.
    pub fn min_in(&self, stretch: &Stretch) -> Option<(Q, usize)> {
        self.extreme(self.inside(stretch), |new, old| new < old)
    }

    /// The largest value within a stretch and its sample.
    pub fn max_in(&self, stretch: &Stretch) -> Option<(Q, usize)> {
        self.extreme(self.inside(stretch), |new, old| new > old)
    }

    fn extreme(
        &self,
        range: std::ops::Range<usize>,
        better: impl Fn(f64, f64) -> bool,
    ) -> Option<(Q, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for i in range {
            if let Some(value) = self.values[i]
                && best.is_none_or(|(old, _)| better(value, old))
            {
                best = Some((value, i));
            }
        }
        best.map(|(value, i)| (Q::from_f64(value), i))
    }

    /// The samples that cover the time of a stretch: all but its first, unless it has only one.
    fn inside(&self, stretch: &Stretch) -> std::ops::Range<usize> {
        let first = if stretch.first == stretch.last { stretch.first } else { stretch.first + 1 };
        first..(stretch.last + 1).min(self.values.len())
    }

    /// The mean over a stretch, weighted by time; time that was not measured, or not recorded, is left out.
    pub fn mean_in(&self, stretch: &Stretch) -> Option<Q> {
        self.mean_of(stretch).map(Q::from_f64)
    }

    fn mean_of(&self, stretch: &Stretch) -> Option<f64> {
        let (mut sum, mut seconds) = (0.0, 0.0);
        for i in self.inside(stretch) {
            let Some(value) = self.values[i] else {
                continue;
            };
            // A single sample is its own mean, whatever time it covers.
            let weight = if i == 0 || stretch.first == stretch.last {
                1.0
            } else {
                self.clock.step(i).as_secs_f64()
            };
            sum += value * weight;
            seconds += weight;
        }
        (seconds > 0.0).then(|| sum / seconds)
    }

    /// The highest mean over any part of a stretch with this duration, or with the next longer one that its samples
    /// allow; the mean of the whole where the stretch is shorter.
    pub fn highest_mean_in(&self, stretch: &Stretch, duration: Span) -> Option<Q> {
        if stretch.duration() <= duration {
            return self.mean_in(stretch);
        }
        let inside = self.inside(stretch);
        let mut first = inside.start;
        let means = inside.filter_map(|last| {
            let recorded = |first: usize| self.clock.recorded_between(first - 1, last);
            while first < last && recorded(first + 1) >= duration {
                first += 1;
            }
            let part = self.clock.stretch(first - 1, last);
            (recorded(first) >= duration).then(|| self.mean_of(&part))?
        });
        means.max_by(f64::total_cmp).map(Q::from_f64)
    }

    /// At each sample with a value the mean of the time before it, up to this duration: what comes in bursts is level.
    #[must_use]
    pub fn mean_before(&self, duration: Span) -> Self {
        let mut first = 0;
        let means = (0..self.values.len()).map(|last| {
            while first < last && self.clock.recorded_between(first, last) > duration {
                first += 1;
            }
            self.values[last].and_then(|_| self.mean_of(&self.clock.stretch(first, last)))
        });
        Self::new(self.clock.clone(), means.collect())
    }

    /// The value below which `share` of the measured samples lie (nearest rank).
    pub fn quantile(&self, share: Ratio) -> Option<Q> {
        let mut measured: Vec<f64> = self.values.iter().flatten().copied().collect();
        stats::quantile_in_place(&mut measured, share.get()).map(Q::from_f64)
    }

    /// The sum of a rate over a stretch: pages a second become pages. Unmeasured time adds nothing.
    pub fn integral_in(&self, stretch: &Stretch) -> f64 {
        self.inside(stretch)
            .filter(|&i| i > 0)
            .filter_map(|i| Some(self.values[i]? * self.clock.step(i).as_secs_f64()))
            .sum()
    }

    /// The condition that the value is at least `threshold`.
    pub fn at_least(&self, threshold: Q) -> Condition {
        self.is(|value| value >= threshold)
    }

    /// The condition that the value is at most `threshold`.
    pub fn at_most(&self, threshold: Q) -> Condition {
        self.is(|value| value <= threshold)
    }

    /// The condition that the value satisfies `test`.
    pub fn is(&self, test: impl Fn(Q) -> bool) -> Condition {
        Condition {
            clock: self.clock.clone(),
            holds: self.values.iter().map(|v| v.map(|value| test(Q::from_f64(value)))).collect(),
        }
    }

    /// The condition that the value is at least that of another track at the same time.
    pub fn at_least_track(&self, other: &Self) -> Condition {
        self.versus(other, |a, b| a >= b)
    }

    /// The condition that the value is at most that of another track at the same time.
    pub fn at_most_track(&self, other: &Self) -> Condition {
        self.versus(other, |a, b| a <= b)
    }

    fn versus(&self, other: &Self, test: impl Fn(f64, f64) -> bool) -> Condition {
        Condition {
            clock: self.clock.clone(),
            holds: self
                .values
                .iter()
                .zip(&other.values)
                .map(|(a, b)| Some(test((*a)?, (*b)?)))
                .collect(),
        }
    }

    /// Combines each value with that of another track of the same quantity; absent where either is.
    pub fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self::new(
            self.clock.clone(),
            self.values.iter().zip(&other.values).map(|(a, b)| Some(f((*a)?, (*b)?))).collect(),
        )
    }

    /// The sum.
    pub fn plus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    /// The difference; zero where `other` is larger.
    pub fn minus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| (a - b).max(0.0))
    }

    /// The smaller of the two values.
    pub fn lower(&self, other: &Self) -> Self {
        self.zip(other, f64::min)
    }

    /// The value of this track where it was measured, else that of the other.
    pub fn or_else(&self, other: &Self) -> Self {
        Self::new(
            self.clock.clone(),
            self.values.iter().zip(&other.values).map(|(a, b)| a.or(*b)).collect(),
        )
    }

    /// A multiple of each value.
    pub fn scaled(&self, factor: f64) -> Self {
        self.mapped(|value| value * factor)
    }

    /// Each value as a share of `whole`; absent where `whole` is zero.
    pub fn ratio_of(&self, whole: &Self) -> Track<Ratio> {
        Track::new(
            self.clock.clone(),
            self.values
                .iter()
                .zip(&whole.values)
                .map(|(a, b)| match (a, b) {
                    (Some(a), Some(b)) if *b > 0.0 => Some(a / b),
                    _ => None,
                })
                .collect(),
        )
    }

    /// Applies `step` at each sample to its result at the sample before, `None` after a sample without a value.
    pub fn scan(&self, mut step: impl FnMut(Option<f64>, usize, f64) -> f64) -> Self {
        let mut before = None;
        let values = self.values.iter().enumerate().map(|(index, value)| {
            before = value.map(|value| step(before, index, value));
            before
        });
        Self::new(self.clock.clone(), values.collect())
    }

    /// The same numbers as values of another quantity; the caller ensures that they are.
    #[must_use]
    pub fn cast<R: Quantity>(self) -> Track<R> {
        Track { clock: self.clock, values: self.values, quantity: PhantomData }
    }

    fn mapped<R: Quantity>(&self, f: impl Fn(f64) -> f64) -> Track<R> {
        Track::new(self.clock.clone(), self.values.iter().map(|v| v.map(&f)).collect())
    }

    /// The whole track as a stretch; `None` without samples.
    pub fn whole(&self) -> Option<Stretch> {
        let last = self.clock.len().checked_sub(1)?;
        Some(self.clock.stretch(0, last))
    }

    /// The stretch between two samples; `None` where they are not in order or out of range.
    pub fn stretch(&self, first: usize, last: usize) -> Option<Stretch> {
        (first <= last && last < self.clock.len()).then(|| self.clock.stretch(first, last))
    }
}

impl Track<PerSecond<Pages>> {
    /// The same flow in bytes.
    pub fn to_bytes(&self, page: PageSize) -> Track<PerSecond<units::Bytes>> {
        self.mapped(|pages| pages * page.bytes().as_f64())
    }
}

impl Track<Pages> {
    /// The same level in bytes.
    pub fn to_bytes(&self, page: PageSize) -> Track<units::Bytes> {
        self.mapped(|pages| pages * page.bytes().as_f64())
    }
}

impl Track<PerSecond<Micros>> {
    /// Stall time as the share of time stalled; a share above one (two clocks raced) is one.
    pub fn to_share(&self) -> Track<Ratio> {
        self.mapped(|micros| (micros / 1e6).min(1.0))
    }
}

impl Track<PerSecond<Ticks>> {
    /// CPU time as a number of busy CPUs.
    pub fn to_cpus(&self, ticks_per_second: u64) -> Track<Ratio> {
        self.mapped(|ticks| PerSecond::<Ticks>::new(ticks).to_cpus(ticks_per_second).get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Bytes, BytesPerSecond};

    #[test]
    fn the_mean_before_a_sample_levels_bursts_and_is_not_longer_than_asked() {
        let seconds = Span::from_secs(2);
        let bursts: Track<Bytes> =
            track(&[None, Some(8.0), Some(0.0), Some(0.0), Some(0.0), None, Some(6.0)]);
        assert_eq!(
            bursts.mean_before(seconds).values(),
            [None, Some(8.0), Some(4.0), Some(0.0), Some(0.0), None, Some(6.0)]
        );
    }

    fn clock(times: impl IntoIterator<Item = Span>, breaks: &[usize]) -> TimelineClock {
        TimelineClock::new(&times.into_iter().collect::<Vec<_>>(), breaks)
    }

    fn track<Q: Quantity>(values: &[Option<f64>]) -> Track<Q> {
        Track::new(clock((0..values.len() as u64).map(Span::from_secs), &[]), values.to_vec())
    }

    #[test]
    fn a_mean_is_weighted_by_time_and_skips_gaps() {
        let track: Track<BytesPerSecond> = Track::new(
            clock([0, 1, 4].map(Span::from_secs), &[]),
            vec![None, Some(10.0), Some(2.0)],
        );
        let whole = track.whole().unwrap();
        assert_eq!(track.mean_in(&whole), Some(BytesPerSecond::new(4.0)));
        assert_eq!(track.integral_in(&whole), 16.0);
    }

    #[test]
    fn the_highest_mean_of_some_seconds_is_found_wherever_they_lie() {
        let mut values = vec![Some(0.0); 101];
        values[40..50].fill(Some(8.0));
        values[70] = Some(30.0);
        let track: Track<BytesPerSecond> =
            Track::new(clock((0..101).map(Span::from_secs), &[]), values);
        let whole = track.whole().unwrap();
        let highest = |stretch, lasting| track.highest_mean_in(stretch, Span::from_secs(lasting));
        assert_eq!(highest(&whole, 10), Some(BytesPerSecond::new(8.0)));
        assert_eq!(highest(&whole, 5), Some(BytesPerSecond::new(8.0)));
        assert_eq!(highest(&whole, 1), Some(BytesPerSecond::new(30.0)));
        assert_eq!(highest(&whole, 200), track.mean_in(&whole));
        let part = track.stretch(60, 80).unwrap();
        assert_eq!(highest(&part, 10), Some(BytesPerSecond::new(3.0)));
    }

    #[test]
    fn a_level_after_a_gap_says_nothing_of_the_gap() {
        let track: Track<Bytes> = Track::new(
            clock([0, 1, 432_001, 432_002].map(Span::from_secs), &[2]),
            vec![Some(40.0), Some(40.0), Some(10.0), Some(20.0)],
        );
        let whole = track.whole().unwrap();
        assert_eq!(track.mean_in(&whole), Some(Bytes::new(30)));
        assert_eq!(track.integral_in(&whole), 60.0);
        let after = track.stretch(2, 2).unwrap();
        assert_eq!(track.mean_in(&after), Some(Bytes::new(10)));
    }

    #[test]
    fn what_was_not_measured_is_absent_in_what_is_computed() {
        let a: Track<Bytes> = track(&[Some(5.0), None, Some(1.0)]);
        let b: Track<Bytes> = track(&[Some(2.0), Some(2.0), Some(2.0)]);
        assert_eq!(a.minus(&b).values(), &[Some(3.0), None, Some(0.0)]);
        assert_eq!(a.at_least(Bytes::new(2)).at(1), None);
        assert_eq!(a.or_else(&b).at(1), Some(Bytes::new(2)));
    }

    #[test]
    fn extremes_say_where_they_are() {
        let a: Track<Bytes> = track(&[Some(5.0), None, Some(1.0), Some(7.0)]);
        assert_eq!(a.min(), Some((Bytes::new(1), 2)));
        assert_eq!(a.max(), Some((Bytes::new(7), 3)));
        assert_eq!(a.quantile(Ratio::new(0.5)), Some(Bytes::new(5)));
    }
}
