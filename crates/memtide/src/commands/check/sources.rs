//! The sources that `check` judges: files, recordings, and this host.

use std::path::Path;

use probe::Root;
use report::Report;
use sampler::WatchOptions;
use timeline::TimeRange;

use crate::cli::CheckArgs;
use crate::commands::source;
use crate::output::Output;

/// Checks a source that was saved.
pub(super) fn saved(
    path: &Path,
    range: TimeRange,
    args: &CheckArgs,
    output: &Output,
) -> anyhow::Result<Report> {
    let mut source = source::open_screened(path, range, output)?;
    if args.explain_input {
        source::warn(&source, output);
    }
    Ok(match source::group(&args.group, &mut source)? {
        Some(group) => answers::check_group(&source, &group),
        None => answers::check(&source),
    })
}

/// Checks this host, live, after its recording.
pub(super) fn live(args: &CheckArgs, output: &Output) -> anyhow::Result<Report> {
    if args.group.selector().is_some() {
        // A wrong name is an error at once, not after the samples.
        source::group(&args.group, &mut source::watch(WatchOptions::one_sample(false), output))?;
    }
    let mut source = source::watch(args.watch_options(), output);
    if !args.no_history {
        source = answers::this_host::with_history(source, &Root::default());
    }
    let typed = source::group(&args.group, &mut source)?;
    let container = || answers::own_container(&source).filter(|_| !args.host);
    Ok(match typed.or_else(container) {
        Some(group) => answers::check_group_now(&source, args.recent, &group),
        None => answers::check_now(&source, args.recent),
    })
}
