//! The accounting follows what is really added: anonymous memory, page cache, tmpfs and slab, each in a cgroup of
//! this test's own. A binary of its own, because other tests move the same terms.
//!
//! Needs root, python3 and a memory cgroup; skips with a reason where they are missing, except on CI.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers fail as the test does, and say what they measured

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MIB: i64 = 1 << 20;
/// What is added each time.
const ADDED: i64 = 400 * MIB;
/// A cgroup with a limit; removed at the end.
struct Group(PathBuf);

impl Group {
    fn make() -> Result<Self, String> {
        let (mount, limit) = if Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            ("/sys/fs/cgroup", "memory.max")
        };
        let path = Path::new(mount).join(format!("memtide-test-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        let group = Self(path);
        std::fs::write(group.0.join(limit), format!("{}", 900 * MIB))
            .map_err(|e| format!("cannot limit {}: {e}", group.0.display()))?;
        Ok(group)
    }

    /// Runs a Python program in the group until it says that it is ready.
    fn run(&self, program: &str, arguments: &[&str]) -> Load {
        let mut child = Command::new("sh")
            .args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec python3 -c \"$@\""])
            .arg(&self.0)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready");
        Load(child)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A program that holds what it made until it is dropped.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.stdin.take().map(|mut pipe| pipe.write_all(b"\n"));
        let _ = self.0.wait();
    }
}

/// The terms of `memtide where` on this machine.
fn terms() -> impl Fn(&[&str]) -> i64 {
    let output = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["where", "--format", "json"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let accounting = report["accounting"].clone();
    move |ids| {
        accounting["terms"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|term| ids.contains(&term["id"].as_str().unwrap()))
            .map(|term| term["bytes"].as_i64().unwrap())
            .sum()
    }
}

/// Runs a load and measures how far the terms move, until they move by what was added. Other programs move them too: a busy
/// machine has several tries, with ever longer pauses before them, and what the terms move in the pause is no difference.
fn follows(what: &str, ids: &[&str], mut load: impl FnMut() -> (Load, i64), undo: impl Fn()) {
    const TRIES: usize = 8;
    let mut moved = Vec::new();
    for attempt in 0..TRIES {
        let paused = terms()(ids);
        std::thread::sleep(Duration::from_millis(250) * (1 << attempt) / 2);
        let before = terms()(ids);
        let by_others = (before - paused).abs().min(ADDED / 4);
        let (held, expected) = load();
        let difference = terms()(ids) - before;
        drop(held);
        // What stays would fill the group's limit, and the next try would only replace it.
        undo();
        println!(
            "{what}: {:.1} MiB added, moved by {:.1}, before by {:.1}",
            mib(expected),
            mib(difference),
            mib(by_others)
        );
        if (difference - expected).abs() <= expected / 50 + by_others {
            return;
        }
        moved.push(difference - expected);
    }
    panic!("{what} never moved by what was added within 2 %; off by {moved:?} bytes");
}

#[allow(clippy::cast_precision_loss)] // for people to read
fn mib(bytes: i64) -> f64 {
    bytes as f64 / MIB as f64
}

const WAIT: &str = "print('ready', flush=True); sys.stdin.read(1)";

#[test]
fn terms_move_by_what_was_added() {
    let group = match Group::make() {
        Ok(group) => group,
        Err(why) if std::env::var("CI").as_deref() == Ok("true") => {
            panic!("{why}: run as root on a machine with a memory cgroup")
        }
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();

    let added = ADDED.to_string();
    let hold = format!("import sys; held = bytearray(b'x') * int(sys.argv[1]); {WAIT}");
    follows("anonymous", &["anon"], || (group.run(&hold, &[&added]), ADDED), || ());

    let write = "[f.write(os.urandom(1 << 20)) for _ in range(int(sys.argv[1]) >> 20)]; f.flush(); \
                 os.fsync(f.fileno())";
    let write = format!("import os, sys; f = open(sys.argv[2], 'wb'); {write}; {WAIT}");
    let on_disk = directory.path().join("file").to_str().unwrap().to_owned();
    let shared = format!("/dev/shm/memtide-test-{}", std::process::id());
    for (what, term, path) in
        [("file cache", "file_cache", &on_disk), ("shared memory", "shmem", &shared)]
    {
        follows(
            what,
            &[term],
            || (group.run(&write, &[&added, path]), ADDED),
            || std::fs::remove_file(path).unwrap(),
        );
    }

    // Names that do not exist. What they take is what the slab caches themselves say, before and after.
    let mut rounds = 0;
    follows(
        "slab",
        &["slab_reclaimable", "slab_unreclaimable"],
        || {
            rounds += 1;
            let missing = format!("{}/missing-{rounds}-", directory.path().display());
            let program = format!(
                "import os, sys; [os.path.exists(sys.argv[1] + str(i)) for i in range(500000)]; \
                 {WAIT}"
            );
            let before = slab_caches();
            let load = group.run(&program, &[&missing]);
            (load, slab_caches() - before)
        },
        || (),
    );
}

/// Bytes of all slab caches, from /proc/slabinfo: names grow `dentry`, and the caches that charge it to the group.
fn slab_caches() -> i64 {
    let text = std::fs::read_to_string("/proc/slabinfo").unwrap();
    // name active num size per_slab pages_per_slab : tunables . . . : slabdata active_slabs num_slabs shared
    text.lines()
        .skip(2)
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[14].parse::<i64>().unwrap() * words[5].parse::<i64>().unwrap() * 4096
        })
        .sum()
}
