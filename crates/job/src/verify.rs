//! The same job with and without a remedy, run after run in balanced blocks: does the remedy do what it promises?
//!
//! Each run has a cgroup of its own, so that what it takes of the page cache is counted by the kernel, and begins with the files
//! of the job out of the cache. The first run is not measured: it shows which files those are. What differs is judged by the
//! statistics of `trial` ([`stats::BlockDesign`]): all intervals hold together.

mod analysis;
mod dont_cache;
mod drop_behind;
mod hint;
mod screen;

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::{Advice, OFlags, fadvise, fdatasync};
use sampler::{CgroupRunError, CgroupRunOptions, CommandGroup, GroupLimits, GroupReading};
use thiserror::Error;
use timeline::facts::CgroupMode;
use timeline::signals::{CGROUP_EVENTS_OOM_KILL, CGROUP_FILE, CGROUP_SHMEM};
use trial::Orders;
use units::{Bytes, PageSize, Span};

use crate::harm::harmed;
use crate::observe::{JobEnd, JobIo, ObserveError, ObserveMethod, observe_beside};
pub use analysis::{VERIFY_SCHEMA, VerifiedMetric, VerifiedValue, VerifiedWay, VerifyReport};
use dont_cache::DontCache;
pub use dont_cache::serve_dont_cache;
use drop_behind::DropBehind;
pub use hint::{JobHint, NoSuchHint};
pub use screen::verify_screen;

/// Files of the job that are remembered.
const NAMES_MAX: usize = 200_000;

/// What is run.
#[derive(Debug, Clone)]
pub struct VerifyPlan {
    /// The command as it is.
    pub command: Vec<String>,
    /// Remedies, each a way of its own.
    pub hints: Vec<JobHint>,
    /// How often each way is run.
    pub blocks: usize,
    /// A command that is run before each run, such as one that removes what the last one wrote.
    pub prepare: Option<String>,
}

/// Why a remedy cannot be tried.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// No cgroup can be made, or its limit is not taken.
    #[error(transparent)]
    NoGroup(#[from] CgroupRunError),
    /// The command cannot be watched.
    #[error(transparent)]
    NotObserved(#[from] ObserveError),
    /// The kernel does not hand over reads and writes.
    #[error("reads and writes cannot be given RWF_DONTCACHE")]
    NoDontCache(#[source] std::io::Error),
    /// The command before each run failed.
    #[error("--prepare failed: {0}")]
    NotPrepared(String),
    /// The command fails as it is.
    #[error("the command ended with {0} as it is, so nothing can be compared")]
    Fails(String),
    /// Ctrl-C before two blocks were whole.
    #[error("interrupted before two blocks were whole: nothing can be compared")]
    Interrupted,
}

impl VerifyError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoGroup(error) => error.help().map(str::to_owned),
            Self::NotObserved(error) => error.help(),
            Self::NoDontCache(_) => Some(
                "Linux 6.14 has it, on file systems that take it; without it: fadvise".to_owned(),
            ),
            Self::NotPrepared(_) | Self::Fails(_) | Self::Interrupted => None,
        }
    }
}

/// What one run was.
#[derive(Debug, Clone)]
struct VerifiedRun {
    io: JobIo,
    wall: Span,
    cpu: Span,
    /// The most of files that its cgroup had in the cache, and what was left at the end.
    cached_most: Bytes,
    left: Bytes,
    /// What others read again, and what left the cache of theirs.
    reread: Bytes,
    pushed_out: Bytes,
    /// Why it did not do its work.
    fault: Option<String>,
}

/// Runs all ways in blocks.
///
/// # Errors
/// [`VerifyError`]: a run cannot be made, or too few were.
pub fn verify(
    plan: &VerifyPlan,
    is_interrupted: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(&str),
) -> Result<VerifyReport, VerifyError> {
    let ways = plan.hints.len() + 1;
    let mut names = BTreeSet::new();
    tell("a run that is not measured: which files are there?");
    let first = run(plan, None, &mut names, is_interrupted)?;
    if let Some(fault) = first.fault {
        return Err(VerifyError::Fails(fault));
    }
    let orders = Orders::new(ways, u64::from(std::process::id()));
    let mut blocks: Vec<Vec<VerifiedRun>> = Vec::new();
    'blocks: for block in 0..plan.blocks {
        let mut runs: Vec<Option<VerifiedRun>> = vec![None; ways];
        for way in orders.of_block(block) {
            let hint = way.checked_sub(1).and_then(|hint| plan.hints.get(hint));
            let name = hint.map_or_else(|| "as it is".to_owned(), JobHint::to_string);
            tell(&format!("block {} of {}: {name}", block + 1, plan.blocks));
            runs[*way] = Some(run(plan, hint, &mut names, is_interrupted)?);
            if is_interrupted() {
                break 'blocks;
            }
        }
        blocks.push(runs.into_iter().flatten().collect());
    }
    if blocks.len() < 2 {
        return Err(VerifyError::Interrupted);
    }
    Ok(VerifyReport::of(plan, &blocks, cgroup_mode() == Some(CgroupMode::V1)))
}

