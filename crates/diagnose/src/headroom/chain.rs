//! The limits around a cgroup, each as what RAM is to a host: what is left below it, which cache the cgroup needs there,
//! and when it was short.

use timeline::cgroup::{ancestors, is_related};
use timeline::signals::{
    CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_FILE,
    CGROUP_FILE_MAPPED, CGROUP_HIGH, CGROUP_INACTIVE_FILE, CGROUP_MAX, CGROUP_MAX_WITH_SWAP,
    CGROUP_REFAULT_FILE, CGROUP_SHMEM, CGROUP_SLAB_RECLAIMABLE, CGROUP_SWAP_CURRENT,
    CGROUP_SWAP_MAX, SWAP_FREE,
};
use timeline::{
    Counter, Entity, EntitySeries, Gauge, LimitStep, Signal, Stretch, Track, limit_steps,
};
use units::{Bytes, Count, Limit as Size, Quantity as _, Ratio};

use super::read_cache::CacheReadings;
use super::terms::{Levels, WRITERS_RUN_FREE};
use super::{Short, short};
use crate::evidence::Evidence;
use crate::finding::{Finding, LimitFile, Severity};
use crate::group::{ChargedPart, parts};
use crate::judge::RuleAnswers;
use crate::measures::cgroups::{self, AT_LIMIT, undroppable, upwards};
use crate::measures::writeback::own_unwritten;
use crate::remedy;

/// Rules that find a cgroup short of memory at its limit.
const SHORT_AT_LIMIT: [&str; 6] = [
    STARVED,
    "cgroup-high-throttle",
    "cgroup-swap-limited",
    "cgroup-dirty-reclaim",
    "cgroup-oom-standstill",
    "oom-cgroup",
];
/// The one that finds its page cache too small.
const STARVED: &str = "cgroup-cache-starved";

/// A limit of a cgroup, at its last reading.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLimit {
    /// The cgroup that has it.
    pub path: String,
    /// The kernel's file.
    pub file: LimitFile,
    pub limit: Bytes,
}

/// What counts towards a limit at a moment.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitTerms {
    pub limit: ChainLimit,
    /// The part of what counts towards it that reclaim cannot take.
    pub undroppable: Bytes,
    /// What that is made of, the largest first.
    pub parts: Vec<ChargedPart>,
}

/// The limits of a cgroup and of those around it that are below RAM, where their use is known, from the inside.
pub(super) fn limits(cx: &Evidence<'_>, path: &str) -> Vec<ChainLimit> {
    let Some(inner) = ancestors(path).find_map(|key| cx.timeline.entity(Entity::Cgroup, key))
    else {
        return Vec::new();
    };
    let is_below_ram = |limit: &Bytes| cx.ram().map_or(true, |ram| *limit < ram);
    let of = |group: &EntitySeries| {
        let last = |file: LimitFile| {
            cx.timeline.last_of(group, file.signal()).and_then(Size::limited).filter(is_below_ram)
        };
        let hard = remedy::kills_at(cx);
        let max = last(hard);
        let high = last(LimitFile::High).filter(|high| max.is_none_or(|max| *high < max));
        // Where nothing is in swap, the limit with swap is no other one, or a looser one.
        let swapped = cx.timeline.gauge_of(group, CGROUP_SWAP_CURRENT).and_then(|swap| swap.max());
        let with_swap = cgroups::with_swap(cx, group)
            .filter(is_below_ram)
            .filter(|_| max.is_none() || swapped.is_some_and(|(most, _)| most > Bytes::ZERO));
        [(LimitFile::High, high), (hard, max), (LimitFile::MaxWithSwapV1, with_swap)]
            .into_iter()
            .filter_map(|(file, limit)| {
                Some(ChainLimit { path: group.key.clone(), file, limit: limit? })
            })
            .collect::<Vec<_>>()
    };
    let all = upwards(cx, inner).flat_map(of);
    all.filter(|limit| limit.held(cx).is_some()).collect()
}

impl ChainLimit {
    /// Its file, its cgroup and its size: `memory.max of /web (256 MiB)`.
    pub fn words(&self) -> String {
        format!("{} of {} ({})", self.file.name(), self.path, self.limit)
    }

    /// Whether tasks are throttled above it, and none are killed.
    pub(super) fn is_soft(&self) -> bool {
        self.file == LimitFile::High
    }

