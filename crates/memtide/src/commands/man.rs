//! `memtide man DIRECTORY`: man pages, made from the same text as `--help`.

use clap::CommandFactory;

use crate::cli::{Cli, ManArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;

pub(crate) fn run(args: &ManArgs) -> Result<Exit, CommandError> {
    let written = std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.directory));
    written.with_context(|| format!("cannot write man pages into {}", args.directory.display()))?;
    Ok(Exit::Ok)
}
