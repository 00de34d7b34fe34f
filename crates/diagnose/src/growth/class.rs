//! The classes of growth, and their names.

use std::fmt;

/// What a series does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GrowthClass {
    /// Allocated memory rises without an end.
    Leak,
    /// It does so while the allocator keeps ever more free memory.
    LeakAndFragmentation,
    /// The allocator keeps free memory that no peak of the live size explains.
    Fragmentation,
    /// Growth levels off; without the live size, it may be fragmentation or a warm-up.
    Saturating,
    /// Allocated memory rises to its working size: caches fill.
    Warmup,
    /// A batch is over, and its memory was not returned.
    Pinned,
    /// A few levels with jumps between them.
    Steps,
    /// Smooth ups and downs with a period.
    Seasonal,
    /// A sawtooth with a steady floor: collections or regular batches.
    Stationary,
    /// No growth above noise.
    Flat,
    /// Too little data, or several answers fit.
    Unknown,
}

impl GrowthClass {
    /// Every class, the most urgent first.
    pub const ALL: [Self; 11] = [
        Self::Leak,
        Self::LeakAndFragmentation,
        Self::Fragmentation,
        Self::Saturating,
        Self::Warmup,
        Self::Pinned,
        Self::Steps,
        Self::Seasonal,
        Self::Stationary,
        Self::Flat,
        Self::Unknown,
    ];

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::LeakAndFragmentation => "leak-and-fragmentation",
            Self::Fragmentation => "fragmentation",
            Self::Saturating => "saturating",
            Self::Warmup => "warmup",
            Self::Pinned => "pinned",
            Self::Steps => "steps",
            Self::Seasonal => "seasonal",
            Self::Stationary => "stationary",
            Self::Flat => "flat",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether memory is allocated and not freed again.
    pub const fn leaks(self) -> bool {
        matches!(self, Self::Leak | Self::LeakAndFragmentation)
    }

    /// Returns whether the allocator keeps memory that the program has freed.
    pub const fn fragments(self) -> bool {
        matches!(self, Self::Fragmentation | Self::LeakAndFragmentation)
    }

    /// Returns what the class means, as a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Leak => "The program allocates memory and does not free it again.",
            Self::LeakAndFragmentation => {
                "The program allocates memory and does not free it again, and its allocator keeps \
                 free memory in pieces."
            }
            Self::Fragmentation => {
                "The program's data do not grow; its allocator keeps free memory in pieces that it \
                 cannot return."
            }
            Self::Saturating => {
                "Growth levels off: fragmentation or a warm-up, which the total alone cannot \
                 distinguish."
            }
            Self::Warmup => "The program's data grow to their working size and level off.",
            Self::Pinned => {
                "A batch is over; its memory is free in the process, but not returned to the \
                 kernel."
            }
            Self::Steps => "Memory changes in a few jumps and stands still between them.",
            Self::Seasonal => "Memory rises and falls with a period, as load does.",
            Self::Stationary => {
                "Memory rises and is freed again and again; its floor does not rise."
            }
            Self::Flat => "Memory does not grow beyond its noise.",
            Self::Unknown => "The readings do not decide it.",
        }
    }

    /// Returns what to do about it, as a sentence.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Leak => {
                "Restart before the limit is reached, and profile the heap (`jeprof`, `heaptrack`, \
                 `memleak` of bcc); look for caches and queues without a bound."
            }
            Self::LeakAndFragmentation => {
                "Profile the heap for the leak first; then try `MALLOC_ARENA_MAX=2` or jemalloc \
                 for the free memory."
            }
            Self::Fragmentation => {
                "Try `MALLOC_ARENA_MAX=2` or jemalloc, and measure memory and speed together; a \
                 heap profile will not show it."
            }
            Self::Saturating => {
                "Record the heap too (live and free bytes of malloc), or wait until it levels off \
                 before a limit is set."
            }
            Self::Warmup => "Size the limit for the level at which it ends; nothing is wrong.",
            Self::Pinned => {
                "`malloc_trim(0)` after the batch, `MALLOC_TRIM_THRESHOLD_`, or a process of its \
                 own for the batch returns it."
            }
            Self::Steps => "Compare the times of the jumps with deployments, jobs and new threads.",
            Self::Seasonal => "Size the limit for the peak of a whole period.",
            Self::Stationary => "Size the limit for the peaks; nothing is wrong.",
            Self::Flat => "Nothing to do.",
            Self::Unknown => {
                "Record for longer, with the live and free bytes of malloc if possible."
            }
        }
    }
}

impl fmt::Display for GrowthClass {
    /// Writes the name in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LeakAndFragmentation => "leak + fragmentation",
            Self::Saturating => "levelling off",
            Self::Warmup => "warm-up",
            Self::Pinned => "pinned after a batch",
            Self::Stationary => "steady sawtooth",
            other => other.name(),
        })
    }
}
