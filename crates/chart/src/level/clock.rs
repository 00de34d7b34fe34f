//! Where the samples of a part lie on the clock of the whole.

use std::collections::HashMap;
use std::ops::Range;

use timeline::{Stamp, Timeline};
use units::Span;

/// The clock of a whole source, found again by samples that a part shares with it: its minutes are samples of it.
#[derive(Debug)]
pub(super) struct SourceClock<'a> {
    whole: &'a Timeline,
    known: HashMap<(u64, Option<i64>), Span>,
}

/// A part's samples on the clock of the whole.
#[derive(Debug)]
pub(super) struct PlacedSamples {
    /// When they were taken; those beyond the ends of the whole, at its ends.
    pub(super) times: Vec<Span>,
    /// Those that belong to the whole.
    pub(super) within: Range<usize>,
}

/// The first minute of a whole is known by its last sample: those before it belong to it.
const BEFORE: i128 = 60_000_000_000;

impl<'a> SourceClock<'a> {
    pub(super) fn of(whole: &'a Timeline) -> Self {
        let times = whole.times().iter().enumerate();
        let known = times.filter_map(|(at, time)| Some((key(whole.stamp(at)?), *time)));
        Self {
            whole,
            known: known.collect(),
        }
    }

    /// Places a part's samples; `None` where their time on the source's clock is unknown.
    pub(super) fn place(&self, part: &Timeline) -> Option<PlacedSamples> {
        let mut starts = vec![0];
        let breaks = part.breaks().iter().filter(|gap| gap.kind.breaks_rates());
        starts.extend(breaks.map(|gap| gap.before));
        starts.push(part.len());
        starts.dedup();
        let mut behind: Option<i128> = None;
        let (begin, end) = self.ends()?;
        let mut placed = PlacedSamples {
            times: Vec::with_capacity(part.len()),
            within: part.len()..0,
        };
        for ends in starts.windows(2) {
            let samples = ends[0]..ends[1];
            behind = samples
                .clone()
                .find_map(|at| self.behind(part, at))
                .or(behind);
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
                // Two clocks that were read one after the other must not turn time back.
                placed
                    .times
                    .push(placed.times.last().map_or(time, |last| time.max(*last)));
            }
        }
        Some(placed)
    }

    /// When the whole begins and ends.
    fn ends(&self) -> Option<(i128, i128)> {
        let times = self.whole.times();
        let nanos = |time: &Span| i128::from(time.as_nanos());
        Some((nanos(times.first()?), nanos(times.last()?)))
    }

    /// By how much a sample's time in the whole is later than in the part; `None` where the whole does not have it.
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
    (
        stamp.boot.as_nanos(),
        stamp.wall.map(|wall| wall.unix_nanos()),
    )
}
