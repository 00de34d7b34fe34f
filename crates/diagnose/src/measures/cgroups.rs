//! Cgroups for rules: which ones a source has, what happened in a cgroup itself rather than below it, its limit, and
//! the commands that change the limit.

use std::collections::HashSet;

use timeline::cgroup::{self, ROOT, ancestors, is_within, parent, unique_name};
use timeline::signals::{
    CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_HIGH,
    CGROUP_INACTIVE_FILE, CGROUP_MAX, CGROUP_MAX_WITH_SWAP, CGROUP_PSI_MEMORY_SOME,
    CGROUP_SLAB_RECLAIMABLE,
};
use timeline::{
    Counter, Entity, EntitySeries, Gauge, Kind, LimitStep, Signal, Stretch, Track, limit_steps,
};
use units::{Bytes, Count, Limit, Micros, PerSecond, Quantity as _, Ratio};

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::{Finding, LimitFile};
use crate::measures::pressure;
use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::remedy;
use crate::trigger::{self, Occurrence, Predicate, Reading, gauge};

/// Returns the cgroups that report `signal`.
///
/// # Errors
/// [`Missing`] if none does.
pub(crate) fn with<'a, K: Kind>(
    cx: &Evidence<'a>,
    signal: Signal<K>,
) -> Result<Vec<&'a EntitySeries>, Missing> {
    let groups: Vec<_> = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter(|group| cx.timeline.last_of(group, signal).is_some())
        .collect();
    if groups.is_empty() {
        let def = signal.def();
        let mut missing = Missing::signal(def, cx.timeline.absent.get(def.file));
        // Without any cgroup at all the files are missing, not a field of a newer kernel.
        if cx.timeline.entities(Entity::Cgroup).next().is_none()
            && matches!(missing.need, Need::Field { .. })
        {
            missing.need = Need::File(def.file);
        }
        return Err(missing);
    }
    Ok(groups)
}

/// Returns what a sentence calls a cgroup: `cgroup /web`, `this container`, or by the name of its container or pod.
pub(crate) fn called(cx: &Evidence<'_>, group: &EntitySeries) -> String {
    cx.facts.names.called(&group.key).into_owned()
}

/// Returns events of the cgroup itself: if its counter includes those of its descendants, they are subtracted. Events
/// of a child that is gone by the next sample stay with the parent.
pub(crate) fn own_events(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Count>>,
) -> Option<Track<PerSecond<Count>>> {
    let mut own = cx.timeline.rate_of(group, signal)?;
    let none = own.max().is_none_or(|(peak, _)| peak.get() <= 0.0);
    if none || !cgroup::counts_below(cx.facts) {
        return Some(own);
    }
    for child in cx.timeline.cgroups_below(&group.key) {
        if parent(&child.key) == Some(group.key.as_str())
            && let Some(theirs) = cx.timeline.rate_of(child, signal)
        {
            own = own.minus(&theirs).or_else(&own);
        }
    }
    Some(own)
}

/// Returns whether a process is in the cgroup `path`, or below it, by the service of the process: that is all a source
/// has of it. In a cgroup below a service, all processes of the service may be.
pub(crate) fn owns_processes<'a>(
    cx: &Evidence<'a>,
    path: &'a str,
) -> impl Fn(&EntitySeries) -> bool + use<'a> {
    let below = cx.timeline.cgroups_below(path).map(|group| group.key.as_str());
    let services: HashSet<&str> = below.chain([path]).map(unique_name).collect();
    move |process| {
        let service = process.group.as_str();
        // A container sees its own processes only.
        path == ROOT
            || (!service.is_empty() && (services.contains(service) || is_within(path, service)))
    }
}

/// Returns the cgroup and its ancestors that the source has, innermost first.
pub(crate) fn upwards<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
) -> impl Iterator<Item = &'a EntitySeries> + use<'a> {
    let timeline = cx.timeline;
    ancestors(&group.key).filter_map(move |key| timeline.entity(Entity::Cgroup, key))
}

/// Returns the tightest value that the cgroup's own limit ever had; `None` if it never had one.
pub(crate) fn limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Gauge<Limit>>,
) -> Option<Bytes> {
    cx.timeline.gauge_of(group, signal)?.min()?.0.limited().filter(|limit| *limit > Bytes::ZERO)
}

/// Returns the limit that the cgroup itself had in a stretch, the tightest where a controller adjusted it; `None` without
/// one. Another moment's limit is not that of this one.
pub(crate) fn limit_in(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Gauge<Limit>>,
    stretch: &Stretch,
) -> Option<Bytes> {
    let limits = cx.timeline.gauge_of(group, signal)?;
    match limits.min_in(stretch) {
        Some((limit, _)) => limit.limited().filter(|limit| *limit > Bytes::ZERO),
        // It was not read then.
        None => self::limit(cx, group, signal),
    }
}

/// The same at a sample, or when it was read last before that.
pub(crate) fn limit_at(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Gauge<Limit>>,
    index: usize,
) -> Option<Bytes> {
    match cx.timeline.latest_of(group, signal, index) {
        Some(limit) => limit.limited().filter(|limit| *limit > Bytes::ZERO),
        None => limit(cx, group, signal),
    }
}

