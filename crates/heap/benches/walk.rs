//! What does reading a heap of about 1 GiB and 10 million chunks cost, in processor time and memory, against only copying
//! its resident pages? And how much slower is the target meanwhile?
//!
//! Processor time, because a walk shares the machine with its target. Skipped with less than 6 GiB available.
//! `cargo bench -p memtide-heap --bench walk [-- PART]`: only rows with this in their name; `target` is the last.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    dead_code,
    missing_docs
)]

#[path = "../tests/it/target.rs"]
mod target;

use std::time::{Duration, Instant};

use heap::{Heap, TargetMemory, read};
use rustix::time::{ClockId, clock_gettime};
use target::{Target, figure};

const MIB: u64 = 1 << 20;
const BLOCK_BYTES: usize = 512 << 10;
const AVAILABLE_MIN: u64 = 6 << 30;
const RUNS: usize = 7;

/// Name, arguments, goal in seconds of processor time.
const HEAPS: [(&str, &str, f64); 3] = [
    ("small, half freed", "4 frag 1024 1", 0.30),
    ("tiny, a quarter in fast bins", "4 tiny 480 2", 0.30),
    ("half in fast bins", "4 fast 1024 3", 0.70),
];
const MEMORY_GOAL_BYTES: u64 = 64 * MIB;

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A figure of a file of `/proc` in KiB, as bytes.
fn proc_bytes(path: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let mut words = line.unwrap().trim_start_matches(':').split_whitespace();
    words.next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Forgets the peak of this process's resident memory.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// The processor time of a run.
fn seconds(run: impl FnOnce()) -> f64 {
    let start = thread_seconds();
    run();
    thread_seconds() - start
}

/// Copies the resident pages of a heap, and does nothing with them.
fn copy(memory: &impl TargetMemory, heap: &Heap, buffer: &mut [u8]) -> u64 {
    let mut states = Vec::new();
    let mut copied = 0;
    for part in heap.arenas.iter().flat_map(|arena| &arena.parts) {
        let mut at = part.range.start / 4096 * 4096;
        while at < part.range.end {
            let end = (at + BLOCK_BYTES as u64).min(part.range.end.next_multiple_of(4096));
            memory.page_states(&(at..end), &mut states);
            let (mut parts, mut length) = (Vec::new(), 0);
            for (page, _) in (at..end)
                .step_by(4096)
                .zip(&states)
                .filter(|(_, s)| s.is_present())
            {
                parts.push(page..page + 4096);
                length += 4096;
            }
            copied += memory.read_parts(&parts, &mut buffer[..length]) as u64;
            at = end;
        }
    }
    copied
}

fn row(name: &str, arguments: &str, goal: f64) {
    let target = Target::start(arguments);
    let (mappings, memory) = target.memory();
    let before = proc_bytes("/proc/self/status", "VmRSS");
    reset_peak();
    let heap = read(&memory, &mappings, 4096).unwrap();
    let peak = proc_bytes("/proc/self/status", "VmHWM");
    let mut buffer = vec![0; BLOCK_BYTES];
    let (mut walk, mut floor, mut copied) = (f64::INFINITY, f64::INFINITY, 0);
    // In turns, so that what else the machine does slows both alike; the least is nearest to the cost alone.
    for _ in 0..RUNS {
        walk = walk.min(seconds(|| drop(read(&memory, &mappings, 4096).unwrap())));
        floor = floor.min(seconds(|| copied = copy(&memory, &heap, &mut buffer)));
    }
    let chunks = heap.chunks();
    let count =
        chunks.live.chunks + chunks.cached.chunks + chunks.fast.chunks + chunks.binned.chunks;
    println!(
        "| {name} | {:.0} | {:.1} | {:.1} | {walk:.3} | {goal:.2} | {floor:.3} | {:.0} | {:.0} | {:.0} | {} |",
        copied as f64 / MIB as f64,
        count as f64 / 1e6,
        chunks.fast.chunks as f64 / 1e6,
        peak as f64 / MIB as f64,
        peak.saturating_sub(before) as f64 / MIB as f64,
        count as f64 / 1e6 / walk,
        if walk <= goal && peak <= MEMORY_GOAL_BYTES {
            "met"
        } else {
            "missed"
        },
    );
}

/// Calls in a second of a target with one busy thread: alone, beside a thread that only computes (two cores may share one
/// budget), beside one that only copies the heap, and while it is read, each without a pause.
fn throughput() {
    const WINDOW: Duration = Duration::from_secs(1);
    let mut target = Target::start("1 frag 256 4");
    let (mappings, memory) = target.memory();
    let heap = read(&memory, &mappings, 4096).unwrap();
    let mut buffer = vec![0; BLOCK_BYTES];
    target.ask("churn SMALL 0");
    let names = ["alone", "beside computing", "beside copying", "while read"];
    let mut rates = names.map(|_| Vec::new());
    for _ in 0..RUNS {
        for (name, rates) in names.iter().zip(&mut rates) {
            let before = figure(&target.ask("ops"), "ops");
            let start = Instant::now();
            while start.elapsed() < WINDOW {
                match *name {
                    "alone" => std::thread::sleep(WINDOW.saturating_sub(start.elapsed())),
                    "beside computing" => std::hint::spin_loop(),
                    "beside copying" => drop(copy(&memory, &heap, &mut buffer)),
                    _ => drop(read(&memory, &mappings, 4096).unwrap()),
                }
            }
            let seconds = start.elapsed().as_secs_f64();
            rates.push((figure(&target.ask("ops"), "ops") - before) as f64 / seconds / 1e6);
        }
    }
    for (name, rates) in names.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        println!("target {name}: {:.2} M op/s", rates[rates.len() / 2]);
    }
}

fn main() {
    let available = proc_bytes("/proc/meminfo", "MemAvailable");
    if available < AVAILABLE_MIN {
        println!("skipped: {} MiB available, 6144 needed", available / MIB);
        return;
    }
    println!(
        "| heap | MiB | M chunks | M fast | walk s | goal s | copy s | peak MiB | own MiB | M chunks/s | goals |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted));
    for (name, arguments, goal) in HEAPS {
        if is_wanted(name) {
            row(name, arguments, goal);
        }
    }
    if is_wanted("target") {
        throughput();
    }
}
