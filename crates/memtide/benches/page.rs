//! What a page costs: size, CPU time and peak memory of `memtide report` of a week at 1 Hz, of a day and of an hour of it.
//!
//! `cargo bench -p memtide --bench page [-- DIRECTORY]`; a directory that is given is kept and used again. CPU time is that
//! of all threads in user and system mode; the least of three runs counts, as others may use the machine meanwhile. Fails
//! where the week's page costs more than [`CPU_MAX`], [`MEMORY_MAX`] or [`BYTES_MAX`] allow.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../../store/benches/week/mod.rs"]
mod week;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Seconds of CPU that the page of a week may take.
const CPU_MAX: f64 = 3.0;
/// KiB in memory that it may take at once.
const MEMORY_MAX: u64 = 512 << 10;
/// Bytes that the page may have.
const BYTES_MAX: u64 = 3 << 20;
const RUNS: usize = 3;

/// What one page cost.
struct Cost {
    bytes: u64,
    cpu: f64,
    peak_kib: u64,
}

fn main() {
    let given = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let temporary = tempfile::tempdir().unwrap();
    let directory = given.map_or_else(|| temporary.path().join("week"), PathBuf::from);
    week::made(&directory);
    let page = temporary.path().join("page.html");
    for (name, since) in
        [("hour", Some("+167h")), ("six hours", Some("+162h")), ("day", Some("+144h"))]
    {
        tell(name, &measured(since, &directory, &page));
    }
    let week = measured(None, &directory, &page);
    tell("week", &week);
    println!(
        "bound      {:6} KiB  {CPU_MAX:5.2} s of CPU  {:4} MiB peak",
        BYTES_MAX / 1024,
        MEMORY_MAX / 1024
    );
    assert!(week.cpu <= CPU_MAX, "too slow");
    assert!(week.peak_kib <= MEMORY_MAX, "too much memory");
    assert!(week.bytes <= BYTES_MAX, "too large");
}

fn tell(name: &str, cost: &Cost) {
    println!(
        "{name:10} {:6} KiB  {:5.2} s of CPU  {:4} MiB peak",
        cost.bytes / 1024,
        cost.cpu,
        cost.peak_kib / 1024
    );
}

/// The cheapest of a few runs.
fn measured(since: Option<&str>, directory: &Path, page: &Path) -> Cost {
    let runs = (0..RUNS).map(|_| measure(since, directory, page));
    runs.min_by(|a, b| a.cpu.total_cmp(&b.cpu)).unwrap()
}

fn measure(since: Option<&str>, directory: &Path, page: &Path) -> Cost {
    let before = probe::children_cpu();
    let mut command = Command::new(env!("CARGO_BIN_EXE_memtide"));
    command.arg("report").arg(directory).arg("-o").arg(page);
    command.args(since.map(|since| format!("--since={since}")));
    let mut child = command.arg("--force").stderr(Stdio::null()).spawn().unwrap();
    let peak_kib = peak_kib(&mut child);
    let cpu = (probe::children_cpu() - before).as_secs_f64();
    Cost { bytes: std::fs::metadata(page).unwrap().len(), cpu, peak_kib }
}

/// The most that a child ever had in memory, looked at until it ends.
fn peak_kib(child: &mut Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM"));
        let size = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        peak = size.unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
