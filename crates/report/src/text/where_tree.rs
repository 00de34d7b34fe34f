//! The screen of `where`: a tree that adds up to MemTotal, with the remainder on a line of its own.

use units::{Bytes, Count, Ratio};

use super::ansi::Style;
use super::check::host_line;
use super::page::{TextPage, piece};
use super::tree::{self, DEEPEST, SHARE_CELLS, SIZE_CELLS, TreeNode};
use super::wrap::cut;
use super::{Detail, Screen};
use crate::clock::ReportClock;
use crate::model::{MemoryNode, SizeKind, WhereReport};

/// At most 24 parts of one node are shown, and its remainder; the others are counted.
const CHILDREN_MAX: usize = 24;

pub(super) fn draw(report: &WhereReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    host_line(&mut page, &report.host, &report.source, &clock, screen);
    page.gap();
    tree_of(&mut page, report, &clock, screen);
    page.finish()
}

/// Draws the tree without the line of the host.
pub(super) fn tree_of(
    page: &mut TextPage,
    report: &WhereReport,
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    let (Some(root_node), Some(accounting)) = (&report.tree, &report.accounting) else {
        let text = "Unknown: the source has no /proc/meminfo.";
        page.hanging(&[], 0, Style::Strong, text);
        return;
    };
    let moment = clock.moment(accounting.at_s, accounting.at);
    let at = moment
        .filter(|_| report.source.samples > 1)
        .map_or_else(String::new, |at| format!(" at {at}"));
    let root = format!("{} {}{at}", root_node.bytes, root_node.label);
    page.hanging(&[], 0, Style::Strong, &root);
    if !root_node.note.is_empty() {
        page.hanging(&[], 0, Style::Faint, &root_node.note);
    }
    tree::draw(page, &nodes(root_node, 0, screen), screen);
    if !report.explanations.is_empty() {
        page.heading("Not to be added up:");
        for text in &report.explanations {
            let head = [piece(Style::Faint, "   -")];
            page.hanging(&head, 5, Style::Plain, text);
        }
    }
}

/// Returns the parts of a node as they are shown. The first level adds up to MemTotal, so it is shown in full.
fn nodes(node: &MemoryNode, depth: usize, screen: &Screen) -> Vec<TreeNode> {
    let most = match (screen.detail, screen.top) {
        (Detail::Brief, None) if depth > 0 => CHILDREN_MAX,
        _ => usize::MAX,
    };
    let draw = |child: &MemoryNode| TreeNode {
        label: child.label.clone(),
        size: size(child.bytes, child.kind),
        share: child.share.map_or_else(String::new, share),
        note: child.note.clone(),
        parts: if depth < DEEPEST { nodes(child, depth + 1, screen) } else { Vec::new() },
    };
    // The remainder is no part like the others: it is often the largest, and its note says what it may be.
    let (rest, known) = match node.children.split_last() {
        Some((last, known)) if last.kind == SizeKind::Remainder => (Some(last), known),
        _ => (None, node.children.as_slice()),
    };
    let mut parts: Vec<TreeNode> = known.iter().take(most).map(draw).collect();
    let hidden = known.get(most..).unwrap_or_default();
    let kind = hidden.iter().map(|child| child.kind);
    if let Some(kind) = kind.reduce(|a, b| if a == SizeKind::Estimate { a } else { b }) {
        let sum = hidden.iter().map(|child| child.bytes).sum();
        parts.push(TreeNode {
            label: format!("{} more", hidden.len()),
            size: size(sum, kind),
            ..TreeNode::default()
        });
    }
    parts.extend(rest.map(draw));
    parts
}

/// Formats a size; an estimate with a sign before it.
fn size(bytes: Bytes, kind: SizeKind) -> String {
    let sign = match kind {
        SizeKind::Estimate => "≈",
        SizeKind::Measured | SizeKind::Remainder => "",
    };
    cut(&format!("{sign}{bytes}"), SIZE_CELLS)
}

/// Formats a share for its column; a tiny one as `< 0.1 %`.
pub(super) fn share(of_whole: Ratio) -> String {
    const SHARE_LITTLE: Ratio = Ratio::new(0.001);
    match of_whole {
        little if Ratio::default() < little && little < SHARE_LITTLE => {
            format!("< {SHARE_LITTLE}")
        }
        share => cut(&share.to_string(), SHARE_CELLS - 1),
    }
}

/// Returns a note on the processes without a PSS.
pub(super) fn pss_not_read(processes: u64, deep: bool) -> Option<String> {
    if processes == 0 {
        return None;
    }
    let processes = Count::new(processes).named("process", "processes");
    let why = if deep {
        "this user may not read it, or they ended meanwhile"
    } else {
        "`memtide where --deep` reads it of every process, as root also of other users'"
    };
    Some(format!("PSS of {processes} was not read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(label: &str, bytes: u64, kind: SizeKind) -> MemoryNode {
        MemoryNode {
            label: label.to_owned(),
            bytes: Bytes::new(bytes),
            kind,
            share: None,
            note: String::new(),
            children: Vec::new(),
        }
    }

    #[test]
    fn the_remainder_is_shown_however_many_parts_are_not() {
        let mut node = branch("page cache", 1_000, SizeKind::Measured);
        let files = (0..40).map(|i| branch(&format!("/f{i}"), 10, SizeKind::Measured));
        node.children = files.collect();
        let rest = branch("not attributed", 600, SizeKind::Remainder);
        node.children.push(rest);
        let labels = |screen: &Screen| -> Vec<String> {
            let parts = nodes(&node, 1, screen).into_iter();
            parts.map(|part| part.label).collect()
        };
        let brief = labels(&Screen::default());
        assert_eq!(brief.len(), CHILDREN_MAX + 2);
        assert_eq!(brief[CHILDREN_MAX..], ["16 more", "not attributed"]);
        let chosen = Screen { top: Some(40), ..Screen::default() };
        assert_eq!(labels(&chosen).len(), 41);
    }
}
