//! The series of a source: of each process its anonymous memory and swap (its RSS where the source does not separate
//! them), with the live and free bytes of its heap where they were read; of each cgroup with processes of its own its
//! anonymous memory and swap. The limit of a series is the tightest of its cgroups, else what is available on the host.
//!
//! Only the largest owners are returned: small ones cannot fill a host.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::RangeInclusive;
use std::sync::Arc;

use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_MAX, CGROUP_SWAP_CURRENT, MEM_AVAILABLE, PROC_HEAP_FREE,
    PROC_HEAP_LIVE, PROC_RSS, PROC_RSS_ANON, PROC_SWAP, SERVICE_RSS_ANON, SERVICE_SWAP,
};
use timeline::{Entity, EntitySeries};
use units::{Bytes, Quantity as _, Span};

use super::decision::READINGS_MIN;
use super::series::{GrowthPoint, GrowthSeries};
use crate::evidence::Evidence;
use timeline::cgroup::unique_name;

use crate::measures::cgroups;
use crate::measures::rise::Rise;
use crate::oom::kills::{self, GroupKills};

/// At most this many owners of each kind are judged.
const OWNERS_MAX: usize = 100;

/// What kind of owner it is.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowthOwnerKind {
    Process,
    /// A cgroup: a unit of systemd, a container.
    Cgroup,
    /// The processes of a service, where the source has no cgroups.
    Service,
}

impl GrowthOwnerKind {
    fn entity(self) -> Entity {
        match self {
            Self::Process => Entity::Process,
            Self::Cgroup => Entity::Cgroup,
            Self::Service => Entity::Service,
        }
    }

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
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct GrowthOwner<'a> {
    pub kind: GrowthOwnerKind,
    /// Its series in the timeline.
    pub entity: &'a EntitySeries,
    /// Its readings.
    pub series: GrowthSeries,
    /// How it ended, if it did before the source did.
    pub ended: Option<GrowthEnd>,
}

/// The end of an owner of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowthEnd {
    /// When, on the timeline's clock.
    pub at: Span,
    /// Whether the kernel killed it for lack of memory.
    pub is_killed: bool,
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

/// Returns the owners of a source, the largest of each kind first; of those that ended, the ones that may have grown.
pub fn owners<'a>(cx: &Evidence<'a>) -> Vec<GrowthOwner<'a>> {
    owners_where(cx, &|_, _| None)
}

/// Returns the owners that a reader asks for, whatever became of them.
pub fn owners_such<'a>(
    cx: &Evidence<'a>,
    is_such: impl Fn(GrowthOwnerKind, &EntitySeries) -> bool,
) -> Vec<GrowthOwner<'a>> {
    owners_where(cx, &|kind, entity| Some(is_such(kind, entity)))
}

/// Whether an owner is asked for; `None` where nobody asked for one.
type IsAsked<'f> = &'f dyn Fn(GrowthOwnerKind, &EntitySeries) -> Option<bool>;

fn owners_where<'a>(cx: &Evidence<'a>, is_asked: IsAsked<'_>) -> Vec<GrowthOwner<'a>> {
    let ends = OwnerEnds::of(cx);
    let mut owners = of_kind(cx, &ends, GrowthOwnerKind::Cgroup, is_asked);
    if cx
        .timeline
        .entities(Entity::Cgroup)
        .all(|group| latest(cx, GrowthOwnerKind::Cgroup, group).is_none())
    {
        owners = of_kind(cx, &ends, GrowthOwnerKind::Service, is_asked);
    }
    owners.extend(of_kind(cx, &ends, GrowthOwnerKind::Process, is_asked));
    owners
}

/// Returns the owners of one kind.
fn of_kind<'a>(
    cx: &Evidence<'a>,
    ends: &OwnerEnds,
    kind: GrowthOwnerKind,
    is_asked: IsAsked<'_>,
) -> Vec<GrowthOwner<'a>> {
    let entity = kind.entity();
    let parents: BTreeSet<&str> = match kind {
        GrowthOwnerKind::Cgroup => cx
            .timeline
            .entities(entity)
            .filter_map(|group| timeline::cgroup::parent(&group.key))
            .collect(),
        _ => BTreeSet::new(),
    };
    let mut found: Vec<(&EntitySeries, Bytes, Option<GrowthEnd>)> = cx
        .timeline
        .entities(entity)
        .filter_map(|one| {
            let size = latest(cx, kind, one)?;
            let asked = is_asked(kind, one);
            // The root, slices and other parents add up what their children are listed with.
            let is_meant = asked.unwrap_or_else(|| !parents.contains(one.key.as_str()));
            let counts = |ended: Option<GrowthEnd>| match ended {
                _ if asked.is_some() => true,
                None => size > Bytes::ZERO || ends.kills_in(kind, one).next().is_some(),
                Some(_) => may_have_grown(cx, kind, one),
            };
            is_meant
                .then(|| ends.end(cx, one))
                .filter(|ended| counts(*ended))
                .map(|ended| (one, size, ended))
        })
        .collect();
    // Of those that ended, the killed ones first: commands of any size come and go.
    found.sort_by_key(|(_, size, ended)| {
        (ended.is_some(), ended.is_some_and(|end| !end.is_killed), std::cmp::Reverse(*size))
    });
    let living = found.iter().filter(|(.., ended)| ended.is_none()).count();
    let mut index = 0;
    // So many of those that live, and of those that ended.
    found.retain(|_| {
        index += 1;
        if index <= living { index <= OWNERS_MAX } else { index - living <= OWNERS_MAX }
    });
    let owner = |(one, _, ended): (&'a EntitySeries, Bytes, Option<GrowthEnd>)| {
        let mut series = series_of(cx, kind, one, 0..=cx.timeline.len().saturating_sub(1));
        series.killed = ends.kills_in(kind, one).filter_map(|kill| cx.time(kill.to)).collect();
        if ended.is_some() {
            series.limit = None;
            drop_what_was_left(&mut series.points);
        }
        GrowthOwner { kind, entity: one, series, ended }
    };
    found.into_iter().map(owner).collect()
}

