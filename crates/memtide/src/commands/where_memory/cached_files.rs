//! Which files are in the page cache is known of this host alone, as it runs.

use crate::cli::WhereArgs;
use crate::command_error::{CommandError, bail};

/// Refuses to name files in the page cache of a source that cannot know them, with what to type instead.
pub(super) fn only_of_now(args: &WhereArgs) -> Result<(), CommandError> {
    if args.cached_files().is_none() || (args.file.is_none() && args.at.is_none()) {
        return Ok(());
    }
    let file = args.file.as_deref();
    let directory = file.filter(|file| file.is_dir() && !import::is_recording(file));
    let instead = match (directory, file) {
        (Some(directory), _) => {
            format!("to search that directory: `memtide where --files-in {}`", directory.display())
        }
        (None, Some(file)) => format!("without files: `memtide where {}`", file.display()),
        (None, None) => "without files: `memtide where --at WHEN`".to_owned(),
    };
    bail!(
        "which files are in the page cache is only known of this host as it is now, no capture or recording has it\n\
         now: `memtide where --files`\n{instead}"
    )
}
