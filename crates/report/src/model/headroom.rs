//! The answer of `headroom`: how much more fits, and whether a demand does.

use diagnose::group::ChargedPart;
use diagnose::headroom as engine;
pub use diagnose::headroom::{FitAnswer, Unknown};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::Timeline;
use units::{Bytes, Ratio, SignedBytes, Span};

use super::time::wall;
use super::{Affected, Host, Source};
use crate::phrases::headroom::sentences;

/// Name and version of the contract of `headroom`.
pub const HEADROOM_SCHEMA: &str = "memtide-headroom/1";

/// The whole answer of `headroom`.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HeadroomReport {
    /// Name and version of this contract; a change that readers must know of is another version.
    #[schemars(extend("const" = "memtide-headroom/1"))]
    pub schema: &'static str,
    /// The cgroup in which something is added, by its path; null for the host.
    pub cgroup: Option<String>,
    pub host: Host,
    /// Where the samples came from.
    pub source: Source,
    /// Whether it fits; also the exit code: fits 0, tight 1, does-not-fit 2, unknown 3.
    pub answer: FitAnswer,
    /// The answer in one sentence, with the smallest and the usual headroom.
    pub headline: String,
    /// What binds, in one sentence; empty where nothing was measured.
    pub binds: String,
    /// What else belongs to the answer, in sentences.
    pub remarks: Vec<String>,
    /// What was asked.
    pub asked: Asked,
    /// How much room there is; null where unknown.
    pub room: Option<Room>,
    /// What that was computed from, at the worst moment; null where unknown.
    pub terms: Option<Terms>,
    /// Who held memory, and who was busy, at the worst moment.
    pub then: Vec<Affected>,
    /// What else limits: what binds everything first, the tightest first.
    pub limits: Vec<Limit>,
    /// When memory was short, as rules found.
    pub short: Vec<Short>,
    /// What was watched, against the cycle.
    pub cycle: Cycle,
    /// What the demand would do; null where none was asked about.
    pub added: Option<Added>,
    /// RAM, or the cgroup's limit, with which the worst moment still fits, the demand included; null where bounds are all
    /// there is.
    pub smallest_ram_bytes: Option<Bytes>,
    /// The same if all of the cache that may be needed is.
    pub smallest_safe_ram_bytes: Option<Bytes>,
    /// Where memory was short: what was in RAM and in swap at once, with the floor, the cache that is read again and what is
    /// added; as much RAM holds that without swap. Null where memory was not short, or nothing lay in swap.
    pub wanted_at_once_bytes: Option<Bytes>,
    /// The formula as people first write it down; null where the source lacks its terms.
    pub article: Option<Article>,
    /// What decides and is unknown.
    pub unknown: Vec<Unknown>,
}

/// What was asked.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Asked {
    /// How much shall be added; null where nothing.
    pub add_bytes: Option<Bytes>,
    /// Of what kind: `anon`, `cache`, `tmpfs`.
    pub kind: Option<&'static str>,
    pub cycle_s: Span,
    /// For which share of the time it must fit.
    pub quantile: Ratio,
}

/// A quantity that is known within bounds; below zero where that much is lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bounds {
    /// At least this; null where nothing bounds it.
    pub lower_bytes: Option<SignedBytes>,
    /// The best estimate; null where there are bounds only.
    pub likely_bytes: Option<SignedBytes>,
    /// At most this.
    pub upper_bytes: SignedBytes,
}

/// How much room there is in the host's RAM, or below the limit around the cgroup that binds first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Room {
    /// At the worst moment.
    pub least: Bounds,
    /// For the asked share of the time.
    pub usual: Bounds,
    /// At the last sample.
    pub last: Bounds,
    /// The worst moment; null where the source has no wall clock.
    pub worst_at: Option<Timestamp>,
    /// The same from the first sample on.
    pub worst_at_s: f64,
    /// Until reclaim has nothing left to take but swap, at the worst moment.
    pub to_cliff_bytes: SignedBytes,
    /// Swap that was left then; null where unknown.
    pub swap_left_bytes: Option<Bytes>,
}

