//! A malloc heap as a picture: what `memtide explain PID --heap-picture FILE` writes.
//!
//! Where is the free memory of a heap, and why does RSS not fall? Each part of an arena is a row, address from left to
//! right: live memory, free pages that malloc_trim returns, free pages that it keeps, what is not in RAM. The terminal
//! has it as [`text::heap_picture`](crate::text::heap_picture). Both files are complete and run nothing; cost and size
//! are bounded by the picture, not by the heap: below 1 MB.

use crate::html;
use crate::model::explain::ExplainReport;

/// Returns the picture as an SVG.
pub fn svg(report: &ExplainReport) -> String {
    html::heap_picture_alone(report)
}

/// Returns a page with the picture, and all else that `explain` found.
pub fn html(report: &ExplainReport) -> String {
    html::explain_alone(report)
}
