//! What can be typed after `memtide convert`.

use std::path::PathBuf;

use clap::Args;

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
