//! Figures that no host has: a part larger than its whole, parts that add up to more than it, more memory than a processor
//! can address. A digit is wrong, a thousands separator was misread, or the figures are of two hosts. They are not used, and
//! the source says so.

mod report;

use timeline::signals::{
    CGROUP_CURRENT, CGROUP_HIGH, CGROUP_LOW, CGROUP_MAX, CGROUP_MIN, CGROUP_SWAP_MAX, COMMIT_LIMIT,
    COMMITTED_AS, DIRECT_MAP_1G, DIRECT_MAP_2M, DIRECT_MAP_4K, HUGEPAGE_SIZE, HUGEPAGES_FREE,
    HUGEPAGES_TOTAL, MEM_ANON, MEM_BALLOON, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_LOW_TOTAL,
    MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, MEM_VMALLOC_USED,
    MEM_ZSWAPPED, MEMINFO, PROC_DATA, PROC_SIZE, SLAB_PAGES, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
    ZRAM_LIMIT,
};
use timeline::{Entity, Row, Sample, SignalId};
use units::{Bytes, Limit, PageSize, Pages, Quantity};

use crate::builder::Snapshot;

/// No processor addresses more than 52 bits of RAM (x86-64, arm64).
const RAM_MAX: u64 = 1 << 52;
/// No process has more than 57 bits of address space (x86-64 with five levels of page tables).
const ADDRESSES_MAX: u64 = 1 << 57;
/// Sizes of address space, of which only a part is memory.
const VIRTUAL: [SignalId; 4] = [
    COMMIT_LIMIT.id(),
    COMMITTED_AS.id(),
    PROC_SIZE.id(),
    PROC_DATA.id(),
];

/// Limits, which may have any value.
const LIMITS: [SignalId; 6] = [
    CGROUP_MAX.id(),
    CGROUP_HIGH.id(),
    CGROUP_LOW.id(),
    CGROUP_MIN.id(),
    CGROUP_SWAP_MAX.id(),
    ZRAM_LIMIT.id(),
];

/// Sizes in /proc/meminfo that are no part of MemTotal.
const NOT_OF_RAM: [SignalId; 12] = [
    MEM_TOTAL.id(),
    SWAP_TOTAL.id(),
    SWAP_FREE.id(),
    COMMIT_LIMIT.id(),
    COMMITTED_AS.id(),
    HUGEPAGE_SIZE.id(),
    MEM_ZSWAPPED.id(),
    MEM_BALLOON.id(),
    // Before 4.4 it counts what devices map.
    MEM_VMALLOC_USED.id(),
    DIRECT_MAP_4K.id(),
    DIRECT_MAP_2M.id(),
    DIRECT_MAP_1G.id(),
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
const DISJOINT: [SignalId; 5] = [
    MEM_FREE.id(),
    MEM_BUFFERS.id(),
    MEM_CACHED.id(),
    MEM_ANON.id(),
    MEM_SLAB.id(),
];

/// The kernel's direct map of RAM on x86-64, which covers all of it and what firmware keeps.
const DIRECT_MAP: [SignalId; 3] = [DIRECT_MAP_4K.id(), DIRECT_MAP_2M.id(), DIRECT_MAP_1G.id()];

/// Figures of a snapshot that no host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Impossible {
    /// A part that is larger than this whole.
    Part(SignalId, SignalId),
    /// Parts of RAM that add up to more than MemTotal.
    Sum,
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
            Self::Part(part, whole) => format!(
                "{} is larger than {}: such figures are not used",
                name(part),
                name(whole)
            ),
            Self::Sum => "free memory, page cache, anonymous memory and slab add up to more than MemTotal: they are not used".to_owned(),
            Self::Unmapped => "MemTotal is larger than what the kernel maps of it (DirectMap4k, 2M and 1G together): one of them is wrong, and not used".to_owned(),
            Self::Report => "the kernel report has sizes of processes or cgroups above those of their host or cgroup: they are not used".to_owned(),
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
        is_of_ram(part) && size > most.saturating_add(parts.error(part))
    };
    parts.sample.host.iter().any(is_above)
        || huge_pool(parts).is_some_and(|huge| huge > most)
        || slab_caches(parts) > most
}

/// The slab caches of a snapshot together, in bytes: at least, as pages may be larger than usual.
fn slab_caches(snapshot: &Snapshot) -> u64 {
    let caches = snapshot.sample.table(Entity::Slab).rows().iter();
    let pages = caches.filter_map(|cache| cache.row.get(SLAB_PAGES));
    pages
        .map(|pages| pages.to_bytes(PageSize::USUAL))
        .sum::<Bytes>()
        .get()
}

