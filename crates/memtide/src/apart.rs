//! Answers from a child, so that memtide ends with its answer.
//!
//! Whoever reads another process may be made to wait where not even SIGKILL reaches: `process_vm_readv` waits so for the lock
//! of its address space, and every call waits so for a FUSE server that has taken a request and does not answer it. A program
//! ends with its last thread; so what reads processes is a child, which says when it has answered, and is then left
//! behind. It is killed when this program ends, and ends as soon as it can. Cost: 0.3 ms.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, getppid};

use crate::exit::Exit;
use crate::interrupt;

/// The program that waits for this one's answer; zero if none does.
static WAITING: AtomicI32 = AtomicI32::new(0);
/// How long a child is waited for that has answered: its CPU time then counts as this program's.
const PARTING: Duration = Duration::from_millis(100);

/// Returns this program's PIDs: its own, and that of the program that waits for its answer.
pub(crate) fn own_pids() -> Vec<u32> {
    let waiting = u32::try_from(WAITING.load(Ordering::Relaxed)).unwrap_or(0);
    let own = [std::process::id(), waiting];
    own.into_iter().filter(|pid| *pid > 0).collect()
}

/// Has a child answer. Where there is no room for one, this program does.
pub(crate) fn answer(answer: impl FnOnce() -> Exit) -> ExitCode {
    let Ok((from_child, tell)) = std::io::pipe() else {
        return answer().into();
    };
    let parent = getpid();
    match fork() {
        Some(0) => {
            drop(from_child);
            as_child(parent, tell, answer)
        }
        Some(child) => {
            drop(tell);
            as_parent(child, from_child)
        }
        None => answer().into(),
    }
}

fn as_child(parent: Pid, mut tell: PipeWriter, answer: impl FnOnce() -> Exit) -> ExitCode {
    WAITING.store(parent.as_raw_nonzero().get(), Ordering::Relaxed);
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(parent) {
        return Exit::Unknown.into();
    }
    let exit = answer();
    // Who reads the answer from a pipe waits until nobody has it open: a child that is left behind may not.
    if let Ok(nothing) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
    // A parent that is gone needs no code.
    let _ = tell.write_all(&[exit as u8]);
    exit.into()
}

fn as_parent(child: i32, mut from_child: PipeReader) -> ExitCode {
    // The child gets the terminal's signals too, and decides; a second Ctrl-C ends both.
    let pressed = interrupt::listen();
    let mut is_passed_on = false;
    // Whoever interrupts this program alone, as `kill -INT` does where there is no terminal, means its child.
    while !is_answered(&from_child) {
        if pressed() && !is_passed_on && !is_on_terminal() {
            is_passed_on = true;
            let child = Pid::from_raw(child);
            let _ = child.map(|child| rustix::process::kill_process(child, Signal::INT));
        }
    }
    let mut code = [0];
    match from_child.read_exact(&mut code) {
        Ok(()) => {
            let answered = Instant::now();
            while wait(child, WaitOptions::NOHANG).is_none() && answered.elapsed() < PARTING {
                std::thread::sleep(Duration::from_micros(500));
            }
            code[0].into()
        }
        Err(_) => wait(child, WaitOptions::empty()).map_or(Exit::Unknown.into(), code_of),
    }
}

/// Waits a moment for the child's answer, or its end.
fn is_answered(from_child: &PipeReader) -> bool {
    const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut polled = [PollFd::new(from_child, PollFlags::IN)];
    match poll(&mut polled, Some(&MOMENT)) {
        Ok(ready) => ready > 0,
        Err(errno) => errno != Errno::INTR,
    }
}

/// Whether a terminal sends its signals to this program and its child alike.
fn is_on_terminal() -> bool {
    let front = rustix::termios::tcgetpgrp(std::io::stderr());
    front.is_ok_and(|front| front == rustix::process::getpgrp())
}

/// The exit code by which shells report how a program ended.
fn code_of(status: WaitStatus) -> ExitCode {
    let status = ExitStatus::from_raw(status.as_raw());
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(Exit::Unknown.into(), ExitCode::from)
}

fn wait(child: i32, options: WaitOptions) -> Option<WaitStatus> {
    let waited = rustix::process::waitpid(Pid::from_raw(child), options);
    waited.ok().flatten().map(|(_, status)| status)
}

/// Returns 0 in the child, the child's PID here; `None` if there is no room for it.
#[allow(unsafe_code)] // the one call of fork
fn fork() -> Option<i32> {
    // SAFETY: this is called before any other thread is started, so nothing is locked or half done in the child by a
    // thread that it does not have.
    let pid = unsafe { libc::fork() };
    (pid >= 0).then_some(pid)
}
