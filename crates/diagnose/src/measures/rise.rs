//! How a level rose: every rise in a recording, with its bounds, and whether it climbed or jumped.
//!
//! A jump is memory that was taken once and not given back, as a database does when it starts; a climb may go on.
//! Neither proves a leak: that needs hours.
//!
//! A rise goes on while the level reaches new highs. It ends where the level falls back by more than half of the rise,
//! or stands still for longer than the rise took so far. Both depend only on the time around the rise, so the same rise
//! is found however much was recorded before and after it. As the permitted pause grows with the rise, one estimator
//! finds rises of thirty seconds and of thirty days.

use timeline::{Stretch, Track};
use units::{Bytes, Quantity, Ratio, Span};

use crate::evidence::{Evidence, Missing};
use crate::trigger;
use crate::trigger::{
    FoundBy, LEVEL, Numbers, Occurrence, Predicate, Reading, Subject, Subjects, Trigger, While, ram,
};

/// After this time start-up and warm-up are over: a longer rise may be a leak.
pub(crate) const LONG: Span = Span::from_hours(1);

/// One rise of a level.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rise {
    /// From where the level left its low to where it had nearly reached its high.
    pub(crate) stretch: Stretch,
    /// The level before the rise.
    pub(crate) from: Bytes,
    /// The level after the rise.
    pub(crate) to: Bytes,
    /// Whether it rose gradually, in several steps. A rise within one or two of many samples is a jump. Two samples
    /// alone cannot show the difference, and count as a climb.
    pub(crate) climbs: bool,
    /// Whether at least half of it lasted for as long as a level must last.
    stays: bool,
}

impl Rise {
    /// Changes of less than this part of a rise are wobble: they neither extend the rise at its ends nor keep it going.
    const EDGE: f64 = 0.05;
    /// A fall by more than this part of a rise ends it.
    const GIVEN_BACK: f64 = 0.5;
    /// A rise goes on after a pause of up to this length: an engineering choice, a pause of the program that takes
    /// memory. Longer rises may pause for as long as they took so far.
    const PAUSE: Span = Span::from_mins(1);
    /// The same in samples, if samples are rarer.
    const PAUSE_SAMPLES: usize = 3;
    /// A shorter rise is a jump: an engineering choice; programs that take memory once have it within seconds.
    pub(crate) const CLIMB: Span = Span::from_secs(10);
    /// A climb has at least this many samples.
    const CLIMB_SAMPLES: usize = 4;
    /// No step of a climb is more than this part of it; otherwise that step is the rise.
    const CLIMB_STEP: f64 = 0.5;
    /// The time before and after a rise that counts for the levels before and after it.
    const AROUND: Span = Span::from_secs(10);
    /// A story finds rises from this part of the size on: its window is short, so the level may have left its low
    /// already, and both ends may miss an edge.
    const SEEN_CLOSE: Ratio = Ratio::from_percent(90.0);
    /// The smallest rise that counts on a host of unknown size.
    pub(crate) const UNKNOWN_RAM: Bytes = Bytes::from_mib(256);
    /// A rise that stands still for longer than this part of it has ended.
    pub(crate) const STANDS: f64 = 0.2;
    /// A rise below this is noise on any host.
    pub(crate) const NOISE: Bytes = Bytes::from_mib(16);

    /// Returns all rises of `track`, in order of time.
    fn all(track: &Track<Bytes>) -> Vec<Self> {
        let values = track.values().iter().enumerate();
        let levels: Vec<LevelPoint> = values
            .filter_map(|(index, value)| {
                Some(LevelPoint { index, at: track.times()[index], value: (*value)? })
            })
            .collect();
        let mut found = Vec::new();
        let mut start = 0;
        while let Some((low, high)) = next(&levels, start) {
            found.extend(Self::between(track, &levels, low, high));
            start = high;
        }
        found
    }

