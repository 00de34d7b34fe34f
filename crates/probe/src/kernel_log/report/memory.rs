//! The host's memory: the counters after `Mem-Info:`, the lines of NUMA nodes, page cache, swap, RAM.
//!
//! Counters are pages, sizes of nodes are KiB. Names of counters changed rarely, but the set of counters often: the
//! tables here map names to signals, and [`ReportMemory::row`] returns what `/proc/meminfo` would have shown.

use timeline::signals::{
    HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_SURP, HUGEPAGES_TOTAL, MEM_ACTIVE, MEM_ACTIVE_ANON,
    MEM_ACTIVE_FILE, MEM_ANON, MEM_ANON_HUGE, MEM_BALLOON, MEM_BOUNCE, MEM_CACHED, MEM_CMA_FREE,
    MEM_DIRTY, MEM_FREE, MEM_HUGETLB, MEM_INACTIVE, MEM_INACTIVE_ANON, MEM_INACTIVE_FILE,
    MEM_KERNEL_STACK, MEM_KRECLAIMABLE, MEM_MAPPED, MEM_NFS_UNSTABLE, MEM_PAGE_TABLES,
    MEM_SEC_PAGE_TABLES, MEM_SHADOW_CALL_STACK, MEM_SHMEM, MEM_SHMEM_HUGE, MEM_SLAB,
    MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_SWAP_CACHED, MEM_TOTAL, MEM_UNEVICTABLE,
    MEM_WRITEBACK, MEM_WRITEBACK_TMP, NR_ISOLATED_ANON, NR_ISOLATED_FILE, NR_ZSPAGES, SWAP_FREE,
    SWAP_TOTAL,
};
use timeline::{Gauge, Row, Signal};
use units::{Bytes, Count, PageSize, Pages};

use super::scan::{self, number, size};
use super::taken::Taken;

type MemorySignal = Signal<Gauge<Bytes>>;

