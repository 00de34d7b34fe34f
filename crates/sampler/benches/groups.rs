//! What cgroups cost a recorder, and how often they are read for it: `cargo bench -p memtide-sampler --bench groups`.
//!
//! Makes 0, 100, 1,000 and 2,000 cgroups below the memory controller of v1, 64 of them with a process with memory that
//! changes ten times a second, records each time for a minute (`BENCH_SECONDS`) on the beat of a recorder, and removes
//! them. CPU is that of the whole process, less that of a recorder without cgroups in the same run. Beside it: `cat` of
//! the same files once, and what is least, `pread` of every usage through open files. Needs root.

#![allow(clippy::print_stdout)]

mod measured;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use probe::CgroupFiles;
use sampler::{Health, Settings};
use timeline::facts::CgroupMode;
use units::Span;

use measured::{MeasuredRecorder, cpu, kib};

const CONTROLLER: &str = "/sys/fs/cgroup/memory";
const GROUP: &str = "MEMTIDE_BENCH_GROUP";
const BUSY: usize = 64;
const PER_PARENT: usize = 50;

fn main() {
    if let Some(group) = std::env::var_os(GROUP) {
        be_busy(Path::new(&group));
        return;
    }
    let top = Path::new(CONTROLLER).join(format!("memtide-bench-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&top) {
        println!("skipped: {}: {error}", top.display());
        return;
    }
    let seconds = std::env::var("BENCH_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(60);
    println!(
        "groups   all every   CPU of a core   RSS KiB   kernel KiB   cat once ms   pread usage once ms"
    );
    for groups in [0, 100, 1_000, 2_000] {
        measure(&top, groups, seconds);
    }
    let _ = fs::remove_dir(&top);
}

/// A tree of cgroups with some busy processes, removed when dropped.
struct Tree {
    groups: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    busy: Vec<Child>,
    home: PathBuf,
}

impl Tree {
    fn make(top: &Path, groups: usize) -> Self {
        let mut tree = Self {
            groups: Vec::new(),
            directories: Vec::new(),
            busy: Vec::new(),
            home: Path::new(CONTROLLER).join(own_group().trim_start_matches('/')),
        };
        let own = tree.directory(top.join("recorder"));
        for index in 0..groups {
            let parent = top.join(format!("slice{:02}", index / PER_PARENT));
            if index % PER_PARENT == 0 {
                tree.directory(parent.clone());
            }
            let group = tree.directory(parent.join(format!("g{index:04}")));
            tree.groups.push(group);
        }
        let program = std::env::current_exe().expect("a program has a path");
        for group in tree.groups.iter().step_by((groups / BUSY).max(1)).take(BUSY) {
            let busy = Command::new(&program).env(GROUP, group).spawn();
            tree.busy.push(busy.expect("a process"));
        }
        enter(&own);
        tree
    }

    fn directory(&mut self, path: PathBuf) -> PathBuf {
        fs::create_dir(&path).expect("a cgroup");
        self.directories.push(path.clone());
        path
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let names = CgroupFiles::names(CgroupMode::V1);
        let groups = self.groups.iter();
        groups.flat_map(move |group| names.iter().map(move |name| group.join(name)))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for busy in &mut self.busy {
            let _ = busy.kill();
            let _ = busy.wait();
        }
        enter(&self.home);
        for directory in self.directories.iter().rev() {
            // A process that was killed leaves its cgroup a moment later.
            let removed = (0..50).any(|_| {
                let removed = fs::remove_dir(directory);
                removed.inspect_err(|_| std::thread::sleep(Duration::from_millis(20))).is_ok()
            });
            if !removed {
                println!("left: {}", directory.display());
            }
        }
    }
}

fn own_group() -> String {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.split_once(":memory:"));
    line.map_or_else(String::new, |(_, path)| path.to_owned())
}

fn enter(group: &Path) {
    let pid = std::process::id().to_string();
    fs::write(group.join("cgroup.procs"), pid).expect("a process can be moved");
}

/// Changes the memory of a cgroup until it is killed, or its parent is gone.
fn be_busy(group: &Path) {
    enter(group);
    let mut round = std::process::id() as usize;
    while group.exists() {
        round += 7;
        let memory = vec![1_u8; (round % 31 + 1) << 16];
        std::hint::black_box(&memory);
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn measure(top: &Path, groups: usize, seconds: u64) {
    let tree = Tree::make(top, groups);
    std::thread::sleep(Duration::from_secs(1));
    let base = Settings {
        processes: None,
        shares: None,
        slabs: Span::from_hours(24),
        ..Settings::default()
    };
    let without = Settings { groups: None, ..base };
    let (idle, _) = record(without, seconds.min(20));
    let kernel = || number(&top.join("recorder/memory.kmem.usage_in_bytes")) / 1024;
    let before = kernel();
    let (cost, health) = record_then(base, seconds, || kernel().saturating_sub(before));
    let (cpu, kernel, rss) = cost;
    let every = health.figures().cgroups_every;
    println!(
        "{groups:>6} {:>11} {:>14.3}% {rss:>9} {kernel:>12} {:>13.1} {:>21.1}",
        every.to_string(),
        (cpu - idle.0) * 100.0,
        cat_once(&tree).as_secs_f64() * 1e3,
        pread_once(&tree) * 1e3,
    );
}

fn record(settings: Settings, seconds: u64) -> ((f64, u64, u64), Arc<Health>) {
    record_then(settings, seconds, || 0)
}

/// Records on the beat. Returns the share of a CPU after the first sample, what `last` returns before the end, and the
/// resident memory.
fn record_then(
    settings: Settings,
    seconds: u64,
    last: impl FnOnce() -> u64,
) -> ((f64, u64, u64), Arc<Health>) {
    let mut measured = MeasuredRecorder::start(settings);
    let recorder = &mut measured.recorder;
    recorder.take();
    let (start, before) = (Instant::now(), cpu());
    for second in 1..=seconds {
        let due = start + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        recorder.take();
    }
    let share = (cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64();
    let (last, rss) = (last(), kib("/proc/self/status", "VmRSS:"));
    let health = Arc::clone(&measured.health);
    measured.stop();
    ((share, last, rss), health)
}

/// CPU time of `cat` for all files of all cgroups, the mean of ten.
fn cat_once(tree: &Tree) -> Duration {
    if tree.groups.is_empty() {
        return Duration::ZERO;
    }
    let times = 10;
    let before = children();
    for _ in 0..times {
        let cat = Command::new("cat").args(tree.files()).stdout(Stdio::null()).status();
        cat.expect("cat runs");
    }
    (children() - before) / times
}

/// CPU time of the children that were waited for.
fn children() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|word| word.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// CPU seconds for one `pread` of each usage through open files, the least of 20 rounds.
fn pread_once(tree: &Tree) -> f64 {
    let open = |group: &PathBuf| File::open(group.join("memory.usage_in_bytes"));
    let files: Vec<File> = tree.groups.iter().filter_map(|group| open(group).ok()).collect();
    let mut buffer = [0; 64];
    let rounds = (0..20).map(|_| {
        let before = cpu();
        for file in &files {
            let _ = std::hint::black_box(file.read_at(&mut buffer, 0));
        }
        (cpu() - before).as_secs_f64()
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn number(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
