//! What `serve` serves: the named source, this host's recording while it goes on, or this host itself.

use std::path::Path;

use answers::recording_directory;
use import::is_recording;
use probe::Root;
use serve::{LiveSource, ServedSource};
use timeline::TimeRange;
use units::Span;

use crate::cli::ServeArgs;
use crate::command_error::CommandError;
use crate::commands::source;
use crate::output::Output;

/// Returns it, with what is printed about it at the start.
pub(super) fn choose(
    args: &ServeArgs,
    output: &Output,
) -> Result<(ServedSource, String), CommandError> {
    if let Some(path) = &args.source {
        return named(path, output);
    }
    let recording = recording_directory::up_to_date(Span::ZERO).filter(|_| !args.live);
    if let Some(path) = recording {
        let about = format!("the recording in {}, as its recorder goes on", path.display());
        return Ok((ServedSource::Recording(path), about));
    }
    let live = LiveSource { root: Root::default(), every: args.every, window: args.window };
    let mut about = format!("this host, the last {} of it", args.window);
    match recording_directory::to_read() {
        Some(path) if !args.live => about.push_str(&format!(
            "; no recorder writes to {}: `memtide serve {0}` shows what it has",
            path.display()
        )),
        None if !args.live => about.push_str("; `memtide record` would keep more"),
        _ => {}
    }
    Ok((ServedSource::Live(live), about))
}

fn named(path: &Path, output: &Output) -> Result<(ServedSource, String), CommandError> {
    if is_recording(path) {
        let about = format!("the recording in {}, and what is written to it", path.display());
        return Ok((ServedSource::Recording(path.to_owned()), about));
    }
    let mut read = source::open_screened(path, TimeRange::default(), output)?;
    source::name_containers(&mut read)?;
    source::warn(&read, output);
    let about = read.origin.name.clone();
    Ok((ServedSource::Read(Box::new(read)), about))
}
