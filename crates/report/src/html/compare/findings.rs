//! Findings of both sides: a table of changes, then the cards of the second side, then those of the first, folded.

use super::sides::Both;
use super::table::table;
use crate::html::block::section;
use crate::html::escape::{Html, Tag};
use crate::html::finding;
use crate::model::{CompareReport, Finding, FindingEntry, Turn};
use crate::phrases::compare as phrases;

pub(super) fn draw(html: &mut Html, both: &Both<'_>) {
    let rows = phrases::findings(both.report);
    section(html, ("findings", "findings-heading"), rows.heading, |html| {
        table(html, &rows, |_, _| {});
        let now = both.after.report;
        if now.roots().next().is_some() {
            html.raw("<h3>Findings after</h3>");
        }
        for (index, root) in now.roots() {
            finding::draw(html, &both.after, index, root);
        }
        gone(html, both);
    });
}

/// Draws the first side's findings that the second lacks or has changed: they show what was wrong.
fn gone(html: &mut Html, both: &Both<'_>) {
    let findings = both.before.report.findings.iter().enumerate();
    let turned: Vec<_> = findings
        .filter_map(|(index, finding)| Some((index, finding, turn(finding, both.report)?)))
        .collect();
    if turned.is_empty() {
        return;
    }
    html.raw("<h3>Findings before</h3>");
    html.within(Tag::of("div", "gone"), |html| {
        for (index, finding, word) in turned {
            finding::folded(html, &both.before, index, finding, word);
        }
    });
}

/// Returns how a finding changed, in the word of its row; `None` if it is unchanged and its card is already above.
fn turn(finding: &Finding, report: &CompareReport) -> Option<&'static str> {
    let changes = || report.findings.iter().filter(|entry| entry.id == finding.id);
    // One rule may have findings in several places.
    let is_same = |entry: &&FindingEntry| {
        let before = entry.before.as_ref();
        before.is_some_and(|before| before.title == finding.title)
    };
    let change = changes().find(is_same).or_else(|| changes().next())?.change;
    (change != Turn::Same).then(|| phrases::turned(change))
}
