//! How glibc's malloc lays out its data in each version: offsets as data, checked against what is there.
//!
//! All offsets of an arena are relative to `bins[0]`, which has the same neighbours in every version from 2.17 to
//! 2.43: `top` 16 bytes and `last_remainder` 8 before it, `next` 2048 behind it. What differs is in [`ArenaLayout`].
//! The structure decides; a version number is a hint, as distributions backport. Source: `malloc/malloc.c` and
//! `malloc/arena.c` of each version, structs compiled.

/// `bins[0]` to `top`.
pub(crate) const TOP_BEFORE_BINS: u64 = 16;
/// `bins[0]` to `fastbinsY[0]`, up to 2.42.
pub(crate) const FAST_BEFORE_BINS: u64 = 96;
/// `bins[0]` to `next`: 254 words of bins and 16 bytes of `binmap`.
pub(crate) const NEXT_BEHIND_BINS: u64 = 2048;
/// `bins[0]` to `attached_threads` (2.23 and later), or to `system_mem`.
pub(crate) const ATTACHED_BEHIND_BINS: u64 = 2064;
/// Pairs of list heads in `bins`.
pub(crate) const BIN_PAIRS: u64 = 127;
/// Heads in `fastbinsY`: sizes 32 to 176.
pub(crate) const FAST_BINS: usize = 10;

/// Where the fields of `struct malloc_state` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaLayout {
    /// From the struct's start to `bins[0]`: 112 since 2.27, 104 before, 24 since 2.43.
    pub bins_offset: u64,
    /// From `bins[0]` to `system_mem`.
    pub system_behind_bins: u64,
}

/// The distances from the struct's start to `bins[0]` that are known, the most recent common one first.
pub(crate) const BINS_OFFSETS: [u64; 3] = [112, 104, 24];

impl ArenaLayout {
    /// Size of `struct malloc_state`: `max_system_mem` is its last field.
    pub const fn state_bytes(self) -> u64 {
        self.bins_offset + self.system_behind_bins + 16
    }

    /// Whether the arena has fast bins: until 2.42.
    pub const fn has_fast_bins(self) -> bool {
        self.bins_offset != 24
    }
}

/// Sizes that a heap of a thread arena may be aligned to: 64 MiB, or four huge pages of 2 MiB, 32 MiB, 512 MiB or
/// 1 GiB with `glibc.malloc.hugetlb`.
pub(crate) const HEAP_ALIGNMENTS: [u64; 5] = [64 << 20, 8 << 20, 128 << 20, 2 << 30, 4 << 30];

/// How a thread cache is laid out (`struct tcache_perthread_struct`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcacheLayout {
    /// Size of the chunk that holds it.
    pub chunk_bytes: u64,
    /// Size of one counter.
    pub count_bytes: u64,
    /// Number of lists.
    pub bins: u64,
    /// Whether the counters hold the room that is left, not the number of entries.
    pub counts_room: bool,
}

impl TcacheLayout {
    /// 2.42 and later, 2.30 to 2.41, 2.26 to 2.29.
    pub(crate) const ALL: [Self; 3] = [
        Self { chunk_bytes: 0x300, count_bytes: 2, bins: 76, counts_room: true },
        Self { chunk_bytes: 0x290, count_bytes: 2, bins: 64, counts_room: false },
        Self { chunk_bytes: 0x250, count_bytes: 1, bins: 64, counts_room: false },
    ];

    /// From the struct's start to its first list head.
    pub(crate) const fn entries_offset(self) -> u64 {
        self.bins * self.count_bytes
    }

    /// Size of the chunks in a list; `None` for a list of several sizes.
    pub(crate) const fn size_of_bin(bin: u64) -> Option<u64> {
        if bin < 64 { Some((bin + 2) * 16) } else { None }
    }

    /// The largest chunk in a list by default.
    pub(crate) const SMALL_BYTES_MAX: u64 = 65 * 16;
}
