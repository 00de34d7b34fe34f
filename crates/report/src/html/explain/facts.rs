//! What the process is and may use; what could not be read; what the answer cost.

use super::panel;
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::ExplainReport;
use crate::phrases::explain as phrases;

pub(super) fn draw(html: &mut Html, report: &ExplainReport) {
    panel(html, "explain-process", "The process", "", |html| {
        html.within(Tag::of("dl", "lines"), |html| {
            for (name, value) in phrases::process_facts(report) {
                html.tagged(tag("dt"), name);
                html.tagged(tag("dd"), &value);
            }
        });
        if !report.problems.is_empty() {
            html.tagged(tag("h3"), "What could not be read");
            html.within(Tag::of("ul", "problems"), |html| {
                for problem in &report.problems {
                    html.tagged(tag("li"), problem);
                }
            });
        }
        html.tagged(Tag::of("p", "help"), &phrases::cost(report));
    });
}
