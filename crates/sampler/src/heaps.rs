//! Figures of malloc heaps: which processes of a name are read, and what of a heap is kept.
//!
//! Reading a heap takes 0.3 s of CPU for a GiB of small chunks, and up to 100 MiB of memory: never in the thread that
//! samples. The recorder has a child read them ([`HeapWatch`](crate::HeapWatch)), a capture a thread.

use std::collections::BTreeMap;

use anatomy::{MallocRanges, ProcessAnatomy, ReadOptions};
use heap::{Heap, HeapNotRead};
use probe::{ProcessIdentity, Root, host_facts, read_within, thread_cpu};
use serde::{Deserialize, Serialize};
use timeline::signals::{
    PROC_HEAP_ARENAS, PROC_HEAP_CACHED, PROC_HEAP_FREE, PROC_HEAP_FREE_RESIDENT, PROC_HEAP_LIVE,
    PROC_HEAP_RESIDENT, PROC_HEAP_RETURNABLE, PROC_HEAP_SYSTEM, PROC_HEAP_UNKNOWN,
    PROC_RUNTIME_HEAP,
};
use timeline::{SignalId, with_causes};
use units::{Bytes, PageSize, Ratio, Span};

use crate::pace::interval_within;
use crate::record::privilege;

/// At most this many processes of one name are read: the largest by anonymous memory, each owner's in turn.
pub const HEAPS_PER_NAME_MAX: usize = 4;
/// At most this many names are read.
pub const HEAP_NAMES_MAX: usize = 16;
/// Reading takes at most this share of a CPU in the long run.
const READING_SHARE: Ratio = Ratio::new(0.05);

/// Returns the least time from one reading of heaps to the next where a reading takes this much CPU time.
pub fn heap_interval(cost: Span) -> Span {
    interval_within(cost, READING_SHARE)
}

/// The heap of one process as read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeapReading {
    /// Its PID.
    pub pid: u32,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The figures as a capture has them: a line each, a signal's field and its value.
    pub figures: String,
}

/// The heaps that were read one after another.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HeapRound {
    pub readings: Vec<HeapReading>,
    /// What was not read, and why, in words.
    pub problems: Vec<String>,
    /// CPU time of it.
    pub cpu_s: f64,
}

