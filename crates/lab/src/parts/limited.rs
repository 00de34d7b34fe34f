//! A cgroup with a limit, around one part: what it takes beyond that ends the part, and nothing else of the host.

use std::ops::ControlFlow;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Signal;
use sampler::{CgroupRunOptions, GroupLimits, RunEnd, run_in_cgroup};
use units::{Bytes, Span};

use crate::LabError;

/// Set for the program that plays the part within the limit.
const WITHIN: &str = "MEMTIDE_LAB_WITHIN_LIMIT";
/// From one question whether the user ended it to the next.
const EVERY: Span = Span::from_millis(50);

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

/// Whether this program plays its part within a limit already.
pub fn is_within_limit() -> bool {
    std::env::var_os(WITHIN).is_some()
}

/// Runs this program again with the same arguments, in a new cgroup that may take this much RAM and no swap. A part that
/// is interrupted is killed.
///
/// # Errors
/// [`LabError::InCgroup`] where no cgroup can be made, or the part cannot be started or ended.
pub fn run_within_limit(
    limit: Bytes,
    is_interrupted: impl Fn() -> bool,
) -> Result<LimitedEnd, LabError> {
    let mut arguments = std::env::args_os();
    let mut part = Command::new("/proc/self/exe");
    part.arg0(arguments.next().unwrap_or_default()).args(arguments).env(WITHIN, "1");
    let options = CgroupRunOptions {
        name: "memtide-lab",
        limits: GroupLimits {
            memory: Some(limit),
            swap: Some(Bytes::new(0)),
            is_killed_whole: true,
            ..GroupLimits::default()
        },
        every: EVERY,
    };
    let run = run_in_cgroup(part, &options, &mut |_| {
        if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let by_user = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
    Ok(match run.end {
        RunEnd::Stopped => LimitedEnd::Interrupted,
        RunEnd::Signalled(signal) if by_user.contains(&signal) => LimitedEnd::Interrupted,
        _ if run.was_oom_killed() == Some(true) => LimitedEnd::KilledAtLimit,
        RunEnd::Exited(code) => LimitedEnd::Exited(code),
        RunEnd::Signalled(_) => LimitedEnd::Killed,
    })
}
