//! `memtide headroom`: how much more fits into a host's memory, and whether a given demand does.

use std::path::Path;

use answers::recording_directory;
use diagnose::headroom::{Demand, DemandKind, Question};
use timeline::{TimePoint, TimeRange};
use units::Ratio;

use crate::cli::{self, AddKind, Format, HeadroomArgs};
use crate::command_error::CommandError;
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &HeadroomArgs, output: &Output) -> Result<Exit, CommandError> {
    let path = recording_directory::unless_named(args.source.as_deref())?;
    let range = range(args, &path);
    let mut source = source::open_screened(&path, range, output)?;
    let group = source::group(&args.group, &mut source, (&path, range), output)?;
    let report = answers::headroom(&source, &question(&args.demand, args.at), group.as_deref());
    let text = match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => {
            source::warn(&source, output);
            report::text::headroom(&report, &output.screen())
        }
    };
    output.print(&text)?;
    Ok(report.answer.into())
}

/// Returns the last cycle of a recording, unless another part is named.
fn range(args: &HeadroomArgs, path: &Path) -> TimeRange {
    let mut range = args.part.range();
    if range.is_all() && import::is_recording(path) {
        range.since = Some(TimePoint::BeforeEnd(args.demand.cycle));
    }
    range
}

/// Returns the question that was asked.
pub(crate) fn question(asked: &cli::DemandArgs, quantile: Ratio) -> Question {
    let kind = match asked.kind {
        AddKind::Anon => DemandKind::Anon,
        AddKind::Cache => DemandKind::Cache,
        AddKind::Tmpfs => DemandKind::Tmpfs,
    };
    Question { add: asked.add.map(|bytes| Demand { bytes, kind }), cycle: asked.cycle, quantile }
}
