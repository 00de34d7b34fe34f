//! `memtide job`: the page cache that a job needs, and what it takes from others.

mod cached;
mod plan;
mod recorded;
mod running;
mod verified;

use std::process::Command;

use ::job::{JobReport, job_screen, observe, serve_dont_cache};

use crate::cli::{JobArgs, JobFormat};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(crate) fn run(args: &JobArgs, output: &Output) -> Result<Exit, CommandError> {
    if args.serve_dontcache {
        return Ok(if serve_dont_cache() { Exit::Ok } else { Exit::Unknown });
    }
    let target = OutputTarget::new(&args.output, args.force)?;
    let text = match args {
        JobArgs { cached: true, .. } => cached::answer(args, output)?,
        _ if args.is_recorded() => recorded::answer(args, output)?,
        _ if args.hints.is_empty() => answer(&report(args, output)?, args, output)?,
        _ => verified::answer(args, output)?,
    };
    if target.is_stdout() {
        output.print(&text)?;
    } else {
        let written = target.write(|out| out.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", args.output.display()))?;
    }
    Ok(Exit::Ok)
}

fn report(args: &JobArgs, output: &Output) -> Result<JobReport, CommandError> {
    if let Some(path) = &args.plan {
        return Ok(JobReport::of_plan(&plan::read(path, args)?, &args.caches));
    }
    if args.command.is_empty() {
        return running::watched(args, output);
    }
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let is_interrupted = interrupt::listen_to_any();
    let seen = observe(command, args.watch.into(), &is_interrupted)?;
    let words: Vec<String> = args.command.iter().map(|word| report::quoted(word)).collect();
    Ok(JobReport::of_observation(&words.join(" "), &seen, &args.caches, args.disk))
}

fn answer(report: &JobReport, args: &JobArgs, output: &Output) -> Result<String, CommandError> {
    Ok(match args.format {
        JobFormat::Text => job_screen(report, &output.screen_with(args.all)),
        JobFormat::Json => serde_json::to_string_pretty(report)? + "\n",
    })
}
