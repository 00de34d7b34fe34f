//! The screen of `where`: a tree that adds up to MemTotal, with the remainder on a line of its own.

use units::{Bytes, Count, Ratio};

use super::check::host_line;
use super::page::{NARROW, Style, StyledText, TextPage, piece};
use super::wrap::{cut, width, wrap};
use super::{Detail, Screen};
use crate::clock::ReportClock;
use crate::model::{Branch, WhereReport};

/// Cells of the right-aligned sizes and shares.
const SIZE_CELLS: usize = 10;
const SHARE_CELLS: usize = 8;
/// At most 34 cells for branches and labels.
const LABEL_CELLS: usize = 34;
/// At most 8 parts of one node are shown; the rest is counted.
const CHILDREN_MAX: usize = 8;
/// At most 6 levels: a hostile tree must exhaust neither the stack nor the screen's width.
const DEEPEST: usize = 6;

pub(super) fn draw(report: &WhereReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    host_line(&mut page, &report.host, &report.source, &clock, screen);
    page.gap();
    let (Some(tree), Some(accounting)) = (&report.tree, &report.accounting) else {
        let text = "Unknown: the source has no /proc/meminfo.";
        page.hanging(&[], 0, Style::Strong, text);
        return page.finish();
    };
    let moment = clock.moment(accounting.at_s, accounting.at);
    let at = moment
        .filter(|_| report.source.samples > 1)
        .map_or_else(String::new, |at| format!(" at {at}"));
    let size = tree
        .bytes
        .map_or_else(String::new, |b| format!("{} ", Bytes::new(b)));
    let root = format!("{size}{}{at}", tree.label);
    page.hanging(&[], 0, Style::Strong, &root);
    let mut rows = Vec::new();
    rows_below(tree, "", 0, screen, &mut rows);
    let label_cells = rows
        .iter()
        .map(|row| width(&row.head) + width(&row.label))
        .max();
    for row in &rows {
        row.draw(&mut page, label_cells.unwrap_or_default(), screen);
    }
    if !report.explanations.is_empty() {
        page.heading("Not to be added up:");
        for text in &report.explanations {
            let head = [piece(Style::Faint, "   -")];
            page.hanging(&head, 5, Style::Plain, text);
        }
    }
    page.finish()
}

/// One line of the tree.
struct TreeRow {
    /// The branch before the label: `│  ├ `.
    head: String,
    /// The branch before further lines of a long note.
    below: String,
    label: String,
    size: String,
    share: String,
    note: String,
    depth: usize,
}

fn rows_below(node: &Branch, stem: &str, depth: usize, screen: &Screen, rows: &mut Vec<TreeRow>) {
    if depth == DEEPEST {
        return;
    }
    let label_cells = LABEL_CELLS.min(screen.width() - SIZE_CELLS - SHARE_CELLS);
    let most = match screen.detail {
        Detail::Brief => CHILDREN_MAX,
        Detail::All => usize::MAX,
    };
    // The first level adds up to MemTotal, so it is shown in full.
    let shown = if depth == 0 { usize::MAX } else { most };
    let hidden = node.children.len().saturating_sub(shown);
    for (i, child) in node.children.iter().take(shown).enumerate() {
        let is_last = i + 1 == node.children.len();
        let (turn, on) = if is_last {
            ("└ ", "  ")
        } else {
            ("├ ", "│ ")
        };
        let below = format!("{stem}{on}");
        rows.push(TreeRow {
            head: format!("{stem}{turn}"),
            below: if child.children.is_empty() {
                below.clone()
            } else {
                format!("{below}│ ")
            },
            label: cut(&child.label, label_cells.saturating_sub(width(stem) + 2)),
            size: child
                .bytes
                .map_or_else(String::new, |b| Bytes::new(b).to_string()),
            share: child.share.map_or_else(String::new, share),
            note: child.note.clone(),
            depth,
        });
        rows_below(child, &below, depth + 1, screen, rows);
    }
    if hidden > 0 {
        rows.push(TreeRow {
            head: format!("{stem}└ "),
            below: stem.to_owned(),
            label: format!("{hidden} more"),
            size: String::new(),
            share: String::new(),
            note: String::new(),
            depth,
        });
    }
}

/// Formats a share for its column; a tiny one as `< 0.1 %`.
fn share(of_whole: f64) -> String {
    const SHARE_LITTLE: f64 = 0.001;
    match of_whole {
        little if 0.0 < little && little < SHARE_LITTLE => {
            format!("< {}", Ratio::new(SHARE_LITTLE))
        }
        share => cut(&Ratio::new(share).to_string(), SHARE_CELLS - 1),
    }
}

impl TreeRow {
    fn draw(&self, page: &mut TextPage, label_cells: usize, screen: &Screen) {
        let style = if self.depth == 0 {
            Style::Strong
        } else {
            Style::Plain
        };
        let used = width(&self.head) + width(&self.label);
        let mut line = vec![
            piece(Style::Faint, self.head.clone()),
            piece(style, self.label.clone()),
            piece(Style::Plain, " ".repeat(label_cells.saturating_sub(used))),
        ];
        let is_narrow = screen.width() < NARROW;
        // Shares of parts below the first level would be noise.
        let share = if self.depth == 0 {
            self.share.as_str()
        } else {
            ""
        };
        line.push(piece(
            Style::Plain,
            format!("{:>SIZE_CELLS$}{share:>SHARE_CELLS$}", self.size),
        ));
        let notes_at = if is_narrow {
            width(&self.below) + 2
        } else {
            label_cells + SIZE_CELLS + SHARE_CELLS + 2
        };
        let mut notes = wrap(&self.note, screen.width().saturating_sub(notes_at)).into_iter();
        if !is_narrow {
            line.push(piece(
                Style::Faint,
                format!("  {}", notes.next().unwrap_or_default()),
            ));
        }
        page.line(&line);
        for note in notes {
            let blanks = notes_at.saturating_sub(width(&self.below));
            let line: [StyledText; 3] = [
                piece(Style::Faint, self.below.clone()),
                piece(Style::Plain, " ".repeat(blanks)),
                piece(Style::Faint, note),
            ];
            page.line(&line);
        }
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
