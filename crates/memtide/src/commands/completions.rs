//! `memtide completions`: a shell's script, which asks memtide at each press of Tab.

use clap::CommandFactory;
use clap_complete::CompleteEnv;
use clap_complete::env::Shells;

use crate::cli::{Cli, CompletionsArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;

/// The variable by which the script asks.
const VARIABLE: &str = "COMPLETE";

/// Answers a shell that asks, and ends; else returns.
pub(crate) fn answer_a_shell() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<Exit, CommandError> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let completer =
        shells.completer(&shell).with_context(|| format!("there is no script for {shell}"))?;
    let mut script = Vec::new();
    let name = "memtide";
    completer.write_registration(VARIABLE, name, name, name, &mut script)?;
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
