//! `memtide record --status`: the state of a directory's recorder.

use answers::recording_directory;
use jiff::Timestamp;
use report::model::status::RecorderState;

use crate::cli::{Format, RecordArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn run(args: &RecordArgs, output: &Output) -> Result<Exit, CommandError> {
    let directory = args
        .to
        .clone()
        .or_else(recording_directory::to_read)
        .or_else(recording_directory::to_write)
        .context(
            "there is no home directory to search for a recording; name one with `--to DIR`",
        )?;
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let status = answers::status(&directory)?;
    output.print(&match args.answer.get() {
        Format::Json => report::json(&status)? + "\n",
        Format::Text => report::text::status(&status, &output.screen(), Timestamp::now()),
    })?;
    Ok(match status.state {
        RecorderState::Running => Exit::Ok,
        RecorderState::Vanished
        | RecorderState::Stopped
        | RecorderState::Gone
        | RecorderState::None => Exit::Unknown,
    })
}
