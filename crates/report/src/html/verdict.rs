//! The verdict at the top: a word and a sentence, the first thing to do, and up to four figures.

use super::Scene;
use super::escape::{Html, Tag, tag, unbroken};
use super::{figures, icon};
use crate::model::{Level, Report};
use crate::phrases::group as group_phrases;
use crate::phrases::verdict as phrases;

/// Returns the verdict's word.
pub(super) const fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "OK",
        Level::Warning => "Warning",
        Level::Critical => "Critical",
        Level::Unknown => "Unknown",
    }
}

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let report = scene.report;
    let class = icon::class_of_level(report.verdict);
    let block = Tag::standing("section", "verdict", class).with("id", "verdict");
    html.within(block.with("aria-labelledby", "headline"), |html| {
        icon::of_level(html, report.verdict);
        html.tagged(Tag::of("p", "level"), word(report.verdict));
        let headline = unbroken(&phrases::headline(report, &scene.clock));
        html.tagged(tag("h1").with("id", "headline"), &headline);
        for remark in &report.remarks {
            html.tagged(Tag::of("p", "remark"), remark);
        }
        if let Some(group) = &report.group {
            for line in group_phrases::lines(group, &scene.clock) {
                let text = format!("{}: {}", line.label, line.text);
                html.tagged(Tag::of("p", "remark"), &text);
            }
            let host = group_phrases::host(&group.around);
            let host = format!("the whole host: {}. {host}", word(group.around.verdict));
            html.tagged(Tag::of("p", "remark"), &host);
        }
        if let Some(todo) = todo(report) {
            html.tagged(Tag::of("p", "todo"), todo);
        }
        figures::draw(html, scene);
    });
}

/// Returns the first fix of the first finding, if anything is wrong.
fn todo(report: &Report) -> Option<&str> {
    let is_wrong = matches!(report.verdict, Level::Warning | Level::Critical);
    let leading = report.findings.first().filter(|_| is_wrong)?;
    let first = leading.fix.iter().map(|fix| fix.what.as_str());
    first.into_iter().find(|what| !what.is_empty())
}