/// What headroom was computed from: available − kept − max(0, write cache + read cache − left out).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Terms {
    /// What could be had without swapping. Of a cgroup: the limit less what reclaim cannot take.
    pub available_bytes: Bytes,
    /// Whether the kernel reports it itself (MemAvailable), or it is free memory and files together.
    pub available_is_from_kernel: bool,
    /// Where kswapd starts: free memory rests between this and the next under load. Available leaves it out already.
    pub floor_low_bytes: Bytes,
    /// Where kswapd stops.
    pub floor_high_bytes: Bytes,
    /// Whether the floor is from the zones' marks; else it is predicted for a host of this size.
    pub floor_is_measured: bool,
    /// What the kernel keeps beyond what available leaves out; null where unknown.
    pub kept_bytes: Option<Bytes>,
    /// All data of files that waited for disks then; null where it was not measured.
    pub unwritten_bytes: Option<Bytes>,
    /// Room that writers need, at least.
    pub write_cache_lower_bytes: Bytes,
    /// Room that writers need, at most; the same where it was measured.
    pub write_cache_upper_bytes: Bytes,
    /// Page cache that must stay.
    pub read_cache: ReadCache,
    /// The part of the cache that available leaves out already; null where unknown.
    pub left_out_bytes: Option<Bytes>,
    /// All of the page cache that could be dropped; null where unknown.
    pub page_cache_bytes: Option<Bytes>,
    /// The limit around the cgroup that takes the place of RAM; null for the host. The floor of a cgroup is zero.
    pub limit: Option<LimitTerms>,
}

/// What counts towards a limit.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitTerms {
    /// The cgroup that has it: the one that was asked about, or one around it.
    pub cgroup: String,
    /// The kernel's file.
    pub file: &'static str,
    pub limit_bytes: Bytes,
    /// The part of what counts towards it that reclaim cannot take.
    pub undroppable_bytes: Bytes,
    /// What that is made of, the largest first.
    pub parts: Vec<ChargedPart>,
}

/// Page cache that must stay because its files are read again.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReadCache {
    /// At least this much.
    pub lower_bytes: Bytes,
    /// The best estimate; null where there are bounds only.
    pub likely_bytes: Option<Bytes>,
    /// At most this much; null where unknown.
    pub upper_bytes: Option<Bytes>,
    /// What it rests on: `refaults`, `experience`, `active-list`, `never-squeezed`, `unknown`.
    pub how: &'static str,
    /// The same in words.
    pub text: String,
}

/// Something else that limits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Limit {
    /// `RAM`, `node`, `cgroup`, `commit limit`, `hugetlb`, `tmpfs`.
    pub kind: &'static str,
    /// Which one; empty where there is one only.
    pub name: String,
    /// Room below it at its worst sample: the best estimate, else the least that it may be, else the most; null where
    /// nothing bounds it.
    pub room_bytes: Option<SignedBytes>,
    /// At least this; null where nothing bounds it.
    pub lower_bytes: Option<SignedBytes>,
    /// The best estimate; null where there are bounds only.
    pub likely_bytes: Option<SignedBytes>,
    /// At most this; null where nothing bounds it.
    pub upper_bytes: Option<SignedBytes>,
    /// Whether it holds for whatever is added, not only for somebody's own memory.
    pub holds: bool,
    /// In a sentence.
    pub text: String,
}

/// A time at which memory was short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Short {
    /// The rule that found it; `memtide rules ID` explains it.
    pub rule: &'static str,
    /// When it began, from the first sample on; null where that is not known.
    pub from_s: Option<f64>,
    /// When it ended.
    pub to_s: Option<f64>,
    /// The rule's words.
    pub text: String,
}