    fn group<'a>(&self, cx: &Evidence<'a>) -> Option<&'a EntitySeries> {
        cx.timeline.entity(Entity::Cgroup, &self.path)
    }

    /// What counts towards it and cannot be reclaimed; `None` where that is unknown.
    fn held(&self, cx: &Evidence<'_>) -> Option<Track<Bytes>> {
        let group = self.group(cx)?;
        let held = match undroppable().track_of(cx, group) {
            Ok(held) => held,
            Err(_) => {
                let current = cx.timeline.gauge_of(group, CGROUP_CURRENT)?;
                current.minus(&droppable(cx, group)?)
            }
        };
        match self.file {
            LimitFile::MaxWithSwapV1 => {
                Some(held.plus(&cx.timeline.gauge_of(group, CGROUP_SWAP_CURRENT)?))
            }
            _ => Some(held),
        }
    }

    /// The levels below it, as a host has them of its RAM. `None` where its use is unknown.
    pub(super) fn levels(&self, cx: &Evidence<'_>) -> Option<Levels> {
        let group = self.group(cx)?;
        let limit = cx.timeline.constant(self.limit);
        let available = limit.zip(&self.held(cx)?, |limit, held| limit - held);
        let unwritten = own_unwritten().track_of(cx, group).ok();
        let writers_run_free = available.scaled(WRITERS_RUN_FREE.get()).max();
        Some(Levels {
            available,
            is_from_kernel: false,
            files: files(cx, group),
            unwritten,
            kept_by_kernel: None,
            left_out: None,
            writers_run_free: writers_run_free.map_or(Bytes::ZERO, |(most, _)| most),
            capacity: Some(self.limit),
            floor: (Bytes::ZERO, Bytes::ZERO),
            floor_is_measured: true,
        })
    }

    /// The same as it was: below the limit that each sample had, and nothing where it had none. An answer about what fits
    /// asks about the limit of now, a chart shows what was left then.
    pub(super) fn levels_then(&self, cx: &Evidence<'_>) -> Option<Levels> {
        let limits = cx.timeline.gauge_of(self.group(cx)?, self.file.signal())?.cast::<Bytes>();
        let left = limits.zip(&self.held(cx)?, |limit: f64, held: f64| limit - held);
        let left: Vec<_> =
            left.values().iter().map(|left| left.filter(|left| left.is_finite())).collect();
        Some(Levels { available: cx.timeline.track(left), ..self.levels(cx)? })
    }

    /// Its file, its cgroup, and its size if it never had another one.
    pub fn words_throughout(&self, cx: &Evidence<'_>) -> String {
        let steps = self.group(cx).map(|group| limit_steps(cx.timeline, group, self.file.signal()));
        if steps.is_some_and(|steps| steps.iter().any(LimitStep::is_other_limit)) {
            return format!("{} of {}", self.file.name(), self.path);
        }
        self.words()
    }

    /// What shows how much page cache the cgroup needs below it.
    pub(super) fn cache(
        &self,
        cx: &Evidence<'_>,
        levels: &Levels,
        thrashed: Option<Stretch>,
    ) -> Option<CacheReadings> {
        let group = self.group(cx)?;
        let is_squeezed = upwards(cx, group).any(|level| is_squeezed(cx, level));
        let beside = if is_squeezed { inactive_beside_active(self.limit) } else { Ratio::new(0.0) };
        Some(CacheReadings {
            files: levels.files.clone(),
            unwritten: levels.unwritten.clone(),
            refaults: cx.rate_of(group, CGROUP_REFAULT_FILE),
            used_again: used_again(cx, group),
            beside,
            reads: None,
            thrashed,
            is_squeezed,
            capacity: Some(self.limit),
        })
    }

    /// How much could still be swapped out at a sample: free swap, as far as the cgroup may use it.
    pub(super) fn swap_left(&self, cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
        let free = cx.timeline.at(SWAP_FREE, index)?;
        let Some(group) = self.group(cx) else { return Some(free) };
        let swapped = cx.timeline.at_of(group, CGROUP_SWAP_CURRENT, index).unwrap_or_default();
        let own_limit = |level: &EntitySeries| {
            let v2 = cx.timeline.last_of(level, CGROUP_SWAP_MAX).and_then(Size::limited);
            // The limit with swap counts memory too, of which there is as much as the limit.
            let v1 = cx.timeline.last_of(level, CGROUP_MAX_WITH_SWAP).and_then(Size::limited);
            v2.or(v1.map(|both| both.saturating_sub(self.limit)))
        };
        let least = upwards(cx, group).filter_map(own_limit).min();
        let may_use = least.map(|most| most.saturating_sub(swapped));
        Some(may_use.map_or(free, |most| most.min(free)))
    }

    /// What counted towards it at a sample.
    pub(super) fn terms(&self, cx: &Evidence<'_>, index: usize) -> Option<LimitTerms> {
        let group = self.group(cx)?;
        let undroppable = self.held(cx)?.at(index)?;
        let can_be_dropped = [CGROUP_FILE.id(), CGROUP_SLAB_RECLAIMABLE.id()];
        let parts = parts(Some(undroppable), |signal| {
            let stays = !can_be_dropped.contains(&signal.id());
            stays.then(|| cx.timeline.at_of(group, signal, index)).flatten()
        });
        Some(LimitTerms { limit: self.clone(), undroppable, parts })
    }
}

