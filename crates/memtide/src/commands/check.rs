//! `memtide check`: what is wrong with a host's memory.

use import::{Opened, Watch};
use probe::Closeness;
use report::text::Detail;
use report::{Answer, Report};

use crate::cli::{Check, Format};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Check, output: &Output) -> anyhow::Result<Exit> {
    let mut exit = Exit::Ok;
    let mut answers = Vec::new();
    if args.files.is_empty() {
        let watch = Watch {
            lasts: args.lasts,
            every: args.every,
            last: Closeness::default(),
        };
        answers.push(judge(&source::watch(watch, output), &mut exit));
    }
    for file in &args.files {
        match source::open(file, output) {
            Ok(opened) => answers.push(judge(&opened, &mut exit)),
            // With several files, one bad one must not hide the others.
            Err(error) if args.files.len() > 1 => {
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

fn judge(source: &Opened, exit: &mut Exit) -> Answer {
    let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
    *exit = exit.worse(Exit::of(diagnosis.verdict.level));
    Answer::from(Report::new(
        &diagnosis,
        &source.timeline,
        &source.facts,
        &source::info(source),
    ))
}

fn drawn(answers: &[Answer], args: &Check, output: &Output) -> anyhow::Result<String> {
    let mut screen = output.screen();
    if args.all {
        screen.detail = Detail::All;
    }
    Ok(match (args.format, answers) {
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
