//! `memtide report`: a page that can be sent by mail.

use answers::{PageSource, recording_directory};
use diagnose::headroom::Question;

use super::headroom::question;
use super::page::{checked, is_one_file, write};
use crate::cli::ReportArgs;
use crate::command_error::{CommandError, bail};
use crate::commands::{explain, source};
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(crate) fn run(args: &ReportArgs, output: &Output) -> Result<Exit, CommandError> {
    let target = OutputTarget::new(&args.output, args.force)?;
    let has_source = args.source.is_some() || recording_directory::to_read().is_some();
    if let Some(process) = args.explain.as_ref().filter(|_| !has_source) {
        return explain::page_alone(process, &target, output);
    }
    let path = recording_directory::unless_named(args.source.as_deref())?;
    if is_one_file(&path, &args.output) {
        bail!(
            "{} is the source of the page and would be overwritten; name another file",
            args.output.display()
        );
    }
    let range = source::range(&args.around)?;
    let mut source = source::open_screened(&path, range, output)?;
    let group = source::group(&args.group, &mut source, (&path, range), output)?;
    if source.timeline.is_empty() {
        bail!(
            "{} has no sample, so there is nothing to draw; memtide check reads the rest of it",
            source.origin.name
        );
    }
    let question = question(&args.demand, Question::QUANTILE);
    let group = group.as_deref();
    let of = PageSource { source: &source, path: &path, range, group, at: args.around.at };
    let mut page = checked(answers::page(of, &question), output);
    page.title.clone_from(&args.title);
    if let Some(target) = &args.explain {
        page.explain = Some(explain::with_picture(target, output)?);
    }
    write(&report::html::report(&page, &output.screen()), &target, output)
}
