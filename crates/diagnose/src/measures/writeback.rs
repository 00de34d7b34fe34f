//! Dirty pages of the host and of cgroups, and the level from which the kernel throttles those who write.

use timeline::cgroup::{ancestors, parent};
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_FILE_DIRTY,
    CGROUP_FILE_WRITEBACK, CGROUP_INACTIVE_FILE, CGROUP_MAX, CGROUP_PSI_IO_SOME,
    CGROUP_REFAULT_FILE, MEM_ACTIVE_FILE, MEM_DIRTY, MEM_FREE, MEM_INACTIVE_FILE, MEM_WRITEBACK,
    NR_DIRTY_BACKGROUND_THRESHOLD, NR_DIRTY_THRESHOLD,
};
use timeline::{Entity, EntitySeries, Stretch, Track};
use units::{Bytes, BytesPerSecond, Count, PerSecond, Ratio};

use super::cgroups;
use super::readings::{READ_AGAIN, STALL_NOTICED_SHARE};
use crate::evidence::{Evidence, Missing};
use crate::trigger::{Numbers, Predicate, Reading, gauge, ram};

/// Below this share of the level at which writers are throttled, dirty pages do not hold them up: an engineering choice.
const UNWRITTEN_OF_LEVEL_MAX: Ratio = Ratio::from_percent(50.0);
/// The same share of RAM where the thresholds are unknown: a tenth of the default limit, an engineering choice.
const UNWRITTEN_OF_RAM_MAX: Ratio = Ratio::from_percent(2.0);

/// Dirty pages plus pages under writeback.
pub(crate) fn unwritten() -> Reading<Bytes> {
    gauge(MEM_DIRTY).plus([gauge(MEM_WRITEBACK)]).named("unwritten")
}

/// Dirty pages plus pages under writeback of a cgroup.
pub(crate) fn own_unwritten() -> Reading<Bytes> {
    gauge(CGROUP_FILE_DIRTY).plus([gauge(CGROUP_FILE_WRITEBACK)])
}

/// Reclaim of single batches is not felt; an engineering choice. Measured, November 2026: a writer at 600 MiB/s hits a limit
/// of 64 MiB 500 times a second.
pub(crate) const LIMIT_HITS: PerSecond<Count> = PerSecond::new(10.0);
/// The share of the host's unwritten data: an engineering choice.
const OF_HOST_MIN: Ratio = Ratio::from_percent(50.0);
/// The share of a cgroup's limit that is unwritten, in the mean: an engineering choice. Measured, November 2026: 45 % to 96 %
/// where the writer waits, 0 % where files are read.
pub(crate) const UNWRITTEN_OF_LIMIT_MIN: Ratio = Ratio::from_percent(25.0);

/// Whether a cgroup is one of v1 with a limit: its writers have no dirty limit of their own, and may fill it.
pub(crate) fn may_fill(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    cx.facts.cgroup_mode == Some(CgroupMode::V1) && cgroups::limit(cx, group, CGROUP_MAX).is_some()
}

/// What the writers of a cgroup with a limit did in a stretch.
pub(crate) struct CgroupWrites {
    /// The cgroup's limit.
    pub(crate) limit: Bytes,
    /// Its unwritten data over time.
    pub(crate) unwritten: Track<Bytes>,
    /// The mean of that in the stretch.
    pub(crate) mean: Bytes,
    /// How often the cgroup hit its limit; `None` if that was not measured.
    pub(crate) hits: Option<PerSecond<Count>>,
}

impl CgroupWrites {
    /// # Errors
    /// [`Missing`] without a limit or without the cgroup's dirty pages.
    pub(crate) fn during(
        cx: &Evidence<'_>,
        group: &EntitySeries,
        stretch: &Stretch,
    ) -> Result<Self, Missing> {
        let limit = cx.timeline.gauge_of(group, CGROUP_MAX);
        let limit = limit.and_then(|limit| limit.max_in(stretch)?.0.limited());
        let limit = limit.ok_or_else(|| cx.lacks_signal(CGROUP_MAX.id()))?;
        let unwritten = own_unwritten().track_of(cx, group)?;
        let mean = cx.mean_in(stretch, CGROUP_FILE_DIRTY, &unwritten)?;
        let hits = cx.timeline.rate_of(group, CGROUP_EVENTS_MAX);
        Ok(Self { limit, unwritten, mean, hits: hits.and_then(|hits| hits.mean_in(stretch)) })
    }

    /// The level of unwritten data at which its writers wait.
    pub(crate) fn filled_from(&self) -> Bytes {
        self.limit.share(UNWRITTEN_OF_LIMIT_MIN)
    }

