//! Arguments of `memtide explain`.

use std::path::PathBuf;

use clap::Args;
use units::Span;

use super::AnswerFormat;
use super::typed::span;
use answers::{ExplainTarget, StatsKind};

/// Show where one process has its memory, down to its malloc heap
///
/// Reads the running process from outside: no restart, no preload, no stop. For memory of glibc's malloc the answer has the
/// live size, the free size that is still in RAM, the part that malloc_trim would return, and the part that fewer arenas would
/// save. It needs the right to trace the process: root, or the user of the process.
#[derive(Debug, Args)]
#[command(after_long_help = after_help())]
pub(crate) struct ExplainArgs {
    /// PID, or name of a process or of its program; the largest process of that name
    #[arg(value_name = "PID|NAME", required_unless_present_any = ["service", "runtime_stats"], value_parser = target)]
    pub(crate) process: Option<ExplainTarget>,

    /// The largest process of this service, container or cgroup
    #[arg(long, value_name = "UNIT", conflicts_with = "process")]
    pub(crate) service: Option<String>,

    /// Watch it for this long: does it leak, fragment or warm up? Ctrl-C ends the watch early
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) watch: Option<Span>,

    /// Stop the process while it is read, for exact figures of a busy heap; it goes on even if memtide is killed
    #[arg(long)]
    pub(crate) freeze: bool,

    /// Also draw its malloc heap: on a page (.html), or with `-` on the terminal
    #[arg(long, value_name = "FILE", value_parser = picture)]
    pub(crate) heap_picture: Option<PathBuf>,

    /// Also read a runtime's own report of its memory, of Ruby, a JVM, jemalloc or Redis; `-` is standard input
    #[arg(long, value_name = "FILE", visible_alias = "ruby-stats")]
    pub(crate) runtime_stats: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "heap_picture")]
    pub(crate) force: bool,

    /// Show each arena, the sizes of chunks, and all parts and files
    #[arg(long)]
    pub(crate) full: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

impl ExplainArgs {
    /// Returns the process that is meant.
    pub(crate) fn target(&self) -> Option<ExplainTarget> {
        let service = self.service.clone().map(ExplainTarget::Service);
        service.or_else(|| self.process.clone())
    }
}

/// The form of a picture is that of its file's name.
fn picture(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let form = path.extension().and_then(|form| form.to_str());
    match form {
        _ if text == "-" => Ok(path),
        Some("html" | "htm") => Ok(path),
        _ => Err("the name must end in .html, or be `-` for the terminal".to_owned()),
    }
}

/// A number is a PID, anything else a name.
pub(super) fn target(text: &str) -> Result<ExplainTarget, String> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match ExplainTarget::parse(text) {
        ExplainTarget::Name(_) if is_number => Err("no PID is that large".to_owned()),
        target => Ok(target),
    }
}

fn after_help() -> String {
    let commands = StatsKind::ALL.map(|kind| format!("  {}", kind.how_to_make()));
    let commands = commands.join("\n");
    format!(
        "\
Examples:
  memtide explain 4711
  memtide explain mariadbd --full              each arena, the sizes of chunks, all mapped files
  memtide explain 4711 --watch 10m             leak, fragmentation or warm-up?
  memtide explain --service redis              the largest process of a unit, container or cgroup
  memtide explain 4711 --heap-picture h.html   each page of the heap: live, free, returnable
  memtide explain 4711 --format json | jq .heap.forecast
  memtide explain --runtime-stats gc.json      the memory report of Ruby, a JVM, jemalloc or Redis

A report for --runtime-stats is made by one of these:
{commands}

Reading sets the accessed bits of the heap's pages: the kernel's working-set figures are wrong for a while.
No content of memory is shown or stored; of environment variables only values that set an allocator.
docs/explain.schema.json describes the JSON.

Exit codes:
  0 done, whatever the verdict   3 an error"
    )
}
