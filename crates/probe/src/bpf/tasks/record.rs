//! The records of the BPF program (`bpf/tasks.bpf.c`), converted to what `/proc` shows.
//!
//! A record is a list of 64-bit words in the order of `struct process`; a thread's record is its first part. Only the
//! sum of CPU time is exact; the split into user and system comes from samples at clock ticks. Like the kernel
//! (`cputime_adjust`, kernel/sched/cputime.c) this scales the ticks to the exact sum, never backwards.

use timeline::ProcessCells;
use timeline::signals::{
    PROC_BLKIO_DELAY, PROC_CANCELLED_WRITE_BYTES, PROC_DATA, PROC_HUGETLB, PROC_LOCKED,
    PROC_MAJFLT, PROC_MINFLT, PROC_OOM_ADJ, PROC_PAGE_TABLES, PROC_PARENT, PROC_PINNED, PROC_RCHAR,
    PROC_READ_BYTES, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_PEAK, PROC_RSS_SHMEM,
    PROC_SIZE, PROC_STIME, PROC_SWAP, PROC_THREADS, PROC_UTIME, PROC_WCHAR, PROC_WRITE_BYTES,
};
use units::{Bytes, Count, Pages, Ticks};

/// Words in a thread's record.
pub(crate) const THREAD: usize = 11;
/// Words in a process's record.
pub(crate) const PROCESS: usize = 31;
/// The words that are summed over threads.
const TOTALS: std::ops::Range<usize> = UTIME..THREAD;

const PID_AND_TGID: usize = 0;
const UTIME: usize = 1;
const STIME: usize = 2;
const RUNTIME: usize = 3;
const MINFLT: usize = 4;
const MAJFLT: usize = 5;
const RCHAR: usize = 6;
const WCHAR: usize = 7;
const READ: usize = 8;
const WRITTEN: usize = 9;
const CANCELLED: usize = 10;
const START: usize = 11;
const SHOWN_UTIME: usize = 12;
const SHOWN_STIME: usize = 13;
const PARENT_AND_THREADS: usize = 14;
const ADJ_AND_HAS_MM: usize = 15;
const CGROUP: usize = 16;
const BLKIO_DELAY: usize = 17;
const SIZE: usize = 18;
const DATA: usize = 19;
const LOCKED: usize = 20;
const PINNED: usize = 21;
const PEAK: usize = 22;
const PAGE_TABLES: usize = 23;
const HUGETLB: usize = 24;
const FILE: usize = 25;
const ANON: usize = 26;
const SWAP: usize = 27;
const SHMEM: usize = 28;
const NAME: usize = 29;

/// Returns the IDs of a record's thread and process.
pub(crate) fn ids(first: u64) -> (u32, u32) {
    (high(first), low(first))
}

#[allow(clippy::cast_possible_truncation)] // Both halves are needed.
fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    low(word >> 32)
}

/// One process's record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskRecord([u64; PROCESS]);

/// The readings of a process that must not decrease from walk to walk: a thread that ends between the reading of its
/// process and its own turn is missing from both once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remembered {
    pub(crate) pid: u32,
    /// Whether a walk did not find it.
    pub(crate) is_gone: bool,
    start: u64,
    totals: [u64; THREAD - UTIME],
    shown: Shown,
}

/// CPU time as shown, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Shown {
    utime: u64,
    stime: u64,
}

