//! Parts that are larger than their whole, which no host has: more free memory than RAM. Then they are of two hosts, or a
//! thousands separator was misread.

use timeline::signals::{
    HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_TOTAL, MEM_ACTIVE, MEM_ANON, MEM_AVAILABLE,
    MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_KERNEL_STACK, MEM_MAPPED, MEM_PAGE_TABLES,
    MEM_PERCPU, MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL,
    MEM_UNEVICTABLE, SLAB_PAGES, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};
use timeline::{Entity, SignalId};
use units::{Bytes, PageSize};

use super::Snapshot;

/// Parts of RAM.
const PARTS: [SignalId; 16] = [
    MEM_FREE.id(),
    MEM_AVAILABLE.id(),
    MEM_BUFFERS.id(),
    MEM_CACHED.id(),
    MEM_SHMEM.id(),
    MEM_SLAB.id(),
    MEM_SLAB_RECLAIMABLE.id(),
    MEM_SLAB_UNRECLAIMABLE.id(),
    MEM_ANON.id(),
    MEM_MAPPED.id(),
    MEM_ACTIVE.id(),
    MEM_INACTIVE.id(),
    MEM_KERNEL_STACK.id(),
    MEM_PAGE_TABLES.id(),
    MEM_PERCPU.id(),
    MEM_UNEVICTABLE.id(),
];

/// The kernel does not read all figures at one instant: a part may exceed its whole by a fiftieth.
const MOVED_SHARE: u64 = 50;

/// Parts of another whole than RAM, and that whole.
const OTHER_PARTS: [(SignalId, SignalId); 3] = [
    (SWAP_USED.id(), SWAP_TOTAL.id()),
    (SWAP_FREE.id(), SWAP_TOTAL.id()),
    (HUGEPAGES_FREE.id(), HUGEPAGES_TOTAL.id()),
];

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
    let is_above = |part: &SignalId| {
        let size = parts.host(*part);
        size.is_some_and(|size| size > most.saturating_add(parts.error(*part)))
    };
    PARTS.iter().any(is_above)
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

/// Drops parts that are larger than the whole, beyond rounding. Returns the first of them.
pub(crate) fn drop_parts_above_total(snapshot: &mut Snapshot) -> Option<SignalId> {
    let of_ram = PARTS.map(|part| (part, MEM_TOTAL.id()));
    let pairs = of_ram.into_iter().chain(OTHER_PARTS);
    let mut too_large: Vec<SignalId> = pairs
        .filter(|(part, whole)| is_above(snapshot, *part, *whole))
        .map(|(part, _)| part)
        .collect();
    let pool_and_ram = huge_pool(snapshot).zip(snapshot.host(MEM_TOTAL.id()));
    if pool_and_ram.is_some_and(|(pool, ram)| pool > ram) {
        too_large.extend([HUGEPAGES_TOTAL.id(), HUGEPAGES_FREE.id()]);
    }
    let first = *too_large.first()?;
    let readings: Vec<_> = snapshot.sample.host.iter().collect();
    snapshot.sample.host = timeline::Row::default();
    for (signal, raw) in readings {
        if !too_large.contains(&signal) {
            snapshot.sample.host.set_raw(signal, raw);
        }
    }
    Some(first)
}

fn is_above(snapshot: &Snapshot, part: SignalId, whole: SignalId) -> bool {
    let (Some(a), Some(b)) = (snapshot.host(part), snapshot.host(whole)) else {
        return false;
    };
    let rounding = snapshot
        .error(part)
        .saturating_add(snapshot.error(whole))
        .saturating_add(b / MOVED_SHARE);
    a > b.saturating_add(rounding)
}

/// The problem to report of dropped parts.
pub(crate) fn parts_problem(signal: SignalId) -> String {
    let other = OTHER_PARTS.iter().find(|(part, _)| *part == signal);
    let whole = other.map_or(MEM_TOTAL.id(), |(_, whole)| *whole);
    let whole = whole.def().field;
    // Tools print it; the kernel does not.
    let name = if signal == SWAP_USED.id() {
        "used swap"
    } else {
        signal.def().field
    };
    format!("{name} is larger than {whole}: such figures are not used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_larger_than_the_whole_are_dropped() {
        let mut snapshot = Snapshot::default();
        let mut set = |signal: SignalId, raw| snapshot.sample.host.set_raw(signal, raw);
        set(MEM_TOTAL.id(), 8 << 30);
        set(MEM_FREE.id(), 1 << 30);
        set(MEM_AVAILABLE.id(), 990 << 30);
        set(SWAP_TOTAL.id(), 0);
        set(SWAP_FREE.id(), 4096);
        assert_eq!(
            drop_parts_above_total(&mut snapshot),
            Some(MEM_AVAILABLE.id())
        );
        let left: Vec<_> = snapshot.sample.host.iter().map(|(id, _)| id).collect();
        assert_eq!(left.len(), 3, "{left:?}");
        assert_eq!(
            parts_problem(SWAP_FREE.id()),
            "SwapFree is larger than SwapTotal: such figures are not used"
        );
        assert!(parts_problem(SWAP_USED.id()).starts_with("used swap is larger than SwapTotal"));
        assert_eq!(drop_parts_above_total(&mut snapshot), None);
    }

    #[test]
    fn a_pool_of_huge_pages_larger_than_ram_is_dropped() {
        let left = |pages, free| {
            let mut snapshot = Snapshot::default();
            let mut set = |signal: SignalId, raw| snapshot.sample.host.set_raw(signal, raw);
            set(MEM_TOTAL.id(), 8 << 30);
            set(HUGEPAGE_SIZE.id(), 2 << 20);
            set(HUGEPAGES_TOTAL.id(), pages);
            set(HUGEPAGES_FREE.id(), free);
            let first = drop_parts_above_total(&mut snapshot);
            (first, snapshot.host(HUGEPAGES_TOTAL.id()))
        };
        assert_eq!(left(4000, 4000), (None, Some(4000)));
        assert_eq!(left(5000, 4000), (Some(HUGEPAGES_TOTAL.id()), None));
        let mut swap = Snapshot::default();
        swap.sample.host.set_raw(SWAP_TOTAL.id(), 100 << 20);
        swap.sample.host.set_raw(SWAP_USED.id(), 500 << 20);
        assert_eq!(drop_parts_above_total(&mut swap), Some(SWAP_USED.id()));
        assert_eq!(left(2000, 3000), (Some(HUGEPAGES_FREE.id()), Some(2000)));
    }
}
