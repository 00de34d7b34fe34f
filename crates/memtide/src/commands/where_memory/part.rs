//! The part of a recording that `where` reads.

use std::path::Path;

use import::{OpenOptions, Resolution};
use timeline::{TimePoint, TimeRange};
use units::Span;

use crate::cli::WhereArgs;

/// Samples read before the requested time show its state up to this age; PSS is read every few minutes.
const BEFORE: Span = Span::from_mins(30);

/// Selects what ends with the last sample before the time that was asked about: with `--by` all before it, by the minute
/// where that is long, as growth counts from its begin.
pub(super) fn part(file: &Path, args: &WhereArgs) -> OpenOptions {
    let at = args.at.map(TimePoint::as_written);
    match args.by {
        Some(_) => {
            OpenOptions { range: TimeRange { since: None, until: at }, ..OpenOptions::default() }
        }
        None => last_sample(file, at),
    }
}

/// Selects the last sample before a time, with tables that are read less often; without a time, a recording's end.
fn last_sample(file: &Path, at: Option<TimePoint>) -> OpenOptions {
    let end = || import::is_recording(file).then_some(TimePoint::BeforeEnd(Span::ZERO));
    OpenOptions {
        range: at.or_else(end).map_or_else(TimeRange::default, |at| TimeRange::before(at, BEFORE)),
        resolution: Resolution::Full,
        ..OpenOptions::default()
    }
}