impl TaskRecord {
    /// Becomes the record of these bytes; of too few it stays as it is.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let _ = read_words(bytes, &mut self.0);
    }

    pub(crate) fn pid(&self) -> u32 {
        low(self.0[PID_AND_TGID])
    }

    pub(crate) fn cgroup_id(&self) -> Option<u64> {
        Some(self.0[CGROUP]).filter(|id| *id > 0)
    }

    /// Returns the start in clock ticks, as `/proc/PID/stat` shows it.
    pub(crate) fn start_ticks(&self, scale: TaskScale) -> u64 {
        self.0[START] / scale.ns_per_tick
    }

    /// Returns the name (two words of characters that end with a 0) and its length.
    pub(crate) fn name(&self) -> ([u8; 16], usize) {
        let mut name = [0; 16];
        for (to, word) in name.chunks_exact_mut(8).zip(&self.0[NAME..]) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let length = memchr::memchr(0, &name).unwrap_or(name.len());
        (name, length)
    }

    /// Adds the counters of another thread of the same process.
    pub(crate) fn add(&mut self, thread: &[u8]) {
        let mut words = [0; THREAD];
        if read_words(thread, &mut words).is_some() {
            for (total, part) in self.0[TOTALS].iter_mut().zip(&words[TOTALS]) {
                *total = total.wrapping_add(*part);
            }
        }
    }

    /// Keeps counters from falling below those that are remembered, if they are of the same process, and remembers these.
    pub(crate) fn settle(&mut self, remembered: &mut Remembered) {
        let before = Some(*remembered).filter(|before| before.start == self.0[START]);
        if let Some(before) = &before {
            for (total, least) in self.0[TOTALS].iter_mut().zip(&before.totals) {
                *total = (*total).max(*least);
            }
        }
        *remembered = self.shown_after(before.map(|before| before.shown));
    }

    /// Returns what to remember of a process that was not there before.
    pub(crate) fn remembered(&mut self) -> Remembered {
        self.shown_after(None)
    }

    fn shown_after(&mut self, before: Option<Shown>) -> Remembered {
        let kernels = Shown { utime: self.0[SHOWN_UTIME], stime: self.0[SHOWN_STIME] };
        let last = before.map_or(kernels, |before| before.later(kernels));
        let shown = last.then(self.0[UTIME], self.0[STIME], self.0[RUNTIME]);
        let mut totals = [0; THREAD - UTIME];
        totals.copy_from_slice(&self.0[TOTALS]);
        self.0[UTIME] = shown.utime;
        self.0[STIME] = shown.stime;
        Remembered { pid: self.pid(), is_gone: false, start: self.0[START], totals, shown }
    }

    /// Fills the cells. Times must be [settled](Self::settle).
    pub(crate) fn fill(&self, scale: TaskScale, cells: &mut ProcessCells) {
        let word = |index: usize| self.0[index];
        let ticks = |index: usize| Ticks::new(self.0[index] / scale.ns_per_tick);
        cells.clear();
        cells.set(PROC_PARENT, Count::new(word(PARENT_AND_THREADS) >> 32));
        cells.set(PROC_MINFLT, Count::new(word(MINFLT)));
        cells.set(PROC_MAJFLT, Count::new(word(MAJFLT)));
        cells.set(PROC_UTIME, ticks(UTIME));
        cells.set(PROC_STIME, ticks(STIME));
        let threads = Count::new(word(PARENT_AND_THREADS) & u64::from(u32::MAX));
        cells.set(PROC_THREADS, threads);
        cells.set(PROC_BLKIO_DELAY, ticks(BLKIO_DELAY));
        cells.set(PROC_READ_BYTES, Bytes::new(word(READ)));
        cells.set(PROC_WRITE_BYTES, Bytes::new(word(WRITTEN)));
        cells.set(PROC_CANCELLED_WRITE_BYTES, Bytes::new(word(CANCELLED)));
        cells.set(PROC_RCHAR, Bytes::new(word(RCHAR)));
        cells.set(PROC_WCHAR, Bytes::new(word(WCHAR)));
        cells.set(PROC_OOM_ADJ, Count::new(word(ADJ_AND_HAS_MM) >> 32));
        self.fill_memory(scale, cells);
    }

    /// Sets sizes. For a kernel thread or a zombie `stat` shows sizes of 0, and `status` shows none.
    fn fill_memory(&self, scale: TaskScale, cells: &mut ProcessCells) {
        let pages = |index: usize| Bytes::new(self.0[index].wrapping_mul(scale.page));
        let kinds = [FILE, ANON, SHMEM].map(|kind| self.0[kind]);
        let resident = kinds.into_iter().fold(0, u64::saturating_add);
        cells.set(PROC_SIZE, pages(SIZE));
        cells.set(PROC_RSS, Pages::new(resident));
        if low(self.0[ADJ_AND_HAS_MM]) == 0 {
            return;
        }
        let peak = self.0[PEAK].max(resident).wrapping_mul(scale.page);
        cells.set(PROC_RSS_ANON, pages(ANON));
        cells.set(PROC_RSS_FILE, pages(FILE));
        cells.set(PROC_RSS_SHMEM, pages(SHMEM));
        cells.set(PROC_SWAP, pages(SWAP));
        cells.set(PROC_PAGE_TABLES, Bytes::new(self.0[PAGE_TABLES]));
        cells.set(PROC_RSS_PEAK, Bytes::new(peak));
        cells.set(PROC_DATA, pages(DATA));
        cells.set(PROC_LOCKED, pages(LOCKED));
        cells.set(PROC_PINNED, pages(PINNED));
        cells.set(PROC_HUGETLB, pages(HUGETLB));
    }
}

/// The kernel's units on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskScale {
    /// Bytes per page.
    pub(crate) page: u64,
    pub(crate) ns_per_tick: u64,
}

