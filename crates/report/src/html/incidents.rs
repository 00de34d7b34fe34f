//! The list of incidents, in order of time; each line leads to its finding.

use super::Scene;
use super::block::section;
use super::escape::{Html, Tag, tag};
use super::served;
use crate::phrases::incidents::rows;

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let rows = rows(scene.report, &scene.clock);
    if rows.is_empty() {
        return;
    }
    section(html, ("incidents", "incidents-heading"), "Incidents", |html| {
        html.within(Tag::of("ol", "events"), |html| {
            for row in &rows {
                html.within(tag("li"), |html| {
                    let finding = format!("#{}", scene.id("finding", row.place));
                    html.tagged(tag("time"), &row.when).raw(" ");
                    html.tagged(tag("a").with_own("href", &finding), &row.what);
                    html.raw(" ").text(row.finding.severity.word());
                    if scene.served.is_some() {
                        served::link_to_incident(html, row.finding);
                    }
                });
            }
        });
    });
}
