//! What can be typed after `memtide check`.

use std::path::PathBuf;

use clap::Args;
use units::Span;

use super::typed::span;
use super::{AnswerFormat, Around};

/// Say what is wrong with a host's memory
///
/// Without FILE it watches this host for a while, looks up in its recording (memtide record) what was before, and as root in
/// the kernel's log who was killed in the last minutes. With FILE
/// it reads what there is of another host: a capture; text that somebody pasted or saved (free, vmstat, /proc files, slabtop,
/// ps, sar, tables), in any mix; kernel logs with OOM reports; a support bundle. It prints a verdict in one sentence, what RAM
/// holds, the findings with their evidence and fix, what looks bad and is not, and what could not be told. Ctrl-C ends
/// watching early and reports what was seen. --since, --until and --at without FILE are of this host's recording.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide check                        watch this host for 10 s
  memtide check --for 1m               look longer: more certain
  memtide check sick.jsonl.zst         a capture brought home
  memtide check /var/lib/memtide       a recording (memtide record)
  memtide check --since 'yesterday 22:00' --until 02:00
                                       this host's recording of that time
  memtide check --at 02:14             the minutes around it
  memtide check free.txt oom.log       what somebody sent
  dmesg | memtide check -              the kernel's own reports
  memtide check --explain-input x.txt  what was recognised in it
  memtide check --format json | jq .verdict
  ssh HOST memtide capture -o - | memtide check -

WHEN is 2h ago, 02:00 (the latest that is past), yesterday 01:30, today, mon 14:00, 2026-11-21 14:00, an RFC 3339 time,
@1795240800, or +1m30s from the source's start. What names no zone is local time.

With --format json, one FILE gives an object and several give an array with one element for each, in order;
one that cannot be read is {\"source\": {\"name\": ...}, \"error\": ...}.

Exit codes, as monitoring plugins have them:
  0 ok   1 warning   2 critical   3 unknown: bad usage, unreadable file, or too little data to say")]
pub(crate) struct Check {
    /// Captures, recordings, text, logs, sar files, bundles; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) around: Around,

    /// Do not look into this host's recording for what was before
    #[arg(long, conflicts_with_all = ["files", "since", "until", "at"])]
    pub(crate) no_history: bool,

    /// How long to watch this host
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) lasts: Span,

    /// How often to look at this host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// How far back to look for kills in the kernel's log, and what counts as recent
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = span)]
    pub(crate) recent: Span,

    /// Also list the rules that looked and found nothing
    #[arg(long)]
    pub(crate) all: bool,

    /// Show what was recognised in the files, block by block, instead of the answer
    #[arg(long, requires = "files")]
    pub(crate) explain_input: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}
