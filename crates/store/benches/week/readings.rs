//! What kernel files say of the host as it is: the model's amounts as signals.

use timeline::signals as s;

use super::columns::{Columns, whole};
use super::host::{Host, OTHER_RECLAIMABLE, PERCPU, SWAP, TOTAL, VMALLOC, mib};
use super::noise::Noise;

/// A second in microseconds.
const MICROS: f64 = 1e6;
/// Clock ticks a second of all four CPUs.
const TICKS: f64 = 400.0;
/// Managed, high mark, reserve and share of free memory of the zones.
pub(super) const ZONES: [(&str, f64, f64, f64, f64); 3] = [
    ("0/DMA", 3_840.0, 30.0, 13_800.0, 0.06),
    ("0/DMA32", 740_000.0, 4_500.0, 13_000.0, 0.42),
    ("0/Normal", 3_354_720.0, 22_000.0, 0.0, 0.52),
];

/// The host's own row.
pub(super) fn of_host(row: &mut Columns, at: usize, host: &Host, noise: &mut Noise) {
    meminfo(row, at, host);
    lists(row, at, host, noise);
    reclaim(row, at, host, noise);
    pressure(row, at, host);
    cpu(row, at, host, noise);
    row.rest(at, host.load, noise);
}

fn meminfo(row: &mut Columns, at: usize, host: &Host) {
    for (signal, pages) in [
        (s::MEM_TOTAL, TOTAL),
        (s::MEM_FREE, host.free),
        (s::MEM_AVAILABLE, host.available()),
        (s::MEM_BUFFERS, host.buffers),
        (s::MEM_CACHED, host.cache + host.shmem),
        (s::MEM_SWAP_CACHED, host.swap_cached),
        (s::SWAP_TOTAL, SWAP),
        (s::SWAP_FREE, SWAP - host.swapped),
        (s::MEM_DIRTY, host.dirty),
        (s::MEM_WRITEBACK, host.writeback),
        (s::MEM_ANON, host.anon),
        (s::MEM_MAPPED, host.cache.min(mib(420.0)) * 0.6),
        (s::MEM_SHMEM, host.shmem),
        (s::MEM_KRECLAIMABLE, host.slab_reclaimable + OTHER_RECLAIMABLE),
        (s::MEM_SLAB, host.slab_reclaimable + host.slab_unreclaimable),
        (s::MEM_SLAB_RECLAIMABLE, host.slab_reclaimable),
        (s::MEM_SLAB_UNRECLAIMABLE, host.slab_unreclaimable),
        (s::MEM_KERNEL_STACK, host.stacks),
        (s::MEM_PAGE_TABLES, host.page_tables),
        (s::MEM_VMALLOC_USED, VMALLOC),
        (s::MEM_PERCPU, PERCPU),
        (s::MEM_ANON_HUGE, host.anon * 0.3),
        (s::COMMIT_LIMIT, TOTAL / 2.0 + SWAP),
        (s::COMMITTED_AS, (host.anon + host.swapped) * 0.6),
        (s::HUGEPAGE_SIZE, 512.0),
        (s::DIRECT_MAP_4K, mib(310.0)),
        (s::DIRECT_MAP_2M, mib(6_900.0)),
        (s::DIRECT_MAP_1G, mib(10_240.0)),
    ] {
        row.set_bytes(signal, at, pages);
    }
}

/// The lists of pages, which hold all of the users' memory once.
fn lists(row: &mut Columns, at: usize, host: &Host, noise: &mut Noise) {
    let locked = mib(12.0);
    let unnamed = host.anon.floor() + host.swap_cached.floor() + host.shmem.floor() - locked;
    let files = host.cache.floor() + host.buffers.floor();
    let idle = (unnamed * 0.7 * noise.about(0.01)).floor();
    let cold = (files * (0.7 - 0.3 * host.starved)).floor();
    for (signal, pages) in [
        (s::MEM_ACTIVE_ANON, unnamed - idle),
        (s::MEM_INACTIVE_ANON, idle),
        (s::MEM_ACTIVE_FILE, files - cold),
        (s::MEM_INACTIVE_FILE, cold),
        (s::MEM_ACTIVE, unnamed - idle + files - cold),
        (s::MEM_INACTIVE, idle + cold),
        (s::MEM_UNEVICTABLE, locked),
        (s::MEM_MLOCKED, locked),
    ] {
        row.set_bytes(signal, at, pages);
    }
    for (signal, pages) in [
        (s::NR_FREE_PAGES, host.free),
        (s::NR_DIRTY, host.dirty),
        (s::NR_DIRTY_THRESHOLD, host.available() * 0.2),
        (s::NR_DIRTY_BACKGROUND_THRESHOLD, host.available() * 0.1),
        (s::NR_ISOLATED_ANON, 0.0),
        (s::NR_ISOLATED_FILE, 0.0),
        (s::NR_SWAPCACHED, host.swap_cached),
    ] {
        row.set(signal, at, whole(pages));
    }
}

