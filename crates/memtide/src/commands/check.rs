//! `memtide check`: what is wrong with a host's memory.

use std::path::Path;

use probe::{ProcessDetail, Root};
use report::text::Detail;
use report::{Answer, Report};
use sampler::WatchOptions;

use crate::cli::{CheckArgs, Format};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &CheckArgs, output: &Output) -> anyhow::Result<Exit> {
    let range = source::range(&args.around)?;
    let mut paths: Vec<&Path> = args.files.iter().map(AsRef::as_ref).collect();
    if paths.is_empty() && range.is_all() {
        return print(&[live(args, output).into()], args, output);
    }
    let recording = if paths.is_empty() {
        Some(answers::recording_directory::required()?)
    } else {
        None
    };
    paths.extend(recording.as_deref());
    let mut reports = Vec::new();
    for path in &paths {
        match source::open_screened(path, range, output) {
            Ok(source) => {
                if args.explain_input {
                    source::warn(&source, output);
                }
                reports.push(answers::check(&source).into());
            }
            // One bad file of several must not hide the others.
            Err(error) if paths.len() > 1 => {
                output.error(&error);
                let name = path.display().to_string();
                reports.push(Answer::failed(name, format!("{error:#}")));
            }
            Err(error) => return Err(error),
        }
    }
    print(&reports, args, output)
}

/// This host, live, after the recording of it.
fn live(args: &CheckArgs, output: &Output) -> Report {
    let options = WatchOptions {
        duration: args.lasts,
        every: args.every,
        last: ProcessDetail::COMPLETE,
        recent: args.recent,
    };
    let mut source = source::watch(options, output);
    if !args.no_history {
        source = answers::this_host::with_history(source, &Root::default());
    }
    answers::check_now(&source, args.recent)
}

fn print(reports: &[Answer], args: &CheckArgs, output: &Output) -> anyhow::Result<Exit> {
    let mut screen = output.screen();
    if args.all {
        screen.detail = Detail::All;
    }
    let text = match (args.answer.get(), reports) {
        (Format::Json, [report]) => report::json(report)? + "\n",
        (Format::Json, reports) => report::json(&reports)? + "\n",
        // A source that could not be read is on stderr already.
        (Format::Text, reports) => {
            let draw = if args.explain_input {
                report::text::explain_input
            } else {
                report::text::check
            };
            let texts: Vec<String> = reports
                .iter()
                .filter_map(Answer::report)
                .map(|report| draw(report, &screen))
                .collect();
            texts.join("\n")
        }
    };
    output.print(&text)?;
    let exits = reports.iter().map(|answer| match answer.report() {
        Some(report) => Exit::from(report.verdict),
        None => Exit::Unknown,
    });
    Ok(exits.fold(Exit::Ok, Exit::worse))
}
