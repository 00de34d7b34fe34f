//! Rules that could not be evaluated, and what would help; rules that found nothing.

use super::Scene;
use super::block::command;
use super::block::section;
use super::escape::{Html, Tag, tag};
use crate::model::by_need;

pub(super) fn not_evaluated(html: &mut Html, scene: &Scene<'_>) {
    let report = scene.report;
    if report.not_evaluated.is_empty() && report.next.is_empty() {
        return;
    }
    let heading = format!("Not evaluated ({})", report.not_evaluated.len());
    section(html, ("not-evaluated", "not-evaluated-heading"), &heading, |html| {
        html.within(tag("ul"), |html| {
            for (needs, alike) in by_need(&report.not_evaluated) {
                html.within(tag("li"), |html| {
                    for (i, rule) in alike.iter().enumerate() {
                        html.raw(if i > 0 { ", " } else { "" }).tagged(tag("code"), &rule.id);
                    }
                    html.raw(if alike.len() == 1 { " needs " } else { " need " }).text(needs);
                });
            }
        });
        next(html, scene);
    });
}

/// What to run to learn more.
fn next(html: &mut Html, scene: &Scene<'_>) {
    if scene.report.next.is_empty() {
        return;
    }
    html.tagged(tag("h3"), "Next steps");
    html.within(Tag::of("ul", "next"), |html| {
        for step in &scene.report.next {
            html.within(tag("li"), |html| {
                html.text(&step.shows);
                command(html, "", &step.command);
            });
        }
    });
}

pub(super) fn clear(html: &mut Html, scene: &Scene<'_>) {
    let rules = &scene.report.clear;
    if rules.is_empty() {
        return;
    }
    let heading = match rules.len() {
        1 => "1 rule found nothing".to_owned(),
        n => format!("{n} rules found nothing"),
    };
    section(html, ("clear", "clear-heading"), &heading, |html| {
        html.within(tag("details"), |html| {
            html.raw("<summary>Which, and why that is certain</summary>");
            html.within(tag("dl"), |html| {
                for rule in rules {
                    html.within(tag("dt"), |html| {
                        html.tagged(tag("code"), &rule.id);
                    });
                    html.tagged(tag("dd"), &rule.because);
                }
            });
        });
    });
}
