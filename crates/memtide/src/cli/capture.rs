//! Arguments of `memtide capture`.

use std::path::PathBuf;

use clap::Args;
use units::Span;

use super::typed::{explained, span};

/// Save this host's kernel files over time, to diagnose it elsewhere
///
/// The file holds the kernel's numbers and the names of programs, cgroups, containers and pods. It never holds environments.
/// It holds command lines only with --cmdlines, and is then readable by its owner alone; the host name only with --hostname.
/// Ctrl-C ends it early and keeps the samples so far.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide capture -o sick.jsonl.zst
  memtide capture --for 10m --every 5s -o sick.jsonl.gz
  sudo memtide capture --for 10m --explain redis -o redis.jsonl.zst
  memtide capture --for 30s -o - | ssh HOME memtide check -")]
pub(crate) struct CaptureArgs {
    /// Where to write: .jsonl.zst, .jsonl.gz or .jsonl; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Overwrite FILE if it exists
    #[arg(short = 'f', long)]
    pub(crate) force: bool,

    /// How long to sample
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = span)]
    pub(crate) lasts: Span,

    /// Interval between samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// Also read the malloc heaps of the largest processes of this service, cgroup or name; repeatable
    #[arg(long, value_name = "NAME", value_parser = explained)]
    pub(crate) explain: Vec<String>,

    /// Include command lines of processes and of the kernel, which may hold secrets
    #[arg(long)]
    pub(crate) cmdlines: bool,

    /// Include the host name
    #[arg(long)]
    pub(crate) hostname: bool,
}
