//! What can be typed after `memtide record`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use units::{Bytes, Span};

use super::AnswerFormat;
use super::typed::{every, keep, keep_size, sync};

/// Record this host's memory all the time: a flight recorder that every other command can look back with
///
/// It samples the host every second, control groups and processes every ten, and keeps the samples for days, in a directory
/// that survives a crash at any moment. It is small (some 5 MiB, a fraction of a percent of a CPU) and made to go on where the host
/// runs out of memory. As an ordinary user it records what it may read. Ctrl-C or SIGTERM ends it in good order, SIGHUP
/// makes what is recorded so far a file that other programs can open.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide record                       until Ctrl-C, into this user's usual place
  sudo memtide record --install        as a service, now and at every start
  memtide record --install --dry-run   see its unit first
  memtide record --status              is it running, what does it cost, what can it not see
  memtide record --to DIR --every 5s --keep 30d --keep-size 500MiB
  memtide record --from sick.jsonl.zst --to DIR

TIME is 500ms, 5s, 2m, 1h or 14d; a plain number is seconds, but --keep wants a unit.
SIZE is 500MiB, 2GiB, 2GB (2 x 10^9 bytes), or a number of bytes.

Without --to it is /var/lib/memtide for root, and $XDG_STATE_HOME/memtide or ~/.local/state/memtide for others.

Exit codes: 0 done; for --status: running   3 an error; for --status: not running")]
pub(crate) struct Record {
    /// Where to record: a directory, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,

    /// How often to look at the host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub(crate) every: Span,

    /// How often to look at processes, and at control groups if not more often than every 10s [default: 10s, or --every
    /// where that is longer]
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub(crate) processes: Option<Span>,

    /// Do not record processes
    #[arg(long, conflicts_with = "processes")]
    pub(crate) no_processes: bool,

    /// Do not record control groups
    #[arg(long)]
    pub(crate) no_groups: bool,

    /// Which way to read processes, whatever is best here: to measure what each costs
    #[arg(long, value_enum, hide = true, conflicts_with = "no_processes")]
    pub(crate) tasks: Option<TasksBy>,

    /// How far back to keep
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = keep)]
    pub(crate) keep: Span,

    /// How much to keep; the oldest goes first
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = keep_size)]
    pub(crate) keep_size: Bytes,

    /// How much may be lost when the power fails
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = sync)]
    pub(crate) sync: Span,

    #[command(flatten)]
    pub(crate) mode: RecordMode,

    /// With --install or --uninstall: show what would be done, and do nothing
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
    /// Say how the recorder of a directory is doing: what it costs, what it cannot read, what it keeps
    #[arg(long)]
    pub(crate) status: bool,

    /// Make it a systemd service with these options and start it: of the system for root, else of the user
    #[arg(long)]
    pub(crate) install: bool,

    /// Stop and remove the service; the recording stays
    #[arg(long)]
    pub(crate) uninstall: bool,

    /// Make SOURCE a recording at --to: whatever `check` reads; one of the same host that is there already goes on
    #[arg(long, value_name = "SOURCE", requires = "to")]
    pub(crate) from: Option<PathBuf>,

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
