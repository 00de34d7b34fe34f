//! The terms: names of the kinds of memory, and whether each can be reclaimed.

use serde::{Serialize, Serializer};

/// How memory can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It cannot be taken back on demand.
    Kernel,
    /// In use; at best it can be swapped out.
    InUse,
    /// It can be taken back on demand.
    Reclaimable,
    /// Unused.
    Free,
}

impl Standing {
    /// Returns it in words.
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
        /// A kind of memory, in the order of a stack from the bottom: from what cannot be reclaimed to what is free.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TermKind {
            $($(#[doc = concat!("`", $id, "`: ", $label, ".")] $name,)+)+
        }

        impl TermKind {
            /// All kinds, in order.
            pub const ALL: &[Self] = &[$($(Self::$name),+),+];

            /// Returns the id: `free`, `pcp`, `anon`, `file_cache`, …
            pub const fn id(self) -> &'static str {
                match self { $($(Self::$name => $id,)+)+ }
            }

            /// Returns the displayed name.
            pub const fn label(self) -> &'static str {
                match self { $($(Self::$name => $label,)+)+ }
            }

            /// Returns how memory of this kind can be taken back.
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
    /// Returns the kind with this id.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.id() == id)
    }
}

impl Serialize for TermKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
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
