//! All processes and their memory: a walk over `/proc`.
//!
//! Every process costs one file, `stat`, which has its identity, name, resident size, faults and CPU time. A process
//! that is new, and afterwards those that hold the most, get their `status` (memory by kind, swap) as well; the largest
//! also `oom_score_adj`, `io` and their service. "The most" counts swap, so a process that was swapped out is not lost
//! sight of. `smaps_rollup` only on request, within a time budget, because it holds the mmap lock of its process.
//!
//! Bounds: 65,536 processes. Processes that end meanwhile are skipped; files that this user may not read are counted.
//! Cost, measured on 6.18: 6 µs a process (and 0.16 µs for each of its threads), 13 µs more when it is new, and 20 µs
//! more for each of the largest: 13 ms for 2,000 processes of which 64 are looked at closely.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use timeline::{
    Entity, EntityRow, Sample,
    signals::{PROC_RSS, PROC_SIZE, PROC_SWAP},
};
use units::Bytes;

use crate::directory::{Directory, Sink, Walk};
use crate::kernel_file::Root;
use crate::process::files::ProcessFiles;
use crate::text;

/// How closely a walk looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closeness {
    /// For how many of the largest processes the dearer files are read.
    pub largest: usize,
    /// How long reading proportional shares (PSS) may take in all, largest process first. `None`: they are not read.
    /// No single process is held for longer than what is left of it, as far as its size foretells.
    pub shares: Option<Duration>,
}

impl Default for Closeness {
    /// The 64 largest, no shares: on a host of 2,000 processes 64 hold nearly all, for a tenth of the cost of all.
    fn default() -> Self {
        Self {
            largest: 64,
            shares: None,
        }
    }
}

/// The processes below a root, ready to be walked again and again.
#[derive(Debug)]
pub struct Processes {
    /// How closely the next walk looks.
    pub closeness: Closeness,
    proc: PathBuf,
    files: ProcessFiles,
    known: HashMap<String, Known>,
    /// Counts walks, to forget processes that the last one did not meet.
    walks: u64,
    pids: Vec<u32>,
    order: Vec<Ranked>,
    path: String,
    text: Vec<u8>,
}

/// What is remembered of a process from walk to walk.
#[derive(Debug, Default)]
struct Known {
    seen_in: u64,
    /// What it last had in swap.
    swapped: Bytes,
    /// What it belongs to.
    group: String,
}

/// A row of the sample and how much memory its process holds. The field that decides comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    held: Bytes,
    resident: Bytes,
    row: usize,
    pid: u32,
    is_new: bool,
}

impl Processes {
    /// Processes that become rows; the default `pid_max` of a 64-bit kernel with few CPUs is half of it.
    pub(crate) const MOST: usize = 65_536;
    /// New processes that get their `status` in one walk: the first walk of a large host takes 30 ms longer, a fork
    /// bomb not more. Others have their turn when they are among the largest.
    const MOST_NEW: usize = 4_096;
    /// Cost of `smaps_rollup` for each resident MiB: the upper end of what was measured on 6.18 with 4 KiB pages.
    const SHARES_COST_PER_MIB: Duration = Duration::from_nanos(3_500);

    /// The processes below `root`.
    pub fn new(root: &Root) -> Self {
        Self {
            closeness: Closeness::default(),
            proc: root.path("/proc"),
            files: ProcessFiles::default(),
            known: HashMap::new(),
            walks: 0,
            pids: Vec::new(),
            order: Vec::new(),
            path: String::new(),
            text: Vec::new(),
        }
    }

    /// Reads the processes into rows of `sample`.
    pub fn sample(&mut self, sample: &mut Sample) -> Walk {
        self.sample_showing(sample, &mut |_, _| ())
    }