    /// Whether unwritten data fills the cgroup.
    pub(crate) fn fill_it(&self) -> bool {
        self.mean >= self.filled_from()
    }
}

/// The cgroups of v1 that meet their limits because they are full of unwritten data.
pub(crate) fn filled_cgroups<'a>(
    cx: &Evidence<'a>,
    stretch: &Stretch,
) -> impl Iterator<Item = (&'a EntitySeries, CgroupWrites)> {
    let groups = cx.timeline.entities(Entity::Cgroup);
    let limited = groups.filter(|group| may_fill(cx, group));
    limited.filter_map(move |group| {
        let writes = CgroupWrites::during(cx, group, stretch).ok()?;
        let is_filled = writes.fill_it() && writes.hits >= Some(LIMIT_HITS);
        is_filled.then_some((group, writes))
    })
}

/// Dirty pages swing around the level at which writers are throttled; an engineering choice.
pub(crate) const NEAR_OWN_LEVEL: Ratio = Ratio::from_percent(90.0);
/// Smaller amounts are written in a moment: an engineering choice.
pub(crate) const UNWRITTEN_MIN: Bytes = Bytes::from_mib(2);

/// File pages of the cgroup and what is left below its limit: the memory that its dirty limit is a share of
/// (mm/memcontrol.c, mem_cgroup_wb_stats). Limits of ancestors can make it smaller.
fn dirtyable(cx: &Evidence<'_>, group: &EntitySeries) -> Result<Track<Bytes>, Missing> {
    let files = gauge(CGROUP_INACTIVE_FILE).and(gauge(CGROUP_ACTIVE_FILE));
    let left = cgroups::tightest().minus(gauge(CGROUP_CURRENT));
    files.and(left).track_of(cx, group)
}

/// The level at which the writers of a cgroup of v2 with a limit are throttled. The host's share is that of its free
/// and file pages (mm/page-writeback.c, global_dirtyable_memory, which also subtracts the reserve).
pub(crate) fn own_level(cx: &Evidence<'_>, group: &EntitySeries) -> Result<Numbers, Missing> {
    let host = gauge(MEM_FREE).and(gauge(MEM_ACTIVE_FILE)).and(gauge(MEM_INACTIVE_FILE));
    let share: Numbers = free_run().ratio_of(host).track(cx)?;
    let dirtyable: Numbers = dirtyable(cx, group)?.cast();
    Ok(dirtyable.zip(&share, |bytes, share| bytes * share))
}

/// The means of a cgroup's unwritten data and of the level at which its writers are throttled.
///
/// # Errors
/// [`Missing`] where either was not measured.
pub(crate) fn mean_and_own_level(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    stretch: &Stretch,
) -> Result<(Bytes, Bytes), Missing> {
    let own = own_unwritten().track_of(cx, group)?;
    let level: Track<Bytes> = own_level(cx, group)?.cast();
    let mean = |track| cx.mean_in(stretch, CGROUP_FILE_DIRTY, track);
    Ok((mean(&own)?, mean(&level)?))
}

/// A cgroup in which writers wait at its limit, or on v2 at a level below it, with most of what the host has unwritten.
pub(crate) fn writers_at_limit<'a>(
    cx: &Evidence<'a>,
    stretch: &Stretch,
) -> Option<&'a EntitySeries> {
    let host = unwritten().track(cx).ok()?.mean_in(stretch)?;
    let has_most = |own: Bytes| own >= UNWRITTEN_MIN && own >= host.share(OF_HOST_MIN);
    if cx.facts.cgroup_mode == Some(CgroupMode::V1) {
        let mut filled = filled_cgroups(cx, stretch);
        return filled.find_map(|(group, writes)| has_most(writes.mean).then_some(group));
    }
    cx.timeline.entities(Entity::Cgroup).find(|group| {
        let means = mean_and_own_level(cx, group, stretch);
        let is_at_level =
            |(own, level): (Bytes, Bytes)| has_most(own) && own >= level.share(NEAR_OWN_LEVEL);
        means.is_ok_and(is_at_level)
            && cgroups::stalled(cx, group, CGROUP_PSI_IO_SOME, stretch) >= Some(STALL_NOTICED_SHARE)
    })
}

/// How fast a cgroup reads evicted files again; `None` where the kernel does not count that for a cgroup (v1 before 5.9).
pub(crate) fn refaults_of(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    stretch: &Stretch,
) -> Option<BytesPerSecond> {
    let refaults = cx.timeline.rate_of(group, CGROUP_REFAULT_FILE)?;
    refaults.to_bytes(cx.page_size().ok()?).mean_in(stretch)
}

