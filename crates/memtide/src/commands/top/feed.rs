//! What `top` shows: this host, or the source that was named.

use std::path::Path;

use answers::recording_directory;
use answers::this_host::Besides;
use probe::Root;
use sampler::WatchOptions;
use timeline::{TimePoint, TimeRange};
use top::{Feed, LiveFeed};
use units::Span;

use crate::cli::TopArgs;
use crate::command_error::CommandError;
use crate::commands::source;
use crate::output::Output;

pub(super) fn feed(args: &TopArgs, output: &Output) -> Result<Feed, CommandError> {
    match &args.file {
        Some(path) => saved(path, args, output),
        None => live(args, output),
    }
}

fn saved(path: &Path, args: &TopArgs, output: &Output) -> Result<Feed, CommandError> {
    if store::Recording::is_at(path) {
        // The end shows which cgroups there are.
        let range = TimeRange::before(TimePoint::BeforeEnd(Span::ZERO), Span::from_mins(10));
        let mut end = source::open_screened(path, range, output)?;
        let group = source::group(&args.group, &mut end, (path, range), output)?;
        return Ok(Feed::Recording(path.to_owned(), group));
    }
    let all = TimeRange::default();
    let mut source = source::open_screened(path, all, output)?;
    let group = source::group(&args.group, &mut source, (path, all), output)?;
    Ok(Feed::Source(Box::new(source), group))
}

fn live(args: &TopArgs, output: &Output) -> Result<Feed, CommandError> {
    let now = source::watch(WatchOptions::one_sample(false), Besides::default(), output)?;
    let group = answers::group_of(&now, args.group.selector().as_ref(), args.host)?;
    Ok(Feed::Live(LiveFeed {
        root: Root::default(),
        every: args.every,
        group,
        recording: recording_directory::to_read().filter(|_| !args.no_history),
    }))
}
