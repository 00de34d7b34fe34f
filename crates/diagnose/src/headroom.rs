//! Headroom: how much more fits into a host's memory, and whether a given demand does.
//!
//! What can be had (MemAvailable) contains page cache that the workload needs, and the room in which writers buffer. So for
//! each sample headroom is available − what the kernel keeps beyond that − (write cache + read cache − what MemAvailable
//! leaves of the cache already). No counter shows how much read cache is needed: it has bounds, and where they decide, the
//! answer is "cannot tell". First each sample, then the quantile: extremes of different moments are never added up.
//! Knows no clock and no file; what is not measured stays unknown.

mod answer;
mod cycle;
mod instant_shortage;
mod limit;
mod limits;
mod naive_formula;
mod over_time;
mod peak_demand;
mod read_cache;
mod short;
mod terms;
mod tmpfs;

use timeline::Stretch;
use units::{Bytes, Ratio, SignedBytes, Span};

use crate::evidence::Evidence;
use crate::finding::Affected;

pub use answer::{Added, Answer};
pub use cycle::Cycle;
pub use limit::{HeadroomLimit, LimitKind};
pub use naive_formula::Article;
pub use over_time::{Course, Needs};
pub use read_cache::{How, ReadCache};
pub use terms::Terms;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// What shall be added; without it: how much could be.
    pub add: Option<Demand>,
    /// How long the workload takes to come round.
    pub cycle: Span,
    /// For which share of the time it must fit, apart from the worst moment.
    pub quantile: Ratio,
}

impl Question {
    /// The cycle that most hosts have: a week with its nights and its weekend.
    pub const CYCLE: Span = Span::from_hours(7 * 24);
    /// The usual case: all but one sample in twenty.
    pub const QUANTILE: Ratio = Ratio::from_percent(95.0);
}

impl Default for Question {
    fn default() -> Self {
        Self {
            add: None,
            cycle: Self::CYCLE,
            quantile: Self::QUANTILE,
        }
    }
}

/// Memory that shall be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// How much.
    pub bytes: Bytes,
    /// Of what kind.
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
    /// At least this; `None` where nothing bounds it.
    pub lower: Option<i64>,
    /// The best estimate; `None` where the evidence gives bounds and no more.
    pub likely: Option<i64>,
    /// At most this.
    pub upper: i64,
}

impl Bounds {
    const fn known(bytes: i64) -> Self {
        Self {
            lower: Some(bytes),
            likely: Some(bytes),
            upper: bytes,
        }
    }

    /// What is left where a limit holds beside it.
    fn within(self, limit: Self) -> Self {
        let least = |room: i64| Some(room.min(limit.lower?));
        let likely = |room: i64| match (limit.likely, limit.lower) {
            (Some(limit), _) => Some(room.min(limit)),
            // However little the limit leaves, it does not come into it.
            (None, Some(least)) if least >= room => Some(room),
            (None, _) => None,
        };
        Self {
            lower: self.lower.and_then(least),
            likely: self.likely.and_then(likely),
            upper: self.upper.min(limit.upper),
        }
    }

    /// The estimate where there is one, else what is certain.
    pub fn likely_or_lower(&self) -> Option<i64> {
        self.likely.or(self.lower)
    }

    /// The estimate, else the least that it may be, else the most; `i64::MAX` where nothing bounds it.
    pub fn best(&self) -> i64 {
        self.likely_or_lower().unwrap_or(self.upper)
    }

    /// The estimate, else the most that it may be: less than this is certain to be too little.
    pub(crate) fn likely_or_upper(&self) -> i64 {
        self.likely.unwrap_or(self.upper)
    }
}

/// How much room a host has.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// At the worst moment.
    pub least: Bounds,
    /// For the asked share of the time.
    pub usual: Bounds,
    /// At the last sample.
    pub last: Bounds,
    /// The sample of the worst moment.
    pub worst: usize,
    /// The same on the timeline's clock.
    pub worst_at: Span,
    /// Until reclaim has nothing left to take but swap, at the worst moment: where every page of cache is given up.
    pub to_cliff: i64,
    /// Swap that is left at that moment.
    pub swap_left: Option<Bytes>,
}

/// A deciding figure that the source lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// What.
    pub what: &'static str,
    /// What that leaves open, and what would supply it.
    pub text: String,
}

/// A time at which memory was short, whatever a formula says.
#[derive(Debug, Clone, PartialEq)]
pub struct Short {
    /// The rule that found it.
    pub rule: &'static str,
    /// When.
    pub when: Option<Stretch>,
    /// Its words.
    pub text: String,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Headroom {
    /// Whether it fits.
    pub answer: Answer,
    /// The answer in a sentence, with the smallest and the usual headroom.
    pub headline: String,
    /// What binds, in a sentence.
    pub binds: String,
    /// What else belongs to the answer, in sentences.
    pub remarks: Vec<String>,
    /// MemTotal.
    pub ram: Option<Bytes>,
    /// How much room there is; `None` if unknown.
    pub room: Option<Room>,
    /// What it was computed from.
    pub terms: Option<Terms>,
    /// Who held memory, and who was busy, at the worst moment.
    pub then: Vec<Affected>,
    /// What else limits, what binds first.
    pub limits: Vec<HeadroomLimit>,
    /// When memory was short.
    pub short: Vec<Short>,
    /// What was watched, against the cycle.
    pub cycle: Cycle,
    /// What the demand would do.
    pub added: Option<Added>,
    /// The least RAM with which the worst moment still fits, the demand included: likely, and for certain.
    pub smallest_ram: Option<(Option<Bytes>, Option<Bytes>)>,
    /// Where memory was short: what was in RAM and in swap at once, with the floor, the cache that is read again and the
    /// demand; as much RAM holds that without swap. `None` where memory was not short, or nothing lay in swap.
    pub wanted_at_once: Option<Bytes>,
    /// The article's own formula, where it can be computed.
    pub article: Option<Article>,
    /// Deciding figures that are unknown.
    pub unknown: Vec<Unknown>,
}

/// Answers the question from a source.
pub fn headroom(cx: &Evidence<'_>, question: &Question) -> Headroom {
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
    let limits = limits::all(cx, &cache, question.add.map(|add| add.kind));
    let at_once = instant_shortage::wanted(cx, &levels, &cache, &short);
    let terms = room.as_ref().map(|room| levels.at(&cache, room.worst));
    let article = room
        .as_ref()
        .and_then(|room| naive_formula::formula(cx, &levels, room, &cache));
    let then = room
        .as_ref()
        .map_or_else(Vec::new, |room| peak_demand::who(cx, room.worst));
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

/// The cache that must stay, and when memory was short.
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