/// Whether the sizes of one that ended differ by as much as a rise: thousands of commands come and go.
fn may_have_grown(cx: &Evidence<'_>, kind: GrowthOwnerKind, one: &EntitySeries) -> bool {
    let sizes = match kind {
        GrowthOwnerKind::Process => cx.timeline.bounds_of(one, PROC_RSS_ANON),
        GrowthOwnerKind::Cgroup => cx.timeline.bounds_of(one, CGROUP_ANON),
        GrowthOwnerKind::Service => cx.timeline.bounds_of(one, SERVICE_RSS_ANON),
    };
    sizes.is_some_and(|(least, largest)| largest.saturating_sub(least) >= Rise::NOISE)
}

/// Drops the last readings of a process that was already giving its memory back.
fn drop_what_was_left(points: &mut Vec<GrowthPoint>) {
    while let [.., before, last] = points.as_slice() {
        if last.total.as_f64() >= before.total.as_f64() * LEFT {
            break;
        }
        points.pop();
    }
}

/// A reading below this part of the one before is of a process that ends: an engineering choice.
const LEFT: f64 = 0.5;

/// When owners ended, and how.
struct OwnerEnds {
    kills: Option<Arc<[GroupKills]>>,
    /// The PIDs that kernel reports name, and when these were written.
    killed: Vec<(u32, Span)>,
}

impl OwnerEnds {
    /// The report of a kill may be this much older or newer than the last reading of its victim.
    const NEAR: Span = Span::from_mins(1);

    fn of(cx: &Evidence<'_>) -> Self {
        let killed = cx.timeline.reports().flat_map(|reported| {
            reported.report.killed.iter().map(|killed| (killed.pid, reported.at))
        });
        Self { kills: kills::in_groups(cx).ok(), killed: killed.collect() }
    }

    /// The kills at the limit of a cgroup, or in it.
    fn kills_in(
        &self,
        kind: GrowthOwnerKind,
        one: &EntitySeries,
    ) -> impl Iterator<Item = &GroupKills> {
        let kills = self.kills.as_deref().unwrap_or_default();
        let of = move |kill: &&GroupKills| {
            kind == GrowthOwnerKind::Cgroup
                && (kill.group == one.key || kill.at_limit_of.as_deref() == Some(&one.key))
        };
        kills.iter().filter(of)
    }

    /// How an owner ended: it is missing where all of its kind were read again, or a kernel report names it.
    fn end(&self, cx: &Evidence<'_>, one: &EntitySeries) -> Option<GrowthEnd> {
        let timeline = cx.timeline;
        let (_, last) = one.samples()?;
        let at = cx.time(last)?;
        let is_process = one.entity == Entity::Process;
        let pid: Option<u32> = one.pid().parse().ok().filter(|_| is_process);
        let is_near = |report: &Span| {
            let (early, late) = (at.min(*report), at.max(*report));
            late.saturating_sub(early) <= Self::NEAR
        };
        let mut reports = self.killed.iter().filter(|(killed, _)| Some(*killed) == pid);
        if let Some((_, report)) = reports.find(|(_, report)| is_near(report)) {
            return Some(GrowthEnd { at: *report, is_killed: true });
        }
        let end = timeline.len().checked_sub(1)?;
        let is_missing = timeline.all_read_before(one.entity, end).is_some_and(|all| all > last);
        let next = timeline.read_after(one.entity, last + 1).filter(|_| is_missing)?;
        let kills = self.kills.as_deref().unwrap_or_default().iter();
        let of_it = |kill: &&GroupKills| {
            let is_in = kill.group == one.group || unique_name(&kill.group) == one.group;
            is_process && is_in && kill.from <= next && last <= kill.to
        };
        let killed = kills.filter(of_it).find_map(|kill| cx.time(kill.to));
        Some(GrowthEnd { at: killed.unwrap_or(at), is_killed: killed.is_some() })
    }
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
    GrowthSeries { points, limit: room.map(|room| now + room), killed: Vec::new() }
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
