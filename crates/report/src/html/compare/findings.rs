//! Findings of either side: what changed in a table, then the cards of what is there now, and, folded, of what was there.

use super::super::escape::{Html, Tag};
use super::super::finding;
use super::super::page::section;
use super::{Both, said, table};
use crate::model::Finding;

pub(super) fn draw(html: &mut Html, both: &Both<'_>) {
    let rows = said::findings(both.report);
    section(
        html,
        ("findings", "findings-heading"),
        rows.heading,
        |html| {
            table(html, &rows, |_, _| {});
            let now = both.after.report;
            if now.roots().next().is_some() {
                html.raw("<h3>What is found after</h3>");
            }
            for (index, root) in now.roots() {
                finding::draw(html, &both.after, index, root);
            }
            gone(html, both);
        },
    );
}

/// What the one side had and the other has not, or not so: it shows what was wrong.
fn gone(html: &mut Html, both: &Both<'_>) {
    let after = &both.after.report.findings;
    let told = both.before.report.findings.iter().enumerate();
    let told = told.filter_map(|(index, finding)| Some((index, finding, turn(finding, after)?)));
    let told: Vec<_> = told.collect();
    if told.is_empty() {
        return;
    }
    html.raw("<h3>What was found before</h3>");
    html.within(Tag::of("div", "gone"), |html| {
        for (index, finding, word) in told {
            finding::folded(html, &both.before, index, finding, word);
        }
    });
}

/// What became of a finding; `None` where it is told in the same words after.
fn turn(finding: &Finding, after: &[Finding]) -> Option<&'static str> {
    let mut same = after.iter().filter(|other| other.id == finding.id);
    match same.next() {
        None => Some("gone"),
        Some(other) => (other.title != finding.title).then_some("before"),
    }
}
