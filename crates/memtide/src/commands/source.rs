//! Opens what a command was pointed at: with progress, with the range that was understood where an error is about it, and
//! with warnings of what was wrong.

use std::path::Path;

use anyhow::bail;
use import::{OpenError, OpenOptions};
use sampler::WatchOptions;
use timeline::{Source, TimeRange};
use units::Span;

use crate::cli::AroundArgs;
use crate::output::Output;

/// What `--at` covers before and after a time: long enough to show what led to it.
const AROUND: Span = Span::from_mins(5);

/// Watches this host.
pub(crate) fn watch(options: WatchOptions, output: &Output) -> Source {
    output.watching("watching this host", options.duration, |progress| {
        sampler::watch(&probe::Root::default(), options, progress)
    })
}

/// Reads all of a source; warns of what was wrong with it.
pub(crate) fn open(path: &Path, output: &Output) -> anyhow::Result<Source> {
    open_part(path, OpenOptions::default(), output).inspect(|source| warn(source, output))
}

/// Reads a part of a source. Warnings are left to the answer, or to [`warn`].
pub(crate) fn open_part(
    path: &Path,
    options: OpenOptions,
    output: &Output,
) -> anyhow::Result<Source> {
    read(options.range, output, |progress| {
        answers::open(path, options, progress)
    })
}

/// Reads the part of a source in a range as finely as a judgement needs. Warnings are left to the answer, or to [`warn`].
pub(crate) fn open_screened(
    path: &Path,
    range: TimeRange,
    output: &Output,
) -> anyhow::Result<Source> {
    read(range, output, |progress| {
        answers::open_screened(path, range, progress)
    })
}

fn read(
    range: TimeRange,
    output: &Output,
    open: impl FnOnce(&mut dyn FnMut(f64)) -> Result<Source, OpenError>,
) -> anyhow::Result<Source> {
    refuse_backwards(range)?;
    let source = output.reading("reading", open);
    source.map_err(
        |error| match (&error, answers::coverage::understood(&range)) {
            (OpenError::OutOfRange { .. }, Some(range)) => anyhow::Error::new(error).context(range),
            _ => error.into(),
        },
    )
}

/// Warns of what was wrong with a source, where the answer does not say it.
pub(crate) fn warn(source: &Source, output: &Output) {
    for problem in &source.problems {
        output.warn(&format!("{}: {problem}", source.origin.name));
    }
}

/// The range that `--since`, `--until` and `--at` name.
pub(crate) fn range(typed: &AroundArgs) -> anyhow::Result<TimeRange> {
    let range = typed
        .at
        .map_or_else(|| typed.part.range(), |at| TimeRange::around(at, AROUND));
    refuse_backwards(range)?;
    Ok(range)
}

/// # Errors
/// Where a range ends before it begins: it is empty in any source.
fn refuse_backwards(range: TimeRange) -> anyhow::Result<()> {
    if range.is_backwards() {
        bail!("`--since` is later than `--until`; a time of day is the latest one that is past");
    }
    Ok(())
}
