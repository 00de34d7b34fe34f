//! Arguments of `memtide trial`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trial::{ReadyWhen, ScoreFormat};
use units::{Bytes, Ratio, Span};

use super::completed;
use super::typed::{idle, percent, some_size, span};

/// Arguments that a plan has: a trial that goes on, or is only printed, has its own.
const PLANNED: [&str; 23] = [
    "commands",
    "program",
    "vary",
    "variants",
    "ready",
    "load",
    "no_warm_up",
    "score",
    "prepare",
    "idle",
    "timeout",
    "blocks",
    "time_limit",
    "no_control",
    "margin",
    "max_slowdown",
    "memory_budget",
    "seed",
    "vm",
    "ram",
    "vm_cpus",
    "disk_speed",
    "kernel",
];

/// Try commands or settings side by side: memory and speed together
///
/// Every block has one run of each variant in a balanced order, and the command as it is twice: equal programs that are compared
/// one after another differ in two of three trials on a busy host. Each run has a cgroup of its own; whether its malloc, arenas
/// and limits are those of the variant is read from its processes. Memory is anonymous and shared memory and swap, without page
/// cache, as a mean over the work. Blocks are added until memory and CPU time are decided, or cannot be.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide trial './app-old' './app-new'
  memtide trial --vary arenas=default,1,2 -- ruby jobs.rb
  memtide trial --vary alloc=default,jemalloc --vary arenas=default,2 -- ./import.sh big.csv
  memtide trial -- ./worker                       the allocators and arenas that can apply
  memtide trial --vary limit=384M,512M -- ./build.sh
  memtide trial --variant je2=alloc:jemalloc+MALLOC_CONF:narenas:2 -- ./worker
  memtide trial --ready tcp:127.0.0.1:6379 --load 'redis-benchmark --csv -n 200000 -t set' \\
      --vary alloc=default,glibc,mimalloc -- redis-server --save ''
  memtide trial --vm --ram 2G --disk-speed 200M --vary swapon=disk,zram,off -- ./worker
  memtide trial --resume DIR, --show DIR          go on with a trial, or print it again

