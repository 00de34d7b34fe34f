//! Where RAM is: disjoint terms that add up to MemTotal, with the remainder as a term of its own.
//!
//! /proc/meminfo's fields overlap (Mapped ⊂ Cached, Shmem ⊂ Cached, SwapCached ∩ AnonPages, …). The terms here are
//! chosen so that no page is counted twice. A field that the source lacks is listed as missing, never taken as zero:
//! its pages are then part of the remainder. [`Accounting::tree`] groups the terms for readers.

mod by;
mod memory_node;
mod node;
mod owners;
mod stack;
mod terms;
pub(crate) mod totals;
mod tree;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::{
    Entity, Gauge, Signal,
    facts::KernelVersion,
    signals::{
        HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_TOTAL, MEM_ACTIVE_ANON, MEM_ACTIVE_FILE, MEM_ANON,
        MEM_BALLOON, MEM_BOUNCE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_HUGETLB, MEM_HW_CORRUPTED,
        MEM_INACTIVE_ANON, MEM_INACTIVE_FILE, MEM_KERNEL_STACK, MEM_KRECLAIMABLE, MEM_PAGE_TABLES,
        MEM_PERCPU, MEM_SEC_PAGE_TABLES, MEM_SHADOW_CALL_STACK, MEM_SHMEM, MEM_SLAB,
        MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_SWAP_CACHED, MEM_TOTAL, MEM_UNEVICTABLE,
        MEM_VMALLOC_USED, MEM_ZSWAP, NR_BALLOON_PAGES, NR_ISOLATED_ANON, NR_ISOLATED_FILE,
        NR_ZSPAGES, ZONE_PCP, ZRAM_USED,
    },
};
use units::{Bytes, Pages, Ratio, Span};

use crate::evidence::{Evidence, Missing, Need};

pub(crate) use by::own_limit_at;
pub use by::{GroupBy, NoTable, OwnerRow, OwnerTable, RestRow, by_owner};
pub use memory_node::{MemoryNode, SizeKind};
pub use node::{OfNode, of_node};
pub(crate) use owners::of_anonymous as owners_of_anonymous;
pub use terms::{Standing, TermKind};

/// One disjoint part of RAM.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Term {
    /// `free`, `anon`, `file_cache`, …
    #[serde(rename = "id")]
    #[schemars(with = "String")]
    pub kind: TermKind,
    pub bytes: Bytes,
    /// What people call it.
    pub label: &'static str,
}

impl Term {
    const fn new(kind: TermKind, bytes: Bytes) -> Self {
        Self { kind, bytes, label: kind.label() }
    }
}

/// A breakdown of RAM at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounting {
    /// The moment, on the timeline's clock.
    pub at: Span,
    /// Index of the sample.
    pub index: usize,
    /// MemTotal.
    pub total: Bytes,
    /// Disjoint parts in the order of drawing: from what cannot be reclaimed to what is free.
    pub terms: Vec<Term>,
    /// `total` − Σ terms: what no counter explains. Slightly negative if counters drift.
    pub unaccounted_bytes: i64,
    /// Signals that the source lacks although they usually count memory: their pages are in `unaccounted_bytes`.
    pub missing: Vec<&'static str>,
    /// How many owners, caches and files each part of the tree names; `None`: a few, as many as fit on a screen.
    pub top: Option<usize>,
}

/// No machine addresses more than 2^52 bytes; a damaged counter may say 2^64. Sixteen times as much is counted of each, so
/// that the terms and what is left of them add up in 64 bits.
const RAM_MAX: Bytes = Bytes::from_gib(1 << 26);