/// Returns the tighter of a cgroup's own limits at a sample, and its file.
pub(crate) fn binding_at(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    index: usize,
) -> Option<(LimitFile, Bytes)> {
    let limits = [remedy::kills_at(cx), LimitFile::High];
    let set = limits
        .into_iter()
        .filter_map(|file| Some((file, limit_at(cx, group, file.signal(), index)?)));
    set.min_by_key(|(_, limit)| *limit)
}

/// Splits occurrences in cgroups at changes of the cgroup's limit: each part is about one limit.
pub(crate) fn at_one_limit_each(cx: &Evidence<'_>, all: Vec<Occurrence>) -> Vec<Occurrence> {
    all.into_iter().flat_map(|one| split_at_limits(cx, one)).collect()
}

/// From so many changes within one occurrence on, a program sets the limit all the time, and there is no one limit.
const CHANGES_MAX: usize = 16;

fn split_at_limits(cx: &Evidence<'_>, whole: Occurrence) -> Vec<Occurrence> {
    let key = whole.key.as_deref();
    let Some(group) = key.and_then(|key| cx.timeline.entity(Entity::Cgroup, key)) else {
        return vec![whole];
    };
    let mut cuts: Vec<usize> = other_limits(cx, group)
        .into_iter()
        .filter(|at| whole.first < *at && *at <= whole.last)
        .collect();
    cuts.dedup();
    if cuts.is_empty() || cuts.len() > CHANGES_MAX {
        return vec![whole];
    }
    let firsts = std::iter::once(whole.first).chain(cuts.iter().copied());
    let lasts = cuts.iter().map(|at| at - 1).chain([whole.last]);
    let parts = firsts.zip(lasts).filter(|(first, last)| first < last);
    parts.map(|(first, last)| Occurrence { first, last, key: whole.key.clone() }).collect()
}

