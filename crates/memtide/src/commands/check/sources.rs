//! The sources that `check` judges: files, recordings, this host; and text that waits to be read.

use std::path::Path;

use answers::this_host::Besides;
use report::Report;
use sampler::WatchOptions;
use timeline::{Source, TimeRange};

use super::kernel_sampling::KernelSampling;
use crate::cli::CheckArgs;
use crate::command_error::CommandError;
use crate::commands::source;
use crate::output::Output;

/// A source with its answer.
pub(super) struct CheckedSource {
    pub(super) source: Source,
    pub(super) report: Report,
}

/// Checks a source that was saved.
pub(super) fn saved(
    path: &Path,
    range: TimeRange,
    args: &CheckArgs,
    output: &Output,
) -> Result<CheckedSource, CommandError> {
    let mut source = source::open_screened(path, range, output)?;
    if args.explain_input {
        source::warn(&source, output);
    }
    let group = source::group(&args.group, &mut source, (path, range), output)?;
    let report = answers::check_about(&source, group.as_deref(), args.around.at);
    Ok(CheckedSource { source, report })
}

/// Checks this host, live, after its recording.
pub(super) fn live(args: &CheckArgs, output: &Output) -> Result<CheckedSource, CommandError> {
    let typed = args.group.selector();
    if typed.is_some() {
        // A wrong name is an error at once, not after the samples.
        let now = source::watch(WatchOptions::one_sample(false), Besides::default(), output)?;
        answers::group_of(&now, typed.as_ref(), args.host)?;
    }
    // The verdict of a monitoring system is about now.
    let history = !args.no_history && !args.brief;
    let besides = Besides { history, ..Besides::default() };
    let profile = args.profile.then(|| KernelSampling::start(args.watch_options().duration));
    let source = source::watch(args.watch_options(), besides, output)?;
    let group = answers::group_of(&source, typed.as_ref(), args.host)?;
    let mut report = answers::check_now(&source, args.recent, group.as_deref());
    if let Some(profile) = profile {
        match profile.end() {
            Ok(profile) => answers::add_profile(&mut report, &profile),
            Err(error) => output.error(&error.into()),
        }
    }
    Ok(CheckedSource { source, report })
}

/// Says so if a pipe on standard input has data that nothing has read.
pub(super) fn note_unread_text(output: &Output) {
    let input = std::io::stdin();
    let is_pipe = rustix::fs::fstat(&input)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo());
    if is_pipe && rustix::io::ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0) {
        output.note(
            "this is about the local host: standard input was not read. `memtide check -` reads it.",
        );
    }
}
