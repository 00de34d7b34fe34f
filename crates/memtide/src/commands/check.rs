//! `memtide check`: what is wrong with a host's memory.

use std::path::Path;

use import::{History, Opened, Watch};
use probe::{Closeness, Root};
use report::text::Detail;
use report::{Answer, Report, SourceInfo};
use timeline::{Facts, Timeline};

use crate::cli::{Check, Format};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;
use crate::{default_recording, this_host};

pub(crate) fn run(args: &Check, output: &Output) -> anyhow::Result<Exit> {
    let mut exit = Exit::Ok;
    let mut answers = Vec::new();
    // Once, and not for each of several files.
    let range = source::range(&args.around)?;
    let mut files: Vec<&Path> = args.files.iter().map(AsRef::as_ref).collect();
    let recording = match (files.is_empty(), range.is_all()) {
        (true, true) => {
            answers.push(watched(args, output, &mut exit));
            None
        }
        (true, false) => Some(default_recording::required()?),
        (false, _) => None,
    };
    files.extend(recording.as_deref());
    for file in &files {
        match source::open_range(file, range, output) {
            Ok(opened) => {
                if args.explain_input {
                    source::warn(&opened, output);
                }
                answers.push(judge(&opened, &mut exit));
            }
            // With several files, one bad one must not hide the others.
            Err(error) if files.len() > 1 => {
                output.error(&error);
                exit = exit.worse(Exit::Unknown);
                let name = file.display().to_string();
                answers.push(Answer::failed(name, format!("{error:#}")));
            }
            Err(error) => return Err(error),
        }
    }
    output.print(&drawn(&answers, args, output)?)?;
    Ok(exit)
}

/// This host, watched, with what its recording says of the time before.
fn watched(args: &Check, output: &Output, exit: &mut Exit) -> Answer {
    let watch = Watch {
        lasts: args.lasts,
        every: args.every,
        last: Closeness::default(),
        recent: args.recent,
    };
    let mut source = source::watch(watch, output);
    let history = match args.no_history {
        true => None,
        false => history(&source),
    };
    if let Some(place) =
        default_recording::denied().filter(|_| history.is_none() && !args.no_history)
    {
        source.problems.push(format!(
            "root would also have looked back, into the recording in {}",
            place.display()
        ));
    }
    let (timeline, facts, live_from) = match history {
        Some(history) => {
            source.problems.extend(history.problems);
            (history.timeline, history.facts, Some(history.live_from))
        }
        None => (
            std::mem::take(&mut source.timeline),
            std::mem::take(&mut source.facts),
            None,
        ),
    };
    let info = SourceInfo {
        live_from,
        ..source::info(&source)
    };
    let from = live_from.unwrap_or_default();
    let diagnosis = diagnose::diagnose_now(&timeline, from, &facts, args.recent);
    answer(&diagnosis, &timeline, &facts, &info, exit)
}

fn history(look: &Opened) -> Option<History> {
    let directory = default_recording::to_read()?;
    let host = this_host::identity(&Root::default());
    let screen = Some(source::screen());
    import::history_screened(&directory, &host.id, &look.timeline, &look.facts, screen)
}

fn judge(source: &Opened, exit: &mut Exit) -> Answer {
    let diagnosis = source::diagnosis(source);
    let info = source::info(source);
    answer(&diagnosis, &source.timeline, &source.facts, &info, exit)
}

fn answer(
    diagnosis: &diagnose::Diagnosis,
    timeline: &Timeline,
    facts: &Facts,
    info: &SourceInfo,
    exit: &mut Exit,
) -> Answer {
    *exit = exit.worse(Exit::of(diagnosis.verdict.level));
    Answer::from(Report::new(diagnosis, timeline, facts, info))
}

fn drawn(answers: &[Answer], args: &Check, output: &Output) -> anyhow::Result<String> {
    let mut screen = output.screen();
    if args.all {
        screen.detail = Detail::All;
    }
    Ok(match (args.answer.get(), answers) {
        (Format::Json, [answer]) => report::json(answer)? + "\n",
        (Format::Json, answers) => report::json(&answers)? + "\n",
        // What could not be read was said on stderr already.
        (Format::Text, answers) => answers
            .iter()
            .filter_map(Answer::report)
            .map(|report| match args.explain_input {
                true => report::text::explain_input(report, &screen),
                false => report::text::check(report, &screen),
            })
            .collect::<Vec<_>>()
            .join("\n"),
    })
}
