//! `--heap-picture`: the malloc heap on a page or on the terminal.

use std::path::Path;

use answers::{ExplainOptions, ExplainTarget};
use probe::Root;
use report::model::explain::ExplainReport;

use super::selected;
use crate::command_error::CommandError;
use crate::commands::page;
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

/// Where a picture goes.
pub(super) enum PictureOutput {
    Terminal,
    Page(OutputTarget),
}

impl PictureOutput {
    /// Returns where a picture goes; fails if the file may not be written.
    pub(super) fn new(file: &Path, force: bool) -> Result<Self, CommandError> {
        if file == Path::new("-") {
            return Ok(Self::Terminal);
        }
        Ok(Self::Page(OutputTarget::new(file, force)?))
    }

    /// Draws a heap.
    pub(super) fn draw(
        &self,
        report: &ExplainReport,
        output: &Output,
    ) -> Result<Exit, CommandError> {
        match self {
            Self::Terminal => {
                let drawn = report::text::heap_picture(report, &output.screen());
                output.print(&("\n".to_owned() + &drawn))?;
                Ok(Exit::Ok)
            }
            Self::Page(target) => page::write(&report::html::explain(report), target, output),
        }
    }
}

/// Writes the page of a process where there is no recording to show it in.
pub(in crate::commands) fn page_alone(
    process: &ExplainTarget,
    target: &OutputTarget,
    output: &Output,
) -> Result<Exit, CommandError> {
    output.note("this host has no recording: the page shows the process alone");
    let report = with_picture(process, output)?;
    page::write(&report::html::explain(&report), target, output)
}

/// Explains a process with what its picture needs, for a page.
pub(in crate::commands) fn with_picture(
    target: &ExplainTarget,
    output: &Output,
) -> Result<ExplainReport, CommandError> {
    let root = Root::default();
    let (pid, _) = selected::process(&root, target, output)?;
    let options = ExplainOptions { with_rows: true, ..ExplainOptions::default() };
    Ok(answers::explain(&root, pid, options)?)
}
