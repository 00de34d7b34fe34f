//! Tables of the comparison: label, before, after, change.

use crate::html::escape::{Html, Tag, tag};
use crate::phrases::compare::{ComparisonRow, ComparisonTable};

/// Draws what changed, and the full table folded if it has more rows.
pub(super) fn tables(html: &mut Html, changed: &ComparisonTable, all: &ComparisonTable) {
    table(html, changed, |_, _| {});
    if all.rows.len() > changed.rows.len() {
        html.within(Tag::of("details", "rest"), |html| {
            html.raw("<summary>Figures that did not change</summary>");
            table(html, all, |_, _| {});
        });
    }
}

/// Draws rows `label, before, after, change` and the sentences below; `key` draws the mark before a label.
pub(super) fn table(
    html: &mut Html,
    table: &ComparisonTable,
    key: impl Fn(&mut Html, &ComparisonRow),
) {
    if table.rows.is_empty() {
        html.raw("<p class=\"none\">none</p>");
    } else {
        html.within(Tag::of("table", "compared"), |html| {
            html.raw("<thead><tr><td></td><th scope=\"col\">before</th><th scope=\"col\">after</th><th scope=\"col\">change</th></tr></thead>");
            html.within(tag("tbody"), |html| {
                for row in &table.rows {
                    draw_row(html, row, &key);
                }
            });
        });
    }
    for sentence in &table.below {
        html.tagged(Tag::of("p", "below"), sentence);
    }
}

fn draw_row(html: &mut Html, row: &ComparisonRow, key: &impl Fn(&mut Html, &ComparisonRow)) {
    let tr = if row.is_strong { Tag::of("tr", "is-strong") } else { tag("tr") };
    html.within(tr, |html| {
        html.within(tag("th").with("scope", "row"), |html| {
            key(html, row);
            html.text(&row.label);
        });
        html.tagged(Tag::of("td", "before"), &row.before);
        html.tagged(Tag::of("td", "after"), &row.after);
        html.within(Tag::of("td", "change"), |html| {
            html.text(&row.change);
            if !row.more.is_empty() {
                html.tagged(Tag::of("span", "spreads"), &row.more);
            }
        });
    });
}
