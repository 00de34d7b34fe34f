//! What it costs to look back: CPU time and peak memory of loading a week at 1 Hz, by the minute and screened, and an hour of
//! it; of passing over every sample of fifty host signals of the week.
//!
//! `cargo bench -p memtide-store --bench read [-- DIRECTORY]`; a directory that is given is kept and used again.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod screen;
mod week;

use std::path::{Path, PathBuf};
use std::process::Command;

use store::{Recording, Resolution, RollUpScreen, Selection};
use timeline::{Entity, SignalId};
use units::WallClock;

const STEP: &str = "MEMTIDE_BENCH_STEP";

fn main() {
    if let Ok(step) = std::env::var(STEP) {
        return measure(&step);
    }
    let given = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let temporary = tempfile::tempdir().unwrap();
    let directory = given.map_or_else(|| temporary.path().join("week"), PathBuf::from);
    week::made(&directory);
    let well = directory.with_extension("well");
    week::made_well(&well);
    let bytes = Recording::open(&directory).unwrap().info(false).bytes;
    println!("{} hours at 1 Hz: {bytes}", week::HOURS);
    for step in ["nothing", "week", "screened", "hour", "six hours", "day", "scan"] {
        run(step, &directory);
    }
    println!("twenty stalls of seconds in a week that is well otherwise:");
    for step in ["week", "screened", "hour", "day"] {
        run(step, &well);
    }
}

fn run(step: &str, directory: &Path) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let done = child.env(STEP, step).env("DIRECTORY", directory).status();
    assert!(done.unwrap().success());
}

fn measure(step: &str) {
    let directory = PathBuf::from(std::env::var("DIRECTORY").unwrap());
    let recording = Recording::open(&directory).unwrap();
    if step == "scan" {
        return scan(&recording);
    }
    let (_, end) = recording.span().unwrap();
    let back = |hours: i64| Selection {
        since: Some(WallClock::from_unix_nanos(end.unix_nanos() - hours * 3_600_000_000_000)),
        until: None,
        resolution: Resolution::Auto,
    };
    let before = cpu();
    let loaded = match step {
        "screened" => {
            let screen =
                RollUpScreen { signals: &screen::signals(), could_hold: &mut screen::could_hold };
            recording.load_screened(Selection::default(), screen, &mut |_| ())
        }
        "nothing" => recording.load(back(-1), &mut |_| ()),
        "hour" => recording.load(back(1), &mut |_| ()),
        "six hours" => recording.load(back(6), &mut |_| ()),
        "day" => recording.load(back(24), &mut |_| ()),
        _ => recording.load(Selection::default(), &mut |_| ()),
    };
    let cpu = cpu() - before;
    println!(
        "{step:10} {:6} samples  {:6.0} ms of CPU  {:4} MiB peak",
        loaded.timeline.len(),
        cpu * 1e3,
        peak_kib() / 1024
    );
    if let Some(screened) = loaded.screened {
        println!("           {screened:?}");
    }
    for problem in loaded.problems {
        println!("           {problem}");
    }
}

/// Passes over every sample of fifty busy signals.
fn scan(recording: &Recording) {
    let signals: Vec<SignalId> =
        Entity::Host.signals().filter_map(SignalId::from_index).take(50).collect();
    let before = cpu();
    let (mut samples, mut readings) = (0, 0);
    let problems = recording.scan(Selection::default(), &signals, &mut |part| {
        samples += part.len();
        readings += part.host_runs().map(|(_, runs)| runs.len()).sum::<usize>();
    });
    println!(
        "scan       {samples:6} samples  {:6.0} ms of CPU  {:4} MiB peak  {readings} readings",
        (cpu() - before) * 1e3,
        peak_kib() / 1024
    );
    assert!(problems.is_empty(), "{problems:?}");
}

/// CPU time of this thread so far, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
