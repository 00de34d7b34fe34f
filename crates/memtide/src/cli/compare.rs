//! What can be typed after `memtide compare`.

use std::path::PathBuf;

use clap::Args;
use timeline::TimePoint;

use super::{AnswerFormat, Part};
use answers::time_expr::parse;

/// Compare two sources: before and after a fix, a good host and a bad one
///
/// Says whether it got better or worse, and which fact (a setting, the kernel, RAM) explains what changed, if one does. Then
/// what changed: findings, where memory is, rates, facts. Each side stands for its typical sample and for the distribution
/// of its intervals, not for one look: a rate has changed where it is not by chance (rank test, 1 in 100) that the intervals of one
/// side are higher, and by 10 % at least; an amount, by 1 % of RAM at least. What only one side tells is listed as such.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide compare before.jsonl.zst after.jsonl.zst
  memtide compare good-host.jsonl.zst bad-host.jsonl.zst --all
  memtide compare /var/lib/memtide /var/lib/memtide --before-since 'yesterday 14:00' \\
      --before-until 'yesterday 15:00' --since 14:00 --until 15:00
  memtide compare A B -o compare.html          one page with both side by side
  memtide compare A B --format json | jq -r .headline

WHEN is as for `memtide check`. --since and --until are of both sources; --before-since and --before-until take their place
for BEFORE, --after-since and --after-until for AFTER.
docs/compare.schema.json describes the answer for programs.

Exit codes, so that a script can ask whether a change did harm:
  0 no worse: better, the same, or different and neither of the two
  1 worse
  3 cannot be told, or an error
This is not diff's 1 for \"differs\": two recordings of a host always differ. What differs is in the answer.")]
pub(crate) struct Compare {
    /// The one: a capture, a recording, text, a log, a bundle; `-` is standard input
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The other
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    #[command(flatten)]
    pub(crate) part: Part,

    /// From when on in BEFORE
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) before_since: Option<TimePoint>,

    /// Until when in BEFORE
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) before_until: Option<TimePoint>,

    /// From when on in AFTER
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) after_since: Option<TimePoint>,

    /// Until when in AFTER
    #[arg(long, value_name = "WHEN", value_parser = parse, allow_hyphen_values = true)]
    pub(crate) after_until: Option<TimePoint>,

    /// Also show what did not change, and how the intervals of each side lie
    #[arg(long)]
    pub(crate) all: bool,

    /// Write a page with both side by side, to be opened in a browser or mailed, instead of printing; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["format", "json", "all"])]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite FILE where there is one
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}
