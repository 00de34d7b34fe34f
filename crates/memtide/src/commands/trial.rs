//! `memtide trial`: commands or settings side by side.

mod planned;
mod progress;

use std::path::Path;

use ::trial::{Trial, TrialDirectory, TrialEnd, TrialReport, preflight};

use crate::cli::{TrialArgs, TrialFormat};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;

pub(crate) fn run(args: &TrialArgs, output: &Output) -> Result<Exit, CommandError> {
    if let Some(path) = &args.show {
        let (directory, plan) = TrialDirectory::open(path)?;
        return print(
            &TrialReport::of_kept(&Trial::open(plan, Vec::new(), directory)?),
            args,
            output,
        );
    }
    let (plan, kept) = match &args.resume {
        Some(path) => {
            let (directory, plan) = TrialDirectory::open(path)?;
            enter(&plan.working_directory)?;
            (plan, Some(directory))
        }
        None => (planned::plan(args)?, None),
    };
    let checked = preflight(&|variant| plan.command_of(variant), &plan.variants)?;
    let (plan, ready) = plan.with(checked);
    if args.dry_run {
        return output.print(&planned::dry_run(&plan, &ready)).map(|()| Exit::Ok);
    }
    let directory = match kept {
        Some(directory) => directory,
        None => TrialDirectory::create(&planned::directory(args)?, &plan)?,
    };
    let mut trial = Trial::open(plan, ready, directory)?;
    let is_interrupted = interrupt::listen_to_any();
    let mut progress = progress::TrialProgress::new(&trial, output);
    let end = trial.go_on(&is_interrupted, &mut |event| progress.tell(event));
    progress.finish();
    print(&TrialReport::of(&trial, end?), args, output)
}

/// Goes to where the commands of a trial are run.
fn enter(directory: &Path) -> Result<(), CommandError> {
    std::env::set_current_dir(directory)
        .with_context(|| format!("cannot go to {}", directory.display()))
}

fn print(report: &TrialReport, args: &TrialArgs, output: &Output) -> Result<Exit, CommandError> {
    let text = match args.format {
        TrialFormat::Text => ::trial::trial_screen(report, &output.screen_with(args.all)),
        TrialFormat::Markdown => ::trial::markdown(report),
        TrialFormat::Json => serde_json::to_string_pretty(report)? + "\n",
        TrialFormat::Html => ::trial::trial_page(report),
    };
    output.print(&text)?;
    Ok(match (report.is_answered(), report.end) {
        (Some(true), _) => Exit::Ok,
        (Some(false), _) => Exit::Warning,
        (None, TrialEnd::Interrupted) => Exit::Warning,
        (None, _) => Exit::Unknown,
    })
}