/// The cgroup's own limit of memory and swap together, on cgroup v1; `None` where the kernel shows that of a cgroup above.
pub(crate) fn with_swap(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Bytes> {
    let last = |group| cx.timeline.last_of(group, CGROUP_MAX_WITH_SWAP)?.limited();
    let own = last(group)?;
    let above = parent(&group.key).and_then(|key| cx.timeline.entity(Entity::Cgroup, key));
    above.and_then(last).is_none_or(|above| own < above).then_some(own)
}

/// Whether hits of a cgroup's limit of memory are counted. Cgroup v1 charges the limit with swap first (kernel
/// mm/memcontrol.c, try_charge_memcg): where both are the same, only memory.memsw.failcnt rises. Measured, November
/// 2026: a cgroup that re-read 466 MiB/s at 64 MiB of both had a memory.failcnt of 0.
pub(crate) fn counts_hits(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    let max = cx.timeline.last_of(group, CGROUP_MAX).and_then(Limit::limited);
    with_swap(cx, group).zip(max).is_none_or(|(with_swap, max)| with_swap > max)
}

/// Whether a limit is larger than it was, and by so much that it is another one.
pub(crate) fn is_raised(was: Bytes, now: Limit) -> bool {
    let step = LimitStep { since: 0, at: 0, from: Limit::Bytes(was), to: now };
    step.is_raised() && step.is_other_limit()
}

/// The samples from which on a cgroup had another limit, in order.
pub(crate) fn other_limits(cx: &Evidence<'_>, group: &EntitySeries) -> Vec<usize> {
    let steps = [CGROUP_MAX, CGROUP_HIGH].map(|limit| limit_steps(cx.timeline, group, limit));
    let others = steps.into_iter().flatten().filter(LimitStep::is_other_limit);
    let mut all: Vec<usize> = others.map(|step| step.at).collect();
    all.sort_unstable();
    all
}

/// The lower one of the cgroup's own limits: memory.max, and memory.high where it exists.
pub(crate) fn tightest() -> Reading<Bytes> {
    let max = || trigger::limit(CGROUP_MAX);
    max().min(trigger::limit(CGROUP_HIGH)).or(max()).named("cgroup limit")
}

/// Memory of the cgroup that reclaim cannot take without swap: all but page cache and reclaimable kernel objects.
pub(crate) fn undroppable() -> Reading<Bytes> {
    let files = gauge(CGROUP_INACTIVE_FILE).and(gauge(CGROUP_ACTIVE_FILE));
    gauge(CGROUP_CURRENT)
        .minus(files.plus([gauge(CGROUP_SLAB_RECLAIMABLE)]))
        .named("cgroup memory that cannot be dropped")
}

/// A cgroup with this part of its limit in memory that cannot be dropped is nearly full: an engineering choice. Page
/// cache alone brings a healthy cgroup to its limit, so memory.current says nothing.
pub(crate) const NEARLY_FULL: Ratio = Ratio::from_percent(90.0);

/// Holds where the cgroup is nearly full of memory that cannot be dropped.
pub(crate) fn is_nearly_full() -> Predicate {
    let name = "memory of the cgroup that cannot be dropped";
    undroppable().at_least(name, tightest().share(NEARLY_FULL))
}

/// What a cgroup that is nearly full went through in a stretch.
pub(crate) struct LimitHarm {
    /// How often it hit memory.max, and tasks were throttled above memory.high; `None` where that was not counted.
    pub(crate) hits: Option<Count>,
    /// The share of time in which its tasks waited for memory.
    pub(crate) waited: Option<Ratio>,
}

impl LimitHarm {
    pub(crate) fn during(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> Self {
        let counted =
            [counts_hits(cx, group).then_some(CGROUP_EVENTS_MAX), Some(CGROUP_EVENTS_HIGH)];
        let hits = counted.map(|signal| {
            let signal = signal?;
            let rate = own_events(cx, group, signal)?;
            Some(Count::from_f64(rate.integral_in(stretch)))
        });
        Self {
            hits: hits.into_iter().flatten().reduce(|a, b| a + b),
            waited: stalled(cx, group, CGROUP_PSI_MEMORY_SOME, stretch),
        }
    }

    /// Whether the cgroup hit its limit, or its tasks noticed it.
    pub(crate) fn is_felt(&self) -> bool {
        self.hits.is_some_and(|hits| hits > Count::ZERO)
            || self.waited.is_some_and(|waited| waited >= STALL_NOTICED_SHARE)
    }

    /// Shows both; each that is felt counts as a kind of evidence.
    pub(crate) fn shown_in(&self, finding: Finding) -> Finding {
        finding
            .with(self.hits, |finding, hits| {
                let text = format!("limit hits: {hits}");
                finding
                    .shows_from(CGROUP_EVENTS_MAX, hits, Count::new(1), None, text)
                    .counts_if(hits > Count::ZERO, "its limit hits")
            })
            .with(self.waited, |finding, waited| {
                let text = format!("memory stalls of the cgroup: {waited}");
                finding
                    .shows_from(CGROUP_PSI_MEMORY_SOME, waited, STALL_NOTICED_SHARE, None, text)
                    .counts_if(waited >= STALL_NOTICED_SHARE, "its memory stalls")
            })
    }
}

/// A cgroup this near to its limit is at it: charges come in batches (MEMCG_CHARGE_BATCH), and reclaim frees ahead.
pub(crate) const AT_LIMIT: Ratio = Ratio::from_percent(95.0);

/// Whether a cgroup is at one of its own limits in a stretch.
pub(crate) fn is_at_limit(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> bool {
    let current = cx.timeline.gauge_of(group, CGROUP_CURRENT);
    let Some(current) = current.and_then(|current| current.mean_in(stretch)) else {
        return false;
    };
    [CGROUP_MAX, CGROUP_HIGH]
        .into_iter()
        .filter_map(|signal| limit_in(cx, group, signal, stretch))
        .any(|limit| current >= limit.share(AT_LIMIT))
}

/// Returns the share of time that a cgroup's tasks were stalled in the worst part of a stretch; `None` if it was not
/// measured.
pub(crate) fn stalled(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Micros>>,
    stretch: &Stretch,
) -> Option<Ratio> {
    let stalled = cx.timeline.rate_of(group, signal)?;
    pressure::worst(&stalled.to_share(), stretch)
}

/// Returns a sentence for a title that separates a cgroup's shortage from one of the host; empty if unknown.
pub(crate) fn while_the_host_had(available: Option<Bytes>) -> String {
    available.map_or_else(String::new, |bytes| format!(" The host had {bytes} available."))
}

/// Returns the service or scope of the host's systemd that a cgroup belongs to, if its name is safe in a command.
///
/// The host's units lie below slices only. A unit below another service or scope, or made below a user's slice, belongs to
/// a systemd inside it (a user's, a container's), and the host may have another unit of that name. `init.scope`, which
/// lies in no slice, is excluded.
pub(crate) fn unit_of(path: &str) -> Option<&str> {
    let (above, unit) = path.trim_start_matches('/').rsplit_once('/')?;
    let of_the_host = above.split('/').all(|part| is_name_of(part, &[".slice"]) && is_plain(part));
    let is_unit = is_name_of(unit, &[".service", ".scope"]) && is_plain(unit);
    (of_the_host && is_unit && unique_name(path) == unit).then_some(unit)
}

/// Returns the services and scopes of this host's systemd around sample `index`, each with its name and its memory.
pub(crate) fn units<'a>(
    cx: &Evidence<'a>,
    index: usize,
) -> impl Iterator<Item = (&'a EntitySeries, &'a str, Bytes)> {
    let timeline = cx.timeline;
    let read = cx.rows_at(Entity::Cgroup, index);
    read.into_iter().flat_map(move |at| {
        timeline.entities(Entity::Cgroup).filter_map(move |group| {
            let held = timeline.at_of(group, CGROUP_CURRENT, at)?;
            Some((group, unit_of(&group.key)?, held))
        })
    })
}

/// Whether the name is longer than one of these endings alone.
fn is_name_of(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// Whether systemd gives such names to units, and neither a shell (within quotes) nor systemctl takes it for something
/// else, such as an option.
pub(crate) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.@:-\\".contains(c))
}
