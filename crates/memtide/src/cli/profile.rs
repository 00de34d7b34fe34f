//! Arguments of `memtide profile`.

use std::path::PathBuf;

use answers::time_expr::parse;
use clap::{Args, ValueEnum};
use profile::{OffCpu, ProfileCondition};
use timeline::TimePoint;
use units::{Ratio, Span};

use super::GroupArgs;
use super::answer_format::AnswerFormat;
use super::typed::{percent, span};

/// Say why the kernel burns CPU on memory, or keeps tasks waiting
///
/// Samples what the kernel runs on all CPUs, with call chains; traces which tasks wait in state D, and how long reclaim and
/// compaction take. Each stack gets a reason (who started the work: node reclaim, a cgroup's limit, swap-in) and the work that was
/// done. Needs root for the whole host; no perf, no BPF. 99 samples a second cost 0.2 to 0.3 % of a busy CPU.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sudo memtide profile                            30 s of this host
  sudo memtide profile --pid 4711 --for 10s
  sudo memtide profile -- make -j8                a command, until it ends
  sudo memtide profile --when 'psi.memory>10%'    at the right moment, within a day
  sudo memtide profile -o slow.svg -o slow.folded
  memtide profile /var/lib/memtide --at 14:01     what a recorder kept
  memtide profile --from perf.script              of perf, FlameGraph, bpftrace, a kernel log
  memtide profile --from slow.folded --diff good.folded

docs/profile.md explains the answer and every reason; docs/profile.schema.json describes its JSON.

Exit codes:
  0 nothing is hot   1 something is hot   3 no CPU samples, nothing read, bad usage")]
pub(crate) struct ProfileArgs {
    /// Show a profile that `memtide record --profile-when` kept in this recording
    #[arg(value_name = "RECORDING", conflicts_with_all = ["from", "pid", "about", "command", "when"])]
    pub(crate) recording: Option<PathBuf>,

    /// Of the recording the profile nearest to this time [default: the last one]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse, requires = "recording")]
    pub(crate) at: Option<TimePoint>,

    /// Read profiles instead of sampling; several are parts of one: CPU samples, waits. - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["pid", "about", "command", "when"])]
    pub(crate) from: Vec<PathBuf>,

    /// Compare with the profile of a good host, or of before
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) diff: Vec<PathBuf>,

    /// Only these processes and the children that they get meanwhile
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["about", "command"])]
    pub(crate) pid: Vec<u32>,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    /// Only this command, which is started; its output goes to standard error
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "about")]
    pub(crate) command: Vec<String>,

    /// How long; 30s, or until the command ends. Of a file that does not say it, how long it took
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) lasts: Option<Span>,

    /// Samples a second on each CPU
    #[arg(long = "rate", short = 'F', value_name = "HZ", default_value_t = profile::USUAL_HZ, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: u32,

    /// How waiting tasks are found
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OffCpuChoice::Auto)]
    pub(crate) off_cpu: OffCpuChoice,

    /// Wait until this is true for 2 of 3 seconds: psi.memory>10%, psi.io>20%, sys>30%, pgscan_direct>1000/s, pswpin>100/s, reclaim
    #[arg(long, value_name = "CONDITION", conflicts_with = "command")]
    pub(crate) when: Option<ProfileCondition>,

    /// Wait no longer
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = span, requires = "when")]
    pub(crate) for_at_most: Span,

    /// So many profiles, each time that it becomes true
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "when")]
    pub(crate) times: u32,

    /// Also write it: .svg a flame graph by reason, .folded stacks, .json.gz for profiler.firefox.com; x.waits.svg: of the waiting
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,

    /// Overwrite the files of -o
    #[arg(long, requires = "outputs")]
    pub(crate) force: bool,

    /// How many rows of a group to show
    #[arg(long, value_name = "NUMBER")]
    pub(crate) top: Option<usize>,

    /// Show no reasons below this share of the busy CPU
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) min: Ratio,

    #[command(flatten)]
    pub(crate) format: AnswerFormat,
}

/// How waiting tasks are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OffCpuChoice {
    /// Traced, or polled where that is not possible or costs too much
    Auto,
    /// Each switch between tasks is traced: exact
    Trace,
    /// Looked for up to 20 times a second: short waits are counted too low
    Poll,
    /// Not at all
    No,
}

impl From<OffCpuChoice> for OffCpu {
    fn from(choice: OffCpuChoice) -> Self {
        match choice {
            OffCpuChoice::Auto => Self::Auto,
            OffCpuChoice::Trace => Self::Trace,
            OffCpuChoice::Poll => Self::Poll,
            OffCpuChoice::No => Self::No,
        }
    }
}
