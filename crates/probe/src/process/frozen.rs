//! Stops a process while it is read, and always lets it go on: ptrace(2) with `PTRACE_SEIZE` and `PTRACE_INTERRUPT`.
//!
//! Each thread is stopped by itself. Unlike SIGSTOP this is invisible to the process's parent, and the kernel detaches
//! and resumes every thread when the tracer ends, however it ends: no exit path leaves the process stopped. A signal
//! that arrives meanwhile is delivered afterwards. Needs the right to attach, and that no debugger is attached.
//! Cost: about 20 µs a thread.

use std::collections::BTreeMap;
use std::io::Error;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::error::ReadError;
use crate::kernel_file::Root;

/// A process of which every thread is stopped until this value is dropped.
#[derive(Debug)]
pub struct FrozenProcess {
    /// The stopped threads, and the signal that each gets when it goes on.
    threads: BTreeMap<i32, i32>,
    since: Instant,
    /// Only the thread that attached may detach.
    only_here: PhantomData<*const ()>,
}

/// A thread in an uninterruptible sleep, such as a read from a lost NFS server, does not stop until it ends.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(50);

impl FrozenProcess {
    /// Stops all threads of a process.
    ///
    /// # Errors
    /// [`ReadError`] if it has ended, may not be traced, is traced already, or has a thread that does not stop within
    /// 2 s. Whatever was stopped goes on.
    pub fn stop(root: &Root, pid: u32) -> Result<Self, ReadError> {
        let mut frozen = Self {
            threads: BTreeMap::new(),
            since: Instant::now(),
            only_here: PhantomData,
        };
        let tasks = format!("/proc/{pid}/task");
        let failed = |error| ReadError::new(&root.path(&tasks), error);
        // Threads that run make new ones; the list is complete when it has no new one.
        loop {
            let new: Vec<i32> = root
                .numbers(&tasks)?
                .filter_map(|tid| i32::try_from(tid).ok())
                .filter(|tid| !frozen.threads.contains_key(tid))
                .collect();
            let mut has_grown = false;
            for tid in new {
                has_grown |= frozen.stop_thread(tid).map_err(failed)?;
            }
            if !has_grown {
                break;
            }
        }
        if frozen.threads.is_empty() {
            return Err(failed(Error::from_raw_os_error(libc::ESRCH)));
        }
        Ok(frozen)
    }

    /// Returns for how long the process has been stopped.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Stops a thread. Returns whether it still exists.
    fn stop_thread(&mut self, tid: i32) -> Result<bool, Error> {
        if let Err(error) = ptrace(libc::PTRACE_SEIZE, tid, 0) {
            return match error.raw_os_error() {
                Some(libc::ESRCH) => Ok(false),
                _ => Err(error),
            };
        }
        self.threads.insert(tid, 0);
        if ptrace(libc::PTRACE_INTERRUPT, tid, 0).is_err() {
            self.threads.remove(&tid);
            return Ok(false);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match wait(tid) {
                ThreadStop::Stopped(signal) => {
                    self.threads.insert(tid, signal);
                    return Ok(true);
                }
                ThreadStop::Ended => {
                    self.threads.remove(&tid);
                    return Ok(false);
                }
                ThreadStop::Running if Instant::now() > deadline => {
                    let why =
                        format!("thread {tid} did not stop within 2 s: it waits for a device");
                    return Err(Error::other(why));
                }
                ThreadStop::Running => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for FrozenProcess {
    fn drop(&mut self) {
        for (tid, signal) in &self.threads {
            // A thread that ended meanwhile needs no detaching.
            let _ = ptrace(libc::PTRACE_DETACH, *tid, *signal);
        }
    }
}

/// What a thread does after it was asked to stop.
enum ThreadStop {
    /// It is stopped; it gets this signal when it goes on, or none (0).
    Stopped(i32),
    Running,
    Ended,
}

#[allow(unsafe_code)] // the one call of waitpid
fn wait(tid: i32) -> ThreadStop {
    let mut status = 0;
    // SAFETY: waitpid writes one int to `status`, which outlives the call.
    let got = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
    match got {
        0 => ThreadStop::Running,
        _ if got != tid || !libc::WIFSTOPPED(status) => ThreadStop::Ended,
        // The stop that was asked for; anything else is a signal on its way to the thread.
        _ if status >> 16 == libc::PTRACE_EVENT_STOP => ThreadStop::Stopped(0),
        _ => ThreadStop::Stopped(libc::WSTOPSIG(status)),
    }
}

#[allow(unsafe_code)] // the one call of ptrace
fn ptrace(request: libc::c_uint, tid: i32, data: i32) -> Result<(), Error> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: SEIZE, INTERRUPT and DETACH take numbers only; no memory of this process is read or written.
    let result = unsafe { libc::ptrace(request, tid, nothing, i64::from(data)) };
    if result == -1 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn state(pid: u32) -> char {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("State:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .chars()
            .next()
            .unwrap()
    }

    fn cat() -> Child {
        let mut command = Command::new("cat");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_process_is_stopped_and_goes_on_afterwards() {
        let mut child = cat();
        let pid = child.id();
        let frozen = FrozenProcess::stop(&Root::default(), pid).unwrap();
        assert_eq!(state(pid), 't', "tracing stop");
        drop(frozen);
        // It goes on: the end of its input ends it.
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_signal_that_arrives_meanwhile_is_delivered_afterwards() {
        let mut child = cat();
        let frozen = FrozenProcess::stop(&Root::default(), child.id()).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(state(child.id()), 't');
        drop(frozen);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(FrozenProcess::stop(&Root::default(), 0x3fff_ffff).is_err());
    }
}
