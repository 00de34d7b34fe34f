//! What memory was wanted for, where wanting it started reclaim or compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::matches;
use crate::stack::StackFrame;

/// What memory was wanted for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Data of files, for read, write or a fault.
    PageCache,
    /// Data on its way to or from the network.
    SocketBuffers,
    /// Tables that map addresses to pages.
    PageTables,
    /// A page that was swapped out.
    SwapIn,
    /// A page of 2 MiB or more.
    HugePages,
    /// Memory of processes.
    AnonymousMemory,
    /// tmpfs and shared memory.
    SharedMemory,
    /// A new process or thread.
    Fork,
    /// Objects of the kernel.
    SlabCaches,
    /// Other buffers of the kernel.
    KernelBuffers,
}

/// Functions of each purpose; the one nearest to the trigger decides.
const PURPOSES: [(Purpose, &[&str]); 8] = [
    (
        Purpose::PageCache,
        &[
            "__page_cache_alloc",
            "filemap_alloc_folio",
            "pagecache_get_page",
            "__filemap_get_folio*",
            "grab_cache_page*",
            "filemap_add_folio",
            "__filemap_add_folio",
            "add_to_page_cache*",
            "page_cache_ra_*",
            "page_cache_sync_ra",
            "page_cache_async_ra",
            "filemap_fault",
            "filemap_read",
            "do_generic_file_read",
            "__do_page_cache_readahead",
            "ondemand_readahead",
            "page_cache_sync_readahead",
            "page_cache_async_readahead",
        ],
    ),
    (
        Purpose::SocketBuffers,
        &[
            "tcp_sendmsg*",
            "udp_sendmsg",
            "unix_stream_sendmsg",
            "unix_dgram_sendmsg",
            "sk_page_frag_refill",
            "skb_page_frag_refill",
            "alloc_skb*",
            "__alloc_skb",
            "__netdev_alloc_skb",
            "__napi_alloc_skb",
            "sk_stream_alloc_skb",
            "sock_alloc_send_*",
        ],
    ),
    (
        Purpose::PageTables,
        &[
            "pte_alloc_one*",
            "__pte_alloc*",
            "__pmd_alloc",
            "__pud_alloc",
            "pmd_alloc*",
            "pgd_alloc",
        ],
    ),
    (
        Purpose::SwapIn,
        &["do_swap_page", "read_swap_cache_async", "__read_swap_cache_async", "shmem_swapin*"],
    ),
    (
        Purpose::HugePages,
        &[
            "do_huge_pmd_anonymous_page",
            "__do_huge_pmd_anonymous_page",
            "vma_alloc_anon_folio_pmd",
            "collapse_huge_page",
            "alloc_hugetlb_folio",
            "alloc_huge_page",
        ],
    ),
    (
        Purpose::AnonymousMemory,
        &[
            "alloc_pages_vma",
            "vma_alloc_folio*",
            "vma_alloc_zeroed_movable_folio",
            "do_anonymous_page",
            "alloc_anon_folio",
            "folio_prealloc",
            "wp_page_copy",
            "do_wp_page",
            "do_cow_fault",
            "handle_mm_fault",
        ],
    ),
    (
        Purpose::SharedMemory,
        &[
            "shmem_get_folio*",
            "shmem_getpage*",
            "shmem_alloc_*",
            "shmem_fault",
            "shmem_write_begin",
        ],
    ),
    (Purpose::Fork, &["copy_process", "dup_task_struct", "dup_mm", "dup_mmap"]),
];

/// Functions of memory of the kernel itself. Something else further out, such as a socket, says more.
const OF_THE_KERNEL: [(Purpose, &[&str]); 2] = [
    (
        Purpose::SlabCaches,
        &[
            "kmem_getpages",
            "new_slab",
            "allocate_slab",
            "cache_grow*",
            "__slab_alloc*",
            "___slab_alloc",
            "alloc_slab_page",
            "kmem_cache_alloc*",
        ],
    ),
    (
        Purpose::KernelBuffers,
        &[
            "__get_free_pages",
            "get_zeroed_page",
            "kmalloc_order*",
            "kmalloc_large*",
            "__kmalloc_large_node",
            "vmalloc*",
            "__vmalloc*",
            "kvmalloc*",
            "__kvmalloc*",
            "kv_alloc",
            "spl_kmem_alloc*",
            "pipe_write",
        ],
    ),
];

impl Purpose {
    /// Its name in sentences.
    pub const fn label(self) -> &'static str {
        match self {
            Self::PageCache => "page cache",
            Self::SocketBuffers => "socket buffers",
            Self::PageTables => "page tables",
            Self::SwapIn => "swap-in",
            Self::HugePages => "huge pages",
            Self::AnonymousMemory => "memory of processes",
            Self::SharedMemory => "shared memory",
            Self::Fork => "new processes",
            Self::SlabCaches => "slab caches",
            Self::KernelBuffers => "buffers of the kernel",
        }
    }

    /// What memory was wanted for, and the function that shows it, from the callers of a trigger, the outermost first.
    pub(crate) fn of_callers(callers: &[StackFrame]) -> Option<(Self, &StackFrame)> {
        let nearest = |table: &[(Self, &[&str])]| {
            callers.iter().rev().find_map(|frame| {
                let row = table.iter().find(|(_, functions)| matches(&frame.name, functions));
                row.map(|(purpose, _)| (*purpose, frame))
            })
        };
        nearest(&PURPOSES).or_else(|| nearest(&OF_THE_KERNEL))
    }
}
