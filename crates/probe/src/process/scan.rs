//! Processes from files below `/proc`: `stat` for all, the expensive files for those that matter.
//!
//! `stat` has a process's identity, name, sizes, faults and CPU time. `status` (memory by kind, swap), `io` and
//! `oom_score_adj` are read when a process is new, and again after its `stat` changed: at once for the largest, in turn
//! for a few others. Values of files that are not read again are remembered, so a process has the same readings in
//! every scan; the task's age counts the scans since they were read. "The largest" counts swap, so a process that was
//! swapped out stays among them. `smaps_rollup` is read only on request, within a time budget, because it takes the
//! mmap lock of its process.
//!
//! Bounds: 65,536 processes; [`ProcessDetail`] limits for how many new processes the expensive files are read in a
//! scan, the others follow later. Processes that end meanwhile are skipped; files that this user may not read are
//! counted, and so are processes that do not answer, of which a [`ReaderThread`] reads the files for which one may wait. Cost on 6.18: 6 µs per process (0.16 µs for each of its threads), 15 µs for its expensive files.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use timeline::signals::{
    PROC_MAJFLT, PROC_MINFLT, PROC_RSS, PROC_SIZE, PROC_STIME, PROC_SWAP, PROC_UTIME,
};
use timeline::{Entity, ProcessCells};
use units::{Bytes, Pages, Span};

use crate::directory::{Directory, Sink, Walk};
use crate::kernel_file::Root;
use crate::process::cells::{CellReader, Failure};
use crate::process::reader_thread::ReaderThread;
use crate::process::task::{PROCESSES_MAX, Task};
use crate::text;

/// Selects the processes of which a scan of `/proc` reads the expensive files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessDetail {
    /// The number of largest processes.
    pub largest: usize,
    /// The most new processes per scan: a fork bomb must not make it long.
    pub new: usize,
    /// Whether each scan is complete by itself: files of the largest processes are read even if nothing changed, and
    /// their service is read too.
    pub is_complete: bool,
    /// How long reading proportional shares (PSS) may take in total, largest process first. `None`: they are not read.
    /// A process is skipped if its mmap lock would be taken for longer than the rest of this time, as estimated by its
    /// size.
    pub pss: Option<Duration>,
}

impl ProcessDetail {
    /// Reads only what changed since the last scan. On a host of 2,000 processes, 64 of them use nearly all memory.
    pub const INCREMENTAL: Self = Self { largest: 64, new: 1_024, is_complete: false, pss: None };

    /// Each scan is complete by itself. The first one on a large host takes 60 ms longer.
    pub const COMPLETE: Self = Self { largest: 64, new: 4_096, is_complete: true, pss: None };
}

/// The number of other processes of which a scan reads the expensive files in turn.
const OTHERS_MAX: usize = 16;
/// Cost of `smaps_rollup` per resident MiB: the upper end of what was measured on 6.18 with 4 KiB pages.
const PSS_COST_PER_MIB: Duration = Duration::from_nanos(3_500);

/// A scan of `/proc` that can be repeated.
#[derive(Debug)]
pub(crate) struct TaskScan {
    proc: PathBuf,
    files: CellReader,
    /// Those of the files for which a process may never answer.
    readers: WaitReaders,
    pids: Vec<u32>,
    /// The processes of the last scan by ascending PID.
    known: Vec<Known>,
    /// The processes of the previous scan; empty between scans.
    before: Vec<Known>,
    /// The names of all processes, one after the other.
    names: Vec<u8>,
    /// Memory of processes and their index in `known`, to find the largest.
    sizes: Vec<(Bytes, usize)>,
    /// The PID at which the turn of the smaller processes continues.
    turn: u32,
    /// The PIDs of which `io` is due, ascending.
    due: Vec<u32>,
}

#[derive(Debug)]
struct WaitReaders {
    stat: ReaderThread,
    io: ReaderThread,
    shares: ReaderThread,
}

