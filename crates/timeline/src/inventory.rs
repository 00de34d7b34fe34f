//! Owners of memory that no counter names, as they were found by searching the host once: pools of huge pages, callers
//! of vmalloc, shared memory.

use units::{Bytes, Count, Pages};

/// What one search found, right after a source's last sample. Sources that were not searched have an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Pools of huge pages by ascending page size; empty if they were not read.
    pub huge_pools: Vec<HugePool>,
    /// Callers of vmalloc, largest first; empty if they were not read.
    pub vmalloc: Vec<VmallocCaller>,
}

/// The pool of huge pages of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HugePool {
    /// The size of a page.
    pub page: Bytes,
    /// Pages in the pool, used or not.
    pub total: Count,
    /// Pages that are not allocated.
    pub free: Count,
    /// Free pages that are promised to mappings; a part of the free ones.
    pub reserved: Count,
    /// Pages above the number that was set; a part of all of them.
    pub surplus: Count,
}

impl HugePool {
    /// Returns the memory of a number of its pages.
    pub const fn bytes(&self, pages: Count) -> Bytes {
        Bytes::new(self.page.get().saturating_mul(pages.get()))
    }
}

/// What a kernel function has allocated with vmalloc; without kernel stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmallocCaller {
    /// The function, and its module: `htab_map_alloc`, `load_module [nf_tables]`.
    pub name: String,
    /// Pages of RAM.
    pub pages: Pages,
    /// Areas.
    pub areas: Count,
}