    /// The same, and shows each text that is read.
    pub fn sample_showing(&mut self, sample: &mut Sample, sink: Sink<'_>) -> Walk {
        let mut walk = Walk::default();
        let proc = match Self::list(&self.proc, &mut self.pids, &mut walk) {
            Ok(proc) => proc,
            Err(errno) => return Walk::absent(errno),
        };
        self.walks += 1;
        self.order.clear();
        for i in 0..self.pids.len() {
            self.read_stat(&proc, self.pids[i], sample, sink, &mut walk);
        }
        self.read_new(&proc, sample, sink, &mut walk);
        self.read_largest(&proc, sample, sink, &mut walk);
        self.known.retain(|_, known| known.seen_in == self.walks);
        for row in sample.table_mut(Entity::Process).rows_mut() {
            if let Some(known) = self.known.get(&row.key)
                && row.group.is_empty()
            {
                row.group.push_str(&known.group);
            }
        }
        walk
    }

    /// Opens `/proc`, which is at `path`, and notes the PIDs in it.
    pub(crate) fn list(
        path: &Path,
        pids: &mut Vec<u32>,
        walk: &mut Walk,
    ) -> Result<Directory, Errno> {
        let proc = Directory::open(path)?;
        pids.clear();
        proc.each_directory(b".", |name| {
            if let Some(pid) = text::number(name).and_then(|pid| u32::try_from(pid).ok()) {
                if pids.len() < Self::MOST {
                    pids.push(pid);
                } else {
                    walk.left_out += 1;
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(proc)
    }

    fn read_stat(
        &mut self,
        proc: &Directory,
        pid: u32,
        sample: &mut Sample,
        sink: Sink<'_>,
        walk: &mut Walk,
    ) {
        let table = sample.table_mut(Entity::Process);
        let row = table.rows().len();
        let process = table.add();
        if !self.read_file(proc, pid, "stat", process, sink, walk) || process.key.is_empty() {
            table.drop_last();
            return;
        }
        walk.read += 1;
        // Only the order of processes depends on the page size here, so this machine's serves below a foreign root too.
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let pages = process.row.get(PROC_RSS).unwrap_or_default();
        let resident = Bytes::new(pages.get().saturating_mul(page));
        // A kernel thread has no address space, hence no `status` worth reading.
        let is_kernel_thread = process.row.get(PROC_SIZE).unwrap_or_default() == Bytes::ZERO;
        let is_new = !self.known.contains_key(&process.key);
        if is_new {
            self.known.insert(process.key.clone(), Known::default());
        }
        let Some(known) = self.known.get_mut(&process.key) else {
            return;
        };
        known.seen_in = self.walks;
        if !is_kernel_thread {
            self.order.push(Ranked {
                held: resident + known.swapped,
                resident,
                row,
                pid,
                is_new,
            });
        }
    }

    /// Learns what new processes have in swap and what they belong to.
    fn read_new(&mut self, proc: &Directory, sample: &mut Sample, sink: Sink<'_>, walk: &mut Walk) {
        let rows = sample.table_mut(Entity::Process).rows_mut();
        let mut left = Self::MOST_NEW;
        for i in 0..self.order.len() {
            if !self.order[i].is_new || left == 0 {
                continue;
            }
            left -= 1;
            let ranked = self.order[i];
            let process = &mut rows[ranked.row];
            for name in ["status", "cgroup"] {
                self.read_file(proc, ranked.pid, name, process, sink, walk);
            }
            self.order[i].held = ranked.resident + self.learn(process);
        }
    }

    /// Reads the dearer files of the processes that hold the most.
    fn read_largest(
        &mut self,
        proc: &Directory,
        sample: &mut Sample,
        sink: Sink<'_>,
        walk: &mut Walk,
    ) {
        let rows = sample.table_mut(Entity::Process).rows_mut();
        let largest = self.closeness.largest.min(self.order.len());
        if largest > 0 && largest < self.order.len() {
            self.order
                .select_nth_unstable_by(largest - 1, |a, b| b.cmp(a));
        }
        self.order.truncate(largest);
        self.order.sort_unstable_by(|a, b| b.cmp(a));
        for i in 0..largest {
            let ranked = self.order[i];
            let process = &mut rows[ranked.row];
            if process.row.get(PROC_SWAP).is_none() {
                self.read_file(proc, ranked.pid, "status", process, sink, walk);
            }
            for name in ["cgroup", "oom_score_adj", "io"] {
                self.read_file(proc, ranked.pid, name, process, sink, walk);
            }
            self.learn(process);
        }
        let Some(budget) = self.closeness.shares else {
            return;
        };
        // This crate reads the machine, and its clock is a part of that; the pure crates have none.
        #[allow(clippy::disallowed_methods)]
        let started = Instant::now();
        for i in 0..largest {
            let ranked = self.order[i];
            let left = budget.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            // The largest may not fit where a smaller one still does.
            if Self::shares_cost(ranked.resident) <= left {
                self.read_file(
                    proc,
                    ranked.pid,
                    "smaps_rollup",
                    &mut rows[ranked.row],
                    sink,
                    walk,
                );
            }
        }
    }

    /// How long `smaps_rollup` will hold the mmap lock of a process of this size.
    fn shares_cost(resident: Bytes) -> Duration {
        let mib = u32::try_from(resident.get() >> 20).unwrap_or(u32::MAX);
        Self::SHARES_COST_PER_MIB.saturating_mul(mib.saturating_add(1))
    }

    /// Remembers a process's swap and service for the next walk; gives its swap.
    fn learn(&mut self, process: &EntityRow) -> Bytes {
        let Some(known) = self.known.get_mut(&process.key) else {
            return Bytes::ZERO;
        };
        if let Some(swapped) = process.row.get(PROC_SWAP) {
            known.swapped = swapped;
        }
        if known.group != process.group {
            known.group.clone_from(&process.group);
        }
        known.swapped
    }

    /// Reads one file of a process into its row; whether that worked.
    fn read_file(
        &mut self,
        proc: &Directory,
        pid: u32,
        name: &str,
        process: &mut EntityRow,
        sink: Sink<'_>,
        walk: &mut Walk,
    ) -> bool {
        const PROC: &str = "/proc/";
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{PROC}{pid}/{name}");
        match proc.read(&self.path.as_bytes()[PROC.len()..], &mut self.text) {
            Ok(()) => {
                sink(&self.path, &self.text);
                walk.note_parse(self.files.parse(pid, name, &self.text, process));
                true
            }
            Err(errno) => {
                walk.note_errno_of(Entity::Process, name, errno);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use timeline::signals::{PROC_OOM_ADJ, PROC_PSS, PROC_RSS_ANON};
    use units::{Count, Pages};

    /// A process with `pages` resident and `swap` KiB swapped out.
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
        fs::write(
            at.join("cgroup"),
            format!("0::/system.slice/p{pid}.service\n"),
        )
        .unwrap();
        fs::write(
            at.join("smaps_rollup"),
            "0-1 ---p 0 0:0 0 [rollup]\nPss: 7 kB\n",
        )
        .unwrap();
    }

    fn walker(root: &tempfile::TempDir, largest: usize) -> Processes {
        let mut processes = Processes::new(&Root::at(root.path()));
        processes.closeness.largest = largest;
        processes
    }

    fn row<'a>(sample: &'a Sample, key: &str) -> Option<&'a EntityRow> {
        let rows = sample.table(Entity::Process).rows();
        rows.iter().find(|row| row.key == key)
    }

    #[test]
    fn every_process_has_a_row_and_the_largest_have_more() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 1, 17, 10, 0);
        process(root.path(), 20, 100, 5_000, 0);
        process(root.path(), 30, 200, 20, 0);
        fs::create_dir_all(root.path().join("proc/sys")).unwrap();
        let mut processes = walker(&root, 1);
        let mut sample = Sample::default();
        processes.sample(&mut sample);
        sample.clear();
        let walk = processes.sample(&mut sample);
        assert_eq!(
            walk,
            Walk {
                read: 3,
                ..Walk::default()
            }
        );
        let large = row(&sample, "20@100").unwrap();
        assert_eq!(large.label, "p20");
        assert_eq!(large.row.get(PROC_RSS), Some(Pages::new(5_000)));
        assert_eq!(large.row.get(PROC_RSS_ANON), Some(Bytes::from_kib(9)));
        assert_eq!(large.row.get(PROC_OOM_ADJ), Some(Count::new(1000)));
        let small = row(&sample, "30@200").unwrap();
        assert_eq!(small.row.get(PROC_RSS), Some(Pages::new(20)));
        assert_eq!(small.row.get(PROC_RSS_ANON), None);
        assert_eq!(small.group, "p30.service", "remembered from the first walk");
        assert_eq!(small.row.get(PROC_PSS), None, "shares were not asked for");
    }

    #[test]
    fn texts_are_shown_as_they_are_read() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        let mut shown = std::collections::BTreeMap::new();
        walker(&root, 9).sample_showing(&mut Sample::default(), &mut |path, text| {
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
        let mut processes = walker(&root, 1);
        let mut sample = Sample::default();
        for _ in 0..2 {
            sample.clear();
            processes.sample(&mut sample);
            let swapped = row(&sample, "11@1").unwrap();
            assert_eq!(swapped.row.get(PROC_OOM_ADJ), Some(Count::new(1000)));
        }
        assert_eq!(row(&sample, "10@1").unwrap().row.get(PROC_OOM_ADJ), None);
    }

    #[test]
    fn a_process_that_ends_is_skipped_and_forgotten() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        process(root.path(), 11, 1, 100, 0);
        let mut processes = walker(&root, 9);
        let mut sample = Sample::default();
        processes.sample(&mut sample);
        // Its directory is still listed, its files are gone: so it looks to a walk that is on its way.
        fs::remove_dir_all(root.path().join("proc/11")).unwrap();
        fs::create_dir(root.path().join("proc/11")).unwrap();
        // Another process of the same number as an earlier one.
        process(root.path(), 10, 500, 100, 0);
        sample.clear();
        let walk = processes.sample(&mut sample);
        assert_eq!(
            walk,
            Walk {
                read: 1,
                ..Walk::default()
            }
        );
        assert!(row(&sample, "10@500").is_some());
        assert_eq!(processes.known.len(), 1);
    }

    #[test]
    fn shares_are_read_within_the_budget_only() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 1 << 28, 0); // 1 TiB: 3.7 s of its mmap lock
        process(root.path(), 11, 1, 100, 0);
        let mut processes = walker(&root, 9);
        let mut sample = Sample::default();
        processes.closeness.shares = Some(Duration::from_secs(3));
        processes.sample(&mut sample);
        assert_eq!(row(&sample, "10@1").unwrap().row.get(PROC_PSS), None);
        let small = row(&sample, "11@1").unwrap();
        assert_eq!(small.row.get(PROC_PSS), Some(Bytes::from_kib(7)));
    }

