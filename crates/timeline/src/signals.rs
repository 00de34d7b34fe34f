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

/// Declares the catalogue: `CONST: Kind<Unit> = "name", file: …, field: …, what a signal need not have, "meaning";`. What
/// it need not have is `scale` (1), `since`, `sar`, `pcp` and `node_exporter`: `tests/names` lists the names verified in the
/// tools' sources.
macro_rules! signals {
    ($($entity:ident { $(
        $const:ident: $kind:ty = $name:literal, file: $file:expr, field: $field:literal,
        $($optional:ident: $value:literal,)* $meaning:literal;
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
        #[allow(clippy::needless_update)] // Some signals have every name.
        pub static ALL: &[SignalDef] = &[$($(SignalDef {
            name: $name,
            is_counter: <$kind as Kind>::IS_COUNTER,
            unit: <<$kind as Kind>::Unit as Quantity>::NAME,
            entity: Entity::$entity,
            file: $file,
            field: $field,
            meaning: $meaning,
            $($optional: $value,)*
            ..SignalDef::BLANK
        },)*)*];
    };
}

signals! {
    Host {
        MEM_TOTAL: Gauge<Bytes> = "mem.total", file: MEMINFO, field: "MemTotal", scale: 1024,
            pcp: "mem.physmem", node_exporter: "node_memory_MemTotal_bytes",
            "RAM that the kernel manages; memory reserved at boot lies outside.";
        MEM_FREE: Gauge<Bytes> = "mem.free", file: MEMINFO, field: "MemFree", scale: 1024,
            sar: "kbmemfree", pcp: "mem.util.free", node_exporter: "node_memory_MemFree_bytes",
            "Unused RAM; what can be allocated is mem.available.";
        MEM_AVAILABLE: Gauge<Bytes> = "mem.available", file: MEMINFO, field: "MemAvailable", scale: 1024, since: "3.14",
            sar: "kbavail", pcp: "mem.util.available", node_exporter: "node_memory_MemAvailable_bytes",
            "The kernel's estimate of what can be allocated without swapping; contains page cache \
             that the workload may need.";
        MEM_BUFFERS: Gauge<Bytes> = "mem.buffers", file: MEMINFO, field: "Buffers", scale: 1024,
            sar: "kbbuffers", pcp: "mem.util.bufmem", node_exporter: "node_memory_Buffers_bytes",
            "Page cache of block devices: file-system metadata.";
        MEM_CACHED: Gauge<Bytes> = "mem.cached", file: MEMINFO, field: "Cached", scale: 1024,
            sar: "kbcached", pcp: "mem.util.cached", node_exporter: "node_memory_Cached_bytes",
            "Page cache of files, including shared memory and tmpfs, which cannot be dropped.";
        MEM_SWAP_CACHED: Gauge<Bytes> = "mem.swapcached", file: MEMINFO, field: "SwapCached", scale: 1024,
            sar: "kbswpcad", pcp: "mem.util.swapCached", node_exporter: "node_memory_SwapCached_bytes",
            "Pages that are in RAM and in swap at once.";
        MEM_ACTIVE: Gauge<Bytes> = "mem.active", file: MEMINFO, field: "Active", scale: 1024,
            sar: "kbactive", pcp: "mem.util.active", node_exporter: "node_memory_Active_bytes",
            "Recently used pages, anonymous and file.";
        MEM_INACTIVE: Gauge<Bytes> = "mem.inactive", file: MEMINFO, field: "Inactive", scale: 1024,
            sar: "kbinact", pcp: "mem.util.inactive", node_exporter: "node_memory_Inactive_bytes",
            "Pages that reclaim takes first, anonymous and file.";
        MEM_ACTIVE_ANON: Gauge<Bytes> = "mem.active_anon", file: MEMINFO, field: "Active(anon)", scale: 1024, since: "2.6.28",
            pcp: "mem.util.active_anon", node_exporter: "node_memory_Active_anon_bytes",
            "Recently used anonymous and shared-memory pages.";
        MEM_ACTIVE_FILE: Gauge<Bytes> = "mem.active_file", file: MEMINFO, field: "Active(file)", scale: 1024, since: "2.6.28",
            pcp: "mem.util.active_file", node_exporter: "node_memory_Active_file_bytes",
            "Recently used file pages.";
        MEM_INACTIVE_ANON: Gauge<Bytes> = "mem.inactive_anon", file: MEMINFO, field: "Inactive(anon)", scale: 1024, since: "2.6.28",
            pcp: "mem.util.inactive_anon", node_exporter: "node_memory_Inactive_anon_bytes",
            "Anonymous and shared-memory pages that reclaim takes first.";
        MEM_INACTIVE_FILE: Gauge<Bytes> = "mem.inactive_file", file: MEMINFO, field: "Inactive(file)", scale: 1024, since: "2.6.28",
            pcp: "mem.util.inactive_file", node_exporter: "node_memory_Inactive_file_bytes",
            "File pages that reclaim takes first.";
        MEM_UNEVICTABLE: Gauge<Bytes> = "mem.unevictable", file: MEMINFO, field: "Unevictable", scale: 1024, since: "2.6.28",
            pcp: "mem.util.unevictable", node_exporter: "node_memory_Unevictable_bytes",
            "Pages that reclaim cannot take: mlocked, ramfs, locked shared memory.";
        MEM_MLOCKED: Gauge<Bytes> = "mem.mlocked", file: MEMINFO, field: "Mlocked", scale: 1024, since: "2.6.28",
            pcp: "mem.util.mlocked", node_exporter: "node_memory_Mlocked_bytes",
            "Pages locked by mlock; a part of Unevictable.";
        MEM_LOW_TOTAL: Gauge<Bytes> = "mem.low_total", file: MEMINFO, field: "LowTotal", scale: 1024,
            pcp: "mem.util.lowTotal", node_exporter: "node_memory_LowTotal_bytes",
            "RAM that a 32-bit kernel maps permanently, for its own data.";
        MEM_LOW_FREE: Gauge<Bytes> = "mem.low_free", file: MEMINFO, field: "LowFree", scale: 1024,
            pcp: "mem.util.lowFree", node_exporter: "node_memory_LowFree_bytes",
            "Unused RAM that a 32-bit kernel maps permanently.";
        MEM_HIGH_FREE: Gauge<Bytes> = "mem.high_free", file: MEMINFO, field: "HighFree", scale: 1024,
            pcp: "mem.util.highFree", node_exporter: "node_memory_HighFree_bytes",
            "Unused RAM above that, for programs and page cache.";
        SWAP_TOTAL: Gauge<Bytes> = "swap.total", file: MEMINFO, field: "SwapTotal", scale: 1024,
            pcp: "mem.util.swapTotal", node_exporter: "node_memory_SwapTotal_bytes",
            "Size of all swap areas.";
        SWAP_FREE: Gauge<Bytes> = "swap.free", file: MEMINFO, field: "SwapFree", scale: 1024,
            sar: "kbswpfree", pcp: "mem.util.swapFree", node_exporter: "node_memory_SwapFree_bytes",
            "Unused swap.";
        MEM_ZSWAP: Gauge<Bytes> = "mem.zswap_pool", file: MEMINFO, field: "Zswap", scale: 1024, since: "5.19",
            pcp: "mem.util.zswap", node_exporter: "node_memory_Zswap_bytes",
            "RAM taken by zswap's compressed pool.";
        MEM_ZSWAPPED: Gauge<Bytes> = "mem.zswapped", file: MEMINFO, field: "Zswapped", scale: 1024, since: "5.19",
            pcp: "mem.util.zswapped", node_exporter: "node_memory_Zswapped_bytes",
            "Data in the zswap pool, before compression.";
        MEM_DIRTY: Gauge<Bytes> = "mem.dirty", file: MEMINFO, field: "Dirty", scale: 1024,
            sar: "kbdirty", pcp: "mem.util.dirty", node_exporter: "node_memory_Dirty_bytes",
            "Page cache that waits to be written back.";
        MEM_WRITEBACK: Gauge<Bytes> = "mem.writeback", file: MEMINFO, field: "Writeback", scale: 1024,
            pcp: "mem.util.writeback", node_exporter: "node_memory_Writeback_bytes",
            "Pages under writeback, swap-out included.";
        MEM_ANON: Gauge<Bytes> = "mem.anon", file: MEMINFO, field: "AnonPages", scale: 1024, since: "2.6.18",
            sar: "kbanonpg", pcp: "mem.util.anonpages", node_exporter: "node_memory_AnonPages_bytes",
            "Anonymous memory of processes: heap, stack; huge pages included, shared memory not.";
        MEM_MAPPED: Gauge<Bytes> = "mem.mapped", file: MEMINFO, field: "Mapped", scale: 1024,
            pcp: "mem.util.mapped", node_exporter: "node_memory_Mapped_bytes",
            "Page cache and shared memory mapped into processes; a part of Cached.";
        MEM_SHMEM: Gauge<Bytes> = "mem.shmem", file: MEMINFO, field: "Shmem", scale: 1024, since: "2.6.32",
            sar: "kbshmem", pcp: "mem.util.shmem", node_exporter: "node_memory_Shmem_bytes",
            "Shared memory, tmpfs, memfd; a part of Cached that can only go to swap.";
        MEM_KRECLAIMABLE: Gauge<Bytes> = "mem.kreclaimable", file: MEMINFO, field: "KReclaimable", scale: 1024, since: "4.20",
            pcp: "mem.util.kreclaimable",
            "Kernel memory that reclaim can take: reclaimable slab and more.";
        MEM_SLAB: Gauge<Bytes> = "mem.slab", file: MEMINFO, field: "Slab", scale: 1024,
            sar: "kbslab", pcp: "mem.util.slab", node_exporter: "node_memory_Slab_bytes",
            "Kernel objects, reclaimable and unreclaimable together.";
        MEM_SLAB_RECLAIMABLE: Gauge<Bytes> = "mem.slab_reclaimable", file: MEMINFO, field: "SReclaimable", scale: 1024, since: "2.6.19",
            pcp: "mem.util.slabReclaimable", node_exporter: "node_memory_SReclaimable_bytes",
            "Kernel object caches that can shrink: dentries, inodes.";
        MEM_SLAB_UNRECLAIMABLE: Gauge<Bytes> = "mem.slab_unreclaimable", file: MEMINFO, field: "SUnreclaim", scale: 1024, since: "2.6.19",
            pcp: "mem.util.slabUnreclaimable", node_exporter: "node_memory_SUnreclaim_bytes",
            "Kernel objects that reclaim cannot take.";
        MEM_KERNEL_STACK: Gauge<Bytes> = "mem.kernel_stack", file: MEMINFO, field: "KernelStack", scale: 1024, since: "2.6.32",
            sar: "kbkstack", pcp: "mem.util.kernelStack", node_exporter: "node_memory_KernelStack_bytes",
            "Kernel stacks of threads.";
        MEM_SHADOW_CALL_STACK: Gauge<Bytes> = "mem.shadow_call_stack", file: MEMINFO, field: "ShadowCallStack", scale: 1024, since: "5.8",
            pcp: "mem.util.shadowcallstack",
            "Shadow call stacks of threads (arm64).";
        MEM_PAGE_TABLES: Gauge<Bytes> = "mem.page_tables", file: MEMINFO, field: "PageTables", scale: 1024,
            sar: "kbpgtbl", pcp: "mem.util.pageTables", node_exporter: "node_memory_PageTables_bytes",
            "Page tables of processes.";
        MEM_SEC_PAGE_TABLES: Gauge<Bytes> = "mem.sec_page_tables", file: MEMINFO, field: "SecPageTables", scale: 1024, since: "6.1",
            "Page tables of KVM and IOMMU.";
        MEM_BOUNCE: Gauge<Bytes> = "mem.bounce", file: MEMINFO, field: "Bounce", scale: 1024,
            pcp: "mem.util.bounce", node_exporter: "node_memory_Bounce_bytes",
            "Bounce buffers of devices that cannot reach all RAM.";
        MEM_NFS_UNSTABLE: Gauge<Bytes> = "mem.nfs_unstable", file: MEMINFO, field: "NFS_Unstable", scale: 1024,
            pcp: "mem.util.NFS_Unstable", node_exporter: "node_memory_NFS_Unstable_bytes",
            "NFS pages sent but not committed; always 0 since 5.8.";
        MEM_WRITEBACK_TMP: Gauge<Bytes> = "mem.writeback_tmp", file: MEMINFO, field: "WritebackTmp", scale: 1024, since: "2.6.26",
            node_exporter: "node_memory_WritebackTmp_bytes",
            "Temporary writeback buffers of FUSE.";
        COMMIT_LIMIT: Gauge<Bytes> = "mem.commit_limit", file: MEMINFO, field: "CommitLimit", scale: 1024,
            pcp: "mem.util.commitLimit", node_exporter: "node_memory_CommitLimit_bytes",
            "Memory that may be committed when overcommit is off (vm.overcommit_memory=2).";
        COMMITTED_AS: Gauge<Bytes> = "mem.committed_as", file: MEMINFO, field: "Committed_AS", scale: 1024,
            sar: "kbcommit", pcp: "mem.util.committed_AS", node_exporter: "node_memory_Committed_AS_bytes",
            "Memory committed to processes, touched or not.";
        MEM_VMALLOC_USED: Gauge<Bytes> = "mem.vmalloc_used", file: MEMINFO, field: "VmallocUsed", scale: 1024, since: "5.3",
            sar: "kbvmused", pcp: "mem.util.vmallocUsed", node_exporter: "node_memory_VmallocUsed_bytes",
            "RAM behind vmalloc, kernel stacks included; 0 from 4.4 to 5.2.";
        MEM_PERCPU: Gauge<Bytes> = "mem.percpu", file: MEMINFO, field: "Percpu", scale: 1024, since: "4.20",
            pcp: "mem.util.percpu", node_exporter: "node_memory_Percpu_bytes",
            "Memory of the kernel's per-CPU allocator.";
        MEM_HW_CORRUPTED: Gauge<Bytes> = "mem.hw_corrupted", file: MEMINFO, field: "HardwareCorrupted", scale: 1024, since: "2.6.32",
            pcp: "mem.util.corrupthardware", node_exporter: "node_memory_HardwareCorrupted_bytes",
            "RAM taken out of use after memory errors.";
        MEM_ANON_HUGE: Gauge<Bytes> = "mem.anon_thp", file: MEMINFO, field: "AnonHugePages", scale: 1024, since: "2.6.38",
            pcp: "mem.util.anonhugepages", node_exporter: "node_memory_AnonHugePages_bytes",
            "Anonymous memory in transparent huge pages; a part of AnonPages.";
        MEM_SHMEM_HUGE: Gauge<Bytes> = "mem.shmem_thp", file: MEMINFO, field: "ShmemHugePages", scale: 1024, since: "4.8",
            pcp: "mem.util.shmemhugepages", node_exporter: "node_memory_ShmemHugePages_bytes",
            "Shared memory in huge pages; a part of Shmem.";
        MEM_FILE_HUGE: Gauge<Bytes> = "mem.file_thp", file: MEMINFO, field: "FileHugePages", scale: 1024, since: "5.4",
            pcp: "mem.util.filehugepages",
            "Page cache in huge pages; a part of Cached.";
        MEM_CMA_TOTAL: Gauge<Bytes> = "mem.cma_total", file: MEMINFO, field: "CmaTotal", scale: 1024, since: "3.19",
            pcp: "mem.util.cmatotal", node_exporter: "node_memory_CmaTotal_bytes",
            "RAM reserved for contiguous allocations; movable pages may use it meanwhile.";
        MEM_CMA_FREE: Gauge<Bytes> = "mem.cma_free", file: MEMINFO, field: "CmaFree", scale: 1024, since: "3.19",
            pcp: "mem.util.cmafree", node_exporter: "node_memory_CmaFree_bytes",
            "Free pages in CMA areas; a part of MemFree that only movable allocations can use.";
        MEM_BALLOON: Gauge<Bytes> = "mem.balloon", file: MEMINFO, field: "Balloon", scale: 1024, since: "6.16",
            "RAM that a balloon driver returned to the hypervisor.";
        MEM_UNACCEPTED: Gauge<Bytes> = "mem.unaccepted", file: MEMINFO, field: "Unaccepted", scale: 1024, since: "6.5",
            pcp: "mem.util.unaccepted",
            "Memory of a confidential VM that is not accepted yet; a part of MemFree.";
        HUGEPAGES_TOTAL: Gauge<Count> = "hugepages.total", file: MEMINFO, field: "HugePages_Total",
            pcp: "mem.util.hugepagesTotal", node_exporter: "node_memory_HugePages_Total",
            "Reserved huge pages of the default size.";
        HUGEPAGES_FREE: Gauge<Count> = "hugepages.free", file: MEMINFO, field: "HugePages_Free",
            pcp: "mem.util.hugepagesFree", node_exporter: "node_memory_HugePages_Free",
            "Reserved huge pages that are not allocated.";
        HUGEPAGES_RSVD: Gauge<Count> = "hugepages.rsvd", file: MEMINFO, field: "HugePages_Rsvd",
            pcp: "mem.util.hugepagesRsvd", node_exporter: "node_memory_HugePages_Rsvd",
            "Free huge pages committed to mappings; a part of HugePages_Free.";
        HUGEPAGES_SURP: Gauge<Count> = "hugepages.surplus", file: MEMINFO, field: "HugePages_Surp",
            pcp: "mem.util.hugepagesSurp", node_exporter: "node_memory_HugePages_Surp",
            "Huge pages above the reserved number.";
        HUGEPAGE_SIZE: Gauge<Bytes> = "hugepages.size", file: MEMINFO, field: "Hugepagesize", scale: 1024,
            node_exporter: "node_memory_Hugepagesize_bytes",
            "The default huge page size.";
        MEM_HUGETLB: Gauge<Bytes> = "mem.hugetlb", file: MEMINFO, field: "Hugetlb", scale: 1024, since: "4.16",
            pcp: "mem.util.hugetlb",
            "RAM in hugetlb pools of all sizes, used or not.";
        DIRECT_MAP_4K: Gauge<Bytes> = "mem.direct_map_4k", file: MEMINFO, field: "DirectMap4k", scale: 1024,
            pcp: "mem.util.directMap4k", node_exporter: "node_memory_DirectMap4k_bytes",
            "Kernel direct map in 4 KiB pages (x86).";
        DIRECT_MAP_2M: Gauge<Bytes> = "mem.direct_map_2m", file: MEMINFO, field: "DirectMap2M", scale: 1024,
            pcp: "mem.util.directMap2M", node_exporter: "node_memory_DirectMap2M_bytes",
            "Kernel direct map in 2 MiB pages (x86).";
        DIRECT_MAP_1G: Gauge<Bytes> = "mem.direct_map_1g", file: MEMINFO, field: "DirectMap1G", scale: 1024,
            pcp: "mem.util.directMap1G", node_exporter: "node_memory_DirectMap1G_bytes",
            "Kernel direct map in 1 GiB pages (x86).";
        NR_FREE_PAGES: Gauge<Pages> = "vm.nr_free_pages", file: VMSTAT, field: "nr_free_pages",
            pcp: "mem.vmstat.nr_free_pages",
            "Free pages; MemFree divided by this is the page size.";
        NR_DIRTY: Gauge<Pages> = "vm.nr_dirty", file: VMSTAT, field: "nr_dirty", pcp: "mem.vmstat.nr_dirty",
            "Dirty page-cache pages.";
        NR_DIRTY_THRESHOLD: Gauge<Pages> = "vm.nr_dirty_threshold", file: VMSTAT, field: "nr_dirty_threshold", since: "2.6.37",
            pcp: "mem.vmstat.nr_dirty_threshold",
            "Dirty pages at which writers are made to wait.";
        NR_DIRTY_BACKGROUND_THRESHOLD: Gauge<Pages> = "vm.nr_dirty_background_threshold", file: VMSTAT, field: "nr_dirty_background_threshold", since: "2.6.37",
            pcp: "mem.vmstat.nr_dirty_background_threshold",
            "Dirty pages at which background writing starts.";
        NR_ISOLATED_ANON: Gauge<Pages> = "vm.nr_isolated_anon", file: VMSTAT, field: "nr_isolated_anon",
            pcp: "mem.vmstat.nr_isolated_anon",
            "Anonymous pages isolated from the LRU lists by reclaim or migration.";
        NR_ISOLATED_FILE: Gauge<Pages> = "vm.nr_isolated_file", file: VMSTAT, field: "nr_isolated_file",
            pcp: "mem.vmstat.nr_isolated_file",
            "File pages isolated from the LRU lists by reclaim or migration.";
        NR_ZSPAGES: Gauge<Pages> = "vm.nr_zspages", file: VMSTAT, field: "nr_zspages", since: "4.8",
            pcp: "mem.vmstat.nr_zspages",
            "Pages of zsmalloc: what zram, and zswap with zsmalloc, take in RAM.";
        NR_FREE_CMA: Gauge<Pages> = "vm.nr_free_cma", file: VMSTAT, field: "nr_free_cma", pcp: "mem.vmstat.nr_free_cma",
            "Free pages in CMA areas.";
        NR_SWAPCACHED: Gauge<Pages> = "vm.nr_swapcached", file: VMSTAT, field: "nr_swapcached", since: "5.12",
            "Pages in the swap cache.";
        NR_BALLOON_PAGES: Gauge<Pages> = "vm.nr_balloon_pages", file: VMSTAT, field: "nr_balloon_pages", since: "6.16",
            "Pages held by a balloon driver.";
        PGPGIN: Counter<Bytes> = "vm.pgpgin", file: VMSTAT, field: "pgpgin", scale: 1024,
            sar: "pgpgin/s", pcp: "mem.vmstat.pgpgin", node_exporter: "node_vmstat_pgpgin",
            "Bytes read from block devices, swap included.";
        PGPGOUT: Counter<Bytes> = "vm.pgpgout", file: VMSTAT, field: "pgpgout", scale: 1024,
            sar: "pgpgout/s", pcp: "mem.vmstat.pgpgout", node_exporter: "node_vmstat_pgpgout",
            "Bytes written to block devices, swap included.";
        PSWPIN: Counter<Pages> = "vm.pswpin", file: VMSTAT, field: "pswpin",
            sar: "pswpin/s", pcp: "mem.vmstat.pswpin", node_exporter: "node_vmstat_pswpin",
            "Pages read from swap devices, zram included; zswap hits and zero pages are not.";
        PSWPOUT: Counter<Pages> = "vm.pswpout", file: VMSTAT, field: "pswpout",
            sar: "pswpout/s", pcp: "mem.vmstat.pswpout", node_exporter: "node_vmstat_pswpout",
            "Pages written to swap devices, zram included.";
        SWPIN_ZERO: Counter<Pages> = "vm.swpin_zero", file: VMSTAT, field: "swpin_zero", since: "6.13",
            "Zero-filled pages swapped in without I/O.";
        SWPOUT_ZERO: Counter<Pages> = "vm.swpout_zero", file: VMSTAT, field: "swpout_zero", since: "6.13",
            "Zero-filled pages swapped out without I/O.";
        ZSWPIN: Counter<Pages> = "vm.zswpin", file: VMSTAT, field: "zswpin", since: "5.19",
            "Pages swapped in from the zswap pool.";
        ZSWPOUT: Counter<Pages> = "vm.zswpout", file: VMSTAT, field: "zswpout", since: "5.19",
            "Pages swapped out to the zswap pool.";
        ZSWPWB: Counter<Pages> = "vm.zswpwb", file: VMSTAT, field: "zswpwb", since: "6.8",
            "Pages written from the zswap pool to the swap device.";
        SWAP_RA: Counter<Pages> = "vm.swap_ra", file: VMSTAT, field: "swap_ra", since: "4.14",
            pcp: "mem.vmstat.swap_ra",
            "Pages read from swap ahead of their use.";
        SWAP_RA_HIT: Counter<Pages> = "vm.swap_ra_hit", file: VMSTAT, field: "swap_ra_hit", since: "4.14",
            pcp: "mem.vmstat.swap_ra_hit",
            "Pages read ahead from swap that were then used.";
        PGFAULT: Counter<Count> = "vm.pgfault", file: VMSTAT, field: "pgfault",
            sar: "fault/s", pcp: "mem.vmstat.pgfault", node_exporter: "node_vmstat_pgfault",
            "Page faults of all kinds.";
        PGMAJFAULT: Counter<Count> = "vm.pgmajfault", file: VMSTAT, field: "pgmajfault",
            sar: "majflt/s", pcp: "mem.vmstat.pgmajfault", node_exporter: "node_vmstat_pgmajfault",
            "Page faults that waited for a disk: swap-ins and mapped file pages.";
        PGFREE: Counter<Pages> = "vm.pgfree", file: VMSTAT, field: "pgfree", sar: "pgfree/s", pcp: "mem.vmstat.pgfree",
            "Pages freed, all zones.";
        PGALLOC: Counter<Pages> = "vm.pgalloc", file: VMSTAT, field: "pgalloc_*",
            "Pages allocated, all zones.";
        PGSKIP: Counter<Pages> = "vm.pgskip", file: VMSTAT, field: "pgskip_*", since: "4.8",
            "Pages passed over by reclaim because they lie in a zone that would not help, all \
             zones.";
        PGACTIVATE: Counter<Pages> = "vm.pgactivate", file: VMSTAT, field: "pgactivate", pcp: "mem.vmstat.pgactivate",
            "Pages moved to an active list.";
        PGDEACTIVATE: Counter<Pages> = "vm.pgdeactivate", file: VMSTAT, field: "pgdeactivate",
            pcp: "mem.vmstat.pgdeactivate",
            "Pages moved to an inactive list.";
        PGREFILL: Counter<Pages> = "vm.pgrefill", file: VMSTAT, field: "pgrefill",
            "Active pages scanned by reclaim.";
        PGROTATED: Counter<Pages> = "vm.pgrotated", file: VMSTAT, field: "pgrotated", pcp: "mem.vmstat.pgrotated",
            "Pages rotated to the tail of the inactive list after writeback.";
        PGSCAN_KSWAPD: Counter<Pages> = "vm.pgscan_kswapd", file: VMSTAT, field: "pgscan_kswapd",
            sar: "pgscank/s", pcp: "mem.vmstat.pgscan_kswapd",
            "Pages scanned by kswapd.";
        PGSCAN_DIRECT: Counter<Pages> = "vm.pgscan_direct", file: VMSTAT, field: "pgscan_direct",
            sar: "pgscand/s", pcp: "mem.vmstat.pgscan_direct",
            "Pages scanned by allocating tasks: direct and node reclaim.";
        PGSCAN_KHUGEPAGED: Counter<Pages> = "vm.pgscan_khugepaged", file: VMSTAT, field: "pgscan_khugepaged", since: "6.3",
            pcp: "mem.vmstat.pgscan_khugepaged",
            "Pages scanned by reclaim on behalf of khugepaged.";
        PGSCAN_PROACTIVE: Counter<Pages> = "vm.pgscan_proactive", file: VMSTAT, field: "pgscan_proactive", since: "6.15",
            "Pages scanned by proactive reclaim (memory.reclaim).";
        PGSCAN_ANON: Counter<Pages> = "vm.pgscan_anon", file: VMSTAT, field: "pgscan_anon", since: "5.8",
            pcp: "mem.vmstat.pgscan_anon",
            "Anonymous pages scanned by reclaim, cgroup limits included.";
        PGSCAN_FILE: Counter<Pages> = "vm.pgscan_file", file: VMSTAT, field: "pgscan_file", since: "5.8",
            pcp: "mem.vmstat.pgscan_file",
            "File pages scanned by reclaim, cgroup limits included.";
        PGSTEAL_KSWAPD: Counter<Pages> = "vm.pgsteal_kswapd", file: VMSTAT, field: "pgsteal_kswapd",
            pcp: "mem.vmstat.pgsteal_kswapd",
            "Pages reclaimed by kswapd.";
        PGSTEAL_DIRECT: Counter<Pages> = "vm.pgsteal_direct", file: VMSTAT, field: "pgsteal_direct",
            pcp: "mem.vmstat.pgsteal_direct",
            "Pages reclaimed by allocating tasks.";
        PGSTEAL_KHUGEPAGED: Counter<Pages> = "vm.pgsteal_khugepaged", file: VMSTAT, field: "pgsteal_khugepaged", since: "6.3",
            pcp: "mem.vmstat.pgsteal_khugepaged",
            "Pages reclaimed on behalf of khugepaged.";
        PGSTEAL_ANON: Counter<Pages> = "vm.pgsteal_anon", file: VMSTAT, field: "pgsteal_anon", since: "5.8",
            pcp: "mem.vmstat.pgsteal_anon",
            "Anonymous pages reclaimed, cgroup limits included.";
        PGSTEAL_FILE: Counter<Pages> = "vm.pgsteal_file", file: VMSTAT, field: "pgsteal_file", since: "5.8",
            pcp: "mem.vmstat.pgsteal_file",
            "File pages reclaimed, cgroup limits included.";
        PGSCAN_DIRECT_THROTTLE: Counter<Count> = "vm.pgscan_direct_throttle", file: VMSTAT, field: "pgscan_direct_throttle", since: "3.6",
            pcp: "mem.vmstat.pgscan_direct_throttle",
            "Times direct reclaim was throttled because reserves ran low.";
        ALLOCSTALL: Counter<Count> = "vm.allocstall", file: VMSTAT, field: "allocstall_*",
            "Direct reclaims, all zones: allocations that had to reclaim memory themselves.";
        PAGEOUTRUN: Counter<Count> = "vm.pageoutrun", file: VMSTAT, field: "pageoutrun", pcp: "mem.vmstat.pageoutrun",
            "Runs of kswapd.";
        KSWAPD_LOW_WMARK_HIT: Counter<Count> = "vm.kswapd_low_wmark_hit_quickly", file: VMSTAT, field: "kswapd_low_wmark_hit_quickly",
            pcp: "mem.vmstat.kswapd_low_wmark_hit_quickly",
            "Times free memory fell below the low watermark right after kswapd slept.";
        KSWAPD_HIGH_WMARK_HIT: Counter<Count> = "vm.kswapd_high_wmark_hit_quickly", file: VMSTAT, field: "kswapd_high_wmark_hit_quickly",
            pcp: "mem.vmstat.kswapd_high_wmark_hit_quickly",
            "Times free memory fell below the high watermark right after kswapd slept.";
        KSWAPD_INODESTEAL: Counter<Pages> = "vm.kswapd_inodesteal", file: VMSTAT, field: "kswapd_inodesteal",
            pcp: "mem.vmstat.kswapd_inodesteal",
            "Page-cache pages freed by kswapd while it reclaimed inodes.";
        PGINODESTEAL: Counter<Pages> = "vm.pginodesteal", file: VMSTAT, field: "pginodesteal",
            pcp: "mem.vmstat.pginodesteal",
            "Page-cache pages freed by direct reclaim while it reclaimed inodes.";
        SLABS_SCANNED: Counter<Count> = "vm.slabs_scanned", file: VMSTAT, field: "slabs_scanned",
            pcp: "mem.vmstat.slabs_scanned",
            "Kernel objects scanned by reclaim.";
        REFAULT: Counter<Pages> = "vm.workingset_refault", file: VMSTAT, field: "workingset_refault", since: "3.15 to 5.8",
            pcp: "mem.vmstat.workingset_refault",
            "Refaulted file pages on kernels before 5.9, which track no anonymous pages \
             (mm/vmscan.c, __remove_mapping).";
        REFAULT_ANON: Counter<Pages> = "vm.workingset_refault_anon", file: VMSTAT, field: "workingset_refault_anon", since: "5.9",
            "Refaulted anonymous pages: swapped in again after eviction.";
        REFAULT_FILE: Counter<Pages> = "vm.workingset_refault_file", file: VMSTAT, field: "workingset_refault_file", since: "5.9",
            "Refaulted file pages: read again after eviction.";
        ACTIVATE_ANON: Counter<Pages> = "vm.workingset_activate_anon", file: VMSTAT, field: "workingset_activate_anon", since: "5.9",
            "Refaulted anonymous pages that belong to the working set and were made active at \
             once.";
        ACTIVATE_FILE: Counter<Pages> = "vm.workingset_activate_file", file: VMSTAT, field: "workingset_activate_file", since: "5.9",
            "Refaulted file pages that belong to the working set and were made active at once.";
        RESTORE_ANON: Counter<Pages> = "vm.workingset_restore_anon", file: VMSTAT, field: "workingset_restore_anon", since: "5.9",
            "Refaulted anonymous pages that had been active before.";
        RESTORE_FILE: Counter<Pages> = "vm.workingset_restore_file", file: VMSTAT, field: "workingset_restore_file", since: "5.9",
            "Refaulted file pages that had been active before.";
        SHADOW_NODES_DROPPED: Counter<Count> = "vm.workingset_nodereclaim", file: VMSTAT, field: "workingset_nodereclaim", since: "3.15",
            pcp: "mem.vmstat.workingset_nodereclaim",
            "Shadow nodes freed: the page cache's record of evicted pages. Where it rises, \
             refaults are undercounted.";
        NR_DIRTIED: Counter<Pages> = "vm.nr_dirtied", file: VMSTAT, field: "nr_dirtied", since: "2.6.37",
            pcp: "mem.vmstat.nr_dirtied",
            "Pages made dirty.";
        NR_WRITTEN: Counter<Pages> = "vm.nr_written", file: VMSTAT, field: "nr_written", since: "2.6.37",
            pcp: "mem.vmstat.nr_written",
            "Pages written back.";
        NR_THROTTLED_WRITTEN: Counter<Pages> = "vm.nr_throttled_written", file: VMSTAT, field: "nr_throttled_written", since: "5.16",
            "Pages written while reclaim waited for writeback.";
        NR_VMSCAN_WRITE: Counter<Pages> = "vm.nr_vmscan_write", file: VMSTAT, field: "nr_vmscan_write",
            pcp: "mem.vmstat.nr_vmscan_write",
            "Pages written by reclaim itself instead of the flushers.";
        NR_VMSCAN_IMMEDIATE: Counter<Pages> = "vm.nr_vmscan_immediate_reclaim", file: VMSTAT, field: "nr_vmscan_immediate_reclaim", since: "3.2",
            pcp: "mem.vmstat.nr_vmscan_immediate_reclaim",
            "Pages that reclaim found under writeback and marked for immediate reclaim.";
        OOM_KILLS: Counter<Count> = "vm.oom_kill", file: VMSTAT, field: "oom_kill", since: "4.13",
            pcp: "mem.vmstat.oom_kill", node_exporter: "node_vmstat_oom_kill",
            "OOM kills, of the host and of cgroups.";
        COMPACT_STALL: Counter<Count> = "vm.compact_stall", file: VMSTAT, field: "compact_stall",
            pcp: "mem.vmstat.compact_stall",
            "Direct compactions: allocations that had to compact memory themselves.";
        COMPACT_FAIL: Counter<Count> = "vm.compact_fail", file: VMSTAT, field: "compact_fail",
            pcp: "mem.vmstat.compact_fail",
            "Direct compactions that did not produce a block.";
        COMPACT_SUCCESS: Counter<Count> = "vm.compact_success", file: VMSTAT, field: "compact_success",
            pcp: "mem.vmstat.compact_success",
            "Direct compactions that produced a block.";
        COMPACT_DAEMON_WAKE: Counter<Count> = "vm.compact_daemon_wake", file: VMSTAT, field: "compact_daemon_wake", since: "4.6",
            pcp: "mem.vmstat.compact_daemon_wake",
            "Times kcompactd was woken.";
        COMPACT_MIGRATE_SCANNED: Counter<Pages> = "vm.compact_migrate_scanned", file: VMSTAT, field: "compact_migrate_scanned",
            pcp: "mem.vmstat.compact_migrate_scanned",
            "Pages scanned by compaction for pages to move.";
        COMPACT_FREE_SCANNED: Counter<Pages> = "vm.compact_free_scanned", file: VMSTAT, field: "compact_free_scanned",
            pcp: "mem.vmstat.compact_free_scanned",
            "Pages scanned by compaction for free target pages.";
        COMPACT_ISOLATED: Counter<Pages> = "vm.compact_isolated", file: VMSTAT, field: "compact_isolated",
            pcp: "mem.vmstat.compact_isolated",
            "Pages isolated by compaction, to be moved or as targets.";
        THP_FAULT_ALLOC: Counter<Count> = "vm.thp_fault_alloc", file: VMSTAT, field: "thp_fault_alloc",
            pcp: "mem.vmstat.thp_fault_alloc",
            "Huge pages allocated at a page fault.";
        THP_FAULT_FALLBACK: Counter<Count> = "vm.thp_fault_fallback", file: VMSTAT, field: "thp_fault_fallback",
            pcp: "mem.vmstat.thp_fault_fallback",
            "Page faults that fell back from a huge page to small pages.";
        THP_COLLAPSE_ALLOC: Counter<Count> = "vm.thp_collapse_alloc", file: VMSTAT, field: "thp_collapse_alloc",
            pcp: "mem.vmstat.thp_collapse_alloc",
            "Huge pages made by khugepaged.";
        THP_SPLIT_PAGE: Counter<Count> = "vm.thp_split_page", file: VMSTAT, field: "thp_split_page",
            pcp: "mem.vmstat.thp_split_page",
            "Huge pages split.";
        THP_DEFERRED_SPLIT: Counter<Count> = "vm.thp_deferred_split_page", file: VMSTAT, field: "thp_deferred_split_page",
            pcp: "mem.vmstat.thp_deferred_split_page",
            "Huge pages queued for splitting because a part was freed.";
        THP_UNDERUSED_SPLIT: Counter<Count> = "vm.thp_underused_split_page", file: VMSTAT, field: "thp_underused_split_page", since: "6.12",
            "Huge pages split because they were mostly zero.";
        THP_SWPOUT: Counter<Count> = "vm.thp_swpout", file: VMSTAT, field: "thp_swpout", since: "4.14",
            pcp: "mem.vmstat.thp_swpout",
            "Huge pages swapped out whole.";
        NUMA_HIT: Counter<Pages> = "vm.numa_hit", file: VMSTAT, field: "numa_hit", pcp: "mem.vmstat.numa_hit",
            "Pages allocated on the intended node, all nodes.";
        NUMA_MISS: Counter<Pages> = "vm.numa_miss", file: VMSTAT, field: "numa_miss", pcp: "mem.vmstat.numa_miss",
            "Pages allocated on a node although another was intended, all nodes.";
        NUMA_FOREIGN: Counter<Pages> = "vm.numa_foreign", file: VMSTAT, field: "numa_foreign",
            pcp: "mem.vmstat.numa_foreign",
            "Pages intended for a node but allocated on another, all nodes.";
        NUMA_LOCAL: Counter<Pages> = "vm.numa_local", file: VMSTAT, field: "numa_local", pcp: "mem.vmstat.numa_local",
            "Pages allocated on the task's own node.";
        NUMA_OTHER: Counter<Pages> = "vm.numa_other", file: VMSTAT, field: "numa_other", pcp: "mem.vmstat.numa_other",
            "Pages allocated on a node other than the task's.";
        NUMA_PTE_UPDATES: Counter<Count> = "vm.numa_pte_updates", file: VMSTAT, field: "numa_pte_updates", since: "3.8",
            pcp: "mem.vmstat.numa_pte_updates",
            "Page-table entries that NUMA balancing marked for hinting faults.";
        NUMA_HINT_FAULTS: Counter<Count> = "vm.numa_hint_faults", file: VMSTAT, field: "numa_hint_faults", since: "3.8",
            pcp: "mem.vmstat.numa_hint_faults",
            "NUMA hinting faults: faults on entries that NUMA balancing had marked.";
        NUMA_HINT_FAULTS_LOCAL: Counter<Count> = "vm.numa_hint_faults_local", file: VMSTAT, field: "numa_hint_faults_local", since: "3.8",
            pcp: "mem.vmstat.numa_hint_faults_local",
            "NUMA hinting faults on pages that were already on the task's own node.";
        NUMA_PAGES_MIGRATED: Counter<Pages> = "vm.numa_pages_migrated", file: VMSTAT, field: "numa_pages_migrated", since: "3.8",
            pcp: "mem.vmstat.numa_pages_migrated",
            "Pages that NUMA balancing moved to another node.";
        PGMIGRATE_SUCCESS: Counter<Pages> = "vm.pgmigrate_success", file: VMSTAT, field: "pgmigrate_success",
            pcp: "mem.vmstat.pgmigrate_success",
            "Pages moved to another place in RAM, whatever the reason: compaction, NUMA, hotplug.";
        PGMIGRATE_FAIL: Counter<Pages> = "vm.pgmigrate_fail", file: VMSTAT, field: "pgmigrate_fail",
            pcp: "mem.vmstat.pgmigrate_fail",
            "Pages that could not be moved to another place in RAM.";
        PGPROMOTE_SUCCESS: Counter<Pages> = "vm.pgpromote_success", file: VMSTAT, field: "pgpromote_success", since: "5.15",
            sar: "pgprom/s", pcp: "mem.vmstat.pgpromote_success",
            "Pages promoted to fast memory.";
        PGDEMOTE_KSWAPD: Counter<Pages> = "vm.pgdemote_kswapd", file: VMSTAT, field: "pgdemote_kswapd", since: "5.15",
            pcp: "mem.vmstat.pgdemote_kswapd",
            "Pages demoted to slow memory by kswapd.";
        PGDEMOTE_DIRECT: Counter<Pages> = "vm.pgdemote_direct", file: VMSTAT, field: "pgdemote_direct", since: "5.15",
            pcp: "mem.vmstat.pgdemote_direct",
            "Pages demoted to slow memory by direct reclaim.";
        ZONE_RECLAIM_SUCCESS: Counter<Count> = "vm.zone_reclaim_success", file: VMSTAT, field: "zone_reclaim_success",
            "Node reclaims that freed enough.";
        ZONE_RECLAIM_FAILED: Counter<Count> = "vm.zone_reclaim_failed", file: VMSTAT, field: "zone_reclaim_failed",
            pcp: "mem.vmstat.zone_reclaim_failed",
            "Node reclaims that did not free enough.";
        BALLOON_INFLATE: Counter<Pages> = "vm.balloon_inflate", file: VMSTAT, field: "balloon_inflate",
            pcp: "mem.vmstat.balloon_inflate",
            "Pages given to the hypervisor.";
        BALLOON_DEFLATE: Counter<Pages> = "vm.balloon_deflate", file: VMSTAT, field: "balloon_deflate",
            pcp: "mem.vmstat.balloon_deflate",
            "Pages returned by the hypervisor.";
        DROP_PAGECACHE: Counter<Count> = "vm.drop_pagecache", file: VMSTAT, field: "drop_pagecache", since: "3.15",
            pcp: "mem.vmstat.drop_pagecache",
            "Times the page cache was dropped by hand (vm.drop_caches).";
        DROP_SLAB: Counter<Count> = "vm.drop_slab", file: VMSTAT, field: "drop_slab", since: "3.15",
            pcp: "mem.vmstat.drop_slab",
            "Times dentries and inodes were dropped by hand (vm.drop_caches).";
        UNEVICTABLE_CULLED: Counter<Pages> = "vm.unevictable_pgs_culled", file: VMSTAT, field: "unevictable_pgs_culled",
            pcp: "mem.vmstat.unevictable_pgs_culled",
            "Pages found unevictable by reclaim.";
        HTLB_ALLOC_FAIL: Counter<Count> = "vm.htlb_buddy_alloc_fail", file: VMSTAT, field: "htlb_buddy_alloc_fail",
            pcp: "mem.vmstat.htlb_buddy_alloc_fail",
            "Huge pages that could not be allocated.";
        NR_FOLL_PIN_ACQUIRED: Counter<Pages> = "vm.nr_foll_pin_acquired", file: VMSTAT, field: "nr_foll_pin_acquired", since: "5.7",
            pcp: "mem.vmstat.nr_foll_pin_acquired",
            "Pages pinned for device access.";
        NR_FOLL_PIN_RELEASED: Counter<Pages> = "vm.nr_foll_pin_released", file: VMSTAT, field: "nr_foll_pin_released", since: "5.7",
            pcp: "mem.vmstat.nr_foll_pin_released",
            "Pages released from device access.";
        PSI_MEMORY_SOME: Counter<Micros> = "psi.memory.some", file: MEMORY_PRESSURE, field: "some total", since: "4.20",
            sar: "%smem", pcp: "kernel.all.pressure.memory.some.total", node_exporter: "node_pressure_memory_waiting_seconds_total",
            "Time for which at least one task waited for memory.";
        PSI_MEMORY_FULL: Counter<Micros> = "psi.memory.full", file: MEMORY_PRESSURE, field: "full total", since: "4.20",
            sar: "%fmem", pcp: "kernel.all.pressure.memory.full.total", node_exporter: "node_pressure_memory_stalled_seconds_total",
            "Time for which all running tasks waited for memory.";
        PSI_MEMORY_SOME_AVG10: Gauge<Micros> = "psi.memory.some.avg10", file: MEMORY_PRESSURE, field: "some avg10", scale: 10000, since: "4.20",
            "Time per second for which at least one task waited for memory, averaged by the kernel \
             over the last 10 s.";
        PSI_MEMORY_SOME_AVG60: Gauge<Micros> = "psi.memory.some.avg60", file: MEMORY_PRESSURE, field: "some avg60", scale: 10000, since: "4.20",
            "Time per second for which at least one task waited for memory, averaged by the kernel \
             over the last minute.";
        PSI_MEMORY_SOME_AVG300: Gauge<Micros> = "psi.memory.some.avg300", file: MEMORY_PRESSURE, field: "some avg300", scale: 10000, since: "4.20",
            "Time per second for which at least one task waited for memory, averaged by the kernel \
             over the last 5 minutes.";
        PSI_MEMORY_FULL_AVG10: Gauge<Micros> = "psi.memory.full.avg10", file: MEMORY_PRESSURE, field: "full avg10", scale: 10000, since: "4.20",
            "Time per second for which all running tasks waited for memory, averaged by the kernel \
             over the last 10 s.";
        PSI_MEMORY_FULL_AVG60: Gauge<Micros> = "psi.memory.full.avg60", file: MEMORY_PRESSURE, field: "full avg60", scale: 10000, since: "4.20",
            "Time per second for which all running tasks waited for memory, averaged by the kernel \
             over the last minute.";
        PSI_MEMORY_FULL_AVG300: Gauge<Micros> = "psi.memory.full.avg300", file: MEMORY_PRESSURE, field: "full avg300", scale: 10000, since: "4.20",
            "Time per second for which all running tasks waited for memory, averaged by the kernel \
             over the last 5 minutes.";
        PSI_IO_SOME: Counter<Micros> = "psi.io.some", file: IO_PRESSURE, field: "some total", since: "4.20",
            sar: "%sio", pcp: "kernel.all.pressure.io.some.total", node_exporter: "node_pressure_io_waiting_seconds_total",
            "Time for which at least one task waited for I/O.";
        PSI_IO_FULL: Counter<Micros> = "psi.io.full", file: IO_PRESSURE, field: "full total", since: "4.20",
            sar: "%fio", pcp: "kernel.all.pressure.io.full.total", node_exporter: "node_pressure_io_stalled_seconds_total",
            "Time for which all running tasks waited for I/O.";
        PSI_IO_SOME_AVG10: Gauge<Micros> = "psi.io.some.avg10", file: IO_PRESSURE, field: "some avg10", scale: 10000, since: "4.20",
            "Time per second for which at least one task waited for I/O, averaged by the kernel \
             over the last 10 s.";
        PSI_IO_SOME_AVG60: Gauge<Micros> = "psi.io.some.avg60", file: IO_PRESSURE, field: "some avg60", scale: 10000, since: "4.20",
            "Time per second for which at least one task waited for I/O, averaged by the kernel \
             over the last minute.";
        PSI_IO_SOME_AVG300: Gauge<Micros> = "psi.io.some.avg300", file: IO_PRESSURE, field: "some avg300", scale: 10000, since: "4.20",
            "Time per second for which at least one task waited for I/O, averaged by the kernel \
             over the last 5 minutes.";
        PSI_IO_FULL_AVG10: Gauge<Micros> = "psi.io.full.avg10", file: IO_PRESSURE, field: "full avg10", scale: 10000, since: "4.20",
            "Time per second for which all running tasks waited for I/O, averaged by the kernel \
             over the last 10 s.";
        PSI_IO_FULL_AVG60: Gauge<Micros> = "psi.io.full.avg60", file: IO_PRESSURE, field: "full avg60", scale: 10000, since: "4.20",
            "Time per second for which all running tasks waited for I/O, averaged by the kernel \
             over the last minute.";
        PSI_IO_FULL_AVG300: Gauge<Micros> = "psi.io.full.avg300", file: IO_PRESSURE, field: "full avg300", scale: 10000, since: "4.20",
            "Time per second for which all running tasks waited for I/O, averaged by the kernel \
             over the last 5 minutes.";
        PSI_CPU_SOME: Counter<Micros> = "psi.cpu.some", file: CPU_PRESSURE, field: "some total", since: "4.20",
            sar: "%scpu", pcp: "kernel.all.pressure.cpu.some.total", node_exporter: "node_pressure_cpu_waiting_seconds_total",
            "Time for which at least one task waited for a CPU.";
        PSI_CPU_FULL: Counter<Micros> = "psi.cpu.full", file: CPU_PRESSURE, field: "full total", since: "5.13",
            "Time for which all running tasks waited for a CPU.";
        CPU_USER: Counter<Ticks> = "cpu.user", file: STAT, field: "cpu user",
            sar: "%user", pcp: "kernel.all.cpu.user", node_exporter: "node_cpu_seconds_total{mode=\"user\"}",
            "CPU time spent on user code, all CPUs.";
        CPU_NICE: Counter<Ticks> = "cpu.nice", file: STAT, field: "cpu nice",
            sar: "%nice", pcp: "kernel.all.cpu.nice", node_exporter: "node_cpu_seconds_total{mode=\"nice\"}",
            "CPU time spent on user code at low priority, all CPUs.";
        CPU_SYSTEM: Counter<Ticks> = "cpu.system", file: STAT, field: "cpu system",
            sar: "%sys", pcp: "kernel.all.cpu.sys", node_exporter: "node_cpu_seconds_total{mode=\"system\"}",
            "CPU time spent on kernel code, all CPUs.";
        CPU_IDLE: Counter<Ticks> = "cpu.idle", file: STAT, field: "cpu idle",
            sar: "%idle", pcp: "kernel.all.cpu.idle", node_exporter: "node_cpu_seconds_total{mode=\"idle\"}",
            "Idle CPU time, all CPUs.";
        CPU_IOWAIT: Counter<Ticks> = "cpu.iowait", file: STAT, field: "cpu iowait",
            sar: "%iowait", pcp: "kernel.all.cpu.wait.total", node_exporter: "node_cpu_seconds_total{mode=\"iowait\"}",
            "Idle CPU time while I/O was outstanding, all CPUs.";
        CPU_IRQ: Counter<Ticks> = "cpu.irq", file: STAT, field: "cpu irq",
            sar: "%irq", pcp: "kernel.all.cpu.irq.hard", node_exporter: "node_cpu_seconds_total{mode=\"irq\"}",
            "CPU time spent on interrupts, all CPUs.";
        CPU_SOFTIRQ: Counter<Ticks> = "cpu.softirq", file: STAT, field: "cpu softirq",
            sar: "%soft", pcp: "kernel.all.cpu.irq.soft", node_exporter: "node_cpu_seconds_total{mode=\"softirq\"}",
            "CPU time spent on soft interrupts, all CPUs.";
        CPU_STEAL: Counter<Ticks> = "cpu.steal", file: STAT, field: "cpu steal",
            sar: "%steal", pcp: "kernel.all.cpu.steal", node_exporter: "node_cpu_seconds_total{mode=\"steal\"}",
            "CPU time that the hypervisor gave to other guests, all CPUs.";
        CPU_GUEST: Counter<Ticks> = "cpu.guest", file: STAT, field: "cpu guest",
            sar: "%guest", pcp: "kernel.all.cpu.guest", node_exporter: "node_cpu_guest_seconds_total{mode=\"user\"}",
            "CPU time spent on guests that run on this host, all CPUs; a part of user.";
        CPU_GUEST_NICE: Counter<Ticks> = "cpu.guest_nice", file: STAT, field: "cpu guest_nice",
            sar: "%gnice", pcp: "kernel.all.cpu.guest_nice", node_exporter: "node_cpu_guest_seconds_total{mode=\"nice\"}",
            "CPU time spent on guests that run on this host at low priority, all CPUs; a part of \
             nice.";
        FORKS: Counter<Count> = "cpu.forks", file: STAT, field: "processes",
            sar: "proc/s", pcp: "kernel.all.sysfork", node_exporter: "node_forks_total",
            "Processes and threads started.";
        TASKS_RUNNING: Gauge<Count> = "cpu.tasks_running", file: STAT, field: "procs_running",
            sar: "runq-sz", pcp: "kernel.all.running", node_exporter: "node_procs_running",
            "Runnable tasks.";
        TASKS_BLOCKED: Gauge<Count> = "cpu.tasks_blocked", file: STAT, field: "procs_blocked",
            sar: "blocked", pcp: "kernel.all.blocked", node_exporter: "node_procs_blocked",
            "Tasks that wait for I/O (state D).";
        DENTRIES: Gauge<Count> = "fs.dentries", file: DENTRY_STATE, field: "1", pcp: "vfs.dentry.count",
            "Cached directory entries.";
        DENTRIES_UNUSED: Gauge<Count> = "fs.dentries_unused", file: DENTRY_STATE, field: "2",
            sar: "dentunusd", pcp: "vfs.dentry.free",
            "Cached directory entries that are not in use.";
        DENTRIES_NEGATIVE: Gauge<Count> = "fs.dentries_negative", file: DENTRY_STATE, field: "5", since: "5.0",
            "Negative directory entries: cached names that do not exist.";
        INODES: Gauge<Count> = "fs.inodes", file: INODE_NR, field: "1", pcp: "vfs.inodes.count",
            "Cached inodes.";
        INODES_FREE: Gauge<Count> = "fs.inodes_free", file: INODE_NR, field: "2", pcp: "vfs.inodes.free",
            "Cached inodes that are not in use.";
        FILES_OPEN: Gauge<Count> = "fs.files_open", file: FILE_NR, field: "1",
            sar: "file-nr", pcp: "vfs.files.count", node_exporter: "node_filefd_allocated",
            "Open files.";
        TCP_MEM: Gauge<Pages> = "sock.tcp_mem", file: SOCKSTAT, field: "TCP mem",
            pcp: "network.sockstat.tcp.mem", node_exporter: "node_sockstat_TCP_mem",
            "Memory of TCP sockets.";
        UDP_MEM: Gauge<Pages> = "sock.udp_mem", file: SOCKSTAT, field: "UDP mem",
            pcp: "network.sockstat.udp.mem", node_exporter: "node_sockstat_UDP_mem",
            "Memory of UDP sockets.";
        TCP_MEMORY_PRESSURES: Counter<Count> = "sock.tcp_memory_pressures", file: NETSTAT, field: "TcpExt TCPMemoryPressures", since: "4.15",
            pcp: "network.tcp.memorypressures",
            "Times TCP entered memory pressure: its sockets exceeded the middle limit of \
             net.ipv4.tcp_mem.";
        TCP_MEMORY_ABORTS: Counter<Count> = "sock.tcp_memory_aborts", file: NETSTAT, field: "TcpExt TCPAbortOnMemory",
            pcp: "network.tcp.abortonmemory",
            "TCP connections that were reset for lack of socket memory, or because too many had no \
             owner.";
        CGROUPS: Gauge<Count> = "cgroups.descendants", file: ROOT_CGROUP_STAT, field: "nr_descendants", since: "4.14",
            "Cgroups below the root.";
        CGROUPS_DYING: Gauge<Count> = "cgroups.dying", file: ROOT_CGROUP_STAT, field: "nr_dying_descendants", since: "4.14",
            "Cgroups that were removed and still hold memory; of v1, those that /proc/cgroups \
             counts beyond the directories.";
        KSM_SHARED: Gauge<Pages> = "ksm.pages_shared", file: "/sys/kernel/mm/ksm/pages_shared", field: "1", since: "2.6.32",
            pcp: "mem.ksm.pages_shared", node_exporter: "node_ksmd_pages_shared",
            "Merged pages in use by KSM.";
        KSM_SHARING: Gauge<Pages> = "ksm.pages_sharing", file: "/sys/kernel/mm/ksm/pages_sharing", field: "1", since: "2.6.32",
            pcp: "mem.ksm.pages_sharing", node_exporter: "node_ksmd_pages_sharing",
            "Pages that KSM saves.";
        ZFS_ARC: Gauge<Bytes> = "mem.zfs_arc", file: ARCSTATS, field: "size",
            pcp: "zfs.arc.size", node_exporter: "node_zfs_arc_size",
            "The cache of ZFS (ARC). It shrinks when programs want memory, but the kernel counts \
             it as used.";
        ZFS_ARC_MIN: Gauge<Bytes> = "mem.zfs_arc_min", file: ARCSTATS, field: "c_min",
            pcp: "zfs.arc.c_min", node_exporter: "node_zfs_arc_c_min",
            "What the ARC of ZFS keeps when programs want memory.";
        ZFS_ARC_DATA: Gauge<Bytes> = "mem.zfs_arc_data", file: ARCSTATS, field: "data_size",
            node_exporter: "node_zfs_arc_data_size",
            "Data of files in the ARC of ZFS: pages that no counter of the kernel has.";
        ZFS_ARC_METADATA: Gauge<Bytes> = "mem.zfs_arc_metadata", file: ARCSTATS, field: "metadata_size",
            node_exporter: "node_zfs_arc_metadata_size",
            "Metadata in the ARC of ZFS: pages that no counter of the kernel has.";
        PAGE_CACHE: Gauge<Bytes> = "mem.page_cache", file: DERIVED, field: "Cached − Shmem + Buffers",
            "Page cache that can be dropped: file data and metadata, without shared memory.";
        SWAP_USED: Gauge<Bytes> = "swap.used", file: DERIVED, field: "SwapTotal − SwapFree",
            sar: "kbswpused", pcp: "swap.used",
            "Swap in use.";
        RECORDER_LATE: Gauge<Micros> = "recorder.late", file: DERIVED, field: "taken − due",
            "How late the sample was taken. A host that delays its recorder delays other tasks \
             too.";
        RECORDER_CPU: Counter<Micros> = "recorder.cpu", file: DERIVED, field: "user + system of memtide record",
            "CPU time of the recorder.";
        RECORDER_RSS: Gauge<Bytes> = "recorder.rss", file: DERIVED, field: "RSS of memtide record",
            "Resident memory of the recorder.";
        RECORDER_LOST: Counter<Count> = "recorder.lost", file: DERIVED, field: "samples dropped",
            "Samples lost because the disk did not accept them.";
        SWAPIN_ALL: Counter<Pages> = "vm.swapin_all", file: DERIVED, field: "pswpin + zswpin + swpin_zero",
            "Pages swapped in from anywhere: swap devices, the zswap pool, zero pages.";
        MEM_FLOOR_HIGH: Gauge<Bytes> = "mem.floor_high", file: DERIVED, field: "Σ zones min(managed, high + protection)",
            "Free memory at which kswapd stops; MemAvailable excludes this much.";
        MEM_UNACCOUNTED: Gauge<Bytes> = "mem.unaccounted", file: DERIVED, field: "MemTotal − all terms",
            "RAM that no counter covers: allocated by drivers, the network, GPUs, guests.";
        HUGETLB_UNUSED: Gauge<Bytes> = "hugepages.unused", file: DERIVED, field: "(HugePages_Free − HugePages_Rsvd) × Hugepagesize",
            "Reserved huge pages that are neither allocated nor committed.";
        DIRTY_AND_WRITEBACK: Gauge<Bytes> = "mem.dirty_and_writeback", file: DERIVED, field: "Dirty + Writeback",
            "Dirty pages and pages under writeback: what the kernel compares with the dirty \
             limits.";
    }
    Node {
        NODE_TOTAL: Gauge<Bytes> = "node.total", file: NODE_MEMINFO, field: "MemTotal", scale: 1024,
            pcp: "mem.numa.util.total", node_exporter: "node_memory_numa_MemTotal",
            "RAM of the node.";
        NODE_FREE: Gauge<Bytes> = "node.free", file: NODE_MEMINFO, field: "MemFree", scale: 1024,
            pcp: "mem.numa.util.free", node_exporter: "node_memory_numa_MemFree",
            "Free RAM of the node.";
        NODE_FILE: Gauge<Bytes> = "node.file", file: NODE_MEMINFO, field: "FilePages", scale: 1024,
            pcp: "mem.numa.util.filePages", node_exporter: "node_memory_numa_FilePages",
            "Page cache of the node, shared memory included.";
        NODE_ANON: Gauge<Bytes> = "node.anon", file: NODE_MEMINFO, field: "AnonPages", scale: 1024,
            pcp: "mem.numa.util.anonpages", node_exporter: "node_memory_numa_AnonPages",
            "Anonymous memory on the node.";
        NODE_SHMEM: Gauge<Bytes> = "node.shmem", file: NODE_MEMINFO, field: "Shmem", scale: 1024,
            pcp: "mem.numa.util.shmem", node_exporter: "node_memory_numa_Shmem",
            "Shared memory on the node.";
        NODE_SLAB: Gauge<Bytes> = "node.slab", file: NODE_MEMINFO, field: "Slab", scale: 1024,
            pcp: "mem.numa.util.slab", node_exporter: "node_memory_numa_Slab",
            "Kernel objects on the node.";
        NODE_DIRTY: Gauge<Bytes> = "node.dirty", file: NODE_MEMINFO, field: "Dirty", scale: 1024,
            pcp: "mem.numa.util.dirty", node_exporter: "node_memory_numa_Dirty",
            "Dirty page cache on the node.";
        NODE_ACTIVE_FILE: Gauge<Bytes> = "node.active_file", file: NODE_MEMINFO, field: "Active(file)", scale: 1024,
            pcp: "mem.numa.util.active_file", node_exporter: "node_memory_numa_Active_file",
            "Recently used file pages of the node.";
        NODE_INACTIVE_FILE: Gauge<Bytes> = "node.inactive_file", file: NODE_MEMINFO, field: "Inactive(file)", scale: 1024,
            pcp: "mem.numa.util.inactive_file", node_exporter: "node_memory_numa_Inactive_file",
            "File pages of the node that are reclaimed first.";
        NODE_HIT: Counter<Pages> = "node.numa_hit", file: NODE_NUMASTAT, field: "numa_hit",
            pcp: "mem.numa.alloc.hit", node_exporter: "node_memory_numa_numa_hit_total",
            "Pages allocated on this node as intended.";
        NODE_MISS: Counter<Pages> = "node.numa_miss", file: NODE_NUMASTAT, field: "numa_miss",
            pcp: "mem.numa.alloc.miss", node_exporter: "node_memory_numa_numa_miss_total",
            "Pages allocated on this node although another was intended.";
        NODE_FOREIGN: Counter<Pages> = "node.numa_foreign", file: NODE_NUMASTAT, field: "numa_foreign",
            pcp: "mem.numa.alloc.foreign", node_exporter: "node_memory_numa_numa_foreign_total",
            "Pages intended for this node but allocated on another.";
        NODE_LOCAL: Counter<Pages> = "node.numa_local", file: NODE_NUMASTAT, field: "local_node",
            pcp: "mem.numa.alloc.local_node", node_exporter: "node_memory_numa_local_node_total",
            "Pages allocated here for tasks running here.";
        NODE_OTHER: Counter<Pages> = "node.numa_other", file: NODE_NUMASTAT, field: "other_node",
            pcp: "mem.numa.alloc.other_node", node_exporter: "node_memory_numa_other_node_total",
            "Pages allocated here for tasks running elsewhere.";
    }
    Zone {
        ZONE_FREE: Gauge<Pages> = "zone.free", file: ZONEINFO, field: "free",
            pcp: "mem.zoneinfo.free", node_exporter: "node_zoneinfo_nr_free_pages",
            "Free pages of the zone.";
        ZONE_MIN: Gauge<Pages> = "zone.min", file: ZONEINFO, field: "min",
            pcp: "mem.zoneinfo.min", node_exporter: "node_zoneinfo_min_pages",
            "Free pages below which only privileged allocations succeed; boost included.";
        ZONE_LOW: Gauge<Pages> = "zone.low", file: ZONEINFO, field: "low",
            pcp: "mem.zoneinfo.low", node_exporter: "node_zoneinfo_low_pages",
            "Free pages below which kswapd starts; boost included.";
        ZONE_HIGH: Gauge<Pages> = "zone.high", file: ZONEINFO, field: "high",
            pcp: "mem.zoneinfo.high", node_exporter: "node_zoneinfo_high_pages",
            "Free pages at which kswapd stops; boost included.";
        ZONE_BOOST: Gauge<Pages> = "zone.boost", file: ZONEINFO, field: "boost", since: "5.16",
            "How far the zone's watermarks are raised for a time after a fragmentation event.";
        ZONE_SPANNED: Gauge<Pages> = "zone.spanned", file: ZONEINFO, field: "spanned",
            pcp: "mem.zoneinfo.spanned", node_exporter: "node_zoneinfo_spanned_pages",
            "Pages between the zone's ends, holes included.";
        ZONE_PRESENT: Gauge<Pages> = "zone.present", file: ZONEINFO, field: "present",
            pcp: "mem.zoneinfo.present", node_exporter: "node_zoneinfo_present_pages",
            "Pages of RAM in the zone.";
        ZONE_MANAGED: Gauge<Pages> = "zone.managed", file: ZONEINFO, field: "managed",
            pcp: "mem.zoneinfo.managed", node_exporter: "node_zoneinfo_managed_pages",
            "Pages of the zone that the allocator manages.";
        ZONE_PROTECTION: Gauge<Pages> = "zone.protection", file: ZONEINFO, field: "protection",
            "The zone's largest lowmem reserve: withheld from allocations that could use a higher \
             zone.";
        ZONE_PCP: Gauge<Pages> = "zone.pcp", file: ZONEINFO, field: "pagesets count",
            "Free pages of the zone on per-CPU lists; not in its free pages.";
        ZONE_FREE_CMA: Gauge<Pages> = "zone.free_cma", file: ZONEINFO, field: "nr_free_cma",
            pcp: "mem.zoneinfo.nr_free_cma",
            "Free pages of the zone that only movable allocations may use.";
        ZONE_BLOCKS_0: Gauge<Count> = "zone.blocks_0", file: BUDDYINFO, field: "order 0",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"0\"}",
            "Free blocks of 2^0 contiguous pages.";
        ZONE_BLOCKS_1: Gauge<Count> = "zone.blocks_1", file: BUDDYINFO, field: "order 1",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"1\"}",
            "Free blocks of 2^1 contiguous pages.";
        ZONE_BLOCKS_2: Gauge<Count> = "zone.blocks_2", file: BUDDYINFO, field: "order 2",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"2\"}",
            "Free blocks of 2^2 contiguous pages.";
        ZONE_BLOCKS_3: Gauge<Count> = "zone.blocks_3", file: BUDDYINFO, field: "order 3",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"3\"}",
            "Free blocks of 2^3 contiguous pages.";
        ZONE_BLOCKS_4: Gauge<Count> = "zone.blocks_4", file: BUDDYINFO, field: "order 4",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"4\"}",
            "Free blocks of 2^4 contiguous pages.";
        ZONE_BLOCKS_5: Gauge<Count> = "zone.blocks_5", file: BUDDYINFO, field: "order 5",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"5\"}",
            "Free blocks of 2^5 contiguous pages.";
        ZONE_BLOCKS_6: Gauge<Count> = "zone.blocks_6", file: BUDDYINFO, field: "order 6",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"6\"}",
            "Free blocks of 2^6 contiguous pages.";
        ZONE_BLOCKS_7: Gauge<Count> = "zone.blocks_7", file: BUDDYINFO, field: "order 7",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"7\"}",
            "Free blocks of 2^7 contiguous pages.";
        ZONE_BLOCKS_8: Gauge<Count> = "zone.blocks_8", file: BUDDYINFO, field: "order 8",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"8\"}",
            "Free blocks of 2^8 contiguous pages.";
        ZONE_BLOCKS_9: Gauge<Count> = "zone.blocks_9", file: BUDDYINFO, field: "order 9",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"9\"}",
            "Free blocks of 2^9 contiguous pages.";
        ZONE_BLOCKS_10: Gauge<Count> = "zone.blocks_10", file: BUDDYINFO, field: "order 10",
            pcp: "mem.buddyinfo.pages", node_exporter: "node_buddyinfo_blocks{size=\"10\"}",
            "Free blocks of 2^10 contiguous pages.";
    }
    Disk {
        DISK_READS: Counter<Count> = "disk.reads", file: DISKSTATS, field: "reads",
            pcp: "disk.dev.read", node_exporter: "node_disk_reads_completed_total",
            "Reads completed.";
        DISK_READ_BYTES: Counter<Bytes> = "disk.read_bytes", file: DISKSTATS, field: "sectors read", scale: 512,
            sar: "rkB/s", pcp: "disk.dev.read_bytes", node_exporter: "node_disk_read_bytes_total",
            "Bytes read.";
        DISK_READ_TIME: Counter<Millis> = "disk.read_time", file: DISKSTATS, field: "ms reading",
            pcp: "disk.dev.read_rawactive", node_exporter: "node_disk_read_time_seconds_total",
            "Total time of all reads.";
        DISK_WRITES: Counter<Count> = "disk.writes", file: DISKSTATS, field: "writes",
            pcp: "disk.dev.write", node_exporter: "node_disk_writes_completed_total",
            "Writes completed.";
        DISK_WRITE_BYTES: Counter<Bytes> = "disk.write_bytes", file: DISKSTATS, field: "sectors written", scale: 512,
            sar: "wkB/s", pcp: "disk.dev.write_bytes", node_exporter: "node_disk_written_bytes_total",
            "Bytes written.";
        DISK_WRITE_TIME: Counter<Millis> = "disk.write_time", file: DISKSTATS, field: "ms writing",
            pcp: "disk.dev.write_rawactive", node_exporter: "node_disk_write_time_seconds_total",
            "Total time of all writes.";
        DISK_IN_FLIGHT: Gauge<Count> = "disk.in_flight", file: DISKSTATS, field: "in flight",
            pcp: "disk.dev.inflight", node_exporter: "node_disk_io_now",
            "Requests in flight.";
        DISK_IO_TIME: Counter<Millis> = "disk.io_time", file: DISKSTATS, field: "ms doing I/O",
            sar: "%util", pcp: "disk.dev.avactive", node_exporter: "node_disk_io_time_seconds_total",
            "Time for which at least one request was in flight.";
        DISK_QUEUE_TIME: Counter<Millis> = "disk.queue_time", file: DISKSTATS, field: "weighted ms",
            sar: "aqu-sz", pcp: "disk.dev.aveq", node_exporter: "node_disk_io_time_weighted_seconds_total",
            "Total time of all requests, queueing included.";
        DISK_FLUSHES: Counter<Count> = "disk.flushes", file: DISKSTATS, field: "flushes", since: "5.5",
            pcp: "disk.dev.flush", node_exporter: "node_disk_flush_requests_total",
            "Flush requests completed.";
    }
    SwapArea {
        SWAP_AREA_SIZE: Gauge<Bytes> = "swap_area.size", file: SWAPS, field: "Size", scale: 1024,
            pcp: "swapdev.length", node_exporter: "node_swap_size_bytes",
            "Size of the swap area.";
        SWAP_AREA_USED: Gauge<Bytes> = "swap_area.used", file: SWAPS, field: "Used", scale: 1024,
            node_exporter: "node_swap_used_bytes",
            "Swap in use in the area.";
        SWAP_AREA_RANK: Gauge<Count> = "swap_area.rank", file: SWAPS, field: "Priority",
            pcp: "swapdev.priority", node_exporter: "node_swap_priority",
            "Priority plus 32768: the area with the highest is filled first.";
    }
    Zram {
        ZRAM_ORIG: Gauge<Bytes> = "zram.orig", file: ZRAM_MM_STAT, field: "1", since: "4.2",
            pcp: "zram.mm_stat.data_size.original",
            "Data in zram before compression, without zero pages.";
        ZRAM_COMPRESSED: Gauge<Bytes> = "zram.compressed", file: ZRAM_MM_STAT, field: "2", since: "4.2",
            pcp: "zram.mm_stat.data_size.compressed",
            "Data in zram after compression, without overhead.";
        ZRAM_USED: Gauge<Bytes> = "zram.used", file: ZRAM_MM_STAT, field: "3", since: "4.2",
            pcp: "zram.mm_stat.mem.used_total",
            "RAM that zram uses, overhead included.";
        ZRAM_LIMIT: Gauge<Limit> = "zram.limit", file: ZRAM_MM_STAT, field: "4", since: "4.2",
            pcp: "zram.mm_stat.mem.limit",
            "Limit of the RAM that zram may use.";
        ZRAM_USED_MAX: Gauge<Bytes> = "zram.used_max", file: ZRAM_MM_STAT, field: "5", since: "4.2",
            pcp: "zram.mm_stat.mem.max_used",
            "Peak RAM use of zram.";
        ZRAM_SAME: Gauge<Pages> = "zram.same", file: ZRAM_MM_STAT, field: "6", since: "4.2",
            pcp: "zram.mm_stat.pages.same",
            "Same-filled pages, which use no RAM.";
        ZRAM_HUGE: Gauge<Pages> = "zram.huge", file: ZRAM_MM_STAT, field: "8", since: "4.19",
            pcp: "zram.mm_stat.pages.huge",
            "Incompressible pages, stored as they are.";
        ZRAM_DISK_SIZE: Gauge<Bytes> = "zram.disk_size", file: "/sys/block/zram*/disksize", field: "1",
            pcp: "zram.capacity",
            "Size of the device, as swap sees it.";
        ZRAM_FAILED_WRITES: Counter<Count> = "zram.failed_writes", file: "/sys/block/zram*/io_stat", field: "2", since: "4.2",
            pcp: "zram.io_stat.failed.writes",
            "Failed writes, mostly at the limit.";
    }
    Slab {
        SLAB_OBJECTS: Gauge<Count> = "slab.objects", file: SLABINFO, field: "num_objs",
            pcp: "mem.slabinfo.objects.total", node_exporter: "node_slabinfo_objects",
            "Allocated objects of the cache.";
        SLAB_OBJECTS_ACTIVE: Gauge<Count> = "slab.objects_active", file: SLABINFO, field: "active_objs",
            pcp: "mem.slabinfo.objects.active", node_exporter: "node_slabinfo_active_objects",
            "Objects of the cache that are in use.";
        SLAB_OBJECT_SIZE: Gauge<Bytes> = "slab.object_size", file: SLABINFO, field: "objsize",
            pcp: "mem.slabinfo.objects.size", node_exporter: "node_slabinfo_object_size_bytes",
            "Size of one object of the cache.";
        SLAB_PAGES: Gauge<Pages> = "slab.pages", file: SLABINFO, field: "num_slabs × pagesperslab",
            "Pages of the cache.";
    }
    Cgroup {
        CGROUP_CURRENT: Gauge<Bytes> = "cgroup.current", file: "/sys/fs/cgroup/**/memory.current", field: "1", since: "4.5",
            pcp: "cgroup.memory.current",
            "Memory charged to the cgroup and its descendants. v1: memory.usage_in_bytes.";
        CGROUP_PEAK: Gauge<Bytes> = "cgroup.peak", file: "/sys/fs/cgroup/**/memory.peak", field: "1", since: "5.19",
            "Peak memory charged to the cgroup and its descendants. v1: memory.max_usage_in_bytes.";
        CGROUP_MAX: Gauge<Limit> = "cgroup.max", file: "/sys/fs/cgroup/**/memory.max", field: "1", since: "4.5",
            pcp: "cgroup.memory.limit",
            "The hard limit of the cgroup's memory. v1: memory.limit_in_bytes.";
        CGROUP_HIGH: Gauge<Limit> = "cgroup.high", file: "/sys/fs/cgroup/**/memory.high", field: "1", since: "4.5",
            "The memory above which the cgroup is throttled; v2 only.";
        CGROUP_LOW: Gauge<Limit> = "cgroup.low", file: "/sys/fs/cgroup/**/memory.low", field: "1", since: "4.5",
            "Memory of the cgroup that reclaim takes only if no unprotected memory is left.";
        CGROUP_MIN: Gauge<Limit> = "cgroup.min", file: "/sys/fs/cgroup/**/memory.min", field: "1", since: "4.18",
            "The memory of the cgroup that reclaim never takes.";
        CGROUP_SWAP_CURRENT: Gauge<Bytes> = "cgroup.swap_current", file: "/sys/fs/cgroup/**/memory.swap.current", field: "1", since: "4.5",
            "Swap charged to the cgroup and its descendants.";
        CGROUP_SWAP_MAX: Gauge<Limit> = "cgroup.swap_max", file: "/sys/fs/cgroup/**/memory.swap.max", field: "1", since: "4.5",
            "The limit of the cgroup's swap.";
        CGROUP_MAX_WITH_SWAP: Gauge<Limit> = "cgroup.max_with_swap", file: CGROUP_STAT, field: "hierarchical_memsw_limit", since: "2.6.29",
            "The limit of the cgroup's memory and swap together, the least of it and the cgroups \
             around it; v1 only.";
        CGROUP_EVENTS_LOW: Counter<Count> = "cgroup.events_low", file: CGROUP_EVENTS, field: "low", since: "4.5",
            "Times reclaim took memory from the cgroup below memory.low.";
        CGROUP_EVENTS_HIGH: Counter<Count> = "cgroup.events_high", file: CGROUP_EVENTS, field: "high", since: "4.5",
            "Times tasks of the cgroup were throttled above memory.high.";
        CGROUP_EVENTS_MAX: Counter<Count> = "cgroup.events_max", file: CGROUP_EVENTS, field: "max", since: "4.5",
            pcp: "cgroup.memory.failcnt",
            "Times the cgroup hit its hard limit. v1: memory.failcnt.";
        CGROUP_EVENTS_OOM: Counter<Count> = "cgroup.events_oom", file: CGROUP_EVENTS, field: "oom", since: "4.5",
            "Times the cgroup was out of memory: its limit was reached and reclaim did not help.";
        CGROUP_EVENTS_OOM_KILL: Counter<Count> = "cgroup.events_oom_kill", file: CGROUP_EVENTS, field: "oom_kill", since: "4.13",
            "OOM kills in the cgroup.";
        CGROUP_OOM_KILL_DISABLE: Gauge<Count> = "cgroup.oom_kill_disable", file: CGROUP_OOM_CONTROL, field: "oom_kill_disable", since: "2.6.34",
            "Whether the kernel may not kill in the cgroup: 1 has tasks that need memory at its \
             limit sleep; v1 only.";
        CGROUP_UNDER_OOM: Gauge<Count> = "cgroup.under_oom", file: CGROUP_OOM_CONTROL, field: "under_oom", since: "2.6.34",
            "Whether tasks are out of memory at the limit of the cgroup or of one around it, for a \
             moment or asleep; v1 only.";
        CGROUP_ANON: Gauge<Bytes> = "cgroup.anon", file: CGROUP_STAT, field: "anon", since: "4.5",
            pcp: "cgroup.memory.stat.anon",
            "Anonymous memory of the cgroup. v1: total_rss.";
        CGROUP_FILE: Gauge<Bytes> = "cgroup.file", file: CGROUP_STAT, field: "file", since: "4.5",
            pcp: "cgroup.memory.stat.file",
            "Page cache of the cgroup, shared memory included. v1: total_cache.";
        CGROUP_KERNEL: Gauge<Bytes> = "cgroup.kernel", file: CGROUP_STAT, field: "kernel", since: "5.18",
            "Kernel memory of all kinds charged to the cgroup.";
        CGROUP_KERNEL_STACK: Gauge<Bytes> = "cgroup.kernel_stack", file: CGROUP_STAT, field: "kernel_stack", since: "4.6",
            pcp: "cgroup.memory.stat.kernel_stack",
            "Kernel stacks of the cgroup's threads.";
        CGROUP_PAGETABLES: Gauge<Bytes> = "cgroup.pagetables", file: CGROUP_STAT, field: "pagetables", since: "5.11",
            "Page tables of the cgroup's processes.";
        CGROUP_PERCPU: Gauge<Bytes> = "cgroup.percpu", file: CGROUP_STAT, field: "percpu", since: "5.9",
            "Per-CPU kernel memory charged to the cgroup.";
        CGROUP_SOCK: Gauge<Bytes> = "cgroup.sock", file: CGROUP_STAT, field: "sock", since: "4.5",
            pcp: "cgroup.memory.stat.sock",
            "Socket buffers of the cgroup.";
        CGROUP_SHMEM: Gauge<Bytes> = "cgroup.shmem", file: CGROUP_STAT, field: "shmem", since: "4.12",
            pcp: "cgroup.memory.stat.shmem",
            "Shared memory and tmpfs of the cgroup; a part of its page cache.";
        CGROUP_SWAPCACHED: Gauge<Bytes> = "cgroup.swapcached", file: CGROUP_STAT, field: "swapcached", since: "5.13",
            "Anonymous memory that is in RAM and in swap, too. v1: total_swapcached.";
        CGROUP_FILE_MAPPED: Gauge<Bytes> = "cgroup.file_mapped", file: CGROUP_STAT, field: "file_mapped", since: "4.5",
            pcp: "cgroup.memory.stat.file_mapped",
            "Page cache of the cgroup mapped into processes.";
        CGROUP_FILE_DIRTY: Gauge<Bytes> = "cgroup.file_dirty", file: CGROUP_STAT, field: "file_dirty", since: "4.5",
            pcp: "cgroup.memory.stat.file_dirty",
            "Page cache of the cgroup that waits to be written.";
        CGROUP_FILE_WRITEBACK: Gauge<Bytes> = "cgroup.file_writeback", file: CGROUP_STAT, field: "file_writeback", since: "4.5",
            pcp: "cgroup.memory.stat.file_writeback",
            "Page cache of the cgroup being written now.";
        CGROUP_INACTIVE_ANON: Gauge<Bytes> = "cgroup.inactive_anon", file: CGROUP_STAT, field: "inactive_anon", since: "4.5",
            pcp: "cgroup.memory.stat.inactive_anon",
            "Anonymous memory of the cgroup that is reclaimed first.";
        CGROUP_ACTIVE_ANON: Gauge<Bytes> = "cgroup.active_anon", file: CGROUP_STAT, field: "active_anon", since: "4.5",
            pcp: "cgroup.memory.stat.active_anon",
            "Recently used anonymous memory of the cgroup.";
        CGROUP_INACTIVE_FILE: Gauge<Bytes> = "cgroup.inactive_file", file: CGROUP_STAT, field: "inactive_file", since: "4.5",
            pcp: "cgroup.memory.stat.inactive_file",
            "File cache of the cgroup that is reclaimed first.";
        CGROUP_ACTIVE_FILE: Gauge<Bytes> = "cgroup.active_file", file: CGROUP_STAT, field: "active_file", since: "4.5",
            pcp: "cgroup.memory.stat.active_file",
            "Recently used file cache of the cgroup.";
        CGROUP_UNEVICTABLE: Gauge<Bytes> = "cgroup.unevictable", file: CGROUP_STAT, field: "unevictable", since: "4.5",
            pcp: "cgroup.memory.stat.unevictable",
            "Memory of the cgroup that reclaim cannot take.";
        CGROUP_SLAB_RECLAIMABLE: Gauge<Bytes> = "cgroup.slab_reclaimable", file: CGROUP_STAT, field: "slab_reclaimable", since: "4.6",
            pcp: "cgroup.memory.stat.slab_reclaimable",
            "Kernel objects of the cgroup that can be reclaimed.";
        CGROUP_SLAB_UNRECLAIMABLE: Gauge<Bytes> = "cgroup.slab_unreclaimable", file: CGROUP_STAT, field: "slab_unreclaimable", since: "4.6",
            pcp: "cgroup.memory.stat.slab_unreclaimable",
            "Kernel objects of the cgroup that cannot be reclaimed.";
        CGROUP_ANON_THP: Gauge<Bytes> = "cgroup.anon_thp", file: CGROUP_STAT, field: "anon_thp", since: "5.1",
            pcp: "cgroup.memory.stat.anon_thp",
            "Anonymous memory of the cgroup in huge pages.";
        CGROUP_REFAULT_ANON: Counter<Pages> = "cgroup.refault_anon", file: CGROUP_STAT, field: "workingset_refault_anon", since: "5.9",
            "Refaulted anonymous pages of the cgroup: swapped in again after eviction.";
        CGROUP_REFAULT_FILE: Counter<Pages> = "cgroup.refault_file", file: CGROUP_STAT, field: "workingset_refault_file", since: "5.9",
            "Refaulted file pages of the cgroup: read again after eviction.";
        CGROUP_ACTIVATE_FILE: Counter<Pages> = "cgroup.activate_file", file: CGROUP_STAT, field: "workingset_activate_file", since: "5.9",
            "Refaulted file pages of the cgroup that belong to its working set and were made \
             active at once.";
        CGROUP_SHADOW_NODES_DROPPED: Counter<Count> = "cgroup.nodereclaim", file: CGROUP_STAT, field: "workingset_nodereclaim", since: "4.12",
            pcp: "cgroup.memory.stat.workingset.nodereclaim",
            "Shadow nodes of the cgroup freed: the record of its evicted pages. Where it rises, \
             its refaults are undercounted.";
        CGROUP_PGSCAN: Counter<Pages> = "cgroup.pgscan", file: CGROUP_STAT, field: "pgscan", since: "4.13",
            pcp: "cgroup.memory.stat.pgscan",
            "Pages of the cgroup scanned by reclaim.";
        CGROUP_PGSTEAL: Counter<Pages> = "cgroup.pgsteal", file: CGROUP_STAT, field: "pgsteal", since: "4.13",
            pcp: "cgroup.memory.stat.pgsteal",
            "Pages of the cgroup reclaimed.";
        CGROUP_PGFAULT: Counter<Count> = "cgroup.pgfault", file: CGROUP_STAT, field: "pgfault", since: "4.5",
            pcp: "cgroup.memory.stat.pgfault",
            "Page faults of the cgroup, of all kinds.";
        CGROUP_PGMAJFAULT: Counter<Count> = "cgroup.pgmajfault", file: CGROUP_STAT, field: "pgmajfault", since: "4.5",
            pcp: "cgroup.memory.stat.pgmajfault",
            "Page faults of the cgroup that waited for a disk.";
        CGROUP_PSI_MEMORY_SOME: Counter<Micros> = "cgroup.psi.memory.some", file: CGROUP_MEMORY_PRESSURE, field: "some total", since: "4.20",
            pcp: "cgroup.pressure.memory.some.total",
            "Time for which at least one task of the cgroup waited for memory.";
        CGROUP_PSI_MEMORY_FULL: Counter<Micros> = "cgroup.psi.memory.full", file: CGROUP_MEMORY_PRESSURE, field: "full total", since: "4.20",
            pcp: "cgroup.pressure.memory.full.total",
            "Time for which all tasks of the cgroup waited for memory.";
        CGROUP_PSI_MEMORY_SOME_AVG10: Gauge<Micros> = "cgroup.psi.memory.some.avg10", file: CGROUP_MEMORY_PRESSURE, field: "some avg10", scale: 10000, since: "4.20",
            "Time per second for which at least one task of the cgroup waited for memory, averaged \
             by the kernel over the last 10 s.";
        CGROUP_PSI_MEMORY_SOME_AVG60: Gauge<Micros> = "cgroup.psi.memory.some.avg60", file: CGROUP_MEMORY_PRESSURE, field: "some avg60", scale: 10000, since: "4.20",
            "Time per second for which at least one task of the cgroup waited for memory, averaged \
             by the kernel over the last minute.";
        CGROUP_PSI_MEMORY_SOME_AVG300: Gauge<Micros> = "cgroup.psi.memory.some.avg300", file: CGROUP_MEMORY_PRESSURE, field: "some avg300", scale: 10000, since: "4.20",
            "Time per second for which at least one task of the cgroup waited for memory, averaged \
             by the kernel over the last 5 minutes.";
        CGROUP_PSI_MEMORY_FULL_AVG10: Gauge<Micros> = "cgroup.psi.memory.full.avg10", file: CGROUP_MEMORY_PRESSURE, field: "full avg10", scale: 10000, since: "4.20",
            "Time per second for which all tasks of the cgroup waited for memory, averaged by the \
             kernel over the last 10 s.";
        CGROUP_PSI_MEMORY_FULL_AVG60: Gauge<Micros> = "cgroup.psi.memory.full.avg60", file: CGROUP_MEMORY_PRESSURE, field: "full avg60", scale: 10000, since: "4.20",
            "Time per second for which all tasks of the cgroup waited for memory, averaged by the \
             kernel over the last minute.";
        CGROUP_PSI_MEMORY_FULL_AVG300: Gauge<Micros> = "cgroup.psi.memory.full.avg300", file: CGROUP_MEMORY_PRESSURE, field: "full avg300", scale: 10000, since: "4.20",
            "Time per second for which all tasks of the cgroup waited for memory, averaged by the \
             kernel over the last 5 minutes.";
        CGROUP_PSI_IO_SOME: Counter<Micros> = "cgroup.psi.io.some", file: CGROUP_IO_PRESSURE, field: "some total", since: "4.20",
            pcp: "cgroup.pressure.io.some.total",
            "Time for which at least one task of the cgroup waited for I/O.";
        CGROUP_PSI_IO_FULL: Counter<Micros> = "cgroup.psi.io.full", file: CGROUP_IO_PRESSURE, field: "full total", since: "4.20",
            pcp: "cgroup.pressure.io.full.total",
            "Time for which all tasks of the cgroup waited for I/O.";
    }
    Process {
        PROC_PARENT: Gauge<Count> = "proc.parent", file: PROCESS_STAT, field: "4 ppid", pcp: "proc.psinfo.ppid",
            "PID of the parent process.";
        PROC_MINFLT: Counter<Count> = "proc.minflt", file: PROCESS_STAT, field: "10 minflt", pcp: "proc.psinfo.minflt",
            "Page faults of the process that needed no I/O.";
        PROC_MAJFLT: Counter<Count> = "proc.majflt", file: PROCESS_STAT, field: "12 majflt", pcp: "proc.psinfo.maj_flt",
            "Page faults of the process that waited for a disk.";
        PROC_UTIME: Counter<Ticks> = "proc.utime", file: PROCESS_STAT, field: "14 utime", pcp: "proc.psinfo.utime",
            "CPU time of the process in user code.";
        PROC_STIME: Counter<Ticks> = "proc.stime", file: PROCESS_STAT, field: "15 stime", pcp: "proc.psinfo.stime",
            "CPU time of the process in the kernel.";
        PROC_CPU: Gauge<Micros> = "proc.cpu", file: DERIVED, field: "utime + stime of an interval",
            "CPU time per second, as top prints it of the interval before and ps of the whole life \
             (%CPU); memtide itself reads proc.utime and proc.stime.";
        PROC_THREADS: Gauge<Count> = "proc.threads", file: PROCESS_STAT, field: "20 num_threads",
            pcp: "proc.psinfo.threads",
            "Threads of the process.";
        PROC_SIZE: Gauge<Bytes> = "proc.size", file: PROCESS_STAT, field: "23 vsize", pcp: "proc.psinfo.vsize",
            "Address space of the process.";
        PROC_RSS: Gauge<Pages> = "proc.rss", file: PROCESS_STAT, field: "24 rss", pcp: "proc.psinfo.rss",
            "Resident pages of the process, shared ones counted in full.";
        PROC_BLKIO_DELAY: Counter<Ticks> = "proc.blkio_delay", file: PROCESS_STAT, field: "42 delayacct_blkio_ticks",
            pcp: "proc.psinfo.delayacct_blkio_time",
            "Time for which the process waited for block I/O and swap-in.";
        PROC_RSS_ANON: Gauge<Bytes> = "proc.rss_anon", file: PROCESS_STATUS, field: "RssAnon", scale: 1024, since: "4.5",
            "Resident anonymous memory of the process.";
        PROC_RSS_FILE: Gauge<Bytes> = "proc.rss_file", file: PROCESS_STATUS, field: "RssFile", scale: 1024, since: "4.5",
            "Resident file mappings of the process.";
        PROC_RSS_SHMEM: Gauge<Bytes> = "proc.rss_shmem", file: PROCESS_STATUS, field: "RssShmem", scale: 1024, since: "4.5",
            "Resident shared memory of the process.";
        PROC_SWAP: Gauge<Bytes> = "proc.swap", file: PROCESS_STATUS, field: "VmSwap", scale: 1024,
            pcp: "proc.memory.vmswap",
            "Anonymous memory of the process in swap.";
        PROC_PAGE_TABLES: Gauge<Bytes> = "proc.page_tables", file: PROCESS_STATUS, field: "VmPTE", scale: 1024,
            pcp: "proc.memory.vmpte",
            "Page tables of the process.";
        PROC_RSS_PEAK: Gauge<Bytes> = "proc.rss_peak", file: PROCESS_STATUS, field: "VmHWM", scale: 1024,
            pcp: "proc.memory.vmhwm",
            "Peak resident memory of the process.";
        PROC_DATA: Gauge<Bytes> = "proc.data", file: PROCESS_STATUS, field: "VmData", scale: 1024,
            pcp: "proc.memory.vmdata",
            "Private writable address space of the process.";
        PROC_LOCKED: Gauge<Bytes> = "proc.locked", file: PROCESS_STATUS, field: "VmLck", scale: 1024,
            pcp: "proc.memory.vmlock",
            "Memory that the process locked.";
        PROC_PINNED: Gauge<Bytes> = "proc.pinned", file: PROCESS_STATUS, field: "VmPin", scale: 1024,
            pcp: "proc.memory.vmpin",
            "Memory of the process pinned for device access.";
        PROC_HUGETLB: Gauge<Bytes> = "proc.hugetlb", file: PROCESS_STATUS, field: "HugetlbPages", scale: 1024, since: "4.4",
            "Memory of the process in hugetlb pages; not in RSS.";
        PROC_PSS: Gauge<Bytes> = "proc.pss", file: SMAPS_ROLLUP, field: "Pss", scale: 1024, since: "4.14",
            pcp: "proc.smaps.pss",
            "Resident memory of the process, shared pages divided among their sharers.";
        PROC_PSS_ANON: Gauge<Bytes> = "proc.pss_anon", file: SMAPS_ROLLUP, field: "Pss_Anon", scale: 1024, since: "5.4",
            pcp: "proc.smaps.pss_anon",
            "The anonymous part of the process's PSS.";
        PROC_PSS_FILE: Gauge<Bytes> = "proc.pss_file", file: SMAPS_ROLLUP, field: "Pss_File", scale: 1024, since: "5.4",
            pcp: "proc.smaps.pss_file",
            "The file part of the process's PSS.";
        PROC_PSS_SHMEM: Gauge<Bytes> = "proc.pss_shmem", file: SMAPS_ROLLUP, field: "Pss_Shmem", scale: 1024, since: "5.4",
            pcp: "proc.smaps.pss_shmem",
            "The shared-memory part of the process's PSS.";
        PROC_PRIVATE_DIRTY: Gauge<Bytes> = "proc.private_dirty", file: SMAPS_ROLLUP, field: "Private_Dirty", scale: 1024, since: "4.14",
            pcp: "proc.smaps.private_dirty",
            "Pages of this process alone, written to.";
        PROC_PRIVATE_CLEAN: Gauge<Bytes> = "proc.private_clean", file: SMAPS_ROLLUP, field: "Private_Clean", scale: 1024, since: "4.14",
            pcp: "proc.smaps.private_clean",
            "Pages of this process alone, not written to.";
        PROC_SHARED_DIRTY: Gauge<Bytes> = "proc.shared_dirty", file: SMAPS_ROLLUP, field: "Shared_Dirty", scale: 1024, since: "4.14",
            pcp: "proc.smaps.shared_dirty",
            "Written pages shared with another process, as after a fork.";
        PROC_SWAP_PSS: Gauge<Bytes> = "proc.swap_pss", file: SMAPS_ROLLUP, field: "SwapPss", scale: 1024, since: "4.14",
            pcp: "proc.smaps.swappss",
            "Memory of the process in swap, shared pages divided among their sharers.";
        PROC_ANON_HUGE: Gauge<Bytes> = "proc.anon_huge", file: SMAPS_ROLLUP, field: "AnonHugePages", scale: 1024, since: "4.14",
            pcp: "proc.smaps.anonhugepages",
            "Anonymous memory of the process in huge pages.";
        PROC_LAZY_FREE: Gauge<Bytes> = "proc.lazy_free", file: SMAPS_ROLLUP, field: "LazyFree", scale: 1024, since: "4.14",
            pcp: "proc.smaps.lazyfree",
            "Memory given back with MADV_FREE that was not reclaimed yet.";
        PROC_READ_BYTES: Counter<Bytes> = "proc.read_bytes", file: PROCESS_IO, field: "read_bytes",
            pcp: "proc.io.read_bytes",
            "Bytes read from storage for the process.";
        PROC_WRITE_BYTES: Counter<Bytes> = "proc.write_bytes", file: PROCESS_IO, field: "write_bytes",
            pcp: "proc.io.write_bytes",
            "Bytes that the process caused to be written to storage.";
        PROC_CANCELLED_WRITE_BYTES: Counter<Bytes> = "proc.cancelled_write_bytes", file: PROCESS_IO, field: "cancelled_write_bytes",
            pcp: "proc.io.cancelled_write_bytes",
            "Bytes written, then deleted before they reached storage.";
        PROC_RCHAR: Counter<Bytes> = "proc.rchar", file: PROCESS_IO, field: "rchar", pcp: "proc.io.rchar",
            "Bytes requested by read calls.";
        PROC_WCHAR: Counter<Bytes> = "proc.wchar", file: PROCESS_IO, field: "wchar", pcp: "proc.io.wchar",
            "Bytes passed to write calls.";
        PROC_OOM_ADJ: Gauge<Count> = "proc.oom_adj", file: "/proc/PID/oom_score_adj", field: "1",
            "oom_score_adj plus 1000: 0 is never killed, 1000 is neutral, 2000 goes first.";
        PROC_HEAP_SYSTEM: Gauge<Bytes> = "proc.heap_system", file: HEAP, field: "system",
            "Memory that malloc of the process has taken from the kernel.";
        PROC_HEAP_LIVE: Gauge<Bytes> = "proc.heap_live", file: HEAP, field: "live",
            "Memory in the malloc heap that the program has allocated and not freed.";
        PROC_HEAP_CACHED: Gauge<Bytes> = "proc.heap_cached", file: HEAP, field: "cached",
            "Freed memory in the malloc heap that the caches of threads keep.";
        PROC_HEAP_FREE: Gauge<Bytes> = "proc.heap_free", file: HEAP, field: "free",
            "Free chunks of the malloc heap, fast bins and tops included.";
        PROC_HEAP_RESIDENT: Gauge<Bytes> = "proc.heap_resident", file: HEAP, field: "resident",
            "Resident memory of the malloc heap.";
        PROC_HEAP_FREE_RESIDENT: Gauge<Bytes> = "proc.heap_free_resident", file: HEAP, field: "free_resident",
            "Free memory of the malloc heap that is still resident, the caches of threads \
             included.";
        PROC_HEAP_RETURNABLE: Gauge<Bytes> = "proc.heap_returnable", file: HEAP, field: "returnable",
            "Resident memory that malloc_trim would return to the kernel.";
        PROC_HEAP_UNKNOWN: Gauge<Bytes> = "proc.heap_unknown", file: HEAP, field: "unknown",
            "By how much the heap's figures may be wrong: what could not be read or understood, or \
             changed meanwhile.";
        PROC_HEAP_ARENAS: Gauge<Count> = "proc.heap_arenas", file: HEAP, field: "arenas",
            "Arenas of malloc: glibc gives threads their own.";
        PROC_RUNTIME_HEAP: Gauge<Bytes> = "proc.runtime_heap", file: HEAP, field: "runtime",
            "Resident memory of heaps that a runtime or another allocator than glibc's manages: \
             Java's, Go's, V8's, CPython's, Ruby's pages, jemalloc's.";
    }
    Service {
        SERVICE_PROCESSES: Gauge<Count> = "service.processes", file: DERIVED, field: "number of processes",
            "Processes of the service.";
        SERVICE_RSS: Gauge<Pages> = "service.rss", file: DERIVED, field: "Σ processes' rss",
            "Resident memory of the service's processes; shared pages count for each of them.";
        SERVICE_RSS_ANON: Gauge<Bytes> = "service.rss_anon", file: DERIVED, field: "Σ processes' RssAnon",
            "Resident anonymous memory of the service's processes.";
        SERVICE_RSS_FILE: Gauge<Bytes> = "service.rss_file", file: DERIVED, field: "Σ processes' RssFile",
            "Resident file pages mapped by the service's processes; shared pages count for each of \
             them.";
        SERVICE_RSS_SHMEM: Gauge<Bytes> = "service.rss_shmem", file: DERIVED, field: "Σ processes' RssShmem",
            "Resident shared memory of the service's processes; shared pages count for each of \
             them.";
        SERVICE_SWAP: Gauge<Bytes> = "service.swap", file: DERIVED, field: "Σ processes' VmSwap",
            "Anonymous memory of the service's processes in swap.";
        SERVICE_PSS: Gauge<Bytes> = "service.pss", file: DERIVED, field: "Σ processes' last known Pss",
            "PSS of the service's processes where it was read, each as old as its last reading.";
        SERVICE_CPU: Counter<Ticks> = "service.cpu", file: DERIVED, field: "Σ increases of processes' utime + stime",
            "CPU time of the service's processes since recording began, those that have ended \
             included.";
        SERVICE_MAJFLT: Counter<Count> = "service.majflt", file: DERIVED, field: "Σ increases of processes' majflt",
            "Page faults of the service's processes that waited for a disk, since recording began.";
        SERVICE_READ_BYTES: Counter<Bytes> = "service.read_bytes", file: DERIVED, field: "Σ increases of processes' read_bytes",
            "Bytes read from storage for the service's processes, since recording began.";
        SERVICE_WRITE_BYTES: Counter<Bytes> = "service.write_bytes", file: DERIVED, field: "Σ increases of processes' write_bytes",
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
