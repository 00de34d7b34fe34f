//! Processes by files below `/proc`: `stat` for all, the dearer files for those that matter.
//!
//! `stat` has a process's identity, name, sizes, faults and CPU time. `status` (memory by kind, swap), `io` and
//! `oom_score_adj` are read of a process that is new, and afterwards when its `stat` changed: of the 64 that hold the
//! most at once, of a few others in turn. What is not read anew is remembered, so that a process has the same readings in
//! every walk; how long ago it was read is the task's age.
//!
//! Bounds: 65,536 processes; of 1,024 new ones a walk the dearer files are read, of the others later. Cost on 6.18: 6 µs
//! a process (0.16 µs for each of its threads), 15 µs for its dearer files.

use std::path::PathBuf;

use rustix::io::Errno;
use timeline::signals::{PROC_MAJFLT, PROC_MINFLT, PROC_RSS, PROC_SIZE, PROC_SWAP};
use timeline::{Entity, ProcessCells};
use units::{Bytes, Pages};

use crate::directory::{Directory, Walk};
use crate::kernel_file::Root;
use crate::process::cells::{CellReader, Failure};
use crate::process::rows::Processes;
use crate::process::task::Task;

/// A walk over `/proc`, ready to be done again and again.
#[derive(Debug)]
pub(crate) struct TaskScan {
    proc: PathBuf,
    files: CellReader,
    pids: Vec<u32>,
    /// The processes of the last walk by ascending PID.
    known: Vec<Known>,
    /// Those that the current walk met first.
    born: Vec<Known>,
    /// What each process of the current walk holds.
    held: Vec<Bytes>,
    budget: Budget,
    name: Vec<u8>,
}

/// A process as it was read last.
#[derive(Debug, Clone)]
struct Known {
    pid: u32,
    start: u64,
    cells: ProcessCells,
    /// Walks since the dearer files were read.
    age: u32,
    /// Whether they were read at all, and whether `stat` changed since.
    is_read: bool,
    is_changed: bool,
    is_alive: bool,
    /// This user may not read its `io`: it is not asked for again.
    is_io_denied: bool,
}

/// Whose dearer files the walk reads.
#[derive(Debug, Default)]
struct Budget {
    /// Who holds as much is among the largest: by the last walk.
    large: Bytes,
    /// How many new ones, and how many changed ones that are not among the largest, may still be read.
    new: usize,
    others: usize,
    /// The others have their turn from this PID on.
    turn: u32,
}

impl TaskScan {
    const LARGEST: usize = 64;
    const MOST_NEW: usize = 1_024;
    const MOST_OTHERS: usize = 16;

    /// Of the processes below `root`.
    pub(crate) fn new(root: &Root) -> Self {
        Self {
            proc: root.path("/proc"),
            files: CellReader::default(),
            pids: Vec::new(),
            known: Vec::new(),
            born: Vec::new(),
            held: Vec::new(),
            budget: Budget::default(),
            name: Vec::new(),
        }
    }

