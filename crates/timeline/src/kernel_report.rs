//! The kernel log's report of an OOM kill or of a failed allocation.
//!
//! Pure data, in bytes: pages are converted with the page size that the report shows. The host's memory is a [`Row`]
//! of the signals of `/proc/meminfo`, so that every rule can use it; what no signal can express (the request,
//! watermarks with their reserves, the killed process) is here.

use units::{Bytes, PageSize, Span};

use crate::facts::CgroupMode;
use crate::sample::Row;

/// One report.
#[derive(Debug, Clone, Default)]
pub struct KernelReport {
    /// What it is about.
    pub kind: ReportKind,
    /// The log's stamp, if it has no year and so is not a wall-clock time.
    pub stamp: Option<LogStamp>,
    /// The process that requested memory.
    pub invoker: Option<Invoker>,
    /// What it requested.
    pub request: Option<Request>,
    /// The size of a failed vmalloc; `None` for a request of pages, and where not printed.
    pub vmalloc: Option<Bytes>,
    /// How long the request had waited: kernels 4.10 to 4.15 report that, and it is no failure.
    pub waited: Option<Span>,
    /// Which part of memory the request was confined to; `None` where not printed.
    pub constraint: Option<Constraint>,
    /// NUMA nodes that the task may use, as printed: `0-1`.
    pub mems_allowed: Option<String>,
    /// NUMA nodes that a memory policy confined the request to, as printed: `0`.
    pub nodemask: Option<String>,
    /// The cpuset that the task is in.
    pub cpuset: Option<String>,
    /// The cgroup that hit its limit; `None` for a report of the host.
    pub group: Option<GroupReport>,
    /// Kernel release: `5.15.0-116-generic`.
    pub kernel: Option<String>,
    /// Size of a base page, as shown by the sizes of free blocks or by the table of tasks; `None` where neither shows
    /// it.
    pub page_size: Option<PageSize>,
    /// The host's memory: MemFree, AnonPages, Slab, SwapFree …, as far as printed.
    pub host: Row,
    /// The zones, in the order printed.
    pub zones: Vec<ZoneReport>,
    /// Tasks that could have been killed, in the order printed.
    pub tasks: Vec<ReportTask>,
    /// The number of further tasks in the table: a very long one is cut.
    pub tasks_left_out: usize,
    /// Whether the table of tasks begins, with rows or cut off before them: only the OOM killer prints it.
    pub has_task_table: bool,
    /// Slab caches that cannot be reclaimed. Since 4.15 a report of a kill lists them if they are larger than all pages of
    /// programs and files; empty otherwise.
    pub slabs: Vec<ReportSlab>,
    /// The killed processes; several where a whole cgroup was killed.
    pub killed: Vec<Killed>,
    /// The slab cache that could not grow, where SLUB or SLAB says so: `kmalloc-4096`.
    pub slab_cache: Option<String>,
    /// Functions of the call trace, innermost first; at most 64.
    pub trace: Vec<String>,
    /// The number of its lines.
    pub lines: usize,
    /// Lines that were not understood: their number within the report, from 1, and their text (cut).
    pub not_understood: Vec<(usize, String)>,
    /// The number of lines that were not understood, including those not stored.
    pub not_understood_in_all: usize,
    /// Whether its end is missing: the kill or the table, where there should be one.
    pub is_cut: bool,
    /// Whether no line of it has the prefix of a log: a stamp, `kernel:`. It may be quoted from elsewhere.
    pub is_without_prefix: bool,
}

/// A log stamp without a year.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStamp {
    /// As written: `Nov 21 04:12:01`.
    pub text: String,
    /// Time since the beginning of that year, for order and distance within a log.
    pub of_year: Span,
}

/// What a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportKind {
    /// A process was killed, or should have been.
    #[default]
    OomKill,
    /// A page allocation failed, without a kill.
    AllocationFailure,
}

/// The process that requested memory.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invoker {
    /// Its name, at most 15 bytes as the kernel keeps it.
    pub name: String,
    pub pid: Option<u32>,
    pub oom_score_adj: Option<i32>,
}