/// The last readings of a process.
#[derive(Debug, Clone)]
struct Known {
    pid: u32,
    start: u64,
    /// Where its name is in `names`.
    name: Range<usize>,
    cells: ProcessCells,
    /// Empty if it is in none, or was not read.
    service: String,
    /// Scans since the expensive files were read.
    age: u32,
    /// Whether the files were ever read, and whether `stat` changed since.
    is_read: bool,
    is_changed: bool,
    is_large: bool,
    /// Whether this user may not read its `io`, which is then not tried again.
    is_io_denied: bool,
}

impl TaskScan {
    /// Creates a scan of the processes below `root`.
    pub(crate) fn new(root: &Root) -> Self {
        let proc = root.path("/proc");
        let reader = |name| ReaderThread::new(&proc, name);
        Self {
            readers: WaitReaders {
                stat: reader("stat"),
                io: reader("io"),
                shares: reader("smaps_rollup"),
            },
            proc,
            files: CellReader::default(),
            pids: Vec::new(),
            known: Vec::new(),
            before: Vec::new(),
            names: Vec::new(),
            sizes: Vec::new(),
            turn: 0,
            due: Vec::new(),
        }
    }

    /// Passes every process to `visit` once, by ascending PID, and each text to `sink` as it is read.
    pub(crate) fn each(
        &mut self,
        detail: ProcessDetail,
        visit: &mut dyn FnMut(Task<'_>),
        sink: Sink<'_>,
    ) -> Walk {
        let mut walk = Walk::default();
        let proc = match self.list(&mut walk) {
            Ok(proc) => proc,
            Err(errno) => return Walk::absent(errno),
        };
        self.read_stat(sink, &mut walk);
        self.rank(detail.largest);
        self.read_expensive(&proc, detail, sink, &mut walk);
        if let Some(budget) = detail.pss {
            // The swap of new processes is known only now.
            self.rank(detail.largest);
            self.read_pss(budget, sink, &mut walk);
        }
        for known in &self.known {
            visit(Task {
                pid: known.pid,
                start_ticks: known.start,
                name: &self.names[known.name.clone()],
                cgroup_id: None,
                service: &known.service,
                age: known.age,
                cells: &known.cells,
            });
        }
        walk
    }

    /// Opens `/proc` and lists its PIDs, ascending.
    fn list(&mut self, walk: &mut Walk) -> Result<Directory, Errno> {
        let pids = &mut self.pids;
        pids.clear();
        let proc = Directory::open(&self.proc)?;
        proc.each_directory(b".", |name| {
            if let Some(pid) = text::number(name).and_then(|pid| u32::try_from(pid).ok()) {
                if pids.len() < PROCESSES_MAX {
                    pids.push(pid);
                } else {
                    walk.left_out += 1;
                }
            }
            ControlFlow::Continue(())
        })?;
        // The kernel lists PIDs in order; a directory of saved files may not.
        if !pids.is_sorted() {
            pids.sort_unstable();
        }
        Ok(proc)
    }

    /// Reads `stat` of all processes, and joins them with those of the previous scan.
    fn read_stat(&mut self, sink: Sink<'_>, walk: &mut Walk) {
        std::mem::swap(&mut self.known, &mut self.before);
        self.known.reserve(self.before.len());
        self.names.clear();
        let mut before = self.before.drain(..).peekable();
        let pids = self.pids.iter().copied();
        let read = self.readers.stat.each(pids, Span::ZERO, &mut |pid, read| {
            let mut cells = ProcessCells::default();
            let (identity, result) = self.files.take_stat(pid, read, &mut cells, sink);
            note(walk, "stat", result);
            let Some((identity, start)) = identity.and_then(|it| Some((it, it.start?))) else {
                return; // It ended, or its text has no identity.
            };
            while before.next_if(|known| known.pid < pid).is_some() {}
            let same = before.next_if(|known| known.pid == pid && known.start == start);
            let mut known = match same {
                Some(mut known) => {
                    known.renew(&cells);
                    known
                }
                None => Known::new(pid, start, cells),
            };
            let name_start = self.names.len();
            self.names.extend_from_slice(identity.name);
            known.name = name_start..self.names.len();
            self.known.push(known);
            walk.read += 1;
        });
        match read {
            Ok(silent) => walk.silent = silent,
            Err(errno) => walk.absent = Walk::absent(errno).absent,
        }
    }

    /// Marks the largest processes; `sizes` then has only those.
    fn rank(&mut self, largest: usize) {
        self.sizes.clear();
        for (index, known) in self.known.iter_mut().enumerate() {
            known.is_large = false;
            if !known.has_no_memory() {
                self.sizes.push((known.size(), index));
            }
        }
        if 0 < largest && largest < self.sizes.len() {
            self.sizes.select_nth_unstable_by(largest - 1, |a, b| b.cmp(a));
        }
        self.sizes.truncate(largest);
        for (_, index) in &self.sizes {
            self.known[*index].is_large = true;
        }
    }

    fn read_expensive(
        &mut self,
        proc: &Directory,
        detail: ProcessDetail,
        sink: Sink<'_>,
        walk: &mut Walk,
    ) {
        let (mut new, mut others) = (detail.new, OTHERS_MAX);
        self.due.clear();
        // After all had their turn, it starts with the first ones again.
        let mut next_turn = 0;
        for known in &mut self.known {
            let is_due = if known.has_no_memory() {
                false
            } else if known.is_large {
                detail.is_complete || known.is_changed
            } else if !known.is_read {
                spend(&mut new)
            } else if known.is_changed && known.pid >= self.turn && spend(&mut others) {
                if others == 0 {
                    next_turn = known.pid.saturating_add(1);
                }
                true
            } else {
                false
            };
            if is_due {
                known.read(proc, &mut self.files, sink, walk);
                if !known.is_io_denied {
                    self.due.push(known.pid);
                }
                if detail.is_complete {
                    let result = self.files.service(proc, known.pid, &mut known.service, sink);
                    note(walk, "cgroup", result);
                }
            }
        }
        self.turn = next_turn;
        self.read_io(sink, walk);
    }

    /// Reads `io` of those that are due.
    fn read_io(&mut self, sink: Sink<'_>, walk: &mut Walk) {
        let due = self.due.iter().copied();
        // One that does not answer keeps its last readings.
        let _ = self.readers.io.each(due, Span::ZERO, &mut |pid, read| {
            let Ok(at) = self.known.binary_search_by_key(&pid, |known| known.pid) else {
                return;
            };
            let known = &mut self.known[at];
            let result = self.files.take(pid, "io", read, &mut known.cells, sink);
            known.is_io_denied =
                matches!(result, Err(Failure::Unread(Errno::ACCESS | Errno::PERM)));
            note(walk, "io", result);
        });
    }

    /// Reads the shares of the largest processes, largest first, within the time budget.
    fn read_pss(&mut self, budget: Duration, sink: Sink<'_>, walk: &mut Walk) {
        self.sizes.sort_unstable_by(|a, b| b.cmp(a));
        // This crate reads the machine, including its clock; the pure crates have no clock.
        #[allow(clippy::disallowed_methods)]
        let started = Instant::now();
        for (_, index) in &self.sizes {
            let left = budget.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            let known = &mut self.known[*index];
            let cost = pss_cost(known.resident());
            // A smaller process may still fit after a larger one did not.
            if cost > left {
                continue;
            }
            let (pid, cells, files) = (known.pid, &mut known.cells, &mut self.files);
            // A large process takes its time, and three times as long on a busy machine.
            let patience = Span::from_secs_f64(cost.as_secs_f64() * 3.0);
            self.readers.shares.one(pid, patience, &mut |read| {
                let name = "smaps_rollup";
                note(walk, name, files.take(pid, name, read, cells, sink));
            });
        }
    }
}

/// Returns how long `smaps_rollup` will take the mmap lock of a process of this size.
fn pss_cost(resident: Bytes) -> Duration {
    let mib = u32::try_from(resident.get() >> 20).unwrap_or(u32::MAX);
    PSS_COST_PER_MIB.saturating_mul(mib.saturating_add(1))
}

fn spend(left: &mut usize) -> bool {
    let had = *left > 0;
    *left = left.saturating_sub(1);
    had
}

impl Known {
    fn new(pid: u32, start: u64, cells: ProcessCells) -> Self {
        Self {
            pid,
            start,
            name: 0..0,
            cells,
            service: String::new(),
            age: 0,
            is_read: false,
            is_changed: true,
            is_large: false,
            is_io_denied: false,
        }
    }

