//! Reasons: who started the kernel's work. One table, read by the classifier, the screens and the documentation.
//!
//! A stack holds many functions that "are" memory management: a read that has to reclaim shows `filemap_read`, `node_reclaim` and
//! `shrink_lruvec`. The reason is the **trigger** of the highest rank anywhere in the chain; where it stands does not matter.
//! Outermost-first names the victim (90 % "file read", 0 % "node reclaim" in a run in which node reclaim was the disease).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reason means for the reader.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonGroup {
    /// Work that a host with enough memory in the right place does not have. Only this can be hot.
    Trouble,
    /// What a setting costs: huge pages, NUMA balancing, page merging.
    PriceOfASetting,
    /// Faults, forks and page cache: what programs ask for.
    Ordinary,
    /// File systems, interrupts, other work of the kernel, user mode.
    NotMemory,
}

impl ReasonGroup {
    /// In the order of screens.
    pub const ALL: [Self; 4] =
        [Self::Trouble, Self::PriceOfASetting, Self::Ordinary, Self::NotMemory];

    /// As a heading.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::PriceOfASetting => "price of a setting",
            Self::Ordinary => "ordinary memory work",
            Self::NotMemory => "not memory",
        }
    }
}

/// Who started the work of a stack.
#[allow(missing_docs)] // `means` of the table says it, for readers too
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    Kswapd,
    NodeReclaim,
    MemcgMax,
    MemcgHigh,
    DirectReclaim,
    DirectCompact,
    Kcompactd,
    CompactSysctl,
    SwapIn,
    DirtyThrottle,
    Oom,
    DropCaches,
    #[serde(rename = "reclaim?")]
    ReclaimCutOff,
    MmapLock,
    Proactive,
    Contig,
    Khugepaged,
    HugetlbPool,
    ThpFault,
    NumaBalancing,
    Ksm,
    Balloon,
    Charge,
    Cow,
    Fork,
    AnonFault,
    Unmap,
    Migration,
    FileRead,
    FileFault,
    FileWrite,
    PageFault,
    PageAlloc,
    Writeback,
    Journal,
    Fsync,
    Irq,
    OtherKernel,
    User,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ReasonEntry {
    /// Which reason it is.
    pub reason: Reason,
    /// Its name in JSON and in folded stacks.
    pub name: &'static str,
    /// Its name in sentences.
    pub label: &'static str,
    /// What it means for the reader.
    pub group: ReasonGroup,
    /// The higher, the sooner it names a stack that has several triggers; of equals the outermost does.
    pub rank: u8,
    /// Functions that begin this work and nothing else; a name that ends with `*` is a prefix.
    pub triggers: &'static [&'static str],
    /// What happens, as a sentence.
    pub means: &'static str,
    /// The rule of `memtide check` that explains it.
    pub rule: Option<&'static str>,
    /// What to type, where it is hot.
    pub remedy: Option<&'static str>,
}

const fn row(
    reason: Reason,
    name: &'static str,
    label: &'static str,
    group: ReasonGroup,
    rank: u8,
    triggers: &'static [&'static str],
    means: &'static str,
) -> ReasonEntry {
    ReasonEntry { reason, name, label, group, rank, triggers, means, rule: None, remedy: None }
}

impl ReasonEntry {
    const fn rule(self, id: &'static str) -> Self {
        Self { rule: Some(id), ..self }
    }

    const fn remedy(self, text: &'static str) -> Self {
        Self { remedy: Some(text), ..self }
    }
}

use ReasonGroup::{NotMemory, Ordinary, PriceOfASetting, Trouble};

