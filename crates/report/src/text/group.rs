//! The cgroup that `check` was asked about, and its host.

use timeline::cgroup::ROOT;

use super::ansi::Style;
use super::page::{TextPage, piece};
use crate::clock::ReportClock;
use crate::model::GroupSection;
use crate::phrases::group as phrases;

/// Column of the text.
const INDENT: usize = 10;
/// At most 3 findings of the host are listed; the rest is counted.
const FINDINGS_MAX: usize = 3;

/// Draws what is known of the cgroup, with a label for the lines of one kind.
pub(super) fn draw(page: &mut TextPage, group: &GroupSection, clock: &ReportClock<'_>) {
    let mut label = "";
    for line in phrases::lines(group, clock) {
        let head = if line.label == label { "" } else { line.label };
        label = line.label;
        page.hanging(&[piece(Style::Faint, head)], INDENT, Style::Plain, &line.text);
    }
}

/// Draws how the host stands, after all that is about the cgroup.
pub(super) fn draw_host(page: &mut TextPage, group: &GroupSection) {
    let host = &group.around;
    page.heading(match group.path.as_str() {
        // The root of a container.
        ROOT => "The whole host (memtide check --host):",
        _ => "The whole host, with all its cgroups (memtide check):",
    });
    let head = [piece(Style::Plain, "   "), piece(host.verdict.into(), host.verdict.word())];
    page.hanging(&head, 3 + INDENT, Style::Plain, &phrases::host(host));
    let others: Vec<_> = host.findings.iter().filter(|finding| !finding.is_headline).collect();
    for finding in others.iter().take(FINDINGS_MAX) {
        let text = format!("{}: {}", finding.id, finding.title);
        page.hanging(&[piece(Style::Plain, "   -")], 5, Style::Plain, &text);
    }
    if others.len() > FINDINGS_MAX {
        let more = format!("and {} more", others.len() - FINDINGS_MAX);
        page.hanging(&[], 5, Style::Faint, &more);
    }
}
