//! Processes by both ways, on this machine: what they say of processes of every kind, against each other and `/proc`.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use probe::{Root, Task, TaskSource, Tasks};
use timeline::ProcessCells;
use timeline::signals::{
    PROC_PARENT, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM, PROC_SIZE, PROC_STIME,
    PROC_SWAP, PROC_THREADS, PROC_UTIME,
};
use units::{Bytes, Count, Pages};

/// A task, kept.
#[derive(Debug, Clone)]
struct Seen {
    start: u64,
    name: Vec<u8>,
    cells: ProcessCells,
}

fn walk(tasks: &mut Tasks) -> BTreeMap<u32, Seen> {
    let mut seen = BTreeMap::new();
    let mut last = 0;
    let walk = tasks.each(&mut |task: Task<'_>| {
        assert!(task.pid > last, "{} after {last}", task.pid);
        last = task.pid;
        let (start, name, cells) = (task.start_ticks, task.name.to_vec(), *task.cells);
        seen.insert(task.pid, Seen { start, name, cells });
    });
    assert_eq!((walk.read, walk.absent), (seen.len(), None));
    seen
}

/// BPF where it works. Where it should and does not, the test fails on CI and is skipped elsewhere.
fn bpf() -> Option<Tasks> {
    let tasks = Tasks::open(&Root::default(), Some(TaskSource::Bpf));
    let Some(reason) = tasks.why_not_bpf() else {
        return Some(tasks);
    };
    let is_root = rustix::process::geteuid().is_root();
    let has_types = fs::exists("/sys/kernel/btf/vmlinux").unwrap();
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(
        !(is_ci && is_root && has_types),
        "root and the kernel's types are there, but: {reason}\nhelp: apt-get install clang"
    );
    eprintln!("skipped: {reason}");
    None
}

fn ways() -> Vec<Tasks> {
    let scan = Tasks::open(&Root::default(), Some(TaskSource::Proc));
    assert_eq!(scan.source(), TaskSource::Proc);
    bpf().into_iter().chain([scan]).collect()
}

/// A process of its own that has done what it should and now waits; ended when dropped.
struct Waiting(Child);

impl Waiting {
    /// Runs a Python program that prints a line when it is ready.
    fn python(program: &str) -> Option<Self> {
        let child = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "apt-get install python3");
            eprintln!("skipped: there is no python3");
            return None;
        };
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended early");
        let waiting = Self(child);
        waiting.until_it_rests();
        Some(waiting)
    }

    /// What it does between its line and its wait still counts, faults of pages not least.
    fn until_it_rests(&self) {
        let rests = || {
            let stat = fs::read(format!("/proc/{}/stat", self.pid())).unwrap();
            let stat = String::from_utf8_lossy(&stat);
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            (fields.starts_with('S'), fields.to_owned())
        };
        let mut before = rests();
        for _ in 0..2_000 {
            std::thread::sleep(Duration::from_millis(50));
            let now = rests();
            if now.0 && now == before {
                return;
            }
            before = now;
        }
        panic!("it never came to rest");
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the program does, then waits for the end of its input.
fn until_ended(program: &str) -> String {
    format!("{program}\nimport sys\nprint('ready', flush=True)\nsys.stdin.read()")
}

#[test]
fn both_ways_say_the_same_of_a_process_that_rests() {
    let Some(mut bpf) = bpf() else { return };
    let program = "import mmap\na = bytearray(5_000_000)\nm = mmap.mmap(-1, 3_000_000)\nm.write(b'x' * 3_000_000)";
    let Some(child) = Waiting::python(&until_ended(program)) else {
        return;
    };
    let ours = walk(&mut bpf)[&child.pid()].clone();
    // A new walker reads all files of everything.
    let mut scan = Tasks::open(&Root::default(), Some(TaskSource::Proc));
    let files = walk(&mut scan)[&child.pid()].clone();
    assert_eq!((ours.start, &ours.name), (files.start, &files.name));
    assert!(ours.cells.get(PROC_RSS_SHMEM).unwrap() >= Bytes::new(3_000_000));
    assert!(ours.cells.get(PROC_RSS_ANON).unwrap() >= Bytes::new(5_000_000));
    let kinds = [PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM, PROC_SWAP].map(|kind| kind.id());
    let mut compared = 0;
    for (signal, theirs) in files.cells.iter() {
        let value = ours.cells.iter().find(|(id, _)| *id == signal);
        let name = signal.def().name;
        let value = value.unwrap_or_else(|| panic!("{name} is missing")).1;
        // The kernel's own `stat` and, before 6.16, `status` leave out what CPUs have not handed in yet.
        let slack = if kinds.contains(&signal) || name == "proc.rss_peak" {
            if exact_status() { 0 } else { 1 << 20 }
        } else if signal == PROC_RSS.id() {
            256
        } else {
            0
        };
        assert!(value.abs_diff(theirs) <= slack, "{name}: {value}, by /proc {theirs}");
        compared += 1;
    }
    assert!(compared >= 24, "{compared}");
    assert_eq!(ours.cells.iter().count(), compared, "no more either");
}

/// Since 6.16 `status` sums up the parts of all CPUs.
fn exact_status() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(16))
}