    /// Returns the rise between two levels, without the wobble at its ends.
    fn between(
        track: &Track<Bytes>,
        levels: &[LevelPoint],
        low: usize,
        high: usize,
    ) -> Option<Self> {
        let edge = (levels[high].value - levels[low].value) * Self::EDGE;
        let leaves = leaves(levels, low, low, high);
        let arrives = (leaves + 1..=high)
            .find(|i| levels[*i].value >= levels[high].value - edge)
            .unwrap_or(high);
        let begin = levels[leaves].at.saturating_sub(Self::AROUND);
        let close = |i: &usize| *i + 1 >= leaves || levels[*i].at >= begin;
        let before = (low..=leaves).filter(close).map(|i| levels[i].value);
        let end = levels[arrives].at.plus(Self::AROUND);
        let close = |i: &usize| *i <= arrives + 1 || levels[*i].at <= end;
        let after = (arrives..=high).filter(close).map(|i| levels[i].value);
        let from = before.fold(f64::INFINITY, f64::min);
        let to = after.fold(0.0, f64::max);
        let steps = levels[leaves..=arrives].windows(2);
        let largest = steps.map(|two| two[1].value - two[0].value);
        let largest = largest.fold(0.0, f64::max);
        let is_gradual = arrives - leaves + 1 >= Self::CLIMB_SAMPLES
            && largest <= (to - from) * Self::CLIMB_STEP;
        let stretch = track.stretch(levels[leaves].index, levels[arrives].index)?;
        let half = from + (to - from) * Self::GIVEN_BACK;
        // Two samples cannot distinguish a jump from a climb.
        let stood = leaves > 0 && levels[leaves - 1].value <= half;
        let stands = levels.get(arrives + 1).is_some_and(|level| level.value >= half);
        let is_plain = stood || stands;
        let kept = levels[arrives..].iter().take_while(|level| level.value >= half);
        let kept = kept.last().map_or(stretch.to, |level| level.at);
        Some(Self {
            stretch,
            from: Bytes::from_f64(from),
            to: Bytes::from_f64(to),
            climbs: stretch.duration() >= Self::CLIMB && (is_gradual || !is_plain),
            stays: kept - stretch.from >= LEVEL,
        })
    }

    /// Returns the rises of `track` that are at least `least` and were not given back at once.
    pub(crate) fn of_size(track: &Track<Bytes>, least: Bytes) -> Vec<Self> {
        let mut rises = Self::all(track);
        rises.retain(|rise| rise.stays && rise.by() >= least);
        rises
    }

    /// Returns the last rise, if it goes on until `end` and exceeds all that was there before: load that rises again
    /// does not.
    pub(crate) fn lasting(track: &Track<Bytes>, end: Span) -> Option<Self> {
        let rise = Self::going_on(track, end)?;
        let before = track.values().get(..rise.stretch.first)?;
        let highest = before.iter().flatten().copied().fold(0.0, f64::max);
        let is_new = rise.to >= Bytes::from_f64(highest) + Self::NOISE;
        is_new.then_some(rise)
    }

    /// Returns the last rise, if it goes on until `end`.
    pub(crate) fn going_on(track: &Track<Bytes>, end: Span) -> Option<Self> {
        let rise = Self::of_size(track, Self::NOISE).pop()?;
        let stands = end.saturating_sub(rise.stretch.to);
        (stands <= rise.stretch.duration().times(Self::STANDS)).then_some(rise)
    }

    /// Returns the rises that an incident is about, in its window.
    pub(crate) fn seen(track: &Track<Bytes>, least: Bytes) -> impl Iterator<Item = Self> {
        Self::of_size(track, least.share(Self::SEEN_CLOSE)).into_iter()
    }

    /// Returns its size.
    pub(crate) fn by(&self) -> Bytes {
        self.to.saturating_sub(self.from)
    }

    /// Returns the smallest rise that counts: this share of RAM, but at least 16 MiB; 256 MiB if RAM is unknown.
    pub(crate) fn least(share: Ratio) -> Reading<Bytes> {
        let of_ram = ram().share(share).max(Self::NOISE);
        of_ram.or(Reading::constant(Self::UNKNOWN_RAM))
    }

    /// Returns the same as a number.
    pub(crate) fn at_least(cx: &Evidence<'_>, share: Ratio) -> Bytes {
        let least = cx.ram().map(|ram| ram.share(share).max(Self::NOISE));
        least.unwrap_or(Self::UNKNOWN_RAM)
    }
}

/// A level at a sample.
#[derive(Debug, Clone, Copy)]
struct LevelPoint {
    index: usize,
    at: Span,
    value: f64,
}

