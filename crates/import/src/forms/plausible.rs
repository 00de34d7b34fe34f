//! Checks sizes that no host has: 16 MiB or 20 TiB of RAM, more free memory than RAM. Then the unit is another one, or
//! a thousands separator was misread.

use timeline::signals::{
    HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_TOTAL, MEM_ACTIVE, MEM_ANON, MEM_AVAILABLE,
    MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_KERNEL_STACK, MEM_MAPPED, MEM_PAGE_TABLES,
    MEM_PERCPU, MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL,
    MEM_UNEVICTABLE, SLAB_PAGES, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};
use timeline::{Entity, SignalId};
use units::{Bytes, PageSize};

use super::size_unit::SizeUnit;
use crate::builder::Snapshot;
use crate::text::figure::{KIB, MIB, TIB};

/// The RAM of any host is between these bounds.
const RAM_BYTES_MIN: f64 = 64.0 * MIB;
const RAM_BYTES_MAX: f64 = 16.0 * TIB;
/// Most hosts have at most this much RAM.
const USUAL: f64 = TIB;

/// The unit of sizes, as a `MemTotal` without a unit shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TotalUnit {
    /// KiB, as in `/proc/meminfo`.
    Kib,
    /// The only unit that gives a plausible size.
    BySize(SizeUnit),
    /// Several units do, or none.
    Unknown,
}

/// The unit of a `MemTotal` without a unit.
pub(super) fn unit_of_total(total: f64) -> TotalUnit {
    if (RAM_BYTES_MIN..=USUAL).contains(&(total * KIB)) {
        return TotalUnit::Kib;
    }
    let units = [
        ("bytes", RAM_BYTES_MAX),
        ("KiB", RAM_BYTES_MAX),
        ("MiB", RAM_BYTES_MAX),
        ("GiB", USUAL),
    ];
    let could_be = |(name, most): (&str, f64)| {
        SizeUnit::named(name).filter(|unit| (RAM_BYTES_MIN..=most).contains(&(total * unit.bytes)))
    };
    let mut possible = units.into_iter().filter_map(could_be);
    match (possible.next(), possible.next()) {
        (Some(only), None) => TotalUnit::BySize(only),
        _ => TotalUnit::Unknown,
    }
}

/// The problem to report for a unit that was assumed or is unknown.
pub(super) fn unit_problem(unit: TotalUnit) -> Option<String> {
    match unit {
        TotalUnit::Kib => None,
        TotalUnit::BySize(unit) => Some(format!(
            "MemTotal has no unit and cannot be KiB: taken as {}, unit by the size",
            unit.name
        )),
        TotalUnit::Unknown => Some(
            "MemTotal has no unit and can hardly be KiB: sizes are not used; paste them with their kB"
                .to_owned(),
        ),
    }
}

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
    // The kernel does not read all figures at one instant.
    let rounding = snapshot
        .error(part)
        .saturating_add(snapshot.error(whole))
        .saturating_add(b / 50);
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
    fn a_total_without_a_unit_is_in_the_only_plausible_one() {
        let by_size = |name| TotalUnit::BySize(SizeUnit::named(name).unwrap());
        for (total, unit) in [
            (16_303_428.0, TotalUnit::Kib),
            (524_288.0, TotalUnit::Kib),
            (16_384.0, by_size("MiB")),
            (33_285_996_544.0, by_size("bytes")),
            // 15.5 GiB, or 15.5 TiB.
            (16_694_710_272.0, TotalUnit::Unknown),
            (512.0, TotalUnit::Unknown),
            (0.0, TotalUnit::Unknown),
            (1e30, TotalUnit::Unknown),
        ] {
            assert_eq!(unit_of_total(total), unit, "{total}");
        }
    }

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
