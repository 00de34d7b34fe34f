//! What can be typed after `memtide headroom`, and the demand that `report` takes, too.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use units::{Bytes, Ratio, Span};

use super::typed::{cycle, demand, percentile};
use super::{AnswerFormat, Part};

/// Say how much more fits into a host's memory, and whether a given demand does
///
/// What is available holds page cache that the workload needs and room in which writers buffer, so it is not what can be
/// added. For each sample this takes off what must stay, and answers for the worst moment and for nearly all the time, with
/// what binds, who ran then, and what the answer rests on. How much cache is needed no counter tells: it has bounds, and
/// where they decide, the answer is that nobody can tell. A good answer is confirmed only by a whole cycle of the workload: a week
/// with its nights and its weekend.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide headroom                          how much more fits on this host, from its recording
  memtide headroom --add 500M               does a product of 500 MiB fit?
  memtide headroom week/ --add 8G --as cache   room to keep 8 GiB of files warm?
  memtide headroom sick.jsonl.zst --at p99  for all but one sample in a hundred
  memtide headroom week/ --format json | jq .room.least

--as says what is added: anon is memory of processes (heap, stack), cache is files that are read again and again, tmpfs is
files in a tmpfs and shared memory.
WHEN is as for `memtide check`.
docs/headroom.md teaches how the answer comes about; docs/headroom.schema.json describes the one for programs.

Exit codes:
  0 fits   1 tight: most of the time, or hardly anything is left   2 does not fit
  3 cannot tell: too little of a cycle was watched (\"fits so far\"), what decides is not known, bad usage, or an unreadable
    source")]
pub(crate) struct Headroom {
    /// A recording, a capture, text, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) demand: Demand,

    /// For which part of the time it must fit, apart from the worst moment: p50 to p100
    #[arg(long, value_name = "PERCENTILE", default_value = "p95", value_parser = percentile)]
    pub(crate) at: Ratio,

    #[command(flatten)]
    pub(crate) part: Part,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

/// What shall fit, and for how long it must.
#[derive(Debug, Args)]
pub(crate) struct Demand {
    /// How much shall be added: 500M, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = demand)]
    pub(crate) add: Option<Bytes>,

    /// What kind of memory that is
    #[arg(long = "as", value_enum, value_name = "KIND", default_value_t = AddKind::Anon, requires = "add")]
    pub(crate) kind: AddKind,

    /// How long the workload takes to come round; `headroom` judges so much of a recording's end, unless --since or --until
    /// say otherwise
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = cycle)]
    pub(crate) cycle: Span,
}

/// What kind of memory shall be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddKind {
    /// Memory of processes: heap, stack
    Anon,
    /// Files that are read again and again
    Cache,
    /// Files in a tmpfs, shared memory
    Tmpfs,
}
