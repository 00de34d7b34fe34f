//! Opens a command's source: shows progress, prints warnings of problems, and adds the range as understood to errors
//! about it.

use std::path::Path;

use answers::GroupError;
use answers::this_host::{self, Besides};
use import::{OpenError, OpenOptions};
use probe::Root;
use sampler::WatchOptions;
use timeline::{Source, TimeRange};

use crate::cli::{AroundArgs, GroupArgs};
use crate::command_error::{CommandError, bail};
use crate::output::Output;

/// Watches this host, and adds what the answer shows besides.
pub(crate) fn watch(
    options: WatchOptions,
    besides: Besides<'_>,
    output: &Output,
) -> Result<Source, CommandError> {
    let root = Root::default();
    let mut source = output.watching("watching this host", options.duration, |progress| {
        sampler::watch(&root, options, progress)
    });
    this_host::complete(&root, &mut source, besides)?;
    Ok(source)
}

/// Reads all of a source and warns of its problems.
pub(crate) fn open(path: &Path, output: &Output) -> Result<Source, CommandError> {
    open_part(path, OpenOptions::default(), output).inspect(|source| warn(source, output))
}

/// Reads a part of a source. Warnings are left to the answer, or to [`warn`].
pub(crate) fn open_part(
    path: &Path,
    options: OpenOptions,
    output: &Output,
) -> Result<Source, CommandError> {
    read(options.range, output, |progress| answers::open(path, options, progress))
}

/// Reads a range of a source in the detail that diagnosis needs. Warnings are left to the answer, or to [`warn`].
pub(crate) fn open_screened(
    path: &Path,
    range: TimeRange,
    output: &Output,
) -> Result<Source, CommandError> {
    read(range, output, |progress| answers::open_screened(path, range, progress))
}

/// Reads a range of a source in the detail that events need. Warnings are left to the answer, or to [`warn`].
pub(crate) fn open_for_events(
    path: &Path,
    range: TimeRange,
    output: &Output,
) -> Result<Source, CommandError> {
    read(range, output, |progress| answers::open_for_events(path, range, progress))
}

fn read(
    range: TimeRange,
    output: &Output,
    open: impl FnOnce(&mut dyn FnMut(f64)) -> Result<Source, OpenError>,
) -> Result<Source, CommandError> {
    refuse_backwards(range)?;
    let source = output.reading("reading", open);
    source.map_err(|error| match (&error, answers::coverage::understood(&range)) {
        (OpenError::OutOfRange { .. }, Some(range)) => CommandError::from(error).context(range),
        _ => error.into(),
    })
}

/// Adds what people call the containers of a recording. Answers that name no container do without.
pub(crate) fn name_containers(source: &mut Source) -> Result<(), CommandError> {
    let besides = Besides::default();
    Ok(this_host::complete(&Root::default(), source, besides)?)
}

/// Returns the path of the cgroup that was asked about; `None` if the host was. Names the containers. `source` is this range
/// of what is at `path`.
///
/// # Errors
/// If the source has no such cgroup, or several. One that existed at another time is named with that time.
pub(crate) fn group(
    typed: &GroupArgs,
    source: &mut Source,
    (path, range): (&Path, TimeRange),
    output: &Output,
) -> Result<Option<String>, CommandError> {
    name_containers(source)?;
    let selector = typed.selector();
    let found = answers::group_of(source, selector.as_ref(), true);
    let is_part = !range.is_all() && path != Path::new("-");
    let unknown = match (found, selector) {
        (Err(error), Some(selector))
            if is_part && !matches!(error, GroupError::Ambiguous { .. }) =>
        {
            (error, selector)
        }
        (found, _) => return Ok(found?),
    };
    let (error, selector) = unknown;
    // A pipe gives nothing a second time.
    let Ok(mut whole) = open_screened(path, TimeRange::default(), output) else {
        return Err(error.into());
    };
    name_containers(&mut whole)?;
    Err(answers::at_another_time(&whole, &selector).unwrap_or(error).into())
}

/// Warns of a source's problems, for answers that do not show them.
pub(crate) fn warn(source: &Source, output: &Output) {
    for problem in &source.problems {
        output.warn(&format!("{}: {problem}", source.origin.name));
    }
}

/// Returns the range that `--since`, `--until` and `--at` name.
pub(crate) fn range(typed: &AroundArgs) -> Result<TimeRange, CommandError> {
    let range = typed.at.map_or_else(|| typed.part.range(), answers::around);
    refuse_backwards(range)?;
    Ok(range)
}

/// # Errors
/// If a range ends before it begins, and so is empty in any source.
fn refuse_backwards(range: TimeRange) -> Result<(), CommandError> {
    if range.is_backwards() {
        bail!("`--since` is later than `--until`; a time of day is the latest one that is past");
    }
    Ok(())
}
