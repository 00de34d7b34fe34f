//! VSS, RSS, PSS and USS, and what makes the difference between them.

use super::{bar, panel, thousandths};
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::ExplainReport;
use crate::phrases::explain::size_lines;

pub(super) fn draw(html: &mut Html, report: &ExplainReport) {
    let sizes = &report.sizes;
    panel(html, "explain-sizes", "How large is it?", "", |html| {
        html.within(Tag::of("table", "sizes"), |html| {
            html.raw("<tbody>");
            for line in size_lines(sizes) {
                html.within(tag("tr"), |html| {
                    html.tagged(tag("th").with("scope", "row"), line.name);
                    html.tagged(Tag::of("td", "size"), &line.bytes.to_string());
                    html.within(Tag::of("td", "of-bar"), |html| {
                        if matches!(line.name, "RSS" | "PSS" | "USS") {
                            let length = thousandths(line.bytes, sizes.rss_bytes);
                            bar(html, &[("ground", 0, 1000), ("bar-part", 0, length)]);
                        }
                    });
                    html.within(Tag::of("td", "meaning"), |html| {
                        html.text(line.meaning);
                        if !line.of_it.is_empty() {
                            html.raw(" ").tagged(Tag::of("span", "of-it"), &line.of_it);
                        }
                    });
                });
            }
            html.raw("</tbody>");
        });
        html.tagged(Tag::of("p", "help"), &kinds(report));
    });
}

/// What kinds of pages RSS has.
fn kinds(report: &ExplainReport) -> String {
    let sizes = &report.sizes;
    format!(
        "{} of RSS are anonymous and can only go to swap; {} belong to files and can be dropped or \
         written back.",
        sizes.anonymous_bytes,
        sizes.rss_bytes.saturating_sub(sizes.anonymous_bytes)
    )
}