fn reclaim(row: &mut Columns, at: usize, host: &Host, noise: &mut Noise) {
    row.rise(s::PGPGIN, at, (host.read + host.swapped_in) * 4_096.0);
    row.rise(s::PGPGOUT, at, (host.written + host.swapped_out) * 4_096.0);
    let stalls = if host.starved > 0.6 { host.reclaimed * 0.12 } else { 0.0 };
    let all = host.reclaimed + host.swapped_out;
    let faults = 900.0 + 42_000.0 * host.load * noise.about(0.4);
    for (signal, pages) in [
        (s::PSWPIN, host.swapped_in),
        (s::PSWPOUT, host.swapped_out),
        (s::SWAP_RA, host.swapped_in * 0.7),
        (s::SWAP_RA_HIT, host.swapped_in * 0.4),
        (s::PGSCAN_KSWAPD, (all - stalls) * (1.1 + 2.0 * host.starved)),
        (s::PGSCAN_DIRECT, stalls * (1.1 + 2.0 * host.starved)),
        (s::PGSTEAL_KSWAPD, all - stalls),
        (s::PGSTEAL_DIRECT, stalls),
        (s::PGSCAN_ANON, host.swapped_out * 3.0),
        (s::PGSCAN_FILE, host.reclaimed * (1.1 + 2.0 * host.starved)),
        (s::PGSTEAL_ANON, host.swapped_out),
        (s::PGSTEAL_FILE, host.reclaimed),
        (s::REFAULT_ANON, host.swapped_in * 0.8),
        (s::REFAULT_FILE, host.refaults),
        (s::ACTIVATE_ANON, host.swapped_in * 0.2),
        (s::ACTIVATE_FILE, host.refaults * 0.6),
        (s::RESTORE_ANON, host.swapped_in * 0.1),
        (s::RESTORE_FILE, host.refaults * 0.3),
        (s::NR_DIRTIED, host.written * noise.about(0.1)),
        (s::NR_WRITTEN, host.written),
        (s::NR_VMSCAN_WRITE, host.swapped_out),
        (s::PGALLOC, faults + host.read),
        (s::PGFREE, faults + host.reclaimed),
        (s::NUMA_HIT, faults + host.read),
        (s::NUMA_LOCAL, faults + host.read),
        (s::NUMA_MISS, 0.0),
        (s::NUMA_FOREIGN, 0.0),
        (s::NUMA_OTHER, 0.0),
    ] {
        row.rise(signal, at, pages);
    }
    let failed = if host.starved > 0.8 { 2.0 * noise.share() } else { 0.0 };
    for (signal, times) in [
        (s::PGFAULT, faults),
        (s::PGMAJFAULT, host.swapped_in * 0.5 + host.refaults * 0.05),
        (s::ALLOCSTALL, stalls / 40.0),
        (s::OOM_KILLS, 0.0),
        (s::PGSCAN_DIRECT_THROTTLE, 0.0),
        (s::COMPACT_STALL, failed),
        (s::COMPACT_FAIL, failed),
        (s::COMPACT_SUCCESS, 0.0),
        (s::THP_FAULT_FALLBACK, failed),
        (s::THP_FAULT_ALLOC, 6.0 * host.load * noise.share()),
        (s::THP_SWPOUT, 0.0),
        (s::NUMA_PTE_UPDATES, 0.0),
        (s::NUMA_HINT_FAULTS, 0.0),
        (s::NUMA_HINT_FAULTS_LOCAL, 0.0),
    ] {
        row.rise(signal, at, times);
    }
    for signal in [s::NUMA_PAGES_MIGRATED, s::NR_THROTTLED_WRITTEN, s::PGMIGRATE_FAIL] {
        row.rise(signal, at, 0.0);
    }
}

