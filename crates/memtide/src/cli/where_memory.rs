//! Arguments of `memtide where`.

use std::path::PathBuf;

use clap::Args;
use timeline::TimePoint;

use super::AnswerFormat;
use answers::time_expr::parse;

/// Show where memory went: a tree that adds up to MemTotal
///
/// Every level adds up; memory that no counter or owner explains is a line of its own. `≈` marks an estimate. The PSS of
/// the largest processes is read for at most 0.2 s, and owners of shared memory (tmpfs, memfd, System V segments) are
/// searched for at most 0.5 s; those of other users only as root, as slab caches and callers of vmalloc.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide where                        this host, now
  memtide where --deep                 PSS of every process (those of others: as root)
  memtide where sick.jsonl.zst         the last sample of a capture
  memtide where --at 'yesterday 02:14'  in this host's recording; `memtide check --help` explains WHEN
  memtide where --format json | jq .accounting")]
pub(crate) struct WhereArgs {
    /// Capture, recording or text to read; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The last sample at or before this time; without FILE, of this host's recording
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true, conflicts_with = "deep")]
    pub(crate) at: Option<TimePoint>,

    /// Read the PSS of every process, not only of the largest; takes 3 ms per GiB
    #[arg(long)]
    pub(crate) deep: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}