/// File pages that reclaim can take.
fn files(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Track<Bytes>> {
    let of = |signal: Signal<Gauge<Bytes>>| cx.timeline.gauge_of(group, signal);
    let lists = of(CGROUP_INACTIVE_FILE).zip(of(CGROUP_ACTIVE_FILE));
    lists.map(|(inactive, active)| inactive.plus(&active)).or_else(|| {
        let files = of(CGROUP_FILE)?;
        Some(of(CGROUP_SHMEM).map_or_else(|| files.clone(), |shared| files.minus(&shared)))
    })
}

/// What reclaim in a cgroup can take without swap; `None` without its memory.stat.
pub(super) fn droppable(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Track<Bytes>> {
    let files = files(cx, group)?;
    Some(match cx.timeline.gauge_of(group, CGROUP_SLAB_RECLAIMABLE) {
        Some(slab) => files.plus(&slab),
        None => files,
    })
}

fn used_again(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Track<Bytes>> {
    let active = cx.timeline.gauge_of(group, CGROUP_ACTIVE_FILE)?;
    let mapped = cx.timeline.gauge_of(group, CGROUP_FILE_MAPPED)?;
    // Mapped includes shared memory, of which no counter says how much is mapped: mostly it is, a database's above all.
    Some(match cx.timeline.gauge_of(group, CGROUP_SHMEM) {
        Some(shared) => active.plus(&mapped.minus(&shared)),
        None => active.plus(&mapped),
    })
}

/// How much there must be in the list of files used once, as a share of those used more than once: where files stream
/// through a cgroup at its limit, the kernel takes pages of the second list as soon as the first is smaller
/// (mm/vmscan.c, inactive_is_low: 1 below 1 GiB, from there one in √(10 × GiB)). Measured, November 2026: 60 MiB that were
/// read at random beside a stream needed 118 MiB of cache.
fn inactive_beside_active(limit: Bytes) -> Ratio {
    let gib = (limit.as_f64() / Bytes::from_gib(1).as_f64()).floor();
    Ratio::new(if gib < 1.0 { 1.0 } else { 1.0 / (10.0 * gib).sqrt() })
}

/// Whether cache of a cgroup was given up, at its own limit.
fn is_squeezed(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    let rose = |signal: Signal<Counter<Count>>| {
        let rate = cx.timeline.rate_of(group, signal);
        rate.and_then(|rate| rate.max()).is_some_and(|(peak, _)| peak.get() > 0.0)
    };
    let most = cx.timeline.gauge_of(group, CGROUP_CURRENT).and_then(|current| current.max());
    let is_reached = |(most, _): (Bytes, usize)| {
        [CGROUP_MAX, CGROUP_HIGH]
            .into_iter()
            .filter_map(|signal| cgroups::limit(cx, group, signal))
            .any(|limit| most >= limit.share(AT_LIMIT))
    };
    [CGROUP_EVENTS_MAX, CGROUP_EVENTS_HIGH].into_iter().any(rose) || most.is_some_and(is_reached)
}

/// A shortage at the limit of one cgroup.
pub(super) struct GroupShort {
    pub(super) path: String,
    pub(super) times: Vec<Short>,
    /// The worst of them is no more than informational: nothing waited.
    pub(super) is_harmless: bool,
    /// When its files were read again for lack of cache.
    pub(super) thrashed: Option<Stretch>,
}

/// When a cgroup was short at its limits, or one around or within it, at the limits that these have now.
pub(super) fn shortages(cx: &Evidence<'_>, path: &str) -> Vec<GroupShort> {
    let answers = RuleAnswers::of_rules(cx, |rule| SHORT_AT_LIMIT.contains(&rule.id));
    let is_about = |key: &str| key == path || is_related(key, path);
    let found = answers
        .incidents
        .iter()
        .filter(|finding| finding.scope.entity == Entity::Cgroup && is_about(&finding.scope.key));
    found
        .filter(|finding| !is_of_earlier_limit(cx, finding))
        .map(|finding| GroupShort {
            path: finding.scope.key.clone(),
            times: short::each_time(cx, finding),
            is_harmless: finding.severity == Severity::Info,
            thrashed: finding.when.filter(|_| finding.id == STARVED),
        })
        .collect()
}

/// What the rule says that finds a cgroup on its way to its limit, of the cgroup or one around it, where that goes on at
/// the end.
pub(super) fn filling(cx: &Evidence<'_>, path: &str) -> Option<String> {
    let answers = RuleAnswers::of_rules(cx, |rule| rule.id == "cgroup-limit-ahead");
    let last = cx.timeline.len().saturating_sub(1);
    let goes_on = |finding: &&Finding| finding.when.is_some_and(|when| when.last == last);
    let is_around = |finding: &&Finding| ancestors(path).any(|above| above == finding.scope.key);
    let found = answers.incidents.iter().filter(goes_on).find(is_around)?;
    Some(found.title.first().to_owned())
}

/// Whether the cgroup has another limit since.
fn is_of_earlier_limit(cx: &Evidence<'_>, finding: &Finding) -> bool {
    let group = cx.timeline.entity(Entity::Cgroup, &finding.scope.key);
    let changed = group.and_then(|group| cgroups::other_limits(cx, group).last().copied());
    changed.zip(finding.when).is_some_and(|(changed, when)| when.last <= changed)
}
