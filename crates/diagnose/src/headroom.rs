//! Headroom: how much more fits into a host's memory, or into a cgroup, and whether a given demand does.
//!
//! MemAvailable includes page cache that the workload needs, and the room in which writers buffer. So headroom at each
//! sample is available − what the kernel keeps beyond that − (write cache + read cache − the cache that MemAvailable
//! leaves out already). No counter shows how much read cache is needed: it is known within bounds, and where these
//! decide, the answer is "cannot tell". The quantile is taken of the headroom of each sample: extremes of different
//! moments are never added up. For a cgroup each limit around it takes the place of RAM. Reads no clock and no file; a missing reading stays unknown.

mod answer;
mod asked_group;
mod chain;
mod cycle;
mod instant_shortage;
mod limit;
mod limits;
mod naive_formula;
mod over_time;
mod peak_demand;
mod place;
mod read_cache;
mod reason;
mod short;
mod terms;
mod tmpfs;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::Stretch;
use timeline::cgroup::ROOT;
use units::{Bytes, Ratio, SignedBytes, Span};

use crate::evidence::Evidence;
use crate::finding::Affected;
use crate::measures::own_limit::is_limited;
use place::FitPlace;

pub use answer::{Added, FitAnswer};
pub use asked_group::AskedGroup;
pub use chain::{ChainLimit, LimitTerms};
pub use cycle::Cycle;
pub use limit::{HeadroomLimit, LimitKind};
pub use naive_formula::Article;
pub use over_time::{Course, Needs};
pub use read_cache::{How, ReadCache};
pub use reason::{AddedEffect, HeadroomBasis, HeadroomBinding, HeadroomRemark};
pub use terms::Terms;

/// The question: how much can be added, or whether a given demand fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The memory to be added; `None` asks how much could be.
    pub add: Option<Demand>,
    /// The time after which the workload repeats.
    pub cycle: Span,
    /// The share of the time for which it must fit, apart from the worst moment.
    pub quantile: Ratio,
}

impl Question {
    /// The cycle of most hosts: a week, with nights and a weekend.
    pub const CYCLE: Span = Span::from_hours(7 * 24);
    /// 95 % of the time: all but one sample in twenty.
    pub const QUANTILE: Ratio = Ratio::from_percent(95.0);
}

impl Default for Question {
    fn default() -> Self {
        Self { add: None, cycle: Self::CYCLE, quantile: Self::QUANTILE }
    }
}

/// Memory to be added.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    pub bytes: Bytes,
    /// Its kind.
    pub kind: DemandKind,
}

/// What kind of memory a demand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemandKind {
    /// Memory of processes: heap, stack.
    Anon,
    /// Files that are read again and again.
    Cache,
    /// Files in a tmpfs, shared memory.
    Tmpfs,
}

/// A quantity that is known within bounds only; may be below zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound; `None` where there is none.
    pub lower: Option<i64>,
    /// The best estimate; `None` where only bounds are known.
    pub likely: Option<i64>,
    /// The upper bound.
    pub upper: i64,
}

impl Bounds {
    const fn known(bytes: i64) -> Self {
        Self { lower: Some(bytes), likely: Some(bytes), upper: bytes }
    }

    /// The room that is left where a limit applies as well.
    fn within(self, limit: Self) -> Self {
        let least = |room: i64| Some(room.min(limit.lower?));
        let likely = |room: i64| match (limit.likely, limit.lower) {
            (Some(limit), _) => Some(room.min(limit)),
            // The limit leaves at least as much as this room, so it does not bind.
            (None, Some(least)) if least >= room => Some(room),
            (None, _) => None,
        };
        Self {
            lower: self.lower.and_then(least),
            likely: self.likely.and_then(likely),
            upper: self.upper.min(limit.upper),
        }
    }

    /// The estimate, or else the lower bound.
    pub fn likely_or_lower(&self) -> Option<i64> {
        self.likely.or(self.lower)
    }

    /// The estimate, else the lower bound, else the upper; `i64::MAX` where nothing bounds it.
    pub fn best(&self) -> i64 {
        self.likely_or_lower().unwrap_or(self.upper)
    }

    /// The estimate, or else the upper bound: below it there is certainly too little.
    pub(crate) fn likely_or_upper(&self) -> i64 {
        self.likely.unwrap_or(self.upper)
    }
}

/// How much room a host has, or a cgroup.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// Room at the worst moment.
    pub least: Bounds,
    /// Room for the requested share of the time.
    pub usual: Bounds,
    /// Room at the last sample.
    pub last: Bounds,
    /// The sample of the worst moment.
    pub worst: usize,
    /// Its time on the timeline's clock.
    pub worst_at: Span,
    /// At the worst moment: how much can be taken until all page cache is given up, so that reclaim can only swap.
    pub to_cliff: i64,
    /// Free swap at that moment, as far as the cgroup may use it.
    pub swap_left: Option<Bytes>,
}

/// Something that decides and is unknown.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unknown {
    pub what: &'static str,
    /// What that leaves open, and what would settle it.
    pub text: String,
}

