//! The catalogue: every signal that memtide knows, with its kind, unit, source, meaning and names elsewhere.
//!
//! It is the one list. A signal is spelled as text nowhere else: Rust code names the constant, whose type carries kind
//! and unit, and parsers find a field's signal through [`field_of`]. `memtide signals` and `docs/signals.md` print it.

use std::marker::PhantomData;

use units::{Bytes, Count, Limit, Micros, Millis, Pages, Quantity, Ticks, Unit};

/// What a signal is about; a sample has one row for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// The whole machine.
    Host,
    /// A NUMA node; keyed by its number.
    Node,
    /// A memory zone; keyed `NODE/NAME`, for example `0/Normal`.
    Zone,
    /// A block device; keyed by its kernel name.
    Disk,
    /// A swap area; keyed by its path.
    SwapArea,
    /// A zram device; keyed by its kernel name.
    Zram,
    /// A slab cache; keyed by its name.
    Slab,
    /// A control group; keyed by its path below the mount, `/` for the mount itself.
    Cgroup,
    /// A process; keyed `PID@START`, START in clock ticks since boot.
    Process,
}

impl Entity {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Host,
        Self::Node,
        Self::Zone,
        Self::Disk,
        Self::SwapArea,
        Self::Zram,
        Self::Slab,
        Self::Cgroup,
        Self::Process,
    ];

    /// Its name in lists: `host`, `swap area`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Node => "node",
            Self::Zone => "zone",
            Self::Disk => "disk",
            Self::SwapArea => "swap area",
            Self::Zram => "zram",
            Self::Slab => "slab cache",
            Self::Cgroup => "cgroup",
            Self::Process => "process",
        }
    }
}

/// A level: may rise and fall.
#[derive(Debug, Clone, Copy)]
pub struct Gauge<U>(PhantomData<U>);

/// A total since boot (or since the entity began): only ever rises, so only its rate says anything.
#[derive(Debug, Clone, Copy)]
pub struct Counter<U>(PhantomData<U>);

/// Gauge or counter, and of what.
pub trait Kind {
    /// The unit of a reading.
    type Unit: Unit;
    /// Whether it is a counter.
    const IS_COUNTER: bool;
}

impl<U: Unit> Kind for Gauge<U> {
    type Unit = U;
    const IS_COUNTER: bool = false;
}

impl<U: Unit> Kind for Counter<U> {
    type Unit = U;
    const IS_COUNTER: bool = true;
}

/// A signal's place in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalId(u16);

impl SignalId {
    /// The catalogue's entry.
    pub fn def(self) -> &'static SignalDef {
        &ALL[usize::from(self.0)]
    }
}

/// An entry of the catalogue whose type knows kind and unit.
#[derive(Debug)]
pub struct Signal<K> {
    id: SignalId,
    kind: PhantomData<K>,
}

impl<K> Clone for Signal<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Signal<K> {}

impl<K> Signal<K> {
    const fn new(id: u16) -> Self {
        Self {
            id: SignalId(id),
            kind: PhantomData,
        }
    }

    /// Its place in the catalogue.
    pub const fn id(self) -> SignalId {
        self.id
    }

    /// The catalogue's entry.
    pub fn def(self) -> &'static SignalDef {
        self.id.def()
    }
}

/// Any signal, where kind and unit do not matter: in evidence and in lists.
pub trait AnySignal: Copy {
    /// The catalogue's entry.
    fn definition(self) -> &'static SignalDef;
}

impl<K> AnySignal for Signal<K> {
    fn definition(self) -> &'static SignalDef {
        self.def()
    }
}

/// What the catalogue says of a signal.
#[derive(Debug)]
pub struct SignalDef {
    /// Dotted name: `vm.pswpin`.
    pub name: &'static str,
    /// Whether it only ever rises.
    pub is_counter: bool,
    /// Unit of a stored reading: `bytes`, `pages`, `count`, `us`, `ticks`.
    pub unit: &'static str,
    /// What it is about.
    pub entity: Entity,
    /// The kernel file, or [`DERIVED`].
    pub file: &'static str,
    /// The field in it: a name, a column, or the formula of a derived signal.
    pub field: &'static str,
    /// How many of the stored unit one of the file's unit is: 1024 for "kB", 512 for sectors, else 1.
    pub scale: u64,
    /// Kernel version that brought it; empty where all kernels in use have it.
    pub since: &'static str,
    /// One sentence.
    pub meaning: &'static str,
    /// Column of `sar`; empty where it has none.
    pub sar: &'static str,
    pcp: &'static str,
    node_exporter: &'static str,
}

impl SignalDef {
    /// Its place in the catalogue.
    pub fn id(&self) -> Option<SignalId> {
        by_name(self.name).map(|(id, _)| id)
    }

    /// `gauge` or `counter`.
    pub const fn kind(&self) -> &'static str {
        if self.is_counter { "counter" } else { "gauge" }
    }

    /// The metric of Performance Co-Pilot that holds it.
    pub fn pcp(&self) -> Option<String> {
        match self.pcp {
            "" => None,
            "=" if self.file == VMSTAT => {
                let field = self.field.strip_suffix("_*");
                Some(format!(
                    "mem.vmstat.{}",
                    field.map_or_else(|| self.field.to_owned(), |stem| format!("{stem}_total"))
                ))
            }
            "=" => None,
            name => Some(name.to_owned()),
        }
    }

    /// The metric of node_exporter that holds it. Its vmstat collector exports few fields by default.
    pub fn node_exporter(&self) -> Option<String> {
        match self.node_exporter {
            "" => None,
            "=" if self.file == VMSTAT => {
                (!self.field.ends_with('*')).then(|| format!("node_vmstat_{}", self.field))
            }
            "=" if self.file == MEMINFO => {
                let field = self.field.replace('(', "_").replace(')', "");
                let suffix = if self.unit == Count::NAME {
                    ""
                } else {
                    "_bytes"
                };
                Some(format!("node_memory_{field}{suffix}"))
            }
            "=" => None,
            name => Some(name.to_owned()),
        }
    }
}

/// `/proc/meminfo`; "kB" there are KiB.
pub const MEMINFO: &str = "/proc/meminfo";
/// `/proc/vmstat`; page gauges and event counters.
pub const VMSTAT: &str = "/proc/vmstat";
/// `/proc/zoneinfo`.
pub const ZONEINFO: &str = "/proc/zoneinfo";
/// `/proc/buddyinfo`.
pub const BUDDYINFO: &str = "/proc/buddyinfo";
/// `/proc/stat`.
pub const STAT: &str = "/proc/stat";
/// `/proc/diskstats`; a sector there is always 512 bytes.
pub const DISKSTATS: &str = "/proc/diskstats";
/// `/proc/swaps`.
pub const SWAPS: &str = "/proc/swaps";
/// `/proc/slabinfo`; root only.
pub const SLABINFO: &str = "/proc/slabinfo";
/// `/proc/sys/fs/dentry-state`.
pub const DENTRY_STATE: &str = "/proc/sys/fs/dentry-state";
/// `/proc/sys/fs/inode-nr`.
pub const INODE_NR: &str = "/proc/sys/fs/inode-nr";
/// `/proc/sys/fs/file-nr`.
pub const FILE_NR: &str = "/proc/sys/fs/file-nr";
/// `/proc/net/sockstat`.
pub const SOCKSTAT: &str = "/proc/net/sockstat";
/// Not read but computed from other signals; the field is the formula.
pub const DERIVED: &str = "computed";

