//! A table of the frame: columns with a value to sort by, a selected row, as many rows as there is room for.

use super::{TopFrame, TopView};
use crate::model::Severity;
use crate::text::Screen;
use crate::text::ansi::Style;
use crate::text::page::{StyledLine, piece};
use crate::text::wrap::{cut, cut_name, width};

/// What a row is about.
#[derive(Debug, Clone, PartialEq)]
pub enum TopRow {
    /// A finding by its rule and its subject.
    Finding(String, String),
    /// The path of a cgroup.
    Unit(String),
    /// The key of a process: PID and start.
    Process(String),
}

/// A column of a table.
pub(super) struct TopColumn<R> {
    pub(super) title: &'static str,
    /// Its cells, with a blank before it.
    pub(super) cells: usize,
    /// The columns of the least screen that shows it.
    pub(super) from_width: usize,
    /// What a row shows; empty where that is not known.
    pub(super) text: fn(&R) -> String,
    /// What rows are sorted by, the largest first; `None` is last.
    pub(super) value: fn(&R) -> Option<f64>,
}

/// A table's rows with their names.
pub(super) struct TopTable<'a, R> {
    pub(super) columns: &'a [TopColumn<R>],
    pub(super) rows: Vec<&'a R>,
    /// Titles of columns that are left out.
    pub(super) hidden: Vec<&'static str>,
    /// The title of the names.
    pub(super) named: &'static str,
    pub(super) name: fn(&R) -> String,
    /// What follows a name, faint.
    pub(super) note: &'a dyn Fn(&R) -> String,
    /// How bad a finding about the row is; it has a mark then.
    pub(super) severity: &'a dyn Fn(&R) -> Option<Severity>,
    /// What is shown where there is no row.
    pub(super) none: &'static str,
}

/// Returns the rows that the filter lets through, sorted by the chosen column.
pub(super) fn sorted<'a, R>(
    rows: &'a [R],
    columns: &[TopColumn<R>],
    view: &TopView,
    names: impl Fn(&R) -> Vec<String>,
) -> Vec<&'a R> {
    let wanted = view.filter.to_lowercase();
    let is_wanted = |row: &&R| {
        wanted.is_empty() || names(row).iter().any(|name| name.to_lowercase().contains(&wanted))
    };
    let mut shown: Vec<&R> = rows.iter().filter(is_wanted).collect();
    if let Some(column) = columns.get(view.sort) {
        let value = |row: &R| (column.value)(row).unwrap_or(f64::NEG_INFINITY);
        shown.sort_by(|a, b| value(b).total_cmp(&value(a)));
    }
    shown
}

impl<R> TopTable<'_, R> {
    /// Draws the table: a heading, then the rows around the selected one.
    pub(super) fn draw(&self, view: &TopView, (screen, room): (&Screen, usize)) -> TopFrame {
        let is_shown = |(_, column): &(usize, &TopColumn<R>)| {
            screen.width() >= column.from_width
                && !self.hidden.contains(&column.title)
                && self.rows.iter().any(|row| !(column.text)(row).is_empty())
        };
        let (indices, columns): (Vec<usize>, Vec<&TopColumn<R>>) =
            self.columns.iter().enumerate().filter(is_shown).unzip();
        let sorted_by = self.columns.get(view.sort).map(|column| column.title);
        let taken: usize = columns.iter().map(|column| column.cells).sum();
        let names = screen.width().saturating_sub(taken + 3);
        let mut heading: StyledLine = Vec::new();
        for column in &columns {
            let style = if Some(column.title) == sorted_by { Style::Strong } else { Style::Faint };
            heading.push(piece(style, format!("{:>1$}", column.title, column.cells)));
        }
        heading.push(piece(Style::Faint, format!("   {}", self.named)));
        let mut lines = vec![heading];
        if self.rows.is_empty() {
            let why = if view.filter.is_empty() { self.none } else { "no name has this in it" };
            lines.push(vec![piece(Style::Plain, cut(why, screen.width()))]);
            return TopFrame { lines, room, columns: indices, ..TopFrame::default() };
        }
        let room = room.saturating_sub(1);
        let selected = view.selected.min(self.rows.len() - 1);
        let first = (selected + 1).saturating_sub(room);
        for row in self.rows.iter().skip(first).take(room) {
            let mut line: StyledLine = columns
                .iter()
                .map(|column| {
                    piece(Style::Plain, format!("{:>1$}", known((column.text)(row)), column.cells))
                })
                .collect();
            let name = cut_name(&(self.name)(row), names);
            let left = names.saturating_sub(width(&name) + 2);
            let severity = (self.severity)(row);
            line.push(severity.map_or_else(
                || piece(Style::Plain, "   "),
                |severity| piece(severity.into(), " ▲ "),
            ));
            line.push(piece(Style::Strong, name));
            let note = (self.note)(row);
            if left >= 6 && !note.is_empty() {
                line.push(piece(Style::Faint, format!("  {}", cut_name(&note, left))));
            }
            lines.push(line);
        }
        TopFrame { lines, selected: Some(1 + selected - first), room, page: 0, columns: indices }
    }
}

fn known(text: String) -> String {
    if text.is_empty() { "–".to_owned() } else { text }
}