/// A time at which memory was short according to a rule, which overrules any formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// The rule that found it.
    pub rule: &'static str,
    /// When memory was short.
    pub when: Option<Stretch>,
    /// The rule's text.
    pub text: String,
}

/// The complete answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Headroom {
    /// Whether the demand fits.
    pub answer: FitAnswer,
    /// The headroom that it rests on.
    pub basis: HeadroomBasis,
    /// What limits headroom first; `None` where nothing was measured.
    pub binds: Option<HeadroomBinding>,
    /// Further remarks.
    pub remarks: Vec<HeadroomRemark>,
    /// The cgroup that was asked about; `None`: the host.
    pub group: Option<AskedGroup>,
    /// MemTotal, or the cgroup's limit where that binds.
    pub capacity: Option<Bytes>,
    /// How much room there is; `None` if unknown.
    pub room: Option<Room>,
    /// The figures that the room was computed from.
    pub terms: Option<Terms>,
    /// The processes that used most memory, and the busiest ones, at the worst moment.
    pub then: Vec<Affected>,
    /// Other limits, the one that binds first at the front.
    pub limits: Vec<HeadroomLimit>,
    /// When memory was short.
    pub short: Vec<Short>,
    /// The watched time, compared with the cycle.
    pub cycle: Cycle,
    /// What adding the demand would do.
    pub added: Option<Added>,
    /// The least RAM, or limit of the cgroup, in which the worst moment fits, the demand included: the likely and the
    /// certain figure.
    pub smallest_ram: Option<(Option<Bytes>, Option<Bytes>)>,
    /// Where memory was short: the sum of what was in RAM and in swap at once, the floor, the cache that is read
    /// again, and the demand; with this much RAM it fits without swap. `None` where memory was not short, or nothing
    /// was in swap.
    pub wanted_at_once: Option<Bytes>,
    /// The formula of the article, where it can be computed.
    pub article: Option<Article>,
    /// Figures that the answer needs and that are unknown.
    pub unknown: Vec<Unknown>,
}

/// Answers the question from a source: for what is added to the host, or to the cgroup `within`.
pub fn headroom(cx: &Evidence<'_>, question: &Question, within: Option<&str>) -> Headroom {
    match within {
        Some(path) if path != ROOT || is_limited(cx, ROOT) => of_group(cx, question, path),
        _ => of_host(cx, question, within.unwrap_or_else(|| cx.facts.own_container())),
    }
}

fn of_host(cx: &Evidence<'_>, question: &Question, within: &str) -> Headroom {
    let host = match FitPlace::host(cx) {
        Ok(host) => host,
        Err(unknown) => return answer::nothing(cx, question, None, unknown),
    };
    let room = host.room(cx, question.quantile);
    let kind = question.add.map(|add| add.kind);
    let at_once = instant_shortage::wanted(cx, &host.levels, &host.cache, &host.short);
    let article =
        room.as_ref().and_then(|room| naive_formula::formula(cx, &host.levels, room, &host.cache));
    answer::HeadroomFacts {
        limits: limits::all(cx, within, &host.cache, kind),
        then: room.as_ref().map_or_else(Vec::new, |room| peak_demand::who(cx, room.worst)),
        at_once,
        article,
        ..answer::HeadroomFacts::of(cx, question, host, room)
    }
    .judged()
}

/// What is added to a cgroup has to fit below each limit around it, and into the host's RAM.
fn of_group(cx: &Evidence<'_>, question: &Question, path: &str) -> Headroom {
    let (host, no_host) = match FitPlace::host(cx) {
        Ok(host) => (Some(host), None),
        Err(unknown) => (None, Some(unknown)),
    };
    let (chain, shortages) = (chain::limits(cx, path), chain::shortages(cx, path));
    let mut places = FitPlace::around(cx, &chain, &shortages, host, question.quantile).into_iter();
    let kind = question.add.map(|add| add.kind);
    let mut limits = limits::beside_chain(cx, path, &chain, kind);
    let is_limited = !chain.is_empty() || limits::are_of_groups(&limits);
    let group = AskedGroup::new(cx, path, &shortages, is_limited);
    let Some((place, room)) = places.next() else {
        let unknown = no_host.unwrap_or_else(|| group.no_sample());
        return answer::nothing(cx, question, Some(group), unknown);
    };
    limits.extend(places.map(|(other, room)| limits::of_place(&other, &room)));
    limits::sort(&mut limits);
    let capacity = place.levels.capacity.unwrap_or_default();
    answer::HeadroomFacts {
        limits,
        then: peak_demand::who_of(cx, room.worst, path, capacity),
        group: Some(group),
        ..answer::HeadroomFacts::of(cx, question, place, Some(room))
    }
    .judged()
}

/// A size that may be below zero, in words: `1.2 GiB`, `−300 MiB`.
pub(crate) fn signed(bytes: i64) -> String {
    SignedBytes::new(bytes).to_string()
}

#[cfg(test)]
mod tests;
