//! Where does one process have its memory, and what is in its malloc heap? Read from outside, while it runs.
//!
//! The heap is read first: what malloc's structures contain is malloc's, and the rest of the process's memory is divided
//! by what the kernel and the runtimes name. Cost: 5 to 60 ms, and 0.3 s of CPU for a GiB of small chunks.

mod heap_report;
mod over_time;
mod process_report;
mod reading;
mod select;

use diagnose::process_memory::{HeapFigures, MemoryVerdict, ProcessFigures};
use probe::{NoAnswer, ProcessIdentity, ReadError, Root, SharerBudget, process_cpu};
use report::model::explain::{EXPLAIN_SCHEMA, ExplainCost, ExplainReport};
use rustix::io::Errno;
use sampler::Progress;
use timeline::with_causes;
use units::Span;

use over_time::WatchedProcess;
use reading::ProcessReading;

pub(crate) use heap_report::ARENAS_MAX;
pub use over_time::WATCH_MIN;
pub use select::ExplainTarget;

/// Why a process cannot be explained.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoPid {
        pid: u32,
        /// The PID here of a process that has it in its container.
        here: Option<u32>,
    },
    /// No process has the name.
    #[error("no process is named `{0}`")]
    NoName(String),
    /// No process belongs to the service.
    #[error("no process belongs to a service, container or cgroup `{0}`")]
    NoService(String),
    /// It is a kernel thread.
    #[error("process {pid} ({name}) is a kernel thread: it has no memory of its own")]
    KernelThread { pid: u32, name: String },
    /// It has ended.
    #[error(
        "process {pid} ({name}) has ended, and its parent has not yet taken note of it (a zombie): \
         its memory is free"
    )]
    Zombie { pid: u32, name: String },
    /// Its first thread has ended, and others go on.
    #[error("the first thread of process {pid} ({name}) has ended; its memory is in use by others")]
    FirstThreadEnded {
        pid: u32,
        name: String,
        /// A thread that goes on.
        thread: u32,
    },
    /// It ended meanwhile.
    #[error("process {0} ended, or started another program, while it was read")]
    Ended(u32),
    /// Not even its mappings could be read in time.
    #[error("process {pid} {why}")]
    NoAnswer {
        pid: u32,
        /// What the reader waited for.
        why: NoAnswer,
    },
    /// This user may not read its memory.
    #[error("the memory of process {pid} may not be read")]
    NotPermitted { pid: u32, source: ReadError },
    /// A file could not be read.
    #[error("process files cannot be read")]
    Read { source: ReadError },
}

impl ExplainError {
    /// Returns what to do.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoPid { pid, here } => here.map(|here| {
                format!("PID {pid} of a container is {here} here: memtide explain {here}")
            }),
            Self::FirstThreadEnded { thread, .. } => {
                Some(format!("the kernel shows it under their numbers: memtide explain {thread}"))
            }
            Self::NoName(_) => Some(
                "the name is that of the program or of the process (`ps -e -o pid,comm`); a PID or \
                 --service UNIT works too"
                    .to_owned(),
            ),
            Self::NoService(_) => {
                Some("`systemctl status` or `memtide where` show the names".to_owned())
            }
            Self::KernelThread { .. } => {
                Some("`memtide where` shows the kernel's own memory".to_owned())
            }
            Self::NotPermitted { .. } => Some(
                "run memtide as root, or as the process's user where it may be traced (Yama's \
                 kernel.yama.ptrace_scope 0); in a container, with --cap-add SYS_PTRACE"
                    .to_owned(),
            ),
            Self::NoAnswer { pid, .. } => Some(format!(
                "its size and state are in /proc/{pid}/status; stat, wchan and ps may wait as well"
            )),
            Self::Zombie { .. } | Self::Ended(_) | Self::Read { .. } => None,
        }
    }
}

/// How a process is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExplainOptions {
    /// Whether the answer has the heap's rows of cells, for a picture.
    pub with_rows: bool,
    /// Whether the process is stopped while it is read. It goes on even if this program is killed.
    pub freeze: bool,
}

/// Explains the memory of a process.
///
/// # Errors
/// [`ExplainError`] if it has none, ends meanwhile, or may not be read.
pub fn explain(
    root: &Root,
    pid: u32,
    options: ExplainOptions,
) -> Result<ExplainReport, ExplainError> {
    let (mut report, process) = read(root, pid, options)?;
    report.growth = over_time::recorded(&process);
    Ok(judged(report))
}

