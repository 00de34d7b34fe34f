//! Figures that no host has: a part larger than its whole, parts that add up to more than it, more memory than a processor
//! can address. A digit is wrong, a thousands separator was misread, or the figures are of two hosts. They are not used, and
//! the source says so.

mod report;

use timeline::signals::{
    CGROUP_CURRENT, CGROUP_HIGH, CGROUP_LOW, CGROUP_MAX, CGROUP_MAX_WITH_SWAP, CGROUP_MIN,
    CGROUP_SWAP_MAX, COMMIT_LIMIT, COMMITTED_AS, DIRECT_MAP_1G, DIRECT_MAP_2M, DIRECT_MAP_4K,
    HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_TOTAL, MEM_ACTIVE_ANON, MEM_ACTIVE_FILE, MEM_ANON,
    MEM_AVAILABLE, MEM_BALLOON, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_INACTIVE_ANON,
    MEM_INACTIVE_FILE, MEM_KERNEL_STACK, MEM_KRECLAIMABLE, MEM_LOW_TOTAL, MEM_PAGE_TABLES,
    MEM_PERCPU, MEM_SEC_PAGE_TABLES, MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE,
    MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, MEM_UNEVICTABLE, MEM_VMALLOC_USED, MEM_ZSWAPPED, MEMINFO,
    PROC_DATA, PROC_HUGETLB, PROC_PAGE_TABLES, PROC_PSS, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE,
    PROC_RSS_SHMEM, PROC_SIZE, SLAB_PAGES, SWAP_FREE, SWAP_TOTAL, SWAP_USED, ZRAM_LIMIT,
};
use timeline::{Entity, Row, SignalId};
use units::{Bytes, Limit, PageSize, Pages, Quantity};

use crate::builder::Snapshot;

/// No host has more RAM than 256 TiB: the largest have 64 TiB (x86-64 with four levels of page tables).
const RAM_MAX: u64 = 1 << 48;
/// No process has more than 57 bits of address space (x86-64 with five levels of page tables).
const ADDRESSES_MAX: u64 = 1 << 57;
/// Sizes of address space, of which only a part is memory.
const VIRTUAL: [SignalId; 4] =
    [COMMIT_LIMIT.id(), COMMITTED_AS.id(), PROC_SIZE.id(), PROC_DATA.id()];

/// Limits, which may have any value.
const LIMITS: [SignalId; 7] = [
    CGROUP_MAX.id(),
    CGROUP_MAX_WITH_SWAP.id(),
    CGROUP_HIGH.id(),
    CGROUP_LOW.id(),
    CGROUP_MIN.id(),
    CGROUP_SWAP_MAX.id(),
    ZRAM_LIMIT.id(),
];

/// Sizes in /proc/meminfo that are no part of MemTotal.
const NOT_OF_RAM: [SignalId; 11] = [
    MEM_TOTAL.id(),
    SWAP_TOTAL.id(),
    SWAP_FREE.id(),
    COMMIT_LIMIT.id(),
    COMMITTED_AS.id(),
    HUGEPAGE_SIZE.id(),
    MEM_ZSWAPPED.id(),
    MEM_BALLOON.id(),
    DIRECT_MAP_4K.id(),
    DIRECT_MAP_2M.id(),
    DIRECT_MAP_1G.id(),
];

/// Fields of the host that LXCFS passes on.
const PASSED_ON: [SignalId; 11] = [
    MEM_SLAB.id(),
    MEM_SLAB_RECLAIMABLE.id(),
    MEM_SLAB_UNRECLAIMABLE.id(),
    MEM_KRECLAIMABLE.id(),
    MEM_KERNEL_STACK.id(),
    MEM_PAGE_TABLES.id(),
    MEM_SEC_PAGE_TABLES.id(),
    MEM_PERCPU.id(),
    MEM_VMALLOC_USED.id(),
    COMMIT_LIMIT.id(),
    COMMITTED_AS.id(),
];

/// The kernel does not read all figures at one instant: a part may exceed its whole by a fiftieth.
const MOVED_SHARE: u64 = 50;

/// What the kernel charges to a cgroup that is at its limit: a limit that was lowered, or memory that must not fail. More
/// than this above twice the limit is no reading.
const FORCED_MAX: u64 = 16 << 20;

/// Parts of another size that is set, not used, and that size.
const OTHER_PARTS: [(SignalId, SignalId); 3] = [
    (SWAP_USED.id(), SWAP_TOTAL.id()),
    (SWAP_FREE.id(), SWAP_TOTAL.id()),
    (HUGEPAGES_FREE.id(), HUGEPAGES_TOTAL.id()),
];

/// Parts of another reading, and that reading: either may be the wrong one.
const PARTS_OF_READINGS: [(SignalId, SignalId); 3] = [
    (MEM_SHMEM.id(), MEM_CACHED.id()),
    (MEM_SLAB_RECLAIMABLE.id(), MEM_SLAB.id()),
    (MEM_SLAB_UNRECLAIMABLE.id(), MEM_SLAB.id()),
];

/// Parts of RAM without an overlap.
const DISJOINT: [SignalId; 5] =
    [MEM_FREE.id(), MEM_BUFFERS.id(), MEM_CACHED.id(), MEM_ANON.id(), MEM_SLAB.id()];
