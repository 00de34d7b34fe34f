//! OOM kills as counters show them: in cgroups, and on the host.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use timeline::cgroup::ROOT;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX,
    OOM_KILLS,
};
use timeline::{CounterRise, Entity::Cgroup, EntitySeries, Stretch};
use units::{Count, PerSecond};

use crate::evidence::{Evidence, Missing};
use crate::measures::cgroups;
use crate::oom::{self, OomCause};

/// The rate of one kill a day, as the threshold for any rise of a kill counter.
pub(crate) const ANY: PerSecond<Count> = PerSecond::new(1.0 / 86_400.0);

/// Kills in one cgroup between two readings of its counter.
#[derive(Debug, Clone)]
pub(crate) struct GroupKills {
    /// The key of the victims' cgroup.
    pub(crate) group: String,
    /// The sample of the earlier reading: cgroups may be read less often than the host.
    pub(crate) from: usize,
    /// The sample of the later reading.
    pub(crate) to: usize,
    /// The number of kills.
    pub(crate) count: u64,
    /// The key of the cgroup at its limit: this one or an ancestor. `None` where no limit was hit, so the host itself
    /// ran out of memory.
    pub(crate) at_limit_of: Option<String>,
    /// Whether the limit lies around the container in which the source was read: `at_limit_of` is the root that it sees.
    pub(crate) is_around_container: bool,
}

impl GroupKills {
    /// Whether these kills were caused by the limit of cgroup `limited`, during a stretch.
    pub(crate) fn are_of(&self, limited: &str, stretch: &Stretch) -> bool {
        self.at_limit_of.as_deref() == Some(limited)
            && stretch.first < self.to
            && self.from < stretch.last
    }
}

/// Finds all kills in cgroups; once for each view of a source, because every story asks for them.
///
/// `oom_kill` of memory.events counts the cgroup's victims of any OOM kill, the host's included (kernel
/// Documentation/admin-guide/cgroup-v2.rst), so each rise is compared with limit hits.
///
/// # Errors
/// [`Missing`] where no cgroup reports kills.
pub(crate) fn in_groups(cx: &Evidence<'_>) -> Result<Arc<[GroupKills]>, Missing> {
    cx.group_kills(|| {
        cgroups::with(cx, CGROUP_EVENTS_OOM_KILL)?;
        let rises = timeline::cgroup_counter_rises(cx.timeline, cx.facts, CGROUP_EVENTS_OOM_KILL);
        let mut hits = LimitHits::new(cx);
        let mut all = Vec::new();
        for (key, rises) in rises {
            if let Some(group) = cx.timeline.entity(Cgroup, &key) {
                let kills = rises.into_iter().map(|rise| hits.kills(group, rise));
                all.extend(kills);
            }
        }
        Ok(all.into())
    })
}

/// When cgroups hit limits of their own: each cgroup's counters are compared with those of its children once, however
/// many kills there are below it.
struct LimitHits<'c, 'a> {
    cx: &'c Evidence<'a>,
    known: HashMap<&'a str, GroupHits>,
}

/// The limit of a cgroup, and the samples in which its counters of limit hits rose.
struct GroupHits {
    has_limit: bool,
    /// In order; `None` without the counter.
    oom: Option<Vec<usize>>,
    max: Option<Vec<usize>>,
}

impl GroupHits {
    fn new(cx: &Evidence<'_>, group: &EntitySeries) -> Self {
        let rises = |signal| {
            let own = cgroups::own_events(cx, group, signal)?;
            let rose = |at: &usize| own.at(*at).is_some_and(|rate| rate.get() > 0.0);
            Some((0..cx.timeline.len()).filter(rose).collect())
        };
        Self {
            has_limit: cgroups::limit(cx, group, CGROUP_MAX).is_some(),
            oom: rises(CGROUP_EVENTS_OOM),
            max: rises(CGROUP_EVENTS_MAX).filter(|_| cgroups::counts_hits(cx, group)),
        }
    }

