//! Which process it is, its allocators and settings; what could not be read; what the answer cost.

use super::panel;
use crate::html::block;
use crate::html::escape::Html;
use crate::model::explain::ExplainReport;
use crate::phrases::explain as phrases;

pub(super) fn draw(html: &mut Html, report: &ExplainReport) {
    let identity = phrases::identity(report).join(" · ");
    panel(html, "explain-process", "The process", &identity, |html| {
        block::lines(html, &phrases::details(report, true));
    });
}
