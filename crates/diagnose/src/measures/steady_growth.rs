//! Memory that grows in a line until the end of the source: how fast, and when it meets its limit at that rate.
//!
//! A line that is judged may be the beginning of a curve that levels off. So a limit counts only if it is met within a
//! few times the time that was seen.

use timeline::{EntitySeries, Track};
use units::{Bytes, Count, PerSecond, Quantity as _, RatePeriod, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::Confidence;
use crate::growth::{Growth, GrowthPoint, GrowthSeries};
use crate::measures::rise::Rise;

/// A growth is projected for at most this many times as long as it was seen: an engineering choice.
const HORIZON: f64 = 10.0;
/// A program that starts takes memory for a while: an engineering choice.
const SEEN_MIN: Span = Span::from_mins(1);
/// A smaller growth is the noise of a program of that size: an engineering choice.
pub(crate) const GROWN: Ratio = Ratio::from_percent(10.0);

/// A step belongs to a line from this part of its mean pace on: an engineering choice, so that neither the wobble before a
/// line counts nor a single large step.
const SAME_PACE: f64 = 0.5;

/// Memory that grows without an end in sight.
#[derive(Debug)]
pub(crate) struct SteadyGrowth {
    /// The samples of the first and the last reading.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// The sizes at both.
    pub(crate) from: Bytes,
    pub(crate) to: Bytes,
    /// What the classifier says of it.
    pub(crate) growth: Growth,
}

impl SteadyGrowth {
    /// Whether a rise of an entity can last until the end of the source, by when it was read first and last. Of the
    /// thousands that come and go no track is made, which has a value for each sample.
    pub(crate) fn may_be_of(cx: &Evidence<'_>, entity: &EntitySeries) -> bool {
        let Some((first, last)) = entity.samples() else {
            return false;
        };
        let is_last = cx.timeline.read_after(entity.entity, last + 1).is_none();
        let lasts = |from: usize, to: Option<Span>| Some(to?.saturating_sub(cx.time(from)?));
        let stands = lasts(last, cx.timeline.times().last().copied());
        let seen = lasts(first, cx.time(last));
        first < last && (is_last || stands <= seen.map(|seen| seen.times(Rise::STANDS)))
    }

    /// Judges the rise of `size` that lasts until the end of the source. `room` is how much more fits. `None` if there is
    /// none, if it is small, or if it is not a line.
    pub(crate) fn of(
        cx: &Evidence<'_>,
        size: &Track<Bytes>,
        room: impl FnOnce(usize) -> Option<Bytes>,
    ) -> Option<Self> {
        let rise = Rise::lasting(size, *cx.timeline.times().last()?)?;
        let points = points(size, rise.stretch.first);
        let last = points.last()?.0;
        Self::judged(cx, points, room(last))
    }

    /// Judges the rise of `size` that lasts until its own last value, however high it was before: a program that is
    /// started again after each kill rises to the same size each time.
    pub(crate) fn until_its_end(cx: &Evidence<'_>, size: &Track<Bytes>) -> Option<Self> {
        let last = size.values().iter().rposition(Option::is_some)?;
        let rise = Rise::going_on(size, cx.time(last)?)?;
        // A rise is measured without its slow beginning, and a line has none: it begins where the steps begin.
        let rate = PerSecond::<Bytes>::over(rise.by().as_f64(), rise.stretch.duration())?;
        let all = points(size, 0);
        let mut first = all.iter().position(|(at, _)| *at == rise.stretch.first)?;
        while let Some([before, after]) = first.checked_sub(1).and_then(|at| all.get(at..=at + 1)) {
            let took = cx.time(after.0)?.saturating_sub(cx.time(before.0)?);
            let step = after.1.saturating_sub(before.1).as_f64();
            if step < rate.get() * took.as_secs_f64() * SAME_PACE {
                break;
            }
            first -= 1;
        }
        Self::judged(cx, all[first..].to_vec(), None)
    }

    fn judged(cx: &Evidence<'_>, points: Vec<(usize, Bytes)>, room: Option<Bytes>) -> Option<Self> {
        let ((first, from), (last, to)) = (*points.first()?, *points.last()?);
        let grown = to.saturating_sub(from);
        if grown < Rise::NOISE.max(from.share(GROWN)) {
            return None;
        }
        let times = cx.timeline.times();
        let points = points.into_iter().map(|(index, total)| GrowthPoint {
            at: times[index],
            total,
            ..GrowthPoint::default()
        });
        let growth = Growth::of_leak(&GrowthSeries {
            points: points.collect(),
            limit: room.map(|room| to + room),
            ..GrowthSeries::default()
        })?;
        Some(Self { first, last, from, to, growth })
    }

    /// How long it lasted.
    pub(crate) fn lasted(&self) -> Span {
        self.growth.judged
    }

    /// The rate: that of the line through all readings, as the first and the last one alone wobble; else from the first to
    /// the last.
    pub(crate) fn rate(&self) -> Option<PerSecond<Bytes>> {
        let ends =
            || PerSecond::over(self.to.saturating_sub(self.from).as_f64(), self.growth.judged);
        self.growth.rate.map(|rate| rate.rate).or_else(ends)
    }

    /// In what time the limit is met at this rate, if that is near compared with the time that was seen.
    pub(crate) fn limit_in(&self) -> Option<Span> {
        let seen = self.growth.judged;
        let near = |left: &Span| *left <= seen.times(HORIZON);
        self.growth.limit_in.filter(near).filter(|_| seen >= SEEN_MIN)
    }

    /// The rate and its 95 % interval: `66 MiB a minute (60 MiB to 72 MiB)`.
    pub(crate) fn pace(&self) -> String {
        let Some(rate) = self.growth.rate else {
            return String::new();
        };
        let period = RatePeriod::of_growth_seen_for(self.growth.judged);
        let [mean, from, to] = [rate.rate, rate.from, rate.to].map(|rate| rate.within(period));
        if from == to {
            format!("{mean} {}", period.words())
        } else {
            format!("{mean} {} ({from} to {to})", period.words())
        }
    }

    /// How sure it is that this goes on.
    pub(crate) fn confidence(&self, what: &str) -> Confidence {
        let readings = Count::new(self.growth.readings as u64);
        Confidence {
            value: self.growth.confidence.get(),
            why: format!("rests on {readings} readings of {what} in {}", self.growth.judged),
        }
    }
}

/// Returns the values of a track from a sample on, each with its sample.
fn points(size: &Track<Bytes>, first: usize) -> Vec<(usize, Bytes)> {
    let values = size.values().iter().enumerate().skip(first);
    values.filter_map(|(index, value)| Some((index, Bytes::from_f64((*value)?)))).collect()
}