/// Further parts. VmallocUsed is left out, as it has the stacks, and so is Percpu, which was partly allocated before RAM was counted.
const OF_KERNEL: [SignalId; 2] = [MEM_PAGE_TABLES.id(), MEM_KERNEL_STACK.id()];
const SLAB_KINDS: [SignalId; 2] = [MEM_SLAB_RECLAIMABLE.id(), MEM_SLAB_UNRECLAIMABLE.id()];
/// Lists that have all anonymous pages but those on devices and those being moved, and lists that have pages of files alone.
const ANON_LISTS: [SignalId; 3] =
    [MEM_ACTIVE_ANON.id(), MEM_INACTIVE_ANON.id(), MEM_UNEVICTABLE.id()];
const FILE_LISTS: [SignalId; 2] = [MEM_ACTIVE_FILE.id(), MEM_INACTIVE_FILE.id()];

/// All that the kernel adds up to MemAvailable (`si_mem_available` in `mm/show_mem.c`), and Shmem, which LXCFS adds for a container.
/// How far below MemFree it may be no figure of a paste says: what the kernel subtracts depends on `vm.min_free_kbytes`,
/// `vm.watermark_scale_factor` and `vm.lowmem_reserve_ratio`.
const OF_AVAILABLE: [SignalId; 5] = [
    MEM_FREE.id(),
    MEM_ACTIVE_FILE.id(),
    MEM_INACTIVE_FILE.id(),
    MEM_KRECLAIMABLE.id(),
    MEM_SHMEM.id(),
];
/// The same with the page cache in place of the lists of files: LXCFS counts pages of files that are locked in memory, and
/// kernels of Samsung's phones a part of the cache that is on no list (RbinCached).
const OF_AVAILABLE_BY_CACHE: [SignalId; 5] =
    [MEM_FREE.id(), MEM_CACHED.id(), MEM_BUFFERS.id(), MEM_KRECLAIMABLE.id(), MEM_SHMEM.id()];
/// Dirty pages are pages of files (`NR_FILE_DIRTY` is counted with the page cache alone), which are in one of these. Mapped may
/// be more than they are: drivers map pages of their own (`vm_insert_page`).
const CACHES: [SignalId; 2] = [MEM_CACHED.id(), MEM_BUFFERS.id()];

/// What is resident of a process may be counted this far off: up to 64 pages of each thread, since 6.2 up to
/// `percpu_counter_batch` pages of each CPU, 512 MiB with 256 CPUs.
const RESIDENT_DRIFT: u64 = 512 << 20;

/// Sizes of a process that count each page once.
const PROCESS_ONCE: [SignalId; 3] = [PROC_PAGE_TABLES.id(), PROC_HUGETLB.id(), PROC_PSS.id()];
/// Sizes that count a page as often as it is mapped: a JVM maps its heap three times, and more than RAM is no error.
const PROCESS_MAPPED: [SignalId; 4] =
    [PROC_RSS.id(), PROC_RSS_ANON.id(), PROC_RSS_FILE.id(), PROC_RSS_SHMEM.id()];

/// The most that pages mapped several times add up to: a misread digit is above that.
fn mapped_most(ram: u64) -> u64 {
    ram.saturating_mul(8)
}

/// The kernel's direct map of RAM on x86-64, which covers all of it and what firmware keeps.
const DIRECT_MAP: [SignalId; 3] = [DIRECT_MAP_4K.id(), DIRECT_MAP_2M.id(), DIRECT_MAP_1G.id()];

/// Figures of a snapshot that no host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Impossible {
    /// A part that is larger than this whole.
    Part(SignalId, SignalId),
    /// Parts of RAM that add up to more than MemTotal.
    Sum,
    /// Page tables and kernel stacks, which do so with them.
    SumOfKernel,
    /// A pool of huge pages that does so with them.
    SumOfPool,
    /// Both kinds of slab, which are more than Slab.
    Slab,
    /// More anonymous memory than the lists of its pages have, where the parts of RAM add up to too much.
    Anon,
    /// More available memory than all that is counted as such.
    Available,
    /// More dirty pages than there are pages of files.
    Dirty,
    /// A process with more memory than address space.
    Resident,
    /// Figures of the host in a container's /proc/meminfo.
    OfHost,
    /// More RAM than the kernel maps.
    Unmapped,
    /// A size above what a processor can address.
    Size(SignalId),
    /// Sizes in a kernel report above RAM or above the cgroup.
    Report,
}

impl Impossible {
    /// The problem to report.
    pub(crate) fn problem(self) -> String {
        match self {
            Self::Part(part, whole) => {
                format!("{} is larger than {}: such figures are not used", name(part), name(whole))
            }
            Self::OfHost => {
                "Slab is 0 and KReclaimable is not: this is /proc/meminfo of a container \
                             (lxcfs), in which the sizes of kernel memory and of zones are the \
                             host's; they are not used"
                    .to_owned()
            }
            Self::Sum => "free memory, page cache, anonymous memory and slab add up to more than \
                          MemTotal: they are not used"
                .to_owned(),
            Self::SumOfKernel => "with PageTables and KernelStack the parts of RAM add up to more \
                                  than MemTotal: these two are not used"
                .to_owned(),
            Self::SumOfPool => "with the pool of huge pages the parts of RAM add up to more than \
                                MemTotal: the pool is not used"
                .to_owned(),
            Self::Slab => "SReclaimable and SUnreclaim add up to more than Slab: such figures are \
                           not used"
                .to_owned(),
            Self::Anon => "AnonPages is larger than Active(anon), Inactive(anon) and Unevictable \
                           together: it is not used"
                .to_owned(),
            Self::Available => {
                "MemAvailable is larger than MemFree, pages of files, KReclaimable and Shmem \
                 together: one of MemAvailable and MemFree is wrong, and neither is used"
                    .to_owned()
            }
            Self::Dirty => {
                "Dirty is larger than Cached and Buffers together: it is not used".to_owned()
            }
            Self::Resident => "processes have more resident memory than address space: both \
                               figures of them are not used"
                .to_owned(),
            Self::Unmapped => {
                "MemTotal is larger than what the kernel maps of it (DirectMap4k, 2M and 1G \
                 together): one of them is wrong, and not used"
                    .to_owned()
            }
            Self::Report => "the kernel report has sizes of processes or cgroups above those of \
                             their host or cgroup: they are not used"
                .to_owned(),
            Self::Size(signal) => format!(
                "{} is larger than any machine's memory: such figures are not used",
                name(signal)
            ),
        }
    }
}