Keys of --vary and --variant: alloc (glibc, jemalloc, tcmalloc, mimalloc, a library's path), arenas, malloc.NAME (a tunable of \
glibc), thp=off, limit, high, swap, cpus (0-3, 0+2), command, and environment variables: NAME in capitals, or env.name. With --vm also vm.NAME (sysctl), \
swapon=off|disk|zram (with a size: zram:512M; as large as the RAM without), thp=always|madvise|never, kernel. The \
value `default` changes nothing. A variant that cannot have an effect is left out, with the reason.

A program can announce on the file descriptor in $MEMTIDE_FD: `ops 1200` (operations so far), `latency_ms 1.5`, `phase steady` \
(what came before was warming up), and `hold`: the work is done, and it waits until it can read a line there, so that memory is \
measured at the end and after --idle.

docs/trial.md explains the answer and what it cannot show; docs/trial.schema.json describes its JSON.

Exit codes:
  0 answered   1 nothing is decided   3 no answer: the command fails, nothing can be applied, bad
    usage")]
pub(crate) struct TrialArgs {
    /// Commands to compare, each as a shell reads it; the first is the baseline
    #[arg(value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,

    /// One command, to be run with each variant
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) program: Vec<String>,

    /// Take the options from a file in TOML: its keys are their long names, and `command`
    #[arg(long, value_name = "FILE", conflicts_with_all = PLANNED, conflicts_with_all = ["resume", "show"])]
    pub(crate) plan: Option<PathBuf>,

    /// Try each value of a setting; several make a grid
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    pub(crate) vary: Vec<String>,

    /// Try one combination of settings
    #[arg(long = "variant", value_name = "NAME=KEY:VALUE+KEY:VALUE")]
    pub(crate) variants: Vec<String>,

    /// The command is a server, which is ready when: tcp:HOST:PORT, unix:PATH, http://HOST:PORT/PATH, exec:COMMAND, after:SECONDS
    #[arg(long, value_name = "WHEN", value_parser = ReadyWhen::read, requires = "load")]
    pub(crate) ready: Option<ReadyWhen>,

    /// The load of a server; once unmeasured, then measured
    #[arg(long, value_name = "COMMAND", requires = "ready")]
    pub(crate) load: Option<String>,

    /// Measure the first load already
    #[arg(long, requires = "load")]
    pub(crate) no_warm_up: bool,

    /// The output of the load, if its program is not known by name
    #[arg(long, value_enum, value_name = "PROGRAM", requires = "load")]
    pub(crate) score: Option<ScoreChoice>,

    /// A command to run before each run, unmeasured
    #[arg(long, value_name = "COMMAND")]
    pub(crate) prepare: Option<String>,

    /// Measure memory again so long after the work, where the program still runs; 12s for a server, 0 for not at all
    #[arg(long, value_name = "TIME", value_parser = idle)]
    pub(crate) idle: Option<Span>,

    /// End a run that takes longer
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span)]
    pub(crate) timeout: Span,

    /// Run exactly so many blocks, and judge the results once. Without it: 3 to 20, as many as it takes
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub(crate) blocks: Option<u16>,

    /// Begin no block after this time
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) time_limit: Option<Span>,

    /// Do not run the baseline twice in each block
    #[arg(long)]
    pub(crate) no_control: bool,

    /// Smaller differences are the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub(crate) margin: Ratio,

    /// How much slower the recommended variant may be
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub(crate) max_slowdown: Ratio,

    /// How much memory the recommended variant may have at its peak
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    pub(crate) memory_budget: Option<Bytes>,

    /// Decides the order of runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Where runs are kept; without it, below ~/.local/state/memtide/trials
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) machine: TrialMachineArgs,

    /// Record the host meanwhile: each run can then be opened with `memtide report`
    #[arg(long, conflicts_with = "show")]
    pub(crate) record: bool,

    /// Go on with a trial that was interrupted
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["show", "directory"], conflicts_with_all = PLANNED)]
    pub(crate) resume: Option<PathBuf>,

    /// Print the answer of a trial, without a run
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "directory", conflicts_with_all = PLANNED)]
    pub(crate) show: Option<PathBuf>,

    /// Print what would be run, and run nothing
    #[arg(long, conflicts_with_all = ["resume", "show"])]
    pub(crate) dry_run: bool,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = TrialFormat::Text)]
    pub(crate) format: TrialFormat,

    /// Show every metric
    #[arg(long)]
    pub(crate) all: bool,

    /// Make the run that standard input describes: in a virtual machine of a trial
    #[arg(long, hide = true, exclusive = true)]
    pub(crate) in_machine: bool,
}

/// The virtual machine of each run.
#[derive(Debug, Args)]
pub(crate) struct TrialMachineArgs {
    /// Run each in a virtual machine with the files of this host: for settings that only a whole machine has
    #[arg(long)]
    pub(crate) vm: bool,

    /// RAM of the machine
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = some_size, requires = "vm")]
    pub(crate) ram: Bytes,

    /// CPUs of the machine
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64), requires = "vm")]
    pub(crate) vm_cpus: u32,

    /// What its disks read and write in a second; as fast as this host if not given
    #[arg(long, value_name = "SIZE", value_parser = some_size, requires = "vm")]
    pub(crate) disk_speed: Option<Bytes>,

    /// Kernel of the machine, as for lab run
    #[arg(long, value_name = "FILE|VERSION", requires = "vm", add = completed::lab_kernels())]
    pub(crate) kernel: Option<PathBuf>,
}

/// How the answer of a trial is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrialFormat {
    /// For a terminal
    Text,
    /// For a pull request
    Markdown,
    /// JSON; docs/trial.schema.json describes it
    Json,
    /// A page with the trade-off as a picture
    Html,
}

/// A program with known output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreChoice {
    /// sysbench 1.0, best with --histogram=on
    Sysbench,
    /// wrk, with --latency for latencies
    Wrk,
    /// ApacheBench of the Apache server
    Ab,
    /// redis-benchmark, with its option --csv
    RedisBenchmark,
    /// Lines `memtide: ops 1200`, `memtide: p95_ms 3.5`
    Memtide,
}

impl From<ScoreChoice> for ScoreFormat {
    fn from(choice: ScoreChoice) -> Self {
        match choice {
            ScoreChoice::Sysbench => Self::Sysbench,
            ScoreChoice::Wrk => Self::Wrk,
            ScoreChoice::Ab => Self::Ab,
            ScoreChoice::RedisBenchmark => Self::RedisBenchmark,
            ScoreChoice::Memtide => Self::Memtide,
        }
    }
}
