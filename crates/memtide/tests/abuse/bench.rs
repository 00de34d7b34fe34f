//! The place of the abuse: a cgroup and a directory of its own, the log of truth, and chance that can be repeated.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What all chapters share.
pub(crate) struct Bench {
    /// The seed of all chance.
    pub(crate) seed: u64,
    /// One of how many things is done: 1, or 10 in the test suite.
    pub(crate) part: u64,
    place: tempfile::TempDir,
    group: PathBuf,
    truth: Child,
}

/// How often the truth is read, in seconds.
const TRUTH_EVERY: &str = "0.1";
/// The memory of everything that the abuse starts.
const LIMIT: &str = "1073741824";

impl Bench {
    pub(crate) fn make() -> Result<Self, String> {
        if !probe::host_facts::user_is_root() {
            return Err("the abuse needs root, for a cgroup and small disks".to_owned());
        }
        let group =
            PathBuf::from(format!("/sys/fs/cgroup/memory/memtide-abuse-{}", std::process::id()));
        std::fs::create_dir(&group).map_err(|error| format!("no memory cgroup (v1): {error}"))?;
        std::fs::write(group.join("memory.limit_in_bytes"), LIMIT)
            .map_err(|error| error.to_string())?;
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let log =
            File::create(place.path().join("truth.log")).map_err(|error| error.to_string())?;
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/abuse/truth.py");
        let truth = Command::new("python3").args([program, TRUTH_EVERY]).stdout(log).spawn();
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        Ok(Self {
            seed: number("MEMTIDE_ABUSE_SEED").unwrap_or(now),
            part: number("MEMTIDE_ABUSE_PART").unwrap_or(10),
            truth: truth.map_err(|error| format!("no python3: {error}"))?,
            place,
            group,
        })
    }

    /// How many of so many things are done.
    pub(crate) fn count(&self, whole: u64) -> u64 {
        whole.div_ceil(self.part)
    }

    /// Chance of its own for a chapter.
    pub(crate) fn dice(&self, chapter: u64) -> Dice {
        Dice(AtomicU64::new(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (chapter << 32) | 1))
    }

    /// A path in the abuse's own directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A command in the cgroup, in a process group of its own.
    pub(crate) fn command(&self, program: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""])
            .arg(&self.group)
            .arg(program)
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// The truth so far.
    pub(crate) fn truth(&self) -> Vec<Truth> {
        let text = std::fs::read_to_string(self.path("truth.log")).unwrap();
        text.lines().filter_map(Truth::read).collect()
    }

    pub(crate) fn group(&self) -> &Path {
        &self.group
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.truth.kill();
        let _ = self.truth.wait();
        // The last processes in it may still be ending.
        patiently(|| std::fs::remove_dir(&self.group).is_ok());
    }
}

/// A reading of the truth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    /// The boot clock before and after it, in nanoseconds.
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) total_kib: u64,
    pub(crate) free_kib: u64,
    pub(crate) faults: u64,
}

impl Truth {
    fn read(line: &str) -> Option<Self> {
        let mut numbers = line.split(' ').map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let (before, after, _wall) = (next()?, next()?, next()?);
        Some(Self { before, after, total_kib: next()?, free_kib: next()?, faults: next()? })
    }
}

/// Chance that a seed repeats (xorshift).
pub(crate) struct Dice(AtomicU64);

impl Dice {
    /// A number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        let mut next = self.0.load(Relaxed);
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        self.0.store(next, Relaxed);
        (next >> 11) % end.max(1)
    }

    /// Whether it happens once in so many times.
    pub(crate) fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }
}

/// Tries something again until it succeeds, for at most ten seconds: a sealer may outlive its recorder for a while.
pub(crate) fn patiently(mut attempt: impl FnMut() -> bool) {
    for _ in 0..100 {
        if attempt() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Says why the abuse does not run; on CI it must.
pub(crate) fn skip(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
    println!("skipped: {why}");
}
