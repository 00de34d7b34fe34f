//! `memtide events`: what happened, in order of time.

use std::path::Path;

use import::export::{quoted, rfc3339};
use report::text::Detail;
use timeline::Event;

use crate::cli::{Events, EventsFormat};
use crate::commands::source;
use crate::default_recording;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Events, output: &Output) -> anyhow::Result<Exit> {
    let path = default_recording::unless_named(args.source.as_deref())?;
    let opened = source::open_part(Path::new(&path), args.part.wanted(), output)?;
    let mut events = timeline::events(&opened.timeline, &opened.facts);
    events.retain(|event| {
        let name = event.kind.name();
        args.kinds.is_empty() || args.kinds.iter().any(|kind| kind == name)
    });
    if args.format != EventsFormat::Json {
        source::warn(&opened, output);
    }
    let text = match args.format {
        EventsFormat::Csv => csv(&events),
        EventsFormat::Json => {
            let info = source::info(&opened);
            let report = report::model::EventsReport::new(&events, &opened.timeline, &info);
            report::json(&report)? + "\n"
        }
        EventsFormat::Text => {
            let info = source::info(&opened);
            let report = report::model::EventsReport::new(&events, &opened.timeline, &info);
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

fn csv(events: &[Event]) -> String {
    let mut text = String::from("time,kind,subject,text,report\n");
    for event in events {
        let time = event.stamp.wall.and_then(rfc3339).unwrap_or_default();
        let cells = [&event.subject, &event.text, &event.report].map(|cell| quoted(cell));
        text.push_str(&format!(
            "{time},{},{}\n",
            event.kind.name(),
            cells.join(",")
        ));
    }
    text
}
