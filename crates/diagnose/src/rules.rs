//! The rules, one file each: documentation, thresholds with their provenance, trigger, story and tests. This file lists
//! them.

use crate::rule::Rule;

mod accounting_mismatch;
mod allocator_churn;
mod available_exhaustion;
mod balloon_inflated;
mod boot_reserved;
mod cache_full_harmless;
mod cache_starved_floor;
mod caches_dropped;
mod cgroup_cache_starved;
mod cgroup_dirty_reclaim;
mod cgroup_dirty_throttle;
mod cgroup_high_throttle;
mod cgroup_kmem_large;
pub(crate) mod cgroup_limit_ahead;
mod cgroup_oom_standstill;
mod cgroup_shmem_large;
mod cgroup_swap_limited;
mod cma_reserved;
mod compaction_stall;
mod dentry_inode_bloat;
mod direct_reclaim_stall;
mod dirty_limit_too_big;
mod dirty_throttle;
mod dying_cgroups;
mod exec_pages_evicted;
mod external_fragmentation;
mod fork_cow_spike;
mod free_low_harmless;
mod fsync_storm;
mod heap_fragmentation_growth;
mod hugetlb_unused;
mod kcompactd_saturated;
mod kernel_stacks_large;
mod ksm_cost;
mod kswapd_saturated;
mod kswapd_stuck;
mod locked_memory_large;
mod lowmem_zone_exhausted;
mod malloc_arena_bloat;
mod memory_errors;
mod min_free_too_large;
mod min_free_too_small;
mod monitoring_gap;
mod no_swap_risk;
pub(crate) mod node_reclaim_on;
mod numa_balancing_overhead;
mod numa_imbalance;
mod oom_cgroup;
mod oom_constrained;
mod oom_global;
mod oom_manual;
mod oom_score_misuse;
mod oom_userspace;
mod overcommit_limit;
mod page_cache_thrash;
mod page_tables_large;
mod percpu_large;
mod pinned_memory_large;
mod pod_oom;
mod process_leak;
mod protection_imbalance;
mod reclaim_behind_writes;
mod reclaim_too_proactive;
mod runtime_heap;
mod shmem_growth;
mod slab_leak;
mod socket_memory_pressure;
mod storage_bound;
mod streaming_read;
pub(crate) mod swap_cold_harmless;
mod swap_full;
mod swap_readahead_waste;
mod swap_slow_device;
mod swap_thrash;
mod swappiness_misfit;
#[cfg(test)]
pub(crate) mod testing;
mod thp_bloat;
mod tier_thrash;
mod unaccounted_memory;
mod unexplained_stall;
mod vmalloc_large;
mod watermark_boost;
mod zram_misuse;
mod zswap_pool_full;

/// Every rule, in the order in which lists show them: capacity, reclaim, writes, huge pages, kernel, limits, notes.
pub static ALL: &[Rule] = &[
    available_exhaustion::RULE,
    cache_starved_floor::RULE,
    page_cache_thrash::RULE,
    exec_pages_evicted::RULE,
    swap_thrash::RULE,
    swap_full::RULE,
    no_swap_risk::RULE,
    swappiness_misfit::RULE,
    zram_misuse::RULE,
    zswap_pool_full::RULE,
    swap_slow_device::RULE,
    swap_readahead_waste::RULE,
    tier_thrash::RULE,
    direct_reclaim_stall::RULE,
    kswapd_saturated::RULE,
    kswapd_stuck::RULE,
    watermark_boost::RULE,
    reclaim_too_proactive::RULE,
    caches_dropped::RULE,
    min_free_too_large::RULE,
    min_free_too_small::RULE,
    node_reclaim_on::RULE,
    numa_imbalance::RULE,
    numa_balancing_overhead::RULE,
    dirty_throttle::RULE,
    dirty_limit_too_big::RULE,
    reclaim_behind_writes::RULE,
    fsync_storm::RULE,
    thp_bloat::RULE,
    compaction_stall::RULE,
    kcompactd_saturated::RULE,
    external_fragmentation::RULE,
    lowmem_zone_exhausted::RULE,
    hugetlb_unused::RULE,
    page_tables_large::RULE,
    kernel_stacks_large::RULE,
    slab_leak::RULE,
    dentry_inode_bloat::RULE,
    vmalloc_large::RULE,
    percpu_large::RULE,
    dying_cgroups::RULE,
    shmem_growth::RULE,
    locked_memory_large::RULE,
    pinned_memory_large::RULE,
    unaccounted_memory::RULE,
    balloon_inflated::RULE,
    boot_reserved::RULE,
    cma_reserved::RULE,
    ksm_cost::RULE,
    memory_errors::RULE,
    oom_global::RULE,
    oom_manual::RULE,
    oom_userspace::RULE,
    pod_oom::RULE,
    oom_score_misuse::RULE,
    oom_cgroup::RULE,
    oom_constrained::RULE,
    cgroup_oom_standstill::RULE,
    cgroup_high_throttle::RULE,
    cgroup_cache_starved::RULE,
    cgroup_dirty_throttle::RULE,
    cgroup_dirty_reclaim::RULE,
    cgroup_kmem_large::RULE,
    cgroup_shmem_large::RULE,
    cgroup_limit_ahead::RULE,
    cgroup_swap_limited::RULE,
    protection_imbalance::RULE,
    overcommit_limit::RULE,
    socket_memory_pressure::RULE,
    fork_cow_spike::RULE,
    process_leak::RULE,
    heap_fragmentation_growth::RULE,
    malloc_arena_bloat::RULE,
    allocator_churn::RULE,
    runtime_heap::RULE,
    unexplained_stall::RULE,
    accounting_mismatch::RULE,
    free_low_harmless::RULE,
    swap_cold_harmless::RULE,
    cache_full_harmless::RULE,
    streaming_read::RULE,
    storage_bound::RULE,
    monitoring_gap::RULE,
];

/// The place of a rule in [`ALL`]; of an unknown one, behind the last.
pub(crate) fn place(id: &str) -> usize {
    ALL.iter().position(|rule| rule.id == id).unwrap_or(usize::MAX)
}

/// The rule with this id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.id == id)
}