/// What was watched, against the cycle.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cycle {
    pub asked_s: Span,
    /// From the first sample to the last.
    pub watched_s: Span,
    /// The part of it that samples speak for.
    pub present: Ratio,
    /// Whether a Saturday and a Sunday are in it; null without a wall clock, and for cycles below a week.
    pub has_weekend: Option<bool>,
    /// Whether it is a whole cycle. Else a good answer is not confirmed.
    pub is_whole: bool,
    /// In words: `2.1 d of 7 d: no weekend yet`.
    pub text: String,
}

/// What the demand would do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Added {
    /// What is left at the worst moment; null where that is not known.
    pub left_bytes: Option<SignedBytes>,
    /// At least this is left; null where nothing bounds it.
    pub left_lower_bytes: Option<SignedBytes>,
    /// At most this is left.
    pub left_upper_bytes: SignedBytes,
    /// In sentences.
    pub text: Vec<String>,
}

/// The formula as people first write it down, at its worst sample.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Article {
    /// What it gives.
    pub bytes: SignedBytes,
    /// Its worst sample, in seconds from the first; null where it is the worst moment of `room`.
    pub at_s: Option<f64>,
    /// The same by the wall clock, where the source has one.
    pub at: Option<Timestamp>,
    /// What stays free, as it takes it.
    pub kept_free_bytes: Bytes,
    /// Unwritten data; null where unknown.
    pub unwritten_bytes: Option<Bytes>,
    pub page_cache_bytes: Bytes,
    /// Whether it differs by more than 20 %.
    pub differs: bool,
    /// The formula with its figures, and why it differs.
    pub text: String,
}

impl HeadroomReport {
    /// The answer of `headroom`.
    pub fn new(
        source: &timeline::Source,
        question: &engine::Question,
        headroom: &engine::Headroom,
    ) -> Self {
        let timeline = &source.timeline;
        let smallest = headroom.smallest_ram.unwrap_or_default();
        Self {
            schema: HEADROOM_SCHEMA,
            cgroup: headroom.group.as_ref().map(|group| group.path.clone()),
            host: Host::new(source),
            source: Source::new(source),
            answer: headroom.answer,
            headline: sentences::headline(question, headroom),
            binds: sentences::binds(headroom),
            remarks: sentences::remarks(question, headroom),
            asked: Asked::from(question),
            room: headroom.room.as_ref().map(|room| Room::new(room, timeline)),
            terms: headroom.terms.as_ref().map(Terms::from),
            then: headroom.then.clone(),
            limits: headroom.limits.iter().map(Limit::from).collect(),
            short: headroom.short.iter().map(Short::from).collect(),
            cycle: Cycle::from(&headroom.cycle),
            added: headroom.added.as_ref().map(Added::from),
            smallest_ram_bytes: smallest.0,
            smallest_safe_ram_bytes: smallest.1,
            wanted_at_once_bytes: headroom.wanted_at_once,
            article: headroom.article.as_ref().map(|article| Article::new(article, timeline)),
            unknown: headroom.unknown.clone(),
        }
    }
}

impl From<&engine::Question> for Asked {
    fn from(question: &engine::Question) -> Self {
        Self {
            add_bytes: question.add.map(|add| add.bytes),
            kind: question.add.map(|add| match add.kind {
                engine::DemandKind::Anon => "anon",
                engine::DemandKind::Cache => "cache",
                engine::DemandKind::Tmpfs => "tmpfs",
            }),
            cycle_s: question.cycle,
            quantile: question.quantile,
        }
    }
}

impl From<engine::Bounds> for Bounds {
    fn from(bounds: engine::Bounds) -> Self {
        let [lower_bytes, likely_bytes] =
            [bounds.lower, bounds.likely].map(|it| it.map(SignedBytes::new));
        Self { lower_bytes, likely_bytes, upper_bytes: SignedBytes::new(bounds.upper) }
    }
}

impl Room {
    fn new(room: &engine::Room, timeline: &Timeline) -> Self {
        Self {
            least: room.least.into(),
            usual: room.usual.into(),
            last: room.last.into(),
            worst_at: wall(timeline, room.worst_at),
            worst_at_s: room.worst_at.as_secs_f64(),
            to_cliff_bytes: SignedBytes::new(room.to_cliff),
            swap_left_bytes: room.swap_left,
        }
    }
}

