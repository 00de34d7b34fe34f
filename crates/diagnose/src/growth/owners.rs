//! The series of a source: of each process its anonymous memory and swap (its RSS where the source does not separate
//! them), with the live and free bytes of its heap where they were read; of each cgroup with processes of its own its
//! anonymous memory and swap. The limit of a series is the tightest of its cgroups, else what is available on the host.
//!
//! Only the largest owners are returned: small ones cannot fill a host.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::RangeInclusive;

use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_MAX, CGROUP_SWAP_CURRENT, MEM_AVAILABLE, PROC_HEAP_FREE,
    PROC_HEAP_LIVE, PROC_RSS, PROC_RSS_ANON, PROC_SWAP, SERVICE_RSS_ANON, SERVICE_SWAP,
};
use timeline::{Entity, EntitySeries};
use units::Bytes;

use super::decision::READINGS_MIN;
use super::series::{GrowthPoint, GrowthSeries};
use crate::evidence::Evidence;
use timeline::cgroup::unique_name;

use crate::measures::cgroups;

/// At most this many owners of each kind are judged.
const OWNERS_MAX: usize = 100;

/// What kind of owner it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthOwnerKind {
    /// A process.
    Process,
    /// A cgroup: a unit of systemd, a container.
    Cgroup,
    /// The processes of a service, where the source has no cgroups.
    Service,
}

impl GrowthOwnerKind {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Cgroup => "cgroup",
            Self::Service => "service",
        }
    }
}

/// An owner of memory and its series.
#[derive(Debug, Clone)]
pub struct GrowthOwner<'a> {
    /// What kind.
    pub kind: GrowthOwnerKind,
    /// Its series in the timeline.
    pub entity: &'a EntitySeries,
    /// Its readings.
    pub series: GrowthSeries,
}

impl GrowthOwner<'_> {
    /// Returns the name for people.
    pub fn name(&self) -> &str {
        match self.kind {
            GrowthOwnerKind::Cgroup => {
                let leaf = self.entity.key.rsplit('/').next().unwrap_or_default();
                if leaf.is_empty() { "/" } else { leaf }
            }
            GrowthOwnerKind::Process | GrowthOwnerKind::Service => &self.entity.label,
        }
    }

    /// Returns the PID of a process.
    pub fn pid(&self) -> Option<u64> {
        let pid = self.entity.pid().parse().ok()?;
        (self.kind == GrowthOwnerKind::Process).then_some(pid)
    }

    /// Returns the size at the last reading.
    pub fn last(&self) -> Bytes {
        self.series.points.last().map_or(Bytes::ZERO, |point| point.total)
    }
}

/// Returns the owners of a source, the largest of each kind first.
pub fn owners<'a>(cx: &Evidence<'a>) -> Vec<GrowthOwner<'a>> {
    let mut owners = of_kind(cx, GrowthOwnerKind::Cgroup, Entity::Cgroup);
    if owners.is_empty() {
        owners = of_kind(cx, GrowthOwnerKind::Service, Entity::Service);
    }
    owners.extend(of_kind(cx, GrowthOwnerKind::Process, Entity::Process));
    owners
}

/// Returns the owners of one kind.
fn of_kind<'a>(cx: &Evidence<'a>, kind: GrowthOwnerKind, entity: Entity) -> Vec<GrowthOwner<'a>> {
    let parents: BTreeSet<&str> = match kind {
        GrowthOwnerKind::Cgroup => cx
            .timeline
            .entities(entity)
            .filter_map(|group| timeline::cgroup::parent(&group.key))
            .collect(),
        _ => BTreeSet::new(),
    };
    // The root, slices and other parents add up what their children are listed with.
    let series = cx.timeline.entities(entity).filter(|one| !parents.contains(one.key.as_str()));
    let mut found: Vec<(&EntitySeries, Bytes)> = series
        .filter_map(|one| Some((one, latest(cx, kind, one)?)))
        .filter(|(_, size)| *size > Bytes::ZERO)
        .collect();
    found.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    found.truncate(OWNERS_MAX);
    let owner = |(one, _)| GrowthOwner {
        kind,
        entity: one,
        series: series_of(cx, kind, one, 0..=cx.timeline.len().saturating_sub(1)),
    };
    found.into_iter().map(owner).collect()
}

/// Returns the last known size.
fn latest(cx: &Evidence<'_>, kind: GrowthOwnerKind, one: &EntitySeries) -> Option<Bytes> {
    let timeline = cx.timeline;
    match kind {
        GrowthOwnerKind::Process => timeline
            .last_of(one, PROC_RSS_ANON)
            .or_else(|| Some(timeline.last_of(one, PROC_RSS)?.to_bytes(cx.facts.page_size?))),
        GrowthOwnerKind::Cgroup => timeline.last_of(one, CGROUP_ANON),
        GrowthOwnerKind::Service => timeline.last_of(one, SERVICE_RSS_ANON),
    }
}