/// Drops the figures of a snapshot that no host has, beyond rounding. Returns the first of them.
pub(crate) fn drop_impossible(snapshot: &mut Snapshot) -> Option<Impossible> {
    let mut first = drop_sizes(snapshot);
    let mut forget = |why: Impossible, signals: &[SignalId], snapshot: &mut Snapshot| {
        first = first.or(Some(why));
        snapshot.sample.host.forget(signals);
    };
    if let Some(wrong) = wrong_of_direct_map(snapshot) {
        forget(Impossible::Unmapped, wrong, snapshot);
    }
    let readings: Vec<SignalId> = snapshot.sample.host.iter().map(|(it, _)| it).collect();
    let of_ram = readings.into_iter().filter(|it| is_of_ram(*it));
    for (part, whole) in of_ram.map(|part| (part, MEM_TOTAL.id())).chain(OTHER_PARTS) {
        if is_above(snapshot, &[part], whole) {
            forget(Impossible::Part(part, whole), &[part], snapshot);
        }
    }
    for (part, whole) in PARTS_OF_READINGS {
        if is_above(snapshot, &[part], whole) {
            forget(Impossible::Part(part, whole), &[part, whole], snapshot);
        }
    }
    let pool_and_ram = huge_pool(snapshot).zip(snapshot.host(MEM_TOTAL.id()));
    if pool_and_ram.is_some_and(|(pool, ram)| pool > ram) {
        let pool = [HUGEPAGES_TOTAL.id(), HUGEPAGES_FREE.id()];
        let why = Impossible::Part(HUGEPAGES_TOTAL.id(), MEM_TOTAL.id());
        forget(why, &pool, snapshot);
    }
    if is_above(snapshot, &DISJOINT, MEM_TOTAL.id()) {
        forget(Impossible::Sum, &DISJOINT, snapshot);
    }
    let ram = snapshot.host(MEM_TOTAL.id());
    let of_cgroups = drop_of_cgroups(&mut snapshot.sample, ram);
    let of_report = snapshot
        .report
        .as_mut()
        .is_some_and(|report| report::drop_impossible(report, ram));
    first
        .or(of_cgroups)
        .or(of_report.then_some(Impossible::Report))
}

/// The signals to drop where there is more RAM than the kernel maps: MemTotal, unless what is used of it is above that, too.
fn wrong_of_direct_map(snapshot: &Snapshot) -> Option<&'static [SignalId]> {
    const TOTAL: &[SignalId] = &[MEM_TOTAL.id()];
    let ram = snapshot.host(MEM_TOTAL.id())?;
    // A 32-bit kernel maps a part of RAM only, and other processors have no such counters.
    let is_whole =
        snapshot.host(DIRECT_MAP_2M.id()).is_some() && snapshot.host(MEM_LOW_TOTAL.id()).is_none();
    let mapped = sum(snapshot, &DIRECT_MAP);
    let most = mapped.saturating_add(mapped / MOVED_SHARE);
    if !is_whole || ram.saturating_sub(snapshot.error(MEM_TOTAL.id())) <= most {
        return None;
    }
    let is_used = sum(snapshot, &DISJOINT) > most;
    Some(if is_used { &DIRECT_MAP } else { TOTAL })
}

/// Drops the memory of cgroups that is above RAM or their limit. Returns the first of them.
fn drop_of_cgroups(sample: &mut Sample, ram: Option<u64>) -> Option<Impossible> {
    let current = CGROUP_CURRENT.id();
    let mut first = None;
    for row in sample.table_mut(Entity::Cgroup).rows_mut() {
        let Some(used) = row.row.get(CGROUP_CURRENT) else {
            continue;
        };
        let limit = row.row.get(CGROUP_MAX).and_then(Limit::limited);
        let is_above = |most: u64| used.get() > most.saturating_mul(2).saturating_add(FORCED_MAX);
        let why = if ram.is_some_and(|ram| used.get() > ram.saturating_add(ram / MOVED_SHARE)) {
            Impossible::Part(current, MEM_TOTAL.id())
        } else if limit.is_some_and(|limit| is_above(limit.get())) {
            Impossible::Part(current, CGROUP_MAX.id())
        } else {
            continue;
        };
        row.row.forget(&[current, CGROUP_MAX.id()]);
        first = first.or(Some(why));
    }
    first
}

/// Drops sizes above what a processor can address, of the host and of its parts. Returns the first of them.
fn drop_sizes(snapshot: &mut Snapshot) -> Option<Impossible> {
    let mut too_large = Vec::new();
    drop_sizes_of_row(&mut snapshot.sample.host, &mut too_large);
    for entity in Entity::ALL {
        for row in snapshot.sample.table_mut(entity).rows_mut() {
            drop_sizes_of_row(&mut row.row, &mut too_large);
        }
    }
    too_large.first().copied().map(Impossible::Size)
}

