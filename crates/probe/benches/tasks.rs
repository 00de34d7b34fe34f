//! What a walk over all processes costs above the system calls it cannot do without:
//! `cargo bench -p memtide-probe --bench tasks [-- PROCESSES…]`.
//!
//! Starts so many sleeping children of its own, and ends them. Four ways take turns in one run, as two runs on a shared
//! machine cannot be compared: the iterator's bytes read and not looked at, ours by BPF, `stat` of every process
//! opened, read and closed, ours by `/proc`. Hot is one after the other; paced is what a recorder at 1 Hz sees: the
//! CPU's caches went to others in between.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use probe::{Root, TaskSource, Tasks};
use rustix::time::{ClockId, clock_gettime};

/// A walk must cost less than this times the bare system calls: by BPF, by `/proc`.
const GOALS: [f64; 2] = [1.15, 1.25];

fn main() {
    let counts: Vec<usize> = std::env::args().skip(1).filter_map(|n| n.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![500, 2_000] } else { counts };
    println!("ns per process, medians of CPU time; goals {GOALS:?}");
    println!("                     iterator  our BPF  ratio   bare stat  our /proc  ratio");
    for count in counts {
        let _children = Sleepers::start(count);
        for (name, rounds, pause) in [("hot", 60, 0), ("at 1 Hz", 12, 1_000)] {
            let medians = take_turns(rounds, Duration::from_millis(pause));
            let [bare, bpf, stat, scan] = medians;
            let (first, second) = (bpf / bare, scan / stat);
            println!(
                "{count:>6} {name:<12} {bare:>9.0} {bpf:>8.0} {first:>6.2} {stat:>11.0} \
                 {scan:>10.0} {second:>6.2}"
            );
        }
    }
}

fn take_turns(rounds: usize, pause: Duration) -> [f64; 4] {
    let root = Root::default();
    let mut bpf = Tasks::open(&root, Some(TaskSource::Bpf));
    let mut scan = Tasks::open(&root, Some(TaskSource::Proc));
    if let Some(reason) = bpf.why_not_bpf() {
        eprintln!("note: `our BPF` is /proc as well: {reason}");
    }
    let mut bare = Bare { buffer: vec![0; 64 << 10] };
    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds + 2 {
        let mut measure = |way: usize, work: &mut dyn FnMut() -> usize| {
            std::thread::sleep(pause);
            let before = cpu();
            let processes = work();
            let nanos = (cpu() - before).as_nanos() as f64;
            if round >= 2 && processes > 0 {
                times[way].push(nanos / processes as f64);
            }
        };
        let processes = walk(&mut scan);
        measure(0, &mut || {
            black_box(bpf.read_only());
            processes
        });
        measure(1, &mut || walk(&mut bpf));
        measure(2, &mut || bare.stats());
        measure(3, &mut || walk(&mut scan));
    }
    times.map(|nanos| stats::median(&nanos).unwrap_or(f64::NAN))
}

fn walk(tasks: &mut Tasks) -> usize {
    let mut processes = 0;
    tasks.each(&mut |task| {
        black_box(task);
        processes += 1;
    });
    processes
}

/// The lower bound of the files: all `stat`s opened, read once and closed.
struct Bare {
    buffer: Vec<u8>,
}

impl Bare {
    fn stats(&mut self) -> usize {
        use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(proc) = openat(CWD, "/proc", flags | OFlags::DIRECTORY, Mode::empty()) else {
            return 0;
        };
        let list = openat(&proc, ".", flags | OFlags::DIRECTORY, Mode::empty());
        let Ok(list) = list else { return 0 };
        let mut room = Vec::with_capacity(64 << 10);
        let mut entries = RawDir::new(list, room.spare_capacity_mut());
        let mut path = Vec::with_capacity(32);
        let mut processes = 0;
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_bytes();
            if !name.first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            path.clear();
            path.extend_from_slice(name);
            path.extend_from_slice(b"/stat");
            if let Ok(file) = openat(&proc, &path, flags, Mode::empty()) {
                let _ = black_box(File::from(file).read(&mut self.buffer[..4096]));
                processes += 1;
            }
        }
        processes
    }
}

/// Children that sleep until they are ended.
struct Sleepers(Vec<Child>);

impl Sleepers {
    fn start(count: usize) -> Self {
        let sleeper = |_| {
            let mut sleep = Command::new("sleep");
            sleep.arg("1000").stdin(Stdio::null()).spawn().ok()
        };
        Self((0..count).filter_map(sleeper).collect())
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// CPU time of this process, user and system.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
