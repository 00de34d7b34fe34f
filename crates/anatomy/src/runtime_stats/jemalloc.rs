//! jemalloc's statistics: what `malloc_stats_print` writes, as text or, with `J` among its options, as JSON.
//!
//! Versions 4 to 5.3 (`src/stats.c`). Allocated is what the program has, size classes included, with what threads cache;
//! active is the pages of it; the rest of those pages is fragmentation, which only slabs of small sizes have. Resident is
//! the most that can be in RAM: active, metadata and pages that are free but were not purged yet. Retained is address
//! space without memory. Pages decay when the program calls jemalloc, or with `background_thread:true` on their own.

mod json;
mod text;

use units::{Bytes, Count, Ratio};

use super::RuntimeStatsError;

/// The environment variable with which a program prints the report at its end.
pub const COMMAND: &str =
    "MALLOC_CONF=stats_print:true PROGRAM 2> FILE (or malloc_stats_print(), with `J` as JSON)";

/// The line with which the text begins.
pub(super) const TEXT_START: &str = "___ Begin jemalloc statistics ___";
/// The key with which the JSON begins.
pub(super) const JSON_START: &str = "\"jemalloc\"";

/// At most this many bins: jemalloc has 36 of pages of 4 KiB, 55 of those of 64 KiB.
const BINS_MAX: usize = 512;

/// What jemalloc reports about its memory.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JemallocStats {
    /// Its version.
    pub version: Option<String>,
    /// What the program has allocated.
    pub allocated: Bytes,
    /// Pages with something allocated.
    pub active: Bytes,
    /// jemalloc's own data.
    pub metadata: Bytes,
    /// The most that can be in RAM.
    pub resident: Bytes,
    /// Address space that is kept without memory; since 5.0.
    pub retained: Option<Bytes>,
    /// Free pages that were not purged, as counted.
    pub dirty: Option<Bytes>,
    /// Free pages that the kernel may take (`MADV_FREE`).
    pub muzzy: Option<Bytes>,
    /// What caches of threads keep, a part of what is allocated; since 5.0.
    pub thread_caches: Option<Bytes>,
    pub arenas: Option<Count>,
    /// Whether a thread of jemalloc purges pages.
    pub background_thread: Option<bool>,
    /// Slabs of small sizes.
    pub bins: Vec<JemallocBin>,
}

/// Slabs of regions of one size.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JemallocBin {
    /// The size of a region.
    pub region_size: Bytes,
    pub slabs: Count,
    /// Regions of all slabs.
    pub regions: Count,
    /// Regions that are allocated.
    pub used: Count,
}

impl JemallocBin {
    /// Returns the size of its free regions.
    pub const fn unused(&self) -> Bytes {
        let free = self.regions.saturating_sub(self.used).get();
        Bytes::new(self.region_size.get().saturating_mul(free))
    }

    /// Returns the share of regions that are allocated.
    pub fn occupancy(&self) -> Option<Ratio> {
        share(self.used.get(), self.regions.get())
    }
}

impl JemallocStats {
    /// Reads the last report of a text.
    ///
    /// # Errors
    /// [`RuntimeStatsError`] if the JSON is malformed, or the totals are absent.
    pub fn parse(text: &[u8]) -> Result<Self, RuntimeStatsError> {
        let key = memchr::memmem::rfind(text, JSON_START.as_bytes());
        match memchr::memmem::rfind(text, TEXT_START.as_bytes()) {
            Some(start) if key.is_none_or(|key| key < start) => text::read(text, start),
            _ => json::read(text, key.unwrap_or_default()),
        }
    }

    /// Returns the free part of active pages: fragmentation.
    pub const fn active_unused(&self) -> Bytes {
        self.active.saturating_sub(self.allocated)
    }

    /// Returns `(active − allocated) / active`.
    pub fn active_unused_share(&self) -> Option<Ratio> {
        share(self.active_unused().get(), self.active.get())
    }

    /// Returns what decay would return: free pages as counted, or else `resident − active − metadata`.
    pub fn returnable(&self) -> Bytes {
        let rest = || self.resident.saturating_sub(self.active + self.metadata);
        self.dirty.map_or_else(rest, |dirty| dirty + self.muzzy.unwrap_or_default())
    }

    /// Returns the bins with free regions, the most free memory first.
    pub fn by_unused(&self) -> Vec<&JemallocBin> {
        let mut order: Vec<&JemallocBin> = self.bins.iter().collect();
        order.retain(|bin| bin.unused() > Bytes::ZERO);
        order.sort_by_key(|bin| std::cmp::Reverse(bin.unused()));
        order
    }
}

fn share(part: u64, whole: u64) -> Option<Ratio> {
    (whole > 0).then(|| Ratio::new(part as f64 / whole as f64))
}