    /// Whether it hit its limit around sample `at`. Without a counter of limit hits, having a limit is enough.
    fn is_hit(&self, at: usize) -> bool {
        // The files of one sample are read one after the other, so an event may appear one sample earlier or later.
        let around = |hits: &Vec<usize>| {
            let next = hits.partition_point(|hit| *hit < at.saturating_sub(1));
            hits.get(next).is_some_and(|hit| *hit <= at + 1)
        };
        match (&self.oom, &self.max) {
            (Some(oom), _) => around(oom),
            (None, Some(max)) => self.has_limit && around(max),
            (None, None) => self.has_limit,
        }
    }
}

impl<'c, 'a> LimitHits<'c, 'a> {
    fn new(cx: &'c Evidence<'a>) -> Self {
        Self { cx, known: HashMap::new() }
    }

    fn of(&mut self, group: &'a EntitySeries) -> &GroupHits {
        let cx = self.cx;
        self.known.entry(group.key.as_str()).or_insert_with(|| GroupHits::new(cx, group))
    }

    /// The kills of a cgroup that a rise of its counter shows.
    fn kills(&mut self, group: &'a EntitySeries, rise: CounterRise) -> GroupKills {
        let cx = self.cx;
        // The innermost one, from the cgroup upwards.
        let own = cgroups::upwards(cx, group).find(|above| self.of(above).is_hit(rise.to));
        let around = || cgroups::upwards(cx, group).find(|above| is_around(cx, above, &rise));
        let at_limit_of = own.or_else(around);
        let gone = at_limit_of
            .filter(|_| !self.of(group).has_limit)
            .and_then(|_| gone_below(cx, group, rise.to));
        GroupKills {
            group: gone.unwrap_or(group).key.clone(),
            from: rise.from,
            to: rise.to,
            count: rise.by,
            at_limit_of: gone.or(at_limit_of).map(|group| group.key.clone()),
            is_around_container: own.is_none() && at_limit_of.is_some(),
        }
    }
}

/// Whether a kill that no visible limit explains was at a limit around the container with this root: it sees no cgroup
/// beyond. A kernel report of the host's shortage explains it.
fn is_around(cx: &Evidence<'_>, root: &EntitySeries, rise: &CounterRise) -> bool {
    let is_of_host = |one: &oom::Explained<'_>| {
        !matches!(one.cause, OomCause::GroupLimit(_)) && (rise.from..=rise.to).contains(&one.index)
    };
    // On v2 the root of a host has neither file; on v1 it has no limit.
    let is_of_container = cx.facts.container.is_some()
        && cx.facts.own_cgroup.as_deref() == Some(ROOT)
        || cgroups::limit(cx, root, CGROUP_MAX).is_some();
    root.key == ROOT && is_of_container && !oom::reports(cx).iter().any(is_of_host)
}

/// The descendant of a cgroup that was nearest to its limit and is gone by sample `at`, as a failed unit's cgroup is at
/// once. A cgroup without a limit of its own cannot have hit one: its counter includes such a descendant.
fn gone_below<'a>(cx: &Evidence<'a>, group: &EntitySeries, at: usize) -> Option<&'a EntitySeries> {
    let before = cx.rows_at(Cgroup, at.checked_sub(1)?)?;
    let after = cx.rows_from(Cgroup, at)?;
    cx.timeline
        .cgroups_below(&group.key)
        .filter_map(|child| {
            let held = cx.timeline.at_of(child, CGROUP_CURRENT, before)?;
            let gone = cx.timeline.at_of(child, CGROUP_CURRENT, after).is_none();
            let near = held.ratio_of(cgroups::limit(cx, child, CGROUP_MAX)?)?;
            gone.then_some((near.get(), child))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, child)| child)
}

/// The samples before which the kernel killed, and how many processes. A recorder may have stalled meanwhile.
pub(crate) fn counted(cx: &Evidence<'_>) -> Vec<(usize, u64)> {
    let rises = timeline::host_counter_rises(cx.timeline, OOM_KILLS.id()).into_iter();
    rises.map(|rise| (rise.to, rise.by)).collect()
}

/// Numbers of kills in a cgroup or on the host, for any incident.
pub(crate) struct KillCounts {
    host: Vec<(usize, u64)>,
    /// By the cgroup at its limit.
    groups: HashMap<String, Vec<GroupKills>>,
}

