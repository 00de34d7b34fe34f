//! Room for entities that come and go by the million, as processes of a build do: of those that ended, the largest stay.

use units::Bytes;

use super::{EntitySeries, Timeline};
use crate::signals::{
    CGROUP_CURRENT, Entity, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM, PROC_SWAP,
    SignalId,
};

/// Entities of a kind that are kept where some of them ended; twice as many are not exceeded. Each takes some 2 KiB.
const MOST: usize = 20_000;

/// Entities of a kind that are left out to bound memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evicted {
    /// How many.
    pub count: usize,
    /// What none of them held more than; `None` where nothing tells.
    pub at_most: Option<Bytes>,
}

/// What orders entities.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// The most memory that it held.
    held: Option<Bytes>,
    /// The most pages that it had: all that `/proc/PID/stat` tells.
    pages: Option<u64>,
    /// In how many samples it was seen.
    seen: usize,
    /// Among those of its kind.
    place: usize,
}

impl Timeline {
    /// Entities that are left out because they ended and were the smallest, among those as small the ones that were seen
    /// least. What they held is in [`merged`](Self::evicted_sums).
    pub fn evicted(&self, entity: Entity) -> Evicted {
        self.evicted[entity as usize]
    }

    /// Leaves out entities that ended where they are too many. Call it where all readings of the samples so far are there:
    /// between two parts of a recording.
    pub fn evict_ended(&mut self) {
        self.evict_where(|_, _| true);
        for entity in Entity::ALL {
            self.complete[entity as usize] = self.reads(entity).last();
        }
    }

    /// The same while readings are being appended, entity by entity: one that was there at the end of the last complete
    /// part may go on.
    pub(super) fn evict_ended_while_loading(&mut self) {
        let complete = self.complete;
        self.evict_where(|entity, last| complete[entity as usize] != Some(last));
    }

    /// `is_over`: whether an entity of a kind that was last seen in this sample cannot go on.
    fn evict_where(&mut self, is_over: impl Fn(Entity, usize) -> bool) {
        if self.entities.len() <= self.evict_above.max(2 * MOST) {
            return;
        }
        for entity in Entity::ALL {
            self.drop_ended(entity, &is_over);
        }
        // Where most are still there, looking through them at every sample would take all the time.
        self.evict_above = 2 * self.entities.len();
    }

    fn drop_ended(&mut self, entity: Entity, is_over: &impl Fn(Entity, usize) -> bool) {
        let too_many = self.entities(entity).count().saturating_sub(MOST);
        let now = self.reads(entity).last();
        let of = |(place, series): (usize, &EntitySeries)| {
            let last = series.columns.last_sample()?;
            let is_over = Some(last) != now && is_over(entity, last);
            is_over.then(|| rank(series, place))
        };
        let mut ended: Vec<Rank> = self.entities(entity).enumerate().filter_map(of).collect();
        let Some(at) = too_many.min(ended.len()).checked_sub(1) else {
            return;
        };
        ended.select_nth_unstable(at);
        ended.truncate(at + 1);
        ended.sort_unstable_by_key(|rank| rank.place);
        self.leave_out(entity, &ended);
    }

    /// `ended` by place.
    fn leave_out(&mut self, entity: Entity, ended: &[Rank]) {
        let mut places = ended.iter().map(|rank| rank.place).peekable();
        let (mut place, mut gone) = (0, Vec::with_capacity(ended.len()));
        self.entities.retain(|(kind, _), series| {
            if *kind != entity {
                return true;
            }
            let is_left_out = places.next_if_eq(&place).is_some();
            place += 1;
            if is_left_out {
                let columns = std::mem::take(&mut series.columns);
                gone.push(series.with(columns));
            }
            !is_left_out
        });
        let runs: usize = gone.iter().map(|one| one.columns.count_runs()).sum();
        let evicted = &mut self.evicted[entity as usize];
        evicted.count += gone.len();
        evicted.at_most = evicted.at_most.max(gone.iter().filter_map(held).max());
        self.entity_runs = self.entity_runs.saturating_sub(runs) + self.evicted_sums.add(gone);
    }
}

