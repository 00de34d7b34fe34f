//! The judgement: whether the demand fits, what binds, what adding it would do.

use schemars::JsonSchema;
use serde::Serialize;
use timeline::signals::{MEM_FREE, MEM_SLAB_RECLAIMABLE};
use units::{Bytes, Ratio};

use super::{
    AddedEffect, Article, AskedGroup, Bounds, ChainLimit, Cycle, DemandKind, FitPlace, Headroom,
    HeadroomBasis, HeadroomBinding, HeadroomLimit, HeadroomRemark, LimitKind, Question, Room,
    Short, Terms, Unknown, short,
};
use crate::evidence::Evidence;
use crate::finding::Affected;

/// It is tight where less than this share of RAM is left: the estimate has been right to a tenth of RAM
/// (docs/headroom.md), so there may be nothing left, and the next burst decides.
const MARGIN: Ratio = Ratio::from_percent(10.0);
/// Page cache that is not available, as a share of RAM: more than this needs an explanation (MemAvailable leaves out
/// the floor and a little more).
const RESIDUE: Ratio = Ratio::from_percent(5.0);
/// The most that must be left: on a large host a burst does not grow with RAM.
const MARGIN_AT_MOST: Bytes = Bytes::from_gib(4);

/// Whether it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FitAnswer {
    /// It fits, and some is left.
    Fits,
    /// It fits in the time that was watched, which is too short a part of a cycle to say that it always does.
    FitsSoFar,
    /// It fits most of the time, or hardly anything is left.
    Tight,
    /// It does not.
    DoesNotFit,
    /// What decides is not known.
    Unknown,
}

/// What adding the demand would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The estimate of what is left at the worst moment.
    pub left: Option<i64>,
    /// The same as bounds.
    pub bounds: Bounds,
    /// What it does.
    pub effects: Vec<AddedEffect>,
}

/// All figures that the judgement rests on.
pub(super) struct HeadroomFacts<'a> {
    pub(super) cx: &'a Evidence<'a>,
    pub(super) question: &'a Question,
    /// RAM, or the cgroup's limit where that binds.
    pub(super) capacity: Option<Bytes>,
    /// The limit around a cgroup that takes the place of RAM.
    pub(super) limit: Option<ChainLimit>,
    pub(super) group: Option<AskedGroup>,
    pub(super) room: Option<Room>,
    pub(super) terms: Option<Terms>,
    pub(super) limits: Vec<HeadroomLimit>,
    pub(super) short: Vec<Short>,
    pub(super) cycle: Cycle,
    pub(super) article: Option<Article>,
    pub(super) then: Vec<Affected>,
    pub(super) at_once: Option<Bytes>,
    pub(super) unknown: Vec<Unknown>,
}

/// The answer where available memory is unknown.
pub(super) fn nothing(
    cx: &Evidence<'_>,
    question: &Question,
    group: Option<AskedGroup>,
    unknown: Unknown,
) -> Headroom {
    Headroom {
        answer: FitAnswer::Unknown,
        basis: HeadroomBasis::AvailableUnknown,
        binds: None,
        remarks: Vec::new(),
        group,
        capacity: cx.ram().ok(),
        room: None,
        terms: None,
        then: Vec::new(),
        limits: Vec::new(),
        short: short::times(cx),
        cycle: Cycle::watched(cx, question.cycle),
        added: None,
        smallest_ram: None,
        wanted_at_once: None,
        article: None,
        unknown: vec![unknown],
    }
}

impl<'a> HeadroomFacts<'a> {
    /// The figures of a place, without what else limits and who was there.
    pub(super) fn of(
        cx: &'a Evidence<'a>,
        question: &'a Question,
        place: FitPlace,
        room: Option<Room>,
    ) -> Self {
        Self {
            cx,
            question,
            capacity: place.levels.capacity,
            terms: room.as_ref().map(|room| place.terms(cx, room.worst)),
            room,
            limit: place.limit,
            group: None,
            limits: Vec::new(),
            short: place.short,
            cycle: Cycle::watched(cx, question.cycle),
            article: None,
            then: Vec::new(),
            at_once: None,
            unknown: place.unknown,
        }
    }

