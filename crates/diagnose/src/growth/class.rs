//! The classes of growth.

use serde::Serialize;

/// What a series does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
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
}
