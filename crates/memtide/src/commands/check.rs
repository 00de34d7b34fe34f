//! `memtide check`: what is wrong with a host's memory.

mod brief;
mod kernel_sampling;
mod sources;

pub(crate) use brief::refuse as refuse_in_brief;

use report::Answer;

use crate::cli::{CheckArgs, Format};
use crate::command_error::CommandError;
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;
use sources::{live, note_unread_text, saved};

pub(crate) fn run(args: &CheckArgs, output: &Output) -> Result<Exit, CommandError> {
    if args.brief {
        return brief::run(args, output);
    }
    let (range, mut paths) = (source::range(&args.around)?, args.files.clone());
    if range.is_all() && paths.is_empty() {
        let exit = print(&[live(args, output)?.report.into()], args, output);
        note_unread_text(output);
        return exit;
    }
    if paths.is_empty() {
        paths.push(answers::recording_directory::required()?);
    }
    let mut reports = Vec::new();
    for path in &paths {
        match saved(path, range, args, output) {
            Ok(judged) => reports.push(judged.report.into()),
            // One faulty file of several must not hide the others.
            Err(error) if paths.len() > 1 => {
                output.error(&error);
                reports.push(Answer::failed(path.display().to_string(), error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    print(&reports, args, output)
}

fn print(answers: &[Answer], args: &CheckArgs, output: &Output) -> Result<Exit, CommandError> {
    let screen = output.screen_with(args.all);
    output.print(&match (args.answer.get(), answers) {
        (Format::Json, [answer]) => report::json(answer)? + "\n",
        (Format::Json, answers) => report::json(&answers)? + "\n",
        (Format::Text, answers) if args.explain_input => {
            report::text::explain_inputs(answers, &screen)
        }
        (Format::Text, answers) => report::text::check_all(answers, &screen),
    })?;
    Ok(answers.iter().map(Exit::from).fold(Exit::Ok, Exit::worse))
}
