//! The command of a run: started within the cgroup, waited for, ended.
#![allow(unsafe_code)]

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use units::Span;

use crate::run_in_cgroup::error::CgroupRunError;
use crate::run_in_cgroup::group::RunGroup;
use crate::run_in_cgroup::readings::awake;
use crate::run_in_cgroup::{ENDING_MAX, RunEnd};

/// From one question to the next where the kernel cannot wait for a process with a timeout (before 5.3).
const EVERY: Duration = Duration::from_millis(10);

/// A command that is ended with this value, and all other processes of its cgroup with it.
#[derive(Debug)]
pub(super) struct RunningCommand {
    child: Child,
    /// Ready once the command has ended.
    ended: Option<OwnedFd>,
    group: RunGroup,
}

impl RunningCommand {
    /// Starts the command. It joins the cgroup before its program is loaded.
    pub(super) fn start(mut command: Command, group: RunGroup) -> Result<Self, CgroupRunError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |source| CgroupRunError::NotStarted { program, source };
        let doors = group.doors()?;
        let (mut not_joined, tell) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => return Err(failed(error)),
        };
        let parent = Some(rustix::process::getpid());
        // SAFETY: the closure runs in the child between fork and exec and makes system calls on open files, which are
        // async-signal-safe: it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // The signal is not sent for a parent that ended before.
                if rustix::process::getppid() != parent {
                    return Err(Errno::SRCH.into());
                }
                for door in &doors {
                    if let Err(errno) = rustix::io::write(door, b"0") {
                        // The parent gets one errno for all that fails before exec: this byte says that it is ours.
                        let _ = rustix::io::write(&tell, b"!");
                        return Err(errno.into());
                    }
                }
                Ok(())
            });
        }
        let spawned = command.spawn();
        // Closes the files that only the child writes to.
        drop(command);
        let child = spawned.map_err(|error| {
            let mut byte = [0];
            if not_joined.read(&mut byte).is_ok_and(|got| got > 0) {
                return CgroupRunError::NotJoined {
                    group: group.directory().to_owned(),
                    source: error,
                };
            }
            failed(error)
        })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let ended = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Self { child, ended, group })
    }

    /// The processes of its cgroup.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.group.pids()
    }

    /// Sends SIGTERM to the command, which is not reaped before [`end`](Self::end): its PID is its own.
    pub(super) fn terminate(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until the command ends, or until `due`; then there is none.
    pub(super) fn wait_until(&mut self, due: Span) -> Result<Option<RunEnd>, CgroupRunError> {
        loop {
            let status = self.child.try_wait();
            let status = status.map_err(|source| CgroupRunError::NotWaitedFor { source })?;
            if let Some(status) = status {
                return Ok(Some(end(status)));
            }
            let left = due.saturating_sub(awake());
            if left == Span::ZERO {
                return Ok(None);
            }
            match &self.ended {
                Some(process) => {
                    let mut polled = [PollFd::new(process, PollFlags::IN)];
                    let timeout = Timespec::try_from(left.as_duration()).ok();
                    // Interrupted or not, the loop asks again.
                    let _ = poll(&mut polled, timeout.as_ref());
                }
                None => std::thread::sleep(left.as_duration().min(EVERY)),
            }
        }
    }

    /// Kills what is left, and removes the cgroup. Returns where it was, and how many processes there were beside the
    /// command.
    pub(super) fn end(mut self, end: RunEnd) -> Result<(PathBuf, usize), CgroupRunError> {
        let directory = self.group.directory().to_owned();
        let met = self.group.remove()?;
        self.reap();
        let own = usize::from(end == RunEnd::Stopped);
        Ok((directory, met.saturating_sub(own)))
    }

    /// Takes the command's exit status, so that no zombie stays. It was killed; one that cannot end is left.
    fn reap(&mut self) {
        let _ = self.child.kill();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < ENDING_MAX {
            std::thread::sleep(EVERY);
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // A command that has left its cgroup is ended, too. Its cgroup is removed when this value's parts are dropped.
        self.reap();
    }
}

fn end(status: ExitStatus) -> RunEnd {
    match status.code() {
        Some(code) => RunEnd::Exited(code),
        None => RunEnd::Signalled(status.signal().unwrap_or_default()),
    }
}
