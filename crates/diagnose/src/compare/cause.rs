//! Which recorded fact explains what changed; none where none does.
//!
//! Asked in this order: a setting that a finding itself rests on and that differs; a setting or the machine's size that
//! bears on the finding; a setting that bears on what moved most. A setting that merely differs explains nothing.

use timeline::facts::{
    DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO, DIRTY_BYTES, DIRTY_EXPIRE, DIRTY_RATIO,
    DIRTY_WRITEBACK, MIN_FREE, MIN_UNMAPPED, NR_HUGEPAGES, NUMA_BALANCING, OVERCOMMIT_KBYTES,
    OVERCOMMIT_MEMORY, OVERCOMMIT_RATIO, SWAPPINESS, THP_DEFRAG, THP_ENABLED, THP_MAX_PTES_NONE,
    VFS_CACHE_PRESSURE, WATERMARK_SCALE, ZONE_RECLAIM_MODE,
};
use timeline::signals::{
    COMPACT_STALL, MEM_ANON_HUGE, MEM_DIRTY, MEM_SLAB_RECLAIMABLE, MEM_TOTAL, PSWPIN, PSWPOUT,
    REFAULT_FILE, SWAP_TOTAL, THP_FAULT_ALLOC, THP_FAULT_FALLBACK, ZONE_RECLAIM_FAILED,
};
use timeline::{Fact, Gauge, Signal, SignalDef};
use units::Bytes;

use super::findings::{FindingChange, Turn};
use super::memory::AmountChange;
use super::rates::RateChange;
use super::settings::{FactChange, RAM, SWAP};
use crate::diagnosis::Diagnosis;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

/// How sure it is that a fact explains what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sureness {
    /// It can, and so may something else.
    May,
    /// It is known to do just this, and nothing else that was recorded is.
    Explains,
    /// The finding itself rests on it.
    Is,
}

/// What explains the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Names of the facts that differ and explain it.
    pub facts: Vec<&'static str>,
    /// How sure.
    pub sureness: Sureness,
    /// Id of the finding that it explains; `None` where it explains what moved.
    pub finding: Option<&'static str>,
}

/// When dirty pages are written, and when writers wait.
const DIRTY_LIMITS: &[Fact] = &[
    DIRTY_BYTES,
    DIRTY_RATIO,
    DIRTY_BACKGROUND_BYTES,
    DIRTY_BACKGROUND_RATIO,
    DIRTY_EXPIRE,
    DIRTY_WRITEBACK,
];

/// What a setting does to findings. `Explains`: switching it is the disease or its cure; `May`: it makes it likelier.
const OF_FINDINGS: &[(Sureness, &[Fact], &[&str])] = &[
    (
        Sureness::Explains,
        &[ZONE_RECLAIM_MODE],
        &["node-reclaim-on"],
    ),
    (Sureness::Explains, &[THP_ENABLED], &["thp-bloat"]),
    (Sureness::Explains, &[NR_HUGEPAGES], &["hugetlb-unused"]),
    (
        Sureness::Explains,
        &[OVERCOMMIT_MEMORY, OVERCOMMIT_RATIO, OVERCOMMIT_KBYTES],
        &["overcommit-limit"],
    ),
    (
        Sureness::Explains,
        &[MIN_FREE, WATERMARK_SCALE],
        &["min-free-too-large", "min-free-too-small"],
    ),
    (Sureness::May, DIRTY_LIMITS, &["dirty-throttle"]),
    (
        Sureness::May,
        &[SWAPPINESS],
        &[
            "swappiness-misfit",
            "exec-pages-evicted",
            "page-cache-thrash",
            "swap-thrash",
        ],
    ),
    (
        Sureness::May,
        &[VFS_CACHE_PRESSURE],
        &["dentry-inode-bloat", "slab-leak"],
    ),
    (
        Sureness::May,
        &[THP_DEFRAG],
        &["compaction-stall", "direct-reclaim-stall"],
    ),
    (
        Sureness::May,
        &[THP_ENABLED, THP_MAX_PTES_NONE],
        &["compaction-stall", "thp-bloat"],
    ),
    (Sureness::May, &[MIN_UNMAPPED], &["node-reclaim-on"]),
    (Sureness::May, &[NUMA_BALANCING], &["numa-imbalance"]),
];

