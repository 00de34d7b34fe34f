//! Findings of either side: those that only one has, and those that both have.

use super::super::escape::{Html, Tag, tag};
use super::super::icon;
use super::super::page::section;
use super::{CompareReport, said, table};
use crate::model::{FindingEntry, FoundEntry};

/// Where a finding is.
type Group = (&'static str, fn(&FindingEntry) -> bool);

const GROUPS: [Group; 3] = [
    ("Only before", |it| {
        it.before.is_some() && it.after.is_none()
    }),
    ("In both", |it| it.before.is_some() && it.after.is_some()),
    ("Only after", |it| it.before.is_none() && it.after.is_some()),
];

pub(super) fn draw(html: &mut Html, report: &CompareReport) {
    let rows = said::findings(report);
    section(
        html,
        ("findings", "findings-heading"),
        rows.heading,
        |html| {
            table(html, &rows, |_, _, _| {});
            html.within(Tag::of("div", "groups"), |html| {
                for (heading, is_there) in GROUPS {
                    let all = report.findings.iter().filter(|it| is_there(it));
                    group(html, heading, &all.collect::<Vec<_>>());
                }
            });
        },
    );
}

fn group(html: &mut Html, heading: &str, findings: &[&FindingEntry]) {
    html.within(Tag::of("div", "group"), |html| {
        html.tagged(tag("h3"), heading);
        if findings.is_empty() {
            html.raw("<p class=\"none\">none</p>");
        }
        for finding in findings {
            let both = [("before", &finding.before), ("after", &finding.after)];
            let sides = both
                .into_iter()
                .filter_map(|(side, found)| Some((side, found.as_ref()?)));
            let sides: Vec<_> = sides.collect();
            html.within(Tag::of("article", "compared-finding"), |html| {
                html.tagged(Tag::of("code", "id"), &finding.id);
                for (side, found) in &sides {
                    let side = Some(*side).filter(|_| sides.len() > 1);
                    draw_found(html, side, found);
                }
            });
        }
    });
}

fn draw_found(html: &mut Html, side: Option<&str>, found: &FoundEntry) {
    let found_of = Tag::standing("p", "found", icon::class_of_severity(found.severity));
    html.within(found_of, |html| {
        icon::of_severity(html, found.severity);
        html.raw(" ");
        if let Some(side) = side {
            html.tagged(Tag::of("span", "when"), side).raw(" ");
        }
        html.text(&found.title);
        if let Some(cause) = &found.caused_by {
            html.raw(" <span class=\"follows\">follows from <code>")
                .text(cause)
                .raw("</code></span>");
        }
    });
}
