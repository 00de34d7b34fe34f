//! All processes once per call, straight into cells: what a recorder of thousands of them walks every second.
//!
//! There are two ways, and [`Tasks`] takes the better one that works here: an iterator of the kernel's tasks
//! ([`bpf::tasks`](crate::bpf::tasks), needs BPF, root and the kernel's types) and a walk over `/proc`
//! ([`process::scan`](crate::process::scan), works everywhere, also below a foreign root). Both visit processes by ascending
//! PID, keep their buffers and allocate nothing in steady state; neither makes strings nor looks names up.

use crate::bpf;
use crate::bpf::tasks::TaskIter;
use crate::cgroup::service;
use crate::directory::{Directory, Walk};
use crate::kernel_file::Root;
use crate::process::scan::TaskScan;
use crate::process::task::Task;

/// Which way processes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSource {
    /// The kernel's iterator of tasks: exact, all of memory by kind and I/O for every process.
    Bpf,
    /// Files below `/proc`: `stat` for all, the dearer files for the largest.
    Proc,
}

/// The processes below a root, ready to be walked again and again.
#[derive(Debug)]
pub struct Tasks {
    way: Way,
    why_not_bpf: Option<String>,
}

#[derive(Debug)]
enum Way {
    Bpf(Box<TaskIter>),
    Proc(Box<TaskScan>),
}

impl Tasks {
    /// Opens the way that is wanted, or the best that works. Where BPF does not work, the other way is taken and the
    /// reason remembered. Costs about 30 ms and 35 MiB for a moment where BPF is tried, which it is where there is room.
    pub fn open(root: &Root, want: Option<TaskSource>) -> Self {
        let iter = match want {
            Some(TaskSource::Proc) => Err("not wanted".to_owned()),
            Some(TaskSource::Bpf) | None => bpf::tasks::open(root),
        };
        match iter {
            Ok(iter) => Self {
                way: Way::Bpf(Box::new(iter)),
                why_not_bpf: None,
            },
            Err(reason) => Self {
                way: Way::Proc(Box::new(TaskScan::new(root))),
                why_not_bpf: Some(reason),
            },
        }
    }

    /// Which way is taken.
    pub fn source(&self) -> TaskSource {
        match self.way {
            Way::Bpf(_) => TaskSource::Bpf,
            Way::Proc(_) => TaskSource::Proc,
        }
    }

    /// Why the way is not BPF, in words.
    pub fn why_not_bpf(&self) -> Option<&str> {
        self.why_not_bpf.as_deref()
    }

    /// Reads the iterator to its end and does not look at it, for benchmarks: the bytes. `None` without BPF.
    #[doc(hidden)]
    pub fn read_only(&mut self) -> Option<usize> {
        match &mut self.way {
            Way::Bpf(iter) => iter.read_only().ok(),
            Way::Proc(_) => None,
        }
    }

    /// Shows every process once, by ascending PID.
    pub fn each(&mut self, visit: &mut dyn FnMut(Task<'_>)) -> Walk {
        match &mut self.way {
            Way::Bpf(iter) => iter.each(visit),
            Way::Proc(scan) => scan.each(visit),
        }
    }
}

/// Reads which service a process belongs to (`/proc/PID/cgroup`) into `into`, which is empty where it is in none or has
/// ended. `scratch` is room for the text, kept by the caller.
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
