//! `memtide man DIRECTORY`: man pages, made from the same text as `--help`.

mod pages;

use clap::CommandFactory;

use crate::cli::{Cli, ManArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use pages::write_pages;

pub(crate) fn run(args: &ManArgs) -> Result<Exit, CommandError> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let written = std::fs::create_dir_all(&args.directory)
        .and_then(|()| write_pages(&command, &[], &args.directory));
    written.with_context(|| format!("cannot write man pages into {}", args.directory.display()))?;
    Ok(Exit::Ok)
}
