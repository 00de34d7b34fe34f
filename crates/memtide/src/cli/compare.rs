//! Arguments of `memtide compare`.

use std::path::PathBuf;

use clap::Args;
use timeline::TimePoint;

use super::{AnswerFormat, PartArgs};
use answers::time_expr::parse;

/// Compare before and after a fix, or a good host and a bad one
///
/// Says whether the second source is better or worse, and names the fact (a setting, the kernel, RAM) that explains it, if one
/// does. Then it lists the changes: findings, memory, rates, facts. A rate counts as changed if p < 0.01 (Mann-Whitney) and
/// it moved by 10 % or more; an amount, if it moved by 1 % of RAM or more between the typical samples. A figure that only one
/// source has is listed as such.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide compare before.jsonl.zst after.jsonl.zst
  memtide compare good-host.jsonl.zst bad-host.jsonl.zst --all
  memtide compare /var/lib/memtide /var/lib/memtide --before-since 'yesterday 14:00' \\
      --before-until 'yesterday 15:00' --since 14:00 --until 15:00
  memtide compare A B -o compare.html          one page with both side by side
  memtide compare A B --format json | jq -r .headline

WHEN is as for `memtide check`. --since and --until apply to both sources; --before-since and --before-until replace them \
for BEFORE, --after-since and --after-until for AFTER.
docs/compare.schema.json describes the answer for programs.

Exit codes:
  0 better, the same, or different without being worse
  1 worse
  3 unknown, or an error

Exit code 1 does not mean \"differs\", as of diff: two recordings of a host always differ.")]
pub(crate) struct CompareArgs {
    /// The first source: a capture, a recording, text, a log, a bundle; `-` is standard input
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The second source
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    #[command(flatten)]
    pub(crate) part: PartArgs,

    /// Start of the range in BEFORE
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) before_since: Option<TimePoint>,

    /// End of the range in BEFORE
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) before_until: Option<TimePoint>,

    /// Start of the range in AFTER
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) after_since: Option<TimePoint>,

    /// End of the range in AFTER
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) after_until: Option<TimePoint>,

    /// Also show what did not change, and the distribution of each side's intervals
    #[arg(long)]
    pub(crate) all: bool,

    /// Write a page with both side by side instead of printing; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["format", "json", "all"])]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite an existing FILE
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}