/// The name of a figure; tools print used swap, the kernel does not.
fn name(signal: SignalId) -> &'static str {
    match signal {
        _ if signal == SWAP_USED.id() => "used swap",
        _ if signal.def().entity == Entity::Host => signal.def().field,
        _ => signal.def().name,
    }
}

/// Whether a signal is a part of RAM.
fn is_of_ram(signal: SignalId) -> bool {
    signal.def().file == MEMINFO && is_size(signal) && !NOT_OF_RAM.contains(&signal)
}

/// Whether a signal is a size of memory, in bytes or pages.
fn is_size(signal: SignalId) -> bool {
    let def = signal.def();
    let is_gauge = !def.is_counter && matches!(def.unit, Bytes::NAME | Pages::NAME);
    is_gauge && !LIMITS.contains(&signal)
}

/// The pool of huge pages in bytes.
fn huge_pool(snapshot: &Snapshot) -> Option<u64> {
    let count = snapshot.host(HUGEPAGES_TOTAL.id())?;
    count.checked_mul(snapshot.host(HUGEPAGE_SIZE.id())?)
}

/// Whether a part of RAM in one snapshot is larger than the RAM of another, beyond rounding: they are of two hosts.
pub(crate) fn has_part_above(parts: &Snapshot, whole: &Snapshot) -> bool {
    let Some(total) = whole.host(MEM_TOTAL.id()) else {
        return false;
    };
    has_part_above_size(parts, total.saturating_add(whole.error(MEM_TOTAL.id())))
}

/// Whether a part of RAM in a snapshot is larger than this number of bytes, beyond rounding.
pub(crate) fn has_part_above_size(parts: &Snapshot, most: u64) -> bool {
    let is_above = |(part, size): (SignalId, u64)| {
        // Before 4.4 VmallocUsed counts what devices map.
        let is_of_ram = is_of_ram(part) && part != MEM_VMALLOC_USED.id();
        is_of_ram && size > most.saturating_add(parts.error(part))
    };
    parts.sample.host.iter().any(is_above)
        || huge_pool(parts).is_some_and(|huge| huge > most)
        || slab_caches(parts) > most
}

/// The slab caches of a snapshot together, in bytes: at least, as pages may be larger than usual.
fn slab_caches(snapshot: &Snapshot) -> u64 {
    let caches = snapshot.sample.table(Entity::Slab).rows().iter();
    let pages = caches.filter_map(|cache| cache.row.get(SLAB_PAGES));
    pages.map(|pages| pages.to_bytes(PageSize::USUAL)).sum::<Bytes>().get()
}

/// A whole with what its parts may exceed it by because they are not read at one instant.
fn drifted(size: u64) -> u64 {
    size.saturating_add(size / MOVED_SHARE)
}

/// The most that is charged where this much is allowed.
fn charged_most(limit: Bytes) -> u64 {
    limit.get().saturating_mul(2).saturating_add(FORCED_MAX)
}

/// Drops the figures of a snapshot that no host has, beyond rounding. Returns why, each reason once.
pub(crate) fn drop_impossible(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let mut found = Vec::new();
    for drop in [
        drop_sizes,
        drop_of_host,
        drop_unmapped,
        drop_parts,
        drop_available,
        drop_dirty,
        drop_slab,
        drop_pool,
        drop_sums,
        drop_of_cgroups,
        drop_of_processes,
        drop_of_report,
    ] {
        note_new(&mut found, drop(snapshot));
    }
    found
}

const RAM: SignalId = MEM_TOTAL.id();

/// Drops the figures of the host, and returns why.
fn forget(snapshot: &mut Snapshot, signals: &[SignalId], why: Impossible) -> Vec<Impossible> {
    snapshot.sample.host.forget(signals);
    vec![why]
}

/// LXCFS prints most fields of a container's own and 0 for its slab (`proc_meminfo_read` in `src/proc_fuse.c`), and passes on
/// the host's line of fields that it does not know.
fn drop_of_host(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let host = |signal: SignalId| snapshot.host(signal);
    let is_contained = host(MEM_SLAB.id()) == Some(0)
        && host(MEM_KRECLAIMABLE.id()).is_some_and(|bytes| bytes > 0);
    if !is_contained {
        return Vec::new();
    }
    let zones = snapshot.sample.table_mut(Entity::Zone);
    while !zones.rows().is_empty() {
        zones.drop_last();
    }
    forget(snapshot, &PASSED_ON, Impossible::OfHost)
}

fn drop_unmapped(snapshot: &mut Snapshot) -> Vec<Impossible> {
    match wrong_of_direct_map(snapshot) {
        Some(wrong) => forget(snapshot, wrong, Impossible::Unmapped),
        None => Vec::new(),
    }
}

