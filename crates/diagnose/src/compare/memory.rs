//! Where memory was on each side, at its typical sample, and whether levels differ by more than they do within a side.
//!
//! The typical sample is the one that is nearest to the median of every term. It is a real sample, so its terms add
//! up to MemTotal, which medians of single terms do not.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use timeline::{
    Entity,
    signals::{
        COMMITTED_AS, MEM_ANON_HUGE, MEM_AVAILABLE, MEM_DIRTY, MEM_SLAB_RECLAIMABLE, NODE_FREE,
        SWAP_USED, ZONE_HIGH,
    },
};
use units::{Bytes, Quantity, Ratio, SignedBytes, Span};

use super::spread::{Significance, Spread, contrast};
use crate::accounting::{Accounting, TermKind, account, owners_of_anonymous};
use crate::evidence::Evidence;

/// What kind an amount is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AmountKind {
    /// A part of RAM: these add up on each side.
    Term,
    /// An amount beside them.
    Level,
    /// Anonymous memory of a service or of the programs of one name, at the typical sample.
    Owner,
}

/// An amount on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct AmountChange {
    /// Its kind.
    pub kind: AmountKind,
    /// Id of the term, name of the signal, or name of the owner (untrusted text).
    pub name: String,
    /// Its label; for an owner a name from the host.
    pub label: String,
    /// Bytes before; `None` where the source lacks it. Only the unaccounted remainder may be below zero.
    pub before: Option<i64>,
    /// Bytes after.
    pub after: Option<i64>,
    /// `before` as a share of RAM.
    pub before_share: Option<Ratio>,
    /// `after` as a share of RAM.
    pub after_share: Option<Ratio>,
    /// Whether it differs by more than noise; `None` where one side does not have it.
    pub significance: Option<Significance>,
}

impl AmountChange {
    /// The change as a share of RAM, so that hosts of different size can be compared.
    pub fn share_changed(&self) -> Option<f64> {
        Some(self.after_share?.get() - self.before_share?.get())
    }

    /// How it changed, in words; `None` where one side does not have it.
    pub fn change(&self) -> Option<String> {
        let change = SignedBytes::between(self.before?, self.after?);
        Some(format!("{change:+}"))
    }

    /// Whether it changed by more than noise, and by enough to matter.
    pub fn is_clear(&self) -> bool {
        self.significance == Some(Significance::Clear)
    }

    /// The size of the change relative to RAM, by which the list is ordered.
    fn size(&self) -> f64 {
        self.share_changed().map_or(0.0, f64::abs)
    }

    /// Whether it is memory in use: not free memory, nor a promise.
    pub(super) fn holds_memory(&self) -> bool {
        match self.kind {
            AmountKind::Term => {
                ![TermKind::Free, TermKind::Pcp].map(TermKind::id).contains(&self.name.as_str())
            }
            AmountKind::Level => [MEM_ANON_HUGE.def(), SWAP_USED.def(), MEM_DIRTY.def()]
                .iter()
                .any(|def| def.name == self.name),
            AmountKind::Owner => false,
        }
    }

    /// Whether it deserves a line: it changed, or that is unknown; where only one side has it, it is large enough to
    /// matter.
    pub fn is_worth_a_line(&self) -> bool {
        let share = self.before_share.or(self.after_share);
        match self.significance {
            Some(significance) => significance != Significance::Noise,
            None => share.is_some_and(|share| share >= CHANGE_SHARE_MIN),
        }
    }
}

/// A smaller share of RAM does not matter. An engineering choice: counters of one sample drift by as much.
const CHANGE_SHARE_MIN: Ratio = Ratio::from_percent(1.0);
/// On a large host this size is enough: a program that takes that much more deserves a line anywhere.
const SIZE_MIN: Bytes = Bytes::from_mib(100);

/// The share of RAM from which a change matters.
pub(super) fn least(ram: Bytes) -> f64 {
    let size = SIZE_MIN.ratio_of(ram).map_or(CHANGE_SHARE_MIN.get(), Ratio::get);
    CHANGE_SHARE_MIN.get().min(size)
}

/// At most this many samples are accounted for, evenly spaced over the source.
const SAMPLES_MAX: usize = 120;
/// At most this many owners are read on each side; smaller ones have too little memory to matter.
const OWNERS_MAX: usize = 30;

