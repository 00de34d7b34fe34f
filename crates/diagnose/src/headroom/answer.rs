//! The judgement: whether the demand fits, what binds, what adding it would do; and its sentences.

use schemars::JsonSchema;
use serde::Serialize;
use timeline::signals::{MEM_FREE, MEM_SLAB_RECLAIMABLE};
use units::{Bytes, Count, Ratio};

use super::{
    Article, Bounds, Cycle, DemandKind, Headroom, HeadroomLimit, LimitKind, Question, Room, Short,
    Terms, Unknown, signed,
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
    /// The effect, in sentences.
    pub text: Vec<String>,
}

/// All figures that the judgement rests on.
pub(super) struct HeadroomFacts<'a> {
    pub(super) cx: &'a Evidence<'a>,
    pub(super) question: &'a Question,
    pub(super) ram: Option<Bytes>,
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
    ram: Option<Bytes>,
    cycle: Cycle,
    short: Vec<Short>,
    unknown: Unknown,
) -> Headroom {
    Headroom {
        answer: FitAnswer::Unknown,
        headline: format!("Cannot tell: {}.", unknown.text),
        binds: String::new(),
        remarks: Vec::new(),
        ram,
        room: None,
        terms: None,
        then: Vec::new(),
        limits: Vec::new(),
        short,
        cycle,
        added: None,
        smallest_ram: None,
        wanted_at_once: None,
        article: None,
        unknown: vec![unknown],
    }
}