fn rank(series: &EntitySeries, place: usize) -> Rank {
    Rank {
        held: held(series),
        pages: most(series, &[PROC_RSS.id()]),
        seen: series.columns.seen(),
        place,
    }
}

/// What an entity never held more than; `None` where nothing tells.
fn held(series: &EntitySeries) -> Option<Bytes> {
    let held = match series.entity {
        Entity::Process => most(series, &OF_PROCESS),
        Entity::Cgroup => most(series, &[CGROUP_CURRENT.id()]),
        _ => None,
    };
    held.map(Bytes::new)
}

/// What a process holds, as `/proc/PID/status` tells.
const OF_PROCESS: [SignalId; 4] = [
    PROC_RSS_ANON.id(),
    PROC_RSS_FILE.id(),
    PROC_RSS_SHMEM.id(),
    PROC_SWAP.id(),
];

/// The sum of the most of each.
fn most(series: &EntitySeries, signals: &[SignalId]) -> Option<u64> {
    let most = |signal: &SignalId| {
        let column = series.columns.get(*signal)?;
        column.runs().iter().map(|run| run.value).max()
    };
    signals.iter().filter_map(most).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;
    use units::Span;

    /// Each second so many new processes of 1 to 100 MiB, and one of 1 GiB every ten seconds, beside one that stays.
    fn built(seconds: u64, each: u64) -> Timeline {
        let mut timeline = Timeline::default();
        for second in 0..seconds {
            let mut sample = Sample::at(Span::from_secs(second));
            let mut process = |pid: u64, mib: u64| {
                let row = sample
                    .table_mut(Entity::Process)
                    .entry(&format!("{pid}@{pid}"));
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
    fn of_processes_that_ended_the_largest_stay_and_all_that_live() {
        let timeline = built(120, 1_000);
        let count = timeline.entities(Entity::Process).count();
        assert!((MOST..=2 * MOST + 1_000).contains(&count), "{count}");
        let evicted = timeline.evicted(Entity::Process);
        assert_eq!(count + evicted.count, 120 * 1_000 + 12 + 1);
        assert!(evicted.at_most < Some(Bytes::from_mib(100)), "{evicted:?}");
        let stays = timeline.entity(Entity::Process, "1@1").unwrap();
        assert_eq!(
            timeline.at_of(stays, PROC_RSS_ANON, 0),
            Some(Bytes::from_mib(1))
        );
        let large = timeline.entities(Entity::Process);
        let large =
            large.filter(|it| timeline.last_of(it, PROC_RSS_ANON) == Some(Bytes::from_mib(1024)));
        assert_eq!(large.count(), 12);
        let last = timeline.entities(Entity::Process);
        let last = last.filter(|it| timeline.at_of(it, PROC_RSS_ANON, 119).is_some());
        assert_eq!(last.count(), 1_001);
    }

    #[test]
    fn what_is_left_out_is_missing_in_no_sum() {
        let mut timeline = built(120, 1_000);
        let sum_at = |timeline: &Timeline, index| {
            let kept = timeline.entities(Entity::Process);
            let held = kept.chain(timeline.evicted_sums(Entity::Process));
            let held = held.filter_map(|it| timeline.at_of(it, PROC_RSS_ANON, index));
            held.fold(Bytes::ZERO, |sum, one| sum + one)
        };
        // One that stays, a thousand of 1 to 100 MiB.
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
            .push_stamp(crate::Stamp {
                boot: Span::from_secs(30),
                ..Default::default()
            })
            .unwrap();
        timeline
            .push_stamp(crate::Stamp {
                boot: Span::from_secs(31),
                ..Default::default()
            })
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
        let before = timeline.entities(Entity::Process);
        let before = before.filter(|it| timeline.at_of(it, PROC_RSS_ANON, 29).is_some());
        assert_eq!(before.count(), 1_001);
    }
}