    /// Takes over the readings of the new `stat`.
    fn renew(&mut self, stat: &ProcessCells) {
        self.age = self.age.saturating_add(1);
        self.is_changed |= differs(&self.cells, stat);
        // A process that became a zombie has no memory lines in `status`; it must not keep its old values.
        let size = stat.get(PROC_SIZE);
        if size != self.cells.get(PROC_SIZE) && size.unwrap_or_default() == Bytes::ZERO {
            self.cells.clear();
            self.age = 0;
        }
        for (signal, value) in stat.iter() {
            self.cells.set_raw(signal, value);
        }
    }

    /// Whether it is a kernel thread or a zombie.
    fn has_no_memory(&self) -> bool {
        self.cells.get(PROC_SIZE).unwrap_or_default() == Bytes::ZERO
    }

    fn resident(&self) -> Bytes {
        // The page size only affects the order of processes here, so this machine's serves below a foreign root too.
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let pages = self.cells.get(PROC_RSS).unwrap_or(Pages::ZERO);
        Bytes::new(pages.get().saturating_mul(page))
    }

    /// Returns its memory in RAM and swap.
    fn size(&self) -> Bytes {
        self.resident() + self.cells.get(PROC_SWAP).unwrap_or(Bytes::ZERO)
    }

    /// Reads the expensive files, but for `io`.
    fn read(&mut self, proc: &Directory, files: &mut CellReader, sink: Sink<'_>, walk: &mut Walk) {
        self.is_read = true;
        self.is_changed = false;
        self.age = 0;
        for name in ["oom_score_adj", "status"] {
            let result = files.file(proc, self.pid, name, &mut self.cells, sink);
            note(walk, name, result);
        }
    }
}

/// Whether the process did anything that its expensive files would show. All such activity causes faults or uses CPU
/// time.
fn differs(before: &ProcessCells, now: &ProcessCells) -> bool {
    before.get(PROC_MINFLT) != now.get(PROC_MINFLT)
        || before.get(PROC_MAJFLT) != now.get(PROC_MAJFLT)
        || before.get(PROC_RSS) != now.get(PROC_RSS)
        || before.get(PROC_SIZE) != now.get(PROC_SIZE)
        || before.get(PROC_UTIME) != now.get(PROC_UTIME)
        || before.get(PROC_STIME) != now.get(PROC_STIME)
}

fn note(walk: &mut Walk, name: &str, result: Result<(), Failure>) {
    match result {
        Ok(()) => {}
        Err(Failure::Unread(errno)) => walk.note_errno_of(Entity::Process, name, errno),
        Err(Failure::Malformed(error)) => walk.note_parse::<()>(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskSource, Tasks};
    use std::fs;
    use std::path::Path;
    use timeline::signals::{PROC_OOM_ADJ, PROC_PSS, PROC_RSS_ANON};
    use timeline::{EntityRow, Sample};
    use units::Count;

    /// Creates a process with `pages` resident and `swap` KiB swapped out.
    fn process(root: &Path, pid: u32, start: u64, pages: u64, swap: u64) {
        let at = root.join(format!("proc/{pid}"));
        fs::create_dir_all(&at).unwrap();
        let size = pages << 12;
        let stat = format!(
            "{pid} (p{pid}) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} {size} {pages} 0"
        );
        fs::write(at.join("stat"), stat).unwrap();
        let status =
            format!("Name:\tp{pid}\nVmSize:\t{size} kB\nRssAnon:\t9 kB\nVmSwap:\t{swap} kB\n");
        fs::write(at.join("status"), status).unwrap();
        fs::write(at.join("oom_score_adj"), "0\n").unwrap();
        fs::write(at.join("cgroup"), format!("0::/system.slice/p{pid}.service\n")).unwrap();
        fs::write(at.join("smaps_rollup"), "0-1 ---p 0 0:0 0 [rollup]\nPss: 7 kB\n").unwrap();
    }

    fn tasks(root: &tempfile::TempDir, largest: usize) -> Tasks {
        let mut tasks = Tasks::open(&Root::at(root.path()), Some(TaskSource::Proc));
        tasks.detail = ProcessDetail { largest, ..ProcessDetail::COMPLETE };
        tasks
    }

    fn rows(tasks: &mut Tasks) -> (Sample, Walk) {
        let mut sample = Sample::default();
        let walk = tasks.rows(&mut sample, &mut |_, _| ());
        (sample, walk)
    }

    fn row<'a>(sample: &'a Sample, key: &str) -> Option<&'a EntityRow> {
        let rows = sample.table(Entity::Process).rows();
        rows.iter().find(|row| row.key == key)
    }