/// Another cgroup that reads evicted files again: the host's waits may be those of its tasks, too. Not one in the cgroup; of
/// those around it, which count all in them, what their own tasks read.
pub(crate) fn other_refaulting_cgroup<'a>(
    cx: &Evidence<'a>,
    group: &EntitySeries,
    stretch: &Stretch,
) -> Option<(&'a EntitySeries, BytesPerSecond)> {
    let is_in = |one: &str, outer: &str| ancestors(one).any(|above| above == outer);
    let all = || cx.timeline.entities(Entity::Cgroup);
    let refaults = |one: &'a EntitySeries| {
        if is_in(&one.key, &group.key) {
            return None;
        }
        let mut own = refaults_of(cx, one, stretch)?.get();
        if is_in(&group.key, &one.key) {
            let children = all().filter(|child| parent(&child.key) == Some(one.key.as_str()));
            let theirs = children.map(|child| (child, refaults_of(cx, child, stretch)));
            let theirs: Vec<_> = theirs.filter_map(|(child, read)| Some((child, read?))).collect();
            // Without them what is counted may be the writer's.
            theirs.iter().find(|(child, _)| is_in(&group.key, &child.key))?;
            own -= theirs.iter().map(|(_, read)| read.get()).sum::<f64>();
        }
        let own = BytesPerSecond::new(own);
        (own >= READ_AGAIN).then_some((one, own))
    };
    all().find_map(refaults)
}

/// The limit of dirty pages.
pub(crate) fn dirty_limit() -> Reading<Bytes> {
    gauge(NR_DIRTY_THRESHOLD).bytes()
}

/// The level from which the kernel writes dirty pages by itself.
pub(crate) fn background_level() -> Reading<Bytes> {
    gauge(NR_DIRTY_BACKGROUND_THRESHOLD).bytes()
}

/// The level at which the kernel starts to throttle writers: the middle of the two thresholds (mm/page-writeback.c,
/// dirty_freerun_ceiling).
pub(crate) fn free_run() -> Reading<Bytes> {
    dirty_limit().minus(dirty_limit().minus(background_level()).times(0.5)).named("throttle level")
}

/// Holds where dirty pages are far below the level at which writers are throttled.
pub(crate) fn is_far_from_limit() -> Predicate {
    let known =
        unwritten().at_most("dirty pages and writeback", free_run().share(UNWRITTEN_OF_LEVEL_MAX));
    let unknown =
        unwritten().at_most("dirty pages and writeback", ram().share(UNWRITTEN_OF_RAM_MAX));
    known.or_without(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::MEM_TOTAL;
    use units::Pages;

    #[test]
    fn without_thresholds_a_share_of_ram_is_far() {
        let host = |dirty| {
            Case::over(10)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(MEM_DIRTY, Bytes::from_mib(dirty))
        };
        let is_far = |case: &Case| {
            case.with(|cx| {
                let whole = cx.timeline.whole().unwrap();
                is_far_from_limit().longest_in(cx, &whole) > units::Span::ZERO
            })
        };
        assert!(is_far(&host(15)));
        assert!(!is_far(&host(25)));
        let known = |dirty| {
            host(dirty)
                .gauge(NR_DIRTY_THRESHOLD, Pages::new(200 * 256))
                .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(100 * 256))
        };
        assert!(is_far(&known(70)));
        assert!(!is_far(&known(80)));
    }

    #[test]
    fn of_a_cgroup_around_the_writer_what_its_own_tasks_read_counts() {
        let read_by = |root: u64, reader: u64| {
            let pages = |mib: u64| mib * 256;
            let groups = [("/", root), ("/writer", 0), ("/reader", reader)];
            let case = groups.into_iter().fold(Case::over(20), |case, (group, mib)| {
                case.counter_of(Entity::Cgroup, group, CGROUP_REFAULT_FILE, pages(mib))
            });
            case.with(|cx| {
                let writer = cx.timeline.entity(Entity::Cgroup, "/writer")?;
                let (other, own) = other_refaulting_cgroup(cx, writer, &cx.timeline.whole()?)?;
                Some((other.key.clone(), own.to_string()))
            })
        };
        let some = |group: &str, rate: &str| Some((group.to_owned(), rate.to_owned()));
        assert_eq!(read_by(31, 0), some("/", "31 MiB/s"));
        assert_eq!(read_by(31, 31), some("/reader", "31 MiB/s"));
        assert_eq!(read_by(0, 0), None);
    }
}
