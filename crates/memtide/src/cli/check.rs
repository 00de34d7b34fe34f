//! Arguments of `memtide check`.

use std::path::PathBuf;

use clap::Args;
use probe::ProcessDetail;
use sampler::WatchOptions;
use units::Span;

use super::typed::span;
use super::{AnswerFormat, AroundArgs, GroupArgs};

/// Say what is wrong with a host's memory
///
/// Without FILE it samples this host for a while, reads its recording (memtide record) for the day before, and as root the
/// kernel log for recent OOM kills. With FILE it reads data of another host: a capture; pasted or saved text (free, vmstat,
/// /proc files, slabtop, ps, sar, tables), in any mix; kernel logs with OOM reports; a support bundle. It prints a verdict in
/// one sentence, what RAM holds, findings with evidence and fix, what looks bad but is harmless, and what could not be
/// evaluated. Ctrl-C ends sampling early and reports the samples so far. --since, --until and --at without FILE read this
/// host's recording.
///
/// With --cgroup, --unit, --container or --pod the verdict is about that cgroup, with the limits around it as its host: how near
/// which limit is, what counts towards it, what can be reclaimed, throttling, stalls, refaults and kills, and what raising
/// which limit would change; the host comes second. Rules are those of the host that are about cgroups. Within a container
/// that has a limit, memtide check is about the container; with --host about its host.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide check                        sample this host for 10 s
  memtide check --for 1m               sample longer: more certain
  memtide check sick.jsonl.zst         a capture of another host
  memtide check /var/lib/memtide       a recording (memtide record)
  memtide check --since 'yesterday 22:00' --until 02:00
                                       this host's recording of that time
  memtide check --at 02:14             the minutes around it
  memtide check --unit nginx           one unit: its limits first, the host second
  memtide check --container web sick.jsonl.zst
  memtide check free.txt oom.log       pasted text and a kernel log
  dmesg | memtide check -              OOM reports of the kernel log
  memtide check --explain-input x.txt  which blocks were recognised
  memtide check --format json | jq .verdict
  ssh HOST memtide capture -o - | memtide check -

WHEN is 2h ago, 02:00 (the latest that is past), yesterday 01:30, today, mon 14:00, 2026-11-21 14:00, an RFC 3339 time,
@1795240800, or +1m30s from the source's start. A time without a zone is local time.

With --format json, one FILE gives an object and several give an array with one element for each, in order;
a FILE that cannot be read is {\"source\": {\"name\": ...}, \"error\": ...}.

Exit codes, as monitoring plugins have them:
  0 ok   1 warning   2 critical   3 unknown: bad usage, unreadable file, or too little data to say")]
pub(crate) struct CheckArgs {
    /// Captures, recordings, text, logs, sar files, bundles; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) around: AroundArgs,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    /// In a container with a limit: judge its host, not the container
    #[arg(long, conflicts_with_all = ["files", "since", "until", "at", "cgroup", "unit", "container", "pod"])]
    pub(crate) host: bool,

    /// Do not read this host's recording of the day before
    #[arg(long, conflicts_with_all = ["files", "since", "until", "at"])]
    pub(crate) no_history: bool,

    /// How long to sample this host
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) lasts: Span,

    /// Interval between samples of this host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// How far back the kernel log is read for OOM kills, and how old a finding may be to count as recent
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = span)]
    pub(crate) recent: Span,

    /// Also list the rules that found nothing
    #[arg(long)]
    pub(crate) all: bool,

    /// Show what was recognised in the files, block by block, instead of the answer
    #[arg(long, requires = "files")]
    pub(crate) explain_input: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

impl CheckArgs {
    /// How this host is sampled.
    pub(crate) const fn watch_options(&self) -> WatchOptions {
        WatchOptions {
            duration: self.lasts,
            every: self.every,
            last: ProcessDetail::COMPLETE,
            recent: self.recent,
            window: None,
        }
    }
}
