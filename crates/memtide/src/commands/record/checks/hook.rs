//! `record --on-finding`: runs the command for each finding that came, changed or went, in a thread of its own. The command
//! is data of the user; what it is about comes from strangers, and is on its standard input only.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use rustix::process::{Signal, set_parent_process_death_signal, setpriority_process};
use sampler::{ChildEnd, ChildOutcome, ChildTask, Health, OwnChildren};
use units::Span;

use super::note;
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;

/// So many notices wait while a command runs.
const WAITING_MAX: usize = 64;
/// What it prints is not kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Bytes of stack.
const STACK: usize = 256 << 10;
/// The problem where a notice found no room.
pub(super) const TOO_MANY: &str =
    "--on-finding: some findings were not passed on, as the command is too slow for so many";

/// How the command is run.
pub(in super::super) struct HookPlan {
    /// This program, which gives up the recorder's priority and becomes a shell with the command.
    pub(in super::super) command: Vec<OsString>,
    /// How long it may take.
    pub(in super::super) timeout: Span,
}

/// Starts the thread; each line that it is sent is for the command's standard input.
pub(super) fn start(plan: HookPlan, health: Arc<Health>) -> std::io::Result<SyncSender<String>> {
    let (sender, notices) = sync_channel::<String>(WAITING_MAX);
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.name("memtide-hook".to_owned()).spawn(move || {
        let mut children = OwnChildren::default();
        for notice in notices {
            let outcome = children.run(ChildTask {
                command: &plan.command,
                input: notice.as_bytes(),
                deadline: plan.timeout,
                answer_max: ANSWER_BYTES_MAX,
                ending: None,
            });
            let failure = failure(&outcome, plan.timeout);
            health.with_checks(|checks| {
                checks.commands_run += 1;
                checks.commands_failed += u64::from(failure.is_some());
                if let Some(why) = failure {
                    note(checks, format!("--on-finding: the command {why}"));
                }
            });
        }
    })?;
    Ok(sender)
}

/// Why a command failed, in words; `None` if it did not.
fn failure(outcome: &ChildOutcome, timeout: Span) -> Option<String> {
    let why = match outcome.complaint.as_str() {
        "" => String::new(),
        complaint => format!(": {complaint}"),
    };
    Some(match &outcome.end {
        ChildEnd::Exited(status) if status.success() => return None,
        ChildEnd::Exited(status) => match status.code() {
            Some(code) => format!("ended with exit code {code}{why}"),
            None => format!("was killed, {status}{why}"),
        },
        ChildEnd::TooLong => format!("took longer than {timeout} and was killed{why}"),
        ChildEnd::TooMuch => {
            "printed too much and was killed: what it prints is kept nowhere".to_owned()
        }
        ChildEnd::Stopped => "was stopped".to_owned(),
        ChildEnd::NotStarted(error) => format!("cannot be started: {error}"),
    })
}

/// `memtide record --run-hook CMD`: becomes the shell that runs the command, without the recorder's privileges of time and
/// memory, and ended with the recorder.
pub(in super::super) fn run(command: &str) -> Result<Exit, CommandError> {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The priority of usual programs. Raising it from there may be refused; then it stays lower.
    let _ = setpriority_process(None, 0);
    let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    close_others();
    let error = Command::new("/bin/sh").args(["-c", command]).exec();
    Err(error).context("cannot run /bin/sh")
}

/// Has the shell begin without files that the recorder itself was started with, beside input, output and errors. Before Linux
/// 5.11 they stay open.
#[allow(unsafe_code)] // the one call of close_range
fn close_others() {
    let (first, last, when_it_begins) = (3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: it closes nothing now: files are marked to be closed by exec(2), behind which this program has none. It takes
    // three numbers, and no memory of this program.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, when_it_begins) };
}
