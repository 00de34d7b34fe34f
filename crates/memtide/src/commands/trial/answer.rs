//! The answer of a trial is printed, and its exit code.

use ::trial::{TrialEnd, TrialReport};

use crate::cli::{TrialArgs, TrialFormat};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn print(
    report: &TrialReport,
    args: &TrialArgs,
    output: &Output,
) -> Result<Exit, CommandError> {
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