/// Returns the first rise from level `start` on, from its lowest point to its highest; `None` if no further one begins.
fn next(levels: &[LevelPoint], start: usize) -> Option<(usize, usize)> {
    let (mut low, mut high) = (start, start);
    // The last place where it went on by more than wobble, and where it had left its low by then.
    let (mut went_on, mut left) = (start, start);
    for i in start + 1..levels.len() {
        let value = levels[i].value;
        if high == low && value <= levels[low].value {
            (low, high, went_on, left) = (i, i, i, i);
            continue;
        }
        let so_far = levels[high].value - levels[low].value;
        if value > levels[high].value {
            high = i;
            let known = levels[went_on].value - levels[low].value;
            if value - levels[low].value >= known * (1.0 + Rise::EDGE) {
                went_on = i;
                left = leaves(levels, low, left, i);
                continue;
            }
        }
        let fell = levels[high].value - value > so_far * Rise::GIVEN_BACK;
        let took = levels[went_on].at - levels[left].at;
        let stands = levels[i].at - levels[went_on].at;
        let is_still = stands > took.max(Rise::PAUSE) && i - went_on > Rise::PAUSE_SAMPLES;
        if fell || is_still {
            return Some((low, high));
        }
    }
    (high > low).then_some((low, high))
}

/// Returns where a rise left its low for good, at `from` or later.
fn leaves(levels: &[LevelPoint], low: usize, from: usize, high: usize) -> usize {
    let edge = levels[low].value + (levels[high].value - levels[low].value) * Rise::EDGE;
    let mut between = (from..high).rev();
    between.find(|i| levels[*i].value <= edge).unwrap_or(from)
}