/// Reads a process: the answer without how it changes, and without its verdict.
fn read(
    root: &Root,
    pid: u32,
    options: ExplainOptions,
) -> Result<(ExplainReport, ProcessIdentity), ExplainError> {
    let (started, cpu) = (std::time::Instant::now(), process_cpu());
    let ProcessReading { heap, ranges, mut anatomy, malloc_calls, stopped } =
        ProcessReading::take(root, pid, options.freeze)?;
    (anatomy.files).search_users(root, pid, SharerBudget::default());
    let files = anatomy.files.rows.iter();
    let mut report = ExplainReport {
        process: process_report::process(&anatomy),
        sizes: process_report::sizes(&anatomy),
        memory: process_report::part(&anatomy.anatomy.root),
        allocators: (anatomy.allocators.allocators.iter()).map(process_report::allocator).collect(),
        malloc_calls: malloc_calls.as_ref().map(process_report::malloc_calls),
        has_malloc: ranges.map(|ranges| !ranges.is_empty()),
        heap_not_read: heap.as_ref().err().map(|why| with_causes(why)),
        heap: (heap.as_ref().ok()).map(|heap| heap_report::heap_report(heap, options.with_rows)),
        files: files.map(|row| process_report::file(root, row)).collect(),
        files_left_out: anatomy.files.left_out as u64,
        unsearched_files: anatomy.allocators.unread,
        processes_unread: anatomy.files.processes_unread as u64,
        absent_sizes: anatomy.anatomy.absent,
        problems: anatomy.problems,
        ..ExplainReport::default()
    };
    report.cost = ExplainCost {
        cpu_s: Span::from_secs_f64(process_cpu().saturating_sub(cpu).as_secs_f64()),
        wall_s: Span::from_secs_f64(started.elapsed().as_secs_f64()),
        stopped_s: stopped,
    };
    Ok((report, anatomy.identity))
}

/// Explains a process after watching it for a while: with how it changes. `progress` may end the watch early.
///
/// # Errors
/// As [`explain`]. A process that ends meanwhile is explained as it was at first.
pub fn explain_watched(
    root: &Root,
    pid: u32,
    options: ExplainOptions,
    lasts: Span,
    progress: Progress<'_>,
) -> Result<ExplainReport, ExplainError> {
    let watched = WatchedProcess::open(root, pid);
    let mut watched = watched.map_err(|source| refused(pid, source))?;
    let (mut first, _) = read(root, pid, options)?;
    let series = watched.watch(lasts, progress);
    let last =
        if watched.is_gone() { Err(ExplainError::Ended(pid)) } else { read(root, pid, options) };
    let mut report = match last {
        Ok((report, _)) => report,
        Err(ended) => {
            let problem = format!("{ended}; the sizes are those of the beginning");
            first.problems.push(problem);
            first
        }
    };
    report.growth = over_time::judge(&report.process.name, pid, &series);
    report.is_watched = report.growth.is_some();
    Ok(judged(report))
}

/// Fills in the verdict: what the sizes say, in a word and in sentences.
fn judged(mut report: ExplainReport) -> ExplainReport {
    let none = (report.has_malloc == Some(false)).then_some(HeapFigures::NONE);
    let heap = report.heap.as_ref().map(|heap| HeapFigures {
        resident: heap.resident_bytes(),
        free_resident: heap.unused_resident_bytes,
        uncertain: heap.uncertain_resident_bytes,
        is_whole: heap.is_whole,
    });
    let verdict = MemoryVerdict::of(&ProcessFigures {
        rss: report.sizes.rss_bytes,
        swapped: report.sizes.swap_bytes,
        heap: heap.or(none),
    });
    report.schema = EXPLAIN_SCHEMA;
    report.verdict = verdict.name();
    report.verdict_text = report::explain_verdict(&report, verdict);
    let watch = over_time::worth_watching(report.cost.cpu_s);
    report.headline = report::explain_headline(&report, verdict, watch);
    report
}

fn refused(pid: u32, source: ReadError) -> ExplainError {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    const ESRCH: i32 = Errno::SRCH.raw_os_error();
    match (source.source.kind(), source.source.raw_os_error()) {
        (PermissionDenied, _) => ExplainError::NotPermitted { pid, source },
        (NotFound, _) | (_, Some(ESRCH)) => ExplainError::Ended(pid),
        _ => ExplainError::Read { source },
    }
}