/// Drops such sizes of a row and adds them to `too_large`.
fn drop_sizes_of_row(row: &mut Row, too_large: &mut Vec<SignalId>) {
    let is_too_large = |(signal, raw): &(SignalId, u64)| {
        let most = if VIRTUAL.contains(signal) {
            ADDRESSES_MAX
        } else {
            RAM_MAX
        };
        let bytes = if signal.def().unit == Pages::NAME {
            raw.saturating_mul(PageSize::USUAL.bytes().get())
        } else {
            *raw
        };
        is_size(*signal) && bytes > most
    };
    let found: Vec<SignalId> = row.iter().filter(is_too_large).map(|(it, _)| it).collect();
    if !found.is_empty() {
        row.forget(&found);
        too_large.extend(found);
    }
}

/// Whether parts add up to more than a whole, beyond rounding and the drift of counters that are not read at one instant.
fn is_above(snapshot: &Snapshot, parts: &[SignalId], whole: SignalId) -> bool {
    let Some(total) = snapshot.host(whole) else {
        return false;
    };
    // Pages move between readings of a small cache; swap has a size of its own.
    let is_reading = PARTS_OF_READINGS
        .iter()
        .any(|(_, reading)| *reading == whole);
    let ram = snapshot.host(MEM_TOTAL.id()).filter(|_| is_reading);
    let moved = total.max(ram.unwrap_or(0)) / MOVED_SHARE;
    let drift = snapshot.error(whole).saturating_add(moved);
    sum(snapshot, parts) > total.saturating_add(drift)
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
    use timeline::signals::MEM_AVAILABLE;

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
            Some(Impossible::Part(MEM_AVAILABLE.id(), MEM_TOTAL.id()))
        );
        let left: Vec<_> = snapshot.sample.host.iter().map(|(id, _)| id).collect();
        assert_eq!(left.len(), 3, "{left:?}");
        assert_eq!(
            Impossible::Part(SWAP_FREE.id(), SWAP_TOTAL.id()).problem(),
            "SwapFree is larger than SwapTotal: such figures are not used"
        );
        assert_eq!(drop_impossible(&mut snapshot), None);
        let mut swap = self::snapshot(&[(SWAP_TOTAL.id(), 100 << 20), (SWAP_USED.id(), 500 << 20)]);
        let problem = drop_impossible(&mut swap).unwrap().problem();
        assert!(
            problem.starts_with("used swap is larger than SwapTotal"),
            "{problem}"
        );
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
            let first = drop_impossible(&mut snapshot);
            (first, snapshot.host(HUGEPAGES_TOTAL.id()))
        };
        let above = |part, whole| Some(Impossible::Part(part, whole));
        assert_eq!(left(4000, 4000), (None, Some(4000)));
        assert_eq!(
            left(5000, 4000),
            (above(HUGEPAGES_TOTAL.id(), MEM_TOTAL.id()), None)
        );
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
            (
                why,
                snapshot.host(MEM_CACHED.id()),
                snapshot.host(MEM_TOTAL.id()),
            )
        };
        assert_eq!(of(9), (None, Some(9 << 30), Some(16 << 30)));
        assert_eq!(of(14), (Some(Impossible::Sum), None, Some(16 << 30)));
    }

    #[test]
    fn more_ram_than_the_kernel_maps_is_none_unless_it_is_used() {
        let left = |total: u64, mapped: u64, free: u64, low: bool| {
            let mut readings = vec![
                (MEM_TOTAL.id(), total << 30),
                (DIRECT_MAP_2M.id(), mapped << 30),
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
            let is_left = snapshot.sample.table(Entity::Cgroup).rows()[0]
                .row
                .iter()
                .count();
            (why, is_left)
        };
        let above = |whole| Some(Impossible::Part(CGROUP_CURRENT.id(), whole));
        assert_eq!(left(4096, 994, None), (above(CGROUP_MAX.id()), 0));
        assert_eq!(left(4096, 5000, Some(2048)), (above(MEM_TOTAL.id()), 0));
        assert_eq!(left(120, 100, Some(2048)), (None, 2));
        assert_eq!(left(10, 0, Some(2048)), (None, 2));
    }

    #[test]
    fn more_memory_than_a_processor_addresses_is_dropped_from_host_and_rows_and_limits_are_not() {
        let mut snapshot = snapshot(&[(MEM_SLAB.id(), 38 << 50), (COMMITTED_AS.id(), 38 << 50)]);
        let row = &mut snapshot.sample.table_mut(Entity::Cgroup).entry("/web").row;
        row.set_raw(CGROUP_CURRENT.id(), 5 << 50);
        row.set_raw(CGROUP_MAX.id(), 1 << 62);
        let first = drop_impossible(&mut snapshot);
        assert_eq!(first, Some(Impossible::Size(MEM_SLAB.id())));
        assert_eq!(snapshot.host(COMMITTED_AS.id()), Some(38 << 50));
        let cgroup = &snapshot.sample.table(Entity::Cgroup).rows()[0].row;
        assert_eq!(
            (cgroup.get(CGROUP_CURRENT), cgroup.iter().count()),
            (None, 1)
        );
    }
}
