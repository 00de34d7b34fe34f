//! `memtide growth`: which process leaks, fragments or warms up.

use answers::recording_directory;
use import::OpenOptions;

use crate::cli::{Format, GrowthArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &GrowthArgs, output: &Output) -> Result<Exit, CommandError> {
    let path = recording_directory::unless_named(args.source.as_deref())?;
    let options = OpenOptions { range: args.part.range(), ..OpenOptions::default() };
    let source = source::open_part(&path, options, output)?;
    if args.answer.get() == Format::Text {
        source::warn(&source, output);
    }
    let report = answers::growth(&source, args.service.as_deref()).with_context(|| {
        let name = args.service.as_deref().unwrap_or_default();
        format!("the source has no service, cgroup or process `{name}`")
    })?;
    output.print(&match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::growth(&report, &output.screen()),
    })?;
    Ok(Exit::Ok)
}
