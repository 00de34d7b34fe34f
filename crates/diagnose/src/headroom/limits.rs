//! Limits other than the host's RAM: NUMA nodes, cgroups, the commit limit, reserved huge pages.

use timeline::cgroup::ancestors;
use timeline::facts::{OVERCOMMIT_MEMORY, ZONE_RECLAIM_MODE};
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_HIGH, CGROUP_MAX, COMMIT_LIMIT, COMMITTED_AS, HUGEPAGE_SIZE,
    HUGEPAGES_FREE, HUGEPAGES_RSVD, NODE_ACTIVE_FILE, NODE_FREE, NODE_INACTIVE_FILE,
};
use timeline::{Entity, EntitySeries, Gauge, Signal, Track};
use units::{Bytes, Limit as Size, Quantity};

use super::chain::droppable;
use super::limit::{HeadroomLimit, LimitKind};
use super::place::FitPlace;
use super::terms::whole;
use super::{Bounds, ChainLimit, DemandKind, ReadCache, Room, signed, tmpfs};
use crate::evidence::Evidence;
use crate::measures::floor::Floor;
use crate::remedy;

/// At most this many cgroups are shown, the tightest.
const GROUPS_MAX: usize = 3;

/// All limits that bear on the demand in the cgroup `within`: those that apply first, the tightest first among these.
pub(super) fn all(
    cx: &Evidence<'_>,
    within: &str,
    cache: &ReadCache,
    kind: Option<DemandKind>,
) -> Vec<HeadroomLimit> {
    let mut limits = nodes(cx, cache);
    limits.extend(groups(cx, within));
    limits.extend(commit(cx));
    limits.extend(huge_pages(cx));
    limits.extend((kind == Some(DemandKind::Tmpfs)).then(|| tmpfs::limit(cx)));
    sort(&mut limits);
    limits
}

/// Those that apply first, the tightest first among these.
pub(super) fn sort(limits: &mut [HeadroomLimit]) {
    limits.sort_by_key(|limit| (!limit.holds, limit.bounds.best()));
}

/// The limits that bear on the demand in a cgroup besides those of its chain that are `measured` and the host's RAM.
pub(super) fn beside_chain(
    cx: &Evidence<'_>,
    path: &str,
    measured: &[ChainLimit],
    kind: Option<DemandKind>,
) -> Vec<HeadroomLimit> {
    let is_measured = |limit: &HeadroomLimit| measured.iter().any(|one| one.path == limit.name);
    let around = groups(cx, path).into_iter().filter(|limit| limit.holds && !is_measured(limit));
    let tmpfs = (kind == Some(DemandKind::Tmpfs)).then(|| tmpfs::limit(cx));
    around.chain(commit(cx)).chain(tmpfs).collect()
}

/// Whether some of these are limits of cgroups.
pub(super) fn are_of_groups(limits: &[HeadroomLimit]) -> bool {
    limits.iter().any(|limit| limit.kind == LimitKind::Cgroup)
}

/// A limit around a cgroup that is not the first to bind, or the host's RAM.
pub(super) fn of_place(place: &FitPlace, room: &Room) -> HeadroomLimit {
    let left = signed(room.least.best());
    let (kind, name, text) = match &place.limit {
        Some(limit) => {
            let text = format!("{left} are left below {}", limit.words());
            (LimitKind::Cgroup, limit.path.clone(), text)
        }
        None => (LimitKind::Ram, String::new(), format!("{left} are left in the host's RAM")),
    };
    HeadroomLimit { kind, name, bounds: room.least, holds: true, text }
}

/// A node's room: its free memory and files above its floor, less the files that are read again. The limit applies
/// where a node reclaims its own pages before it takes memory from other nodes; where that is unknown, it may apply.
fn nodes(cx: &Evidence<'_>, cache: &ReadCache) -> Vec<HeadroomLimit> {
    let nodes: Vec<_> = cx.timeline.entities(Entity::Node).collect();
    if nodes.len() < 2 {
        return Vec::new();
    }
    let own_only = cx.facts.number(ZONE_RECLAIM_MODE).map(|mode| mode & 1 == 1);
    let files = nodes.iter().map(|node| node_files(cx, node));
    let all = files.reduce(|sum, next| Some(sum?.plus(&next?))).flatten();
    let limit = |node: &&EntitySeries| {
        let node_room = NodeRoom::measure(cx, node, all.as_ref(), cache)?;
        let bounds = match own_only {
            Some(_) => node_room.bounds,
            None => Bounds { likely: None, upper: i64::MAX, ..node_room.bounds },
        };
        Some(HeadroomLimit {
            kind: LimitKind::Node,
            name: node.key.clone(),
            bounds,
            holds: own_only != Some(false),
            text: node_room.text(&node.key, own_only),
        })
    };
    nodes.iter().filter_map(limit).collect()
}

fn node_files(cx: &Evidence<'_>, node: &EntitySeries) -> Option<Track<Bytes>> {
    let active = cx.gauge_of(node, NODE_ACTIVE_FILE).ok()?;
    Some(active.plus(&cx.gauge_of(node, NODE_INACTIVE_FILE).ok()?))
}