/// A report's figures about the whole host.
#[derive(Debug, Default)]
pub(super) struct ReportMemory {
    has_title: bool,
    /// Counters by the names of [`COUNTERS`], in pages.
    counters: Vec<(&'static str, u64)>,
    /// Sizes by the names of [`SIZES`], summed over nodes.
    sizes: Vec<(&'static str, Bytes)>,
    huge: Vec<HugePages>,
    totals: Vec<(Total, u64)>,
    swap: [Option<Bytes>; 2],
    /// Sizes by the names of [`NODE_SIZES`], summed over nodes.
    of_nodes: Vec<(&'static str, Bytes)>,
    /// Sizes by the names of [`ZONE_SIZES`], summed over zones.
    of_zones: Vec<(&'static str, Bytes)>,
}

/// A node's pool of huge pages of one size.
#[derive(Debug, Clone, Copy)]
struct HugePages {
    total: u64,
    free: u64,
    surplus: u64,
    size: Bytes,
}

/// The counters after `Mem-Info:` in lower case, and the equivalent signal.
const COUNTERS: [(&str, Option<MemorySignal>); 27] = [
    ("active_anon", Some(MEM_ACTIVE_ANON)),
    ("inactive_anon", Some(MEM_INACTIVE_ANON)),
    ("active_file", Some(MEM_ACTIVE_FILE)),
    ("inactive_file", Some(MEM_INACTIVE_FILE)),
    ("isolated_anon", None),
    ("isolated_file", None),
    ("unevictable", Some(MEM_UNEVICTABLE)),
    // Before 2.6.28 lists contained both kinds.
    ("active", Some(MEM_ACTIVE)),
    ("inactive", Some(MEM_INACTIVE)),
    ("dirty", Some(MEM_DIRTY)),
    ("writeback", Some(MEM_WRITEBACK)),
    ("unstable", Some(MEM_NFS_UNSTABLE)),
    ("slab", Some(MEM_SLAB)),
    ("slab_reclaimable", Some(MEM_SLAB_RECLAIMABLE)),
    ("slab_unreclaimable", Some(MEM_SLAB_UNRECLAIMABLE)),
    ("mapped", Some(MEM_MAPPED)),
    // Red Hat's 2.6.18.
    ("mapped-file", Some(MEM_MAPPED)),
    ("mapped-anon", Some(MEM_ANON)),
    ("shmem", Some(MEM_SHMEM)),
    ("pagetables", Some(MEM_PAGE_TABLES)),
    ("sec_pagetables", Some(MEM_SEC_PAGE_TABLES)),
    ("bounce", Some(MEM_BOUNCE)),
    ("kernel_misc_reclaimable", None),
    ("free", Some(MEM_FREE)),
    ("free_pcp", None),
    ("free_cma", Some(MEM_CMA_FREE)),
    ("zspages", None),
];

/// Sizes that only nodes (or, before 4.8, zones) have; their sums are signals of the host.
const SIZES: [(&str, MemorySignal); 6] = [
    ("kernel_stack", MEM_KERNEL_STACK),
    ("shadow_call_stack", MEM_SHADOW_CALL_STACK),
    ("writeback_tmp", MEM_WRITEBACK_TMP),
    ("anon_thp", MEM_ANON_HUGE),
    ("shmem_thp", MEM_SHMEM_HUGE),
    ("balloon", MEM_BALLOON),
];

/// Sizes of nodes; their sums replace counters that are missing.
const NODE_SIZES: [(&str, MemorySignal); 9] = [
    ("active_anon", MEM_ACTIVE_ANON),
    ("inactive_anon", MEM_INACTIVE_ANON),
    ("active_file", MEM_ACTIVE_FILE),
    ("inactive_file", MEM_INACTIVE_FILE),
    ("unevictable", MEM_UNEVICTABLE),
    ("mapped", MEM_MAPPED),
    ("dirty", MEM_DIRTY),
    ("writeback", MEM_WRITEBACK),
    ("shmem", MEM_SHMEM),
];

/// Sizes of zones; their sums replace counters that are missing in nodes, too.
const ZONE_SIZES: [(&str, MemorySignal); 6] = [
    ("free", MEM_FREE),
    ("active_anon", MEM_ACTIVE_ANON),
    ("inactive_anon", MEM_INACTIVE_ANON),
    ("active_file", MEM_ACTIVE_FILE),
    ("inactive_file", MEM_INACTIVE_FILE),
    ("unevictable", MEM_UNEVICTABLE),
];

/// The total of the host in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Total {
    PageCache,
    SwapCache,
    Ram,
    Reserved,
    /// A part of what other lines give.
    Other,
}

/// The text after the number of pages.
const TOTALS: [(&str, Total); 23] = [
    ("total pagecache pages", Total::PageCache),
    ("pagecache pages", Total::PageCache),
    ("pages in swap cache", Total::SwapCache),
    ("pages swap cached", Total::SwapCache),
    ("pages RAM", Total::Ram),
    ("pages of RAM", Total::Ram),
    ("pages reserved", Total::Reserved),
    ("reserved pages", Total::Reserved),
    ("pages HighMem/MovableOnly", Total::Other),
    ("pages HighMem", Total::Other),
    ("pages of HIGHMEM", Total::Other),
    ("pages in pagetable cache", Total::Other),
    ("pages shared", Total::Other),
    ("pages non-shared", Total::Other),
    ("pages cma reserved", Total::Other),
    ("pages hwpoisoned", Total::Other),
    ("pages dirty", Total::Other),
    ("pages writeback", Total::Other),
    ("pages mapped", Total::Other),
    ("pages slab", Total::Other),
    ("pages pagetables", Total::Other),
    ("slab pages", Total::Other),
    ("free pages", Total::Other),
];

impl ReportMemory {
    pub(super) fn take(&mut self, line: &str) -> Taken {
        if line.eq_ignore_ascii_case("Mem-Info:") {
            let backwards = !self.has_title && !self.counters.is_empty();
            let taken = Taken::once(self.has_title);
            self.has_title = true;
            return if backwards { Taken::Backwards } else { taken };
        }
        if let Some(counters) = counters(line) {
            let is_there = self.counter(counters[0].0).is_some();
            if !is_there {
                self.counters.extend(counters);
            }
            return Taken::once(is_there);
        }
        let swap = self.swap(line);
        if swap != Taken::No {
            return swap;
        }
        if self.huge_pages(line) || is_per_cpu(line) || is_passed_over(line) {
            return Taken::Yes;
        }
        match total(line) {
            Some((Total::Other, _)) => Taken::Yes,
            Some((kind, pages)) => {
                let is_there = self.total(kind).is_some();
                if !is_there {
                    self.totals.push((kind, pages));
                }
                Taken::once(is_there)
            }
            None => Taken::No,
        }
    }

    /// Whether any of its lines was read.
    pub(super) fn is_begun(&self) -> bool {
        self.has_title || !self.counters.is_empty() || !self.totals.is_empty()
    }

    /// Whether its last lines were read.
    pub(super) fn is_whole(&self) -> bool {
        self.total(Total::Ram).is_some() || self.total(Total::PageCache).is_some()
    }

    /// Adds a size of a node or zone to the sum.
    pub(super) fn note_size(&mut self, name: &str, size: Bytes) {
        add(&mut self.sizes, &SIZES, name, size);
    }

    /// Adds a size of a node to the sum.
    pub(super) fn note_node_size(&mut self, name: &str, size: Bytes) {
        add(&mut self.of_nodes, &NODE_SIZES, name, size);
        self.note_size(name, size);
    }

    /// Adds a size of a zone to the sum.
    pub(super) fn note_zone_size(&mut self, name: &str, size: Bytes) {
        add(&mut self.of_zones, &ZONE_SIZES, name, size);
        self.note_size(name, size);
    }

    fn counter(&self, name: &str) -> Option<u64> {
        let found = self.counters.iter().find(|(known, _)| *known == name);
        found.map(|(_, pages)| *pages)
    }

    fn total(&self, kind: Total) -> Option<u64> {
        let found = self.totals.iter().find(|(known, _)| *known == kind);
        found.map(|(_, pages)| *pages)
    }

    /// Takes `Free swap  = 0kB`, `Total swap = 425980kB`, `Free swap:   1048568kB`; in one line, and without the sign, as
    /// people quote them.
    fn swap(&mut self, line: &str) -> Taken {
        let Some((slot, size, rest)) = swap_size(line) else {
            return Taken::No;
        };
        self.swap[slot] = Some(size);
        match rest.trim_start_matches([',', ';', ' ']) {
            "" => Taken::Yes,
            rest => Taken::whole(self.swap(rest) == Taken::Yes),
        }
    }

    /// Takes `Node 0 hugepages_total=4 hugepages_free=4 hugepages_surp=0 hugepages_size=2048kB`.
    fn huge_pages(&mut self, line: &str) -> bool {
        let (_, rest) = scan::node(line);
        if !rest.starts_with("hugepages_total=")
            || !scan::words(rest).all(|word| word.contains('='))
        {
            return false;
        }
        let field = |name: &str| {
            let mut values = scan::words(rest).filter_map(|word| word.split_once('='));
            values.find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let read = || {
            Some(HugePages {
                total: number(field("hugepages_total")?)?,
                free: number(field("hugepages_free")?)?,
                surplus: field("hugepages_surp").and_then(number).unwrap_or(0),
                size: size(field("hugepages_size")?)?,
            })
        };
        let pool = read();
        self.huge.extend(pool);
        pool.is_some()
    }

    /// Returns what `/proc/meminfo` would have shown. `managed` is the memory that all zones manage, if it is printed.
    /// Sizes of zones are added up if none is missing.
    pub(super) fn row(&self, page: PageSize, managed: Option<Bytes>, has_all_zones: bool) -> Row {
        let mut row = Row::default();
        // Zones of memory that was added later are not in the RAM of some kernels.
        let ram = self.total(Total::Ram).map(|pages| Pages::new(pages).to_bytes(page));
        let free = self.of_zones.iter().find(|(name, _)| *name == "free");
        let is_part = ram.is_none_or(|ram| free.is_none_or(|(_, free)| *free <= ram));
        if has_all_zones && is_part {
            set(&mut row, &ZONE_SIZES, &self.of_zones);
        }
        set(&mut row, &NODE_SIZES, &self.of_nodes);
        let bytes = |pages: u64| Pages::new(pages).to_bytes(page);
        for (name, signal) in &COUNTERS {
            if let (Some(signal), Some(pages)) = (signal, self.counter(name)) {
                row.set(*signal, bytes(pages));
            }
        }
        for (name, signal) in [
            ("isolated_anon", NR_ISOLATED_ANON),
            ("isolated_file", NR_ISOLATED_FILE),
            ("zspages", NR_ZSPAGES),
        ] {
            if let Some(pages) = self.counter(name) {
                row.set(signal, Pages::new(pages));
            }
        }
        set(&mut row, &SIZES, &self.sizes);
        self.sums(&mut row, page);
        self.cache_and_anon(&mut row, page);
        self.huge_row(&mut row);
        let ram = self
            .total(Total::Ram)
            .zip(self.total(Total::Reserved))
            .map(|(ram, reserved)| bytes(ram.saturating_sub(reserved)));
        // A request that is confined to some nodes is reported with their zones only, and the counters of all.
        let of_zones = || managed.filter(|managed| bytes(self.counted()) <= *managed);
        if let Some(total) = ram.filter(|ram| *ram > Bytes::ZERO).or_else(of_zones) {
            row.set(MEM_TOTAL, total);
        }
        for (signal, size) in [SWAP_FREE, SWAP_TOTAL].into_iter().zip(self.swap) {
            if let Some(size) = size {
                row.set(signal, size);
            }
        }
        row
    }

    /// Free memory, by the counters.
    pub(super) fn free(&self, page: PageSize) -> Option<Bytes> {
        let pages = self.counter("free")?;
        Some(Pages::new(pages).to_bytes(page))
    }

    /// Pages that are certainly there, by the counters.
    fn counted(&self) -> u64 {
        let names = [
            "free",
            "active_anon",
            "inactive_anon",
            "active_file",
            "inactive_file",
            "slab_reclaimable",
            "slab_unreclaimable",
        ];
        names.iter().filter_map(|name| self.counter(name)).fold(0, u64::saturating_add)
    }

    /// Sets fields of `/proc/meminfo` that are sums of counters.
    fn sums(&self, row: &mut Row, page: PageSize) {
        for (signal, parts) in [
            (MEM_ACTIVE, ["active_anon", "active_file"]),
            (MEM_INACTIVE, ["inactive_anon", "inactive_file"]),
            (MEM_SLAB, ["slab_reclaimable", "slab_unreclaimable"]),
            (MEM_KRECLAIMABLE, ["slab_reclaimable", "kernel_misc_reclaimable"]),
        ] {
            if let [Some(one), Some(other)] = parts.map(|part| self.counter(part)) {
                row.set(signal, Pages::new(one.saturating_add(other)).to_bytes(page));
            }
        }
    }

    /// Sets page cache and anonymous memory. The total of the page cache includes the swap cache, which `Cached` does
    /// not. Pages on the lists beyond the page cache are anonymous, mlocked or not: that is closer to AnonPages than
    /// the anonymous lists minus shared memory, which is the fallback if the page cache was not printed.
    fn cache_and_anon(&self, row: &mut Row, page: PageSize) {
        let bytes = |pages: u64| Pages::new(pages).to_bytes(page);
        let swap_cache = self.total(Total::SwapCache);
        if let Some(pages) = swap_cache {
            row.set(MEM_SWAP_CACHED, bytes(pages));
        }
        let cache =
            self.total(Total::PageCache).map(|all| all.saturating_sub(swap_cache.unwrap_or(0)));
        if let Some(pages) = cache {
            row.set(MEM_CACHED, bytes(pages));
        }
        if self.counter("mapped-anon").is_some() {
            return;
        }
        let lists = || {
            let lists = ["active_anon", "inactive_anon", "active_file", "inactive_file"];
            let add = |sum: u64, list: &str| Some(sum.saturating_add(self.counter(list)?));
            let new = lists.into_iter().try_fold(0, add);
            let others = ["isolated_anon", "isolated_file", "unevictable"]
                .map(|list| self.counter(list).unwrap_or(0));
            let old = || ["active", "inactive"].into_iter().try_fold(0, add);
            new.map(|lists| others.into_iter().fold(lists, u64::saturating_add)).or_else(old)
        };
        let from_lists = || lists()?.checked_sub(cache?);
        let from_anon = || {
            let anon = self.counter("active_anon")?.saturating_add(self.counter("inactive_anon")?);
            Some(anon.saturating_sub(self.counter("shmem")?))
        };
        if let Some(pages) = from_lists().or_else(from_anon) {
            row.set(MEM_ANON, bytes(pages));
        }
        from_nodes(row);
    }

    /// Sums the pools of all sizes; the counts are those of the size with the most memory, as the default size is not
    /// printed.
    fn huge_row(&self, row: &mut Row) {
        let whole = |pool: &HugePages| Bytes::new(pool.size.get().saturating_mul(pool.total));
        let Some(largest) =
            self.huge.iter().max_by_key(|pool| (whole(pool), std::cmp::Reverse(pool.size)))
        else {
            return;
        };
        row.set(MEM_HUGETLB, self.huge.iter().map(whole).sum());
        row.set(HUGEPAGE_SIZE, largest.size);
        let same = || self.huge.iter().filter(|pool| pool.size == largest.size);
        let sum =
            |of: fn(&HugePages) -> u64| Count::new(same().map(of).fold(0, u64::saturating_add));
        row.set(HUGEPAGES_TOTAL, sum(|pool| pool.total));
        row.set(HUGEPAGES_FREE, sum(|pool| pool.free));
        row.set(HUGEPAGES_SURP, sum(|pool| pool.surplus));
    }
}

/// Fills in what the counters would have shown, where they were cut off, from the lists in the lines of nodes: their pages
/// are anonymous or of files, and shared memory is on the anonymous ones.
fn from_nodes(row: &mut Row) {
    let sum = |row: &Row, parts: [MemorySignal; 2]| -> Option<Bytes> {
        parts.into_iter().map(|part| row.get(part)).sum()
    };
    let Some(shared) = row.get(MEM_SHMEM) else {
        return;
    };
    if row.get(MEM_ANON).is_none()
        && let Some(lists) = sum(row, [MEM_ACTIVE_ANON, MEM_INACTIVE_ANON])
    {
        row.set(MEM_ANON, lists.saturating_sub(shared));
    }
    if row.get(MEM_CACHED).is_none()
        && let Some(lists) = sum(row, [MEM_ACTIVE_FILE, MEM_INACTIVE_FILE])
    {
        row.set(MEM_CACHED, lists + shared);
    }
}

/// Adds a size to the sum of its name if the table has the name.
fn add(
    sums: &mut Vec<(&'static str, Bytes)>,
    table: &[(&'static str, MemorySignal)],
    name: &str,
    size: Bytes,
) {
    let Some((name, _)) = table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        return;
    };
    match sums.iter_mut().find(|(known, _)| known == name) {
        Some((_, sum)) => *sum += size,
        None => sums.push((name, size)),
    }
}

/// Sets the signals of a table from the sums of its names.
fn set(row: &mut Row, table: &[(&'static str, MemorySignal)], sums: &[(&'static str, Bytes)]) {
    for (name, signal) in table {
        if let Some((_, size)) = sums.iter().find(|(known, _)| known == name) {
            row.set(*signal, *size);
        }
    }
}

/// Parses the size of free (0) or all (1) swap at the start of a text; also returns what follows it.
fn swap_size(text: &str) -> Option<(usize, Bytes, &str)> {
    let (slot, rest) = ["Free swap", "Total swap"]
        .iter()
        .enumerate()
        .find_map(|(slot, name)| Some((slot, text.strip_prefix(name)?)))?;
    let value = rest.trim_start_matches([' ', '=', ':']);
    let unit = value.find(|c: char| !c.is_ascii_digit())?;
    let (word, rest) = value.split_at_checked(unit + 2)?;
    Some((slot, scan::size(word)?, rest))
}

/// Parses a line of counters: `active_anon:33632 inactive_anon:1327714 isolated_anon:0`. All words are `name:number`,
/// and the first name is known; unknown names may follow.
fn counters(line: &str) -> Option<Vec<(&'static str, u64)>> {
    let mut found = Vec::new();
    for word in scan::words(line) {
        let (name, value) = word.split_once(':')?;
        let value = number(value)?;
        let known = COUNTERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match known {
            Some((known, _)) => found.push((*known, value)),
            None if !found.is_empty() && scan::is_name(name) => {}
            None => return None,
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Parses `94990 total pagecache pages`.
fn total(line: &str) -> Option<(Total, u64)> {
    let (pages, name) = line.split_once(' ')?;
    let pages = number(pages)?;
    let name = name.trim();
    let known = TOTALS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, kind)| (*kind, pages))
}

/// Whether a line is `Node 0 DMA per-cpu:`, `CPU    0: hi:  186, btch:  31 usd:   0`, `cpu 0 hot: high 186, batch 31
/// used:12`.
fn is_per_cpu(line: &str) -> bool {
    let title = || line.ends_with(" per-cpu:") || line.ends_with(" per-cpu: empty");
    let list = || {
        let is_cpu = line.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("cpu "));
        is_cpu && ["btch:", " batch "].iter().any(|word| line.contains(word))
    };
    title() || list()
}

/// Whether a line only repeats what others say.
fn is_passed_over(line: &str) -> bool {
    ["Swap cache stats: add ", "Swap cache: add "].iter().any(|start| line.starts_with(start))
        || (line.starts_with("Free pages:") && line.ends_with("HighMem)"))
        || line.starts_with("No memory allocation info available")
}