fn cgroup_mode() -> Option<CgroupMode> {
    Some(probe::memory_cgroup_mount(&probe::Root::default())?.0)
}

fn run(
    plan: &VerifyPlan,
    hint: Option<&JobHint>,
    names: &mut BTreeSet<PathBuf>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<VerifiedRun, VerifyError> {
    if let Some(line) = &plan.prepare {
        prepare(line)?;
    }
    names.iter().for_each(drop_from_cache);
    let options = CgroupRunOptions {
        name: "memtide-job",
        limits: limits_of(hint),
        every: Span::from_millis(10),
    };
    let mut group = CommandGroup::make(&options)?;
    let mut command = command_of(plan, hint);
    group.admit(&mut command)?;
    let page = probe::host_facts::page_size().unwrap_or(PageSize::USUAL);
    let mut behind = (hint == Some(&JobHint::Fadvise)).then(|| DropBehind::new(page));
    let handed = match hint {
        Some(JobHint::DontCache) => {
            Some(DontCache::prepare(&mut command, &group).map_err(VerifyError::NoDontCache)?)
        }
        _ => None,
    };
    let mut cached_most = Bytes::ZERO;
    let method = ObserveMethod::OpenFiles;
    let seen = observe_beside(command, method, is_interrupted, &mut |open| {
        cached_most = cached_most.max(files_of(&group.read()));
        if let Some(behind) = &mut behind {
            behind.look(open);
        }
    });
    let served = handed.map(DontCache::end).transpose().map_err(VerifyError::NoDontCache)?;
    let seen = seen?;
    if let Some(behind) = behind {
        behind.finish();
    }
    let last = group.read();
    let left = files_of(&last);
    let was_killed = last.row.get(CGROUP_EVENTS_OOM_KILL).is_some_and(|kills| kills.get() > 0);
    group.end()?;
    for file in seen.touches.files() {
        if let Some(name) = file.name.as_deref().filter(|_| names.len() < NAMES_MAX) {
            names.insert(PathBuf::from(name));
        }
    }
    let harmed = harmed(&seen.others);
    Ok(VerifiedRun {
        io: seen.io.plus(served.unwrap_or_default()),
        wall: seen.wall,
        cpu: seen.cpu,
        cached_most: cached_most.max(left),
        left,
        reread: harmed.iter().map(|group| group.reread_bytes).sum(),
        pushed_out: harmed.iter().map(|group| group.reread_bytes + group.shrunk_bytes).sum(),
        fault: match seen.end {
            _ if was_killed => Some("the kernel's kill at its limit".to_owned()),
            JobEnd::Exited(0) => None,
            JobEnd::Exited(code) => Some(format!("exit code {code}")),
            JobEnd::Signalled(signal) => Some(format!("signal {signal}")),
            JobEnd::GoesOn | JobEnd::Ended => Some("interruption".to_owned()),
        },
    })
}

/// Undoes what the run before left.
fn prepare(line: &str) -> Result<(), VerifyError> {
    let status = shell(line).stdout(Stdio::null()).status();
    let status = status.map_err(|error| VerifyError::NotPrepared(error.to_string()))?;
    status.success().then_some(()).ok_or_else(|| VerifyError::NotPrepared(status.to_string()))
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// The command of the plan, or the one that a hint has in its place.
fn command_of(plan: &VerifyPlan, hint: Option<&JobHint>) -> Command {
    let mut command = match hint {
        Some(JobHint::Command(line)) => shell(line),
        _ => {
            let mut command = Command::new(&plan.command[0]);
            command.args(&plan.command[1..]);
            command
        }
    };
    command.stdout(Stdio::null());
    command
}

/// The limits of a run's cgroup: version 1 has no `memory.high`.
fn limits_of(hint: Option<&JobHint>) -> GroupLimits {
    let limit = match hint {
        Some(JobHint::MemoryHigh(size)) => Some(*size),
        _ => None,
    };
    let is_v1 = cgroup_mode() == Some(CgroupMode::V1);
    GroupLimits {
        memory: limit.filter(|_| is_v1),
        high: limit.filter(|_| !is_v1),
        ..GroupLimits::default()
    }
}

/// What a cgroup has of files in the cache.
fn files_of(reading: &GroupReading) -> Bytes {
    let size = |signal| reading.row.get(signal).unwrap_or_default();
    size(CGROUP_FILE).saturating_sub(size(CGROUP_SHMEM))
}

/// Drops a regular file from the cache, written first.
fn drop_from_cache(name: &PathBuf) {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = flags.bits().cast_signed();
    let Ok(file) = std::fs::File::options().read(true).custom_flags(flags).open(name) else {
        return;
    };
    if file.metadata().is_ok_and(|about| about.is_file()) {
        let _ = fdatasync(&file);
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}