/// The readings of one figure, taken at samples in order.
struct ReadingsInOrder<'a>(Peekable<Box<dyn Iterator<Item = (usize, Bytes)> + 'a>>);

impl<'a> ReadingsInOrder<'a> {
    fn new(readings: impl Iterator<Item = (usize, Bytes)> + 'a) -> Self {
        let readings: Box<dyn Iterator<Item = (usize, Bytes)> + 'a> = Box::new(readings);
        Self(readings.peekable())
    }

    /// Returns the reading at a sample after those that were asked for.
    fn at(&mut self, index: usize) -> Option<Bytes> {
        while self.0.next_if(|(at, _)| *at < index).is_some() {}
        self.0.next_if(|(at, _)| *at == index).map(|(_, bytes)| bytes)
    }
}

/// Returns the resident bytes of a process, from pages.
fn resident<'a>(
    cx: &'a Evidence<'_>,
    process: &'a EntitySeries,
) -> impl Iterator<Item = (usize, Bytes)> + 'a {
    let page = cx.facts.page_size.into_iter();
    page.flat_map(|page| {
        let pages = cx.timeline.readings_of(process, PROC_RSS);
        pages.map(move |(index, pages)| (index, pages.to_bytes(page)))
    })
}

/// Returns the readings of a process in a range of samples, and its limit.
pub(crate) fn process_series(
    cx: &Evidence<'_>,
    process: &EntitySeries,
    first: usize,
    last: usize,
) -> GrowthSeries {
    series_of(cx, GrowthOwnerKind::Process, process, first..=last)
}

/// Returns the readings of an owner, and its limit.
fn series_of(
    cx: &Evidence<'_>,
    kind: GrowthOwnerKind,
    one: &EntitySeries,
    samples: RangeInclusive<usize>,
) -> GrowthSeries {
    let figure = |signal| ReadingsInOrder::new(cx.timeline.readings_of(one, signal));
    let (mut anon, mut swap) = match kind {
        GrowthOwnerKind::Process => (figure(PROC_RSS_ANON), figure(PROC_SWAP)),
        GrowthOwnerKind::Cgroup => (figure(CGROUP_ANON), figure(CGROUP_SWAP_CURRENT)),
        GrowthOwnerKind::Service => (figure(SERVICE_RSS_ANON), figure(SERVICE_SWAP)),
    };
    // Where a source does not separate anonymous memory; neither a cgroup nor a service has these.
    let mut resident = ReadingsInOrder::new(resident(cx, one));
    let (mut live, mut free) = (figure(PROC_HEAP_LIVE), figure(PROC_HEAP_FREE));
    let mut points: Vec<GrowthPoint> = samples
        .filter(|index| *index < cx.timeline.len())
        .filter_map(|index| {
            let total = anon.at(index).or_else(|| resident.at(index))?;
            Some(GrowthPoint {
                at: cx.timeline.times()[index],
                total: total + swap.at(index).unwrap_or_default(),
                live: live.at(index),
                free: free.at(index),
            })
        })
        .collect();
    // Heaps are read less often: enough readings of them replace all others.
    let with_heap = points.iter().filter(|point| point.live.is_some()).count();
    if with_heap >= READINGS_MIN {
        points.retain(|point| point.live.is_some());
    }
    let now = points.last().map_or(Bytes::ZERO, |point| point.total);
    let room = room(cx, kind, one);
    GrowthSeries { points, limit: room.map(|room| now + room) }
}

/// Returns how much more fits: below the limits of its cgroups, and on the host.
pub(crate) fn room(cx: &Evidence<'_>, kind: GrowthOwnerKind, one: &EntitySeries) -> Option<Bytes> {
    let group = match kind {
        GrowthOwnerKind::Cgroup => Some(one),
        GrowthOwnerKind::Process | GrowthOwnerKind::Service => {
            let unit = if one.group.is_empty() { &one.key } else { &one.group };
            let named =
                |group: &&EntitySeries| group.key == *unit || unique_name(&group.key) == unit;
            cx.timeline.entities(Entity::Cgroup).find(named)
        }
    };
    let below_limits =
        group.into_iter().flat_map(|group| cgroups::upwards(cx, group)).filter_map(|group| {
            let limit = cx.timeline.last_of(group, CGROUP_MAX)?.limited()?;
            Some(limit.saturating_sub(cx.timeline.last_of(group, CGROUP_CURRENT)?))
        });
    below_limits.chain(cx.timeline.last(MEM_AVAILABLE)).min()
}
