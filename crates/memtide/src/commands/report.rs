//! `memtide report`: the page that is mailed to a colleague.

mod picture;

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};
use diagnose::Evidence;
use diagnose::headroom::{Question, headroom};
use import::Opened;
use report::html::Page;
use report::model::EventsReport;
use report::model::headroom::HeadroomReport;
use units::Bytes;

use self::picture::{Drawn, drawn};
use super::export::Target;
use super::headroom::question;
use crate::cli::{Demand, Report};
use crate::commands::{check, events, source};
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
    let range = check::range(args.at, args.part.since, args.part.until)?;
    let opened = source::open_range(&path, range, output)?;
    if opened.timeline.is_empty() {
        bail!(
            "{} has no sample, so there is nothing to draw; memtide check says what it tells",
            opened.name
        );
    }
    let info = source::info(&opened);
    let diagnosis = diagnose::diagnose(&opened.timeline, &opened.facts);
    let report = report::Report::new(&diagnosis, &opened.timeline, &opened.facts, &info);
    let Drawn {
        picture,
        part,
        problems,
    } = drawn(&path, range, &opened, &report);
    for problem in &problems {
        output.warn(&format!("{}: {problem}", opened.name));
    }
    let happened = events::in_order(&opened);
    let html = report::html::report(&Page {
        report: &report,
        picture: &picture,
        events: &EventsReport::new(&happened, &opened.timeline, &info),
        facts: &opened.facts,
        headroom: room(&opened, &info, &args.demand).as_ref(),
        part: part.as_deref(),
        title: args.title.as_deref(),
        screen: &output.screen(),
    });
    write(&html, &target, output)
}

/// Whether both paths lead to the same file.
fn is_one_file(source: &Path, output: &Path) -> bool {
    let found = |path: &Path| path.canonicalize().ok();
    found(source).is_some_and(|source| found(output) == Some(source))
}

/// How much more fits, and whether what was asked about does. Looks that nobody can put in order cannot tell.
fn room(opened: &Opened, info: &report::SourceInfo, demand: &Demand) -> Option<HeadroomReport> {
    let timeline = &opened.timeline;
    if !timeline.is_one_stretch() {
        return None;
    }
    let question = question(demand, Question::QUANTILE);
    let answer = headroom(&Evidence::new(timeline, &opened.facts), &question);
    Some(HeadroomReport::new(
        &answer,
        &question,
        timeline,
        &opened.facts,
        info,
    ))
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
