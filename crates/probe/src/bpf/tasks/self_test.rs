//! Checks at the start that the iterator of tasks is correct on this kernel, by comparing its records with `/proc`.
//!
//! The program finds the kernel's data with the kernel's own types, and reads 0 instead of failing if it does not find
//! a field; so no value is trusted before it was compared once. Counts of pages without the parts of other CPUs are
//! only slightly wrong, within the error of `/proc` itself on some kernels: so a known number of pages is touched, too.

use rustix::io::Errno;
use timeline::signals::{
    PROC_BLKIO_DELAY, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_PEAK, PROC_RSS_SHMEM,
    PROC_STIME, PROC_SWAP, PROC_THREADS, PROC_UTIME,
};
use timeline::{ProcessCells, SignalId};
use units::{Bytes, Count, Pages, Span};

use crate::bpf::tasks::iterator::TaskIter;
use crate::directory::Directory;
use crate::kernel_file::Root;
use crate::process::cells::CellReader;
use crate::process::reader_thread::ReaderThread;

/// One source's readings of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeenTask {
    pid: u32,
    start: u64,
    cells: ProcessCells,
}

/// Number of attempts: activity of a process during the comparison may fail one of them, but not all.
const ROUNDS: usize = 4;
/// Number of processes to compare, besides this one.
const PROCESSES: usize = 12;

/// Compares the sources, or says in words what differs.
pub(crate) fn check(root: &Root, iter: &mut TaskIter) -> Result<(), String> {
    let mut files = ProcFiles::open(root)
        .map_err(|errno| format!("there is no /proc to test BPF against: {errno}"))?;
    let mut result = Ok(());
    for _ in 0..ROUNDS {
        result = compare(&mut files, iter).and_then(|()| touch(iter));
        if result.is_ok() {
            break;
        }
    }
    result.map_err(|difference| format!("the self-test failed: {difference}"))
}

/// Reads `/proc`, the iterator and `/proc` again: a value between the first and the last is right.
fn compare(files: &mut ProcFiles, iter: &mut TaskIter) -> Result<(), String> {
    let chosen = choose(&walk(iter)?);
    let mut read = |pid: &u32| files.read(*pid);
    let before: Vec<Option<SeenTask>> = chosen.iter().map(&mut read).collect();
    let ours = walk(iter)?;
    let after: Vec<Option<SeenTask>> = chosen.iter().map(&mut read).collect();
    let mut compared = 0;
    for (before, after) in before.iter().zip(&after) {
        let (Some(before), Some(after)) = (before, after) else {
            continue; // It ended, or does not answer.
        };
        let found = ours.iter().find(|seen| seen.pid == before.pid);
        let found = found.ok_or_else(|| format!("process {} is not there", before.pid))?;
        between(before, found, after, iter.cpus())?;
        compared += 1;
    }
    if compared == 0 {
        return Err("no process could be compared".to_owned());
    }
    Ok(())
}

fn walk(iter: &mut TaskIter) -> Result<Vec<SeenTask>, String> {
    let mut all = Vec::new();
    let walk = iter.each(&mut |task| {
        all.push(SeenTask { pid: task.pid, start: task.start_ticks, cells: *task.cells });
    });
    match walk.absent {
        Some(absence) => Err(format!("the iterator cannot be read: {absence:?}")),
        None => Ok(all),
    }
}

