//! The screen of `compare`: both sources, the verdict, and changes as columns `before  after  change`; unchanged
//! entries are counted.

use super::ansi::Style;
use super::page::{StyledText, TextPage, piece};
use super::wrap::{cut, pad, width, wrap_items};
use super::{Detail, Screen};
use crate::clock::ReportClock;
use crate::model::{CompareReport, Direction};
use crate::phrases::compare::{self as phrases, ComparisonRow, ComparisonTable, Extent};
use crate::phrases::source::host_items;

/// Column of the verdict's sentences, as in `check`.
const VERDICT_INDENT: usize = 10;
/// Cells of a value column.
const VALUE: usize = 14;
/// Cells of a change column.
const CHANGE: usize = 11;

pub(super) fn draw(report: &CompareReport, screen: &Screen) -> String {
    let mut it = Sheet { page: TextPage::new(screen), screen, report };
    let extent = match screen.detail {
        Detail::All => Extent::All,
        _ => Extent::Short,
    };
    it.sides();
    it.basis();
    it.verdict();
    it.table(&phrases::findings(report));
    it.table(&phrases::memory(report, extent));
    it.table(&phrases::rates(report, extent));
    it.table(&phrases::facts(report, extent));
    it.page.finish()
}

/// The screen being drawn.
struct Sheet<'a> {
    page: TextPage,
    screen: &'a Screen,
    report: &'a CompareReport,
}

impl Sheet<'_> {
    fn sides(&mut self) {
        for (name, side) in [("before", &self.report.before), ("after", &self.report.after)] {
            let clock = ReportClock::new(&side.source, self.screen);
            let items = host_items(&side.host, &side.source, &clock);
            let lines = wrap_items(&items, " · ", self.screen.width().saturating_sub(8));
            for (nth, line) in lines.into_iter().enumerate() {
                let head = if nth == 0 { name } else { "" };
                self.page.line(&[piece(Style::Strong, pad(head, 8)), piece(Style::Faint, line)]);
            }
        }
    }

    fn basis(&mut self) {
        if self.report.basis.is_empty() {
            return;
        }
        self.page.gap();
        for sentence in &self.report.basis {
            let head = [piece(Style::Warning, "!")];
            self.page.hanging(&head, 2, Style::Plain, sentence);
        }
    }

    fn verdict(&mut self) {
        let style = match self.report.direction {
            Direction::Better | Direction::Same => Style::Fine,
            // Neither better nor worse has no severity colour.
            Direction::Different => Style::Strong,
            Direction::Worse => Style::Critical,
            Direction::Unknown => Style::Unknown,
        };
        self.page.gap();
        let head = [piece(style, phrases::word(self.report.direction))];
        self.page.hanging(&head, VERDICT_INDENT, Style::Strong, &self.report.headline);
        for sentence in &self.report.more {
            self.page.hanging(&[], VERDICT_INDENT, Style::Plain, sentence);
        }
    }

    fn table(&mut self, table: &ComparisonTable) {
        self.page.gap();
        let label = self.label_cells();
        self.page.line(&[
            piece(Style::Strong, pad(&cut(table.heading, label + 2), label + 3)),
            piece(Style::Faint, format!("{:>VALUE$} {:>VALUE$}  change", "before", "after")),
        ]);
        if table.rows.is_empty() {
            self.page.line(&[piece(Style::Faint, "   none")]);
        }
        for row in &table.rows {
            self.row(row, label);
        }
        for sentence in &table.below {
            self.page.hanging(&[], 3, Style::Faint, sentence);
        }
    }

    fn label_cells(&self) -> usize {
        let taken = 3 + 2 * (VALUE + 1) + 2 + CHANGE;
        self.screen.width().saturating_sub(taken)
    }

    /// Draws a row; as a sentence if its values are too wide for their columns, or the screen is narrow.
    fn row(&mut self, row: &ComparisonRow, label: usize) {
        let style = if row.is_strong { Style::Strong } else { Style::Plain };
        let fits = width(&row.before) <= VALUE && width(&row.after) <= VALUE && label >= 10;
        if fits {
            let long = width(&row.label) > label;
            if long {
                self.page.line(&[piece(style, format!("   {}", row.label))]);
            }
            let name = if long { String::new() } else { row.label.clone() };
            self.page.line(&[
                piece(style, format!("   {}", pad(&name, label))),
                right(&row.before),
                right(&row.after),
                piece(style, format!("  {}", row.change)),
            ]);
        } else {
            let head = [piece(style, format!("   {}", row.label))];
            self.page.line(&head);
            for (side, value) in [("before", &row.before), ("after", &row.after)] {
                let head = [piece(Style::Faint, format!("     {side}"))];
                self.page.hanging(&head, 13, style, value);
            }
            if !row.change.is_empty() {
                let head = [piece(Style::Faint, "     change")];
                self.page.hanging(&head, 13, style, &row.change);
            }
        }
        if !row.more.is_empty() {
            self.page.hanging(&[], 5, Style::Faint, &row.more);
        }
    }
}

fn right(value: &str) -> StyledText {
    let blanks = (VALUE + 1).saturating_sub(width(value));
    piece(Style::Plain, format!("{}{value}", " ".repeat(blanks)))
}
