//! What entities held that are not kept one by one, added up by name, so that no sum over time lacks it. Levels only: a
//! counter of many that come and go tells nothing.

use std::collections::BTreeMap;

use super::column::{Column, Columns, Run};
use super::readings::Readings;
use super::{EntitySeries, Timeline};
use crate::signals::{Entity, PROC_RSS, PROC_RSS_ANON, PROC_SWAP, SignalId};

/// Names that are told apart in each kind of entity; hostile ones, each used once, must not take the room that was made.
const MOST_NAMES: usize = 256;
/// Stands for all other names.
const OTHERS: &str = "others that ended";
/// What is added up over time.
const SUMMED: [SignalId; 3] = [PROC_RSS_ANON.id(), PROC_SWAP.id(), PROC_RSS.id()];

/// Kind, label and group.
type Name = (Entity, String, String);

/// Sums by name.
#[derive(Debug, Clone, Default)]
pub(super) struct EvictedSums(BTreeMap<Name, EntitySeries>);

impl Timeline {
    /// What those held that were [left out](Self::evicted), added up by label and group; there is no entity with such a
    /// key.
    pub fn evicted_sums(&self, entity: Entity) -> impl Iterator<Item = &EntitySeries> {
        let series = self.evicted_sums.0.values();
        series.filter(move |series| series.entity == entity)
    }
}

impl EvictedSums {
    /// Adds entities. Gives by how many runs the sums have grown.
    pub(super) fn add(&mut self, ended: Vec<EntitySeries>) -> usize {
        let mut by_name: BTreeMap<Name, Vec<Readings>> = BTreeMap::new();
        for one in ended {
            let name = self.name_of(one.entity, one.label, one.group, by_name.len());
            by_name.entry(name).or_default().push(one.columns);
        }
        let grown = by_name.into_iter().map(|(name, columns)| {
            let sum = self.0.entry(name).or_insert_with_key(empty);
            let before = sum.columns.count_runs();
            sum.columns = total(&columns, &sum.columns).into();
            sum.columns.count_runs().saturating_sub(before)
        });
        grown.sum()
    }

    fn name_of(&self, entity: Entity, label: String, group: String, fresh: usize) -> Name {
        let name = (entity, label, group);
        match self.0.contains_key(&name) || self.0.len() + fresh < MOST_NAMES {
            true => name,
            false => (entity, OTHERS.to_owned(), String::new()),
        }
    }

    /// What lies within a part, of each as `part` gives it.
    pub(super) fn part(&self, part: impl Fn(&EntitySeries) -> Option<EntitySeries>) -> Self {
        let all = self.0.iter();
        let within = all.filter_map(|(name, series)| Some((name.clone(), part(series)?)));
        Self(within.collect())
    }

    /// All of them, to be changed.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut EntitySeries> {
        self.0.values_mut()
    }
}

fn empty((entity, label, group): &Name) -> EntitySeries {
    EntitySeries {
        entity: *entity,
        key: String::new(),
        label: label.clone(),
        group: group.clone(),
        columns: Readings::default(),
    }
}

/// What all of them held together.
fn total(columns: &[Readings], so_far: &Readings) -> Columns {
    let mut total = Columns::default();
    for signal in SUMMED {
        let all = std::iter::once(so_far).chain(columns);
        let runs = all.filter_map(|one| one.get(signal)).flat_map(Column::runs);
        total.fill([(signal, sum(runs))]);
    }
    total
}

/// The sum of runs that may lie over each other.
fn sum<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<Run> {
    let change = |run: &Run| {
        let value = i128::from(run.value);
        [(run.first(), value), (run.last() + 1, -value)]
    };
    let mut changes: Vec<(usize, i128)> = runs.flat_map(change).collect();
    // What was added up before is in order already, which a stable sort makes use of.
    changes.sort_by_key(|(at, _)| *at);
    let (mut sums, mut since, mut now) = (Vec::new(), 0, 0);
    for same in changes.chunk_by(|a, b| a.0 == b.0) {
        let (at, by) = (same[0].0, same.iter().map(|(_, by)| by).sum::<i128>());
        if by == 0 {
            continue;
        }
        if now > 0 {
            sums.push(Run::new(
                since,
                at - 1,
                u64::try_from(now).unwrap_or(u64::MAX),
            ));
        }
        (since, now) = (at, now + by);
    }
    sums
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
    fn runs_that_lie_over_each_other_are_added_up() {
        for (runs, sums) in [
            (vec![run(0, 3, 5)], vec![run(0, 3, 5)]),
            // One follows the other without a change of the sum.
            (vec![run(0, 3, 5), run(4, 6, 5)], vec![run(0, 6, 5)]),
            (
                vec![run(0, 3, 5), run(2, 6, 2)],
                vec![run(0, 1, 5), run(2, 3, 7), run(4, 6, 2)],
            ),
            (
                vec![run(5, 6, 1), run(0, 0, 9)],
                vec![run(0, 0, 9), run(5, 6, 1)],
            ),
            (vec![run(0, 9, u64::MAX); 2], vec![run(0, 9, u64::MAX)]),
        ] {
            assert_eq!(sum(runs.iter()), sums);
        }
    }

    #[test]
    fn what_is_added_later_counts_with_what_was_added_before() {
        let mut merged = EvictedSums::default();
        assert_eq!(merged.add(vec![ended("cc1", &[run(0, 3, 5)])]), 1);
        let grown = merged.add(vec![
            ended("cc1", &[run(2, 6, 2)]),
            ended("ld", &[run(1, 1, 1)]),
        ]);
        assert_eq!(grown, 3);
        let runs = |label: &str| {
            let series = merged.0.values().find(|series| series.label == label)?;
            series.columns.get(PROC_RSS_ANON.id()).map(Column::runs)
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
        assert!(merged.0.len() <= MOST_NAMES + 1, "{}", merged.0.len());
        let columns = merged
            .0
            .values()
            .filter_map(|series| series.columns.get(PROC_RSS_ANON.id()));
        assert_eq!(
            columns
                .flat_map(Column::runs)
                .map(|run| run.value)
                .sum::<u64>(),
            5_000
        );
    }
}
