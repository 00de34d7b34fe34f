//! `memtide profile`: the kernel's memory work, sampled or read.

mod answer;
mod files;
mod kept;
mod live;
mod moment;

use ::profile::ProfileReport;

use crate::cli::ProfileArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &ProfileArgs, output: &Output) -> Result<Exit, CommandError> {
    let base = match args.diff.as_slice() {
        [] => None,
        paths => Some(ProfileReport::of(&files::read(paths, None)?)),
    };
    let targets = files::targets(args, 0)?;
    if let Some(recording) = &args.recording {
        let profile = kept::read(recording, args.at, output)?;
        return answer::give(&profile, base.as_ref(), &targets, args, output);
    }
    if !args.from.is_empty() {
        let profile = files::read(&args.from, args.lasts)?;
        return answer::give(&profile, base.as_ref(), &targets, args, output);
    }
    let Some(condition) = &args.when else {
        let profile = live::sample(args, output)?;
        return answer::give(&profile, base.as_ref(), &targets, args, output);
    };
    let mut moment = moment::RightMoment::new(condition.clone(), args.for_at_most);
    let mut exit = Exit::Ok;
    for time in 1..=args.times {
        let Some(value) = moment.wait(output)? else {
            output.note(&format!("{condition} was not met within {}", args.for_at_most));
            break;
        };
        output.note(&format!("{condition} is met: {value}"));
        let profile = live::sample(args, output)?;
        let targets = files::targets(args, time)?;
        exit = exit.worse(answer::give(&profile, base.as_ref(), &targets, args, output)?);
    }
    Ok(exit)
}
