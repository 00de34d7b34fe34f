//! Arguments of `memtide top`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use report::text::top::TopPanel;
use units::Span;

use super::typed::span;
use super::{AnswerFormat, GroupArgs};

/// Look at memory live, and look back, in the terminal
///
/// What is wrong stands on top, second by second; below it four panels: findings with evidence and fix, units (services,
/// containers, cgroups), processes, and the tree of where memory is. A graph shows the time behind: if `memtide record` runs,
/// the last hour is there at once. The arrow keys go back in time, `n` to the next incident; every panel then shows that
/// moment. With FILE the same screen shows a recording, a capture or text. Press ? for all keys.
///
/// With --cgroup, --unit, --container or --pod, and inside a container with a limit, the limits around that cgroup stand in
/// the place of RAM, and only what belongs to it is listed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide top                          this host, every second
  memtide top /var/lib/memtide         look back in a recording
  memtide top sick.jsonl.zst           a capture of another host
  memtide top --unit nginx             one unit: its limits, its processes
  memtide top --panel units            begin with another panel
  memtide top --once --panel processes one frame as text: for a log, a ticket, a pipe
  memtide top --json                   one frame as data; docs/top.schema.json describes it

Without a terminal, use --once.")]
pub(crate) struct TopArgs {
    /// Recording, capture or text to look at; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) group: GroupArgs,

    /// In a container with a limit: show its host, not the container
    #[arg(long, conflicts_with_all = ["file", "cgroup", "unit", "container", "pod"])]
    pub(crate) host: bool,

    /// Interval between samples of this host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// The panel to begin with
    #[arg(long, value_enum, value_name = "PANEL", default_value_t = Panel::Findings)]
    panel: Panel,

    /// Print one frame as text and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Do not show the last hour of this host's recording
    #[arg(long, conflicts_with = "file")]
    pub(crate) no_history: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Panel {
    Findings,
    Units,
    Processes,
    Where,
}

impl TopArgs {
    /// Returns the panel to begin with.
    pub(crate) fn panel(&self) -> TopPanel {
        match self.panel {
            Panel::Findings => TopPanel::Findings,
            Panel::Units => TopPanel::Units,
            Panel::Processes => TopPanel::Processes,
            Panel::Where => TopPanel::Where,
        }
    }
}