/// A request for memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The mask as printed. Bits differ between kernels: prefer the names.
    pub gfp_mask: u64,
    /// The names, where printed (since 4.7): `GFP_KERNEL|__GFP_COMP`.
    pub gfp_names: Option<String>,
    /// 2^order pages; -1 means that the kill was requested by hand (SysRq f).
    pub order: i32,
}

/// Which part of memory a request was confined to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// All of it.
    None,
    /// The nodes of a cpuset.
    Cpuset,
    /// The nodes of a memory policy (mbind, numactl).
    MemoryPolicy,
    /// A cgroup's limit.
    ControlGroup,
}

/// The cgroup that hit its limit.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default)]
pub struct GroupReport {
    /// The cgroup at its limit; empty where not printed.
    pub path: String,
    /// The cgroup of the victim; empty where not printed.
    pub victim_path: String,
    /// The cgroup version of the figures; `None` where nothing shows it.
    pub mode: Option<CgroupMode>,
    pub memory: Option<GroupLimit>,
    /// Swap (cgroup v2).
    pub swap: Option<GroupLimit>,
    /// Memory and swap together (cgroup v1).
    pub memory_and_swap: Option<GroupLimit>,
    /// Kernel memory (cgroup v1).
    pub kernel: Option<GroupLimit>,
    /// `memory.stat` of the cgroup with its descendants, in bytes (counts for events), fields as printed.
    pub stat: Vec<(String, u64)>,
}

/// A limit of a cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupLimit {
    /// What is charged.
    pub usage: Bytes,
    /// The limit; values from 2^63 less a page mean no limit.
    pub limit: Bytes,
    /// How often it was hit.
    pub failures: u64,
}

impl GroupLimit {
    /// Larger limits are how the kernel writes "none".
    const NONE_FROM: Bytes = Bytes::from_gib(1 << 30);

    /// Whether there is a limit at all.
    pub fn is_limited(&self) -> bool {
        self.limit < Self::NONE_FROM
    }

    /// Whether usage is within a charge batch (64 pages on each CPU) or a huge page of the limit.
    pub fn is_full(&self) -> bool {
        let slack = Bytes::from_mib(2).max(Bytes::new(self.limit.get() / 100));
        self.is_limited() && self.usage + slack >= self.limit
    }
}

/// A zone at the time of the report.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneReport {
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, `HighMem`, `Movable`.
    pub name: String,
    pub free: Bytes,
    /// The watermark below which only privileged requests are served; boost included.
    pub min: Bytes,
    /// The watermark at which kswapd starts.
    pub low: Bytes,
    /// The watermark at which kswapd stops.
    pub high: Bytes,
    /// How much the watermarks are boosted; 0 where not printed.
    pub boost: Bytes,
    /// Reserved for high-order atomic requests; part of `free`. 0 where not printed.
    pub reserved_highatomic: Bytes,
    /// The part of `free` that only movable requests may use.
    pub free_cma: Bytes,
    /// RAM that the allocator manages; `present` on kernels before 3.9, which do not print it.
    pub managed: Bytes,
    /// Free pages on per-CPU lists; not part of `free`.
    pub free_pcp: Bytes,
    /// File pages on the zone's LRU lists: what was left to reclaim.
    pub file: Bytes,
    /// The lowmem reserve against requests that could use zone *i* of its node; empty where not printed.
    pub reserve: Vec<Bytes>,
    /// Free blocks by order; empty where not printed.
    pub blocks: Vec<FreeBlocks>,
}

/// Free blocks of one order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeBlocks {
    /// The number of blocks.
    pub count: u64,
    /// The requests that they may serve, as printed: `U` unmovable, `M` movable, `E` reclaimable, `H` high-order
    /// atomic, `C` CMA, `R` reserve or reclaimable by kernel; empty where not printed.
    pub types: String,
}

/// A slab cache of the list of unreclaimable ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportSlab {
    /// Its name: `kmalloc-512`.
    pub name: String,
    /// The size of its objects in use.
    pub used: Bytes,
    /// Its size in RAM.
    pub total: Bytes,
}

