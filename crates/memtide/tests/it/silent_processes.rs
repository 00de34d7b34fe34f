//! Processes that keep whoever reads them waiting: their pages come from a userfaultfd late or never, vanish while they are
//! looked at, or move. An answer comes in time, with what could still be read, and the process goes on.

mod faults;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::record::{Running, lacks, skip, status, until};
use crate::support::{json, memtide, stderr, stdout};
use faults::{Layout, Pages, SilentProcess};

/// What an answer may take on a busy machine. The measured worst is printed by the long test.
const SOON: Duration = Duration::from_secs(20);
/// And on one with nothing else to do.
const SOON_ALONE: Duration = Duration::from_secs(5);

/// Letters of the states of a process's threads.
fn states(pid: u32) -> Vec<char> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("State:"))?;
        line.trim_start().chars().next()
    };
    threads.filter_map(|thread| of(thread.ok()?)).collect()
}

fn is_stopped(pid: u32) -> bool {
    states(pid).iter().any(|state| matches!(state, 'T' | 't'))
}

/// Explains a process; returns how long that took.
#[track_caller]
fn explain(pid: u32, options: &[&str]) -> (serde_json::Value, Duration) {
    let began = Instant::now();
    let output = memtide(&[&["explain", &pid.to_string(), "--json"], options].concat());
    let took = began.elapsed();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!is_stopped(pid), "{:?}", states(pid));
    (json(&output), took)
}

fn start(layout: Layout, pages: Pages) -> Option<SilentProcess> {
    match SilentProcess::start(layout, pages) {
        Ok(process) => Some(process),
        Err(why) => {
            if why.starts_with("this kernel") {
                lacks(&why);
            } else {
                skip(&why);
            }
            None
        }
    }
}

#[test]
#[ignore = "other tests start it"]
fn silent_process() {
    faults::main();
}

#[test]
fn pages_that_never_come_are_not_waited_for() {
    let Some(mut process) = start(Layout::Absent, Pages::Never) else {
        return;
    };
    for options in [&[][..], &["--freeze"]] {
        let (report, took) = explain(process.pid(), options);
        assert!(took < SOON, "{took:?}");
        assert!(!report["heap"].is_null(), "{report}");
        assert_eq!(process.asked(), 0);
    }
}

#[test]
fn a_process_that_does_not_answer_is_explained_by_its_mappings() {
    let Some(process) = start(Layout::LikeSwapped, Pages::Never) else {
        return;
    };
    for options in [&[][..], &["--freeze"]] {
        let (report, took) = explain(process.pid(), options);
        assert!(took < SOON, "{took:?}");
        let why = report["heap_not_read"].as_str().unwrap();
        assert!(
            why.starts_with("its memory could not be read within 2.5 s: ")
                && why.contains("userfaultfd"),
            "{why}"
        );
        assert!(report["sizes"]["rss_bytes"].as_u64() > Some(0));
    }
    let output = memtide(&["explain", &process.pid().to_string()]);
    assert!(stdout(&output).contains("userfaultfd"), "{}", stdout(&output));
}

#[test]
fn a_stopped_process_that_serves_its_own_pages_goes_on_and_is_read() {
    let Some(process) = start(Layout::LikeSwapped, Pages::AtOnce) else {
        return;
    };
    // The command first reads it once as it runs, after which all pages are there: so the reading that it stops it for.
    let options = answers::ExplainOptions { freeze: true, ..answers::ExplainOptions::default() };
    let began = Instant::now();
    let report = answers::explain(&probe::Root::default(), process.pid(), options).unwrap();
    let took = began.elapsed();
    assert!(!is_stopped(process.pid()), "{:?}", states(process.pid()));
    let report = serde_json::to_value(&report).unwrap();
    assert!(took < SOON, "{took:?}");
    assert!(!report["heap"].is_null(), "{report}");
    let problems = report["problems"].to_string();
    assert!(problems.contains("it went on before all of it was read"), "{problems}");
    let stopped = report["cost"]["stopped_s"].as_f64().unwrap();
    assert!(stopped < SOON.as_secs_f64() / 2.0, "{stopped}");
}

/// memtide that explains a process, and is killed midway.
struct Killed(Child);

#[test]
fn a_stopped_process_goes_on_when_memtide_is_killed() {
    let Some(process) = start(Layout::LikeSwapped, Pages::Never) else {
        return;
    };
    let pid = process.pid();
    for _ in 0..5 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memtide"));
        let command = command.args(["explain", &pid.to_string(), "--freeze"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut killed = Killed(child.unwrap());
        let began = Instant::now();
        while !is_stopped(pid) && began.elapsed() < SOON {
            std::thread::yield_now();
        }
        killed.0.kill().unwrap();
        killed.0.wait().unwrap();
        until("the process goes on", || !is_stopped(pid));
        assert!(began.elapsed() < SOON);
    }
}

#[test]
fn one_process_that_does_not_answer_costs_the_recorder_nobody_elses_heap() {
    let Some(silent) = start(Layout::LikeSwapped, Pages::Never) else {
        return;
    };
    let Some(other) = start(Layout::Absent, Pages::Never) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("rec");
    // The silent one has the lower PID, and is read first.
    let [first, second] = [silent.pid(), other.pid()].map(|pid| pid.to_string());
    let names = ["--explain", &first, "--explain", &second];
    let options = ["--processes", "1s", "--explain-every", "1s"];
    let running = Running::started(&directory, &[options, names].concat());
    let heaps = || status(&directory)["recorder"]["heaps"].clone();
    until("a round", || heaps()["rounds"].as_u64() >= Some(1));
    let read = heaps();
    let taken = || status(&directory)["recorder"]["samples"]["taken"].as_u64();
    let before = taken();
    until("samples go on", || taken() > before);
    running.end();
    assert_eq!(read["processes"], 1, "{read}");
    let problem = read["problems"].to_string();
    for part in [&first, "could not be read within 3 s", "userfaultfd"] {
        assert!(problem.contains(part), "{problem}");
    }
}

/// Reads a process of a kind, stopped or not; returns how long the answer took.
fn read_once((layout, pages): (Layout, Pages), is_frozen: bool) -> Option<Duration> {
    let process = start(layout, pages)?;
    let options: &[&str] = if is_frozen { &["--freeze"] } else { &[] };
    let (_, took) = explain(process.pid(), options);
    Some(took)
}

#[test]
fn no_process_keeps_its_reader_or_stays_stopped() {
    // Their readers wait, most of the time.
    std::thread::scope(|scope| {
        for (number, kind) in faults::kinds().into_iter().enumerate() {
            scope.spawn(move || {
                let took = read_once(kind, number % 2 == 0);
                assert!(took.is_none_or(|took| took < SOON), "{kind:?}: {took:?}");
            });
        }
    });
}

/// On a machine that does nothing else: `cargo test -p memtide --release --test it -- --ignored --nocapture two_hundred_readings`.
#[test]
#[ignore = "minutes, on an idle machine"]
#[allow(clippy::print_stdout)] // the measurement
fn two_hundred_readings_take_five_seconds_each_at_most() {
    let kinds = faults::kinds();
    let mut worst = Duration::ZERO;
    for reading in 0..200 {
        let kind = kinds[reading / 2 % kinds.len()];
        let Some(took) = read_once(kind, reading % 2 == 0) else {
            return;
        };
        println!("{reading}: {kind:?} {took:.2?}");
        worst = worst.max(took);
    }
    println!("the longest of 200 readings took {worst:.2?}");
    assert!(worst < SOON_ALONE, "{worst:?}");
}
