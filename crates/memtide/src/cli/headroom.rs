//! Arguments of `memtide headroom`, and the demand that `report` takes, too.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use units::{Bytes, Ratio, Span};

use super::typed::{cycle, percentile, some_size};
use super::{AnswerFormat, GroupArgs, PartArgs};

/// Say how much more fits into memory, and whether a demand does
///
/// MemAvailable includes page cache that the workload reads again and buffers of writers, so not all of it can be added.
/// headroom subtracts both from each sample. The answer is for the worst sample and for nearly all of the time: the limit that
/// is reached first, the processes of that moment, and the terms of the sum. No counter says how much cache is needed: the
/// answer is a range, and unknown if the demand lies within it. A positive answer needs a whole cycle of the workload: a week
/// with nights and a weekend.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide headroom                          how much more fits on this host, from its recording
  memtide headroom --add 500M               do 500 MiB of process memory fit?
  memtide headroom week/ --add 8G --as cache   do 8 GiB of cached files fit?
  memtide headroom sick.jsonl.zst --at p99  for all but one sample in a hundred
  memtide headroom --unit db --add 2G       do 2 GiB fit within the limits of a unit?
  memtide headroom week/ --format json | jq .room.least

--as names the kind of memory: anon is process memory (heap, stack), cache is files that are read again and again, tmpfs is \
files in a tmpfs and shared memory.
WHEN is as for `memtide check`.
docs/headroom.md explains the answer; docs/headroom.schema.json describes its JSON.

Exit codes:
  0 fits   1 tight: not all of the time, or less than a tenth of RAM is left   2 does not fit
  3 unknown: the source covers too little of a cycle (\"fits so far\"), a deciding figure is
    unknown, bad usage, or an unreadable source")]
pub(crate) struct HeadroomArgs {
    /// A recording, a capture, text, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) demand: DemandArgs,

    /// The part of the time in which it must fit, besides the worst sample: p50 to p100
    #[arg(long, value_name = "PERCENTILE", default_value = "p95", value_parser = percentile)]
    pub(crate) at: Ratio,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    #[command(flatten)]
    pub(crate) part: PartArgs,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

/// The demand, and the cycle of the workload.
#[derive(Debug, Args)]
pub(crate) struct DemandArgs {
    /// The demand: how much memory is to be added, as 500M or 2GiB
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    pub(crate) add: Option<Bytes>,

    /// The kind of memory to be added
    #[arg(long = "as", value_enum, value_name = "KIND", default_value_t = AddKind::Anon, requires = "add")]
    pub(crate) kind: AddKind,

    /// Length of the workload's cycle; `headroom` judges the last one of a recording, unless --since or --until are given
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = cycle)]
    pub(crate) cycle: Span,
}

/// The kind of memory to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddKind {
    /// Process memory: heap, stack
    Anon,
    /// Files that are read again and again
    Cache,
    /// Files in a tmpfs, shared memory
    Tmpfs,
}