impl TaskScale {
    pub(crate) fn of_this_machine() -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self {
            page: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
            ns_per_tick: 1_000_000_000 / ticks,
        }
    }
}

impl Shown {
    fn later(self, other: Self) -> Self {
        let sum = |shown: Self| shown.utime.saturating_add(shown.stime);
        if sum(self) >= sum(other) { self } else { other }
    }

    /// Returns the times to show next, after ticks found `utime` and `stime` and the process ran for `runtime`.
    fn then(self, utime: u64, stime: u64, runtime: u64) -> Self {
        if self.utime.saturating_add(self.stime) >= runtime {
            return self;
        }
        let system = match (utime, stime) {
            (_, 0) => 0,
            (0, _) => runtime,
            _ => {
                let ticks = u128::from(utime) + u128::from(stime);
                let share = u128::from(stime) * u128::from(runtime) / ticks;
                u64::try_from(share).unwrap_or(runtime)
            }
        };
        // Neither part decreases, and the other takes the rest: both sums are at most the runtime.
        let stime = system.max(self.stime);
        let utime = (runtime - stime).max(self.utime);
        Self { utime, stime: runtime - utime }
    }
}

fn read_words(bytes: &[u8], words: &mut [u64]) -> Option<()> {
    let bytes = bytes.get(..words.len() * 8)?;
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().ok()?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(words: &[(usize, u64)]) -> TaskRecord {
        let mut record = TaskRecord::default();
        for (index, value) in words {
            record.0[*index] = *value;
        }
        record
    }

    const SCALE: TaskScale = TaskScale { page: 4096, ns_per_tick: 10_000_000 };

    #[test]
    fn ticks_are_scaled_to_the_exact_runtime() {
        for (utime, stime, runtime, expected) in [
            (30, 10, 80, (60, 20)),
            (30, 0, 80, (80, 0)),
            (0, 10, 80, (0, 80)),
            (0, 0, 80, (80, 0)),
            (0, 0, 0, (0, 0)),
        ] {
            let shown = Shown::default().then(utime, stime, runtime);
            assert_eq!((shown.utime, shown.stime), expected);
        }
    }

    #[test]
    fn what_only_grows_does_not_shrink_for_a_thread_that_ended_meanwhile() {
        let mut first = record(&[(START, 7), (MINFLT, 100), (RUNTIME, 50), (UTIME, 40)]);
        let mut remembered = first.remembered();
        let mut second = record(&[(START, 7), (MINFLT, 90), (RUNTIME, 20), (UTIME, 10)]);
        second.settle(&mut remembered);
        assert_eq!((second.0[MINFLT], second.0[UTIME]), (100, 50));
        let mut another = record(&[(START, 8), (MINFLT, 90)]);
        another.settle(&mut remembered);
        assert_eq!(another.0[MINFLT], 90, "another process of the same number");
    }

    #[test]
    fn a_kernel_thread_has_sizes_of_0_and_no_kinds_of_memory() {
        let mut cells = ProcessCells::default();
        let adj = 1000 << 32;
        record(&[(ADJ_AND_HAS_MM, adj)]).fill(SCALE, &mut cells);
        assert_eq!(cells.get(PROC_RSS), Some(Pages::ZERO));
        assert_eq!(cells.get(PROC_OOM_ADJ), Some(Count::new(1000)));
        assert_eq!(cells.get(PROC_SWAP), None);
        record(&[(ADJ_AND_HAS_MM, adj | 1), (SWAP, 3)]).fill(SCALE, &mut cells);
        assert_eq!(cells.get(PROC_SWAP), Some(Bytes::from_kib(12)));
    }

    proptest! {
        #[test]
        fn shown_times_add_up_and_never_shrink(
            steps in proptest::collection::vec((0_u64..9_000, 0_u64..9_000, 0_u64..9_000), 1..20),
        ) {
            let mut shown = Shown::default();
            let mut runtime = 0;
            for (utime, stime, more) in steps {
                runtime += more;
                let next = shown.then(utime, stime, runtime);
                prop_assert!(next.utime >= shown.utime && next.stime >= shown.stime);
                prop_assert_eq!(next.utime + next.stime, runtime);
                shown = next;
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, extreme in proptest::collection::vec(any::<u64>(), PROCESS)) {
            let mut record = TaskRecord::default();
            record.read(&bytes);
            record.0.copy_from_slice(&extreme);
            record.add(&bytes);
            let mut remembered = record.remembered();
            record.settle(&mut remembered);
            record.fill(SCALE, &mut ProcessCells::default());
            record.name();
        }
    }
}