    pub(super) fn judged(self) -> Headroom {
        let (answer, short) = (self.answer(), self.all_short());
        Headroom {
            basis: self.basis(),
            binds: self.binds(),
            remarks: self.remarks(answer),
            added: self.added(),
            smallest_ram: self.smallest_ram(),
            wanted_at_once: self.at_once.map(|bytes| bytes + self.added_bytes()),
            answer,
            group: self.group,
            capacity: self.capacity,
            room: self.room,
            terms: self.terms,
            then: self.then,
            limits: self.limits,
            short,
            cycle: self.cycle,
            article: self.article,
            unknown: self.unknown,
        }
    }

    fn kind(&self) -> Option<DemandKind> {
        self.question.add.map(|add| add.kind)
    }

    fn added_bytes(&self) -> Bytes {
        self.question.add.map_or(Bytes::ZERO, |add| add.bytes)
    }

    fn demand(&self) -> i64 {
        i64::try_from(self.added_bytes().get()).unwrap_or(i64::MAX)
    }

    /// The room that must be left for the next burst; `None` where the size of RAM is unknown.
    fn margin(&self) -> Option<i64> {
        let margin = self.capacity?.share(MARGIN).min(MARGIN_AT_MOST);
        i64::try_from(margin.get()).ok()
    }

    /// The limit that binds before the host's RAM does.
    fn binding(&self) -> Option<&HeadroomLimit> {
        let tightest = self.limits.iter().find(|limit| limit.concerns(self.kind()))?;
        let least = self.room.as_ref()?.least;
        (tightest.bounds.best() < least.best()).then_some(tightest)
    }

    /// The room, reduced by all limits.
    fn bounded(&self, bounds: Bounds) -> Bounds {
        let limits = self.limits.iter();
        limits
            .filter(|limit| limit.concerns(self.kind()))
            .fold(bounds, |bounds, limit| bounds.within(limit.bounds))
    }

    fn answer(&self) -> FitAnswer {
        match self.by_room() {
            FitAnswer::Unknown if self.fits_so_far() => FitAnswer::FitsSoFar,
            answer => answer,
        }
    }

    fn by_room(&self) -> FitAnswer {
        // At its limit a cgroup kills, or waits: once is too often.
        if self.group.as_ref().is_some_and(AskedGroup::takes_no_more) {
            return FitAnswer::DoesNotFit;
        }
        let Some(room) = &self.room else {
            return FitAnswer::Unknown;
        };
        let (least, usual) = (self.bounded(room.least), self.bounded(room.usual));
        let wanted = self.demand();
        let is_short = |room: i64| room < wanted || (wanted == 0 && room <= 0);
        if is_short(usual.upper) {
            return FitAnswer::DoesNotFit;
        }
        let is_estimate = usual.likely.is_some();
        let surely = least.likely_or_upper();
        let is_tight = |room: i64| Some(room.saturating_sub(wanted)) < self.margin();
        let (Some(usual), Some(least)) = (usual.likely_or_lower(), least.likely_or_lower()) else {
            return FitAnswer::Unknown;
        };
        match () {
            () if is_short(usual) && is_estimate => FitAnswer::DoesNotFit,
            // Whatever fits, it is hardly anything.
            () if is_short(usual) && wanted == 0 && is_tight(surely) && !self.cx.is_too_short() => {
                FitAnswer::Tight
            }
            // It does not fit by the lower bound, and does by the upper.
            () if is_short(usual) => FitAnswer::Unknown,
            // A single moment can show a shortage, but cannot show that there is none.
            () if self.cx.is_too_short() => FitAnswer::Unknown,
            () if self.margin().is_none() => FitAnswer::Unknown,
            // Tight by the estimate or the upper bound is certain; by the lower bound alone it is only possible.
            () if is_tight(surely) => FitAnswer::Tight,
            () if self.cycle.is_too_short() => FitAnswer::Unknown,
            () if is_tight(least) => FitAnswer::Tight,
            () => FitAnswer::Fits,
        }
    }