/// All reasons, in the order of [`Reason`]. Names are those of Linux 2.6.32 to 7.x, each with the older ones beside the newer; suffixes that
/// compilers add (`.isra.0`) and `_noprof` are cut before they are compared.
pub const REASONS: [ReasonEntry; 39] = [
    // Also by the name of the thread: a chain may be cut below `balance_pgdat`.
    row(
        Reason::Kswapd,
        "kswapd",
        "background reclaim (kswapd)",
        Trouble,
        18,
        &["balance_pgdat", "kswapd", "kswapd_shrink_node", "kswapd_shrink_zone"],
        "kswapd reclaims pages in the background, as free memory fell below a watermark",
    )
    .rule("kswapd-saturated")
    .remedy("memtide check"),
    // `shrink_mem_cgroup_zone` and `shrink_node_memcgs` below it belong to every reclaim: no sign of a cgroup.
    row(
        Reason::NodeReclaim,
        "node-reclaim",
        "node reclaim",
        Trouble,
        18,
        &["node_reclaim", "__node_reclaim", "zone_reclaim", "__zone_reclaim"],
        "pages of one NUMA node are thrown away before another node is asked for memory",
    )
    .rule("node-reclaim-on")
    .remedy("sysctl -w vm.zone_reclaim_mode=0"),
    // `try_charge` alone is the cost of counting: see `IN_CHARGE`.
    row(
        Reason::MemcgMax,
        "memcg-max",
        "reclaim at a cgroup's limit",
        Trouble,
        18,
        &[
            "try_to_free_mem_cgroup_pages",
            "mem_cgroup_reclaim",
            "mem_cgroup_hierarchical_reclaim",
            "mem_cgroup_force_empty",
            "mem_cgroup_resize_max",
            "mem_cgroup_resize_limit",
            "memory_max_write",
            "memory_high_write",
        ],
        "a cgroup is at its limit: each page that it takes costs the reclaim of another",
    )
    .rule("cgroup-cache-starved")
    .remedy("memtide check --cgroup NAME"),
    // The return to user mode, where a task that is above memory.high sleeps: nearly no CPU, much waiting.
    row(
        Reason::MemcgHigh,
        "memcg-high",
        "throttling at a cgroup's memory.high",
        Trouble,
        18,
        &[
            "mem_cgroup_handle_over_high",
            "__mem_cgroup_handle_over_high",
            "high_work_func",
            "reclaim_high",
        ],
        "a cgroup is above its memory.high: its tasks reclaim and sleep before they go on",
    )
    .rule("cgroup-high-throttle")
    .remedy("memtide check --cgroup NAME"),
    row(
        Reason::DirectReclaim,
        "direct-reclaim",
        "direct reclaim",
        Trouble,
        16,
        &[
            "__alloc_pages_direct_reclaim",
            "__perform_reclaim",
            "try_to_free_pages",
            "do_try_to_free_pages",
            "throttle_direct_reclaim",
        ],
        "tasks that need a page reclaim others themselves, as kswapd does not keep up",
    )
    .rule("direct-reclaim-stall")
    .remedy("memtide check"),
    row(
        Reason::DirectCompact,
        "direct-compact",
        "direct compaction",
        Trouble,
        16,
        &["__alloc_pages_direct_compact", "try_to_compact_pages"],
        "tasks that need a large page move others together themselves",
    )
    .rule("compaction-stall")
    .remedy("echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag"),
    row(
        Reason::Kcompactd,
        "kcompactd",
        "background compaction (kcompactd)",
        Trouble,
        18,
        &["kcompactd", "kcompactd_do_work", "proactive_compact_node"],
        "kcompactd moves pages together in the background",
    )
    .rule("kcompactd-saturated")
    .remedy("sysctl -w vm.compaction_proactiveness=0"),
    row(
        Reason::CompactSysctl,
        "compact-sysctl",
        "compaction on request (vm.compact_memory)",
        Trouble,
        18,
        &["sysctl_compaction_handler", "compact_nodes", "compact_store"],
        "somebody writes to vm.compact_memory, which compacts all of RAM",
    )
    .rule("compaction-stall"),
    // The wait shows as `__folio_lock_or_retry`: it is the fault that waits for its page.
    row(
        Reason::SwapIn,
        "swap-in",
        "swap-in",
        Trouble,
        10,
        &[
            "do_swap_page",
            "shmem_swapin*",
            "swapin_readahead",
            "read_swap_cache_async",
            // swapoff
            "try_to_unuse",
            "unuse_pte_range",
        ],
        "pages that were swapped out are wanted again",
    )
    .rule("swap-thrash")
    .remedy("memtide check"),
    // `wb_wait_for_completion` is how sync() waits, and no sign of it.
    row(
        Reason::DirtyThrottle,
        "dirty-throttle",
        "throttling of writers",
        Trouble,
        14,
        &["balance_dirty_pages*"],
        "writers sleep, as more pages are dirty than the limit allows",
    )
    .rule("dirty-throttle")
    .remedy("memtide check"),
    row(
        Reason::Oom,
        "oom",
        "the OOM killer",
        Trouble,
        18,
        &[
            "out_of_memory",
            "oom_kill_process",
            "mem_cgroup_out_of_memory",
            "mem_cgroup_oom_synchronize",
            "oom_reaper",
            "oom_reap_task",
            "__oom_reap_task_mm",
            "pagefault_out_of_memory",
        ],
        "the kernel looks for a process to kill",
    )
    .rule("oom-global")
    .remedy("memtide events"),
    row(
        Reason::DropCaches,
        "drop-caches",
        "dropping of caches on request",
        Trouble,
        18,
        &["drop_caches_sysctl_handler", "drop_slab", "drop_pagecache_sb"],
        "somebody writes to vm.drop_caches, which throws the page cache away",
    )
    .rule("caches-dropped")
    .remedy("grep -rl drop_caches /etc/cron* /var/spool/cron /etc/systemd"),
    // The trigger is not in the chain (`perf top`, a chain that was cut): it is never guessed.
    row(
        Reason::ReclaimCutOff,
        "reclaim?",
        "reclaim, its reason cut off",
        Trouble,
        6,
        &[
            "shrink_inactive_list",
            "shrink_active_list",
            "shrink_lruvec",
            "shrink_folio_list",
            "shrink_page_list",
            "shrink_list",
            "shrink_zone",
            "shrink_zones",
            "shrink_node",
            "shrink_node_memcg",
            "shrink_node_memcgs",
            "shrink_mem_cgroup_zone",
            "shrink_slab*",
            "do_shrink_slab",
            "shrink_one",
            "shrink_many",
            "try_to_shrink_lruvec",
            "evict_folios",
            "isolate_lru_folios",
            "__isolate_lru_page*",
            "isolate_lru_pages*",
            "reclaim_throttle",
            "wait_iff_congested",
        ],
        "pages are reclaimed; what started it is not in the stack",
    )
    .rule("direct-reclaim-stall"),
    // Found by `LOCK_SLOW_PATHS` and `MMAP_LOCKERS`: the lock's own functions serve all kinds of locks.
    row(
        Reason::MmapLock,
        "mmap-lock",
        "waiting for the mmap lock",
        Trouble,
        12,
        &[],
        "threads wait for the lock of their address space",
    ),
    row(
        Reason::Proactive,
        "proactive",
        "proactive reclaim",
        PriceOfASetting,
        18,
        &[
            "memory_reclaim",
            "memory_reclaim_write",
            "user_proactive_reclaim",
            "damon_pa_pageout",
            // Of 6.x the function above is inlined in it.
            "damon_pa_apply_scheme",
            "damos_apply_scheme",
            "reclaim_store",
            "madvise_pageout",
        ],
        "a program asks for reclaim: memory.reclaim, MADV_PAGEOUT, DAMON",
    )
    .rule("reclaim-too-proactive"),
    row(
        Reason::Contig,
        "contig",
        "allocation of contiguous memory",
        PriceOfASetting,
        16,
        &["alloc_contig_range", "__alloc_contig_migrate_range", "cma_alloc"],
        "a driver or a huge page needs contiguous memory (CMA), and pages are moved out of it",
    )
    .rule("cma-reserved"),
    row(
        Reason::Khugepaged,
        "khugepaged",
        "collapsing into huge pages (khugepaged)",
        PriceOfASetting,
        14,
        &[
            "khugepaged",
            "khugepaged_do_scan",
            "khugepaged_scan_mm_slot",
            "collapse_huge_page",
            "hpage_collapse_scan_pmd",
            "hpage_collapse_scan_file",
            "madvise_collapse",
        ],
        "khugepaged gathers small pages into huge ones",
    )
    .rule("thp-bloat"),
    row(
        Reason::HugetlbPool,
        "hugetlb-pool",
        "the pool of huge pages",
        PriceOfASetting,
        14,
        &[
            "hugetlb_sysctl_handler*",
            "nr_hugepages_store*",
            "set_max_huge_pages",
            "__nr_hugepages_store_common",
            "alloc_pool_huge_page",
            "alloc_pool_huge_folio",
            "alloc_surplus_*",
            "hugetlb_fault",
            "hugetlb_no_page",
            "alloc_hugetlb_folio",
            "alloc_huge_page",
        ],
        "huge pages of the pool are made, faulted or given back",
    )
    .rule("hugetlb-unused"),
    row(
        Reason::ThpFault,
        "thp-fault",
        "faulting in huge pages",
        PriceOfASetting,
        8,
        &["do_huge_pmd_anonymous_page", "__do_huge_pmd_anonymous_page", "vma_alloc_anon_folio_pmd"],
        "a first touch takes a page of 2 MiB, which is zeroed whole",
    )
    .rule("thp-bloat"),
    row(
        Reason::NumaBalancing,
        "numa-balancing",
        "NUMA balancing",
        PriceOfASetting,
        12,
        &[
            "task_numa_work",
            "change_prot_numa",
            "do_numa_page",
            "do_huge_pmd_numa_page",
            "migrate_misplaced_*",
        ],
        "pages are unmapped and faulted again, in order to see which node uses them",
    )
    .rule("numa-balancing-overhead"),
    row(
        Reason::Ksm,
        "ksm",
        "merging of equal pages (KSM)",
        PriceOfASetting,
        12,
        &["ksm_scan_thread", "ksm_do_scan", "cmp_and_merge_page", "break_ksm"],
        "ksmd compares pages and merges equal ones",
    )
    .rule("ksm-cost"),
    row(
        Reason::Balloon,
        "balloon",
        "the balloon of the hypervisor",
        PriceOfASetting,
        12,
        &[
            "fill_balloon",
            "leak_balloon",
            "virtballoon_*",
            "vmballoon_work",
            "balloon_up",
            "balloon_process",
            "page_reporting_*",
        ],
        "the hypervisor takes memory from the guest, or is given free pages",
    )
    .rule("balloon-inflated"),
    row(
        Reason::Charge,
        "charge",
        "counting for cgroups",
        PriceOfASetting,
        6,
        &[
            "try_charge*",
            "__mem_cgroup_charge*",
            "mem_cgroup_charge*",
            "charge_memcg",
            "obj_cgroup_charge*",
            "cgroup_rstat_flush*",
            "mem_cgroup_flush_stats*",
            "memory_stat_show",
        ],
        "pages are counted for a cgroup, or a cgroup's counters are summed for a reader",
    )
    .rule("dying-cgroups"),
    row(
        Reason::Cow,
        "cow",
        "copy-on-write",
        Ordinary,
        10,
        &["wp_page_copy", "do_wp_page", "do_cow_fault", "do_huge_pmd_wp_page"],
        "a page that is shared since a fork is written, and copied",
    )
    .rule("fork-cow-spike"),
    row(
        Reason::Fork,
        "fork",
        "fork",
        Ordinary,
        10,
        &["copy_page_range", "copy_pte_range", "dup_mmap", "dup_mm"],
        "page tables are copied for a new process",
    )
    .rule("fork-cow-spike"),
    row(
        Reason::AnonFault,
        "anon-fault",
        "first touches of memory",
        Ordinary,
        8,
        &[
            "do_anonymous_page",
            // 6.1 and later inline `do_anonymous_page`.
            "vma_alloc_folio*",
            "vma_alloc_zeroed_movable_folio",
            "alloc_anon_folio",
            "folio_prealloc",
            "alloc_pages_vma",
            "shmem_fault",
            "shmem_get_folio_gfp",
            "shmem_getpage_gfp",
        ],
        "memory is touched for the first time, and gets a zeroed page",
    ),
    row(
        Reason::Unmap,
        "unmap",
        "unmapping",
        Ordinary,
        8,
        &[
            "exit_mmap",
            "unmap_region",
            "zap_page_range*",
            "madvise_dontneed*",
            "madvise_free*",
            "madvise_vma_behavior",
            "unmap_vmas",
            "tlb_finish_mmu",
            "unmap_mapping_range",
            "mmput",
        ],
        "memory is given back: munmap, MADV_DONTNEED, the end of a process",
    ),
    row(
        Reason::Migration,
        "migration",
        "moving of pages, its reason cut off",
        Ordinary,
        6,
        &[
            "migrate_pages*",
            "migrate_page",
            "migrate_folio*",
            "migrate_page_copy",
            "move_to_new_page",
            "move_to_new_folio",
            "compact_zone",
            "isolate_migratepages*",
            "isolate_freepages*",
            "remove_migration_pte*",
            "migration_entry_wait*",
        ],
        "pages are moved; what started it is not in the stack",
    ),
    row(
        Reason::FileRead,
        "file-read",
        "reading files",
        Ordinary,
        4,
        &[
            "filemap_read",
            "generic_file_buffered_read",
            "generic_file_read_iter",
            "generic_file_aio_read",
            "do_generic_file_read",
            "page_cache_sync_ra",
            "page_cache_ra_*",
            "page_cache_sync_readahead",
            "page_cache_async_readahead",
            "ondemand_readahead",
            "force_page_cache_ra",
            "__do_page_cache_readahead",
        ],
        "files are read through the page cache",
    )
    .rule("page-cache-thrash"),
    row(
        Reason::FileFault,
        "file-fault",
        "faulting in mapped files",
        Ordinary,
        4,
        &[
            "filemap_fault",
            "filemap_map_pages",
            "do_fault_around",
            "do_read_fault",
            "do_shared_fault",
        ],
        "mapped files, programs and libraries among them, are read",
    )
    .rule("page-cache-thrash"),
    row(
        Reason::FileWrite,
        "file-write",
        "writing files",
        Ordinary,
        4,
        &[
            "generic_perform_write",
            "iomap_file_buffered_write",
            "ext4_buffered_write_iter",
            "btrfs_buffered_write",
            "xfs_file_buffered_write",
            "generic_file_buffered_write",
            "__generic_file_aio_write",
        ],
        "files are written into the page cache",
    ),
    row(
        Reason::PageFault,
        "page-fault",
        "other page faults",
        Ordinary,
        3,
        &[
            "handle_mm_fault",
            "__handle_mm_fault",
            "do_user_addr_fault",
            "__do_page_fault",
            "do_page_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
            "page_fault",
            "async_page_fault",
            "do_mem_abort",
        ],
        "faults of which the chain shows no more: their entry, or a page that is there already",
    ),
    row(
        Reason::PageAlloc,
        "page-alloc",
        "other allocations of pages",
        Ordinary,
        2,
        &[
            "__alloc_pages",
            "__alloc_pages_nodemask",
            "__alloc_frozen_pages",
            "alloc_pages_current",
            "free_unref_page_list",
            "release_pages",
        ],
        "pages are taken and given back by other parts of the kernel",
    ),
    row(
        Reason::Writeback,
        "writeback",
        "writing of dirty pages",
        NotMemory,
        10,
        &["wb_workfn", "wb_writeback", "wb_do_writeback", "bdi_writeback_thread"],
        "dirty pages are written to the disk in the background",
    ),
    row(
        Reason::Journal,
        "journal",
        "the journal of a file system",
        NotMemory,
        9,
        &[
            "jbd2_*",
            "__jbd2_*",
            "do_get_write_access",
            "start_this_handle",
            "add_transaction_credits",
            "wait_transaction_locked",
            "kjournald2",
            "xlog_*",
            "xfs_log_force*",
            "xfs_log_reserve",
            "btrfs_wait_ordered*",
            "btrfs_commit_transaction",
            "blk_mq_get_tag",
            "rq_qos_wait",
            "wbt_wait",
            "blkdev_issue_zeroout",
            "ext4_lazyinit_thread",
        ],
        "a file system or a disk queue makes tasks wait for their turn",
    ),
    row(
        Reason::Fsync,
        "fsync",
        "fsync and sync",
        NotMemory,
        8,
        &[
            "vfs_fsync_range",
            "do_fsync",
            "ext4_sync_file",
            "ext4_sync_fs",
            "sync_inodes_sb",
            "iterate_supers",
            "ksys_sync",
            "filemap_fdatawait*",
            "file_write_and_wait_range",
            "jbd2_log_wait_commit",
        ],
        "programs wait until their data is on the disk",
    )
    .rule("fsync-storm"),
    row(
        Reason::Irq,
        "irq",
        "interrupts",
        NotMemory,
        0,
        &[],
        "interrupts and what they leave behind; not the work of the code that they interrupted",
    ),
    row(
        Reason::OtherKernel,
        "other-kernel",
        "the kernel, not memory",
        NotMemory,
        0,
        &[],
        "other work of the kernel",
    ),
    row(Reason::User, "user", "user mode", NotMemory, 0, &[], "the programs themselves"),
];

