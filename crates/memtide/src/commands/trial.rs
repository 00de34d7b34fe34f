//! `memtide trial`: commands or settings side by side.

mod answer;
mod in_machine;
mod plan_file;
mod planned;
mod progress;
mod recorder;

use ::trial::{Trial, TrialDirectory, TrialReport};

use crate::cli::TrialArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;

pub(crate) fn run(args: &TrialArgs, output: &Output) -> Result<Exit, CommandError> {
    if args.in_machine {
        return in_machine::run(output);
    }
    if let Some(path) = &args.show {
        let (directory, plan) = TrialDirectory::open(path)?;
        return answer::print(
            &TrialReport::of_kept(&Trial::open(plan, Vec::new(), directory)?),
            args,
            output,
        );
    }
    if let Some(path) = &args.plan {
        return run(&plan_file::read(path, args)?, output);
    }
    let (plan, ready, begun) = planned::plan_or_resume(args)?;
    if args.dry_run {
        return output.print(&planned::dry_run(&plan, &ready)).map(|()| Exit::Ok);
    }
    let directory = match begun {
        Some(directory) => directory,
        None => TrialDirectory::create(&planned::directory(args)?, &plan)?,
    };
    let _lock = directory.lock()?;
    let mut trial = Trial::open(plan, ready, directory)?;
    let recorder = args.record.then(|| recorder::TrialRecorder::start(trial.directory().path()));
    let recorder = recorder.transpose()?;
    let is_interrupted = interrupt::listen_on_terminal();
    let mut progress = progress::TrialProgress::new(&trial, output);
    let end = trial.go_on(&is_interrupted, &mut |event| progress.tell(event));
    progress.finish();
    drop(recorder);
    if end.is_err() {
        trial.directory().remove_if_empty();
    }
    answer::print(&TrialReport::of(&trial, end?), args, output)
}