/// Drops parts above their whole; where either may be wrong, both, unless others show which.
fn drop_parts(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let mut found = Vec::new();
    let readings: Vec<SignalId> = snapshot.sample.host.iter().map(|(it, _)| it).collect();
    let of_ram = readings.into_iter().filter(|it| is_of_ram(*it));
    for (part, whole) in of_ram.map(|part| (part, RAM)).chain(OTHER_PARTS) {
        if is_above(snapshot, &[part], whole, whole) {
            found.extend(forget(snapshot, &[part], Impossible::Part(part, whole)));
        }
    }
    for (part, whole) in PARTS_OF_READINGS {
        // Of a small cache more pages come and go between two readings than a share of it.
        if is_above(snapshot, &[part], whole, RAM) {
            let both = [part, whole];
            let is_whole_right = whole == MEM_CACHED.id() && has_pages_of_files(snapshot);
            let wrong = if is_whole_right { &both[..1] } else { &both };
            found.extend(forget(snapshot, wrong, Impossible::Part(part, whole)));
        }
    }
    found
}

/// Drops MemAvailable above the sum of what it is made of, and MemFree, the largest part of that.
fn drop_available(snapshot: &mut Snapshot) -> Vec<Impossible> {
    // Without Shmem, a part of the cache.
    let is_known = has_all(snapshot, &OF_AVAILABLE[..4]) && has_all(snapshot, &CACHES);
    let is_above = |parts| is_above_sum(snapshot, MEM_AVAILABLE.id(), parts);
    if is_known && is_above(&OF_AVAILABLE) && is_above(&OF_AVAILABLE_BY_CACHE) {
        // Either may be the wrong one.
        let both = [MEM_AVAILABLE.id(), MEM_FREE.id()];
        return forget(snapshot, &both, Impossible::Available);
    }
    Vec::new()
}

/// Drops dirty pages above the page cache.
fn drop_dirty(snapshot: &mut Snapshot) -> Vec<Impossible> {
    if has_all(snapshot, &CACHES) && is_above_sum(snapshot, MEM_DIRTY.id(), &CACHES) {
        return forget(snapshot, &[MEM_DIRTY.id()], Impossible::Dirty);
    }
    Vec::new()
}

/// Whether each of some figures is known.
fn has_all(snapshot: &Snapshot, figures: &[SignalId]) -> bool {
    figures.iter().all(|figure| snapshot.host(*figure).is_some())
}

/// Whether a size is larger than parts of RAM together, beyond rounding and drift, which is a share of RAM.
fn is_above_sum(snapshot: &Snapshot, size: SignalId, parts: &[SignalId]) -> bool {
    let (Some(_), Some(ram)) = (snapshot.host(size), snapshot.host(RAM)) else {
        return false;
    };
    let most = parts.iter().filter_map(|part| {
        let size = snapshot.host(*part)?;
        Some(size.saturating_add(snapshot.error(*part)))
    });
    let most = most.fold(ram / MOVED_SHARE, u64::saturating_add);
    sum(snapshot, &[size]) > most
}

fn drop_slab(snapshot: &mut Snapshot) -> Vec<Impossible> {
    if !is_above(snapshot, &SLAB_KINDS, MEM_SLAB.id(), RAM) {
        return Vec::new();
    }
    let slab = [SLAB_KINDS[0], SLAB_KINDS[1], MEM_SLAB.id()];
    forget(snapshot, &slab, Impossible::Slab)
}

/// Drops a pool of huge pages above RAM, or above what the other parts leave of it.
fn drop_pool(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let Some(pool) = huge_pool(snapshot) else {
        return Vec::new();
    };
    let with_others = pool.saturating_add(sum(snapshot, &DISJOINT));
    let why = if exceeds(snapshot, pool, RAM, RAM) {
        Impossible::Part(HUGEPAGES_TOTAL.id(), RAM)
    } else if exceeds(snapshot, with_others, RAM, RAM) && !is_above(snapshot, &DISJOINT, RAM, RAM) {
        Impossible::SumOfPool
    } else {
        return Vec::new();
    };
    forget(snapshot, &[HUGEPAGES_TOTAL.id(), HUGEPAGES_FREE.id()], why)
}

/// Drops parts of RAM that add up to more than it.
fn drop_sums(snapshot: &mut Snapshot) -> Vec<Impossible> {
    if is_above(snapshot, &DISJOINT, RAM, RAM) {
        // In a container some figures of /proc/meminfo are of the container, and some of its host.
        return if has_more_anon_than_lists(snapshot) {
            forget(snapshot, &[MEM_ANON.id()], Impossible::Anon)
        } else {
            forget(snapshot, &DISJOINT, Impossible::Sum)
        };
    }
    let all = sum(snapshot, &DISJOINT).saturating_add(sum(snapshot, &OF_KERNEL));
    if exceeds(snapshot, all, RAM, RAM) {
        return forget(snapshot, &OF_KERNEL, Impossible::SumOfKernel);
    }
    Vec::new()
}

fn drop_of_report(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let ram = snapshot.host(RAM);
    let report = snapshot.report.as_mut();
    let is_any = report.is_some_and(|report| report::drop_impossible(report, ram));
    is_any.then_some(Impossible::Report).into_iter().collect()
}

/// Adds the reasons that are not there yet.
pub(crate) fn note_new(all: &mut Vec<Impossible>, found: Vec<Impossible>) {
    for why in found {
        if !all.contains(&why) {
            all.push(why);
        }
    }
}

