//! Finds overlaps in time without comparing every pair.

use std::cmp::Reverse;

use units::Span;

use crate::finding::Finding;

/// A consequence may begin or end this long before or after its root: the files of a sample are read one after another.
const LAG: Span = Span::from_secs(3);

/// The interval of an incident.
#[derive(Debug, Clone, Copy)]
pub(super) struct OverlapTime {
    from: Span,
    to: Span,
}

impl OverlapTime {
    /// Returns the interval of a finding. A state without a beginning lasts throughout.
    pub(super) fn from_finding(finding: &Finding) -> Self {
        let always = Self { from: Span::ZERO, to: Span::from_nanos(u64::MAX) };
        finding.when.map_or(always, |when| Self { from: when.from, to: when.to })
    }

    /// Returns the end plus [`LAG`]: an incident that begins later does not overlap.
    fn end(self) -> Span {
        self.to.plus(LAG)
    }
}

/// Beginnings and ends of a set of intervals, each in order.
#[derive(Debug)]
pub(super) struct Overlaps {
    beginnings: Vec<Span>,
    ends: Vec<Span>,
}

impl Overlaps {
    pub(super) fn new(times: impl Iterator<Item = OverlapTime>) -> Self {
        let (mut beginnings, mut ends): (Vec<_>, Vec<_>) =
            times.map(|time| (time.from, time.end())).unzip();
        beginnings.sort_unstable();
        ends.sort_unstable();
        Self { beginnings, ends }
    }

    /// Returns how many of them overlap an interval: those that began by its end, minus those that ended before its
    /// beginning.
    pub(super) fn count(&self, time: OverlapTime) -> usize {
        let begun = self.beginnings.partition_point(|at| *at <= time.end());
        begun - self.ends.partition_point(|at| *at < time.from)
    }
}

/// Returns for each effect the least of the causes that overlap it. Effects are processed in order of their ends, so
/// that all causes that begin before an effect's end are known; of these, only causes that end after its beginning
/// count.
pub(super) fn least<T: Copy + Ord>(
    causes: &[(OverlapTime, T)],
    effects: &[OverlapTime],
) -> Vec<Option<T>> {
    let mut ends: Vec<Span> = causes.iter().map(|(time, _)| time.end()).collect();
    ends.sort_unstable_by_key(|end| Reverse(*end));
    let mut upcoming: Vec<&(OverlapTime, T)> = causes.iter().collect();
    upcoming.sort_by_key(|(time, _)| Reverse(time.from));
    let mut asked: Vec<usize> = (0..effects.len()).collect();
    asked.sort_by_key(|effect| effects[*effect].end());
    let mut begun = LeastOfFirst::new(causes.len());
    let mut found = vec![None; effects.len()];
    for effect in asked {
        let time = effects[effect];
        while let Some((cause, rank)) = upcoming.pop_if(|(cause, _)| cause.from <= time.end()) {
            begun.add(ends.partition_point(|end| *end > cause.end()), *rank);
        }
        found[effect] = begun.among(ends.partition_point(|end| *end >= time.from));
    }
    found
}

/// Values by place, of which the least among the first places can be found: a binary indexed tree.
#[derive(Debug)]
struct LeastOfFirst<T> {
    /// Entry `i`, counted from 1: the least of the `i & -i` places up to place `i`.
    tree: Vec<Option<T>>,
}

impl<T: Copy + Ord> LeastOfFirst<T> {
    fn new(places: usize) -> Self {
        Self { tree: vec![None; places + 1] }
    }

    fn add(&mut self, place: usize, one: T) {
        let mut at = place + 1;
        while let Some(known) = self.tree.get_mut(at) {
            *known = Some(known.map_or(one, |known| known.min(one)));
            at += lowest_bit(at);
        }
    }

    fn among(&self, first: usize) -> Option<T> {
        let mut at = first;
        let mut least = None;
        while at > 0 {
            least = least.into_iter().chain(self.tree[at]).min();
            at -= lowest_bit(at);
        }
        least
    }
}

const fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}
