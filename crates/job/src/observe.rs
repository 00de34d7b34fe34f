//! A job is watched while it runs: what it read, wrote, and removed, in order.
//!
//! Three sources, the cheapest first. The exact sum is the kernel's account of each ended child before it is reaped, which
//! contains all descendants that were waited for. In which order which pages were touched is read from kernel trace points by
//! root ([`trace`]), and otherwise from the positions of open files, looked at every 10 ms ([`open_files`]): what was opened and
//! closed between two of them is missed, so the coverage belongs to the answer.

pub(crate) mod account;
mod attached;
mod file_lookup;
mod left_cached;
mod open_files;
mod others;
mod process_tree;
mod steps;
mod trace;
mod trace_line;
mod trace_touches;

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use probe::{HostProbe, Root};
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;
use timeline::Sample;
use timeline::signals::{
    MEM_AVAILABLE, NR_DIRTY_BACKGROUND_THRESHOLD, PGSTEAL_DIRECT, PGSTEAL_FILE, PGSTEAL_KHUGEPAGED,
    PGSTEAL_KSWAPD, REFAULT_FILE,
};
use units::{Bytes, Count, PageSize, Pages, Ratio, Span};

use crate::touches::Touches;
use account::Children;
use attached::Attached;
pub use attached::JobTarget;
pub use left_cached::LeftCached;
pub(crate) use open_files::OpenFiles;
use others::Others;
pub(crate) use others::{GroupGrowth, lost};
pub use others::{OtherGroup, OtherReader};
pub use steps::SeenStep;
use trace::Trace;
pub use trace::TraceError;

/// From one reading of open files to the next, at least; longer where reading them takes long.
const EVERY: Duration = Duration::from_millis(10);

/// Reading them takes at most this share of the time, as one of so many parts.
const LOOK_SHARE: u32 = 20;

/// How long an interrupted job may take to end.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// How a job is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObserveMethod {
    /// By trace points where they can be had, otherwise by open files.
    #[default]
    Best,
    /// By trace points, or not at all.
    Trace,
    /// By open files alone.
    OpenFiles,
}

/// Where the order of touches comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TouchSource {
    /// The kernel's trace points: every touch.
    Trace,
    /// Positions of open files, looked at again and again.
    OpenFiles,
}

/// The kernel's account of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct JobIo {
    /// Asked of read(2) and its like, pipes and terminals included.
    pub rchar_bytes: Bytes,
    /// The same for write(2).
    pub wchar_bytes: Bytes,
    /// Read from disks.
    pub read_bytes: Bytes,
    /// Made dirty, to be written to disks.
    pub write_bytes: Bytes,
    /// Of that, never written, as the file was removed or cut before.
    pub cancelled_bytes: Bytes,
}

impl JobIo {
    /// Transferred from and to disks.
    pub fn net(&self) -> Bytes {
        self.read_bytes + self.write_bytes.saturating_sub(self.cancelled_bytes)
    }

