//! Opens a source for an answer.

use std::path::Path;
use std::sync::LazyLock;

use import::{MinuteScreen, OpenError, OpenOptions};
use timeline::{SignalId, Source, TimeRange};

use crate::coverage::uncovered;

/// Reads a file, a directory, a recording or, for `-`, standard input. `progress` gets the share that was read.
///
/// # Errors
/// As [`import::open_part`].
pub fn open(
    path: &Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    if path != Path::new("-") {
        return import::open_part(path, options, progress);
    }
    let source = import::open_stdin()?;
    let name = source.origin.name.clone();
    let part = source.within(options.range);
    part.map_err(|why| OpenError::OutOfRange { name, why })
}

/// Reads a range of a source in the detail that diagnosis needs: from a long recording roll-ups, and every sample of
/// the minutes in which a rule could hold. Parts of the range that the source lacks are among its problems.
///
/// # Errors
/// As [`open`].
pub fn open_screened(
    path: &Path,
    range: TimeRange,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    let options = OpenOptions { range, screen: Some(screen()), ..OpenOptions::default() };
    let mut source = open(path, options, progress)?;
    let missing = uncovered(&range, &source.timeline);
    source.problems.extend(missing);
    Ok(source)
}

/// Selects the minutes of a long recording that are read sample by sample: those in which a rule's trigger could hold.
pub(crate) fn screen() -> MinuteScreen {
    static SIGNALS: LazyLock<Vec<SignalId>> = LazyLock::new(diagnose::screened_signals);
    MinuteScreen { signals: &SIGNALS, could_hold: diagnose::could_hold }
}
