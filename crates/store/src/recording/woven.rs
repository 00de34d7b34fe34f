//! Merges a segment's readings when some minutes are read sample by sample and the others from roll-ups.

use std::collections::BTreeMap;

use timeline::{Entity, Run, SignalId, Timeline};

use crate::segment::picks::SamplePicks;
use crate::segment::runs::RunSink;

/// Readings of one kind of entity from one table, buffered until the other table is read.
#[derive(Default)]
pub(super) struct SeparateRuns {
    rows: BTreeMap<String, WovenRow>,
}

/// Readings of one entity, or of the host.
#[derive(Default)]
struct WovenRow {
    label: String,
    group: String,
    signals: BTreeMap<SignalId, Vec<Run>>,
}

impl WovenRow {
    fn fill(&mut self, signal: SignalId, runs: &[Run]) {
        if !runs.is_empty() {
            let column = self.signals.entry(signal).or_default();
            column.extend_from_slice(runs);
        }
    }
}

impl RunSink for SeparateRuns {
    fn host(&mut self, signal: SignalId, runs: &[Run]) {
        let row = self.rows.entry(String::new()).or_default();
        row.fill(signal, runs);
    }

    fn entity<'a>(
        &mut self,
        _: Entity,
        [key, label, group]: [&str; 3],
        columns: impl Iterator<Item = (SignalId, &'a [Run])>,
    ) {
        if !self.rows.contains_key(key) {
            let row = WovenRow {
                label: label.to_owned(),
                group: group.to_owned(),
                signals: BTreeMap::new(),
            };
            self.rows.insert(key.to_owned(), row);
        }
        if let Some(row) = self.rows.get_mut(key) {
            columns.for_each(|(signal, runs)| row.fill(signal, runs));
        }
    }
}

/// What was read of a kind of entity from one of the two tables.
pub(super) struct ReadMode<'a> {
    pub(super) readings: SeparateRuns,
    /// The samples at which it was read.
    pub(super) picks: SamplePicks,
    /// The ranges of samples that are read from the other table, in order.
    pub(super) others: &'a [(usize, usize)],
}

impl ReadMode<'_> {
    fn cut(&self, runs: Vec<Run>) -> Vec<Run> {
        cut(runs, self.others, self.picks.places())
    }
}

/// Appends readings of a kind of entity to a timeline.
pub(super) fn append(
    entity: Entity,
    mut rolled: ReadMode<'_>,
    mut opened: ReadMode<'_>,
    into: &mut Timeline,
) {
    let mut rows = std::mem::take(&mut opened.readings.rows);
    for (key, row) in std::mem::take(&mut rolled.readings.rows) {
        let mut other = rows.remove(&key).unwrap_or_default();
        let mut woven: Vec<(SignalId, Vec<Run>)> = Vec::with_capacity(row.signals.len());
        for (signal, runs) in row.signals {
            let other_runs = other.signals.remove(&signal).unwrap_or_default();
            woven.push((signal, weave(rolled.cut(runs), opened.cut(other_runs))));
        }
        let alone = other.signals.into_iter();
        woven.extend(alone.map(|(signal, runs)| (signal, opened.cut(runs))));
        put(entity, &key, &row.label, &row.group, woven, into);
    }
    for (key, row) in rows {
        let alone = row.signals.into_iter();
        let cut = alone.map(|(signal, runs)| (signal, opened.cut(runs)));
        put(entity, &key, &row.label, &row.group, cut.collect(), into);
    }
}

fn put(
    entity: Entity,
    key: &str,
    label: &str,
    group: &str,
    signals: Vec<(SignalId, Vec<Run>)>,
    into: &mut Timeline,
) {
    if entity == Entity::Host {
        for (signal, runs) in signals {
            into.append_host_runs(signal, runs);
        }
    } else if signals.iter().any(|(_, runs)| !runs.is_empty()) {
        into.append_runs(entity, key, label, group, signals);
    }
}

/// Cuts runs from one table at samples that are read from the other, as equal readings were joined across them.
/// `places`: the samples at which this table was read.
fn cut(runs: Vec<Run>, others: &[(usize, usize)], places: &[usize]) -> Vec<Run> {
    let is_crossed = |run: &Run| {
        let next = others.partition_point(|(_, last)| *last < run.first());
        others.get(next).is_some_and(|(first, _)| *first <= run.last())
    };
    // Most runs cover a single sample.
    let Some(crossed) = runs.iter().position(is_crossed) else {
        return runs;
    };
    let mut pieces = Vec::with_capacity(runs.len() + others.len());
    pieces.extend_from_slice(&runs[..crossed]);
    for run in &runs[crossed..] {
        if !is_crossed(run) {
            pieces.push(*run);
            continue;
        }
        let next = others.partition_point(|(_, last)| *last < run.first());
        let within = others[next..].iter();
        let mut start = run.first();
        for (first, last) in within.take_while(|(first, _)| *first <= run.last()) {
            pieces.extend(piece(run, start, *first, places));
            start = last + 1;
        }
        pieces.extend(piece(run, start, run.last() + 1, places));
    }
    pieces
}

/// Returns the part of a run from `start` to before `end`, from the first reading there to the last.
fn piece(run: &Run, start: usize, end: usize, places: &[usize]) -> Option<Run> {
    let from = places.partition_point(|place| *place < start);
    let to = places.partition_point(|place| *place < end);
    let within = places.get(from..to)?;
    Some(Run::new(*within.first()?, *within.last()?, run.value))
}

/// Merges two ordered lists of runs that do not overlap.
fn weave(a: Vec<Run>, b: Vec<Run>) -> Vec<Run> {
    if b.is_empty() {
        return a;
    }
    let mut woven: Vec<Run> = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(one), Some(other)) if one.first() < other.first() => a.next(),
            (_, Some(_)) => b.next(),
            (_, None) => a.next(),
        };
        let Some(next) = next else {
            return woven;
        };
        match woven.last_mut() {
            Some(last) if last.value == next.value && last.last() + 1 == next.first() => {
                *last = last.ending_at(next.last());
            }
            _ => woven.push(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: usize, last: usize, value: u64) -> Run {
        Run::new(first, last, value)
    }

    #[test]
    fn a_run_of_one_way_says_nothing_where_the_other_does() {
        let places = [0, 1, 5, 6, 9];
        let zones = [(2, 4), (7, 8)];
        let cut = |first, last| cut(vec![run(first, last, 7)], &zones, &places);
        assert_eq!(cut(0, 9), [run(0, 1, 7), run(5, 6, 7), run(9, 9, 7)]);
        assert_eq!(cut(5, 6), [run(5, 6, 7)]);
        assert_eq!(cut(1, 5), [run(1, 1, 7), run(5, 5, 7)]);
    }

    #[test]
    fn runs_of_both_are_in_order_and_joined() {
        let rolled = vec![run(0, 1, 7), run(5, 6, 8), run(9, 9, 8)];
        let opened = vec![run(2, 2, 7), run(3, 3, 9), run(7, 8, 8)];
        assert_eq!(weave(rolled, opened), [run(0, 2, 7), run(3, 3, 9), run(5, 9, 8)]);
    }
}
