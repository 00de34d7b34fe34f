//! Headroom: how much more fits into a host's memory, and whether a given demand does.
//!
//! MemAvailable includes page cache that the workload needs, and the room in which writers buffer. So headroom at each
//! sample is available − what the kernel keeps beyond that − (write cache + read cache − the cache that MemAvailable
//! leaves out already). No counter shows how much read cache is needed: it is known within bounds, and where these
//! decide, the answer is "cannot tell". The quantile is taken of the headroom of each sample: extremes of different
//! moments are never added up. Reads no clock and no file; a missing reading stays unknown.

mod answer;
mod cycle;
mod instant_shortage;
mod limit;
mod limits;
mod naive_formula;
mod over_time;
mod peak_demand;
mod read_cache;
mod reason;
mod short;
mod terms;
mod tmpfs;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::Stretch;
use units::{Bytes, Ratio, SignedBytes, Span};

use crate::evidence::Evidence;
use crate::finding::Affected;

pub use answer::{Added, FitAnswer};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Its size.
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

/// How much room a host has.
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
    /// Free swap at that moment.
    pub swap_left: Option<Bytes>,
}

/// Something that decides and is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unknown {
    /// What.
    pub what: &'static str,
    /// What that leaves open, and what would settle it.
    pub text: String,
}

/// A time at which memory was short according to a rule, which overrules any formula.
#[derive(Debug, Clone, PartialEq)]
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
    /// MemTotal.
    pub ram: Option<Bytes>,
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
    /// The least RAM in which the worst moment fits, the demand included: the likely and the certain figure.
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

/// Answers the question from a source: for the cgroup `within` something is added, by default that of the container in
/// which the source was read.
pub fn headroom(cx: &Evidence<'_>, question: &Question, within: Option<&str>) -> Headroom {
    let within = within.unwrap_or_else(|| cx.facts.own_container());
    let cycle = Cycle::watched(cx, question.cycle);
    let ram = cx.ram().ok();
    let mut unknown = Vec::new();
    let levels = match terms::Levels::measured(cx, &mut unknown) {
        Ok(levels) => levels,
        Err(unknown) => return answer::nothing(ram, cycle, short::times(cx), unknown),
    };
    let (cache, short) = needed(cx, &levels, &mut unknown);
    let is_short = |index: usize| short.iter().any(|short| short.covers(index));
    let series = terms::RoomSeries::new(cx, &levels, &cache, is_short);
    let room = series.room(cx, question.quantile);
    let limits = limits::all(cx, within, &cache, question.add.map(|add| add.kind));
    let at_once = instant_shortage::wanted(cx, &levels, &cache, &short);
    let terms = room.as_ref().map(|room| levels.at(&cache, room.worst));
    let article = room.as_ref().and_then(|room| naive_formula::formula(cx, &levels, room, &cache));
    let then = room.as_ref().map_or_else(Vec::new, |room| peak_demand::who(cx, room.worst));
    answer::HeadroomFacts {
        cx,
        question,
        ram,
        room,
        terms,
        limits,
        short,
        cycle,
        article,
        then,
        at_once,
        unknown,
    }
    .judged()
}

/// The cache that must stay, and the times at which memory was short.
fn needed(
    cx: &Evidence<'_>,
    levels: &terms::Levels,
    unknown: &mut Vec<Unknown>,
) -> (ReadCache, Vec<Short>) {
    let short = short::times(cx);
    let cache = ReadCache::estimated(cx, levels, &short, unknown);
    (cache, short)
}

/// A size that may be below zero, in words: `1.2 GiB`, `−300 MiB`.
pub(crate) fn signed(bytes: i64) -> String {
    SignedBytes::new(bytes).to_string()
}

#[cfg(test)]
mod tests;
