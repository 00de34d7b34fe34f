//! `memtide check`: what is wrong with a host's memory.

use import::{Opened, Watch};
use report::text::Detail;
use units::Span;

use crate::cli::{Check, Format};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Check, output: &Output) -> anyhow::Result<Exit> {
    if args.files.is_empty() {
        let opened = source::watch(
            Watch {
                lasts: args.lasts,
                every: args.every,
                shares: Span::ZERO,
            },
            output,
        );
        return answer(&[opened], args, output);
    }
    let mut exit = Exit::Ok;
    let mut sources = Vec::new();
    for file in &args.files {
        match source::open(file, output) {
            Ok(opened) => sources.push(opened),
            // With several files, one bad one must not hide the others.
            Err(error) if args.files.len() > 1 => {
                output.error(&error);
                exit = exit.worse(Exit::Unknown);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(exit.worse(answer(&sources, args, output)?))
}

fn answer(sources: &[Opened], args: &Check, output: &Output) -> anyhow::Result<Exit> {
    let mut exit = Exit::Ok;
    let mut reports = Vec::new();
    for source in sources {
        let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
        exit = exit.worse(Exit::of(diagnosis.verdict.level));
        reports.push(report::Report::new(
            &diagnosis,
            &source.timeline,
            &source.facts,
            &source::info(source),
        ));
    }
    let mut screen = output.screen();
    if args.all {
        screen.detail = Detail::All;
    }
    let text = match (args.format, reports.as_slice()) {
        (Format::Json, [report]) => report::json(report)? + "\n",
        (Format::Json, reports) => report::json(&reports)? + "\n",
        (Format::Text, reports) => reports
            .iter()
            .map(|report| report::text::check(report, &screen))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    output.print(&text)?;
    Ok(exit)
}
