//! Arguments of `memtide convert`.

use std::path::PathBuf;

use clap::Args;

/// Write a paste, a bundle or another tool's file as a capture
///
/// A capture holds kernel files. Output of a tool is written as the kernel files that the tool reads; figures without such a
/// file are named and left out. Kernel reports stay as they are.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide convert paste.txt -o sick.jsonl.zst
  memtide convert sosreport-web.tar.xz -o web.jsonl.zst")]
pub(crate) struct ConvertArgs {
    /// The source; `-` is standard input
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,

    /// Where to write: .jsonl.zst, .jsonl.gz or .jsonl; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Overwrite an existing FILE
    #[arg(long)]
    pub(crate) force: bool,
}
