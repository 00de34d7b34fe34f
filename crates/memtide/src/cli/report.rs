//! Arguments of `memtide report`.

use std::path::PathBuf;

use clap::Args;

use answers::ExplainTarget;

use super::explain::target;
use super::{AroundArgs, DemandArgs, GroupArgs};

/// Write the answer as a page with charts: one file, to open or mail
///
/// The same answer as of `memtide check`: the verdict, the findings with their evidence, and charts of all memory, its users
/// and the stalls, with one cursor and zoom over all. The page is complete: it opens offline and loads nothing from elsewhere;
/// without a script it reads as text with tables. It has the names of processes and cgroups, and no command lines.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide report -o report.html                 of this host's recording
  memtide report sick.jsonl.zst -o sick.html
  memtide report --since 'yesterday 22:00' --until 02:00 -o night.html
  memtide report --at 02:14 --title 'web3, the stall of Tuesday' -o web3.html
  memtide report --add 500M -o fits.html        also the answer of memtide headroom --add 500M
  memtide report --explain mariadbd -o db.html  also one process, down to its malloc heap
  dmesg | memtide report - -o kill.html

WHEN is as for `memtide check`.

FILE appears when it is whole, or not at all; an existing FILE is not replaced without --force.
A FILE that ends in .gz or .zst is packed.

Exit codes:
  0 written, whatever the verdict in it   3 an error, nothing is written")]
pub(crate) struct ReportArgs {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    /// Where to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) around: AroundArgs,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    /// A heading instead of the host's name
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Also show the memory of a process of this host, now, with a picture of its malloc heap, as `memtide explain` does.
    /// Without a recording the page shows the process alone
    #[arg(long, value_name = "PID|NAME", value_parser = target)]
    pub(crate) explain: Option<ExplainTarget>,

    #[command(flatten)]
    pub(crate) demand: DemandArgs,

    /// Overwrite an existing FILE
    #[arg(long)]
    pub(crate) force: bool,
}
