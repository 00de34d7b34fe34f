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
/// Without FILE it samples this host for 10 s. It also reads the last day of this host's recording (memtide record) and, as
/// root, recent OOM kills in the kernel log. With FILE it reads data of another host: a capture; pasted or saved text (free,
/// vmstat, /proc files, slabtop, ps, sar, tables), in any mix; kernel logs with OOM reports; a support bundle. It prints a
/// verdict in one sentence, the contents of RAM, findings with evidence and fix, alarming figures that are harmless, and how
/// many rules could not be evaluated. Ctrl-C ends sampling early and reports the samples so far. --since, --until and --at
/// without FILE read this host's recording.
///
/// With --cgroup, --unit, --container or --pod the verdict is about that cgroup: the usage of each limit around it, the
/// memory charged to it, the reclaimable part, throttling, stalls, refaults and kills, and the effect of raising a limit.
/// Only the cgroup rules are evaluated. The host comes second. Inside a container with a limit, memtide check is about the
/// container; with --host it is about the host.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide check                        sample this host for 10 s
  memtide check --for 1m               sample longer: more certain
  memtide check sick.jsonl.zst         a capture of another host
  memtide check /var/lib/memtide       a recording (memtide record)
  memtide check --since 'yesterday 22:00' --until 02:00
                                       this host's recording of that time
  memtide check --at 02:14             the minutes around it, what happened then first
  memtide check --unit nginx           one unit: its limits first, the host second
  memtide check --container web sick.jsonl.zst
  memtide check free.txt oom.log       pasted text and a kernel log
  dmesg | memtide check -              OOM reports of the kernel log
  memtide check --explain-input x.txt  the blocks that were recognised
  memtide check --format json | jq .verdict
  memtide check --brief                one line for Nagios, Icinga, check_nrpe
  memtide check --brief --unit nginx   the same about a unit
  ssh HOST memtide capture -o - | memtide check -

WHEN is 2h ago, 02:00 (the latest that is past, or at most five minutes ahead), yesterday 01:30, today, mon 14:00, \
2026-11-21 14:00, an RFC 3339 time, @1795240800, +1m30s after the source's start, or -30s before its end. A time without a \
zone is local time.

With --format json, one FILE gives an object and several give an array with one element for each, in order; \
a FILE that cannot be read is {\"source\": {\"name\": ...}, \"error\": ...}.

--brief prints one line, as of monitoring plugins: MEMORY, the verdict's word, the headline, and after `|` performance \
data: available (with the size below which it is a warning by itself, and RAM), swap_used, stalled_some and stalled_full \
(share of the time in which some or all tasks waited for memory), oom_kills; of a cgroup also usage and limit_hits. Errors \
are a line too (UNKNOWN). It is about the last 5 minutes of this host's recording if its recorder runs, else about 5 s of \
sampling, so that check_nrpe's 10 s are enough.

Exit codes:
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

    /// Do not read the last day of this host's recording
    #[arg(long, conflicts_with_all = ["files", "since", "until", "at"])]
    pub(crate) no_history: bool,

    /// Print one line with performance data, as monitoring plugins do
    #[arg(long, conflicts_with_all = ["all", "explain_input", "format", "json"])]
    pub(crate) brief: bool,

    /// How long to sample this host [default: 10s; with --brief 5s, or not at all if its recorder runs]
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) lasts: Option<Span>,

    /// Interval between samples of this host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// How far back to read the kernel log for OOM kills; older findings do not count as present
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = span)]
    pub(crate) recent: Span,

    /// Also sample the kernel meanwhile: which of its memory work costs CPU time, and who started it (memtide profile)
    #[arg(long, conflicts_with_all = ["files", "brief"])]
    pub(crate) profile: bool,

    /// Show everything: also the rules that found nothing or could not be evaluated, each with the reason
    #[arg(long)]
    pub(crate) all: bool,

    /// Instead of the answer, list the blocks that were recognised in the files
    #[arg(long, requires = "files")]
    pub(crate) explain_input: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

impl CheckArgs {
    /// How this host is sampled.
    pub(crate) fn watch_options(&self) -> WatchOptions {
        /// Half of what check_nrpe waits by default, and more than a stall has to last.
        const BRIEF: Span = Span::from_secs(5);
        const USUAL: Span = Span::from_secs(10);
        WatchOptions {
            duration: self.lasts.unwrap_or(if self.brief { BRIEF } else { USUAL }),
            every: self.every,
            last: ProcessDetail::COMPLETE,
            recent: self.recent,
            window: None,
            pss_every: None,
        }
    }
}