/// A trigger of levels that are large or rise; `could` is what a minute in which an incident begins shows.
pub(crate) fn trigger(
    find: fn(&Evidence<'_>) -> Result<Vec<Occurrence>, Missing>,
    could: Predicate,
) -> Trigger {
    Trigger::Found(FoundBy { find, could: Some(could), scope: Subjects::Host, none: None })
}

/// Returns the size of the rise at each of its samples, else 0: shows how near a quiet host came to one.
pub(crate) fn heights(cx: &Evidence<'_>, track: &Track<Bytes>) -> Numbers {
    let mut heights = vec![Some(0.0); cx.timeline.len()];
    for rise in Rise::all(track).into_iter().filter(|rise| rise.stays) {
        heights[rise.stretch.first..=rise.stretch.last].fill(Some(rise.by().as_f64()));
    }
    cx.timeline.track(heights)
}

/// Joins intervals of a level that lasts with those of rises if they overlap. A level that a rise leads to belongs to
/// it however short it is, as a recording may end there.
pub(crate) fn with_levels(
    cx: &Evidence<'_>,
    level: Predicate,
    rises: Vec<Rise>,
) -> Result<Vec<Occurrence>, Missing> {
    let level = While {
        scope: Subjects::Host,
        when: level,
        at_least: Span::ZERO,
        alert_if: None,
        reported: None,
        noticed: None,
    };
    let holds = level.when.holds(Subject { cx, of: None })?;
    let rises = rises.into_iter().map(|rise| (rise.stretch, true));
    let levels = trigger::lasting(&holds, &level, None).into_iter().filter_map(|one| {
        let stretch = cx.timeline.stretch(one.first, one.last)?;
        let is_alone = stretch.duration() >= LEVEL || one.first == one.last;
        Some((stretch, is_alone))
    });
    let mut all: Vec<(Stretch, bool)> = rises.chain(levels).collect();
    all.sort_by_key(|(stretch, _)| (stretch.first, stretch.last));
    let mut joined: Vec<(Stretch, bool)> = Vec::new();
    for (stretch, counts) in all {
        match joined.last_mut().filter(|(before, _)| stretch.first <= before.last) {
            Some((before, known)) => {
                before.last = before.last.max(stretch.last);
                *known |= counts;
            }
            None => joined.push((stretch, counts)),
        }
    }
    let counted = joined.into_iter().filter(|(_, counts)| *counts);
    Ok(counted.map(|(stretch, _)| Occurrence::on_host(stretch.first, stretch.last)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Facts, Sample, Timeline, signals::MEM_SHMEM};

    /// Reads one sample every `seconds`, in MiB. Returns for each rise: from, to, first and last sample, whether it
    /// climbs.
    fn every(seconds: u64, mib: &[u64]) -> Vec<(u64, u64, usize, usize, bool)> {
        let mut timeline = Timeline::default();
        for (i, mib) in mib.iter().enumerate() {
            let mut sample = Sample::at(Span::from_secs(i as u64 * seconds));
            sample.host.set(MEM_SHMEM, Bytes::from_mib(*mib));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let Ok(track) = cx.gauge(MEM_SHMEM) else {
            return Vec::new();
        };
        let rises = Rise::of_size(&track, Rise::NOISE).into_iter();
        rises
            .map(|rise| {
                let Stretch { first, last, .. } = rise.stretch;
                (rise.from.get() >> 20, rise.to.get() >> 20, first, last, rise.climbs)
            })
            .collect()
    }

    fn rises(mib: &[u64]) -> Vec<(u64, u64, usize, usize, bool)> {
        every(1, mib)
    }

    fn climb(from: u64, by: u64, steps: u64) -> Vec<u64> {
        (0..=steps).map(|i| from + by * i / steps).collect()
    }

    #[test]
    fn a_climb_takes_its_time() {
        let values = [vec![10; 5], climb(10, 200, 12), vec![210; 5]].concat();
        assert_eq!(rises(&values), [(10, 210, 5, 17, true)]);
    }

    #[test]
    fn a_jump_is_not_a_climb_nor_is_one_with_a_slow_end() {
        let jump = [vec![10; 10], vec![210; 10]].concat();
        assert_eq!(rises(&jump), [(10, 210, 9, 10, false)]);
        let slow_end = [vec![10; 10], climb(170, 40, 15), vec![210; 10]].concat();
        assert!(!rises(&slow_end)[0].4);
    }

    #[test]
    fn two_looks_alone_cannot_tell_and_a_level_before_or_after_can() {
        let climbs = |mib: &[u64]| every(3600, mib)[0].4;
        assert!(climbs(&[80, 500]));
        assert!(climbs(&[80, 500, 70]));
        assert!(!climbs(&[80, 80, 500]));
        assert!(!climbs(&[80, 500, 500]));
    }

    #[test]
    fn calm_around_changes_neither_beginning_nor_end() {
        let alone = rises(&[vec![10; 12], climb(10, 300, 30), vec![310; 12]].concat());
        // A level that wobbles by a MiB or two.
        let wobble = |level: u64, n: u64| -> Vec<u64> {
            (0..n).map(|i| level + (i * 7 + i * i) % 3).collect()
        };
        let within =
            [wobble(9, 3000), vec![10; 12], climb(10, 300, 30), vec![310; 12], wobble(309, 5000)];
        let within = rises(&within.concat());
        assert_eq!((alone.len(), within.len()), (1, 1));
        let (from, to, first, last, climbs) = alone[0];
        assert_eq!(within, [(from, to, first + 3000, last + 3000, climbs)]);
    }

    #[test]
    fn a_second_rise_later_is_another_and_a_short_pause_is_none() {
        let after = |pause: usize| {
            let values =
                [climb(10, 100, 30), vec![110; pause], climb(110, 100, 30), vec![210; 100]];
            rises(&values.concat()).len()
        };
        assert_eq!((after(20), after(90)), (1, 2));
    }

    #[test]
    fn what_was_given_back_rose_all_the_same_unless_at_once() {
        let tooth = [vec![10; 20], climb(10, 100, 20), vec![12; 20]].concat();
        let teeth = rises(&tooth.repeat(3));
        assert_eq!(teeth.len(), 3);
        assert_eq!(teeth[1], (10, 110, 82, 100, true));
        let spike = [vec![10; 20], vec![200; 3], vec![10; 20]].concat();
        assert!(rises(&spike).is_empty());
    }

    #[test]
    fn a_leak_of_hours_is_one_rise_with_all_its_pauses() {
        // 1 MiB in three minutes, with wobble, over five hours; read once a minute.
        let leak: Vec<u64> = (0..300).map(|i| 50 + i / 3 + i % 2).collect();
        let found = every(60, &leak);
        assert_eq!(found.len(), 1);
        assert!(found[0].4 && found[0].1 - found[0].0 >= 90, "{found:?}");
    }

    #[test]
    fn a_rise_in_the_middle_of_slow_drift_begins_where_it_begins() {
        let drift: Vec<u64> = (0..5000).map(|i| 50 + i / 500).collect();
        let values = [drift, climb(60, 400, 30), vec![460; 300]].concat();
        let found = rises(&values);
        assert_eq!(found.len(), 1);
        assert!((4990..=5005).contains(&found[0].2), "{found:?}");
    }

    #[test]
    fn a_fall_before_or_after_does_not_hide_the_rise() {
        let values = [&[90, 80, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100, 100, 20][..]].concat();
        assert_eq!(rises(&values), [(10, 100, 2, 12, true)]);
    }

    #[test]
    fn what_never_rose_has_no_rise() {
        assert!(rises(&[90, 80, 10]).is_empty());
        assert!(rises(&[7]).is_empty());
        assert!(rises(&[]).is_empty());
    }
}
