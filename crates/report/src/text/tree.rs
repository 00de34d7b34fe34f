//! A tree with sizes: branches on the left, sizes right-aligned, notes wrapped in a column or below.

use super::Screen;
use super::ansi::Style;
use super::page::{NARROW, StyledText, TextPage, piece};
use super::wrap::{cut_name, width, wrap};

/// Cells of the right-aligned sizes and shares.
pub(super) const SIZE_CELLS: usize = 10;
pub(super) const SHARE_CELLS: usize = 8;
/// At most 34 cells for branches and labels on a screen of 80; half of what a wider one has more.
const LABEL_CELLS: usize = 34;
const LABEL_CELLS_AT: usize = 80;
/// At most 6 levels: a hostile tree must exhaust neither the stack nor the screen's width.
pub(super) const DEEPEST: usize = 6;

/// A node of a tree as it is drawn.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeNode {
    pub(super) label: String,
    pub(super) size: String,
    /// Shown on the first level only: below it, shares would be noise.
    pub(super) share: String,
    pub(super) note: String,
    pub(super) parts: Vec<TreeNode>,
}

/// Draws the parts of a whole.
pub(super) fn draw(page: &mut TextPage, parts: &[TreeNode], screen: &Screen) {
    let mut rows = Vec::new();
    rows_of(parts, "", 0, screen, &mut rows);
    let labels = rows.iter().map(TreeRow::label_width).max();
    for row in &rows {
        row.draw(page, labels.unwrap_or_default(), screen);
    }
}

/// One line of the tree.
struct TreeRow<'a> {
    /// The branch before the label: `│  ├ `.
    head: String,
    /// The branch before further lines of a long note.
    below: String,
    label: String,
    node: &'a TreeNode,
    depth: usize,
}

fn rows_of<'a>(
    parts: &'a [TreeNode],
    stem: &str,
    depth: usize,
    screen: &Screen,
    rows: &mut Vec<TreeRow<'a>>,
) {
    if depth == DEEPEST {
        return;
    }
    let wider = screen.width().saturating_sub(LABEL_CELLS_AT);
    let label_cells = (LABEL_CELLS + wider / 2).min(screen.width() - SIZE_CELLS - SHARE_CELLS);
    for (i, node) in parts.iter().enumerate() {
        let is_last = i + 1 == parts.len();
        let (turn, on) = if is_last { ("└ ", "  ") } else { ("├ ", "│ ") };
        let below = format!("{stem}{on}");
        rows.push(TreeRow {
            head: format!("{stem}{turn}"),
            below: if node.parts.is_empty() { below.clone() } else { format!("{below}│ ") },
            label: cut_name(&node.label, label_cells.saturating_sub(width(stem) + 2)),
            node,
            depth,
        });
        rows_of(&node.parts, &below, depth + 1, screen, rows);
    }
}

impl TreeRow<'_> {
    fn label_width(&self) -> usize {
        width(&self.head) + width(&self.label)
    }

    fn draw(&self, page: &mut TextPage, label_cells: usize, screen: &Screen) {
        let style = if self.depth == 0 { Style::Strong } else { Style::Plain };
        let mut line = vec![
            piece(Style::Faint, self.head.clone()),
            piece(style, self.label.clone()),
            piece(Style::Plain, " ".repeat(label_cells.saturating_sub(self.label_width()))),
        ];
        let is_narrow = screen.width() < NARROW;
        let share = if self.depth == 0 { self.node.share.as_str() } else { "" };
        line.push(piece(
            Style::Plain,
            format!("{:>SIZE_CELLS$}{share:>SHARE_CELLS$}", self.node.size),
        ));
        let notes_at = if is_narrow {
            width(&self.below) + 2
        } else {
            label_cells + SIZE_CELLS + SHARE_CELLS + 2
        };
        let room = screen.width().saturating_sub(notes_at);
        let mut notes = wrap(&self.node.note, room).into_iter();
        if !is_narrow {
            line.push(piece(Style::Faint, format!("  {}", notes.next().unwrap_or_default())));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_screen_has_room_for_longer_labels() {
        let name = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30";
        let node =
            TreeNode { label: name.to_owned(), size: "2 MiB".to_owned(), ..TreeNode::default() };
        let drawn = |columns| {
            let screen = Screen::of_width(columns);
            let mut page = TextPage::new(&screen);
            draw(&mut page, std::slice::from_ref(&node), &screen);
            page.finish()
        };
        assert!(drawn(120).contains(name), "{}", drawn(120));
        assert!(drawn(80).contains("├ …") || drawn(80).contains("└ …"), "{}", drawn(80));
        for columns in [40, 80, 100, 120] {
            let text = drawn(columns);
            assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        }
    }
}
