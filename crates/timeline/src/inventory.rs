//! Owners of memory that no counter names, as they were found by searching the host once: pools of huge pages, callers
//! of vmalloc, objects of shared memory, and names of containers.

use std::collections::BTreeMap;

use units::{Bytes, Count, Pages};

/// What one search found, right after a source's last sample. Sources that were not searched have an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Pools of huge pages by ascending page size; empty if they were not read.
    pub huge_pools: Vec<HugePool>,
    /// Callers of vmalloc, largest first; empty if they were not read.
    pub vmalloc: Vec<VmallocCaller>,
    /// Call sites that took pages which may be in no counter, largest first; empty if they were not read.
    pub page_call_sites: Vec<PageCallSite>,
    /// RAM as the kernel found it; `None` if it was not read.
    pub physical: Option<PhysicalMemory>,
    /// Shared memory; `None` if nothing of it was searched for.
    pub shared: Option<SharedMemory>,
    /// Files in the page cache; `None` if they were not searched for.
    pub cached_files: Option<CachedFiles>,
    /// What processes have beside their RSS, and what of it is locked; empty if it was not read.
    pub holdings: Vec<ProcessHoldings>,
    /// The user of each process, by the key of the process; empty if they were not read.
    pub process_users: BTreeMap<String, u32>,
}

/// Files that keep their data in RAM, with and without a name: what the kernel counts as Shmem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedMemory {
    /// Each once, in no particular order.
    pub objects: Vec<SharedObject>,
    /// Mounted file systems of unknown use: hidden by another mount, without a limit, or in a closed place.
    pub unknown_mounts: Vec<String>,
    /// Whether other mount namespaces were left out because the time was over.
    pub is_mounts_cut: bool,
    /// How many processes this user may not search.
    pub processes_denied: u64,
    /// Of these, the one with most shared memory.
    pub largest_denied: Option<UserProcess>,
    /// How many processes were not searched because the time was over: those with least shared memory.
    pub processes_left_out: u64,
}

/// Files in the page cache: those that processes have open or mapped, and those below directories that were named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedFiles {
    /// Those of processes, largest first.
    pub used: Vec<CachedFile>,
    /// Other files below the directories.
    pub unused: Vec<CachedDirectory>,
    /// How many processes this user may not search.
    pub processes_denied: u64,
    /// How many files and directories this user may not open.
    pub files_denied: u64,
    /// How many files have pages that the kernel does not count for this user, who neither owns them nor may write them.
    pub files_hidden: u64,
    /// How many files were left alone because their file system may wait for another machine or program.
    pub files_remote: u64,
    /// Whether files were left out because the time was over or they were too many.
    pub is_cut: bool,
}

/// Files below a directory that no process has open or mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedDirectory {
    /// The directory.
    pub path: String,
    /// What is directly in it, largest first: files, and directories with all below them.
    pub entries: Vec<CachedEntry>,
}

/// A file, or a directory with all files below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedEntry {
    /// Its name in the directory.
    pub name: String,
    /// The pages of its files in the cache.
    pub cached: Bytes,
    /// How many files these are.
    pub files: u64,
    /// The largest of them.
    pub largest: CachedFile,
}

/// A file in the page cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedFile {
    /// Its path, as the process that has it open sees it.
    pub path: String,
    /// Its pages in the cache.
    pub cached: Bytes,
    /// Of these, changed and not yet written; `None` if the kernel does not count them.
    pub dirty: Option<Bytes>,
    /// Whether the file is so large that it was not counted to its end.
    pub is_cut: bool,
    /// How many processes have it open or mapped; 0 if none was found.
    pub users: u64,
    /// The first that was found.
    pub first_user: Option<UserProcess>,
}

/// One object of shared memory: a file system, a file without a name, a segment.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedObject {
    /// What it is.
    pub kind: SharedKind,
    pub bytes: Bytes,
    /// What the size is.
    pub measure: SharedMeasure,
    /// How many processes have it open or mapped; 0 if none was found, and for file systems.
    pub users: u64,
    /// The first that was found: the one with most shared memory.
    pub first_user: Option<UserProcess>,
}