impl From<&engine::Terms> for Terms {
    fn from(terms: &engine::Terms) -> Self {
        let (floor, written) = (terms.floor, terms.write_cache);
        Self {
            available_bytes: terms.available,
            available_is_from_kernel: terms.available_is_from_kernel,
            floor_low_bytes: floor.0,
            floor_high_bytes: floor.1,
            floor_is_measured: terms.floor_is_measured,
            kept_bytes: terms.kept,
            unwritten_bytes: terms.unwritten,
            write_cache_lower_bytes: written.0,
            write_cache_upper_bytes: written.1,
            read_cache: ReadCache::from(&terms.read_cache),
            left_out_bytes: terms.left_out,
            page_cache_bytes: terms.page_cache,
            limit: terms.limit.as_ref().map(LimitTerms::from),
        }
    }
}

impl From<&engine::LimitTerms> for LimitTerms {
    fn from(terms: &engine::LimitTerms) -> Self {
        Self {
            cgroup: terms.limit.path.clone(),
            file: terms.limit.file.name(),
            limit_bytes: terms.limit.limit,
            undroppable_bytes: terms.undroppable,
            parts: terms.parts.clone(),
        }
    }
}

impl From<&engine::ReadCache> for ReadCache {
    fn from(cache: &engine::ReadCache) -> Self {
        Self {
            lower_bytes: cache.lower,
            likely_bytes: cache.likely,
            upper_bytes: cache.upper,
            how: match cache.how {
                engine::How::Refaults => "refaults",
                engine::How::Experience => "experience",
                engine::How::ActiveList => "active-list",
                engine::How::NeverSqueezed => "never-squeezed",
                engine::How::Unknown => "unknown",
            },
            text: cache.text.clone(),
        }
    }
}

impl From<&engine::HeadroomLimit> for Limit {
    fn from(limit: &engine::HeadroomLimit) -> Self {
        let bounded = |room: i64| Some(room).filter(|room| *room < i64::MAX).map(SignedBytes::new);
        Self {
            kind: limit.kind.name(),
            name: limit.name.clone(),
            room_bytes: bounded(limit.bounds.best()),
            lower_bytes: limit.bounds.lower.map(SignedBytes::new),
            likely_bytes: limit.bounds.likely.map(SignedBytes::new),
            upper_bytes: bounded(limit.bounds.upper),
            holds: limit.holds,
            text: limit.text.clone(),
        }
    }
}

impl From<&engine::Short> for Short {
    fn from(short: &engine::Short) -> Self {
        Self {
            rule: short.rule,
            from_s: short.when.map(|when| when.from.as_secs_f64()),
            to_s: short.when.map(|when| when.to.as_secs_f64()),
            text: short.text.clone(),
        }
    }
}

impl From<&engine::Cycle> for Cycle {
    fn from(cycle: &engine::Cycle) -> Self {
        Self {
            asked_s: cycle.asked,
            watched_s: cycle.watched,
            present: cycle.present,
            has_weekend: cycle.has_weekend,
            is_whole: cycle.is_whole,
            text: cycle.text.clone(),
        }
    }
}

impl From<&engine::Added> for Added {
    fn from(added: &engine::Added) -> Self {
        Self {
            left_bytes: added.left.map(SignedBytes::new),
            left_lower_bytes: added.bounds.lower.map(SignedBytes::new),
            left_upper_bytes: SignedBytes::new(added.bounds.upper),
            text: sentences::effects(added),
        }
    }
}

impl Article {
    fn new(article: &engine::Article, timeline: &Timeline) -> Self {
        Self {
            bytes: SignedBytes::new(article.bytes),
            at_s: article.at.map(Span::as_secs_f64),
            at: article.at.and_then(|at| wall(timeline, at)),
            kept_free_bytes: article.kept_free,
            unwritten_bytes: article.written,
            page_cache_bytes: article.cache,
            differs: article.differs,
            text: article.text.clone(),
        }
    }
}