impl Reason {
    /// All reasons, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        REASONS.iter().map(|row| row.reason)
    }

    /// Its row of the table.
    pub fn entry(self) -> &'static ReasonEntry {
        // The table is in the order of the enumeration (a test).
        &REASONS[self as usize]
    }

    /// Its name in JSON and in folded stacks.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Its name in sentences.
    pub fn label(self) -> &'static str {
        self.entry().label
    }

    /// What it means for the reader.
    pub fn group(self) -> ReasonGroup {
        self.entry().group
    }

    /// Whether it works in threads of its own in the background: what it does makes no task wait by itself.
    pub const fn is_background(self) -> bool {
        matches!(self, Self::Kswapd | Self::Kcompactd | Self::Khugepaged)
    }

    /// Whether it waits for files: trouble only where what is read was in memory before.
    pub const fn is_file_wait(self) -> bool {
        matches!(self, Self::FileRead | Self::FileFault)
    }

    /// Whether it reclaims pages.
    pub const fn is_reclaim(self) -> bool {
        matches!(
            self,
            Self::Kswapd
                | Self::NodeReclaim
                | Self::MemcgMax
                | Self::MemcgHigh
                | Self::DirectReclaim
                | Self::Proactive
                | Self::ReclaimCutOff
        )
    }
}

