//! All processes once per call, straight into cells or as rows of a sample.
//!
//! There are two ways, and [`Tasks`] takes the better one that works here: an iterator of the kernel's tasks
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

/// Which way processes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSource {
    /// The kernel's iterator of tasks: exact, all of memory by kind and I/O for every process.
    Bpf,
    /// Files below `/proc`: `stat` for all, the expensive files for those that matter.
    Proc,
}

/// The processes below a root, ready to be read again and again.
#[derive(Debug)]
pub struct Tasks {
    /// What the next scan of `/proc` reads; the iterator reads everything but shares.
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
    /// Opens the requested way, or the best that works. Where BPF does not work, the other way is taken and the
    /// reason remembered. Costs about 30 ms and 35 MiB for a moment where BPF is tried, which it is where there is memory for it.
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

    /// Which way is taken.
    pub fn source(&self) -> TaskSource {
        match self.way {
            TaskReader::Bpf(_) => TaskSource::Bpf,
            TaskReader::Proc(_) => TaskSource::Proc,
        }
    }

    /// Why the way is not BPF, in words.
    pub fn why_not_bpf(&self) -> Option<&str> {
        self.why_not_bpf.as_deref()
    }

    /// Reads the iterator to its end and does not parse it, for benchmarks: the bytes. `None` without BPF.
    #[doc(hidden)]
    pub fn read_only(&mut self) -> Option<usize> {
        match &mut self.way {
            TaskReader::Bpf(iter) => iter.read_only().ok(),
            TaskReader::Proc(_) => None,
        }
    }

    /// Shows every process once, by ascending PID.
    pub fn each(&mut self, visit: &mut dyn FnMut(Task<'_>)) -> Walk {
        self.each_showing(visit, &mut |_, _| ())
    }

    /// Reads the processes into rows of a sample, and shows each text that is read below `/proc`.
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

/// Reads which service a process belongs to (`/proc/PID/cgroup`) into `into`, which is empty where it is in none or has
/// ended. `scratch` is a buffer that the caller reuses.
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