impl HeadroomFacts<'_> {
    pub(super) fn judged(self) -> Headroom {
        let answer = self.answer();
        Headroom {
            headline: self.headline(answer),
            binds: self.binds(),
            remarks: self.remarks(answer),
            added: self.added(),
            smallest_ram: self.smallest_ram(),
            wanted_at_once: self.at_once.map(|bytes| bytes + self.added_bytes()),
            answer,
            ram: self.ram,
            room: self.room,
            terms: self.terms,
            then: self.then,
            limits: self.limits,
            short: self.short,
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
        let margin = self.ram?.share(MARGIN).min(MARGIN_AT_MOST);
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

    fn headline(&self, answer: FitAnswer) -> String {
        let Some(room) = &self.room else {
            return "Cannot tell: nothing was measured.".to_owned();
        };
        let what = match self.question.add {
            Some(add) => format!("{} of {}", add.bytes, add.kind.words()),
            None => "What runs".to_owned(),
        };
        let says = match (answer, self.question.add.is_some()) {
            (FitAnswer::Fits, true) => format!("{what} fits"),
            (FitAnswer::Fits, false) => "More fits".to_owned(),
            (FitAnswer::FitsSoFar, is_added) => self.so_far(is_added.then_some(&*what)),
            (FitAnswer::Tight, true) if self.is_lacking_at_worst() => {
                format!("{what} fits most of the time, and not at the worst")
            }
            (FitAnswer::Tight, true) => format!("{what} fits, but hardly"),
            (FitAnswer::Tight, false) if self.is_lacking_at_worst() => {
                "More fits most of the time, and none at the worst".to_owned()
            }
            (FitAnswer::Tight, false) => "Hardly any more fits".to_owned(),
            (FitAnswer::DoesNotFit, _) => format!("{what} does not fit"),
            (FitAnswer::Unknown, true) => format!("Cannot tell whether {what} fits"),
            (FitAnswer::Unknown, false) => "Cannot tell how much more fits".to_owned(),
        };
        let (least, usual) = (self.bounded(room.least), self.bounded(room.usual));
        if self.cx.is_single_sample() {
            return format!("{says}: headroom {} in that one sample.", words(least));
        }
        let percentile = self.question.quantile.get() * 100.0;
        format!(
            "{says}: headroom {} at worst, {} usually (p{}).",
            words(least),
            words(usual),
            (percentile * 100.0).round() / 100.0
        )
    }

    /// What is known after too short a time, and what would settle the rest.
    fn so_far(&self, added: Option<&str>) -> String {
        let Cycle { watched, asked, .. } = self.cycle;
        let least = self.room.as_ref().and_then(|room| {
            let least = self.bounded(room.least).likely_or_lower()?;
            u64::try_from(least.saturating_sub(self.demand())).ok()
        });
        let spare = least.map(Bytes::new).filter(|spare| *spare > Bytes::ZERO);
        let fits = match (added, spare) {
            (Some(what), Some(spare)) => {
                format!("{what} fits in the {watched} watched, {spare} to spare")
            }
            (Some(what), None) => format!("{what} just fits in the {watched} watched"),
            (None, _) => format!("More fits in the {watched} watched"),
        };
        format!("{fits}; a cycle of {asked} would settle it")
    }

    fn binds(&self) -> String {
        match self.binding() {
            Some(limit) => format!("{}: {}.", limit.kind.name(), limit.text),
            None => {
                let Some((room, ram)) = self.room.as_ref().zip(self.ram) else {
                    return String::new();
                };
                let swap = match room.swap_left {
                    Some(swap) if swap > Bytes::ZERO => format!("; then {swap} of swap"),
                    Some(_) => "; no swap".to_owned(),
                    None => String::new(),
                };
                format!(
                    "RAM ({ram}): {} left after dropping all cache{swap}.",
                    signed(room.to_cliff)
                )
            }
        }
    }

    fn remarks(&self, answer: FitAnswer) -> Vec<String> {
        let mut remarks: Vec<String> = Vec::new();
        remarks.extend(self.shortages());
        remarks.extend(self.without_node_reclaim());
        remarks.extend(self.tight_groups());
        if answer == FitAnswer::Unknown
            && let Some(room) = &self.room
        {
            let least = self.bounded(room.usual);
            let lower = least.lower.map_or_else(
                || "its lower bound is unknown".to_owned(),
                |lower| format!("{} if all re-read cache is needed", signed(lower)),
            );
            remarks.push(format!(
                "The deciding figure is unknown: headroom is at most {}, and {lower}.",
                signed(least.upper)
            ));
        }
        remarks.extend(self.residue());
        if answer == FitAnswer::FitsSoFar {
            remarks.push(format!(
                "Watched: {}. What runs at other times may need more; where that was all of its \
                 work, say so (--cycle {:.0}s).",
                self.cycle.text,
                self.cycle.watched.as_secs_f64().floor()
            ));
        } else if !self.cycle.is_whole && matches!(answer, FitAnswer::Fits | FitAnswer::Tight) {
            remarks.push(format!(
                "Not confirmed: {}. What runs at other times may need more.",
                self.cycle.text
            ));
        }
        remarks
    }

    /// What each rule found, and how often.
    fn shortages(&self) -> Vec<String> {
        let mut by_rule: Vec<(&Short, u64)> = Vec::new();
        for short in &self.short {
            match by_rule.iter_mut().find(|(known, _)| known.rule == short.rule) {
                Some((_, times)) => *times += 1,
                None => by_rule.push((short, 1)),
            }
        }
        let findings = by_rule.into_iter().map(|(short, times)| {
            let often = match times {
                1 => String::new(),
                _ => format!(", {} times", Count::new(times)),
            };
            format!("Memory was short already ({}{often}): {}", short.rule, short.text)
        });
        findings.collect()
    }

    /// Remark where a node that reclaims its own pages limits headroom: more RAM would not cure that.
    fn without_node_reclaim(&self) -> Option<String> {
        let room = self.room.as_ref()?;
        self.is_bound_by_a_node().then(|| {
            format!(
                "No lack of RAM: after sysctl -w vm.zone_reclaim_mode=0 a node takes memory of the \
                 others before it gives up its own cache, and headroom is {} at worst.",
                words(room.least)
            )
        })
    }

    fn is_bound_by_a_node(&self) -> bool {
        self.binding().is_some_and(|limit| limit.kind == LimitKind::Node)
    }

    /// Cgroups with a limit of their own that leaves too little room for the demand: it may be meant for one of them.
    fn tight_groups(&self) -> Vec<String> {
        let Some(add) = self.question.add else {
            return Vec::new();
        };
        let others =
            self.limits.iter().filter(|limit| limit.kind == LimitKind::Cgroup && !limit.holds);
        others
            .filter(|limit| limit.bounds.upper < self.demand())
            .map(|limit| format!("In there {} more do not fit: {}.", add.bytes, limit.text))
            .collect()
    }

    /// Remark on page cache that is neither free nor available, and that nothing explains.
    fn residue(&self) -> Option<String> {
        let (terms, index) = (self.terms.as_ref()?, self.room.as_ref()?.worst);
        let timeline = self.cx.timeline;
        let cache = self.cx.page_cache().ok()?.at(index)?;
        let all = timeline.at(MEM_FREE, index)?
            + cache
            + timeline.at(MEM_SLAB_RECLAIMABLE, index).unwrap_or_default();
        let explained = terms.available + terms.floor.1 + terms.left_out.unwrap_or_default();
        let residue = all.saturating_sub(explained);
        (terms.available_is_from_kernel && residue > self.ram?.share(RESIDUE)).then(|| {
            format!(
                "{residue} of free memory and page cache are not in available: locked files, or \
                 cache that is on no list. Find out what it is before counting on it."
            )
        })
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
        let beyond = match add.kind {
            DemandKind::Cache => beyond,
            // Past the cliff there is no page cache left to take.
            _ => beyond.saturating_sub(past_cliff),
        };
        let swap = room.swap_left;
        let mut text = Vec::new();
        if left.is_none() {
            let most = least.upper.saturating_sub(wanted);
            let lacking = Bytes::new(most.unsigned_abs());
            let most = signed(most);
            text.push(match least.lower {
                _ if least.upper < wanted => {
                    format!("At the worst moment {lacking} or more would be lacking.")
                }
                Some(lower) => format!(
                    "At the worst moment {} to {most} would be left.",
                    signed(lower.saturating_sub(wanted))
                ),
                None => format!("At the worst moment at most {most} would be left."),
            });
        }
        text.push(add.kind.takes().to_owned());
        if left.is_some() && beyond > Bytes::ZERO {
            text.push(match add.kind {
                DemandKind::Cache => format!(
                    "At worst {beyond} of it, or of the cache that is there, would be dropped and \
                     read again from disk."
                ),
                _ => format!("At worst it would take {beyond} of cache that is needed."),
            });
        }
        if past_cliff > Bytes::ZERO && add.kind != DemandKind::Cache {
            text.push(match swap {
                Some(swap) if swap >= past_cliff => {
                    format!("At worst {past_cliff} would go to swap ({swap} left).")
                }
                Some(Bytes::ZERO) => format!(
                    "At worst, {past_cliff} would not fit, and no swap is left: the OOM killer \
                     would run."
                ),
                Some(swap) => format!(
                    "At worst, {past_cliff} would not fit, and only {swap} of swap is left: the \
                     OOM killer would run."
                ),
                None => {
                    format!("At worst, {past_cliff} would not fit into RAM; swap is unknown.")
                }
            });
        }
        let without = |room: i64| room.saturating_sub(wanted);
        let bounds = Bounds {
            lower: least.lower.map(without),
            likely: least.likely.map(without),
            upper: without(least.upper),
        };
        Some(Added { left, bounds, text })
    }

    /// RAM that the worst moment needs, with the demand and without a margin: the likely and the certain figure.
    /// `None` where memory was short, as it is unknown how much was lacking.
    fn smallest_ram(&self) -> Option<(Option<Bytes>, Option<Bytes>)> {
        let ram = i64::try_from(self.ram?.get()).ok()?;
        let least = self.room.as_ref()?.least;
        if !self.short.is_empty() || self.is_bound_by_a_node() {
            return None;
        }
        let needs = |room: i64| {
            let bytes = ram.saturating_sub(room).saturating_add(self.demand());
            Bytes::new(u64::try_from(bytes).unwrap_or(0))
        };
        let both = (least.likely.map(needs), least.lower.map(needs));
        (both != (None, None)).then_some(both)
    }
}

impl DemandKind {
    /// Its name in a sentence: `process memory` in `500 MiB of process memory`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Anon => "process memory",
            Self::Cache => "page cache",
            Self::Tmpfs => "tmpfs",
        }
    }

    const fn takes(self) -> &'static str {
        match self {
            Self::Anon => {
                "Process memory takes free memory first, then page cache; only swap takes it back."
            }
            Self::Cache => {
                "Page cache is dropped on demand: a demand too large for it slows reads and kills \
                 no process."
            }
            Self::Tmpfs => {
                "Files in a tmpfs are held like process memory until they are deleted; only swap \
                 takes them back."
            }
        }
    }
}

/// `1.2 GiB`, or `0.4 to 1.2 GiB` where there are bounds only.
fn words(bounds: Bounds) -> String {
    match (bounds.likely, bounds.lower) {
        (Some(likely), _) => signed(likely),
        (None, Some(lower)) if lower == bounds.upper => signed(lower),
        (None, Some(lower)) => format!("{} to {}", signed(lower), signed(bounds.upper)),
        (None, None) => format!("at most {}", signed(bounds.upper)),
    }
}
