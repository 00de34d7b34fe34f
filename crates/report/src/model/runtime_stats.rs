//! The answer about a runtime's own report: Ruby's object space, the JVM's native memory, jemalloc's heap, or a server's memory.

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Ratio, SignedBytes};

/// Name and version of the contract of a runtime's statistics.
pub const RUNTIME_STATS_SCHEMA: &str = "memtide-runtime-stats/1";

/// The whole answer. Exactly one of `ruby`, `jvm`, `jemalloc` and `server` is not null.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RuntimeStatsReport {
    /// Name and version of this contract; a change that readers must know of is another version.
    #[schemars(extend("const" = "memtide-runtime-stats/1"))]
    pub schema: &'static str,
    /// `ruby`, `jvm`, `jemalloc` or `redis`.
    pub runtime: &'static str,
    /// Its version, where the report has it.
    pub version: Option<String>,
    /// The process that the report is of, where it says so.
    pub pid: Option<u64>,
    /// What the figures mean. Of Ruby: `full`, `usual`, `sparse`; of the JVM: `grows`, `level`, `beyond`, `within`,
    /// `committed`; of jemalloc and Redis: `packed`, `fragmented`, `unpurged`; of Redis without
    /// jemalloc: `allocated`.
    pub class: &'static str,
    /// Whether memory is lost here, or grows.
    pub is_concern: bool,
    /// The class in one sentence with its numbers.
    pub headline: String,
    /// What does not fit: the report of another process, figures that are rounded.
    pub remarks: Vec<String>,
    /// What the class rests on, a sentence each.
    pub evidence: Vec<String>,
    /// What the report does not count, a sentence each.
    pub not_counted: Vec<String>,
    /// What to do, a sentence each; empty if nothing.
    pub advice: Vec<String>,
    /// The process's RSS; null if it was not read.
    pub rss_bytes: Option<Bytes>,
    /// Free memory in malloc's heap that is resident; null if the heap was not read.
    pub malloc_free_bytes: Option<Bytes>,
    /// Ruby's object space.
    pub ruby: Option<ObjectSpaceEntry>,
    /// The JVM's native memory.
    pub jvm: Option<NativeMemoryEntry>,
    /// jemalloc's heap.
    pub jemalloc: Option<JemallocEntry>,
    /// A server's memory by part.
    pub server: Option<ServerMemoryEntry>,
}

/// A server's memory by part, as it reports that itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ServerMemoryEntry {
    /// What its parts are shares of.
    pub total_bytes: Bytes,
    /// Its parts; those indented by blanks are within the one before.
    pub parts: Vec<ServerPartEntry>,
}

/// A part of a server's memory.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ServerPartEntry {
    pub name: String,
    pub bytes: Bytes,
    /// The setting or command that bounds or frees it; null if there is none.
    pub setting: Option<String>,
}

/// Ruby's object space: slots in pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ObjectSpaceEntry {
    /// All pages.
    pub size_bytes: Bytes,
    /// Free slots in pages with a live object; null if live objects of a pool are unknown (Ruby 3.2).
    pub free_bytes: Option<Bytes>,
    /// Slots that were not swept.
    pub live_slots: u64,
    /// Slots that survived the last collection.
    pub survived_slots: Option<u64>,
    /// Slots of pages with a live object.
    pub eden_slots: Option<u64>,
    /// `live_slots` / `eden_slots`.
    pub slot_occupancy_ratio: Option<Ratio>,
    /// Slots of a page, where all slots have one size (up to Ruby 3.1).
    pub slots_per_page: Option<u64>,
    /// The size of a page.
    pub page_size_bytes: Bytes,
    /// Pages with a live object.
    pub eden_pages: u64,
    /// Pages without one, which are kept.
    pub empty_pages: Option<u64>,
    /// Places in the list of pages (up to Ruby 3.3).
    pub page_list_places: Option<u64>,
    /// `eden_pages` / `page_list_places`.
    pub page_list_occupancy_ratio: Option<Ratio>,
    /// Garbage collections since the start.
    pub collections: Option<u64>,
    /// Slots by size. One entry up to Ruby 3.1.
    pub pools: Vec<ObjectPoolEntry>,
}

