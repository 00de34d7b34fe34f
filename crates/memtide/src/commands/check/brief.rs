//! `check --brief`: one line for a monitoring system, whatever happens.

use timeline::{TimePoint, TimeRange};
use units::Span;

use super::sources::{CheckedSource, live, saved};
use crate::cli::{CheckArgs, ColorChoice};
use crate::command_error::{CommandError, bail};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

/// How much of the recording of this host is judged: the usual distance of two checks.
const RECENTLY: Span = Span::from_mins(5);

pub(super) fn run(args: &CheckArgs, output: &Output) -> Result<Exit, CommandError> {
    match judged(args, output) {
        Ok(CheckedSource { source, report }) => {
            let data = answers::performance(&source, &report);
            output.print(&report::text::brief(&report, &data, &output.screen()))?;
            Ok(report.verdict.into())
        }
        Err(error) => {
            output.print(&report::text::brief_unknown(&error.to_string()))?;
            Ok(Exit::Unknown)
        }
    }
}

fn judged(args: &CheckArgs, output: &Output) -> Result<CheckedSource, CommandError> {
    let range = source::range(&args.around)?;
    match args.files.as_slice() {
        [] if !range.is_all() => {
            saved(&answers::recording_directory::required()?, range, args, output)
        }
        [] => of_this_host(args, output),
        [file] => saved(file, range, args, output),
        _ => bail!("--brief is about one FILE"),
    }
}

/// Judges what the recorder of this host has, if it runs and nothing else was asked for; else samples.
fn of_this_host(args: &CheckArgs, output: &Output) -> Result<CheckedSource, CommandError> {
    let is_recording_enough = args.lasts.is_none() && !args.no_history && !args.host;
    let recording =
        is_recording_enough.then(|| answers::recording_directory::up_to_date(RECENTLY)).flatten();
    let Some(recording) = recording else {
        return live(args, output);
    };
    let range = TimeRange { since: Some(TimePoint::BeforeEnd(RECENTLY)), until: None };
    saved(&recording, range, args, output)
}

/// Prints bad usage as a line where one was asked for: a monitoring system shows nothing else. Returns whether it was.
pub(crate) fn refuse(error: &clap::Error) -> bool {
    let is_asked = error.use_stderr() && std::env::args_os().any(|word| word == "--brief");
    if is_asked {
        let text = error.to_string();
        let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let _ = Output::new(ColorChoice::Never).print(&report::text::brief_unknown(why));
    }
    is_asked
}
