//! What can be typed. Parsing does nothing; commands do.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;
use units::Span;

/// Find where your Linux memory went, whether it is enough, and why it is slow.
#[derive(Debug, Parser)]
#[command(
    name = "memtide",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Start with: memtide check"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colour, which only repeats what words say
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Where(Where),
    Capture(Capture),
    Convert(Convert),
    Rules(Rules),
    Signals(Signals),
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
}

/// Say what is wrong with a host's memory
///
/// Without FILE it watches this host for a while. With FILE it reads what there is of another host: a capture; text that
/// somebody pasted or saved (free, vmstat, /proc files, slabtop, ps, sar, tables), in any mix; kernel logs with OOM reports;
/// a support bundle. It prints a verdict in one sentence,
/// what RAM holds, the findings with their evidence and fix, what looks bad and is not, and what could not be told.
/// Ctrl-C ends watching early and reports what was seen.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide check                        watch this host for 10 s
  memtide check --for 1m               look longer: more certain
  memtide check sick.jsonl.zst         a capture brought home
  memtide check free.txt oom.log       what somebody sent
  dmesg | memtide check -              the kernel's own reports
  memtide check --explain-input x.txt  what was recognised in it
  memtide check --format json | jq .verdict
  ssh HOST memtide capture -o - | memtide check -

With --format json, one FILE gives an object and several give an array with one element for each, in order;
one that cannot be read is {\"source\": {\"name\": ...}, \"error\": ...}.

Exit codes, as monitoring plugins have them:
  0 ok   1 warning   2 critical   3 unknown: bad usage, unreadable file, or too little data to say")]
pub(crate) struct Check {
    /// Captures, text, logs, sar files, bundles; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How long to watch this host
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) lasts: Span,

    /// How often to look at this host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// Also list the rules that looked and found nothing
    #[arg(long)]
    pub(crate) all: bool,

    /// Show what was recognised in the files, block by block, instead of the answer
    #[arg(long, requires = "files")]
    pub(crate) explain_input: bool,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Show where memory went: a tree that adds up to MemTotal
///
/// What no counter explains is a line of its own. It also reads the PSS of the largest processes, for at most 0.2 s, and
/// the slab caches; those of other users only as root.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide where                        this host, now
  memtide where --deep                 PSS of every process (those of others: as root)
  memtide where sick.jsonl.zst         the last sample of a capture
  memtide where --format json | jq .accounting")]
pub(crate) struct Where {
    /// Capture to read; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Read the PSS of every process, not only of the largest; 3 ms for each GiB that they hold
    #[arg(long)]
    pub(crate) deep: bool,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Save this host's kernel files over time, to bring a sick host home
///
/// The file holds the kernel's own numbers, names of programs and of control groups. It never holds environments; command
/// lines and the host's name only when asked for. Ctrl-C ends it early and keeps what was taken.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide capture -o sick.jsonl.zst
  memtide capture --for 10m --every 5s -o sick.jsonl.gz
  memtide capture --for 30s -o - | ssh HOME memtide check -")]
pub(crate) struct Capture {
    /// Where to write: .jsonl.zst, .jsonl.gz or .jsonl; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = span)]
    pub(crate) lasts: Span,

    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// Include command lines of processes and of the kernel, which may hold secrets
    #[arg(long)]
    pub(crate) cmdlines: bool,

    /// Include the host's name
    #[arg(long)]
    pub(crate) hostname: bool,
}

/// Write what any source holds as a capture: a paste, a support bundle, a recording of another tool
///
/// A capture holds kernel files. What tools printed is written as the files that they had read; what no file can be made
/// up for is named and left out. Kernel reports are kept as they are.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide convert paste.txt -o sick.jsonl.zst
  memtide convert sosreport-web.tar.xz -o web.jsonl.zst")]
pub(crate) struct Convert {
    /// What to read; `-` is standard input
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,

    /// Where to write: .jsonl.zst, .jsonl.gz or .jsonl; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Overwrite FILE where there is one
    #[arg(long)]
    pub(crate) force: bool,
}

/// Explain the rules: what each finding means and how it is recognised
#[derive(Debug, Args)]
pub(crate) struct Rules {
    /// One rule, by id; without it, all are listed
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Explain the signals: what is read, from where, and what other tools call it
#[derive(Debug, Args)]
pub(crate) struct Signals {
    /// Signals whose name, kernel field or name in another tool contains this; without it, all are listed
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide completions bash > /etc/bash_completion.d/memtide
  memtide completions zsh > \"${fpath[1]}/_memtide\"
  memtide completions fish > ~/.config/fish/completions/memtide.fish")]
pub(crate) struct Completions {
    pub(crate) shell: clap_complete::Shell,
}

/// Write man pages into a directory
#[derive(Debug, Args)]
pub(crate) struct Man {
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs: docs/report.schema.json describes it
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// `500ms`, `10s`, `2m`, `1h 30m`; a plain number is seconds.
fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("`{text}` is no length of time; write 500ms, 10s, 2m or 1h");
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => text
            .parse::<SignedDuration>()
            .map_err(|_| wrong())?
            .as_secs_f64(),
    };
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(wrong());
    }
    if seconds < 0.01 {
        return Err(format!("`{text}` is too short; 10ms is the least"));
    }
    if seconds > 366.0 * 86_400.0 {
        return Err(format!("`{text}` is longer than a year"));
    }
    Ok(Span::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_written_as_people_write_them() {
        for (text, seconds) in [
            ("10s", 10.0),
            ("500ms", 0.5),
            ("2m", 120.0),
            ("1h", 3600.0),
            ("1h 30m", 5400.0),
            ("15", 15.0),
        ] {
            assert_eq!(span(text), Ok(Span::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "-1s", "soon", "0", "nan", "1e300", "500y"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