/// Findings that less RAM makes likelier.
const WANT: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "exec-pages-evicted",
    "kswapd-saturated",
    "no-swap-risk",
    "oom-global",
    "page-cache-thrash",
    "swap-full",
    "swap-thrash",
];

/// Findings that less swap makes likelier.
const WANT_OF_SWAP: &[&str] = &["no-swap-risk", "oom-global", "swap-full"];

/// A few settings and names of rates and amounts.
type Moves = (&'static [Fact], Vec<&'static str>);

/// What a setting moves.
fn of_signals() -> [Moves; 6] {
    let names = |defs: &[&'static SignalDef]| defs.iter().map(|def| def.name).collect();
    [
        (
            &[THP_ENABLED, THP_DEFRAG],
            names(&[
                MEM_ANON_HUGE.def(),
                THP_FAULT_ALLOC.def(),
                THP_FAULT_FALLBACK.def(),
                COMPACT_STALL.def(),
            ]),
        ),
        (
            &[ZONE_RECLAIM_MODE],
            names(&[ZONE_RECLAIM_FAILED.def(), REFAULT_FILE.def()]),
        ),
        (&[SWAPPINESS], names(&[PSWPIN.def(), PSWPOUT.def()])),
        (&[NR_HUGEPAGES], vec!["hugetlb_used", "hugetlb_unused"]),
        (&[VFS_CACHE_PRESSURE], names(&[MEM_SLAB_RECLAIMABLE.def()])),
        (DIRTY_LIMITS, names(&[MEM_DIRTY.def()])),
    ]
}

/// What differs between two sources.
pub(super) struct Differences<'a> {
    pub(super) before: &'a Diagnosis,
    pub(super) after: &'a Diagnosis,
    pub(super) findings: &'a [FindingChange],
    pub(super) facts: &'a [FactChange],
    pub(super) amounts: &'a [AmountChange],
    pub(super) rates: &'a [RateChange],
    /// What was asked, before and after.
    pub(super) sides: (&'a Evidence<'a>, &'a Evidence<'a>),
    /// Whether one side was watched for much longer, and ill for the smaller part of that.
    pub(super) is_diluted: bool,
}

/// The fact that explains what changed.
pub(super) fn find(it: &Differences<'_>) -> Option<Cause> {
    let of_weight = || it.turned().filter(|f| f.severity() > Some(Severity::Info));
    it.turned()
        .find_map(|finding| it.rests_on(finding))
        .or_else(|| it.turned().find_map(|f| it.bears_on(f, Sureness::Explains)))
        // What a mere note tells of is not worth a guess.
        .or_else(|| of_weight().find_map(|f| it.bears_on(f, Sureness::May)))
        .or_else(|| it.moves())
}

