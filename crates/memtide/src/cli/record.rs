//! Arguments of `memtide record`.

use crate::command_error::{CommandError, bail};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use profile::ProfileCondition;
use units::{Bytes, Span};

use super::typed::{
    check_every, every, explain_every, explained, hook, hook_timeout, keep, keep_size, sync,
};
use super::{AnswerFormat, FollowedArgs};

/// The default interval of processes, and the least of cgroups.
const INTERVAL_SLOW: Span = Span::from_secs(10);
/// How long the command of `--on-finding` may take unless that is typed.
const HOOK_TIMEOUT: Span = Span::from_secs(10);
/// How often malloc heaps are read unless that is typed: a leak of hours has enough readings.
pub(crate) const EXPLAIN_EVERY: Span = Span::from_mins(10);

/// Record this host's memory all the time: a flight recorder
///
/// Every second it samples the host and the 64 busiest cgroups; every 10 s processes, all cgroups and files that change slowly.
/// The directory survives a crash at any byte, and every other command reads it. The recorder uses 5 to 10 MiB of RAM and a
/// fraction of a percent of a CPU, and goes on while the host runs out of memory. It keeps the names of containers and pods,
/// so that they are found by name after their end. As an ordinary user it records the files that this user may read. Ctrl-C
/// and SIGTERM end it in good order; SIGHUP seals the samples so far into Parquet files.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide record                       until Ctrl-C, into this user's default directory
  sudo memtide record --install        as a service, now and at every start
  memtide record --install --dry-run   see its unit first
  memtide record --status              whether it runs, its cost, and what it cannot read
  memtide record --to DIR --every 5s --keep 30d --keep-size 500MiB
  sudo memtide record --profile-when reclaim
                                       also why the kernel reclaims, each time that it begins to
  sudo memtide record --explain redis  also its malloc heaps, every ten minutes
  sudo memtide record --unit web       that service every second, also among thousands of cgroups
  memtide record --check 1m --on-finding 'logger -t memtide'
                                       judges itself each minute, and passes on what it finds
  memtide record --from sick.jsonl.zst --to DIR

TIME is 500ms, 5s, 2m, 1h or 14d; a plain number is seconds, but --keep wants a unit.
SIZE is 500MiB, 2GiB, 2GB (2 x 10^9 bytes), or a number of bytes.

Without --to the directory is /var/lib/memtide for root, and $XDG_STATE_HOME/memtide or ~/.local/state/memtide for others.
Other users must not be able to write to it, nor own a symbolic link on its path.

--explain reads the four largest processes of each name, as `memtide explain` does: in a child of the lowest priority, one \
at a time, and with at most 5 % of a CPU. It needs root, or the right to trace them. `memtide growth` and `check` then \
distinguish a leak from fragmentation.

--profile-when needs what `memtide profile` needs, mostly root: a child of low priority takes 40 MiB for a dozen seconds. `memtide events` and `report` show each profile at its time, and `memtide profile DIR --at TIME` prints it whole.

--check judges the last ten minutes of the recording, as `check --since` does: in a child of the lowest priority, with at \
most 1 % of a CPU. `memtide events` and `report` show what was found and when it was over; --status what is wrong now.

CMD runs by /bin/sh -c once per finding, per change of its severity, and when it is over; a line of JSON is on its standard \
input, and nothing of it on the command line. It has the recorder's user and environment, and no open files.

Exit codes:
  0 done; for --status: running   3 an error; for --status: not running")]
pub(crate) struct RecordArgs {
    /// The recording's directory, created if absent
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,

    /// Interval between samples of the host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub(crate) every: Span,

    /// Interval between samples of processes, and of all cgroups if it is 10s or more [default: 10s, or --every if that is
    /// longer]
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub(crate) processes: Option<Span>,

    /// Do not record processes
    #[arg(long, conflicts_with = "processes")]
    pub(crate) no_processes: bool,

    /// Do not record cgroups
    #[arg(long)]
    pub(crate) no_cgroups: bool,

    #[command(flatten)]
    pub(crate) followed: FollowedArgs,

    /// Also read the malloc heaps of the largest processes of this service, cgroup or name; repeatable
    #[arg(long, value_name = "NAME", value_parser = explained, conflicts_with = "no_processes")]
    pub(crate) explain: Vec<String>,

    /// Interval between readings of these heaps [default: 10m]
    #[arg(long, value_name = "TIME", requires = "explain", value_parser = explain_every)]
    pub(crate) explain_every: Option<Span>,

    /// Profile the kernel's memory work for 10 s when this is true for 2 of 3 seconds, at most 6 times an hour:
    /// psi.memory>10%, sys>30%, pgscan_direct>1000/s, reclaim, as `memtide profile --when`
    #[arg(long, value_name = "CONDITION")]
    pub(crate) profile_when: Option<ProfileCondition>,

    /// Judge the recording itself at this interval, and keep what is found and over as events
    #[arg(long, value_name = "TIME", value_parser = check_every)]
    pub(crate) check: Option<Span>,

