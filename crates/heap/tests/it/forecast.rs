//! Fewer arenas: what the model says against what a restart with `MALLOC_ARENA_MAX=2` really saves, of programs with
//! threads that use the heap in different ways.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::target::{compile_source, memory_of};

const WORKLOADS: [&str; 9] =
    ["drift", "stagger", "handover", "burst", "buffers", "tree", "ring", "visits", "tables"];
/// Of `scripts/heap-services.sh`, with the program that each needs.
const SERVICES: [(&str, &str); 2] = [("ruby-jobs", "ruby"), ("mariadb", "mariadbd")];
/// Threads do not meet in the same order twice.
const REPEATS: u64 = 3;
const ARENAS_MAX: u64 = 2;

/// A program that has done its work and is parked; it ends with its stdin.
struct Parked {
    child: Child,
    pid: u32,
    /// Kept open: a service that prints more must not end by SIGPIPE.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Parked {
    fn start(command: &mut Command, arenas_max: Option<u64>) -> Self {
        command.env_remove("MALLOC_ARENA_MAX");
        if let Some(most) = arenas_max {
            command.env("MALLOC_ARENA_MAX", most.to_string());
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = output.next().unwrap().unwrap();
        assert!(ready.starts_with("ready "), "{ready}");
        let pid = ready.split(' ').find_map(|word| word.parse().ok());
        Self { pid: pid.unwrap(), child, _output: output }
    }

    fn anonymous_bytes(&self) -> f64 {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)).unwrap();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<f64>().unwrap() * 1024.0
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Whether the saving is in the range that was forecast, by the medians of some runs.
fn is_inside(name: &str, command: &dyn Fn(u64) -> Command) -> bool {
    let (mut before, mut after, mut free) = (Vec::new(), Vec::new(), Vec::new());
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for seed in 1..=REPEATS {
        let many = Parked::start(&mut command(seed), None);
        before.push(many.anonymous_bytes());
        let (mappings, memory) = memory_of(many.pid);
        let heap = heap::read(&memory, &mappings, 4096).unwrap();
        free.push(heap.pages().free_resident as f64);
        let forecast = heap.with_arenas(ARENAS_MAX);
        low.push(forecast.map_or(0.0, |one| one.low_bytes as f64));
        high.push(forecast.map_or(0.0, |one| one.high_bytes as f64));
        drop(many);
        let few = Parked::start(&mut command(seed), Some(ARENAS_MAX));
        after.push(few.anonymous_bytes());
    }
    let median = |of: &[f64]| stats::median(of).unwrap();
    let (low, high) = (median(&low), median(&high));
    let saved = median(&before) - median(&after);
    let is_inside = (low..=high).contains(&saved);
    let [before, free, low, high, saved] =
        [median(&before), median(&free), low, high, saved].map(|bytes| bytes / f64::from(1 << 20));
    eprintln!(
        "{name:10} anonymous {before:6.1} MiB, {free:6.1} free, saved {saved:6.1}, forecast \
         {low:5.1} to {high:5.1}{}",
        if is_inside { "" } else { "  OUTSIDE" }
    );
    is_inside
}

fn services() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/heap-services.sh");
    let is_there = |program: &str| {
        let shown = Command::new(program).arg("--version").output().is_ok();
        if !shown {
            eprintln!("skipped: {program} is not installed");
        }
        shown
    };
    let there = SERVICES.into_iter().filter(move |(_, program)| is_there(program));
    there.map(move |(name, _)| (name, script.clone()))
}

#[test]
#[ignore = "two minutes; make test-heap runs it"]
fn fewer_arenas_save_what_the_model_says_in_four_of_five_programs() {
    let program = compile_source("cc", "workloads.c", &["-lm"], "heap-workloads");
    let of_workload = |name: &str| {
        is_inside(name, &|seed| {
            let mut command = Command::new(&program);
            command.args([name, &seed.to_string()]);
            command
        })
    };
    let mut inside: Vec<bool> = WORKLOADS.iter().map(|name| of_workload(name)).collect();
    inside.extend(services().map(|(name, script)| {
        is_inside(name, &|_| {
            let mut command = Command::new(&script);
            command.arg(name);
            command
        })
    }));
    let count = inside.iter().filter(|inside| **inside).count();
    assert!(count * 5 >= inside.len() * 4, "{count} of {}", inside.len());
}