/// The room on a node at its worst sample.
struct NodeRoom {
    bounds: Bounds,
    /// The node's files that must stay, where that is known.
    needed: Option<Bytes>,
}

impl NodeRoom {
    /// The node's files that must stay are its share of all that must stay, as no counter shows on which node the
    /// files are that are read again. Unknowns count both ways: none of its files, or all of them, can be given up.
    fn measure(
        cx: &Evidence<'_>,
        node: &EntitySeries,
        all: Option<&Track<Bytes>>,
        cache: &ReadCache,
    ) -> Option<Self> {
        let free = cx.gauge_of(node, NODE_FREE).ok()?;
        let (floor, floor_at_most) = node_floor(cx, node);
        let room = |left: &Track<Bytes>, floor: Bytes| {
            let (least, index) = left.min()?;
            Some((whole(least.as_f64() - floor.as_f64()), index))
        };
        let none_given_up = room(&free, floor_at_most).map(|(room, _)| room);
        let Some((files, all)) = node_files(cx, node).zip(all) else {
            let bounds = Bounds { lower: none_given_up, likely: None, upper: i64::MAX };
            let needed = None;
            return Some(Self { bounds, needed });
        };
        let needed =
            |wanted: Bytes| {
                files.zip(all, |files, all| {
                    if all > 0.0 { (wanted.as_f64() / all).min(1.0) * files } else { 0.0 }
                })
            };
        let beside = |wanted: Bytes, floor: Bytes| {
            let needed = needed(wanted);
            let left = free.plus(&files).zip(&needed, |all, needed| all - needed);
            let (room, index) = room(&left, floor)?;
            Some((room, needed.at(index)?))
        };
        let likely = cache.likely.filter(|_| floor == floor_at_most);
        let likely = likely.and_then(|likely| beside(likely, floor));
        let most = |upper| beside(upper, floor_at_most).map(|(room, _)| room);
        let bounds = Bounds {
            lower: cache.upper.map_or(none_given_up, most),
            likely: likely.map(|(room, _)| room),
            upper: beside(cache.lower, floor)?.0,
        };
        let needed = likely.map(|(_, needed)| needed);
        Some(Self { bounds, needed })
    }

    fn text(&self, key: &str, own_only: Option<bool>) -> String {
        let cache = match (self.needed, self.bounds.lower) {
            (Some(needed), _) if needed > Bytes::ZERO => {
                format!("beside {needed} of its cache that are read again")
            }
            (Some(_), _) => "with every page of its cache given up".to_owned(),
            (None, Some(_)) => "at least, if all of its cache is needed".to_owned(),
            (None, None) => "at most: how much of its cache must stay is unknown".to_owned(),
        };
        let room = signed(self.bounds.best());
        let who = match own_only {
            Some(true) => {
                ", and vm.zone_reclaim_mode makes it reclaim before it takes memory of others"
            }
            Some(false) => "; only what is bound to it is limited by that",
            None => ", which limits all if vm.zone_reclaim_mode is set: that is unknown",
        };
        format!("node {key} has {room} {cache}{who}")
    }
}

/// The lower and upper edge of a node's free memory under load. Without its zones' watermarks: anything up to what is
/// usual for a host of this size.
fn node_floor(cx: &Evidence<'_>, node: &EntitySeries) -> (Bytes, Bytes) {
    let measured = Floor::of_node(cx, &node.key).ok();
    match measured.and_then(|floor| floor.high.max()) {
        Some((floor, _)) => (floor, floor),
        None => {
            let edges = cx.ram().map(|ram| Floor::expected(cx, ram));
            (Bytes::ZERO, edges.map_or(Bytes::ZERO, |(_, high)| high))
        }
    }
}

/// Cgroups with a limit below RAM: those around what is added apply; of the others the tightest are listed.
fn groups(cx: &Evidence<'_>, within: &str) -> Vec<HeadroomLimit> {
    let chain: Vec<&str> = ancestors(within).collect();
    let limits = cx.timeline.entities(Entity::Cgroup).filter_map(|group| {
        let holds = chain.contains(&group.key.as_str());
        group_limit(cx, group, holds)
    });
    let (around, mut others): (Vec<_>, Vec<_>) = limits.partition(|limit| limit.holds);
    others.sort_by_key(|limit| limit.bounds.best());
    others.truncate(GROUPS_MAX);
    around.into_iter().chain(others).collect()
}