#[test]
fn threads_are_added_up_and_are_no_processes() {
    let program = "import threading, time\n\
        def work():\n    e = time.thread_time() + 0.004\n    while time.thread_time() < e: pass\n    done.release()\n    stop.wait()\n\
        stop, done = threading.Event(), threading.Semaphore(0)\n\
        for _ in range(99): threading.Thread(target=work, daemon=True).start()\n\
        for _ in range(99): done.acquire()";
    let Some(child) = Waiting::python(&until_ended(program)) else {
        return;
    };
    let before = times(child.pid());
    for mut tasks in ways() {
        let seen = walk(&mut tasks);
        let threads = fs::read_dir(format!("/proc/{}/task", child.pid())).unwrap();
        let mut others = threads.map(|thread| thread.unwrap().file_name());
        assert!(others.all(|thread| {
            let tid = thread.to_str().unwrap().parse().unwrap();
            tid == child.pid() || !seen.contains_key(&tid)
        }));
        let cells = &seen[&child.pid()].cells;
        assert_eq!(cells.get(PROC_THREADS), Some(Count::new(100)));
        let ticks = cells.get(PROC_UTIME).unwrap().get() + cells.get(PROC_STIME).unwrap().get();
        let after = times(child.pid());
        assert!(
            ticks >= 39 && ticks + 1 >= before && ticks <= after + 1,
            "{before} {ticks} {after}"
        );
    }
}

/// User and system time by `/proc/PID/stat`, in ticks.
fn times(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split(' ').skip(12).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_name_is_shown_byte_for_byte() {
    let name = b"a) R 1\n\x1b[2J\xff(";
    let program = "import sys\nopen('/proc/self/comm', 'wb').write(bytes.fromhex('HEX'))";
    let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some(child) = Waiting::python(&until_ended(&program.replace("HEX", &hex))) else {
        return;
    };
    for mut tasks in ways() {
        let seen = walk(&mut tasks);
        assert_eq!(seen[&child.pid()].name, name, "{:?}", tasks.source());
    }
}

#[test]
fn zombies_and_kernel_threads_have_sizes_of_0_and_no_kinds_of_memory() {
    let mut child = Command::new("true").spawn().unwrap();
    let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    while !state().contains(") Z ") {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for mut tasks in ways() {
        let seen = walk(&mut tasks);
        let zombie = &seen[&child.id()];
        assert_eq!(zombie.name, b"true");
        let parent = Count::new(std::process::id().into());
        assert_eq!(zombie.cells.get(PROC_PARENT), Some(parent));
        let kernel = seen.values().find(|seen| seen.name.starts_with(b"kswapd"));
        for cells in kernel.map(|kernel| &kernel.cells).into_iter().chain([&zombie.cells]) {
            assert_eq!(cells.get(PROC_SIZE), Some(Bytes::ZERO));
            assert_eq!(cells.get(PROC_RSS), Some(Pages::ZERO));
            assert_eq!(cells.get(PROC_RSS_ANON), None);
        }
    }
    child.wait().unwrap();
}

#[test]
fn a_process_of_another_user_is_there() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start one");
        return;
    }
    use std::os::unix::process::CommandExt;
    let mut sleep = Command::new("sleep");
    let child = Waiting(sleep.arg("1000").uid(65_534).spawn().unwrap());
    for mut tasks in ways() {
        let seen = walk(&mut tasks);
        assert!(seen[&child.pid()].cells.get(PROC_RSS).unwrap() > Pages::ZERO);
    }
}

#[test]
fn saved_processes_of_another_machine_are_read_by_their_files() {
    let root = tempfile::tempdir().unwrap();
    for (pid, start) in [(30, 300), (4, 40)] {
        let at = root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&at).unwrap();
        let stat =
            format!("{pid} (p {pid}) S 1 0 0 0 -1 0 5 0 0 0 0 0 0 0 20 0 1 0 {start} 8192 2 0");
        fs::write(at.join("stat"), stat).unwrap();
        fs::write(at.join("status"), "Name:\tp\nRssAnon:\t8 kB\nVmSwap:\t4 kB\n").unwrap();
        fs::write(at.join("cgroup"), "0::/system.slice/a.service\n").unwrap();
    }
    // It ended while it was listed.
    fs::create_dir(root.path().join("proc/5")).unwrap();
    let mut broken = fs::File::create_new({
        fs::create_dir(root.path().join("proc/6")).unwrap();
        root.path().join("proc/6/stat")
    });
    broken.as_mut().unwrap().write_all(b"nonsense").unwrap();
    let root = Root::at(root.path());
    let mut tasks = Tasks::open(&root, None);
    assert_eq!(tasks.source(), TaskSource::Proc);
    assert_eq!(tasks.why_not_bpf(), Some("the processes are not this machine's"));
    for _ in 0..3 {
        let mut seen = Vec::new();
        let walk = tasks.each(&mut |task| {
            let anon = task.cells.get(PROC_RSS_ANON);
            seen.push((task.pid, task.start_ticks, task.name.to_vec(), anon));
        });
        let anon = Some(Bytes::from_kib(8));
        let expected = [(4, 40, b"p 4".to_vec(), anon), (30, 300, b"p 30".to_vec(), anon)];
        assert_eq!(seen, expected);
        assert!(walk.malformed.is_some());
    }
    let (mut scratch, mut service) = (Vec::new(), "before".to_owned());
    probe::service_of(&root, 30, &mut scratch, &mut service);
    assert_eq!(service, "a.service");
    probe::service_of(&root, 31, &mut scratch, &mut service);
    assert_eq!(service, "");
}