impl KillCounts {
    pub(crate) fn from_counters(cx: &Evidence<'_>) -> Self {
        let mut groups: HashMap<String, Vec<GroupKills>> = HashMap::new();
        for kills in in_groups(cx).iter().flat_map(|all| all.iter()) {
            if let Some(limited) = &kills.at_limit_of {
                let own = groups.entry(limited.clone()).or_default();
                own.push(kills.clone());
            }
        }
        Self { host: counted(cx), groups }
    }

    /// The number of kills during a stretch: at the limit of the cgroup with this key; `None`: on the host.
    pub(crate) fn during(&self, limited: Option<&str>, stretch: &Stretch) -> u64 {
        match limited {
            Some(limited) => {
                let own = self.groups.get(limited).into_iter().flatten();
                own.filter(|kills| kills.are_of(limited, stretch)).map(|kills| kills.count).sum()
            }
            None => {
                let own =
                    self.host.iter().filter(|(at, _)| stretch.first < *at && *at <= stretch.last);
                own.map(|(_, count)| count).sum()
            }
        }
    }
}

/// The host's kills that are explained neither by a cgroup at its limit nor by a kernel report that does not concern
/// the whole host.
pub(crate) fn of_host(cx: &Evidence<'_>, in_groups: Option<&[GroupKills]>) -> Vec<(usize, u64)> {
    let mut left: BTreeMap<usize, u64> = counted(cx).into_iter().collect();
    let at_limits =
        in_groups.unwrap_or_default().iter().filter(|kills| kills.at_limit_of.is_some());
    let mut others: Vec<(usize, usize, u64)> =
        at_limits.map(|kills| (kills.from, kills.to, kills.count)).collect();
    let mut counted: Vec<(usize, usize, u64)> = others.clone();
    for one in oom::reports(cx) {
        let mut killed = one.report.killed.len() as u64;
        if matches!(one.cause, OomCause::GroupLimit(_)) {
            // The counter of a cgroup shows the same kill, unless the cgroup was gone before it was read again.
            let near =
                |(from, at, _): &&mut (usize, usize, u64)| (*from..=*at + 1).contains(&one.index);
            for (.., left) in counted.iter_mut().filter(near) {
                let theirs = killed.min(*left);
                (killed, *left) = (killed - theirs, *left - theirs);
            }
        }
        if one.is_kill() && one.cause.is_not_the_hosts() && killed > 0 {
            others.push((one.index.saturating_sub(1), one.index, killed));
        }
    }
    for (from, at, count) in &mut others {
        *count = taken(&mut left, *from + 1..=*at, *count);
    }
    // The counters of one sample are read one after the other, so a kill may appear one sample earlier or later.
    for (from, at, count) in others {
        taken(&mut left, from..=at + 1, count);
    }
    left.retain(|_, left| *left > 0);
    left.into_iter().collect()
}

/// Subtracts `count` from the numbers within a range; returns what could not be subtracted.
fn taken(left: &mut BTreeMap<usize, u64>, within: RangeInclusive<usize>, mut count: u64) -> u64 {
    if within.is_empty() {
        return count;
    }
    for (_, left) in left.range_mut(within) {
        let theirs = count.min(*left);
        (count, *left) = (count - theirs, *left - theirs);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Facts, Sample, Timeline};
    use units::Span;

    #[test]
    fn a_kill_while_the_recorder_stood_still_is_one() {
        let mut timeline = Timeline::default();
        for second in (0..10).chain(130..140) {
            let mut sample = Sample::at(Span::from_secs(second));
            let killed = Count::new(u64::from(second >= 130));
            sample.host.set(OOM_KILLS, killed);
            let group = sample.table_mut(Cgroup).entry("/app");
            group.row.set(CGROUP_EVENTS_OOM_KILL, killed);
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        assert_eq!(counted(&cx), [(10, 1)]);
        let groups = in_groups(&cx).unwrap();
        let times: Vec<_> =
            groups.iter().map(|kills| (kills.from, kills.to, kills.count)).collect();
        assert_eq!(times, [(9, 10, 1)]);
    }
}
