//! `memtide record`: the flight recorder, its status, and its service.

mod checks;
mod child;
mod followed;
mod foreground;
mod heaps;
mod profiles;
mod seal;
mod service;
mod status;
mod status_line;
mod unit;

use std::path::PathBuf;

use crate::cli::RecordArgs;
use crate::command_error::{CommandError, ErrorContext, bail};
use crate::commands::record_from;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &RecordArgs, output: &Output) -> Result<Exit, CommandError> {
    if let Some(done) = child::run(args, output) {
        return done;
    }
    let mode = &args.mode;
    if let Some(from) = &mode.from {
        return record_from::run(from, &directory(args)?, output);
    }
    if args.dry_run && !mode.install && !mode.uninstall {
        bail!("`--dry-run` shows what --install or --uninstall would do; give one of them");
    }
    if mode.status {
        return status::run(args, output);
    }
    if mode.uninstall {
        return service::uninstall(args.dry_run, output);
    }
    let processes = args.checked_processes_every()?;
    if mode.install {
        return service::install(args, output);
    }
    foreground::run(args, processes, &directory(args)?, output)
}

/// Returns the directory to record into, as an absolute path.
fn directory(args: &RecordArgs) -> Result<PathBuf, CommandError> {
    let named = args.to.clone().or_else(answers::recording_directory::to_write);
    let directory = named.context(
        "no directory to record into: neither $HOME nor $XDG_STATE_HOME is set; name one with \
         `--to DIR`",
    )?;
    std::path::absolute(&directory)
        .with_context(|| format!("cannot resolve the path {}", directory.display()))
}