    fn each(self, other: Self, of: impl Fn(Bytes, Bytes) -> Bytes) -> Self {
        Self {
            rchar_bytes: of(self.rchar_bytes, other.rchar_bytes),
            wchar_bytes: of(self.wchar_bytes, other.wchar_bytes),
            read_bytes: of(self.read_bytes, other.read_bytes),
            write_bytes: of(self.write_bytes, other.write_bytes),
            cancelled_bytes: of(self.cancelled_bytes, other.cancelled_bytes),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.each(other, |one, other| one + other)
    }

    fn less(self, other: Self) -> Self {
        self.each(other, Bytes::saturating_sub)
    }
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobEnd {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Not yet: memtide was interrupted or its time was over, and the job goes on.
    GoesOn,
    /// It ended; how is known to its parent alone.
    Ended,
}

/// What the host did meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostMeanwhile {
    /// File pages that were evicted from memory, those of the job among them; `None` before 5.8.
    pub evicted: Option<Bytes>,
    /// File pages that were read again after they had been evicted, by any process.
    pub refaulted: Option<Bytes>,
    /// What was available at the start.
    pub available: Option<Bytes>,
    /// How far the kernel reads ahead in a file, on the device where that is the most.
    pub read_ahead: Option<Bytes>,
    /// From how much dirty memory on the kernel writes.
    pub dirty_background: Option<Bytes>,
    /// Whether it evicts by generations (MGLRU).
    pub has_generations: bool,
}

/// What was seen of a job.
#[derive(Debug)]
pub struct Observation {
    /// What it touched in order.
    pub touches: Touches,
    /// Programs that did it.
    pub steps: Vec<SeenStep>,
    /// Where the order comes from.
    pub source: TouchSource,
    /// Why it is not by trace points, where those were wanted.
    pub no_trace: Option<TraceError>,
    /// The exact sum.
    pub io: JobIo,
    /// The share of bytes asked for of which the place in a file was seen.
    pub coverage: Ratio,
    /// Events that the kernel dropped, as they were not read in time.
    pub lost_events: Count,
    /// Read from disks by processes that are not in the sum, as nobody waited for them.
    pub uncounted: Bytes,
    /// Ended processes with an account that could not be read.
    pub unreadable: Count,
    /// Processes of it that still run.
    pub still_running: Count,
    /// Files with touches that were in the cache before the job began.
    pub found_cached: Option<Bytes>,
    /// The most memory of their own that its processes had together, of all looks.
    pub own_memory: Bytes,
    /// What the cache could take at the start, and what bounds it.
    pub room: Option<(Bytes, String)>,
    /// From its start to its end.
    pub wall: Span,
    /// Of all its processes that ended.
    pub cpu: Span,
    /// How the command ended.
    pub end: JobEnd,
    /// The host around it.
    pub host: HostMeanwhile,
    /// What others lost meanwhile, by cgroup.
    pub others: Vec<OtherGroup>,
    /// Its files that are in the cache at the end.
    pub left: LeftCached,
    /// Whether it ran before it was watched.
    pub is_attached: bool,
}

/// Why a job could not be watched.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// The command cannot be started.
    #[error("cannot start `{program}`")]
    NotStarted {
        /// The first word of the command.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Only by trace points, and there are none.
    #[error("cannot trace the kernel")]
    NoTrace(#[source] TraceError),
    /// Nothing of it runs.
    #[error("nothing runs of {0}")]
    NothingRuns(String),
}

impl ObserveError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NotStarted { .. } | Self::NothingRuns(_) => None,
            Self::NoTrace(error) => error.help(),
        }
    }
}