/// The amounts of one side.
struct SideMemory {
    ram: Bytes,
    typical: Accounting,
    terms: BTreeMap<TermKind, (&'static str, i64, Spread)>,
    levels: BTreeMap<String, (String, Spread)>,
    owners: BTreeMap<String, i64>,
}

/// All amounts of both sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// The typical sample before, on its timeline's clock; `None` where the source has no MemTotal.
    pub typical_before: Option<Span>,
    /// The typical sample after.
    pub typical_after: Option<Span>,
    /// The amounts, the largest change relative to RAM first.
    pub amounts: Vec<AmountChange>,
}

impl Memory {
    pub(super) fn compare(before: &Evidence<'_>, after: &Evidence<'_>) -> Self {
        let (before, after) = (SideMemory::measure(before), SideMemory::measure(after));
        let at = |side: &Option<SideMemory>| side.as_ref().map(|side| side.typical.at);
        let mut amounts = Vec::new();
        if let (Some(before), Some(after)) = (&before, &after) {
            terms(before, after, &mut amounts);
            levels(before, after, &mut amounts);
            owners(before, after, &mut amounts);
        }
        amounts.sort_by(|a, b| {
            let by_size = b.size().total_cmp(&a.size());
            by_size.then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name)))
        });
        Self { typical_before: at(&before), typical_after: at(&after), amounts }
    }
}

impl SideMemory {
    fn measure(cx: &Evidence<'_>) -> Option<Self> {
        let samples = accounted_samples(cx);
        let typical = typical(&samples)?;
        let index = typical.index;
        let terms = terms_of(typical).map(|(kind, label, bytes)| {
            let values = samples.iter().filter_map(|sample| size_of(sample, kind));
            let spread = Spread::from_values(values, None)?;
            Some((kind, (label, bytes, spread)))
        });
        let owners = owners_of_anonymous(cx, index).map_or_else(BTreeMap::new, |owners| {
            let owners = owners.owners.into_iter().take(OWNERS_MAX);
            owners.map(|o| (o.name, signed(o.bytes))).collect()
        });
        Some(Self {
            ram: typical.total,
            terms: terms.collect::<Option<_>>()?,
            levels: level_tracks(cx),
            owners,
            typical: typical.clone(),
        })
    }

    fn share(&self, bytes: i64) -> Option<Ratio> {
        #[allow(clippy::cast_precision_loss)] // read to three digits
        let (part, ram) = (bytes as f64, self.ram.as_f64());
        (ram > 0.0).then(|| Ratio::new(part / ram))
    }
}

