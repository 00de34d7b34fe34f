//! A profile that a recorder kept.

use std::path::Path;

use ::profile::Profile;
use timeline::{TimePoint, TimeRange};

use crate::command_error::CommandError;
use crate::commands::source;
use crate::output::Output;

/// Reads the one that was kept nearest to a time; without a time the last one.
pub(super) fn read(
    recording: &Path,
    at: Option<TimePoint>,
    output: &Output,
) -> Result<Profile, CommandError> {
    let source = source::open_for_events(recording, TimeRange::default(), output)?;
    let (kept, count) = answers::kept_profile(&source, at)?;
    if at.is_none() && count > 1 {
        output.note(&format!(
            "the last of {count}; --at chooses another, and `memtide events --kind kernel-profile` lists them"
        ));
    }
    Ok(kept.profile)
}