/// Runs a command to its end and watches it. The command has the standard streams, environment and process group of this
/// process, and goes on if this process is killed.
///
/// # Errors
/// The command cannot be started, or the kernel cannot be traced and nothing else is wanted.
pub fn observe(
    command: Command,
    method: ObserveMethod,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Observation, ObserveError> {
    observe_beside(command, method, is_interrupted, &mut |_| ())
}

/// The same, and calls after each look at its open files.
pub(crate) fn observe_beside(
    mut command: Command,
    method: ObserveMethod,
    is_interrupted: &dyn Fn() -> bool,
    each_look: &mut dyn FnMut(&OpenFiles),
) -> Result<Observation, ObserveError> {
    let mut watch = JobWatch::begin(method, None)?;
    // Orphans of the job become children of this process, so that their accounts are read as well.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    if let Some(trace) = &watch.trace {
        trace.follow(&mut command).map_err(ObserveError::NoTrace)?;
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let ours = process_tree::children("self");
    watch.begin_time();
    let spawned = command.spawn();
    // It has a file of the trace open.
    drop(command);
    let child = spawned.map_err(|source| ObserveError::NotStarted { program, source })?;
    let mut children = Children::of(child.id(), ours);
    let mut asked_to_end: Option<Instant> = None;
    let mut pause = EVERY;
    let end = loop {
        children.wait(pause);
        let look = Instant::now();
        children.open_accounts();
        watch.look(&children.descendants());
        each_look(&watch.files);
        pause = EVERY.max(look.elapsed() * LOOK_SHARE);
        if let Some(end) = children.reap() {
            break end;
        }
        if is_interrupted() {
            let since = *asked_to_end.get_or_insert_with(|| {
                children.ask_to_end();
                Instant::now()
            });
            if since.elapsed() > ENDING_MAX {
                break JobEnd::GoesOn;
            }
        }
    };
    let running = children.descendants();
    watch.look(&running);
    children.add_running(&running);
    let (io, unreadable, cpu) = (children.sum(), children.unreadable(), children.cpu());
    let still_running = Count::new(running.len() as u64);
    Ok(watch.end(&running, EndedAccount { io, unreadable, cpu, still_running, end }))
}

/// Watches what runs already, until all of it has ended, for so long, or until it is interrupted. It is never touched.
///
/// # Errors
/// Nothing of it runs, or the kernel cannot be traced and nothing else is wanted.
pub fn observe_running(
    target: &JobTarget,
    method: ObserveMethod,
    at_most: Option<Duration>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Observation, ObserveError> {
    let mut watch = JobWatch::begin(method, Some(target))?;
    let mut attached = Attached::to(target.clone());
    if let Some(trace) = &watch.trace {
        trace.attach().map_err(ObserveError::NoTrace)?;
    }
    let mut followed = HashSet::new();
    watch.begin_time();
    let mut pause = Duration::ZERO;
    let (running, end) = loop {
        std::thread::sleep(pause);
        let look = Instant::now();
        let now = attached.look();
        if now.is_empty() && followed.is_empty() {
            return Err(ObserveError::NothingRuns(target.to_string()));
        }
        if let Some(trace) = &watch.trace {
            let new = now.iter().copied().filter(|pid| followed.insert(*pid));
            trace.follow_running(&new.collect::<Vec<_>>());
        } else {
            followed.extend(&now);
        }
        watch.look(&now);
        if now.is_empty() {
            break (now, JobEnd::Ended);
        }
        if is_interrupted() || at_most.is_some_and(|most| watch.begun.elapsed() >= most) {
            break (now, JobEnd::GoesOn);
        }
        pause = EVERY.max(look.elapsed() * LOOK_SHARE);
    };
    let (io, cpu) = (attached.sum(), attached.cpu());
    let (unreadable, still_running) = (attached.unreadable(), attached.running());
    Ok(watch.end(&running, EndedAccount { io, unreadable, cpu, still_running, end }))
}

/// All that is watched while a job runs.
struct JobWatch {
    begun: Instant,
    is_attached: bool,
    host: HostReadings,
    room: Option<(Bytes, String)>,
    trace: Option<Trace>,
    no_trace: Option<TraceError>,
    others: Others,
    files: OpenFiles,
    page: PageSize,
}

/// The account of a job at its end.
struct EndedAccount {
    io: JobIo,
    unreadable: Count,
    cpu: Span,
    still_running: Count,
    end: JobEnd,
}

impl JobWatch {
    /// Reads all that is compared with later. A job that runs already may be in another cgroup.
    fn begin(method: ObserveMethod, target: Option<&JobTarget>) -> Result<Self, ObserveError> {
        let page = probe::host_facts::page_size().unwrap_or(PageSize::USUAL);
        let root = Root::default();
        let room = match target {
            None => probe::least_memory_left(&root),
            Some(target) => probe::least_memory_left_in(&root, target.cgroup().as_deref()),
        };
        let traced = match method {
            ObserveMethod::OpenFiles => None,
            ObserveMethod::Best | ObserveMethod::Trace => Some(Trace::begin(page)),
        };
        let (trace, no_trace) = match traced {
            Some(Ok(trace)) => (Some(trace), None),
            Some(Err(error)) if method == ObserveMethod::Trace => {
                return Err(ObserveError::NoTrace(error));
            }
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let begun = Instant::now();
        Ok(Self {
            begun,
            is_attached: target.is_some(),
            room: room.map(|room| (room.left, room.place)),
            files: OpenFiles::new(page, begun, trace.is_none(), target.is_some()),
            others: Others::begin(page, target.is_none()),
            host: HostReadings::begin(page),
            trace,
            no_trace,
            page,
        })
    }

    /// The job begins now.
    fn begin_time(&mut self) {
        self.begun = Instant::now();
    }

    /// Takes the processes of the job and the positions of their files.
    fn look(&mut self, pids: &[u32]) {
        self.others.are_of_job(pids);
        self.files.look(pids);
    }

    fn end(mut self, running: &[u32], ended: EndedAccount) -> Observation {
        let wall = span(self.begun.elapsed());
        let host = self.host.end();
        let others = self.others.end(&running.iter().copied().collect(), host.evicted);
        let sampled = self.files.finish(ended.end == JobEnd::GoesOn);
        let own_memory = sampled.own_memory;
        let mut io = ended.io;
        let seen = match self.trace {
            Some(trace) => {
                let traced = trace.end(sampled.names, self.begun);
                let asked = traced.touches.read() + traced.touches.written();
                SeenTouches {
                    coverage: lost_share(traced.events, traced.lost),
                    read_from_disk: traced.read_from_disk,
                    found_cached: Some(traced.found_cached.min(asked)),
                    lost_events: Count::new(traced.lost),
                    touches: traced.touches,
                    steps: traced.steps,
                    source: TouchSource::Trace,
                }
            }
            None => {
                let transferred = io.read_bytes + io.write_bytes;
                let asked = io.rchar_bytes + io.wchar_bytes;
                let asked = asked.max(sampled.asked).max(transferred).max(sampled.seen);
                SeenTouches {
                    coverage: sampled.seen.ratio_of(asked).unwrap_or(Ratio::new(1.0)),
                    read_from_disk: sampled.read_from_disk,
                    found_cached: None,
                    lost_events: Count::ZERO,
                    touches: sampled.touches,
                    steps: sampled.steps,
                    source: TouchSource::OpenFiles,
                }
            }
        };
        if self.is_attached {
            // Between its last look and its end a process did what no account has.
            io.read_bytes = io.read_bytes.max(seen.read_from_disk);
        }
        Observation {
            left: LeftCached::of(&seen.touches, self.page),
            coverage: seen.coverage,
            uncounted: uncounted(seen.read_from_disk, io.read_bytes),
            found_cached: seen.found_cached,
            lost_events: seen.lost_events,
            touches: seen.touches,
            steps: seen.steps,
            source: seen.source,
            no_trace: self.no_trace,
            io,
            unreadable: ended.unreadable,
            still_running: ended.still_running,
            own_memory,
            room: self.room,
            wall,
            cpu: ended.cpu,
            end: ended.end,
            host,
            others,
            is_attached: self.is_attached,
        }
    }
}

/// What either way of watching saw.
struct SeenTouches {
    coverage: Ratio,
    read_from_disk: Bytes,
    found_cached: Option<Bytes>,
    lost_events: Count,
    touches: Touches,
    steps: Vec<SeenStep>,
    source: TouchSource,
}

/// Two percent and a mebibyte are what both counts differ by anyway: read-ahead, metadata.
fn uncounted(seen: Bytes, counted: Bytes) -> Bytes {
    const TOLERANCE: Ratio = Ratio::new(0.02);
    let more = seen.saturating_sub(counted);
    if more > counted.share(TOLERANCE) + Bytes::from_mib(1) { more } else { Bytes::ZERO }
}

fn lost_share(events: u64, lost: u64) -> Ratio {
    Ratio::new(events as f64 / (events + lost).max(1) as f64)
}

fn span(duration: Duration) -> Span {
    Span::from_secs_f64(duration.as_secs_f64())
}

/// The largest `/sys/class/bdi/*/read_ahead_kb`, of devices that are files' own: `MAJOR:MINOR` with a block device.
fn read_ahead() -> Option<Bytes> {
    let devices = std::fs::read_dir("/sys/class/bdi").ok()?;
    let of_device = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let number = path.file_name()?.to_str()?;
        std::fs::metadata(format!("/sys/dev/block/{number}")).ok()?;
        let text = std::fs::read_to_string(path.join("read_ahead_kb")).ok()?;
        text.trim().parse().ok().map(Bytes::from_kib)
    };
    devices.filter_map(of_device).max()
}

/// Whether the multi-generational LRU is on (6.1): a mask of its parts, of which the lowest bit is the whole.
fn has_generations() -> bool {
    let mask = std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
    let digits = mask.trim().trim_start_matches("0x");
    u32::from_str_radix(digits, 16).is_ok_and(|mask| mask & 1 == 1)
}

/// What the host evicted of files, by how much its counters rose. Pages of files are counted together with those that limits of
/// cgroups evict; pages that the host's shortage evicts together with anonymous ones. So it is at most the smaller of both.
pub(crate) fn evicted_by_host(
    more: impl Fn(timeline::Signal<timeline::Counter<Pages>>) -> Option<Bytes>,
) -> Option<Bytes> {
    let reclaimers = [PGSTEAL_KSWAPD, PGSTEAL_DIRECT, PGSTEAL_KHUGEPAGED];
    let of_host: Bytes = reclaimers.into_iter().filter_map(&more).sum();
    more(PGSTEAL_FILE).map(|file| file.min(of_host))
}

/// Readings of the host before and after.
struct HostReadings {
    probe: HostProbe,
    page: PageSize,
    before: Sample,
}

impl HostReadings {
    fn begin(page: PageSize) -> Self {
        let mut probe = HostProbe::open(&Root::default());
        let mut before = Sample::default();
        probe.sample(&mut before);
        Self { probe, page, before }
    }

    fn end(&mut self) -> HostMeanwhile {
        let mut after = Sample::default();
        self.probe.sample(&mut after);
        let more = |signal: timeline::Signal<timeline::Counter<Pages>>| {
            let (before, after) = (self.before.host.get(signal)?, after.host.get(signal)?);
            Some(after.saturating_sub(before).to_bytes(self.page))
        };
        let threshold = self.before.host.get(NR_DIRTY_BACKGROUND_THRESHOLD);
        HostMeanwhile {
            evicted: evicted_by_host(more),
            refaulted: more(REFAULT_FILE),
            available: self.before.host.get(MEM_AVAILABLE),
            read_ahead: read_ahead(),
            dirty_background: threshold.map(|pages| pages.to_bytes(self.page)),
            has_generations: has_generations(),
        }
    }
}