/// Whether the page cache has room for the pages on the lists of files, so that it is not the wrong one.
fn has_pages_of_files(snapshot: &Snapshot) -> bool {
    let known = has_all(snapshot, &FILE_LISTS);
    let cache = sum(snapshot, &[MEM_CACHED.id(), MEM_BUFFERS.id()]);
    known && drifted(cache) >= sum(snapshot, &FILE_LISTS)
}

fn has_more_anon_than_lists(snapshot: &Snapshot) -> bool {
    let known = has_all(snapshot, &ANON_LISTS);
    let drift = snapshot.host(MEM_TOTAL.id()).unwrap_or(0) / MOVED_SHARE;
    let listed = sum(snapshot, &ANON_LISTS).saturating_add(drift);
    known && sum(snapshot, &[MEM_ANON.id()]) > listed
}

/// The signals to drop where there is more RAM than the kernel maps: MemTotal, unless what is used of it is above that, too.
fn wrong_of_direct_map(snapshot: &Snapshot) -> Option<&'static [SignalId]> {
    const TOTAL: &[SignalId] = &[MEM_TOTAL.id()];
    let ram = snapshot.host(MEM_TOTAL.id())?;
    // A 32-bit kernel maps a part of RAM only, other processors have no such counters, and the last line of the file, which
    // a text may lack, has most of it.
    let is_whole =
        snapshot.host(DIRECT_MAP_1G.id()).is_some() && snapshot.host(MEM_LOW_TOTAL.id()).is_none();
    let mapped = sum(snapshot, &DIRECT_MAP);
    let most = drifted(mapped);
    if !is_whole || ram.saturating_sub(snapshot.error(MEM_TOTAL.id())) <= most {
        return None;
    }
    let is_used = sum(snapshot, &DISJOINT) > most;
    Some(if is_used { &DIRECT_MAP } else { TOTAL })
}

/// Drops the memory of cgroups that is above RAM or their limit. Returns why.
fn drop_of_cgroups(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let (current, ram) = (CGROUP_CURRENT.id(), snapshot.host(RAM));
    let mut found = Vec::new();
    for row in snapshot.sample.table_mut(Entity::Cgroup).rows_mut() {
        let Some(used) = row.row.get(CGROUP_CURRENT) else {
            continue;
        };
        let limit = row.row.get(CGROUP_MAX).and_then(Limit::limited);
        let whole = if ram.is_some_and(|ram| used.get() > drifted(ram)) {
            MEM_TOTAL.id()
        } else if limit.is_some_and(|limit| used.get() > charged_most(limit)) {
            CGROUP_MAX.id()
        } else {
            continue;
        };
        row.row.forget(&[current, CGROUP_MAX.id()]);
        found.push(Impossible::Part(current, whole));
    }
    found
}

/// Drops the memory of processes that is above RAM; where a page may count several times, far above. Returns why.
fn drop_of_processes(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let mut found = Vec::new();
    for row in snapshot.sample.table_mut(Entity::Process).rows_mut() {
        let (resident, size) = (row.row.get(PROC_RSS), row.row.get(PROC_SIZE));
        let (Some(resident), Some(size)) = (resident, size) else {
            continue;
        };
        // Tools print both with few digits.
        let most = drifted(size.get()).saturating_mul(2).saturating_add(RESIDENT_DRIFT);
        if bytes(PROC_RSS.id(), resident.get()) > most {
            row.row.forget(&[PROC_RSS.id(), PROC_SIZE.id()]);
            found.push(Impossible::Resident);
        }
    }
    let Some(ram) = snapshot.host(RAM) else {
        return found;
    };
    for row in snapshot.sample.table_mut(Entity::Process).rows_mut() {
        let is_above = |(signal, raw): &(SignalId, u64)| {
            let most = if PROCESS_ONCE.contains(signal) {
                drifted(ram)
            } else if PROCESS_MAPPED.contains(signal) {
                mapped_most(ram)
            } else {
                return false;
            };
            bytes(*signal, *raw) > most
        };
        let above: Vec<SignalId> = row.row.iter().filter(is_above).map(|(it, _)| it).collect();
        row.row.forget(&above);
        found.extend(above.iter().map(|it| Impossible::Part(*it, RAM)));
    }
    found
}

/// Drops sizes above what a processor can address, of the host and of its parts. Returns why.
fn drop_sizes(snapshot: &mut Snapshot) -> Vec<Impossible> {
    let mut too_large = Vec::new();
    drop_sizes_of_row(&mut snapshot.sample.host, &mut too_large);
    if too_large.contains(&RAM) {
        // The others were read in the same unit.
        let readings = snapshot.sample.host.iter().map(|(it, _)| it);
        let sizes: Vec<SignalId> = readings.filter(|it| is_of_ram(*it)).collect();
        snapshot.sample.host.forget(&sizes);
    }
    for entity in Entity::ALL {
        for row in snapshot.sample.table_mut(entity).rows_mut() {
            drop_sizes_of_row(&mut row.row, &mut too_large);
        }
    }
    too_large.into_iter().map(Impossible::Size).collect()
}

/// A size in bytes; pages may be larger than usual.
fn bytes(signal: SignalId, raw: u64) -> u64 {
    if signal.def().unit == Pages::NAME {
        Pages::new(raw).to_bytes(PageSize::USUAL).get()
    } else {
        raw
    }
}