/// Declares the catalogue: `CONST: Kind<Unit> = name, file, field, scale, since, sar, pcp, node_exporter, meaning;`.
/// An empty name elsewhere is none; `=` follows the other tool's own rule from the field's name.
macro_rules! signals {
    ($($entity:ident { $(
        $const:ident: $kind:ty = $name:literal, $file:expr, $field:literal, $scale:literal, $since:literal,
        $sar:literal, $pcp:literal, $node:literal, $meaning:literal;
    )* })*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Index { $($($const,)*)* }

        $($(
            #[doc = $meaning]
            pub const $const: Signal<$kind> = Signal::new(Index::$const as u16);
        )*)*

        /// Every signal, in the order of the catalogue.
        pub const ALL: &[SignalDef] = &[$($(SignalDef {
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
        MEM_TOTAL: Gauge<Bytes> = "mem.total", MEMINFO, "MemTotal", 1024, "", "", "mem.physmem", "=",
            "RAM that the kernel manages; memory reserved at boot lies outside.";
        MEM_FREE: Gauge<Bytes> = "mem.free", MEMINFO, "MemFree", 1024, "", "kbmemfree", "mem.util.free", "=",
            "RAM that holds nothing; the allocator's float, not what can be used.";
        MEM_AVAILABLE: Gauge<Bytes> = "mem.available", MEMINFO, "MemAvailable", 1024, "3.14", "kbavail", "mem.util.available", "=",
            "The kernel's estimate of what can be allocated without swapping; contains page cache that the workload may need.";
        MEM_BUFFERS: Gauge<Bytes> = "mem.buffers", MEMINFO, "Buffers", 1024, "", "kbbuffers", "mem.util.bufmem", "=",
            "Page cache of block devices: file-system metadata.";
        MEM_CACHED: Gauge<Bytes> = "mem.cached", MEMINFO, "Cached", 1024, "", "kbcached", "mem.util.cached", "=",
            "Page cache of files, including shared memory and tmpfs, which cannot be dropped.";
        MEM_SWAP_CACHED: Gauge<Bytes> = "mem.swapcached", MEMINFO, "SwapCached", 1024, "", "kbswpcad", "mem.util.swapCached", "=",
            "Pages that are in RAM and in swap at once.";
        MEM_ACTIVE: Gauge<Bytes> = "mem.active", MEMINFO, "Active", 1024, "", "kbactive", "mem.util.active", "=",
            "Recently used pages, anonymous and file.";
        MEM_INACTIVE: Gauge<Bytes> = "mem.inactive", MEMINFO, "Inactive", 1024, "", "kbinact", "mem.util.inactive", "=",
            "Pages that reclaim takes first, anonymous and file.";
        MEM_ACTIVE_ANON: Gauge<Bytes> = "mem.active_anon", MEMINFO, "Active(anon)", 1024, "2.6.28", "", "mem.util.active_anon", "=",
            "Recently used anonymous and shared-memory pages.";
        MEM_ACTIVE_FILE: Gauge<Bytes> = "mem.active_file", MEMINFO, "Active(file)", 1024, "2.6.28", "", "mem.util.active_file", "=",
            "Recently used file pages.";
        MEM_INACTIVE_ANON: Gauge<Bytes> = "mem.inactive_anon", MEMINFO, "Inactive(anon)", 1024, "2.6.28", "", "mem.util.inactive_anon", "=",
            "First to be reclaimed anonymous and shared-memory pages.";
        MEM_INACTIVE_FILE: Gauge<Bytes> = "mem.inactive_file", MEMINFO, "Inactive(file)", 1024, "2.6.28", "", "mem.util.inactive_file", "=",
            "First to be reclaimed file pages.";
        MEM_UNEVICTABLE: Gauge<Bytes> = "mem.unevictable", MEMINFO, "Unevictable", 1024, "2.6.28", "", "mem.util.unevictable", "=",
            "Pages that reclaim cannot take: mlocked, ramfs, locked shared memory.";
        MEM_MLOCKED: Gauge<Bytes> = "mem.mlocked", MEMINFO, "Mlocked", 1024, "2.6.28", "", "mem.util.mlocked", "=",
            "Pages locked by mlock; a part of Unevictable.";
        SWAP_TOTAL: Gauge<Bytes> = "swap.total", MEMINFO, "SwapTotal", 1024, "", "", "mem.util.swapTotal", "=",
            "Size of all swap areas.";
        SWAP_FREE: Gauge<Bytes> = "swap.free", MEMINFO, "SwapFree", 1024, "", "kbswpfree", "mem.util.swapFree", "=",
            "Swap that holds nothing.";
        MEM_ZSWAP: Gauge<Bytes> = "mem.zswap_pool", MEMINFO, "Zswap", 1024, "5.19", "", "mem.util.zswap", "=",
            "RAM taken by zswap's compressed pool.";
        MEM_ZSWAPPED: Gauge<Bytes> = "mem.zswapped", MEMINFO, "Zswapped", 1024, "5.19", "", "mem.util.zswapped", "=",
            "What the zswap pool holds, before compression.";
        MEM_DIRTY: Gauge<Bytes> = "mem.dirty", MEMINFO, "Dirty", 1024, "", "kbdirty", "mem.util.dirty", "=",
            "Page cache that waits to be written.";
        MEM_WRITEBACK: Gauge<Bytes> = "mem.writeback", MEMINFO, "Writeback", 1024, "", "", "mem.util.writeback", "=",
            "Pages being written now; includes pages on their way to swap.";
        MEM_ANON: Gauge<Bytes> = "mem.anon", MEMINFO, "AnonPages", 1024, "2.6.18", "kbanonpg", "mem.util.anonpages", "=",
            "Anonymous memory of processes: heap, stack; huge pages included, shared memory not.";
        MEM_MAPPED: Gauge<Bytes> = "mem.mapped", MEMINFO, "Mapped", 1024, "", "", "mem.util.mapped", "=",
            "Page cache and shared memory mapped into processes; a part of Cached.";
        MEM_SHMEM: Gauge<Bytes> = "mem.shmem", MEMINFO, "Shmem", 1024, "2.6.32", "kbshmem", "mem.util.shmem", "=",
            "Shared memory, tmpfs, memfd; a part of Cached that only swap can relieve.";
        MEM_KRECLAIMABLE: Gauge<Bytes> = "mem.kreclaimable", MEMINFO, "KReclaimable", 1024, "4.20", "", "mem.util.kreclaimable", "=",
            "Kernel memory that reclaim can take: reclaimable slab and more.";
        MEM_SLAB: Gauge<Bytes> = "mem.slab", MEMINFO, "Slab", 1024, "", "kbslab", "mem.util.slab", "=",
            "Kernel objects; the sum of the next two.";
        MEM_SLAB_RECLAIMABLE: Gauge<Bytes> = "mem.slab_reclaimable", MEMINFO, "SReclaimable", 1024, "2.6.19", "", "mem.util.slabReclaimable", "=",
            "Kernel object caches that can shrink: dentries, inodes.";
        MEM_SLAB_UNRECLAIMABLE: Gauge<Bytes> = "mem.slab_unreclaimable", MEMINFO, "SUnreclaim", 1024, "2.6.19", "", "mem.util.slabUnreclaimable", "=",
            "Kernel objects that cannot be reclaimed.";
        MEM_KERNEL_STACK: Gauge<Bytes> = "mem.kernel_stack", MEMINFO, "KernelStack", 1024, "2.6.32", "kbkstack", "mem.util.kernelStack", "=",
            "Kernel stacks of threads.";
        MEM_SHADOW_CALL_STACK: Gauge<Bytes> = "mem.shadow_call_stack", MEMINFO, "ShadowCallStack", 1024, "5.8", "", "", "=",
            "Shadow call stacks of threads (arm64).";
        MEM_PAGE_TABLES: Gauge<Bytes> = "mem.page_tables", MEMINFO, "PageTables", 1024, "", "kbpgtbl", "mem.util.pageTables", "=",
            "Page tables of processes.";
        MEM_SEC_PAGE_TABLES: Gauge<Bytes> = "mem.sec_page_tables", MEMINFO, "SecPageTables", 1024, "6.1", "", "", "=",
            "Page tables of KVM and IOMMU.";
        MEM_BOUNCE: Gauge<Bytes> = "mem.bounce", MEMINFO, "Bounce", 1024, "", "", "mem.util.bounce", "=",
            "Bounce buffers of devices that cannot reach all RAM.";
        MEM_NFS_UNSTABLE: Gauge<Bytes> = "mem.nfs_unstable", MEMINFO, "NFS_Unstable", 1024, "", "", "mem.util.NFS_Unstable", "=",
            "NFS pages sent but not committed; always 0 since 5.8.";
        MEM_WRITEBACK_TMP: Gauge<Bytes> = "mem.writeback_tmp", MEMINFO, "WritebackTmp", 1024, "2.6.26", "", "", "=",
            "Temporary copies that FUSE writes back.";
        COMMIT_LIMIT: Gauge<Bytes> = "mem.commit_limit", MEMINFO, "CommitLimit", 1024, "", "", "mem.util.commitLimit", "=",
            "What may be promised to processes when overcommit is off.";
        COMMITTED_AS: Gauge<Bytes> = "mem.committed_as", MEMINFO, "Committed_AS", 1024, "", "kbcommit", "mem.util.committed_AS", "=",
            "What has been promised to processes.";
        MEM_VMALLOC_USED: Gauge<Bytes> = "mem.vmalloc_used", MEMINFO, "VmallocUsed", 1024, "5.3", "kbvmused", "mem.util.vmallocUsed", "=",
            "RAM behind vmalloc, kernel stacks included; 0 from 4.4 to 5.2.";
        MEM_PERCPU: Gauge<Bytes> = "mem.percpu", MEMINFO, "Percpu", 1024, "4.20", "", "mem.util.percpu", "=",
            "The kernel's per-CPU allocator.";
        MEM_HW_CORRUPTED: Gauge<Bytes> = "mem.hw_corrupted", MEMINFO, "HardwareCorrupted", 1024, "2.6.32", "", "mem.util.corrupthardware", "=",
            "RAM taken out of use after memory errors.";
        MEM_ANON_HUGE: Gauge<Bytes> = "mem.anon_thp", MEMINFO, "AnonHugePages", 1024, "2.6.38", "", "mem.util.anonhugepages", "=",
            "Anonymous memory in transparent huge pages; a part of AnonPages.";
        MEM_SHMEM_HUGE: Gauge<Bytes> = "mem.shmem_thp", MEMINFO, "ShmemHugePages", 1024, "4.8", "", "", "=",
            "Shared memory in huge pages; a part of Shmem.";
        MEM_FILE_HUGE: Gauge<Bytes> = "mem.file_thp", MEMINFO, "FileHugePages", 1024, "5.4", "", "", "=",
            "Page cache in huge pages; a part of Cached.";
        MEM_CMA_TOTAL: Gauge<Bytes> = "mem.cma_total", MEMINFO, "CmaTotal", 1024, "3.19", "", "mem.util.cmaTotal", "=",
            "RAM set aside for contiguous allocations; lends itself to movable pages.";
        MEM_CMA_FREE: Gauge<Bytes> = "mem.cma_free", MEMINFO, "CmaFree", 1024, "3.19", "", "mem.util.cmaFree", "=",
            "Free pages in CMA areas; a part of MemFree that the kernel itself cannot use.";
        MEM_BALLOON: Gauge<Bytes> = "mem.balloon", MEMINFO, "Balloon", 1024, "6.16", "", "", "=",
            "RAM that a balloon driver gave back to the hypervisor.";
        MEM_UNACCEPTED: Gauge<Bytes> = "mem.unaccepted", MEMINFO, "Unaccepted", 1024, "6.5", "", "", "=",
            "Confidential-VM memory that was not accepted yet; a part of MemFree.";
        HUGEPAGES_TOTAL: Gauge<Count> = "hugepages.total", MEMINFO, "HugePages_Total", 1, "", "", "mem.util.hugepagesTotal", "=",
            "Reserved huge pages of the default size.";
        HUGEPAGES_FREE: Gauge<Count> = "hugepages.free", MEMINFO, "HugePages_Free", 1, "", "", "mem.util.hugepagesFree", "=",
            "Reserved huge pages that nobody has touched.";
        HUGEPAGES_RSVD: Gauge<Count> = "hugepages.rsvd", MEMINFO, "HugePages_Rsvd", 1, "", "", "mem.util.hugepagesRsvd", "=",
            "Free huge pages that are promised; a part of free.";
        HUGEPAGES_SURP: Gauge<Count> = "hugepages.surplus", MEMINFO, "HugePages_Surp", 1, "", "", "mem.util.hugepagesSurp", "=",
            "Huge pages above the reserved number.";
        HUGEPAGE_SIZE: Gauge<Bytes> = "hugepages.size", MEMINFO, "Hugepagesize", 1024, "", "", "mem.util.hugepagesize", "=",
            "The default huge page size.";
        MEM_HUGETLB: Gauge<Bytes> = "mem.hugetlb", MEMINFO, "Hugetlb", 1024, "4.16", "", "mem.util.hugetlb", "=",
            "RAM in hugetlb pools of all sizes, used or not.";
        DIRECT_MAP_4K: Gauge<Bytes> = "mem.direct_map_4k", MEMINFO, "DirectMap4k", 1024, "", "", "mem.util.directMap4k", "=",
            "Kernel direct map in 4 KiB pages (x86).";
        DIRECT_MAP_2M: Gauge<Bytes> = "mem.direct_map_2m", MEMINFO, "DirectMap2M", 1024, "", "", "mem.util.directMap2M", "=",
            "Kernel direct map in 2 MiB pages (x86).";
        DIRECT_MAP_1G: Gauge<Bytes> = "mem.direct_map_1g", MEMINFO, "DirectMap1G", 1024, "", "", "mem.util.directMap1G", "=",
            "Kernel direct map in 1 GiB pages (x86).";
        NR_FREE_PAGES: Gauge<Pages> = "vm.nr_free_pages", VMSTAT, "nr_free_pages", 1, "", "", "=", "=",
            "Free pages; MemFree divided by this is the page size.";
        NR_DIRTY: Gauge<Pages> = "vm.nr_dirty", VMSTAT, "nr_dirty", 1, "", "", "=", "=",
            "Dirty page-cache pages.";
        NR_DIRTY_THRESHOLD: Gauge<Pages> = "vm.nr_dirty_threshold", VMSTAT, "nr_dirty_threshold", 1, "2.6.37", "", "=", "=",
            "Dirty pages at which writers are made to wait.";
        NR_DIRTY_BACKGROUND_THRESHOLD: Gauge<Pages> = "vm.nr_dirty_background_threshold", VMSTAT, "nr_dirty_background_threshold", 1, "2.6.37", "", "=", "=",
            "Dirty pages at which background writing starts.";
        NR_ISOLATED_ANON: Gauge<Pages> = "vm.nr_isolated_anon", VMSTAT, "nr_isolated_anon", 1, "", "", "=", "=",
            "Anonymous pages taken off their list by reclaim or migration right now.";
        NR_ISOLATED_FILE: Gauge<Pages> = "vm.nr_isolated_file", VMSTAT, "nr_isolated_file", 1, "", "", "=", "=",
            "File pages taken off their list by reclaim or migration right now.";
        NR_ZSPAGES: Gauge<Pages> = "vm.nr_zspages", VMSTAT, "nr_zspages", 1, "4.8", "", "=", "=",
            "Pages of zsmalloc: what zram, and zswap with zsmalloc, take in RAM.";
        NR_FREE_CMA: Gauge<Pages> = "vm.nr_free_cma", VMSTAT, "nr_free_cma", 1, "", "", "=", "=",
            "Free pages in CMA areas.";
        NR_SWAPCACHED: Gauge<Pages> = "vm.nr_swapcached", VMSTAT, "nr_swapcached", 1, "5.12", "", "=", "=",
            "Pages in the swap cache.";
        NR_BALLOON_PAGES: Gauge<Pages> = "vm.nr_balloon_pages", VMSTAT, "nr_balloon_pages", 1, "6.16", "", "=", "=",
            "Pages held by a balloon driver.";
        PGPGIN: Counter<Bytes> = "vm.pgpgin", VMSTAT, "pgpgin", 1024, "", "pgpgin/s", "=", "=",
            "Read from block devices, swap included.";
        PGPGOUT: Counter<Bytes> = "vm.pgpgout", VMSTAT, "pgpgout", 1024, "", "pgpgout/s", "=", "=",
            "Written to block devices, swap included.";
        PSWPIN: Counter<Pages> = "vm.pswpin", VMSTAT, "pswpin", 1, "", "pswpin/s", "=", "=",
            "Pages read from swap devices, zram included; zswap hits and zero pages are not.";
        PSWPOUT: Counter<Pages> = "vm.pswpout", VMSTAT, "pswpout", 1, "", "pswpout/s", "=", "=",
            "Pages written to swap devices, zram included.";
        SWPIN_ZERO: Counter<Pages> = "vm.swpin_zero", VMSTAT, "swpin_zero", 1, "6.13", "", "=", "=",
            "Zero-filled pages swapped in without I/O.";
        SWPOUT_ZERO: Counter<Pages> = "vm.swpout_zero", VMSTAT, "swpout_zero", 1, "6.13", "", "=", "=",
            "Zero-filled pages swapped out without I/O.";
        ZSWPIN: Counter<Pages> = "vm.zswpin", VMSTAT, "zswpin", 1, "5.19", "", "=", "=",
            "Pages swapped in from the zswap pool.";
        ZSWPOUT: Counter<Pages> = "vm.zswpout", VMSTAT, "zswpout", 1, "5.19", "", "=", "=",
            "Pages swapped out to the zswap pool.";
        ZSWPWB: Counter<Pages> = "vm.zswpwb", VMSTAT, "zswpwb", 1, "6.8", "", "=", "=",
            "Pages written from the zswap pool to the swap device.";
        SWAP_RA: Counter<Pages> = "vm.swap_ra", VMSTAT, "swap_ra", 1, "4.14", "", "=", "=",
            "Pages read from swap ahead of their use.";
        SWAP_RA_HIT: Counter<Pages> = "vm.swap_ra_hit", VMSTAT, "swap_ra_hit", 1, "4.14", "", "=", "=",
            "Pages read ahead from swap that were then used.";
        PGFAULT: Counter<Count> = "vm.pgfault", VMSTAT, "pgfault", 1, "", "fault/s", "=", "=",
            "Page faults of all kinds.";
        PGMAJFAULT: Counter<Count> = "vm.pgmajfault", VMSTAT, "pgmajfault", 1, "", "majflt/s", "=", "=",
            "Page faults that waited for a disk: swap-ins and mapped file pages.";
        PGFREE: Counter<Pages> = "vm.pgfree", VMSTAT, "pgfree", 1, "", "pgfree/s", "=", "=",
            "Pages freed.";
        PGALLOC: Counter<Pages> = "vm.pgalloc", VMSTAT, "pgalloc_*", 1, "", "", "=", "=",
            "Pages allocated, all zones.";
        PGSKIP: Counter<Pages> = "vm.pgskip", VMSTAT, "pgskip_*", 1, "4.8", "", "=", "=",
            "Pages passed over by reclaim because they lie in a zone that would not help, all zones.";
        PGACTIVATE: Counter<Pages> = "vm.pgactivate", VMSTAT, "pgactivate", 1, "", "", "=", "=",
            "Pages moved to an active list.";
        PGDEACTIVATE: Counter<Pages> = "vm.pgdeactivate", VMSTAT, "pgdeactivate", 1, "", "", "=", "=",
            "Pages moved to an inactive list.";
        PGREFILL: Counter<Pages> = "vm.pgrefill", VMSTAT, "pgrefill", 1, "", "", "=", "=",
            "Active pages looked at by reclaim.";
        PGROTATED: Counter<Pages> = "vm.pgrotated", VMSTAT, "pgrotated", 1, "", "", "=", "=",
            "Pages rotated to the tail of the inactive list after writeback.";
        PGSCAN_KSWAPD: Counter<Pages> = "vm.pgscan_kswapd", VMSTAT, "pgscan_kswapd", 1, "", "pgscank/s", "=", "=",
            "Pages looked at by background reclaim.";
        PGSCAN_DIRECT: Counter<Pages> = "vm.pgscan_direct", VMSTAT, "pgscan_direct", 1, "", "pgscand/s", "=", "=",
            "Pages looked at by allocating tasks: direct and node reclaim.";
        PGSCAN_KHUGEPAGED: Counter<Pages> = "vm.pgscan_khugepaged", VMSTAT, "pgscan_khugepaged", 1, "6.3", "", "=", "=",
            "Pages looked at by reclaim on behalf of khugepaged.";
        PGSCAN_PROACTIVE: Counter<Pages> = "vm.pgscan_proactive", VMSTAT, "pgscan_proactive", 1, "6.15", "", "=", "=",
            "Pages looked at by reclaim that user space asked for.";
        PGSCAN_ANON: Counter<Pages> = "vm.pgscan_anon", VMSTAT, "pgscan_anon", 1, "5.8", "", "=", "=",
            "Anonymous pages looked at by reclaim, cgroup limits included.";
        PGSCAN_FILE: Counter<Pages> = "vm.pgscan_file", VMSTAT, "pgscan_file", 1, "5.8", "", "=", "=",
            "File pages looked at by reclaim, cgroup limits included.";
        PGSTEAL_KSWAPD: Counter<Pages> = "vm.pgsteal_kswapd", VMSTAT, "pgsteal_kswapd", 1, "", "pgsteal/s", "=", "=",
            "Pages reclaimed in the background.";
        PGSTEAL_DIRECT: Counter<Pages> = "vm.pgsteal_direct", VMSTAT, "pgsteal_direct", 1, "", "", "=", "=",
            "Pages reclaimed by allocating tasks.";
        PGSTEAL_KHUGEPAGED: Counter<Pages> = "vm.pgsteal_khugepaged", VMSTAT, "pgsteal_khugepaged", 1, "6.3", "", "=", "=",
            "Pages reclaimed on behalf of khugepaged.";
        PGSTEAL_ANON: Counter<Pages> = "vm.pgsteal_anon", VMSTAT, "pgsteal_anon", 1, "5.8", "", "=", "=",
            "Anonymous pages reclaimed, cgroup limits included.";
        PGSTEAL_FILE: Counter<Pages> = "vm.pgsteal_file", VMSTAT, "pgsteal_file", 1, "5.8", "", "=", "=",
            "File pages reclaimed, cgroup limits included.";
        PGSCAN_DIRECT_THROTTLE: Counter<Count> = "vm.pgscan_direct_throttle", VMSTAT, "pgscan_direct_throttle", 1, "3.6", "", "=", "=",
            "Times an allocating task was put to sleep because reserves ran low.";
        ALLOCSTALL: Counter<Count> = "vm.allocstall", VMSTAT, "allocstall_*", 1, "", "", "=", "=",
            "Times an allocation had to reclaim memory itself, all zones.";
        PAGEOUTRUN: Counter<Count> = "vm.pageoutrun", VMSTAT, "pageoutrun", 1, "", "", "=", "=",
            "Runs of kswapd.";
        KSWAPD_LOW_WMARK_HIT: Counter<Count> = "vm.kswapd_low_wmark_hit_quickly", VMSTAT, "kswapd_low_wmark_hit_quickly", 1, "", "", "=", "=",
            "Times free memory fell below the low mark right after kswapd slept.";
        KSWAPD_HIGH_WMARK_HIT: Counter<Count> = "vm.kswapd_high_wmark_hit_quickly", VMSTAT, "kswapd_high_wmark_hit_quickly", 1, "", "", "=", "=",
            "Times free memory fell below the high mark right after kswapd slept.";
        KSWAPD_INODESTEAL: Counter<Pages> = "vm.kswapd_inodesteal", VMSTAT, "kswapd_inodesteal", 1, "", "", "=", "=",
            "Page-cache pages freed by background reclaim of inodes.";
        PGINODESTEAL: Counter<Pages> = "vm.pginodesteal", VMSTAT, "pginodesteal", 1, "", "", "=", "=",
            "Page-cache pages freed by direct reclaim of inodes.";
        SLABS_SCANNED: Counter<Count> = "vm.slabs_scanned", VMSTAT, "slabs_scanned", 1, "", "", "=", "=",
            "Kernel objects looked at by reclaim.";
        REFAULT: Counter<Pages> = "vm.workingset_refault", VMSTAT, "workingset_refault", 1, "3.15 to 5.8", "", "=", "=",
            "Pages read back after eviction, anonymous and file together.";
        REFAULT_ANON: Counter<Pages> = "vm.workingset_refault_anon", VMSTAT, "workingset_refault_anon", 1, "5.9", "", "=", "=",
            "Anonymous pages swapped in again after eviction.";
        REFAULT_FILE: Counter<Pages> = "vm.workingset_refault_file", VMSTAT, "workingset_refault_file", 1, "5.9", "", "=", "=",
            "File pages read again after eviction.";
        ACTIVATE_ANON: Counter<Pages> = "vm.workingset_activate_anon", VMSTAT, "workingset_activate_anon", 1, "5.9", "", "=", "=",
            "Refaulted anonymous pages whose reuse was near enough to make them active.";
        ACTIVATE_FILE: Counter<Pages> = "vm.workingset_activate_file", VMSTAT, "workingset_activate_file", 1, "5.9", "", "=", "=",
            "Refaulted file pages whose reuse was near enough to make them active.";
        RESTORE_ANON: Counter<Pages> = "vm.workingset_restore_anon", VMSTAT, "workingset_restore_anon", 1, "5.9", "", "=", "=",
            "Refaulted anonymous pages that had been active before.";
        RESTORE_FILE: Counter<Pages> = "vm.workingset_restore_file", VMSTAT, "workingset_restore_file", 1, "5.9", "", "=", "=",
            "Refaulted file pages that had been active before.";
        NODERECLAIM: Counter<Count> = "vm.workingset_nodereclaim", VMSTAT, "workingset_nodereclaim", 1, "3.15", "", "=", "=",
            "Shadow entries dropped: where it rises, refaults are undercounted.";
        NR_DIRTIED: Counter<Pages> = "vm.nr_dirtied", VMSTAT, "nr_dirtied", 1, "2.6.37", "", "=", "=",
            "Pages made dirty.";
        NR_WRITTEN: Counter<Pages> = "vm.nr_written", VMSTAT, "nr_written", 1, "2.6.37", "", "=", "=",
            "Pages written back.";
        NR_THROTTLED_WRITTEN: Counter<Pages> = "vm.nr_throttled_written", VMSTAT, "nr_throttled_written", 1, "5.16", "", "=", "=",
            "Pages written while reclaim waited for writeback.";
        NR_VMSCAN_WRITE: Counter<Pages> = "vm.nr_vmscan_write", VMSTAT, "nr_vmscan_write", 1, "", "", "=", "=",
            "Pages that reclaim itself had to write.";
        NR_VMSCAN_IMMEDIATE: Counter<Pages> = "vm.nr_vmscan_immediate_reclaim", VMSTAT, "nr_vmscan_immediate_reclaim", 1, "3.2", "", "=", "=",
            "Dirty pages that reclaim met under writeback.";
        OOM_KILLS: Counter<Count> = "vm.oom_kill", VMSTAT, "oom_kill", 1, "4.13", "", "=", "=",
            "Processes killed for want of memory, cgroup kills included.";
        COMPACT_STALL: Counter<Count> = "vm.compact_stall", VMSTAT, "compact_stall", 1, "", "", "=", "=",
            "Times an allocation had to compact memory itself.";
        COMPACT_FAIL: Counter<Count> = "vm.compact_fail", VMSTAT, "compact_fail", 1, "", "", "=", "=",
            "Compactions by allocating tasks that did not make a block.";
        COMPACT_SUCCESS: Counter<Count> = "vm.compact_success", VMSTAT, "compact_success", 1, "", "", "=", "=",
            "Compactions by allocating tasks that made a block.";
        COMPACT_DAEMON_WAKE: Counter<Count> = "vm.compact_daemon_wake", VMSTAT, "compact_daemon_wake", 1, "4.6", "", "=", "=",
            "Times kcompactd was woken.";
        COMPACT_MIGRATE_SCANNED: Counter<Pages> = "vm.compact_migrate_scanned", VMSTAT, "compact_migrate_scanned", 1, "", "", "=", "=",
            "Pages looked at by compaction for moving.";
        COMPACT_FREE_SCANNED: Counter<Pages> = "vm.compact_free_scanned", VMSTAT, "compact_free_scanned", 1, "", "", "=", "=",
            "Pages looked at by compaction for free targets.";
        COMPACT_ISOLATED: Counter<Pages> = "vm.compact_isolated", VMSTAT, "compact_isolated", 1, "", "", "=", "=",
            "Pages taken for moving by compaction.";
        THP_FAULT_ALLOC: Counter<Count> = "vm.thp_fault_alloc", VMSTAT, "thp_fault_alloc", 1, "", "", "=", "=",
            "Huge pages given at a page fault.";
        THP_FAULT_FALLBACK: Counter<Count> = "vm.thp_fault_fallback", VMSTAT, "thp_fault_fallback", 1, "", "", "=", "=",
            "Page faults that wanted a huge page and got small ones.";
        THP_COLLAPSE_ALLOC: Counter<Count> = "vm.thp_collapse_alloc", VMSTAT, "thp_collapse_alloc", 1, "", "", "=", "=",
            "Huge pages made by khugepaged.";
        THP_SPLIT_PAGE: Counter<Count> = "vm.thp_split_page", VMSTAT, "thp_split_page", 1, "", "", "=", "=",
            "Huge pages split.";
        THP_DEFERRED_SPLIT: Counter<Count> = "vm.thp_deferred_split_page", VMSTAT, "thp_deferred_split_page", 1, "", "", "=", "=",
            "Huge pages queued for splitting because a part was freed.";
        THP_UNDERUSED_SPLIT: Counter<Count> = "vm.thp_underused_split_page", VMSTAT, "thp_underused_split_page", 1, "6.12", "", "=", "=",
            "Huge pages split because they were mostly zero.";
        THP_SWPOUT: Counter<Count> = "vm.thp_swpout", VMSTAT, "thp_swpout", 1, "4.14", "", "=", "=",
            "Huge pages swapped out whole.";
        NUMA_HIT: Counter<Pages> = "vm.numa_hit", VMSTAT, "numa_hit", 1, "", "", "=", "=",
            "Pages allocated on the wanted node.";
        NUMA_MISS: Counter<Pages> = "vm.numa_miss", VMSTAT, "numa_miss", 1, "", "", "=", "=",
            "Pages allocated here although another node was wanted.";
        NUMA_FOREIGN: Counter<Pages> = "vm.numa_foreign", VMSTAT, "numa_foreign", 1, "", "", "=", "=",
            "Pages wanted here but allocated on another node.";
        NUMA_LOCAL: Counter<Pages> = "vm.numa_local", VMSTAT, "numa_local", 1, "", "", "=", "=",
            "Pages allocated on the task's own node.";
        NUMA_OTHER: Counter<Pages> = "vm.numa_other", VMSTAT, "numa_other", 1, "", "", "=", "=",
            "Pages allocated on a node other than the task's.";
        NUMA_PTE_UPDATES: Counter<Count> = "vm.numa_pte_updates", VMSTAT, "numa_pte_updates", 1, "3.8", "", "=", "=",
            "Mappings marked by automatic NUMA balancing.";
        NUMA_HINT_FAULTS: Counter<Count> = "vm.numa_hint_faults", VMSTAT, "numa_hint_faults", 1, "3.8", "", "=", "=",
            "Faults taken on marked mappings.";
        NUMA_HINT_FAULTS_LOCAL: Counter<Count> = "vm.numa_hint_faults_local", VMSTAT, "numa_hint_faults_local", 1, "3.8", "", "=", "=",
            "Such faults on pages that were local already.";
        NUMA_PAGES_MIGRATED: Counter<Pages> = "vm.numa_pages_migrated", VMSTAT, "numa_pages_migrated", 1, "3.8", "", "=", "=",
            "Pages moved by NUMA balancing.";
        PGMIGRATE_SUCCESS: Counter<Pages> = "vm.pgmigrate_success", VMSTAT, "pgmigrate_success", 1, "", "", "=", "=",
            "Pages moved.";
        PGMIGRATE_FAIL: Counter<Pages> = "vm.pgmigrate_fail", VMSTAT, "pgmigrate_fail", 1, "", "", "=", "=",
            "Pages that could not be moved.";
        PGPROMOTE_SUCCESS: Counter<Pages> = "vm.pgpromote_success", VMSTAT, "pgpromote_success", 1, "5.15", "", "=", "=",
            "Pages moved up to fast memory.";
        PGDEMOTE_KSWAPD: Counter<Pages> = "vm.pgdemote_kswapd", VMSTAT, "pgdemote_kswapd", 1, "5.15", "", "=", "=",
            "Pages moved down to slow memory in the background.";
        PGDEMOTE_DIRECT: Counter<Pages> = "vm.pgdemote_direct", VMSTAT, "pgdemote_direct", 1, "5.15", "", "=", "=",
            "Pages moved down to slow memory by allocating tasks.";
        ZONE_RECLAIM_SUCCESS: Counter<Count> = "vm.zone_reclaim_success", VMSTAT, "zone_reclaim_success", 1, "", "", "=", "=",
            "Node reclaims that freed enough.";
        ZONE_RECLAIM_FAILED: Counter<Count> = "vm.zone_reclaim_failed", VMSTAT, "zone_reclaim_failed", 1, "", "", "=", "=",
            "Node reclaims that did not free enough.";
        BALLOON_INFLATE: Counter<Pages> = "vm.balloon_inflate", VMSTAT, "balloon_inflate", 1, "", "", "=", "=",
            "Pages given to the hypervisor.";
        BALLOON_DEFLATE: Counter<Pages> = "vm.balloon_deflate", VMSTAT, "balloon_deflate", 1, "", "", "=", "=",
            "Pages got back from the hypervisor.";
        DROP_PAGECACHE: Counter<Count> = "vm.drop_pagecache", VMSTAT, "drop_pagecache", 1, "3.15", "", "=", "=",
            "Times somebody dropped the page cache by hand.";
        DROP_SLAB: Counter<Count> = "vm.drop_slab", VMSTAT, "drop_slab", 1, "3.15", "", "=", "=",
            "Times somebody dropped kernel caches by hand.";
        UNEVICTABLE_CULLED: Counter<Pages> = "vm.unevictable_pgs_culled", VMSTAT, "unevictable_pgs_culled", 1, "", "", "=", "=",
            "Pages found unevictable by reclaim.";
        HTLB_ALLOC_FAIL: Counter<Count> = "vm.htlb_buddy_alloc_fail", VMSTAT, "htlb_buddy_alloc_fail", 1, "", "", "=", "=",
            "Huge pages that could not be allocated.";
        NR_FOLL_PIN_ACQUIRED: Counter<Pages> = "vm.nr_foll_pin_acquired", VMSTAT, "nr_foll_pin_acquired", 1, "5.7", "", "=", "=",
            "Pages pinned for device access.";
        NR_FOLL_PIN_RELEASED: Counter<Pages> = "vm.nr_foll_pin_released", VMSTAT, "nr_foll_pin_released", 1, "5.7", "", "=", "=",
            "Pages released from device access.";
        PSI_MEMORY_SOME: Counter<Micros> = "psi.memory.some", "/proc/pressure/memory", "some total", 1, "4.20", "", "kernel.all.pressure.memory.some.total", "node_pressure_memory_waiting_seconds_total",
            "Time for which at least one task waited for memory.";
        PSI_MEMORY_FULL: Counter<Micros> = "psi.memory.full", "/proc/pressure/memory", "full total", 1, "4.20", "", "kernel.all.pressure.memory.full.total", "node_pressure_memory_stalled_seconds_total",
            "Time for which all running tasks waited for memory.";
        PSI_IO_SOME: Counter<Micros> = "psi.io.some", "/proc/pressure/io", "some total", 1, "4.20", "", "kernel.all.pressure.io.some.total", "node_pressure_io_waiting_seconds_total",
            "Time for which at least one task waited for I/O.";
        PSI_IO_FULL: Counter<Micros> = "psi.io.full", "/proc/pressure/io", "full total", 1, "4.20", "", "kernel.all.pressure.io.full.total", "node_pressure_io_stalled_seconds_total",
            "Time for which all running tasks waited for I/O.";
        PSI_CPU_SOME: Counter<Micros> = "psi.cpu.some", "/proc/pressure/cpu", "some total", 1, "4.20", "", "kernel.all.pressure.cpu.some.total", "node_pressure_cpu_waiting_seconds_total",
            "Time for which at least one task waited for a CPU.";
        PSI_CPU_FULL: Counter<Micros> = "psi.cpu.full", "/proc/pressure/cpu", "full total", 1, "5.13", "", "kernel.all.pressure.cpu.full.total", "node_pressure_cpu_stalled_seconds_total",
            "Time for which all running tasks waited for a CPU.";
        CPU_USER: Counter<Ticks> = "cpu.user", STAT, "cpu user", 1, "", "%user", "kernel.all.cpu.user", "node_cpu_seconds_total",
            "CPU time spent on user code, all CPUs.";
        CPU_NICE: Counter<Ticks> = "cpu.nice", STAT, "cpu nice", 1, "", "%nice", "kernel.all.cpu.nice", "node_cpu_seconds_total",
            "CPU time spent on user code at low priority, all CPUs.";
        CPU_SYSTEM: Counter<Ticks> = "cpu.system", STAT, "cpu system", 1, "", "%system", "kernel.all.cpu.sys", "node_cpu_seconds_total",
            "CPU time spent on kernel code, all CPUs.";
        CPU_IDLE: Counter<Ticks> = "cpu.idle", STAT, "cpu idle", 1, "", "%idle", "kernel.all.cpu.idle", "node_cpu_seconds_total",
            "CPU time spent on nothing, all CPUs.";
        CPU_IOWAIT: Counter<Ticks> = "cpu.iowait", STAT, "cpu iowait", 1, "", "%iowait", "kernel.all.cpu.wait.total", "node_cpu_seconds_total",
            "CPU time spent on nothing while I/O was outstanding, all CPUs.";
        CPU_IRQ: Counter<Ticks> = "cpu.irq", STAT, "cpu irq", 1, "", "%irq", "kernel.all.cpu.irq.hard", "node_cpu_seconds_total",
            "CPU time spent on interrupts, all CPUs.";
        CPU_SOFTIRQ: Counter<Ticks> = "cpu.softirq", STAT, "cpu softirq", 1, "", "%soft", "kernel.all.cpu.irq.soft", "node_cpu_seconds_total",
            "CPU time spent on soft interrupts, all CPUs.";
        CPU_STEAL: Counter<Ticks> = "cpu.steal", STAT, "cpu steal", 1, "", "%steal", "kernel.all.cpu.steal", "node_cpu_seconds_total",
            "CPU time spent on other guests of the hypervisor, all CPUs.";
        CPU_GUEST: Counter<Ticks> = "cpu.guest", STAT, "cpu guest", 1, "", "%guest", "kernel.all.cpu.guest", "node_cpu_seconds_total",
            "CPU time spent on guests, all CPUs.";
        CPU_GUEST_NICE: Counter<Ticks> = "cpu.guest_nice", STAT, "cpu guest_nice", 1, "", "%gnice", "kernel.all.cpu.guest_nice", "node_cpu_seconds_total",
            "CPU time spent on guests at low priority, all CPUs.";
        FORKS: Counter<Count> = "cpu.forks", STAT, "processes", 1, "", "proc/s", "kernel.all.sysfork", "node_forks_total",
            "Processes and threads started.";
        TASKS_RUNNING: Gauge<Count> = "cpu.tasks_running", STAT, "procs_running", 1, "", "runq-sz", "kernel.all.running", "node_procs_running",
            "Runnable tasks.";
        TASKS_BLOCKED: Gauge<Count> = "cpu.tasks_blocked", STAT, "procs_blocked", 1, "", "blocked", "kernel.all.blocked", "node_procs_blocked",
            "Tasks waiting for I/O (state D).";
        DENTRIES: Gauge<Count> = "fs.dentries", DENTRY_STATE, "1", 1, "", "", "vfs.dentry.count", "",
            "Cached directory entries.";
        DENTRIES_UNUSED: Gauge<Count> = "fs.dentries_unused", DENTRY_STATE, "2", 1, "", "dentunusd", "vfs.dentry.free", "",
            "Cached directory entries that nobody uses.";
        DENTRIES_NEGATIVE: Gauge<Count> = "fs.dentries_negative", DENTRY_STATE, "5", 1, "5.0", "", "", "",
            "Unused entries for names that do not exist.";
        INODES: Gauge<Count> = "fs.inodes", INODE_NR, "1", 1, "", "inode-nr", "vfs.inodes.count", "",
            "Cached inodes.";
        INODES_FREE: Gauge<Count> = "fs.inodes_free", INODE_NR, "2", 1, "", "", "vfs.inodes.free", "",
            "Cached inodes that nobody uses.";
        FILES_OPEN: Gauge<Count> = "fs.files_open", FILE_NR, "1", 1, "", "file-nr", "vfs.files.count", "node_filefd_allocated",
            "Open files.";
        TCP_MEM: Gauge<Pages> = "sock.tcp_mem", SOCKSTAT, "TCP mem", 1, "", "", "network.sockstat.tcp.mem", "node_sockstat_TCP_mem",
            "Memory of TCP sockets.";
        UDP_MEM: Gauge<Pages> = "sock.udp_mem", SOCKSTAT, "UDP mem", 1, "", "", "network.sockstat.udp.mem", "node_sockstat_UDP_mem",
            "Memory of UDP sockets.";
        KSM_SHARED: Gauge<Pages> = "ksm.pages_shared", "/sys/kernel/mm/ksm/pages_shared", "1", 1, "2.6.32", "", "mem.ksm.pages_shared", "node_ksmd_pages_shared",
            "Merged pages in use by KSM.";
        KSM_SHARING: Gauge<Pages> = "ksm.pages_sharing", "/sys/kernel/mm/ksm/pages_sharing", "1", 1, "2.6.32", "", "mem.ksm.pages_sharing", "node_ksmd_pages_sharing",
            "Pages that KSM saves.";
        PAGE_CACHE: Gauge<Bytes> = "mem.page_cache", DERIVED, "Cached − Shmem + Buffers", 1, "", "", "", "",
            "Page cache that can be dropped: file data and metadata, without shared memory.";
        SWAP_USED: Gauge<Bytes> = "swap.used", DERIVED, "SwapTotal − SwapFree", 1, "", "", "", "",
            "Swap that holds something.";
        SWAPIN_ALL: Counter<Pages> = "vm.swapin_all", DERIVED, "pswpin + zswpin + swpin_zero", 1, "", "", "", "",
            "Pages swapped in from anywhere.";
        SWAPOUT_ALL: Counter<Pages> = "vm.swapout_all", DERIVED, "pswpout + zswpout + swpout_zero", 1, "", "", "", "",
            "Pages swapped out to anywhere.";
        MEM_FLOOR_LOW: Gauge<Bytes> = "mem.floor_low", DERIVED, "Σ zones min(managed, low + protection)", 1, "", "", "", "",
            "Where kswapd starts to reclaim: the lower edge of the floor on which free memory rests under load.";
        MEM_FLOOR_HIGH: Gauge<Bytes> = "mem.floor_high", DERIVED, "Σ zones min(managed, high + protection)", 1, "", "", "", "",
            "Where kswapd stops: the upper edge of the floor. MemAvailable leaves this much out.";
        MEM_PCP: Gauge<Bytes> = "mem.pcp", DERIVED, "Σ zones' per-CPU lists", 1, "", "", "", "",
            "Free pages kept on per-CPU lists; not in MemFree.";
        MEM_UNACCOUNTED: Gauge<Bytes> = "mem.unaccounted", DERIVED, "MemTotal − all terms", 1, "", "", "", "",
            "RAM that no counter explains: allocated by drivers, the network, GPUs, hypervisor guests.";
        HUGETLB_UNUSED: Gauge<Bytes> = "hugepages.unused", DERIVED, "(HugePages_Free − HugePages_Rsvd) × Hugepagesize", 1, "", "", "", "",
            "Reserved huge pages that nobody uses or has been promised.";
        DIRTY_AND_WRITEBACK: Gauge<Bytes> = "mem.dirty_and_writeback", DERIVED, "Dirty + Writeback", 1, "", "", "", "",
            "What the dirty limits are compared with.";
        COMMIT_HEADROOM: Gauge<Bytes> = "mem.commit_headroom", DERIVED, "CommitLimit − Committed_AS", 1, "", "", "", "",
            "What may still be promised to processes when overcommit is off.";
    }
    Node {
        NODE_TOTAL: Gauge<Bytes> = "node.total", "/sys/devices/system/node/node*/meminfo", "MemTotal", 1024, "", "", "mem.numa.util.MemTotal", "node_memory_numa_MemTotal",
            "RAM of the node.";
        NODE_FREE: Gauge<Bytes> = "node.free", "/sys/devices/system/node/node*/meminfo", "MemFree", 1024, "", "", "mem.numa.util.MemFree", "node_memory_numa_MemFree",
            "Free RAM of the node.";
        NODE_FILE: Gauge<Bytes> = "node.file", "/sys/devices/system/node/node*/meminfo", "FilePages", 1024, "", "", "mem.numa.util.FilePages", "node_memory_numa_FilePages",
            "Page cache of the node, shared memory included.";
        NODE_ANON: Gauge<Bytes> = "node.anon", "/sys/devices/system/node/node*/meminfo", "AnonPages", 1024, "", "", "mem.numa.util.AnonPages", "node_memory_numa_AnonPages",
            "Anonymous memory on the node.";
        NODE_SHMEM: Gauge<Bytes> = "node.shmem", "/sys/devices/system/node/node*/meminfo", "Shmem", 1024, "", "", "mem.numa.util.Shmem", "node_memory_numa_Shmem",
            "Shared memory on the node.";
        NODE_SLAB: Gauge<Bytes> = "node.slab", "/sys/devices/system/node/node*/meminfo", "Slab", 1024, "", "", "mem.numa.util.Slab", "node_memory_numa_Slab",
            "Kernel objects on the node.";
        NODE_DIRTY: Gauge<Bytes> = "node.dirty", "/sys/devices/system/node/node*/meminfo", "Dirty", 1024, "", "", "mem.numa.util.Dirty", "node_memory_numa_Dirty",
            "Dirty page cache on the node.";
        NODE_ACTIVE_FILE: Gauge<Bytes> = "node.active_file", "/sys/devices/system/node/node*/meminfo", "Active(file)", 1024, "", "", "mem.numa.util.Active(file)", "node_memory_numa_Active(file)",
            "Recently used file pages of the node.";
        NODE_INACTIVE_FILE: Gauge<Bytes> = "node.inactive_file", "/sys/devices/system/node/node*/meminfo", "Inactive(file)", 1024, "", "", "mem.numa.util.Inactive(file)", "node_memory_numa_Inactive(file)",
            "File pages of the node that are reclaimed first.";
        NODE_HIT: Counter<Pages> = "node.numa_hit", "/sys/devices/system/node/node*/numastat", "numa_hit", 1, "", "", "mem.numa.alloc.hit", "node_memory_numa_numa_hit_total",
            "Pages allocated on this node as wanted.";
        NODE_MISS: Counter<Pages> = "node.numa_miss", "/sys/devices/system/node/node*/numastat", "numa_miss", 1, "", "", "mem.numa.alloc.miss", "node_memory_numa_numa_miss_total",
            "Pages allocated on this node although another was wanted.";
        NODE_FOREIGN: Counter<Pages> = "node.numa_foreign", "/sys/devices/system/node/node*/numastat", "numa_foreign", 1, "", "", "mem.numa.alloc.foreign", "node_memory_numa_numa_foreign_total",
            "Pages wanted on this node but allocated elsewhere.";
        NODE_LOCAL: Counter<Pages> = "node.numa_local", "/sys/devices/system/node/node*/numastat", "local_node", 1, "", "", "mem.numa.alloc.local", "node_memory_numa_local_node_total",
            "Pages allocated here for tasks running here.";
        NODE_OTHER: Counter<Pages> = "node.numa_other", "/sys/devices/system/node/node*/numastat", "other_node", 1, "", "", "mem.numa.alloc.other", "node_memory_numa_other_node_total",
            "Pages allocated here for tasks running elsewhere.";
    }
    Zone {
        ZONE_FREE: Gauge<Pages> = "zone.free", ZONEINFO, "free", 1, "", "", "mem.zoneinfo.free", "node_zoneinfo_free",
            "Free pages of the zone.";
        ZONE_MIN: Gauge<Pages> = "zone.min", ZONEINFO, "min", 1, "", "", "mem.zoneinfo.min", "node_zoneinfo_min",
            "Below this only privileged allocations succeed; boost included.";
        ZONE_LOW: Gauge<Pages> = "zone.low", ZONEINFO, "low", 1, "", "", "mem.zoneinfo.low", "node_zoneinfo_low",
            "Below this kswapd starts; boost included.";
        ZONE_HIGH: Gauge<Pages> = "zone.high", ZONEINFO, "high", 1, "", "", "mem.zoneinfo.high", "node_zoneinfo_high",
            "At this kswapd stops; boost included.";
        ZONE_BOOST: Gauge<Pages> = "zone.boost", ZONEINFO, "boost", 1, "5.0", "", "mem.zoneinfo.boost", "node_zoneinfo_boost",
            "How far the marks are raised for a while because of fragmentation.";
        ZONE_SPANNED: Gauge<Pages> = "zone.spanned", ZONEINFO, "spanned", 1, "", "", "mem.zoneinfo.spanned", "node_zoneinfo_spanned",
            "Pages between the zone's ends, holes included.";
        ZONE_PRESENT: Gauge<Pages> = "zone.present", ZONEINFO, "present", 1, "", "", "mem.zoneinfo.present", "node_zoneinfo_present",
            "Pages of RAM in the zone.";
        ZONE_MANAGED: Gauge<Pages> = "zone.managed", ZONEINFO, "managed", 1, "", "", "mem.zoneinfo.managed", "node_zoneinfo_managed",
            "Pages that the allocator manages.";
        ZONE_PROTECTION: Gauge<Pages> = "zone.protection", ZONEINFO, "protection", 1, "", "", "mem.zoneinfo.protection", "node_zoneinfo_protection",
            "The largest reserve kept from allocations that could use a higher zone.";
        ZONE_PCP: Gauge<Pages> = "zone.pcp", ZONEINFO, "pagesets count", 1, "", "", "", "",
            "Free pages on per-CPU lists.";
        ZONE_FREE_CMA: Gauge<Pages> = "zone.free_cma", ZONEINFO, "nr_free_cma", 1, "", "", "mem.zoneinfo.nr_free_cma", "node_zoneinfo_nr_free_cma",
            "Free pages that only movable allocations may use.";
        ZONE_BLOCKS_0: Gauge<Count> = "zone.blocks_0", BUDDYINFO, "order 0", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^0 contiguous pages.";
        ZONE_BLOCKS_1: Gauge<Count> = "zone.blocks_1", BUDDYINFO, "order 1", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^1 contiguous pages.";
        ZONE_BLOCKS_2: Gauge<Count> = "zone.blocks_2", BUDDYINFO, "order 2", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^2 contiguous pages.";
        ZONE_BLOCKS_3: Gauge<Count> = "zone.blocks_3", BUDDYINFO, "order 3", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^3 contiguous pages.";
        ZONE_BLOCKS_4: Gauge<Count> = "zone.blocks_4", BUDDYINFO, "order 4", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^4 contiguous pages.";
        ZONE_BLOCKS_5: Gauge<Count> = "zone.blocks_5", BUDDYINFO, "order 5", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^5 contiguous pages.";
        ZONE_BLOCKS_6: Gauge<Count> = "zone.blocks_6", BUDDYINFO, "order 6", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^6 contiguous pages.";
        ZONE_BLOCKS_7: Gauge<Count> = "zone.blocks_7", BUDDYINFO, "order 7", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^7 contiguous pages.";
        ZONE_BLOCKS_8: Gauge<Count> = "zone.blocks_8", BUDDYINFO, "order 8", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^8 contiguous pages.";
        ZONE_BLOCKS_9: Gauge<Count> = "zone.blocks_9", BUDDYINFO, "order 9", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^9 contiguous pages.";
        ZONE_BLOCKS_10: Gauge<Count> = "zone.blocks_10", BUDDYINFO, "order 10", 1, "", "", "mem.buddyinfo.pages", "node_buddyinfo_blocks",
            "Free blocks of 2^10 contiguous pages.";
    }
    Disk {
        DISK_READS: Counter<Count> = "disk.reads", DISKSTATS, "reads", 1, "", "tps", "disk.dev.read", "node_disk_reads_completed_total",
            "Reads completed.";
        DISK_READ_BYTES: Counter<Bytes> = "disk.read_bytes", DISKSTATS, "sectors read", 512, "", "rkB/s", "disk.dev.read_bytes", "node_disk_read_bytes_total",
            "Bytes read.";
        DISK_READ_TIME: Counter<Millis> = "disk.read_time", DISKSTATS, "ms reading", 1, "", "", "disk.dev.", "node_disk_read_time_seconds_total",
            "Time that reads took, added up.";
        DISK_WRITES: Counter<Count> = "disk.writes", DISKSTATS, "writes", 1, "", "tps", "disk.dev.write", "node_disk_writes_completed_total",
            "Writes completed.";
        DISK_WRITE_BYTES: Counter<Bytes> = "disk.write_bytes", DISKSTATS, "sectors written", 512, "", "wkB/s", "disk.dev.write_bytes", "node_disk_written_bytes_total",
            "Bytes written.";
        DISK_WRITE_TIME: Counter<Millis> = "disk.write_time", DISKSTATS, "ms writing", 1, "", "", "disk.dev.", "node_disk_write_time_seconds_total",
            "Time that writes took, added up.";
        DISK_IN_FLIGHT: Gauge<Count> = "disk.in_flight", DISKSTATS, "in flight", 1, "", "aqu-sz", "disk.dev.", "node_disk_io_now",
            "Requests under way.";
        DISK_IO_TIME: Counter<Millis> = "disk.io_time", DISKSTATS, "ms doing I/O", 1, "", "%util", "disk.dev.avactive", "node_disk_io_time_seconds_total",
            "Time for which any request was under way.";
        DISK_QUEUE_TIME: Counter<Millis> = "disk.queue_time", DISKSTATS, "weighted ms", 1, "", "", "disk.dev.aveq", "node_disk_io_time_weighted_seconds_total",
            "Time of all requests added up, waiting included.";
        DISK_FLUSHES: Counter<Count> = "disk.flushes", DISKSTATS, "flushes", 1, "5.5", "", "disk.dev.", "node_disk_flush_requests_total",
            "Flush requests completed.";
    }
    SwapArea {
        SWAP_AREA_SIZE: Gauge<Bytes> = "swap_area.size", SWAPS, "Size", 1024, "", "", "swapdev.length", "node_swap_size_bytes",
            "Size of the swap area.";
        SWAP_AREA_USED: Gauge<Bytes> = "swap_area.used", SWAPS, "Used", 1024, "", "", "swapdev.length", "node_swap_used_bytes",
            "What the swap area holds.";
        SWAP_AREA_RANK: Gauge<Count> = "swap_area.rank", SWAPS, "Priority", 1, "", "", "swapdev.priority", "",
            "Priority plus 32768: the area with the highest is filled first.";
    }
    Zram {
        ZRAM_ORIG: Gauge<Bytes> = "zram.orig", "/sys/block/zram*/mm_stat", "1", 1, "4.2", "", "zram.mm_stat.orig", "",
            "What zram holds, before compression; zero pages left out.";
        ZRAM_COMPRESSED: Gauge<Bytes> = "zram.compressed", "/sys/block/zram*/mm_stat", "2", 1, "4.2", "", "zram.mm_stat.compressed", "",
            "The same, compressed.";
        ZRAM_USED: Gauge<Bytes> = "zram.used", "/sys/block/zram*/mm_stat", "3", 1, "4.2", "", "zram.mm_stat.used", "",
            "RAM that zram takes, its own overhead included.";
        ZRAM_LIMIT: Gauge<Bytes> = "zram.limit", "/sys/block/zram*/mm_stat", "4", 1, "4.2", "", "zram.mm_stat.limit", "",
            "The most RAM that zram may take; 0 is no limit.";
        ZRAM_USED_MAX: Gauge<Bytes> = "zram.used_max", "/sys/block/zram*/mm_stat", "5", 1, "4.2", "", "zram.mm_stat.used_max", "",
            "The most RAM that zram ever took.";
        ZRAM_SAME: Gauge<Pages> = "zram.same", "/sys/block/zram*/mm_stat", "6", 1, "4.2", "", "zram.mm_stat.same", "",
            "Pages of one repeated value, which take no RAM.";
        ZRAM_HUGE: Gauge<Pages> = "zram.huge", "/sys/block/zram*/mm_stat", "8", 1, "4.19", "", "zram.mm_stat.huge", "",
            "Incompressible pages, stored as they are.";
        ZRAM_DISK_SIZE: Gauge<Bytes> = "zram.disk_size", "/sys/block/zram*/disksize", "1", 1, "", "", "", "",
            "Size of the device that swap sees.";
        ZRAM_FAILED_WRITES: Counter<Count> = "zram.failed_writes", "/sys/block/zram*/io_stat", "2", 1, "4.2", "", "zram.io_stat.failed.writes", "",
            "Writes that failed, mostly because of the limit.";
    }
    Slab {
        SLAB_OBJECTS: Gauge<Count> = "slab.objects", SLABINFO, "num_objs", 1, "", "", "mem.slabinfo.objects.total", "node_slabinfo_objects",
            "Allocated objects of the cache.";
        SLAB_OBJECTS_ACTIVE: Gauge<Count> = "slab.objects_active", SLABINFO, "active_objs", 1, "", "", "mem.slabinfo.objects.active", "node_slabinfo_active_objects",
            "Objects in use.";
        SLAB_OBJECT_SIZE: Gauge<Bytes> = "slab.object_size", SLABINFO, "objsize", 1, "", "", "mem.slabinfo.objects.size", "node_slabinfo_object_size_bytes",
            "Size of an object.";
        SLAB_PAGES: Gauge<Pages> = "slab.pages", SLABINFO, "num_slabs × pagesperslab", 1, "", "", "mem.slabinfo.slabs.total", "",
            "Pages that the cache takes.";
    }
    Cgroup {
        CGROUP_CURRENT: Gauge<Bytes> = "cgroup.current", "/sys/fs/cgroup/**/memory.current", "1", 1, "4.5", "", "cgroup.memory.current", "container_memory_usage_bytes",
            "Memory charged to the group and below. v1: memory.usage_in_bytes.";
        CGROUP_PEAK: Gauge<Bytes> = "cgroup.peak", "/sys/fs/cgroup/**/memory.peak", "1", 1, "5.19", "", "cgroup.memory.peak", "",
            "The most that was ever charged. v1: memory.max_usage_in_bytes.";
        CGROUP_MAX: Gauge<Limit> = "cgroup.max", "/sys/fs/cgroup/**/memory.max", "1", 1, "4.5", "", "cgroup.memory.max", "container_spec_memory_limit_bytes",
            "The hard limit. v1: memory.limit_in_bytes.";
        CGROUP_HIGH: Gauge<Limit> = "cgroup.high", "/sys/fs/cgroup/**/memory.high", "1", 1, "4.5", "", "cgroup.memory.high", "",
            "The limit above which the group is slowed down; v2 only.";
        CGROUP_LOW: Gauge<Limit> = "cgroup.low", "/sys/fs/cgroup/**/memory.low", "1", 1, "4.5", "", "cgroup.memory.low", "",
            "What reclaim spares unless nothing else is left.";
        CGROUP_MIN: Gauge<Limit> = "cgroup.min", "/sys/fs/cgroup/**/memory.min", "1", 1, "4.18", "", "cgroup.memory.min", "",
            "What reclaim never takes.";
        CGROUP_SWAP_CURRENT: Gauge<Bytes> = "cgroup.swap_current", "/sys/fs/cgroup/**/memory.swap.current", "1", 1, "4.5", "", "cgroup.memory.swap.current", "container_memory_swap",
            "Swap charged to the group.";
        CGROUP_SWAP_MAX: Gauge<Limit> = "cgroup.swap_max", "/sys/fs/cgroup/**/memory.swap.max", "1", 1, "4.5", "", "cgroup.memory.swap.max", "",
            "The limit for swap.";
        CGROUP_EVENTS_LOW: Counter<Count> = "cgroup.events_low", "/sys/fs/cgroup/**/memory.events", "low", 1, "4.5", "", "cgroup.memory.events.low", "",
            "Times reclaim took from the group although it was below its low protection.";
        CGROUP_EVENTS_HIGH: Counter<Count> = "cgroup.events_high", "/sys/fs/cgroup/**/memory.events", "high", 1, "4.5", "", "cgroup.memory.events.high", "",
            "Times the group was slowed down for being above memory.high.";
        CGROUP_EVENTS_MAX: Counter<Count> = "cgroup.events_max", "/sys/fs/cgroup/**/memory.events", "max", 1, "4.5", "", "cgroup.memory.events.max", "",
            "Times the group ran into its hard limit. v1: memory.failcnt.";
        CGROUP_EVENTS_OOM: Counter<Count> = "cgroup.events_oom", "/sys/fs/cgroup/**/memory.events", "oom", 1, "4.5", "", "cgroup.memory.events.oom", "",
            "Times an allocation in the group was about to fail.";
        CGROUP_EVENTS_OOM_KILL: Counter<Count> = "cgroup.events_oom_kill", "/sys/fs/cgroup/**/memory.events", "oom_kill", 1, "4.5", "", "cgroup.memory.events.oom_kill", "",
            "Processes of the group killed for want of memory.";
        CGROUP_ANON: Gauge<Bytes> = "cgroup.anon", "/sys/fs/cgroup/**/memory.stat", "anon", 1, "4.5", "", "cgroup.memory.stat.anon", "",
            "Anonymous memory. v1: total_rss.";
        CGROUP_FILE: Gauge<Bytes> = "cgroup.file", "/sys/fs/cgroup/**/memory.stat", "file", 1, "4.5", "", "cgroup.memory.stat.file", "",
            "Page cache, shared memory included. v1: total_cache.";
        CGROUP_KERNEL: Gauge<Bytes> = "cgroup.kernel", "/sys/fs/cgroup/**/memory.stat", "kernel", 1, "4.5", "", "cgroup.memory.stat.kernel", "",
            "Kernel memory of all kinds.";
        CGROUP_KERNEL_STACK: Gauge<Bytes> = "cgroup.kernel_stack", "/sys/fs/cgroup/**/memory.stat", "kernel_stack", 1, "4.5", "", "cgroup.memory.stat.kernel_stack", "",
            "Kernel stacks.";
        CGROUP_PAGETABLES: Gauge<Bytes> = "cgroup.pagetables", "/sys/fs/cgroup/**/memory.stat", "pagetables", 1, "4.5", "", "cgroup.memory.stat.pagetables", "",
            "Page tables.";
        CGROUP_PERCPU: Gauge<Bytes> = "cgroup.percpu", "/sys/fs/cgroup/**/memory.stat", "percpu", 1, "4.5", "", "cgroup.memory.stat.percpu", "",
            "Per-CPU kernel memory.";
        CGROUP_SOCK: Gauge<Bytes> = "cgroup.sock", "/sys/fs/cgroup/**/memory.stat", "sock", 1, "4.5", "", "cgroup.memory.stat.sock", "",
            "Socket buffers.";
        CGROUP_SHMEM: Gauge<Bytes> = "cgroup.shmem", "/sys/fs/cgroup/**/memory.stat", "shmem", 1, "4.5", "", "cgroup.memory.stat.shmem", "",
            "Shared memory and tmpfs; a part of file.";
        CGROUP_FILE_MAPPED: Gauge<Bytes> = "cgroup.file_mapped", "/sys/fs/cgroup/**/memory.stat", "file_mapped", 1, "4.5", "", "cgroup.memory.stat.file_mapped", "",
            "Mapped page cache.";
        CGROUP_FILE_DIRTY: Gauge<Bytes> = "cgroup.file_dirty", "/sys/fs/cgroup/**/memory.stat", "file_dirty", 1, "4.5", "", "cgroup.memory.stat.file_dirty", "",
            "Dirty page cache.";
        CGROUP_FILE_WRITEBACK: Gauge<Bytes> = "cgroup.file_writeback", "/sys/fs/cgroup/**/memory.stat", "file_writeback", 1, "4.5", "", "cgroup.memory.stat.file_writeback", "",
            "Page cache being written.";
        CGROUP_INACTIVE_ANON: Gauge<Bytes> = "cgroup.inactive_anon", "/sys/fs/cgroup/**/memory.stat", "inactive_anon", 1, "4.5", "", "cgroup.memory.stat.inactive_anon", "",
            "Anonymous pages reclaimed first.";
        CGROUP_ACTIVE_ANON: Gauge<Bytes> = "cgroup.active_anon", "/sys/fs/cgroup/**/memory.stat", "active_anon", 1, "4.5", "", "cgroup.memory.stat.active_anon", "",
            "Recently used anonymous pages.";
        CGROUP_INACTIVE_FILE: Gauge<Bytes> = "cgroup.inactive_file", "/sys/fs/cgroup/**/memory.stat", "inactive_file", 1, "4.5", "", "cgroup.memory.stat.inactive_file", "",
            "File pages reclaimed first.";
        CGROUP_ACTIVE_FILE: Gauge<Bytes> = "cgroup.active_file", "/sys/fs/cgroup/**/memory.stat", "active_file", 1, "4.5", "", "cgroup.memory.stat.active_file", "",
            "Recently used file pages.";
        CGROUP_UNEVICTABLE: Gauge<Bytes> = "cgroup.unevictable", "/sys/fs/cgroup/**/memory.stat", "unevictable", 1, "4.5", "", "cgroup.memory.stat.unevictable", "",
            "Pages that cannot be reclaimed.";
        CGROUP_SLAB_RECLAIMABLE: Gauge<Bytes> = "cgroup.slab_reclaimable", "/sys/fs/cgroup/**/memory.stat", "slab_reclaimable", 1, "4.5", "", "cgroup.memory.stat.slab_reclaimable", "",
            "Kernel objects that can be reclaimed.";
        CGROUP_SLAB_UNRECLAIMABLE: Gauge<Bytes> = "cgroup.slab_unreclaimable", "/sys/fs/cgroup/**/memory.stat", "slab_unreclaimable", 1, "4.5", "", "cgroup.memory.stat.slab_unreclaimable", "",
            "Kernel objects that cannot.";
        CGROUP_ANON_THP: Gauge<Bytes> = "cgroup.anon_thp", "/sys/fs/cgroup/**/memory.stat", "anon_thp", 1, "4.5", "", "cgroup.memory.stat.anon_thp", "",
            "Anonymous memory in huge pages.";
        CGROUP_REFAULT_ANON: Counter<Pages> = "cgroup.refault_anon", "/sys/fs/cgroup/**/memory.stat", "workingset_refault_anon", 1, "5.9", "", "cgroup.memory.stat.workingset_refault_anon", "",
            "Anonymous pages of the group swapped in again.";
        CGROUP_REFAULT_FILE: Counter<Pages> = "cgroup.refault_file", "/sys/fs/cgroup/**/memory.stat", "workingset_refault_file", 1, "5.9", "", "cgroup.memory.stat.workingset_refault_file", "",
            "File pages of the group read again after eviction.";
        CGROUP_ACTIVATE_FILE: Counter<Pages> = "cgroup.activate_file", "/sys/fs/cgroup/**/memory.stat", "workingset_activate_file", 1, "5.9", "", "cgroup.memory.stat.workingset_activate_file", "",
            "Such file pages whose reuse was near.";
        CGROUP_NODERECLAIM: Counter<Pages> = "cgroup.nodereclaim", "/sys/fs/cgroup/**/memory.stat", "workingset_nodereclaim", 1, "5.9", "", "cgroup.memory.stat.workingset_nodereclaim", "",
            "Shadow entries dropped: refaults are undercounted.";
        CGROUP_PGSCAN: Counter<Pages> = "cgroup.pgscan", "/sys/fs/cgroup/**/memory.stat", "pgscan", 1, "4.5", "", "cgroup.memory.stat.pgscan", "",
            "Pages of the group looked at by reclaim.";
        CGROUP_PGSTEAL: Counter<Pages> = "cgroup.pgsteal", "/sys/fs/cgroup/**/memory.stat", "pgsteal", 1, "4.5", "", "cgroup.memory.stat.pgsteal", "",
            "Pages of the group reclaimed.";
        CGROUP_PGFAULT: Counter<Count> = "cgroup.pgfault", "/sys/fs/cgroup/**/memory.stat", "pgfault", 1, "4.5", "", "cgroup.memory.stat.pgfault", "",
            "Page faults.";
        CGROUP_PGMAJFAULT: Counter<Count> = "cgroup.pgmajfault", "/sys/fs/cgroup/**/memory.stat", "pgmajfault", 1, "4.5", "", "cgroup.memory.stat.pgmajfault", "",
            "Page faults that waited for a disk.";
        CGROUP_PSI_MEMORY_SOME: Counter<Micros> = "cgroup.psi.memory.some", "/sys/fs/cgroup/**/memory.pressure", "some total", 1, "4.20", "", "cgroup.memory.pressure.some total", "",
            "Time for which at least one task of the group waited for memory.";
        CGROUP_PSI_MEMORY_FULL: Counter<Micros> = "cgroup.psi.memory.full", "/sys/fs/cgroup/**/memory.pressure", "full total", 1, "4.20", "", "cgroup.memory.pressure.full total", "",
            "Time for which all tasks of the group waited for memory.";
        CGROUP_PSI_IO_SOME: Counter<Micros> = "cgroup.psi.io.some", "/sys/fs/cgroup/**/io.pressure", "some total", 1, "4.20", "", "cgroup.io.pressure.some total", "",
            "Time for which at least one task of the group waited for I/O.";
        CGROUP_PSI_IO_FULL: Counter<Micros> = "cgroup.psi.io.full", "/sys/fs/cgroup/**/io.pressure", "full total", 1, "4.20", "", "cgroup.io.pressure.full total", "",
            "Time for which all tasks of the group waited for I/O.";
    }
    Process {
        PROC_PARENT: Gauge<Count> = "proc.parent", "/proc/PID/stat", "4 ppid", 1, "", "", "proc.psinfo.ppid", "",
            "PID of the parent.";
        PROC_MINFLT: Counter<Count> = "proc.minflt", "/proc/PID/stat", "10 minflt", 1, "", "", "proc.psinfo.minflt", "",
            "Page faults without I/O.";
        PROC_MAJFLT: Counter<Count> = "proc.majflt", "/proc/PID/stat", "12 majflt", 1, "", "", "proc.psinfo.maj_flt", "",
            "Page faults that waited for a disk.";
        PROC_UTIME: Counter<Ticks> = "proc.utime", "/proc/PID/stat", "14 utime", 1, "", "", "proc.psinfo.utime", "",
            "CPU time in user code.";
        PROC_STIME: Counter<Ticks> = "proc.stime", "/proc/PID/stat", "15 stime", 1, "", "", "proc.psinfo.stime", "",
            "CPU time in the kernel.";
        PROC_THREADS: Gauge<Count> = "proc.threads", "/proc/PID/stat", "20 num_threads", 1, "", "", "proc.psinfo.threads", "",
            "Threads.";
        PROC_SIZE: Gauge<Bytes> = "proc.size", "/proc/PID/stat", "23 vsize", 1, "", "", "proc.psinfo.vsize", "",
            "Address space.";
        PROC_RSS: Gauge<Pages> = "proc.rss", "/proc/PID/stat", "24 rss", 1, "", "", "proc.psinfo.rss", "",
            "Resident pages, shared ones counted in full.";
        PROC_BLKIO_DELAY: Counter<Ticks> = "proc.blkio_delay", "/proc/PID/stat", "42 delayacct_blkio_ticks", 1, "", "", "", "",
            "Time spent waiting for block I/O and swap-in.";
        PROC_RSS_ANON: Gauge<Bytes> = "proc.rss_anon", "/proc/PID/status", "RssAnon", 1024, "4.5", "", "", "",
            "Resident anonymous memory.";
        PROC_RSS_FILE: Gauge<Bytes> = "proc.rss_file", "/proc/PID/status", "RssFile", 1024, "4.5", "", "", "",
            "Resident file mappings.";
        PROC_RSS_SHMEM: Gauge<Bytes> = "proc.rss_shmem", "/proc/PID/status", "RssShmem", 1024, "4.5", "", "", "",
            "Resident shared memory.";
        PROC_SWAP: Gauge<Bytes> = "proc.swap", "/proc/PID/status", "VmSwap", 1024, "", "", "proc.memory.vmswap", "",
            "Anonymous memory in swap.";
        PROC_PAGE_TABLES: Gauge<Bytes> = "proc.page_tables", "/proc/PID/status", "VmPTE", 1024, "", "", "", "",
            "Page tables.";
        PROC_RSS_PEAK: Gauge<Bytes> = "proc.rss_peak", "/proc/PID/status", "VmHWM", 1024, "", "", "", "",
            "The most that was ever resident.";
        PROC_DATA: Gauge<Bytes> = "proc.data", "/proc/PID/status", "VmData", 1024, "", "", "", "",
            "Private writable address space.";
        PROC_LOCKED: Gauge<Bytes> = "proc.locked", "/proc/PID/status", "VmLck", 1024, "", "", "", "",
            "Locked memory.";
        PROC_PINNED: Gauge<Bytes> = "proc.pinned", "/proc/PID/status", "VmPin", 1024, "", "", "", "",
            "Pinned memory.";
        PROC_HUGETLB: Gauge<Bytes> = "proc.hugetlb", "/proc/PID/status", "HugetlbPages", 1024, "4.4", "", "", "",
            "Memory in hugetlb pages; not in RSS.";
        PROC_PSS: Gauge<Bytes> = "proc.pss", "/proc/PID/smaps_rollup", "Pss", 1024, "4.14", "", "", "",
            "Resident memory, shared pages divided among their sharers.";
        PROC_PSS_ANON: Gauge<Bytes> = "proc.pss_anon", "/proc/PID/smaps_rollup", "Pss_Anon", 1024, "5.4", "", "", "",
            "The anonymous part of PSS.";
        PROC_PSS_FILE: Gauge<Bytes> = "proc.pss_file", "/proc/PID/smaps_rollup", "Pss_File", 1024, "5.4", "", "", "",
            "The file part of PSS.";
        PROC_PSS_SHMEM: Gauge<Bytes> = "proc.pss_shmem", "/proc/PID/smaps_rollup", "Pss_Shmem", 1024, "5.4", "", "", "",
            "The shared-memory part of PSS.";
        PROC_PRIVATE_DIRTY: Gauge<Bytes> = "proc.private_dirty", "/proc/PID/smaps_rollup", "Private_Dirty", 1024, "4.14", "", "", "",
            "Pages of this process alone, written to.";
        PROC_PRIVATE_CLEAN: Gauge<Bytes> = "proc.private_clean", "/proc/PID/smaps_rollup", "Private_Clean", 1024, "4.14", "", "", "",
            "Pages of this process alone, not written to.";
        PROC_SHARED_DIRTY: Gauge<Bytes> = "proc.shared_dirty", "/proc/PID/smaps_rollup", "Shared_Dirty", 1024, "4.14", "", "", "",
            "Written pages shared with another process, as after a fork.";
        PROC_SWAP_PSS: Gauge<Bytes> = "proc.swap_pss", "/proc/PID/smaps_rollup", "SwapPss", 1024, "4.14", "", "", "",
            "Swap, shared pages divided.";
        PROC_ANON_HUGE: Gauge<Bytes> = "proc.anon_huge", "/proc/PID/smaps_rollup", "AnonHugePages", 1024, "4.14", "", "", "",
            "Anonymous memory in huge pages.";
        PROC_LAZY_FREE: Gauge<Bytes> = "proc.lazy_free", "/proc/PID/smaps_rollup", "LazyFree", 1024, "4.14", "", "", "",
            "Memory given back with MADV_FREE, not yet reclaimed.";
        PROC_READ_BYTES: Counter<Bytes> = "proc.read_bytes", "/proc/PID/io", "read_bytes", 1, "", "", "proc.io.read_bytes", "",
            "Read from storage.";
        PROC_WRITE_BYTES: Counter<Bytes> = "proc.write_bytes", "/proc/PID/io", "write_bytes", 1, "", "", "proc.io.write_bytes", "",
            "Caused to be written to storage.";
        PROC_CANCELLED_WRITE_BYTES: Counter<Bytes> = "proc.cancelled_write_bytes", "/proc/PID/io", "cancelled_write_bytes", 1, "", "", "proc.io.cancelled_write_bytes", "",
            "Written, then deleted before it reached storage.";
        PROC_RCHAR: Counter<Bytes> = "proc.rchar", "/proc/PID/io", "rchar", 1, "", "", "proc.io.rchar", "",
            "Asked for by read calls.";
        PROC_WCHAR: Counter<Bytes> = "proc.wchar", "/proc/PID/io", "wchar", 1, "", "", "proc.io.wchar", "",
            "Handed over by write calls.";
        PROC_OOM_ADJ: Gauge<Count> = "proc.oom_adj", "/proc/PID/oom_score_adj", "1", 1, "", "", "", "",
            "oom_score_adj plus 1000: 0 is never killed, 1000 is neutral, 2000 goes first.";
    }
}

/// Free blocks of a zone by order, for code that walks the orders.
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

/// The signals that one kernel file holds, by field name: what a parser needs to fill a row.
pub fn field_of(file: &str) -> impl Iterator<Item = (&'static str, SignalId, &'static SignalDef)> {
    entries()
        .filter(move |(_, def)| def.file == file)
        .map(|(id, def)| (def.field, id, def))
}

fn entries() -> impl Iterator<Item = (SignalId, &'static SignalDef)> {
    ALL.iter().enumerate().map(|(i, def)| {
        // The catalogue is far smaller than u16::MAX; the index enum's repr checks it.
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
    fn every_name_and_every_source_is_there_once() {
        let mut names = HashSet::new();
        let mut sources = HashSet::new();
        for def in ALL {
            assert!(names.insert(def.name), "{} is declared twice", def.name);
            assert!(
                sources.insert((def.file, def.field)),
                "{} shares its source",
                def.name
            );
            assert!(def.meaning.ends_with('.'), "{}", def.name);
            assert!(
                def.name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c)),
                "{}",
                def.name
            );
        }
        assert!(ALL.len() >= 120, "{}", ALL.len());
    }

    #[test]
    fn names_elsewhere_follow_the_other_tools_rules() {
        assert_eq!(
            MEM_ACTIVE_FILE.def().node_exporter().as_deref(),
            Some("node_memory_Active_file_bytes")
        );
        assert_eq!(
            HUGEPAGES_FREE.def().node_exporter().as_deref(),
            Some("node_memory_HugePages_Free")
        );
        assert_eq!(PSWPIN.def().pcp().as_deref(), Some("mem.vmstat.pswpin"));
        assert_eq!(
            ALLOCSTALL.def().pcp().as_deref(),
            Some("mem.vmstat.allocstall_total")
        );
    }
}
