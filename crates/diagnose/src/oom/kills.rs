//! OOM kills as counters show them: in cgroups, and on the host.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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
#[derive(Debug)]
pub(crate) struct GroupKills<'a> {
    /// The cgroup of the victims.
    pub(crate) group: &'a EntitySeries,
    /// The sample of the earlier reading: cgroups may be read less often than the host.
    pub(crate) from: usize,
    /// The sample of the later reading.
    pub(crate) at: usize,
    /// The number of kills.
    pub(crate) count: u64,
    /// The cgroup at its limit: this one or an ancestor. `None` where no limit was hit, so the host itself ran out of
    /// memory.
    pub(crate) at_limit_of: Option<&'a EntitySeries>,
}

impl GroupKills<'_> {
    /// Whether these kills were caused by the limit of cgroup `limited`, during a stretch.
    pub(crate) fn are_of(&self, limited: &str, stretch: &Stretch) -> bool {
        self.at_limit_of.is_some_and(|group| group.key == limited)
            && stretch.first < self.at
            && self.from < stretch.last
    }
}

/// Finds all kills in cgroups.
///
/// `oom_kill` of memory.events counts the cgroup's victims of any OOM kill, the host's included (kernel
/// Documentation/admin-guide/cgroup-v2.rst), so each rise is compared with limit hits.
///
/// # Errors
/// [`Missing`] where no cgroup reports kills.
pub(crate) fn in_groups<'a>(cx: &Evidence<'a>) -> Result<Vec<GroupKills<'a>>, Missing> {
    cgroups::with(cx, CGROUP_EVENTS_OOM_KILL)?;
    let rises = timeline::cgroup_counter_rises(cx.timeline, cx.facts, CGROUP_EVENTS_OOM_KILL);
    let all = rises.into_iter().flat_map(|(group, rises)| {
        let group = cx.timeline.entity(Cgroup, &group);
        let kills = move |rise: CounterRise| Some((group?, rise));
        rises.into_iter().filter_map(kills)
    });
    Ok(all
        .map(|(group, rise)| at_a_limit(cx, group, (rise.from, rise.to), rise.by))
        .collect())
}

fn at_a_limit<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
    (from, at): (usize, usize),
    count: u64,
) -> GroupKills<'a> {
    let at_limit_of = limit_hit(cx, group, at);
    let gone = at_limit_of.and_then(|_| gone_below(cx, group, at));
    GroupKills {
        group: gone.unwrap_or(group),
        from,
        at,
        count,
        at_limit_of: gone.or(at_limit_of),
    }
}

/// The innermost cgroup, from `group` upwards, that hit its own limit around sample `at`.
fn limit_hit<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
    at: usize,
) -> Option<&'a EntitySeries> {
    // The files of one sample are read one after the other, so an event may appear one sample earlier or later.
    let around = |signal, group: &EntitySeries| {
        let own = cgroups::own_events(cx, group, signal)?;
        Some((at - 1..=at + 1).any(|i| own.at(i).is_some_and(|rate| rate.get() > 0.0)))
    };
    cgroups::upwards(cx, group).find(|group| {
        around(CGROUP_EVENTS_OOM, group)
            .or_else(|| {
                let hit = around(CGROUP_EVENTS_MAX, group)?;
                Some(hit && cgroups::limit(cx, group, CGROUP_MAX).is_some())
            })
            // Without a counter of limit hits, having a limit is enough.
            .unwrap_or_else(|| cgroups::limit(cx, group, CGROUP_MAX).is_some())
    })
}

/// A cgroup without a limit of its own cannot have hit one: its counter includes a descendant that is gone by sample
/// `at`, as a failed unit's cgroup is at once. Returns the descendant that was nearest to its limit.
fn gone_below<'a>(cx: &Evidence<'a>, group: &EntitySeries, at: usize) -> Option<&'a EntitySeries> {
    if cgroups::limit(cx, group, CGROUP_MAX).is_some() {
        return None;
    }
    let below = format!("{}/", group.key.trim_end_matches('/'));
    let before = cx.rows_at(Cgroup, at.checked_sub(1)?)?;
    let after = cx.rows_from(Cgroup, at)?;
    cx.timeline
        .entities(Cgroup)
        .filter(|child| child.key.starts_with(&below))
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
pub(crate) struct KillCounts<'a> {
    host: Vec<(usize, u64)>,
    groups: Vec<GroupKills<'a>>,
}

impl<'a> KillCounts<'a> {
    pub(crate) fn from_counters(cx: &Evidence<'a>) -> Self {
        Self {
            host: counted(cx),
            groups: in_groups(cx).unwrap_or_default(),
        }
    }

    /// The number of kills during a stretch: at the limit of the cgroup with this key; `None`: on the host.
    pub(crate) fn during(&self, limited: Option<&str>, stretch: &Stretch) -> u64 {
        match limited {
            Some(limited) => {
                let own = self
                    .groups
                    .iter()
                    .filter(|kills| kills.are_of(limited, stretch));
                own.map(|kills| kills.count).sum()
            }
            None => {
                let own = self
                    .host
                    .iter()
                    .filter(|(at, _)| stretch.first < *at && *at <= stretch.last);
                own.map(|(_, count)| count).sum()
            }
        }
    }
}

/// The host's kills that are explained neither by a cgroup at its limit nor by a kernel report that does not concern
/// the whole host.
pub(crate) fn of_host(
    cx: &Evidence<'_>,
    in_groups: Option<&[GroupKills<'_>]>,
) -> Vec<(usize, u64)> {
    let mut left: BTreeMap<usize, u64> = counted(cx).into_iter().collect();
    let at_limits = in_groups
        .unwrap_or_default()
        .iter()
        .filter(|kills| kills.at_limit_of.is_some());
    let mut others: Vec<(usize, usize, u64)> = at_limits
        .map(|kills| (kills.from, kills.at, kills.count))
        .collect();
    for one in oom::reports(cx) {
        let is_counted = in_groups.is_some() && matches!(one.cause, OomCause::GroupLimit(_));
        if one.is_kill() && one.cause.is_not_the_hosts() && !is_counted {
            let killed = one.report.killed.len() as u64;
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
        let times: Vec<_> = groups
            .iter()
            .map(|kills| (kills.from, kills.at, kills.count))
            .collect();
        assert_eq!(times, [(9, 10, 1)]);
    }
}
