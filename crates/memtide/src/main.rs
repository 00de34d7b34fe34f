//! The `memtide` command: arguments in, exit code out.

mod apart;
mod cli;
mod command_error;
mod commands;
mod exit;
mod interrupt;
mod journal;
mod output;
mod output_file;

use std::process::ExitCode;

use cli::{Cli, Command, McpArgs};
use command_error::CommandError;
use exit::Exit;
use output::Output;

fn main() -> ExitCode {
    if lab::init::is_here() {
        lab::init::main();
    }
    commands::completions::answer_a_shell();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; anything else is bad usage, which for a monitoring plugin is "unknown".
            let exit = if error.use_stderr() { Exit::Unknown } else { Exit::Ok };
            if !commands::check::refuse_in_brief(&error) {
                let _ = error.print();
            }
            return exit.into();
        }
    };
    let output = Output::new(cli.color);
    let reads_processes = cli.command.reads_processes();
    let answer = || match run(cli.command, &output) {
        Ok(exit) => exit,
        Err(error) => {
            output.error(&error);
            Exit::Unknown
        }
    };
    if reads_processes { apart::answer(answer) } else { answer().into() }
}

fn run(command: Command, output: &Output) -> Result<Exit, CommandError> {
    match command {
        Command::Check(args) => commands::check::run(&args, output),
        Command::Top(args) => commands::top::run(&args, output),
        Command::Where(args) => commands::where_memory::run(&args, output),
        Command::Profile(args) => commands::profile::run(&args, output),
        Command::Explain(args) => commands::explain::run(&args, output),
        Command::Capture(args) => commands::capture::run(&args, output),
        Command::Convert(args) => commands::convert::run(&args, output),
        Command::Record(args) => commands::record::run(&args, output),
        Command::Events(args) => commands::events::run(&args, output),
        Command::Headroom(args) => commands::headroom::run(&args, output),
        Command::Growth(args) => commands::growth::run(&args, output),
        Command::Report(args) => commands::report::run(&args, output),
        Command::Serve(args) => commands::serve::run(&args, output),
        Command::Compare(args) => commands::compare::run(&args, output),
        Command::Trial(args) => commands::trial::run(&args, output),
        Command::Job(args) => commands::job::run(&args, output),
        Command::Export(args) => commands::export::run(&args, output),
        Command::Rules(args) => commands::rules::run(&args, output),
        Command::Mcp(McpArgs {}) => commands::mcp::run(),
        Command::Lab(args) => commands::lab::run(&args, output),
        Command::Signals(args) => commands::signals::run(&args, output),
        Command::Completions(args) => commands::completions::run(&args, output),
        Command::Man(args) => commands::man::run(&args),
    }
}
