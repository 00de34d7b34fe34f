//! Where memory went: all of RAM as one stack, from what cannot be reclaimed to what is free.

use diagnose::Evidence;
use diagnose::accounting::{Accounting, TermKind, account};
use timeline::SignalId;
use timeline::signals::{
    DENTRIES_NEGATIVE, HUGEPAGES_TOTAL, HUGETLB_UNUSED, MEM_ACTIVE_ANON, MEM_ACTIVE_FILE, MEM_ANON,
    MEM_ANON_HUGE, MEM_BALLOON, MEM_BOUNCE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_HUGETLB,
    MEM_HW_CORRUPTED, MEM_INACTIVE_ANON, MEM_INACTIVE_FILE, MEM_KERNEL_STACK, MEM_KRECLAIMABLE,
    MEM_MAPPED, MEM_PAGE_TABLES, MEM_PERCPU, MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE,
    MEM_SLAB_UNRECLAIMABLE, MEM_SWAP_CACHED, MEM_UNACCOUNTED, MEM_VMALLOC_USED, MEM_ZSWAP,
    PAGE_CACHE, SLAB_PAGES, ZONE_PCP, ZRAM_USED,
};

use units::Bytes;

use super::builder::{ChartBuilder, level, signals};
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour, Curve};

/// A part of the stack.
pub(super) struct StackPart {
    pub(super) kind: TermKind,
    pub(super) label: &'static str,
    pub(super) colour: Colour,
    /// The signal that it shows, then signals that are part of it or include it.
    pub(super) signals: Vec<SignalId>,
    /// Whether most hosts have none of it: it is then drawn only if there ever was some.
    is_rare: bool,
}

const HELP: &str = "Every page of RAM once; adds up to MemTotal. What lies above the process \
                    memory can mostly be taken back, what lies below cannot.";

/// The chart of all of RAM.
pub(super) fn chart(cx: &Evidence<'_>) -> Chart {
    let builder =
        ChartBuilder::new("where", "Where memory went", HELP, ChartKind::Stack, ChartUnit::Bytes)
            .overview()
            .of_entities();
    let first = match account(cx, 0) {
        Ok(first) => first,
        Err(missing) => return builder.lacks(cx, missing),
    };
    let drawn = stacks(cx, &parts());
    if drawn.iter().flatten().all(Option::is_none) {
        return builder.absent(mismatch(&first));
    }
    let kept: Vec<StackPart> = parts()
        .into_iter()
        .zip(&drawn)
        .filter(|(part, curve)| part.is_drawn(curve))
        .map(|(part, _)| part.named(&first))
        .collect();
    let series = kept.iter().map(StackPart::series).collect();
    builder.top(top(&drawn)).together(series, Box::new(move |part| stacks(part, &kept)))
}

/// Returns the parts from the bottom of the stack to its top.
pub(super) fn parts() -> Vec<StackPart> {
    let part = |kind: &TermKind| StackPart {
        kind: *kind,
        label: kind.label(),
        colour: Colour::from_term(*kind),
        signals: signals_of(*kind),
        is_rare: RARE_TERMS.contains(kind),
    };
    TermKind::ALL.iter().map(part).collect()
}

/// Most hosts have none of these: they are drawn only if there ever was some.
const RARE_TERMS: [TermKind; 7] = [
    TermKind::Bounce,
    TermKind::HwCorrupted,
    TermKind::Balloon,
    TermKind::HugetlbUsed,
    TermKind::HugetlbUnused,
    TermKind::CompressedPool,
    TermKind::KernelReclaimable,
];

