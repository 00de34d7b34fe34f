//! Places the samples of a part on the clock of the whole.

use std::collections::HashMap;
use std::ops::Range;

use timeline::{Stamp, Timeline};
use units::Span;

/// The clock of a whole source. A part is aligned by samples that it shares with the whole; minutes of the whole are
/// samples of it.
#[derive(Debug)]
pub(super) struct SourceClock<'a> {
    whole: &'a Timeline,
    known: HashMap<(u64, Option<i64>), Span>,
}

/// The samples of a part on the clock of the whole.
#[derive(Debug)]
pub(super) struct PlacedSamples {
    /// When the samples were taken; those beyond the ends of the whole are moved to its ends.
    pub(super) times: Vec<Span>,
    /// The samples that belong to the whole.
    pub(super) within: Range<usize>,
}

/// In nanoseconds. A minute is stamped with its last sample, so samples this long before the first minute belong to it.
const BEFORE: i128 = 60_000_000_000;

impl<'a> SourceClock<'a> {
    pub(super) fn of(whole: &'a Timeline) -> Self {
        let times = whole.times().iter().enumerate();
        let known = times.filter_map(|(at, time)| Some((key(whole.stamp(at)?), *time)));
        Self { whole, known: known.collect() }
    }

    /// Places a part's samples; `None` if their time on the source's clock is unknown.
    pub(super) fn place(&self, part: &Timeline) -> Option<PlacedSamples> {
        let mut starts = vec![0];
        let breaks = part.breaks().iter().filter(|gap| gap.kind.breaks_rates());
        starts.extend(breaks.map(|gap| gap.before));
        starts.push(part.len());
        starts.dedup();
        let mut behind: Option<i128> = None;
        let (begin, end) = self.ends()?;
        let mut placed =
            PlacedSamples { times: Vec::with_capacity(part.len()), within: part.len()..0 };
        for ends in starts.windows(2) {
            let samples = ends[0]..ends[1];
            behind = samples.clone().find_map(|at| self.behind(part, at)).or(behind);
            let behind = match behind {
                Some(behind) => behind,
                None => self.by_wall(part, ends[0])?,
            };
            for at in samples {
                let nanos = i128::from(part.times()[at].as_nanos()) + behind;
                if (begin - BEFORE..=end).contains(&nanos) {
                    placed.within = placed.within.start.min(at)..at + 1;
                }
                let nanos = nanos.clamp(begin, end.max(begin));
                let time = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                // Two clocks read one after the other must not make time run backwards.
                placed.times.push(placed.times.last().map_or(time, |last| time.max(*last)));
            }
        }
        Some(placed)
    }

    /// Returns the beginning and the end of the whole.
    fn ends(&self) -> Option<(i128, i128)> {
        let times = self.whole.times();
        let nanos = |time: &Span| i128::from(time.as_nanos());
        Some((nanos(times.first()?), nanos(times.last()?)))
    }

    /// Returns how much later a sample's time is in the whole than in the part; `None` if the whole does not have the
    /// sample.
    fn behind(&self, part: &Timeline, at: usize) -> Option<i128> {
        let time = self.known.get(&key(part.stamp(at)?))?;
        Some(i128::from(time.as_nanos()) - i128::from(part.times().get(at)?.as_nanos()))
    }

    /// The same by the wall clock, which may have been set in between.
    fn by_wall(&self, part: &Timeline, at: usize) -> Option<i128> {
        let (begin, _) = self.ends()?;
        let start = self.whole.stamp(0)?.wall?.unix_nanos();
        let wall = part.stamp(at)?.wall?.unix_nanos();
        let time = part.times().get(at)?.as_nanos();
        Some(begin + i128::from(wall) - i128::from(start) - i128::from(time))
    }
}

fn key(stamp: Stamp) -> (u64, Option<i64>) {
    (stamp.boot.as_nanos(), stamp.wall.map(|wall| wall.unix_nanos()))
}