    /// Whether the room at the worst moment is smaller than the demand, as far as is known.
    fn is_lacking_at_worst(&self) -> bool {
        self.room.as_ref().is_some_and(|room| {
            let room = self.bounded(room.least).likely_or_upper();
            room < self.demand() || room <= 0
        })
    }

    /// Whether it fits, and only the watched part of the cycle is too short to confirm it.
    fn fits_so_far(&self) -> bool {
        self.cycle.is_too_short()
            && !self.cx.is_too_short()
            && self.room.as_ref().is_some_and(|room| {
                let least = self.bounded(room.least);
                least.likely_or_lower() >= Some(self.demand())
            })
    }

    fn basis(&self) -> HeadroomBasis {
        let Some(room) = &self.room else {
            return HeadroomBasis::NoSample;
        };
        HeadroomBasis::Room {
            least: self.bounded(room.least),
            usual: self.bounded(room.usual),
            is_lacking_at_worst: self.is_lacking_at_worst(),
            is_of_one_sample: self.cx.is_single_sample(),
        }
    }

    fn binds(&self) -> Option<HeadroomBinding> {
        let limit = self.binding().cloned().map(HeadroomBinding::Limit);
        let chain = || self.limit.clone().map(HeadroomBinding::Chain);
        let ram = || self.capacity.filter(|_| self.room.is_some()).map(HeadroomBinding::Ram);
        limit.or_else(chain).or_else(ram)
    }

    fn remarks(&self, answer: FitAnswer) -> Vec<HeadroomRemark> {
        let mut remarks = shortages(&self.all_short());
        if let Some(group) = &self.group {
            remarks.extend(
                group
                    .short_within
                    .first()
                    .map(|short| HeadroomRemark::ShortWithin(short.text.clone())),
            );
            remarks.extend(group.fills.clone().map(HeadroomRemark::Fills));
            if !group.is_limited {
                remarks.push(HeadroomRemark::NoLimitAround(group.called.clone()));
            }
        }
        if let Some(room) = self.room.as_ref().filter(|_| self.is_bound_by_a_node()) {
            remarks.push(HeadroomRemark::NodeReclaim(room.least));
        }
        remarks.extend(self.small_groups().cloned().map(HeadroomRemark::SmallGroup));
        if answer == FitAnswer::Unknown
            && let Some(room) = &self.room
        {
            remarks.push(HeadroomRemark::Undecided(self.bounded(room.usual)));
        }
        remarks.extend(self.residue().map(HeadroomRemark::Residue));
        if answer == FitAnswer::FitsSoFar {
            remarks.push(HeadroomRemark::WatchedTooShort);
        } else if !self.cycle.is_whole && matches!(answer, FitAnswer::Fits | FitAnswer::Tight) {
            remarks.push(HeadroomRemark::NotConfirmed);
        }
        remarks
    }

    /// When memory was short in what binds, and at each limit around the cgroup.
    fn all_short(&self) -> Vec<Short> {
        let at_limits = self.group.iter().flat_map(|group| group.short.clone());
        let of_ram = self.short.iter().filter(|_| self.limit.is_none()).cloned();
        at_limits.chain(of_ram).collect()
    }

    fn is_bound_by_a_node(&self) -> bool {
        self.binding().is_some_and(|limit| limit.kind == LimitKind::Node)
    }

    /// Cgroups with a limit of their own that leaves too little room for the demand: it may be meant for one of them.
    fn small_groups(&self) -> impl Iterator<Item = &HeadroomLimit> {
        let others =
            self.limits.iter().filter(|limit| limit.kind == LimitKind::Cgroup && !limit.holds);
        others.filter(|limit| self.question.add.is_some() && limit.bounds.upper < self.demand())
    }