/// Drops such sizes of a row and adds them to `too_large`.
fn drop_sizes_of_row(row: &mut Row, too_large: &mut Vec<SignalId>) {
    let is_too_large = |(signal, raw): &(SignalId, u64)| {
        let most = if VIRTUAL.contains(signal) { ADDRESSES_MAX } else { RAM_MAX };
        is_size(*signal) && bytes(*signal, *raw) > most
    };
    let found: Vec<SignalId> = row.iter().filter(is_too_large).map(|(it, _)| it).collect();
    if !found.is_empty() {
        row.forget(&found);
        too_large.extend(found);
    }
}

/// Whether parts add up to more than a whole, beyond rounding and drift, which is a share of the whole or of `moves`, if that is
/// more.
fn is_above(snapshot: &Snapshot, parts: &[SignalId], whole: SignalId, moves: SignalId) -> bool {
    exceeds(snapshot, sum(snapshot, parts), whole, moves)
}

fn exceeds(snapshot: &Snapshot, size: u64, whole: SignalId, moves: SignalId) -> bool {
    let Some(total) = snapshot.host(whole) else {
        return false;
    };
    let moved = total.max(snapshot.host(moves).unwrap_or(0)) / MOVED_SHARE;
    let drift = snapshot.error(whole).saturating_add(moved);
    size > total.saturating_add(drift)
}

