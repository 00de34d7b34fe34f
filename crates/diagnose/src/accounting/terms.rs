//! The terms: what each is called, and what can be done with its memory. Whoever draws or names them takes both from here.

/// What can be done with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nobody gives it back on demand.
    Kernel,
    /// Somebody uses it; at best it can be swapped out.
    InUse,
    /// Can be taken back on demand.
    Reclaimable,
    /// Nobody has it.
    Free,
}

impl Standing {
    /// As people read it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Kernel => "kernel and unaccounted",
            Self::InUse => "in use",
            Self::Reclaimable => "can be taken back",
            Self::Free => "free",
        }
    }
}

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// `free`, `pcp`, `anon`, `file_cache`, …
    pub id: &'static str,
    /// What people call it.
    pub label: &'static str,
    /// What can be done with it.
    pub standing: Standing,
}

macro_rules! kinds {
    ($($standing:ident { $($name:ident = $id:literal, $label:literal;)+ })+) => {
        $($(
            #[doc = concat!("`", $id, "`: ", $label, ".")]
            pub const $name: Kind = Kind { id: $id, label: $label, standing: Standing::$standing };
        )+)+
        /// All of them as drawn, from the bottom: from what nobody can give back to what is free.
        pub const ALL: &[Kind] = &[$($($name),+),+];
    };
}

kinds! {
    Kernel {
        KERNEL_STACK = "kernel_stack", "kernel stacks";
        PAGE_TABLES = "page_tables", "page tables";
        PERCPU = "percpu", "per-CPU kernel memory";
        VMALLOC = "vmalloc", "vmalloc";
        BOUNCE = "bounce", "bounce buffers";
        SLAB_UNRECLAIMABLE = "slab_unreclaimable", "slab, unreclaimable";
        SLAB = "slab", "slab";
        HW_CORRUPTED = "hw_corrupted", "broken RAM";
        BALLOON = "balloon", "balloon of the hypervisor";
        UNACCOUNTED = "unaccounted", "unaccounted";
    }
    InUse {
        HUGETLB_USED = "hugetlb_used", "huge pages in use";
        HUGETLB_UNUSED = "hugetlb_unused", "huge pages, unused";
        COMPRESSED_POOL = "compressed_pool", "compressed swap";
        SHMEM = "shmem", "shared memory";
        ANON = "anon", "anonymous";
        SWAP_CACHE = "swapcache", "swap cache";
    }
    Reclaimable {
        SLAB_RECLAIMABLE = "slab_reclaimable", "slab, reclaimable";
        KERNEL_RECLAIMABLE = "kernel_reclaimable", "other reclaimable kernel memory";
        BUFFERS = "buffers", "page cache of block devices";
        FILE_CACHE = "file_cache", "page cache of files";
    }
    Free {
        PCP = "pcp", "free, in per-CPU lists";
        FREE = "free", "free";
    }
}

/// The kind with this id.
pub fn kind(id: &str) -> Option<&'static Kind> {
    ALL.iter().find(|kind| kind.id == id)
}

/// How high a kind is drawn among all; unknown ones lie at the bottom.
pub fn place(id: &str) -> usize {
    ALL.iter().position(|kind| kind.id == id).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_drawn_from_what_nobody_gives_back_to_what_is_free() {
        assert!(ALL.is_sorted_by_key(|kind| kind.standing));
        let mut ids: Vec<&str> = ALL.iter().map(|kind| kind.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
    }
}
