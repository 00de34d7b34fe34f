//! A program that allocates and frees during the walk: how far is the figure from the program's own count meanwhile?
//!
//! The truth is what the program itself counts, read from its memory before, between and after the walks; it is never
//! stopped, nor is its count the reader's own. libc's few chunks are in the figure but not in that count: their size is
//! what both differ by while the program is idle.

use std::process::Command;
use std::time::Instant;

use heap::{Heap, read_settled};
use probe::{Mappings, Root};

use crate::target::{Target, figure};
use crate::truth::equals;

/// One reading of a busy heap.
#[derive(Debug, Clone)]
struct BusyReading {
    live: u64,
    /// The program's own counts before, between and after the walks.
    counts: Vec<u64>,
    uncertain: u64,
    unknown: u64,
    drift: u64,
    spread: u64,
    scatter: u64,
    fast: u64,
    micros: u64,
}

impl BusyReading {
    /// The own count when the figure is printed.
    fn after(&self) -> u64 {
        self.counts.last().copied().unwrap()
    }

    /// How far the figure is from the count afterwards.
    fn error(&self) -> u64 {
        self.live.abs_diff(self.after())
    }

    /// How far it is from the counts before and after: the larger of both. Both are covered by what it prints.
    fn error_of_both(&self) -> u64 {
        self.error().max(self.live.abs_diff(self.counts[0]))
    }

    /// By how much the counts differ.
    fn moved(&self) -> u64 {
        self.counts.iter().max().unwrap() - self.counts.iter().min().unwrap()
    }
}

fn signal(target: &Target, name: &str) {
    let pid = target.pid().to_string();
    let status = Command::new("kill").args([name, &pid]).status();
    assert!(status.unwrap().success());
}

/// Stops the target. The signal is sent at once; each thread stops where it next leaves the kernel.
fn stop(target: &Target) {
    signal(target, "-STOP");
    let is_stopped = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", target.pid())).unwrap();
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('T'))
        })
    };
    while !is_stopped() {
        std::thread::yield_now();
    }
}

/// A target that churns, and how much more the reader counts than the program: libc's own chunks.
fn churning(arguments: &str, churn: &str) -> (Target, u64) {
    let mut target = Target::start(arguments);
    let idle = target.heap().unwrap().live_bytes();
    let own = idle - figure(&target.ready, "live");
    assert_eq!(target.ask(&format!("churn {churn}")).trim(), "churning");
    // The churn reaches its own mix of sizes first.
    while figure(&target.ask("ops"), "ops") < 20_000 {
        std::thread::yield_now();
    }
    (target, own)
}

fn readings(arguments: &str, churn: &str, walks: usize) -> Vec<BusyReading> {
    let (mut target, own) = churning(arguments, churn);
    let readings = (0..walks).map(|_| reading(&target, own)).collect();
    let stopped = target.ask("stop");
    equals(&mut target, &stopped, arguments);
    let stopped = figure(&stopped, "live");
    let end = target.heap().unwrap();
    let apart = (end.live_bytes() - own).abs_diff(stopped);
    assert!(apart <= leftovers(&end), "{arguments}: {apart}");
    readings
}

fn reading(target: &Target, own: u64) -> BusyReading {
    let (mappings, memory) = target.memory();
    let mut counts = vec![target.live_now(&memory)];
    let start = Instant::now();
    let again = || {
        counts.push(target.live_now(&memory));
        Mappings::read(&Root::default(), target.pid()).ok()
    };
    let heap = read_settled(&memory, &mappings, again, 4096).unwrap();
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap();
    counts.push(target.live_now(&memory));
    let sum = |of: fn(&heap::Arena) -> u64| heap.arenas.iter().map(of).sum();
    BusyReading {
        live: heap.live_bytes() - own,
        counts,
        uncertain: heap.uncertain_bytes(),
        unknown: heap.chunks().unknown_bytes,
        drift: sum(|arena| arena.drift_bytes),
        spread: heap.spread_bytes,
        scatter: heap.scatter_bytes,
        fast: sum(|arena| arena.fast_doubt_bytes),
        micros,
    }
}

/// Shares of the own count in percent.
fn shares(readings: &[BusyReading], of: fn(&BusyReading) -> u64) -> Vec<f64> {
    readings.iter().map(|one| of(one) as f64 / one.after() as f64 * 100.0).collect()
}

