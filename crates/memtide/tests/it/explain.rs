//! `memtide explain` on living processes: one of known content, bad input, strangers, and the programs of
//! `scripts/heap-services.sh`.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, geteuid, waitid};
use serde_json::Value;

use crate::support::{folded, json, memtide, root, stderr, stdout};

/// A process that is ready; it ends with its stdin.
struct Ready {
    child: Child,
    pid: u32,
    /// Kept open: what it prints later has a reader.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Ready {
    /// Starts a program that prints a line with `ready` when it is. A number in it is the PID of the process that counts.
    fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = output.by_ref().map_while(Result::ok);
        let ready = lines.find(|line| line.contains("ready"));
        let ready = ready.expect("it did not start");
        let pid = ready.split(' ').find_map(|word| word.parse().ok());
        Self { pid: pid.unwrap_or(child.id()), child, _output: output }
    }

    fn explain(&self, arguments: &[&str]) -> Output {
        let pid = self.pid.to_string();
        memtide(&[&["explain", &pid], arguments].concat())
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Pieces of the heap of known content, each with a header of malloc's; every fourth stays.
const PIECES: usize = 100_000;
const PIECE: usize = 400;
const CHILD: &str = "MEMTIDE_TEST_HEAP";

/// Not a test: the process of known content. It is this program, started again.
#[test]
#[ignore = "other tests start it"]
fn heap_of_known_content() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut pieces: Vec<Option<Box<[u8; PIECE]>>> =
        (0..PIECES).map(|_| Some(Box::new([1; PIECE]))).collect();
    for (number, piece) in pieces.iter_mut().enumerate() {
        if number % 4 > 0 {
            *piece = None;
        }
    }
    let mut out = std::io::stdout();
    writeln!(out, "\nready").unwrap();
    out.flush().unwrap();
    std::io::stdin().lines().for_each(drop);
    std::hint::black_box(&pieces);
}

fn known_heap() -> Ready {
    let program = std::env::current_exe().unwrap();
    let child = ["--exact", "explain::heap_of_known_content"];
    Ready::start(
        Command::new(program).args(child).args(["--ignored", "--nocapture"]).env(CHILD, "1"),
    )
}

fn leaves(part: &Value, size: &str) -> f64 {
    match part["parts"].as_array() {
        Some(parts) => parts.iter().map(|part| leaves(part, size)).sum(),
        None => part[size].as_f64().unwrap(),
    }
}

/// Checks that the leaves are what the kernel counts, within two percent: the process is idle, but not stopped.
fn assert_adds_up(pid: u32, report: &Value) {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    for (name, size) in [("Rss:", "rss_bytes"), ("Pss:", "pss_bytes")] {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        let kernel = kib.parse::<f64>().unwrap() * 1024.0;
        let own = leaves(&report["memory"], size);
        // PSS falls when another process begins to map the same libraries.
        let most = if name == "Rss:" { 0.02 } else { 0.05 };
        assert!((own / kernel - 1.0).abs() < most, "{name} {own} of {kernel}");
        let whole = report["sizes"][size].as_f64().unwrap();
        assert!((own - whole).abs() < 1.0, "{name} {own} of {whole}");
    }
}

