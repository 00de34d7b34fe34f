//! A job in a recording.

use ::job::{RecordedJob, recorded_job_screen};
use answers::recording_directory;

use crate::cli::{JobArgs, JobFormat};
use crate::command_error::{CommandError, bail};
use crate::commands::source;
use crate::output::Output;

/// What the recording shows of it.
pub(super) fn answer(args: &JobArgs, output: &Output) -> Result<String, CommandError> {
    let path = recording_directory::unless_named(args.recording.as_deref())?;
    let range = args.part.range();
    let mut source = source::open_part(&path, args.part.options(), output)?;
    let Some(group) = source::group(&args.group, &mut source, (&path, range), output)? else {
        bail!("which job? A recording has those of --unit, --cgroup, --container and --pod");
    };
    source::warn(&source, output);
    let job = RecordedJob::of(&source, &group);
    Ok(match args.format {
        JobFormat::Text => recorded_job_screen(&job, &output.screen_with(args.all)),
        JobFormat::Json => serde_json::to_string_pretty(&job)? + "\n",
    })
}
