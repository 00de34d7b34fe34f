//! `memtide events`: what happened, in order of time.

use ::export::field;
use answers::recording_directory;
use report::model::EventsReport;

use crate::cli::{EventsArgs, EventsFormat};
use crate::command_error::CommandError;
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &EventsArgs, output: &Output) -> Result<Exit, CommandError> {
    let path = recording_directory::unless_named(args.source.as_deref())?;
    let range = source::range(&args.around)?;
    let mut source = source::open_for_events(&path, range, output)?;
    let group = source::group(&args.group, &mut source, (&path, range), output)?;
    if args.format() != EventsFormat::Json {
        source::warn(&source, output);
    }
    let report = answers::events(&source, &args.kinds, group.as_deref());
    let screen = output.screen_with(args.verbose);
    output.print(&match args.format() {
        EventsFormat::Csv => csv(&report),
        EventsFormat::Json => report::json(&report)? + "\n",
        EventsFormat::Text => report::text::events(&report, &screen),
    })?;
    Ok(Exit::Ok)
}

fn csv(report: &EventsReport) -> String {
    let mut text = String::from("since,time,kind,subject,text,report\n");
    for event in &report.events {
        let times =
            [event.since, event.at].map(|at| at.map_or_else(String::new, |at| at.to_string()));
        let subject = event.subject.as_deref().unwrap_or_default();
        let report = event.report.as_deref().unwrap_or_default();
        let cells = [subject, &event.text, report].map(field);
        text.push_str(&format!("{},{},{}\n", times.join(","), event.kind, cells.join(",")));
    }
    text
}
