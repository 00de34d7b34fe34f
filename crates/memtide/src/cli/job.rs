//! Arguments of `memtide job`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use job::{JobHint, ObserveMethod};
use units::{Bytes, BytesPerSecond, Span};

use super::typed::{some_size, span};
use super::{GroupArgs, PartArgs};

/// See how much page cache a job needs, and what it takes
///
/// The command runs once, as it is. First comes what others lost: what it pushed out, and who read how much of it again. What it
/// reads and writes, in order, gives its I/O with a cache of any size: where more cache saves nothing, between which sizes it
/// does, and the limit with which it leaves the cache of others alone. As root each read is seen by trace points of the kernel;
/// otherwise open files are looked at every 10 ms, and the answer says how much of it that saw.
///
/// What runs already is watched by --pid, --unit or --cgroup, until it ends, Ctrl-C, or --for. A recording has sums alone: what
/// a unit read and wrote and what others lost, without a curve. A job that does not exist yet is described in a file (--plan).
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sudo memtide job -- ./backup.sh
  memtide job -- sh -c 'sort big.txt > sorted.txt'
  memtide job --cache 500M --cache 2G --disk 100MB/s -- ./backup.sh
  memtide job --plan docs/examples/backup.toml
  sudo memtide job --unit backup.service --for 10m
  sudo memtide job --pid 4242
  memtide job --unit backup.service --since 02:00 --until 02:40
                                       in the recording of this host
  memtide job night.memtide --cgroup /backup
  sudo memtide job --verify-hint fadvise --verify-hint memory-high=100M --prepare 'rm -f x' \\
      -- tar cf /b/x.tar /srv
  sudo memtide job --cached
  memtide job --output job.json --format json -- ./backup.sh

The command goes on if memtide is killed, and what it prints stays as it is; the answer follows on standard output, or is \
written to --output.

docs/job.md explains the answer, what it cannot show, and the keys of a plan; docs/job.schema.json describes its JSON, \
docs/job-recorded.schema.json that of a recording, docs/job-verify.schema.json that of --verify-hint.

Exit codes:
  0 answered   3 no answer: no such command or process, an error in a plan, bad usage")]
pub(crate) struct JobArgs {
    /// A recording or capture with the job in it; needs --unit or the like
    #[arg(value_name = "RECORDING", requires = "about", conflicts_with_all = ["command", "plan", "pid"])]
    pub(crate) recording: Option<PathBuf>,

    /// The command to run and watch
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["plan", "pid", "about", "cached", "serve_dontcache"])]
    pub(crate) command: Vec<String>,

    /// Answer for a job that is described in this file, without running anything
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) plan: Option<PathBuf>,

    /// Watch this process, and all that it started or starts
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "plan", "about"])]
    pub(crate) pid: Option<u32>,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    /// Watch what runs already for so long; without it until it ends
    #[arg(long = "for", value_name = "DURATION", value_parser = span, conflicts_with_all = ["command", "plan", "recording", "since", "until"])]
    pub(crate) lasts: Option<Span>,

    #[command(flatten)]
    pub(crate) part: PartArgs,

    /// Run the command with and without this remedy and compare: fadvise, dontcache, memory-high=SIZE, command='COMMAND'. Several
    /// are compared with the command as it is
    #[arg(long = "verify-hint", value_name = "HINT", requires = "command", conflicts_with_all = ["caches", "disk", "watch"])]
    pub(crate) hints: Vec<JobHint>,

    /// With --verify-hint: run each way so often
    #[arg(long, value_name = "NUMBER", default_value_t = 4, requires = "hints", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub(crate) blocks: u16,

    /// With --verify-hint: run this before each run, such as what removes the output of the last one
    #[arg(long, value_name = "COMMAND", requires = "hints")]
    pub(crate) prepare: Option<String>,

    /// Instead: which files fill the page cache now, as `where --files` with --files-in of the whole disk
    #[arg(long, conflicts_with_all = ["command", "plan", "pid", "about", "recording", "lasts", "since", "until", "caches", "disk", "watch"])]
    pub(crate) cached: bool,

    /// Answer for a cache of this size; several are rows of the table. Without it: sizes at which something changes
    #[arg(long = "cache", value_name = "SIZE", value_parser = some_size)]
    pub(crate) caches: Vec<Bytes>,

    /// The speed of the disk, for times: 100MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) disk: Option<BytesPerSecond>,

    /// How to watch the command
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = WatchMethod::Best, conflicts_with = "plan")]
    pub(crate) watch: WatchMethod,

    /// Serve the calls of a run with dontcache
    #[arg(long, hide = true, exclusive = true)]
    pub(crate) serve_dontcache: bool,

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

impl JobArgs {
    /// Whether the job is one of a recording: that of this host, where none is named.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recording.is_some() || !self.part.range().is_all()
    }
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
