//! Where does one process have its memory, and what is in its malloc heap? Read from outside, while it runs.
//!
//! The heap is read first: what malloc's structures contain is malloc's, and the rest of the process's memory is divided
//! by what the kernel and the runtimes name. Cost: 5 to 60 ms, and 0.3 s of CPU for a GiB of small chunks.

mod heap_report;
mod over_time;
mod process_report;
mod program;
mod reading;
mod select;

use diagnose::process_memory::{HeapFigures, MemoryVerdict, ProcessFigures};
use probe::{NoAnswer, ProcessFiles, ProcessIdentity, ReadError, Root, SharerBudget, process_cpu};
use report::model::explain::{EXPLAIN_SCHEMA, ExplainCost, ExplainReport};
use rustix::io::Errno;
use sampler::Progress;
use timeline::signals::PROC_MINFLT;
use timeline::{EntityRow, with_causes};
use units::{Count, PerSecond, Quantity as _, Span};

use over_time::WatchedProcess;
use reading::ProcessReading;

pub(crate) use heap_report::ARENAS_MAX;
pub use over_time::WATCH_MIN;
pub use program::explain_program;
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
    #[error("no process is named `{name}`{}", resembling(running))]
    NoName {
        name: String,
        /// Names of processes that may be meant.
        running: Vec<String>,
    },
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
            Self::NoName { running, .. } if !running.is_empty() => {
                Some(format!("memtide explain {}", running[0]))
            }
            Self::NoName { .. } => Some(
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
    /// Whether a runtime's own report stands beside the answer: then none is asked for.
    pub has_runtime_stats: bool,
}

/// What stopping a process would cost and give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopProspect {
    /// Its figures become exact; it stands still for about this long.
    Stops(Span),
    /// Nothing would become more exact: why, in words.
    Useless(&'static str),
}

/// Returns what `--freeze` would cost: the process is read once without a stop.
///
/// # Errors
/// As [`explain`].
pub fn stop_prospect(root: &Root, pid: u32) -> Result<StopProspect, ExplainError> {
    let (report, _) = read(root, pid, ExplainOptions::default())?;
    Ok(match &report.heap {
        None if report.has_malloc == Some(false) => StopProspect::Useless(
            "it has no heap of glibc's malloc, the only part that a stop makes exact",
        ),
        Some(heap) if !heap.has_changed => StopProspect::Useless(
            "its heap did not change while it was read: the figures are exact without a stop",
        ),
        _ => StopProspect::Stops(report.cost.wall_s),
    })
}

/// Names of processes as a clause of an error.
fn resembling(running: &[String]) -> String {
    if running.is_empty() { String::new() } else { format!("; running are {}", running.join(", ")) }
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
    let faults = minor_faults(root, pid);
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
        has_runtime_stats: options.has_runtime_stats,
        problems: anatomy.problems,
        ..ExplainReport::default()
    };
    report.cost = ExplainCost {
        cpu_s: Span::from_secs_f64(process_cpu().saturating_sub(cpu).as_secs_f64()),
        wall_s: Span::from_secs_f64(started.elapsed().as_secs_f64()),
        stopped_s: stopped,
    };
    report.minor_faults_per_s = faults.zip(minor_faults(root, pid)).and_then(|(before, now)| {
        let more = now.saturating_sub(before).as_f64();
        (stopped.is_none() && report.cost.wall_s >= MEASURED_MIN)
            .then(|| PerSecond::new(more / report.cost.wall_s.as_secs_f64()))
    });
    Ok((report, anatomy.identity))
}

/// One that answers does so at once.
const FAULTS_WAIT_MAX: Span = Span::from_millis(100);
/// A shorter time shows no rate.
const MEASURED_MIN: Span = Span::from_millis(30);

/// Reads how many minor faults a process has had; `None` also where its exec never ends, for which its `stat` waits.
fn minor_faults(root: &Root, pid: u32) -> Option<Count> {
    let (root, path) = (root.clone(), format!("/proc/{pid}/stat"));
    let text = probe::read_within(FAULTS_WAIT_MAX, move || root.read(&path)).ok()?.ok()?;
    let mut row = EntityRow::default();
    ProcessFiles::default().parse(pid, "stat", &text, &mut row).ok()?;
    row.row.get(PROC_MINFLT)
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
    let others = report.memory.parts.iter().filter(|part| !part.is_malloc_heap);
    let verdict = MemoryVerdict::of(&ProcessFigures {
        rss: report.sizes.ram_bytes,
        largest_other: others.map(|part| part.ram_bytes).max().unwrap_or_default(),
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
