//! `memtide where`: a tree that adds up to MemTotal.

use std::path::Path;
use std::time::Duration;

use answers::recording_directory;
use anyhow::Context;
use import::{OpenOptions, Resolution};
use probe::ProcessDetail;
use sampler::WatchOptions;
use timeline::{Source, SourceKind, TimePoint, TimeRange};
use units::{Count, Span};

use crate::cli::{Format, WhereArgs};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

/// How long reading proportional shares may take: at 3.5 µs a MiB, enough for the largest 55 GiB of processes.
const SHARES: Duration = Duration::from_millis(200);
/// With `--deep`: enough for 160 TiB, so a bound only against a kernel that does not answer.
const ALL_SHARES: Duration = Duration::from_secs(600);

/// A sample that is older than this does not show the present; PSS is read every few minutes.
const BEFORE: Span = Span::from_mins(30);

pub(crate) fn run(args: &WhereArgs, output: &Output) -> anyhow::Result<Exit> {
    let recording = match (&args.file, args.at) {
        (None, Some(_)) => Some(recording_directory::required()?),
        (file, _) => file.clone(),
    };
    let source = match &recording {
        Some(file) => source::open_part(file, last_sample(file, args.at), output)?,
        None => source::watch(once(args.deep), output),
    };
    if source.origin.kind == SourceKind::Live {
        if let Some(note) = shares_not_read(&source, args.deep) {
            output.note(&note);
        }
    } else if args.answer.get() == Format::Text {
        source::warn(&source, output);
    }
    let report = answers::where_memory(&source)
        .context("the source has no /proc/meminfo with a MemTotal")?;
    let text = match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_tree(&report, &output.screen()),
    };
    output.print(&text)?;
    Ok(Exit::Ok)
}

/// The last sample before a time and what is read more rarely; of a recording without a time, its end.
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

/// One sample of this host.
fn once(deep: bool) -> WatchOptions {
    let detail = if deep {
        ProcessDetail {
            largest: usize::MAX,
            pss: Some(ALL_SHARES),
            ..ProcessDetail::COMPLETE
        }
    } else {
        ProcessDetail {
            pss: Some(SHARES),
            ..ProcessDetail::COMPLETE
        }
    };
    WatchOptions {
        duration: Span::ZERO,
        every: Span::from_secs(1),
        last: detail,
        recent: sampler::RECENT,
    }
}

/// How many processes' proportional share was not read, and how to read it; `None` where all were.
fn shares_not_read(source: &Source, deep: bool) -> Option<String> {
    let why = if deep {
        "this user may not read them, or they ended meanwhile"
    } else {
        "`memtide where --deep` reads those of every process, as root also those of other users"
    };
    let which = match answers::shares_not_read(&source.timeline) {
        0 => return None,
        1 => "The share (PSS) of 1 process was not read".to_owned(),
        n => format!(
            "The shares (PSS) of {} processes were not read",
            Count::new(n)
        ),
    };
    Some(format!("{which}: {why}"))
}