/// Breaks down RAM at sample `index`.
///
/// # Errors
/// [`Missing`] if the source has no MemTotal, or nothing was read at this sample to compare it with.
pub fn account(cx: &Evidence<'_>, index: usize) -> Result<Accounting, Missing> {
    let total = match cx.timeline.at(MEM_TOTAL, index) {
        Some(total) => total,
        // MemTotal of another sample, with no field of this one, would make all of RAM unexplained.
        None if cx.timeline.at(MEM_FREE, index).is_none() => {
            cx.ram()?;
            let names = vec![MEM_TOTAL.def().name, MEM_FREE.def().name];
            return Err(Missing::because(names, Need::SameTime));
        }
        None => cx.ram()?,
    };
    let total = total.min(RAM_MAX);
    let mut ledger = Ledger { cx, index, terms: Vec::new(), missing: Vec::new() };
    ledger.kernel_memory();
    let above_kernel = ledger.terms.len();
    ledger.huge_pages();
    ledger.user_memory();
    ledger.cache_and_free();
    let Ledger { mut terms, missing, .. } = ledger;
    for term in &mut terms {
        term.bytes = term.bytes.min(RAM_MAX);
    }
    let rest = remainder(total, &terms);
    // A balloon that took its pages off MemTotal (most virtio and Hyper-V ones do) must not be counted again; one that
    // did not leaves them unexplained. So the balloon explains at most what no other term does.
    let balloon = balloon(cx, index).map(|b| b.min(Bytes::new(u64::try_from(rest).unwrap_or(0))));
    if let Some(bytes) = balloon {
        terms.insert(above_kernel, Term::new(TermKind::Balloon, bytes));
    }
    Ok(Accounting {
        at: cx.timeline.times().get(index).copied().unwrap_or_default(),
        index,
        total,
        unaccounted_bytes: remainder(total, &terms),
        terms,
        missing,
        top: None,
    })
}

impl Accounting {
    /// A remainder below this share of MemTotal cannot be drift: a field is faked or counted twice. An engineering
    /// choice: files of one sample drift by 1 % at most.
    pub const BROKEN: Ratio = Ratio::from_percent(-2.0);

    /// Returns a term's size; `None` if unknown.
    pub fn term(&self, kind: TermKind) -> Option<Bytes> {
        let term = self.terms.iter().find(|term| term.kind == kind)?;
        Some(term.bytes)
    }

    /// Returns the sum of those of these terms that are known.
    pub fn sum(&self, kinds: &[TermKind]) -> Bytes {
        kinds.iter().filter_map(|kind| self.term(*kind)).sum()
    }

    /// Returns the remainder as a share of MemTotal; negative if the terms exceed MemTotal.
    pub fn unaccounted_share(&self) -> Ratio {
        #[allow(clippy::cast_precision_loss)] // a share is read to three digits
        let (rest, total) = (self.unaccounted_bytes as f64, self.total.get() as f64);
        Ratio::new(if total > 0.0 { rest / total } else { 0.0 })
    }

    /// Whether the terms exceed MemTotal by more than drift explains.
    pub fn is_broken(&self) -> bool {
        self.unaccounted_share() < Self::BROKEN
    }

    /// Whether the source has the terms that make up nearly all memory of any host. Without them the remainder is only
    /// not broken down (as in the output of `free`).
    pub fn is_broken_down(&self) -> bool {
        let slab = if self.term(TermKind::Slab).is_some() {
            TermKind::Slab
        } else {
            TermKind::SlabUnreclaimable
        };
        let nearly_all =
            [TermKind::Free, TermKind::Anon, TermKind::FileCache, TermKind::PageTables, slab];
        nearly_all.iter().all(|kind| self.term(*kind).is_some())
    }
}

