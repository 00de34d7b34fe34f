//! `memtide where`: a tree that adds up to MemTotal.

use anyhow::Context;
use diagnose::Evidence;
use diagnose::accounting::account;
use import::Watch;
use report::model::WhereReport;
use units::Span;

use crate::cli::{Format, Where};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

/// How long reading proportional shares may take: at 3 µs a MiB, enough for the largest 60 GiB of processes.
const SHARES: Span = Span::from_millis(200);
/// With `--deep`: as long as it takes.
const ALL_SHARES: Span = Span::from_mins(10);

pub(crate) fn run(args: &Where, output: &Output) -> anyhow::Result<Exit> {
    let opened = match &args.file {
        Some(file) => source::open(file, output)?,
        None => source::watch(
            Watch {
                lasts: Span::ZERO,
                every: Span::from_secs(1),
                shares: if args.deep { ALL_SHARES } else { SHARES },
            },
            output,
        ),
    };
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
