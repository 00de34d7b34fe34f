//! `--watch`: a process and how it changes meanwhile.

use answers::{ExplainError, ExplainOptions, WATCH_MIN};
use probe::Root;
use report::model::explain::ExplainReport;
use units::Span;

use crate::output::Output;

/// Explains a process after watching it.
pub(super) fn explain(
    root: &Root,
    pid: u32,
    options: ExplainOptions,
    lasts: Span,
    output: &Output,
) -> Result<ExplainReport, ExplainError> {
    if lasts < WATCH_MIN {
        output.warn(&format!(
            "in less than {WATCH_MIN}, a leak, a warm-up and fragmentation often look alike"
        ));
    }
    output.watching("watching the process", lasts, |progress| {
        answers::explain_watched(root, pid, options, lasts, progress)
    })
}
