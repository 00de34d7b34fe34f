//! How much more fits, before and after: both answers, and their terms side by side.

use super::sides::Both;
use crate::html::block::{lines, section};
use crate::html::escape::{Html, Tag, tag};
use crate::html::headroom::answer;
use crate::model::headroom::HeadroomReport;
use crate::phrases::ABSENT;
use crate::phrases::headroom::{self as phrases, TermLine};

pub(super) fn draw(html: &mut Html, both: &Both<'_>) {
    let sides = both.sides().map(|(_, scene)| scene.page.headroom.as_ref());
    if sides.iter().all(Option::is_none) {
        return;
    }
    section(html, ("headroom", "headroom-heading"), "Headroom", |html| {
        html.within(Tag::of("div", "pair"), |html| {
            for (word, scene) in both.sides() {
                html.within(tag("div"), |html| {
                    html.tagged(tag("h3"), word);
                    match &scene.page.headroom {
                        Some(report) => {
                            answer(html, report);
                            lines(html, &phrases::first(report, &scene.clock));
                        }
                        None => {
                            html.raw(
                                "<p class=\"none\">The order of this source's samples is \
                                 unknown.</p>",
                            );
                        }
                    }
                });
            }
        });
        terms(html, sides.map(term_lines));
    });
}

fn term_lines(report: Option<&HeadroomReport>) -> Vec<TermLine> {
    let terms = report.and_then(|report| report.terms.as_ref());
    terms.map(phrases::terms).unwrap_or_default()
}

fn terms(html: &mut Html, [before, after]: [Vec<TermLine>; 2]) {
    let only_after = after.iter().filter(|term| of(&before, term.label).is_none());
    let rows: Vec<&TermLine> = before.iter().chain(only_after).collect();
    if rows.is_empty() {
        return;
    }
    html.within(Tag::of("table", "compared"), |html| {
        html.raw("<thead><tr><td></td><th scope=\"col\">before</th><th scope=\"col\">after</th></tr></thead>");
        html.within(tag("tbody"), |html| {
            for row in rows {
                html.within(tag("tr"), |html| {
                    let label = format!("{} {}", row.sign, row.label);
                    html.tagged(tag("th").with("scope", "row"), label.trim());
                    for (class, side) in [("before", &before), ("after", &after)] {
                        let size = of(side, row.label).map_or(ABSENT, |term| term.size.as_str());
                        html.tagged(Tag::of("td", class), size);
                    }
                });
            }
        });
    });
}

fn of<'a>(terms: &'a [TermLine], label: &str) -> Option<&'a TermLine> {
    terms.iter().find(|term| term.label == label)
}