/// Functions in which reclaim works, whatever started it: below `try_charge` they make it reclaim at a limit.
pub(crate) fn is_reclaim_function(name: &str) -> bool {
    matches(name, REASONS[Reason::ReclaimCutOff as usize].triggers)
}

/// Functions that count pages for a cgroup. Reclaim below one of them is reclaim at its limit.
pub(crate) const IN_CHARGE: [&str; 2] = ["try_charge*", "obj_cgroup_charge*"];

/// The slow paths of sleeping locks.
pub(crate) const LOCK_SLOW_PATHS: [&str; 5] =
    ["rwsem_down_*", "down_read*", "down_write*", "__down_*", "call_rwsem_down_*"];

/// Functions that take the lock of an address space.
pub(crate) const MMAP_LOCKERS: [&str; 26] = [
    "do_user_addr_fault",
    "__do_page_fault",
    "do_page_fault",
    "lock_mm_and_find_vma",
    "do_mmap",
    "vm_mmap_pgoff",
    "vm_munmap",
    "__vm_munmap",
    "__x64_sys_mmap",
    "__x64_sys_munmap",
    "__x64_sys_brk",
    "sys_mmap_pgoff",
    "sys_munmap",
    "sys_brk",
    "SyS_munmap",
    "SyS_brk",
    "do_madvise*",
    "sys_madvise",
    "process_madvise",
    "exit_mm",
    "do_mprotect_pkey",
    "show_map",
    "m_start",
    "smaps_rollup",
    "proc_pid_readlink",
    "dup_mmap",
];

/// Whether a name is one of these, or begins with one that ends with `*`.
pub(crate) fn matches(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enumeration_and_its_names_are_those_of_the_json() {
        for (at, entry) in REASONS.iter().enumerate() {
            assert_eq!(entry.reason as usize, at, "{}", entry.name);
            assert_eq!(serde_json::to_value(entry.reason).unwrap(), entry.name);
        }
    }

    #[test]
    fn no_trigger_is_in_two_rows() {
        let all = || REASONS.iter().flat_map(|row| row.triggers.iter().map(|one| (one, row.name)));
        let twice: Vec<_> = all()
            .filter(|(one, name)| all().any(|(other, of)| other == *one && of != *name))
            .collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn only_trouble_has_a_remedy() {
        let wrong =
            REASONS.iter().filter(|row| row.remedy.is_some() && row.group != ReasonGroup::Trouble);
        assert_eq!(wrong.count(), 0);
    }
}