/// Returns the signal of a term, then the signals it contains or is part of.
fn signals_of(kind: TermKind) -> Vec<SignalId> {
    match kind {
        TermKind::KernelStack => signals![MEM_KERNEL_STACK],
        TermKind::PageTables => signals![MEM_PAGE_TABLES],
        TermKind::Percpu => signals![MEM_PERCPU],
        TermKind::Vmalloc => signals![MEM_VMALLOC_USED],
        TermKind::Bounce => signals![MEM_BOUNCE],
        TermKind::SlabUnreclaimable => signals![MEM_SLAB_UNRECLAIMABLE, MEM_SLAB, SLAB_PAGES],
        TermKind::Slab => signals![MEM_SLAB, SLAB_PAGES],
        TermKind::HwCorrupted => signals![MEM_HW_CORRUPTED],
        TermKind::Balloon => signals![MEM_BALLOON],
        TermKind::Unaccounted => signals![MEM_UNACCOUNTED],
        TermKind::HugetlbUsed => signals![MEM_HUGETLB, HUGEPAGES_TOTAL],
        TermKind::HugetlbUnused => signals![MEM_HUGETLB, HUGEPAGES_TOTAL, HUGETLB_UNUSED],
        TermKind::CompressedPool => signals![ZRAM_USED, MEM_ZSWAP],
        TermKind::Shmem => signals![MEM_SHMEM],
        TermKind::Anon => signals![MEM_ANON, MEM_ANON_HUGE, MEM_INACTIVE_ANON, MEM_ACTIVE_ANON],
        TermKind::SwapCache => signals![MEM_SWAP_CACHED],
        TermKind::SlabReclaimable => {
            signals![MEM_SLAB_RECLAIMABLE, MEM_SLAB, SLAB_PAGES, DENTRIES_NEGATIVE]
        }
        TermKind::KernelReclaimable => signals![MEM_KRECLAIMABLE],
        TermKind::Buffers => signals![MEM_BUFFERS],
        TermKind::FileCache => {
            signals![PAGE_CACHE, MEM_CACHED, MEM_MAPPED, MEM_ACTIVE_FILE, MEM_INACTIVE_FILE]
        }
        TermKind::Pcp => signals![ZONE_PCP],
        TermKind::Free => signals![MEM_FREE],
    }
}

impl StackPart {
    /// Returns the series that shows it.
    fn series(&self) -> ChartSeries {
        let (shown, related) = self.signals.split_at(self.signals.len().min(1));
        let series = level(self.kind.id(), self.label, self.colour, shown.to_vec());
        ChartSeries { standing: Some(self.kind.standing()), ..series.related(related.to_vec()) }
    }

    /// Takes the accounting's name for it, which may merge two kinds.
    fn named(self, accounting: &Accounting) -> Self {
        let term = accounting.terms.iter().find(|term| term.kind == self.kind);
        let label = term.map_or(self.label, |term| term.label);
        Self { label, ..self }
    }

    fn is_drawn(&self, curve: &Curve) -> bool {
        let mut known = curve.iter().flatten();
        if self.is_rare { known.any(|bytes| *bytes > 0.0) } else { known.next().is_some() }
    }
}

/// Returns the curves of these parts, which add up to MemTotal at each sample; `None` where counters contradict each
/// other.
fn stacks(cx: &Evidence<'_>, parts: &[StackPart]) -> Vec<Curve> {
    let kinds: Vec<TermKind> = parts.iter().map(|part| part.kind).collect();
    let mut curves = vec![vec![None; cx.timeline.len()]; parts.len()];
    for index in 0..cx.timeline.len() {
        let Ok(accounting) = account(cx, index) else {
            continue;
        };
        if accounting.is_broken() {
            continue;
        }
        for (curve, size) in curves.iter_mut().zip(accounting.stacked(&kinds)) {
            curve[index] = size;
        }
    }
    for curve in &mut curves {
        if curve.iter().all(Option::is_none) {
            curve.clear();
        }
    }
    curves
}

/// Returns the greatest height of the stack: MemTotal, which changes with balloons and hotplug only.
fn top(curves: &[Curve]) -> Option<f64> {
    let samples = curves.iter().map(Vec::len).max()?;
    let sum = |index: usize| {
        let at = |curve: &Curve| curve.get(index).copied().flatten();
        curves.iter().filter_map(at).sum::<f64>()
    };
    (0..samples).map(sum).reduce(f64::max)
}

fn mismatch(accounting: &Accounting) -> String {
    let terms = accounting.terms.iter().map(|term| term.bytes).sum::<Bytes>();
    format!(
        "does not add up: MemTotal {}, its parts {terms}; the figures belong to different things",
        accounting.total
    )
}
