//! Stops a process while it is read, and always lets it go on: ptrace(2) with `PTRACE_SEIZE` and `PTRACE_INTERRUPT`.
//!
//! Each thread is stopped by itself. Unlike SIGSTOP this is invisible to the process's parent, and the kernel detaches
//! and resumes every thread when the tracer ends, however it ends: no exit path leaves the process stopped. A signal
//! that arrives meanwhile is delivered afterwards. Needs the right to attach, and that no debugger is attached.
//!
//! The tracer is a thread that does nothing else. It may have to wait for a process that is starting another program; and
//! whoever reads the process may have to wait for the process itself, which then goes on.
//! Cost: about 20 µs a thread.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Error;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use crate::error::ReadError;
use crate::kernel_file::Root;
use crate::process::status::StatusFacts;

/// A process of which every thread is stopped until this value is dropped.
#[derive(Debug)]
pub struct FrozenProcess {
    since: Instant,
    /// Closing it makes the tracer let the process go.
    hold: Option<Sender<Infallible>>,
    /// Closed when it has.
    gone: Receiver<Infallible>,
}

/// For all threads together. One in an uninterruptible sleep, such as a read from a lost NFS server, does not stop until
/// it ends.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long threads that did not stop in time are waited for: the kernel lets them go on when this program ends.
const PARTING: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_micros(50);

impl FrozenProcess {
    /// Stops all threads of a process.
    ///
    /// # Errors
    /// [`ReadError`] if it has ended, may not be traced, is traced already, or does not stop within 2 s. Whatever was stopped goes on.
    pub fn stop(root: &Root, pid: u32) -> Result<Self, ReadError> {
        let since = Instant::now();
        let failed = |error| ReadError::new(&root.path(&format!("/proc/{pid}/task")), error);
        let (hold, held) = channel::<Infallible>();
        let (going, gone) = channel::<Infallible>();
        let (stopped, ready) = sync_channel(1);
        let thread = std::thread::Builder::new().name("memtide-freeze".to_owned());
        let own = root.clone();
        let trace = move || {
            // What this thread has stopped goes on before `going` is closed.
            let _going = going;
            let threads = StoppedThreads::stop(&own, pid, since);
            let (result, threads) = match threads {
                Ok(threads) => (Ok(()), Some(threads)),
                Err(error) => (Err(error), None),
            };
            // Nobody waits for a process that stops too late.
            if stopped.send(result).is_ok() {
                let _ = held.recv();
            }
            drop(threads);
        };
        thread.spawn(trace).map_err(failed)?;
        match ready.recv_timeout(PATIENCE + 2 * PARTING) {
            Ok(result) => result.map(|()| Self { since, hold: Some(hold), gone }),
            Err(_) => Err(failed(Error::other(
                "it could not be traced within 2 s: it is starting another program",
            ))),
        }
    }

    /// Returns for how long the process has been stopped.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for FrozenProcess {
    fn drop(&mut self) {
        drop(self.hold.take());
        let _ = self.gone.recv_timeout(2 * PARTING);
    }
}

/// The stopped threads of a process, and the signal that each gets when it goes on. Only the thread that stopped them may
/// let them go.
#[derive(Debug)]
struct StoppedThreads {
    threads: BTreeMap<i32, i32>,
    since: Instant,
}

impl StoppedThreads {
    /// Stops all threads within the time from `since` on.
    fn stop(root: &Root, pid: u32, since: Instant) -> Result<Self, ReadError> {
        let mut stopped = Self { threads: BTreeMap::new(), since };
        let tasks = format!("/proc/{pid}/task");
        let failed = |error| ReadError::new(&root.path(&tasks), error);
        // Threads that run make new ones; the list is complete when it has no new one.
        loop {
            let new: Vec<i32> = root
                .numbers(&tasks)?
                .filter_map(|tid| i32::try_from(tid).ok())
                .filter(|tid| !stopped.threads.contains_key(tid))
                .collect();
            let mut last = None;
            for tid in new {
                let is_stopped = stopped.stop_thread(tid);
                if is_stopped.map_err(|error| failed(reason(root, pid, tid, error)))? {
                    last = Some(tid);
                }
            }
            let Some(tid) = last else { break };
            if stopped.is_late() {
                return Err(failed(late(tid)));
            }
        }
        if stopped.threads.is_empty() {
            return Err(failed(Error::from_raw_os_error(libc::ESRCH)));
        }
        Ok(stopped)
    }

    fn is_late(&self) -> bool {
        self.since.elapsed() > PATIENCE
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
                ThreadStop::Running if self.is_late() => return Err(late(tid)),
                ThreadStop::Running => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for StoppedThreads {
    fn drop(&mut self) {
        let deadline = Instant::now() + PARTING;
        for (tid, signal) in &self.threads {
            let mut signal = *signal;
            // Only a stopped thread can be detached: one that was asked to stop and has not yet is waited for. One that
            // ended meanwhile needs no detaching.
            while ptrace(libc::PTRACE_DETACH, *tid, signal).is_err() {
                match wait(*tid) {
                    ThreadStop::Stopped(own) => signal = own,
                    ThreadStop::Running if Instant::now() < deadline => std::thread::sleep(PAUSE),
                    ThreadStop::Running | ThreadStop::Ended => break,
                }
            }
        }
    }
}

/// The error of a process that is not stopped in time.
fn late(tid: i32) -> Error {
    Error::other(format!(
        "thread {tid} did not stop within 2 s: it is in an uninterruptible sleep (state D), or the \
         process makes threads without end"
    ))
}

/// Returns why a thread could not be stopped: one that is traced already is refused like one that may not be traced.
fn reason(root: &Root, pid: u32, tid: i32, error: Error) -> Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let status = root.read(&format!("/proc/{pid}/task/{tid}/status"));
    match status.ok().and_then(|text| StatusFacts::parse(&text).tracer) {
        Some(tracer) if tracer != 0 => Error::other(format!("it is traced by process {tracer}")),
        _ => error,
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
        let line = status.lines().find(|line| line.starts_with("State:")).unwrap();
        line.split_whitespace().nth(1).unwrap().chars().next().unwrap()
    }

    fn cat() -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
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
    fn a_process_that_is_traced_already_is_an_error_that_names_the_tracer() {
        let mut child = cat();
        let frozen = FrozenProcess::stop(&Root::default(), child.id()).unwrap();
        let error = FrozenProcess::stop(&Root::default(), child.id()).unwrap_err();
        assert_ne!(error.source.kind(), std::io::ErrorKind::PermissionDenied);
        let text = error.source.to_string();
        let tracer = text.strip_prefix("it is traced by process ").unwrap();
        let tracer = format!("/proc/self/task/{tracer}/comm");
        assert_eq!(std::fs::read(tracer).unwrap(), b"memtide-freeze\n", "{text}");
        drop(frozen);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_stopped_in_time_goes_on() {
        let mut child = cat();
        let since = Instant::now().checked_sub(2 * PATIENCE).unwrap();
        let stopped = StoppedThreads::stop(&Root::default(), child.id(), since);
        let error = timeline::with_causes(&stopped.unwrap_err());
        assert!(error.contains("did not stop within 2 s"), "{error}");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(FrozenProcess::stop(&Root::default(), 0x3fff_ffff).is_err());
    }
}
