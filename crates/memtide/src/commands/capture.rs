//! `memtide capture`: this host's kernel files over time, to diagnose it elsewhere.

use probe::Root;
use sampler::{CaptureOptions, Captured, Secrets};

use crate::cli::CaptureArgs;
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::{FileAccess, OutputTarget};

pub(crate) fn run(args: &CaptureArgs, output: &Output) -> Result<Exit, CommandError> {
    let options = CaptureOptions {
        duration: args.lasts,
        every: args.every,
        secrets: Secrets { command_lines: args.cmdlines, hostname: args.hostname },
        heaps: args.explain.clone(),
    };
    let target = OutputTarget::new(&args.output, args.force)?;
    let name = args.output.display();
    let captured =
        write(&target, &options, output).with_context(|| format!("cannot write {name}"))?;
    for problem in &captured.problems {
        output.warn(&format!("malloc heaps: {problem}"));
    }
    if !target.is_stdout() {
        output.note(&format!("{name}: {} samples; memtide check {name}", captured.samples));
    }
    Ok(Exit::Ok)
}

fn write(
    target: &OutputTarget,
    options: &CaptureOptions,
    output: &Output,
) -> std::io::Result<Captured> {
    // Command lines may hold passwords.
    let access = if options.secrets.command_lines { FileAccess::Owner } else { FileAccess::Umask };
    target.write_as_it_comes(access, |out| {
        output.watching("capturing this host", options.duration, |progress| {
            sampler::capture(&Root::default(), options, out, progress)
        })
    })
}