fn pressure(row: &mut Columns, at: usize, host: &Host) {
    let cpu = (0.1 * host.load * host.load).min(1.0);
    for (signal, share) in [
        (s::PSI_MEMORY_SOME, host.memory_some),
        (s::PSI_MEMORY_FULL, host.memory_full),
        (s::PSI_IO_SOME, host.io_some),
        (s::PSI_IO_FULL, host.io_full),
        (s::PSI_CPU_SOME, cpu),
        (s::PSI_CPU_FULL, 0.0),
    ] {
        row.rise(signal, at, share * MICROS);
    }
    for (signal, share) in [
        (s::PSI_MEMORY_SOME_AVG10, host.memory_some),
        (s::PSI_MEMORY_SOME_AVG60, host.memory_some),
        (s::PSI_MEMORY_SOME_AVG300, host.memory_some),
        (s::PSI_MEMORY_FULL_AVG10, host.memory_full),
        (s::PSI_MEMORY_FULL_AVG60, host.memory_full),
        (s::PSI_MEMORY_FULL_AVG300, host.memory_full),
        (s::PSI_IO_SOME_AVG10, host.io_some),
        (s::PSI_IO_SOME_AVG60, host.io_some),
        (s::PSI_IO_SOME_AVG300, host.io_some),
        (s::PSI_IO_FULL_AVG10, host.io_full),
        (s::PSI_IO_FULL_AVG60, host.io_full),
        (s::PSI_IO_FULL_AVG300, host.io_full),
    ] {
        // The kernel prints them in hundredths of a percent.
        row.set(signal, at, whole(share * 10_000.0) * 100);
    }
}

fn cpu(row: &mut Columns, at: usize, host: &Host, noise: &mut Noise) {
    let user = 4.0 + 225.0 * host.load * noise.about(0.2);
    let system = 3.0 + 25.0 * host.load + (host.reclaimed + host.read) / 1_500.0;
    let waiting = TICKS * host.io_wait() * noise.about(0.2);
    let soft = 1.0 + 3.0 * host.load * noise.share();
    let idle = (TICKS - user - system - waiting - soft).max(0.0);
    for (signal, ticks) in [
        (s::CPU_USER, user),
        (s::CPU_NICE, 0.0),
        (s::CPU_SYSTEM, system),
        (s::CPU_IDLE, idle),
        (s::CPU_IOWAIT, waiting),
        (s::CPU_IRQ, 0.0),
        (s::CPU_SOFTIRQ, soft),
        (s::CPU_STEAL, 0.0),
        (s::CPU_GUEST, 0.0),
        (s::CPU_GUEST_NICE, 0.0),
    ] {
        row.rise(signal, at, ticks);
    }
    row.set(s::TASKS_RUNNING, at, 1 + noise.below(2 + whole(host.load * 6.0)));
    row.set(s::TASKS_BLOCKED, at, whole(host.io_some * 6.0 * noise.share()));
    row.set(s::RECORDER_LATE, at, 40 + noise.below(whole(200.0 + 4_000.0 * host.memory_some)));
    row.rise(s::RECORDER_CPU, at, 1_500.0 * noise.about(0.3));
    row.set(s::RECORDER_RSS, at, whole(mib(7.0)) * 4_096);
    row.set(s::RECORDER_LOST, at, 0);
}

