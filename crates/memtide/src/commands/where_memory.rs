//! `memtide where`: a tree that adds up to MemTotal.

use std::path::Path;

use answers::recording_directory;
use anyhow::Context;
use import::{OpenOptions, Resolution};
use probe::Root;
use sampler::WatchOptions;
use timeline::{SourceKind, TimePoint, TimeRange};
use units::Span;

use crate::cli::{Format, WhereArgs};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

/// Samples read before the requested time show its state up to this age; PSS is read every few minutes.
const BEFORE: Span = Span::from_mins(30);

pub(crate) fn run(args: &WhereArgs, output: &Output) -> anyhow::Result<Exit> {
    let recording = match (&args.file, args.at) {
        (None, Some(_)) => Some(recording_directory::required()?),
        (file, _) => file.clone(),
    };
    let mut source = match &recording {
        Some(file) => source::open_part(file, last_sample(file, args.at), output)?,
        None => source::watch(WatchOptions::one_sample(args.deep), output),
    };
    if source.origin.kind == SourceKind::Live {
        answers::find_owners(&Root::default(), &mut source);
        let unread = answers::pss_not_read(&source.timeline);
        if let Some(note) = report::text::pss_not_read(unread, args.deep) {
            output.note(&note);
        }
    } else if args.answer.get() == Format::Text {
        source::warn(&source, output);
    }
    let report = answers::where_memory(&source)
        .context("the source has no /proc/meminfo with a MemTotal")?;
    output.print(&match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_tree(&report, &output.screen()),
    })?;
    Ok(Exit::Ok)
}

/// Selects the last sample before a time, with tables that are read less often; without a time, a recording's end.
fn last_sample(file: &Path, at: Option<TimePoint>) -> OpenOptions {
    let end = || import::is_recording(file).then_some(TimePoint::BeforeEnd(Span::ZERO));
    OpenOptions {
        range: at
            .or_else(end)
            .map_or_else(TimeRange::default, |at| TimeRange::before(at, BEFORE)),
        resolution: Resolution::Full,
        ..OpenOptions::default()
    }
}
