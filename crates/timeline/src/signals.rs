//! The catalogue: every signal that memtide knows, with its kind, unit, source, meaning and names elsewhere.
//!
//! This is the only list. A signal is not spelled as text elsewhere: Rust code uses the constant (its type carries
//! kind and unit), and parsers find a field's signal through [`field_of`]. `memtide signals` and `docs/signals.md`
//! print it.

mod definition;
mod files;

use std::collections::HashMap;
use std::sync::LazyLock;

use units::{Bytes, Count, Limit, Micros, Millis, Pages, Quantity, Ticks};

pub use definition::{AnySignal, Counter, Entity, Gauge, Kind, Signal, SignalDef, SignalId};
pub use files::*;

/// Declares the catalogue: `CONST: Kind<Unit> = name, file, field, scale, since, sar, pcp, node_exporter, meaning;`.
/// An empty name means that the other tool has none: `tests/names` lists those verified in the tools' sources.
macro_rules! signals {
    ($($entity:ident { $(
        $const:ident: $kind:ty = $name:literal, $file:expr, $field:literal, $scale:literal, $since:literal,
        $sar:literal, $pcp:literal, $node:literal, $meaning:literal;
    )* })*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum CatalogueIndex { $($($const,)*)* }

        $($(
            #[doc = $meaning]
            pub const $const: Signal<$kind> = Signal::new(CatalogueIndex::$const as u16);
        )*)*

        /// Every signal, in the order of the catalogue. A constant would be in the program a dozen times, each of 60 KiB,
        /// and texts in it are addresses, which no process shares with another.
        pub static ALL: &[SignalDef] = &[$($(SignalDef {
            name: $name,
            is_counter: <$kind as Kind>::IS_COUNTER,
            unit: <<$kind as Kind>::Unit as Quantity>::NAME,
            entity: Entity::$entity,
            file: $file,
            field: $field,
            scale: $scale,
            since: $since,
            meaning: $meaning,
            sar: $sar,
            pcp: $pcp,
            node_exporter: $node,
        },)*)*];
    };
}

