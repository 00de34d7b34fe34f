//! Arguments of `memtide job`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use job::ObserveMethod;
use units::{Bytes, BytesPerSecond};

use super::typed::some_size;

/// How much page cache a job needs, and what another size changes
///
/// The command runs once, as it is. What it reads and writes, in order, gives its I/O with a cache of any size: where more cache
/// saves nothing, between which sizes it does, and the limit with which it leaves the cache of others alone. As root each read
/// is seen by trace points of the kernel; otherwise open files are looked at every 10 ms, and the answer says how much of it
/// that saw. A job that does not exist yet is described in a file (--plan).
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sudo memtide job -- ./backup.sh
  memtide job -- sh -c 'sort big.txt > sorted.txt'
  memtide job --cache 500M --cache 2G --disk 100MB/s -- ./backup.sh
  memtide job --plan docs/examples/backup.toml
  memtide job --output job.json --format json -- ./backup.sh

The command goes on if memtide is killed, and what it prints stays as it is; the answer follows on standard output, or is \
written to --output.

docs/job.md explains the answer, what it cannot show, and the keys of a plan; docs/job.schema.json describes its JSON.

Exit codes:
  0 answered   3 no answer: the command cannot be started, a plan has an error, bad usage")]
pub(crate) struct JobArgs {
    /// The command to run and watch
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "plan")]
    pub(crate) command: Vec<String>,

    /// Answer for a job that is described in this file, without running anything
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) plan: Option<PathBuf>,

    /// Answer for a cache of this size; several are rows of the table. Without it: sizes at which something changes
    #[arg(long = "cache", value_name = "SIZE", value_parser = some_size)]
    pub(crate) caches: Vec<Bytes>,

    /// The speed of the disk, for times: 100MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) disk: Option<BytesPerSecond>,

    /// How to watch the command
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = WatchMethod::Best, conflicts_with = "plan")]
    pub(crate) watch: WatchMethod,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = JobFormat::Text)]
    pub(crate) format: JobFormat,

    /// Where to write the answer; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Overwrite that file
    #[arg(long)]
    pub(crate) force: bool,

    /// Show all programs and files
    #[arg(long)]
    pub(crate) all: bool,
}

/// How the answer of `job` is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobFormat {
    /// For a terminal
    Text,
    /// JSON; docs/job.schema.json describes it
    Json,
}

/// How the command is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchMethod {
    /// By trace points where this user may, otherwise by open files
    Best,
    /// By trace points of the kernel: every read and write. Needs root and Linux 6.12
    Trace,
    /// By positions of open files, every 10 ms
    Files,
}

impl From<WatchMethod> for ObserveMethod {
    fn from(method: WatchMethod) -> Self {
        match method {
            WatchMethod::Best => Self::Best,
            WatchMethod::Trace => Self::Trace,
            WatchMethod::Files => Self::OpenFiles,
        }
    }
}

fn rate(text: &str) -> Result<BytesPerSecond, String> {
    job::disk_rate(text).ok_or_else(|| format!("`{text}` is no rate; write 100MB/s"))
}