impl Differences<'_> {
    fn differing(&self, names: &[&str]) -> Vec<&'static str> {
        let differing = self.facts.iter().filter(|fact| fact.differs());
        let named = differing.filter(|fact| names.contains(&fact.name));
        named.map(|fact| fact.name).collect()
    }

    /// The finding on the side where it is graver.
    pub(super) fn graver(&self, id: &str) -> Option<&Finding> {
        let find = |side: &'_ Diagnosis| side.findings.iter().position(|f| f.id == id);
        let before = find(self.before).map(|at| &self.before.findings[at]);
        let after = find(self.after).map(|at| &self.after.findings[at]);
        match (before, after) {
            (Some(before), Some(after)) if before.severity > after.severity => Some(before),
            (before, after) => after.or(before),
        }
    }

    /// Settings that the finding shows as evidence, and that differ.
    fn rests_on(&self, change: &FindingChange) -> Option<Cause> {
        let names = self.settings_of(change.id);
        self.cause(self.differing(&names), Sureness::Is, Some(change.id))
    }

    fn bears_on(&self, change: &FindingChange, sureness: Sureness) -> Option<Cause> {
        let bearing = OF_FINDINGS
            .iter()
            .filter(|(sure, _, ids)| *sure == sureness && ids.contains(&change.id));
        let mut names: Vec<&str> = bearing
            .flat_map(|(_, facts, _)| facts.iter().map(|fact| fact.name))
            .collect();
        if sureness == Sureness::May {
            names.extend(self.shortage(change));
        }
        self.cause(self.differing(&names), sureness, Some(change.id))
    }

    /// RAM or swap, where the side on which it is graver has less of it, and less makes it likelier.
    fn shortage(&self, change: &FindingChange) -> Vec<&'static str> {
        let is_graver_after = match (&change.before, &change.after) {
            (Some(before), Some(after)) => after.severity > before.severity,
            (before, _) => before.is_none(),
        };
        let (poor, rich) = match is_graver_after {
            true => (self.sides.1, self.sides.0),
            false => (self.sides.0, self.sides.1),
        };
        let less = |signal: Signal<Gauge<Bytes>>| {
            let (poor, rich) = (poor.timeline.last(signal), rich.timeline.last(signal));
            poor.zip(rich).is_some_and(|(poor, rich)| poor < rich)
        };
        let mut names = Vec::new();
        if WANT.contains(&change.id) && less(MEM_TOTAL) {
            names.push(RAM);
        }
        if WANT_OF_SWAP.contains(&change.id) && less(SWAP_TOTAL) {
            names.push(SWAP);
        }
        names
    }

    /// A setting that differs and moves what moved most, where no finding of weight is to be explained.
    fn moves(&self) -> Option<Cause> {
        if self.turned().any(|it| it.severity() > Some(Severity::Info)) {
            return None;
        }
        let amount = self.top_amount().map(|amount| amount.name.as_str());
        let rate = self.top_rate().map(|rate| rate.name);
        let moved: Vec<&str> = amount.into_iter().chain(rate).collect();
        of_signals().iter().find_map(|(facts, signals)| {
            signals.iter().find(|name| moved.contains(*name))?;
            let names: Vec<&str> = facts.iter().map(|fact| fact.name).collect();
            self.cause(self.differing(&names), Sureness::Explains, None)
        })
    }

    /// Roots that one side found and the other looked for in vain, or more gravely; the gravest first.
    pub(super) fn turned(&self) -> impl Iterator<Item = &FindingChange> {
        let roots = self.findings.iter().filter(|it| it.is_root());
        roots.filter(|it| !matches!(it.turn(), Turn::Same | Turn::Unknown))
    }

    /// The amount of memory that differs most.
    pub(super) fn top_amount(&self) -> Option<&AmountChange> {
        let mut amounts = self.amounts.iter();
        amounts.find(|amount| amount.is_clear() && amount.holds_memory())
    }

    /// The rate that differs most.
    pub(super) fn top_rate(&self) -> Option<&RateChange> {
        self.rates.iter().find(|rate| rate.is_clear())
    }

    /// Settings that a finding shows as evidence.
    pub(super) fn settings_of(&self, id: &str) -> Vec<&'static str> {
        let evidence = self.graver(id).map(|finding| finding.evidence.iter());
        let measured = evidence.into_iter().flatten();
        let measured = measured.filter_map(|line| line.measured.as_ref());
        let settings = measured.filter(|it| it.unit == Finding::SETTING);
        settings.map(|it| it.signal).collect()
    }

    fn cause(
        &self,
        facts: Vec<&'static str>,
        sureness: Sureness,
        finding: Option<&'static str>,
    ) -> Option<Cause> {
        (!facts.is_empty()).then_some(Cause {
            facts,
            sureness,
            finding,
        })
    }
}
