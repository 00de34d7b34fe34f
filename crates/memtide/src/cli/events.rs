//! Arguments of `memtide events`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::typed::event_kinds;
use super::{AroundArgs, GroupArgs};

/// List kills, limit hits, changed settings, reboots and gaps
///
/// One line for each event, in order of time, from any source: kernel reports and counters of a capture, a paste or a log, and
/// events that the recorder wrote. A kill that is in the kernel log, in counters and in the recording is listed once, at the
/// log's time. An event between two readings (a changed setting, a changed limit or a counter of a cgroup) has both times.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide events                          of this host's recording
  memtide events --since yesterday --kind oom-kill,cgroup-limit
  memtide events --at 02:14               in the minutes around it
  memtide events --container web          of one container, and of the limits around it
  memtide events oom.log --verbose        with the kernel's own lines
  memtide events sick.jsonl.zst --format json | jq -r '.events[].text'

An event has the time of the kernel log, else of the first reading that shows it. An event that the kernel log has from before \
the recording is marked as such. An event that only a counter shows, before the first sample, has no time (\"since boot\").
In JSON, `dated` is the origin of the time, `since` the time of the reading before.

docs/events.schema.json describes the JSON.

Exit codes:
  0 done, events or none   3 an error")]
pub(crate) struct EventsArgs {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) around: AroundArgs,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    /// Only these kinds, separated by commas
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = event_kinds())]
    pub(crate) kinds: Vec<String>,

    /// Show events in full, with the kernel's log lines
    #[arg(short, long, visible_alias = "report")]
    pub(crate) verbose: bool,

    /// How to print events
    #[arg(long, value_enum, default_value_t = EventsFormat::Text)]
    format: EventsFormat,

    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl EventsArgs {
    pub(crate) fn format(&self) -> EventsFormat {
        if self.json { EventsFormat::Json } else { self.format }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// Human-readable, times in the local zone
    Text,
    /// JSON, times in UTC
    Json,
    /// CSV, times in UTC
    Csv,
}
