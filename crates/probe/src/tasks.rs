//! All processes once per call, directly into cells or as rows of a sample.
//!
//! There are two sources, and [`Tasks`] uses the better one that works here: an iterator of the kernel's tasks
//! ([`bpf::tasks`](crate::bpf::tasks), needs BPF, root and the kernel's types) and a scan of `/proc`
//! ([`process::scan`](crate::process::scan), works everywhere, also below a foreign root). Both visit processes by
//! ascending PID, reuse their buffers and allocate nothing in steady state; neither resolves names.

use timeline::{Entity, Sample};

use crate::bpf;
use crate::bpf::tasks::TaskIter;
use crate::cgroup::service;
use crate::directory::{Directory, Sink, Walk};
use crate::kernel_file::Root;
use crate::process::scan::{ProcessDetail, TaskScan};
use crate::process::stat;
use crate::process::task::Task;
use crate::text;

/// The source of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSource {
    /// The kernel's iterator of tasks: exact values, all of memory by kind, and I/O, for every process.
    Bpf,
    /// Files below `/proc`: `stat` for all, the expensive files for those that matter.
    Proc,
}

impl TaskSource {
    /// Its name in the state of a recorder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "BPF task iterator",
            Self::Proc => "/proc",
        }
    }
}

/// The processes below a root, for repeated reads.
#[derive(Debug)]
pub struct Tasks {
    /// What the next scan of `/proc` reads; the iterator reads everything except shares.
    pub detail: ProcessDetail,
    way: TaskReader,
    why_not_bpf: Option<String>,
}

#[derive(Debug)]
enum TaskReader {
    Bpf(Box<TaskIter>),
    Proc(Box<TaskScan>),
}

impl Tasks {
    /// Opens the requested source, or the best that works. If BPF does not work, `/proc` is used and the reason is
    /// stored. BPF is tried only if there is memory for it; trying costs about 30 ms, and 35 MiB for a moment.
    pub fn open(root: &Root, want: Option<TaskSource>) -> Self {
        let iter = match want {
            Some(TaskSource::Proc) => Err("not requested".to_owned()),
            Some(TaskSource::Bpf) | None => bpf::tasks::open(root),
        };
        match iter {
            Ok(iter) => Self {
                detail: ProcessDetail::INCREMENTAL,
                way: TaskReader::Bpf(Box::new(iter)),
                why_not_bpf: None,
            },
            Err(reason) => Self {
                detail: ProcessDetail::INCREMENTAL,
                way: TaskReader::Proc(Box::new(TaskScan::new(root))),
                why_not_bpf: Some(reason),
            },
        }
    }

    /// Returns the source in use.
    pub fn source(&self) -> TaskSource {
        match self.way {
            TaskReader::Bpf(_) => TaskSource::Bpf,
            TaskReader::Proc(_) => TaskSource::Proc,
        }
    }

    /// Returns why the source is not BPF, in words.
    pub fn why_not_bpf(&self) -> Option<&str> {
        self.why_not_bpf.as_deref()
    }

    /// Reads the iterator to its end without parsing, for benchmarks; returns the number of bytes. `None` without BPF.
    #[doc(hidden)]
    pub fn read_only(&mut self) -> Option<usize> {
        match &mut self.way {
            TaskReader::Bpf(iter) => iter.read_only().ok(),
            TaskReader::Proc(_) => None,
        }
    }

    /// Passes every process to `visit` once, by ascending PID.
    pub fn each(&mut self, visit: &mut dyn FnMut(Task<'_>)) -> Walk {
        self.each_showing(visit, &mut |_, _| ())
    }

    /// Reads the processes into rows of a sample, and passes each text read below `/proc` to `sink`.
    pub fn rows(&mut self, sample: &mut Sample, sink: Sink<'_>) -> Walk {
        let table = sample.table_mut(Entity::Process);
        let visit = &mut |task: Task<'_>| {
            let process = table.add();
            stat::set_key(task.pid, task.start_ticks, process);
            text::push_lossy(&mut process.label, task.name);
            process.group.push_str(task.service);
            for (signal, value) in task.cells.iter() {
                process.row.set_raw(signal, value);
            }
        };
        self.each_showing(visit, sink)
    }

    fn each_showing(&mut self, visit: &mut dyn FnMut(Task<'_>), sink: Sink<'_>) -> Walk {
        match &mut self.way {
            TaskReader::Bpf(iter) => iter.each(visit),
            TaskReader::Proc(scan) => scan.each(self.detail, visit, sink),
        }
    }
}

/// Reads the service of a process (from `/proc/PID/cgroup`) into `into`, which is empty if the process is in none or
/// has ended. `scratch` is a buffer that the caller reuses.
pub fn service_of(root: &Root, pid: u32, scratch: &mut Vec<u8>, into: &mut String) {
    into.clear();
    let Ok(proc) = Directory::open(&root.path("/proc")) else {
        return;
    };
    let path = format!("{pid}/cgroup");
    if proc.read(path.as_bytes(), scratch).is_ok() {
        service::push_name(scratch, into);
    }
}
