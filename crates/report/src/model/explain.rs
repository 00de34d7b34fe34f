//! The answer of `explain`: where one process has its memory, and what its malloc heap is made of.
//!
//! Sizes are bytes. Names come from the process and are passed on as they are: whoever draws them escapes them. No
//! content of memory is part of it, and of environment variables only values of those that set an allocator and nothing else.

mod heap;
mod program;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Count, PerSecond, Span};

use super::growth::GrowthEntry;
use super::runtime_stats::RuntimeStatsReport;

pub use heap::{ArenaEntry, ChunkSizes, FewerArenas, HeapCell, HeapForecast, HeapReport, HeapRow};
pub use program::ProgramEntry;

/// Name and version of the contract of `explain`.
pub const EXPLAIN_SCHEMA: &str = "memtide-explain/1";

/// The whole answer of `explain`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ExplainReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-explain/1"))]
    pub schema: &'static str,
    /// Which process it is.
    pub process: ExplainedProcess,
    /// All processes of its program; null unless several have the name that was asked for.
    pub program: Option<ProgramEntry>,
    /// What its memory is like: `fragmented`, `live`, `other-owner`, `several-owners`, `small`, `unclear`, `not-read`.
    pub verdict: &'static str,
    /// The first words of the answer: how it grows, where a class of `growth` says that; else the largest owner, or the verdict.
    pub verdict_text: String,
    /// The verdict in sentences.
    pub headline: Vec<String>,
    /// VSS, RSS, PSS, USS, and what makes the difference between them.
    pub sizes: ProcessSizes,
    /// Its memory by owner: leaves add up to RSS and to PSS.
    pub memory: MemoryPart,
    /// Its allocators.
    pub allocators: Vec<FoundAllocator>,
    /// Where its calls of malloc go, that of most files first; null if one malloc alone is there, or if it could not be read.
    pub malloc_calls: Option<Vec<MallocCallsEntry>>,
    /// Whether glibc's malloc owns memory of it; null if that could not be read.
    pub has_malloc: Option<bool>,
    /// Its malloc heap; null if it was not read, or if it has none.
    pub heap: Option<HeapReport>,
    /// Why there is no heap; null if there is.
    pub heap_not_read: Option<String>,
    /// Minor faults while it was read, which takes a tenth of a second or so; null if that could not be measured.
    pub minor_faults_per_s: Option<PerSecond<Count>>,
    /// How it changes: while it was watched, else as this host's recording has it; null if neither is known.
    pub growth: Option<GrowthEntry>,
    /// Whether it was watched for that; else it is from the recording.
    pub is_watched: bool,
    /// Whether such a report is given: then the headline does not advise to make one.
    #[serde(skip)]
    pub has_runtime_stats: bool,
    /// What its runtime reports of its own memory; null if no such report was given.
    pub runtime_stats: Option<RuntimeStatsReport>,
    /// Mapped files, the largest in RAM first.
    pub files: Vec<MappedFileEntry>,
    /// Mapped files beyond those in `files`, each with less in RAM.
    pub files_left_out: u64,
    /// Programs and libraries that could not be searched for allocators: one in them is known by the file's name only.
    pub unsearched_files: Vec<String>,
    /// Other processes that could not be searched for the same files: counts of other users are lower bounds if there are
    /// any.
    pub processes_unread: u64,
    /// Sizes that this kernel does not print (`/proc/PID/smaps`): they count as 0.
    pub absent_sizes: Vec<&'static str>,
    /// What could not be read.
    pub problems: Vec<String>,
    /// What the answer cost.
    pub cost: ExplainCost,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedProcess {
    /// Its PID, as this host counts.
    pub pid: u32,
    /// Its PID in its own namespace, if that differs.
    pub namespace_pid: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its program; null if it may not be read.
    pub program: Option<String>,
    /// Whether the program was replaced since the process started.
    pub is_program_deleted: bool,
    /// Its service, container or pod.
    pub service: Option<String>,
    /// Its cgroup.
    pub cgroup: Option<String>,
    /// How long it has been running.
    pub age_s: Option<Span>,
    /// Number of threads.
    pub threads: Option<u64>,
    /// How likely the kernel kills it when memory is exhausted: 0 to 2000.
    pub oom_score: Option<u64>,
    /// What an administrator added to that score.
    pub oom_score_adj: Option<i64>,
    /// Whether it may have transparent huge pages.
    pub thp_enabled: Option<bool>,
    /// Names of the settings for allocators that it was started with; null if they may not be read.
    pub memory_variables: Option<Vec<&'static str>>,
    /// Values of those that set nothing but an allocator, by name.
    pub memory_values: BTreeMap<&'static str, String>,
    /// Whether its dynamic linker and its malloc ignore these settings, as it was started with more rights than its user has
    /// (`AT_SECURE`); null if that could not be read.
    pub ignores_variables: Option<bool>,
    /// Its limits on memory, without those that are not limited; null if they could not be read.
    pub limits: Option<Vec<LimitEntry>>,
}

