//! Arguments of `memtide where`.

use std::path::PathBuf;

use clap::builder::UnknownArgumentValueParser;
use clap::{Args, ValueEnum};
use diagnose::accounting::GroupBy;
use timeline::TimePoint;

use super::AnswerFormat;
use answers::time_expr::parse;

/// Show where memory went: a tree that adds up to MemTotal
///
/// Every level adds up; memory without a counter or owner is a line of its own. `≈` marks an estimate. PSS of the largest
/// processes is read for at most 0.2 s; owners of shared memory (tmpfs, memfd, System V segments) are searched for at most
/// 0.5 s. Root is needed for other users' processes, slab caches and vmalloc callers.
///
/// --files names the largest files in the page cache, with the processes that have them open and the part that is not yet
/// written. Each file is opened and not read; files on NFS and FUSE, which may never answer, are left alone. Walking a
/// directory fills the kernel's caches of inodes and names, 1.6 KiB for each file that was not used before.
///
/// --by shows a table instead, the largest first: memory, share of RAM, share of the limit, and growth since the first sample
/// of a recording or capture. It adds up to MemTotal, too. The names of containers and pods come from files of Docker,
/// containerd, Podman, CRI-O and the kubelet, most of which need root; a recording and a capture keep them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide where                        this host, now
  memtide where --deep                 PSS of every process (as root: of other users, too)
  memtide where sick.jsonl.zst         the last sample of a capture
  memtide where --at 'yesterday 02:14' in this host's recording
  memtide where --format json | jq .accounting
  memtide where --by container         memory of each container, its share of RAM and of its limit
  memtide where --by unit /var/lib/memtide
                                       units of systemd, and their growth in the recording
  memtide where --by process --deep    processes by PSS
  memtide where --files                open and mapped files in the page cache (as root: all)
  memtide where --files-in /var/lib/mysql
                                       also files below that directory that no process has open
  memtide where --files --top 40       the 40 largest files, processes and caches

WHEN is as for `memtide check`.
docs/where-by.schema.json describes the JSON of --by.")]
pub(crate) struct WhereArgs {
    /// Capture, recording or text to read; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The last sample at or before this time; without FILE, of this host's recording
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true, conflicts_with = "deep")]
    pub(crate) at: Option<TimePoint>,

    /// Instead of the tree, a table by owners of one kind
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) by: Option<ByKind>,

    /// Read the PSS of every process, not only of the largest; takes 3 ms per GiB
    #[arg(long)]
    pub(crate) deep: bool,

    /// Name the files in the page cache that processes have open or mapped; takes up to 2 s
    #[arg(long, conflicts_with = "by")]
    pub(crate) files: bool,

    /// As --files, and also files below DIR that no process has open; takes up to 10 s more for each DIR, 40 s
    /// for all
    #[arg(long, value_name = "DIR", conflicts_with = "by")]
    pub(crate) files_in: Vec<PathBuf>,

    /// Name the N largest of each kind: files, processes, caches, rows of a table; without it, a few
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top: Option<u16>,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,

    #[command(flatten)]
    _options_of_check: OptionsOfCheck,
}

/// Options of `check` that people try here too: each is refused with what to type.
#[derive(Debug, Args)]
struct OptionsOfCheck {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = answered_by("check --cgroup PATH", "cgroup"))]
    cgroup: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = answered_by("check --unit UNIT", "unit"))]
    unit: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = answered_by("check --container NAME", "container"))]
    container: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = answered_by("check --pod NAME", "pod"))]
    pod: Option<String>,
}

/// Refuses an option with the command that shows one of a kind, and how all of them are listed.
fn answered_by(one: &str, kind: &str) -> UnknownArgumentValueParser {
    UnknownArgumentValueParser::suggest(format!(
        "`memtide {one}` shows the memory of one {kind}, `memtide where --by {kind}` that of all"
    ))
}

impl WhereArgs {
    /// How many of each kind are named; `None`: a few, as many as fit.
    pub(crate) fn top(&self) -> Option<usize> {
        self.top.map(usize::from)
    }

    /// The directories of which the files in the page cache are named; `None` if none is.
    pub(crate) fn cached_files(&self) -> Option<&[PathBuf]> {
        (self.files || !self.files_in.is_empty()).then_some(&self.files_in)
    }
}

/// What a table has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByKind {
    /// Services and scopes of systemd
    Unit,
    /// Containers of Docker, containerd, Podman, CRI-O and LXC
    Container,
    /// Pods of Kubernetes
    Pod,
    /// Users: of processes on a live host, else of systemd's user slices
    User,
    /// Processes
    Process,
    /// Control groups, each without those below it
    Cgroup,
    /// NUMA nodes
    Node,
    /// File systems in RAM (tmpfs), on a live host
    Mount,
}

impl From<ByKind> for GroupBy {
    fn from(kind: ByKind) -> Self {
        match kind {
            ByKind::Unit => Self::Unit,
            ByKind::Container => Self::Container,
            ByKind::Pod => Self::Pod,
            ByKind::User => Self::User,
            ByKind::Process => Self::Process,
            ByKind::Cgroup => Self::Cgroup,
            ByKind::Node => Self::Node,
            ByKind::Mount => Self::Mount,
        }
    }
}
