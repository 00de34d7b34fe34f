//! The cgroup of a run: made, written, emptied and removed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use probe::{Root, text};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use timeline::facts::CgroupMode;

use crate::run_in_cgroup::ENDING_MAX;
use crate::run_in_cgroup::error::CgroupRunError;
use crate::run_in_cgroup::place::GroupPlace;

/// From one question whether processes have ended to the next.
const EVERY: Duration = Duration::from_millis(5);

/// A cgroup that is emptied and removed with this value.
#[derive(Debug)]
pub(super) struct RunGroup {
    place: GroupPlace,
    is_removed: bool,
}

impl RunGroup {
    /// Makes it. CPU time is not counted, and processes are not frozen, where their v1 hierarchies take no cgroup.
    pub(super) fn make(place: GroupPlace) -> Result<Self, CgroupRunError> {
        let mut group = Self { place, is_removed: false };
        let memory = &group.place.memory;
        let made = std::fs::create_dir(memory);
        if let Err(error) = made {
            group.is_removed = true;
            return Err(CgroupRunError::not_made(&group.place.memory, error));
        }
        let is_made =
            |directory: &PathBuf| directory.exists() || std::fs::create_dir(directory).is_ok();
        group.place.cpuacct = group.place.cpuacct.take().filter(is_made);
        group.place.freezer = group.place.freezer.take().filter(is_made);
        Ok(group)
    }

    pub(super) fn mode(&self) -> CgroupMode {
        self.place.mode
    }

    /// The directory with the files of memory.
    pub(super) fn directory(&self) -> &Path {
        &self.place.memory
    }

    /// The directory with the file of CPU time.
    pub(super) fn cpu_directory(&self) -> Option<&Path> {
        match self.place.mode {
            CgroupMode::V1 => self.place.cpuacct.as_deref(),
            CgroupMode::V2 => Some(&self.place.memory),
        }
    }

    /// Opens what a process writes to that joins it.
    pub(super) fn doors(&self) -> Result<Vec<File>, CgroupRunError> {
        let open = |directory: &Path| {
            let opened = File::options().write(true).open(directory.join("cgroup.procs"));
            opened.map_err(|error| CgroupRunError::NotJoined {
                group: directory.to_owned(),
                source: error,
            })
        };
        self.place.directories().into_iter().map(open).collect()
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.place.memory.join(file).exists()
    }

    pub(super) fn read(&self, file: &str) -> std::io::Result<Vec<u8>> {
        std::fs::read(self.place.memory.join(file))
    }

    /// Writes to a file that is there: on cgroup file systems none is made.
    pub(super) fn write(&self, file: &str, value: &str) -> std::io::Result<()> {
        write(&self.place.memory.join(file), value)
    }

    /// Kills all processes until none is left, and removes the cgroup. Returns the number of processes that it met.
    pub(super) fn remove(&mut self) -> Result<usize, CgroupRunError> {
        // Even where this fails, it is not tried again when the value is dropped.
        self.is_removed = true;
        let begun = Instant::now();
        let met = self.pids().len();
        loop {
            let pids = self.pids();
            if pids.is_empty() {
                break;
            }
            if begun.elapsed() > ENDING_MAX {
                let group = self.place.memory.clone();
                return Err(CgroupRunError::NotEnded { group, pids: first(pids) });
            }
            self.kill(&pids);
            std::thread::sleep(EVERY);
        }
        for directory in self.place.directories() {
            while let Err(error) = remove_all(directory) {
                // The kernel frees what ended processes had.
                if begun.elapsed() > ENDING_MAX {
                    return Err(CgroupRunError::NotRemoved {
                        group: directory.to_owned(),
                        source: error,
                    });
                }
                std::thread::sleep(EVERY);
            }
        }
        Ok(met)
    }

    /// Processes in it and in cgroups below it.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        for directory in self.place.directories() {
            for group in with_all_below(directory) {
                let text = std::fs::read(group.join("cgroup.procs")).unwrap_or_default();
                let numbers = text::lines(&text).filter_map(|(_, line)| text::number(line));
                // A process of another PID namespace is listed as 0.
                pids.extend(
                    numbers.filter_map(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
                );
            }
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Kills processes. They are frozen meanwhile, so that none forks out of the list; on v2 since 5.14 the kernel kills
    /// all at once.
    fn kill(&self, pids: &[u32]) {
        if write(&self.place.memory.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        let freezing = match self.place.mode {
            CgroupMode::V1 => self.place.freezer.as_ref(),
            CgroupMode::V2 => Some(&self.place.memory),
        };
        let (file, frozen, thawed) = match self.place.mode {
            CgroupMode::V1 => ("freezer.state", "FROZEN", "THAWED"),
            CgroupMode::V2 => ("cgroup.freeze", "1", "0"),
        };
        let file = freezing.map(|directory| directory.join(file));
        let freeze = |value| file.as_ref().map(|file| write(file, value));
        let is_frozen = freeze(frozen).is_some_and(|written| written.is_ok());
        // One may have forked before all were frozen.
        let listed = if is_frozen { self.pids() } else { pids.to_vec() };
        listed.into_iter().for_each(|pid| self.kill_one(pid));
        let _ = freeze(thawed);
    }

    /// Kills a process if it is of this cgroup still: its PID may be another's by now.
    fn kill_one(&self, pid: u32) {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        let opened = pidfd_open(id, PidfdFlags::empty());
        if !self.contains(pid) {
            return;
        }
        let _ = match opened {
            Ok(process) => pidfd_send_signal(process, Signal::KILL),
            // Before 5.3.
            Err(Errno::NOSYS) => kill_process(id, Signal::KILL),
            Err(errno) => Err(errno),
        };
    }

    /// Whether a process is in a cgroup of our name, which no other has.
    fn contains(&self, pid: u32) -> bool {
        let name = self.place.memory.file_name().unwrap_or_default().as_encoded_bytes();
        let groups = Root::default().read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        groups.split(|byte| *byte == b'/' || *byte == b'\n').any(|part| part == name)
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        if !self.is_removed {
            // Nobody is left to see the error: this is a panic, or an error of its own is on the way.
            let _ = self.remove();
        }
    }
}

/// The first PIDs of a list, enough to find the others.
fn first(mut pids: Vec<u32>) -> Vec<u32> {
    pids.truncate(8);
    pids
}

fn write(file: &Path, value: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    File::options().write(true).open(file)?.write_all(value.as_bytes())
}

/// A directory and all directories below it, each before those below it.
fn with_all_below(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(group) = all.get(next).cloned() {
        next += 1;
        let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        all.extend(below.map(|entry| entry.path()));
    }
    all
}

/// Removes a cgroup and those below it, which the command may have made.
fn remove_all(directory: &Path) -> std::io::Result<()> {
    for group in with_all_below(directory).iter().rev() {
        match std::fs::remove_dir(group) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