/// The sum of sizes, each as small as its rounding allows.
fn sum(snapshot: &Snapshot, parts: &[SignalId]) -> u64 {
    let known = parts.iter().filter_map(|part| {
        let size = snapshot.host(*part)?;
        Some(size.saturating_sub(snapshot.error(*part)))
    });
    known.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(readings: &[(SignalId, u64)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (signal, raw) in readings {
            snapshot.sample.host.set_raw(*signal, *raw);
        }
        snapshot
    }

    #[test]
    fn parts_larger_than_the_whole_are_dropped() {
        let mut snapshot = snapshot(&[
            (MEM_TOTAL.id(), 8 << 30),
            (MEM_FREE.id(), 1 << 30),
            (MEM_AVAILABLE.id(), 990 << 30),
            (SWAP_TOTAL.id(), 0),
            (SWAP_FREE.id(), 4096),
        ]);
        assert_eq!(
            drop_impossible(&mut snapshot),
            [
                Impossible::Part(MEM_AVAILABLE.id(), MEM_TOTAL.id()),
                Impossible::Part(SWAP_FREE.id(), SWAP_TOTAL.id())
            ]
        );
        let left: Vec<_> = snapshot.sample.host.iter().map(|(id, _)| id).collect();
        assert_eq!(left.len(), 3, "{left:?}");
        assert_eq!(
            Impossible::Part(SWAP_FREE.id(), SWAP_TOTAL.id()).problem(),
            "SwapFree is larger than SwapTotal: such figures are not used"
        );
        assert_eq!(drop_impossible(&mut snapshot), []);
        let mut swap = self::snapshot(&[(SWAP_TOTAL.id(), 100 << 20), (SWAP_USED.id(), 500 << 20)]);
        let problem = drop_impossible(&mut swap)[0].problem();
        assert!(problem.starts_with("used swap is larger than SwapTotal"), "{problem}");
    }

    #[test]
    fn a_pool_of_huge_pages_larger_than_ram_is_dropped() {
        let left = |pages, free| {
            let mut snapshot = snapshot(&[
                (MEM_TOTAL.id(), 8 << 30),
                (HUGEPAGE_SIZE.id(), 2 << 20),
                (HUGEPAGES_TOTAL.id(), pages),
                (HUGEPAGES_FREE.id(), free),
            ]);
            let found = drop_impossible(&mut snapshot);
            (found, snapshot.host(HUGEPAGES_TOTAL.id()))
        };
        let above = |part, whole| vec![Impossible::Part(part, whole)];
        assert_eq!(left(4000, 4000), (vec![], Some(4000)));
        assert_eq!(left(5000, 4000), (above(HUGEPAGES_TOTAL.id(), MEM_TOTAL.id()), None));
        let free = above(HUGEPAGES_FREE.id(), HUGEPAGES_TOTAL.id());
        assert_eq!(left(2000, 3000), (free, Some(2000)));
    }

    #[test]
    fn parts_that_add_up_to_more_than_ram_are_dropped_and_the_whole_stays() {
        let of = |cached: u64| {
            let mut snapshot = snapshot(&[
                (MEM_TOTAL.id(), 16 << 30),
                (MEM_FREE.id(), 1 << 30),
                (MEM_ANON.id(), 6 << 30),
                (MEM_CACHED.id(), cached << 30),
            ]);
            let why = drop_impossible(&mut snapshot);
            (why, snapshot.host(MEM_CACHED.id()), snapshot.host(MEM_TOTAL.id()))
        };
        assert_eq!(of(9), (vec![], Some(9 << 30), Some(16 << 30)));
        assert_eq!(of(14), (vec![Impossible::Sum], None, Some(16 << 30)));
    }

    #[test]
    fn where_parts_do_not_fit_the_one_that_others_contradict_is_dropped() {
        const GIB: u64 = 1 << 30;
        let left = |more: &[(SignalId, u64)]| {
            let mut snapshot = snapshot(&[
                (MEM_TOTAL.id(), 16 * GIB),
                (MEM_FREE.id(), 4 * GIB),
                (MEM_CACHED.id(), 6 * GIB),
                (MEM_ANON.id(), 4 * GIB),
            ]);
            for (signal, gib) in more {
                snapshot.sample.host.set_raw(*signal, gib * GIB);
            }
            let why = drop_impossible(&mut snapshot);
            let is_gone = |signal: &SignalId| snapshot.host(*signal).is_none();
            let kept = [MEM_FREE.id(), MEM_CACHED.id(), MEM_ANON.id()];
            let mut gone: Vec<SignalId> = more.iter().map(|(signal, _)| *signal).collect();
            gone.extend(kept);
            gone.retain(is_gone);
            gone.sort();
            gone.dedup();
            (why, gone)
        };
        let of_kernel = [(MEM_PAGE_TABLES.id(), 12)];
        let gone = |signal: SignalId| vec![signal];
        assert_eq!(left(&of_kernel), (vec![Impossible::SumOfKernel], gone(MEM_PAGE_TABLES.id())));
        // AnonPages of the host, in a container.
        let lists = [
            (MEM_ANON.id(), 12),
            (MEM_ACTIVE_ANON.id(), 1),
            (MEM_INACTIVE_ANON.id(), 1),
            (MEM_UNEVICTABLE.id(), 0),
        ];
        assert_eq!(left(&lists), (vec![Impossible::Anon], gone(MEM_ANON.id())));
        let shmem = [(MEM_SHMEM.id(), 12), (MEM_ACTIVE_FILE.id(), 3), (MEM_INACTIVE_FILE.id(), 2)];
        let part = Impossible::Part(MEM_SHMEM.id(), MEM_CACHED.id());
        assert_eq!(left(&shmem), (vec![part], gone(MEM_SHMEM.id())));
        let slab =
            [(MEM_SLAB.id(), 1), (MEM_SLAB_RECLAIMABLE.id(), 1), (MEM_SLAB_UNRECLAIMABLE.id(), 1)];
        assert_eq!(left(&slab).0, [Impossible::Slab]);
        let vmalloc = [(MEM_VMALLOC_USED.id(), 124)];
        let part = Impossible::Part(MEM_VMALLOC_USED.id(), MEM_TOTAL.id());
        assert_eq!(left(&vmalloc), (vec![part], gone(MEM_VMALLOC_USED.id())));
        let fits = [(MEM_PAGE_TABLES.id(), 1), (MEM_VMALLOC_USED.id(), 1)];
        assert_eq!(left(&fits), (vec![], vec![]));
    }

    #[test]
    fn figures_of_the_host_in_a_container_are_not_used() {
        let of = |slab| {
            let mut snapshot = snapshot(&[
                (MEM_TOTAL.id(), 1 << 30),
                (MEM_CACHED.id(), 616_764 << 10),
                (MEM_KRECLAIMABLE.id(), 470_068 << 10),
                (MEM_SLAB.id(), slab),
                (MEM_PAGE_TABLES.id(), 36_128 << 10),
            ]);
            let why = drop_impossible(&mut snapshot);
            let left = [MEM_CACHED.id(), MEM_KRECLAIMABLE.id(), MEM_PAGE_TABLES.id()];
            (why, left.map(|signal| snapshot.host(signal).is_some()))
        };
        assert_eq!(of(0), (vec![Impossible::OfHost], [true, false, false]));
        assert!(of(200 << 20).1[0]);
        assert!(!of(200 << 20).0.contains(&Impossible::OfHost));
    }

    #[test]
    fn a_process_far_larger_than_ram_loses_its_size() {
        let mut snapshot = snapshot(&[(MEM_TOTAL.id(), 8 << 30)]);
        let row = &mut snapshot.sample.table_mut(Entity::Process).entry("7@1").row;
        row.set(PROC_RSS, Pages::new(690 << 18));
        row.set(PROC_PSS, Bytes::from_gib(9));
        row.set(PROC_SIZE, Bytes::from_gib(900));
        let mapped = &mut snapshot.sample.table_mut(Entity::Process).entry("8@1").row;
        // A JVM that maps its heap three times.
        mapped.set(PROC_RSS, Pages::new(20 << 18));
        let above = |part| Impossible::Part(part, RAM);
        let why = drop_impossible(&mut snapshot);
        assert_eq!(why, [above(PROC_RSS.id()), above(PROC_PSS.id())]);
        let rows = snapshot.sample.table(Entity::Process).rows();
        assert_eq!([0, 1].map(|at| rows[at].row.iter().count()), [1, 1]);
    }

    #[test]
    fn available_memory_above_what_it_is_made_of_is_dropped_and_below_memfree_stays() {
        const MIB: u64 = 1 << 20;
        let left = |available: u64, more: &[(SignalId, u64)]| {
            let mut snapshot = snapshot(&[
                (MEM_TOTAL.id(), 16_000 * MIB),
                (MEM_AVAILABLE.id(), available * MIB),
                (MEM_FREE.id(), 600 * MIB),
                (MEM_ACTIVE_FILE.id(), 400 * MIB),
                (MEM_INACTIVE_FILE.id(), 300 * MIB),
            ]);
            for (signal, mib) in more {
                snapshot.sample.host.set_raw(*signal, mib * MIB);
            }
            (drop_impossible(&mut snapshot), snapshot.host(MEM_AVAILABLE.id()).is_some())
        };
        let slab = (MEM_KRECLAIMABLE.id(), 200);
        assert_eq!(left(1_500, &[slab]), (vec![], true));
        // The reserve may be anything.
        assert_eq!(left(60, &[slab]), (vec![], true));
        assert_eq!(left(9_000, &[slab]), (vec![], true), "no cache is known");
        let cache = [slab, (MEM_CACHED.id(), 600), (MEM_BUFFERS.id(), 100)];
        assert_eq!(left(9_000, &cache), (vec![Impossible::Available], false));
        // Of which pages are on no list.
        let cache = [slab, (MEM_CACHED.id(), 8_600), (MEM_BUFFERS.id(), 100)];
        assert_eq!(left(9_000, &cache), (vec![], true));
        // A container by LXCFS, and a kernel that has parts which it does not print.
        assert_eq!(left(9_000, &[slab, (MEM_SHMEM.id(), 8_000)]), (vec![], true));
        assert_eq!(left(9_000, &[]), (vec![], true));
    }

    #[test]
    fn more_dirty_pages_than_pages_of_files_are_dropped() {
        let left = |dirty: u64| {
            let mut snapshot = snapshot(&[
                (MEM_TOTAL.id(), 8 << 30),
                (MEM_CACHED.id(), 1 << 30),
                (MEM_BUFFERS.id(), 1 << 30),
                (MEM_DIRTY.id(), dirty << 30),
            ]);
            (drop_impossible(&mut snapshot), snapshot.host(MEM_DIRTY.id()).is_some())
        };
        assert_eq!(left(2), (vec![], true));
        assert_eq!(left(3), (vec![Impossible::Dirty], false));
    }

    #[test]
    fn a_process_with_more_memory_than_addresses_loses_both() {
        let left = |resident_mib: u64, size_mib: u64| {
            let mut snapshot = Snapshot::default();
            let row = &mut snapshot.sample.table_mut(Entity::Process).entry("7@1").row;
            row.set(PROC_RSS, Pages::new(resident_mib << 8));
            row.set(PROC_SIZE, Bytes::from_mib(size_mib));
            let why = drop_impossible(&mut snapshot);
            let is_left = snapshot.sample.table(Entity::Process).rows()[0].row.iter().count();
            (why, is_left)
        };
        assert_eq!(left(900, 1_000), (vec![], 2));
        // Counted far off on a host with many CPUs.
        assert_eq!(left(500, 10), (vec![], 2));
        assert_eq!(left(9_000, 1_000), (vec![Impossible::Resident], 0));
    }

    #[test]
    fn more_ram_than_the_kernel_maps_is_none_unless_it_is_used() {
        let left = |total: u64, mapped: u64, free: u64, low: bool| {
            let mut readings = vec![
                (MEM_TOTAL.id(), total << 30),
                (DIRECT_MAP_2M.id(), mapped << 30),
                (DIRECT_MAP_1G.id(), 0),
                (MEM_FREE.id(), free << 30),
            ];
            readings.extend(low.then_some((MEM_LOW_TOTAL.id(), 1 << 29)));
            let mut snapshot = snapshot(&readings);
            drop_impossible(&mut snapshot);
            let has = |signal: SignalId| snapshot.host(signal).is_some();
            (has(MEM_TOTAL.id()), has(DIRECT_MAP_2M.id()))
        };
        assert_eq!(left(24, 26, 20, false), (true, true));
        assert_eq!(left(224, 26, 20, false), (false, true));
        assert_eq!(left(24, 2, 20, false), (true, false));
        assert_eq!(left(16, 1, 1, true), (true, true));
    }

    #[test]
    fn memory_of_a_cgroup_far_above_its_limit_or_ram_is_dropped_with_the_limit() {
        let left = |used: u64, limit: u64, ram: Option<u64>| {
            let mut snapshot = Snapshot::default();
            if let Some(ram) = ram {
                snapshot.sample.host.set_raw(MEM_TOTAL.id(), ram << 20);
            }
            let row = &mut snapshot.sample.table_mut(Entity::Cgroup).entry("/web").row;
            row.set_raw(CGROUP_CURRENT.id(), used << 20);
            row.set_raw(CGROUP_MAX.id(), limit << 20);
            let why = drop_impossible(&mut snapshot);
            let is_left = snapshot.sample.table(Entity::Cgroup).rows()[0].row.iter().count();
            (why, is_left)
        };
        let above = |whole| vec![Impossible::Part(CGROUP_CURRENT.id(), whole)];
        assert_eq!(left(4096, 994, None), (above(CGROUP_MAX.id()), 0));
        assert_eq!(left(4096, 5000, Some(2048)), (above(MEM_TOTAL.id()), 0));
        assert_eq!(left(120, 100, Some(2048)), (vec![], 2));
        assert_eq!(left(10, 0, Some(2048)), (vec![], 2));
    }

    #[test]
    fn more_memory_than_a_processor_addresses_is_dropped_from_host_and_rows_and_limits_are_not() {
        let mut snapshot = snapshot(&[(MEM_SLAB.id(), 38 << 50), (COMMITTED_AS.id(), 38 << 50)]);
        let row = &mut snapshot.sample.table_mut(Entity::Cgroup).entry("/web").row;
        row.set_raw(CGROUP_CURRENT.id(), 5 << 50);
        row.set_raw(CGROUP_MAX.id(), 1 << 62);
        let found = drop_impossible(&mut snapshot);
        let size = |signal| Impossible::Size(signal);
        assert_eq!(found, [size(MEM_SLAB.id()), size(CGROUP_CURRENT.id())]);
        assert_eq!(snapshot.host(COMMITTED_AS.id()), Some(38 << 50));
        let cgroup = &snapshot.sample.table(Entity::Cgroup).rows()[0].row;
        assert_eq!((cgroup.get(CGROUP_CURRENT), cgroup.iter().count()), (None, 1));
    }
}