/// What an object of shared memory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedKind {
    /// All files of a file system.
    FileSystem {
        /// Where it is mounted.
        point: String,
        /// Its type: `tmpfs`.
        kind: String,
        /// The most that it may hold.
        limit: Bytes,
        /// A process that sees it there, if this one does not.
        seen_by: Option<UserProcess>,
    },
    /// A file of `memfd_create`, by its name.
    Memfd(String),
    /// Memory that a process shares with its children (`MAP_SHARED | MAP_ANONYMOUS`), or a shared `/dev/zero`.
    Mapping,
    /// A System V segment.
    SystemV(SystemVSegment),
}

/// A System V segment, from `shmget`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemVSegment {
    /// Its id, as `ipcrm -m` takes it.
    pub id: u64,
    /// How many processes have it attached.
    pub attached: u64,
    /// Who created it.
    pub creator: Option<UserProcess>,
    /// Who attached or detached it last.
    pub last_user: Option<UserProcess>,
}

/// A process that uses an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserProcess {
    /// Its PID.
    pub pid: u32,
    /// Its name; empty if it has ended or is unknown.
    pub name: String,
    /// Its service; empty if unknown.
    pub service: String,
}

/// Memory of a process that samples do not have.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessHoldings {
    pub process: UserProcess,
    /// Its page tables (`VmPTE` in `/proc/PID/status`).
    pub page_tables: Bytes,
    /// Huge pages of hugetlbfs that it has mapped, private and shared (`HugetlbPages`).
    pub huge_pages: Bytes,
    /// Memory that it has locked (`VmLck`); parts may not be in RAM yet.
    pub locked: Bytes,
    /// Its threads (`Threads`); each has a stack in the kernel.
    pub threads: Count,
    /// Buffers of its sockets (`sock_diag`). Of this and what follows, an object of several processes counts for the first.
    pub sockets: Bytes,
    /// Rings of its packet sockets (`sock_diag`).
    pub packet_rings: Bytes,
    /// Data in its pipes (`FIONREAD`).
    pub pipes: Bytes,
    /// Rings of io_uring that it has open (`SqMask`, `CqMask` in `/proc/PID/fdinfo`).
    pub io_rings: Bytes,
    /// BPF maps and programs that it has open (`memlock` in `/proc/PID/fdinfo`).
    pub bpf: Bytes,
    /// Its buffers of GPUs that are shared memory (`drm-resident-…` in `/proc/PID/fdinfo`).
    pub gpu_shared: Bytes,
    /// Its buffers of GPUs in pages of the driver, which no counter has.
    pub gpu_pages: Bytes,
    /// Its buffers of DMA heaps (`exp_name` in `/proc/PID/fdinfo`).
    pub dma_heaps: Bytes,
}

/// What the size of an object of shared memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedMeasure {
    /// Its pages in RAM.
    InRam,
    /// Its pages in RAM or in swap.
    InRamOrSwap,
    /// What one process has mapped of it: others may have other pages in RAM.
    Mapped,
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
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmallocCaller {
    /// The function, and its module: `htab_map_alloc`, `load_module [nf_tables]`.
    pub name: String,
    /// Pages of RAM.
    pub pages: Pages,
    pub areas: Count,
}

/// A function of the kernel that has taken whole pages, which may be in no counter of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageCallSite {
    /// The function: `ice_alloc_mapped_page`.
    pub function: String,
    /// Its module: `ice`; empty if it is a part of the kernel.
    pub module: String,
    /// The file of the source: `drivers/net/ethernet/intel/ice/ice_txrx.c`.
    pub file: String,
    /// What it has now.
    pub bytes: Bytes,
    /// How many allocations these are.
    pub calls: Count,
}

/// RAM as the kernel found it when it booted, and what of it was set aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhysicalMemory {
    /// RAM that the kernel may use.
    pub ram: Bytes,
    /// RAM that the firmware reported; `None` if that is unknown.
    pub firmware: Option<Bytes>,
    /// Set aside for a crash kernel.
    pub crash_kernel: Bytes,
    /// The kernel's code and data.
    pub kernel_image: Bytes,
}