/// A task of the table.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportTask {
    pub pid: u32,
    /// Thread group ID; differs from `pid` where the main thread is gone.
    pub tgid: u32,
    /// Address space.
    pub total_vm: Bytes,
    pub rss: Bytes,
    /// Resident, by kind: anonymous, file, shared; since 6.8.
    pub rss_by_kind: Option<(Bytes, Bytes, Bytes)>,
    pub page_tables: Bytes,
    /// In swap.
    pub swap: Bytes,
    /// -1000 (never) to 1000 (first).
    pub oom_score_adj: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
}

/// A process that was killed.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Killed {
    pub pid: u32,
    pub name: String,
    /// Address space.
    pub total_vm: Option<Bytes>,
    /// Anonymous memory.
    pub anon: Option<Bytes>,
    /// Mapped files.
    pub file: Option<Bytes>,
    /// Mapped shared memory.
    pub shmem: Option<Bytes>,
    pub page_tables: Option<Bytes>,
    pub oom_score_adj: Option<i32>,
}

impl Killed {
    /// `java (4242)`
    pub fn named(&self) -> String {
        named(&self.name, self.pid)
    }

    /// The resident memory, as far as printed.
    pub fn rss(&self) -> Option<Bytes> {
        [self.anon, self.file, self.shmem].into_iter().flatten().reduce(|a, b| a + b)
    }
}

impl Invoker {
    /// `java (4242)`; the name alone where the PID is not printed.
    fn named(&self) -> String {
        match self.pid {
            Some(pid) => named(&self.name, pid),
            None => self.name.clone(),
        }
    }
}

/// `java (4242)`; a process may choose an empty name, and a line may be cut off before it.
fn named(name: &str, pid: u32) -> String {
    if name.is_empty() {
        return format!("process {pid}");
    }
    format!("{name} ({pid})")
}

impl KernelReport {
    /// The subject as `java (4242)`: the first process killed, or the one with the failed request; empty where none is
    /// named.
    pub fn subject(&self) -> String {
        let victim = || self.killed.first().map(Killed::named);
        let asker = || self.invoker.as_ref().map(Invoker::named);
        let subject = match self.kind {
            ReportKind::OomKill => victim(),
            ReportKind::AllocationFailure => asker(),
        };
        subject.unwrap_or_default()
    }

    /// Whether the kill was requested by hand: SysRq f requests order -1 from a work queue.
    pub fn is_by_hand(&self) -> bool {
        self.request.as_ref().is_some_and(|r| r.order == -1)
            || self.trace.iter().any(|f| f == "moom_callback" || f == "sysrq_handle_moom")
    }

    /// Whether it shows if the host or a cgroup ran out of memory. The line `Killed process 812 (java)` alone does
    /// not: in kernels before 5.1 it ends both kinds of report.
    pub fn shows_scope(&self) -> bool {
        self.constraint.is_some()
            || self.group.is_some()
            || self.request.is_some()
            || !self.zones.is_empty()
            || !self.trace.is_empty()
            || !self.host.is_empty()
    }

    /// Whether it shows memory and no failure: a requested dump (SysRq m), or the middle of a report without its ends.
    pub fn is_memory_dump(&self) -> bool {
        let in_oom =
            |function: &String| function == "out_of_memory" || function.starts_with("oom_kill");
        self.kind == ReportKind::OomKill
            && self.invoker.is_none()
            && self.request.is_none()
            && self.constraint.is_none()
            && self.group.is_none()
            && self.tasks.is_empty()
            && !self.has_task_table
            && self.killed.is_empty()
            && !self.trace.iter().any(in_oom)
    }

    /// NUMA nodes that the request was confined to, as printed; `None` where it was not confined, or nothing is
    /// printed.
    pub fn confined_to(&self) -> Option<&str> {
        match self.constraint? {
            Constraint::MemoryPolicy => self.nodemask.as_deref().or(self.mems_allowed.as_deref()),
            Constraint::Cpuset => self.mems_allowed.as_deref(),
            Constraint::None | Constraint::ControlGroup => None,
        }
    }
}
