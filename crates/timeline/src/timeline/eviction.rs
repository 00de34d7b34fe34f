//! Eviction of ended entities, which come and go by the million during a build. The largest ones stay.

use units::Bytes;

use super::evicted_sums::EvictedSums;
use super::{EntitySeries, Timeline};
use crate::memory_budget::MemoryBudget;
use crate::signals::{
    CGROUP_CURRENT, Entity, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM, PROC_SWAP,
    SignalId,
};

/// The number of entities of a kind that eviction leaves; it begins at twice as many of all kinds. Each takes about 2
/// KiB.
const ENTITIES_MAX: usize = 20_000;

/// The evicted entities of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evicted {
    /// The number of entities.
    pub count: usize,
    /// An upper bound of each entity's memory; `None` where unknown.
    pub at_most: Option<Bytes>,
}

/// The evicted entities, and when eviction is next.
#[derive(Debug, Clone, Default)]
pub(super) struct EvictedEntities {
    /// In the order of [`Entity::ALL`].
    counts: [Evicted; Entity::ALL.len()],
    /// Sums of their readings.
    pub(super) sums: EvictedSums,
    /// Eviction begins when there are more entities than this.
    evict_above: usize,
    /// For each kind of entity, the last samples in which the whole table and in which any of it was read, up to which
    /// all readings are present.
    complete: [Option<(usize, usize)>; Entity::ALL.len()],
}

impl EvictedEntities {
    /// Those of a part of the timeline; `part` cuts their sums.
    pub(super) fn part(&self, part: impl Fn(&EntitySeries) -> Option<EntitySeries>) -> Self {
        Self { counts: self.counts, sums: self.sums.part(part), ..Self::default() }
    }
}

/// The order of eviction, the first to be evicted first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Its peak memory.
    peak: Option<Bytes>,
    /// Its peak RSS in pages, from `/proc/PID/stat`.
    pages: Option<u64>,
    /// The number of samples in which it was seen.
    seen: usize,
    /// Its index among those of its kind.
    index: usize,
}

impl Timeline {
    /// The evicted entities: the smallest of those that ended; among equal ones, those seen least. Their memory is in
    /// [`evicted_sums`](Self::evicted_sums).
    pub fn evicted(&self, entity: Entity) -> Evicted {
        self.evicted.counts[entity as usize]
    }

    /// Evicts ended entities where there are too many. Call it when all readings of the samples so far are present,
    /// such as between two parts of a recording.
    pub fn evict_ended(&mut self) {
        self.evict_where(|_, _| true);
        for entity in Entity::ALL {
            let reads = self.table_reads(entity);
            let whole = reads.whole.last().unwrap_or(0);
            self.evicted.complete[entity as usize] = reads.all.last().map(|last| (whole, last));
        }
    }

    /// Evicts while readings are being appended, entity by entity: an entity of the last complete part may continue.
    pub(super) fn evict_ended_while_loading(&mut self) {
        let complete = self.evicted.complete;
        self.evict_where(|entity, last| {
            let reads = complete[entity as usize];
            reads.is_none_or(|(whole, end)| last < whole || end < last)
        });
    }

    /// Evicts where there are too many. `has_ended` is whether an entity of a kind, last seen in this sample, cannot
    /// continue.
    fn evict_where(&mut self, has_ended: impl Fn(Entity, usize) -> bool) {
        if self.entities.len() <= self.evicted.evict_above.max(2 * ENTITIES_MAX) {
            return;
        }
        for entity in Entity::ALL {
            self.drop_ended(entity, &has_ended);
        }
        // Where most entities are alive, checking all of them at every sample would take too long.
        self.evicted.evict_above = 2 * self.entities.len();
    }

    fn drop_ended(&mut self, entity: Entity, has_ended: &impl Fn(Entity, usize) -> bool) {
        let too_many = self.entities(entity).count().saturating_sub(ENTITIES_MAX);
        let now = self.table_reads(entity).whole.last();
        let rank_ended = |(index, series): (usize, &EntitySeries)| {
            let last = series.columns.last_sample()?;
            let has_ended = now.is_some_and(|now| last < now) && has_ended(entity, last);
            has_ended.then(|| rank(series, index))
        };
        let mut ended: Vec<Rank> =
            self.entities(entity).enumerate().filter_map(rank_ended).collect();
        let Some(at) = too_many.min(ended.len()).checked_sub(1) else {
            return;
        };
        ended.select_nth_unstable(at);
        ended.truncate(at + 1);
        ended.sort_unstable_by_key(|rank| rank.index);
        self.evict(entity, &ended);
    }

    /// Evicts the entities in `ended`, which are in the order of their indexes.
    fn evict(&mut self, entity: Entity, ended: &[Rank]) {
        let mut indexes = ended.iter().map(|rank| rank.index).peekable();
        let (mut index, mut gone) = (0, Vec::with_capacity(ended.len()));
        self.entities.retain(|(kind, _), series| {
            if *kind != entity {
                return true;
            }
            let is_evicted = indexes.next_if_eq(&index).is_some();
            index += 1;
            if is_evicted {
                let columns = std::mem::take(&mut series.columns);
                gone.push(series.with(columns));
            }
            !is_evicted
        });
        let given_back: usize = gone.iter().map(size).sum();
        let evicted = &mut self.evicted.counts[entity as usize];
        evicted.count += gone.len();
        evicted.at_most = evicted.at_most.max(gone.iter().filter_map(peak_memory).max());
        self.budget.give_back(given_back);
        let grown = self.evicted.sums.add(gone);
        self.budget.take(MemoryBudget::of_readings(0, grown));
    }
}

