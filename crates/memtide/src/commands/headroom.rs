//! `memtide headroom`: how much more fits into a host's memory, and whether a given demand does.

use std::path::Path;

use diagnose::Evidence;
use diagnose::headroom::{Answer, Demand, DemandKind, Question, headroom};
use import::{Moment, Range};
use report::model::headroom::HeadroomReport;
use units::Ratio;

use crate::cli::{self, AddKind, Format, Headroom};
use crate::commands::source;
use crate::default_recording;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Headroom, output: &Output) -> anyhow::Result<Exit> {
    let path = default_recording::unless_named(args.source.as_deref())?;
    let opened = source::open_range(&path, range(args, &path), output)?;
    let question = question(&args.demand, args.at);
    let evidence = Evidence::new(&opened.timeline, &opened.facts);
    let answer = headroom(&evidence, &question);
    let report = HeadroomReport::new(
        &answer,
        &question,
        &opened.timeline,
        &opened.facts,
        &source::info(&opened),
    );
    let text = match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => {
            source::warn(&opened, output);
            report::text::headroom(&report, &output.screen())
        }
    };
    output.print(&text)?;
    Ok(exit(answer.answer))
}

/// Of a recording the last cycle, unless somebody asks for another part.
fn range(args: &Headroom, path: &Path) -> Range {
    let mut range = args.part.range();
    if range.is_all() && import::is_recording(path) {
        range.since = Some(Moment::BeforeEnd(args.demand.cycle));
    }
    range
}

/// What was asked.
pub(crate) fn question(asked: &cli::Demand, quantile: Ratio) -> Question {
    let kind = match asked.kind {
        AddKind::Anon => DemandKind::Anon,
        AddKind::Cache => DemandKind::Cache,
        AddKind::Tmpfs => DemandKind::Tmpfs,
    };
    Question {
        add: asked.add.map(|bytes| Demand { bytes, kind }),
        cycle: asked.cycle,
        quantile,
    }
}

const fn exit(answer: Answer) -> Exit {
    match answer {
        Answer::Fits => Exit::Ok,
        Answer::Tight => Exit::Warning,
        Answer::DoesNotFit => Exit::Critical,
        Answer::FitsSoFar | Answer::Unknown => Exit::Unknown,
    }
}
