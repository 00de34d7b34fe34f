//! `memtide compare`: what changed from one source to another.

use std::path::Path;

use answers::PageSource;
use timeline::{TimePoint, TimeRange};

use super::page::{checked, write};
use crate::cli::{CompareArgs, Format};
use crate::command_error::{CommandError, bail};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(crate) fn run(args: &CompareArgs, output: &Output) -> Result<Exit, CommandError> {
    let paths = [&args.before, &args.after];
    if paths.iter().all(|path| path.as_path() == Path::new("-")) {
        bail!("standard input can be one of the two sources, not both");
    }
    let target =
        args.output.as_ref().map(|path| OutputTarget::new(path, args.force)).transpose()?;
    let part = |since: Option<TimePoint>, until: Option<TimePoint>| TimeRange {
        since: since.or(args.part.since),
        until: until.or(args.part.until),
    };
    let ranges =
        [part(args.before_since, args.before_until), part(args.after_since, args.after_until)];
    let open = |side: usize| {
        source::open_screened(paths[side], ranges[side], output)
            .inspect(|source| source::warn(source, output))
    };
    let sources = [open(0)?, open(1)?];
    let screen = output.screen_with(args.all);
    let Some(target) = target else {
        let report = answers::compare(&sources[0], &sources[1]);
        output.print(&match args.answer.get() {
            Format::Json => report::json(&report)? + "\n",
            Format::Text => report::text::compare(&report, &screen),
        })?;
        return Ok(report.direction.into());
    };
    let sides = [0, 1].map(|side| PageSource {
        source: &sources[side],
        path: paths[side],
        range: ranges[side],
        group: None,
        at: None,
    });
    let (report, pages) = answers::compare_pages(sides);
    let [before, after] = pages.map(|page| checked(page, output));
    let html = report::html::compare(&report, &before, &after, &screen);
    write(&html, &target, output)?;
    Ok(report.direction.into())
}
