//! What a runtime reports of its own memory: class and headline, tables, and what the class rests on.

use super::panel;
use crate::html::block;
use crate::html::escape::{Html, Tag, tag};
use crate::model::runtime_stats::RuntimeStatsReport;
use crate::phrases::runtime_stats::{self as phrases, StatsTable};

pub(super) fn draw(html: &mut Html, report: &RuntimeStatsReport) {
    let heading = format!("{}: {}", phrases::title(report), report.class);
    panel(html, "explain-runtime", &heading, &report.headline, |html| {
        for one in phrases::tables(report) {
            html.within(Tag::of("div", "wide"), |html| table(html, &one));
        }
        block::lines(html, &phrases::sentences(report));
    });
}

fn table(html: &mut Html, table: &StatsTable) {
    html.within(Tag::of("table", "stats"), |html| {
        html.within(tag("thead"), |html| {
            html.within(tag("tr"), |html| {
                for name in &table.names {
                    html.tagged(tag("th").with("scope", "col"), name);
                }
            });
        });
        html.within(tag("tbody"), |html| {
            for row in &table.rows {
                html.within(tag("tr"), |html| {
                    for (column, cell) in row.iter().enumerate() {
                        let of = match column {
                            0 => tag("th").with("scope", "row"),
                            _ => tag("td"),
                        };
                        html.tagged(of, cell);
                    }
                });
            }
        });
    });
}