    #[test]
    fn a_malformed_stat_keeps_what_identifies_or_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, 100, 0);
        process(root.path(), 11, 1, 100, 0);
        fs::write(root.path().join("proc/11/stat"), "nonsense").unwrap();
        let mut processes = walker(&root, 9);
        let mut sample = Sample::default();
        let walk = processes.sample(&mut sample);
        assert_eq!(walk.read, 1);
        let error = walk.malformed.unwrap().to_string();
        assert!(error.contains("found `nonsense`"), "{error}");
    }

    #[test]
    fn without_proc_it_says_so() {
        let root = tempfile::tempdir().unwrap();
        let walk = walker(&root, 9).sample(&mut Sample::default());
        assert_eq!(walk.absent, Some(timeline::Absence::NotFound));
    }

    #[test]
    fn this_process_finds_itself() {
        let mut processes = Processes::new(&Root::default());
        let mut sample = Sample::default();
        processes.closeness = Closeness {
            largest: usize::MAX,
            shares: Some(Duration::from_millis(200)),
        };
        let walk = processes.sample(&mut sample);
        assert!(walk.malformed.is_none(), "{:?}", walk.malformed);
        let own = format!("{}@", std::process::id());
        let rows = sample.table(Entity::Process).rows();
        let own = rows.iter().find(|row| row.key.starts_with(&own)).unwrap();
        assert!(own.row.get(PROC_RSS).unwrap() > Pages::ZERO);
        assert!(own.row.get(PROC_RSS_ANON).unwrap() > Bytes::ZERO);
        assert!(own.row.get(PROC_OOM_ADJ).is_some());
        assert!(own.label.starts_with("probe"), "{}", own.label);
    }
}
