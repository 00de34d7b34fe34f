//! `memtide where`: a tree that adds up to MemTotal.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use diagnose::Evidence;
use diagnose::accounting::account;
use import::{Moment, Range, Resolution, SourceKind, Wanted, Watch};
use probe::Closeness;
use report::model::WhereReport;
use timeline::signals::{PROC_PSS, PROC_SIZE};
use timeline::{Entity, Timeline};
use units::{Bytes, Count, Span};

use crate::cli::{Format, Where};
use crate::commands::source;
use crate::default_recording;
use crate::exit::Exit;
use crate::output::Output;

/// How long reading proportional shares may take: at 3.5 µs a MiB, enough for the largest 55 GiB of processes.
const SHARES: Duration = Duration::from_millis(200);
/// With `--deep`: enough for 160 TiB, so a bound only against a kernel that does not answer.
const ALL_SHARES: Duration = Duration::from_secs(600);

/// A sample that is older than this says nothing of a moment any more; PSS is read every few minutes.
const BEFORE: Span = Span::from_mins(30);

pub(crate) fn run(args: &Where, output: &Output) -> anyhow::Result<Exit> {
    let recording = match (&args.file, args.at) {
        (None, Some(_)) => Some(default_recording::required()?),
        (file, _) => file.clone(),
    };
    let opened = match &recording {
        Some(file) => source::open_part(file, wanted(file, args.at), output)?,
        None => source::watch(
            Watch {
                lasts: Span::ZERO,
                every: Span::from_secs(1),
                last: closeness(args.deep),
                recent: import::RECENT,
            },
            output,
        ),
    };
    if opened.kind == SourceKind::Live
        && let Some(note) = shares_not_read(&opened.timeline, args.deep)
    {
        output.note(&note);
    }
    if opened.kind != SourceKind::Live && args.answer.get() == Format::Text {
        source::warn(&opened, output);
    }
    let evidence = Evidence::new(&opened.timeline, &opened.facts);
    let accounting = account(&evidence, opened.timeline.len().saturating_sub(1))
        .ok()
        .with_context(|| "the source has no /proc/meminfo with a MemTotal")?;
    let report = WhereReport::new(
        Some(&accounting),
        &opened.timeline,
        &opened.facts,
        &source::info(&opened),
    );
    let text = match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_tree(&report, &output.screen()),
    };
    output.print(&text)?;
    Ok(Exit::Ok)
}

/// The last sample before a moment and what is read more rarely; of a recording without a moment, its end.
fn wanted(file: &Path, at: Option<Moment>) -> Wanted {
    let at = at.or_else(|| import::is_recording(file).then_some(Moment::BeforeEnd(Span::ZERO)));
    Wanted {
        range: at.map_or_else(Range::default, |at| Range::before(at, BEFORE)),
        resolution: Resolution::Full,
        ..Wanted::default()
    }
}

fn closeness(deep: bool) -> Closeness {
    if deep {
        Closeness {
            largest: usize::MAX,
            shares: Some(ALL_SHARES),
        }
    } else {
        Closeness {
            shares: Some(SHARES),
            ..Closeness::default()
        }
    }
}

/// Of how many processes the proportional share is not known, and what would tell it.
fn shares_not_read(timeline: &Timeline, deep: bool) -> Option<String> {
    let unread = timeline.entities(Entity::Process).filter(|process| {
        // Kernel threads have no memory of their own.
        timeline.last_of(process, PROC_SIZE) > Some(Bytes::ZERO)
            && timeline.last_of(process, PROC_PSS).is_none()
    });
    let unread = unread.count() as u64;
    let what = if deep {
        "this user may not read them, or they ended meanwhile"
    } else {
        "`memtide where --deep` reads those of every process, as root also those of other users"
    };
    let which = match unread {
        0 => return None,
        1 => "The share (PSS) of 1 process was not read".to_owned(),
        n => format!(
            "The shares (PSS) of {} processes were not read",
            Count::new(n)
        ),
    };
    Some(format!("{which}: {what}"))
}
