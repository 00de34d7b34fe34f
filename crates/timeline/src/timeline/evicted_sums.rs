//! Sums of evicted entities by name, so that totals over time include them. Only levels are summed: the sum of
//! counters of entities that come and go is meaningless.

use std::collections::BTreeMap;

use super::column::{ReadingColumn, ReadingColumns, Run};
use super::readings::Readings;
use super::{EntitySeries, Timeline};
use crate::signals::{Entity, PROC_RSS, PROC_RSS_ANON, PROC_SWAP, SignalId};

/// At most this many names have a sum of their own; hostile names, each used once, must not fill the memory that
/// eviction freed.
const NAMES_MAX: usize = 256;
/// The name for the sum of all other names.
const OTHERS: &str = "others that ended";
/// The signals that are summed.
const SUMMED: [SignalId; 3] = [PROC_RSS_ANON.id(), PROC_SWAP.id(), PROC_RSS.id()];

/// Entity kind, label and group.
type SumName = (Entity, String, String);

/// Sums by name.
#[derive(Debug, Clone, Default)]
pub(super) struct EvictedSums(BTreeMap<SumName, EntitySeries>);

impl Timeline {
    /// Sums of the [evicted](Self::evicted) entities by label and group; their keys are empty.
    pub fn evicted_sums(&self, entity: Entity) -> impl Iterator<Item = &EntitySeries> {
        let series = self.evicted.sums.0.values();
        series.filter(move |series| series.entity == entity)
    }
}

impl EvictedSums {
    /// Adds entities. Returns by how many runs the sums grew.
    pub(super) fn add(&mut self, ended: Vec<EntitySeries>) -> usize {
        let mut by_name: BTreeMap<SumName, Vec<Readings>> = BTreeMap::new();
        for series in ended {
            let name = self.name_of(series.entity, series.label, series.group, by_name.len());
            by_name.entry(name).or_default().push(series.columns);
        }
        let grown_by = by_name.into_iter().map(|(name, columns)| {
            let sum = self.0.entry(name).or_insert_with_key(empty);
            let before = sum.columns.count_runs();
            sum.columns = total(&columns, &sum.columns).into();
            sum.columns.count_runs().saturating_sub(before)
        });
        grown_by.sum()
    }

    fn name_of(&self, entity: Entity, label: String, group: String, fresh: usize) -> SumName {
        let name = (entity, label, group);
        if self.0.contains_key(&name) || self.0.len() + fresh < NAMES_MAX {
            name
        } else {
            (entity, OTHERS.to_owned(), String::new())
        }
    }

    /// The sums of a part of the timeline; `part` cuts each.
    pub(super) fn part(&self, part: impl Fn(&EntitySeries) -> Option<EntitySeries>) -> Self {
        let within =
            |(name, series): (&SumName, &EntitySeries)| Some((name.clone(), part(series)?));
        Self(self.0.iter().filter_map(within).collect())
    }

    /// All sums, mutable.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut EntitySeries> {
        self.0.values_mut()
    }
}

fn empty((entity, label, group): &SumName) -> EntitySeries {
    EntitySeries {
        entity: *entity,
        key: String::new(),
        label: label.clone(),
        group: group.clone(),
        columns: Readings::default(),
    }
}

/// The sum of all columns and the previous sum.
fn total(columns: &[Readings], so_far: &Readings) -> ReadingColumns {
    let mut changes: [Changes; SUMMED.len()] = Default::default();
    // Entity by entity: each is somewhere else in memory.
    for readings in std::iter::once(so_far).chain(columns) {
        for (signal, changes) in SUMMED.into_iter().zip(&mut changes) {
            let runs = readings.get(signal).map_or(&[][..], ReadingColumn::runs);
            runs.iter().for_each(|run| changes.add(run));
        }
    }
    let mut total = ReadingColumns::default();
    let sums = changes.map(Changes::into_runs);
    total.fill(SUMMED.into_iter().zip(sums));
    total
}

/// By how much a sum changes, by sample: millions of entities end in a few samples.
#[derive(Default)]
struct Changes(BTreeMap<usize, i128>);

impl Changes {
    /// Adds a run, which may overlap with others.
    fn add(&mut self, run: &Run) {
        let value = i128::from(run.value);
        for (at, by) in [(run.first(), value), (run.last() + 1, -value)] {
            *self.0.entry(at).or_default() += by;
        }
    }

    /// The sum, as runs.
    fn into_runs(self) -> Vec<Run> {
        let (mut sums, mut since, mut now) = (Vec::new(), 0, 0);
        for (at, by) in self.0.into_iter().filter(|(_, by)| *by != 0) {
            if now > 0 {
                let value = u64::try_from(now).unwrap_or(u64::MAX);
                sums.push(Run::new(since, at - 1, value));
            }
            (since, now) = (at, now + by);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: usize, last: usize, value: u64) -> Run {
        Run::new(first, last, value)
    }

    fn ended(label: &str, runs: &[Run]) -> EntitySeries {
        let mut one = empty(&(Entity::Process, label.to_owned(), String::new()));
        one.columns.own().fill([(PROC_RSS_ANON.id(), runs)]);
        one
    }

    #[test]
    fn overlapping_runs_are_added_up() {
        for (runs, sums) in [
            (vec![run(0, 3, 5)], vec![run(0, 3, 5)]),
            // One run follows the other without a change of the sum.
            (vec![run(0, 3, 5), run(4, 6, 5)], vec![run(0, 6, 5)]),
            (vec![run(0, 3, 5), run(2, 6, 2)], vec![run(0, 1, 5), run(2, 3, 7), run(4, 6, 2)]),
            (vec![run(5, 6, 1), run(0, 0, 9)], vec![run(0, 0, 9), run(5, 6, 1)]),
            (vec![run(0, 9, u64::MAX); 2], vec![run(0, 9, u64::MAX)]),
        ] {
            let mut changes = Changes::default();
            runs.iter().for_each(|run| changes.add(run));
            assert_eq!(changes.into_runs(), sums);
        }
    }

    #[test]
    fn what_is_added_later_counts_with_what_was_added_before() {
        let mut merged = EvictedSums::default();
        assert_eq!(merged.add(vec![ended("cc1", &[run(0, 3, 5)])]), 1);
        let grown = merged.add(vec![ended("cc1", &[run(2, 6, 2)]), ended("ld", &[run(1, 1, 1)])]);
        assert_eq!(grown, 3);
        let runs = |label: &str| {
            let series = merged.0.values().find(|series| series.label == label)?;
            series.columns.get(PROC_RSS_ANON.id()).map(ReadingColumn::runs)
        };
        let sums = [run(0, 1, 5), run(2, 3, 7), run(4, 6, 2)];
        assert_eq!(runs("cc1"), Some(&sums[..]));
        assert_eq!(runs("ld"), Some(&[run(1, 1, 1)][..]));
    }

    #[test]
    fn names_without_end_take_bounded_room_and_none_is_lost() {
        let mut merged = EvictedSums::default();
        for hundred in 0..50 {
            let names = (0..100).map(|n| ended(&format!("{hundred}-{n}"), &[run(0, 0, 1)]));
            merged.add(names.collect());
        }
        assert!(merged.0.len() <= NAMES_MAX + 1, "{}", merged.0.len());
        let columns = merged.0.values().filter_map(|series| series.columns.get(PROC_RSS_ANON.id()));
        assert_eq!(columns.flat_map(ReadingColumn::runs).map(|run| run.value).sum::<u64>(), 5_000);
    }
}
