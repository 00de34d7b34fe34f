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
/// Windows with and without a walk.
const PAIRS: usize = 12;
const WINDOW: Duration = Duration::from_millis(500);

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
    let mut runs = Vec::new();
    let mut copied = 0;
    for part in heap.arenas.iter().flat_map(|arena| &arena.parts) {
        let mut at = part.range.start / 4096 * 4096;
        while at < part.range.end {
            let end = (at + BLOCK_BYTES as u64).min(part.range.end.next_multiple_of(4096));
            runs.clear();
            at = memory.populated(&(at..end), &mut runs).until;
            let parts: Vec<_> = runs.iter().map(|run| run.range.clone()).collect();
            copied += memory.read_parts(&parts, buffer) as u64;
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
        "| {name} | {:.0} | {:.1} | {:.1} | {walk:.3} | {goal:.2} | {floor:.3} | {:.0} | {:.0} | \
         {:.0} | {} |",
        copied as f64 / MIB as f64,
        count as f64 / 1e6,
        chunks.fast.chunks as f64 / 1e6,
        peak as f64 / MIB as f64,
        peak.saturating_sub(before) as f64 / MIB as f64,
        count as f64 / 1e6 / walk,
        if walk <= goal && peak <= MEMORY_GOAL_BYTES { "met" } else { "missed" },
    );
}

/// What the machine does beside the target.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    /// Two cores may share one budget, or one set of caches.
    Computing,
    Copying,
    Reading,
}

/// What is compared: its name, without and with.
const COMPARED: [(&str, Beside, Beside); 4] = [
    ("while read, against alone", Beside::Nothing, Beside::Reading),
    ("while read, against beside computing", Beside::Computing, Beside::Reading),
    ("while read, against beside copying", Beside::Copying, Beside::Reading),
    ("beside computing, against alone", Beside::Nothing, Beside::Computing),
];

/// What a target with one busy thread loses while its heap is read without a pause: windows with and without, in turns,
/// so that what else the machine does slows both alike. Beside a thread that only computes or copies for comparison.
fn throughput() {
    let mut target = Target::start("1 frag 256 4");
    let (mappings, memory) = target.memory();
    let heap = read(&memory, &mappings, 4096).unwrap();
    let mut buffer = vec![0; BLOCK_BYTES];
    target.ask("churn SMALL 0");
    let mut rate = |beside: Beside| {
        let before = figure(&target.ask("ops"), "ops");
        let start = Instant::now();
        while start.elapsed() < WINDOW {
            match beside {
                Beside::Nothing => std::thread::sleep(WINDOW.saturating_sub(start.elapsed())),
                Beside::Computing => std::hint::spin_loop(),
                Beside::Copying => drop(copy(&memory, &heap, &mut buffer)),
                Beside::Reading => drop(read(&memory, &mappings, 4096).unwrap()),
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        (figure(&target.ask("ops"), "ops") - before) as f64 / seconds
    };
    println!(
        "| target with one busy thread | pairs | M op/s | loss %: median | quarter | three \
         quarters |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, without, with) in COMPARED {
        compare(name, &mut rate, without, with);
    }
}

/// Takes the pairs of one comparison, and prints its row.
fn compare(name: &str, rate: &mut impl FnMut(Beside) -> f64, without: Beside, with: Beside) {
    let mut rates = Vec::new();
    let mut losses: Vec<f64> = (0..PAIRS)
        .map(|index| {
            // Each second pair the other way round: a trend favours neither.
            let (before, with) = if index % 2 == 0 {
                let before = rate(without);
                (before, rate(with))
            } else {
                let with = rate(with);
                (rate(without), with)
            };
            rates.push(before / 1e6);
            (1.0 - with / before) * 100.0
        })
        .collect();
    let [low, middle, high] =
        [0.25, 0.5, 0.75].map(|share| stats::quantile_in_place(&mut losses, share).unwrap());
    println!(
        "| {name} | {PAIRS} | {:.2} | {:.1} | {:.1} | {:.1} |",
        stats::median(&rates).unwrap(),
        middle,
        low,
        high,
    );
}

fn main() {
    let available = proc_bytes("/proc/meminfo", "MemAvailable");
    if available < AVAILABLE_MIN {
        println!("skipped: {} MiB available, 6144 needed", available / MIB);
        return;
    }
    println!(
        "| heap | MiB | M chunks | M fast | walk s | goal s | copy s | peak MiB | own MiB | M \
         chunks/s | goals |"
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
