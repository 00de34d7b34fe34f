//! How a level rose while it was watched: from where to where, and whether it climbed or jumped.
//!
//! A jump is memory that was taken once and then kept, as a database does when it starts; a climb may go on. A leak is
//! claimed from neither: that needs hours.

use timeline::{Stretch, Track};
use units::{Bytes, Quantity, Ratio};

use crate::evidence::Evidence;

/// The largest rise of a level: from its lowest point to a later high one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rise {
    /// From where the level left its low to where it was all but at its high.
    pub(crate) stretch: Stretch,
    /// The level before.
    pub(crate) from: Bytes,
    /// The level after.
    pub(crate) to: Bytes,
}

impl Rise {
    /// Wobble at both ends does not count as part of the rise.
    const EDGE: f64 = 0.05;
    /// A rise that is smaller is nothing on a host of unknown size.
    const UNKNOWN_RAM: Bytes = Bytes::from_mib(256);
    /// A rise below this is noise on any host.
    pub(crate) const NOISE: Bytes = Bytes::from_mib(16);

    /// The largest rise of `track`; `None` where it never rose.
    pub(crate) fn largest(track: &Track<Bytes>) -> Option<Self> {
        let mut low: Option<(f64, usize)> = None;
        let mut best: Option<(f64, usize, f64, usize)> = None;
        for (i, value) in track.values().iter().enumerate() {
            let Some(value) = *value else { continue };
            if low.is_none_or(|(least, _)| value < least) {
                low = Some((value, i));
            }
            if let Some((least, at)) = low
                && value - least > best.map_or(0.0, |(from, _, to, _)| to - from)
            {
                best = Some((least, at, value, i));
            }
        }
        let (from, first, to, last) = best?;
        let edge = (to - from) * Self::EDGE;
        let values = track.values();
        let leaves = (first..last)
            .rev()
            .find(|i| values[*i].is_some_and(|v| v <= from + edge))
            .unwrap_or(first);
        let arrives = (leaves + 1..=last)
            .find(|i| values[*i].is_some_and(|v| v >= to - edge))
            .unwrap_or(last);
        Some(Self {
            stretch: track.stretch(leaves, arrives)?,
            from: Bytes::from_f64(from),
            to: Bytes::from_f64(to),
        })
    }

    /// By how much.
    pub(crate) fn by(&self) -> Bytes {
        self.to.saturating_sub(self.from)
    }

    /// Whether it is at least this share of RAM, and not noise. Where RAM is not known, 256 MiB count.
    pub(crate) fn is_substantial(&self, ram: Option<Bytes>, share: Ratio) -> bool {
        let least = ram.map_or(Self::UNKNOWN_RAM, |ram| ram.share(share).max(Self::NOISE));
        self.by() >= least
    }

    /// Whether it took its time: a fifth of the look, as for anything sustained. What rose within one or two samples of
    /// many was taken once. Two samples cannot tell, and count as a climb.
    pub(crate) fn is_climb(&self, cx: &Evidence<'_>) -> bool {
        self.stretch.lasts() >= cx.fifth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Facts, Sample, Timeline, signals::MEM_SHMEM};
    use units::Span;

    fn rise(mib: &[u64]) -> Option<(u64, u64, usize, usize, bool)> {
        let mut timeline = Timeline::default();
        for (i, mib) in mib.iter().enumerate() {
            let mut sample = Sample::at(Span::from_secs(i as u64));
            sample.host.set(MEM_SHMEM, Bytes::from_mib(*mib));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let rise = Rise::largest(&timeline.gauge(MEM_SHMEM)?)?;
        Some((
            rise.from.get() >> 20,
            rise.to.get() >> 20,
            rise.stretch.first,
            rise.stretch.last,
            rise.is_climb(&cx),
        ))
    }

    #[test]
    fn a_climb_takes_its_time() {
        let mut values = vec![10; 5];
        values.extend((1..=10).map(|i| 10 + 20 * i));
        values.extend([210; 5]);
        assert_eq!(rise(&values), Some((10, 210, 4, 14, true)));
    }

    #[test]
    fn a_jump_is_not_a_climb() {
        let mut values = vec![10; 10];
        values.extend([210; 10]);
        assert_eq!(rise(&values), Some((10, 210, 9, 10, false)));
    }

    #[test]
    fn a_fall_before_or_after_does_not_hide_the_rise() {
        assert_eq!(
            rise(&[90, 80, 10, 20, 40, 60, 80, 100, 20]),
            Some((10, 100, 2, 7, true))
        );
    }

    #[test]
    fn what_never_rose_has_no_rise() {
        assert_eq!(rise(&[90, 80, 10]), None);
        assert_eq!(rise(&[7]), None);
        assert_eq!(rise(&[]), None);
    }
}