    /// Page cache that is neither free nor available, and that nothing explains.
    fn residue(&self) -> Option<Bytes> {
        let (terms, index) = (self.terms.as_ref()?, self.room.as_ref()?.worst);
        let timeline = self.cx.timeline;
        let cache = self.cx.page_cache().ok()?.at(index)?;
        let all = timeline.at(MEM_FREE, index)?
            + cache
            + timeline.at(MEM_SLAB_RECLAIMABLE, index).unwrap_or_default();
        let explained = terms.available + terms.floor.1 + terms.left_out.unwrap_or_default();
        let residue = all.saturating_sub(explained);
        let is_large = residue > self.capacity?.share(RESIDUE);
        (terms.available_is_from_kernel && is_large).then_some(residue)
    }

    fn added(&self) -> Option<Added> {
        let add = self.question.add?;
        let room = self.room.as_ref()?;
        let least = self.bounded(room.least);
        let wanted = self.demand();
        let left = least
            .likely
            .or(least.lower.filter(|lower| *lower == least.upper))
            .map(|room| room.saturating_sub(wanted));
        let over = |room: i64| Bytes::new(u64::try_from(wanted.saturating_sub(room)).unwrap_or(0));
        let past_cliff = over(room.to_cliff);
        let beyond = over(least.best());
        let mut effects = Vec::new();
        if left.is_none() {
            effects.push(AddedEffect::LeavesBetween);
        }
        effects.push(AddedEffect::Takes(add.kind));
        // Past the cliff there is no page cache left to take, and never more than there is.
        let there = self.terms.as_ref().and_then(|terms| terms.page_cache);
        let needed = beyond.saturating_sub(past_cliff).min(there.unwrap_or(Bytes::new(u64::MAX)));
        match add.kind {
            DemandKind::Cache if left.is_some() && beyond > Bytes::ZERO => {
                effects.push(AddedEffect::DropsCache(beyond));
            }
            DemandKind::Anon | DemandKind::Tmpfs if left.is_some() && needed > Bytes::ZERO => {
                effects.push(AddedEffect::TakesNeededCache(needed));
            }
            _ => {}
        }
        if past_cliff > Bytes::ZERO && add.kind != DemandKind::Cache {
            let is_throttled = self.limit.as_ref().is_some_and(ChainLimit::is_soft);
            effects.push(if is_throttled {
                AddedEffect::Throttled(past_cliff)
            } else {
                AddedEffect::PastCliff { bytes: past_cliff, swap_left: room.swap_left }
            });
        }
        let without = |room: i64| room.saturating_sub(wanted);
        let bounds = Bounds {
            lower: least.lower.map(without),
            likely: least.likely.map(without),
            upper: without(least.upper),
        };
        Some(Added { left, bounds, effects })
    }

    /// RAM, or the limit, that the worst moment needs, with the demand and without a margin: the likely and the certain figure.
    /// `None` where memory was short, as it is unknown how much was lacking.
    fn smallest_ram(&self) -> Option<(Option<Bytes>, Option<Bytes>)> {
        let capacity = i64::try_from(self.capacity?.get()).ok()?;
        let least = self.room.as_ref()?.least;
        if !self.all_short().is_empty() || self.is_bound_by_a_node() {
            return None;
        }
        let needs = |room: i64| {
            let bytes = capacity.saturating_sub(room).saturating_add(self.demand());
            Bytes::new(u64::try_from(bytes).unwrap_or(0))
        };
        let both = (least.likely.map(needs), least.lower.map(needs));
        (both != (None, None)).then_some(both)
    }
}

/// What each rule found, and how often.
fn shortages(short: &[Short]) -> Vec<HeadroomRemark> {
    let mut by_rule: Vec<(&Short, u64)> = Vec::new();
    for short in short {
        match by_rule.iter_mut().find(|(known, _)| known.rule == short.rule) {
            Some((_, times)) => *times += 1,
            None => by_rule.push((short, 1)),
        }
    }
    let remark = |(short, times): (&Short, u64)| HeadroomRemark::Short {
        rule: short.rule,
        times,
        text: short.text.clone(),
    };
    by_rule.into_iter().map(remark).collect()
}
