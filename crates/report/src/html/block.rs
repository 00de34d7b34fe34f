//! Blocks that several parts of the page use: a section with its heading, sentences beside their labels, a command to copy.

use super::escape::{Html, Tag, tag};
use crate::phrases::LabelledText;

/// A section of the page with its heading.
pub(super) fn section(
    html: &mut Html,
    (id, heading_id): (&'static str, &'static str),
    heading: &str,
    inside: impl FnOnce(&mut Html),
) {
    html.raw("\n");
    let block = tag("section").with("id", id).with("aria-labelledby", heading_id);
    html.within(block, |html| {
        html.tagged(tag("h2").with("id", heading_id), heading);
        inside(html);
    });
}

/// Draws sentences beside their labels.
pub(super) fn lines(html: &mut Html, lines: &[LabelledText]) {
    html.within(Tag::of("dl", "lines"), |html| {
        for line in lines {
            html.tagged(tag("dt"), line.label);
            html.tagged(tag("dd"), &line.text);
        }
    });
}

/// Draws a command that can be copied; nothing if it is empty.
pub(super) fn command(html: &mut Html, when: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    html.within(Tag::of("div", "command"), |html| {
        html.tagged(Tag::of("span", "when"), when);
        html.raw("<pre><code>").lines(text.trim_end()).raw("</code></pre>");
        html.raw("<button type=\"button\" class=\"copy js-only\">Copy</button>");
    });
}
