//! What a recorder has its children do: each is this program with an option of its own.

use super::{checks, heaps, profiles, seal};
use crate::cli::RecordArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

/// Does what a child is for; `None` where this is none.
pub(super) fn run(args: &RecordArgs, output: &Output) -> Option<Result<Exit, CommandError>> {
    let mode = &args.mode;
    if let Some(directory) = &mode.seal {
        return Some(seal::run(directory, output));
    }
    if mode.read_heaps {
        return Some(heaps::run(&args.explain, output));
    }
    if mode.take_profile {
        return Some(profiles::child::run(output));
    }
    if let Some(directory) = &mode.judge {
        return Some(checks::child::run(directory, output));
    }
    mode.run_hook.as_ref().map(|command| checks::hook::run(command))
}