/// A limit of a process (`/proc/PID/limits`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitEntry {
    /// `address-space`, `data`, `stack` or `locked`.
    pub name: &'static str,
    /// The soft limit, which binds.
    pub bytes: Bytes,
}

/// Four sizes of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ProcessSizes {
    /// Address space that is mapped.
    pub vss_bytes: Bytes,
    /// Pages in RAM that it maps.
    pub rss_bytes: Bytes,
    /// The same, each page once: less than RSS where it maps a heap several times.
    pub ram_bytes: Bytes,
    /// The same, each page divided by its users.
    pub pss_bytes: Bytes,
    /// Pages that it alone maps: what its end would free.
    pub uss_bytes: Bytes,
    /// In swap.
    pub swap_bytes: Bytes,
    /// Address space that it may use but never touched.
    pub never_touched_bytes: Bytes,
    /// Address space without access: reserved for growth, and guards.
    pub without_access_bytes: Bytes,
    /// Pages in RAM that others map too.
    pub shared_bytes: Bytes,
    /// Pages of hugetlbfs, which are in none of these.
    pub hugetlb_bytes: Bytes,
    /// In transparent huge pages.
    pub huge_bytes: Bytes,
    /// Resident without a file: it can only go to swap.
    pub anonymous_bytes: Bytes,
}

/// A part of a process's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryPart {
    /// Its name.
    pub label: String,
    /// Whether it is what glibc's malloc owns, which `heap` divides by use.
    pub is_malloc_heap: bool,
    /// In RAM.
    pub rss_bytes: Bytes,
    /// The same, each page once: less than `rss_bytes` of a heap that is mapped several times.
    pub ram_bytes: Bytes,
    /// In RAM, each page divided by its users.
    pub pss_bytes: Bytes,
    /// In RAM, mapped by this process alone.
    pub uss_bytes: Bytes,
    /// In swap.
    pub swap_bytes: Bytes,
    /// In transparent huge pages.
    pub huge_bytes: Bytes,
    /// In pages of hugetlbfs, which no RSS counts.
    pub hugetlb_bytes: Bytes,
    /// Its address space, also what is reserved or was never touched.
    pub virtual_bytes: Bytes,
    /// Number of its mappings.
    pub mappings: u64,
    /// The allocator or runtime that owns it: `ptmalloc`, `jemalloc`, `gperftools`, `tcmalloc`, `mimalloc`, `musl`,
    /// `go`, `jvm`, `v8`, `cpython`, `ruby`, `erlang`, `php`, `innodb`; null if none does.
    pub owner: Option<&'static str>,
    /// How sure its owner is: `certain`, `likely`, `unknown`.
    pub certainty: &'static str,
    /// By what it was recognised.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recognised_by: String,
    /// Its parts, the largest first; empty for a leaf.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MemoryPart>,
}

/// An allocator.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FoundAllocator {
    /// Its name.
    pub name: String,
    /// Its version, where a file shows it.
    pub version: Option<String>,
    /// The file that has it.
    pub file: String,
    /// By what it was recognised.
    pub evidence: Vec<String>,
}

/// A file to which calls of malloc go.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MallocCallsEntry {
    /// Name of the allocator; null if it is not known.
    pub name: Option<String>,
    /// Its version, where the file shows it.
    pub version: Option<String>,
    /// The file; null for memory without one.
    pub file: Option<String>,
    /// How many files call it: the program and libraries.
    pub callers: u64,
}

/// A mapped file.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MappedFileEntry {
    /// Its path.
    pub name: String,
    /// Whether it was removed or replaced since it was mapped.
    pub is_deleted: bool,
    /// Of it, in RAM and mapped by this process.
    pub rss_bytes: Bytes,
    /// The same, each page divided by its users.
    pub pss_bytes: Bytes,
    /// Of the whole file, in the page cache; null if that is not known.
    pub cached_bytes: Option<Bytes>,
    pub length_bytes: Option<Bytes>,
    /// Number of other processes that map it, as far as they could be read; null if they were not searched.
    pub other_users: Option<u64>,
    /// Names of some of them, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_names: Vec<String>,
}

/// What an answer cost.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ExplainCost {
    /// CPU time of memtide.
    pub cpu_s: Span,
    pub wall_s: Span,
    /// Time for which the process was stopped; null if it was not.
    pub stopped_s: Option<Span>,
}