/// Chooses this process, the first ones, and those that cover most of what could be wrong.
fn choose(all: &[SeenTask]) -> Vec<u32> {
    let mut chosen = vec![std::process::id()];
    let most_of = |key: &dyn Fn(&ProcessCells) -> u64| {
        let most = all.iter().max_by_key(|seen| key(&seen.cells));
        most.map(|seen| seen.pid)
    };
    chosen.extend(most_of(&|cells| cells.get(PROC_RSS).unwrap_or_default().get()));
    chosen.extend(most_of(&|cells| cells.get(PROC_RSS_SHMEM).unwrap_or_default().get()));
    chosen.extend(most_of(&|cells| cells.get(PROC_SWAP).unwrap_or_default().get()));
    chosen.extend(most_of(&|cells| cells.get(PROC_THREADS).unwrap_or_default().get()));
    let few = all.len().div_ceil(PROCESSES).max(1);
    chosen.extend(all.iter().step_by(few).map(|seen| seen.pid));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// The files of `/proc` that have what the iterator reads.
struct ProcFiles {
    proc: Directory,
    files: CellReader,
    stat: ReaderThread,
    io: ReaderThread,
}

impl ProcFiles {
    fn open(root: &Root) -> Result<Self, Errno> {
        let proc = root.path("/proc");
        Ok(Self {
            stat: ReaderThread::new(&proc, "stat"),
            io: ReaderThread::new(&proc, "io"),
            proc: Directory::open(&proc)?,
            files: CellReader::default(),
        })
    }

    fn read(&mut self, pid: u32) -> Option<SeenTask> {
        let Self { files, .. } = self;
        let (mut start, mut cells) = (None, ProcessCells::default());
        self.stat.one(pid, Span::ZERO, &mut |text| {
            let (identity, _) = files.take_stat(pid, text, &mut cells, &mut |_, _| ());
            start = identity.and_then(|identity| identity.start);
        });
        // If one file may not be read, the others are compared.
        self.io.one(pid, Span::ZERO, &mut |text| {
            let _ = files.take(pid, "io", text, &mut cells, &mut |_, _| ());
        });
        for name in ["status", "oom_score_adj"] {
            let _ = files.file(&self.proc, pid, name, &mut cells, &mut |_, _| ());
        }
        Some(SeenTask { pid, start: start?, cells })
    }
}

fn between(before: &SeenTask, found: &SeenTask, after: &SeenTask, cpus: u32) -> Result<(), String> {
    if before.start != after.start {
        return Ok(()); // Another process came in between.
    }
    let pid = found.pid;
    if found.start != before.start {
        let (ours, theirs) = (found.start, before.start);
        return Err(format!("process {pid} started at tick {ours}, by /proc at {theirs}"));
    }
    for (signal, last) in after.cells.iter() {
        let Some(first) = value(&before.cells, signal) else {
            continue;
        };
        let name = signal.def().name;
        let Some(ours) = value(&found.cells, signal) else {
            return Err(format!("process {pid} has no {name}, by /proc {last}"));
        };
        let slack = slack(signal, found, cpus);
        let (low, high) = (first.min(last), first.max(last));
        if ours < low.saturating_sub(slack) || ours > high.saturating_add(slack) {
            let differs = format!("process {pid} has {name} {ours}, by /proc {low} to {high}");
            return Err(differs);
        }
    }
    Ok(())
}

fn value(cells: &ProcessCells, wanted: SignalId) -> Option<u64> {
    let mut all = cells.iter();
    all.find(|(signal, _)| *signal == wanted).map(|(_, value)| value)
}

/// Returns the allowed difference from `/proc`, in the value's unit.
fn slack(signal: SignalId, found: &SeenTask, cpus: u32) -> u64 {
    // A running thread is accounted for at its next tick, and times are rounded.
    let threads = found.cells.get(PROC_THREADS).unwrap_or(Count::ZERO).get();
    if [PROC_UTIME.id(), PROC_STIME.id(), PROC_BLKIO_DELAY.id()].contains(&signal) {
        return threads.min(cpus.into()) + 1;
    }
    // Where the kernel itself does not sum them up, up to `percpu_counter_batch` pages per CPU are missing in each of
    // three kinds.
    let cpus = u64::from(cpus);
    let pages = Pages::new((cpus * 2).max(32) * cpus);
    let kinds = [PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM, PROC_SWAP].map(|kind| kind.id());
    if kinds.contains(&signal) {
        bytes(pages).get()
    } else if signal == PROC_RSS_PEAK.id() {
        bytes(pages).get() * 3
    } else if signal == PROC_RSS.id() {
        pages.get() * 3
    } else {
        0
    }
}

fn bytes(pages: Pages) -> Bytes {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    Bytes::new(pages.get().saturating_mul(page))
}

/// Touches pages of a fresh mapping, which must show up exactly. A counter without its per-CPU parts moves in whole
/// batches of at least 32.
fn touch(iter: &mut TaskIter) -> Result<(), String> {
    const TOUCHED: u64 = 297;
    let mut own = || {
        let all = walk(iter)?;
        let own = all.iter().find(|seen| seen.pid == std::process::id());
        own.and_then(|seen| seen.cells.get(PROC_RSS_ANON))
            .ok_or_else(|| "this process is not there".to_owned())
    };
    let expected = bytes(Pages::new(TOUCHED));
    let may_differ = bytes(Pages::new(kept_by_a_thread()));
    own()?; // Lets buffers grow.
    let mut seen = Bytes::ZERO;
    for _ in 0..ROUNDS {
        let before = own()?;
        let mapping = SelfTestMapping::touched(TOUCHED)?;
        seen = own()?.saturating_sub(before);
        drop(mapping);
        // Fewer pages mean a counter that is not summed; a few more come from another thread of this process.
        let others = bytes(Pages::new(64));
        if seen + may_differ >= expected && seen <= expected + may_differ + others {
            return Ok(());
        }
    }
    let (expected, seen) = (expected.get(), seen.get());
    Err(format!("of {expected} B that were touched {seen} B show"))
}

/// Returns the pages that a thread may count for itself before its process, and so `/proc`, knows of them: up to 64
/// (TASK_RSS_EVENTS_THRESH in mm/memory.c) before 6.2, when per-CPU counters replaced these.
fn kept_by_a_thread() -> u64 {
    let release = rustix::system::uname();
    let version = release.release().to_str().ok();
    let version = version.and_then(timeline::facts::KernelVersion::parse);
    let has_counters_of_cpus =
        version.is_none_or(|version| (version.major, version.minor) >= (6, 2));
    if has_counters_of_cpus { 0 } else { 64 }
}

/// A private anonymous mapping, removed when dropped.
struct SelfTestMapping {
    start: *mut std::ffi::c_void,
    length: usize,
}

#[allow(unsafe_code)]
impl SelfTestMapping {
    fn touched(pages: u64) -> Result<Self, String> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let page = rustix::param::page_size();
        let length = usize::try_from(pages).unwrap_or(0) * page;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE) };
        let start = start.map_err(|errno| format!("cannot map {length} B: {errno}"))?;
        for offset in (0..length).step_by(page) {
            // SAFETY: within the mapping, which is writable and ours alone.
            unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
        }
        Ok(Self { start, length })
    }
}

#[allow(unsafe_code)]
impl Drop for SelfTestMapping {
    fn drop(&mut self) {
        // SAFETY: unmaps the mapping made above, to which no reference was given out.
        let _ = unsafe { rustix::mm::munmap(self.start, self.length) };
    }
}
