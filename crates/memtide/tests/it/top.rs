//! `memtide top`: frames as text, and the view on a terminal with every key.

use std::cell::Cell;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::has_machine;
use crate::support::{folded, json, memtide, root, stderr, stdout};
use crate::terminal::{Terminal, end_of, signal, wait_for};

const DIRTY: &str = "dirty-throttle--6.12-512m-8mbps";
const STARVED: &str = "cgroup-cache-starved--6.12-80m";

fn capture(case: &str) -> String {
    root().join(format!("corpus/captures/{case}/capture.jsonl.gz")).display().to_string()
}

fn once(case: &str, more: &[&str]) -> String {
    let file = capture(case);
    let output = memtide(&[&["top", "--once", &file], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn a_frame_says_what_is_wrong_and_proves_it() {
    insta::assert_snapshot!(once(DIRTY, &[]));
}

#[test]
fn units_and_processes_of_a_frame() {
    insta::assert_snapshot!(once(STARVED, &["--panel", "units"]));
    insta::assert_snapshot!(once(STARVED, &["--panel", "processes"]));
}

/// The verdict, its findings and the tree are those of `check` and `where`.
#[test]
fn a_frame_as_data_holds_the_answers_of_check_and_where() {
    let file = capture(STARVED);
    let frame = json(&memtide(&["top", "--json", &file]));
    let place = json(&memtide(&["where", "--json", &file]));
    assert_eq!(frame["where"]["accounting"], place["accounting"]);
    let findings = frame["check"]["findings"].as_array().unwrap();
    assert_eq!(findings[0]["id"], "cgroup-cache-starved");
    let sick = findings[0]["scope"]["key"].as_str().unwrap();
    let units = frame["units"].as_array().unwrap();
    let unit = units.iter().find(|unit| unit["path"] == sick).unwrap();
    assert!(unit["refault_bytes_per_second"].as_f64() > Some(1e6), "{unit}");
    assert!(unit["of_limit"].as_f64() > Some(0.9), "{unit}");
}

#[test]
fn without_a_terminal_there_is_a_frame_to_print() {
    let output = memtide(&["top"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("memtide top --once"), "{}", stderr(&output));
    let live = memtide(&["top", "--once", "--panel", "where", "--no-history"]);
    assert!(folded(&live).contains("MemTotal"), "{}", stdout(&live));
}

/// The view on a terminal of 80 × 24.
struct View {
    terminal: Terminal,
    program: Child,
    size: Cell<(u16, u16)>,
}

impl View {
    fn open(arguments: &[&str]) -> Self {
        Self::of(&[&["top"], arguments].concat(), &std::env::temp_dir())
    }

    /// What a command of memtide shows that runs in this directory.
    fn of(command: &[&str], directory: &Path) -> Self {
        let terminal = Terminal::of_size(80, 24);
        let program = terminal.run(command, |command| {
            command
                .env("TERM", "xterm-256color")
                .env("LC_ALL", "C.UTF-8")
                .env("TZ", "UTC")
                .env_remove("NO_COLOR")
                .current_dir(directory)
        });
        Self { terminal, program, size: Cell::new((80, 24)) }
    }

    fn picture(&self) -> String {
        let (columns, lines) = self.size.get();
        self.terminal.picture(columns, lines)
    }

    /// Presses keys and waits for this text, which was not there before.
    fn press(&self, keys: &str, expected: &str) -> String {
        self.terminal.press(keys);
        self.wait(expected)
    }

    fn wait(&self, expected: &str) -> String {
        wait_for(|| self.picture().contains(expected));
        let picture = self.picture();
        assert!(picture.contains(expected), "no `{expected}` in\n{picture}");
        picture
    }

    fn end(mut self, keys: &str) {
        self.terminal.press(keys);
        assert_eq!(end_of(&mut self.program).code(), Some(0));
    }
}

#[test]
fn every_key_does_what_the_help_says() {
    let view = View::open(&[&capture(STARVED)]);
    view.wait("replay");
    view.wait("cgroup-cache-starved");
    // Panels, by number and in turn.
    view.press("2", "OF LIMIT");
    view.press("3", "MAJFLT/S");
    view.press("4", "MemTotal");
    view.press("\t", "evidence");
    view.press("\x1b[Z", "MemTotal");
    // A page is scrolled, by a line, a page, to its end and back.
    view.press("G", "Not to be added up");
    let top = view.press("g", "MemTotal");
    view.terminal.press("j");
    wait_for(|| view.picture() != top);
    assert_ne!(view.picture(), top);
    view.terminal.press("k");
    wait_for(|| view.picture() == top);
    assert_eq!(view.picture(), top);
    view.press("\x1b[6~", "smaller caches");
    view.press("\x1b[5~", "MemTotal");
    // A finding is opened and closed.
    view.press("1", "critical");
    view.press("\r", "Esc back");
    view.press("\x1b", "open");
    // The filter is typed, kept, and cleared.
    view.press("2/", "filter:");
    view.press("no-such", "filter: no-such");
    view.press("\r", "no name has this in it");
    view.press("\x1b", "OF LIMIT");
    // A unit is opened: its limits.
    view.press("\r", "limits");
    view.press("\x7f", "OF LIMIT");
    // A process is opened: what to type next.
    view.press("3", "MAJFLT/S");
    view.press("\r", "memtide explain");
    view.press("q", "MAJFLT/S");
    // Time: to the first sample, on, to the last, to incidents.
    let last = view.picture();
    let moment = |picture: &str| {
        picture.lines().next().unwrap().split_whitespace().last().unwrap().to_owned()
    };
    let end = moment(&last);
    view.press("<", " 0:00");
    view.press("\x1b[C", " 0:01");
    view.press("t", " 0:02");
    view.press("\x1b[DT", " 0:00");
    view.press("0", &end);
    view.press("N", " 0:14");
    view.press("n", "no incident after this moment");
    view.press("{", " 0:00");
    view.press("}", &end);
    view.press("[", " 0:00");
    view.press("]", &end);
    // Help, from a letter, and out of it.
    view.press("?", "to the next incident");
    view.press("\x1b", "MAJFLT/S");
    view.end("q");
}

#[test]
fn rows_are_sorted_by_the_columns_that_are_shown() {
    let view = View::open(&["--panel", "units", &capture(STARVED)]);
    let by_memory = view.wait("OF LIMIT");
    let first = |picture: &str| {
        let heading = picture.lines().position(|line| line.contains("OF LIMIT")).unwrap();
        picture.lines().nth(heading + 1).unwrap().to_owned()
    };
    // The sick one is not the largest; it has a mark, and comes first by its refaults.
    view.press("s", "OF LIMIT");
    for _ in 0..8 {
        if first(&view.picture()).contains('▲') {
            break;
        }
        view.press("s", "OF LIMIT");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(first(&view.picture()).contains('▲'), "{}", view.picture());
    view.press("M", &first(&by_memory));
    view.end("\x03");
}

#[test]
fn units_below_another_unit_are_folded() {
    let directory = tempfile::tempdir().unwrap();
    let group = |name: &str, file: &str, text: &str| {
        (format!("/sys/fs/cgroup/{name}/{file}"), format!("{text}\n"))
    };
    let mut sample =
        vec![("/proc/meminfo".to_owned(), "MemTotal: 1000000 kB\nMemFree: 900000 kB\n".to_owned())];
    for (name, used) in [("outer", "80000000"), ("outer/in", "60000000"), ("other", "9000000")] {
        sample.push(group(name, "memory.current", used));
        sample.push(group(name, "memory.max", "100000000"));
    }
    let sample: Vec<_> = sample.iter().map(|(path, text)| (&**path, text.clone())).collect();
    let file = crate::support::capture(&[sample.clone(), sample]);
    let file = crate::support::file(&directory, "nested.jsonl", file);
    let view = View::open(&["--panel", "units", &file]);
    view.wait("/outer/in");
    let folded = view.press("f", "1 below");
    assert!(folded.contains("/other") && !folded.contains("/outer/in"), "{folded}");
    view.press("f", "/outer/in");
    view.end("q");
}

/// The view is closed by a key, and the run goes on.
#[test]
fn a_scenario_is_watched_while_it_is_played() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run = ["lab", "run", "container-starved", "--arm", "starved", "--watch"];
    let mut view = View::of(&run, directory.path());
    view.wait("arm starved");
    let sick = view.wait("re-reads its files");
    assert!(sick.contains("MiB available"), "{sick}");
    view.press("q", "the run goes on");
    end_of(&mut view.program);
    let answer = view.picture();
    assert!(answer.contains("cgroup-cache-starved"), "{answer}");
    assert!(directory.path().join("lab-container-starved/report.html").is_file());
}

#[test]
fn a_live_view_goes_on_freezes_goes_back_and_is_saved() {
    let view = View::open(&["--no-history", "--every", "200ms"]);
    view.wait("live");
    // Enough to go back in.
    let began = Instant::now();
    wait_for(|| began.elapsed() > Duration::from_secs(3));
    let frozen = view.press(" ", "frozen");
    std::thread::sleep(Duration::from_millis(1_500));
    let moment = |picture: &str| picture.lines().next().unwrap().to_owned();
    assert_eq!(moment(&view.picture()), moment(&frozen));
    view.press(" ", "live");
    view.press("\x1b[D", "earlier");
    let earlier = moment(&view.picture());
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(moment(&view.picture()), earlier);
    let saved = view.press("w", "saved ");
    let name = saved.lines().last().unwrap().split_whitespace().last().unwrap();
    let path = std::env::temp_dir().join(name);
    let report = json(&memtide(&["check", "--json", path.to_str().unwrap()]));
    assert!(report["source"]["samples"].as_u64() > Some(5), "{}", report["source"]);
    std::fs::remove_file(path).unwrap();
    view.press("0", "live");
    view.end("q");
}

#[test]
fn the_terminal_is_as_before_whatever_ends_the_view() {
    for how in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let terminal = Terminal::of_size(80, 24);
        let before = terminal.setting();
        let mut program = terminal.run(&["top", "--no-history"], |command| command);
        wait_for(|| terminal.shown().contains("live"));
        assert_ne!(terminal.setting(), before, "{how:?}");
        signal(&program, how);
        assert_eq!(end_of(&mut program).code(), Some(0), "{how:?}");
        assert_eq!(terminal.setting(), before, "{how:?}");
        // The alternate screen is left, and the cursor is shown.
        let shown = terminal.shown();
        assert!(shown.contains("\x1b[?1049l") && shown.ends_with("\x1b[?25h"), "{how:?}");
    }
}

#[test]
fn a_terminal_of_any_size_has_a_frame() {
    let view = View::open(&[&capture(DIRTY)]);
    view.wait("dirty");
    for (columns, lines, expected) in
        [(20, 5, "needs"), (200, 60, "page cache"), (80, 12, "replay"), (40, 24, "replay")]
    {
        view.terminal.resize(columns, lines);
        signal(&view.program, Signal::WINCH);
        view.size.set((columns, lines));
        view.terminal.forget();
        view.wait(expected);
    }
    view.end("q");
}

/// A name can neither move the cursor nor bring a colour.
#[test]
fn names_of_hosts_are_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let meminfo = "MemTotal: 1000000 kB\nMemFree: 400000 kB\nMemAvailable: 500000 kB\n";
    let stat = "7 (\u{1b}[2Jevil\u{7}) S 1 7 7 0 -1 0 9 0 0 0 1 1 0 0 20 0 1 0 100 90000000 2000";
    let samples =
        vec![vec![("/proc/meminfo", meminfo.to_owned()), ("/proc/7/stat", stat.to_owned())]; 2];
    let file = crate::support::file(&directory, "evil.jsonl", crate::support::capture(&samples));
    for panel in ["findings", "processes", "where", "units"] {
        let output = memtide(&["top", "--once", "--panel", panel, &file]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(!stdout(&output).contains('\u{1b}'), "{}", stdout(&output));
    }
}