fn group_limit(cx: &Evidence<'_>, group: &EntitySeries, holds: bool) -> Option<HeadroomLimit> {
    let position = if holds { "around what is added" } else { "for what runs in it" };
    // Above memory.high what is added does not fit either: it is throttled.
    let last = |signal| cx.timeline.last_of(group, signal);
    let high = last(CGROUP_HIGH).and_then(Size::limited).filter(|_| holds);
    let max = last(CGROUP_MAX).and_then(Size::limited);
    let is_soft = high.is_some_and(|high| max.is_none_or(|max| high < max));
    let signal = if is_soft { CGROUP_HIGH } else { CGROUP_MAX };
    let (bounds, text) = match last(signal) {
        Some(max) => {
            let max = max.limited()?;
            if cx.ram().is_ok_and(|ram| max >= ram) {
                return None;
            }
            let bounds = group_room(cx, group, signal, max)?;
            (bounds, group_text(&group.key, bounds, max))
        }
        // An unknown is reported only for a cgroup around what is added.
        None if holds && cx.timeline.last_of(group, CGROUP_CURRENT).is_some() => (
            Bounds { lower: None, likely: None, upper: i64::MAX },
            format!(
                "whether {} has a limit is unknown: {} was not read",
                group.key,
                remedy::kills_at(cx).name()
            ),
        ),
        None => return None,
    };
    Some(HeadroomLimit {
        kind: LimitKind::Cgroup,
        name: group.key.clone(),
        bounds,
        holds,
        text: format!("{text} ({position})"),
    })
}

fn group_text(key: &str, bounds: Bounds, max: Bytes) -> String {
    let room = bounds.likely_or_lower().map(signed);
    match (room, bounds.likely) {
        (Some(room), Some(_)) => {
            format!("{key} has {room} below its limit of {max}, with its cache given up")
        }
        (Some(room), None) => format!(
            "{key} has {room} below its limit of {max}; how much of what it holds is cache is \
             unknown"
        ),
        (None, _) => format!("{key} has a limit of {max}; how much it holds is unknown"),
    }
}

/// The room below a cgroup's limit at its worst sample: anonymous memory stays, and reclaim in the cgroup can take its
/// cache. Where the source does not separate the two, the cache is anything from none to all of the usage.
fn group_room(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Gauge<Size>>,
    max: Bytes,
) -> Option<Bounds> {
    let most = whole(max.as_f64());
    let Some(current) = cx.timeline.gauge_of(group, CGROUP_CURRENT) else {
        return Some(Bounds { lower: None, likely: None, upper: most });
    };
    let limits = cx.timeline.gauge_of(group, signal)?;
    let cache = droppable(cx, group);
    let room = |cache: &dyn Fn(usize) -> Option<Bytes>| {
        let at = |index: usize| {
            let Size::Bytes(max) = limits.at(index)? else {
                return None;
            };
            let held = current.at(index)?.saturating_sub(cache(index)?);
            Some(whole(max.as_f64() - held.as_f64()))
        };
        (0..cx.timeline.len()).filter_map(at).min()
    };
    match &cache {
        Some(cache) => room(&|index| cache.at(index)).map(Bounds::known),
        None => Some(Bounds { lower: room(&|_| Some(Bytes::ZERO)), likely: None, upper: most }),
    }
}

/// The commit limit, where the kernel enforces it. Where the mode is unknown, it may, unless more than the limit is
/// already promised.
fn commit(cx: &Evidence<'_>) -> Option<HeadroomLimit> {
    const HOLDS: u64 = 2;
    let mode = cx.facts.number(OVERCOMMIT_MEMORY);
    let limit = cx.timeline.gauge(COMMIT_LIMIT)?;
    let promised = cx.timeline.gauge(COMMITTED_AS)?;
    let left = |index: usize| {
        let left = limit.at(index)?.as_f64() - promised.at(index)?.as_f64();
        Some(whole(left))
    };
    let room = (0..cx.timeline.len()).filter_map(left).min()?;
    let says = |when: &str| {
        format!(
            "{when} the kernel promises {} more of its {} and refuses what is beyond",
            signed(room),
            limit.last().unwrap_or_default()
        )
    };
    let known = Bounds::known(room);
    let (bounds, text) = match mode {
        Some(HOLDS) => (known, says("vm.overcommit_memory is 2:")),
        None if room >= 0 => (
            Bounds { likely: None, upper: i64::MAX, ..known },
            says("if vm.overcommit_memory is 2, which is unknown,"),
        ),
        _ => return None,
    };
    Some(HeadroomLimit { kind: LimitKind::Commit, name: String::new(), bounds, holds: true, text })
}

/// Unused huge pages: RAM that nothing else can use.
fn huge_pages(cx: &Evidence<'_>) -> Option<HeadroomLimit> {
    let size = cx.timeline.last(HUGEPAGE_SIZE)?;
    let free = cx.timeline.last(HUGEPAGES_FREE)?;
    let reserved = cx.timeline.last(HUGEPAGES_RSVD).unwrap_or_default();
    let unused = free.saturating_sub(reserved).get();
    let bytes = Bytes::new(size.get().saturating_mul(unused));
    (bytes > Bytes::ZERO).then(|| HeadroomLimit {
        kind: LimitKind::Hugetlb,
        name: String::new(),
        bounds: Bounds::known(whole(bytes.as_f64())),
        holds: false,
        text: format!(
            "{bytes} lie in unused huge pages: room for what asks for huge pages, and for nothing \
             else"
        ),
    })
}