impl HeapRound {
    /// Returns it as a line of JSON, as a child hands it over.
    pub fn json_line(&self) -> String {
        // Numbers and texts: there is nothing that JSON cannot express.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Adds up the lines of JSON that a child wrote. One that it could not finish is left out; `None` without any.
    pub(crate) fn of_lines(text: &[u8]) -> Option<Self> {
        let lines = text.split(|byte| *byte == b'\n');
        let parts = lines.filter_map(|line| serde_json::from_slice(line).ok());
        parts.reduce(|mut all: Self, part| {
            all.add(part);
            all
        })
    }

    pub(crate) fn add(&mut self, part: Self) {
        self.readings.extend(part.readings);
        self.problems.extend(part.problems);
        self.cpu_s += part.cpu_s;
    }

    /// Returns the time to the next round: longer than planned where reading would exceed its share of a CPU.
    pub(crate) fn every(&self, planned: Span) -> Span {
        planned.max(heap_interval(Span::from_secs_f64(self.cpu_s)))
    }
}

/// How long reading one process may wait for it: then the others are read. While the reader runs, or waits for a CPU, no
/// time passes.
const WAIT_MAX: Span = Span::from_secs(3);

/// Reads the heaps of the largest processes of each name: that of a process or its program, its service, container or
/// cgroup, or a PID.
pub fn read_heaps(root: &Root, names: &[String]) -> HeapRound {
    let mut round = HeapRound::default();
    each_heap(root, names, &mut |part| round.add(part));
    round
}

/// As [`read_heaps`], a process at a time: `each` gets its part as soon as it is read.
pub fn each_heap(root: &Root, names: &[String], each: &mut dyn FnMut(HeapRound)) {
    let before = thread_cpu();
    let page = host_facts::page_size().unwrap_or(PageSize::USUAL);
    let mut problems = Vec::new();
    let wanted = wanted(root, names, &mut problems);
    each(HeapRound {
        problems,
        cpu_s: thread_cpu().saturating_sub(before).as_secs_f64(),
        ..HeapRound::default()
    });
    for (pid, one) in wanted {
        let (root, process) = (root.clone(), one.clone());
        let read = move || read_process(&root, pid, &process, page);
        each(read_within(WAIT_MAX, read).unwrap_or_else(|why| HeapRound {
            problems: vec![problem_of(&one, &format!("its memory {why}"))],
            ..HeapRound::default()
        }));
    }
}

/// Reads one process.
fn read_process(root: &Root, pid: u32, one: &ProcessIdentity, page: PageSize) -> HeapRound {
    let before = thread_cpu();
    let heap = heap::read_process(root, pid, page);
    let mut figures = match &heap {
        Ok(heap) if heap.is_whole() => self::figures(heap),
        _ => String::new(),
    };
    figures += &runtime_figure(root, pid, &heap, page);
    let mut round = HeapRound::default();
    if figures.is_empty() {
        round.problems.extend(refusal(one, &heap));
    } else {
        round.readings.push(HeapReading {
            pid,
            start_ticks: one.start_ticks.unwrap_or(0),
            figures,
        });
    }
    round.cpu_s = thread_cpu().saturating_sub(before).as_secs_f64();
    round
}

/// Returns the processes to read by their PIDs.
fn wanted(
    root: &Root,
    names: &[String],
    problems: &mut Vec<String>,
) -> BTreeMap<u32, ProcessIdentity> {
    let own = std::process::id();
    let is_any = |one: &ProcessIdentity| {
        one.pid != own && one.size > Bytes::ZERO && names.iter().any(|name| is_meant(one, name))
    };
    let found = match ProcessIdentity::find(root, is_any) {
        Ok(found) => found,
        Err(error) => {
            problems.push(with_causes(&error));
            return BTreeMap::new();
        }
    };
    let mut wanted = BTreeMap::new();
    for name in names {
        let of_name = found.iter().filter(|one| is_meant(one, name));
        let largest = ProcessIdentity::in_turns(of_name);
        if largest.is_empty() {
            problems.push(format!(
                "no process is named `{name}`, and none belongs to a service or cgroup of that name"
            ));
        }
        let largest = largest.into_iter().take(HEAPS_PER_NAME_MAX);
        wanted.extend(largest.map(|one| (one.pid, one.clone())));
    }
    wanted
}

fn is_meant(one: &ProcessIdentity, name: &str) -> bool {
    name.parse() == Ok(one.pid) || one.is_named(name.as_bytes()) || one.belongs_to(name)
}

/// Says why a heap was not read; nothing of a process that ended meanwhile.
fn refusal(one: &ProcessIdentity, heap: &Result<Heap, HeapNotRead>) -> Option<String> {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    let why = match heap {
        // Its figures would be too low.
        Ok(_) => "not all of its malloc heap was found".to_owned(),
        Err(why @ (HeapNotRead::NoHeap(_) | HeapNotRead::NoAnswer(_))) => why.to_string(),
        Err(HeapNotRead::Denied(why)) => match why.source.kind() {
            NotFound => return None,
            PermissionDenied => format!(
                "its memory may not be read: {}",
                privilege::needs(privilege::is_root(), "CAP_SYS_PTRACE", "")
            ),
            _ => with_causes(why),
        },
    };
    Some(problem_of(one, &why))
}

fn problem_of(one: &ProcessIdentity, why: &str) -> String {
    let name = String::from_utf8_lossy(&one.name);
    format!("{name} (pid {}): {why}", one.pid)
}

/// Writes down what the process's runtime or another allocator than glibc's has in RAM; nothing if it has no such heap, or
/// its memory cannot be divided.
fn runtime_figure(
    root: &Root,
    pid: u32,
    heap: &Result<Heap, HeapNotRead>,
    page: PageSize,
) -> String {
    let malloc = MallocRanges::of(heap);
    let read = ProcessAnatomy::read(root, pid, malloc.as_ref(), &ReadOptions::usual(page));
    let resident = read.map(|read| read.anatomy.runtime_resident());
    match resident {
        Ok(resident) if resident > Bytes::ZERO => line(PROC_RUNTIME_HEAP.id(), resident.get()),
        _ => String::new(),
    }
}

/// Writes the figures of a heap down.
fn figures(heap: &Heap) -> String {
    let (chunks, pages) = (heap.chunks(), heap.pages());
    let mmapped = heap.mmapped.iter().map(|chunk| chunk.resident);
    let values: [(SignalId, u64); 9] = [
        (PROC_HEAP_SYSTEM.id(), heap.system_bytes()),
        (PROC_HEAP_LIVE.id(), heap.live_bytes()),
        (PROC_HEAP_CACHED.id(), chunks.cached.bytes),
        (PROC_HEAP_FREE.id(), heap.free_bytes()),
        (PROC_HEAP_RESIDENT.id(), pages.resident + mmapped.sum::<u64>()),
        (PROC_HEAP_FREE_RESIDENT.id(), heap.unused_resident_bytes()),
        (PROC_HEAP_RETURNABLE.id(), pages.returnable),
        (PROC_HEAP_UNKNOWN.id(), heap.uncertain_resident_bytes()),
        (PROC_HEAP_ARENAS.id(), heap.arenas.len() as u64),
    ];
    values.map(|(signal, value)| line(signal, value)).concat()
}

fn line(signal: SignalId, value: u64) -> String {
    format!("{} {value}\n", signal.def().field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A process that uses malloc and waits for the end of its input.
    fn waiting() -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().unwrap()
    }

    #[test]
    fn the_heap_of_a_process_is_read_by_its_pid_with_every_figure() {
        let mut child = waiting();
        let names = [child.id().to_string()];
        let mut round = read_heaps(&Root::default(), &names);
        // It may have just been started.
        for _ in 0..1000 {
            if !round.problems.iter().any(|why| why.contains("malloc")) {
                break;
            }
            round = read_heaps(&Root::default(), &names);
        }
        let pid = child.id();
        drop(child.stdin.take());
        child.wait().unwrap();
        if round.readings.is_empty() {
            let is_refused = round.problems.iter().any(|why| why.contains("may not"));
            assert!(is_refused, "{:?}", round.problems);
            return;
        }
        let reading = &round.readings[0];
        assert_eq!(reading.pid, pid);
        assert_eq!(reading.figures.lines().count(), 9, "{}", reading.figures);
        assert!(reading.start_ticks > 0 && round.cpu_s > 0.0);
    }

    #[test]
    fn a_name_that_nobody_has_is_a_problem_of_its_own() {
        let names = ["no-such-name-7".to_owned(), "4294967295".to_owned()];
        let round = read_heaps(&Root::default(), &names);
        assert_eq!((round.readings.len(), round.problems.len()), (0, 2));
        assert!(round.problems[0].contains("`no-such-name-7`"));
    }

    #[test]
    fn a_costly_round_makes_the_next_one_wait() {
        let round = HeapRound { cpu_s: 3.0, ..HeapRound::default() };
        let (second, minutes) = (Span::from_secs(1), Span::from_mins(10));
        assert_eq!(round.every(second), Span::from_mins(1));
        assert_eq!(round.every(minutes), minutes);
    }
}