/// Slots of one size.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ObjectPoolEntry {
    /// The size of a slot; null if the report does not say it.
    pub slot_size_bytes: Option<Bytes>,
    /// Pages with a live object.
    pub eden_pages: u64,
    pub eden_slots: u64,
    /// Live slots; null in Ruby 3.2.
    pub live_slots: Option<u64>,
    /// `live_slots` / `eden_slots`.
    pub slot_occupancy_ratio: Option<Ratio>,
    /// Free slots.
    pub free_bytes: Option<Bytes>,
}

/// The JVM's native memory by category.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NativeMemoryEntry {
    /// Address space.
    pub reserved_bytes: Bytes,
    /// Memory that may be used; pages that were never touched are not resident.
    pub committed_bytes: Bytes,
    /// Its change since the baseline; null without one.
    pub committed_change_bytes: Option<SignedBytes>,
    /// What came from malloc: part of `committed_bytes`.
    pub malloc_bytes: Bytes,
    /// RSS beyond what is committed: the least that the JVM does not count. Null without RSS.
    pub beyond_committed_bytes: Option<Bytes>,
    /// Committed memory beyond RSS: the least that is not resident. Null without RSS.
    pub not_resident_bytes: Option<Bytes>,
    /// Sizes are rounded to this.
    pub scale_bytes: Bytes,
    /// The category that grew most since the baseline; null if none grew.
    pub fastest_growing: Option<String>,
    /// Categories, the most committed memory first.
    pub categories: Vec<NativeCategoryEntry>,
}

/// A category of the JVM's native memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NativeCategoryEntry {
    /// Its name: `Java Heap`, `Thread`, `Other`.
    pub name: String,
    /// What it is for, in a few words; null for names that memtide does not know.
    pub meaning: Option<&'static str>,
    /// Address space.
    pub reserved_bytes: Bytes,
    /// Memory that may be used.
    pub committed_bytes: Bytes,
    /// Its share of all committed memory.
    pub committed_ratio: Option<Ratio>,
    /// Its change since the baseline; null without one.
    pub committed_change_bytes: Option<SignedBytes>,
}

/// jemalloc's heap.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct JemallocEntry {
    /// What the program has allocated.
    pub allocated_bytes: Bytes,
    /// Of that, in caches of threads; null before 5.0.
    pub thread_caches_bytes: Option<Bytes>,
    /// Pages with something allocated.
    pub active_bytes: Bytes,
    /// Free parts of active pages: `active − allocated`.
    pub active_unused_bytes: Bytes,
    /// `(active − allocated) / active`.
    pub active_unused_ratio: Option<Ratio>,
    /// Free pages that were not purged yet.
    pub unpurged_bytes: Bytes,
    /// Whether `unpurged_bytes` was counted; else it is `resident − active − metadata`.
    pub unpurged_is_counted: bool,
    /// jemalloc's own data.
    pub metadata_bytes: Bytes,
    /// The most that can be in RAM.
    pub resident_bytes: Bytes,
    /// RSS beyond that: not jemalloc's. Null without RSS.
    pub beyond_resident_bytes: Option<Bytes>,
    /// Address space that is kept without memory; null before 5.0.
    pub retained_bytes: Option<Bytes>,
    pub arenas: Option<u64>,
    /// Whether a thread of jemalloc purges pages.
    pub background_thread: Option<bool>,
    /// Sizes with free regions in their slabs, the most free memory first.
    pub bins: Vec<JemallocBinEntry>,
}

/// Slabs of regions of one size.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JemallocBinEntry {
    /// The size of a region.
    pub region_size_bytes: Bytes,
    pub slabs: u64,
    /// Regions of all slabs.
    pub regions: u64,
    /// Regions that are allocated.
    pub used_regions: u64,
    /// `used_regions` / `regions`.
    pub occupancy_ratio: Option<Ratio>,
    /// Free regions.
    pub unused_bytes: Bytes,
}
