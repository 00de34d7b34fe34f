//! The kernel's tasks from a BPF iterator: every process with all of its memory by kind, for a tenth of the cost of
//! files.
//!
//! Needs Linux 5.8, the kernel's type information (`/sys/kernel/btf/vmlinux`), root or CAP_BPF and CAP_PERFMON, and the
//! initial PID namespace. aya loads the program (`bpf/tasks.bpf.c`) once; only a file descriptor remains. A read walks
//! the table of PIDs and takes no lock on processes or their memory.
//!
//! Results equal `/proc` except: names of kernel threads, which are cut to 15 bytes and lack what a worker works for;
//! `blkio_delay` before 5.16, where `/proc` adds the wait for swap; and counts of pages, which are exact here, while
//! the kernel's own files are off by up to 32 pages or two for each CPU, times CPUs (6.2 to 6.15; `stat` later, too).
//!
//! Cost on 6.18 with 2 CPUs: 0.3 µs per process and 0.2 µs per thread when hot, 0.9 µs at one walk a second. The exact
//! sum grows with the number of CPUs: 2.5 µs per process with 128.

use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use timeline::ProcessCells;

use crate::bpf::loader::{IteratorProgram, check_capabilities, iterate};
use crate::bpf::tasks::record::{PROCESS, Remembered, THREAD, TaskRecord, TaskScale, ids};
use crate::directory::Walk;
use crate::kernel_file::{KernelFile, Root, Shape};
use crate::process::task::{PROCESSES_MAX, Task};
use crate::text;

const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";

/// An iterator over the kernel's tasks.
#[derive(Debug)]
pub(crate) struct TaskIter {
    link: OwnedFd,
    scale: TaskScale,
    /// How many CPUs the program reads.
    cpus: u32,
    online: Option<KernelFile>,
    online_text: Vec<u8>,
    bytes: Vec<u8>,
    records: Vec<TaskRecord>,
    /// Records of threads before their process: PIDs restart at the lowest after the highest.
    early: Vec<[u8; THREAD * 8]>,
    /// By PID, as the records are.
    remembered: Vec<Remembered>,
    /// Those of processes that this walk found first.
    fresh: Vec<Remembered>,
    cells: ProcessCells,
}

impl TaskIter {
    /// The kernel buffers 8 pages of records; one read returns at most that.
    const CHUNK: usize = 64 << 10;
    /// The same as the limit of processes; a host with more is broken in other ways.
    const EARLY_MAX: usize = PROCESSES_MAX;
    /// The program's `CPUS_MAX`.
    const CPUS_MAX: u32 = 512;

    /// Loads the program, or says in words why it does not work.
    pub(crate) fn open(root: &Root) -> Result<Self, String> {
        if root.path("/") != Root::default().path("/") {
            return Err("the processes are not this machine's".to_owned());
        }
        check_capabilities()?;
        is_first_pid_namespace(root)?;
        Self::load(root)
    }

    fn load(root: &Root) -> Result<Self, String> {
        let mut online_text = Vec::new();
        let online =
            KernelFile::open(root, CPUS_ONLINE).ok().map(|file| file.shaped(Shape::OneLine));
        if let Some(file) = &online {
            file.read(&mut online_text).map_err(|e| timeline::with_causes(&e))?;
        }
        let cpus = cpus(&online_text).ok_or("cannot read which CPUs are online")?;
        if cpus > Self::CPUS_MAX {
            let most = Self::CPUS_MAX;
            return Err(format!("{cpus} CPUs, and the program sums up {most}"));
        }
        Ok(Self {
            link: load(cpus)?,
            scale: TaskScale::of_this_machine(),
            cpus,
            online,
            online_text,
            bytes: Vec::with_capacity(Self::CHUNK),
            records: Vec::new(),
            early: Vec::new(),
            remembered: Vec::new(),
            fresh: Vec::new(),
            cells: ProcessCells::default(),
        })
    }

    /// Returns the number of CPUs that may have a part of a counter.
    pub(crate) fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Passes every process to `visit` once, by ascending PID.
    pub(crate) fn each(&mut self, visit: &mut dyn FnMut(Task<'_>)) -> Walk {
        self.follow_cpus();
        let mut walk = Walk::default();
        if let Err(errno) = self.read(&mut walk) {
            return Walk::absent(errno);
        }
        self.add_early();
        self.show(visit);
        walk.read = self.records.len();
        walk
    }

    /// Reads to the end without parsing; returns the number of bytes.
    pub(crate) fn read_only(&mut self) -> Result<usize, Errno> {
        let file = iterate(&self.link)?;
        let mut all = 0;
        loop {
            self.bytes.clear();
            match rustix::io::read(&file, spare_capacity(&mut self.bytes))? {
                0 => return Ok(all),
                some => all += some,
            }
        }
    }

    /// Loads the program again if a CPU came online, as it has its own parts of counters. That is rare, and allocates.
    /// If loading fails, counts cover only the CPUs that were online before.
    fn follow_cpus(&mut self) {
        let Some(online) = &self.online else {
            return;
        };
        self.bytes.clear();
        if online.read_quietly(&mut self.bytes).is_err() || self.bytes == self.online_text {
            return;
        }
        self.online_text.clone_from(&self.bytes);
        if let Some(cpus) = cpus(&self.bytes).filter(|cpus| *cpus > self.cpus)
            && let Ok(link) = load(cpus)
        {
            (self.link, self.cpus) = (link, cpus);
        }
    }

    /// Reads all records. A partial record at the end of a chunk is completed by the next one.
    fn read(&mut self, walk: &mut Walk) -> Result<(), Errno> {
        let file = iterate(&self.link)?;
        self.records.clear();
        self.early.clear();
        self.bytes.clear();
        loop {
            match rustix::io::read(&file, spare_capacity(&mut self.bytes)) {
                Ok(0) => return Ok(()),
                // The kernel pauses after many tasks without a record; the next read continues there.
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno),
            }
            let taken = self.take(walk);
            self.bytes.drain(..taken);
        }
    }

