//! Parquet: the files of a recording's segments, in a directory of their own.

use std::path::Path;

use timeline::Source;
use units::Span;

use crate::command_error::{CommandError, ErrorContext, bail};
use crate::output::Output;

/// Writes a source's tables below `directory`, which must be absent or empty; it appears when all tables are complete.
pub(crate) fn write(
    opened: &Source,
    from: &Path,
    directory: &Path,
    output: &Output,
) -> Result<(), CommandError> {
    let name = directory.display();
    if directory == Path::new("-") {
        bail!("Parquet is a directory of files; name one with -o DIR");
    }
    let is_empty = || directory.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if directory.exists() && !is_empty() {
        bail!("{name} exists; name a new directory");
    }
    let parent = match directory.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let host = answers::host_of(opened, from)?;
    let every = opened.timeline.interval().unwrap_or(Span::from_secs(1));
    let context = || format!("cannot write {name}");
    let draft = tempfile::Builder::new()
        .prefix(".memtide-export-")
        .tempdir_in(parent)
        .with_context(context)?;
    let recording = draft.path().join("recording");
    let bar = output.busy("writing");
    let added = store::add_timeline(&recording, &host, &opened.timeline, &opened.facts, every);
    bar.finish_and_clear();
    for problem in added.with_context(context)?.problems {
        output.warn(&problem);
    }
    std::fs::rename(recording.join("segments"), directory).with_context(context)?;
    output.note(&format!("{name}: written; {name}/*/host.parquet has the host's signals"));
    Ok(())
}