    /// Shows every process once, by ascending PID.
    pub(crate) fn each(&mut self, visit: &mut dyn FnMut(Task<'_>)) -> Walk {
        let mut walk = Walk::default();
        let proc = match self.list(&mut walk) {
            Ok(proc) => proc,
            Err(errno) => return Walk::absent(errno),
        };
        self.begin();
        let mut place = 0;
        for i in 0..self.pids.len() {
            let pid = self.pids[i];
            while self.known.get(place).is_some_and(|known| known.pid < pid) {
                place += 1;
            }
            let is_known = self.known.get(place).is_some_and(|known| known.pid == pid);
            self.task(&proc, pid, is_known.then_some(place), visit, &mut walk);
        }
        self.end();
        walk
    }

    /// Opens `/proc` and notes the PIDs in it, ascending.
    fn list(&mut self, walk: &mut Walk) -> Result<Directory, Errno> {
        let proc = Processes::list(&self.proc, &mut self.pids, walk)?;
        // The kernel lists them so; a directory of saved files need not.
        if !self.pids.is_sorted() {
            self.pids.sort_unstable();
        }
        Ok(proc)
    }

    fn begin(&mut self) {
        self.held.clear();
        self.born.clear();
        self.budget.new = Self::MOST_NEW;
        self.budget.others = Self::MOST_OTHERS;
        for known in &mut self.known {
            known.is_alive = false;
        }
    }

    /// Reads and shows one process, which was at `place` in the last walk.
    fn task(
        &mut self,
        proc: &Directory,
        pid: u32,
        place: Option<usize>,
        visit: &mut dyn FnMut(Task<'_>),
        walk: &mut Walk,
    ) {
        let mut fresh = ProcessCells::default();
        let (start, result) = self.files.stat(proc, pid, &mut fresh);
        note(walk, "stat", result);
        let Some(start) = start else {
            return; // It ended, or its text has no identity.
        };
        self.name.clear();
        self.name.extend_from_slice(self.files.name());
        walk.read += 1;
        let same = place.filter(|place| self.known[*place].start == start);
        let known = match same {
            Some(place) => {
                let known = &mut self.known[place];
                known.renew(&fresh);
                known
            }
            None => {
                self.born.push(Known::new(pid, start, fresh));
                let last = self.born.len() - 1;
                &mut self.born[last]
            }
        };
        if self.budget.allows(known) {
            known.read(proc, &mut self.files, walk);
        }
        self.held.push(known.held());
        visit(Task {
            pid,
            start_ticks: start,
            name: &self.name,
            cgroup_id: None,
            age: known.age,
            cells: &known.cells,
        });
    }

    /// Forgets who ended, and finds what the largest hold at least.
    fn end(&mut self) {
        self.budget.end_turn();
        if !self.born.is_empty() || self.known.iter().any(|known| !known.is_alive) {
            self.known.retain(|known| known.is_alive);
            self.known.append(&mut self.born);
            self.known.sort_unstable_by_key(|known| known.pid);
        }
        self.budget.large = Bytes::ZERO;
        if self.held.len() > Self::LARGEST {
            let nth = Self::LARGEST - 1;
            let (_, large, _) = self.held.select_nth_unstable_by(nth, |a, b| b.cmp(a));
            self.budget.large = *large;
        }
    }
}

impl Budget {
    /// Whether the dearer files of a process are to be read now.
    fn allows(&mut self, known: &Known) -> bool {
        if known.has_no_memory() || (known.is_read && !known.is_changed) {
            return false;
        }
        if !known.is_read {
            return spend(&mut self.new);
        }
        if known.held() >= self.large {
            return true;
        }
        if known.pid < self.turn || !spend(&mut self.others) {
            return false;
        }
        if self.others == 0 {
            self.turn = known.pid.saturating_add(1);
        }
        true
    }

    /// Whoever was behind the last one had no turn; when none is left, the first ones are next.
    fn end_turn(&mut self) {
        if self.others > 0 {
            self.turn = 0;
        }
    }
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
            cells,
            age: 0,
            is_read: false,
            is_changed: true,
            is_alive: true,
            is_io_denied: false,
        }
    }

    /// Takes over what `stat` says now.
    fn renew(&mut self, stat: &ProcessCells) {
        self.is_alive = true;
        self.age = self.age.saturating_add(1);
        self.is_changed |= differs(&self.cells, stat);
        // What became a zombie has no memory that `status` would show; it must not keep what it had.
        let size = stat.get(PROC_SIZE);
        if size != self.cells.get(PROC_SIZE) && size.unwrap_or_default() == Bytes::ZERO {
            self.cells.clear();
            self.age = 0;
        }
        for (signal, value) in stat.iter() {
            self.cells.set_raw(signal, value);
        }
    }

    /// A kernel thread or a zombie.
    fn has_no_memory(&self) -> bool {
        self.cells.get(PROC_SIZE).unwrap_or_default() == Bytes::ZERO
    }

    /// What it has in memory and in swap.
    fn held(&self) -> Bytes {
        // Only the order of processes depends on the page size here, so this machine's serves below a foreign root too.
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let pages = self.cells.get(PROC_RSS).unwrap_or(Pages::ZERO);
        let swapped = self.cells.get(PROC_SWAP).unwrap_or(Bytes::ZERO);
        Bytes::new(pages.get().saturating_mul(page)) + swapped
    }

    /// Reads the dearer files.
    fn read(&mut self, proc: &Directory, files: &mut CellReader, walk: &mut Walk) {
        self.is_read = true;
        self.is_changed = false;
        self.age = 0;
        for name in ["status", "io", "oom_score_adj"] {
            if name == "io" && self.is_io_denied {
                continue;
            }
            let result = files.file(proc, self.pid, name, &mut self.cells);
            let denied = matches!(result, Err(Failure::Unread(Errno::ACCESS | Errno::PERM)));
            self.is_io_denied |= name == "io" && denied;
            note(walk, name, result);
        }
    }
}

/// Whether a process did anything that would show in its dearer files. All of it takes faults or CPU time.
fn differs(before: &ProcessCells, now: &ProcessCells) -> bool {
    use timeline::signals::{PROC_STIME, PROC_UTIME};
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