/// Accounts for RAM at samples that are evenly spaced over the source.
fn accounted_samples(cx: &Evidence<'_>) -> Vec<Accounting> {
    let samples = cx.timeline.len();
    let step = samples.div_ceil(SAMPLES_MAX).max(1);
    let indices = (0..samples).step_by(step);
    indices.filter_map(|index| account(cx, index).ok()).collect()
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

/// All terms with their names and sizes, the remainder included.
fn terms_of(accounting: &Accounting) -> impl Iterator<Item = (TermKind, &'static str, i64)> + '_ {
    let remainder = TermKind::Unaccounted;
    accounting.terms.iter().map(|term| (term.kind, term.label, signed(term.bytes))).chain([(
        remainder,
        remainder.label(),
        accounting.unaccounted_bytes,
    )])
}

#[allow(clippy::cast_precision_loss)] // compared to three digits
fn size_of(accounting: &Accounting, kind: TermKind) -> Option<f64> {
    match kind {
        TermKind::Unaccounted => Some(accounting.unaccounted_bytes as f64),
        kind => accounting.term(kind).map(Bytes::as_f64),
    }
}

/// The sample that is nearest to the median of every term.
fn typical(samples: &[Accounting]) -> Option<&Accounting> {
    let kinds: BTreeSet<TermKind> =
        samples.iter().flat_map(terms_of).map(|(kind, ..)| kind).collect();
    let mut medians = Vec::new();
    for kind in kinds {
        let values = samples.iter().filter_map(|sample| size_of(sample, kind));
        medians.push((kind, Spread::from_values(values, None)?.median()));
    }
    let distance = |sample: &Accounting| -> f64 {
        medians
            .iter()
            .filter_map(|(kind, median)| Some((size_of(sample, *kind)? - median).abs()))
            .sum()
    };
    samples.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Levels that are not terms, by name, over all samples.
fn level_tracks(cx: &Evidence<'_>) -> BTreeMap<String, (String, Spread)> {
    let mut levels = BTreeMap::new();
    let mut put = |name: &str, label: String, values: &[Option<f64>]| {
        if let Some(spread) = Spread::from_values(values.iter().flatten().copied(), None) {
            levels.insert(name.to_owned(), (label, spread));
        }
    };
    for (signal, label) in [
        (MEM_AVAILABLE, "available (the kernel's estimate)"),
        (MEM_ANON_HUGE, "anonymous memory in huge pages"),
        (MEM_DIRTY, "dirty page cache"),
        (MEM_SLAB_RECLAIMABLE, "kernel caches that can shrink"),
        (COMMITTED_AS, "promised to programs"),
    ] {
        if let Some(track) = cx.timeline.gauge(signal) {
            put(signal.def().name, label.to_owned(), track.values());
        }
    }
    if let Ok(used) = cx.swap_used() {
        put(SWAP_USED.def().name, "swap used".to_owned(), used.values());
    }
    if let Ok(floor) = cx.floor() {
        let label = "floor of free memory".to_owned();
        put(ZONE_HIGH.def().name, label, floor.high.values());
    }
    let nodes: Vec<_> = cx.timeline.entities(Entity::Node).collect();
    // The only node of a host is the host itself.
    for node in nodes.iter().filter(|_| nodes.len() > 1) {
        if let Some(free) = cx.timeline.gauge_of(node, NODE_FREE) {
            let name = format!("{} {}", NODE_FREE.def().name, node.key);
            put(&name, format!("free on node {}", node.key), free.values());
        }
    }
    levels
}

fn terms(before: &SideMemory, after: &SideMemory, amounts: &mut Vec<AmountChange>) {
    let kinds: BTreeSet<TermKind> =
        before.terms.keys().chain(after.terms.keys()).copied().collect();
    for kind in kinds {
        let (old, new) = (before.terms.get(&kind), after.terms.get(&kind));
        let label = old.or(new).map_or(kind.label(), |(label, _, _)| label);
        let spreads = old.map(|(_, _, s)| s).zip(new.map(|(_, _, s)| s));
        amounts.push(amount(
            AmountKind::Term,
            (kind.id(), label),
            (before, old.map(|(_, bytes, _)| *bytes)),
            (after, new.map(|(_, bytes, _)| *bytes)),
            spreads,
        ));
    }
}

fn levels(before: &SideMemory, after: &SideMemory, amounts: &mut Vec<AmountChange>) {
    let names: BTreeSet<&String> = before.levels.keys().chain(after.levels.keys()).collect();
    for name in names {
        let (old, new) = (before.levels.get(name), after.levels.get(name));
        let label = old.or(new).map_or(name, |(label, _)| label);
        #[allow(clippy::cast_possible_truncation)] // bytes of a host
        let median = |level: &(String, Spread)| level.1.median() as i64;
        amounts.push(amount(
            AmountKind::Level,
            (name, label),
            (before, old.map(median)),
            (after, new.map(median)),
            old.map(|(_, s)| s).zip(new.map(|(_, s)| s)),
        ));
    }
}

fn owners(before: &SideMemory, after: &SideMemory, amounts: &mut Vec<AmountChange>) {
    // A side without processes does not show how much memory they had.
    if before.owners.is_empty() || after.owners.is_empty() {
        return;
    }
    let names: BTreeSet<&String> = before.owners.keys().chain(after.owners.keys()).collect();
    for name in names {
        let (old, new) = (before.owners.get(name), after.owners.get(name));
        amounts.push(amount(
            AmountKind::Owner,
            (name, name),
            (before, old.copied()),
            (after, new.copied()),
            None,
        ));
    }
}

fn amount(
    kind: AmountKind,
    (name, label): (&str, &str),
    (old_side, before): (&SideMemory, Option<i64>),
    (new_side, after): (&SideMemory, Option<i64>),
    spreads: Option<(&Spread, &Spread)>,
) -> AmountChange {
    let mut change = AmountChange {
        kind,
        name: name.to_owned(),
        label: label.to_owned(),
        before,
        after,
        before_share: before.and_then(|bytes| old_side.share(bytes)),
        after_share: after.and_then(|bytes| new_side.share(bytes)),
        significance: None,
    };
    change.significance = change.share_changed().map(|moved| {
        let least = moved.abs() >= least(old_side.ram.max(new_side.ram));
        // Where the hosts' sizes differ these are shares of RAM, so the spreads are compared as shares too.
        match spreads.filter(|_| least) {
            _ if !least => Significance::Noise,
            Some((old, new)) => {
                contrast(
                    &old.scaled(1.0 / old_side.ram.as_f64().max(1.0)),
                    &new.scaled(1.0 / new_side.ram.as_f64().max(1.0)),
                )
                .significance
            }
            // An owner is read at one sample: its change is shown, but not judged.
            None => Significance::TooFew,
        }
    });
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::{MEM_ANON, MEM_FREE, MEM_TOTAL, PROC_RSS_ANON};

    fn mib(n: u64) -> Bytes {
        Bytes::from_mib(n)
    }

    fn host(anon: &[u64]) -> Case {
        let steps: Vec<Bytes> = anon.iter().map(|n| mib(*n)).collect();
        let free: Vec<Bytes> = anon.iter().map(|n| mib(900 - n)).collect();
        Case::over(anon.len() as u64 - 1)
            .gauge(MEM_TOTAL, mib(1000))
            .gauge_steps(MEM_FREE, &free)
            .gauge_steps(MEM_ANON, &steps)
    }

    fn compared(before: &Case, after: &Case) -> Memory {
        before.with(|before| after.with(|after| Memory::compare(before, after)))
    }

    fn named<'a>(memory: &'a Memory, name: &str) -> &'a AmountChange {
        memory.amounts.iter().find(|a| a.name == name).unwrap()
    }

    #[test]
    fn the_typical_sample_decides_and_not_the_last() {
        let steady = host(&[100; 10]);
        let peaked = host(&[100, 100, 100, 100, 100, 100, 100, 100, 100, 600]);
        let memory = compared(&steady, &peaked);
        let anon = named(&memory, "anon");
        assert_eq!(anon.before, anon.after);
        assert!(!anon.is_clear());
    }

    #[test]
    fn what_grew_is_told_first_and_in_shares_of_ram() {
        let memory = compared(&host(&[100; 10]), &host(&[400; 10]));
        let first = &memory.amounts[0];
        assert!(first.is_clear());
        assert!((first.share_changed().unwrap().abs() - 0.3).abs() < 1e-9);
        let sum: i64 = memory
            .amounts
            .iter()
            .filter(|a| a.kind == AmountKind::Term)
            .filter_map(|a| a.after)
            .sum();
        assert_eq!(sum, signed(mib(1000)), "the terms add up to MemTotal");
    }

    #[test]
    fn levels_that_wander_on_both_sides_are_noise() {
        let one = host(&[100, 300, 120, 280, 150, 310, 90, 260]);
        let other = host(&[250, 110, 290, 130, 300, 100, 270, 160]);
        let memory = compared(&one, &other);
        assert!(memory.amounts.iter().all(|amount| !amount.is_clear()));
    }

    #[test]
    fn an_owner_of_one_side_is_no_change_to_zero() {
        let with = host(&[100; 10]).gauge_of(Entity::Process, "7@1", PROC_RSS_ANON, mib(80));
        let other = host(&[100; 10]).gauge_of(Entity::Process, "8@1", PROC_RSS_ANON, mib(5));
        let memory = compared(&with.named("7@1", "hog"), &other.named("8@1", "init"));
        let hog = named(&memory, "hog");
        assert_eq!((hog.after, hog.significance), (None, None));
        assert!(hog.is_worth_a_line());
    }

    #[test]
    fn single_looks_are_told_and_called_too_few() {
        let memory = compared(&host(&[100]), &host(&[400]));
        assert_eq!(named(&memory, "anon").significance, Some(Significance::TooFew));
    }

    #[test]
    fn hosts_of_another_size_are_compared_by_shares() {
        let small = host(&[100; 10]);
        let large = Case::over(9)
            .gauge(MEM_TOTAL, mib(4000))
            .gauge(MEM_FREE, mib(3200))
            .gauge(MEM_ANON, mib(400));
        assert!(!named(&compared(&small, &large), "anon").is_clear());
    }
}