    /// Takes the complete records from the bytes; returns their length in bytes.
    fn take(&mut self, walk: &mut Walk) -> usize {
        let mut at = 0;
        while let Some(bytes) = self.bytes.get(at..)
            && let Some(first) = bytes.first_chunk()
        {
            let (pid, tgid) = ids(u64::from_ne_bytes(*first));
            let length = if pid == tgid { PROCESS } else { THREAD } * 8;
            let Some(bytes) = bytes.get(..length) else {
                break;
            };
            at += length;
            if pid == tgid {
                push_process(&mut self.records, pid, bytes, walk);
            } else if let Some(process) = find(&mut self.records, tgid) {
                process.add(bytes);
            } else if let Some(thread) = bytes.first_chunk()
                && self.early.len() < Self::EARLY_MAX
            {
                self.early.push(*thread);
            }
        }
        at
    }

    fn add_early(&mut self) {
        for thread in &self.early {
            if let Some(first) = thread.first_chunk()
                && let Some(process) = find(&mut self.records, ids(u64::from_ne_bytes(*first)).1)
            {
                process.add(thread);
            }
        }
    }

    fn show(&mut self, visit: &mut dyn FnMut(Task<'_>)) {
        let mut before = self.remembered.iter_mut().peekable();
        for record in &mut self.records {
            let pid = record.pid();
            while let Some(gone) = before.next_if(|before| before.pid < pid) {
                gone.is_gone = true;
            }
            match before.next_if(|before| before.pid == pid) {
                Some(remembered) => record.settle(remembered),
                None => self.fresh.push(record.remembered()),
            }
            record.fill(self.scale, &mut self.cells);
            let (name, length) = record.name();
            visit(Task {
                pid,
                start_ticks: record.start_ticks(self.scale),
                name: &name[..length],
                cgroup_id: record.cgroup_id(),
                service: "",
                age: 0,
                cells: &self.cells,
            });
        }
        before.for_each(|gone| gone.is_gone = true);
        self.remembered.retain(|one| !one.is_gone);
        if !self.fresh.is_empty() {
            self.remembered.append(&mut self.fresh);
            self.remembered.sort_unstable_by_key(|one| one.pid);
        }
    }
}

#[cfg(has_task_program)]
static OBJECT: Result<&[u8], &str> =
    Ok(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tasks.bpf.o")));
#[cfg(not(has_task_program))]
static OBJECT: Result<&[u8], &str> = Err(match option_env!("MEMTIDE_NO_TASK_PROGRAM") {
    Some(reason) => reason,
    None => "no reason is known",
});

/// Loads the program for this number of CPUs.
fn load(cpus: u32) -> Result<OwnedFd, String> {
    let object = OBJECT.map_err(|reason| {
        format!("memtide was built without the program that reads tasks: {reason}")
    })?;
    let program = IteratorProgram { object, name: "tasks", target: "task" };
    program.load(("CPUS", cpus))
}

/// Keeps the order: a thread that became the leader of its process during the walk may come twice.
fn push_process(records: &mut Vec<TaskRecord>, pid: u32, bytes: &[u8], walk: &mut Walk) {
    if records.len() >= PROCESSES_MAX {
        walk.left_out += 1;
    } else if records.last().is_none_or(|last| last.pid() < pid) {
        // In its place: a record is long, and there are thousands.
        records.push(TaskRecord::default());
        if let Some(record) = records.last_mut() {
            record.read(bytes);
        }
    }
}

fn find(records: &mut [TaskRecord], pid: u32) -> Option<&mut TaskRecord> {
    let at = records.binary_search_by_key(&pid, TaskRecord::pid).ok()?;
    records.get_mut(at)
}

/// Returns one more than the highest CPU in a list such as `0-3,8`.
fn cpus(list: &[u8]) -> Option<u32> {
    let last = text::trim(list).rsplit(|b| matches!(b, b'-' | b',')).next();
    let last = u32::try_from(last.and_then(text::number)?).ok()?;
    last.checked_add(1)
}

/// Checks for the first PID namespace: the program sees its PIDs, `/proc` and this user see those of their own.
fn is_first_pid_namespace(root: &Root) -> Result<(), String> {
    /// include/linux/proc_ns.h
    const FIRST: &str = "pid:[4026531836]";
    let own = std::fs::read_link(root.path("/proc/self/ns/pid"))
        .map_err(|error| format!("cannot read the PID namespace: {error}"))?;
    if own.as_os_str() == FIRST {
        return Ok(());
    }
    let own = own.display();
    Err(format!("this is a PID namespace of its own ({own})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_up_to_the_highest() {
        for (list, expected) in [
            (&b"0\n"[..], Some(1)),
            (b"0-3\n", Some(4)),
            (b"0-3,8\n", Some(9)),
            (b"0,2-5", Some(6)),
            (b"", None),
            (b"x", None),
            (b"0-4294967295", None),
        ] {
            assert_eq!(cpus(list), expected);
        }
    }

    #[test]
    fn a_foreign_root_has_no_tasks_here() {
        let root = tempfile::tempdir().unwrap();
        let error = TaskIter::open(&Root::at(root.path())).unwrap_err();
        assert_eq!(error, "the processes are not this machine's");
    }
}
