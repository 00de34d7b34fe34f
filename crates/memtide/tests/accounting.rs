//! The accounting follows what is really added: anonymous memory, page cache, tmpfs and slab, each in a control group of
//! this test's own. A binary of its own, because other tests move the same terms.
//!
//! Needs root, python3 and a memory control group; skips with a reason where they are missing, except on CI.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MIB: i64 = 1 << 20;
/// What is added each time.
const ADDED: i64 = 400 * MIB;
/// The terms must move by what was added within 2 %.
const TOLERANCE: i64 = ADDED / 50;

/// A control group with a limit; removed at the end.
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
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
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

fn moved(what: &str, before: i64, after: i64, expected: i64) {
    let difference = after - before;
    println!("{what}: moved by {:.1} MiB of {:.1}", difference as f64 / MIB as f64, expected as f64 / MIB as f64);
    assert!(
        (difference - expected).abs() <= TOLERANCE,
        "{what} moved by {difference}, not by {expected}"
    );
}

const WAIT: &str = "print('ready', flush=True); sys.stdin.read(1)";

#[test]
fn terms_move_by_what_was_added() {
    let group = match Group::make() {
        Ok(group) => group,
        Err(why) if std::env::var("CI").as_deref() == Ok("true") => {
            panic!("{why}: run as root on a machine with a memory control group")
        }
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();

    let before = terms();
    let load = group.run(
        &format!("import sys; held = bytearray(b'x') * int(sys.argv[1]); {WAIT}"),
        &[&ADDED.to_string()],
    );
    moved("anonymous", before(&["anon"]), terms()(&["anon"]), ADDED);
    drop(load);

    let before = terms();
    let path = directory.path().join("file");
    let load = group.run(
        &format!("import os, sys; f = open(sys.argv[2], 'wb'); [f.write(os.urandom(1 << 20)) for _ in range(int(sys.argv[1]) >> 20)]; f.flush(); os.fsync(f.fileno()); {WAIT}"),
        &[&ADDED.to_string(), path.to_str().unwrap()],
    );
    moved("file cache", before(&["file_cache"]), terms()(&["file_cache"]), ADDED);
    drop(load);
    std::fs::remove_file(path).unwrap();

    let before = terms();
    let shared = format!("/dev/shm/memtide-test-{}", std::process::id());
    let load = group.run(
        &format!("import sys; f = open(sys.argv[2], 'wb'); [f.write(b'x' * (1 << 20)) for _ in range(int(sys.argv[1]) >> 20)]; f.flush(); {WAIT}"),
        &[&ADDED.to_string(), &shared],
    );
    moved("shared memory", before(&["shmem"]), terms()(&["shmem"]), ADDED);
    drop(load);
    std::fs::remove_file(shared).unwrap();

    // Slab: names that do not exist. What they take is what the slab caches say, read just before and after.
    let before = terms();
    let objects = dentries();
    let load = group.run(
        &format!("import os, sys; [os.path.exists(sys.argv[1] + '/missing-%d' % i) for i in range(1000000)]; {WAIT}"),
        &[directory.path().to_str().unwrap()],
    );
    let slab = &["slab_reclaimable", "slab_unreclaimable"];
    moved("slab", before(slab), terms()(slab), dentries() - objects);
    drop(load);
}

/// Bytes of the dentry cache, from /proc/slabinfo.
fn dentries() -> i64 {
    let text = std::fs::read_to_string("/proc/slabinfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("dentry ")).unwrap();
    let column = |i: usize| line.split_whitespace().nth(i).unwrap().parse::<i64>().unwrap();
    // name active num size per_slab pages_per_slab : tunables . . . : slabdata active_slabs num_slabs shared
    column(14) * column(5) * 4096
}