    #[test]
    fn every_process_has_a_row_and_the_largest_are_read_again() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 1, 17, 10, 0);
        process(root.path(), 20, 100, 5_000, 0);
        process(root.path(), 30, 200, 20, 0);
        fs::create_dir_all(root.path().join("proc/sys")).unwrap();
        let mut tasks = tasks(&root, 1);
        rows(&mut tasks);
        for pid in [20, 30] {
            let status = root.path().join(format!("proc/{pid}/status"));
            fs::write(status, "RssAnon:\t11 kB\n").unwrap();
        }
        let (sample, walk) = rows(&mut tasks);
        let all = Walk { read: 3, ..Walk::default() };
        assert_eq!(walk, all);
        let large = row(&sample, "20@100").unwrap();
        assert_eq!(large.label, "p20");
        assert_eq!(large.row.get(PROC_RSS), Some(Pages::new(5_000)));
        assert_eq!(large.row.get(PROC_RSS_ANON), Some(Bytes::from_kib(11)));
        assert_eq!(large.row.get(PROC_OOM_ADJ), Some(Count::new(1000)));
        let small = row(&sample, "30@200").unwrap();
        assert_eq!(small.row.get(PROC_RSS), Some(Pages::new(20)));
        assert_eq!(
            small.row.get(PROC_RSS_ANON),
            Some(Bytes::from_kib(9)),
            "remembered from the first scan"
        );
        assert_eq!(small.group, "p30.service");
        assert_eq!(small.row.get(PROC_PSS), None, "PSS was not requested");
    }

    #[test]
    fn an_incremental_scan_reads_the_largest_only_when_they_changed() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        let mut tasks = tasks(&root, 9);
        tasks.detail = ProcessDetail::INCREMENTAL;
        let anon = |tasks: &mut Tasks| {
            let (sample, _) = rows(tasks);
            row(&sample, "10@1").unwrap().row.get(PROC_RSS_ANON)
        };
        let status = root.path().join("proc/10/status");
        assert_eq!(anon(&mut tasks), Some(Bytes::from_kib(9)));
        fs::write(status, "RssAnon:\t11 kB\n").unwrap();
        assert_eq!(anon(&mut tasks), Some(Bytes::from_kib(9)));
        let stat = "10 (p10) S 1 0 0 0 -1 0 7 0 0 0 0 0 0 0 20 0 1 0 1 4096 100 0";
        fs::write(root.path().join("proc/10/stat"), stat).unwrap();
        assert_eq!(anon(&mut tasks), Some(Bytes::from_kib(11)));
    }

    #[test]
    fn processes_beyond_the_largest_have_their_turn() {
        let root = tempfile::tempdir().unwrap();
        let processes = 2 * OTHERS_MAX + 3;
        let pids = || (1..).take(processes);
        for pid in pids() {
            process(root.path(), pid, 1, 100, 0);
        }
        let mut scan = TaskScan::new(&Root::at(root.path()));
        let detail = ProcessDetail { largest: 0, ..ProcessDetail::INCREMENTAL };
        let mut read_in = |resident: u64| {
            for pid in pids() {
                process(root.path(), pid, 1, resident, 0);
            }
            let mut read = Vec::new();
            let visit = &mut |task: Task<'_>| {
                if task.age == 0 {
                    read.push(task.pid);
                }
            };
            scan.each(detail, visit, &mut |_, _| ());
            read.len()
        };
        let counts = [1, 2, 3, 4, 5].map(&mut read_in);
        assert_eq!(counts, [processes, 16, 16, 3, 16]);
    }

    #[test]
    fn texts_are_shown_as_they_are_read() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        let mut shown = std::collections::BTreeMap::new();
        tasks(&root, 9).rows(&mut Sample::default(), &mut |path, text| {
            shown.insert(path.to_owned(), text.to_vec());
        });
        let paths: Vec<&str> = shown.keys().map(String::as_str).collect();
        let expected = ["cgroup", "oom_score_adj", "stat", "status"];
        assert_eq!(paths, expected.map(|name| format!("/proc/10/{name}")));
        assert_eq!(shown["/proc/10/oom_score_adj"], b"0\n");
    }

    #[test]
    fn a_swapped_out_process_stays_among_the_largest() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        process(root.path(), 11, 1, 3, 9_000);
        let mut tasks = tasks(&root, 1);
        rows(&mut tasks);
        for pid in [10, 11] {
            fs::write(root.path().join(format!("proc/{pid}/oom_score_adj")), "5\n").unwrap();
        }
        let (sample, _) = rows(&mut tasks);
        let adjusted = |key| row(&sample, key).unwrap().row.get(PROC_OOM_ADJ);
        assert_eq!(adjusted("11@1"), Some(Count::new(1005)));
        assert_eq!(adjusted("10@1"), Some(Count::new(1000)));
    }

    #[test]
    fn a_process_that_ends_is_skipped_and_forgotten() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        process(root.path(), 11, 1, 100, 0);
        let mut tasks = tasks(&root, 9);
        rows(&mut tasks);
        // Its directory is still listed but its files are gone: a process that ends during the scan.
        fs::remove_dir_all(root.path().join("proc/11")).unwrap();
        fs::create_dir(root.path().join("proc/11")).unwrap();
        // Another process with a reused PID.
        process(root.path(), 10, 500, 100, 0);
        let (sample, walk) = rows(&mut tasks);
        let one = Walk { read: 1, ..Walk::default() };
        assert_eq!(walk, one);
        assert!(row(&sample, "10@500").is_some());
        assert_eq!(sample.table(Entity::Process).rows().len(), 1);
    }

    #[test]
    fn pss_is_read_within_the_budget_only() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 1 << 28, 0); // 1 TiB: 3.7 s of its mmap lock
        process(root.path(), 11, 1, 100, 0);
        let mut tasks = tasks(&root, 9);
        tasks.detail.pss = Some(Duration::from_secs(3));
        let (sample, _) = rows(&mut tasks);
        assert_eq!(row(&sample, "10@1").unwrap().row.get(PROC_PSS), None);
        let small = row(&sample, "11@1").unwrap();
        assert_eq!(small.row.get(PROC_PSS), Some(Bytes::from_kib(7)));
    }

    #[test]
    fn a_malformed_stat_drops_its_process_only() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        process(root.path(), 11, 1, 100, 0);
        fs::write(root.path().join("proc/11/stat"), "nonsense").unwrap();
        let (_, walk) = rows(&mut tasks(&root, 9));
        assert_eq!(walk.read, 1);
        let error = walk.malformed.unwrap().to_string();
        assert!(error.contains("found `nonsense`"), "{error}");
    }

    #[test]
    fn without_proc_it_says_so() {
        let root = tempfile::tempdir().unwrap();
        let (_, walk) = rows(&mut tasks(&root, 9));
        assert_eq!(walk.absent, Some(timeline::Absence::NotFound));
    }

    #[test]
    fn this_process_finds_itself() {
        let mut tasks = Tasks::open(&Root::default(), Some(TaskSource::Proc));
        tasks.detail = ProcessDetail {
            largest: usize::MAX,
            pss: Some(Duration::from_millis(200)),
            ..ProcessDetail::COMPLETE
        };
        let (sample, walk) = rows(&mut tasks);
        assert!(walk.malformed.is_none(), "{:?}", walk.malformed);
        let key = format!("{}@", std::process::id());
        let rows = sample.table(Entity::Process).rows();
        let own = rows.iter().find(|row| row.key.starts_with(&key)).unwrap();
        assert!(own.row.get(PROC_RSS).unwrap() > Pages::ZERO);
        assert!(own.row.get(PROC_RSS_ANON).unwrap() > Bytes::ZERO);
        assert!(own.row.get(PROC_OOM_ADJ).is_some());
        assert!(own.label.starts_with("probe"), "{}", own.label);
    }
}