/// Prints a row of the table. Returns the median error, and the share of readings with a bound that does not cover both counts.
fn row(name: &str, readings: &[BusyReading]) -> (f64, f64) {
    let at = |of: fn(&BusyReading) -> u64, percent: u32| {
        stats::quantile(&shares(readings, of), f64::from(percent) / 100.0).unwrap()
    };
    let uncovered = |of: fn(&BusyReading) -> u64| {
        let more = readings.iter().filter(|one| of(one) > one.uncertain);
        more.count() as f64 / readings.len() as f64
    };
    eprintln!(
        "| {name} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.3} | {:.3} | \
         {:.3} | {:.0} | {:.1} | {:.1} |",
        readings.len(),
        at(BusyReading::error, 50),
        at(BusyReading::error, 95),
        at(BusyReading::error, 100),
        at(BusyReading::moved, 50),
        at(|one| one.uncertain, 50),
        at(|one| one.spread, 50),
        at(|one| one.scatter, 50),
        at(|one| one.unknown, 50),
        at(|one| one.drift, 50),
        at(|one| one.fast, 50),
        readings.iter().map(|one| one.micros as f64).sum::<f64>() / readings.len() as f64 / 1000.0,
        (1.0 - uncovered(BusyReading::error)) * 100.0,
        (1.0 - uncovered(BusyReading::error_of_both)) * 100.0,
    );
    let median = at(BusyReading::error, 50) / 100.0;
    (median, uncovered(BusyReading::error_of_both))
}

/// Load, threads and shape, churn, and the largest median error.
const LOADS: [(&str, &str, &str, f64); 3] = [
    ("mixed, 20 k op/s", "4 mix 600 2", "MIX 20000", 0.01),
    ("mixed, 90 k op/s", "4 mix 600 3", "MIX 90000", 0.03),
    ("small, flat out", "4 frag 256 1", "SMALL 0", 0.01),
];

const HEADER: &str = "| load | readings | error %: median | 95th | largest | moved % | uncertain % \
                      | spread % | scatter % | unknown % | drift % | fast doubt % | ms | covers \
                      after % | covers both % |";

fn table(walks: usize) -> Vec<(f64, f64, f64)> {
    eprintln!("{HEADER}");
    let rows = LOADS.map(|(name, arguments, churn, most)| {
        let (median, uncovered) = row(name, &readings(arguments, churn, walks));
        (median, most, uncovered)
    });
    rows.into()
}

#[test]
#[ignore = "needs a release build: make test-heap"]
fn a_busy_heap_is_near_the_programs_own_count() {
    for (median, most, uncovered) in table(20) {
        assert!(median <= most, "{median} > {most}");
        // Of 20, one more than of many.
        assert!(uncovered <= 0.1, "{uncovered} of the readings are further off than they print");
    }
}

#[test]
#[ignore = "200 readings for each load take minutes"]
fn the_uncertainty_covers_the_error_in_95_of_100_readings() {
    for (median, most, uncovered) in table(200) {
        assert!(median <= most, "{median} > {most}");
        assert!(uncovered <= 0.05, "{uncovered} of the readings are further off than they print");
    }
}

/// A thread may be stopped between malloc and its own count: at most one chunk each is counted by one of both alone.
fn stopped_is_exact(arguments: &str, churn: &str, chunk_bytes_max: u64, stops: usize) {
    let (target, own) = churning(arguments, churn);
    let threads = figure(&target.ready, "threads");
    let (mut exact, mut torn) = (0, 0);
    for _ in 0..stops {
        stop(&target);
        let (_, memory) = target.memory();
        let counted = target.live_now(&memory);
        let first = target.heap().unwrap();
        assert_eq!(Ok(&first), target.heap().as_ref(), "{arguments}");
        signal(&target, "-CONT");
        let live = first.live_bytes() - own;
        exact += usize::from(live == counted);
        // A chunk that is being split or merged at that moment is unknown, not guessed.
        torn = torn.max(first.uncertain_bytes());
        let apart = live.abs_diff(counted);
        let most = threads * chunk_bytes_max + leftovers(&first) + first.uncertain_bytes();
        assert!(apart <= most, "{arguments}: {live}, counted {counted}");
        assert!(!first.has_changed());
        assert!(first.uncertain_bytes() <= threads * chunk_bytes_max);
    }
    eprintln!(
        "{arguments} {churn}: {exact} of {stops} stops exact, at most {torn} bytes uncertain"
    );
}

/// What is left of a heap that was full, and too small to be free: at most 32 bytes, which no list has.
fn leftovers(heap: &Heap) -> u64 {
    let parts: usize = heap.arenas.iter().map(|arena| arena.parts.len()).sum();
    parts as u64 * 32
}

#[test]
fn a_stopped_heap_is_exact_but_for_the_call_that_each_thread_is_in() {
    let stops = if cfg!(debug_assertions) { 10 } else { 100 };
    stopped_is_exact("4 frag 64 1", "SMALL 0", 192, stops);
    stopped_is_exact("4 mix 100 2", "MIX 20000", 640 << 10, stops);
}
