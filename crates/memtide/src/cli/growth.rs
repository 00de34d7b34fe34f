//! Arguments of `memtide growth`.

use std::path::PathBuf;

use clap::Args;

use super::{AnswerFormat, PartArgs};

/// Say what leaks, fragments or warms up, and when it hits its limit
///
/// Judges the anonymous memory and swap of each process and cgroup over time, the most urgent first. Where the live and
/// free bytes of malloc are known, they decide: a leak is a live size that keeps rising, fragmentation is free memory
/// that no peak of the live size explains. With the total alone, growth that levels off may be either, and the answer
/// says so. With one process, or --service, the answer has the details. What grew until it was killed, or for minutes until it
/// ended, is listed with that time.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide growth                            every process and service of this host's recording
  memtide growth --since '6h ago' --service mysqld
  memtide growth sick.jsonl.zst
  memtide growth heap.csv --format json | jq -r .class

SOURCE may also be a table of one process: comma-separated, with the header `ts,rss` or `ts,rss,live,free`. `ts` is seconds or \
RFC 3339, the rest is bytes; live and free are uordblks and fordblks of mallinfo2.
Classes: leak, leak-and-fragmentation, fragmentation, saturating, warmup, pinned, steps, seasonal, stationary, flat, unknown.
docs/growth.schema.json describes the JSON.

Exit codes:
  0 done, whatever the classes   3 an error")]
pub(crate) struct GrowthArgs {
    /// A recording, a capture, text, a table; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    /// Only this service, cgroup or process, by its name, or its PID
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,

    #[command(flatten)]
    pub(crate) part: PartArgs,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}
