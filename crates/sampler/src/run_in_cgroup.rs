//! Runs a command in a cgroup of its own and samples that: memory, events and CPU time of all its processes.
//!
//! Reading the cgroup's files, one `pread` for each of six or seven, takes no lock of its processes; 18 µs on v1 of 6.18.
//! What is in memory is charged to the cgroup that touched it first: the page cache that the command finds is not in its
//! figures.
//!
//! **What is ended and removed.** However [`run_in_cgroup`] ends (with a result, an error, or a panic of its callback),
//! every process of the cgroup is killed and the cgroup is removed before. If this process ends meanwhile, by any signal
//! or by abort(3), the kernel kills the command (`PR_SET_PDEATHSIG`) and the guard ([`guard`]) the rest, within a second.
//!
//! **What cannot be promised.** A process that waits uninterruptibly dies later; after [`ENDING_MAX`] the error names it.
//! A process of root may move itself to another cgroup: it is no longer counted, and on v1 ended only while it stays in
//! the freezer's. Where the guard is killed together with this process, as at the end of a container, the end of that cgroup
//! is the end of all below it, but on v1 directories may stay until the next run with the same name removes them.

mod command_group;
mod error;
mod group;
mod guard;
mod limits;
mod place;
mod readings;
mod running;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use timeline::Row;
use timeline::signals::{CGROUP_CURRENT, CGROUP_EVENTS_OOM_KILL, CGROUP_PEAK};
use units::{Bytes, Span};

pub use command_group::CommandGroup;
pub use error::CgroupRunError;
pub use limits::{GroupLimits, LimitsInForce};

use crate::pace::Pace;
use group::RunGroup;
use guard::RunGuard;
use place::GroupPlace;
use readings::{GroupFiles, awake};
use running::RunningCommand;

/// How long processes may take to end after SIGKILL, and their cgroup until it can be removed.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// How a command is run.
#[derive(Debug, Clone)]
pub struct CgroupRunOptions {
    /// How the cgroup's name begins, such as `memtide-trial`; this process's PID and the number of the run follow.
    pub name: &'static str,
    /// The limits of the cgroup; those of the cgroups around it apply as well.
    pub limits: GroupLimits,
    /// From one reading to the next; at least 10 ms.
    pub every: Span,
}

/// The state of the cgroup at one time.
#[derive(Debug, Clone)]
pub struct GroupReading {
    /// Since the command was started.
    pub at: Span,
    /// The signals of the cgroup and all below it: current, peak, events, and what `memory.stat` has. A file that this kernel
    /// lacks leaves its signals absent. On v1, kills are counted of this cgroup alone, and limit hits not at all where swap
    /// is limited to none (seen on 6.18): kills and the peak are.
    pub row: Row,
    /// CPU time of all processes so far, ended ones included; `None` where nothing counts it.
    pub cpu: Option<Span>,
}

/// The cgroup with the command in it, as the callback sees it.
#[derive(Debug)]
pub struct RunNow<'a> {
    /// The newest reading.
    pub reading: &'a GroupReading,
    running: &'a RunningCommand,
}

impl RunNow<'_> {
    /// The processes of the cgroup and of those below it, sorted. A file is read for each cgroup.
    pub fn pids(&self) -> Vec<u32> {
        self.running.pids()
    }

    /// Asks the command to end (SIGTERM); the run goes on until it does.
    pub fn terminate(&self) {
        self.running.terminate();
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The command exited with this code.
    Exited(i32),
    /// This signal ended the command.
    Signalled(i32),
    /// The callback ended the run.
    Stopped,
}

/// The most memory that a cgroup had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPeak {
    /// Counted by the kernel.
    Counted(Bytes),
    /// The largest reading: kernels before 5.19 do not count it on v2, so there may have been more.
    Sampled(Bytes),
}

impl RunPeak {
    /// Its size.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Counted(bytes) | Self::Sampled(bytes) => bytes,
        }
    }
}

/// What a run was.
#[derive(Debug, Clone)]
pub struct CgroupRun {
    /// How it ended.
    pub end: RunEnd,
    /// From the command's start to its end.
    pub wall: Span,
    /// The last reading: after the command's end, before other processes of the cgroup were killed.
    pub last: GroupReading,
    /// The most memory that it had.
    pub peak: Option<RunPeak>,
    /// Processes that were there after the command's end, and were killed.
    pub left_over: usize,
    /// The limits as the kernel reports them.
    pub limits: LimitsInForce,
    /// The directory that the cgroup had.
    pub group: PathBuf,
}

impl CgroupRun {
    /// Whether the kernel killed a process of the cgroup for lack of memory. `None` where it does not count that (before
    /// 4.13).
    pub fn was_oom_killed(&self) -> Option<bool> {
        self.last.row.get(CGROUP_EVENTS_OOM_KILL).map(|kills| kills.get() > 0)
    }
}

/// Runs a command to its end in a new cgroup below that of this process, and hands over a reading at its start and then
/// at each interval; a callback that breaks ends the run. On v2, where a cgroup with processes can have none below it,
/// the new one stands beside that of this process.
///
/// The command keeps its standard streams, environment and process group. What it leaves running is killed.
///
/// # Errors
/// No cgroup can be made ([`CgroupRunError::help`] says what to do), a limit is not taken, the command cannot be started,
/// or its processes cannot be ended.
pub fn run_in_cgroup(
    command: Command,
    options: &CgroupRunOptions,
    each: &mut dyn FnMut(&RunNow<'_>) -> ControlFlow<()>,
) -> Result<CgroupRun, CgroupRunError> {
    let place = GroupPlace::choose(options.name)?;
    // Before the cgroup, so that it is never without a guard, and dropped after it.
    let _guard = RunGuard::start(&place)?;
    let group = RunGroup::make(place)?;
    let limits = options.limits.set(&group)?;
    let mut files = GroupFiles::open(&group);
    let mut running = RunningCommand::start(command, group)?;
    let begun = awake();
    let mut pace = Pace::from(begun, options.every);
    let mut largest = None;
    let end = loop {
        pace.begin(awake());
        let reading = files.read(begun);
        largest = largest.max(reading.row.get(CGROUP_CURRENT));
        if each(&RunNow { reading: &reading, running: &running }).is_break() {
            break RunEnd::Stopped;
        }
        if let Some(end) = running.wait_until(pace.due())? {
            break end;
        }
    };
    let last = files.read(begun);
    let counted = last.row.get(CGROUP_PEAK).map(RunPeak::Counted);
    let (group, left_over) = running.end(end)?;
    Ok(CgroupRun {
        end,
        wall: last.at,
        peak: counted.or(largest.map(RunPeak::Sampled)),
        last,
        left_over,
        limits,
        group,
    })
}
