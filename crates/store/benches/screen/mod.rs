//! A screen like that of a diagnosis: some forty signals, and thresholds of the size that rules have.

use timeline::{Entity, EntityRollUps, RollUp, RollUps, SignalId, signals as s};

/// Counters, and by how much each must grow in a minute.
const HOST_COUNTERS: [(SignalId, u64); 22] = [
    (s::PSWPIN.id(), 512),
    (s::PSWPOUT.id(), 2_048),
    (s::REFAULT_ANON.id(), 400),
    (s::REFAULT_FILE.id(), 2_048),
    (s::ALLOCSTALL.id(), 20),
    (s::PGSCAN_DIRECT.id(), 4_096),
    (s::PGSCAN_KSWAPD.id(), 1 << 21),
    (s::PGSTEAL_DIRECT.id(), 4_096),
    (s::PGSTEAL_KSWAPD.id(), 1 << 21),
    (s::PSI_MEMORY_SOME.id(), 1_000_000),
    (s::PSI_MEMORY_FULL.id(), 500_000),
    (s::PSI_IO_SOME.id(), 45_000_000),
    (s::PSI_IO_FULL.id(), 45_000_000),
    (s::OOM_KILLS.id(), 1),
    (s::COMPACT_STALL.id(), 600),
    (s::COMPACT_FAIL.id(), 600),
    (s::PGMAJFAULT.id(), 30_000),
    (s::PGSCAN_ANON.id(), 1 << 18),
    (s::PGSCAN_FILE.id(), 1 << 21),
    (s::ACTIVATE_FILE.id(), 1 << 20),
    (s::THP_FAULT_FALLBACK.id(), 60_000),
    (s::SWAP_RA.id(), 100_000),
];
/// Gauges and what must not be undercut, in MiB.
const HOST_LOWS: [(SignalId, u64); 2] = [(s::MEM_AVAILABLE.id(), 400), (s::SWAP_FREE.id(), 64)];
/// Gauges and what must not be exceeded, in MiB.
const HOST_HIGHS: [(SignalId, u64); 6] = [
    (s::MEM_DIRTY.id(), 1_600),
    (s::MEM_SHMEM.id(), 8_000),
    (s::MEM_WRITEBACK.id(), 1_000),
    (s::MEM_PAGE_TABLES.id(), 1_000),
    (s::MEM_SLAB_UNRECLAIMABLE.id(), 4_000),
    (s::MEM_UNEVICTABLE.id(), 8_000),
];
const GROUP_COUNTERS: [(SignalId, u64); 9] = [
    (s::CGROUP_EVENTS_HIGH.id(), 10),
    (s::CGROUP_EVENTS_MAX.id(), 10),
    (s::CGROUP_EVENTS_OOM.id(), 1),
    (s::CGROUP_EVENTS_OOM_KILL.id(), 1),
    (s::CGROUP_REFAULT_FILE.id(), 2_048),
    (s::CGROUP_REFAULT_ANON.id(), 2_048),
    (s::CGROUP_PSI_MEMORY_SOME.id(), 3_000_000),
    (s::CGROUP_PSI_MEMORY_FULL.id(), 3_000_000),
    (s::CGROUP_PGMAJFAULT.id(), 10_000),
];

/// What it reads.
pub(crate) fn signals() -> Vec<SignalId> {
    let levels = HOST_LOWS.iter().chain(&HOST_HIGHS);
    let counters = HOST_COUNTERS.iter().chain(&GROUP_COUNTERS);
    levels.chain(counters).map(|(signal, _)| *signal).collect()
}

/// Whether something could hold, minute by minute.
pub(crate) fn could_hold(rolled: &RollUps) -> Vec<bool> {
    let mut could = vec![false; rolled.len()];
    let hosts = rolled.entities(Entity::Host);
    for host in hosts {
        grown(host, &HOST_COUNTERS, &mut could);
        for (signal, mib) in HOST_LOWS {
            let is_low = |known: RollUp| known.min().is_some_and(|min| min < mib << 20);
            note(host, signal, is_low, &mut could);
        }
        for (signal, mib) in HOST_HIGHS {
            let is_high = |known: RollUp| known.max().is_some_and(|max| max > mib << 20);
            note(host, signal, is_high, &mut could);
        }
    }
    for group in rolled.entities(Entity::Cgroup) {
        grown(group, &GROUP_COUNTERS, &mut could);
    }
    could
}

fn grown(entity: &EntityRollUps, counters: &[(SignalId, u64)], could: &mut [bool]) {
    for (signal, least) in counters {
        let is_much = |known: RollUp| known.increase().is_some_and(|by| by >= *least);
        note(entity, *signal, is_much, could);
    }
}

fn note(
    entity: &EntityRollUps,
    signal: SignalId,
    holds: impl Fn(RollUp) -> bool,
    could: &mut [bool],
) {
    let known = entity.get(signal).unwrap_or_default();
    for (known, could) in known.iter().zip(could) {
        *could |= known.is_some_and(&holds);
    }
}