/// A zone's row: its part of free memory and of the per-CPU lists, and its marks.
pub(super) fn of_zone(row: &mut Columns, at: usize, number: usize, host: &Host, noise: &mut Noise) {
    let (_, managed, high, reserve, part) = ZONES[number];
    let free = match number {
        0 => 2_816.0,
        _ => (host.free - 2_816.0).max(0.0) * part / 0.94,
    };
    for (signal, pages) in [
        (s::ZONE_FREE, free),
        (s::ZONE_MIN, high / 1.5),
        (s::ZONE_LOW, high / 1.2),
        (s::ZONE_HIGH, high),
        (s::ZONE_BOOST, 0.0),
        (s::ZONE_SPANNED, managed * 1.05),
        (s::ZONE_PRESENT, managed * 1.02),
        (s::ZONE_MANAGED, managed),
        (s::ZONE_PROTECTION, reserve),
        (s::ZONE_PCP, host.pcp * if number == 0 { 0.0 } else { part / 0.94 }),
        (s::ZONE_FREE_CMA, 0.0),
    ] {
        row.set(signal, at, whole(pages));
    }
    let mut left = whole(free);
    for (order, signal) in [
        s::ZONE_BLOCKS_10,
        s::ZONE_BLOCKS_9,
        s::ZONE_BLOCKS_8,
        s::ZONE_BLOCKS_7,
        s::ZONE_BLOCKS_6,
        s::ZONE_BLOCKS_5,
        s::ZONE_BLOCKS_4,
        s::ZONE_BLOCKS_3,
        s::ZONE_BLOCKS_2,
        s::ZONE_BLOCKS_1,
        s::ZONE_BLOCKS_0,
    ]
    .into_iter()
    .enumerate()
    {
        let size = 1 << (10 - order);
        let blocks = match size {
            1 => left,
            _ => noise.below(left / size / 5 + 1),
        };
        left -= blocks * size;
        row.set(signal, at, blocks);
    }
}

/// The node has all of RAM.
pub(super) fn of_node(row: &mut Columns, at: usize, host: &Host, noise: &mut Noise) {
    let files = host.cache + host.buffers;
    for (signal, pages) in [
        (s::NODE_TOTAL, TOTAL),
        (s::NODE_FREE, host.free),
        (s::NODE_FILE, files + host.shmem),
        (s::NODE_ANON, host.anon),
        (s::NODE_SHMEM, host.shmem),
        (s::NODE_SLAB, host.slab_reclaimable + host.slab_unreclaimable),
        (s::NODE_DIRTY, host.dirty),
        (s::NODE_ACTIVE_FILE, files * 0.4),
        (s::NODE_INACTIVE_FILE, files * 0.6),
    ] {
        row.set_bytes(signal, at, pages);
    }
    row.rest(at, host.load, noise);
}

/// A disk's row; the first serves reads, the second takes the backup, others do little.
pub(super) fn of_disk(row: &mut Columns, at: usize, number: usize, host: &Host, noise: &mut Noise) {
    let few = mib(0.2) * noise.share();
    let (read, written, busy) = match number {
        0 => (host.read + host.swapped_in, host.written + host.swapped_out, host.io_some),
        1 if host.backup.is_some() => (few, mib(18.0) * noise.about(0.5), 0.35 * noise.about(0.4)),
        _ => (few, few * noise.share(), 0.004 * noise.share()),
    };
    row.rise(s::DISK_READS, at, read / 16.0 * noise.about(0.2));
    row.rise(s::DISK_READ_BYTES, at, read.floor() * 4_096.0);
    row.rise(s::DISK_READ_TIME, at, read / 16.0 * 0.7 * noise.about(0.3));
    row.rise(s::DISK_WRITES, at, written / 24.0 * noise.about(0.2));
    row.rise(s::DISK_WRITE_BYTES, at, written.floor() * 4_096.0);
    row.rise(s::DISK_WRITE_TIME, at, written / 24.0 * 1.4 * noise.about(0.3));
    row.set(s::DISK_IN_FLIGHT, at, whole(busy * 12.0 * noise.share()));
    row.rise(s::DISK_IO_TIME, at, (busy * 1_000.0).min(1_000.0));
    row.rise(s::DISK_QUEUE_TIME, at, busy * 4_000.0 * noise.about(0.4));
    row.rise(s::DISK_FLUSHES, at, written / 900.0);
}

/// The swap area's row.
pub(super) fn of_swap(row: &mut Columns, at: usize, host: &Host) {
    row.set_bytes(s::SWAP_AREA_SIZE, at, SWAP);
    row.set_bytes(s::SWAP_AREA_USED, at, host.swapped);
    row.set(s::SWAP_AREA_RANK, at, 0);
}
