//! `memtide completions`: a shell's completion script.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "memtide", &mut script);
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
