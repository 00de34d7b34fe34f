//! Children of the recorder: each does what its threads must not, answers with a text, and ends within a time.
//!
//! A child can be ended whatever it waits for, and what it takes of memory is not locked. One that was killed and has not
//! ended yet, as it waits in the kernel, is waited for by nobody: the next run looks again.

use std::ffi::OsString;
use std::io::{Read, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use probe::{ProcessFiles, Root, now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use timeline::signals::{PROC_STIME, PROC_UTIME};
use timeline::{EntityRow, Facts};
use units::{Span, Ticks};

/// From one look at whether it has ended to the next, where nothing shows it.
const LOOK_EVERY: Span = Span::from_millis(50);
/// What is kept of what it says on standard error; the rest is read and forgotten.
const COMPLAINT_BYTES_MAX: usize = 4 << 10;
/// systemd's, for the recorder alone.
const NOTIFICATION: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// What a child is to do.
#[derive(Debug, Clone, Copy)]
pub struct ChildTask<'a> {
    /// Its program and arguments.
    pub command: &'a [OsString],
    /// What it reads from standard input; it need not.
    pub input: &'a [u8],
    /// How long it may take.
    pub deadline: Span,
    /// How much it may answer, in bytes.
    pub answer_max: usize,
    /// It is ended when the other end of this pipe is closed.
    pub ending: Option<BorrowedFd<'a>>,
}

/// What a child did.
#[derive(Debug)]
pub struct ChildOutcome {
    /// What it wrote to standard output, as far as it came.
    pub answer: Vec<u8>,
    /// The first line that it wrote to standard error.
    pub complaint: String,
    /// From its start to its end.
    pub took: Span,
    /// CPU time of one that was killed; `None` of others, which may say it themselves.
    pub cpu: Option<Span>,
    /// How it ended.
    pub end: ChildEnd,
}

/// How a child ended.
#[derive(Debug)]
pub enum ChildEnd {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It took longer than its deadline, and was killed with its process group.
    TooLong,
    /// It answered more than it may, and was killed.
    TooMuch,
    /// It was killed because the recorder ends.
    Stopped,
    /// It never began.
    NotStarted(std::io::Error),
}

impl ChildOutcome {
    /// What one answered that ended well.
    ///
    /// # Errors
    /// Why there is no whole answer, in words; `deadline` is what it was given.
    pub fn answered(self, deadline: Span) -> Result<Vec<u8>, String> {
        let complaint = self.complaint.trim_start_matches("error: ");
        Err(match self.end {
            ChildEnd::Exited(status) if status.success() => return Ok(self.answer),
            ChildEnd::Exited(status) if complaint.is_empty() => status.to_string(),
            ChildEnd::Exited(_) => complaint.to_owned(),
            ChildEnd::TooLong => format!("it took longer than {deadline} and was ended"),
            ChildEnd::TooMuch => "it wrote too much".to_owned(),
            ChildEnd::Stopped => "it was stopped".to_owned(),
            ChildEnd::NotStarted(error) => format!("it cannot be started: {error}"),
        })
    }
}

/// Runs children, one at a time.
#[derive(Debug, Default)]
pub struct OwnChildren {
    /// Those that were killed and have not ended yet.
    killed: Vec<Child>,
}

impl OwnChildren {
    /// Has a child do a task: in a process group of its own, so that Ctrl-C in the terminal is the recorder's.
    pub fn run(&mut self, task: ChildTask<'_>) -> ChildOutcome {
        self.killed.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let began = now().boot;
        let mut outcome = ChildOutcome {
            answer: Vec::new(),
            complaint: String::new(),
            took: Span::ZERO,
            cpu: None,
            end: ChildEnd::Stopped,
        };
        let started = start(task);
        outcome.end = match started {
            Err(error) => ChildEnd::NotStarted(error),
            Ok(mut child) => {
                let end = attend(&mut child, task, began, &mut outcome);
                if !matches!(end, ChildEnd::Exited(_)) {
                    outcome.cpu = cpu_time(child.id());
                    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                    self.killed.push(child);
                }
                end
            }
        };
        outcome.took = now().boot.saturating_sub(began);
        outcome
    }
}

/// The CPU time of a child that runs.
fn cpu_time(pid: u32) -> Option<Span> {
    let text = Root::default().read(&format!("/proc/{pid}/stat")).ok()?;
    let mut row = EntityRow::default();
    ProcessFiles::default().parse(pid, "stat", &text, &mut row).ok()?;
    let ticks = |signal| row.row.get(signal).map_or(0, |ticks: Ticks| ticks.get());
    let hertz = Facts::default().user_hz().max(1);
    let nanos = (ticks(PROC_UTIME) + ticks(PROC_STIME)).saturating_mul(1_000_000_000 / hertz);
    Some(Span::from_nanos(nanos))
}

fn start(task: ChildTask<'_>) -> std::io::Result<Child> {
    let (program, arguments) = task.command.split_first().ok_or(std::io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).process_group(0);
    NOTIFICATION.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.stdin(input(task.input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    for output in [child.stdout.as_ref().map(AsFd::as_fd), child.stderr.as_ref().map(AsFd::as_fd)] {
        let output = output.ok_or(std::io::ErrorKind::BrokenPipe)?;
        fcntl_setfl(output, fcntl_getfl(output)? | OFlags::NONBLOCK)?;
    }
    Ok(child)
}

/// A file in memory: who writes to a pipe waits for its reader.
fn input(text: &[u8]) -> std::io::Result<Stdio> {
    if text.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = std::fs::File::from(memfd_create("memtide", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads what a child writes until it ends, by itself or because it must.
fn attend(
    child: &mut Child,
    task: ChildTask<'_>,
    began: Span,
    outcome: &mut ChildOutcome,
) -> ChildEnd {
    let (mut output, mut errors) = (child.stdout.take(), child.stderr.take());
    let mut complaints = Vec::new();
    let end = loop {
        let left = task.deadline.saturating_sub(now().boot.saturating_sub(began));
        if left == Span::ZERO {
            break ChildEnd::TooLong;
        }
        if is_stopped(task.ending, output.as_ref(), errors.as_ref(), left.min(LOOK_EVERY)) {
            break ChildEnd::Stopped;
        }
        // Before it is drained: what it wrote before its end is then there.
        let ended = child.try_wait();
        drain(&mut output, &mut outcome.answer, task.answer_max.saturating_add(1));
        drain(&mut errors, &mut complaints, COMPLAINT_BYTES_MAX);
        if outcome.answer.len() > task.answer_max {
            break ChildEnd::TooMuch;
        }
        match ended {
            Ok(Some(status)) => break ChildEnd::Exited(status),
            Ok(None) => {}
            Err(error) => break ChildEnd::NotStarted(error),
        }
    };
    let complaints = String::from_utf8_lossy(&complaints);
    outcome.complaint = complaints.lines().next().unwrap_or_default().trim().to_owned();
    end
}

/// Waits until the child wrote something, or for so long; returns whether the recorder ends.
fn is_stopped(
    ending: Option<BorrowedFd<'_>>,
    output: Option<&ChildStdout>,
    errors: Option<&ChildStderr>,
    at_most: Span,
) -> bool {
    let files = [ending, output.map(AsFd::as_fd), errors.map(AsFd::as_fd)];
    let files = files.into_iter().flatten();
    let mut polled: Vec<PollFd<'_>> =
        files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
    // Interrupted by a signal, nothing is ready.
    let _ = poll(&mut polled, Some(&timespec(at_most)));
    ending.is_some() && polled.first().is_some_and(|ending| !ending.revents().is_empty())
}

/// Reads what is there into a buffer, and forgets what does not fit; `None` at its end.
fn drain(from: &mut Option<impl Read>, into: &mut Vec<u8>, at_most: usize) {
    /// Who writes without end must not keep the reader.
    const TURNS_MAX: usize = 64;
    let mut buffer = [0; 4096];
    for _ in 0..TURNS_MAX {
        let Some(file) = from else {
            return;
        };
        match file.read(&mut buffer) {
            Ok(0) => *from = None,
            Ok(length) => {
                let room = at_most.saturating_sub(into.len()).min(length);
                into.extend_from_slice(buffer.get(..room).unwrap_or_default());
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(_) => *from = None,
        }
    }
}

/// Waits for as long; returns whether the other end of the pipe is closed meanwhile.
pub(crate) fn ends_within(ending: BorrowedFd<'_>, pause: Span) -> bool {
    let until = now().boot.plus(pause);
    loop {
        let left = until.saturating_sub(now().boot);
        let is_ending = is_stopped(Some(ending), None, None, left);
        if is_ending || left == Span::ZERO {
            return is_ending;
        }
    }
}

pub(crate) fn timespec(span: Span) -> Timespec {
    let nanos = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, input: &[u8], deadline: Span) -> ChildOutcome {
        let command = ["sh", "-c", script].map(OsString::from);
        let task =
            ChildTask { command: &command, input, deadline, answer_max: 1 << 10, ending: None };
        OwnChildren::default().run(task)
    }

    const LONG: Span = Span::from_mins(1);

    #[test]
    fn what_a_child_reads_and_writes_comes_through() {
        let outcome = run("cat; echo second >&2; echo third >&2; exit 3", b"first\n", LONG);
        assert_eq!(outcome.answer, b"first\n");
        assert_eq!(outcome.complaint, "second");
        let ChildEnd::Exited(status) = outcome.end else { panic!("{outcome:?}") };
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_child_that_reads_nothing_delays_nobody() {
        let large = vec![b'x'; 1 << 20];
        let outcome = run("exit 0", &large, LONG);
        assert!(matches!(outcome.end, ChildEnd::Exited(_)) && outcome.took < LONG, "{outcome:?}");
    }

    #[test]
    fn one_that_hangs_ends_with_what_it_started() {
        let outcome = run("sleep 600 & echo $!; wait", b"", Span::from_millis(300));
        assert!(matches!(outcome.end, ChildEnd::TooLong), "{outcome:?}");
        assert!(outcome.cpu.is_some_and(|cpu| cpu < outcome.took), "{outcome:?}");
        let pid = String::from_utf8(outcome.answer).unwrap();
        let place = format!("/proc/{}/stat", pid.trim());
        let is_gone = || std::fs::read_to_string(&place).map_or(true, |text| text.contains(") Z"));
        assert!((0..100).any(|_| is_gone() || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            false
        }));
    }

    #[test]
    fn what_stays_behind_with_its_pipes_is_not_waited_for() {
        let outcome = run("sleep 5 & exit 0", b"", LONG);
        assert!(outcome.took < Span::from_secs(4), "{outcome:?}");
    }

    #[test]
    fn neither_much_nor_endless_text_is_kept() {
        let outcome = run("while :; do echo 0123456789; done", b"", LONG);
        assert!(matches!(outcome.end, ChildEnd::TooMuch), "{outcome:?}");
        let loud = "while :; do echo 0123456789; done >&2";
        let outcome = run(loud, b"", Span::from_millis(300));
        assert!(matches!(outcome.end, ChildEnd::TooLong), "{outcome:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named_by_the_error() {
        let command = [OsString::from("/nonexistent/program")];
        let task = ChildTask {
            command: &command,
            input: b"",
            deadline: LONG,
            answer_max: 0,
            ending: None,
        };
        let outcome = OwnChildren::default().run(task);
        assert!(matches!(outcome.end, ChildEnd::NotStarted(_)), "{outcome:?}");
    }
}
