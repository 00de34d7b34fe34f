//! A cgroup with a limit, around one part: what it takes beyond that ends the part, and nothing else of the host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use probe::Root;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use timeline::facts::CgroupMode;
use units::Bytes;

use crate::LabError;
use crate::error::AtPath as _;
use crate::sys::{Forked, fork};

/// How the name of a cgroup begins; the PID of the process that removes it follows.
const PREFIX: &str = "memtide-lab-";
/// From one question whether the part has ended to the next.
const EVERY: Duration = Duration::from_millis(20);
/// How long a cgroup may be busy once its processes were killed: their memory is freed by then.
const REMOVAL_MAX: Duration = Duration::from_secs(5);

/// Which process this is once a part has its cgroup.
#[derive(Debug)]
pub enum LimitedSide {
    /// The one within the limit, which plays the part.
    Inside,
    /// The one that waits for it.
    Outside(LimitedPart),
}

/// How a part within a limit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// The kernel killed it, or a process of it, at the limit.
    KilledAtLimit,
    /// Another signal ended it: it was killed, or it crashed.
    Killed,
    /// The user ended it.
    Interrupted,
}

/// A part that runs in a cgroup of its own.
#[derive(Debug)]
pub struct LimitedPart {
    child: Pid,
    cgroup: LimitedCgroup,
}

impl LimitedPart {
    /// Forks: the child joins a new cgroup that may take this much RAM and no swap.
    ///
    /// # Errors
    /// [`LabError::NoCgroup`] where no cgroup can be made, [`LabError::File`] for what the kernel refuses besides.
    pub fn fork(limit: Bytes) -> Result<LimitedSide, LabError> {
        let cgroup = LimitedCgroup::make(limit)?;
        match fork().at(&cgroup.directory)? {
            Forked::Child => {
                let joined = cgroup.write("cgroup.procs", &std::process::id().to_string());
                // The parent removes it.
                std::mem::forget(cgroup);
                joined.map(|()| LimitedSide::Inside)
            }
            Forked::Parent(child) => Ok(LimitedSide::Outside(Self { child, cgroup })),
        }
    }

    /// Waits for the part's end, and removes its cgroup; a part that is interrupted is killed.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait(self, is_interrupted: impl Fn() -> bool) -> Result<LimitedEnd, LabError> {
        let ended = self.wait_for_child(is_interrupted).at(&self.cgroup.directory)?;
        Ok(match ended {
            LimitedEnd::Exited(_) | LimitedEnd::Killed if self.cgroup.has_killed() => {
                LimitedEnd::KilledAtLimit
            }
            other => other,
        })
    }

    fn wait_for_child(&self, is_interrupted: impl Fn() -> bool) -> std::io::Result<LimitedEnd> {
        loop {
            match waitpid(Some(self.child), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => return Ok(end(status)),
                Ok(None) if is_interrupted() => {
                    let _ = kill_process(self.child, Signal::KILL);
                    let _ = waitpid(Some(self.child), WaitOptions::empty());
                    return Ok(LimitedEnd::Interrupted);
                }
                Ok(None) => std::thread::sleep(EVERY),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn end(status: WaitStatus) -> LimitedEnd {
    let by_user = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => LimitedEnd::Exited(code),
        (None, Some(signal)) if by_user.contains(&signal) => LimitedEnd::Interrupted,
        (None, _) => LimitedEnd::Killed,
    }
}

/// A cgroup that is removed with this value.
#[derive(Debug)]
struct LimitedCgroup {
    directory: PathBuf,
}

impl LimitedCgroup {
    fn make(limit: Bytes) -> Result<Self, LabError> {
        let no_cgroup = |why| LabError::NoCgroup { why };
        let (mode, mount) = probe::memory_cgroup_mount(&Root::default()).ok_or_else(|| {
            no_cgroup("the memory controller of cgroups is not mounted".to_owned())
        })?;
        remove_abandoned(&mount);
        let directory = mount.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&directory)
            .map_err(|error| no_cgroup(format!("{}: {error}", directory.display())))?;
        let cgroup = Self { directory };
        if mode == CgroupMode::V2 && !cgroup.directory.join("memory.max").exists() {
            let why = format!(
                "the memory controller is not enabled in {}/cgroup.subtree_control",
                mount.display()
            );
            return Err(no_cgroup(why));
        }
        let limit = limit.get().to_string();
        let (ram, swap) = match mode {
            CgroupMode::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            CgroupMode::V2 => ("memory.max", "memory.swap.max"),
        };
        cgroup.write(ram, &limit)?;
        // With one process of a part all others are killed (v2, since 4.19).
        let _ = cgroup.write("memory.oom.group", "1");
        // Kernels that do not count swap lack it. That of v1 is a limit of both together.
        let swap_limit = if mode == CgroupMode::V1 { &limit } else { "0" };
        let _ = cgroup.write(swap, swap_limit);
        Ok(cgroup)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), LabError> {
        let file = self.directory.join(file);
        std::fs::write(&file, value).at(&file)
    }
}

impl LimitedCgroup {
    /// Whether the kernel killed a process of it: `oom_kill` of memory.events (v2, since 4.13) or memory.oom_control (v1).
    fn has_killed(&self) -> bool {
        let texts = ["memory.events", "memory.oom_control"]
            .map(|file| std::fs::read_to_string(self.directory.join(file)).unwrap_or_default());
        let mut lines = texts.iter().flat_map(|text| text.lines());
        lines.any(|line| {
            let kills = line.strip_prefix("oom_kill ");
            kills.is_some_and(|kills| kills.trim() != "0")
        })
    }
}

/// Removes cgroups of this kind that a killed process left. One that is in use is refused by the kernel.
fn remove_abandoned(mount: &Path) {
    for entry in std::fs::read_dir(mount).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

impl Drop for LimitedCgroup {
    fn drop(&mut self) {
        let begun = std::time::Instant::now();
        while std::fs::remove_dir(&self.directory).is_err() && begun.elapsed() < REMOVAL_MAX {
            std::thread::sleep(EVERY);
        }
    }
}
