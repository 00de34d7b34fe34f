//! `memtide events`: what happened, in order of time.

use std::path::Path;

use import::Wanted;
use import::export::quoted;
use report::model::EventsReport;
use report::text::Detail;

use crate::cli::{Events, EventsFormat};
use crate::commands::source;
use crate::default_recording;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Events, output: &Output) -> anyhow::Result<Exit> {
    let path = default_recording::unless_named(args.source.as_deref())?;
    let wanted = Wanted {
        range: source::range(&args.around)?,
        ..Wanted::default()
    };
    let opened = source::open_part(Path::new(&path), wanted, output)?;
    let mut events = timeline::events(&opened.timeline, &opened.facts);
    events.retain(|told| {
        let name = told.event.kind.name();
        args.kinds.is_empty() || args.kinds.iter().any(|kind| kind == name)
    });
    if args.format() != EventsFormat::Json {
        source::warn(&opened, output);
    }
    let info = source::info(&opened);
    let report = EventsReport::new(&events, &opened.timeline, &info);
    let text = match args.format() {
        EventsFormat::Csv => csv(&report),
        EventsFormat::Json => report::json(&report)? + "\n",
        EventsFormat::Text => {
            let mut screen = output.screen();
            if args.verbose {
                screen.detail = Detail::All;
            }
            report::text::events(&report, &screen)
        }
    };
    output.print(&text)?;
    Ok(Exit::Ok)
}

fn csv(report: &EventsReport) -> String {
    let mut text = String::from("since,time,kind,subject,text,report\n");
    for event in &report.events {
        let times =
            [event.since, event.at].map(|at| at.map_or_else(String::new, |at| at.to_string()));
        let subject = event.subject.as_deref().unwrap_or_default();
        let report = event.report.as_deref().unwrap_or_default();
        let cells = [subject, &event.text, report].map(quoted);
        text.push_str(&format!(
            "{},{},{}\n",
            times.join(","),
            event.kind,
            cells.join(",")
        ));
    }
    text
}
