//! Work: what the kernel was doing in a stack, whoever started it. The deepest function that names a mechanism decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::matches;

/// What the kernel was doing.
#[allow(missing_docs)] // `means` of the table says it, for readers too
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum KernelWork {
    Compaction,
    SlabShrink,
    Throttle,
    SwapIo,
    PageOut,
    RmapUnmap,
    LruScan,
    ReadIoWait,
    Zeroing,
    Copying,
    Alloc,
    Free,
    Tlb,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct WorkEntry {
    /// Which work it is.
    pub work: KernelWork,
    /// Its name in JSON.
    pub name: &'static str,
    /// Its name in sentences.
    pub means: &'static str,
    /// Functions of this mechanism; a name that ends with `*` is a prefix.
    pub functions: &'static [&'static str],
}

const fn row(
    work: KernelWork,
    name: &'static str,
    means: &'static str,
    functions: &'static [&'static str],
) -> WorkEntry {
    WorkEntry { work, name, means, functions }
}

/// All kinds of work, in the order of [`KernelWork`].
pub const WORKS: [WorkEntry; 13] = [
    row(
        KernelWork::Compaction,
        "compaction",
        "moving pages",
        &[
            "compact_zone",
            "isolate_migratepages*",
            "isolate_freepages*",
            "migrate_pages*",
            "migrate_page",
            "migrate_page_copy",
            "migrate_page_move_mapping",
            "migrate_folio*",
            "compaction_alloc",
            "move_to_new_page",
            "move_to_new_folio",
        ],
    ),
    row(
        KernelWork::SlabShrink,
        "slab-shrink",
        "shrinking slab caches",
        &[
            "shrink_slab*",
            "do_shrink_slab",
            "drop_slab",
            "super_cache_scan",
            "super_cache_count",
            "prune_dcache_sb",
            "prune_icache_sb",
            "prune_super",
            "shrink_dentry_list",
            "shrink_dcache_memory",
            "xfs_reclaim_inodes*",
            "list_lru_walk*",
            "list_lru_count*",
        ],
    ),
    row(
        KernelWork::Throttle,
        "throttle",
        "sleeping on purpose",
        &[
            "reclaim_throttle",
            "throttle_direct_reclaim",
            "congestion_wait",
            "wait_iff_congested",
            "balance_dirty_pages*",
            "too_many_isolated",
            "mem_cgroup_handle_over_high",
            "__mem_cgroup_handle_over_high",
        ],
    ),
    row(
        KernelWork::SwapIo,
        "swap-io",
        "reading and writing swap",
        &[
            "swap_readpage",
            "swap_read_folio",
            "swap_writepage",
            "swap_writeout",
            "__swap_writepage",
            "swap_read_unplug",
            "zswap_load",
            "zswap_store",
            "zram_bvec_read",
            "zram_bvec_write",
            "zram_read_page",
            "zram_write_page",
            "zram_submit_bio",
            "__zram_bvec_write",
            "__zram_bvec_read",
            "zcomp_*",
        ],
    ),
    row(KernelWork::PageOut, "page-out", "writing pages out", &["pageout"]),
    row(
        KernelWork::RmapUnmap,
        "rmap-unmap",
        "unmapping pages",
        &["try_to_unmap*", "folio_referenced*", "page_referenced*", "rmap_walk*"],
    ),
    row(
        KernelWork::LruScan,
        "lru-scan",
        "scanning LRU lists",
        &[
            "shrink_inactive_list",
            "shrink_active_list",
            "shrink_lruvec",
            "shrink_folio_list",
            "shrink_page_list",
            "shrink_list",
            "isolate_lru_folios",
            "isolate_lru_page*",
            "__isolate_lru_page*",
            "evict_folios",
            "lru_gen_*",
            "try_to_shrink_lruvec",
            "walk_mm",
            "shrink_zone",
            "shrink_node",
            "shrink_mem_cgroup_zone",
            "shrink_node_memcg",
            "shrink_one",
            "shrink_many",
        ],
    ),
    row(
        KernelWork::ReadIoWait,
        "read-io-wait",
        "waiting for reads",
        &[
            "folio_wait_bit_common",
            "wait_on_page_bit*",
            "__lock_page*",
            "__folio_lock*",
            "folio_wait_locked*",
            "read_pages*",
            "folio_wait_writeback",
        ],
    ),
    row(
        KernelWork::Zeroing,
        "zeroing",
        "zeroing pages",
        &[
            "clear_page*",
            "clear_huge_page",
            "clear_user_highpage",
            "clear_subpage",
            "folio_zero_user",
            "kernel_init_pages",
            "kernel_init_free_pages",
        ],
    ),
    row(
        KernelWork::Copying,
        "copying",
        "copying data",
        &[
            "copy_user_highpage",
            "copy_mc_*",
            "copy_page",
            "copy_page_rep",
            "copy_user_generic*",
            "copy_user_enhanced*",
            "copy_user_page*",
            "copy_user_large_folio",
            "__wp_page_copy_user",
            "_copy_to_iter",
            "copy_page_to_iter",
            "copy_page_from_iter*",
            "copy_folio_from_iter*",
        ],
    ),
    row(
        KernelWork::Alloc,
        "alloc",
        "taking free pages",
        &["get_page_from_freelist", "rmqueue*", "__rmqueue_pcplist", "prep_new_page"],
    ),
    row(
        KernelWork::Free,
        "free",
        "giving pages back",
        &["free_pcppages_bulk", "release_pages", "free_unref_page*"],
    ),
    row(
        KernelWork::Tlb,
        "tlb",
        "flushing TLBs of other CPUs",
        &[
            "flush_tlb_*",
            "smp_call_function_many*",
            "native_flush_tlb_*",
            "try_to_unmap_flush*",
            "arch_tlbbatch_flush",
        ],
    ),
];

impl KernelWork {
    /// Its row of the table.
    pub fn entry(self) -> &'static WorkEntry {
        // The table is in the order of the enumeration (a test).
        &WORKS[self as usize]
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Its name in sentences.
    pub fn means(self) -> &'static str {
        self.entry().means
    }

    /// The work of a function.
    pub(crate) fn of_function(name: &str) -> Option<Self> {
        // Exact names first: `try_to_unmap_flush` belongs to another row than `try_to_unmap*`.
        let is_exact = |row: &&WorkEntry| row.functions.contains(&name);
        let is_flush = |row: &&WorkEntry| row.work == Self::Tlb && matches(name, row.functions);
        let exact = WORKS.iter().find(is_exact).or_else(|| WORKS.iter().find(is_flush));
        exact.or_else(|| WORKS.iter().find(|row| matches(name, row.functions))).map(|row| row.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enumeration_and_its_names_are_those_of_the_json() {
        for (at, entry) in WORKS.iter().enumerate() {
            assert_eq!(entry.work as usize, at, "{}", entry.name);
            assert_eq!(serde_json::to_value(entry.work).unwrap(), entry.name);
        }
    }

    #[test]
    fn a_flush_of_what_was_unmapped_is_a_flush() {
        for (function, work) in [
            ("try_to_unmap_one", Some(KernelWork::RmapUnmap)),
            ("try_to_unmap_flush_dirty", Some(KernelWork::Tlb)),
            ("clear_page_rep", Some(KernelWork::Zeroing)),
            ("copy_page_range", None),
            ("copy_page_to_iter", Some(KernelWork::Copying)),
            ("vfs_read", None),
        ] {
            assert_eq!(KernelWork::of_function(function), work, "{function}");
        }
    }
}
