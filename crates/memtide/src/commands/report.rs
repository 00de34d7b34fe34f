//! `memtide report`: the page that is mailed to a colleague.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};
use diagnose::headroom::Question;
use units::Bytes;

use super::export::Target;
use super::headroom::question;
use super::shown::{Judged, Shown};
use crate::cli::Report;
use crate::commands::source;
use crate::default_recording;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Report, output: &Output) -> anyhow::Result<Exit> {
    let target = Target::new(&args.output, args.force)?;
    let path = default_recording::unless_named(args.source.as_deref())?;
    if is_one_file(&path, &args.output) {
        bail!(
            "{} is what the page is made of, and would be lost; name another file",
            args.output.display()
        );
    }
    let range = source::range(&args.around)?;
    let opened = source::open_range(&path, range, output)?;
    if opened.timeline.is_empty() {
        bail!(
            "{} has no sample, so there is nothing to draw; memtide check says what it tells",
            opened.name
        );
    }
    let info = source::info(&opened);
    let diagnosis = source::diagnosis(&opened);
    let judged = Judged {
        path: &path,
        range,
        opened: &opened,
        diagnosis: &diagnosis,
        info: &info,
    };
    let question = question(&args.demand, Question::QUANTILE);
    let shown = Shown::new(judged, &question, output);
    let html = report::html::report(&shown.page(args.title.as_deref(), &output.screen()));
    write(&html, &target, output)
}

/// Whether both paths lead to the same file.
fn is_one_file(source: &Path, output: &Path) -> bool {
    let found = |path: &Path| path.canonicalize().ok();
    found(source).is_some_and(|source| found(output) == Some(source))
}

/// Puts a page in its place, and says so.
pub(super) fn write(html: &str, target: &Target, output: &Output) -> anyhow::Result<Exit> {
    match target.write(|out| out.write_all(html.as_bytes())) {
        Ok(()) if !target.is_stdout() => {
            let size = Bytes::new(html.len() as u64);
            output.note(&format!(
                "{target}: {size} written; it opens in any browser, offline"
            ));
        }
        Ok(()) => {}
        // A reader that went away (`| head`) is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => return Err(error).with_context(|| format!("cannot write {target}")),
    }
    Ok(Exit::Ok)
}