#[test]
fn a_heap_of_known_content_is_explained() {
    let process = known_heap();
    let output = process.explain(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    assert_adds_up(process.pid, &report);
    assert_eq!(report["verdict"], "fragmented");
    let total = &report["heap"]["total"];
    let bytes = |name: &str| total[name].as_f64().unwrap();
    // A chunk is the piece and a header of 8 bytes, in units of 16. The harness has some memory of its own.
    let chunk = (PIECE + 8).div_ceil(16) as f64 * 16.0;
    let kept = chunk * PIECES.div_ceil(4) as f64;
    let live = bytes("live_bytes");
    assert!((live / kept - 1.0).abs() < 0.05, "{live} of {kept}");
    let freed = 3.0 * kept;
    let free = bytes("free_resident_bytes") + bytes("cached_bytes");
    assert!((free / freed - 1.0).abs() < 0.05, "{free} of {freed}");
    // Every page has a piece that stays.
    assert!(bytes("pinned_bytes") > 0.9 * freed);
    let glibc = &report["allocators"][0];
    assert_eq!(glibc["name"], "ptmalloc (glibc)");
    assert!(glibc["version"].as_str().unwrap().starts_with("2."));
}

#[test]
fn of_several_allocators_that_to_which_calls_go_is_named() {
    const LIBRARY: &str = "libjemalloc.so.2";
    if !has_library(LIBRARY) {
        return;
    }
    let mut cat = Command::new("sh");
    cat.args(["-c", "echo ready $$; read line"]);
    let plain = Ready::start(&mut cat);
    let report = json(&plain.explain(&["--json"]));
    assert_eq!(report["malloc_calls"], Value::Null, "one malloc alone is there");
    assert_eq!(report["process"]["ignores_variables"], false);
    let process = Ready::start(cat.env("LD_PRELOAD", LIBRARY));
    let report = json(&process.explain(&["--json"]));
    let calls = report["malloc_calls"].as_array().unwrap();
    assert_eq!((calls.len(), calls[0]["name"].as_str()), (1, Some("jemalloc")), "{calls:?}");
    let text = folded(&process.explain(&[]));
    let expected = format!("go to jemalloc ({LIBRARY})");
    assert!(text.contains("calls of malloc from") && text.contains(&expected), "{text}");
}

/// Whether a library is there; where tests must not be skipped, it has to be.
fn has_library(soname: &str) -> bool {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    let is_there = folders.iter().any(|folder| Path::new(folder).join(soname).exists());
    let why = format!("{soname} is missing: sh scripts/setup.sh test");
    assert!(is_there || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}");
    #[allow(clippy::print_stderr)] // a skipped test says why
    if !is_there {
        eprintln!("skipped: {why}");
    }
    is_there
}

#[test]
fn the_answer_fits_the_screen_and_says_what_to_do() {
    let process = known_heap();
    let options = answers::ExplainOptions::default();
    let report = answers::explain(&probe::Root::default(), process.pid, options).unwrap();
    for columns in [40, 80, 120] {
        for detail in [report::text::Detail::Brief, report::text::Detail::All] {
            let mut screen = report::Screen::of_width(columns);
            screen.detail = detail;
            let text = report::text::explain(&report, &screen);
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
            assert!(text.contains("FRAGMENTED"), "{text}");
        }
    }
    let text = folded(&process.explain(&[]));
    for part in ["malloc_trim would return next to nothing", "live neighbours", "Sizes:", "Cost:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A program in Python that does something with libc and then waits.
fn python(text: &str) -> Ready {
    let text = format!(
        "import ctypes, mmap, sys\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n\
         {text}\nprint('ready', flush=True)\nsys.stdin.read()"
    );
    Ready::start(Command::new("/usr/bin/env").args(["python3", "-c", &text]))
}

/// As numpy does with large arrays: advice for the inner part of a chunk makes mappings of it, of which only the first has
/// malloc's header.
#[test]
fn a_large_chunk_that_advice_splits_is_mallocs() {
    let process = python(
        "size = 64 << 20\nat = libc.malloc(ctypes.c_size_t(size))\nlibc.memset(ctypes.c_void_p(at), 1, ctypes.c_size_t(size))\n\
         inner = (at + (4 << 20)) & ~4095\nlibc.madvise(ctypes.c_void_p(inner), ctypes.c_size_t(32 << 20), 16)",
    );
    let report = json(&process.explain(&["--json"]));
    assert_adds_up(process.pid, &report);
    assert_eq!(report["verdict"], "live", "{}", report["headline"]);
    let large = report["heap"]["mmapped_resident_bytes"].as_f64().unwrap();
    assert!(large >= f64::from(64 << 20), "{large}");
    let text = folded(&process.explain(&[]));
    assert!(text.contains("LIVE DATA") && text.contains("arrays"), "{text}");
}

#[test]
fn shared_memory_that_is_most_of_a_process_gives_the_first_words() {
    let process =
        python("m = mmap.mmap(-1, 96 << 20)\nfor i in range(0, 96 << 20, 4096): m[i] = 1");
    let report = json(&process.explain(&["--json"]));
    assert_eq!(report["verdict"], "other-owner");
    assert_eq!(report["verdict_text"], "anonymous shared memory");
}

#[test]
fn a_program_of_several_processes_is_summed_up_with_its_name() {
    let name = "memtide-sum";
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut processes: Vec<Child> =
        (0..3).map(|_| Command::new(&program).arg("60").spawn().unwrap()).collect();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let report = json(&memtide(&["explain", name, "--json"]));
    let text = folded(&memtide(&["explain", name]));
    let near = refused(&["memtide-summ"]);
    for process in &mut processes {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    assert_eq!(report["program"]["processes"], 3);
    let size = |name: &str| report["program"][name].as_f64().unwrap();
    assert!(size("pss_bytes") < size("rss_bytes"), "{}", report["program"]);
    assert!(text.contains("memtide-sum: 3 processes with"), "{text}");
    assert!(near.contains("running are memtide-sum"), "{near}");
    assert!(near.contains("help: memtide explain memtide-sum"), "{near}");
}

#[test]
fn a_stop_that_makes_nothing_more_exact_is_not_made() {
    let process = known_heap();
    let output = process.explain(&["--freeze", "--json"]);
    assert!(
        stderr(&output).contains("is not stopped: its heap did not change"),
        "{}",
        stderr(&output)
    );
    assert_eq!(json(&output)["cost"]["stopped_s"], Value::Null);
}

/// Exit code and message of `memtide explain`.
fn refused(arguments: &[&str]) -> String {
    let output = memtide(&[&["explain"], arguments].concat());
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{arguments:?}: {message}");
    assert!(!message.contains("panicked"), "{message}");
    assert!(!message.contains('\u{1b}'), "{message}");
    assert_eq!(stdout(&output), "");
    message
}

#[test]
fn a_process_that_is_not_there_is_named() {
    assert!(refused(&["1073741823"]).contains("there is no process 1073741823"));
    let message = refused(&["no-such-program-here"]);
    assert!(message.contains("no process is named `no-such-program-here`"));
    assert!(message.contains("help: "), "{message}");
    let message = refused(&["--service", "no-such-unit.service"]);
    assert!(message.contains("`no-such-unit.service`"), "{message}");
    assert!(message.contains("help: "), "{message}");
    refused(&["\u{1b}[31mred"]);
    refused(&["--service", "\u{1b}[31mred"]);
    refused(&["18446744073709551616"]);
    refused(&["-1"]);
    refused(&[""]);
    refused(&[]);
}

/// Waits for the end of a process without taking note of it: it stays a zombie.
fn ended(child: &Child) {
    let pid = Pid::from_child(child);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), options).unwrap();
}

#[test]
fn what_has_no_memory_is_refused_with_the_reason() {
    let mut child = Command::new("true").spawn().unwrap();
    ended(&child);
    let message = refused(&[&child.id().to_string()]);
    assert!(message.contains("(true) has ended"), "{message}");
    child.wait().unwrap();
    let stat = std::fs::read_to_string("/proc/2/status").unwrap_or_default();
    if stat.contains("Name:\tkthreadd") {
        let message = refused(&["2"]);
        assert!(message.contains("(kthreadd) is a kernel thread"), "{message}");
    }
}

/// A shell that gives itself this name, says `ready`, and does the rest.
fn named(name: &str, rest: &str) -> Ready {
    let script = format!("printf '{name}' > /proc/$$/comm; echo ready; {rest}");
    Ready::start(Command::new("sh").args(["-c", &script]))
}

#[test]
fn a_hostile_name_reaches_no_terminal() {
    let shell = named(r"\033[31mred\007", "read line");
    let text = stdout(&shell.explain(&["--full"]));
    assert!(text.contains("[31mred"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    let report = json(&shell.explain(&["--json"]));
    assert_eq!(report["process"]["name"], "\u{1b}[31mred\u{7}");
    assert_eq!(report["verdict"], "small");
    let zombie = named(r"\033[31mgone", "exit");
    ended(&zombie.child);
    let message = refused(&[&zombie.pid.to_string()]);
    assert!(message.contains("has ended"), "{message}");
}

#[test]
fn another_users_process_may_not_be_read_and_the_answer_says_by_whom() {
    if !geteuid().is_root()
        || !["/usr/bin/setpriv", "/bin/setpriv"]
            .iter()
            .any(|path| std::fs::exists(path).is_ok_and(|is| is))
    {
        #[allow(clippy::print_stderr)] // a skipped test says why
        {
            eprintln!("skipped: becoming another user needs root and setpriv (util-linux)");
        }
        return;
    }
    let cat = named("rootscat", "read line");
    // The build's own place may be closed to others.
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(directory.path());
    let program = directory.path().join("memtide");
    std::fs::copy(env!("CARGO_BIN_EXE_memtide"), &program).unwrap();
    open(&program);
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["explain", &cat.pid.to_string()])
        .output()
        .unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{message}");
    let says = format!("the memory of process {} may not be read", cat.pid);
    assert!(message.contains(&says), "{message}");
    assert!(message.contains("help: run memtide as root"), "{message}");
}

/// A program of `scripts/heap-services.sh`, and what is true of it.
struct Expected {
    name: &'static str,
    variable: Option<(&'static str, &'static str)>,
    verdict: &'static str,
    /// The runtime or allocator that has the most.
    owner: &'static str,
    /// The allocators that are recognised, each with its version.
    allocators: &'static [&'static str],
}

const fn expected(
    name: &'static str,
    verdict: &'static str,
    owner: &'static str,
    allocators: &'static [&'static str],
) -> Expected {
    Expected { name, variable: None, verdict, owner, allocators }
}

const GLIBC: &str = "ptmalloc (glibc)";

fn all_expected() -> Vec<Expected> {
    let with = |mut one: Expected, name, value| {
        one.variable = Some((name, value));
        one
    };
    let ruby = "ruby-jobs";
    vec![
        expected(ruby, "fragmented", "ptmalloc", &[GLIBC, "Ruby"]),
        with(expected(ruby, "live", "ptmalloc", &[GLIBC, "Ruby"]), "MALLOC_ARENA_MAX", "2"),
        with(
            expected(ruby, "other-owner", "jemalloc", &[GLIBC, "jemalloc", "Ruby"]),
            "LD_PRELOAD",
            "libjemalloc.so.2",
        ),
        expected("mariadb", "fragmented", "ptmalloc", &[GLIBC]),
        expected("redis", "other-owner", "jemalloc", &[GLIBC, "jemalloc"]),
        expected("python", "other-owner", "cpython", &[GLIBC, "CPython"]),
        expected("go", "other-owner", "go", &["Go runtime"]),
        expected("jvm", "other-owner", "jvm", &[GLIBC, "Java virtual machine"]),
        expected("node", "other-owner", "v8", &[GLIBC, "V8"]),
    ]
}

#[test]
#[ignore = "starts seven services, which takes minutes; make test-heap runs it"]
fn real_programs_are_explained_by_their_owners() {
    for one in all_expected() {
        let mut command = Command::new(root().join("scripts/heap-services.sh"));
        command.arg(one.name).env_remove("MALLOC_ARENA_MAX");
        if let Some((name, value)) = one.variable {
            command.env(name, value);
        }
        let service = Ready::start(&mut command);
        let report = json(&service.explain(&["--json"]));
        assert_adds_up(service.pid, &report);
        let name = format!("{} {:?}: {}", one.name, one.variable, report["headline"]);
        // With two arenas a third of the heap may still be free.
        let is_two = one.variable == Some(("MALLOC_ARENA_MAX", "2"));
        assert!(report["verdict"] == one.verdict || is_two, "{name}");
        let parts = report["memory"]["parts"].as_array().unwrap();
        let owned = parts.iter().find(|part| !part["owner"].is_null()).unwrap();
        assert_eq!(owned["owner"], one.owner, "{name}");
        let unknown = parts.iter().filter(|part| part["certainty"] == "unknown");
        let unknown: f64 = unknown.map(|part| part["rss_bytes"].as_f64().unwrap()).sum();
        let rss = report["sizes"]["rss_bytes"].as_f64().unwrap();
        assert!(unknown < 0.05 * rss, "{name}: {unknown} of {rss} unknown");
        let found = report["allocators"].as_array().unwrap();
        let found: Vec<_> = found.iter().filter(|one| !one["version"].is_null()).collect();
        let names: Vec<_> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, one.allocators, "{name}");
    }
}