signals! {
    Host {
        MEM_TOTAL: Gauge<Bytes> = "mem.total", MEMINFO, "MemTotal", 1024, "", "", "mem.physmem", "node_memory_MemTotal_bytes",
            "RAM that the kernel manages; memory reserved at boot lies outside.";
        MEM_FREE: Gauge<Bytes> = "mem.free", MEMINFO, "MemFree", 1024, "", "kbmemfree", "mem.util.free", "node_memory_MemFree_bytes",
            "Unused RAM; what can be allocated is mem.available.";
        MEM_AVAILABLE: Gauge<Bytes> = "mem.available", MEMINFO, "MemAvailable", 1024, "3.14", "kbavail", "mem.util.available", "node_memory_MemAvailable_bytes",
            "The kernel's estimate of what can be allocated without swapping; contains page cache \
             that the workload may need.";
        MEM_BUFFERS: Gauge<Bytes> = "mem.buffers", MEMINFO, "Buffers", 1024, "", "kbbuffers", "mem.util.bufmem", "node_memory_Buffers_bytes",
            "Page cache of block devices: file-system metadata.";
        MEM_CACHED: Gauge<Bytes> = "mem.cached", MEMINFO, "Cached", 1024, "", "kbcached", "mem.util.cached", "node_memory_Cached_bytes",
            "Page cache of files, including shared memory and tmpfs, which cannot be dropped.";
        MEM_SWAP_CACHED: Gauge<Bytes> = "mem.swapcached", MEMINFO, "SwapCached", 1024, "", "kbswpcad", "mem.util.swapCached", "node_memory_SwapCached_bytes",
            "Pages that are in RAM and in swap at once.";
        MEM_ACTIVE: Gauge<Bytes> = "mem.active", MEMINFO, "Active", 1024, "", "kbactive", "mem.util.active", "node_memory_Active_bytes",
            "Recently used pages, anonymous and file.";
        MEM_INACTIVE: Gauge<Bytes> = "mem.inactive", MEMINFO, "Inactive", 1024, "", "kbinact", "mem.util.inactive", "node_memory_Inactive_bytes",
            "Pages that reclaim takes first, anonymous and file.";
        MEM_ACTIVE_ANON: Gauge<Bytes> = "mem.active_anon", MEMINFO, "Active(anon)", 1024, "2.6.28", "", "mem.util.active_anon", "node_memory_Active_anon_bytes",
            "Recently used anonymous and shared-memory pages.";
        MEM_ACTIVE_FILE: Gauge<Bytes> = "mem.active_file", MEMINFO, "Active(file)", 1024, "2.6.28", "", "mem.util.active_file", "node_memory_Active_file_bytes",
            "Recently used file pages.";
        MEM_INACTIVE_ANON: Gauge<Bytes> = "mem.inactive_anon", MEMINFO, "Inactive(anon)", 1024, "2.6.28", "", "mem.util.inactive_anon", "node_memory_Inactive_anon_bytes",
            "Anonymous and shared-memory pages that reclaim takes first.";
        MEM_INACTIVE_FILE: Gauge<Bytes> = "mem.inactive_file", MEMINFO, "Inactive(file)", 1024, "2.6.28", "", "mem.util.inactive_file", "node_memory_Inactive_file_bytes",
            "File pages that reclaim takes first.";
        MEM_UNEVICTABLE: Gauge<Bytes> = "mem.unevictable", MEMINFO, "Unevictable", 1024, "2.6.28", "", "mem.util.unevictable", "node_memory_Unevictable_bytes",
            "Pages that reclaim cannot take: mlocked, ramfs, locked shared memory.";
        MEM_MLOCKED: Gauge<Bytes> = "mem.mlocked", MEMINFO, "Mlocked", 1024, "2.6.28", "", "mem.util.mlocked", "node_memory_Mlocked_bytes",
            "Pages locked by mlock; a part of Unevictable.";
        MEM_LOW_TOTAL: Gauge<Bytes> = "mem.low_total", MEMINFO, "LowTotal", 1024, "", "", "mem.util.lowTotal", "node_memory_LowTotal_bytes",
            "RAM that a 32-bit kernel maps permanently, for its own data.";
        MEM_LOW_FREE: Gauge<Bytes> = "mem.low_free", MEMINFO, "LowFree", 1024, "", "", "mem.util.lowFree", "node_memory_LowFree_bytes",
            "Unused RAM that a 32-bit kernel maps permanently.";
        MEM_HIGH_FREE: Gauge<Bytes> = "mem.high_free", MEMINFO, "HighFree", 1024, "", "", "mem.util.highFree", "node_memory_HighFree_bytes",
            "Unused RAM above that, for programs and page cache.";
        SWAP_TOTAL: Gauge<Bytes> = "swap.total", MEMINFO, "SwapTotal", 1024, "", "", "mem.util.swapTotal", "node_memory_SwapTotal_bytes",
            "Size of all swap areas.";
        SWAP_FREE: Gauge<Bytes> = "swap.free", MEMINFO, "SwapFree", 1024, "", "kbswpfree", "mem.util.swapFree", "node_memory_SwapFree_bytes",
            "Unused swap.";
        MEM_ZSWAP: Gauge<Bytes> = "mem.zswap_pool", MEMINFO, "Zswap", 1024, "5.19", "", "mem.util.zswap", "node_memory_Zswap_bytes",
            "RAM taken by zswap's compressed pool.";
        MEM_ZSWAPPED: Gauge<Bytes> = "mem.zswapped", MEMINFO, "Zswapped", 1024, "5.19", "", "mem.util.zswapped", "node_memory_Zswapped_bytes",
            "Data in the zswap pool, before compression.";
        MEM_DIRTY: Gauge<Bytes> = "mem.dirty", MEMINFO, "Dirty", 1024, "", "kbdirty", "mem.util.dirty", "node_memory_Dirty_bytes",
            "Page cache that waits to be written back.";
        MEM_WRITEBACK: Gauge<Bytes> = "mem.writeback", MEMINFO, "Writeback", 1024, "", "", "mem.util.writeback", "node_memory_Writeback_bytes",
            "Pages under writeback, swap-out included.";
        MEM_ANON: Gauge<Bytes> = "mem.anon", MEMINFO, "AnonPages", 1024, "2.6.18", "kbanonpg", "mem.util.anonpages", "node_memory_AnonPages_bytes",
            "Anonymous memory of processes: heap, stack; huge pages included, shared memory not.";
        MEM_MAPPED: Gauge<Bytes> = "mem.mapped", MEMINFO, "Mapped", 1024, "", "", "mem.util.mapped", "node_memory_Mapped_bytes",
            "Page cache and shared memory mapped into processes; a part of Cached.";
        MEM_SHMEM: Gauge<Bytes> = "mem.shmem", MEMINFO, "Shmem", 1024, "2.6.32", "kbshmem", "mem.util.shmem", "node_memory_Shmem_bytes",
            "Shared memory, tmpfs, memfd; a part of Cached that can only go to swap.";
        MEM_KRECLAIMABLE: Gauge<Bytes> = "mem.kreclaimable", MEMINFO, "KReclaimable", 1024, "4.20", "", "mem.util.kreclaimable", "",
            "Kernel memory that reclaim can take: reclaimable slab and more.";
        MEM_SLAB: Gauge<Bytes> = "mem.slab", MEMINFO, "Slab", 1024, "", "kbslab", "mem.util.slab", "node_memory_Slab_bytes",
            "Kernel objects, reclaimable and unreclaimable together.";
        MEM_SLAB_RECLAIMABLE: Gauge<Bytes> = "mem.slab_reclaimable", MEMINFO, "SReclaimable", 1024, "2.6.19", "", "mem.util.slabReclaimable", "node_memory_SReclaimable_bytes",
            "Kernel object caches that can shrink: dentries, inodes.";
        MEM_SLAB_UNRECLAIMABLE: Gauge<Bytes> = "mem.slab_unreclaimable", MEMINFO, "SUnreclaim", 1024, "2.6.19", "", "mem.util.slabUnreclaimable", "node_memory_SUnreclaim_bytes",
            "Kernel objects that reclaim cannot take.";
        MEM_KERNEL_STACK: Gauge<Bytes> = "mem.kernel_stack", MEMINFO, "KernelStack", 1024, "2.6.32", "kbkstack", "mem.util.kernelStack", "node_memory_KernelStack_bytes",
            "Kernel stacks of threads.";
        MEM_SHADOW_CALL_STACK: Gauge<Bytes> = "mem.shadow_call_stack", MEMINFO, "ShadowCallStack", 1024, "5.8", "", "mem.util.shadowcallstack", "",
            "Shadow call stacks of threads (arm64).";
        MEM_PAGE_TABLES: Gauge<Bytes> = "mem.page_tables", MEMINFO, "PageTables", 1024, "", "kbpgtbl", "mem.util.pageTables", "node_memory_PageTables_bytes",
            "Page tables of processes.";
        MEM_SEC_PAGE_TABLES: Gauge<Bytes> = "mem.sec_page_tables", MEMINFO, "SecPageTables", 1024, "6.1", "", "", "",
            "Page tables of KVM and IOMMU.";
        MEM_BOUNCE: Gauge<Bytes> = "mem.bounce", MEMINFO, "Bounce", 1024, "", "", "mem.util.bounce", "node_memory_Bounce_bytes",
            "Bounce buffers of devices that cannot reach all RAM.";
        MEM_NFS_UNSTABLE: Gauge<Bytes> = "mem.nfs_unstable", MEMINFO, "NFS_Unstable", 1024, "", "", "mem.util.NFS_Unstable", "node_memory_NFS_Unstable_bytes",
            "NFS pages sent but not committed; always 0 since 5.8.";
        MEM_WRITEBACK_TMP: Gauge<Bytes> = "mem.writeback_tmp", MEMINFO, "WritebackTmp", 1024, "2.6.26", "", "", "node_memory_WritebackTmp_bytes",
            "Temporary writeback buffers of FUSE.";
        COMMIT_LIMIT: Gauge<Bytes> = "mem.commit_limit", MEMINFO, "CommitLimit", 1024, "", "", "mem.util.commitLimit", "node_memory_CommitLimit_bytes",
            "Memory that may be committed when overcommit is off (vm.overcommit_memory=2).";
        COMMITTED_AS: Gauge<Bytes> = "mem.committed_as", MEMINFO, "Committed_AS", 1024, "", "kbcommit", "mem.util.committed_AS", "node_memory_Committed_AS_bytes",
            "Memory committed to processes, touched or not.";
        MEM_VMALLOC_USED: Gauge<Bytes> = "mem.vmalloc_used", MEMINFO, "VmallocUsed", 1024, "5.3", "kbvmused", "mem.util.vmallocUsed", "node_memory_VmallocUsed_bytes",
            "RAM behind vmalloc, kernel stacks included; 0 from 4.4 to 5.2.";
        MEM_PERCPU: Gauge<Bytes> = "mem.percpu", MEMINFO, "Percpu", 1024, "4.20", "", "mem.util.percpu", "node_memory_Percpu_bytes",
            "Memory of the kernel's per-CPU allocator.";
        MEM_HW_CORRUPTED: Gauge<Bytes> = "mem.hw_corrupted", MEMINFO, "HardwareCorrupted", 1024, "2.6.32", "", "mem.util.corrupthardware", "node_memory_HardwareCorrupted_bytes",
            "RAM taken out of use after memory errors.";
        MEM_ANON_HUGE: Gauge<Bytes> = "mem.anon_thp", MEMINFO, "AnonHugePages", 1024, "2.6.38", "", "mem.util.anonhugepages", "node_memory_AnonHugePages_bytes",
            "Anonymous memory in transparent huge pages; a part of AnonPages.";
        MEM_SHMEM_HUGE: Gauge<Bytes> = "mem.shmem_thp", MEMINFO, "ShmemHugePages", 1024, "4.8", "", "mem.util.shmemhugepages", "node_memory_ShmemHugePages_bytes",
            "Shared memory in huge pages; a part of Shmem.";
        MEM_FILE_HUGE: Gauge<Bytes> = "mem.file_thp", MEMINFO, "FileHugePages", 1024, "5.4", "", "mem.util.filehugepages", "",
            "Page cache in huge pages; a part of Cached.";
        MEM_CMA_TOTAL: Gauge<Bytes> = "mem.cma_total", MEMINFO, "CmaTotal", 1024, "3.19", "", "mem.util.cmatotal", "node_memory_CmaTotal_bytes",
            "RAM reserved for contiguous allocations; movable pages may use it meanwhile.";
        MEM_CMA_FREE: Gauge<Bytes> = "mem.cma_free", MEMINFO, "CmaFree", 1024, "3.19", "", "mem.util.cmafree", "node_memory_CmaFree_bytes",
            "Free pages in CMA areas; a part of MemFree that only movable allocations can use.";
        MEM_BALLOON: Gauge<Bytes> = "mem.balloon", MEMINFO, "Balloon", 1024, "6.16", "", "", "",
            "RAM that a balloon driver returned to the hypervisor.";
        MEM_UNACCEPTED: Gauge<Bytes> = "mem.unaccepted", MEMINFO, "Unaccepted", 1024, "6.5", "", "mem.util.unaccepted", "",
            "Memory of a confidential VM that is not accepted yet; a part of MemFree.";
        HUGEPAGES_TOTAL: Gauge<Count> = "hugepages.total", MEMINFO, "HugePages_Total", 1, "", "", "mem.util.hugepagesTotal", "node_memory_HugePages_Total",
            "Reserved huge pages of the default size.";
        HUGEPAGES_FREE: Gauge<Count> = "hugepages.free", MEMINFO, "HugePages_Free", 1, "", "", "mem.util.hugepagesFree", "node_memory_HugePages_Free",
            "Reserved huge pages that are not allocated.";
        HUGEPAGES_RSVD: Gauge<Count> = "hugepages.rsvd", MEMINFO, "HugePages_Rsvd", 1, "", "", "mem.util.hugepagesRsvd", "node_memory_HugePages_Rsvd",
            "Free huge pages committed to mappings; a part of HugePages_Free.";
        HUGEPAGES_SURP: Gauge<Count> = "hugepages.surplus", MEMINFO, "HugePages_Surp", 1, "", "", "mem.util.hugepagesSurp", "node_memory_HugePages_Surp",
            "Huge pages above the reserved number.";
        HUGEPAGE_SIZE: Gauge<Bytes> = "hugepages.size", MEMINFO, "Hugepagesize", 1024, "", "", "", "node_memory_Hugepagesize_bytes",
            "The default huge page size.";
        MEM_HUGETLB: Gauge<Bytes> = "mem.hugetlb", MEMINFO, "Hugetlb", 1024, "4.16", "", "mem.util.hugetlb", "",
            "RAM in hugetlb pools of all sizes, used or not.";
        DIRECT_MAP_4K: Gauge<Bytes> = "mem.direct_map_4k", MEMINFO, "DirectMap4k", 1024, "", "", "mem.util.directMap4k", "node_memory_DirectMap4k_bytes",
            "Kernel direct map in 4 KiB pages (x86).";
        DIRECT_MAP_2M: Gauge<Bytes> = "mem.direct_map_2m", MEMINFO, "DirectMap2M", 1024, "", "", "mem.util.directMap2M", "node_memory_DirectMap2M_bytes",
            "Kernel direct map in 2 MiB pages (x86).";
        DIRECT_MAP_1G: Gauge<Bytes> = "mem.direct_map_1g", MEMINFO, "DirectMap1G", 1024, "", "", "mem.util.directMap1G", "node_memory_DirectMap1G_bytes",
            "Kernel direct map in 1 GiB pages (x86).";
        NR_FREE_PAGES: Gauge<Pages> = "vm.nr_free_pages", VMSTAT, "nr_free_pages", 1, "", "", "mem.vmstat.nr_free_pages", "",
            "Free pages; MemFree divided by this is the page size.";
        NR_DIRTY: Gauge<Pages> = "vm.nr_dirty", VMSTAT, "nr_dirty", 1, "", "", "mem.vmstat.nr_dirty", "",
            "Dirty page-cache pages.";
        NR_DIRTY_THRESHOLD: Gauge<Pages> = "vm.nr_dirty_threshold", VMSTAT, "nr_dirty_threshold", 1, "2.6.37", "", "mem.vmstat.nr_dirty_threshold", "",
            "Dirty pages at which writers are made to wait.";
        NR_DIRTY_BACKGROUND_THRESHOLD: Gauge<Pages> = "vm.nr_dirty_background_threshold", VMSTAT, "nr_dirty_background_threshold", 1, "2.6.37", "", "mem.vmstat.nr_dirty_background_threshold", "",
            "Dirty pages at which background writing starts.";
        NR_ISOLATED_ANON: Gauge<Pages> = "vm.nr_isolated_anon", VMSTAT, "nr_isolated_anon", 1, "", "", "mem.vmstat.nr_isolated_anon", "",
            "Anonymous pages isolated from the LRU lists by reclaim or migration.";
        NR_ISOLATED_FILE: Gauge<Pages> = "vm.nr_isolated_file", VMSTAT, "nr_isolated_file", 1, "", "", "mem.vmstat.nr_isolated_file", "",
            "File pages isolated from the LRU lists by reclaim or migration.";
        NR_ZSPAGES: Gauge<Pages> = "vm.nr_zspages", VMSTAT, "nr_zspages", 1, "4.8", "", "mem.vmstat.nr_zspages", "",
            "Pages of zsmalloc: what zram, and zswap with zsmalloc, take in RAM.";
        NR_FREE_CMA: Gauge<Pages> = "vm.nr_free_cma", VMSTAT, "nr_free_cma", 1, "", "", "mem.vmstat.nr_free_cma", "",
            "Free pages in CMA areas.";
        NR_SWAPCACHED: Gauge<Pages> = "vm.nr_swapcached", VMSTAT, "nr_swapcached", 1, "5.12", "", "", "",
            "Pages in the swap cache.";
        NR_BALLOON_PAGES: Gauge<Pages> = "vm.nr_balloon_pages", VMSTAT, "nr_balloon_pages", 1, "6.16", "", "", "",
            "Pages held by a balloon driver.";
        PGPGIN: Counter<Bytes> = "vm.pgpgin", VMSTAT, "pgpgin", 1024, "", "pgpgin/s", "mem.vmstat.pgpgin", "node_vmstat_pgpgin",
            "Bytes read from block devices, swap included.";
        PGPGOUT: Counter<Bytes> = "vm.pgpgout", VMSTAT, "pgpgout", 1024, "", "pgpgout/s", "mem.vmstat.pgpgout", "node_vmstat_pgpgout",
            "Bytes written to block devices, swap included.";
        PSWPIN: Counter<Pages> = "vm.pswpin", VMSTAT, "pswpin", 1, "", "pswpin/s", "mem.vmstat.pswpin", "node_vmstat_pswpin",
            "Pages read from swap devices, zram included; zswap hits and zero pages are not.";
        PSWPOUT: Counter<Pages> = "vm.pswpout", VMSTAT, "pswpout", 1, "", "pswpout/s", "mem.vmstat.pswpout", "node_vmstat_pswpout",
            "Pages written to swap devices, zram included.";
        SWPIN_ZERO: Counter<Pages> = "vm.swpin_zero", VMSTAT, "swpin_zero", 1, "6.13", "", "", "",
            "Zero-filled pages swapped in without I/O.";
        SWPOUT_ZERO: Counter<Pages> = "vm.swpout_zero", VMSTAT, "swpout_zero", 1, "6.13", "", "", "",
            "Zero-filled pages swapped out without I/O.";
        ZSWPIN: Counter<Pages> = "vm.zswpin", VMSTAT, "zswpin", 1, "5.19", "", "", "",
            "Pages swapped in from the zswap pool.";
        ZSWPOUT: Counter<Pages> = "vm.zswpout", VMSTAT, "zswpout", 1, "5.19", "", "", "",
            "Pages swapped out to the zswap pool.";
        ZSWPWB: Counter<Pages> = "vm.zswpwb", VMSTAT, "zswpwb", 1, "6.8", "", "", "",
            "Pages written from the zswap pool to the swap device.";
        SWAP_RA: Counter<Pages> = "vm.swap_ra", VMSTAT, "swap_ra", 1, "4.14", "", "mem.vmstat.swap_ra", "",
            "Pages read from swap ahead of their use.";
        SWAP_RA_HIT: Counter<Pages> = "vm.swap_ra_hit", VMSTAT, "swap_ra_hit", 1, "4.14", "", "mem.vmstat.swap_ra_hit", "",
            "Pages read ahead from swap that were then used.";
        PGFAULT: Counter<Count> = "vm.pgfault", VMSTAT, "pgfault", 1, "", "fault/s", "mem.vmstat.pgfault", "node_vmstat_pgfault",
            "Page faults of all kinds.";
        PGMAJFAULT: Counter<Count> = "vm.pgmajfault", VMSTAT, "pgmajfault", 1, "", "majflt/s", "mem.vmstat.pgmajfault", "node_vmstat_pgmajfault",
            "Page faults that waited for a disk: swap-ins and mapped file pages.";
        PGFREE: Counter<Pages> = "vm.pgfree", VMSTAT, "pgfree", 1, "", "pgfree/s", "mem.vmstat.pgfree", "",
            "Pages freed, all zones.";
        PGALLOC: Counter<Pages> = "vm.pgalloc", VMSTAT, "pgalloc_*", 1, "", "", "", "",
            "Pages allocated, all zones.";
        PGSKIP: Counter<Pages> = "vm.pgskip", VMSTAT, "pgskip_*", 1, "4.8", "", "", "",
            "Pages passed over by reclaim because they lie in a zone that would not help, all \
             zones.";
        PGACTIVATE: Counter<Pages> = "vm.pgactivate", VMSTAT, "pgactivate", 1, "", "", "mem.vmstat.pgactivate", "",
            "Pages moved to an active list.";
        PGDEACTIVATE: Counter<Pages> = "vm.pgdeactivate", VMSTAT, "pgdeactivate", 1, "", "", "mem.vmstat.pgdeactivate", "",
            "Pages moved to an inactive list.";
        PGREFILL: Counter<Pages> = "vm.pgrefill", VMSTAT, "pgrefill", 1, "", "", "", "",
            "Active pages scanned by reclaim.";
        PGROTATED: Counter<Pages> = "vm.pgrotated", VMSTAT, "pgrotated", 1, "", "", "mem.vmstat.pgrotated", "",
            "Pages rotated to the tail of the inactive list after writeback.";
        PGSCAN_KSWAPD: Counter<Pages> = "vm.pgscan_kswapd", VMSTAT, "pgscan_kswapd", 1, "", "pgscank/s", "mem.vmstat.pgscan_kswapd", "",
            "Pages scanned by kswapd.";
        PGSCAN_DIRECT: Counter<Pages> = "vm.pgscan_direct", VMSTAT, "pgscan_direct", 1, "", "pgscand/s", "mem.vmstat.pgscan_direct", "",
            "Pages scanned by allocating tasks: direct and node reclaim.";
        PGSCAN_KHUGEPAGED: Counter<Pages> = "vm.pgscan_khugepaged", VMSTAT, "pgscan_khugepaged", 1, "6.3", "", "mem.vmstat.pgscan_khugepaged", "",
            "Pages scanned by reclaim on behalf of khugepaged.";
        PGSCAN_PROACTIVE: Counter<Pages> = "vm.pgscan_proactive", VMSTAT, "pgscan_proactive", 1, "6.15", "", "", "",
            "Pages scanned by proactive reclaim (memory.reclaim).";
        PGSCAN_ANON: Counter<Pages> = "vm.pgscan_anon", VMSTAT, "pgscan_anon", 1, "5.8", "", "mem.vmstat.pgscan_anon", "",
            "Anonymous pages scanned by reclaim, cgroup limits included.";
        PGSCAN_FILE: Counter<Pages> = "vm.pgscan_file", VMSTAT, "pgscan_file", 1, "5.8", "", "mem.vmstat.pgscan_file", "",
            "File pages scanned by reclaim, cgroup limits included.";
        PGSTEAL_KSWAPD: Counter<Pages> = "vm.pgsteal_kswapd", VMSTAT, "pgsteal_kswapd", 1, "", "", "mem.vmstat.pgsteal_kswapd", "",
            "Pages reclaimed by kswapd.";
        PGSTEAL_DIRECT: Counter<Pages> = "vm.pgsteal_direct", VMSTAT, "pgsteal_direct", 1, "", "", "mem.vmstat.pgsteal_direct", "",
            "Pages reclaimed by allocating tasks.";
        PGSTEAL_KHUGEPAGED: Counter<Pages> = "vm.pgsteal_khugepaged", VMSTAT, "pgsteal_khugepaged", 1, "6.3", "", "mem.vmstat.pgsteal_khugepaged", "",
            "Pages reclaimed on behalf of khugepaged.";
        PGSTEAL_ANON: Counter<Pages> = "vm.pgsteal_anon", VMSTAT, "pgsteal_anon", 1, "5.8", "", "mem.vmstat.pgsteal_anon", "",
            "Anonymous pages reclaimed, cgroup limits included.";
        PGSTEAL_FILE: Counter<Pages> = "vm.pgsteal_file", VMSTAT, "pgsteal_file", 1, "5.8", "", "mem.vmstat.pgsteal_file", "",
            "File pages reclaimed, cgroup limits included.";
        PGSCAN_DIRECT_THROTTLE: Counter<Count> = "vm.pgscan_direct_throttle", VMSTAT, "pgscan_direct_throttle", 1, "3.6", "", "mem.vmstat.pgscan_direct_throttle", "",
            "Times direct reclaim was throttled because reserves ran low.";
        ALLOCSTALL: Counter<Count> = "vm.allocstall", VMSTAT, "allocstall_*", 1, "", "", "", "",
            "Direct reclaims, all zones: allocations that had to reclaim memory themselves.";
        PAGEOUTRUN: Counter<Count> = "vm.pageoutrun", VMSTAT, "pageoutrun", 1, "", "", "mem.vmstat.pageoutrun", "",
            "Runs of kswapd.";
        KSWAPD_LOW_WMARK_HIT: Counter<Count> = "vm.kswapd_low_wmark_hit_quickly", VMSTAT, "kswapd_low_wmark_hit_quickly", 1, "", "", "mem.vmstat.kswapd_low_wmark_hit_quickly", "",
            "Times free memory fell below the low watermark right after kswapd slept.";
        KSWAPD_HIGH_WMARK_HIT: Counter<Count> = "vm.kswapd_high_wmark_hit_quickly", VMSTAT, "kswapd_high_wmark_hit_quickly", 1, "", "", "mem.vmstat.kswapd_high_wmark_hit_quickly", "",
            "Times free memory fell below the high watermark right after kswapd slept.";
        KSWAPD_INODESTEAL: Counter<Pages> = "vm.kswapd_inodesteal", VMSTAT, "kswapd_inodesteal", 1, "", "", "mem.vmstat.kswapd_inodesteal", "",
            "Page-cache pages freed by kswapd while it reclaimed inodes.";
        PGINODESTEAL: Counter<Pages> = "vm.pginodesteal", VMSTAT, "pginodesteal", 1, "", "", "mem.vmstat.pginodesteal", "",
            "Page-cache pages freed by direct reclaim while it reclaimed inodes.";
        SLABS_SCANNED: Counter<Count> = "vm.slabs_scanned", VMSTAT, "slabs_scanned", 1, "", "", "mem.vmstat.slabs_scanned", "",
            "Kernel objects scanned by reclaim.";
        REFAULT: Counter<Pages> = "vm.workingset_refault", VMSTAT, "workingset_refault", 1, "3.15 to 5.8", "", "mem.vmstat.workingset_refault", "",
            "Refaulted file pages on kernels before 5.9, which track no anonymous pages \
             (mm/vmscan.c, __remove_mapping).";
        REFAULT_ANON: Counter<Pages> = "vm.workingset_refault_anon", VMSTAT, "workingset_refault_anon", 1, "5.9", "", "", "",
            "Refaulted anonymous pages: swapped in again after eviction.";
        REFAULT_FILE: Counter<Pages> = "vm.workingset_refault_file", VMSTAT, "workingset_refault_file", 1, "5.9", "", "", "",
            "Refaulted file pages: read again after eviction.";
        ACTIVATE_ANON: Counter<Pages> = "vm.workingset_activate_anon", VMSTAT, "workingset_activate_anon", 1, "5.9", "", "", "",
            "Refaulted anonymous pages that belong to the working set and were made active at \
             once.";
        ACTIVATE_FILE: Counter<Pages> = "vm.workingset_activate_file", VMSTAT, "workingset_activate_file", 1, "5.9", "", "", "",
            "Refaulted file pages that belong to the working set and were made active at once.";
        RESTORE_ANON: Counter<Pages> = "vm.workingset_restore_anon", VMSTAT, "workingset_restore_anon", 1, "5.9", "", "", "",
            "Refaulted anonymous pages that had been active before.";
        RESTORE_FILE: Counter<Pages> = "vm.workingset_restore_file", VMSTAT, "workingset_restore_file", 1, "5.9", "", "", "",
            "Refaulted file pages that had been active before.";
        SHADOW_NODES_DROPPED: Counter<Count> = "vm.workingset_nodereclaim", VMSTAT, "workingset_nodereclaim", 1, "3.15", "", "mem.vmstat.workingset_nodereclaim", "",
            "Shadow nodes freed: the page cache's record of evicted pages. Where it rises, \
             refaults are undercounted.";
        NR_DIRTIED: Counter<Pages> = "vm.nr_dirtied", VMSTAT, "nr_dirtied", 1, "2.6.37", "", "mem.vmstat.nr_dirtied", "",
            "Pages made dirty.";
        NR_WRITTEN: Counter<Pages> = "vm.nr_written", VMSTAT, "nr_written", 1, "2.6.37", "", "mem.vmstat.nr_written", "",
            "Pages written back.";
        NR_THROTTLED_WRITTEN: Counter<Pages> = "vm.nr_throttled_written", VMSTAT, "nr_throttled_written", 1, "5.16", "", "", "",
            "Pages written while reclaim waited for writeback.";
        NR_VMSCAN_WRITE: Counter<Pages> = "vm.nr_vmscan_write", VMSTAT, "nr_vmscan_write", 1, "", "", "mem.vmstat.nr_vmscan_write", "",
            "Pages written by reclaim itself instead of the flushers.";
        NR_VMSCAN_IMMEDIATE: Counter<Pages> = "vm.nr_vmscan_immediate_reclaim", VMSTAT, "nr_vmscan_immediate_reclaim", 1, "3.2", "", "mem.vmstat.nr_vmscan_immediate_reclaim", "",
            "Pages that reclaim found under writeback and marked for immediate reclaim.";
        OOM_KILLS: Counter<Count> = "vm.oom_kill", VMSTAT, "oom_kill", 1, "4.13", "", "mem.vmstat.oom_kill", "node_vmstat_oom_kill",
            "OOM kills, of the host and of cgroups.";
        COMPACT_STALL: Counter<Count> = "vm.compact_stall", VMSTAT, "compact_stall", 1, "", "", "mem.vmstat.compact_stall", "",
            "Direct compactions: allocations that had to compact memory themselves.";
        COMPACT_FAIL: Counter<Count> = "vm.compact_fail", VMSTAT, "compact_fail", 1, "", "", "mem.vmstat.compact_fail", "",
            "Direct compactions that did not produce a block.";
        COMPACT_SUCCESS: Counter<Count> = "vm.compact_success", VMSTAT, "compact_success", 1, "", "", "mem.vmstat.compact_success", "",
            "Direct compactions that produced a block.";
        COMPACT_DAEMON_WAKE: Counter<Count> = "vm.compact_daemon_wake", VMSTAT, "compact_daemon_wake", 1, "4.6", "", "mem.vmstat.compact_daemon_wake", "",
            "Times kcompactd was woken.";
        COMPACT_MIGRATE_SCANNED: Counter<Pages> = "vm.compact_migrate_scanned", VMSTAT, "compact_migrate_scanned", 1, "", "", "mem.vmstat.compact_migrate_scanned", "",
            "Pages scanned by compaction for pages to move.";
        COMPACT_FREE_SCANNED: Counter<Pages> = "vm.compact_free_scanned", VMSTAT, "compact_free_scanned", 1, "", "", "mem.vmstat.compact_free_scanned", "",
            "Pages scanned by compaction for free target pages.";
        COMPACT_ISOLATED: Counter<Pages> = "vm.compact_isolated", VMSTAT, "compact_isolated", 1, "", "", "mem.vmstat.compact_isolated", "",
            "Pages isolated by compaction, to be moved or as targets.";
        THP_FAULT_ALLOC: Counter<Count> = "vm.thp_fault_alloc", VMSTAT, "thp_fault_alloc", 1, "", "", "mem.vmstat.thp_fault_alloc", "",
            "Huge pages allocated at a page fault.";
        THP_FAULT_FALLBACK: Counter<Count> = "vm.thp_fault_fallback", VMSTAT, "thp_fault_fallback", 1, "", "", "mem.vmstat.thp_fault_fallback", "",
            "Page faults that fell back from a huge page to small pages.";
        THP_COLLAPSE_ALLOC: Counter<Count> = "vm.thp_collapse_alloc", VMSTAT, "thp_collapse_alloc", 1, "", "", "mem.vmstat.thp_collapse_alloc", "",
            "Huge pages made by khugepaged.";
        THP_SPLIT_PAGE: Counter<Count> = "vm.thp_split_page", VMSTAT, "thp_split_page", 1, "", "", "mem.vmstat.thp_split_page", "",
            "Huge pages split.";
        THP_DEFERRED_SPLIT: Counter<Count> = "vm.thp_deferred_split_page", VMSTAT, "thp_deferred_split_page", 1, "", "", "mem.vmstat.thp_deferred_split_page", "",
            "Huge pages queued for splitting because a part was freed.";
        THP_UNDERUSED_SPLIT: Counter<Count> = "vm.thp_underused_split_page", VMSTAT, "thp_underused_split_page", 1, "6.12", "", "", "",
            "Huge pages split because they were mostly zero.";
        THP_SWPOUT: Counter<Count> = "vm.thp_swpout", VMSTAT, "thp_swpout", 1, "4.14", "", "mem.vmstat.thp_swpout", "",
            "Huge pages swapped out whole.";
        NUMA_HIT: Counter<Pages> = "vm.numa_hit", VMSTAT, "numa_hit", 1, "", "", "mem.vmstat.numa_hit", "",
            "Pages allocated on the intended node, all nodes.";
        NUMA_MISS: Counter<Pages> = "vm.numa_miss", VMSTAT, "numa_miss", 1, "", "", "mem.vmstat.numa_miss", "",
            "Pages allocated on a node although another was intended, all nodes.";
        NUMA_FOREIGN: Counter<Pages> = "vm.numa_foreign", VMSTAT, "numa_foreign", 1, "", "", "mem.vmstat.numa_foreign", "",
            "Pages intended for a node but allocated on another, all nodes.";
        NUMA_LOCAL: Counter<Pages> = "vm.numa_local", VMSTAT, "numa_local", 1, "", "", "mem.vmstat.numa_local", "",
            "Pages allocated on the task's own node.";
        NUMA_OTHER: Counter<Pages> = "vm.numa_other", VMSTAT, "numa_other", 1, "", "", "mem.vmstat.numa_other", "",
            "Pages allocated on a node other than the task's.";
        NUMA_PTE_UPDATES: Counter<Count> = "vm.numa_pte_updates", VMSTAT, "numa_pte_updates", 1, "3.8", "", "mem.vmstat.numa_pte_updates", "",
            "Page-table entries that NUMA balancing marked for hinting faults.";
        NUMA_HINT_FAULTS: Counter<Count> = "vm.numa_hint_faults", VMSTAT, "numa_hint_faults", 1, "3.8", "", "mem.vmstat.numa_hint_faults", "",
            "NUMA hinting faults: faults on entries that NUMA balancing had marked.";
        NUMA_HINT_FAULTS_LOCAL: Counter<Count> = "vm.numa_hint_faults_local", VMSTAT, "numa_hint_faults_local", 1, "3.8", "", "mem.vmstat.numa_hint_faults_local", "",
            "NUMA hinting faults on pages that were already on the task's own node.";
        NUMA_PAGES_MIGRATED: Counter<Pages> = "vm.numa_pages_migrated", VMSTAT, "numa_pages_migrated", 1, "3.8", "", "mem.vmstat.numa_pages_migrated", "",
            "Pages that NUMA balancing moved to another node.";
        PGMIGRATE_SUCCESS: Counter<Pages> = "vm.pgmigrate_success", VMSTAT, "pgmigrate_success", 1, "", "", "mem.vmstat.pgmigrate_success", "",
            "Pages moved to another place in RAM, whatever the reason: compaction, NUMA, hotplug.";
        PGMIGRATE_FAIL: Counter<Pages> = "vm.pgmigrate_fail", VMSTAT, "pgmigrate_fail", 1, "", "", "mem.vmstat.pgmigrate_fail", "",
            "Pages that could not be moved to another place in RAM.";
        PGPROMOTE_SUCCESS: Counter<Pages> = "vm.pgpromote_success", VMSTAT, "pgpromote_success", 1, "5.15", "pgprom/s", "mem.vmstat.pgpromote_success", "",
            "Pages promoted to fast memory.";
        PGDEMOTE_KSWAPD: Counter<Pages> = "vm.pgdemote_kswapd", VMSTAT, "pgdemote_kswapd", 1, "5.15", "", "mem.vmstat.pgdemote_kswapd", "",
            "Pages demoted to slow memory by kswapd.";
        PGDEMOTE_DIRECT: Counter<Pages> = "vm.pgdemote_direct", VMSTAT, "pgdemote_direct", 1, "5.15", "", "mem.vmstat.pgdemote_direct", "",
            "Pages demoted to slow memory by direct reclaim.";
        ZONE_RECLAIM_SUCCESS: Counter<Count> = "vm.zone_reclaim_success", VMSTAT, "zone_reclaim_success", 1, "", "", "", "",
            "Node reclaims that freed enough.";
        ZONE_RECLAIM_FAILED: Counter<Count> = "vm.zone_reclaim_failed", VMSTAT, "zone_reclaim_failed", 1, "", "", "mem.vmstat.zone_reclaim_failed", "",
            "Node reclaims that did not free enough.";
        BALLOON_INFLATE: Counter<Pages> = "vm.balloon_inflate", VMSTAT, "balloon_inflate", 1, "", "", "mem.vmstat.balloon_inflate", "",
            "Pages given to the hypervisor.";
        BALLOON_DEFLATE: Counter<Pages> = "vm.balloon_deflate", VMSTAT, "balloon_deflate", 1, "", "", "mem.vmstat.balloon_deflate", "",
            "Pages returned by the hypervisor.";
        DROP_PAGECACHE: Counter<Count> = "vm.drop_pagecache", VMSTAT, "drop_pagecache", 1, "3.15", "", "mem.vmstat.drop_pagecache", "",
            "Times the page cache was dropped by hand (vm.drop_caches).";
        DROP_SLAB: Counter<Count> = "vm.drop_slab", VMSTAT, "drop_slab", 1, "3.15", "", "mem.vmstat.drop_slab", "",
            "Times dentries and inodes were dropped by hand (vm.drop_caches).";
        UNEVICTABLE_CULLED: Counter<Pages> = "vm.unevictable_pgs_culled", VMSTAT, "unevictable_pgs_culled", 1, "", "", "mem.vmstat.unevictable_pgs_culled", "",
            "Pages found unevictable by reclaim.";
        HTLB_ALLOC_FAIL: Counter<Count> = "vm.htlb_buddy_alloc_fail", VMSTAT, "htlb_buddy_alloc_fail", 1, "", "", "mem.vmstat.htlb_buddy_alloc_fail", "",
            "Huge pages that could not be allocated.";
        NR_FOLL_PIN_ACQUIRED: Counter<Pages> = "vm.nr_foll_pin_acquired", VMSTAT, "nr_foll_pin_acquired", 1, "5.7", "", "mem.vmstat.nr_foll_pin_acquired", "",
            "Pages pinned for device access.";
        NR_FOLL_PIN_RELEASED: Counter<Pages> = "vm.nr_foll_pin_released", VMSTAT, "nr_foll_pin_released", 1, "5.7", "", "mem.vmstat.nr_foll_pin_released", "",
            "Pages released from device access.";
        PSI_MEMORY_SOME: Counter<Micros> = "psi.memory.some", MEMORY_PRESSURE, "some total", 1, "4.20", "%smem", "kernel.all.pressure.memory.some.total", "node_pressure_memory_waiting_seconds_total",
            "Time for which at least one task waited for memory.";
        PSI_MEMORY_FULL: Counter<Micros> = "psi.memory.full", MEMORY_PRESSURE, "full total", 1, "4.20", "%fmem", "kernel.all.pressure.memory.full.total", "node_pressure_memory_stalled_seconds_total",
            "Time for which all running tasks waited for memory.";
        PSI_MEMORY_SOME_AVG10: Gauge<Micros> = "psi.memory.some.avg10", MEMORY_PRESSURE, "some avg10", 10000, "4.20", "", "", "",
            "Time per second for which at least one task waited for memory, averaged by the kernel \
             over the last 10 s.";
        PSI_MEMORY_SOME_AVG60: Gauge<Micros> = "psi.memory.some.avg60", MEMORY_PRESSURE, "some avg60", 10000, "4.20", "", "", "",
            "Time per second for which at least one task waited for memory, averaged by the kernel \
             over the last minute.";
        PSI_MEMORY_SOME_AVG300: Gauge<Micros> = "psi.memory.some.avg300", MEMORY_PRESSURE, "some avg300", 10000, "4.20", "", "", "",
            "Time per second for which at least one task waited for memory, averaged by the kernel \
             over the last 5 minutes.";
        PSI_MEMORY_FULL_AVG10: Gauge<Micros> = "psi.memory.full.avg10", MEMORY_PRESSURE, "full avg10", 10000, "4.20", "", "", "",
            "Time per second for which all running tasks waited for memory, averaged by the kernel \
             over the last 10 s.";
        PSI_MEMORY_FULL_AVG60: Gauge<Micros> = "psi.memory.full.avg60", MEMORY_PRESSURE, "full avg60", 10000, "4.20", "", "", "",
            "Time per second for which all running tasks waited for memory, averaged by the kernel \
             over the last minute.";
        PSI_MEMORY_FULL_AVG300: Gauge<Micros> = "psi.memory.full.avg300", MEMORY_PRESSURE, "full avg300", 10000, "4.20", "", "", "",
            "Time per second for which all running tasks waited for memory, averaged by the kernel \
             over the last 5 minutes.";
        PSI_IO_SOME: Counter<Micros> = "psi.io.some", IO_PRESSURE, "some total", 1, "4.20", "%sio", "kernel.all.pressure.io.some.total", "node_pressure_io_waiting_seconds_total",
            "Time for which at least one task waited for I/O.";
        PSI_IO_FULL: Counter<Micros> = "psi.io.full", IO_PRESSURE, "full total", 1, "4.20", "%fio", "kernel.all.pressure.io.full.total", "node_pressure_io_stalled_seconds_total",
            "Time for which all running tasks waited for I/O.";
        PSI_IO_SOME_AVG10: Gauge<Micros> = "psi.io.some.avg10", IO_PRESSURE, "some avg10", 10000, "4.20", "", "", "",
            "Time per second for which at least one task waited for I/O, averaged by the kernel \
             over the last 10 s.";
        PSI_IO_SOME_AVG60: Gauge<Micros> = "psi.io.some.avg60", IO_PRESSURE, "some avg60", 10000, "4.20", "", "", "",
            "Time per second for which at least one task waited for I/O, averaged by the kernel \
             over the last minute.";
        PSI_IO_SOME_AVG300: Gauge<Micros> = "psi.io.some.avg300", IO_PRESSURE, "some avg300", 10000, "4.20", "", "", "",
            "Time per second for which at least one task waited for I/O, averaged by the kernel \
             over the last 5 minutes.";
        PSI_IO_FULL_AVG10: Gauge<Micros> = "psi.io.full.avg10", IO_PRESSURE, "full avg10", 10000, "4.20", "", "", "",
            "Time per second for which all running tasks waited for I/O, averaged by the kernel \
             over the last 10 s.";
        PSI_IO_FULL_AVG60: Gauge<Micros> = "psi.io.full.avg60", IO_PRESSURE, "full avg60", 10000, "4.20", "", "", "",
            "Time per second for which all running tasks waited for I/O, averaged by the kernel \
             over the last minute.";
        PSI_IO_FULL_AVG300: Gauge<Micros> = "psi.io.full.avg300", IO_PRESSURE, "full avg300", 10000, "4.20", "", "", "",
            "Time per second for which all running tasks waited for I/O, averaged by the kernel \
             over the last 5 minutes.";
        PSI_CPU_SOME: Counter<Micros> = "psi.cpu.some", CPU_PRESSURE, "some total", 1, "4.20", "%scpu", "kernel.all.pressure.cpu.some.total", "node_pressure_cpu_waiting_seconds_total",
            "Time for which at least one task waited for a CPU.";
        PSI_CPU_FULL: Counter<Micros> = "psi.cpu.full", CPU_PRESSURE, "full total", 1, "5.13", "", "", "",
            "Time for which all running tasks waited for a CPU.";
        CPU_USER: Counter<Ticks> = "cpu.user", STAT, "cpu user", 1, "", "%user", "kernel.all.cpu.user", "node_cpu_seconds_total{mode=\"user\"}",
            "CPU time spent on user code, all CPUs.";
        CPU_NICE: Counter<Ticks> = "cpu.nice", STAT, "cpu nice", 1, "", "%nice", "kernel.all.cpu.nice", "node_cpu_seconds_total{mode=\"nice\"}",
            "CPU time spent on user code at low priority, all CPUs.";
        CPU_SYSTEM: Counter<Ticks> = "cpu.system", STAT, "cpu system", 1, "", "%sys", "kernel.all.cpu.sys", "node_cpu_seconds_total{mode=\"system\"}",
            "CPU time spent on kernel code, all CPUs.";
        CPU_IDLE: Counter<Ticks> = "cpu.idle", STAT, "cpu idle", 1, "", "%idle", "kernel.all.cpu.idle", "node_cpu_seconds_total{mode=\"idle\"}",
            "Idle CPU time, all CPUs.";
        CPU_IOWAIT: Counter<Ticks> = "cpu.iowait", STAT, "cpu iowait", 1, "", "%iowait", "kernel.all.cpu.wait.total", "node_cpu_seconds_total{mode=\"iowait\"}",
            "Idle CPU time while I/O was outstanding, all CPUs.";
        CPU_IRQ: Counter<Ticks> = "cpu.irq", STAT, "cpu irq", 1, "", "%irq", "kernel.all.cpu.irq.hard", "node_cpu_seconds_total{mode=\"irq\"}",
            "CPU time spent on interrupts, all CPUs.";
        CPU_SOFTIRQ: Counter<Ticks> = "cpu.softirq", STAT, "cpu softirq", 1, "", "%soft", "kernel.all.cpu.irq.soft", "node_cpu_seconds_total{mode=\"softirq\"}",
            "CPU time spent on soft interrupts, all CPUs.";
        CPU_STEAL: Counter<Ticks> = "cpu.steal", STAT, "cpu steal", 1, "", "%steal", "kernel.all.cpu.steal", "node_cpu_seconds_total{mode=\"steal\"}",
            "CPU time that the hypervisor gave to other guests, all CPUs.";
        CPU_GUEST: Counter<Ticks> = "cpu.guest", STAT, "cpu guest", 1, "", "%guest", "kernel.all.cpu.guest", "node_cpu_guest_seconds_total{mode=\"user\"}",
            "CPU time spent on guests that run on this host, all CPUs; a part of user.";
        CPU_GUEST_NICE: Counter<Ticks> = "cpu.guest_nice", STAT, "cpu guest_nice", 1, "", "%gnice", "kernel.all.cpu.guest_nice", "node_cpu_guest_seconds_total{mode=\"nice\"}",
            "CPU time spent on guests that run on this host at low priority, all CPUs; a part of \
             nice.";
        FORKS: Counter<Count> = "cpu.forks", STAT, "processes", 1, "", "proc/s", "kernel.all.sysfork", "node_forks_total",
            "Processes and threads started.";
        TASKS_RUNNING: Gauge<Count> = "cpu.tasks_running", STAT, "procs_running", 1, "", "runq-sz", "kernel.all.running", "node_procs_running",
            "Runnable tasks.";
        TASKS_BLOCKED: Gauge<Count> = "cpu.tasks_blocked", STAT, "procs_blocked", 1, "", "blocked", "kernel.all.blocked", "node_procs_blocked",
            "Tasks that wait for I/O (state D).";
        DENTRIES: Gauge<Count> = "fs.dentries", DENTRY_STATE, "1", 1, "", "", "vfs.dentry.count", "",
            "Cached directory entries.";
        DENTRIES_UNUSED: Gauge<Count> = "fs.dentries_unused", DENTRY_STATE, "2", 1, "", "dentunusd", "vfs.dentry.free", "",
            "Cached directory entries that are not in use.";
        DENTRIES_NEGATIVE: Gauge<Count> = "fs.dentries_negative", DENTRY_STATE, "5", 1, "5.0", "", "", "",
            "Negative directory entries: cached names that do not exist.";
        INODES: Gauge<Count> = "fs.inodes", INODE_NR, "1", 1, "", "", "vfs.inodes.count", "",
            "Cached inodes.";
        INODES_FREE: Gauge<Count> = "fs.inodes_free", INODE_NR, "2", 1, "", "", "vfs.inodes.free", "",
            "Cached inodes that are not in use.";
        FILES_OPEN: Gauge<Count> = "fs.files_open", FILE_NR, "1", 1, "", "file-nr", "vfs.files.count", "node_filefd_allocated",
            "Open files.";
        TCP_MEM: Gauge<Pages> = "sock.tcp_mem", SOCKSTAT, "TCP mem", 1, "", "", "network.sockstat.tcp.mem", "node_sockstat_TCP_mem",
            "Memory of TCP sockets.";
        UDP_MEM: Gauge<Pages> = "sock.udp_mem", SOCKSTAT, "UDP mem", 1, "", "", "network.sockstat.udp.mem", "node_sockstat_UDP_mem",
            "Memory of UDP sockets.";
        TCP_MEMORY_PRESSURES: Counter<Count> = "sock.tcp_memory_pressures", NETSTAT, "TcpExt TCPMemoryPressures", 1, "4.15", "", "network.tcp.memorypressures", "",
            "Times TCP entered memory pressure: its sockets exceeded the middle limit of \
             net.ipv4.tcp_mem.";
        TCP_MEMORY_ABORTS: Counter<Count> = "sock.tcp_memory_aborts", NETSTAT, "TcpExt TCPAbortOnMemory", 1, "", "", "network.tcp.abortonmemory", "",
            "TCP connections that were reset for lack of socket memory, or because too many had no \
             owner.";
        CGROUPS: Gauge<Count> = "cgroups.descendants", ROOT_CGROUP_STAT, "nr_descendants", 1, "4.14", "", "", "",
            "Cgroups below the root.";
        CGROUPS_DYING: Gauge<Count> = "cgroups.dying", ROOT_CGROUP_STAT, "nr_dying_descendants", 1, "4.14", "", "", "",
            "Cgroups that were removed and still hold memory; of v1, those that /proc/cgroups \
             counts beyond the directories.";
        KSM_SHARED: Gauge<Pages> = "ksm.pages_shared", "/sys/kernel/mm/ksm/pages_shared", "1", 1, "2.6.32", "", "mem.ksm.pages_shared", "node_ksmd_pages_shared",
            "Merged pages in use by KSM.";
        KSM_SHARING: Gauge<Pages> = "ksm.pages_sharing", "/sys/kernel/mm/ksm/pages_sharing", "1", 1, "2.6.32", "", "mem.ksm.pages_sharing", "node_ksmd_pages_sharing",
            "Pages that KSM saves.";
        ZFS_ARC: Gauge<Bytes> = "mem.zfs_arc", ARCSTATS, "size", 1, "", "", "zfs.arc.size", "node_zfs_arc_size",
            "The cache of ZFS (ARC). It shrinks when programs want memory, but the kernel counts \
             it as used.";
        ZFS_ARC_MIN: Gauge<Bytes> = "mem.zfs_arc_min", ARCSTATS, "c_min", 1, "", "", "zfs.arc.c_min", "node_zfs_arc_c_min",
            "What the ARC of ZFS keeps when programs want memory.";
        ZFS_ARC_DATA: Gauge<Bytes> = "mem.zfs_arc_data", ARCSTATS, "data_size", 1, "", "", "", "node_zfs_arc_data_size",
            "Data of files in the ARC of ZFS: pages that no counter of the kernel has.";
        ZFS_ARC_METADATA: Gauge<Bytes> = "mem.zfs_arc_metadata", ARCSTATS, "metadata_size", 1, "", "", "", "node_zfs_arc_metadata_size",
            "Metadata in the ARC of ZFS: pages that no counter of the kernel has.";
        PAGE_CACHE: Gauge<Bytes> = "mem.page_cache", DERIVED, "Cached − Shmem + Buffers", 1, "", "", "", "",
            "Page cache that can be dropped: file data and metadata, without shared memory.";
        SWAP_USED: Gauge<Bytes> = "swap.used", DERIVED, "SwapTotal − SwapFree", 1, "", "kbswpused", "swap.used", "",
            "Swap in use.";
        RECORDER_LATE: Gauge<Micros> = "recorder.late", DERIVED, "taken − due", 1, "", "", "", "",
            "How late the sample was taken. A host that delays its recorder delays other tasks \
             too.";
        RECORDER_CPU: Counter<Micros> = "recorder.cpu", DERIVED, "user + system of memtide \
                                                            record", 1, "", "", "", "",
            "CPU time of the recorder.";
        RECORDER_RSS: Gauge<Bytes> = "recorder.rss", DERIVED, "RSS of memtide record", 1, "", "", "", "",
            "Resident memory of the recorder.";
        RECORDER_LOST: Counter<Count> = "recorder.lost", DERIVED, "samples dropped", 1, "", "", "", "",
            "Samples lost because the disk did not accept them.";
        SWAPIN_ALL: Counter<Pages> = "vm.swapin_all", DERIVED, "pswpin + zswpin + swpin_zero", 1, "", "", "", "",
            "Pages swapped in from anywhere: swap devices, the zswap pool, zero pages.";
        MEM_FLOOR_HIGH: Gauge<Bytes> = "mem.floor_high", DERIVED, "Σ zones min(managed, high + \
                                                            protection)", 1, "", "", "", "",
            "Free memory at which kswapd stops; MemAvailable excludes this much.";
        MEM_UNACCOUNTED: Gauge<Bytes> = "mem.unaccounted", DERIVED, "MemTotal − all terms", 1, "", "", "", "",
            "RAM that no counter covers: allocated by drivers, the network, GPUs, guests.";
        HUGETLB_UNUSED: Gauge<Bytes> = "hugepages.unused", DERIVED, "(HugePages_Free − HugePages_Rsvd) × Hugepagesize", 1, "", "", "", "",
            "Reserved huge pages that are neither allocated nor committed.";
        DIRTY_AND_WRITEBACK: Gauge<Bytes> = "mem.dirty_and_writeback", DERIVED, "Dirty + Writeback", 1, "", "", "", "",
            "Dirty pages and pages under writeback: what the kernel compares with the dirty \
             limits.";
    }
    Node {
        NODE_TOTAL: Gauge<Bytes> = "node.total", NODE_MEMINFO, "MemTotal", 1024, "", "", "mem.numa.util.total", "node_memory_numa_MemTotal",
            "RAM of the node.";
        NODE_FREE: Gauge<Bytes> = "node.free", NODE_MEMINFO, "MemFree", 1024, "", "", "mem.numa.util.free", "node_memory_numa_MemFree",
            "Free RAM of the node.";
        NODE_FILE: Gauge<Bytes> = "node.file", NODE_MEMINFO, "FilePages", 1024, "", "", "mem.numa.util.filePages", "node_memory_numa_FilePages",
            "Page cache of the node, shared memory included.";
        NODE_ANON: Gauge<Bytes> = "node.anon", NODE_MEMINFO, "AnonPages", 1024, "", "", "mem.numa.util.anonpages", "node_memory_numa_AnonPages",
            "Anonymous memory on the node.";
        NODE_SHMEM: Gauge<Bytes> = "node.shmem", NODE_MEMINFO, "Shmem", 1024, "", "", "mem.numa.util.shmem", "node_memory_numa_Shmem",
            "Shared memory on the node.";
        NODE_SLAB: Gauge<Bytes> = "node.slab", NODE_MEMINFO, "Slab", 1024, "", "", "mem.numa.util.slab", "node_memory_numa_Slab",
            "Kernel objects on the node.";
        NODE_DIRTY: Gauge<Bytes> = "node.dirty", NODE_MEMINFO, "Dirty", 1024, "", "", "mem.numa.util.dirty", "node_memory_numa_Dirty",
            "Dirty page cache on the node.";
        NODE_ACTIVE_FILE: Gauge<Bytes> = "node.active_file", NODE_MEMINFO, "Active(file)", 1024, "", "", "mem.numa.util.active_file", "node_memory_numa_Active_file",
            "Recently used file pages of the node.";
        NODE_INACTIVE_FILE: Gauge<Bytes> = "node.inactive_file", NODE_MEMINFO, "Inactive(file)", 1024, "", "", "mem.numa.util.inactive_file", "node_memory_numa_Inactive_file",
            "File pages of the node that are reclaimed first.";
        NODE_HIT: Counter<Pages> = "node.numa_hit", NODE_NUMASTAT, "numa_hit", 1, "", "", "mem.numa.alloc.hit", "node_memory_numa_numa_hit_total",
            "Pages allocated on this node as intended.";
        NODE_MISS: Counter<Pages> = "node.numa_miss", NODE_NUMASTAT, "numa_miss", 1, "", "", "mem.numa.alloc.miss", "node_memory_numa_numa_miss_total",
            "Pages allocated on this node although another was intended.";
        NODE_FOREIGN: Counter<Pages> = "node.numa_foreign", NODE_NUMASTAT, "numa_foreign", 1, "", "", "mem.numa.alloc.foreign", "node_memory_numa_numa_foreign_total",
            "Pages intended for this node but allocated on another.";
        NODE_LOCAL: Counter<Pages> = "node.numa_local", NODE_NUMASTAT, "local_node", 1, "", "", "mem.numa.alloc.local_node", "node_memory_numa_local_node_total",
            "Pages allocated here for tasks running here.";
        NODE_OTHER: Counter<Pages> = "node.numa_other", NODE_NUMASTAT, "other_node", 1, "", "", "mem.numa.alloc.other_node", "node_memory_numa_other_node_total",
            "Pages allocated here for tasks running elsewhere.";
    }
    Zone {
        ZONE_FREE: Gauge<Pages> = "zone.free", ZONEINFO, "free", 1, "", "", "mem.zoneinfo.free", "node_zoneinfo_nr_free_pages",
            "Free pages of the zone.";
        ZONE_MIN: Gauge<Pages> = "zone.min", ZONEINFO, "min", 1, "", "", "mem.zoneinfo.min", "node_zoneinfo_min_pages",
            "Free pages below which only privileged allocations succeed; boost included.";
        ZONE_LOW: Gauge<Pages> = "zone.low", ZONEINFO, "low", 1, "", "", "mem.zoneinfo.low", "node_zoneinfo_low_pages",
            "Free pages below which kswapd starts; boost included.";
        ZONE_HIGH: Gauge<Pages> = "zone.high", ZONEINFO, "high", 1, "", "", "mem.zoneinfo.high", "node_zoneinfo_high_pages",
            "Free pages at which kswapd stops; boost included.";
        ZONE_BOOST: Gauge<Pages> = "zone.boost", ZONEINFO, "boost", 1, "5.16", "", "", "",
            "How far the zone's watermarks are raised for a time after a fragmentation event.";
        ZONE_SPANNED: Gauge<Pages> = "zone.spanned", ZONEINFO, "spanned", 1, "", "", "mem.zoneinfo.spanned", "node_zoneinfo_spanned_pages",
            "Pages between the zone's ends, holes included.";
        ZONE_PRESENT: Gauge<Pages> = "zone.present", ZONEINFO, "present", 1, "", "", "mem.zoneinfo.present", "node_zoneinfo_present_pages",
            "Pages of RAM in the zone.";
        ZONE_MANAGED: Gauge<Pages> = "zone.managed", ZONEINFO, "managed", 1, "", "", "mem.zoneinfo.managed", "node_zoneinfo_managed_pages",
            "Pages of the zone that the allocator manages.";
        ZONE_PROTECTION: Gauge<Pages> = "zone.protection", ZONEINFO, "protection", 1, "", "", "", "",
            "The zone's largest lowmem reserve: withheld from allocations that could use a higher \
             zone.";
        ZONE_PCP: Gauge<Pages> = "zone.pcp", ZONEINFO, "pagesets count", 1, "", "", "", "",
            "Free pages of the zone on per-CPU lists; not in its free pages.";
        ZONE_FREE_CMA: Gauge<Pages> = "zone.free_cma", ZONEINFO, "nr_free_cma", 1, "", "", "mem.zoneinfo.nr_free_cma", "",
            "Free pages of the zone that only movable allocations may use.";
        ZONE_BLOCKS_0: Gauge<Count> = "zone.blocks_0", BUDDYINFO, "order 0", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"0\"}",
            "Free blocks of 2^0 contiguous pages.";
        ZONE_BLOCKS_1: Gauge<Count> = "zone.blocks_1", BUDDYINFO, "order 1", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"1\"}",
            "Free blocks of 2^1 contiguous pages.";
        ZONE_BLOCKS_2: Gauge<Count> = "zone.blocks_2", BUDDYINFO, "order 2", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"2\"}",
            "Free blocks of 2^2 contiguous pages.";
        ZONE_BLOCKS_3: Gauge<Count> = "zone.blocks_3", BUDDYINFO, "order 3", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"3\"}",
            "Free blocks of 2^3 contiguous pages.";
        ZONE_BLOCKS_4: Gauge<Count> = "zone.blocks_4", BUDDYINFO, "order 4", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"4\"}",
            "Free blocks of 2^4 contiguous pages.";
        ZONE_BLOCKS_5: Gauge<Count> = "zone.blocks_5", BUDDYINFO, "order 5", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"5\"}",
            "Free blocks of 2^5 contiguous pages.";
        ZONE_BLOCKS_6: Gauge<Count> = "zone.blocks_6", BUDDYINFO, "order 6", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"6\"}",
            "Free blocks of 2^6 contiguous pages.";
        ZONE_BLOCKS_7: Gauge<Count> = "zone.blocks_7", BUDDYINFO, "order 7", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"7\"}",
            "Free blocks of 2^7 contiguous pages.";
        ZONE_BLOCKS_8: Gauge<Count> = "zone.blocks_8", BUDDYINFO, "order 8", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"8\"}",
            "Free blocks of 2^8 contiguous pages.";
        ZONE_BLOCKS_9: Gauge<Count> = "zone.blocks_9", BUDDYINFO, "order 9", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"9\"}",
            "Free blocks of 2^9 contiguous pages.";
        ZONE_BLOCKS_10: Gauge<Count> = "zone.blocks_10", BUDDYINFO, "order 10", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks{size=\"10\"}",
            "Free blocks of 2^10 contiguous pages.";
    }
    Disk {
        DISK_READS: Counter<Count> = "disk.reads", DISKSTATS, "reads", 1, "", "", "disk.dev.read", "node_disk_reads_completed_total",
            "Reads completed.";
        DISK_READ_BYTES: Counter<Bytes> = "disk.read_bytes", DISKSTATS, "sectors read", 512, "", "rkB/s", "disk.dev.read_bytes", "node_disk_read_bytes_total",
            "Bytes read.";
        DISK_READ_TIME: Counter<Millis> = "disk.read_time", DISKSTATS, "ms reading", 1, "", "", "disk.dev.read_rawactive", "node_disk_read_time_seconds_total",
            "Total time of all reads.";
        DISK_WRITES: Counter<Count> = "disk.writes", DISKSTATS, "writes", 1, "", "", "disk.dev.write", "node_disk_writes_completed_total",
            "Writes completed.";
        DISK_WRITE_BYTES: Counter<Bytes> = "disk.write_bytes", DISKSTATS, "sectors written", 512, "", "wkB/s", "disk.dev.write_bytes", "node_disk_written_bytes_total",
            "Bytes written.";
        DISK_WRITE_TIME: Counter<Millis> = "disk.write_time", DISKSTATS, "ms writing", 1, "", "", "disk.dev.write_rawactive", "node_disk_write_time_seconds_total",
            "Total time of all writes.";
        DISK_IN_FLIGHT: Gauge<Count> = "disk.in_flight", DISKSTATS, "in flight", 1, "", "", "disk.dev.inflight", "node_disk_io_now",
            "Requests in flight.";
        DISK_IO_TIME: Counter<Millis> = "disk.io_time", DISKSTATS, "ms doing I/O", 1, "", "%util", "disk.dev.avactive", "node_disk_io_time_seconds_total",
            "Time for which at least one request was in flight.";
        DISK_QUEUE_TIME: Counter<Millis> = "disk.queue_time", DISKSTATS, "weighted ms", 1, "", "aqu-sz", "disk.dev.aveq", "node_disk_io_time_weighted_seconds_total",
            "Total time of all requests, queueing included.";
        DISK_FLUSHES: Counter<Count> = "disk.flushes", DISKSTATS, "flushes", 1, "5.5", "", "disk.dev.flush", "node_disk_flush_requests_total",
            "Flush requests completed.";
    }
    SwapArea {
        SWAP_AREA_SIZE: Gauge<Bytes> = "swap_area.size", SWAPS, "Size", 1024, "", "", "swapdev.length", "node_swap_size_bytes",
            "Size of the swap area.";
        SWAP_AREA_USED: Gauge<Bytes> = "swap_area.used", SWAPS, "Used", 1024, "", "", "", "node_swap_used_bytes",
            "Swap in use in the area.";
        SWAP_AREA_RANK: Gauge<Count> = "swap_area.rank", SWAPS, "Priority", 1, "", "", "swapdev.priority", "node_swap_priority",
            "Priority plus 32768: the area with the highest is filled first.";
    }
    Zram {
        ZRAM_ORIG: Gauge<Bytes> = "zram.orig", ZRAM_MM_STAT, "1", 1, "4.2", "", "zram.mm_stat.data_size.original", "",
            "Data in zram before compression, without zero pages.";
        ZRAM_COMPRESSED: Gauge<Bytes> = "zram.compressed", ZRAM_MM_STAT, "2", 1, "4.2", "", "zram.mm_stat.data_size.compressed", "",
            "Data in zram after compression, without overhead.";
        ZRAM_USED: Gauge<Bytes> = "zram.used", ZRAM_MM_STAT, "3", 1, "4.2", "", "zram.mm_stat.mem.used_total", "",
            "RAM that zram uses, overhead included.";
        ZRAM_LIMIT: Gauge<Limit> = "zram.limit", ZRAM_MM_STAT, "4", 1, "4.2", "", "zram.mm_stat.mem.limit", "",
            "Limit of the RAM that zram may use.";
        ZRAM_USED_MAX: Gauge<Bytes> = "zram.used_max", ZRAM_MM_STAT, "5", 1, "4.2", "", "zram.mm_stat.mem.max_used", "",
            "Peak RAM use of zram.";
        ZRAM_SAME: Gauge<Pages> = "zram.same", ZRAM_MM_STAT, "6", 1, "4.2", "", "zram.mm_stat.pages.same", "",
            "Same-filled pages, which use no RAM.";
        ZRAM_HUGE: Gauge<Pages> = "zram.huge", ZRAM_MM_STAT, "8", 1, "4.19", "", "zram.mm_stat.pages.huge", "",
            "Incompressible pages, stored as they are.";
        ZRAM_DISK_SIZE: Gauge<Bytes> = "zram.disk_size", "/sys/block/zram*/disksize", "1", 1, "", "", "zram.capacity", "",
            "Size of the device, as swap sees it.";
        ZRAM_FAILED_WRITES: Counter<Count> = "zram.failed_writes", "/sys/block/zram*/io_stat", "2", 1, "4.2", "", "zram.io_stat.failed.writes", "",
            "Failed writes, mostly at the limit.";
    }
    Slab {
        SLAB_OBJECTS: Gauge<Count> = "slab.objects", SLABINFO, "num_objs", 1, "", "", "mem.slabinfo.objects.total", "node_slabinfo_objects",
            "Allocated objects of the cache.";
        SLAB_OBJECTS_ACTIVE: Gauge<Count> = "slab.objects_active", SLABINFO, "active_objs", 1, "", "", "mem.slabinfo.objects.active", "node_slabinfo_active_objects",
            "Objects of the cache that are in use.";
        SLAB_OBJECT_SIZE: Gauge<Bytes> = "slab.object_size", SLABINFO, "objsize", 1, "", "", "mem.slabinfo.objects.size", "node_slabinfo_object_size_bytes",
            "Size of one object of the cache.";
        SLAB_PAGES: Gauge<Pages> = "slab.pages", SLABINFO, "num_slabs × pagesperslab", 1, "", "", "", "",
            "Pages of the cache.";
    }
    Cgroup {
        CGROUP_CURRENT: Gauge<Bytes> = "cgroup.current", "/sys/fs/cgroup/**/memory.current", "1", 1, "4.5", "", "cgroup.memory.current", "",
            "Memory charged to the cgroup and its descendants. v1: memory.usage_in_bytes.";
        CGROUP_PEAK: Gauge<Bytes> = "cgroup.peak", "/sys/fs/cgroup/**/memory.peak", "1", 1, "5.19", "", "", "",
            "Peak memory charged to the cgroup and its descendants. v1: memory.max_usage_in_bytes.";
        CGROUP_MAX: Gauge<Limit> = "cgroup.max", "/sys/fs/cgroup/**/memory.max", "1", 1, "4.5", "", "cgroup.memory.limit", "",
            "The hard limit of the cgroup's memory. v1: memory.limit_in_bytes.";
        CGROUP_HIGH: Gauge<Limit> = "cgroup.high", "/sys/fs/cgroup/**/memory.high", "1", 1, "4.5", "", "", "",
            "The memory above which the cgroup is throttled; v2 only.";
        CGROUP_LOW: Gauge<Limit> = "cgroup.low", "/sys/fs/cgroup/**/memory.low", "1", 1, "4.5", "", "", "",
            "Memory of the cgroup that reclaim takes only if no unprotected memory is left.";
        CGROUP_MIN: Gauge<Limit> = "cgroup.min", "/sys/fs/cgroup/**/memory.min", "1", 1, "4.18", "", "", "",
            "The memory of the cgroup that reclaim never takes.";
        CGROUP_SWAP_CURRENT: Gauge<Bytes> = "cgroup.swap_current", "/sys/fs/cgroup/**/memory.swap.current", "1", 1, "4.5", "", "", "",
            "Swap charged to the cgroup and its descendants.";
        CGROUP_SWAP_MAX: Gauge<Limit> = "cgroup.swap_max", "/sys/fs/cgroup/**/memory.swap.max", "1", 1, "4.5", "", "", "",
            "The limit of the cgroup's swap.";
        CGROUP_EVENTS_LOW: Counter<Count> = "cgroup.events_low", CGROUP_EVENTS, "low", 1, "4.5", "", "", "",
            "Times reclaim took memory from the cgroup below memory.low.";
        CGROUP_EVENTS_HIGH: Counter<Count> = "cgroup.events_high", CGROUP_EVENTS, "high", 1, "4.5", "", "", "",
            "Times tasks of the cgroup were throttled above memory.high.";
        CGROUP_EVENTS_MAX: Counter<Count> = "cgroup.events_max", CGROUP_EVENTS, "max", 1, "4.5", "", "cgroup.memory.failcnt", "",
            "Times the cgroup hit its hard limit. v1: memory.failcnt.";
        CGROUP_EVENTS_OOM: Counter<Count> = "cgroup.events_oom", CGROUP_EVENTS, "oom", 1, "4.5", "", "", "",
            "Times the cgroup was out of memory: its limit was reached and reclaim did not help.";
        CGROUP_EVENTS_OOM_KILL: Counter<Count> = "cgroup.events_oom_kill", CGROUP_EVENTS, "oom_kill", 1, "4.13", "", "", "",
            "OOM kills in the cgroup.";
        CGROUP_ANON: Gauge<Bytes> = "cgroup.anon", CGROUP_STAT, "anon", 1, "4.5", "", "cgroup.memory.stat.anon", "",
            "Anonymous memory of the cgroup. v1: total_rss.";
        CGROUP_FILE: Gauge<Bytes> = "cgroup.file", CGROUP_STAT, "file", 1, "4.5", "", "cgroup.memory.stat.file", "",
            "Page cache of the cgroup, shared memory included. v1: total_cache.";
        CGROUP_KERNEL: Gauge<Bytes> = "cgroup.kernel", CGROUP_STAT, "kernel", 1, "5.18", "", "", "",
            "Kernel memory of all kinds charged to the cgroup.";
        CGROUP_KERNEL_STACK: Gauge<Bytes> = "cgroup.kernel_stack", CGROUP_STAT, "kernel_stack", 1, "4.6", "", "cgroup.memory.stat.kernel_stack", "",
            "Kernel stacks of the cgroup's threads.";
        CGROUP_PAGETABLES: Gauge<Bytes> = "cgroup.pagetables", CGROUP_STAT, "pagetables", 1, "5.11", "", "", "",
            "Page tables of the cgroup's processes.";
        CGROUP_PERCPU: Gauge<Bytes> = "cgroup.percpu", CGROUP_STAT, "percpu", 1, "5.9", "", "", "",
            "Per-CPU kernel memory charged to the cgroup.";
        CGROUP_SOCK: Gauge<Bytes> = "cgroup.sock", CGROUP_STAT, "sock", 1, "4.5", "", "cgroup.memory.stat.sock", "",
            "Socket buffers of the cgroup.";
        CGROUP_SHMEM: Gauge<Bytes> = "cgroup.shmem", CGROUP_STAT, "shmem", 1, "4.12", "", "cgroup.memory.stat.shmem", "",
            "Shared memory and tmpfs of the cgroup; a part of its page cache.";
        CGROUP_FILE_MAPPED: Gauge<Bytes> = "cgroup.file_mapped", CGROUP_STAT, "file_mapped", 1, "4.5", "", "cgroup.memory.stat.file_mapped", "",
            "Page cache of the cgroup mapped into processes.";
        CGROUP_FILE_DIRTY: Gauge<Bytes> = "cgroup.file_dirty", CGROUP_STAT, "file_dirty", 1, "4.5", "", "cgroup.memory.stat.file_dirty", "",
            "Page cache of the cgroup that waits to be written.";
        CGROUP_FILE_WRITEBACK: Gauge<Bytes> = "cgroup.file_writeback", CGROUP_STAT, "file_writeback", 1, "4.5", "", "cgroup.memory.stat.file_writeback", "",
            "Page cache of the cgroup being written now.";
        CGROUP_INACTIVE_ANON: Gauge<Bytes> = "cgroup.inactive_anon", CGROUP_STAT, "inactive_anon", 1, "4.5", "", "cgroup.memory.stat.inactive_anon", "",
            "Anonymous memory of the cgroup that is reclaimed first.";
        CGROUP_ACTIVE_ANON: Gauge<Bytes> = "cgroup.active_anon", CGROUP_STAT, "active_anon", 1, "4.5", "", "cgroup.memory.stat.active_anon", "",
            "Recently used anonymous memory of the cgroup.";
        CGROUP_INACTIVE_FILE: Gauge<Bytes> = "cgroup.inactive_file", CGROUP_STAT, "inactive_file", 1, "4.5", "", "cgroup.memory.stat.inactive_file", "",
            "File cache of the cgroup that is reclaimed first.";
        CGROUP_ACTIVE_FILE: Gauge<Bytes> = "cgroup.active_file", CGROUP_STAT, "active_file", 1, "4.5", "", "cgroup.memory.stat.active_file", "",
            "Recently used file cache of the cgroup.";
        CGROUP_UNEVICTABLE: Gauge<Bytes> = "cgroup.unevictable", CGROUP_STAT, "unevictable", 1, "4.5", "", "cgroup.memory.stat.unevictable", "",
            "Memory of the cgroup that reclaim cannot take.";
        CGROUP_SLAB_RECLAIMABLE: Gauge<Bytes> = "cgroup.slab_reclaimable", CGROUP_STAT, "slab_reclaimable", 1, "4.6", "", "cgroup.memory.stat.slab_reclaimable", "",
            "Kernel objects of the cgroup that can be reclaimed.";
        CGROUP_SLAB_UNRECLAIMABLE: Gauge<Bytes> = "cgroup.slab_unreclaimable", CGROUP_STAT, "slab_unreclaimable", 1, "4.6", "", "cgroup.memory.stat.slab_unreclaimable", "",
            "Kernel objects of the cgroup that cannot be reclaimed.";
        CGROUP_ANON_THP: Gauge<Bytes> = "cgroup.anon_thp", CGROUP_STAT, "anon_thp", 1, "5.1", "", "cgroup.memory.stat.anon_thp", "",
            "Anonymous memory of the cgroup in huge pages.";
        CGROUP_REFAULT_ANON: Counter<Pages> = "cgroup.refault_anon", CGROUP_STAT, "workingset_refault_anon", 1, "5.9", "", "", "",
            "Refaulted anonymous pages of the cgroup: swapped in again after eviction.";
        CGROUP_REFAULT_FILE: Counter<Pages> = "cgroup.refault_file", CGROUP_STAT, "workingset_refault_file", 1, "5.9", "", "", "",
            "Refaulted file pages of the cgroup: read again after eviction.";
        CGROUP_ACTIVATE_FILE: Counter<Pages> = "cgroup.activate_file", CGROUP_STAT, "workingset_activate_file", 1, "5.9", "", "", "",
            "Refaulted file pages of the cgroup that belong to its working set and were made \
             active at once.";
        CGROUP_SHADOW_NODES_DROPPED: Counter<Count> = "cgroup.nodereclaim", CGROUP_STAT, "workingset_nodereclaim", 1, "4.12", "", "cgroup.memory.stat.workingset.nodereclaim", "",
            "Shadow nodes of the cgroup freed: the record of its evicted pages. Where it rises, \
             its refaults are undercounted.";
        CGROUP_PGSCAN: Counter<Pages> = "cgroup.pgscan", CGROUP_STAT, "pgscan", 1, "4.13", "", "cgroup.memory.stat.pgscan", "",
            "Pages of the cgroup scanned by reclaim.";
        CGROUP_PGSTEAL: Counter<Pages> = "cgroup.pgsteal", CGROUP_STAT, "pgsteal", 1, "4.13", "", "cgroup.memory.stat.pgsteal", "",
            "Pages of the cgroup reclaimed.";
        CGROUP_PGFAULT: Counter<Count> = "cgroup.pgfault", CGROUP_STAT, "pgfault", 1, "4.5", "", "cgroup.memory.stat.pgfault", "",
            "Page faults of the cgroup, of all kinds.";
        CGROUP_PGMAJFAULT: Counter<Count> = "cgroup.pgmajfault", CGROUP_STAT, "pgmajfault", 1, "4.5", "", "cgroup.memory.stat.pgmajfault", "",
            "Page faults of the cgroup that waited for a disk.";
        CGROUP_PSI_MEMORY_SOME: Counter<Micros> = "cgroup.psi.memory.some", CGROUP_MEMORY_PRESSURE, "some total", 1, "4.20", "", "cgroup.pressure.memory.some.total", "",
            "Time for which at least one task of the cgroup waited for memory.";
        CGROUP_PSI_MEMORY_FULL: Counter<Micros> = "cgroup.psi.memory.full", CGROUP_MEMORY_PRESSURE, "full total", 1, "4.20", "", "cgroup.pressure.memory.full.total", "",
            "Time for which all tasks of the cgroup waited for memory.";
        CGROUP_PSI_MEMORY_SOME_AVG10: Gauge<Micros> = "cgroup.psi.memory.some.avg10", CGROUP_MEMORY_PRESSURE, "some avg10", 10000, "4.20", "", "", "",
            "Time per second for which at least one task of the cgroup waited for memory, averaged \
             by the kernel over the last 10 s.";
        CGROUP_PSI_MEMORY_SOME_AVG60: Gauge<Micros> = "cgroup.psi.memory.some.avg60", CGROUP_MEMORY_PRESSURE, "some avg60", 10000, "4.20", "", "", "",
            "Time per second for which at least one task of the cgroup waited for memory, averaged \
             by the kernel over the last minute.";
        CGROUP_PSI_MEMORY_SOME_AVG300: Gauge<Micros> = "cgroup.psi.memory.some.avg300", CGROUP_MEMORY_PRESSURE, "some avg300", 10000, "4.20", "", "", "",
            "Time per second for which at least one task of the cgroup waited for memory, averaged \
             by the kernel over the last 5 minutes.";
        CGROUP_PSI_MEMORY_FULL_AVG10: Gauge<Micros> = "cgroup.psi.memory.full.avg10", CGROUP_MEMORY_PRESSURE, "full avg10", 10000, "4.20", "", "", "",
            "Time per second for which all tasks of the cgroup waited for memory, averaged by the \
             kernel over the last 10 s.";
        CGROUP_PSI_MEMORY_FULL_AVG60: Gauge<Micros> = "cgroup.psi.memory.full.avg60", CGROUP_MEMORY_PRESSURE, "full avg60", 10000, "4.20", "", "", "",
            "Time per second for which all tasks of the cgroup waited for memory, averaged by the \
             kernel over the last minute.";
        CGROUP_PSI_MEMORY_FULL_AVG300: Gauge<Micros> = "cgroup.psi.memory.full.avg300", CGROUP_MEMORY_PRESSURE, "full avg300", 10000, "4.20", "", "", "",
            "Time per second for which all tasks of the cgroup waited for memory, averaged by the \
             kernel over the last 5 minutes.";
        CGROUP_PSI_IO_SOME: Counter<Micros> = "cgroup.psi.io.some", CGROUP_IO_PRESSURE, "some total", 1, "4.20", "", "cgroup.pressure.io.some.total", "",
            "Time for which at least one task of the cgroup waited for I/O.";
        CGROUP_PSI_IO_FULL: Counter<Micros> = "cgroup.psi.io.full", CGROUP_IO_PRESSURE, "full total", 1, "4.20", "", "cgroup.pressure.io.full.total", "",
            "Time for which all tasks of the cgroup waited for I/O.";
    }
    Process {
        PROC_PARENT: Gauge<Count> = "proc.parent", PROCESS_STAT, "4 ppid", 1, "", "", "proc.psinfo.ppid", "",
            "PID of the parent process.";
        PROC_MINFLT: Counter<Count> = "proc.minflt", PROCESS_STAT, "10 minflt", 1, "", "", "proc.psinfo.minflt", "",
            "Page faults of the process that needed no I/O.";
        PROC_MAJFLT: Counter<Count> = "proc.majflt", PROCESS_STAT, "12 majflt", 1, "", "", "proc.psinfo.maj_flt", "",
            "Page faults of the process that waited for a disk.";
        PROC_UTIME: Counter<Ticks> = "proc.utime", PROCESS_STAT, "14 utime", 1, "", "", "proc.psinfo.utime", "",
            "CPU time of the process in user code.";
        PROC_STIME: Counter<Ticks> = "proc.stime", PROCESS_STAT, "15 stime", 1, "", "", "proc.psinfo.stime", "",
            "CPU time of the process in the kernel.";
        PROC_CPU: Gauge<Micros> = "proc.cpu", DERIVED, "utime + stime of an interval", 1, "", "", "", "",
            "CPU time per second, as top prints it of the interval before and ps of the whole life \
             (%CPU); memtide itself reads proc.utime and proc.stime.";
        PROC_THREADS: Gauge<Count> = "proc.threads", PROCESS_STAT, "20 num_threads", 1, "", "", "proc.psinfo.threads", "",
            "Threads of the process.";
        PROC_SIZE: Gauge<Bytes> = "proc.size", PROCESS_STAT, "23 vsize", 1, "", "", "proc.psinfo.vsize", "",
            "Address space of the process.";
        PROC_RSS: Gauge<Pages> = "proc.rss", PROCESS_STAT, "24 rss", 1, "", "", "proc.psinfo.rss", "",
            "Resident pages of the process, shared ones counted in full.";
        PROC_BLKIO_DELAY: Counter<Ticks> = "proc.blkio_delay", PROCESS_STAT, "42 delayacct_blkio_ticks", 1, "", "", "proc.psinfo.delayacct_blkio_time", "",
            "Time for which the process waited for block I/O and swap-in.";
        PROC_RSS_ANON: Gauge<Bytes> = "proc.rss_anon", PROCESS_STATUS, "RssAnon", 1024, "4.5", "", "", "",
            "Resident anonymous memory of the process.";
        PROC_RSS_FILE: Gauge<Bytes> = "proc.rss_file", PROCESS_STATUS, "RssFile", 1024, "4.5", "", "", "",
            "Resident file mappings of the process.";
        PROC_RSS_SHMEM: Gauge<Bytes> = "proc.rss_shmem", PROCESS_STATUS, "RssShmem", 1024, "4.5", "", "", "",
            "Resident shared memory of the process.";
        PROC_SWAP: Gauge<Bytes> = "proc.swap", PROCESS_STATUS, "VmSwap", 1024, "", "", "proc.memory.vmswap", "",
            "Anonymous memory of the process in swap.";
        PROC_PAGE_TABLES: Gauge<Bytes> = "proc.page_tables", PROCESS_STATUS, "VmPTE", 1024, "", "", "proc.memory.vmpte", "",
            "Page tables of the process.";
        PROC_RSS_PEAK: Gauge<Bytes> = "proc.rss_peak", PROCESS_STATUS, "VmHWM", 1024, "", "", "proc.memory.vmhwm", "",
            "Peak resident memory of the process.";
        PROC_DATA: Gauge<Bytes> = "proc.data", PROCESS_STATUS, "VmData", 1024, "", "", "proc.memory.vmdata", "",
            "Private writable address space of the process.";
        PROC_LOCKED: Gauge<Bytes> = "proc.locked", PROCESS_STATUS, "VmLck", 1024, "", "", "proc.memory.vmlock", "",
            "Memory that the process locked.";
        PROC_PINNED: Gauge<Bytes> = "proc.pinned", PROCESS_STATUS, "VmPin", 1024, "", "", "proc.memory.vmpin", "",
            "Memory of the process pinned for device access.";
        PROC_HUGETLB: Gauge<Bytes> = "proc.hugetlb", PROCESS_STATUS, "HugetlbPages", 1024, "4.4", "", "", "",
            "Memory of the process in hugetlb pages; not in RSS.";
        PROC_PSS: Gauge<Bytes> = "proc.pss", SMAPS_ROLLUP, "Pss", 1024, "4.14", "", "proc.smaps.pss", "",
            "Resident memory of the process, shared pages divided among their sharers.";
        PROC_PSS_ANON: Gauge<Bytes> = "proc.pss_anon", SMAPS_ROLLUP, "Pss_Anon", 1024, "5.4", "", "proc.smaps.pss_anon", "",
            "The anonymous part of the process's PSS.";
        PROC_PSS_FILE: Gauge<Bytes> = "proc.pss_file", SMAPS_ROLLUP, "Pss_File", 1024, "5.4", "", "proc.smaps.pss_file", "",
            "The file part of the process's PSS.";
        PROC_PSS_SHMEM: Gauge<Bytes> = "proc.pss_shmem", SMAPS_ROLLUP, "Pss_Shmem", 1024, "5.4", "", "proc.smaps.pss_shmem", "",
            "The shared-memory part of the process's PSS.";
        PROC_PRIVATE_DIRTY: Gauge<Bytes> = "proc.private_dirty", SMAPS_ROLLUP, "Private_Dirty", 1024, "4.14", "", "proc.smaps.private_dirty", "",
            "Pages of this process alone, written to.";
        PROC_PRIVATE_CLEAN: Gauge<Bytes> = "proc.private_clean", SMAPS_ROLLUP, "Private_Clean", 1024, "4.14", "", "proc.smaps.private_clean", "",
            "Pages of this process alone, not written to.";
        PROC_SHARED_DIRTY: Gauge<Bytes> = "proc.shared_dirty", SMAPS_ROLLUP, "Shared_Dirty", 1024, "4.14", "", "proc.smaps.shared_dirty", "",
            "Written pages shared with another process, as after a fork.";
        PROC_SWAP_PSS: Gauge<Bytes> = "proc.swap_pss", SMAPS_ROLLUP, "SwapPss", 1024, "4.14", "", "proc.smaps.swappss", "",
            "Memory of the process in swap, shared pages divided among their sharers.";
        PROC_ANON_HUGE: Gauge<Bytes> = "proc.anon_huge", SMAPS_ROLLUP, "AnonHugePages", 1024, "4.14", "", "proc.smaps.anonhugepages", "",
            "Anonymous memory of the process in huge pages.";
        PROC_LAZY_FREE: Gauge<Bytes> = "proc.lazy_free", SMAPS_ROLLUP, "LazyFree", 1024, "4.14", "", "proc.smaps.lazyfree", "",
            "Memory given back with MADV_FREE that was not reclaimed yet.";
        PROC_READ_BYTES: Counter<Bytes> = "proc.read_bytes", PROCESS_IO, "read_bytes", 1, "", "", "proc.io.read_bytes", "",
            "Bytes read from storage for the process.";
        PROC_WRITE_BYTES: Counter<Bytes> = "proc.write_bytes", PROCESS_IO, "write_bytes", 1, "", "", "proc.io.write_bytes", "",
            "Bytes that the process caused to be written to storage.";
        PROC_CANCELLED_WRITE_BYTES: Counter<Bytes> = "proc.cancelled_write_bytes", PROCESS_IO, "cancelled_write_bytes", 1, "", "", "proc.io.cancelled_write_bytes", "",
            "Bytes written, then deleted before they reached storage.";
        PROC_RCHAR: Counter<Bytes> = "proc.rchar", PROCESS_IO, "rchar", 1, "", "", "proc.io.rchar", "",
            "Bytes requested by read calls.";
        PROC_WCHAR: Counter<Bytes> = "proc.wchar", PROCESS_IO, "wchar", 1, "", "", "proc.io.wchar", "",
            "Bytes passed to write calls.";
        PROC_OOM_ADJ: Gauge<Count> = "proc.oom_adj", "/proc/PID/oom_score_adj", "1", 1, "", "", "", "",
            "oom_score_adj plus 1000: 0 is never killed, 1000 is neutral, 2000 goes first.";
        PROC_HEAP_SYSTEM: Gauge<Bytes> = "proc.heap_system", HEAP, "system", 1, "", "", "", "",
            "Memory that malloc of the process has taken from the kernel.";
        PROC_HEAP_LIVE: Gauge<Bytes> = "proc.heap_live", HEAP, "live", 1, "", "", "", "",
            "Memory in the malloc heap that the program has allocated and not freed.";
        PROC_HEAP_CACHED: Gauge<Bytes> = "proc.heap_cached", HEAP, "cached", 1, "", "", "", "",
            "Freed memory in the malloc heap that the caches of threads keep.";
        PROC_HEAP_FREE: Gauge<Bytes> = "proc.heap_free", HEAP, "free", 1, "", "", "", "",
            "Free chunks of the malloc heap, fast bins and tops included.";
        PROC_HEAP_RESIDENT: Gauge<Bytes> = "proc.heap_resident", HEAP, "resident", 1, "", "", "", "",
            "Resident memory of the malloc heap.";
        PROC_HEAP_FREE_RESIDENT: Gauge<Bytes> = "proc.heap_free_resident", HEAP, "free_resident", 1, "", "", "", "",
            "Free memory of the malloc heap that is still resident, the caches of threads \
             included.";
        PROC_HEAP_RETURNABLE: Gauge<Bytes> = "proc.heap_returnable", HEAP, "returnable", 1, "", "", "", "",
            "Resident memory that malloc_trim would return to the kernel.";
        PROC_HEAP_UNKNOWN: Gauge<Bytes> = "proc.heap_unknown", HEAP, "unknown", 1, "", "", "", "",
            "By how much the heap's figures may be wrong: what could not be read or understood, or \
             changed meanwhile.";
        PROC_HEAP_ARENAS: Gauge<Count> = "proc.heap_arenas", HEAP, "arenas", 1, "", "", "", "",
            "Arenas of malloc: glibc gives threads their own.";
        PROC_RUNTIME_HEAP: Gauge<Bytes> = "proc.runtime_heap", HEAP, "runtime", 1, "", "", "", "",
            "Resident memory of heaps that a runtime or another allocator than glibc's manages: \
             Java's, Go's, V8's, CPython's, Ruby's pages, jemalloc's.";
    }
    Service {
        SERVICE_PROCESSES: Gauge<Count> = "service.processes", DERIVED, "number of processes", 1, "", "", "", "",
            "Processes of the service.";
        SERVICE_RSS: Gauge<Pages> = "service.rss", DERIVED, "Σ processes' rss", 1, "", "", "", "",
            "Resident memory of the service's processes; shared pages count for each of them.";
        SERVICE_RSS_ANON: Gauge<Bytes> = "service.rss_anon", DERIVED, "Σ processes' RssAnon", 1, "", "", "", "",
            "Resident anonymous memory of the service's processes.";
        SERVICE_RSS_FILE: Gauge<Bytes> = "service.rss_file", DERIVED, "Σ processes' RssFile", 1, "", "", "", "",
            "Resident file pages mapped by the service's processes; shared pages count for each of \
             them.";
        SERVICE_RSS_SHMEM: Gauge<Bytes> = "service.rss_shmem", DERIVED, "Σ processes' RssShmem", 1, "", "", "", "",
            "Resident shared memory of the service's processes; shared pages count for each of \
             them.";
        SERVICE_SWAP: Gauge<Bytes> = "service.swap", DERIVED, "Σ processes' VmSwap", 1, "", "", "", "",
            "Anonymous memory of the service's processes in swap.";
        SERVICE_PSS: Gauge<Bytes> = "service.pss", DERIVED, "Σ processes' last known Pss", 1, "", "", "", "",
            "PSS of the service's processes where it was read, each as old as its last reading.";
        SERVICE_CPU: Counter<Ticks> = "service.cpu", DERIVED, "Σ increases of processes' utime + \
                                                            stime", 1, "", "", "", "",
            "CPU time of the service's processes since recording began, those that have ended \
             included.";
        SERVICE_MAJFLT: Counter<Count> = "service.majflt", DERIVED, "Σ increases of processes' majflt", 1, "", "", "", "",
            "Page faults of the service's processes that waited for a disk, since recording began.";
        SERVICE_READ_BYTES: Counter<Bytes> = "service.read_bytes", DERIVED, "Σ increases of processes' read_bytes", 1, "", "", "", "",
            "Bytes read from storage for the service's processes, since recording began.";
        SERVICE_WRITE_BYTES: Counter<Bytes> = "service.write_bytes", DERIVED, "Σ increases of processes' write_bytes", 1, "", "", "", "",
            "Bytes that the service's processes caused to be written to storage, since recording \
             began.";
    }
}

/// The number of signals of a process.
pub const PROCESS_SIGNALS: usize = PROC_RUNTIME_HEAP.id().index() + 1 - PROC_PARENT.id().index();

/// Free blocks of a zone by order, for code that iterates over the orders.
pub const ZONE_BLOCKS: [Signal<Gauge<Count>>; 11] = [
    ZONE_BLOCKS_0,
    ZONE_BLOCKS_1,
    ZONE_BLOCKS_2,
    ZONE_BLOCKS_3,
    ZONE_BLOCKS_4,
    ZONE_BLOCKS_5,
    ZONE_BLOCKS_6,
    ZONE_BLOCKS_7,
    ZONE_BLOCKS_8,
    ZONE_BLOCKS_9,
    ZONE_BLOCKS_10,
];

/// The signal of this dotted name.
pub fn by_name(name: &str) -> Option<(SignalId, &'static SignalDef)> {
    entries().find(|(_, def)| def.name == name)
}

/// The signals of one kernel file by field name, for parsers.
pub fn field_of(file: &str) -> impl Iterator<Item = (&'static str, SignalId, &'static SignalDef)> {
    static BY_FILE: LazyLock<HashMap<&str, Vec<SignalId>>> = LazyLock::new(|| {
        let mut by_file = HashMap::<_, Vec<_>>::new();
        for (id, def) in entries() {
            by_file.entry(def.file).or_default().push(id);
        }
        by_file
    });
    let signals = BY_FILE.get(file).into_iter().flatten();
    signals.map(|id| (id.def().field, *id, id.def()))
}

fn entries() -> impl Iterator<Item = (SignalId, &'static SignalDef)> {
    ALL.iter().enumerate().map(|(i, def)| {
        // The catalogue is far smaller than u16::MAX; the enum's repr checks it.
        #[allow(clippy::cast_possible_truncation)]
        (SignalId(i as u16), def)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn constants_and_entries_agree() {
        assert_eq!(MEM_FREE.def().field, "MemFree");
        assert_eq!(PSWPIN.def().name, "vm.pswpin");
        assert_eq!(PROC_OOM_ADJ.def().entity, Entity::Process);
    }

    #[test]
    fn signals_of_an_entity_lie_together() {
        let mut end = 0;
        for entity in Entity::ALL {
            let signals = entity.signals();
            assert_eq!(signals.start, end);
            assert!(ALL[signals.clone()].iter().all(|def| def.entity == entity));
            end = signals.end;
        }
        assert_eq!(end, ALL.len());
        assert_eq!(Entity::Process.signals().len(), PROCESS_SIGNALS);
        assert_eq!(Entity::Process.signals().start, PROC_PARENT.id().index());
    }

    #[test]
    fn every_name_and_every_source_is_there_once() {
        let mut names = HashSet::new();
        let mut sources = HashSet::new();
        let mut meanings = HashSet::new();
        for def in ALL {
            assert!(names.insert(def.name), "{} is declared twice", def.name);
            assert!(sources.insert((def.file, def.field)), "{} shares its source", def.name);
            assert!(def.meaning.ends_with('.'), "{}", def.name);
            assert!(meanings.insert(def.meaning), "{} means what another signal means", def.name);
            assert!(
                def.name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c)),
                "{}",
                def.name
            );
        }
    }
}
