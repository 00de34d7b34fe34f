//! The memory limit of the container in which a source was read: there that limit matters first.

use timeline::{
    Entity, Gauge, Signal,
    cgroup::ancestors,
    signals::{CGROUP_CURRENT, CGROUP_FILE, CGROUP_HIGH, CGROUP_MAX, CGROUP_SHMEM},
};
use units::{Bytes, Limit, Ratio};

use crate::evidence::Evidence;

/// The tightest memory limit among the container's cgroup and its ancestors.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnLimit {
    /// The cgroup that sets it, by its key in the timeline.
    pub cgroup: String,
    /// The limit.
    pub max: Bytes,
    /// Memory use of the cgroup, page cache included.
    pub current: Bytes,
    /// The part of `current` that reclaim could take: page cache without shared memory. `None` if unknown.
    pub cache: Option<Bytes>,
}

impl OwnLimit {
    /// Returns the limit; `None` outside a limited container, and if the source has no cgroup files.
    pub fn from_cgroups(cx: &Evidence<'_>) -> Option<Self> {
        // The kernel's own root has no limit: where the root has one, its files were read in a container.
        ancestors(cx.facts.own_container())
            .filter_map(|key| {
                let group = cx.timeline.entity(Entity::Cgroup, key)?;
                Some(Self {
                    cgroup: key.to_owned(),
                    max: limit_below_ram(cx, key, CGROUP_MAX)?,
                    current: cx.timeline.last_of(group, CGROUP_CURRENT)?,
                    cache: cx.timeline.last_of(group, CGROUP_FILE).map(|file| {
                        let shared = cx.timeline.last_of(group, CGROUP_SHMEM);
                        file.saturating_sub(shared.unwrap_or_default())
                    }),
                })
            })
            .min_by_key(|limit| limit.max.saturating_sub(limit.current))
    }

    /// Whether hardly anything is left below the limit, even if the page cache is given back.
    pub fn is_full(&self) -> bool {
        // An engineering choice: with a twentieth left and no cache to drop, the next growth ends in a kill.
        const FULL: Ratio = Ratio::from_percent(95.0);
        let cache = self.cache.unwrap_or_default();
        self.cache.is_some()
            && self
                .current
                .saturating_sub(cache)
                .ratio_of(self.max)
                .is_some_and(|held| held >= FULL)
    }

    /// What is used of the limit, in words: with its share, unless it is visibly more than the whole.
    pub(crate) fn words(&self) -> String {
        words(self.current, self.max)
    }
}

/// Returns the last memory limit of a cgroup; `None` without one, or with one above RAM, which limits nothing.
fn limit_below_ram(cx: &Evidence<'_>, key: &str, limit: Signal<Gauge<Limit>>) -> Option<Bytes> {
    let group = cx.timeline.entity(Entity::Cgroup, key)?;
    let max = cx.timeline.last_of(group, limit)?.limited()?;
    let ram = cx.ram().ok();
    ram.is_none_or(|ram| max < ram).then_some(max)
}

/// Whether the kernel kills or throttles in a cgroup before the host's RAM is used up.
pub fn is_limited(cx: &Evidence<'_>, key: &str) -> bool {
    [CGROUP_MAX, CGROUP_HIGH].into_iter().any(|limit| limit_below_ram(cx, key, limit).is_some())
}

/// `500 MiB of its limit of 524 MiB (95 %)`, `900 MiB, more than its limit of 512 MiB`. The kernel charges in batches, so
/// usage may be slightly above the limit: that is all of it.
pub(crate) fn words(used: Bytes, limit: Bytes) -> String {
    const BATCHES: Ratio = Ratio::from_percent(1.0);
    if used > limit + limit.share(BATCHES) {
        return format!("{used}, more than its limit of {limit}");
    }
    let share = used.min(limit).ratio_of(limit).unwrap_or_default();
    format!("{used} of its limit of {limit} ({share})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::facts::Container;
    use timeline::{Facts, Sample, Timeline, signals::MEM_TOTAL};
    use units::{Limit, Span};

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let mut sample = Sample::at(Span::ZERO);
        sample.host.set(MEM_TOTAL, Bytes::from_gib(8));
        for (key, max, current) in [
            ("/", Limit::Unlimited, 700),
            ("/pod", Limit::Bytes(Bytes::from_mib(512)), 500),
            ("/pod/app", Limit::Bytes(Bytes::from_mib(400)), 100),
        ] {
            let row = sample.table_mut(Entity::Cgroup).entry(key);
            row.row.set(CGROUP_MAX, max);
            row.row.set(CGROUP_CURRENT, Bytes::from_mib(current));
        }
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let mut facts = Facts::default();
        let limit = |facts: &Facts| OwnLimit::from_cgroups(&Evidence::new(&timeline, facts));
        assert_eq!(limit(&facts), None);
        facts.own_cgroup = Some("/pod/app".to_owned());
        // The unit of a recorder is no container.
        assert_eq!(limit(&facts), None);
        facts.container = Some(Container::default());
        assert_eq!(limit(&facts).unwrap().cgroup, "/pod");
        facts.own_cgroup = Some("/".to_owned());
        assert_eq!(limit(&facts), None);
    }

    #[test]
    fn a_usage_just_above_the_limit_is_all_of_it() {
        let limit = Bytes::from_mib(40);
        let above = Bytes::new(limit.get() + 4096);
        assert_eq!(words(above, limit), "40 MiB of its limit of 40 MiB (100 %)");
        assert_eq!(words(Bytes::from_mib(90), limit), "90 MiB, more than its limit of 40 MiB");
        assert_eq!(words(Bytes::from_mib(10), limit), "10 MiB of its limit of 40 MiB (25 %)");
    }

    #[test]
    fn files_of_a_limited_root_were_read_in_a_container() {
        let mut sample = Sample::at(Span::ZERO);
        let row = sample.table_mut(Entity::Cgroup).entry("/");
        row.row.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(512)));
        row.row.set(CGROUP_CURRENT, Bytes::from_mib(510));
        row.row.set(CGROUP_FILE, Bytes::from_mib(2));
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = Facts::default();
        let limit = OwnLimit::from_cgroups(&Evidence::new(&timeline, &facts)).unwrap();
        assert!(limit.is_full(), "{limit:?}");
        let verdict = crate::diagnose(&timeline, &facts).verdict;
        assert!(
            verdict.headline.contains("This container is almost out of memory"),
            "{}",
            verdict.headline
        );
    }
}