/// The memory that an entity took.
pub(super) fn size(series: &EntitySeries) -> usize {
    MemoryBudget::of_entity(&series.key, &series.label, &series.group) + series.columns.size()
}

fn rank(series: &EntitySeries, index: usize) -> Rank {
    Rank {
        peak: peak_memory(series),
        pages: sum_of_peaks(series, &[PROC_RSS.id()]),
        seen: series.columns.seen(),
        index,
    }
}

/// The peak memory of an entity; `None` where unknown.
fn peak_memory(series: &EntitySeries) -> Option<Bytes> {
    let bytes = match series.entity {
        Entity::Process => sum_of_peaks(series, &OF_PROCESS),
        Entity::Cgroup => sum_of_peaks(series, &[CGROUP_CURRENT.id()]),
        _ => None,
    };
    bytes.map(Bytes::new)
}

/// The memory of a process, from `/proc/PID/status`.
const OF_PROCESS: [SignalId; 4] =
    [PROC_RSS_ANON.id(), PROC_RSS_FILE.id(), PROC_RSS_SHMEM.id(), PROC_SWAP.id()];

/// The sum of the peaks of the signals.
fn sum_of_peaks(series: &EntitySeries, signals: &[SignalId]) -> Option<u64> {
    let peak = |signal: &SignalId| {
        let column = series.columns.get(*signal)?;
        column.runs().iter().map(|run| run.value).max()
    };
    signals.iter().filter_map(peak).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;
    use units::Span;

    /// Each second `each` new processes of 1 to 100 MiB, and one of 1 GiB every ten seconds; one other process stays.
    fn built(seconds: u64, each: u64) -> Timeline {
        let mut timeline = Timeline::default();
        for second in 0..seconds {
            let mut sample = Sample::at(Span::from_secs(second));
            let mut process = |pid: u64, mib: u64| {
                let row = sample.table_mut(Entity::Process).entry(&format!("{pid}@{pid}"));
                row.row.set(PROC_RSS_ANON, Bytes::from_mib(mib));
            };
            process(1, 1);
            (0..each).for_each(|pid| process(10 + second * each + pid, 1 + pid % 100));
            if second.is_multiple_of(10) {
                process(1_000_000 + second, 1024);
            }
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    #[test]
    fn the_largest_ended_processes_stay_and_all_live_ones() {
        let timeline = built(120, 1_000);
        let count = timeline.entities(Entity::Process).count();
        assert!((ENTITIES_MAX..=2 * ENTITIES_MAX + 1_000).contains(&count), "{count}");
        let evicted = timeline.evicted(Entity::Process);
        assert_eq!(count + evicted.count, 120 * 1_000 + 12 + 1);
        assert!(evicted.at_most < Some(Bytes::from_mib(100)), "{evicted:?}");
        let stays = timeline.entity(Entity::Process, "1@1").unwrap();
        assert_eq!(timeline.at_of(stays, PROC_RSS_ANON, 0), Some(Bytes::from_mib(1)));
        let count = |is_counted: &dyn Fn(&EntitySeries) -> bool| {
            timeline.entities(Entity::Process).filter(|series| is_counted(series)).count()
        };
        let gib = Some(Bytes::from_mib(1024));
        assert_eq!(count(&|series| timeline.last_of(series, PROC_RSS_ANON) == gib), 12);
        let is_alive = |series: &EntitySeries| timeline.at_of(series, PROC_RSS_ANON, 119).is_some();
        assert_eq!(count(&is_alive), 1_001);
    }

    #[test]
    fn sums_include_what_was_evicted() {
        let mut timeline = built(120, 1_000);
        let sum_at = |timeline: &Timeline, index| {
            timeline
                .entities(Entity::Process)
                .chain(timeline.evicted_sums(Entity::Process))
                .filter_map(|series| timeline.at_of(series, PROC_RSS_ANON, index))
                .fold(Bytes::ZERO, |sum, bytes| sum + bytes)
        };
        // The process that stays, and a thousand of 1 to 100 MiB.
        let each = Bytes::from_mib(1 + 10 * 5_050);
        for index in [1, 59, 118, 119] {
            assert_eq!(sum_at(&timeline, index), each, "{index}");
        }
        timeline.keep_last(100);
        assert_eq!(sum_at(&timeline, 11), each);
    }

    #[test]
    fn a_host_with_few_processes_loses_none() {
        let timeline = built(20, 1_000);
        assert_eq!(timeline.entities(Entity::Process).count(), 20_003);
        assert_eq!(timeline.evicted(Entity::Process), Evicted::default());
    }

    #[test]
    fn what_may_go_on_in_the_next_part_stays() {
        let mut timeline = built(30, 1_000);
        timeline.evict_ended();
        timeline
            .push_stamp(crate::Stamp { boot: Span::from_secs(30), ..Default::default() })
            .unwrap();
        timeline
            .push_stamp(crate::Stamp { boot: Span::from_secs(31), ..Default::default() })
            .unwrap();
        timeline.mark_read(Entity::Process, 30);
        timeline.mark_read(Entity::Process, 31);
        for pid in 0..30_000_u64 {
            let run = crate::Run::new(30, 30, 5 << 20);
            timeline.append_runs(
                Entity::Process,
                &format!("n{pid}"),
                "",
                "",
                [(PROC_RSS_ANON.id(), [run])],
            );
        }
        assert!(timeline.evicted(Entity::Process).count > 0);
        let before = timeline
            .entities(Entity::Process)
            .filter(|series| timeline.at_of(series, PROC_RSS_ANON, 29).is_some())
            .count();
        assert_eq!(before, 1_001);
    }
}
