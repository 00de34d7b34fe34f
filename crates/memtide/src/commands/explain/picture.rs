//! `--heap-picture`: the malloc heap as SVG, as a page, or on the terminal.

use std::path::Path;

use answers::ExplainTarget;
use report::model::explain::ExplainReport;

use crate::commands::export::OutputTarget;
use crate::commands::page;
use crate::exit::Exit;
use crate::output::Output;

/// Draws the heap to a file, in the form of its name, or on the terminal.
pub(super) fn draw(
    report: &ExplainReport,
    file: &Path,
    force: bool,
    output: &Output,
) -> anyhow::Result<Exit> {
    if file == Path::new("-") {
        output.print(&("\n".to_owned() + &report::text::heap_picture(report, &output.screen())))?;
        return Ok(Exit::Ok);
    }
    let is_svg = file.extension().is_some_and(|form| form == "svg");
    let drawn = if is_svg {
        report::heap_picture::svg(report)
    } else {
        report::heap_picture::html(report)
    };
    page::write(&drawn, &OutputTarget::new(file, force)?, output)
}

/// Writes the page of a process where there is no recording to show it in.
pub(in crate::commands) fn page_alone(
    process: &ExplainTarget,
    target: &OutputTarget,
    output: &Output,
) -> anyhow::Result<Exit> {
    output.note("this host has no recording: the page shows the process alone");
    let report = super::with_picture(process, output)?;
    page::write(&report::heap_picture::html(&report), target, output)
}
