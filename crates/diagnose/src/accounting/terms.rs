//! The terms: names of the kinds of memory, and what can be done with each.

/// What can be done with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It cannot be taken back on demand.
    Kernel,
    /// In use; at best it can be swapped out.
    InUse,
    /// Can be taken back on demand.
    Reclaimable,
    /// Unused.
    Free,
}

impl Standing {
    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Kernel => "kernel and unaccounted",
            Self::InUse => "in use",
            Self::Reclaimable => "can be taken back",
            Self::Free => "free",
        }
    }
}

macro_rules! kinds {
    ($($standing:ident { $($name:ident = $id:literal, $label:literal;)+ })+) => {
        /// A kind of memory. The order is that of a stack, from the bottom: from what cannot be given back to what is free.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TermKind {
            $($(#[doc = concat!("`", $id, "`: ", $label, ".")] $name,)+)+
        }

        impl TermKind {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$($(Self::$name),+),+];

            /// `free`, `pcp`, `anon`, `file_cache`, …
            pub const fn id(self) -> &'static str {
                match self { $($(Self::$name => $id,)+)+ }
            }

            /// Its name on the screen.
            pub const fn label(self) -> &'static str {
                match self { $($(Self::$name => $label,)+)+ }
            }

            /// What can be done with it.
            pub const fn standing(self) -> Standing {
                match self { $($(Self::$name => Standing::$standing,)+)+ }
            }
        }
    };
}

kinds! {
    Kernel {
        KernelStack = "kernel_stack", "kernel stacks";
        PageTables = "page_tables", "page tables";
        Percpu = "percpu", "per-CPU kernel memory";
        Vmalloc = "vmalloc", "vmalloc";
        Bounce = "bounce", "bounce buffers";
        SlabUnreclaimable = "slab_unreclaimable", "slab, unreclaimable";
        Slab = "slab", "slab";
        HwCorrupted = "hw_corrupted", "broken RAM";
        Balloon = "balloon", "balloon of the hypervisor";
        Unaccounted = "unaccounted", "unaccounted";
    }
    InUse {
        HugetlbUsed = "hugetlb_used", "huge pages in use";
        HugetlbUnused = "hugetlb_unused", "huge pages, unused";
        CompressedPool = "compressed_pool", "compressed swap";
        Shmem = "shmem", "shared memory";
        Anon = "anon", "anonymous";
        SwapCache = "swapcache", "swap cache";
    }
    Reclaimable {
        SlabReclaimable = "slab_reclaimable", "slab, reclaimable";
        KernelReclaimable = "kernel_reclaimable", "other reclaimable kernel memory";
        Buffers = "buffers", "page cache of block devices";
        FileCache = "file_cache", "page cache of files";
    }
    Free {
        Pcp = "pcp", "free, in per-CPU lists";
        Free = "free", "free";
    }
}

impl TermKind {
    /// The kind with this id.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.id() == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_drawn_from_what_nobody_gives_back_to_what_is_free() {
        assert!(TermKind::ALL.is_sorted_by_key(|kind| kind.standing()));
        let mut ids: Vec<&str> = TermKind::ALL.iter().map(|kind| kind.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TermKind::ALL.len());
    }
}
