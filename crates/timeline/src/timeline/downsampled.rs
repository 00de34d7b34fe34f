//! Samples that stand for a minute: a long recording is read by the last sample of each minute, except in ranges where
//! every sample is needed.
//!
//! Such a timeline has two resolutions. A step of a minute is normal in one part of it and a long gap in the other,
//! and an answer can state its resolution.

use units::Span;

use super::Timeline;
use super::sample_clock::SampleClock;

/// Consecutive samples that each stand for a longer time; the other samples of that time were not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downsampled {
    /// Index of the first sample.
    pub first: usize,
    /// Index of the last sample.
    pub last: usize,
    /// The time that each sample stands for.
    pub to: Span,
}

impl Timeline {
    /// Sets the resolution of all samples that are appended from now on: each is the last of this length of time, or,
    /// with `None`, no sample was left out.
    pub fn set_resolution(&mut self, to: Option<Span>) {
        self.clock.resolution = to;
    }

    /// The length of time for which a sample stands alone: shorter events may be missing. `None` where all samples
    /// that were taken are present.
    pub fn resolution_at(&self, index: usize) -> Option<Span> {
        self.clock.resolution_at(index)
    }

    /// The downsampled ranges, in order.
    pub fn downsampled(&self) -> &[Downsampled] {
        &self.clock.downsampled
    }
}

impl SampleClock {
    pub(super) fn resolution_at(&self, index: usize) -> Option<Span> {
        let end = self.downsampled.partition_point(|range| range.first <= index);
        let range = self.downsampled[..end].last()?;
        (index <= range.last).then_some(range.to)
    }

    /// Records the resolution of the last sample.
    pub(super) fn note_resolution(&mut self) {
        let Some(to) = self.resolution else {
            return;
        };
        let index = self.stamps.len() - 1;
        match self.downsampled.last_mut() {
            Some(range) if range.last + 1 == index && range.to == to => range.last = index,
            _ => self.downsampled.push(Downsampled { first: index, last: index, to }),
        }
    }

    /// The downsampled ranges within samples `first` to before `end`, counted from `first`.
    pub(super) fn downsampled_within(&self, first: usize, end: usize) -> Vec<Downsampled> {
        let within = self.downsampled.iter().filter_map(|range| {
            let (from, to) = (range.first.max(first), (range.last + 1).min(end));
            (from < to).then(|| Downsampled { first: from - first, last: to - 1 - first, ..*range })
        });
        within.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Downsampled;
    use crate::signals::PSWPIN;
    use crate::{BreakKind, Entity, Sample, Timeline};
    use units::{Pages, Span};

    const MINUTE: Span = Span::from_mins(1);

    /// Samples at these seconds; `true` where each is the last of its minute.
    fn mixed(samples: impl IntoIterator<Item = (u64, bool)>) -> Timeline {
        let mut timeline = Timeline::default();
        for (second, is_thinned) in samples {
            let mut sample = Sample::at(Span::from_secs(second));
            sample.host.set(PSWPIN, Pages::new(second));
            sample.table_mut(Entity::Cgroup).entry("/web");
            timeline.set_resolution(is_thinned.then_some(MINUTE));
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    /// Ten minutes by the minute, three minutes second by second, ten more minutes.
    fn looked_at_closely() -> Timeline {
        let minutes = |range: std::ops::Range<u64>| range.map(|minute| (minute * 60 + 59, true));
        let seconds = (600..780).map(|second| (second, false));
        mixed(minutes(0..10).chain(seconds).chain(minutes(13..23)))
    }

    #[test]
    fn minutes_beside_seconds_are_no_gaps_however_many_seconds_there_are() {
        let timeline = looked_at_closely();
        assert_eq!(timeline.len(), 200);
        assert_eq!(timeline.breaks(), []);
        assert_eq!(timeline.duration(), Span::from_secs(22 * 60));
        let rate = timeline.rate(PSWPIN).unwrap();
        assert!(rate.values()[1..].iter().all(|rate| *rate == Some(1.0)));
    }

    #[test]
    fn a_gap_is_judged_by_how_samples_are_read_beside_it() {
        let seconds = |range: std::ops::Range<u64>| range.map(|second| (second, false));
        let late = mixed(seconds(0..60).chain([(119, true), (600, true), (661, true)]));
        assert_eq!(late.breaks(), [], "minutes are judged by minutes");
        let gap = mixed(seconds(0..60).chain([(119, true), (720, true)]));
        assert_eq!(gap.breaks()[0].kind, BreakKind::Gap(Span::from_secs(601)));
        let gap = mixed(
            [(59, true), (119, true)].into_iter().chain(seconds(120..130)).chain([(170, false)]),
        );
        assert_eq!(gap.breaks()[0].kind, BreakKind::Gap(Span::from_secs(41)));
        assert_eq!(gap.breaks().len(), 1);
    }

    #[test]
    fn it_tells_how_closely_each_sample_was_read() {
        let timeline = looked_at_closely();
        for (index, resolution) in [
            (0, Some(MINUTE)),
            (9, Some(MINUTE)),
            (10, None),
            (189, None),
            (190, Some(MINUTE)),
            (200, None),
        ] {
            assert_eq!(timeline.resolution_at(index), resolution, "{index}");
        }
        assert_eq!(timeline.interval(), Some(MINUTE), "the coarser one");
        assert_eq!(timeline.part(10, 190).interval(), Some(Span::from_secs(1)));
        let part = timeline.part(5, 195);
        let ranges =
            [(0, 4), (185, 189)].map(|(first, last)| Downsampled { first, last, to: MINUTE });
        assert_eq!(part.downsampled(), ranges);
        let mut trimmed = timeline.clone();
        trimmed.keep_last(20);
        assert_eq!((trimmed.resolution_at(9), trimmed.resolution_at(10)), (None, Some(MINUTE)));
    }

    #[test]
    fn what_is_appended_keeps_how_closely_it_was_read() {
        let mut timeline = mixed([(59, true), (119, true)]);
        timeline.append(&mixed((130..140).map(|second| (second, false)))).unwrap();
        assert_eq!((timeline.resolution_at(1), timeline.resolution_at(2)), (Some(MINUTE), None));
        let mut timeline = mixed([(0, false)]);
        timeline.append(&mixed([(59, true)])).unwrap();
        assert_eq!(timeline.resolution_at(1), Some(MINUTE));
    }
}
