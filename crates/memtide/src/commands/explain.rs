//! `memtide explain`: one process, down to its malloc heap.

mod picture;
mod runtime;
mod selected;
mod watched;

use answers::{ExplainOptions, ExplainTarget};
use anyhow::Context;
use probe::Root;
use report::model::explain::ExplainReport;

use crate::cli::{ExplainArgs, Format};
use crate::exit::Exit;
use crate::output::Output;

pub(super) use picture::page_alone;

pub(crate) fn run(args: &ExplainArgs, output: &Output) -> anyhow::Result<Exit> {
    let root = Root::default();
    let Some(target) = args.target() else {
        let file = args.runtime_stats.as_ref().context("name a process")?;
        return runtime::alone(file, args.answer.get(), output);
    };
    let pid = selected::pid(&root, &target, output)?;
    let options = ExplainOptions {
        freeze: args.freeze,
        with_rows: args.heap_picture.is_some() || args.full,
    };
    let mut report = match args.watch {
        None => answers::explain(&root, pid, options),
        Some(lasts) => watched::explain(&root, pid, options, lasts, output),
    }?;
    if let Some(file) = &args.runtime_stats {
        report.runtime_stats = Some(runtime::beside(file, &report)?);
    }
    output.print(&match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::explain(&report, &output.screen_with(args.full)),
    })?;
    args.heap_picture.as_ref().map_or(Ok(Exit::Ok), |file| {
        picture::draw(&report, file, args.force, output)
    })
}

/// Explains a process with what its picture needs, for a page.
pub(super) fn with_picture(
    target: &ExplainTarget,
    output: &Output,
) -> anyhow::Result<ExplainReport> {
    let root = Root::default();
    let pid = selected::pid(&root, target, output)?;
    let options = ExplainOptions {
        with_rows: true,
        ..ExplainOptions::default()
    };
    Ok(answers::explain(&root, pid, options)?)
}