    /// Run this command with each finding that came, changed its severity or is over, as JSON on its standard input
    #[arg(long, value_name = "CMD", requires = "check", value_parser = hook)]
    pub(crate) on_finding: Option<String>,

    /// How long that command may take [default: 10s]
    #[arg(long, value_name = "TIME", requires = "on_finding", value_parser = hook_timeout)]
    pub(crate) on_finding_timeout: Option<Span>,

    /// How to read processes, to measure the cost of each way
    #[arg(long, value_enum, hide = true, conflicts_with = "no_processes")]
    pub(crate) tasks: Option<TasksBy>,

    /// Retention: how far back samples are stored
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = keep)]
    pub(crate) keep: Span,

    /// Retention: largest size of the recording; the oldest part is dropped first
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = keep_size)]
    pub(crate) keep_size: Bytes,

    /// Sync interval: a power failure may lose this much
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = sync)]
    pub(crate) sync: Span,

    #[command(flatten)]
    pub(crate) mode: RecordMode,

    /// With --install or --uninstall: print the unit and the commands, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

/// What to do instead of recording; at most one.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[allow(clippy::struct_excessive_bools)] // As they are typed.
pub(crate) struct RecordMode {
    /// Show the state of a directory's recorder: its cost, the files that it cannot read, the samples stored
    #[arg(long)]
    pub(crate) status: bool,

    /// Install and start it as a systemd service with these options: of the system for root, else of the user
    #[arg(long)]
    pub(crate) install: bool,

    /// Stop and remove the service; the recording stays
    #[arg(long)]
    pub(crate) uninstall: bool,

    /// Import SOURCE (anything that `check` reads) into the recording at --to; appends if it is of the same host
    #[arg(long, value_name = "SOURCE", requires = "to")]
    pub(crate) from: Option<PathBuf>,

    /// Read the malloc heaps of --explain once, and print them; the recorder starts this by itself
    #[arg(long, hide = true, requires = "explain")]
    pub(crate) read_heaps: bool,

    /// Profile the kernel once for --profile-when, and print it; the recorder starts this by itself
    #[arg(long, hide = true)]
    pub(crate) take_profile: bool,

    /// Judge the last minutes of DIR once, and print what is wrong; the recorder starts this by itself
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) judge: Option<PathBuf>,

    /// Run the command of --on-finding; the recorder starts this by itself
    #[arg(long, value_name = "CMD", hide = true)]
    pub(crate) run_hook: Option<String>,

    /// Make full head files of DIR segments; the recorder starts this by itself
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) seal: Option<PathBuf>,
}

/// A way to read processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TasksBy {
    /// The kernel's iterator of tasks
    Bpf,
    /// Files below /proc
    Proc,
}

impl RecordArgs {
    /// The interval of processes; `None`: they are not sampled.
    ///
    /// # Errors
    /// Where it is shorter than that of the host.
    pub(crate) fn processes_every(&self) -> Result<Option<Span>, CommandError> {
        match self.processes {
            Some(processes) if processes < self.every => bail!(
                "`--processes {processes}` is shorter than `--every {}`; processes are sampled \
                 with the host, so make it as long or longer",
                self.every
            ),
            _ if self.no_processes => Ok(None),
            Some(processes) => Ok(Some(processes)),
            None => Ok(Some(INTERVAL_SLOW.max(self.every))),
        }
    }

    /// The interval of processes, where that of malloc heaps fits it, too.
    ///
    /// # Errors
    /// As both.
    pub(crate) fn checked_processes_every(&self) -> Result<Option<Span>, CommandError> {
        let processes = self.processes_every()?;
        self.heaps_every(processes)?;
        Ok(processes)
    }

    /// The interval of malloc heaps.
    ///
    /// # Errors
    /// Where it is shorter than that of processes, or too many names are given.
    pub(crate) fn heaps_every(&self, processes: Option<Span>) -> Result<Span, CommandError> {
        let every = self.explain_every.unwrap_or(EXPLAIN_EVERY);
        let processes = processes.unwrap_or(Span::ZERO);
        if self.explain_every.is_some() && every < processes {
            bail!(
                "`--explain-every {every}` is shorter than the interval of processes, {processes}, \
                 with which heaps are stored; give --processes the same time"
            );
        }
        let most = sampler::HEAP_NAMES_MAX;
        if self.explain.len() > most {
            bail!("`--explain` names {}; {most} are the most", self.explain.len());
        }
        Ok(every.max(processes))
    }

    /// How long the command of `--on-finding` may take.
    pub(crate) fn hook_timeout(&self) -> Span {
        self.on_finding_timeout.unwrap_or(HOOK_TIMEOUT)
    }

    /// The interval of cgroups, each of which costs more than a process; `None`: they are not sampled.
    pub(crate) fn cgroups_every(&self, processes: Option<Span>) -> Option<Span> {
        (!self.no_cgroups)
            .then(|| processes.map_or(INTERVAL_SLOW, |every| every.max(INTERVAL_SLOW)))
    }
}
