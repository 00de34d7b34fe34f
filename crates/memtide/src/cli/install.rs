//! Arguments for packagers: `memtide completions` and `memtide man`.

use std::path::PathBuf;

use clap::Args;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide completions bash > /etc/bash_completion.d/memtide
  memtide completions zsh > \"${fpath[1]}/_memtide\"
  memtide completions fish > ~/.config/fish/completions/memtide.fish")]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: clap_complete::Shell,
}

/// Write man pages into a directory
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  memtide man ~/.local/share/man/man1    then: man memtide-check")]
pub(crate) struct ManArgs {
    /// The directory; created if absent
    pub(crate) directory: PathBuf,
}
