//! `memtide lab`: scenarios in a virtual machine, and parts of workloads alone.

mod cure;
mod kernel;
mod list;
mod pages_directory;
mod parts;
mod place;
mod progress;
mod run;
mod score;
mod shell;

use crate::cli::{LabArgs, LabCommand};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &LabArgs, output: &Output) -> Result<Exit, CommandError> {
    if let Some(exit) = place::enter(&args.command)? {
        return Ok(exit);
    }
    match &args.command {
        LabCommand::List(args) => list::list(args, output),
        LabCommand::Run(args) => run::run(args, output),
        LabCommand::Cure(args) => cure::cure(args, output),
        LabCommand::Kernel(args) => kernel::kernel(args, output),
        LabCommand::Shell(args) => shell::shell(args),
        LabCommand::Corpus(args) => score::corpus(args, output),
        LabCommand::Score(args) => score::score(args, output),
        LabCommand::Hog(args) => parts::hog(args, output),
        LabCommand::Write(args) => parts::write(args, output),
        LabCommand::Read(args) => parts::read(args, output),
        LabCommand::Map(args) => parts::map(args, output),
        LabCommand::Share(args) => parts::share(args, output),
        LabCommand::Fork(args) => parts::fork(args, output),
        LabCommand::Fragment(args) => parts::fragment(args, output),
        LabCommand::Lookup(args) => parts::lookup(args, output),
        LabCommand::Archive(args) => parts::archive(args, output),
    }
}
