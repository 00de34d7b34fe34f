//! `memtide where`: a tree that adds up to MemTotal.

use std::time::Duration;

use anyhow::Context;
use diagnose::Evidence;
use diagnose::accounting::account;
use import::{SourceKind, Watch};
use probe::Closeness;
use report::model::WhereReport;
use timeline::signals::{PROC_PSS, PROC_SIZE};
use timeline::{Entity, Timeline};
use units::{Bytes, Count, Span};

use crate::cli::{Format, Where};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

/// How long reading proportional shares may take: at 3.5 µs a MiB, enough for the largest 55 GiB of processes.
const SHARES: Duration = Duration::from_millis(200);
/// With `--deep`: enough for 160 TiB, so a bound only against a kernel that does not answer.
const ALL_SHARES: Duration = Duration::from_secs(600);

pub(crate) fn run(args: &Where, output: &Output) -> anyhow::Result<Exit> {
    let opened = match &args.file {
        Some(file) => source::open(file, output)?,
        None => source::watch(
            Watch {
                lasts: Span::ZERO,
                every: Span::from_secs(1),
                last: closeness(args.deep),
            },
            output,
        ),
    };
    if opened.kind == SourceKind::Live
        && let Some(note) = shares_not_read(&opened.timeline, args.deep)
    {
        output.note(&note);
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
    let text = match args.format {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::place(&report, &output.screen()),
    };
    output.print(&text)?;
    Ok(Exit::Ok)
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