fn remainder(total: Bytes, terms: &[Term]) -> i64 {
    let sum: i128 = terms.iter().map(|t| i128::from(t.bytes.get())).sum();
    let rest = i128::from(total.get()) - sum;
    i64::try_from(rest).unwrap_or(if rest < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the balloon's pages (6.16 or later), from whichever counter this kernel has.
fn balloon(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    cx.timeline.at(MEM_BALLOON, index).or_else(|| {
        let pages = cx.timeline.at(NR_BALLOON_PAGES, index)?;
        Some(pages.to_bytes(cx.facts.page_size?))
    })
}

/// Collects the terms of one sample.
struct Ledger<'a, 'b> {
    cx: &'a Evidence<'b>,
    index: usize,
    terms: Vec<Term>,
    missing: Vec<&'static str>,
}

impl Ledger<'_, '_> {
    /// Reads a field that only some kernels have and that is mostly zero: its absence is not reported.
    fn at(&self, signal: Signal<Gauge<Bytes>>) -> Option<Bytes> {
        self.cx.timeline.at(signal, self.index)
    }

    /// Reads a field that usually counts memory; its absence is reported.
    fn read(&mut self, signal: Signal<Gauge<Bytes>>) -> Option<Bytes> {
        let value = self.at(signal);
        if value.is_none() {
            self.missing.push(signal.def().name);
        }
        value
    }

    /// Reads such a field and adds another of its kind that only some kernels have.
    fn read_with(
        &mut self,
        signal: Signal<Gauge<Bytes>>,
        other: Signal<Gauge<Bytes>>,
    ) -> Option<Bytes> {
        let value = self.read(signal)?;
        Some(self.at(other).map_or(value, |more| value + more))
    }

    fn pages(&self, signal: Signal<Gauge<Pages>>) -> Option<Bytes> {
        let pages = self.cx.timeline.at(signal, self.index)?;
        Some(pages.to_bytes(self.cx.facts.page_size?))
    }

    fn put(&mut self, kind: TermKind, bytes: Option<Bytes>) {
        self.terms.extend(bytes.map(|bytes| Term::new(kind, bytes)));
    }

    /// Adds a term that includes another, because the source does not separate them.
    fn put_undivided(&mut self, kind: TermKind, label: &'static str, bytes: Option<Bytes>) {
        self.terms.extend(bytes.map(|bytes| Term { kind, bytes, label }));
    }

    fn user_memory(&mut self) {
        self.put(TermKind::CompressedPool, self.compressed_pool());
        let shmem = self.read(MEM_SHMEM);
        self.put(TermKind::Shmem, shmem);
        let anon = self.read(MEM_ANON);
        self.put(TermKind::Anon, anon);
        let swap_cache = self.swap_cache_alone();
        if swap_cache.is_none() {
            self.missing.push(MEM_SWAP_CACHED.def().name);
        }
        self.put(TermKind::SwapCache, swap_cache);
    }

    /// Returns the pages of SwapCached that neither AnonPages nor Cached counts: the LRU lists beyond those two (a page
    /// that is in swap and mapped is in AnonPages too; mm/swap_state.c). Exact within 0.2 % of RAM on real hosts; at
    /// most SwapCached.
    fn swap_cache_alone(&self) -> Option<Bytes> {
        let swap_cached = self.at(MEM_SWAP_CACHED)?;
        if swap_cached == Bytes::ZERO {
            return Some(swap_cached);
        }
        let lists = [
            MEM_ACTIVE_ANON,
            MEM_INACTIVE_ANON,
            MEM_ACTIVE_FILE,
            MEM_INACTIVE_FILE,
            MEM_UNEVICTABLE,
        ];
        let listed = lists.into_iter().map(|s| self.at(s)).sum::<Option<Bytes>>()?;
        // Pages that reclaim has isolated at this instant are on no list. Kernels and sources without the two counters
        // miss a few.
        let isolated = [NR_ISOLATED_ANON, NR_ISOLATED_FILE];
        let isolated = isolated.into_iter().filter_map(|s| self.pages(s)).sum();
        let counted = self.at(MEM_ANON)? + self.at(MEM_CACHED)? + self.at(MEM_BUFFERS)?;
        Some((listed + isolated).saturating_sub(counted).min(swap_cached))
    }

    fn huge_pages(&mut self) {
        let pool = |pages: Option<units::Count>| {
            let size = self.at(HUGEPAGE_SIZE)?;
            Some(Bytes::new(size.get().saturating_mul(pages?.get())))
        };
        // Hugetlb counts all sizes (4.16 or later); older kernels show only the default size.
        let whole =
            self.at(MEM_HUGETLB).or_else(|| pool(self.cx.timeline.at(HUGEPAGES_TOTAL, self.index)));
        let Some(whole) = whole else {
            self.missing.push(MEM_HUGETLB.def().name);
            return;
        };
        let unused =
            pool(self.cx.timeline.at(HUGEPAGES_FREE, self.index)).map(|unused| unused.min(whole));
        match unused {
            Some(unused) => {
                let used = whole.saturating_sub(unused);
                self.put(TermKind::HugetlbUsed, Some(used));
                self.put(TermKind::HugetlbUnused, Some(unused));
            }
            None => {
                self.put_undivided(TermKind::HugetlbUsed, "huge pages", Some(whole));
            }
        }
    }

    fn kernel_memory(&mut self) {
        let stacks = self.read_with(MEM_KERNEL_STACK, MEM_SHADOW_CALL_STACK);
        self.put(TermKind::KernelStack, stacks);
        let tables = self.read_with(MEM_PAGE_TABLES, MEM_SEC_PAGE_TABLES);
        self.put(TermKind::PageTables, tables);
        let percpu = self.read(MEM_PERCPU);
        self.put(TermKind::Percpu, percpu);
        let vmalloc = self.vmalloc();
        if vmalloc.is_none() {
            self.missing.push(MEM_VMALLOC_USED.def().name);
        }
        self.put(TermKind::Vmalloc, vmalloc);
        self.put(TermKind::Bounce, self.at(MEM_BOUNCE));
        self.slab();
        self.put(TermKind::HwCorrupted, self.at(MEM_HW_CORRUPTED));
    }

    /// Adds slab that cannot be reclaimed; reclaimable slab is drawn next to the page cache.
    fn slab(&mut self) {
        let (slab, reclaimable, unreclaimable) =
            (self.at(MEM_SLAB), self.at(MEM_SLAB_RECLAIMABLE), self.at(MEM_SLAB_UNRECLAIMABLE));
        let unreclaimable = unreclaimable.or_else(|| Some(slab?.saturating_sub(reclaimable?)));
        match (unreclaimable, reclaimable, slab) {
            (Some(_), Some(_), _) => {
                self.put(TermKind::SlabUnreclaimable, unreclaimable);
            }
            // Before 2.6.19, and in `sar`: both kinds in one number.
            (_, _, Some(_)) => self.put(TermKind::Slab, slab),
            _ => self.missing.push(MEM_SLAB.def().name),
        }
    }

    /// Returns vmalloc memory. VmallocUsed counts RAM since 5.3 (before: 0, or address space), including kernel stacks
    /// (VMAP_STACK).
    fn vmalloc(&self) -> Option<Bytes> {
        let counts_ram = match self.cx.facts.kernel() {
            Some(version) => version >= KernelVersion { major: 5, minor: 3 },
            // Percpu serves as a date: it came a little earlier, while VmallocUsed was still 0.
            None => self.at(MEM_PERCPU).is_some(),
        };
        let used = self.at(MEM_VMALLOC_USED).filter(|_| counts_ram)?;
        Some(used.saturating_sub(self.at(MEM_KERNEL_STACK)?))
    }

    /// Returns the memory of zram and zswap. nr_zspages counts zram's pool, and zswap's if that uses zsmalloc too: so
    /// the larger of the two numbers, never the sum.
    fn compressed_pool(&self) -> Option<Bytes> {
        let zspages = self.pages(NR_ZSPAGES);
        let zswap = self.at(MEM_ZSWAP);
        if zspages.is_some() || zswap.is_some() {
            return zspages.max(zswap);
        }
        let devices = self.cx.timeline.entities(Entity::Zram);
        let mut used =
            devices.filter_map(|d| self.cx.timeline.latest_of(d, ZRAM_USED, self.index)).peekable();
        used.peek()?;
        Some(used.sum())
    }

    fn cache_and_free(&mut self) {
        let reclaimable = self.at(MEM_SLAB_RECLAIMABLE);
        self.put(TermKind::SlabReclaimable, reclaimable);
        let other =
            self.at(MEM_KRECLAIMABLE).and_then(|all| Some(all.saturating_sub(reclaimable?)));
        self.put(TermKind::KernelReclaimable, other);
        let buffers = self.read(MEM_BUFFERS);
        self.put(TermKind::Buffers, buffers);
        let cached = self.read(MEM_CACHED);
        match self.at(MEM_SHMEM) {
            Some(shmem) => {
                let files = cached.map(|c| c.saturating_sub(shmem));
                self.put(TermKind::FileCache, files);
            }
            None => {
                self.put_undivided(TermKind::FileCache, "page cache and shared memory", cached);
            }
        }
        let pcp = self.per_cpu_lists();
        if pcp.is_none() {
            self.missing.push(ZONE_PCP.def().name);
        }
        self.put(TermKind::Pcp, pcp);
        let free = self.read(MEM_FREE);
        self.put(TermKind::Free, free);
    }

    /// Returns the free pages on the CPUs' own lists, which MemFree does not count.
    fn per_cpu_lists(&self) -> Option<Bytes> {
        let page = self.cx.facts.page_size?;
        let zones = self.cx.timeline.entities(Entity::Zone);
        let mut lists = zones
            .filter_map(|zone| self.cx.timeline.latest_of(zone, ZONE_PCP, self.index))
            .peekable();
        lists.peek()?;
        Some(lists.sum::<Pages>().to_bytes(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Facts, Sample, Timeline};
    use units::{Count, PageSize};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        facts.record(Span::ZERO, timeline::facts::KERNEL_VERSION, "Linux version 6.1.0");
        facts
    }

    fn accounted(fill: impl FnOnce(&mut Sample), facts: &Facts) -> Accounting {
        let mut sample = Sample::at(Span::ZERO);
        fill(&mut sample);
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        account(&Evidence::new(&timeline, facts), 0).unwrap()
    }

    fn sums_up(accounting: &Accounting) -> bool {
        let sum: i64 = accounting.terms.iter().map(|t| i64::try_from(t.bytes.get()).unwrap()).sum();
        sum + accounting.unaccounted_bytes == i64::try_from(accounting.total.get()).unwrap()
    }

    #[test]
    fn counters_of_more_than_a_machine_has_add_up() {
        let accounting = accounted(
            |s| {
                s.host.set(MEM_TOTAL, Bytes::from_kib(24_684_084));
                for signal in [MEM_FREE, MEM_KERNEL_STACK, MEM_VMALLOC_USED] {
                    s.host.set(signal, Bytes::new(u64::MAX - 7));
                }
            },
            &facts(),
        );
        assert!(sums_up(&accounting), "{accounting:?}");
        assert!(accounting.is_broken());
    }

    /// A worked example: a 24 GiB host with two CPUs.
    #[test]
    fn per_cpu_lists_and_vmalloc_close_the_gap() {
        let accounting = accounted(
            |s| {
                s.host.set(MEM_TOTAL, Bytes::from_kib(24_684_084));
                // All terms but the last two, lumped together.
                s.host.set(MEM_FREE, Bytes::from_kib(24_571_912 - 2_000));
                s.host.set(MEM_KERNEL_STACK, Bytes::from_kib(2_000));
                s.host.set(MEM_VMALLOC_USED, Bytes::from_kib(14_784));
                let zone = s.table_mut(Entity::Zone).entry("0/Normal");
                zone.row.set(ZONE_PCP, Pages::new(85_032 / 4));
            },
            &facts(),
        );
        assert_eq!(accounting.unaccounted_bytes, 14_356 * 1024);
        assert!(accounting.unaccounted_share() < Ratio::from_percent(0.1));
        assert!(sums_up(&accounting));
    }

    #[test]
    fn a_sample_without_meminfo_is_not_accounted_for_by_the_total_of_another() {
        let mut timeline = Timeline::default();
        for (second, is_read) in (0..).zip([true, false, true]) {
            let mut sample = Sample::at(Span::from_secs(second));
            if is_read {
                sample.host.set(MEM_TOTAL, Bytes::from_mib(470));
                sample.host.set(MEM_FREE, Bytes::from_mib(400));
            }
            timeline.push(&sample).unwrap();
        }
        let facts = facts();
        let cx = Evidence::new(&timeline, &facts);
        let accounted: Vec<bool> = (0..3).map(|at| account(&cx, at).is_ok()).collect();
        assert_eq!(accounted, [true, false, true]);
    }

    #[test]
    fn terms_come_in_the_order_in_which_they_are_drawn() {
        let all = |s: &mut Sample| {
            let signals = [
                MEM_TOTAL,
                MEM_ANON,
                MEM_SHMEM,
                MEM_CACHED,
                MEM_SWAP_CACHED,
                MEM_HUGETLB,
                MEM_SLAB,
                MEM_SLAB_RECLAIMABLE,
                MEM_KRECLAIMABLE,
                MEM_KERNEL_STACK,
                MEM_PAGE_TABLES,
                MEM_PERCPU,
                MEM_VMALLOC_USED,
                MEM_BOUNCE,
                MEM_HW_CORRUPTED,
                MEM_BALLOON,
                MEM_ZSWAP,
                MEM_BUFFERS,
                MEM_FREE,
                HUGEPAGE_SIZE,
            ];
            for signal in signals {
                s.host.set(signal, MIB(4));
            }
            s.host.set(HUGEPAGES_FREE, Count::new(1));
            let zone = s.table_mut(Entity::Zone).entry("0/Normal");
            zone.row.set(ZONE_PCP, Pages::new(1));
        };
        let terms = accounted(all, &facts()).terms;
        // All but undivided slab and the remainder.
        assert!(terms.len() >= TermKind::ALL.len() - 3, "{terms:?}");
        assert!(terms.is_sorted_by_key(|term| term.kind), "{terms:?}");
        let is_named = |term: &Term| term.label == term.kind.label();
        assert!(terms.iter().all(is_named), "{terms:?}");
    }

    #[test]
    fn a_page_in_ram_and_in_swap_is_counted_once() {
        // A labelled capture of cold swap: 28 MiB in both, none of them mapped.
        let accounting = accounted(
            |s| {
                s.host.set(MEM_TOTAL, MIB(469));
                s.host.set(MEM_ANON, MIB(241));
                s.host.set(MEM_CACHED, MIB(4));
                s.host.set(MEM_SHMEM, MIB(4));
                s.host.set(MEM_BUFFERS, MIB(1));
                s.host.set(MEM_SWAP_CACHED, MIB(28));
                s.host.set(MEM_ACTIVE_ANON, MIB(200));
                s.host.set(MEM_INACTIVE_ANON, MIB(53));
                s.host.set(MEM_ACTIVE_FILE, MIB(1));
                s.host.set(MEM_INACTIVE_FILE, MIB(0));
                s.host.set(MEM_UNEVICTABLE, MIB(6));
            },
            &facts(),
        );
        assert_eq!(accounting.term(TermKind::SwapCache), Some(MIB(14)));
        assert!(sums_up(&accounting));
    }

    #[test]
    fn a_missing_field_is_listed_and_not_taken_for_zero() {
        let accounting = accounted(
            |s| {
                s.host.set(MEM_TOTAL, MIB(1000));
                s.host.set(MEM_FREE, MIB(100));
                s.host.set(MEM_CACHED, MIB(300));
            },
            &facts(),
        );
        assert_eq!(accounting.term(TermKind::Anon), None);
        assert_eq!(accounting.term(TermKind::Percpu), None);
        for name in ["mem.anon", "mem.shmem", "mem.slab", "zone.pcp"] {
            assert!(accounting.missing.contains(&name), "{name}");
        }
        assert!(!accounting.is_broken_down());
        assert_eq!(accounting.unaccounted_bytes, 600 << 20);
    }

    #[test]
    fn vmalloc_of_old_kernels_is_address_space_and_does_not_count() {
        let fill = |s: &mut Sample| {
            s.host.set(MEM_TOTAL, MIB(1000));
            s.host.set(MEM_VMALLOC_USED, MIB(34_000));
            s.host.set(MEM_KERNEL_STACK, MIB(2));
        };
        let mut old = Facts::default();
        old.record(Span::ZERO, timeline::facts::KERNEL_VERSION, "Linux version 3.10.0-514.el7");
        assert_eq!(accounted(fill, &old).term(TermKind::Vmalloc), None);
        // Nor if the age of the kernel is unknown.
        assert_eq!(accounted(fill, &Facts::default()).term(TermKind::Vmalloc), None);
        assert_eq!(accounted(fill, &facts()).term(TermKind::Vmalloc), Some(MIB(33_998)));
    }

    #[test]
    fn huge_pages_are_split_and_zswap_inside_zsmalloc_counts_once() {
        let accounting = accounted(
            |s| {
                s.host.set(MEM_TOTAL, MIB(1000));
                s.host.set(HUGEPAGES_TOTAL, Count::new(96));
                s.host.set(HUGEPAGES_FREE, Count::new(90));
                s.host.set(HUGEPAGE_SIZE, MIB(2));
                s.host.set(MEM_ZSWAP, MIB(30));
                s.host.set(NR_ZSPAGES, Pages::new(40 * 256));
            },
            &facts(),
        );
        assert_eq!(accounting.term(TermKind::HugetlbUsed), Some(MIB(12)));
        assert_eq!(accounting.term(TermKind::HugetlbUnused), Some(MIB(180)));
        assert_eq!(accounting.term(TermKind::CompressedPool), Some(MIB(40)));
        assert!(sums_up(&accounting));
    }

    #[test]
    fn a_balloon_explains_only_what_nothing_else_does() {
        let host = |free: u64| {
            move |s: &mut Sample| {
                s.host.set(MEM_TOTAL, MIB(1000));
                s.host.set(MEM_FREE, MIB(free));
                s.host.set(MEM_BALLOON, MIB(300));
            }
        };
        let stays_in_total = accounted(host(600), &facts());
        assert_eq!(stays_in_total.term(TermKind::Balloon), Some(MIB(300)));
        let taken_off_total = accounted(host(1000), &facts());
        assert_eq!(taken_off_total.term(TermKind::Balloon), Some(Bytes::ZERO));
        assert_eq!(taken_off_total.unaccounted_bytes, 0);
    }

    #[test]
    fn terms_that_exceed_the_total_leave_a_negative_rest() {
        let accounting = accounted(
            |s| {
                s.host.set(MEM_TOTAL, MIB(100));
                s.host.set(MEM_ANON, MIB(120));
            },
            &facts(),
        );
        assert_eq!(accounting.unaccounted_bytes, -(20 << 20));
        assert!(accounting.is_broken());
        assert!(sums_up(&accounting));
    }

    #[test]
    fn without_a_total_there_is_nothing_to_account_for() {
        let timeline = Timeline::default();
        let facts = Facts::default();
        let missing = account(&Evidence::new(&timeline, &facts), 0).unwrap_err();
        assert_eq!(missing.names, ["mem.total"]);
    }
}
